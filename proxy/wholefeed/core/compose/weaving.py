"""Segments that hold entries of any documents, in an order of their own (R20).

Of most feeds a segment holds whole documents (`wholefeed.core.compose.segments`). The pages that an adapter
asked for hold what was published at any time; and an entry whose text is remembered may stand in the place
that an archive gives it (`wholefeed.core.compose.ordering`). So here a segment holds entries, whatever
documents they are of, and says which (`Members`):

    found = compare(strands, stamps, live)      # what is in them and not live, what is live and not in them
    steps = weave([*strands, *rendered], order, gone=found.gone, ...)
    for step in steps:
        match step:
            case Keep(number): ...
            case Weave(picks): ...              # entries of one strand or several become one new segment

The order is that of publication across all documents, or what the caller sorts by; then whole documents may
stand between the entries. A strand is a segment that is published, or what was rendered just now because no
segment has it. Published ones are kept wherever they can be: an entry that is newer than all stands in a
segment of its own until those in front are worth joining; an older one has the segment written anew in which
it belongs, and no other.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import ceil, inf
from operator import itemgetter
from typing import Final, NamedTuple, Self

from wholefeed.core.compose.segments import TARGET_BYTES, Build, Group, Keep, may_join
from wholefeed.core.model import Family, FeedDocument
from wholefeed.core.text.dates import parse_rfc3339

# When an entry was published

UNDATED: Final = -inf
"""Of the entries of a document that bears no date at all: they stand last, in the order of documents."""


def publication_dates(document: FeedDocument) -> list[float]:
    """Return what each entry of a document is sorted by, from the top.

    An entry without a date takes that of the one before it, or else behind it, on its page: so it stands
    behind the one, or before the other, wherever that comes to stand.
    """
    text, is_atom = document.text, document.family is Family.ATOM
    dates: list[float | None] = []
    for entry in document.entries:
        said = publication_instant(text, entry.start, entry.end) if is_atom else None
        dates.append(entry.order_at if said is None else said)
    last = next((at for at in dates if at is not None), UNDATED)
    return [last := last if at is None else at for at in dates]


def publication_instant(text: bytes, start: int, end: int) -> float | None:
    """Return when an entry of Atom says that it was published, which an edit leaves as it was.

    The formats of RSS have no other instant to sort by.
    """
    if text.find(b"published", start, end) < 0:
        return None
    found = _PUBLISHED.search(text, start, end)
    return parse_rfc3339(found[1].decode("utf-8", "replace")) if found is not None else None


_PUBLISHED: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?published\b[^>]{0,200}>\s{0,200}([^<\s]{1,80})")


# Which entries a segment holds


class WovenMember(NamedTuple):
    """One entry of a segment."""

    document: int
    ordinal: int
    size: int
    """Of its text, in bytes, without what stands between two."""
    published_at: float
    """As `publication_dates` gives it; with a spot, as `wholefeed.core.compose.ordering.sequence` does."""
    spot: Spot | None = None
    """Where it stands; None in a collected feed, where that is by publication alone."""


class Spot(NamedTuple):
    """Where an entry stands in a feed of documents."""

    home: int | None
    """The document that gives it its place; None: its date does."""
    place: int
    """Among the entries of that document, from the top of what is sent."""


@dataclass(frozen=True, slots=True)
class Members:
    """The entries of a segment, from the top, in 20 bytes each, or 28 with their spots."""

    stamps: Mapping[int, bytes]
    """By document, in output order: what it has as long as its entries read the same."""
    packed: bytes
    """As `pack_member` makes them; documents are counted in the order of `stamps`."""
    has_spots: bool = False
    """Whether the entries have spots: then each is packed with that."""

    @classmethod
    def of(cls, members: Iterable[WovenMember], stamps: Mapping[int, bytes]) -> Self:
        """Pack members of documents; `stamps` has those of more, in output order."""
        held = list(members)
        present = {member.document for member in held}
        present |= {home for member in held if member.spot and (home := member.spot.home) is not None}
        own = {document: stamp for document, stamp in stamps.items() if document in present}
        places = {document: place for place, document in enumerate(own)}
        if held and held[0].spot is not None:
            return cls(own, b"".join([_pack_placed(places, *member) for member in held]), has_spots=True)
        packed = [pack_member(places[document], *rest) for document, *rest, _ in held]
        return cls(own, b"".join(packed))

    @classmethod
    def read(cls, text: bytes) -> Self:
        """Return what `written` gave.

        Raises:
            ValueError: It is something else.
        """
        try:
            (count,) = _COUNT.unpack_from(text)
            has_spots, count = bool(count & _HAS_SPOTS), count & ~_HAS_SPOTS
            start = _COUNT.size + count * _DOCUMENT.size
            stamps = dict(_DOCUMENT.iter_unpack(text[_COUNT.size : start]))
        except struct.error as exc:
            raise ValueError("expected documents and entries") from exc
        record = _PLACED if has_spots else _MEMBER
        if len(stamps) != count or (len(text) - start) % record.size:
            raise ValueError(f"expected {count} documents and their entries")
        return cls(stamps, text[start:], has_spots)

    def written(self) -> bytes:
        """Return it as bytes."""
        documents = [_DOCUMENT.pack(*each) for each in self.stamps.items()]
        count = len(documents) | (_HAS_SPOTS if self.has_spots else 0)
        return b"".join([_COUNT.pack(count), *documents, self.packed])

    def __len__(self) -> int:
        return len(self.packed) // self._size

    def __iter__(self) -> Iterator[WovenMember]:
        return self._of(self.packed)

    @property
    def ends(self) -> tuple[WovenMember, WovenMember]:
        """The first and the last, of at least one."""
        first, last = self._of(self.packed[: self._size] + self.packed[-self._size :])
        return first, last

    @property
    def _size(self) -> int:
        return _PLACED.size if self.has_spots else _MEMBER.size

    def _of(self, packed: bytes) -> Iterator[WovenMember]:
        documents = list(self.stamps)
        if not self.has_spots:
            for place, ordinal, size, published_at in _MEMBER.iter_unpack(packed):
                yield WovenMember(documents[place], ordinal, size, published_at)
            return
        for place, ordinal, size, at, home, there in _PLACED.iter_unpack(packed):
            spot = Spot(None if home == _NO_HOME else documents[home], there)
            yield WovenMember(documents[place], ordinal, size, at, spot)


def _pack_placed(
    places: Mapping[int, int], document: int, ordinal: int, size: int, at: float, spot: Spot | None
) -> bytes:
    assert spot is not None, "all entries of a segment have a spot, or none has"
    home = _NO_HOME if spot.home is None else places[spot.home]
    return _PLACED.pack(places[document], ordinal, size, at, home, spot.place)


STAMP_BYTES: Final = 16
_COUNT: Final = struct.Struct("=I")
_DOCUMENT: Final = struct.Struct(f"=q{STAMP_BYTES}s")
_HAS_SPOTS: Final = 1 << 31
"""Beside the number of documents."""
_MEMBER: Final = struct.Struct("=IIId")
_PLACED: Final = struct.Struct("=IIIdII")
_NO_HOME: Final = (1 << 32) - 1
pack_member: Final = _MEMBER.pack
"""Of a document's place among several, ordinal, size and `publication_instant`."""
unpack_members: Final = _MEMBER.iter_unpack


class Strand(NamedTuple):
    """Entries whose text is sealed."""

    number: int
    """Of the segment; where it is new, what the caller knows it by, below 0."""
    members: Members
    size_bytes: int
    """Of the text."""

    @property
    def is_new(self) -> bool:
        """Whether it was rendered just now, to be woven in."""
        return self.number < 0


Key = tuple[float, ...]
"""What entries are sorted by: in a collected feed less the date of publication, then place of the document
and ordinal. So what has no date of its own comes right behind the entry that it has it of, which is before it
in the same document."""


# What has changed


class WeavingState(NamedTuple):
    """Where an entry stands, and what it is dated there."""

    at: float
    spot: Spot


class Difference(NamedTuple):
    """What segments and documents have apart."""

    gone: Mapping[int, Collection[int]]
    """Members that are no longer live, as places in their strand; by strand."""
    missing: Mapping[int, Sequence[int]]
    """The ordinals of entries that stand in no strand, by document."""


def compare(
    strands: Iterable[Strand],
    stamps: Mapping[int, bytes],
    live: Mapping[int, Collection[int]],
    places: Mapping[tuple[int, int], WeavingState] | None = None,
) -> Difference:
    """Compare what is published, and can stay so, with what is live.

    Args:
        strands: What is published.
        stamps: Of all attached documents, in output order.
        live: The ordinals of the live entries of the documents that may have changed: the others have not.
        places: Where each of these entries stands, by document and ordinal; None in a collected feed.
    """
    wanted = {document: set(ordinals) for document, ordinals in live.items()}
    gone: dict[int, set[int]] = {}
    for number, members, _ in strands:
        changed = {document for document in members.stamps if document in live or document not in stamps}
        if not changed:
            continue
        lost = set()
        for place, (document, ordinal, _, at, spot) in enumerate(members):
            if document in changed:
                is_same = members.stamps[document] == stamps.get(document)
                if places is not None:
                    is_same = is_same and places.get((document, ordinal)) == (at, spot)
                if is_same and ordinal in wanted[document]:
                    wanted[document].remove(ordinal)
                else:
                    lost.add(place)
        if lost:
            gone[number] = lost
    missing = {document: sorted(ordinals) for document, ordinals in wanted.items() if ordinals}
    return Difference(gone, missing)


# What is to be written


@dataclass(frozen=True, slots=True)
class Weave:
    """These entries become one new segment."""

    picks: Sequence[Pick]
    """The entries, newest first."""

    @property
    def size_bytes(self) -> int:
        return sum(pick.member.size for pick in self.picks)


class Pick(NamedTuple):
    """One entry of a new segment."""

    key: Key
    strand: int
    """The number of the strand in which its text is."""
    place: int
    """It has there."""
    member: WovenMember


class Whole(NamedTuple):
    """Documents that stand between the entries, as a segment that is kept or to be made."""

    documents: tuple[int, ...]
    """In output order."""
    segment: int | None
    """None: it is to be made."""
    is_settled: bool
    live_bytes: int
    first: Key
    """What its first entry is sorted by; no entry of a strand stands between that and the last one."""
    last: Key


def weave(
    strands: Iterable[Strand],
    order: Sequence[int],
    *,
    gone: Mapping[int, Collection[int]],
    is_walking: bool = False,
    target_bytes: int = TARGET_BYTES,
    key_of: Callable[[WovenMember], Key] | None = None,
    wholes: Iterable[Whole] = (),
) -> list[Keep | Weave | Build]:
    """Return the segments of a feed, newest first.

    While documents still come, each strand stays for itself and only strands are sorted: an import is sorted
    once, at its end.

    Args:
        strands: What is published and can stay so, and what is new.
        order: All attached documents in output order, the subscription document first.
        gone: As in `Difference`.
        is_walking: Whether documents still come.
        target_bytes: What a segment may come to; a longer entry stands alone.
        key_of: Gives what an entry is sorted by; None: its publication.
        wholes: What stands between the entries, in output order.
    """
    places = {document: place for place, document in enumerate(order)}
    loom = _Loom(places, gone, target_bytes, key_of)
    return loom.join(loom.apart(strands) if is_walking else loom.in_order(strands, wholes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece(Group):
    """A segment in the making; settled if it is not the subscription document's alone, which is replaced."""

    first: Key
    last: Key
    strand: Strand | None = None
    """What is kept; None: the picks are written."""
    picks: Sequence[Pick] = ()
    documents: tuple[int, ...] = ()
    """Of what stands whole."""


class _Loom:
    def __init__(
        self,
        places: Mapping[int, int],
        gone: Mapping[int, Collection[int]],
        target_bytes: int,
        key_of: Callable[[WovenMember], Key] | None = None,
    ) -> None:
        self._places = places
        self._gone = gone
        self._target_bytes = target_bytes
        self._key = self._publication if key_of is None else key_of

    def apart(self, strands: Iterable[Strand]) -> list[_Piece]:
        """Return a piece for each strand, those that begin newest first."""
        pieces = []
        for strand in strands:
            whole = self._kept(strand)
            pieces += self._written(sorted(self._picks(strand))) if whole is None else [whole]
        return sorted(pieces, key=lambda piece: piece.first)

    def in_order(self, strands: Iterable[Strand], wholes: Iterable[Whole] = ()) -> list[_Piece]:
        """Return pieces of which each ends before the next begins."""
        kept, loose = [_whole_piece(each) for each in wholes], list[Pick]()
        for strand in strands:
            whole = self._kept(strand)
            if whole is None:
                loose += self._picks(strand)
            else:
                kept.append(whole)
        alone = list[_Piece]()
        for group in _overlapping(kept):
            if len(group) > 1:
                loose += [pick for piece in group for pick in self._taken(piece)]
                alone += [piece for piece in group if piece.documents]
            else:
                alone += group
        loose.sort()
        parted = [piece for piece in alone if not piece.documents and _is_parted(piece, loose)]
        if parted:
            alone = [piece for piece in alone if piece not in parted]
            loose = sorted([*loose, *(pick for piece in parted for pick in self._taken(piece))])
        pieces, start = list[_Piece](), 0
        for piece in alone:
            end = bisect_left(loose, piece.first, key=_key)
            pieces += [*self._written(loose[start:end]), piece]
            start = end
        return pieces + self._written(loose[start:])

    def join(self, pieces: Sequence[_Piece]) -> list[Keep | Weave | Build]:
        """Let small neighbours become one where that is worth its cost, from the old end on."""
        joined = list[_Piece]()
        for piece in reversed(pieces):
            newer = piece
            while joined and self._may_join(joined[-1], newer):
                older = joined.pop()
                if newer.documents:
                    newer = _joined_documents(older, newer)
                else:
                    newer = self._piece(sorted([*self._taken(newer), *self._taken(older)]))
            joined.append(newer)
        return [_step(piece) for piece in reversed(joined)]

    def _may_join(self, older: _Piece, newer: _Piece) -> bool:
        is_alike = bool(older.documents) == bool(newer.documents)
        return is_alike and may_join(older, newer, self._target_bytes)

    def _kept(self, strand: Strand) -> _Piece | None:
        """Return a strand as it is published; None where it has to be taken apart."""
        if strand.is_new or strand.number in self._gone:
            return None
        places = [self._places[document] for document in strand.members.stamps]
        if places != sorted(places):  # documents have traded places
            return None
        if strand.members.has_spots:  # what stands by its date may have come to stand elsewhere
            keys = [self._key(member) for member in strand.members]
            if any(a >= b for a, b in pairwise(keys)):
                return None
            first, last = keys[0], keys[-1]
        else:
            first, last = map(self._key, strand.members.ends)
        return _Piece(
            segment=strand.number,
            is_settled=self._is_settled(strand.members.stamps),
            live_bytes=strand.size_bytes,
            first=first,
            last=last,
            strand=strand,
        )

    def _taken(self, piece: _Piece) -> Sequence[Pick]:
        return piece.picks if piece.strand is None else self._picks(piece.strand)

    def _picks(self, strand: Strand) -> list[Pick]:
        gone, number = self._gone.get(strand.number, ()), strand.number
        return [
            Pick(self._key(member), number, place, member)
            for place, member in enumerate(strand.members)
            if place not in gone
        ]

    def _publication(self, member: WovenMember) -> Key:
        return (-member.published_at, self._places[member.document], member.ordinal)

    def _is_settled(self, documents: Iterable[int]) -> bool:
        return any(self._places[document] for document in documents)

    def _written(self, picks: Sequence[Pick]) -> list[_Piece]:
        """Return new pieces of about one size; what the subscription document has in front is for itself."""
        lead = len(list(takewhile(lambda pick: not self._places[pick.member.document], picks)))
        stretches = [picks[:lead], picks[lead:]] if lead else [picks]
        return [self._piece(part) for stretch in stretches for part in _cut(stretch, self._target_bytes)]

    def _piece(self, picks: Sequence[Pick]) -> _Piece:
        return _Piece(
            segment=None,
            is_settled=self._is_settled(pick.member.document for pick in picks),
            live_bytes=sum(pick.member.size for pick in picks),
            first=picks[0].key,
            last=picks[-1].key,
            picks=picks,
        )


def _whole_piece(whole: Whole) -> _Piece:
    return _Piece(
        segment=whole.segment,
        is_settled=whole.is_settled,
        live_bytes=whole.live_bytes,
        first=whole.first,
        last=whole.last,
        documents=whole.documents,
    )


def _joined_documents(older: _Piece, newer: _Piece) -> _Piece:
    return _Piece(
        segment=None,
        is_settled=True,
        live_bytes=older.live_bytes + newer.live_bytes,
        first=newer.first,
        last=older.last,
        documents=newer.documents + older.documents,
    )


def _step(piece: _Piece) -> Keep | Weave | Build:
    if piece.segment is not None:
        return Keep(piece.segment)
    return Build(piece.documents) if piece.documents else Weave(piece.picks)


_key: Final = itemgetter(0)


def _overlapping(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    """Return pieces in groups of which each ends before the next begins."""
    groups: list[list[_Piece]] = []
    end: Key = (-inf,)
    for piece in sorted(pieces, key=lambda each: each.first):
        if groups and piece.first < end:
            groups[-1].append(piece)
        else:
            groups.append([piece])
        end = max(end, piece.last)
    return groups


def _is_parted(piece: _Piece, loose: Sequence[Pick]) -> bool:
    """Whether an entry belongs between the first and the last of a piece."""
    at = bisect_left(loose, piece.first, key=_key)
    return at < len(loose) and loose[at].key < piece.last


def _cut(picks: Sequence[Pick], target_bytes: int) -> list[Sequence[Pick]]:
    """Return picks in parts of about one size, which is the target at most."""
    total = sum(pick.member.size for pick in picks)
    share = total / max(1, ceil(total / target_bytes))
    parts, at, before = list[list[Pick]](), -1, 0
    for pick in picks:
        size = pick.member.size
        middle = int((before + size / 2) / share)
        if middle > at:
            parts.append([])
            at = middle
        parts[-1].append(pick)
        before += size
    return list(parts)
