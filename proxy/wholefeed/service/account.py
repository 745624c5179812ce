"""Tell a feed's chain document by document: what led to it, how it stands, what it holds.

    account = account_of(kind, rows, attempts, superseded)      # in output order (R20), then what is missing

Nothing here changes or fetches anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wholefeed.core.links.classify import older_target, recall
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Kind, Relation, Role
from wholefeed.core.text.urls import document_key
from wholefeed.store.rows import DocumentRow

_PAGING: Final = (Relation.NEXT, Relation.PREVIOUS, Relation.PREV, Relation.FIRST, Relation.LAST)
_NO_LEAD: Final = ("", "")


class Standing(StrEnum):
    """How a document of the chain stands."""

    KEPT = "kept"
    """Stored; asked for again when it is due."""
    SETTLED = "settled"
    """Stored for good; never fetched again (R13)."""
    TRUNCATED = "truncated"
    """Stored, but it broke off (docs/faults.md row 49)."""
    MISSING = "missing"
    """Linked to, and could not be had."""
    DETACHED = "detached"
    """Stored, but no longer part of the feed (R15, R25)."""


@dataclass(frozen=True, slots=True)
class ChainDocument:
    """One document of the account."""

    url: str
    standing: Standing
    relation: str
    """Of the link that leads to it; empty for the subscription document and where no link is known."""
    source: str
    """The document that bears that link."""
    document: DocumentRow | None = None
    """None when it is missing."""
    duplicates: int = 0
    """Entries of it that another copy stands for, or that were deleted."""
    attempt: Attempt | None = None
    """Why it, or the rest of it, could not be had."""


def account_of(
    kind: Kind,
    rows: Sequence[DocumentRow],
    attempts: Sequence[Attempt],
    superseded: Mapping[int, int],
) -> list[ChainDocument]:
    """Return the account of a feed.

    Args:
        kind: What the subscription document says the feed is.
        rows: The stored documents in output order, the detached ones last.
        attempts: What could not be had.
        superseded: How many entries of each document are not live.
    """
    leads = _leads(kind, rows)
    failed = {document_key(attempt.url): attempt for attempt in attempts}
    told: list[ChainDocument] = []
    for row in rows:
        keys = (document_key(row.url), document_key(row.final_url))
        lead = _NO_LEAD
        if row.role in (Role.ARCHIVE, Role.PAGE):
            lead = next((leads[key] for key in keys if key in leads), _NO_LEAD)
        attempt = next((failed.pop(key) for key in keys if key in failed), None)
        told.append(
            ChainDocument(row.url, _standing(row, attempt), *lead, row, superseded.get(row.id, 0), attempt)
        )
    attached = sum(row.rank is not None for row in rows)
    missing = [
        ChainDocument(attempt.url, Standing.MISSING, *leads.get(key, _NO_LEAD), attempt=attempt)
        for key, attempt in failed.items()
    ]
    return [*told[:attached], *missing, *told[attached:]]


def _standing(row: DocumentRow, attempt: Attempt | None) -> Standing:
    if row.rank is None:
        return Standing.DETACHED
    if attempt is not None and attempt.reason == DocumentTruncated.slug:
        return Standing.TRUNCATED
    return Standing.SETTLED if row.is_final else Standing.KEPT


def _leads(kind: Kind, rows: Sequence[DocumentRow]) -> dict[str, tuple[str, str]]:
    """Return which link leads to a document, and where it stands, by the `document_key` of its target."""
    leads: dict[str, tuple[str, str]] = {}
    for relation in _relations(kind, rows):
        for row in rows:
            target = older_target(row.links, relation)
            if target is not None and document_key(target) != document_key(row.url):
                leads.setdefault(document_key(target), (relation, row.url))
    return leads


def _relations(kind: Kind, rows: Sequence[DocumentRow]) -> Iterator[str]:
    """The relations that the feed's documents are tied together by."""
    if kind is Kind.PAGED:
        yield from _PAGING
    elif rows and kind in (Kind.ARCHIVED, Kind.LEGACY):
        yield recall(rows[0].links, is_archive=rows[0].is_marked).relation
