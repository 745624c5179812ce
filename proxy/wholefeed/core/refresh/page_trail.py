"""One walk through pages (rule R6).

Pages are not immutable, so what differs from a walk along archive documents is what is asked for again, and
what is kept:

    all was collected before (a closing trail)    every page is revalidated, up to the first that brought
                                                  nothing new: a normal poll costs one page
    it was not, or something is missing           a page behind one that brought something new, or behind
                                                  a gap; the others come from the store

A page is not stored where each of its entries is served from another document and none of its copies is the
better one. What leaves a page is remembered, unless another document holds it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wholefeed.core.notes import DocumentUnavailable, Note, PageGone
from wholefeed.core.refresh.adding import adds_to
from wholefeed.core.refresh.events import (
    Arrived,
    Confirmed,
    Failed,
    Failure,
    FreshDocument,
    KnownRead,
    Stored,
)
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import Put, ReadKnown, Steps, Touch, carry_out, outcome
from wholefeed.core.refresh.progress import Answers, Progress
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.trail import TrailSteps
from wholefeed.core.refresh.trail_start import TrailStart
from wholefeed.core.terms import Role
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.seen import has_news
from wholefeed.core.walk.trails import Trail
from wholefeed.core.walk.walk import Walk

_GONE: Final = frozenset({404, 410})


class PageTrailSteps(TrailSteps):
    """The part of a decision that walks along one trail of a paged feed.

    Args:
        given: What the refresh starts from.
        walk: Says which page is next.
        start: What is stored.
        answers: What came of the documents that were asked for.
        progress: Kept up to date.
        trail: The trail.
        has_news: Whether the subscription document brought anything that was not stored.
        ascends: Whether pages are known to get newer along `next`: then the last one is asked for again.
        is_interrupted: Whether an earlier refresh did not come to its end: then every page is.
    """

    def __init__(
        self,
        given: Given,
        walk: Walk,
        start: TrailStart,
        answers: Answers,
        progress: Progress,
        *,
        trail: Trail,
        has_news: bool,
        ascends: bool,
        is_interrupted: bool,
    ) -> None:
        super().__init__(given, walk, start, answers, progress)
        self._trail = trail
        self._ascends = ascends
        self._is_interrupted = is_interrupted
        self._news = {walk.tip.url: has_news}
        """Of the subscription document and each page fetched: whether it brought anything not stored."""
        self._is_past_gap = False

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.memento:
            return super()._is_asked_again(url, row)
        brought_news = self._news.get(self._walk.tip.url, False)
        is_open = self._trail.is_closing or self._is_past_gap or brought_news
        return is_open or self._leads_to_gone(row) or super()._is_asked_again(url, row)

    def _leads_to_gone(self, row: StoredDocument) -> bool:
        """Whether a page links to one that was gone and is asked for again: does it still?"""
        behind = self._trail.target(row.links) or ""
        attempt = self._given.missing.get(behind)
        return attempt is not None and attempt.status in _GONE and not self._given.waits(behind)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        behind = document_key(self._trail.target(row.links) or "")
        return self._is_interrupted or (self._ascends and behind not in self._start.stored)

    def _is_gap(self, url: str) -> bool:
        """Return whether the page could not be had the last time: its stored copy may be outdated."""
        return url in self._given.missing and not self._given.is_truncated(url)

    def _may_replace(self, _row: StoredDocument, _fresh: FreshDocument) -> bool:
        """Always: what leaves a page is remembered, so one that broke off takes nothing away."""
        return True

    def _serves(self, row: StoredDocument, event: Confirmed | Failed | Arrived) -> bool:
        return isinstance(event, Confirmed) or bool(row.memento)

    def _arrival(self, url: str, fresh: FreshDocument) -> Steps[Arrival]:
        if self._trail.is_closing:  # then one page is asked for at a time
            yield from self._compare(url, fresh)
            return replace(fresh.arrival, news=self._news[url])
        return fresh.arrival

    def _compare(self, url: str, fresh: FreshDocument) -> Steps[None]:
        """Find out whether a page brought anything that is not stored.

        When those before it are stored and not earlier: the order in which pages come decides nothing.
        """
        keys = list(fresh.arrival.keys or ())
        read = yield from outcome(ReadKnown(tuple(identity for identity, _ in keys), url=url), KnownRead)
        self._news[url] = has_news(keys, read.known)

    def _adds(self, url: str, fresh: FreshDocument) -> Steps[bool]:
        """R6: whether a page holds an entry that no other document does, memory excepted, or a better copy.

        What is remembered is not counted: such a copy leaves when its identity is settled (R8).
        """
        if self._news[url]:
            return True
        keys = list(fresh.arrival.keys or ())
        read = yield from outcome(
            ReadKnown(tuple(identity for identity, _ in keys), with_copies=True, url=url), KnownRead
        )
        return adds_to(read, fresh, self._given.clock.now)

    def _catch_up(self) -> Steps[None]:
        """Whether a stored page is asked for again depends on what the pages before it brought."""
        if self._start.stored_as(self._walk.wanted[0].url) is not None:
            yield from self._keep_joined()

    def _confirmed(self, row: StoredDocument) -> Arrival:
        self._is_past_gap |= self._is_gap(row.url)
        self._news[row.url] = row.rank is None  # while it was no part of the feed, nobody saw what changed
        return replace(row.as_arrival(), news=not self._trail.is_closing)

    def _touch(self, row: StoredDocument) -> Touch:
        return Touch(document=row.id, is_settled=None)

    def _objection(self, url: str, failure: Failure) -> Note:
        """R6: a page that was never seen and is not there is the end; one that was collected is missing."""
        if failure.publisher_status in _GONE and self._start.stored_as(url) is None:
            return PageGone(url, failure.slug)
        return DocumentUnavailable(url, failure.slug)

    def _keep(self, arrival: Arrival, place: int) -> Steps[int | None]:
        row, fresh = self._start.stored_as(arrival.url), self._answers.fresh.get(document_key(arrival.url))
        self._walked.notes += self._given.remarks(arrival.url, fresh, row)
        if fresh is not None:
            self._is_past_gap |= row is None or self._is_gap(arrival.url)
            if arrival.url not in self._news:
                yield from self._compare(arrival.url, fresh)
        if row is None and fresh is not None and not (yield from self._adds(arrival.url, fresh)):
            yield from self._drop(arrival.url)
            return None
        rank = self._start.rank(row, place)
        if row is not None and (fresh is None or (_is_same(row, fresh) and not row.memento)):
            if fresh is not None:
                yield from self._drop(arrival.url)
                yield from carry_out(self._touch(row))
            yield from self._reattach(row, rank)
            return row.id
        assert fresh is not None, "what joins without a fetch is stored"
        put = Put(url=arrival.url, stored_url=arrival.url, role=Role.PAGE, rank=rank, remembers=row)
        stored = yield from outcome(put, Stored)
        del self._answers.fresh[document_key(arrival.url)]
        return stored.document


def _is_same(row: StoredDocument, fresh: FreshDocument) -> bool:
    return row.digest == fresh.arrival.digest and row.links == fresh.arrival.links
