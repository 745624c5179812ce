"""How the stored chain changes when a walk took another path (R14, R15, R25)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def settle_path(
    stored: Sequence[int], path: Sequence[int], *, is_true_end: bool, is_full: bool = False
) -> Drift:
    """Compare the path of a walk with the chain that is stored (rule R15).

    When the path came to the true end of the chain and rejoined the stored one on its way, the stored
    documents in front of the joint that are not on the path were replaced; the joint is the last document
    of the path that was stored. Whatever lies behind it stays: a shorter chain is no deletion. A path
    without a joint, or one that ended early, takes nothing away.

    Args:
        stored: The attached archive documents, newest first.
        path: The archive documents of the walk, newest first, the subscription document excluded.
        is_true_end: Whether the walk ended with the oldest document of the chain.
        is_full: Whether every document was revalidated, so that a whole path is the truth (R14): then
            what is not on it was replaced, wherever it stood.
    """
    places = {document: place for place, document in enumerate(stored)}
    on_path = set(path)
    joints = [places[document] for document in path if document in places]
    doubtful: Sequence[int] = ()
    if is_true_end:
        doubtful = stored if is_full else stored[: joints[-1] if joints else 0]
    replaced = {document for document in doubtful if document not in on_path}
    kept = [document for document in stored if document not in replaced]
    order = _interleaved(kept, path)
    simple_order = [document for document in path if document not in places] + kept
    detached = tuple(document for document in stored if document in replaced)
    return Drift(detached, order, is_reordered=list(order) != simple_order)


@dataclass(frozen=True, slots=True)
class Drift:
    """What to do with the archive documents of a feed after a walk. They go by the caller's ids."""

    detached: tuple[int, ...]
    """Replaced by the publisher: no longer part of the feed."""
    order: tuple[int, ...]
    """The chain from now on, newest first: the path, and the stored documents that it did not touch."""
    is_reordered: bool
    """Whether that order is any other than: what is new on the path, then the stored ones as they stood."""


def _interleaved(kept: Sequence[int], path: Sequence[int]) -> tuple[int, ...]:
    """Put the path in order, and each other document behind the neighbour that it stood behind.

    So what is new goes in front of the document that it leads to, and what the path did not reach, behind
    it; documents in the middle that an unfinished path has passed by keep their place.
    """
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
