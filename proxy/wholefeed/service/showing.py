"""Pages of a feed's entries for people: made by few at once, in a worker, and kept for who asks next.

    page = await showing.page(reconstruction, Wanted(start=0, most=50, loads=None), rendered)
    with showing.sending(page): ...

What publishers write may cost as much as it can (docs/faults.md rows 119 and 120). So a page is made in a
process that ends after `PAGE_SECONDS`, and kept with what else is held of its feed: within the same memory,
and as long as the feed is what it was. What makes it is no reader's, so that it is the same for all who ask
for those entries.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.compose.reading import Article, show_entries
from wholefeed.core.compose.sanitising import Elsewhere
from wholefeed.errors import OverloadedError, WorkError, WorkTooLongError
from wholefeed.futures import within
from wholefeed.logs import get_logger
from wholefeed.service.people import namespace_of, read_texts
from wholefeed.service.results import Reconstruction
from wholefeed.service.sources import Work
from wholefeed.store.store import Store

log = get_logger()

PAGE_SECONDS: Final = 1.0
"""What a page may compute."""
PAGE_WAIT_SECONDS: Final = 8.0
"""How long who asks for a page waits for a turn, and then at most until it is made."""
_AT_ONCE: Final = 2
_WAITING: Final = 30
"""Who waits for pages that are not made yet, beside those."""
_AGAIN_SECONDS: Final = 5
_ROOM_BYTES: Final = 1 << 21
"""Of the text that is read for a page: twice what is shown."""
_SMALL_BYTES: Final = 1 << 15
"""So little text a thread may make a page of: it takes a tenth of a second at most, and no worker's start."""
_SENT_BYTES: Final = 1 << 25
"""Of pages that are being sent: who reads slowly keeps one in memory."""


class Wanted(NamedTuple):
    """Which entries of a feed a page has."""

    start: int
    """The first of them, in output order, from 0."""
    most: int
    loads: Elsewhere | None
    """Which pictures, audio and video it loads; None: none."""


class Page:
    """The entries of a page as HTML; of one that is too costly there is none."""

    __slots__ = ("body", "readers")

    def __init__(self, body: bytes | None) -> None:
        self.body = body
        self.readers = 0
        """Who is being sent it."""


class Showing:
    """Makes pages; belongs to one event loop.

    Args:
        store: Where the feeds are.
        work: Where work is done.
    """

    def __init__(self, store: Store, work: Work) -> None:
        self._store = store
        self._work = work
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._asking = 0
        """Who makes one, or waits for it."""
        self._sent_bytes = 0

    async def page(
        self,
        reconstruction: Reconstruction,
        wanted: Wanted,
        rendered: Callable[[Sequence[Article], int], bytes],
    ) -> Page:
        """Return a page of a feed.

        Args:
            reconstruction: The feed.
            wanted: Its entries.
            rendered: Makes HTML of them and of the place of the first, from 1; it is called on a thread.

        Raises:
            OverloadedError: Too many are being made; or what made it has ended.
            WorkTooLongError: It takes more computing than a page may.
        """
        held = reconstruction.held
        page: Page | None = held.made(wanted) if held is not None else None
        if page is None:
            async with self._turn():
                page = held.made(wanted) if held is not None else None  # who was before may have made it
                if page is None:
                    page = Page(await self._made(reconstruction, wanted, rendered))
                    if held is not None:
                        held.keep_made(wanted, page, sys.getsizeof(page) + sys.getsizeof(page.body))
        if page.body is None:
            raise WorkTooLongError(f"expected a page that takes at most {PAGE_SECONDS:g} s to make, got more")
        return page

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a turn, and then take no longer than that for what is done in it.

        Who waits gives up first: what is begun would have been for nothing, and a worker ends with it.
        """
        if self._asking >= _AT_ONCE + _WAITING:
            raise _too_many()
        self._asking += 1
        try:
            async with within(PAGE_WAIT_SECONDS, _too_many()):
                await self._turns.acquire()
            try:
                async with within(PAGE_WAIT_SECONDS, _too_many()):
                    yield
            finally:
                self._turns.release()
        finally:
            self._asking -= 1

    async def _made(
        self,
        reconstruction: Reconstruction,
        wanted: Wanted,
        rendered: Callable[[Sequence[Article], int], bytes],
    ) -> bytes | None:
        """Return the HTML of a page; None where it is too costly."""
        snapshot = reconstruction.snapshot
        feed = snapshot.feed
        async with reconstruction.in_time():
            texts = await read_texts(snapshot, self._store, wanted.start, wanted.most, room_bytes=_ROOM_BYTES)
        work = partial(
            show_entries,
            texts,
            feed.published_family,
            namespace=namespace_of(feed),
            base=feed.via_url,
            loads=wanted.loads,
        )
        if sum(len(each.text) for each in texts) <= _SMALL_BYTES:
            return await asyncio.to_thread(lambda: rendered(work(), wanted.start + 1))
        try:
            articles = await self._work.run_briefly(PAGE_SECONDS, work.func, *work.args, **work.keywords)
        except WorkTooLongError:
            return None
        except WorkError as exc:  # it was killed, or is at fault: what it says is for the log alone
            log.exception("request.failed", feed=feed.id)
            raise OverloadedError(
                "the process that made this page has ended", retry_after_seconds=_AGAIN_SECONDS
            ) from exc
        return await asyncio.to_thread(rendered, articles, wanted.start + 1)

    @contextmanager
    def sending(self, page: Page) -> Iterator[None]:
        """Hold a page while it is sent.

        Raises:
            OverloadedError: Too many other pages are being sent.
        """
        size = len(page.body or b"")
        if not page.readers and self._sent_bytes + size > _SENT_BYTES:
            raise _too_many()
        self._sent_bytes += size * (not page.readers)
        page.readers += 1
        try:
            yield
        finally:
            page.readers -= 1
            self._sent_bytes -= size * (not page.readers)


def _too_many() -> OverloadedError:
    return OverloadedError("too many pages are asked for", retry_after_seconds=_AGAIN_SECONDS)
