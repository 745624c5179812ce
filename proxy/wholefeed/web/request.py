"""Reading a request.

    /feed?url=https%3A%2F%2Fexample.org%2Ffeed.atom&limit=20    encoded or not, with our options
    /https://example.org/feed.atom?lang=en                      prefix form: the query is the feed's

Only `whole_body` and `receive_upload` do I/O.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import lru_cache, wraps
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import istr

from wholefeed.config.tables import SMALLEST_ANSWER_BYTES, Config, ServerConfig
from wholefeed.core.compose.views import FeedPage, View
from wholefeed.core.replay import WEEKDAYS, PaceError, ReplayPace, is_rate, last_beginning
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import UrlError, canonical_url, safe_url, without_feed_scheme
from wholefeed.errors import (
    InvalidUrlError,
    MisdirectedError,
    OverloadedError,
    RequestError,
    WholefeedError,
)
from wholefeed.fetch.budget import MemoryBudget
from wholefeed.fetch.codings import DecodeError, Decoder, codings_of
from wholefeed.server.clients import TrustedProxies, last_value

# Routes with special treatment

HOME: Final = "/"
LOGIN: Final = "/login"
VIEW: Final = "/view"
METRICS: Final = "/metrics"
CONTINUE: Final = "/continue"
FORGET: Final = "/forget"
REFRESH: Final = "/refresh"
OPML: Final = "/opml"
INTAKE: Final = "/intake"
IMPORT: Final = "/import"
STATIC: Final = "/static/{name}"
PREFIXED: Final = "/{url}"
UNMATCHED: Final = "unmatched"
"""Stands for an unknown route."""
FEED_ROUTES: Final = frozenset({"/feed", "/feed/", PREFIXED})
OPEN_ROUTES: Final = frozenset({"/healthz", "/readyz", STATIC})
QUIET_ROUTES: Final = frozenset({"/healthz", STATIC})
"""Logged at debug level, except errors."""
DESTINATION: Final = istr("Sec-Fetch-Dest")
"""The browser's use of the answer (W3C Fetch Metadata)."""
_LONGEST_KEPT: Final = 500
"""Characters of a text worth caching."""
_Made = TypeVar("_Made")


def _kept(make: Callable[[str], _Made]) -> Callable[[str], _Made]:
    """Cache results for short texts: readers repeat theirs."""
    made = lru_cache(maxsize=2048)(make)

    @wraps(make)
    def kept(text: str) -> _Made:
        return made(text) if len(text) <= _LONGEST_KEPT else make(text)

    return kept


# One request

_WITHOUT_PATH: Final = frozenset({PREFIXED, UNMATCHED})
"""The target decides between them."""
_NO_FACTS: Final[Mapping[str, object]] = {}


class Asked:
    """One request's parameters and log facts, shared by checks and handler."""

    __slots__ = (
        "_options", "_query", "_url", "app", "client", "config", "facts", "host", "is_prefixed",
        "is_vouched_for", "knows_token", "mark", "peer", "request_id", "route", "session", "target",
    )  # fmt: skip

    def __init__(
        self,
        request: web.Request,
        app: web.Application,
        config: Config,
        prefix: str,
        route: str,
        trusted: TrustedProxies,
        peer: str | None,
    ) -> None:
        self.app: Final = app  # `request.app` searches at each use
        self.config: Final = config
        self._url = request.rel_url  # not the request: it refers to this object
        self._options = _OPTIONS_OF.get(route) or _OPTIONS_OF.get(request.method, OPTIONS)
        self._query: Query | None = None
        raw = request.raw_path
        self.request_id: Final = next(_IDS)
        self.target: Final = strip_prefix(raw, prefix) if prefix else raw
        """The request target without the prefix of a reverse proxy."""
        self.is_prefixed: Final = route in _WITHOUT_PATH and is_prefix_form(self.target)
        if route in _WITHOUT_PATH:
            route = PREFIXED if self.is_prefixed else UNMATCHED
        self.route: Final = route
        """The route's pattern, never client text: a query may hide in it."""
        self.facts: Mapping[str, object] = _NO_FACTS
        """Extra facts for the log line; possibly shared, so replaced by `add`."""
        self.mark = ""
        """The valid signature; empty: none."""
        self.knows_token = False
        """Whether the access token lets the request in."""
        self.session = ""
        """The browser's login; empty: none."""
        self.host: tuple[str, str] | None = None
        """Host and scheme once verified as our own."""
        self.peer: Final = peer
        headers = request.headers
        known = trusted.peer(peer)
        self.client: Final = (
            trusted.client(peer, headers.getall(hdrs.X_FORWARDED_FOR))
            if hdrs.X_FORWARDED_FOR in headers
            else known.name
        )
        self.is_vouched_for: Final = known.is_believed
        """Whether the peer is a trusted proxy."""

    def add(self, **facts: object) -> None:
        self.facts = {**self.facts, **facts}

    @property
    def query(self) -> Query:
        if self._query is None:
            if self.is_prefixed:
                self._query = Query(read_prefix(self.target), {})
            else:
                self._query = read_query(self._url.raw_query_string, self._options)
        return self._query

    @property
    def feed_urls(self) -> FeedUrls:
        """The feed's URLs; a signed one has no http fallback."""
        found = feed_urls(self.query.url)
        return FeedUrls(found.url) if self.mark else found

    @property
    def shown_url(self) -> str | None:
        if "?" not in self.target and not self.is_prefixed:
            return None
        try:
            given = self.query.url
        except WholefeedError:
            return None
        return _shown(given) if given else None


_shown: Final = _kept(safe_url)
_ID_BYTES: Final = 8
_IDS_AT_ONCE: Final = 256  # per system call


def _ids() -> Iterator[str]:
    while True:
        many = secrets.token_hex(_ID_BYTES * _IDS_AT_ONCE)
        for start in range(0, len(many), 2 * _ID_BYTES):
            yield many[start : start + 2 * _ID_BYTES]


_IDS: Final = _ids()


# The query

VIEW_OPTIONS: Final = ("listed", "text", "as", "limit", "since", "answer_bytes", "pages")
"""Select a part of the feed, in the order of our URLs."""
REPLAY_OPTIONS: Final = ("replay", "from", "on", "original")
FULL: Final = "full"
ATOM: Final = "atom"
ONLY_VALUES: Final = {"text": FULL, "as": ATOM}
"""Options with one value; others behind an unencoded URL belong to it (P7)."""
BESIDE: Final = {"pages": ("page",), "replay": REPLAY_OPTIONS[1:]}
"""Ours only beside another option: publishers use these names too (P7)."""
OPTIONS: Final = frozenset({"url", "wait", "replay", *VIEW_OPTIONS, "token", "signed", "full", "undo"})
"""Our parameters; others behind an unencoded URL belong to it."""
# Elsewhere these parameters are publishers' own.
IMPORT_OPTIONS: Final = OPTIONS | {"at", "name", "force"}
CONTINUE_OPTIONS: Final = OPTIONS | {"old"}
FORGET_OPTIONS: Final = OPTIONS | {"entry"}
REFRESH_OPTIONS: Final = OPTIONS | {"texts"}
READING_OPTIONS: Final = frozenset({"find", "after", "year", "whole"})
"""A page's forms and links use them. Behind an unencoded URL they belong to it."""
PAGE_OPTIONS: Final = OPTIONS | {"page", "media"} | READING_OPTIONS
LIST_OPTIONS: Final = OPTIONS | {"ask"}

_OPTIONS_OF: Final = {
    VIEW: PAGE_OPTIONS,
    IMPORT: IMPORT_OPTIONS,
    REFRESH: REFRESH_OPTIONS,
    OPML: LIST_OPTIONS,
    CONTINUE: CONTINUE_OPTIONS,
    FORGET: FORGET_OPTIONS,
    "DELETE": FORGET_OPTIONS,
}


class Query(NamedTuple):
    url: str
    """Empty: none."""
    options: Mapping[str, str]


def read_query(raw_query: str, options: frozenset[str] = OPTIONS) -> Query:
    """Split a raw query string into its options and URL.

    Raises:
        RequestError: An option occurs twice.
    """
    read = _read_query if len(raw_query) <= _LONGEST_KEPT else _read_query.__wrapped__
    return read(raw_query, options)


@lru_cache(maxsize=2048)
def _read_query(raw_query: str, names: frozenset[str]) -> Query:
    options: dict[str, str] = {}
    is_raw_url = False
    parts = [(part, _parameter(part)) for part in raw_query.split("&")]
    beside = (BESIDE[name] for _, name in parts if name in BESIDE and name in names)
    names = names.union(*beside)
    for part, name in parts:
        value = part.partition("=")[2]
        if name in names and not (is_raw_url and _is_publishers(name, value)):
            if name in options:
                raise RequestError(f"expected one parameter {name}, got more than one")
            is_raw = name == "url" and _is_unencoded(value)
            is_raw_url = is_raw_url or is_raw
            if name in ("url", "old"):
                value = _blanks_removed(value) if is_raw else value.strip("+")  # forms encode blanks as "+"
            if name in _FIELDS:
                value = value.replace("+", " ")
            options[name] = value if is_raw else unquote(value)
        elif is_raw_url and part and not part.startswith("amp;"):
            options["url"] += "&" + part
    return Query(options.pop("url", ""), options)


_FIELDS: Final = frozenset({"entry", "find"})  # of forms: a blank is a plus


def _is_publishers(name: str, value: str) -> bool:
    """Return whether a parameter behind an unencoded URL is no option."""
    return name in READING_OPTIONS or ONLY_VALUES.get(name, unquote(value)) != unquote(value)


def _parameter(part: str) -> str:
    return unquote(part.partition("=")[0]).removeprefix("amp;")


def _is_unencoded(value: str) -> bool:
    """Whether the URL stands unencoded in the query.

    Some clients decode `://` and `?` of an encoded value but leave `=` and `&` encoded.
    """
    return "://" in value and ("=" in value or "%3d" not in value.lower())


_ENCODED_BLANKS: Final = frozenset({"%20", "%09", "%0A", "%0D"})
_BLANKS_BEFORE: Final = re.compile(r"\A(?:%20|%09|%0A|%0D|\+)+", re.IGNORECASE)


def _blanks_removed(raw: str) -> str:
    end = len(raw)
    while raw[max(end - 3, 0) : end].upper() in _ENCODED_BLANKS:
        end -= 3
    return _BLANKS_BEFORE.sub("", raw[:end])


# The prefix form: a URL behind the slash

_NAME: Final = (
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?!(?:php\d?|aspx?|jsp|cgi|html?|js|json|xml|txt|env)\b)[a-z]{2,}"
)
"""A host name; typical targets of bots do not match."""
_PREFIX: Final = re.compile(
    r"/{1,2}(?:%20|%09|%0A|%0D)*(?P<feed>feed(?::|%3A)(?:/{1,2}|(?:%2F){1,2})?)?"
    r"(?:(?P<scheme>https?)(?P<separator>:/{1,2}|%3A%2F%2F)(?=[^/])"
    rf"|(?P<name>{_NAME}(?::\d{{1,5}})?(?=/|%2F)|(?(feed)[^/%?#][^/]*|(?!))))",
    re.IGNORECASE,
)


def is_prefix_form(raw_path: str) -> bool:
    return _PREFIX.match(raw_path) is not None


def read_prefix(raw_path: str) -> str:
    """Return the URL of a prefix form, with its query.

    One or two slashes, percent-encoding, `feed:` and a missing scheme are accepted.
    """
    match = _PREFIX.match(raw_path)
    assert match is not None, "a prefix form"
    scheme, separator = match["scheme"], match["separator"]
    start = match.end() if scheme else match.start("name")
    rest = _blanks_removed(raw_path[start:])
    if scheme:
        return f"{scheme.lower()}://{unquote(rest) if separator.startswith('%') else rest}"
    return unquote(rest) if "/" not in rest else rest


# Feed URLs as typed by people

_BLANKS: Final = " \t\r\n\f\v\u00a0"
"""Copied along with URLs; other white space and controls are errors."""
_WITHOUT_SCHEME: Final = re.compile(
    r"(?://)?(?P<rest>(?:[^\s/?#:@\[\]][^\s/?#:@\[\].]*+\.[^\s/?#:@\[\]]++"
    r"|[^\s/?#:@\[\]]++(?=:\d)|\[[0-9a-f:.]++\])"
    r"(?::\d{1,5})?(?:[/?#].*)?)",
    re.IGNORECASE | re.DOTALL,
)
"""Possessive quantifiers: else a few KB of dots take seconds."""


class FeedUrls(NamedTuple):
    """A feed's URL, https by default."""

    url: str
    instead: str = ""
    """Asked if https refuses the connection and no scheme was given."""


@_kept
def feed_urls(given: str) -> FeedUrls:
    """Return the canonical URLs of a feed.

    Raises:
        RequestError: No URL is given.
        InvalidUrlError: The URL cannot be fetched.
    """
    if not given:
        raise RequestError("expected the parameter url, the feed's URL, got none")
    url, instead = complete_url(given)
    try:
        return FeedUrls(canonical_url(url), canonical_url(instead) if instead else "")
    except UrlError as exc:
        raise InvalidUrlError(str(exc), slug=exc.slug) from exc


def feed_url(given: str) -> str:
    return feed_urls(given).url


@_kept
def complete_url(given: str) -> FeedUrls:
    """Return a URL with a scheme, without blanks and `feed:`."""
    text = without_feed_scheme(given.strip(_BLANKS))
    bare = _WITHOUT_SCHEME.fullmatch(text)
    if bare is None:
        return FeedUrls(text)
    return FeedUrls(f"https://{bare['rest']}", f"http://{bare['rest']}")


# Options


def is_set(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "") not in ("", "0", "false")


def read_wait(options: Mapping[str, str], at_most: float) -> float:
    """Return the seconds a reader waits; default and maximum: `at_most`.

    Raises:
        RequestError: Not a number of seconds.
    """
    given = options.get("wait")
    if given is None:
        return at_most
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise RequestError(f"expected wait in seconds, 0 or more, got {given[:40]!r}")
    return min(seconds, at_most)


def read_view(options: Mapping[str, str], max_bytes: int) -> View:
    """Return the selected part of the feed; `max_bytes` limits all answers, 0 does not.

    Raises:
        RequestError: A parameter is malformed.
    """
    limit, since, room, page = None, None, max_bytes or None, None
    if "limit" in options:
        limit = _whole_number(options, "limit", 1)
    if "since" in options:
        since = read_instant(options, "since")
    if "answer_bytes" in options:
        asked = _whole_number(options, "answer_bytes", SMALLEST_ANSWER_BYTES)
        room = asked if room is None else min(asked, room)
    if "pages" in options:
        if others := [name for name in ("replay", "limit", "since", "answer_bytes") if name in options]:
            raise RequestError(f"expected pages, or {others[0]}, got both")
        size = _whole_number(options, "pages", *PAGE_SIZES)
        page = FeedPage(size, _whole_number(options, "page", 1) if "page" in options else None)
    has_listed = _is_on(options, "listed")
    if not has_listed and "replay" in options:  # a replay's timeline counts all entries
        raise RequestError("expected replay, or listed=off, got both")
    for name, value in ONLY_VALUES.items():
        if (given := options.get(name, value)) != value:
            raise RequestError(f"expected {name}={value}, got {given[:40]!r}")
    return View(limit, since, room, page, has_listed, "text" in options, "as" in options)


def _is_on(options: Mapping[str, str], name: str) -> bool:
    given = options.get(name, "on")
    if given not in ("on", "off"):
        raise RequestError(f"expected {name} as on or off, got {given[:40]!r}")
    return given == "on"


def read_instant(options: Mapping[str, str], name: str) -> float:
    """Return an instant, epoch seconds.

    Raises:
        RequestError: The value is malformed.
    """
    given = options[name]
    instant = parse_rfc3339(given) if _RFC3339.fullmatch(given) else None
    if instant is None:
        expected = f"{name} as an RFC 3339 instant such as 2026-01-31T00:00:00Z"
        raise RequestError(f"expected {expected}, got {given[:40]!r}")
    return instant


_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)


LARGEST_NUMBER: Final = 10**15 - 1
PAGE_SIZES: Final = (10, 1000)
"""Fewest and most entries of a page."""


def _whole_number(options: Mapping[str, str], name: str, least: int, most: int = LARGEST_NUMBER) -> int:
    given = options[name]
    if not _COUNT.fullmatch(given) or not least <= int(given) <= most:
        is_bounded = most < LARGEST_NUMBER or _TOO_LONG.fullmatch(given)
        bounds = f"{least} to {most}" if is_bounded else f"{least} or more"
        raise RequestError(f"expected {name} as a whole number, {bounds}, got {given[:40]!r}")
    return int(given)


_COUNT: Final = re.compile(r"0{0,20}[1-9][0-9]{0,14}", re.ASCII)
_TOO_LONG: Final = re.compile(r"0*[1-9][0-9]{15,}", re.ASCII)


# A replay: a feed from its beginning, at a pace (P1, P2)


class Replay(NamedTuple):
    pace: ReplayPace
    shows_original: bool
    """Whether titles show the original date (P3)."""


def read_replay(options: Mapping[str, str], feed_url: str) -> Replay | None:
    """Return the replay, if any; messages use `feed_url`, the proxy's.

    Raises:
        RequestError: A parameter is missing or malformed.
    """
    if "replay" not in options:
        return None
    if "from" not in options:
        rate = options["replay"] if is_rate(options["replay"]) else "1/day"
        whole = f"{feed_url}&replay={rate}&from=2026-01-31T06:00:00%2B01:00"
        raise RequestError(f"expected from beside replay, the instant when it begins, such as {whole}")
    shows_original = _is_on(options, "original")
    try:
        pace = ReplayPace.read(options["replay"], options["from"], options.get("on"))
    except PaceError as exc:
        raise RequestError(str(exc)) from exc
    return Replay(pace, shows_original)


def name_pages(count: int) -> str:
    return "page 1, which is all" if count == 1 else f"page as a number from 1 to {count}"


def replay_options(options: Mapping[str, str]) -> dict[str, str]:
    return {name: options[name] for name in REPLAY_OPTIONS if name in options}


def begun_replay(options: Mapping[str, str], now: float) -> dict[str, str]:
    """Return a replay's parameters; the default beginning is the last 6:00 local time of a listed day.

    The parameters may be malformed. `now`: epoch seconds.
    """
    found = replay_options(options)
    if "from" not in found:
        days = {WEEKDAYS.index(each) for each in found.get("on", "").split(",") if each in WEEKDAYS}
        begins = last_beginning(datetime.fromtimestamp(now), days)  # noqa: DTZ006 - that clock is meant
        found["from"] = begins.astimezone().isoformat(timespec="seconds")
    return found


# Weights of a client's preferences (RFC 9110, 12.4.2)


def parse_weights(field: str) -> list[tuple[str, float]]:
    """Return the items of a field such as Accept, in lower case, with weights; malformed: 0."""
    found = []
    for part in field.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        given = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        try:
            found.append((name, float(given)))
        except ValueError:
            found.append((name, 0.0))
    return found


# The body


UPLOAD_SECONDS: Final = 60


@asynccontextmanager
async def receive_upload(
    request: web.Request,
    room: MemoryBudget,
    at_most: int,
    *,
    what: str,
    late: Callable[[str], RequestError] = RequestError,
) -> AsyncIterator[bytes]:
    """Read a body, and reserve memory from the common `room` during the block.

    `at_most` counts decoded bytes; `late` makes the timeout error.

    Raises:
        OverloadedError: No memory is free.
        HTTPRequestEntityTooLarge: The body is longer.
        RequestError: The body is malformed or late.
    """
    held_bytes = min(at_most, room.total_bytes)
    if request.content_length is not None and hdrs.CONTENT_ENCODING not in request.headers:
        held_bytes = min(request.content_length, held_bytes)
    if not await room.take(held_bytes):  # the body is still unread
        raise OverloadedError(f"too many {what}s are being sent")
    try:
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                body = await whole_body(request, at_most)
        except TimeoutError as exc:
            raise late(f"expected the whole {what} within {UPLOAD_SECONDS} s") from exc
        yield body
    finally:
        room.give_back(held_bytes)


async def whole_body(request: web.Request, at_most: int) -> bytes:
    """Return a decoded body; nothing else reads one.

    Raises:
        HTTPRequestEntityTooLarge: The body, or its announced size, is above `at_most`.
        RequestError: The body does not fit its coding.
    """
    said = request.content_length or 0
    if said > at_most:
        raise too_large(said, at_most)
    await _continue(request)
    body = bytearray()
    try:
        decoder = Decoder(codings_of(request.headers.getall(hdrs.CONTENT_ENCODING, ())), limit_bytes=at_most)
        async for chunk in request.content.iter_any():
            for piece in decoder.feed(chunk):
                body += piece
                await asyncio.sleep(0)  # yield to others: one chunk may decode to the whole limit
        for piece in decoder.finish():
            body += piece
    except DecodeError as exc:
        if exc.slug == "too-large":
            raise too_large(at_most + 1, at_most) from exc
        raise RequestError(f"expected a body in the coding that it says: {exc}") from exc
    except (HttpProcessingError, web.RequestPayloadError) as exc:
        raise RequestError("expected a whole body, got less") from exc
    return bytes(body)


_CONTINUES: Final = "100-continue"


async def await_reader(request: web.Request) -> None:
    """Delay `100 Continue` until somebody reads the body (RFC 9110, 10.1.1).

    Raises:
        HTTPExpectationFailed: The client expects something else.
    """
    expected = request.headers.get(hdrs.EXPECT, "")
    if request.version >= HttpVersion11 and expected.lower() != _CONTINUES:
        raise web.HTTPExpectationFailed(text=f"expected no Expect but {_CONTINUES}")


async def _continue(request: web.Request) -> None:
    if request.version >= HttpVersion11 and request.headers.get(hdrs.EXPECT, "").lower() == _CONTINUES:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def too_large(size: int, at_most: int) -> web.HTTPRequestEntityTooLarge:
    reason = f"expected at most {at_most} bytes, got more"
    return web.HTTPRequestEntityTooLarge(at_most, size, reason=reason)


# The proxy's own URLs


def own_url(base: str, url: str, mark: str = "") -> str:
    """Return the proxy's URL of a canonical feed URL; `base` as `base_url` returns it."""
    return f"{base}/feed?url={_quote(url)}" + (f"&signed={mark}" if mark else "")


def page_url(base: str, url: str) -> str:
    return f"{base}/?url={_quote(url)}"


@_kept
def _quote(url: str) -> str:
    return quote(url, safe="")


def view_query(options: Mapping[str, str]) -> str:
    return "".join(f"&{name}={quote(options[name], safe='')}" for name in _NAMED if name in options)


_NAMED: Final = (*REPLAY_OPTIONS, *VIEW_OPTIONS, *BESIDE["pages"])
"""In the order of our URLs."""


# The Host of a request, the base of our links (docs/faults.md row 77; RFC 9110, 7.4)

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?", re.IGNORECASE)
"""253 characters at most (RFC 1035, 2.3.4): links and caches keep them."""
_LONGEST_HOST: Final = 253 + len(":65535")
_ROUTES_OF_ANY_HOST: Final = OPEN_ROUTES | {"/openapi.json"}  # they reveal nothing about feeds


def require_host(request: web.Request, asked: Asked) -> None:
    """Refuse a foreign Host: a web page could point its name at the proxy and count as the same origin."""
    if asked.route in _ROUTES_OF_ANY_HOST:
        return
    server = asked.config.server
    # A stranger's page knows no token and signs nothing, so any Host will do behind a reverse proxy.
    if server.public_url:  # the only base of links
        is_feed = asked.route in FEED_ROUTES and request.method in ("GET", "HEAD")
        if is_feed or server.access_token or server.signing_keys:
            return
    _required_host(request, asked)


def base_url(request: web.Request, asked: Asked) -> str:
    """Return the proxy's URL without a final slash.

    `server.public_url` decides, else the Host or the fields of a trusted proxy.

    Raises:
        MisdirectedError: The Host is missing, malformed or not allowed.
    """
    if public_url := asked.config.server.public_url:
        return public_url.rstrip("/")
    host, scheme = asked.host or _required_host(request, asked)
    prefix = forwarded_prefix(_last(request, "X-Forwarded-Prefix")) if asked.is_vouched_for else ""
    return f"{scheme}://{host.lower()}{prefix}"


def _required_host(request: web.Request, asked: Asked) -> tuple[str, str]:
    """Return the verified Host and scheme."""
    host, scheme = request.headers.get(hdrs.HOST, "") or _own_address(request), request.scheme
    if asked.is_vouched_for:
        host = _last(request, "X-Forwarded-Host") or host
        forwarded = _last(request, "X-Forwarded-Proto").lower()
        scheme = forwarded if forwarded in ("http", "https") else scheme
    name = _name(host) if len(host) <= _LONGEST_HOST else ""  # `_name` caches its argument
    if not name or not (_is_nobody_else_s(name) or _is_listed(name, asked.config.server)):
        raise MisdirectedError(
            f"expected a Host from server.allowed_hosts, or server.public_url to be set, got {host[:100]!r}"
        )
    asked.host = host, scheme
    return asked.host


def _last(request: web.Request, field: str) -> str:
    return last_value(request.headers.getall(field, ()))


def _own_address(request: web.Request) -> str:
    """Return the local address, for HTTP/1.0 clients without Host."""
    name = request.get_extra_info("sockname")
    if request.version >= HttpVersion11 or not isinstance(name, tuple):
        return ""
    address, port = name[0], name[1]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@lru_cache(maxsize=256)
def _name(host: str) -> str:
    """Return the Host without its port; empty: malformed."""
    match = _HOST.fullmatch(host)
    return "" if match is None else match["name"].lower().strip("[]")


@lru_cache(maxsize=256)
def _is_nobody_else_s(name: str) -> bool:
    """Whether no stranger can point the name here."""
    if "." not in name or name.endswith(".localhost"):  # also `localhost` itself
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_listed(name: str, server: ServerConfig) -> bool:
    own = (*server.allowed_hosts, urlsplit(server.public_url).hostname or "")
    return name in (allowed.lower() for allowed in own)


# The proxy's path behind a reverse proxy (docs/operations.md)


def prefix_of(public_url: str) -> str:
    """Return the path of `server.public_url` without a final slash.

    Requests work with and without it, as some reverse proxies strip it.
    """
    return urlsplit(public_url).path.rstrip("/")


def strip_prefix(raw_path: str, prefix: str) -> str:
    if not prefix or not raw_path.startswith(prefix):
        return raw_path
    rest = raw_path[len(prefix) :]
    if rest.startswith("/"):
        return rest
    return f"/{rest}" if not rest or rest.startswith("?") else raw_path


def root_from(raw_path: str, prefix: str) -> str:
    """Return the relative URL of the proxy's root, with a final slash."""
    path = raw_path.partition("?")[0]
    if path == prefix:
        return path.rpartition("/")[2] + "/"
    return "../" * (strip_prefix(path, prefix).count("/") - 1) or "./"


_LONGEST_FORWARDED: Final = 200
_FORWARDED_PATH: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)+", re.ASCII)


def forwarded_prefix(value: str) -> str:
    """Return the path stripped by a reverse proxy; empty: none or ambiguous."""
    path = value.rstrip("/")
    return path if len(path) <= _LONGEST_FORWARDED and _FORWARDED_PATH.fullmatch(path) else ""
