"""Web archives: whether to ask one, its URLs, and the choice among its mementos (R33)."""

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

# The decision to ask an archive

UNHEARD_ATTEMPTS: Final = 3
"""Failures in a row, at growing intervals, until a host counts as dead."""
_GONE_STATUSES: Final = frozenset({404, 410})
_DEAD: Final = frozenset(
    {"dns-error", "dns-timeout", "connection-failed", "timeout", "tls-certificate", "protocol-error"}
)
# Something else has taken the document's place, such as a front page or a domain for sale.
_REPLACED: Final = frozenset({"not-a-feed", "format", "cross-origin-unconfirmed", "redirect-loop", "empty"})


def is_gone(reason: str, status: int | None, *, attempts: int, is_part: bool = False) -> bool:
    """Return whether a publisher will probably never give a document again.

    `reason` is the slug of the last of `attempts` failures. `is_part`: not the subscription document; then
    something else in its place counts, too.
    """
    if status is not None and status in _GONE_STATUSES:
        return True
    if status is None and reason in _DEAD:
        return attempts >= UNHEARD_ATTEMPTS
    return is_part and reason in _REPLACED


def may_be_sent(url: str, listed_hosts: Collection[str]) -> bool:
    """Return whether an archive may learn a URL: it reveals no secret and no private network.

    Listed hosts may be private, and their URLs may have queries. "*.example.org" matches all names below.
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


# RFC 6761, RFC 6762 and similar: names with a meaning in one network only.
_PRIVATE_ENDINGS: Final = (
    *("local", "localhost", "internal", "intranet", "private", "corp", "home", "lan"),
    *("home.arpa", "onion", "alt", "test", "invalid", "example"),
)


def _is_public(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    is_private = any(host == ending or host.endswith(f".{ending}") for ending in _PRIVATE_ENDINGS)
    return "." in host and not is_private


# The URLs of an archive's index and mementos

_RESUME: Final = "resumeKey="
_FROM: Final = "from="


class Layout:
    """URLs of one archive.

    An archive without a path in its URL has the layout of the Wayback Machine, others that of pywb. `base` is
    `history.memento_url`, without query and final slash.
    """

    def __init__(self, base: str) -> None:
        is_wayback = not urlsplit(base).path.strip("/")
        self._index = f"{base}/cdx/search/cdx" if is_wayback else f"{base}/cdx"
        self._copies = f"{base}/web/" if is_wayback else f"{base}/"
        self._is_wayback = is_wayback

    def oldest(self, url: str, *, limit: int, position: str = "") -> str:
        """Return the URL of an index page, oldest mementos first."""
        asked = {**self._headers(url), "limit": str(limit), "showResumeKey": "true"}
        for name in (_RESUME, _FROM):
            if position.startswith(name):
                asked[name[:-1]] = position.removeprefix(name)
        return f"{self._index}?{urlencode(asked)}"

    def newest(self, url: str, *, limit: int) -> str:
        """Return the URL of an index page with the newest mementos, in any order."""
        last = {"limit": f"-{limit}"} if self._is_wayback else {"limit": str(limit), "sort": "reverse"}
        return f"{self._index}?{urlencode({**self._headers(url), **last})}"

    def copy(self, capture: Capture) -> str:
        # `id_`: the body as archived, without links and banners that archives add.
        return f"{self._copies}{capture.timestamp}id_/{quote(capture.url, safe=_UNQUOTED)}"

    def capture_at(self, url: str) -> Capture | None:
        """Return the memento at a URL, perhaps after redirects; None: none."""
        if not url.startswith(self._copies):
            return None
        found = _COPY.fullmatch(url.removeprefix(self._copies))
        return None if found is None else _check(Capture(found[1], found[2]))

    def _headers(self, url: str) -> dict[str, str]:
        return {"url": url, "output": "json", "filter": "statuscode:200", "collapse": "digest"}


_UNQUOTED: Final = ":/?#[]@!$&'()*+,;=%-._~"
_COPY: Final = re.compile(r"([0-9]{14})id_/(.+)", re.ASCII | re.DOTALL)


def position_behind(page: IndexPage, *, limit: int, position: str = "") -> str:
    """Return the position of the next index page; empty: none."""
    behind = ""
    if page.resume_key:
        behind = f"{_RESUME}{page.resume_key}"
    # Without a resume key an archive cuts an index silently: a full page may not be the last.
    elif page.rows >= limit and page.captures:
        behind = f"{_FROM}{max(capture.timestamp for capture in page.captures)}"
    # A page that leads back to its own beginning would repeat for ever.
    return "" if behind == position else behind


# The index

MAX_INDEX_BYTES: Final = 1 << 20
"""Limit per page: ten times a page with all requested rows."""
MAX_ROWS: Final = 1000
"""Limit per page."""


def parse_index(body: bytes) -> IndexPage:
    """Parse one page of an index.

    The Wayback Machine sends an array of arrays, pywb one object per line. Unusable rows are skipped: an
    index is large and perhaps hostile.

    Raises:
        BadIndexError: Neither form, or too large.
    """
    if len(body) > MAX_INDEX_BYTES:
        raise BadIndexError(f"expected an index of at most {MAX_INDEX_BYTES} bytes, got {len(body)}")
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return IndexPage()
    return _of_lines(text) if text.startswith("{") else _of_array(text)


class BadIndexError(ValueError):
    """An unusable index."""


@dataclass(frozen=True, slots=True)
class IndexPage:
    captures: tuple[Capture, ...] = ()
    resume_key: str = ""
    """Key of the next page; empty: none given."""
    rows: int = 0
    """Number of rows, with unusable ones; a full page may have been cut."""


@dataclass(frozen=True, slots=True)
class Capture:
    timestamp: str
    """14 digits, UTC."""
    url: str
    """The document's URL at that time."""
    media_type: str = ""
    digest: str = ""
    """In the archive's own form; equal digests mean equal bodies."""

    @property
    def captured_at(self) -> float:
        """Epoch seconds."""
        return instant_of(self.timestamp)


_TIMESTAMP: Final = re.compile(r"[0-9]{14}", re.ASCII)


def instant_of(timestamp: str) -> float:
    """Convert 14 digits to epoch seconds.

    Raises:
        ValueError: Not an instant.
    """
    if not _TIMESTAMP.fullmatch(timestamp):
        raise ValueError("expected 14 digits")
    return datetime.strptime(timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()


def timestamp_of(instant: float) -> str:
    at = datetime.fromtimestamp(int(instant), UTC)
    return f"{at.year:04}{at:%m%d%H%M%S}"


def _of_array(text: str) -> IndexPage:
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(row, list) for row in found):
        raise BadIndexError("expected an array of arrays")
    # The Wayback Machine: names, rows, and behind an empty row the resume key.
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


# pywb's names for columns of the Wayback Machine.
_SYNONYMS: Final = {"status": "statuscode", "mime": "mimetype", "url": "original"}


def _of_lines(text: str) -> IndexPage:
    # pywb: one object per line, without a resume key.
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
    try:
        _ = capture.captured_at, canonical_url(capture.url)
    except ValueError:
        return None
    return capture


# The choice of mementos

MAX_TRIES: Final = 5
"""Mementos to try for a missing document; older ones serve only if newer ones are useless."""


def for_missing(captures: Iterable[Capture], url: str, *, now: float) -> list[Capture]:
    """Return the mementos to try for a missing document, newest first.

    HTML types come last, because few of them are feeds.
    """
    newest_first = sorted(_usable(captures, url, now), key=attrgetter("timestamp"), reverse=True)
    return _distinct(sorted(newest_first, key=_is_html))[:MAX_TRIES]


def for_gone(captures: Iterable[Capture], url: str, *, now: float) -> list[Capture]:
    """Return the mementos of a subscription document, oldest first."""
    usable = [each for each in _usable(captures, url, now) if not _is_html(each)]
    return _distinct(sorted(usable, key=attrgetter("timestamp")))


def _usable(captures: Iterable[Capture], url: str, now: float) -> list[Capture]:
    return [
        each for each in captures if is_same_resource(each.url, url) and each.captured_at <= now + DAY_SECONDS
    ]


_HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})


def _is_html(capture: Capture) -> bool:
    return capture.media_type.partition(";")[0].strip().lower() in _HTML_TYPES


def _distinct(captures: Iterable[Capture]) -> list[Capture]:
    # An archive collapses neighbours only: a body that returns is listed again.
    kept: dict[str, Capture] = {}
    for capture in captures:
        kept.setdefault(capture.digest or capture.timestamp, capture)
    return list(kept.values())


def is_same_resource(url: str, other: str) -> bool:
    """Return whether two URLs are one to an archive: http or https, with or without `www.` (SURT)."""
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
    """Return whether a document says that it belongs to a feed (R24).

    A URL alone proves nothing: an archive is another site, and a domain may have changed hands.
    """
    if site_id and feed_site_id:
        are_urls = is_http(site_id) and is_http(feed_site_id)
        # A feed that moved to https is the same feed.
        if site_id == feed_site_id or (are_urls and is_same_resource(site_id, feed_site_id)):
            return True
    current = links.get(Relation.CURRENT)
    return current is not None and any(is_same_resource(current, url) for url in feed_urls)
