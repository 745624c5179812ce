"""Web archives: when one is asked for a document that is gone, what it is asked, and which copies are taken.

    if is_gone(reason, status, attempts=attempts) and may_be_sent(url, hosts):
        layout = Layout("https://web.archive.org")
        page = parse_index(...)                                     # the body at layout.newest(url, limit=50)
        for capture in for_missing(page.captures, url, now=now):    # the newest first
            layout.copy(capture)                                    # the URL of its body as it was archived

Whether what a copy says makes it one of the feed's documents is `is_confirmed` (R33).
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from wholefeed.core.model import Relation
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, UrlError, canonical_url, is_http

# When an archive is asked

UNHEARD_ATTEMPTS: Final = 3
"""So often in a row nothing is heard of a host before it counts as dead; the pauses between them grow."""
_GONE_STATUSES: Final = frozenset({404, 410})
_DEAD: Final = frozenset(
    {"dns-error", "dns-timeout", "connection-failed", "timeout", "tls-certificate", "protocol-error"}
)
_REPLACED: Final = frozenset({"not-a-feed", "format", "cross-origin-unconfirmed", "redirect-loop", "empty"})
"""Something else stands in a document's place: the front page, a domain that is for sale."""


def is_gone(reason: str, status: int | None, *, attempts: int, is_part: bool = False) -> bool:
    """Whether a publisher will probably not give a document any more.

    Args:
        reason: The slug of how it failed.
        status: What the publisher answered; None where it did not.
        attempts: How often in a row.
        is_part: Whether it is a document behind the subscription document. Then what stands in its place
            counts too.
    """
    if status is not None and status in _GONE_STATUSES:
        return True
    if status is None and reason in _DEAD:
        return attempts >= UNHEARD_ATTEMPTS
    return is_part and reason in _REPLACED


def may_be_sent(url: str, listed_hosts: Collection[str]) -> bool:
    """Whether an archive may learn of a URL: nobody's secrets, nobody's private network.

    URLs of listed hosts may be sent whatever they are; "*.example.org" is all below a name.
    """
    try:
        canonical_url(url)  # refuses user names and passwords
    except UrlError:
        return False
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if any(_matches(host, pattern) for pattern in listed_hosts):
        return True
    return not parts.query and "?" not in url and _is_public(host)


def _matches(host: str, pattern: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


_PRIVATE_ENDINGS: Final = (
    *("local", "localhost", "internal", "intranet", "private", "corp", "home", "lan"),
    *("home.arpa", "onion", "alt", "test", "invalid", "example"),
)
"""RFC 6761, RFC 6762 and the like: names that mean something to one network alone."""


def _is_public(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    is_private = any(host == ending or host.endswith(f".{ending}") for ending in _PRIVATE_ENDINGS)
    return "." in host and not is_private


# Where its index and its copies stand

_RESUME: Final = "resumeKey="
_FROM: Final = "from="


class Layout:
    """The URLs of one archive.

        layout = Layout("https://web.archive.org")
        layout.oldest("http://example.org/feed", limit=50)      # a page of the index, the oldest copies first
        layout.copy(capture)                                    # its body as it was archived

    The URL of an archive without a path is laid out as the Wayback Machine is; one with a path is a
    collection of pywb. Copies are asked for with `id_`: the body as it was archived, without the links and
    banners that archives write into what they show people.

    Args:
        base: `history.memento_url`: without a query, without its last slash.
    """

    def __init__(self, base: str) -> None:
        is_wayback = not urlsplit(base).path.strip("/")
        self._index = f"{base}/cdx/search/cdx" if is_wayback else f"{base}/cdx"
        self._copies = f"{base}/web/" if is_wayback else f"{base}/"
        self._is_wayback = is_wayback

    def oldest(self, url: str, *, limit: int, position: str = "") -> str:
        """Return the URL of a page of the index, the oldest copies first.

        It begins where the page before it ended, as `position_behind` says; empty: it is the first one.
        """
        asked = {**self._headers(url), "limit": str(limit), "showResumeKey": "true"}
        for name in (_RESUME, _FROM):
            if position.startswith(name):
                asked[name[:-1]] = position.removeprefix(name)
        return f"{self._index}?{urlencode(asked)}"

    def newest(self, url: str, *, limit: int) -> str:
        """Return the URL of the end of the index: its newest copies, in whichever order."""
        last = {"limit": f"-{limit}"} if self._is_wayback else {"limit": str(limit), "sort": "reverse"}
        return f"{self._index}?{urlencode({**self._headers(url), **last})}"

    def copy(self, capture: Capture) -> str:
        """Return the URL of a copy, as it was archived."""
        return f"{self._copies}{capture.timestamp}id_/{quote(capture.url, safe=_UNQUOTED)}"

    def capture_at(self, url: str) -> Capture | None:
        """Return the copy that stands at a URL, where redirects may have led; None where none does."""
        if not url.startswith(self._copies):
            return None
        found = _COPY.fullmatch(url.removeprefix(self._copies))
        return None if found is None else _check(Capture(found[1], found[2]))

    def _headers(self, url: str) -> dict[str, str]:
        return {"url": url, "output": "json", "filter": "statuscode:200", "collapse": "digest"}


_UNQUOTED: Final = ":/?#[]@!$&'()*+,;=%-._~"
_COPY: Final = re.compile(r"([0-9]{14})id_/(.+)", re.ASCII | re.DOTALL)


def position_behind(page: IndexPage, *, limit: int, position: str = "") -> str:
    """Return where the next page of an index begins; empty where this was the last one.

    Without a resume key an index is cut off in silence: as many rows as were asked for are no end. A page
    that leads back to where it began leads nowhere.
    """
    behind = ""
    if page.resume_key:
        behind = f"{_RESUME}{page.resume_key}"
    elif page.rows >= limit and page.captures:
        behind = f"{_FROM}{max(capture.timestamp for capture in page.captures)}"
    return "" if behind == position else behind


# What its index says

MAX_INDEX_BYTES: Final = 1 << 20
"""Of one page: ten times what as many rows as are asked for come to."""
MAX_ROWS: Final = 1000
"""Of one page that are looked at."""


def parse_index(body: bytes) -> IndexPage:
    """Read one page of an index: what it says of the copies of one URL, whatever it says.

        page = parse_index(body)
        page.captures[0].timestamp          # "20190501120000"

    Two servers are known, and both are understood whichever answers: the Wayback Machine's sends one array of
    arrays, with the names of the columns first and a resume key last, behind an empty row; pywb's sends one
    object a line. What is no usable row is passed over: an index is large, made by many programs, and perhaps
    hostile.

    Raises:
        BadIndexError: It is neither of the two that are known, or larger than any that was asked for.
    """
    if len(body) > MAX_INDEX_BYTES:
        raise BadIndexError(f"expected an index of at most {MAX_INDEX_BYTES} bytes, got {len(body)}")
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return IndexPage()
    return _of_lines(text) if text.startswith("{") else _of_array(text)


class BadIndexError(ValueError):
    """What came is no index; the message says what was expected."""


@dataclass(frozen=True, slots=True)
class IndexPage:
    """One page of an index."""

    captures: tuple[Capture, ...] = ()
    """In the order in which they came."""
    resume_key: str = ""
    """Asks for the next page; empty where the archive says that there is none, or nothing of it."""
    rows: int = 0
    """How many came, the unusable ones included: as many as were asked for, and it may have been cut."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A copy that an archive has, as its index tells."""

    timestamp: str
    """When it was made: 14 digits, UTC."""
    url: str
    """Of the document, as it was asked for then."""
    media_type: str = ""
    digest: str = ""
    """Of the body, in the archive's own way; equal ones are the same body."""

    @property
    def captured_at(self) -> float:
        """When it was made, epoch seconds."""
        return instant_of(self.timestamp)


_TIMESTAMP: Final = re.compile(r"[0-9]{14}", re.ASCII)


def instant_of(timestamp: str) -> float:
    """Return the epoch second that 14 digits mean.

    Raises:
        ValueError: They are no instant.
    """
    if not _TIMESTAMP.fullmatch(timestamp):
        raise ValueError("expected 14 digits")
    return datetime.strptime(timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()


def timestamp_of(instant: float) -> str:
    """Return the 14 digits of an epoch second."""
    at = datetime.fromtimestamp(int(instant), UTC)
    return f"{at.year:04}{at:%m%d%H%M%S}"


def _of_array(text: str) -> IndexPage:
    """The Wayback Machine's: names, rows, and behind an empty row the resume key."""
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
        raise BadIndexError("expected an array of arrays")
    names, rows, key = [str(name) for name in found[0]] if found else [], found[1:], ""
    match rows:
        case [*before, [], [str(key)]]:
            rows = before
        case [*before, [], [_]]:
            rows = before
        case _:
            pass
    mapped = (dict(zip(names, row, strict=False)) for row in rows[:MAX_ROWS])
    return IndexPage(tuple(_captures(mapped)), key if _is_key(key) else "", len(rows))


_SYNONYMS: Final = {"status": "statuscode", "mime": "mimetype", "url": "original"}
"""What pywb calls the columns of the Wayback Machine."""


def _of_lines(text: str) -> IndexPage:
    """pywb's: an object a line, and no resume key."""
    rows: list[object] = [_json(line) for line in text.splitlines()[:MAX_ROWS] if line.strip()]
    mapped = ({_SYNONYMS.get(str(name), str(name)): value for name, value in row.items()} for row in rows
              if isinstance(row, dict))  # fmt: skip
    return IndexPage(tuple(_captures(mapped)), "", len(rows))


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise BadIndexError("expected JSON") from exc


_MAX_KEY_CHARACTERS: Final = 2048


def _is_key(key: str) -> bool:
    return key.isprintable() and len(key) <= _MAX_KEY_CHARACTERS


_OK_STATUSES: Final = frozenset({"", "-", "200"})


def _captures(rows: Iterable[Mapping[str, object]]) -> Iterator[Capture]:
    for row in rows:
        values = {name: value for name, value in row.items() if isinstance(value, str)}
        names = ("timestamp", "original", "mimetype", "digest")
        capture = Capture(*(values.get(name, "") for name in names))
        is_ok = values.get("statuscode", "") in _OK_STATUSES and len(capture.url) <= MAX_URL_CHARACTERS
        if is_ok and _check(capture) is not None:
            yield capture


def _check(capture: Capture) -> Capture | None:
    """Return a copy whose instant and URL are some; None for others."""
    try:
        _ = capture.captured_at, canonical_url(capture.url)
    except ValueError:
        return None
    return capture


# Which of its copies are taken, and which belong to a feed

MAX_TRIES: Final = 5
"""Copies of a missing document that are tried: those before the newest serve only where it is of no use."""


def for_missing(captures: Iterable[Capture], url: str, *, now: float) -> list[Capture]:
    """Return the copies of a document to try one after the other, until one is of use: the newest first.

    What was sent as a page of HTML comes last: it is mostly one, and a feed now and then.
    """
    newest_first = sorted(_usable(captures, url, now), key=attrgetter("timestamp"), reverse=True)
    return _distinct(sorted(newest_first, key=_is_html))[:MAX_TRIES]


def for_gone(captures: Iterable[Capture], url: str, *, now: float) -> list[Capture]:
    """Return the copies of a subscription document to take, from the oldest to the newest."""
    usable = [each for each in _usable(captures, url, now) if not _is_html(each)]
    return _distinct(sorted(usable, key=attrgetter("timestamp")))


def _usable(captures: Iterable[Capture], url: str, now: float) -> list[Capture]:
    """Of this document, and not of a time to come."""
    return [
        each for each in captures if is_same_resource(each.url, url) and each.captured_at <= now + DAY_SECONDS
    ]


_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})


def _is_html(capture: Capture) -> bool:
    return capture.media_type.partition(";")[0].strip().lower() in _HTML_TYPES


def _distinct(captures: Iterable[Capture]) -> list[Capture]:
    """Collapsing is of neighbours alone: a body that comes back is listed again."""
    kept: dict[str, Capture] = {}
    for capture in captures:
        kept.setdefault(capture.digest or capture.timestamp, capture)
    return list(kept.values())


def is_same_resource(url: str, other: str) -> bool:
    """Whether two URLs are one to an archive: http or https, with `www.` or without (SURT)."""
    return _loose(url) == _loose(other)


def _loose(url: str) -> tuple[str, str, tuple[str, ...]]:
    try:
        parts = urlsplit(canonical_url(url))
    except UrlError:
        return ("", url, ())
    host = (parts.hostname or "").removeprefix("www.")
    port = "" if parts.port in (None, 80, 443) else f":{parts.port}"
    return (host + port, parts.path.rstrip("/").lower(), tuple(sorted(parts.query.split("&"))))


def is_confirmed(
    site_id: str, links: Mapping[str, str], *, feed_site_id: str, feed_urls: Collection[str]
) -> bool:
    """Whether an archived document says that it belongs to a feed (R24).

    An archive is another site, and a domain may have changed hands: the URL alone says nothing. A feed that
    moved to https is the same one, by whichever of the two its documents name it.

    `site_id` and `links` are the document's; `feed_site_id` and `feed_urls` the subscription document's.
    """
    if site_id and feed_site_id:
        are_urls = is_http(site_id) and is_http(feed_site_id)
        if site_id == feed_site_id or (are_urls and is_same_resource(site_id, feed_site_id)):
            return True
    current = links.get(Relation.CURRENT)
    return current is not None and any(is_same_resource(current, url) for url in feed_urls)
