"""Where the entries of a feed of documents stand (R20): in the document that holds them, or by their date.

Which copy of an entry is served is another question (R10, `wholefeed.core.merge`): its text may stand in one
document, and its place in another. The place follows the first attached document, in output order, that holds
the entry. A remembered copy has a place of its own only if no such document holds its entry: by its date.

    homes = Homes(index, memory)            # index: the place of each document in output order
    homes.add(pairs)
    homes.by_copy                           # the copies that stand elsewhere than in their document
    slots = Slots(blocks, len(index))
    slots.at(date)                          # the document in front of which, or in which, a date stands

Nothing here looks at more than it is given: the documents that have changed, and those that share an entry
with them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from math import inf, nextafter
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import newest_first
from wholefeed.core.compose.weaving import UNDATED, Key, WovenMember

# What is known of entries


class OrderRow(NamedTuple):
    """An entry of an attached document."""

    document: int
    ordinal: int
    order_at: float | None
    """What the output sorts it by."""
    is_live: bool
    """Whether this copy is served."""


class Pair(NamedTuple):
    """Two copies of one entry, of which one is served."""

    document: int
    ordinal: int
    is_live: bool
    """Whether the first one is served."""
    other: int
    """The document of the second one."""
    other_ordinal: int


# Where a document's own entries stand


def sequence(dates: Sequence[float | None]) -> list[tuple[int, float]]:
    """Return place and date of each entry of a document, by ordinal.

    Places count from the top of what is sent of it. An entry without a date has that of the one in front of
    it there, or else of the first one that has any.
    """
    found = [(0, UNDATED)] * len(dates)
    last = next((at for place in newest_first(dates) if (at := dates[place]) is not None), UNDATED)
    for place, ordinal in enumerate(newest_first(dates)):
        at = dates[ordinal]
        last = last if at is None else at
        found[ordinal] = (place, last)
    return found


# Which entries stand elsewhere than in the document of their text


class Homes:
    """The entries that stand elsewhere than in the document of their text."""

    def __init__(self, index: Mapping[int, int], memory: Iterable[int]) -> None:
        """Take the place of each attached document in output order, and those of remembered copies.

        The latter give no place.
        """
        self._index = index
        self._memory = frozenset(memory)
        self.by_copy: dict[tuple[int, int], tuple[int, int]] = {}
        """By document and ordinal of a copy that is served: document and ordinal of the copy that gives its
        place."""

    def add(self, pairs: Iterable[Pair]) -> set[tuple[int, int]]:
        """Take in copies of entries; return (document of the text, document of the place) for those found."""
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
        """The documents between which entries are exchanged so."""
        return {copy[0] for pair in self.by_copy.items() for copy in pair}


# Where a date stands among documents


class Block(NamedTuple):
    """A document that stands somewhere, or several that share a segment."""

    first: int
    """Place of its first document in output order."""
    oldest_at: float | None
    newest_at: float | None
    documents: tuple[int, ...]
    segment: tuple[int, ...] = ()
    """The documents of the segment that it is sent in; empty if its entries are sent one by one."""

    def is_parted(self, date: float) -> bool:
        """Whether the segment cannot be sent as it is when something stands here by that date."""
        return bool(self.segment) and (self.is_in(date) or self.documents[0] != self.segment[0])

    def is_in(self, date: float) -> bool:
        """Whether something stands within the documents, and not in front of them."""
        return self.newest_at is not None and self.newest_at > date


class Slots:
    """Where remembered entries stand that no document holds.

    They stand behind every document that is newer throughout, and there by their dates. So one old entry in a
    new document (a pinned one), or a new date in an old one, moves nothing far.
    """

    def __init__(self, blocks: Sequence[Block], count: int) -> None:
        """Take the blocks in output order, but for remembered copies, of `count` documents."""
        self._blocks = blocks
        self._count = count
        oldest = [_oldest(block) for block in blocks]
        self._newer: list[float] = []
        """For each block the latest date than which it, or one behind it, is newer throughout."""
        greatest = -inf
        for at in reversed(oldest):
            greatest = max(greatest, at)
            self._newer.append(greatest)
        self._newer.reverse()

    def at(self, date: float) -> int:
        """Return the place in output order of the document in or in front of which a date stands."""
        block = self._block(date)
        return self._count if block is None else block.first

    def find_parted(self, date: float) -> Block | None:
        """Return the block whose segment cannot be sent as it is for what stands there."""
        block = self._block(date)
        return block if block is not None and block.is_parted(date) else None

    def _block(self, date: float) -> Block | None:
        place = bisect_left(self._newer, True, key=lambda at: at <= date)
        return self._blocks[place] if place < len(self._blocks) else None


def _oldest(block: Block) -> float:
    """Return the date from which on entries do not stand behind a block.

    What is as old as the last entry of the subscription document has left it, so it is older.
    """
    if block.first:
        return -inf if block.oldest_at is None else block.oldest_at
    return inf if block.oldest_at is None else nextafter(block.oldest_at, inf)


def is_descending(blocks: Sequence[Block], remembered: Iterable[int]) -> bool:
    """Whether remembered entries that stand in documents of their own stand there by their dates, too.

    Args:
        blocks: All that is sent, in output order.
        remembered: The documents of remembered copies.
    """
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


# What the entries are sorted by


WHOLE_FIRST: Final = (inf, -1, 0, 0)
"""Behind the place of its first document: where a block begins that is sent whole."""
WHOLE_LAST: Final = (inf, 2, 0, 0)


def key_of(member: WovenMember, index: Mapping[int, int], slots: Slots) -> Key:
    """Return what an entry is sorted by.

    That is: place of the document, less the date, and what tells equal ones apart. What stands by its date is
    behind entries of that date in the subscription document, which it has left, and in front of any others.
    """
    document, ordinal, _, at, spot = member
    assert spot is not None
    if spot.home is not None:
        return (index[spot.home], -at, 0, spot.place, 0)
    own = index[document]
    if at == UNDATED:
        return (own, -inf, 1, own, ordinal)
    slot = slots.at(at)
    return (slot, -at, -1 if slot else 1, own, ordinal)
