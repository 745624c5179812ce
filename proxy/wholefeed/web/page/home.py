"""GET /: what a person begins with, and five lines for a program that asks.

With `url` it is the page of a feed; of one that is not known yet `wholefeed.web.page.choose` makes one first.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlencode

from aiohttp import web

from wholefeed import __version__
from wholefeed.core.compose.heading import heading_of
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.text.spans import ago, ahead
from wholefeed.core.words import STALE, STATES, Words
from wholefeed.service.listing import Listing
from wholefeed.store.rows import FeedRow
from wholefeed.web.host_field import base_url
from wholefeed.web.keys import ASKED, CONFIG, SERVICE
from wholefeed.web.page.choose import get_chosen
from wholefeed.web.page.instants import Instant
from wholefeed.web.page.login import see_other
from wholefeed.web.page.sanitising import plain
from wholefeed.web.page.templates import page
from wholefeed.web.page.trouble import Trouble
from wholefeed.web.page.wanted import is_browser
from wholefeed.web.session import begin_session

_MAX_WORDS: Final = 200
_MAX_TITLE: Final = 200
"""Characters."""
_TOKEN: Final = frozenset({"token", "amp;token"})
_NUMBER: Final = re.compile("[1-9][0-9]{0,6}", re.ASCII)
_WORDS: Final[Mapping[str, Words]] = {
    **{state.value: words for state, words in STATES.items()},
    "stale": STALE,
}
"""What the table says of a feed, by what it is styled as."""
EMPTY: Final = Trouble(
    status=400,
    what="Nothing was typed.",
    advice="Paste the address of a feed, or of the site that has one: example.org/blog will do.",
)


@dataclass(frozen=True, slots=True)
class FeedLine:
    """A known feed as the table shows it."""

    url: str
    title: str
    """What the feed calls itself; empty where that is not known."""
    shown_url: str
    """Without what says nothing: https, and a slash alone."""
    state: str
    is_stale: bool
    entries: int
    documents: int
    refreshed: Instant | None
    due: Instant | None


async def get_home(request: web.Request) -> web.StreamResponse:
    """GET /: the page, or five lines; with `url` the page of a feed."""
    asked = request[ASKED]
    if "token" in asked.query.options and asked.knows_token and not asked.session and is_browser(request):
        return _begun(request)
    if asked.query.url:
        chosen = await get_chosen(request)
        return await _page(request, chosen) if isinstance(chosen, Trouble) else chosen
    if not is_browser(request):
        return web.Response(text=_told(request), headers={"Vary": "Accept", "Cache-Control": "no-store"})
    return await _page(request, EMPTY if "url" in request.query else None)


def _begun(request: web.Request) -> web.Response:
    """Let a browser that brings the token in its URL keep a session instead: URLs are shown, and kept."""
    parts = request.rel_url.raw_query_string.split("&")
    query = "&".join(part for part in parts if unquote(part.partition("=")[0]) not in _TOKEN)
    response = see_other("./?" + query if query else "./")
    begin_session(request, response)
    return response


async def _page(request: web.Request, trouble: Trouble | None) -> web.Response:
    app, query = request.app, request.query
    words, by_url = query.get("q", "")[:_MAX_WORDS].strip(), query.get("sort") == "url"
    number = int(query["page"]) if _NUMBER.fullmatch(query.get("page", "")) else 1
    listing = await app[SERVICE].listed(words=words, by_url=by_url, number=number)
    lines = await asyncio.to_thread(_lines, listing.feeds, app[SERVICE].now())
    return await page(
        request,
        "home.html",
        status=200 if trouble is None else trouble.status,
        trouble=trouble,
        given=request[ASKED].query.url,
        feeds=lines,
        words_of=_WORDS,
        meanings=_meanings(lines),
        listing=listing,
        words=words,
        by_url=by_url,
        link=_linked(words, by_url, listing),
        base=base_url(request, request[ASKED], app[CONFIG].server),
        has_token=bool(app[CONFIG].server.access_token),
        version=__version__,
    )


def _meanings(lines: Sequence[FeedLine]) -> list[Words]:
    """Return what each of the words means that the table uses."""
    used = {line.state for line in lines} | {"stale" for line in lines if line.is_stale}
    return [words for name, words in _WORDS.items() if name in used]


def _lines(feeds: Sequence[FeedRow], now: float) -> list[FeedLine]:
    """Return the lines of the table: the heads of a hundred feeds are read for their titles."""
    return [_line(feed, now) for feed in feeds]


def _line(feed: FeedRow, now: float) -> FeedLine:
    title = ""
    if feed.head:
        title = heading_of(feed.published_family, feed.version, feed.head, feed.via_url).title
    return FeedLine(
        url=feed.url,
        title=plain(title, _MAX_TITLE),
        shown_url=feed.url.removeprefix("https://").removesuffix("/"),
        state=feed.visible_state,
        is_stale=feed.is_stale,
        entries=feed.entries,
        documents=feed.documents,
        refreshed=_instant(feed.checked_at, ago, now),
        due=_instant(feed.fresh_until, ahead, now),
    )


def _instant(then: float | None, said: Callable[[float, float], str], now: float) -> Instant | None:
    return None if then is None else Instant(said(then, now), format_rfc3339(then))


def _linked(words: str, by_url: bool, listing: Listing) -> Callable[..., str]:
    """Return what makes the query of a link to the same list, but for what is named."""

    def link(*, number: int = 1, sorted_by_url: bool = by_url) -> str:
        query = {"q": words, "sort": "url" if sorted_by_url else "", "page": "" if number == 1 else number}
        kept = {name: value for name, value in query.items() if value}
        return "?" + urlencode(kept) if kept else ""

    return link


def _told(request: web.Request) -> str:
    """Return how one subscribes, in a few lines."""
    server = request.app[CONFIG].server
    base = base_url(request, request[ASKED], server)
    token = "token=TOKEN&" if server.access_token else ""
    lines = [
        f"wholefeed {__version__}: the whole history of a feed, for any feed reader.",
        f"Subscribe to   {base}/feed?{token}url=FEED-URL",
        f"for example    {base}/feed?{token}url=https://example.org/feed.atom",
    ]
    if server.access_token:
        lines.append("The access token is also taken as Bearer, or as Basic password with any user name.")
    elif server.signing_keys:
        lines.append("Each URL needs a signature, &signed=…: `wholefeed sign URL` prints it.")
    else:
        lines.append(f"or write it behind the slash: {base}/https://example.org/feed.atom")
    lines.append(f"Open {base}/ in a browser for a page; {base}/openapi.json describes the rest.")
    return "\n".join(lines) + "\n"
