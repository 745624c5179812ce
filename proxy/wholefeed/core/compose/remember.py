"""Remembered copies: entries that left the subscription document (rules R7, R8).

They are kept in synthetic feed documents of the feed's own format, so that one parser and one way of
sending serve all. The newest is open and grows at its top until it is sealed, at 32 entries or about
1 MiB: what is made of it stays as small as any other segment.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from wholefeed.core.compose.synthesize import synthesize
from wholefeed.core.merge.merge import comparable, counted_instant
from wholefeed.core.model import EntryId, FeedDocument
from wholefeed.core.verbatim.fragments_of import fragments_of

SEALED_ENTRIES: Final = 32
SEALED_BYTES: Final = 1 << 20
"""Of the entries' text. A larger entry has a document to itself."""


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
    is_sealed: bool
    """Whether no more copies will be added."""


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
    latest: float | None = None,
) -> list[MemoryDocument]:
    """Return the memory documents to write so that no entry of `old` is lost.

    Args:
        old: The subscription document that is being replaced.
        present: The identities in the document that replaces it.
        memory: The newest memory document that is not sealed, if there is one.
        fetched_at: When `old` was fetched, epoch seconds.
        next_number: What the first new memory document is numbered, the others after it; no other has it.
        latest: The date of `old` counts as at most this: a page's as the subscription document's (R10).

    Returns:
        The documents to write, the oldest first; empty when no entry left, or none that is not remembered
        with a later date (R8).
    """
    fragments = fragments_of(old)
    held = _held(memory)
    dated = old.head.updated_at
    if dated is not None and latest is not None:
        dated = min(dated, latest)
    best = {copy.identity: copy.dates for copy in reversed(held)}
    copies = []
    for n, entry in enumerate(old.entries):
        if entry.identity in present:
            continue
        dates = CopyDates(counted_instant(entry.updated_at, fetched_at), dated)
        if not _is_better(best.get(entry.identity), dates):
            copies.append(_Copy(fragments.entry(n), entry.identity, dates))
    if not copies:
        return []
    gone = {copy.identity for copy in copies}
    numbers: Iterator[int] = itertools.count(next_number)
    if memory is not None:
        numbers = itertools.chain([memory.number], numbers)
        copies += [copy for copy in held if copy.identity not in gone]
    return _documents(old, copies, numbers)


class _Copy(NamedTuple):
    fragment: bytes
    identity: EntryId
    dates: CopyDates


def _held(memory: OpenMemory | None) -> list[_Copy]:
    if memory is None:
        return []
    fragments, entries = fragments_of(memory.document), memory.document.entries
    return [_Copy(fragments.entry(n), each.identity, memory.dates[n]) for n, each in enumerate(entries)]


def _is_better(held: CopyDates | None, leaving: CopyDates) -> bool:
    """Return whether R10 prefers a remembered copy to one that leaves now; of equal ones the latter."""
    return held is not None and comparable(*held) > comparable(*leaving)


def _documents(like: FeedDocument, copies: Sequence[_Copy], numbers: Iterator[int]) -> list[MemoryDocument]:
    """Fill from the old end, so that sealed documents stay as they are."""
    documents = []
    end = len(copies)
    while end:
        start, is_sealed = _filled(copies, end)
        fragments, _, dates = zip(*copies[start:end], strict=True)
        text = synthesize(like.family, like.version, fragments)
        documents.append(MemoryDocument(next(numbers), text, dates, is_sealed))
        end = start
    return documents


def _filled(copies: Sequence[_Copy], end: int) -> tuple[int, bool]:
    """Return where the document begins that ends before `end`, and whether it is full."""
    start, size = end, 0
    while start and end - start < SEALED_ENTRIES and size < SEALED_BYTES:
        size += len(copies[start - 1].fragment)
        if start < end and size > SEALED_BYTES:
            return start, True
        start -= 1
    return start, end - start == SEALED_ENTRIES or size >= SEALED_BYTES
