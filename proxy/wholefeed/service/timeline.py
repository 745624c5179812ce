"""How far back a feed's history reaches, and where something is missing of it.

timeline = timeline_of(chain, await store.read(lambda db: months(db, feed.id)))
timeline.chart, timeline.undated, timeline.holes
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wholefeed.core.chart import Chart, Hole, Place, Span, chart_of, holes_of
from wholefeed.core.terms import Role
from wholefeed.service.account import ChainDocument, Standing
from wholefeed.store.tables.months import Months


@dataclass(frozen=True, slots=True)
class Timeline:
    """Of one feed."""

    chart: Chart | None
    """None where no entry is dated."""
    undated: int
    """Entries that bear no date, or none that can be read."""
    holes: Mapping[str, Hole]
    """Where the missing documents are, by their URLs."""


def timeline_of(chain: Sequence[ChainDocument], months: Mapping[int, Months]) -> Timeline:
    """Return the timeline of a feed.

    Args:
        chain: Its account.
        months: How many entries each document has of each month, by its number.
    """
    total: Counter[int | None] = Counter()
    for each in months.values():
        total.update(each)
    undated = total.pop(None, 0)
    dated = {month: entries for month, entries in total.items() if month is not None}
    attached = [_place(each, months) for each in chain if each.standing is not Standing.DETACHED]
    holes = {hole.url: hole for hole in holes_of(attached)}
    # what nothing led to stands at the end of the account, which is not where it belongs
    holes |= {each.url: Hole(each.url, None, None) for each in chain if _is_lost(each)}
    return Timeline(chart_of(dated, holes.values()), undated, holes)


def _is_lost(document: ChainDocument) -> bool:
    return document.standing is Standing.MISSING and not document.source


def _place(document: ChainDocument, months: Mapping[int, Months]) -> Place:
    if document.standing is Standing.MISSING:
        return Place(document.url, is_missing=True, span=None)
    row = document.document
    # what is remembered is of any time
    known = [] if row is None or row.role is Role.MEMORY else months.get(row.id, {})
    dated = [month for month in known if month is not None]
    return Place(document.url, is_missing=False, span=Span(min(dated), max(dated)) if dated else None)
