"""The entries of a document in little space: 44 bytes each instead of several objects.

    entries = PackedEntries.of(document)
    len(entries)
    for entry in entries:           # made one at a time, and not kept
        entry.identity

A document may hold 250,000 entries. Packed, they go between processes and threads as one piece, and whoever
needs no more than their number touches none of them.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Final, NamedTuple, Self, cast

from wholefeed.core.compose.remember import CopyDates
from wholefeed.core.model import ENTRY_ID_BYTES, EntryId, EntryKeys, FeedDocument

_RECORD: Final = struct.Struct(f"={ENTRY_ID_BYTES}sdddI")
_KEY: Final = struct.Struct(f"={ENTRY_ID_BYTES}sd20x")
_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}s{_RECORD.size - ENTRY_ID_BYTES}x")
_KEYS: Final = struct.Struct("=I" + f"{ENTRY_ID_BYTES}s" * 4)
assert _KEY.size == _IDENTITY.size == _RECORD.size

_NONE: Final = nan
"""No instant; the parser makes no such one."""


class EntryFacts(NamedTuple):
    """What is kept of an entry beside the text. Its place in the sequence is its ordinal."""

    identity: EntryId
    updated_at: float | None
    order_at: float | None
    size: int
    """In bytes, as the publisher wrote it."""
    document_updated_at: float | None = None
    """Of a remembered copy: that of the subscription document it stood in."""


@dataclass(frozen=True, slots=True)
class PackedEntries:
    """The entries of a document, from the top."""

    data: bytes

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        """Pack the entries of a document.

        Args:
            document: As parsed.
            dates: Of remembered copies, one an entry; none: the entries' own.
        """
        if dates:
            return cls.packed(
                EntryFacts(each.identity, at.updated_at, each.order_at, each.end - each.start, at[1])
                for each, at in zip(document.entries, dates, strict=True)
            )
        pack, none = _RECORD.pack, _NONE
        return cls(
            b"".join(
                [
                    pack(
                        identity,
                        none if updated_at is None else updated_at,
                        none if order_at is None else order_at,
                        none,
                        end - start,
                    )
                    for identity, updated_at, order_at, start, end, _, _, _, _, _ in document.entries
                ]
            )
        )

    @classmethod
    def packed(cls, entries: Iterable[EntryFacts]) -> Self:
        """Pack what is known of entries."""
        pack = _RECORD.pack
        return cls(
            b"".join(
                pack(identity, _number(updated_at), _number(order_at), _number(document_at), size)
                for identity, updated_at, order_at, size, document_at in entries
            )
        )

    def __len__(self) -> int:
        return len(self.data) // _RECORD.size

    def __iter__(self) -> Iterator[EntryFacts]:
        for identity, updated_at, order_at, document_at, size in _RECORD.iter_unpack(self.data):
            yield EntryFacts(
                EntryId(identity), _instant(updated_at), _instant(order_at), size, _instant(document_at)
            )

    def records(self) -> Iterator[tuple[bytes, float, float, float, int]]:
        """Yield the entries as they are packed, without an object for each.

        Identity, `updated_at`, `order_at`, `document_updated_at` and size; no instant is not a number.
        """
        return cast("Iterator[tuple[bytes, float, float, float, int]]", _RECORD.iter_unpack(self.data))

    def identities(self) -> Iterator[EntryId]:
        """Yield what identifies each entry, from the top."""
        for (identity,) in _IDENTITY.iter_unpack(self.data):
            yield EntryId(identity)

    def identified(self, identities: Mapping[int, EntryId]) -> Self:
        """Return the same entries, some with another identity.

        Args:
            identities: By ordinal.
        """
        data = bytearray(self.data)
        for ordinal, identity in identities.items():
            start = ordinal * _RECORD.size
            data[start : start + ENTRY_ID_BYTES] = identity
        return replace(self, data=bytes(data))

    def copy_dates(self) -> tuple[CopyDates, ...]:
        """Return the dates that remembered copies are known by."""
        return tuple(CopyDates(each.updated_at, each.document_updated_at) for each in self)

    @property
    def dated_identities(self) -> DatedIdentities:
        """Identity and update instant of each."""
        return DatedIdentities(self.data)


@dataclass(frozen=True, slots=True)
class DatedIdentities:
    """Identity and update instant of each entry, for whoever goes through them, as often as they like."""

    data: bytes

    def __iter__(self) -> Iterator[tuple[EntryId, float | None]]:
        keys = cast("Iterator[tuple[EntryId, float]]", _KEY.iter_unpack(self.data))
        return ((identity, None if isnan(updated_at) else updated_at) for identity, updated_at in keys)


@dataclass(frozen=True, slots=True)
class PackedKeys:
    """What can identify those entries of a document that have no id of their own (rule R9)."""

    data: bytes = b""

    @classmethod
    def of(cls, document: FeedDocument) -> Self:
        """Pack the keys of a document's entries."""
        pack, absent = _KEYS.pack, bytes(ENTRY_ID_BYTES)
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
        for ordinal, link, enclosure, content, enclosures in _KEYS.iter_unpack(self.data):
            keys = EntryKeys(_present(link), _present(enclosure), EntryId(content), _present(enclosures))
            yield ordinal, keys

    def identities(self, ambiguous: Container[EntryId]) -> dict[int, EntryId]:
        """Return what identifies each, by its ordinal."""
        return {ordinal: keys.identity(ambiguous) for ordinal, keys in self}


def _present(key: bytes) -> EntryId | None:
    return EntryId(key) if any(key) else None


def _number(instant: float | None) -> float:
    return _NONE if instant is None else instant


def _instant(number: float) -> float | None:
    return None if isnan(number) else number
