"""A URL that a person has typed: opened, or the feeds to choose from where a page announces several.

choosing = Choosing(openings, wait)
feeds = await choosing.announced(url, wait_seconds=8.0)     # (): it is open now, and its walk has begun
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from wholefeed.core.parse.discovery import Alternate
from wholefeed.errors import PublisherTimeoutError
from wholefeed.service.documents.subscription import SeveralFeedsError
from wholefeed.service.opening import Opened, Openings

Wait = Callable[[asyncio.Task[Opened], float], Awaitable[None]]
"""Waits for a task until an instant of the monotonic clock, or until the program stops."""


class Choosing:
    """Belongs to one service.

    Args:
        openings: How a URL becomes a feed.
        wait: Waits for an opening.
    """

    def __init__(self, openings: Openings, wait: Wait) -> None:
        self._openings = openings
        self._wait = wait

    async def announced(self, url: str, *, wait_seconds: float) -> tuple[Alternate, ...]:
        """Open a URL that nothing is stored of, unless it is a page that announces several feeds.

        Args:
            url: Canonical URL.
            wait_seconds: How long to wait for the publisher.

        Returns:
            The feeds of the page, each once, as listed; none where the URL leads to a feed now.

        Raises:
            DocumentError: There is no feed to be had (or not in time: 504, and it is still looked for).
            OverloadedError: Too many walks are waiting.
        """
        opening = self._openings.join(url, may_walk=True, is_choosing=True)
        await self._wait(opening, time.monotonic() + wait_seconds)
        if not opening.done():
            raise PublisherTimeoutError("expected an answer in time, got nothing yet", url=url)
        try:
            opening.result()
        except SeveralFeedsError as exc:
            return exc.feeds
        return ()
