"""The order of a feed's entries across its documents (R20), as far as a publication needs it.

Only changed documents, and those that share entries with them, are read. Segments tell all other places.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from wholefeed.core.compose.ordering import (
    WHOLE_FIRST,
    WHOLE_LAST,
    Block,
    Homes,
    OrderRow,
    Slots,
    is_descending,
    key_of,
    sequence,
)
from wholefeed.core.compose.segments import DocumentGroup, Placed, groups
from wholefeed.core.compose.weaving import UNDATED, Key, Members, Spot, WeavingState, Whole, WovenMember
from wholefeed.core.model import Role
from wholefeed.store.base import Database
from wholefeed.store.rows import DocumentRow, SegmentRow
from wholefeed.store.tables import copies


class Order(NamedTuple):
    """The places of a feed's entries, some in segments shared by several documents."""

    members: Mapping[int, Members]
    """Published segments of single entries that may stay, by number."""
    places: Mapping[tuple[int, int], WeavingState]
    """Places of read documents' entries, by document and ordinal."""
    live: Mapping[int, Sequence[int]]
    """The same entries by document, without wholly sent ones."""
    wholes: Sequence[Whole]
    """Wholly sent documents in output order."""
    key_of: Callable[[WovenMember], Key]


class StoredOrder(NamedTuple):
    """The stored data that decides the order."""

    documents: Sequence[DocumentRow]
    """Attached documents in output order."""
    places: Sequence[Placed]
    """In the same order."""
    published: Sequence[SegmentRow]
    members: Mapping[int, bytes]


def read_order(
    db: Database, stored: StoredOrder, is_current: Callable[[SegmentRow], bool], *, is_certain: bool = False
) -> Order | None:
    """Return the places of entries; None: documents follow one another whole.

    `is_certain` tells that some entries are known to stand outside their documents.
    """
    first, *others = stored.documents
    memory = [row.id for row in others if row.role is Role.MEMORY]
    remembers = any(place.live_bytes for place in stored.places[1 : len(memory) + 1])
    if not (is_certain or remembers or stored.members or copies.are_shared(db, first.feed)):
        return None
    reading = _OrderReading(db, stored, is_current)
    is_certain = is_certain or bool(stored.members) or (remembers and len(others) > len(memory))
    return None if not is_certain and reading.is_simple() else reading.order()


class _OrderReading:
    def __init__(self, db: Database, stored: StoredOrder, is_current: Callable[[SegmentRow], bool]) -> None:
        self._db = db
        self._feed = stored.documents[0].feed
        self._index = {row.id: place for place, row in enumerate(stored.documents)}
        self._memory = {row.id for row in stored.documents if row.role is Role.MEMORY}
        self._segments = {row.id: row for row in stored.published if is_current(row)}
        self._places = [_as_it_stands(place, self._segments) for place in stored.places]
        self._members, lost = _members(stored, self._segments)
        self._told = {document for each in self._members.values() for document in each.stamps}
        """Documents with places known from segments."""
        self._changed = {document for document in self._told if document not in self._index} | lost
        self._changed |= {place.document for place in self._places if self._has_changed(place)}
        self._told -= self._changed
        self._homes = Homes(self._index, self._memory)
        self._rows: dict[int, list[OrderRow]] = {}
        """By document read."""

    def _has_changed(self, place: Placed) -> bool:
        is_lost = place.segment is None and place.live_bytes > 0 and place.document not in self._told
        return is_lost or not place.is_clean

    # All entries stand in their own documents

    def is_simple(self) -> bool:
        """Return whether all documents can be sent whole, in their order."""
        self._look(self._changed & self._index.keys())
        remembers = any(place.live_bytes for place in self._places if place.document in self._memory)
        if remembers:
            self._look_at_loose(self._places)
        if self._homes.by_copy:
            return False
        return not remembers or is_descending(self._blocks(self._places), self._memory)

    # Some entries stand elsewhere

    def order(self) -> Order:
        self._look_at_changed()
        woven = self._homes.shared | (self._told - self._rows.keys())
        while True:
            woven |= self._homes.shared
            apart = woven | self._memory
            taken = {place.segment for place in self._places if place.document in apart} - {None}
            if taken:
                self._loosen(place.document for place in self._places if place.segment in taken)
                continue
            wholes = [place for place in self._places if place.document not in apart]
            if self._look_at_loose(wholes):
                continue
            stands = self._stands(apart)
            standing = [(at, spot.home) for at, spot in (*stands.values(), *self._told_stands())]
            own = [at for at, home in standing if home is None and at != UNDATED]
            slots = Slots(self._blocks(wholes, standing, min(own, default=None)), len(self._index))
            parted = [(block, at) for at in own if (block := slots.find_parted(at)) is not None]
            if not parted:
                break
            for block, at in parted:
                woven.update(block.documents if block.is_in(at) else ())
                self._loosen(block.segment)
        live: dict[int, list[int]] = {document: [] for document in self._rows}
        for document, ordinal in stands:
            live[document].append(ordinal)
        return Order(
            members=self._members,
            places=stands,
            live=live,
            wholes=[self._whole(group) for group in reversed(list(groups(wholes)))],
            key_of=partial(key_of, index=self._index, slots=slots),
        )

    def _look_at_changed(self) -> None:
        affected = set(self._changed)
        for each in self._members.values():
            if self._changed & each.stamps.keys():
                for member in each:
                    home = member.document if member.spot is None else member.spot.home
                    if member.document in self._changed or home in self._changed:
                        affected.add(member.document)
        self._look(affected & self._index.keys())

    def _look(self, documents: Collection[int]) -> None:
        """Read documents, and others with entries placed by them."""
        wanted = set(documents) - self._rows.keys()
        while wanted:
            for document in wanted:
                self._rows[document] = []
            asked, found = copies.ask_for(self._db, wanted), set[int]()
            pairs = copies.find_other_copies(self._db, self._feed, wanted)
            for row in asked():
                self._rows[row.document].append(row)
            for pair in pairs:
                for text, home in self._homes.add([pair]):
                    if home not in self._told:
                        found.add(home)
                    if text not in self._told or pair.document not in self._told:
                        found.add(text)
            wanted = found - self._rows.keys()

    def _look_at_loose(self, wholes: Sequence[Placed]) -> bool:
        # an unchanged document among changed ones may still share an entry with unread documents
        loose = {group.documents[0] for group in groups(wholes) if group.segment is None}
        is_new = not loose <= self._rows.keys()
        self._look(loose)
        return is_new

    def _loosen(self, documents: Iterable[int]) -> None:
        loose = set(documents)
        self._changed |= loose
        self._told -= loose
        self._places = [
            place._replace(segment=None, is_clean=False) if place.document in loose else place
            for place in self._places
        ]
        self._look(loose)

    def _told_stands(self) -> Iterator[WeavingState]:
        for each in self._members.values():
            for document, _, _, at, spot in each:
                if spot is not None and document in self._index and document not in self._rows:
                    yield WeavingState(at, spot)

    def _stands(self, apart: Collection[int]) -> dict[tuple[int, int], WeavingState]:
        found = {}
        own = {number: _sequence(rows) for number, rows in self._rows.items() if number in apart}
        homes = {home for home, _ in self._homes.by_copy.values()} - own.keys()
        beside: dict[int, list[OrderRow]] = {home: [] for home in homes}
        for row in copies.read(self._db, homes) if homes else ():
            beside[row.document].append(row)
        sequences = own | {home: _sequence(rows) for home, rows in beside.items()}
        for document in own:
            for row in self._rows[document]:
                if not row.is_live:
                    continue
                copy = document, row.ordinal
                home, ordinal = self._homes.by_copy.get(copy, copy)
                place, at = sequences[home][ordinal]
                is_own = home in self._memory
                found[copy] = WeavingState(at, Spot(None, 0) if is_own else Spot(home, place))
        return found

    # Documents sent whole

    def _blocks(
        self,
        wholes: Sequence[Placed],
        standing: Iterable[tuple[float, int | None]] = (),
        oldest_own: float | None = None,
    ) -> list[Block]:
        """Return the blocks of output, in order.

        `standing` has date and document of each other entry; `oldest_own`, the earliest date of an entry
        placed by date.
        """
        dates: dict[int, list[float]] = {}
        for at, home in standing:
            if home is not None:
                dates.setdefault(home, []).extend([] if at == UNDATED else [at])
        found = [Block(self._index[home], *_span(own), (home,)) for home, own in dates.items()]
        for group in groups(wholes):
            documents = group.documents
            if group.segment is None:
                rows = self._rows[documents[0]]
                span = _span([row.order_at for row in rows if row.is_live and row.order_at is not None])
                found.append(Block(self._index[documents[0]], *span, documents, documents))
                continue
            row = self._segments[group.segment]
            # one block is enough for a segment with nothing newer than `oldest_own`
            is_mixed = oldest_own is not None and row.newest_at is not None and row.newest_at > oldest_own
            if is_mixed and len(documents) > 1:
                for document, span in copies.spans(self._db, documents).items():
                    found.append(Block(self._index[document], *span, (document,), documents))
            else:
                span = row.oldest_at, row.newest_at
                found.append(Block(self._index[documents[0]], *span, documents, documents))
        return sorted(found, key=attrgetter("first"))

    def _whole(self, group: DocumentGroup) -> Whole:
        return Whole(
            documents=group.documents,
            segment=group.segment,
            is_settled=group.is_settled,
            live_bytes=group.live_bytes,
            first=(self._index[group.documents[0]], *WHOLE_FIRST),
            last=(self._index[group.documents[-1]], *WHOLE_LAST),
        )


def _as_it_stands(place: Placed, segments: Collection[int]) -> Placed:
    if place.segment is None or place.segment in segments:
        return place
    return place._replace(segment=None, is_clean=False)


def _members(stored: StoredOrder, segments: Collection[int]) -> tuple[dict[int, Members], set[int]]:
    """Return the segments that may stay, and the documents of lost ones."""
    found, lost = dict[int, Members](), set[int]()
    for segment in stored.published:
        if segment.id not in stored.members:
            continue
        try:
            members = Members.read(stored.members[segment.id])
        except ValueError:
            return {}, {row.id for row in stored.documents}
        if segment.id in segments and members.has_spots and len(members) == segment.entries:
            found[segment.id] = members
        else:
            lost |= members.stamps.keys()
    return found, lost


def _sequence(rows: Sequence[OrderRow]) -> list[tuple[int, float]]:
    return sequence([row.order_at for row in rows])


def _span(dates: Sequence[float]) -> tuple[float | None, float | None]:
    return (min(dates), max(dates)) if dates else (None, None)
