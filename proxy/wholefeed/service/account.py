"""The account of a feed: its chain of documents (R16), and how far back they reach."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wholefeed.core.chart import Chart, ChartPlace, ChartSpan, Hole, chart_of, holes_of
from wholefeed.core.links import recall
from wholefeed.core.model import Kind, Relation, Role
from wholefeed.core.notes import DocumentTruncated, JumpedHole
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.text.urls import document_key
from wholefeed.store.rows import DocumentRow, Overview
from wholefeed.store.tables.segment_table import Months

_GUESSED: Final = "guessed"
"""Relation of a document behind a missing one, found without a link (R34)."""
_PAGING: Final = (Relation.NEXT, Relation.PREVIOUS, Relation.PREV, Relation.FIRST, Relation.LAST)
_NO_LEAD: Final = ("", "")


class DocumentStanding(StrEnum):
    KEPT = "kept"
    """Stored; fetched again when due."""
    SETTLED = "settled"
    """Never fetched again (R13)."""
    TRUNCATED = "truncated"
    """Stored, but broken off (docs/faults.md row 49)."""
    MISSING = "missing"
    """Linked to, but not obtained."""
    DETACHED = "detached"
    """Stored, but no longer part of the feed (R15, R25)."""


@dataclass(frozen=True, slots=True)
class ChainDocument:
    url: str
    """For a listed document (H7), the publisher's page."""
    standing: DocumentStanding
    relation: str
    """Empty: no known link; `guessed` behind a missing document (R34)."""
    source: str
    """URL of the linking document, or of the missing one."""
    document: DocumentRow | None = None
    """None: missing."""
    duplicates: int = 0
    """Entries replaced by another copy, or deleted."""
    attempt: Attempt | None = None
    """The failed fetch of the document, or of its truncated rest."""
    is_listed: bool = False


def account_of(
    overview: Overview, rows: Sequence[DocumentRow], superseded: Mapping[int, int]
) -> list[ChainDocument]:
    """Return the account in output order (R20), detached documents last.

    `superseded` counts each document's entries that are not live.
    """
    kind = overview.feed.kind
    lists = {each.url for each in ListingState.read(overview.feed.listing).missing}
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
            ChainDocument(
                row.memento if row.is_listed else row.url,
                _standing(row, attempt),
                *lead,
                row,
                superseded.get(row.id, 0),
                attempt,
                row.is_listed,
            )
        )
    attached = sum(row.rank is not None for row in rows)
    missing = [
        ChainDocument(
            attempt.url,
            DocumentStanding.MISSING,
            *leads.get(key, _NO_LEAD),
            attempt=attempt,
            is_listed=attempt.url in lists,
        )
        for key, attempt in failed.items()
    ]
    chain = told[:attached]
    for each in missing:
        chain.insert(_place_in_chain(kind, each, chain), each)
    return [*chain, *told[attached:]]


def _jumps(notes: str) -> dict[str, tuple[str, str]]:
    found = (note for note in json.loads(notes) if note["code"] == JumpedHole.code)
    return {document_key(note["goes_on_at"]): (_GUESSED, note["url"]) for note in found}


def _leads(kind: Kind, rows: Sequence[DocumentRow]) -> dict[str, tuple[str, str]]:
    """Return relation and linking document by the target's `document_key`."""
    leads: dict[str, tuple[str, str]] = {}
    for relation in _relations(kind, rows):
        for row in rows:
            target = row.links.get(relation)
            if target is not None and document_key(target) != document_key(row.url):
                leads.setdefault(document_key(target), (relation, row.url))
    return leads


def _relations(kind: Kind, rows: Sequence[DocumentRow]) -> Iterator[str]:
    if kind is Kind.PAGED:
        yield from _PAGING
    elif rows and kind in (Kind.ARCHIVED, Kind.LEGACY):
        yield recall(rows[0].links, is_archive=rows[0].is_marked).relation


def _standing(row: DocumentRow, attempt: Attempt | None) -> DocumentStanding:
    if row.rank is None:
        return DocumentStanding.DETACHED
    if attempt is not None and attempt.reason == DocumentTruncated.slug:
        return DocumentStanding.TRUNCATED
    return DocumentStanding.SETTLED if row.is_final else DocumentStanding.KEPT


def _place_in_chain(kind: Kind, missing: ChainDocument, chain: Sequence[ChainDocument]) -> int:
    """Return the index behind the linking document and its memory documents."""
    urls = [each.url for each in chain]
    if kind is Kind.PAGED or missing.source not in urls:
        return len(chain)
    place = urls.index(missing.source) + 1
    while place < len(chain) and (row := chain[place].document) is not None and row.role is Role.MEMORY:
        place += 1
    return place


# The timeline


@dataclass(frozen=True, slots=True)
class Timeline:
    """A feed's entries by month, and its holes."""

    chart: Chart | None
    """None: no entry is dated."""
    undated: int
    """Entries without a readable date."""
    holes: Mapping[str, Hole]
    """By URL of the missing document."""


def timeline_of(chain: Sequence[ChainDocument], months: Mapping[int, Months]) -> Timeline:
    """Return the timeline; `months` counts entries by document and month."""
    total: Counter[int | None] = Counter()
    for each in months.values():
        total.update(each)
    undated = total.pop(None, 0)
    dated = {month: entries for month, entries in total.items() if month is not None}
    attached = [
        _place_in_time(each, months) for each in chain if each.standing is not DocumentStanding.DETACHED
    ]
    holes = {hole.url: hole for hole in holes_of(attached)}
    # the account puts a document without a lead at its end, but its place in time is unknown
    holes |= {each.url: Hole(each.url, None, None) for each in chain if _is_lost(each)}
    return Timeline(chart_of(dated, holes.values()), undated, holes)


def _place_in_time(document: ChainDocument, months: Mapping[int, Months]) -> ChartPlace:
    if document.standing is DocumentStanding.MISSING:
        return ChartPlace(document.url, is_missing=True, span=None)
    row = document.document
    # remembered entries may be of any time
    known = [] if row is None or not row.origin.policy.holds else months.get(row.id, {})
    dated = [month for month in known if month is not None]
    return ChartPlace(
        document.url, is_missing=False, span=ChartSpan(min(dated), max(dated)) if dated else None
    )


def _is_lost(document: ChainDocument) -> bool:
    return document.standing is DocumentStanding.MISSING and not document.source
