"""Arrange single entries of any documents in segments (R20).

An adapter's pages mix dates, and an archive may give a remembered entry its place. Whole documents may stand
between entries.

A strand is a published segment, or entries just rendered. An entry newer than all others gets its own segment
until joining is worth its cost; for an older one only the segment around its place is written anew.
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

# Publication instants

UNDATED: Final = -inf
"""For entries of documents without any date: they stand last, in document order."""


def publication_dates(document: FeedDocument) -> list[float]:
    """Return each entry's sort date; an undated entry takes the date before it, else behind it."""
    text, is_atom = document.text, document.family is Family.ATOM
    dates: list[float | None] = []
    for entry in document.entries:
        said = publication_instant(text, entry.start, entry.end) if is_atom else None
        dates.append(entry.order_at if said is None else said)
    last = next((at for at in dates if at is not None), UNDATED)
    return [last := last if at is None else at for at in dates]


def publication_instant(text: bytes, start: int, end: int) -> float | None:
    """Return an Atom entry's publication; RSS has no instant beside `order_at`."""
    if text.find(b"published", start, end) < 0:
        return None
    found = _PUBLISHED.search(text, start, end)
    return parse_rfc3339(found[1].decode("utf-8", "replace")) if found is not None else None


_PUBLISHED: Final = re.compile(rb"<(?:[\w.-]{1,40}:)?published\b[^>]{0,200}>\s{0,200}([^<\s]{1,80})")


# Entries of a segment


class WovenMember(NamedTuple):
    document: int
    ordinal: int
    size: int
    """Bytes of text, without separator."""
    published_at: float
    """From `publication_dates`; with a spot, from `sequence`."""
    spot: Spot | None = None
    """None in a collected feed: by publication alone."""


class Spot(NamedTuple):
    home: int | None
    """Document that gives the place; None: the date does."""
    place: int
    """From the top of that document's output."""


@dataclass(frozen=True, slots=True)
class Members:
    """A segment's entries from the top: 20 bytes each, or 28 with spots."""

    stamps: Mapping[int, bytes]
    """By document, in output order; equal while its entries read the same."""
    packed: bytes
    """By `pack_member`; documents count in the order of `stamps`."""
    has_spots: bool = False

    @classmethod
    def of(cls, members: Iterable[WovenMember], stamps: Mapping[int, bytes]) -> Self:
        """Pack members; `stamps` may have more documents, in output order."""
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
        """Read the bytes of `written`.

        Raises:
            ValueError: `text` has another form.
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
        documents = [_DOCUMENT.pack(*each) for each in self.stamps.items()]
        count = len(documents) | (_HAS_SPOTS if self.has_spots else 0)
        return b"".join([_COUNT.pack(count), *documents, self.packed])

    def __len__(self) -> int:
        return len(self.packed) // self._size

    def __iter__(self) -> Iterator[WovenMember]:
        return self._of(self.packed)

    @property
    def ends(self) -> tuple[WovenMember, WovenMember]:
        """First and last member; one must exist."""
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
_HAS_SPOTS: Final = 1 << 31  # a flag beside the number of documents
_MEMBER: Final = struct.Struct("=IIId")
_PLACED: Final = struct.Struct("=IIIdII")
_NO_HOME: Final = (1 << 32) - 1
pack_member: Final = _MEMBER.pack
"""Packs the document's place, ordinal, size and publication date."""
unpack_members: Final = _MEMBER.iter_unpack


class Strand(NamedTuple):
    number: int
    """The segment's; below 0, the caller's for a new strand."""
    members: Members
    size_bytes: int

    @property
    def is_new(self) -> bool:
        return self.number < 0


Key = tuple[float, ...]
"""Sort key. In a collected feed: negated publication, document's place, ordinal. So an undated entry follows
the one that gives its date."""


# Changes since the last publication


class WeavingState(NamedTuple):
    at: float
    spot: Spot


class Difference(NamedTuple):
    gone: Mapping[int, Collection[int]]
    """By strand, places of members no longer live."""
    missing: Mapping[int, Sequence[int]]
    """By document, ordinals of live entries in no strand."""


def compare(
    strands: Iterable[Strand],
    stamps: Mapping[int, bytes],
    live: Mapping[int, Collection[int]],
    places: Mapping[tuple[int, int], WeavingState] | None = None,
) -> Difference:
    """Compare published strands with live entries.

    `stamps` covers all attached documents, `live` those that may have changed. `places` is by document
    and ordinal; None in a collected feed.
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


# Segments to write


@dataclass(frozen=True, slots=True)
class Weave:
    picks: Sequence[Pick]
    """Newest first."""

    @property
    def size_bytes(self) -> int:
        return sum(pick.member.size for pick in self.picks)


class Pick(NamedTuple):
    key: Key
    strand: int
    """Number of the strand with the text."""
    place: int
    """In that strand."""
    member: WovenMember


class Whole(NamedTuple):
    documents: tuple[int, ...]
    """In output order."""
    segment: int | None
    """None: to be made."""
    is_settled: bool
    live_bytes: int
    first: Key
    """No strand's entry stands between this and `last`."""
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

    `order` has the attached documents in output order, the subscription document first. While documents come
    (`is_walking`), strands stay apart: an import is sorted once, at its end. Without `key_of`, publication
    sorts. `gone` is as in `Difference`.
    """
    places = {document: place for place, document in enumerate(order)}
    loom = _Loom(places, gone, target_bytes, key_of)
    return loom.join(loom.apart(strands) if is_walking else loom.in_order(strands, wholes))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece(Group):
    """A future segment; not settled if all of it is the subscription document's, which will be replaced."""

    first: Key
    last: Key
    strand: Strand | None = None
    """None: `picks` are written."""
    picks: Sequence[Pick] = ()
    documents: tuple[int, ...] = ()
    """Non-empty for a `Whole`."""


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
        pieces = []
        for strand in strands:
            whole = self._kept(strand)
            pieces += self._written(sorted(self._picks(strand))) if whole is None else [whole]
        return sorted(pieces, key=lambda piece: piece.first)

    def in_order(self, strands: Iterable[Strand], wholes: Iterable[Whole] = ()) -> list[_Piece]:
        """Return pieces without overlap."""
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
        """Join small neighbours where worth the cost, from the old end."""
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
        """Return a strand as published; None: it must be taken apart."""
        if strand.is_new or strand.number in self._gone:
            return None
        places = [self._places[document] for document in strand.members.stamps]
        if places != sorted(places):  # documents have traded places
            return None
        if strand.members.has_spots:  # an entry placed by its date may have moved
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
        """Return pieces of similar size; the subscription document's entries in front stay separate."""
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
    at = bisect_left(loose, piece.first, key=_key)
    return at < len(loose) and loose[at].key < piece.last


def _cut(picks: Sequence[Pick], target_bytes: int) -> list[Sequence[Pick]]:
    """Split picks into parts of similar size, at most the target; a larger entry stands alone."""
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
