"""A feed document by document: what its chain consists of (R16), and how far back that reaches.

    chain = account_of(overview, rows, superseded)      # its documents, what is missing among them
    timeline = timeline_of(chain, await store.read(lambda db: months(db, feed_id)))

All of it is made of rows that were read (`Watching.account`).
"""

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
"""What led to a document behind a missing one (R34) instead of a link: its number or date."""
_PAGING: Final = (Relation.NEXT, Relation.PREVIOUS, Relation.PREV, Relation.FIRST, Relation.LAST)
"""Relations that tie the documents of a paged feed together."""
_NO_LEAD: Final = ("", "")
"""Neither a relation nor a document that bears it."""


class DocumentStanding(StrEnum):
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
    """Of what a page of the publisher's lists (H7) that page's."""
    standing: DocumentStanding
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
    is_listed: bool = False
    """Whether it is a page of a list (H7), which is read for the entries that it names."""


def account_of(
    overview: Overview, rows: Sequence[DocumentRow], superseded: Mapping[int, int]
) -> list[ChainDocument]:
    """Return the account of a feed: its documents, stored and missing, and what led to each.

    It stands in output order (R20), as `rows` does; what is missing of a chain behind the document that links
    to it, what is detached at the end. `superseded` has how many entries of each document are not live.
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
    """Return what led to the documents behind missing ones, as `_leads` does, by the feed's notes."""
    found = (note for note in json.loads(notes) if note["code"] == JumpedHole.code)
    return {document_key(note["goes_on_at"]): (_GUESSED, note["url"]) for note in found}


def _leads(kind: Kind, rows: Sequence[DocumentRow]) -> dict[str, tuple[str, str]]:
    """Return which link leads to a document, and where it stands, by the `document_key` of its target."""
    leads: dict[str, tuple[str, str]] = {}
    for relation in _relations(kind, rows):
        for row in rows:
            target = row.links.get(relation)
            if target is not None and document_key(target) != document_key(row.url):
                leads.setdefault(document_key(target), (relation, row.url))
    return leads


def _relations(kind: Kind, rows: Sequence[DocumentRow]) -> Iterator[str]:
    """Give the relations that the feed's documents are tied together by."""
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
    """Return where a missing document stands: behind the one that links to it, and what that remembers."""
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
    """How far back a feed's history reaches, and where something is missing of it."""

    chart: Chart | None
    """None where no entry is dated."""
    undated: int
    """Entries that bear no date, or none that can be read."""
    holes: Mapping[str, Hole]
    """Where the missing documents are, by their URLs."""


def timeline_of(chain: Sequence[ChainDocument], months: Mapping[int, Months]) -> Timeline:
    """Return the timeline of a feed by its account and the entries that each document has of each month."""
    total: Counter[int | None] = Counter()
    for each in months.values():
        total.update(each)
    undated = total.pop(None, 0)
    dated = {month: entries for month, entries in total.items() if month is not None}
    attached = [
        _place_in_time(each, months) for each in chain if each.standing is not DocumentStanding.DETACHED
    ]
    holes = {hole.url: hole for hole in holes_of(attached)}
    # what nothing led to stands at the end of the account, which is not where it belongs
    holes |= {each.url: Hole(each.url, None, None) for each in chain if _is_lost(each)}
    return Timeline(chart_of(dated, holes.values()), undated, holes)


def _place_in_time(document: ChainDocument, months: Mapping[int, Months]) -> ChartPlace:
    if document.standing is DocumentStanding.MISSING:
        return ChartPlace(document.url, is_missing=True, span=None)
    row = document.document
    # what is remembered is of any time
    known = [] if row is None or not row.origin.policy.holds else months.get(row.id, {})
    dated = [month for month in known if month is not None]
    return ChartPlace(
        document.url, is_missing=False, span=ChartSpan(min(dated), max(dated)) if dated else None
    )


def _is_lost(document: ChainDocument) -> bool:
    return document.standing is DocumentStanding.MISSING and not document.source
