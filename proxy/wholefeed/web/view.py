"""GET /view?url=U: a feed for people, newest entries first, a page at a time.

Entries are what strangers have written (`wholefeed.web.sanitising`). Nothing is loaded from elsewhere
unless `media=1` asks for pictures, audio and video; and nothing that they name is loaded from the proxy
itself, to which the reader's browser sends the session (docs/faults.md row 97).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from aiohttp import web
from markupsafe import Markup

from wholefeed.core.compose.entries import Enclosure, Shown, unmarked
from wholefeed.core.model import Family, State
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import UrlError, canonical_url
from wholefeed.core.words import STALE, STATES, Words
from wholefeed.errors import NothingYetError, RequestError
from wholefeed.service.people import described, entries_in, read_entries
from wholefeed.service.results import Reconstruction
from wholefeed.web.feed import carried, to_view
from wholefeed.web.keys import ASKED, CONFIG, SERVICE, STORE, with_instead
from wholefeed.web.moving import OwnAddresses
from wholefeed.web.pages_base import CONTENT_SECURITY_POLICY, Instant, page
from wholefeed.web.request import Asked, base_url, read_wait
from wholefeed.web.sanitising import Allowance, MayLoad, plain, plain_url, sanitised

_ENTRIES_A_PAGE: Final = 50
_WAIT_SECONDS: Final = 1.0
"""How long a feed that is not known yet is waited for before the page says that it is being read."""
_LONGEST_TITLE: Final = 300
_LONGEST_NAME: Final = 120
_MEDIA_POLICY: Final = CONTENT_SECURITY_POLICY.replace(
    "img-src 'self' data:", "img-src 'self' data: https: http:; media-src https: http:"
)


async def get_view(request: web.Request) -> web.StreamResponse:
    """GET /view?url=U: the feed for people; a token in the URL becomes a session first."""
    if request[ASKED].query.options.get("token"):
        return to_view(request, request[ASKED])
    return await with_instead(request, lambda url: _view(request, request[ASKED], url))


async def _view(request: web.Request, asked: Asked, url: str) -> web.Response:
    options = asked.query.options
    service, most = request.app[SERVICE], request.app[CONFIG].limits.respond_within_seconds
    wait_seconds = read_wait({"wait": str(_WAIT_SECONDS), **options}, most)
    number = _number(options.get("page", ""))
    may_load = _elsewhere(request, asked) if options.get("media") == "1" else None
    try:
        async with service.answer(url, wait_seconds=wait_seconds) as reconstruction:
            view = await _page_of(request, reconstruction, url, number, may_load)
    except NothingYetError:
        return await page(request, "view_loading.html", url=url)
    response = await page(request, "view.html", carried=carried(asked), view=view)
    if may_load is not None:
        response.headers["Content-Security-Policy"] = _MEDIA_POLICY
    return response


def _elsewhere(request: web.Request, asked: Asked) -> MayLoad:
    """Return what says of a URL that it is not the proxy's, by its own name or by the one that was used."""
    base = base_url(request, asked, request.app[CONFIG].server)
    is_asked_so = request.host.lower() == urlsplit(base).netloc.lower()
    own = OwnAddresses([base, "" if is_asked_so else f"http://{request.host}"])

    def may_load(url: str) -> bool:
        try:
            return own.feed_behind(canonical_url(url)) is None
        except UrlError:  # nobody knows what a browser makes of it
            return False

    return may_load


_NUMBER: Final = re.compile("[1-9][0-9]{0,8}", re.ASCII)


def _number(given: str) -> int:
    if not given:
        return 1
    if not _NUMBER.fullmatch(given):
        raise RequestError(f"expected page as a whole number, 1 or more, got {given[:40]!r}")
    return int(given)


async def _page_of(
    request: web.Request, reconstruction: Reconstruction, url: str, number: int, may_load: MayLoad | None
) -> _View:
    snapshot = reconstruction.snapshot
    total = entries_in(snapshot)
    pages = max(1, -(-total // _ENTRIES_A_PAGE))
    if number > pages:
        raise RequestError(f"expected page as a number from 1 to {pages}, got {number}")
    start = (number - 1) * _ENTRIES_A_PAGE
    feed, store = snapshot.feed, request.app[STORE]
    async with reconstruction.in_time():
        entries = await read_entries(snapshot, store, start, _ENTRIES_A_PAGE)
    head = await described(feed)
    site = plain_url(head.site or feed.via_url)
    shown = await asyncio.to_thread(_shown, entries, feed.via_url, start, may_load)
    return _View(
        title=plain(unmarked(head.title), _LONGEST_TITLE) or urlsplit(feed.via_url).netloc,
        site=site,
        site_name=urlsplit(site).netloc,
        state=reconstruction.state,
        said=STATES[reconstruction.state],
        stale=STALE if reconstruction.is_stale else None,
        total=total,
        entries=shown,
        number=number,
        pages=pages,
        has_media=may_load is not None,
        query=quote(url, safe=""),
        file="feed.json" if feed.published_family is Family.JSON else "feed.xml",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """What the page shows of a feed."""

    title: str
    site: str
    """The publisher's page."""
    site_name: str
    state: State
    said: Words
    """What the state means."""
    stale: Words | None
    """None: the publisher answered when it was asked last."""
    total: int
    """Entries of the feed."""
    entries: list[_Entry]
    number: int
    """Of this page, from 1, the one with the newest."""
    pages: int
    has_media: bool
    query: str
    """What names the feed in a link."""
    file: str
    """What the feed is called when it is saved."""


def _shown(entries: tuple[Shown, ...], via_url: str, start: int, may_load: MayLoad | None) -> list[_Entry]:
    left = Allowance()
    return [_entry(each, number, via_url, left, may_load) for number, each in enumerate(entries, start + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An entry as the page shows it."""

    number: int
    """Its place in the feed, from 1, the newest."""
    title: str
    link: str
    at: Instant | None
    updated: Instant | None
    """Where it differs by more than a day."""
    author: str
    content: Markup
    files: tuple[_File, ...]
    is_cut: bool


def _entry(entry: Shown, number: int, via_url: str, left: Allowance, may_load: MayLoad | None) -> _Entry:
    at = entry.published if entry.published is not None else entry.updated
    has_changed = entry.updated is not None and at is not None and entry.updated - at > DAY_SECONDS
    return _Entry(
        number=number,
        title=plain(entry.title, _LONGEST_TITLE),
        link=plain_url(entry.link),
        at=_instant(at),
        updated=_instant(entry.updated) if has_changed else None,
        author=plain(entry.author, _LONGEST_NAME),
        content=sanitised(entry.content, entry.base or via_url, left, may_load=may_load),
        files=tuple(_file(each, may_load) for each in entry.enclosures),
        is_cut=entry.is_cut,
    )


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(at: float | None) -> Instant | None:
    if at is None:
        return None
    then = _EPOCH + timedelta(seconds=at)
    return Instant(f"{then.day} {then:%B} {then.year}, {then:%H:%M} UTC", f"{then.isoformat()}")


@dataclass(frozen=True, slots=True)
class _File:
    """A file that goes with an entry."""

    url: str
    name: str
    said: str
    """Its type and size, as far as they are known."""
    element: str
    """What plays or shows it on this page; empty when nothing does."""


def _file(file: Enclosure, may_load: MayLoad | None) -> _File:
    kind = file.media_type.partition(";")[0].strip().lower()
    url = plain_url(file.url)
    name = unquote(urlsplit(url).path.rpartition("/")[2], errors="replace")
    element = ""
    if may_load is not None and may_load(url):
        element = {"image": "img", "audio": "audio", "video": "video"}.get(kind.partition("/")[0], "")
    said = ", ".join(each for each in (plain(kind, 60), _size(file.length)) if each)
    return _File(url, plain(name, _LONGEST_NAME) or urlsplit(url).netloc, said, element)


_STEP: Final = 1000


def _size(length: int | None) -> str:
    if length is None:
        return ""
    for unit in ("bytes", "kB", "MB"):
        if length < _STEP:
            return f"{length:.0f} {unit}"
        length = length // _STEP
    return f"{length} GB"
