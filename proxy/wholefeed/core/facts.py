"""What is kept of a document: its body as it was sent, and what is known of it and of its entries.

    facts = DocumentFacts.of(Stored(body, url, media_type).parse())
    for entry in facts.entries:         # made one at a time, and not kept
        entry.identity

A document may hold 250,000 entries. They are packed, in 53 bytes each instead of several objects: so they go
between processes and threads as one piece, and whoever needs no more than their number touches none of them.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Final, NamedTuple, Self, cast

from wholefeed.core.merge import Fullness, StatedDeletion, fullness_of
from wholefeed.core.model import ENTRY_ID_BYTES, EntryId, EntryKeys, Family, FeedDocument, Tombstone, Traits
from wholefeed.core.notes import Note
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED


class Stored(NamedTuple):
    """A document that is stored. It was within the limits when it was fetched, whatever they are now."""

    body: bytes
    url: str
    """After redirects."""
    media_type: str

    def parse(self) -> FeedDocument:
        """Return the document.

        Raises:
            ParseError: Only when another parser has stored it.
        """
        return parse(self.body, self.url, self.media_type, max_depth=UNLIMITED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What is kept of a document beside its body."""

    family: Family
    version: str
    site_id: str
    """As `Head.site_id`."""
    updated_at: float | None
    """As `Head.updated_at`."""
    tombstones: tuple[Tombstone, ...]
    notes: tuple[Note, ...]
    """On how it reads."""
    entries: PackedEntries
    keys: PackedKeys
    """Of entries without an id of their own."""
    ambiguous: frozenset[EntryId]
    """As `FeedDocument.ambiguous`."""
    own: Mapping[int, EntryId] = field(default_factory=dict)
    """What identifies entries by themselves that are known under another identity, by ordinal (R36)."""
    traits: Mapping[int, Traits] = field(default_factory=dict)
    """Of the entries that are new to the feed, by ordinal (R36)."""
    pairs: Mapping[EntryId, EntryId] = field(default_factory=dict)
    """The identities of those that the feed has under another id (R36)."""
    has_renamed: bool = False
    """Whether posts of its feed have had several ids (R36)."""

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        """Say what is kept of a document; `dates` are those of remembered copies, one an entry."""
        return cls(
            family=document.family,
            version=document.version,
            site_id=document.head.site_id,
            updated_at=document.head.updated_at,
            tombstones=document.head.tombstones,
            notes=document.notes,
            entries=PackedEntries.of(document, dates),
            keys=PackedKeys.of(document),
            ambiguous=document.ambiguous,
        )

    def identify(self, ambiguous: Collection[EntryId]) -> Self:
        """Return the same, with entries identified by what is ambiguous in their feed (R9)."""
        return replace(self, entries=self.entries.identify(self.keys.identities(ambiguous)))

    def rename(self, names: Mapping[EntryId, EntryId]) -> Self:
        """Return the same, with entries under the identities of their posts (R36)."""
        ids = list(self.entries.identities())
        own = {ordinal: each for ordinal, each in enumerate(ids) if each in names}
        entries = self.entries.identify({ordinal: names[each] for ordinal, each in own.items()})
        tombstones = tuple(
            each._replace(identity=names.get(each.identity, each.identity)) for each in self.tombstones
        )
        return replace(self, entries=entries, own=own, tombstones=tombstones)


class CopyDates(NamedTuple):
    """What R10 needs to know of a remembered copy, when its document is long gone."""

    updated_at: float | None
    """The update instant that counted when the copy was remembered."""
    document_updated_at: float | None
    """Of the subscription document that it last stood in."""
    fullness: int | None
    """None: nobody has looked."""
    made_at: float | None
    """When that document was made, in a feed with pages that an adapter asked for; None: nobody knows."""
    identity: EntryId | None = None
    """What identifies it, where its id may not (R9, R36); None: as it reads."""
    own: EntryId | None = None
    """What identifies it by itself, where that is another (R36)."""


# The entries of a document in little space


@dataclass(frozen=True, slots=True)
class PackedEntries:
    """The entries of a document, from the top."""

    data: bytes

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        if dates:
            return cls.pack(
                EntryFacts(
                    each.identity,
                    at.updated_at,
                    each.order_at,
                    each.end - each.start,
                    at.document_updated_at,
                    fullness_of(each) if at.fullness is None else at.fullness,
                    at.made_at,
                )
                for each, at in zip(document.entries, dates, strict=True)
            )
        pack, none, full, unknown = _RECORD.pack, _NO_INSTANT, int(Fullness.FULL), int(Fullness.UNKNOWN)
        return cls(
            b"".join(
                [
                    pack(
                        identity,
                        none if updated_at is None else updated_at,
                        none if order_at is None else order_at,
                        none,
                        none,
                        end - start,
                        full if has_content else unknown,
                    )
                    for identity, updated_at, order_at, start, end, _, _, _, _, _, has_content in (
                        document.entries
                    )
                ]
            )
        )

    @classmethod
    def pack(cls, entries: Iterable[EntryFacts]) -> Self:
        pack = _RECORD.pack
        return cls(
            b"".join(
                pack(
                    identity,
                    _number(updated_at),
                    _number(order_at),
                    _number(document_at),
                    _number(made_at),
                    size,
                    fullness,
                )
                for identity, updated_at, order_at, size, document_at, fullness, made_at in entries
            )
        )

    def __len__(self) -> int:
        return len(self.data) // _RECORD.size

    def __iter__(self) -> Iterator[EntryFacts]:
        for identity, updated_at, order_at, document_at, made_at, size, fullness in self.records():
            yield EntryFacts(
                EntryId(identity),
                _instant(updated_at),
                _instant(order_at),
                size,
                _instant(document_at),
                fullness,
                _instant(made_at),
            )

    def records(self) -> Iterator[_Record]:
        """Yield the entries as they are packed, without an object for each.

        Identity, `updated_at`, `order_at`, `document_updated_at`, `made_at`, size and fullness; no instant is
        not a number.
        """
        return cast("Iterator[_Record]", _RECORD.iter_unpack(self.data))

    def said(self) -> Iterator[StatedDeletion]:
        """Yield the entries as they are compared with what stood in their place."""
        for identity, updated_at, _, _, _, size, fullness in self.records():
            yield StatedDeletion(EntryId(identity), _instant(updated_at), size, fullness)

    @property
    def fullness(self) -> bytes:
        """Of each, from the top."""
        return self.data[_RECORD.size - 1 :: _RECORD.size]

    def identities(self) -> Iterator[EntryId]:
        for (identity,) in _IDENTITY.iter_unpack(self.data):
            yield EntryId(identity)

    def identify(self, identities: Mapping[int, EntryId]) -> Self:
        """Return the same entries, some with another identity: by ordinal."""
        data = bytearray(self.data)
        for ordinal, identity in identities.items():
            start = ordinal * _RECORD.size
            data[start : start + ENTRY_ID_BYTES] = identity
        return replace(self, data=bytes(data))

    def cut(self, ordinals: Iterable[int]) -> Self:
        """Return the same entries, these of them known to be cut short (R10)."""
        data = bytearray(self.data)
        for ordinal in ordinals:
            data[(ordinal + 1) * _RECORD.size - 1] = Fullness.CUT
        return replace(self, data=bytes(data))

    def copy_dates(self) -> tuple[CopyDates, ...]:
        """Return what remembered copies are known by."""
        return tuple(
            CopyDates(each.updated_at, each.document_updated_at, each.fullness, each.made_at, each.identity)
            for each in self
        )

    @property
    def dated_identities(self) -> DatedIdentities:
        """Identity and update instant of each."""
        return DatedIdentities(self.data)


class EntryFacts(NamedTuple):
    """What is kept of an entry beside the text. Its place in the sequence is its ordinal."""

    identity: EntryId
    updated_at: float | None
    order_at: float | None
    size: int
    """In bytes, as the publisher wrote it."""
    document_updated_at: float | None = None
    """Of a remembered copy: that of the subscription document it stood in."""
    fullness: int = Fullness.UNKNOWN
    """As a `Fullness`."""
    made_at: float | None = None
    """Of a remembered copy: when the document was made that it stood in, as `Copy.generated_at`."""


_Record = tuple[bytes, float, float, float, float, int, int]


@dataclass(frozen=True, slots=True)
class DatedIdentities:
    """Identity and update instant of each entry, for whoever goes through them, as often as they like."""

    data: bytes

    def __iter__(self) -> Iterator[tuple[EntryId, float | None]]:
        keys = cast("Iterator[tuple[EntryId, float]]", _DATED_IDENTITY.iter_unpack(self.data))
        return ((identity, None if isnan(updated_at) else updated_at) for identity, updated_at in keys)


_RECORD: Final = struct.Struct(f"={ENTRY_ID_BYTES}sddddIB")
_DATED_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}sd29x")
_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}s{_RECORD.size - ENTRY_ID_BYTES}x")
assert _DATED_IDENTITY.size == _IDENTITY.size == _RECORD.size

_NO_INSTANT: Final = nan
"""The parser makes no such instant."""


def _number(instant: float | None) -> float:
    return _NO_INSTANT if instant is None else instant


def _instant(number: float) -> float | None:
    return None if isnan(number) else number


@dataclass(frozen=True, slots=True)
class PackedKeys:
    """What can identify those entries of a document that have no id of their own (rule R9)."""

    data: bytes = b""

    @classmethod
    def of(cls, document: FeedDocument) -> Self:
        pack, absent = _PACKED_KEYS.pack, bytes(ENTRY_ID_BYTES)
        return cls(
            b"".join(
                pack(ordinal, *(key or absent for key in entry.keys))
                for ordinal, entry in enumerate(document.entries)
                if entry.keys is not None
            )
        )

    def __bool__(self) -> bool:
        return bool(self.data)

    def __iter__(self) -> Iterator[tuple[int, EntryKeys]]:
        """Yield the ordinal of each such entry, and its keys."""
        for ordinal, link, enclosure, content, enclosures in _PACKED_KEYS.iter_unpack(self.data):
            keys = EntryKeys(_present(link), _present(enclosure), EntryId(content), _present(enclosures))
            yield ordinal, keys

    def identities(self, ambiguous: Container[EntryId]) -> dict[int, EntryId]:
        """Return what identifies each, by its ordinal."""
        return {ordinal: keys.identity(ambiguous) for ordinal, keys in self}


_PACKED_KEYS: Final = struct.Struct("=I" + f"{ENTRY_ID_BYTES}s" * 4)


def _present(key: bytes) -> EntryId | None:
    return EntryId(key) if any(key) else None
