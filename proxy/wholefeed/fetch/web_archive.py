"""A web archive: its index and its mementos (R33; RFC 7089)."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from wholefeed.core.adapters.base import GONE
from wholefeed.core.memento import (
    BadIndexError,
    Capture,
    IndexPage,
    Layout,
    is_same_resource,
    parse_index,
    position_behind,
    timestamp_of,
)
from wholefeed.core.text.dates import DAY_SECONDS, parse_rfc822
from wholefeed.core.text.urls import canonical_url
from wholefeed.errors import PublisherError, UnreadableError
from wholefeed.fetch.base import Fetched, Manner
from wholefeed.fetch.fetcher import Fetcher

REQUESTS_PER_MINUTE: Final = 5
"""For all feeds together; the Wayback Machine bears about 24 searches a minute."""

NEWEST: Final = 20
"""Mementos to try for a missing document."""

PAGE_ROWS: Final = 50
"""Rows of an index page; to fetch their mementos takes ten minutes."""


class Archive:
    """One web archive, at `history.memento_url`; belongs to one event loop."""

    def __init__(self, fetcher: Fetcher, base: str, *, turns: Turns | None = None) -> None:
        self._fetcher = fetcher
        self._layout = Layout(base)
        self._turns = turns or Turns()
        # A turn comes before slot and memory, so a task that waits for its turn occupies neither.
        self._manner = Manner(turn=self._turns.take, expected=GONE, follows_refresh=False)

    @property
    def waiting(self) -> int:
        return self._turns.waiting

    async def newest(self, url: str) -> IndexPage:
        return await self._index(self._layout.newest(url, limit=NEWEST))

    async def oldest(self, url: str, position: str) -> tuple[IndexPage, str]:
        """Return an index page, oldest mementos first, and the next page's position.

        An empty `position` is the first page.
        """
        page = await self._index(self._layout.oldest(url, limit=PAGE_ROWS, position=position))
        return page, position_behind(page, limit=PAGE_ROWS, position=position)

    @asynccontextmanager
    async def fetching(self, capture: Capture, url: str) -> AsyncIterator[tuple[Fetched, str]]:
        """Yield a memento as if its publisher had sent it at its time, with the memento's URL.

        Its time may differ a little from the request.
        """
        asked = self._layout.copy(capture)
        asking = self._fetcher.fetching(asked, manner=self._manner, is_met=self._is_elsewhere)
        async with asking as fetched:
            given = self._given(fetched)
            if given is None or not is_same_resource(given.url, url):
                message = "expected a memento of the document, got a redirect to another one"
                raise PublisherError(message, url=fetched.final_url, slug="bad-redirect")
            copy = replace(
                fetched,
                url=url,
                final_url=canonical_url(given.url),
                hops=(),
                permanent_url=None,
                # The other header fields are the archive's own.
                headers={name: value for name, value in fetched.headers.items() if name in _OF_TRANSFER},
                links=(),
                fetched_at=given.captured_at,
            )
            yield copy, self._layout.copy(given)

    def _is_elsewhere(self, url: str) -> bool:
        return self._layout.capture_at(url) is None

    def _given(self, fetched: Fetched) -> Capture | None:
        # A memento's time may differ without a redirect (RFC 7089, 2.1.1).
        given = self._layout.capture_at(fetched.final_url)
        said_at = parse_rfc822(fetched.headers.get("memento-datetime", ""))
        if given is not None and said_at is not None:
            given = replace(given, timestamp=timestamp_of(said_at))
        is_to_come = given is not None and given.captured_at > fetched.fetched_at + DAY_SECONDS
        return None if is_to_come else given

    async def _index(self, url: str) -> IndexPage:
        try:
            async with self._fetcher.fetching(url, manner=self._manner) as fetched:
                try:
                    return parse_index(fetched.body)
                except BadIndexError as exc:
                    raise UnreadableError(str(exc), url=fetched.final_url, slug="malformed-json") from exc
        except PublisherError as exc:
            if exc.slug != "empty":
                raise
            return IndexPage()  # of one that writes a line for each copy


# They tell whether a body is whole (docs/faults.md row 32).
_OF_TRANSFER: Final = frozenset({"content-length", "transfer-encoding"})

_MINUTE_SECONDS: Final = 60.0


class Turns:
    """A limit of requests in any minute, first come first served.

    `reserve` returns the seconds until the next turn of all processes; 0: unknown.
    """

    def __init__(
        self,
        per_minute: int = REQUESTS_PER_MINUTE,
        *,
        reserve: Callable[[], Awaitable[float]] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._reserve = reserve
        self._lock = asyncio.Lock()
        self._taken: deque[float] = deque(maxlen=per_minute)
        self.waiting = 0

    async def take(self) -> None:
        self.waiting += 1
        try:
            async with self._lock:
                while len(self._taken) == self._taken.maxlen:
                    left_seconds = self._taken[0] + _MINUTE_SECONDS - self._clock()
                    if left_seconds <= 0:
                        break
                    await self._sleep(left_seconds)
                if self._reserve is not None and (wait_seconds := await self._reserve()) > 0:
                    await self._sleep(wait_seconds)
                self._taken.append(self._clock())
        finally:
            self.waiting -= 1
