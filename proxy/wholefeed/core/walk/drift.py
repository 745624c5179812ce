"""Changes of the stored chain after a walk took another path (R14, R15, R25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def settle_path(
    stored: Sequence[int], path: Sequence[int], *, is_true_end: bool, is_full: bool = False
) -> Drift:
    """Compare the path of a walk with the stored chain (rule R15); both are newest first.

    If the path reached the true end of the chain, the publisher has replaced the stored documents that are
    not on the path and stand in front of the last common one. All documents behind that one stay: a shorter
    chain is no deletion. With `is_full`, no document off the path stays (R14).
    """
    # A path with an early end removes nothing, nor does one without a common document, unless `is_full`.
    places = {document: place for place, document in enumerate(stored)}
    on_path = set(path)
    joints = [places[document] for document in path if document in places]
    doubtful: Sequence[int] = ()
    if is_true_end:
        doubtful = stored if is_full else stored[: joints[-1] if joints else 0]
    replaced = {document for document in doubtful if document not in on_path}
    kept = [document for document in stored if document not in replaced]
    order = _interleave(kept, path)
    simple_order = [document for document in path if document not in places] + kept
    detached = tuple(document for document in stored if document in replaced)
    return Drift(detached, order, is_reordered=list(order) != simple_order)


@dataclass(frozen=True, slots=True)
class Drift:
    detached: tuple[int, ...]
    order: tuple[int, ...]
    """The new chain, newest first: the path, and stored documents untouched by the walk."""
    is_reordered: bool
    """Whether the order is another than new documents first, then the stored ones."""


def _interleave(kept: Sequence[int], path: Sequence[int]) -> tuple[int, ...]:
    """Put the path in order, and each other document behind its former neighbour."""
    # New documents stand in front of the document that they lead to, and unreached ones behind it.
    # Documents in the middle, passed by an unfinished path, stay in their place.
    on_path = set(path)
    places = {document: place for place, document in enumerate(kept)}
    order: list[int] = []
    taken = 0
    for document in path:
        place = places.get(document, -1)
        if place >= taken:
            order += [each for each in kept[taken:place] if each not in on_path]
            taken = place + 1
        order.append(document)
    order += [each for each in kept[taken:] if each not in on_path]
    return tuple(order)
