"""The copy of an entry that stays, and the order of copies (R10, R19, R20)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.model.said import DAY, Copy, Doc


@dataclass
class Held:
    """A document as last fetched."""

    doc: Doc
    fetched_at: float
    checked_at: float
    is_settled: bool = False
    """Whether an archive was fetched after it was no longer the newest."""

    @property
    def is_final(self) -> bool:
        """R13."""
        return self.is_settled and ("archive" in self.doc.flags or not self.doc.is_uncacheable)


class Placed(NamedTuple):
    """A copy in an attached document."""

    copy: Copy
    role: str
    document: str
    """Path; empty for remembered copies."""
    position: int
    """Position of its document in the output."""
    ordinal: int
    instant: float | None
    document_updated: float | None


NEARNESS: Final = {"subscription": 0, "memory": 1, "archive": 2, "page": 2}
NEVER: Final = float("-inf")


def or_never(instant: float | None) -> float:
    return NEVER if instant is None else instant


def counted(copy: Copy, held: Held) -> float | None:
    """R10: an instant more than a day after the fetch counts as none."""
    return None if copy.updated is None or copy.updated > held.fetched_at + DAY else copy.updated


def precedence(placed: Placed) -> tuple[float, float, int, int, int]:
    """R10."""
    return (
        or_never(placed.instant), or_never(placed.document_updated),
        -NEARNESS[placed.role], -placed.position, -placed.ordinal,
    )  # fmt: skip


def is_buried(placed: Placed, burials: Iterable[tuple[str, float, tuple[int, int]]]) -> bool:
    """R19: not updated after its deletion; undated in the tombstone's own document or an older one."""
    place = (NEARNESS[placed.role], placed.position)
    return any(
        name == placed.copy.name and (place >= where if placed.instant is None else placed.instant <= when)
        for name, when, where in burials
    )


def newest_first(group: Sequence[Placed]) -> list[Placed]:
    """R20: by date; undated entries where they stand."""
    dated = [each for each in group if each.copy.order is not None]
    dated.sort(key=lambda each: -(each.copy.order or 0.0))
    rest = iter(dated)
    return [each if each.copy.order is None else next(rest) for each in group]


def in_order(live: Iterable[Placed], copies: Iterable[Placed]) -> list[Placed]:
    """R20: each where its first document stands; a remembered one by its date."""
    documents: dict[tuple[int, int], list[Placed]] = {(0, 0): []}
    memory: dict[str, Placed] = {}
    for each in copies:
        if each.role == "memory":
            memory.setdefault(each.copy.name, each)
        else:
            documents.setdefault((NEARNESS[each.role], each.position), []).append(each)
    shown = {each.copy.name: each for each in live}
    found: list[tuple[tuple[float, float, int], Placed]] = []
    oldest: list[float | None] = []
    for number, place in enumerate(sorted(documents)):
        held = [(at, each.copy.name) for at, each in _with_dates(documents[place]) if each.copy.name in shown]
        held = [each for n, each in enumerate(held) if each[1] not in [name for _, name in held[:n]]]
        found += [((number, -at, 0), shown.pop(name)) for at, name in held]
        dates = [at for at, _ in held if at != NEVER]
        undated = -NEVER if number == 0 else NEVER
        oldest.append(None if not held else min(dates, default=undated))
    left = [
        (at, shown[each.copy.name])
        for at, each in _with_dates(list(memory.values()))
        if each.copy.name in shown
    ]
    found += [(_by_date(at, oldest), each) for at, each in left]
    return [each for _, each in sorted(found, key=lambda each: each[0])]


def _by_date(at: float, oldest: Sequence[float | None]) -> tuple[float, float, int]:
    """Return place, date and side of entries placed by date: behind all newer ones."""
    if at == NEVER:
        return (0.5, 0, 0)
    held = [(number, date) for number, date in enumerate(oldest) if date is not None]
    newer = [number for number, date in held if date > at or (number == 0 and date == at)]
    behind = max(newer, default=-1)
    place = next((number for number, _ in held if number > behind), len(oldest))
    return (place, -at, -1 if place else 1)


def _with_dates(group: Sequence[Placed]) -> list[tuple[float, Placed]]:
    """An entry without a date has that of the one before it, or else of the first dated one."""
    order = newest_first(sorted(group, key=lambda each: each.ordinal))
    last = next((each.copy.order for each in order if each.copy.order is not None), NEVER)
    found = []
    for each in order:
        last = last if each.copy.order is None else each.copy.order
        found.append((last, each))
    return found
