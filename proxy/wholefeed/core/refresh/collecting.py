"""Collecting a history that the publisher has but does not link (rules R26 to R32).

An adapter (`wholefeed.core.adapters`) chooses the pages. An interrupted walk continues: its earlier pages
come from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from wholefeed.core.adapters.base import AdapterJob, AdapterOutcome, Asking
from wholefeed.core.adapters.table import find_adapter
from wholefeed.core.refresh.asking import EndWalk, NoteFeed, PauseHost, ReadEntries, Talk, ask
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.collected_feed import CollectedFeed, read_known
from wholefeed.core.refresh.collecting_failures import CollectingFailures
from wholefeed.core.refresh.collecting_pages import CollectedPages, describe_stored_page
from wholefeed.core.refresh.collecting_requests import PageRequests
from wholefeed.core.refresh.collecting_result import CollectingResult, describe_unasked
from wholefeed.core.refresh.stored import StoredDocument, subscription_of
from wholefeed.core.refresh.subscription import SubscriptionState


class Collecting:
    def __init__(self, feed: CollectedFeed, documents: Sequence[StoredDocument]) -> None:
        self._feed = feed
        self._failures = CollectingFailures(feed.basis)
        self._pages = CollectedPages(feed, documents, self._failures)
        self._requests = PageRequests(feed, self._pages, self._failures)

    @classmethod
    def of(
        cls, basis: Basis, documents: Sequence[StoredDocument], state: SubscriptionState
    ) -> Collecting | None:
        """Return an attempt; None if no adapter fits, or collecting is off."""
        row = subscription_of(documents)
        if row is None or not row.marks or not row.entries or not basis.settings.may_collect(row.final_url):
            return None
        adapter = find_adapter(basis.feed.url, row.final_url, row.family, row.site_id, row.marks)
        if adapter is None:
            return None
        known = read_known(basis.feed, adapter, row.family)
        feed = CollectedFeed(basis=basis, state=state, subscription=row, adapter=adapter, known=known)
        return cls(feed, documents)

    @property
    def is_due(self) -> bool:
        return self._feed.is_due

    @property
    def wants_all(self) -> bool:
        return self._feed.wants_all

    @property
    def has_begun(self) -> bool:
        return self._requests.has_begun

    def is_met(self, url: str) -> bool:
        return self._requests.is_met(url)

    def run(self) -> Talk[WalkResult]:
        if not self._feed.is_due:
            return describe_unasked(self._feed, has_kept=self._pages.has_kept)
        found = yield from (self._ask_for_all() if self._feed.wants_all else self._look_for_news())
        yield EndWalk()
        if self._failures.paused_url and self._failures.retry_at is not None:
            yield PauseHost(self._failures.paused_url, self._failures.retry_at)
        result = CollectingResult(
            feed=self._feed,
            found=found,
            pages=self._pages,
            failures=self._failures,
            is_endless=self._requests.is_endless,
        )
        known = result.knowledge()
        yield NoteFeed(collection=known.written())
        return result.describe(known)

    def _ask_for_all(self) -> Talk[AdapterOutcome | None]:
        if not self._feed.continues_walk:
            start_at = self._feed.known.start_at
            if start_at is None and (entries := (yield from ask(ReadEntries(self._feed.subscription.id)))):
                start_at = entries[-1][1]
            self._feed = self._feed.begin_walk(start_at)
        yield NoteFeed(collection=self._feed.known.written())
        self._pages.begin_walk(self._feed.known.walk)
        return (yield from self._converse(self._feed.adapter.collect))

    def _look_for_news(self) -> Talk[AdapterOutcome | None]:
        found = yield from self._converse(self._feed.adapter.look)
        if found is None or not found.wants_all:
            return found
        self._feed = replace(self._feed, known=found.known)
        return (yield from self._ask_for_all())

    def _converse(self, begin: Callable[[AdapterJob], Asking[AdapterOutcome]]) -> Talk[AdapterOutcome | None]:
        """Respond to an adapter's questions; return its result, or None if it was stopped."""
        asking = begin((yield from self._job()))
        try:
            questions = next(asking)
            while True:
                answers = yield from self._requests.answer(questions)
                if self._failures.stop is not None:
                    asking.close()
                    return None
                questions = asking.send(answers)
        except StopIteration as end:
            found: AdapterOutcome = end.value
            return found

    def _job(self) -> Talk[AdapterJob]:
        feed, row = self._feed, self._feed.subscription
        page = describe_stored_page(row, (yield from ask(ReadEntries(row.id))))
        self._pages.first = page.identities
        return AdapterJob(
            asked_url=feed.basis.feed.url,
            url=row.final_url,
            page=replace(page, validators=feed.validators),
            now=feed.basis.now(),
            site_id=row.site_id,
            has_news=feed.has_news or feed.is_interrupted,
            is_daily=feed.is_daily,
            is_interrupted=feed.is_interrupted,
            known=feed.known,
        )
