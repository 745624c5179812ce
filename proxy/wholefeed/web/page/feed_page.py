"""The page of one feed: its address for readers, what its state means, how far it reaches, its two ends.

Nothing here decides anything: the words are those of `wholefeed.core.words`, the chart of
`wholefeed.core.chart`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from wholefeed.core.compose.heading import Heading, heading_of
from wholefeed.core.compose.shown import Shown
from wholefeed.core.readers import READERS, Reader
from wholefeed.core.slugs import in_words
from wholefeed.core.terms import State
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.text.spans import ago, ahead, counted
from wholefeed.core.words import STATES, again, time_left, times, words_of
from wholefeed.service.excerpts import Excerpt, excerpt
from wholefeed.service.results import Reconstruction
from wholefeed.service.timeline import Timeline, timeline_of
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.months import months
from wholefeed.web.host_field import base_url
from wholefeed.web.keys import ASKED, CONFIG, SERVICE, STORE
from wholefeed.web.named import named_url
from wholefeed.web.page.instants import Instant
from wholefeed.web.page.sanitising import plain
from wholefeed.web.page.templates import page
from wholefeed.web.proxied import proxied_url
from wholefeed.web.status import status_object

WAIT_SECONDS: Final = 0.9
"""How long a person waits for the publisher before the page says that it is being asked."""
AGAIN_SECONDS: Final = 4
"""After which the page is loaded again where there is no script."""
_MOST_CHARACTERS: Final = 200
"""Of a title, or of the names of authors."""
_NEWEST: Final = 5
_OLDEST: Final = 3
MOST_MISSING: Final = 100
"""Documents that are listed; /status lists them all."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A document that could not be had, as the page tells it."""

    url: str
    why: str
    where: str
    """Of when its entries may be; empty where that is not to be told."""
    tried: str
    again: str


@dataclass(frozen=True, slots=True)
class Variant:
    """The address for one reader."""

    reader: Reader
    url: str
    """Empty where it is the usual one."""


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of the preview."""

    title: str
    link: str
    author: str
    day: Instant | None


async def feed_page(request: web.Request) -> web.StreamResponse:
    """Answer with the page of the feed that a request names; its walk begins as for a reader.

    Raises:
        PublisherTimeoutError: Nothing of it has come yet (`waiting_page`), or the publisher took too long.
        WholefeedError: There is no feed to be had.
    """
    url, app = await named_url(request), request.app
    wait_seconds = min(WAIT_SECONDS, app[CONFIG].limits.respond_within_seconds)
    async with app[SERVICE].answer(url, wait_seconds=wait_seconds) as reconstruction:
        async with reconstruction.in_time():
            ends = await excerpt(reconstruction.snapshot, app[STORE], newest=_NEWEST, oldest=_OLDEST)
        return await _shown(request, url, reconstruction, ends)


async def waiting_page(request: web.Request, url: str) -> web.Response:
    """Answer with the page of a feed of which nothing has come yet."""
    return await page(
        request,
        "waiting.html",
        url=url,
        loading=STATES[State.LOADING],
        again_seconds=AGAIN_SECONDS,
        proxied=_proxied(request, url),
    )


async def _shown(
    request: web.Request, url: str, reconstruction: Reconstruction, ends: Excerpt
) -> web.Response:
    app, feed = request.app, reconstruction.feed
    service = app[SERVICE]
    status, chain = await service.account(url)
    async with reconstruction.in_time():
        by_month = await app[STORE].read(lambda db: months(db, feed.id))
    timeline = await asyncio.to_thread(timeline_of, chain, by_month)
    head = await asyncio.to_thread(_heading, feed)
    told, now = status_object(status), service.now()
    said = words_of(told, now)
    request[ASKED].add(feed=feed.id, state=told["state"])
    return await page(
        request,
        "feed.html",
        title=plain(head.title or feed.url, _MOST_CHARACTERS),
        url=feed.url,
        known=told,
        said=said,
        proxied=_proxied(request, url),
        variants=_variants(request, url, now),
        missing=[_missing(each, timeline, now) for each in told["missing"][:MOST_MISSING]],
        more_missing=max(0, len(told["missing"]) - MOST_MISSING),
        timeline=timeline,
        newest=[_line(each) for each in ends.newest],
        oldest=[_line(each) for each in ends.oldest],
        sums=f"{counted(told['entries'], 'entry', 'entries')} out of"
        f" {counted(told['documents'], 'document', 'documents')}",
        walked=f"{counted(told['progress']['entries'], 'entry', 'entries')} out of"
        f" {counted(told['progress']['documents'], 'document', 'documents')}",
        left=time_left(told["progress"]),
        refreshed=_moment(status.feed.checked_at, now),
        due=ahead(status.feed.fresh_until or now, now),
        again_seconds=AGAIN_SECONDS,
    )


def _heading(feed: FeedRow) -> Heading:
    return heading_of(feed.published_family, feed.version, feed.head or b"", feed.via_url)


def _proxied(request: web.Request, url: str, **options: str) -> str:
    server = request.app[CONFIG].server
    return proxied_url(base_url(request, request[ASKED], server), url, server, options)


def _variants(request: web.Request, url: str, now: float) -> list[Variant]:
    found = []
    for reader in READERS:
        added = reader.parameters(now)
        found.append(Variant(reader, _proxied(request, url, **added) if added else ""))
    return found


def _missing(failure: dict[str, Any], timeline: Timeline, now: float) -> Missing:
    hole = timeline.holes.get(failure["url"])
    status = f" (status {failure['status']})" if failure["status"] else ""
    return Missing(
        url=failure["url"],
        why=in_words(failure["reason"]) + status,
        where="" if hole is None else hole.words,
        tried=times(failure["attempts"]),
        again=again(failure, now),
    )


def _line(entry: Shown) -> Line:
    at = entry.published if entry.published is not None else entry.updated
    day = None if at is None else _day(at)
    title = plain(entry.title, _MOST_CHARACTERS) or "(without a title)"
    return Line(title, entry.link, plain(entry.author, _MOST_CHARACTERS), day)


def _day(at: float) -> Instant:
    day = datetime.fromtimestamp(at, UTC)
    return Instant(f"{day.day} {day:%B} {day.year}", format_rfc3339(at))


def _moment(at: float | None, now: float) -> Instant | None:
    return None if at is None else Instant(ago(at, now), format_rfc3339(at))
