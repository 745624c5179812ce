"""Find where each entry stands in output order (R20).

An entry's text is that of its served copy (R10), its place that in the first attached document, in output
order, with any copy. A remembered entry absent from all of them stands by its date.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from math import inf, nextafter
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import newest_first
from wholefeed.core.compose.weaving import UNDATED, Key, WovenMember

# Entries and their copies


class OrderRow(NamedTuple):
    document: int
    ordinal: int
    order_at: float | None
    is_live: bool


class Pair(NamedTuple):
    """Two copies of one entry; `is_live`: the first is served."""

    document: int
    ordinal: int
    is_live: bool
    other: int
    other_ordinal: int


# Places within a document


def sequence(dates: Sequence[float | None]) -> list[tuple[int, float]]:
    """Return place in the output, and date, of each entry by ordinal.

    An undated entry takes the date of the entry in front, else the first date.
    """
    found = [(0, UNDATED)] * len(dates)
    last = next((at for place in newest_first(dates) if (at := dates[place]) is not None), UNDATED)
    for place, ordinal in enumerate(newest_first(dates)):
        at = dates[ordinal]
        last = last if at is None else at
        found[ordinal] = (place, last)
    return found


# Entries placed in another document than their text


class Homes:
    """Entries placed in another document than their text."""

    def __init__(self, index: Mapping[int, int], memory: Iterable[int]) -> None:
        """Take output places of attached documents; those of remembered copies (`memory`) give no place."""
        self._index = index
        self._memory = frozenset(memory)
        self.by_copy: dict[tuple[int, int], tuple[int, int]] = {}
        """Served copy to the copy that gives its place, as (document, ordinal)."""

    def add(self, pairs: Iterable[Pair]) -> set[tuple[int, int]]:
        """Add pairs; return (document of the text, document of the place) of moved entries."""
        found = set()
        for document, ordinal, is_live, other, other_ordinal in pairs:
            own, its = (document, ordinal), (other, other_ordinal)
            live, lost = (own, its) if is_live else (its, own)
            if lost[0] in self._memory or lost[0] not in self._index or lost[0] == live[0]:
                continue
            present = self.by_copy.get(live, live)
            if present[0] in self._memory or self._place(lost) < self._place(present):
                self.by_copy[live] = lost
            if live in self.by_copy:
                found.add((live[0], self.by_copy[live][0]))
        return found

    def _place(self, copy: tuple[int, int]) -> tuple[int, int]:
        return self._index[copy[0]], copy[1]

    @property
    def shared(self) -> set[int]:
        return {copy[0] for pair in self.by_copy.items() for copy in pair}


# Places by date


class Block(NamedTuple):
    """A document, or several in one segment."""

    first: int
    """Place in output order."""
    oldest_at: float | None
    newest_at: float | None
    documents: tuple[int, ...]
    segment: tuple[int, ...] = ()
    """Empty: entries are sent one by one."""

    def is_parted(self, date: float) -> bool:
        """Return whether an entry of this date splits the segment."""
        return bool(self.segment) and (self.is_in(date) or self.documents[0] != self.segment[0])

    def is_in(self, date: float) -> bool:
        return self.newest_at is not None and self.newest_at > date


class Slots:
    """Places of remembered entries absent from all documents.

    An entry stands behind every document with only newer entries. So one pinned entry moves nothing far.
    """

    def __init__(self, blocks: Sequence[Block], count: int) -> None:
        """Take blocks in output order, without remembered copies, of `count` documents."""
        self._blocks = blocks
        self._count = count
        oldest = [_oldest(block) for block in blocks]
        self._newer: list[float] = []
        """The latest `_oldest` from each block on."""
        greatest = -inf
        for at in reversed(oldest):
            greatest = max(greatest, at)
            self._newer.append(greatest)
        self._newer.reverse()

    def at(self, date: float) -> int:
        """Return the place of the document that the date falls in or in front of."""
        block = self._block(date)
        return self._count if block is None else block.first

    def find_parted(self, date: float) -> Block | None:
        """Return the block split by an entry of this date."""
        block = self._block(date)
        return block if block is not None and block.is_parted(date) else None

    def _block(self, date: float) -> Block | None:
        place = bisect_left(self._newer, True, key=lambda at: at <= date)
        return self._blocks[place] if place < len(self._blocks) else None


def _oldest(block: Block) -> float:
    """Return the date from which on no entry stands behind the block."""
    if block.first:
        return -inf if block.oldest_at is None else block.oldest_at
    # an entry as old as the last one of the subscription document has left it, so it is older
    return inf if block.oldest_at is None else nextafter(block.oldest_at, inf)


def is_descending(blocks: Sequence[Block], remembered: Iterable[int]) -> bool:
    """Return whether entries of the `remembered` documents stand by date, too."""
    own = set(remembered)
    oldest = inf
    behind: list[float] = []
    newest = -inf
    for block in reversed(blocks):
        behind.append(newest)
        newest = max(newest, -inf if block.newest_at is None else block.newest_at)
    for block, newest_behind in zip(blocks, reversed(behind), strict=True):
        if own.intersection(block.documents):
            if block.newest_at is not None and block.newest_at > oldest:
                return False
            if block.oldest_at is not None and block.oldest_at < newest_behind:
                return False
        oldest = min(oldest, inf if block.oldest_at is None else block.oldest_at)
    return True


# Sort keys of entries


WHOLE_FIRST: Final = (inf, -1, 0, 0)
"""Key of the start of a whole block, behind the place of its first document."""
WHOLE_LAST: Final = (inf, 2, 0, 0)


def key_of(member: WovenMember, index: Mapping[int, int], slots: Slots) -> Key:
    """Return the document's place, the negated date, and tie-breakers."""
    document, ordinal, _, at, spot = member
    assert spot is not None
    if spot.home is not None:
        return (index[spot.home], -at, 0, spot.place, 0)
    own = index[document]
    if at == UNDATED:
        return (own, -inf, 1, own, ordinal)
    # behind equal dates of the subscription document, which the entry has left, and in front of all others
    slot = slots.at(at)
    return (slot, -at, -1 if slot else 1, own, ordinal)
