"""GET /view?url=U: a feed for people, newest entries first, in pages.

Strangers write entries. Pages load media only with `media=1`, and never from the proxy itself: the browser
would send its session (docs/faults.md row 97). Entries are the same for everybody and cached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from aiohttp import web
from markupsafe import Markup

from wholefeed.core.compose.entries import EntryHeading, strip_markup
from wholefeed.core.compose.reading import Article, File
from wholefeed.core.compose.sanitising import plain, plain_url
from wholefeed.core.compose.skimming import LONGEST_TITLE
from wholefeed.core.model import Family
from wholefeed.core.origins import Origin
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import UrlPlaces, split
from wholefeed.core.words import STALE, pace_in_words, state_words
from wholefeed.errors import NoSuchPageError, NothingYetError
from wholefeed.service.results import Reconstruction
from wholefeed.service.service import FeedService
from wholefeed.service.showing import PageKey, RenderedPage, describe, entries_in
from wholefeed.service.titles import NO_YEARS, YearsReached
from wholefeed.web.api import published_object
from wholefeed.web.feed import carry_parameters, in_pieces, send, to_view
from wholefeed.web.keys import ASKED, CONFIG, SERVICE, with_instead
from wholefeed.web.pages_base import (
    CONTENT_SECURITY_POLICY,
    PAGE_FIELDS,
    date_element,
    page,
    page_text,
    render,
    root_of,
)
from wholefeed.web.request import FULL, Asked, base_url, name_pages, own_url, read_replay, read_wait

_ENTRIES_A_PAGE: Final = 50
_WAIT_SECONDS: Final = 1.0
"""For an unknown feed, before the page says that it is being read."""
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
            years = await _years(service, reconstruction)
            view = await _view_of(reconstruction, url, options)
            view |= {"replay": replay, "years": years, "kept": parse_qsl(carry_parameters(asked))}
            if view["find"]:
                view["matches"] = await _matches(service, reconstruction, view["find"], options)
                return await page(request, "view.html", carried=carry_parameters(asked), view=view)
            if "year" in options:
                place = await _place_of_year(service, reconstruction, years, options["year"])
                if isinstance(place, str):
                    return _redirect_to(request, asked, url, place)
                view["missed"], view["number"] = place
            has_texts = service.texts.are_on and options.get("text") == FULL
            if has_texts:
                service.texts.note_asked(reconstruction.feed)
            start = (view["number"] - 1) * _ENTRIES_A_PAGE
            view["year"] = next((each.year for each in years.years if each.has(start)), None)
            wanted = PageKey(start, _ENTRIES_A_PAGE, own, has_texts=has_texts)
            entries = await service.showing.page(reconstruction, wanted, _articles)
    except NothingYetError:
        return await page(request, "view_loading.html", url=url)
    around = await page_text(request, "view.html", carried=carry_parameters(asked), view=view)
    with service.showing.sending(entries):
        policy = CONTENT_SECURITY_POLICY if own is None else _MEDIA_POLICY
        return await _send(request, around, entries, policy, is_whole=view["is_whole"])


# Searches and years

SEARCH_SECONDS: Final = 3.0
_YEARS_SECONDS: Final = 1.0
_MATCHES: Final = 50
_LONGEST_SEARCH: Final = 200
_YEARS: Final = "years"


async def _years(service: FeedService, reconstruction: Reconstruction) -> YearsReached:
    held = reconstruction.held
    known: YearsReached | None = held.made(_YEARS) if held is not None else None
    if known is not None or not reconstruction.snapshot.segments:
        return known or NO_YEARS
    async with service.showing.turn():
        known = await service.titles.years(reconstruction.snapshot, seconds=_YEARS_SECONDS)
    if held is not None and known.is_all:
        held.keep_made(_YEARS, known, _YEAR_BYTES * len(known.years))
    return known


_YEAR_BYTES: Final = 200


async def _matches(
    service: FeedService, reconstruction: Reconstruction, words: str, options: Mapping[str, str]
) -> dict[str, Any]:
    snapshot = reconstruction.snapshot
    after = int(options["after"]) if _NUMBER.fullmatch(options.get("after", "")) else 0
    after = after if after < entries_in(snapshot) else 0
    async with service.showing.turn():
        found = await service.titles.find(snapshot, words, start=after, most=_MATCHES, seconds=SEARCH_SECONDS)
    if found.entries > len(found.found):
        more = found.found[-1][0] + 1
    else:
        more = 0 if found.is_all else found.searched
    return {
        "lines": [_line(place, heading) for place, heading in found.found],
        "count": found.entries,
        "after": after,
        "searched": found.searched,
        "is_all": found.is_all,
        "more": more,
    }


def _line(place: int, heading: EntryHeading) -> dict[str, Any]:
    return {
        "title": heading.title,
        "date": date_element(heading.date, has_time=False),
        "number": place // _ENTRIES_A_PAGE + 1,
        "name": heading.name,
    }


async def _place_of_year(
    service: FeedService, reconstruction: Reconstruction, years: YearsReached, asked: str
) -> str | tuple[str, int]:
    """Return the query of a year's first entry, or else a sentence, and the page to show."""
    if not _YEAR.fullmatch(asked):
        return "A year is a number, such as 2015.", 1
    wanted = int(asked)
    run = next((each for each in years.years if each.year <= wanted), None)
    if run is None:
        words = "has no entries of" if years.is_all else "has none among those read so far of"
        return f"This feed {words} {wanted} or earlier.", 1
    number = run.place // _ENTRIES_A_PAGE + 1
    if run.year != wanted:
        return f"This feed has no entries of {wanted}; here are those of {run.year}.", number
    heading = await service.titles.heading(reconstruction.snapshot, run.place)
    return f"{f'&page={number}' if number > 1 else ''}#{heading.name}"


_YEAR: Final = re.compile("[0-9]{1,4}", re.ASCII)


def _redirect_to(request: web.Request, asked: Asked, url: str, place: str) -> web.Response:
    options = asked.query.options
    whole = "whole=1&" if options.get("whole") == "1" else ""
    media = "&media=1" if options.get("media") == "1" else ""
    query = f"{whole}url={quote(url, safe='')}{carry_parameters(asked)}{media}{place}"
    fields = {"Location": f"{root_of(request)}view?{query}", "Cache-Control": "no-store"}
    return web.Response(status=303, headers=fields)


_ENTRIES: Final = "<!--entries-->"
"""The entries' place; escaping keeps it out of values."""


_FOLDED: Final = b'<details class="fold">'
"""The sanitiser leaves no class in entries."""


async def _send(
    request: web.Request, around: str, entries: RenderedPage, policy: str, *, is_whole: bool
) -> web.StreamResponse:
    before, _, behind = around.encode("utf-8", "replace").partition(_ENTRIES.encode())
    body = entries.body or b""
    if is_whole:
        body = body.replace(_FOLDED, _FOLDED[:-1] + b" open>")
    response = web.StreamResponse(headers={**PAGE_FIELDS, "Content-Security-Policy": policy})
    response.content_length = len(before) + len(body) + len(behind)
    is_head = request.method == "HEAD"
    return await send(request, response, None if is_head else in_pieces(before, body, behind))


def _own_places(request: web.Request, asked: Asked) -> UrlPlaces:
    """Return the proxy's own URL and the requested one."""
    base = base_url(request, asked)
    is_asked_so = request.host.lower() == urlsplit(base).netloc.lower()
    return UrlPlaces.of([base, "" if is_asked_so else f"http://{request.host}"])


async def _view_of(reconstruction: Reconstruction, url: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the values around the entries; page 1 has the newest.

    Raises:
        NoSuchPageError: The feed has no such page.
    """
    snapshot = reconstruction.snapshot
    total, feed = entries_in(snapshot), snapshot.feed
    pages = max(1, -(-total // _ENTRIES_A_PAGE))
    page_asked = options.get("page", "1")
    number = int(page_asked) if _NUMBER.fullmatch(page_asked) else 0
    if not 1 <= number <= pages:
        raise NoSuchPageError(f"expected {name_pages(pages)}, got {page_asked[:40]!r}")
    head = await describe(feed)
    site = plain_url(head.site or feed.via_url)
    return {
        "title": plain(strip_markup(head.title), LONGEST_TITLE) or _host(feed.via_url),
        "site": site,
        "site_name": _host(site),
        "state": reconstruction.state,
        "said": state_words(published_object(reconstruction)),
        "stale": STALE if reconstruction.is_stale else None,
        "total": total,
        "number": number,
        "pages": pages,
        "has_media": options.get("media") == "1",
        "is_whole": options.get("whole") == "1",
        "url": url,
        "key": feed.url,
        "query": quote(url, safe=""),
        "file": "feed.json" if feed.published_family is Family.JSON and "as" not in options else "feed.xml",
        "find": plain(" ".join(options.get("find", "")[:_LONGEST_SEARCH].split()), _LONGEST_SEARCH),
        "missed": "",
        "matches": None,
        "year": None,
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
    return render("entries.html", {"entries": [*map(_entry, articles)]}).encode("utf-8", "replace")


def _entry(article: Article) -> dict[str, Any]:
    at, updated = article.date.at, article.updated.at
    has_changed = updated is not None and at is not None and updated - at > DAY_SECONDS
    # Lists of pages have days; a time of day is the proxy's guess (H5).
    has_time = article.origin is not Origin.LISTING
    return {
        "name": article.name,
        "title": article.title,
        "link": article.link,
        "link_host": _host(article.link),
        "at": date_element(article.date, has_time=has_time),
        "updated": date_element(article.updated) if has_changed else None,
        "author": article.author,
        "length": length_in_words(article.duration_seconds),
        "source": article.origin.policy.words if article.origin is not None else "",
        "content": Markup(article.content),  # noqa: S704 - sanitised
        "cut": article.cut,
        "files": [_file(each) for each in article.files],
        "files_left": article.files_left,
        "of_page": article.is_of_page,
    }


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
