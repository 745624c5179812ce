"""Requests for publishers' HTML pages (H1, T2), one at a time.

    fetches = PageFetches(context, robots, pace, url=own.final_url, feed_url=feed.url)
    found = await fetches.fetch(url, read)       # the result of `read`, or a `NotHad`

Lists and texts of one site share its pace.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final, TypeVar

from wholefeed.core.adapters.base import GONE
from wholefeed.core.listing.finding import NotHad
from wholefeed.core.slugs import lasts
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import DocumentError, QueueFullError, WorkError
from wholefeed.fetch.base import Fetched, Manner
from wholefeed.fetch.robots import Robots
from wholefeed.service.context import RefreshContext

T = TypeVar("T")
ReadPage = Callable[[str, Fetched], Awaitable[T | NotHad]]
"""Reads a page, given the requested URL."""
PAUSE_SECONDS: Final = 3600.0
"""Until the next request after a refusal, or a failure here."""
PAGE_BYTES: Final = 5 << 20
"""HTML of mere links takes twenty times its size in memory."""
READ_SECONDS: Final = 5.0
"""Computing time for one page."""


class SitePace:
    """When each site may be asked for a page next."""

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}
        """Monotonic time, by site."""

    async def take_turn(self, site: str, delay_seconds: float) -> None:
        """Wait until the site may be asked, and keep others waiting for `delay_seconds` from then on."""
        at = max(time.monotonic(), self._free_at.get(site, 0.0))
        self._free_at[site] = at + delay_seconds  # whoever comes next waits behind this one
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        self.rest(site, delay_seconds)

    def rest(self, site: str, delay_seconds: float) -> None:
        now = time.monotonic()
        if len(self._free_at) >= _MOST_SITES:
            self._free_at = {each: at for each, at in self._free_at.items() if at > now}
        self._free_at[site] = max(self._free_at.get(site, 0.0), now + delay_seconds)


_MOST_SITES: Final = 256


@dataclass(slots=True)
class PageFetches:
    """The requests of one look at a site: at the publisher's pace, to that site alone."""

    context: RefreshContext
    robots: Robots
    pace: SitePace
    url: str
    """The subscription document's final URL."""
    feed_url: str
    """The feed's stored URL."""
    requests: int = 0
    paused_until: float | None = None
    """Epoch seconds; None: no refusal."""
    _delay_seconds: float = field(default=0.0, init=False)
    """Between requests, by robots.txt or configuration."""

    def pause(self) -> None:
        """Ask for nothing more for an hour, unless a refusal said how long."""
        if self.paused_until is None:
            self.paused_until = self.context.now() + PAUSE_SECONDS

    async def fetch(self, url: str, read: ReadPage[T], *, is_guess: bool = False) -> T | NotHad:
        """Return the result of `read` for a page, after its redirects.

        `is_guess`: no page or file names it, so 403 refuses nothing else.
        """
        return await self._try(url, partial(self._ask, read=read), is_guess=is_guess)

    async def name_sitemaps(self, url: str) -> tuple[str, ...] | NotHad:
        """Return the sitemaps that the robots.txt of a URL's host names (H10)."""
        return await self._try(url, self._find_sitemaps)

    async def _try(
        self,
        url: str,
        ask: Callable[[str], Awaitable[T | NotHad | _Redirect]],
        *,
        is_guess: bool = False,
    ) -> T | NotHad:
        """Ask for one thing of the site, after its redirects, unless rules or pauses forbid it."""
        context, site = self.context, self.context.site_of
        if context.pauses.lasts(url, now=context.now()):
            self.pause()
        if self.paused_until is not None:
            return NotHad(url, "host-backoff", None, is_lasting=False)
        if site(url) != site(self.url):  # R24
            return NotHad(url, "cross-origin-unconfirmed", None, is_lasting=True)
        hops = 0
        while True:
            context.sharing.require()
            if not context.may_read_pages(url):
                return NotHad(url, "destination-forbidden", None, is_lasting=True)
            try:
                answer = await ask(url)
                hops += 1
                if not isinstance(answer, _Redirect):
                    return answer
                if hops > context.config.fetch.max_redirects:
                    return NotHad(url, "redirect-loop", None, is_lasting=True)
                url = answer.url
            except QueueFullError as exc:  # a look has time
                await asyncio.sleep(exc.retry_after_seconds or 1.0)
            except DocumentError as exc:
                return self._fail(url, exc, is_guess=is_guess)

    async def _find_sitemaps(self, url: str) -> tuple[str, ...]:
        await self._rule(url)
        return self.robots.sitemaps(url)

    async def _ask(self, url: str, read: ReadPage[T]) -> T | NotHad | _Redirect:
        """Return the page, or a redirect's target that needs permission first."""
        site = self.context.site_of
        rule = await self._rule(url)
        if not rule:
            return NotHad(url, "robots", None, is_lasting=rule is not None)
        fetching = self.context.source.fetcher.fetching(
            url,
            is_ahead=lambda: True,  # other fetches go first, and a missing page is no loss
            is_met=lambda target: site(target) != site(self.url) or not self.robots.allows(target),
            manner=Manner(at_most=1, turn=self._turn, feed_url=self.feed_url, follows_refresh=False),
        )
        try:
            async with fetching as fetched:
                if fetched.is_met and site(fetched.final_url) == site(self.url):
                    return _Redirect(fetched.final_url)
                if fetched.is_met:
                    return NotHad(url, "cross-origin-unconfirmed", None, is_lasting=True)
                return await read(url, fetched)
        except WorkError as exc:
            return NotHad(url, exc.slug, None, is_lasting=lasts(exc.slug))
        finally:
            self._rest()

    async def _rule(self, url: str) -> bool | None:
        """Return whether robots.txt permits a page; None: unknown."""
        rule = await self.robots.rule(url, self._turn)
        self._delay_seconds = max(rule.delay_seconds, self.context.config.history.list_interval_seconds)
        if rule.was_asked:
            self._rest()
        return rule.may_ask if rule.is_lasting else None

    async def _turn(self) -> None:
        """Wait for the next request, and count it."""
        await self.pace.take_turn(self.context.site_of(self.url), self._delay_seconds)
        self.requests += 1

    def _rest(self) -> None:
        self.pace.rest(self.context.site_of(self.url), self._delay_seconds)

    def _fail(self, url: str, error: DocumentError, *, is_guess: bool) -> NotHad:
        """Return the failure, and pause a publisher that refuses more than a guess."""
        status = error.publisher_status
        is_refused_guess = is_guess and status == HTTPStatus.FORBIDDEN
        if not is_refused_guess:
            self._note_refusal(url, error)
        is_lasting = status in GONE or is_refused_guess or (status is None and lasts(error.slug))
        return NotHad(url, error.slug, status, is_lasting=is_lasting)

    def _note_refusal(self, url: str, error: DocumentError) -> None:
        """Pause a publisher that refuses (R32)."""
        now, seconds = self.context.now(), 0.0
        if error.publisher_status == HTTPStatus.FORBIDDEN:
            seconds = DAY_SECONDS
        elif error.publisher_status == HTTPStatus.TOO_MANY_REQUESTS or error.slug == "host-backoff":
            seconds = max(PAUSE_SECONDS, error.retry_after_seconds or 0.0)
        if seconds:
            self.paused_until = now + seconds
            self.context.pauses.pause(url, self.paused_until, now=now)


@dataclass(frozen=True, slots=True)
class _Redirect:
    url: str
