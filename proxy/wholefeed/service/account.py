"""Tell a feed's chain document by document: what led to it, how it stands, what it holds.

    account = account_of(overview, rows, superseded)

It stands in output order (R20), what is missing of a chain behind the document that links to it.

Nothing here changes or fetches anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wholefeed.core.links.classify import older_target, recall
from wholefeed.core.notes import JumpedHole
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Kind, Relation, Role
from wholefeed.core.text.urls import document_key
from wholefeed.store.rows import DocumentRow, Overview

_PAGING: Final = (Relation.NEXT, Relation.PREVIOUS, Relation.PREV, Relation.FIRST, Relation.LAST)
_NO_LEAD: Final = ("", "")
_GUESSED: Final = "guessed"
"""What led to a document behind a missing one (R34): its number or date."""


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
    """Of the link that leads to it; `guessed` behind a missing document (R34); empty for the subscription
    document and where no link is known."""
    source: str
    """The document that bears that link, or the missing one."""
    document: DocumentRow | None = None
    """None when it is missing."""
    duplicates: int = 0
    """Entries of it that another copy stands for, or that were deleted."""
    attempt: Attempt | None = None
    """Why it, or the rest of it, could not be had."""


def account_of(
    overview: Overview, rows: Sequence[DocumentRow], superseded: Mapping[int, int]
) -> list[ChainDocument]:
    """Return the account of a feed.

    Args:
        overview: The feed as it was published last, and what could not be had of it.
        rows: The stored documents in output order, the detached ones last.
        superseded: How many entries of each document are not live.
    """
    kind = overview.feed.kind
    leads = _jumps(overview.feed.notes) | _leads(kind, rows)
    failed = {document_key(attempt.url): attempt for attempt in overview.failures.missing}
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
    chain = told[:attached]
    for each in missing:
        chain.insert(_place(kind, each, chain), each)
    return [*chain, *told[attached:]]


def _jumps(notes: str) -> dict[str, tuple[str, str]]:
    """Return what led to the documents behind missing ones, as `_leads` does; the feed's notes are JSON."""
    found = (note for note in json.loads(notes) if note["code"] == JumpedHole.__name__)
    return {document_key(note["goes_on_at"]): (_GUESSED, note["url"]) for note in found}


def _place(kind: Kind, missing: ChainDocument, chain: Sequence[ChainDocument]) -> int:
    """Return where a missing document stands: behind the one that links to it, and what that remembers."""
    urls = [each.url for each in chain]
    if kind is Kind.PAGED or missing.source not in urls:
        return len(chain)
    place = urls.index(missing.source) + 1
    while place < len(chain) and (row := chain[place].document) is not None and row.role is Role.MEMORY:
        place += 1
    return place


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
