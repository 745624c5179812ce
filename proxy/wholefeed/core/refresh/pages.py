"""All pages of a feed: one walk a trail, and the order that they stand in (rule R6)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wholefeed.core.notes import PagesAscend
from wholefeed.core.refresh.intents import Steps
from wholefeed.core.refresh.progress import Walked
from wholefeed.core.refresh.stored import StoredFeed
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.terms import Relation
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.endings import End, Ending
from wholefeed.core.walk.trails import Trail, first_ascent, is_ascending, page_trails
from wholefeed.core.walk.walk import Walk

WalkTrail = Callable[[Trail, Iterable[Arrival]], tuple[Walk, Steps[Walked]]]
"""Makes a walk along a trail, told what other walks have collected, and the steps that take it."""


@dataclass(slots=True)
class _Pages:
    """Pages in the order of `next`, on one side of the document that was asked for."""

    ids: list[int] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)

    def add(self, ids: list[int], arrivals: list[Arrival]) -> None:
        self.ids += ids
        self.arrivals += arrivals


def known_ascent(feed: StoredFeed) -> PagesAscend | None:
    """Return where the pages of a feed get newer along `next`, if that was seen: its news is on the last."""
    if PagesAscend.__name__ not in feed.notes:
        return None
    notes = json.loads(feed.notes)
    return next((PagesAscend(each["url"]) for each in notes if each["code"] == PagesAscend.__name__), None)


def page_steps(
    current: Current,
    walk_trail: WalkTrail,
    *,
    is_whole: bool,
    ascent: PagesAscend | None,
    is_known: Callable[[str], bool],
) -> Steps[Walked]:
    """Collect the pages of a feed from the document that was asked for; come to all of them in order.

    Args:
        current: The document that was asked for.
        walk_trail: Walks along a trail.
        is_whole: Whether all pages were collected before: then each trail ends where nothing is new.
        ascent: Where the stored pages are known to get newer along `next`.
        is_known: Whether a page is stored under a URL.
    """
    asked = current.arrival
    names = (asked.url, asked.final_url, *asked.hops)
    before, behind = _Pages(), _Pages()
    total = Walked()
    passed: list[Arrival] = []
    for trail in page_trails(asked.links, names, is_closing=is_whole, is_known=is_known):
        is_next = trail.relation == Relation.NEXT and not trail.first_relation
        if is_next and is_whole and not current.has_news:
            total.ending = Ending(End.COLLECTED)
            continue
        walk, steps = walk_trail(trail, tuple(passed))
        walked = yield from steps
        met = list(walk.path[1 + len(passed) :])
        passed += met
        step = -1 if trail.is_backward else 1
        side = behind if is_next or trail.first_relation == Relation.LAST else before
        # What repeats other pages is not kept, and the order of the pages is not judged by it: beyond the
        # last page some publishers send the first one again.
        kept = [arrival for arrival in met if arrival.news or is_known(arrival.url)]
        side.add(walked.path[::step], kept[::step])
        total.notes += walked.notes
        total.failures |= walked.failures
        if total.is_true_end:
            total.ending = walked.ending
    _put_in_order(total, asked, before, behind, ascent)
    return total


def _put_in_order(
    total: Walked, asked: Arrival, before: _Pages, behind: _Pages, known: PagesAscend | None
) -> None:
    """R20: newest first, also where the publisher counts its pages from the oldest one."""
    arrivals = [*before.arrivals, asked, *behind.arrivals]
    spans = [arrival.span for arrival in arrivals]
    ascent = first_ascent(spans)
    if ascent is not None:
        total.notes.append(PagesAscend(arrivals[ascent].url))
    elif known is not None:
        total.notes.append(known)
    ids = before.ids + behind.ids
    total.path = ids[::-1] if known is not None or is_ascending(spans) else ids
