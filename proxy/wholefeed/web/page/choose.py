"""From what a person has typed to the page of a feed: a site's page may announce several to choose from."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from aiohttp import web

from wholefeed.core.parse.discovery import Alternate
from wholefeed.errors import (
    DocumentError,
    InvalidUrlError,
    OverloadedError,
    PublisherError,
    PublisherTimeoutError,
    RequestError,
    WholefeedError,
)
from wholefeed.web.host_field import base_url
from wholefeed.web.keys import ASKED, CONFIG, SERVICE
from wholefeed.web.moving import OwnAddresses
from wholefeed.web.named import named_url
from wholefeed.web.page.feed_page import WAIT_SECONDS, feed_page, waiting_page
from wholefeed.web.page.login import see_other
from wholefeed.web.page.sanitising import plain
from wholefeed.web.page.templates import page
from wholefeed.web.page.trouble import Trouble
from wholefeed.web.page.wanted import is_browser
from wholefeed.web.request_target import completed, instead_url

_MAX_TITLE: Final = 200
"""Characters."""
_FORMATS: Final = {
    "application/atom+xml": "Atom",
    "application/rss+xml": "RSS",
    "application/rdf+xml": "RSS 1.0",
    "application/feed+json": "JSON Feed",
}


async def get_chosen(request: web.Request) -> web.StreamResponse | Trouble:
    """GET /?url=U: the page of the feed that U leads to, or the feeds to choose from.

    Returns:
        What was wrong, where U leads to no feed and a person asks; a program gets the error itself.
    """
    if (behind := _behind_own(request)) is not None:
        return see_other(f"./?url={quote(behind, safe='')}")
    try:
        url = await named_url(request)
        announced = () if await request.app[SERVICE].is_known(url) else await _announced(request, url)
        if announced:
            feeds = [
                (each.url, plain(each.title, _MAX_TITLE), _FORMATS[each.media_type]) for each in announced
            ]
            return await page(request, "choose.html", url=url, feeds=feeds)
        return await feed_page(request)
    except PublisherTimeoutError as exc:
        if is_browser(request) and await request.app[SERVICE].is_awaited(exc.url):
            return await waiting_page(request, exc.url)
        return _trouble(request, exc)
    except (DocumentError, InvalidUrlError, OverloadedError, RequestError) as exc:
        return _trouble(request, exc)


def _trouble(request: web.Request, error: WholefeedError) -> Trouble:
    if not is_browser(request):
        raise error
    request[ASKED].add(slug=error.slug)
    return Trouble.of(error)


def _behind_own(request: web.Request) -> str | None:
    """Return the feed's URL where one of the proxy's own was typed, copied from a reader perhaps."""
    server = request.app[CONFIG].server
    own = OwnAddresses([base_url(request, request[ASKED], server), server.public_url])
    written = completed(request[ASKED].query.url)
    return next((behind for each in written if (behind := own.feed_behind(each))), None)


async def _announced(request: web.Request, url: str) -> tuple[Alternate, ...]:
    """Return the feeds to choose from; without a scheme by http where https refuses the connection."""
    service = request.app[SERVICE]
    wait_seconds = min(WAIT_SECONDS, request.app[CONFIG].limits.respond_within_seconds)
    try:
        return await service.announced(url, wait_seconds=wait_seconds)
    except PublisherError as exc:
        instead = instead_url(request[ASKED].query.url)
        if exc.slug != "connection-failed" or instead in ("", url):
            raise
    return await service.announced(instead, wait_seconds=wait_seconds)
