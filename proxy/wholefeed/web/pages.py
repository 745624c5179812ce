"""The pages for people, except `view` and `home`.

Programs get no page at these URLs.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, quote, quote_plus, unquote

from aiohttp import web

from wholefeed import __version__
from wholefeed.core.compose.entries import PageEntry
from wholefeed.core.compose.sanitising import plain, plain_url
from wholefeed.core.model import Family, State
from wholefeed.core.parse.discovery import Alternate
from wholefeed.core.replay import WEEKDAYS, PaceError, ReplayPace
from wholefeed.core.slugs import failure_in_words, slug_in_words
from wholefeed.core.text.urls import UrlPlaces
from wholefeed.core.words import (
    STATES,
    count_noun,
    describe_attempt,
    pace_in_words,
    passed_over_in_words,
    replay_in_words,
    sums_in_words,
    texts_in_words,
    time_left,
    words_of,
)
from wholefeed.errors import (
    DocumentError,
    InvalidUrlError,
    NothingYetError,
    OverloadedError,
    PublisherTimeoutError,
    RequestError,
    TooManyRequestsError,
    UnauthorizedError,
    UploadError,
    WholefeedError,
)
from wholefeed.fetch.hosts import BACKOFF
from wholefeed.service.account import ChainDocument, Timeline, timeline_of
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import describe, removable_names
from wholefeed.service.titles import Excerpt
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables.segment_table import months
from wholefeed.web.access import take_turn
from wholefeed.web.api import json_answer, status_object
from wholefeed.web.feed import forget_named, named_entry
from wholefeed.web.home import ask_to_forget, home_page
from wholefeed.web.import_routes import continued_object
from wholefeed.web.keys import ASKED, CONFIG, LOGINS, SERVICE, STORE, named_url, with_instead
from wholefeed.web.list_rewriting import feed_behind, replay_behind
from wholefeed.web.pages_base import (
    LONGEST_URL,
    MOST_CHARACTERS,
    Trouble,
    begin_session,
    date_element,
    end_session,
    is_browser,
    page,
    see_other,
    session_of,
)
from wholefeed.web.reader_links import chosen_format, make_reader_links, reader_url
from wholefeed.web.request import (
    DESTINATION,
    FEED_ROUTES,
    FULL,
    Asked,
    base_url,
    begun_replay,
    complete_url,
    feed_url,
    is_set,
    read_replay,
    replay_options,
    view_query,
    whole_body,
)

# Home


async def get_home(request: web.Request) -> web.StreamResponse:
    asked = request[ASKED]
    if "token" in asked.query.options and asked.knows_token and not asked.session and is_browser(request):
        return _begun(request)
    if asked.query.url:
        return await _chosen(request)
    if not is_browser(request):
        return web.Response(text=_told(request), headers={"Vary": "Accept", "Cache-Control": "no-store"})
    if "url" in request.query:
        return await home_page(request, _NOTHING_TYPED, 400)
    return await home_page(request, None)


_TOKEN: Final = frozenset({"token", "amp;token"})


def _begun(request: web.Request) -> web.Response:
    """Replace the token in a URL by a session, since URLs are shown and stored."""
    parts = request.rel_url.raw_query_string.split("&")
    query = "&".join(part for part in parts if unquote(part.partition("=")[0]) not in _TOKEN)
    response = see_other("./?" + query if query else "./")
    begin_session(request, response)
    return response


def _told(request: web.Request) -> str:
    """Return how to subscribe, for programs."""
    server = request.app[CONFIG].server
    base = base_url(request, request[ASKED])
    token = "token=TOKEN&" if server.access_token else ""
    lines = [
        f"wholefeed {__version__}: the whole history of a feed, for any feed reader.",
        f"Subscribe to   {base}/feed?{token}url=FEED-URL",
        f"for example    {base}/feed?{token}url=https://example.org/feed.atom",
    ]
    if server.access_token:
        lines.append("The access token is also accepted as Bearer, or as Basic password with any user name.")
    elif server.signing_keys:
        lines.append("Each URL needs a signature, &signed=…: `wholefeed sign URL` prints it.")
    else:
        lines.append(f"or write the feed's URL behind the slash: {base}/https://example.org/feed.atom")
    lines.append(f"Open {base}/ in a browser for a page; {base}/openapi.json describes the rest.")
    return "\n".join(lines) + "\n"


# The page of one feed

WAIT_SECONDS: Final = 0.9
"""For the publisher, before the page says that it is being asked."""
AGAIN_SECONDS: Final = 4
"""Time until a page without scripts reloads."""
MOST_MISSING: Final = 100
"""/status lists all."""
MOST_LISTS: Final = 100
_NEWEST: Final = 5
_OLDEST: Final = 3
_FORMATS: Final = {
    "application/atom+xml": "Atom",
    "application/rss+xml": "RSS",
    "application/rdf+xml": "RSS 1.0",
    "application/feed+json": "JSON Feed",
    "text/xml": "RSS or Atom",
    "application/xml": "RSS or Atom",
    "application/json": "JSON Feed",
}


async def _chosen(request: web.Request) -> web.StreamResponse:
    """Show the feed of a URL, a choice of feeds, or home.

    Raises:
        WholefeedError: No feed is found for a program.
    """
    if (behind := _behind_own(request)) is not None:
        return await _led_on(request, behind)
    try:
        url = await named_url(request)
        if announced := await _find_announced(request, url):
            feeds = [
                (plain_url(each.url), plain(each.title, MOST_CHARACTERS), _FORMATS[each.media_type])
                for each in announced
            ]
            return await page(request, "choose.html", url=url, feeds=feeds)
        return await _feed_page(request)
    except PublisherTimeoutError as exc:
        if is_browser(request) and await request.app[SERVICE].is_awaited(exc.url):
            return await _waiting_page(request, exc.url)
        return await _troubled_home(request, exc)
    except (DocumentError, InvalidUrlError, OverloadedError, RequestError) as exc:
        return await _troubled_home(request, exc)


def _behind_own(request: web.Request) -> str | None:
    """Return the page's query if the typed URL is the proxy's own, else None; empty: no feed."""
    server = request.app[CONFIG].server
    own = UrlPlaces.of([base_url(request, request[ASKED]), server.public_url])
    query = request[ASKED].query
    for written in complete_url(query.url):
        if (behind := feed_behind(written, own)) is None:
            continue
        if not behind:
            return ""
        replay = replay_options({**replay_behind(written, own), **query.options})
        return f"url={quote(behind, safe='')}{view_query(replay)}{'#replay' if replay else ''}"
    return None


async def _led_on(request: web.Request, behind: str) -> web.Response:
    if not behind and is_browser(request):
        return await home_page(request, _ITSELF_TYPED, 400)
    return see_other(f"./?{behind}")


async def _find_announced(request: web.Request, url: str) -> tuple[Alternate, ...]:
    service = request.app[SERVICE]
    if await service.is_known(url):
        return ()
    wait_seconds = min(WAIT_SECONDS, request.app[CONFIG].limits.respond_within_seconds)
    return await with_instead(request, partial(service.openings.find_announced, wait_seconds=wait_seconds))


async def _troubled_home(request: web.Request, error: WholefeedError) -> web.Response:
    """Explain an error at home; programs get the error."""
    if not is_browser(request):
        raise error
    request[ASKED].add(slug=error.slug)
    return await home_page(request, _trouble_of(error), error.answer_status)


async def _feed_page(request: web.Request) -> web.StreamResponse:
    """Show a feed; for an unknown one the walk begins.

    Raises:
        PublisherTimeoutError: Nothing has come in time.
        WholefeedError: No feed exists.
    """
    url, app = await named_url(request), request.app
    wait_seconds = min(WAIT_SECONDS, app[CONFIG].limits.respond_within_seconds)
    async with app[SERVICE].answer(url, wait_seconds=wait_seconds) as reconstruction:
        async with reconstruction.in_time():
            ends = await app[SERVICE].titles.excerpt(reconstruction.snapshot, newest=_NEWEST, oldest=_OLDEST)
        return await _show_feed(request, url, reconstruction, ends)


async def _show_feed(
    request: web.Request, url: str, reconstruction: Reconstruction, ends: Excerpt
) -> web.Response:
    app, feed = request.app, reconstruction.feed
    service = app[SERVICE]
    status, chain = await service.account(url)
    async with reconstruction.in_time():
        by_month = await app[STORE].read(lambda db: months(db, feed.id))
        entries = [*ends.newest, *ends.oldest]
        names = await removable_names(feed, entries, app[STORE])
    lines = [_entry_line(entry, name) for entry, name in zip(entries, names, strict=True)]
    timeline = await asyncio.to_thread(timeline_of, chain, by_month)
    head = await describe(feed)
    told, now = status_object(status), service.now()
    said = words_of(told, now)
    request[ASKED].add(feed=feed.id, state=told["state"])
    is_json = feed.published_family is Family.JSON
    form = chosen_format(request, is_json=is_json)
    links = await make_reader_links(request, url, is_json=is_json, now=now)
    replay = _replay(request, url, told["entries"], now, form)
    lists = _lists(told, chain)
    return await page(
        request,
        "feed.html",
        status=400 if replay["trouble"] else 200,
        title=plain(head.title or feed.url, MOST_CHARACTERS),
        url=feed.url,
        known=told,
        said=said,
        links=links,
        proxied=links.address,
        paged=reader_url(request, url, {**form, "pages": "100"}),
        with_texts=reader_url(request, url, {**form, "text": FULL}) if service.texts.are_on else "",
        texts_words=texts_in_words(told["texts"]),
        replay=replay,
        missing=[_missing(each, timeline, now) for each in told["missing"][:MOST_MISSING]],
        more_missing=max(0, len(told["missing"]) - MOST_MISSING),
        has_list=told["listing"] is not None and told["listing"]["url"] is not None,
        lists=lists[:MOST_LISTS],
        more_lists=max(0, len(lists) - MOST_LISTS),
        timeline=timeline,
        newest=lines[: len(ends.newest)],
        oldest=lines[len(ends.newest) :],
        refreshed_words=describe_refresh(request.query.get("refreshed", ""), told),
        has_removed="removed" in request.query,
        continued=continued if _COUNT.fullmatch(continued := request.query.get("continued", "")) else "",
        sums=sums_in_words(told["entries"], told["documents"]),
        walked=sums_in_words(told["progress"]["entries"], told["progress"]["documents"]),
        left=time_left(told["progress"]),
        again_seconds=AGAIN_SECONDS,
    )


def describe_refresh(before: str, status: Mapping[str, Any]) -> str:
    """Describe the outcome of a refresh by hand; empty: there was none.

    `before` is the number of entries before, from the URL; `status` is an answer of GET /status.
    """
    if not _COUNT.fullmatch(before):
        return ""
    if status["refreshing"]:
        return "The publisher is being asked now; this page will show the outcome."
    if status["failure"] is not None and status["failure"]["reason"] == BACKOFF:
        return "The publisher was not asked: its site gets no requests for now, for the reason below."
    if status["failure"] is not None:
        return "The publisher was asked, and did not send the feed, for the reason below."
    change = status["entries"] - int(before)
    if change == 0:
        return "The publisher was asked: no new entries."
    more = "more" if change > 0 else "fewer"
    return f"The publisher was asked: {count_noun(abs(change), 'entry', 'entries')} {more} than before."


_COUNT: Final = re.compile("[0-9]{1,9}", re.ASCII)


_RATES: Final = (
    *("1/day", "2/day", "3/day", "5/day", "10/day", "25/day", "50/day"),
    *("1/week", "2/week", "3/week", "5/week"),
)


def _replay(
    request: web.Request, url: str, entries: int, now: float, form: Mapping[str, str]
) -> dict[str, Any]:
    """Return the replay form's values; by default one a day. `form` has further parameters.

    Its clock is this machine's until the page's script sets the person's.
    """
    given = _chosen_replay(request)
    options = begun_replay({"replay": "1/day", **given}, now)
    trouble = words = address = ""
    try:
        chosen = read_replay(options, "")
        assert chosen is not None, "it has a rate"
        words, address = replay_in_words(entries, chosen.pace), reader_url(request, url, {**form, **options})
    except (RequestError, PaceError) as exc:
        is_weekly = options["replay"].endswith("/week") and "on" in options
        trouble = _DAYS_OF_WEEKS if is_weekly else _sentence(str(exc))
        chosen = read_replay(begun_replay({"replay": "1/day"}, now), "")
        assert chosen is not None, "it has a rate"
    pace = chosen.pace
    begins = pace.clock(pace.from_at)
    sign, minutes = "-" if pace.offset_seconds < 0 else "+", abs(pace.offset_seconds) // 60
    rates = _RATES if trouble or options["replay"] in _RATES else (options["replay"], *_RATES)
    return {
        "is_chosen": bool(given),
        "begins": "from" in given,
        "rates": [(rate, pace_in_words(ReplayPace.read(rate, _ANY_TIME))) for rate in rates],
        "rate": options["replay"],
        "days": [(name, name in options.get("on", "").split(",")) for name in WEEKDAYS],
        "start": begins.isoformat(timespec="auto" if begins.second else "minutes"),
        "offset": f"{sign}{minutes // 60:02}:{minutes % 60:02}",
        "shows_original": chosen.shows_original,
        "trouble": trouble,
        "words": words,
        "address": address,
    }


_DAYS_OF_WEEKS: Final = "Days of the week need a pace in entries a day: choose such a pace, or no days."
_ANY_TIME: Final = "1970-01-01T00:00:00Z"
_WITHOUT_SECONDS: Final = len("2026-01-31T06:00")


def _chosen_replay(request: web.Request) -> dict[str, str]:
    """Return the chosen replay; `start` and `offset` form `from`, boxes of days form `on`."""
    query, options = request.query, request[ASKED].query.options
    found = replay_options(options)
    if not found:
        return {}
    if (start := query.get("start")) and "from" not in found:
        seconds = ":00" if len(start) == _WITHOUT_SECONDS else ""
        found["from"] = f"{start}{seconds}{query.get('offset', '').strip()}"
    if "on" not in found and (days := [name for name in WEEKDAYS if name in query]):
        found["on"] = ",".join(days)
    return found


def _missing(failure: dict[str, Any], timeline: Timeline, now: float) -> dict[str, str]:
    hole = timeline.holes.get(failure["url"])
    return {
        "url": plain_url(failure["url"]),
        "why": failure_in_words(failure["reason"], failure["status"]),
        "where": "" if hole is None else hole.words,
        "tried": describe_attempt(failure, now),
    }


def _lists(told: Mapping[str, Any], chain: Sequence[ChainDocument]) -> list[dict[str, str]]:
    """Return the lists of a feed (H7), else the pages searched for one."""
    listing = told["listing"]
    if listing is not None and listing["url"] is None:
        return [
            {"url": plain_url(each["url"]), "words": passed_over_in_words(each)}
            for each in listing["passed_over"]
        ]
    had = [(each, each.document) for each in chain if each.is_listed and each.document is not None]
    return [
        {"url": plain_url(page.url), "words": count_noun(row.entries - page.duplicates, "entry", "entries")}
        for page, row in had
        if row.rank is not None
    ]


def _entry_line(entry: PageEntry, name: str) -> dict[str, Any]:
    return {
        "title": plain(entry.title, MOST_CHARACTERS) or "(without a title)",
        "link": plain_url(entry.link),
        "author": plain(entry.author, MOST_CHARACTERS),
        "day": date_element(entry.date, has_time=False),
        "entry": name,
    }


async def _waiting_page(request: web.Request, url: str) -> web.Response:
    return await page(
        request,
        "waiting.html",
        url=url,
        loading=STATES[State.LOADING],
        again_seconds=AGAIN_SECONDS,
        proxied=reader_url(request, url, {}),
    )


# Forms


async def post_refresh(request: web.Request) -> web.StreamResponse:
    url = await named_url(request)
    options = request[ASKED].query.options
    is_full, has_texts = is_set(options, "full"), is_set(options, "texts")
    status = await request.app[SERVICE].refresh(url, is_full=is_full, has_texts=has_texts)
    if is_browser(request):
        told = status_object(status)
        return see_other(f"./?refreshed={told['entries']}&url={quote(url, safe='')}")  # as in `_action`
    return json_answer(status_object(status), status=202)


async def get_forget(request: web.Request) -> web.StreamResponse:
    """Ask before a feed or its `entry` (I2) is forgotten, or the checked feeds of the table."""
    if "url" not in request.query and is_browser(request):
        return await ask_to_forget(request)
    status = await request.app[SERVICE].status(await named_url(request))
    entry = (named_entry(request[ASKED]) or "").strip()
    sums = sums_in_words(status.feed.entries, status.feed.documents)
    return await _question(
        request, "forget.html", status.feed, entry=entry, known=status_object(status), sums=sums
    )


async def post_forget(request: web.Request) -> web.StreamResponse:
    """Forget a feed or its entry, since no form can send DELETE."""
    url = await forget_named(request)
    if not is_browser(request):
        return web.Response(status=204)
    is_entry = "entry" in request[ASKED].query.options
    return see_other(f"./?{'removed=1&url' if is_entry else 'forgotten'}={quote(url, safe='')}")


async def get_continue(request: web.Request) -> web.StreamResponse:
    """Ask whether a feed continues another (I3)."""
    status = await request.app[SERVICE].status(await named_url(request))
    old = plain_url(request[ASKED].query.options.get("old", "").strip())
    return await _question(request, "continue.html", status.feed, old=old)


async def post_continue(request: web.Request) -> web.StreamResponse:
    """Let a feed continue `old` (I3)."""
    url, old = await named_url(request), request[ASKED].query.options.get("old", "").strip()
    if not old:
        raise RequestError("expected the parameter old, the URL of the feed that is continued, got none")
    continued = await request.app[SERVICE].imports.continue_feed(feed_url(old), url)
    if is_browser(request):
        return see_other(f"./?continued={continued.new_entries}&url={quote(url, safe='')}")
    return json_answer(continued_object(continued))


async def _question(request: web.Request, template: str, feed: FeedRow, **said: Any) -> web.StreamResponse:
    title = (await describe(feed)).title or feed.url
    return await page(request, template, url=feed.url, title=plain(title, MOST_CHARACTERS), **said)


# Logging in

FORM_SECONDS: Final = 10.0
_MAX_FORM_BYTES: Final = 4096
_MAX_FIELDS: Final = 8


async def get_login(request: web.Request) -> web.StreamResponse:
    if not _has_secret(request) or session_of(request):
        return see_other("./")
    return await _login_page(request, 200)


async def post_login(request: web.Request) -> web.StreamResponse:
    """Begin a session and redirect to the wanted page."""
    token = request.app[CONFIG].server.access_token
    if not token:
        return await _login_page(request, 403) if _has_secret(request) else see_other("./")
    next_path = request.query.get("next", "")
    try:
        take_turn(request.app[LOGINS], request[ASKED].client, "expected fewer tokens to be tried")
        given = await _given_token(request)
        # copied tokens may have blanks
        if not hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), token.encode()):
            raise UnauthorizedError("expected the access token, got another text")
    except WholefeedError as exc:
        if not is_browser(request):
            raise
        request[ASKED].add(slug=exc.slug)
        return await ask_for_token(
            request, exc, next_path=next_path, is_wrong=isinstance(exc, UnauthorizedError)
        )
    response = see_other("./" + own_path(next_path))
    begin_session(request, response)
    return response


async def post_logout(request: web.Request) -> web.StreamResponse:
    response = see_other("./")
    end_session(response)
    return response


def _has_secret(request: web.Request) -> bool:
    server = request.app[CONFIG].server
    return bool(server.access_token or server.signing_keys)


async def _given_token(request: web.Request) -> str:
    """Return the form's token, or "".

    Anybody may send this form, so it must be short and quick, and counts as a try from its beginning.
    """
    try:
        async with asyncio.timeout(FORM_SECONDS):
            body = await whole_body(request, _MAX_FORM_BYTES)
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MAX_FIELDS)
    except (TimeoutError, ValueError):
        return ""
    return fields.get("token", [""])[0]


async def ask_for_token(
    request: web.Request, error: WholefeedError, *, next_path: str | None = None, is_wrong: bool = False
) -> web.Response:
    """Show the login page with an error's status.

    It leads to `next_path`, by default the requested page. `is_wrong`: a token was refused.
    """
    if next_path is None:
        next_path = request[ASKED].target if request.method == "GET" else ""
        is_wrong = "token" in request.query
    wait_seconds = error.retry_after_seconds if isinstance(error, TooManyRequestsError) else 0
    response = await _login_page(
        request, error.answer_status, next_path=next_path, is_wrong=is_wrong, wait_seconds=wait_seconds
    )
    if wait_seconds:
        response.headers["Retry-After"] = str(wait_seconds)
    if error.answer_status == HTTPStatus.UNAUTHORIZED:
        # a challenge for Basic would open the browser's own dialogue in front of the page
        response.headers["WWW-Authenticate"] = 'Bearer realm="wholefeed"'
    return response


async def _login_page(
    request: web.Request,
    status: int,
    *,
    next_path: str = "",
    is_wrong: bool = False,
    wait_seconds: int = 0,
) -> web.Response:
    return await page(
        request,
        "login.html",
        status=status,
        has_token=bool(request.app[CONFIG].server.access_token),
        next_query={"next": next_path} if own_path(next_path) else {},
        is_wrong=is_wrong,
        wait_seconds=wait_seconds,
    )


_OWN_PATH: Final = re.compile(r"/([a-z]*(?:\?[!-~]*)?)")
"""Matches one word of a path, never another site."""
_LONGEST_OWN: Final = 7000
"""In a URL; aiohttp's line limit is 8 KiB."""


def own_path(path: str) -> str:
    """Return a path of ours without its slash, or "" (home) for any other."""
    found = _OWN_PATH.fullmatch(path)
    return found[1] if found is not None and len(quote_plus(path)) <= _LONGEST_OWN else ""


# Errors

_LONGEST_DETAIL: Final = 1000
_BY_STATUS: Final = {
    404: ("There is no page at this address", "Begin at the first page, or paste a feed's address below."),
    405: (
        "Nothing can be done here in this way",
        "Go back, and try it once more from the page that you came from.",
    ),
    413: ("That is too large", "Send less at once."),
    500: (
        "Something is wrong with this proxy",
        "Try again in a minute. If it stays so, tell the operator of this proxy the number below.",
    ),
}


def wants_error_page(request: web.Request, asked: Asked) -> bool:
    """Whether a person asks; readers may accept HTML but get a problem document."""
    is_feed = asked.route in FEED_ROUTES
    return is_browser(request) and (not is_feed or request.headers.get(DESTINATION) == "document")


async def error_page(
    request: web.Request, status: int, *, slug: str, detail: str, error: WholefeedError | None = None
) -> web.Response:
    if error is None:  # the web server itself refuses
        what, advice = _BY_STATUS.get(status, ("That failed", _BY_STATUS[500][1]))
        trouble = Trouble(what + ".", advice)
    else:
        trouble = _trouble_of(error)._replace(detail=detail[:_LONGEST_DETAIL])
    return await page(
        request,
        "error.html",
        status=status,
        code=f"{status} {HTTPStatus(status).phrase}",
        slug=slug,
        trouble=trouble,
        given=_asked_url(request),
        request_id=request[ASKED].request_id,
    )


def _asked_url(request: web.Request) -> str:
    try:
        query = request[ASKED].query
        return plain_url((query.options.get("old") or query.url)[:LONGEST_URL])
    except WholefeedError:
        return ""


def _trouble_of(error: WholefeedError) -> Trouble:
    words = slug_in_words(error.slug)
    what = _WHAT_BY_SLUG.get(error.slug) or (words if " " in words else "that failed")
    advice = _ADVICE_BY_SLUG.get(error.slug, _LATER if isinstance(error, DocumentError) else _TELL)
    if isinstance(error, NothingYetError):
        what, advice = "no answer yet", "The publisher is still being asked: try again in a moment."
    if isinstance(error, UploadError):  # its slugs are those of documents
        what, advice = _NO_LIST, _EXPORT
    detail = error.args[0] if isinstance(error, DocumentError) else str(error)
    return Trouble(_sentence(what), advice, _sentence(detail))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


_NOTHING_TYPED: Final = Trouble(
    "Nothing was typed.",
    "Paste the address of a feed, or of the site that has one: example.org/blog will do.",
)
_ITSELF_TYPED: Final = Trouble(
    "That is an address of this proxy itself.",
    "Paste the address of a feed, or of the site that has one: example.org/blog will do.",
)
_WHAT_BY_SLUG: Final = {
    "invalid-url": "That is no web address",
    "ambiguous-host": "That is no web address",
    "userinfo-not-allowed": "That address has a password in it",
    "not-a-feed": "There is no feed at that address",
    "unknown-feed": "That feed is not known here",
    "no-such-entry": "This feed has no such entry",
    "no-such-page": "This feed has no such page",
    "no-such-intake": "No list was brought in here, or it was forgotten",
}
_TYPE_AN_ADDRESS: Final = "Type an address such as example.org/blog or https://example.org/feed.xml."
_LOOK_FOR_ANOTHER: Final = "Look on the site for a link called RSS, Atom or Feed, and paste its address here."
_LATER: Final = "Try again in a minute; if it stays so, see whether a browser can open the address."
_TELL: Final = "Try again in a minute; if it stays so, tell the operator of this proxy."
_CHECK_NAME: Final = "Check the spelling of the address, and whether a browser can open it."
_ADVICE_BY_SLUG: Final = {
    "invalid-url": _TYPE_AN_ADDRESS,
    "ambiguous-host": _TYPE_AN_ADDRESS,
    "bad-request": _TYPE_AN_ADDRESS,
    "userinfo-not-allowed": "Leave the user name and the password out of the address: the operator of this"
    " proxy can set them for a host, below [[publisher]] in the configuration.",
    "not-a-feed": _LOOK_FOR_ANOTHER,
    "unsupported-format": _LOOK_FOR_ANOTHER,
    "empty": _LOOK_FOR_ANOTHER,
    "publisher-status": "Check the spelling of the address; if a browser can open it, look there for a link"
    " called RSS, Atom or Feed.",
    "dns-error": _CHECK_NAME,
    "connection-failed": _CHECK_NAME,
    "tls-certificate": "The site's certificate is not valid, so nobody can say who answers. Tell the site, or"
    " see whether it has another address.",
    "destination-forbidden": "Private addresses and unusual ports are refused, unless the operator of this"
    " proxy allows them. Where an address leads to the feed of another site: paste that feed's own address.",
    "loop-detected": "Paste the address of the feed itself, not the one that this proxy made of it.",
    "unknown-feed": "Paste the feed's address to add it.",
    "no-such-entry": "Give the id that the entry has in the feed, or its link if it has no id.",
    "no-such-intake": "Bring the list in on the first page; the feeds that came before are still there.",
    "no-such-page": "The feed's pages are numbered from 1, the page with the newest entries.",
    "too-costly": "Read the feed at its publisher, or subscribe to it: feed readers get it as the publisher"
    " wrote it.",
}
_NO_LIST: Final = "That file is no list of subscriptions"
_EXPORT: Final = "Go back, and choose the file that your reader exports its subscriptions to, as OPML."
