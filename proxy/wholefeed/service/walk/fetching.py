"""The documents of a walk that are being fetched, and those that have come and wait to be kept.

Tells of them in the order in which they come; which to fetch, and what becomes of them, is decided elsewhere
(`wholefeed.core.refresh`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, assert_never

from wholefeed.core.jobs.rendering import Style
from wholefeed.core.refresh import intents
from wholefeed.core.refresh.events import (
    Answered,
    Arrived,
    CarriedOut,
    Confirmed,
    Event,
    Failed,
    LedBack,
    TimeOver,
)
from wholefeed.core.refresh.page_asking import AT_ONCE
from wholefeed.core.walk.lookahead import next_urls
from wholefeed.counts import Counts
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.fetched import Fetched, Validators
from wholefeed.fetch.transfer import Manner
from wholefeed.futures import clear_tracebacks
from wholefeed.service.documents.facts import failure_of, fresh_document
from wholefeed.service.documents.source import Obtained, Source

Outcome = Obtained | Fetched | DocumentError


class WalkPath(Protocol):
    """What the decision of the refresh knows of the path of the walk (`wholefeed.core.refresh.decision`)."""

    def is_ahead(self, url: str) -> bool:
        """Whether the path has to come to a document yet; asked before each try."""

    def is_met(self, url: str) -> bool:
        """Whether the walk has the document of a URL, so that no redirect to it is followed."""

    def predicted(self, url: str, older: str) -> Iterable[intents.Fetch]:
        """Take the older link in the head of a document that still arrives; return what can be begun."""


class WalkFetches:
    """The fetches of one refresh; ends with `stop`.

    Args:
        source: Where documents come from.
        style: Gives what the feed's segments are rendered for, where that is known.
        identified: Identifies the entries of a document that has come by what is known of the feed, and by
            the documents that have come before and wait to be kept.
        enough: How many documents a publisher is asked for at once; behind as many no more is sought.
        counts: Told what came of looking ahead.
        may_ask: Raises `LeaseLostError` where another replica may be at the refresh; asked before each try.
    """

    def __init__(
        self,
        source: Source,
        *,
        style: Callable[[], Style | None],
        identified: Callable[[Obtained, Iterable[Obtained]], Awaitable[Obtained]],
        enough: int,
        counts: Counts,
        may_ask: Callable[[], None],
    ) -> None:
        self._source = source
        self.path: WalkPath | None = None
        """Where the walk goes, once that is being decided."""
        self._style = style
        self._identified = identified
        self._enough = enough
        self._counts = counts
        self._may_ask = may_ask
        self._pending: dict[str, asyncio.Task[Outcome]] = {}
        self._obtained: dict[str, Obtained] = {}
        self._collected: set[str] = set()
        """What adapters ask for."""
        self._ahead: set[str] = set()
        """What was asked for before the path came to it, until it is known whether it does."""
        self._deadline = 0.0

    async def carry_out(self, intent: intents.Fetching) -> Event:
        """Do what a decision wants; return what came of it."""
        match intent:
            case intents.StartTimer(seconds):
                self._deadline = time.monotonic() + seconds
            case intents.Fetch():
                self._begin(intent)
            case intents.Wait():
                return await self._wait()
            case intents.Drop(url):
                del self._obtained[url]
                self._settle(url, is_hit=False)
            case intents.StopFetching():
                await self.stop()
            case _:
                assert_never(intent)
        return CarriedOut()

    def obtained(self, url: str) -> Obtained | None:
        """Return a document that has come and waits to be kept."""
        return self._obtained.get(url)

    async def has_come(self, within_seconds: float) -> bool:
        """Whether there is something to be told at once, or will be within so many seconds."""
        if within_seconds > 0 and self._pending and not any(task.done() for task in self._pending.values()):
            await asyncio.wait(
                self._pending.values(), timeout=within_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        return any(task.done() for task in self._pending.values())

    def take(self, url: str) -> Obtained:
        """Hand over a document that has come: it is to be stored."""
        self._settle(url, is_hit=True)
        return self._obtained.pop(url)

    def offer(self, url: str, obtained: Obtained) -> None:
        """Take in what was fetched elsewhere: it waits to be kept."""
        self._obtained[url] = obtained

    async def stop(self) -> None:
        """Cancel what was fetched ahead and is not needed."""
        if not (self._pending or self._ahead):
            return
        tasks = list(self._pending.values())
        self._pending.clear()
        self._counts.looked_ahead(is_hit=False, times=len(self._ahead))
        self._ahead.clear()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, intent: intents.Fetch) -> None:
        if intent.is_collected:
            self._collected.add(intent.url)
        elif self._is_ahead(intent.url):
            self._ahead.add(intent.url)
        self._pending[intent.url] = asyncio.create_task(self._fetch(intent))

    def _settle(self, url: str, *, is_hit: bool) -> None:
        """Count what was asked for ahead, once it is known whether the walk needs it."""
        if url in self._ahead:
            self._ahead.remove(url)
            self._counts.looked_ahead(is_hit=is_hit)

    async def _fetch(self, intent: intents.Fetch) -> Outcome:
        validators = None
        if (row := intent.stored) is not None:
            validators = Validators(etag=row.etag, last_modified=row.last_modified, url=row.final_url)
        while True:
            self._may_ask()
            try:
                if intent.is_collected:
                    return await self._asked_plainly(intent)
                return await self._source.obtain(
                    intent.url,
                    validators=validators,
                    on_older=lambda older: self._predict(intent.url, older),
                    is_foreseen=lambda: self._is_foreseen(intent.url),
                    relation=intent.relation,
                    is_ahead=self._is_ahead(intent.url),
                    is_met=self._is_met,
                    style=self._style(),
                )
            except QueueFullError as exc:  # a walk has time
                await asyncio.sleep(exc.retry_after_seconds or 0.0)
            except DocumentError as exc:
                clear_tracebacks(exc)
                return exc.with_traceback(None)

    async def _asked_plainly(self, intent: intents.Fetch) -> Obtained | Fetched:
        """Ask as adapters do: without conditions, for one pair of validators may stand for many pages."""
        return await self._source.obtain(
            intent.url,
            is_met=self._is_met,
            style=self._style(),
            manner=Manner(is_head=intent.is_head, at_most=AT_ONCE),
        )

    def _is_foreseen(self, url: str) -> bool:
        """Whether a document links to what is fetched without that: enough are, and their URLs count on.

        Where that is wrong, the document that the walk has come to tells it: its head is read in any case.
        """
        if len(self._pending) < self._enough or not self._is_ahead(url):
            return False
        return bool(next_urls(list(self._pending)[-3:], 1))

    def _predict(self, url: str, older: str) -> None:
        """Begin to fetch what the head of a document that still arrives links to."""
        assert self.path is not None, "nothing is fetched before"
        for intent in self.path.predicted(url, older):
            self._begin(intent)

    def _is_ahead(self, url: str) -> bool:
        return self.path is None or self.path.is_ahead(url)

    def _is_met(self, url: str) -> bool:
        return self.path is not None and self.path.is_met(url)

    async def _wait(self) -> Event:
        left_seconds = max(0.0, self._deadline - time.monotonic())
        await asyncio.wait(self._pending.values(), timeout=left_seconds, return_when=asyncio.FIRST_COMPLETED)
        url = next((url for url, task in self._pending.items() if task.done()), None)
        if url is None:
            return TimeOver()
        outcome = self._pending.pop(url).result()
        if isinstance(outcome, Obtained):
            obtained = await self._identified(outcome, self._obtained.values())
            self._obtained[url] = obtained
            return Arrived(url, fresh_document(url, obtained, is_collected=url in self._collected))
        self._settle(url, is_hit=isinstance(outcome, Fetched) and outcome.not_modified)
        if isinstance(outcome, Fetched):
            if outcome.is_met:
                return LedBack(url, outcome.final_url)
            return Confirmed(url) if outcome.not_modified else Answered(url, outcome.headers)
        return Failed(url, failure_of(outcome))
