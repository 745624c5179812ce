"""Remembered copies: entries that left the subscription document (rules R7, R8).

They are kept in synthetic feed documents of the feed's own format, so that one parser and one way of
sending serve all. The newest is open and grows at its top until it is sealed at about 256 entries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from proxy.core.merge import counted_instant
from proxy.core.model import EntryId, FeedDocument
from proxy.core.synthesize import fragments_of, synthesize

SEALED_ENTRIES: Final = 256


class CopyDates(NamedTuple):
    """What R10 needs to know of a remembered copy, when its document is long gone."""

    updated_at: float | None
    """The update instant that counted when the copy was remembered."""
    document_updated_at: float | None
    """Of the subscription document that it last stood in."""


@dataclass(frozen=True, slots=True)
class MemoryDocument:
    """A synthetic document of remembered copies, newest first."""

    number: int
    """Counted up from 1; the URL and the rank come from it."""
    text: bytes
    dates: tuple[CopyDates, ...]
    """Per entry."""

    @property
    def is_sealed(self) -> bool:
        """Whether no more copies will be added."""
        return len(self.dates) >= SEALED_ENTRIES


@dataclass(frozen=True, slots=True)
class OpenMemory:
    """The newest memory document as it is stored."""

    number: int
    document: FeedDocument
    dates: Sequence[CopyDates]
    """Per entry."""


def remember(
    old: FeedDocument,
    present: Collection[EntryId],
    memory: OpenMemory | None,
    *,
    fetched_at: float,
    next_number: int = 1,
) -> list[MemoryDocument]:
    """Return the memory documents to write so that no entry of `old` is lost.

    Args:
        old: The subscription document that is being replaced.
        present: The identities in the document that replaces it.
        memory: The newest memory document that is not sealed, if there is one.
        fetched_at: When `old` was fetched, epoch seconds.
        next_number: What the first new memory document is numbered where none is open.

    Returns:
        The documents to write, the oldest first; empty when no entry left.
    """
    fragments = fragments_of(old)
    left = [n for n, entry in enumerate(old.entries) if entry.identity not in present]
    if not left:
        return []
    gone = {old.entries[n].identity for n in left}
    copies = [
        _Copy(
            fragments.entry(n),
            old.entries[n].identity,
            CopyDates(counted_instant(old.entries[n].updated_at, fetched_at), old.head.updated_at),
        )
        for n in left
    ]
    number = next_number
    if memory is not None:
        number = memory.number
        held = fragments_of(memory.document)
        copies += [
            _Copy(held.entry(n), entry.identity, memory.dates[n])
            for n, entry in enumerate(memory.document.entries)
            if entry.identity not in gone
        ]
    return _documents(old, copies, number)


class _Copy(NamedTuple):
    fragment: bytes
    identity: EntryId
    dates: CopyDates


def _documents(like: FeedDocument, copies: list[_Copy], number: int) -> list[MemoryDocument]:
    """Fill from the old end, so that sealed documents stay as they are."""
    documents = []
    while copies:
        filled, copies = copies[-SEALED_ENTRIES:], copies[:-SEALED_ENTRIES]
        fragments, identities, dates = zip(*filled, strict=True)
        text = synthesize(like.family, like.version, fragments, identities)
        documents.append(MemoryDocument(number, text, dates))
        number += 1
    return documents
