"""Which documents share a segment, and which segments can stay as they are (docs/design.md#segments).

A segment holds the live entries of one document or of several small settled neighbours, because small
blocks compress badly. The plan keeps what it can:

    for step in plan(documents):
        match step:
            case Keep(segment): ...
            case Build(documents): ...

**Cost.** Without a change nothing is built. A kept segment of less than half the target is drawn into a
new one only by a neighbour that is new and at least half its size. So each time a byte is sealed again
its segment has grown by half: log1.5(target / size) times in all, amortised, however the documents
arrive; and small segments side by side are each more than twice the next, so they stay few. Groups fill
up from the old end, so a document that is put in front moves nothing behind it. Where entries are sorted
across documents, the subscription document is sealed together with the newest pages each time it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

TARGET_BYTES: Final = 1 << 20


_FRONT_TARGETS: Final = 4
"""What is sorted with the newest pages may come to as much, with them."""


class Placed(NamedTuple):
    """An attached document, as far as the plan is concerned."""

    document: int
    segment: int | None
    """The segment that its entries were put into last."""
    is_clean: bool
    """Whether its live entries are those that were put there, in a place that has not moved within it."""
    is_settled: bool
    """Whether it is final: only such documents share a segment."""
    live_bytes: int
    is_mixed: bool = False
    """Whether the feed has pages that an adapter asked for: then documents share segments whose entries are
    sorted across them (R20)."""
    is_front: bool = False
    """Of such a feed: the subscription document or remembered copies, which go with the newest pages."""


@dataclass(frozen=True, slots=True)
class Keep:
    """This segment serves as it is."""

    segment: int


@dataclass(frozen=True, slots=True)
class Build:
    """The live entries of these documents, in output order, become one new segment."""

    documents: tuple[int, ...]
    is_mixed: bool = False
    """Whether their entries are sorted across them."""


@dataclass(frozen=True, slots=True)
class _Group:
    documents: tuple[int, ...]
    """From old to new."""
    segment: int | None
    """The segment to keep; None: it is to be built."""
    is_settled: bool
    live_bytes: int
    is_mixed: bool
    is_front: bool


def plan(documents: Sequence[Placed], *, target_bytes: int = TARGET_BYTES) -> list[Keep | Build]:
    """Return the segments of a feed, newest first.

    Args:
        documents: The attached documents in output order. Those without live bytes belong to no segment.
        target_bytes: What several documents may come to together. A larger document stands alone.
    """
    groups: list[_Group] = []
    for group in _kept_or_single(documents):
        joined = group
        while groups and _may_join(groups[-1], joined, target_bytes):
            joined = _join(groups.pop(), joined)
        groups.append(joined)
    return [
        Keep(group.segment) if group.segment is not None else Build(group.documents[::-1], group.is_mixed)
        for group in reversed(groups)
    ]


def _kept_or_single(documents: Sequence[Placed]) -> Iterable[_Group]:
    """Yield a group for each intact segment and each document that is in none, from old to new."""
    tainted = {placed.segment for placed in documents if not placed.is_clean}
    runs: list[list[Placed]] = []
    for placed in reversed(documents):
        if not placed.live_bytes:
            continue
        has_segment = placed.segment is not None and placed.segment not in tainted
        if has_segment and runs and runs[-1][-1].segment == placed.segment:
            runs[-1].append(placed)
        else:
            runs.append([placed])
    counts: dict[int | None, int] = {}
    for run in runs:
        counts[run[0].segment] = counts.get(run[0].segment, 0) + 1
    for run in runs:
        segment = run[0].segment
        if segment is not None and segment not in tainted and counts[segment] == 1:
            yield _group(run, segment)
        else:
            yield from (_group([placed], None) for placed in run)


def _group(run: Sequence[Placed], segment: int | None) -> _Group:
    return _Group(
        documents=tuple(placed.document for placed in run),
        segment=segment,
        is_settled=all(placed.is_settled or placed.is_mixed for placed in run),
        is_mixed=run[0].is_mixed,
        is_front=all(placed.is_front for placed in run),
        live_bytes=sum(placed.live_bytes for placed in run),
    )


def _may_join(older: _Group, newer: _Group, target_bytes: int) -> bool:
    if older.is_mixed is not newer.is_mixed:
        return False
    if newer.is_mixed and newer.is_front:
        return older.live_bytes + newer.live_bytes <= _FRONT_TARGETS * target_bytes
    if not (older.is_settled and newer.is_settled) or older.live_bytes + newer.live_bytes > target_bytes:
        return False
    if older.segment is None and newer.segment is None:
        return True
    return _draws_in(older, newer, target_bytes) or _draws_in(newer, older, target_bytes)


def _draws_in(new: _Group, kept: _Group, target_bytes: int) -> bool:
    if new.segment is not None or kept.segment is None:
        return False
    return kept.live_bytes <= 2 * new.live_bytes and may_be_drawn_in(kept.live_bytes, target_bytes)


def may_be_drawn_in(live_bytes: int, target_bytes: int = TARGET_BYTES) -> bool:
    """Whether a segment of so many bytes may become part of a larger one, while nothing in it changes."""
    return 2 * live_bytes < target_bytes


def _join(older: _Group, newer: _Group) -> _Group:
    return _Group(
        documents=older.documents + newer.documents,
        segment=None,
        is_settled=True,
        live_bytes=older.live_bytes + newer.live_bytes,
        is_mixed=newer.is_mixed,
        is_front=older.is_front and newer.is_front,
    )
