"""GET /view?url=U: a feed for people, newest entries first, in pages.

Strangers write entries. Pages load media only with `media=1`, and never from the proxy itself: the browser
would send its session (docs/faults.md row 97). Entries are the same for everybody and cached.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlsplit

from aiohttp import web
from markupsafe import Markup

from wholefeed.core.compose.entries import strip_markup
from wholefeed.core.compose.reading import Article, File
from wholefeed.core.compose.sanitising import plain, plain_url
from wholefeed.core.model import Family
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import UrlPlaces, split
from wholefeed.core.words import STALE, STATES, pace_in_words
from wholefeed.errors import NoSuchPageError, NothingYetError
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import PageKey, RenderedPage, describe, entries_in
from wholefeed.web.feed import carry_parameters, in_pieces, send, to_view
from wholefeed.web.keys import ASKED, CONFIG, SERVICE, with_instead
from wholefeed.web.pages_base import (
    CONTENT_SECURITY_POLICY,
    PAGE_FIELDS,
    page,
    page_text,
    render,
    time_element,
)
from wholefeed.web.request import FULL, Asked, base_url, own_url, read_replay, read_wait

_ENTRIES_A_PAGE: Final = 50
_WAIT_SECONDS: Final = 1.0
"""For an unknown feed, before the page says that it is being read."""
_LONGEST_TITLE: Final = 300
_MEDIA_POLICY: Final = CONTENT_SECURITY_POLICY.replace(
    "img-src 'self' data:", "img-src 'self' data: https: http:; media-src https: http:"
)


async def get_view(request: web.Request) -> web.StreamResponse:
    """Show a feed; first replace a token in the URL by a session."""
    if request[ASKED].query.options.get("token"):
        return to_view(request, request[ASKED])
    return await with_instead(request, lambda url: _view(request, request[ASKED], url))


async def _view(request: web.Request, asked: Asked, url: str) -> web.StreamResponse:
    options = asked.query.options
    service, most = request.app[SERVICE], request.app[CONFIG].limits.respond_within_seconds
    wait_seconds = read_wait({"wait": str(_WAIT_SECONDS), **options}, most)
    replay = _replay_in_words(request, asked, url)
    own = _own_places(request, asked) if options.get("media") == "1" else None
    try:
        async with service.answer(url, wait_seconds=wait_seconds) as reconstruction:
            view = await _view_of(reconstruction, url, options.get("page", "1"), has_media=own is not None)
            view["replay"] = replay
            has_texts = service.texts.are_on and options.get("text") == FULL
            if has_texts:
                service.texts.note_asked(reconstruction.feed)
            start = (view["number"] - 1) * _ENTRIES_A_PAGE
            wanted = PageKey(start, _ENTRIES_A_PAGE, own, has_texts=has_texts)
            entries = await service.showing.page(reconstruction, wanted, _articles)
    except NothingYetError:
        return await page(request, "view_loading.html", url=url)
    around = await page_text(request, "view.html", carried=carry_parameters(asked), view=view)
    with service.showing.sending(entries):
        policy = CONTENT_SECURITY_POLICY if own is None else _MEDIA_POLICY
        return await _send(request, around, entries, policy)


_ENTRIES: Final = "<!--entries-->"
"""The entries' place; escaping keeps it out of values."""


async def _send(request: web.Request, around: str, entries: RenderedPage, policy: str) -> web.StreamResponse:
    before, _, behind = around.encode("utf-8", "replace").partition(_ENTRIES.encode())
    body = entries.body or b""
    response = web.StreamResponse(headers={**PAGE_FIELDS, "Content-Security-Policy": policy})
    response.content_length = len(before) + len(body) + len(behind)
    is_head = request.method == "HEAD"
    return await send(request, response, None if is_head else in_pieces(before, body, behind))


def _own_places(request: web.Request, asked: Asked) -> UrlPlaces:
    """Return the proxy's own URL and the requested one."""
    base = base_url(request, asked)
    is_asked_so = request.host.lower() == urlsplit(base).netloc.lower()
    return UrlPlaces.of([base, "" if is_asked_so else f"http://{request.host}"])


async def _view_of(
    reconstruction: Reconstruction, url: str, page_asked: str, *, has_media: bool
) -> dict[str, Any]:
    """Return the values around the entries; page 1 has the newest.

    Raises:
        NoSuchPageError: The feed has no such page.
    """
    snapshot = reconstruction.snapshot
    total, feed = entries_in(snapshot), snapshot.feed
    pages = max(1, -(-total // _ENTRIES_A_PAGE))
    number = int(page_asked) if _NUMBER.fullmatch(page_asked) else 0
    if not 1 <= number <= pages:
        raise NoSuchPageError(f"expected page as a number from 1 to {pages}, got {page_asked[:40]!r}")
    head = await describe(feed)
    site = plain_url(head.site or feed.via_url)
    return {
        "title": plain(strip_markup(head.title), _LONGEST_TITLE) or _host(feed.via_url),
        "site": site,
        "site_name": _host(site),
        "state": reconstruction.state,
        "said": STATES[reconstruction.state],
        "stale": STALE if reconstruction.is_stale else None,
        "total": total,
        "number": number,
        "pages": pages,
        "has_media": has_media,
        "query": quote(url, safe=""),
        "file": "feed.json" if feed.published_family is Family.JSON else "feed.xml",
    }


_NUMBER: Final = re.compile("[1-9][0-9]{0,8}", re.ASCII)


def _replay_in_words(request: web.Request, asked: Asked, url: str) -> str:
    replay = read_replay(asked.query.options, own_url(base_url(request, asked), url, asked.mark))
    if replay is None:
        return ""
    begins = replay.pace.clock(replay.pace.from_at)
    return f"{pace_in_words(replay.pace)}, beginning on {begins.day} {begins:%B} {begins.year}"


def _host(url: str) -> str:
    """Return a URL's host and port without a misleading userinfo."""
    return (split(url).authority or "").rpartition("@")[2]


def _articles(articles: Sequence[Article], first: int) -> bytes:
    entries = [_entry(each, number) for number, each in enumerate(articles, first)]
    return render("entries.html", {"entries": entries}).encode("utf-8", "replace")


def _entry(article: Article, number: int) -> dict[str, Any]:
    """Return an entry for the template; the newest is number 1."""
    at, updated = article.at, article.updated
    has_changed = updated is not None and at is not None and updated - at > DAY_SECONDS
    return {
        "number": number,
        "title": article.title,
        "link": article.link,
        "at": _instant(at),
        "updated": _instant(updated) if has_changed else None,
        "author": article.author,
        "length": length_in_words(article.duration_seconds),
        "content": Markup(article.content),  # noqa: S704 - sanitised
        "cut": article.cut,
        "files": [_file(each) for each in article.files],
        "files_left": article.files_left,
        "of_page": article.is_of_page,
    }


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _instant(at: float | None) -> Markup | None:
    if at is None:
        return None
    then = _EPOCH + timedelta(seconds=at)
    return time_element(then.isoformat(), f"{then.day} {then:%B} {then.year}, {then:%H:%M} UTC")


def length_in_words(seconds: float | None) -> str:
    """Return a playing time: `1 h 3 min`, `45 min`, `40 s`."""
    if seconds is None:
        return ""
    hours, minutes = divmod(int(seconds) // 60, 60)
    if not hours and not minutes:
        return f"{max(1, int(seconds))} s"
    return " ".join(each for each in (f"{hours} h" * bool(hours), f"{minutes} min" * bool(minutes)) if each)


def _file(file: File) -> dict[str, str]:
    """Return an enclosure and its HTML element, if any."""
    element = ""
    if file.may_load:
        element = {"image": "img", "audio": "audio", "video": "video"}.get(file.kind.partition("/")[0], "")
    said = ", ".join(each for each in (file.kind, _size(file.length)) if each)
    return {"url": file.url, "name": file.name, "said": said, "element": element}


_STEP: Final = 1000


def _size(length: int | None) -> str:
    if length is None:
        return ""
    for unit in ("bytes", "kB", "MB"):
        if length < _STEP:
            return f"{length:.0f} {unit}"
        length = length // _STEP
    return f"{length} GB"
