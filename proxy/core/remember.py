"""Remembered copies: entries that left the subscription document (rules R7, R8).

They are kept in synthetic feed documents of the feed's own format, so that one parser and one way of
sending serve all. The newest is open and grows at its top until it is sealed at about 256 entries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from proxy.core.fragments import Fragments, synthesize
from proxy.core.model import EntryId, FeedDocument

SEALED_ENTRIES: Final = 256


@dataclass(frozen=True, slots=True)
class MemoryDocument:
    """A synthetic document of remembered copies, newest first."""

    number: int
    """Counted up from 1; the URL and the rank come from it."""
    text: bytes
    snapshot_at: tuple[float | None, ...]
    """Per entry: update instant of the subscription document that it last stood in (R10)."""

    @property
    def is_sealed(self) -> bool:
        """Whether no more copies will be added."""
        return len(self.snapshot_at) >= SEALED_ENTRIES


@dataclass(frozen=True, slots=True)
class OpenMemory:
    """The newest memory document as it is stored."""

    number: int
    document: FeedDocument
    snapshot_at: Sequence[float | None]


def remember(
    old: FeedDocument, present: Collection[EntryId], memory: OpenMemory | None, *, next_number: int = 1
) -> list[MemoryDocument]:
    """Return the memory documents to write so that no entry of `old` is lost.

    Args:
        old: The subscription document that is being replaced.
        present: The identities in the document that replaces it.
        memory: The newest memory document that is not sealed, if there is one.
        next_number: What the first new memory document is numbered where none is open.

    Returns:
        The documents to write, the oldest first; empty when no entry left.
    """
    fragments = Fragments(old)
    left = [n for n, entry in enumerate(old.entries) if entry.identity not in present]
    if not left:
        return []
    gone = {old.entries[n].identity for n in left}
    copies = [(fragments.entry(n), old.head.updated_at) for n in left]
    number = next_number
    if memory is not None:
        number = memory.number
        held = Fragments(memory.document)
        copies += [
            (held.entry(n), memory.snapshot_at[n])
            for n, entry in enumerate(memory.document.entries)
            if entry.identity not in gone
        ]
    return _documents(old, copies, number)


def _documents(
    like: FeedDocument, copies: list[tuple[bytes, float | None]], number: int
) -> list[MemoryDocument]:
    """Fill from the old end, so that sealed documents stay as they are."""
    documents = []
    while copies:
        filled, copies = copies[-SEALED_ENTRIES:], copies[:-SEALED_ENTRIES]
        text = synthesize(like.family, like.version, [fragment for fragment, _ in filled])
        documents.append(MemoryDocument(number, text, tuple(at for _, at in filled)))
        number += 1
    return documents
