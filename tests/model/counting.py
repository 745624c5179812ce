"""Probable places of the next archives, from their numbers (R34)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MOST: Final = 3


def guesses(steps: Sequence[str], chain: Sequence[str]) -> list[str]:
    """Return the paths to try behind a missing one.

    `steps` are the chain's links, the missing one last. `chain` holds the attached archives, newest first;
    they show the counting where the newest is missing.
    """
    if len(steps) > 1:
        return _counted_on(steps)
    missing = steps[-1]
    older = list(chain[chain.index(missing) + 1 :] if missing in chain else chain)
    newer = _counted_on(older[2::-1])
    if missing in newer:
        return [*reversed(newer[: newer.index(missing)]), older[0]]
    return older[:1] if older and abs(_difference(missing, older[0])) == 1 else []


def _counted_on(steps: Sequence[str]) -> list[str]:
    if len(steps) < 2:
        return []
    delta = _difference(steps[-2], steps[-1])
    if abs(delta) != 1:  # any other step counts when the one before confirms it
        is_confirmed = len(steps) > 2 and _difference(steps[-3], steps[-2]) == delta
        is_confirmed = is_confirmed and _place(steps[-3], steps[-2]) == _place(steps[-2], steps[-1])
        if not delta or not is_confirmed:
            return []
    parts, place = _parts(steps[-1]), _place(steps[-2], steps[-1])
    values = [int(parts[place]) + delta * count for count in range(1, MOST + 1)]
    return ["".join([*parts[:place], str(value), *parts[place + 1 :]]) for value in values if value >= 0]


def _parts(path: str) -> list[str]:
    return re.split("([0-9]+)", path)


def _place(one: str, other: str) -> int:
    """Return the single differing part; -1 if there are several, or it is no number."""
    ours, theirs = _parts(one), _parts(other)
    differing = [place for place, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    is_number = len(ours) == len(theirs) and len(differing) == 1 and differing[0] % 2
    return differing[0] if is_number else -1


def _difference(one: str, other: str) -> int:
    place = _place(one, other)
    return int(_parts(other)[place]) - int(_parts(one)[place]) if place >= 0 else 0
