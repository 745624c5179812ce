"""Home: the table of feeds, and the forms that act on several feeds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from aiohttp import web

from wholefeed import __version__
from wholefeed.core.attention import Help
from wholefeed.core.compose.sanitising import plain, plain_url
from wholefeed.core.slugs import failure_in_words
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.text.urls import is_http
from wholefeed.core.words import (
    STALE,
    STATES,
    Words,
    ago,
    count_noun,
    describe_polling,
    outcome_in_words,
    sums_in_words,
)
from wholefeed.errors import RequestError, UnknownFeedError
from wholefeed.fetch.hosts import BACKOFF
from wholefeed.service.feed_list import DescribedNeed, FeedListPage
from wholefeed.service.service import FeedService
from wholefeed.store.rows import FeedLine
from wholefeed.store.tables.feed_table import ATTENTION, ORDERS, FeedSearch
from wholefeed.web.intake_routes import list_at_home
from wholefeed.web.keys import ASKED, CONFIG, SERVICE
from wholefeed.web.opml_routes import download_list, export
from wholefeed.web.pages_base import LONGEST_URL, MOST_CHARACTERS, Trouble, page, see_other, time_element
from wholefeed.web.request import base_url, whole_body

# The page


async def home_page(request: web.Request, trouble: Trouble | None, status: int = 200) -> web.Response:
    app, query = request.app, request.query
    service = app[SERVICE]
    search, number = read_search(query)
    listing = await service.listed(search, number)
    asked = _read_asked(query.get("asked", ""))
    lines = _FeedLines(service, asked)
    feeds = [lines.show(feed) for feed in listing.feeds]
    needs = {each.feed.id: _show_need(each, lines) for each in listing.needs}
    said, is_over = await _tell(request, asked)
    return await page(
        request,
        "home.html",
        status=status,
        trouble=trouble,
        forgotten=await _forgotten(request),
        intakes=await list_at_home(request),
        given=plain_url(request[ASKED].query.url),
        feeds=feeds,
        needs=needs,
        said=said,
        is_over=is_over,
        again_seconds=AGAIN_SECONDS,
        choices=_choices(listing, search),
        words_of=_WORDS,
        meanings=_meanings(listing.feeds),
        listing=listing,
        search=search,
        orders=_ORDERS,
        part=partial(search_query, search),
        all_needs=search_query(FeedSearch(state=ATTENTION)),
        polling=describe_polling(app[CONFIG].history.poll_seconds),
        base=base_url(request, request[ASKED]),
        has_token=bool(app[CONFIG].server.access_token),
        version=__version__,
    )


AGAIN_SECONDS: Final = 4
"""Time until a page without scripts reloads."""
_NUMBER: Final = re.compile("[1-9][0-9]{0,6}", re.ASCII)
_MAX_WORDS: Final = 200
_ORDERS: Final = {
    "asked": "last asked for",
    "title": "title",
    "url": "address",
    "state": "history",
    "entries": "most entries",
}
_WORDS: Final[Mapping[str, Words]] = {
    **{state.value: words for state, words in STATES.items()},
    "stale": STALE,
}
_CHOICES: Final = {
    "": "All",
    **{name: words.title for name, words in _WORDS.items()},
    ATTENTION: "Need attention",
}


def read_search(query: Mapping[str, str]) -> tuple[FeedSearch, int]:
    """Return search and part, from 1; nonsense is ignored."""
    state, sort, number = query.get("state", ""), query.get("sort", ""), query.get("page", "")
    search = FeedSearch(
        words=query.get("q", "")[:_MAX_WORDS].strip(),
        state=state if state in _CHOICES else "",
        sort=sort if sort in _ORDERS else ORDERS[0],
    )
    return search, int(number) if _NUMBER.fullmatch(number) else 1


def search_query(search: FeedSearch, number: int = 1, **more: str) -> str:
    """Return the query of a link that `read_search` reads."""
    sort = "" if search.sort == ORDERS[0] else search.sort
    query = {"q": search.words, "state": search.state, "sort": sort, "page": "" if number == 1 else number}
    kept = {name: value for name, value in {**query, **more}.items() if value}
    return "?" + urlencode(kept) if kept else ""


def _choices(listing: FeedListPage, search: FeedSearch) -> list[dict[str, Any]]:
    shown = {name: listing.counts.get(name, 0) for name in _CHOICES}
    return [
        {
            "words": _CHOICES[name],
            "count": count,
            "link": search_query(search._replace(state=name)),
            "is_chosen": name == search.state,
        }
        for name, count in shown.items()
        if count or name in ("", search.state)
    ]


async def _forgotten(request: web.Request) -> str:
    url = request.query.get("forgotten", "")[:LONGEST_URL]
    return plain_url(url) if is_http(url) and not await request.app[SERVICE].is_known(url) else ""


def _meanings(feeds: Sequence[FeedLine]) -> list[Words]:
    used = {feed.visible_state.value for feed in feeds} | {"stale" for feed in feeds if feed.is_stale}
    return [words for name, words in _WORDS.items() if name in used]


class _FeedLines:
    def __init__(self, service: FeedService, asked: Mapping[int, int]) -> None:
        self._service = service
        self._asked = asked
        self._now = service.now()

    def show(self, feed: FeedLine) -> dict[str, Any]:
        at = feed.checked_at
        return {
            "id": feed.id,
            "url": feed.url,
            "name": plain(feed.title or "", MOST_CHARACTERS).strip() or _shorten(feed.url),
            "has_title": bool(plain(feed.title or "", MOST_CHARACTERS).strip()),
            "address": _shorten(feed.url),
            "whole": plain_url(feed.url),
            "state": feed.visible_state,
            "entries": feed.entries,
            "since": "" if feed.oldest_at is None else _show_month(feed.oldest_at),
            "refreshed": at and time_element(format_rfc3339(at), ago(at, self._now)),
            "why": _why(feed) if feed.is_stale else "",
            "asking": self._describe_asking(feed.id),
            "outcome": self._describe_outcome(feed) if feed.id in self._asked else "",
        }

    def _describe_asking(self, feed: int) -> str:
        if self._service.queue.is_waiting(feed):
            return "to be asked soon"
        return "being asked now" if self._service.is_being_asked(feed) else ""

    def _describe_outcome(self, feed: FeedLine) -> str:
        is_left_alone = feed.reason == BACKOFF if feed.reason else self._service.paused_until(feed.fetch_url)
        if is_left_alone:
            return "not asked: its site gets no requests for now"
        return outcome_in_words(feed.entries - self._asked[feed.id], _why(feed) if feed.is_stale else "")


def _why(feed: FeedLine) -> str:
    return failure_in_words(feed.reason, feed.status) if feed.reason else "the publisher did not send it"


def _shorten(url: str) -> str:
    return plain_url(url).removeprefix("https://")


def _show_month(at: float) -> str:
    day = datetime.fromtimestamp(at, UTC)
    return f"{day:%b} {day.year}"


_HELP: Final = {
    Help.REFRESH: "Ask again",
    Help.SITE: "Look on its site",
    Help.MOVE: "See it there",
    Help.CONTINUE: "Continue it there",
    Help.CAUSE: "See what is missing",
}


def _show_need(each: DescribedNeed, lines: _FeedLines) -> dict[str, Any]:
    shown, words = lines.show(each.feed), each.words
    queries = {
        Help.SITE: "?" + urlencode({"url": words.address}),
        Help.MOVE: "?" + urlencode({"url": words.address}),
        Help.CONTINUE: "continue?" + urlencode({"url": words.address, "old": each.feed.url}),
        Help.CAUSE: "?" + urlencode({"url": each.feed.url}) + "#missing",
    }
    return {
        **shown,
        "sentence": words.sentence,
        "link": queries.get(words.help, ""),
        "button": _HELP[words.help],
        "target": plain_url(words.address),
    }


# What was done


def _read_asked(text: str) -> dict[int, int]:
    found = {}
    for each in text.split(".")[:_MOST_OUTCOMES] if text else ():
        feed, _, entries = each.partition("-")
        if _ID.fullmatch(feed) and _COUNT.fullmatch(entries):
            found[int(feed)] = int(entries)
    return found


_ID: Final = re.compile("[1-9][0-9]{0,17}", re.ASCII)
_COUNT: Final = re.compile("[0-9]{1,9}", re.ASCII)
_MOST_OUTCOMES: Final = 100
"""More do not fit: the feeds' numbers stand in the URL."""


async def _tell(request: web.Request, asked: Mapping[int, int]) -> tuple[str, bool]:
    service, query = request.app[SERVICE], request.query
    begun, total = service.queue.progress
    if begun < total:
        return f"{begun:,} of {_feeds(total)} asked so far; the others follow, a few at a time.", False
    if asked:
        lines = await service.lines_of(list(asked))
        if left := [line for line in lines if service.is_being_asked(line.id)]:
            return f"{_feeds(len(left))} {'is' if len(left) == 1 else 'are'} being asked now.", False
        return _sum_up(lines, asked), True
    if _COUNT.fullmatch(count := query.get("gone", "")) and int(count):
        are = "feed is" if int(count) == 1 else "feeds are"
        it = "it" if int(count) == 1 else "them"
        return f"{int(count):,} {are} forgotten, and nothing of {it} is stored any more.", True
    return ("No feed was checked." if "none" in query else ""), True


def _sum_up(lines: Sequence[FeedLine], asked: Mapping[int, int]) -> str:
    if not lines:
        return ""
    said, failed = f"{_feeds(len(lines))} asked", sum(line.is_stale for line in lines)
    if failed == len(lines):
        return (
            f"{said}; {'it' if failed == 1 else 'none'} {'did not respond' if failed == 1 else 'responded'}."
        )
    change = sum(line.entries - asked[line.id] for line in lines)
    silent = f"; {failed:,} did not respond" if failed else ""
    return f"{said}: {outcome_in_words(change, '')}{silent}."


def _feeds(count: int) -> str:
    return count_noun(count, "feed", "feeds")


# The forms

FORM_SECONDS: Final = 30.0
_MAX_FORM_BYTES: Final = 1 << 20
_MAX_FIELDS: Final = 30_000
_MOST_NAMED: Final = 20
_LINES_AT_ONCE: Final = 500


class _Form(NamedTuple):
    search: FeedSearch
    number: int
    act: str
    feeds: tuple[int, ...]
    is_one: bool
    """Whether a line's own button was pressed."""
    fragment: str

    def place(self, **more: str) -> str:
        return f"./{search_query(self.search, self.number, **more)}#{self.fragment}"


async def post_feeds(request: web.Request) -> web.StreamResponse:
    """Refresh, forget or export the checked feeds.

    Raises:
        RequestError: The form is malformed, or names no act.
    """
    try:
        async with asyncio.timeout(FORM_SECONDS):
            body = await whole_body(request, _MAX_FORM_BYTES)
        fields = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS)
    except TimeoutError as exc:
        raise RequestError(f"expected the whole form within {FORM_SECONDS:g} s") from exc
    except ValueError as exc:
        raise RequestError(f"expected a form of at most {_MAX_FIELDS} fields") from exc
    service = request.app[SERVICE]
    form = await _read_form(service, fields)
    if form.act not in _ACTS:
        raise RequestError(f"expected the field act to be one of {', '.join(_ACTS)}, got something else")
    if not form.feeds:
        return see_other(form.place(none="1"))
    if form.act == "refresh":
        return await _refresh(service, form)
    if form.act == "forget":
        await service.forget_all(form.feeds)
        return see_other(form.place(gone=str(len(form.feeds))))
    base = base_url(request, request[ASKED])
    return download_list(await export(_lines_of(service, form.feeds), base, request.app[CONFIG]))


_ACTS: Final = ("refresh", "forget", "export")


async def _read_form(service: FeedService, fields: Sequence[tuple[str, str]]) -> _Form:
    last = dict(fields)
    search, number = read_search(last)
    one, fragment = last.get("refresh", ""), "known"
    if one:
        written, fragment = [one], f"feed-{one}"
    elif "all" in last:
        written = [str(each) for each in await service.find_all(search)]
    else:
        written = [each for name, value in fields if name == "feed" for each in value.split(",")]
    feeds = tuple(dict.fromkeys(int(each) for each in written if _ID.fullmatch(each)))
    if "attention" in last or not feeds:
        fragment = "attention" if feeds else "known"
    act = "refresh" if one else last.get("act", "")
    return _Form(search, number, act, feeds, bool(one), fragment)


async def _refresh(service: FeedService, form: _Form) -> web.Response:
    lines = await service.lines_of(form.feeds[:_MOST_OUTCOMES])
    if not lines:
        return see_other(form.place(gone=str(len(form.feeds))))
    if not form.is_one:
        service.queue.add(form.feeds)
    elif not service.is_being_asked(lines[0].id):
        with suppress(UnknownFeedError):  # forgotten just now
            await service.refresh(lines[0].url)
    asked = ".".join(f"{line.id}-{line.entries}" for line in lines)
    return see_other(form.place(asked=asked if len(form.feeds) <= _MOST_OUTCOMES else ""))


async def ask_to_forget(request: web.Request) -> web.StreamResponse:
    service = request.app[SERVICE]
    form = await _read_form(service, list(request.query.items()))
    if not form.feeds:
        return see_other(form.place(none="1"))
    found = [line async for lines in _lines_of(service, form.feeds) for line in lines]
    if not found:
        return see_other(form.place(gone=str(len(form.feeds))))
    names = [plain(line.title or line.url, MOST_CHARACTERS) for line in found[:_MOST_NAMED]]
    return await page(
        request,
        "forget_feeds.html",
        feeds=_feeds(len(found)),
        ids=",".join(str(line.id) for line in found),
        names=names,
        more=len(found) - len(names),
        sums=sums_in_words(sum(line.entries for line in found), sum(line.documents for line in found)),
        search=form.search,
        number=form.number,
        place=form.place(),
    )


async def _lines_of(service: FeedService, feeds: Sequence[int]) -> AsyncIterator[list[FeedLine]]:
    for start in range(0, len(feeds), _LINES_AT_ONCE):
        yield await service.lines_of(feeds[start : start + _LINES_AT_ONCE])
