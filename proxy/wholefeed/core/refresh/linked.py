"""The history behind the links: a chain of archives, or pages (R2, R4, R6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from wholefeed.core.adapters.base import GONE
from wholefeed.core.model import Family, Kind, Relation, Role, State
from wholefeed.core.notes import (
    DocumentUnavailable,
    End,
    Ending,
    LastNotReached,
    NewerNotOlder,
    Note,
    PageGone,
    PagesAscend,
)
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, LedBack, Response
from wholefeed.core.refresh.asking import Fetch, FetchEnded, FindKnown, NextEvent, NoteFeed, Talk, ask
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.responses import Rejected, Responses
from wholefeed.core.refresh.stored import StoredDocument, StoredFeed
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.refresh.walk import walk_archives, walk_pages
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Trail, first_ascent, is_ascending, page_trails


def is_followed(basis: Basis, kind: Kind) -> bool:
    """Return whether to follow the links of such a feed (not for R1, R5 and R7)."""
    is_paged = kind is Kind.PAGED and basis.settings.follows_pages
    return is_paged or kind in (Kind.ARCHIVED, Kind.LEGACY)


def linked_history(
    basis: Basis, documents: Sequence[StoredDocument], subscription: SubscriptionState
) -> Talk[WalkResult]:
    """Walk along the chain, or through pages if it turns out to be pages (R4)."""
    responses, doubts = Responses(), list[Note]()
    if subscription.kind is not Kind.PAGED:
        trail = Trail(relation=subscription.relation, is_tentative=subscription.is_tentative)
        stored = _by_key(documents, Role.ARCHIVE)
        walked = yield from walk_archives(basis, subscription, stored, trail, responses).run()
        doubts = [note for note in walked.notes if note.kind is NewerNotOlder]
        if not doubts:
            return walked
        responses.forget_confirmed()
        yield NoteFeed(kind=Kind.PAGED)
        if not is_followed(basis, Kind.PAGED):
            return replace(walked, state=State.REMEMBERED)
    walked = yield from PagedHistory(basis, documents, subscription, responses).run()
    return replace(walked, notes=[*doubts, *walked.notes])


class PagedHistory:
    def __init__(
        self,
        basis: Basis,
        documents: Sequence[StoredDocument],
        subscription: SubscriptionState,
        responses: Responses,
    ) -> None:
        self._basis = basis
        self._subscription = subscription
        self._responses = responses
        self._stored = _by_key(documents, Role.PAGE)
        self._ascent = find_ascent(basis.feed)
        self._was_paged = (
            _was_paged(basis, subscription.arrival.family) and not basis.missing and self._ascent is None
        )

    def run(self) -> Talk[WalkResult]:
        # Call this once.
        asked, passed = self._subscription.arrival, list[Arrival]()
        before, behind = _FollowedPages(), _FollowedPages()
        total = WalkResult(state=State.PAGED)
        names = (asked.url, asked.final_url, *asked.hops)
        trails = page_trails(asked.links, names, is_closing=self._was_paged, is_known=self._is_stored)
        for trail in trails:
            is_next = trail.relation == Relation.NEXT and not trail.first_relation
            if is_next and self._was_paged and not self._subscription.has_news:
                total.ending = Ending(End.COLLECTED)
                continue
            side = behind if is_next or trail.first_relation == Relation.LAST else before
            walked = yield from self._walk_along(trail, passed, side)
            total.notes += walked.notes
            total.failures |= walked.failures
            total.has_met = walked.has_met
            if total.is_true_end:
                total.ending = walked.ending
            if walked.is_out_of_time:
                break
        _put_in_order(total, asked, before, behind, self._ascent)
        if total.is_true_end and total.ending.end is not End.COLLECTED:
            note = yield from self._look_at_last([asked, *passed], total)
            if note is not None and note not in total.notes:  # a walk may have been there
                total.notes.append(note)
                total.ending = Ending(None, (note,)) if note.partial else total.ending
        return total

    def _is_stored(self, url: str) -> bool:
        return document_key(url) in self._stored

    def _walk_along(self, trail: Trail, passed: list[Arrival], side: _FollowedPages) -> Talk[WalkResult]:
        walk = walk_pages(
            self._basis,
            self._subscription,
            self._stored,
            trail,
            self._responses,
            passed=tuple(passed),
            ascends=self._ascent is not None,
            is_unwatched=_is_unwatched(self._basis.feed),
        )
        walked = yield from walk.run()
        met = list(walk.chain.path[1 + len(passed) :])
        passed += met
        # A repetition is not stored, and does not decide the order of the pages: beyond the
        # last page some publishers send the first one again.
        kept = [arrival for arrival in met if arrival.news or self._is_stored(arrival.url)]
        step = -1 if trail.is_backward else 1
        side.ids += walked.path[::step]
        side.arrivals += kept[::step]
        return walked

    # The page named by `last` (R6)

    def _look_at_last(self, pages: Sequence[Arrival], walked: WalkResult) -> Talk[Note | None]:
        """Return a note on the page named by `last`, if no link led to it."""
        # Some publishers name one page too many, or use another URL for the last one, so that page is
        # fetched.
        asked = pages[0]
        last = asked.links.get(Relation.LAST) or pages[-1].links.get(Relation.LAST) or ""
        # An empty or repeated page exists, but is not the page that `last` promises.
        reached = [asked, *(page for page in pages[1:] if page.entries and page.news)]
        tip = reached[-1]
        names = {document_key(name) for page in reached for name in (page.url, page.final_url, *page.hops)}
        if not last or document_key(last) in names:
            return None
        if self._basis.waits(last):
            return LastNotReached(last)
        match (yield from self._fetch_last(last, walked)):
            case Failure() as failure if failure.publisher_status in GONE:
                return PageGone(last, reason=failure.slug)
            case Failure() as failure:
                walked.failures[last] = failure
                return DocumentUnavailable(last, reason=failure.slug)
            case FreshDocument() as fresh:
                is_last = yield from self._is_among(fresh, reached, walked)
            case LedBack(met_url):
                is_last = document_key(met_url) in {document_key(tip.url), document_key(tip.final_url)}
            case _:
                is_last = False
        return None if is_last else LastNotReached(last)

    def _fetch_last(self, url: str, walked: WalkResult) -> Talk[Response | Rejected | None]:
        """Fetch one more page, unless a walk has; None if the time is over."""
        if not self._responses.has_asked(url):
            row = None if self._basis.request.is_full else self._stored.get(document_key(url))
            yield Fetch(url, row, Relation.LAST, walked.has_met)
        while (response := self._responses.find(url)) is None:
            event = yield from ask(NextEvent(url))
            if event is None:
                return None
            if isinstance(event, FetchEnded):
                self._basis.progress.fetched += 1
                self._responses.take(event.url, event.response)
        return response

    def _is_among(self, last: FreshDocument, pages: Sequence[Arrival], walked: WalkResult) -> Talk[bool]:
        """Return whether the page named by `last` is the last of these pages, or repeats them."""
        # A repetition of the first page, or pages that repeat each other, prove nothing.
        asked, tip = pages[0], pages[-1]
        if last.arrival.digest == asked.digest:
            return tip is asked and Relation.NEXT not in asked.links
        if walked.ending.end is not End.OLDEST:
            return False
        known = yield from ask(FindKnown(last.arrival.url, last.arrival))
        keys = list(last.arrival.keys or ())
        is_repeated = bool(keys) and all(identity in known.updated_at for identity, _ in keys)
        return last.arrival.digest == tip.digest or is_repeated


@dataclass(slots=True)
class _FollowedPages:
    """Pages on one side of the subscription document, in the order of `next`."""

    ids: list[int] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)


def _put_in_order(
    total: WalkResult, asked: Arrival, before: _FollowedPages, behind: _FollowedPages, known: Note | None
) -> None:
    """Put the pages in order, newest first (R20), even if numbered from the oldest."""
    arrivals = [*before.arrivals, asked, *behind.arrivals]
    spans = [arrival.span for arrival in arrivals]
    ascent = first_ascent(spans)
    if ascent is not None:
        total.notes.append(PagesAscend(arrivals[ascent].url))
    elif known is not None:
        total.notes.append(known)
    ids = before.ids + behind.ids
    total.path = ids[::-1] if known is not None or is_ascending(spans) else ids


def find_ascent(feed: StoredFeed) -> Note | None:
    """Return the stored note on pages that get newer along `next`, if any."""
    if PagesAscend.code not in feed.notes:
        return None
    notes = json.loads(feed.notes)
    return next((PagesAscend(each["url"]) for each in notes if each["code"] == PagesAscend.code), None)


def _was_paged(basis: Basis, family: Family) -> bool:
    """Return whether all pages were read before, in the present family (R23)."""
    feed = basis.feed
    is_ended = feed.state is State.PAGED and not feed.is_walking and not _is_interrupted(feed)
    return is_ended and feed.family is family and not basis.request.is_full


def _is_unwatched(feed: StoredFeed) -> bool:
    """Return whether stored pages may be outdated because nobody has looked for a while."""
    # An earlier refresh was interrupted, the feed was not paged, or its pages were not followed.
    was_otherwise = feed.state in (State.COMPLETE, State.COLLECTED, State.REMEMBERED)
    return _is_interrupted(feed) or feed.kind is not Kind.PAGED or was_otherwise


def _is_interrupted(feed: StoredFeed) -> bool:
    """Return whether a refresh was interrupted whose feed had ended a walk before."""
    # The stored documents of the refresh no longer count as news, although unread pages may lie behind them.
    has_ended = feed.state in (State.PAGED, State.PARTIAL) and not feed.is_walking
    return has_ended and feed.revision != feed.published_revision


def _by_key(documents: Sequence[StoredDocument], role: Role) -> Mapping[str, StoredDocument]:
    return {document_key(row.url): row for row in documents if row.role is role}
