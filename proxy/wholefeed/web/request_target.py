"""Which feed a request names: `/feed?url=U` and the prefix form `/https://…` (README)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from wholefeed.config.tables import SMALLEST_ANSWER_BYTES
from wholefeed.core.compose.views import View
from wholefeed.core.text.dates import parse_rfc3339
from wholefeed.core.text.urls import UrlError, canonical_url
from wholefeed.errors import InvalidUrlError, RequestError

VIEW_OPTIONS: Final = ("limit", "since", "answer_bytes")
"""Parameters that name a part of the feed, in the order in which our own URLs have them."""
OPTIONS: Final = frozenset({"url", "wait", *VIEW_OPTIONS, "token", "signed", "full", "undo"})
"""Parameters of our own; whatever else stands behind an unencoded URL belongs to it."""

PAGE_OPTIONS: Final = OPTIONS | {"page", "media"}
"""Those of the feed for people."""

_LONGEST_KEPT: Final = 500
"""Characters of a URL, or of a query, that is kept once it has been read."""
_COUNT: Final = re.compile(r"0{0,20}[1-9][0-9]{0,14}", re.ASCII)
_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)
_NAME: Final = (
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?!(?:php\d?|aspx?|jsp|cgi|html?|js|json|xml|txt|env)\b)[a-z]{2,}"
)
"""A host's name as people write it; what bots ask web servers for is none."""
_PREFIX: Final = re.compile(
    r"/{1,2}(?:%20|%09|%0A|%0D)*(?P<feed>feed(?::|%3A)(?:/{1,2}|(?:%2F){1,2})?)?"
    r"(?:(?P<scheme>https?)(?P<separator>:/{1,2}|%3A%2F%2F)(?=[^/])"
    rf"|(?P<name>{_NAME}(?::\d{{1,5}})?(?=/|%2F)|(?(feed)[^/%?#][^/]*|(?!))))",
    re.IGNORECASE,
)
_ENCODED_BLANKS: Final = frozenset({"%20", "%09", "%0A", "%0D"})
_BLANKS_BEFORE: Final = re.compile(r"\A(?:%20|%09|%0A|%0D|\+)+", re.IGNORECASE)
_FEED_SCHEME: Final = re.compile(r"feed:(?://)?", re.IGNORECASE)
_WITHOUT_SCHEME: Final = re.compile(
    r"(?://)?(?P<rest>(?:[^\s/?#:@\[\]][^\s/?#:@\[\].]*+\.[^\s/?#:@\[\]]++"
    r"|[^\s/?#:@\[\]]++(?=:\d)|\[[0-9a-f:.]++\])"
    r"(?::\d{1,5})?(?:[/?#].*)?)",
    re.IGNORECASE | re.DOTALL,
)
"""Quantifiers that give nothing back: else a few KB of dots would take seconds."""


class Query(NamedTuple):
    """The options of a request, each at most once, and the URL that it names."""

    url: str
    """As given; empty when there is none."""
    options: Mapping[str, str]


def read_query(raw_query: str, options: frozenset[str] = OPTIONS) -> Query:
    """Take the options out of a raw query string.

    Args:
        raw_query: As it came.
        options: What they are called.

    Raises:
        RequestError: An option is given twice.
    """
    read = _read_query if len(raw_query) <= _LONGEST_KEPT else _parsed
    return read(raw_query, options)


def _parsed(raw_query: str, names: frozenset[str]) -> Query:
    options: dict[str, str] = {}
    is_raw_url = False
    for part in raw_query.split("&"):
        name, _, value = part.partition("=")
        name = unquote(name).removeprefix("amp;")
        if name in names:
            if name in options:
                raise RequestError(f"expected one parameter {name}, got more than one")
            is_raw = name == "url" and _is_unencoded(value)
            is_raw_url = is_raw_url or is_raw
            if name == "url":
                value = _blanks_removed(value) if is_raw else value.strip("+")  # as forms write blanks
            options[name] = value if is_raw else unquote(value)
        elif is_raw_url and part and not part.startswith("amp;"):
            options["url"] += "&" + part
    return Query(options.pop("url", ""), options)


def _blanks_removed(raw: str) -> str:
    end = len(raw)
    while raw[max(end - 3, 0) : end].upper() in _ENCODED_BLANKS:
        end -= 3
    return _BLANKS_BEFORE.sub("", raw[:end])


_read_query: Final = lru_cache(maxsize=2048)(_parsed)


def _is_unencoded(value: str) -> bool:
    """Whether a URL was put into the query as it is.

    Clients that normalise a query leave `://` and `?` of an encoded value plain, but `=` and `&` encoded.
    """
    return "://" in value and ("=" in value or "%3d" not in value.lower())


def is_prefix_form(raw_path: str) -> bool:
    """Whether a request target has a URL written behind the slash."""
    return _PREFIX.match(raw_path) is not None


def read_prefix(raw_path: str) -> str:
    """Return the URL behind the slash, its query included.

    One slash after the scheme will do, two before it, and all of it may be percent-encoded. Like any URL it
    may bear `feed:`, or lack its scheme.
    """
    match = _PREFIX.match(raw_path)
    assert match is not None, "a prefix form"
    scheme, separator = match["scheme"], match["separator"]
    start = match.end() if scheme else match.start("name")
    rest = _blanks_removed(raw_path[start:])
    if scheme:
        return f"{scheme.lower()}://{unquote(rest) if separator.startswith('%') else rest}"
    return unquote(rest) if "/" not in rest else rest


_BLANKS: Final = " \t\r\n\f\v\u00a0"
"""What comes along where a URL is copied; other white space and controls are no part of one."""


class Written(NamedTuple):
    """A feed's URL as people write it, made whole."""

    url: str
    instead: str = ""
    """What to ask where the first refuses the connection: the same by http, if no scheme was given."""


def completed(given: str) -> Written:
    """Return the URL that is meant: blanks around it, `feed:` in front of it or no scheme are no obstacle."""
    return _completed(given) if len(given) <= _LONGEST_KEPT else _completed.__wrapped__(given)


@lru_cache(maxsize=2048)
def _completed(given: str) -> Written:
    text = given.strip(_BLANKS)
    text = text[match.end() :] if (match := _FEED_SCHEME.match(text)) else text
    bare = _WITHOUT_SCHEME.fullmatch(text)
    if bare is None:
        return Written(text)
    return Written(f"https://{bare['rest']}", f"http://{bare['rest']}")


def feed_url(given: str) -> str:
    """Return the canonical URL of a feed: by https, where no scheme is given.

    Raises:
        RequestError: None is given.
        InvalidUrlError: It is none that can be fetched.
    """
    return _feed_url(given) if len(given) <= _LONGEST_KEPT else _feed_url.__wrapped__(given)


@lru_cache(maxsize=2048)
def _feed_url(given: str) -> str:
    if not given:
        raise RequestError("expected the parameter url, the feed's URL, got none")
    try:
        return canonical_url(completed(given).url)
    except UrlError as exc:
        raise InvalidUrlError(str(exc), slug=exc.slug) from exc


def instead_url(given: str) -> str:
    """Return the canonical URL that may be meant where `feed_url`'s refuses the connection; empty: none."""
    instead = completed(given).instead
    return canonical_url(instead) if instead else ""


def read_wait(options: Mapping[str, str], at_most: float) -> float:
    """Return the seconds that a reader is willing to wait, at most what is configured.

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
    """Return which part of the feed is asked for.

    Args:
        options: Of the request.
        max_bytes: What any answer may come to at most; 0: any number of bytes.

    Raises:
        RequestError: `limit`, `since` or `answer_bytes` is not what it should be.
    """
    limit, since, room = None, None, max_bytes or None
    if "limit" in options:
        limit = _whole_number(options, "limit", 1)
    if "since" in options:
        given = options["since"]
        since = parse_rfc3339(given) if _RFC3339.fullmatch(given) else None
        if since is None:
            expected = "since as an RFC 3339 instant such as 2026-01-31T00:00:00Z"
            raise RequestError(f"expected {expected}, got {given[:40]!r}")
    if "answer_bytes" in options:
        asked = _whole_number(options, "answer_bytes", SMALLEST_ANSWER_BYTES)
        room = asked if room is None else min(asked, room)
    return View(limit, since, room)


def _whole_number(options: Mapping[str, str], name: str, least: int) -> int:
    given = options[name]
    if not _COUNT.fullmatch(given) or int(given) < least:
        raise RequestError(f"expected {name} as a whole number, {least} or more, got {given[:40]!r}")
    return int(given)


def own_url(base: str, url: str, mark: str = "") -> str:
    """Return the proxy's URL of a feed.

    Args:
        base: Scheme and authority, and the path of the proxy where it has one, without a final slash.
        url: The feed's canonical URL.
        mark: Its signature (`wholefeed.server.signing`); empty: the URL carries none.
    """
    return f"{base}/feed?url={_quoted(url)}" + (f"&signed={mark}" if mark else "")


def page_url(base: str, url: str) -> str:
    """Return the proxy's URL of a feed's page, for people; arguments as for `own_url`."""
    return f"{base}/?url={_quoted(url)}"


def _quoted(url: str) -> str:
    return _quoted_once(url) if len(url) <= _LONGEST_KEPT else quote(url, safe="")


_quoted_once: Final = lru_cache(maxsize=2048)(partial(quote, safe=""))


def view_query(options: Mapping[str, str]) -> str:
    """Return the part of a URL's query that names the view, as given."""
    return "".join(f"&{name}={quote(options[name], safe='')}" for name in VIEW_OPTIONS if name in options)
