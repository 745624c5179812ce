"""Facts about a document, stored beside its body.

A document may hold 250,000 entries. Their facts are packed into 53 bytes each, so they pass between processes
as one piece.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Final, NamedTuple, Self, cast

from wholefeed.core.merge import ComparedEntry, Fullness, fullness_of
from wholefeed.core.model import ENTRY_ID_BYTES, EntryId, EntryKeys, Family, FeedDocument, Tombstone, Traits
from wholefeed.core.notes import Note
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED


class Stored(NamedTuple):
    body: bytes
    url: str
    """After redirects."""
    media_type: str

    def parse(self) -> FeedDocument:
        """Parse the document.

        Raises:
            ParseError: Only if another parser stored it.
        """
        # The document met the limits when it was fetched; present limits do not apply.
        return parse(self.body, self.url, self.media_type, max_depth=UNLIMITED)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    family: Family
    version: str
    site_id: str
    updated_at: float | None
    tombstones: tuple[Tombstone, ...]
    notes: tuple[Note, ...]
    entries: PackedEntries
    keys: PackedKeys
    ambiguous: frozenset[EntryId]
    own: Mapping[int, EntryId] = field(default_factory=dict)
    """By ordinal: an entry's own identity, where the feed has another for its post (R36)."""
    traits: Mapping[int, Traits] = field(default_factory=dict)
    """By ordinal, for entries new to the feed (R36)."""
    pairs: Mapping[EntryId, EntryId] = field(default_factory=dict)
    """By an entry's own identity: the identity of its post (R36)."""
    has_renamed: bool = False
    """Whether posts of the feed have had several ids (R36)."""

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        """Collect the facts; `dates`, if any, holds one item per remembered copy."""
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
        """Identify entries by unambiguous keys (R9)."""
        return replace(self, entries=self.entries.identify(self.keys.identities(ambiguous)))

    def rename(self, names: Mapping[EntryId, EntryId]) -> Self:
        """Put entries under the identities of their posts (R36)."""
        ids = list(self.entries.identities())
        own = {ordinal: each for ordinal, each in enumerate(ids) if each in names}
        entries = self.entries.identify({ordinal: names[each] for ordinal, each in own.items()})
        tombstones = tuple(
            each._replace(identity=names.get(each.identity, each.identity)) for each in self.tombstones
        )
        return replace(self, entries=entries, own=own, tombstones=tombstones)


class CopyDates(NamedTuple):
    updated_at: float | None
    """Update instant that counted when the copy was remembered."""
    document_updated_at: float | None
    """Date of the last subscription document with the copy."""
    fullness: int | None
    """None: unknown."""
    made_at: float | None
    """See `Copy.generated_at`."""
    identity: EntryId | None = None
    """None: the entry's id decides (R9, R36)."""
    own: EntryId | None = None
    """The copy's own identity, if it differs (R36)."""


# Packed entries of a document


@dataclass(frozen=True, slots=True)
class PackedEntries:
    """Facts about a document's entries, from the top."""

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
        """Yield unpacked records without an object for each; NaN means no instant."""
        return cast("Iterator[_Record]", _RECORD.iter_unpack(self.data))

    def said(self) -> Iterator[ComparedEntry]:
        for identity, updated_at, _, _, _, size, fullness in self.records():
            yield ComparedEntry(EntryId(identity), _instant(updated_at), size, fullness)

    @property
    def fullness(self) -> bytes:
        return self.data[_RECORD.size - 1 :: _RECORD.size]

    def identities(self) -> Iterator[EntryId]:
        for (identity,) in _IDENTITY.iter_unpack(self.data):
            yield EntryId(identity)

    def identify(self, identities: Mapping[int, EntryId]) -> Self:
        data = bytearray(self.data)
        for ordinal, identity in identities.items():
            start = ordinal * _RECORD.size
            data[start : start + ENTRY_ID_BYTES] = identity
        return replace(self, data=bytes(data))

    def cut(self, ordinals: Iterable[int]) -> Self:
        """Mark entries as cut short (R10)."""
        data = bytearray(self.data)
        for ordinal in ordinals:
            data[(ordinal + 1) * _RECORD.size - 1] = Fullness.CUT
        return replace(self, data=bytes(data))

    def copy_dates(self) -> tuple[CopyDates, ...]:
        return tuple(
            CopyDates(each.updated_at, each.document_updated_at, each.fullness, each.made_at, each.identity)
            for each in self
        )

    @property
    def dated_identities(self) -> DatedIdentities:
        return DatedIdentities(self.data)


class EntryFacts(NamedTuple):
    """Facts about one entry; its place among them is its ordinal."""

    identity: EntryId
    updated_at: float | None
    order_at: float | None
    size: int
    """Bytes, as the publisher wrote it."""
    document_updated_at: float | None = None
    """See `CopyDates`; remembered copies only."""
    fullness: int = Fullness.UNKNOWN
    made_at: float | None = None
    """See `Copy.generated_at`."""


_Record = tuple[bytes, float, float, float, float, int, int]


@dataclass(frozen=True, slots=True)
class DatedIdentities:
    data: bytes

    def __iter__(self) -> Iterator[tuple[EntryId, float | None]]:
        keys = cast("Iterator[tuple[EntryId, float]]", _DATED_IDENTITY.iter_unpack(self.data))
        return ((identity, None if isnan(updated_at) else updated_at) for identity, updated_at in keys)


# identity, updated_at, order_at, document_updated_at, made_at, size, fullness
_RECORD: Final = struct.Struct(f"={ENTRY_ID_BYTES}sddddIB")
_DATED_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}sd29x")
_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}s{_RECORD.size - ENTRY_ID_BYTES}x")
assert _DATED_IDENTITY.size == _IDENTITY.size == _RECORD.size

# The parser never returns NaN.
_NO_INSTANT: Final = nan


def _number(instant: float | None) -> float:
    return _NO_INSTANT if instant is None else instant


def _instant(number: float) -> float | None:
    return None if isnan(number) else number


@dataclass(frozen=True, slots=True)
class PackedKeys:
    """Keys of entries without an id (R9)."""

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
        for ordinal, link, enclosure, content, enclosures in _PACKED_KEYS.iter_unpack(self.data):
            keys = EntryKeys(_present(link), _present(enclosure), EntryId(content), _present(enclosures))
            yield ordinal, keys

    def identities(self, ambiguous: Container[EntryId]) -> dict[int, EntryId]:
        return {ordinal: keys.identity(ambiguous) for ordinal, keys in self}


_PACKED_KEYS: Final = struct.Struct("=I" + f"{ENTRY_ID_BYTES}s" * 4)


def _present(key: bytes) -> EntryId | None:
    return EntryId(key) if any(key) else None
