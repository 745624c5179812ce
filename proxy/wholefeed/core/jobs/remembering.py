"""A document that is being replaced -> the memory documents to write for it (rules R7, R8)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from wholefeed.core.compose.remember import CopyDates, OpenMemory, remember
from wholefeed.core.formats import MEDIA_TYPE
from wholefeed.core.jobs.reading import DocumentFacts
from wholefeed.core.jobs.rendering import Stored
from wholefeed.core.model import EntryId, FeedDocument
from wholefeed.core.terms import MEMORY_URL, Family

_XML_TYPE: Final = "application/xml; charset=utf-8"


class StoredMemory(NamedTuple):
    """The newest memory document, as it is stored, or as it was parsed."""

    number: int
    document: Stored | FeedDocument
    dates: Sequence[CopyDates]
    """Per entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMemory:
    """A memory document to store."""

    number: int
    document: Stored
    facts: DocumentFacts
    digest: bytes
    """SHA-256 of the body."""
    is_sealed: bool
    parsed: FeedDocument | None = None
    """Where that was asked for."""


def remember_copies(
    old: Stored | FeedDocument,
    present: Collection[EntryId],
    memory: StoredMemory | None,
    *,
    ambiguous: Collection[EntryId] = (),
    fetched_at: float,
    next_number: int,
    latest: float | None = None,
    keeps_parsed: bool = False,
) -> list[WrittenMemory]:
    """Return the memory documents to write so that no entry of `old` is lost.

    Args:
        old: What is replaced.
        present: The identities that need not be remembered.
        memory: The newest memory document that is not sealed, if there is one.
        ambiguous: Keys that identify nothing in the feed (R9).
        fetched_at: When `old` was fetched, epoch seconds.
        next_number: What the first new memory document is numbered.
        latest: The date of `old` counts as at most this.
        keeps_parsed: Whether to return them parsed, too: for small ones, in the same process.

    Raises:
        ParseError: Only when another parser has stored one of them.
    """
    held = None
    if memory is not None:
        held = OpenMemory(memory.number, _parsed(memory.document).identified(ambiguous), memory.dates)
    document = _parsed(old).identified(ambiguous)
    media_type = MEDIA_TYPE[Family.JSON] if document.family is Family.JSON else _XML_TYPE
    written = []
    for each in remember(
        document, present, held, fetched_at=fetched_at, next_number=next_number, latest=latest
    ):
        stored = Stored(each.text, f"{MEMORY_URL}{each.number}", media_type)
        parsed = stored.parse()
        written.append(
            WrittenMemory(
                number=each.number,
                document=stored,
                facts=DocumentFacts.of(parsed, each.dates),
                digest=hashlib.sha256(each.text).digest(),
                is_sealed=each.is_sealed,
                parsed=parsed if keeps_parsed else None,
            )
        )
    return written


def _parsed(document: Stored | FeedDocument) -> FeedDocument:
    return document.parse() if isinstance(document, Stored) else document
