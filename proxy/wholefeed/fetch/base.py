"""The data of one fetch: target, options, result. Pure."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from publicsuffixlist import PublicSuffixList

from wholefeed.core.schedule import ValidatorPair, validators_of
from wholefeed.core.text.urls import (
    DEFAULT_PORTS,
    PATH_CHARACTERS,
    QUERY_CHARACTERS,
    UrlError,
    canonical_url,
    host_of,
    join_parts,
    resolve,
    safe_url,
    split,
    without_dot_segments,
)
from wholefeed.errors import PublisherError
from wholefeed.fetch.budget import Share
from wholefeed.fetch.cookies import ChainCookies

# Where it goes


class Target(NamedTuple):
    url: str
    host: str
    """Canonical; an IPv6 address without its brackets."""
    port: int
    is_secure: bool


_PATH: Final = "".join(PATH_CHARACTERS)
_QUERY: Final = "".join(QUERY_CHARACTERS)
_PORT: Final = re.compile(r"(?::([0-9]+))?$")


@lru_cache(maxsize=1024)  # each refresh asks for the same
def parse_target(text: str) -> Target:
    """Return the target that a URL names, without its fragment; raises UrlError for an unusable one."""
    canonical = split(canonical_url(text))
    scheme, authority = canonical.scheme, canonical.authority
    assert scheme is not None, "a canonical URL has a scheme"
    assert authority is not None, "a canonical URL has an authority"
    given = split(text)
    path = quote(without_dot_segments(given.path), safe=_PATH) or "/"
    query = None if given.query is None else quote(given.query, safe=_QUERY)
    # The guard judges the authority, so it is canonical. Some publishers sign path and query.
    sent = canonical._replace(path=path, query=query, fragment=None)
    port_match = _PORT.search(authority)
    assert port_match is not None, "the empty text matches"
    host = authority[: port_match.start()].strip("[]")
    port = int(port_match[1]) if port_match[1] else DEFAULT_PORTS[scheme]
    return Target(join_parts(sent), host, port, scheme == "https")


_UNDECODED: Final = re.compile("[\udc80-\udcff]")


def redirect_target(base: Target, location: str, *, allow_downgrade: bool = False) -> Target:
    """Return the target of a Location field (RFC 9110, section 10.2.2; docs/faults.md rows 13 and 14).

    Surrogates stand for octets outside UTF-8.

    Raises:
        PublisherError: `redirect-loop` (no URL), `bad-redirect` or `downgrade`.
    """
    octets = _UNDECODED.sub(lambda match: f"%{ord(match[0]) - 0xDC00:02X}", location)
    try:
        url = resolve(base.url, _with_slashes(octets)) if octets.strip() else ""
    except ValueError:
        url = ""
    if not url:
        raise PublisherError("expected a URL in the Location field", url=base.url, slug="redirect-loop")
    try:
        target = parse_target(url)
    except UrlError as exc:
        raise PublisherError(
            "expected a redirect to an http(s) URL without credentials", url=base.url, slug="bad-redirect"
        ) from exc
    if base.is_secure and not target.is_secure and not allow_downgrade:
        raise PublisherError("the redirect leads from https to http", url=base.url, slug="downgrade")
    return target


def _with_slashes(reference: str) -> str:
    # URL Standard, 4.4: a backslash in a path is a slash; one in a possible authority stays.
    parts = split(reference.strip())
    is_path = not parts.path.startswith(("\\", "/\\")) and (
        parts.scheme is None or parts.authority is not None
    )
    return join_parts(parts._replace(path=parts.path.replace("\\", "/"))) if is_path else reference


@lru_cache(maxsize=1024)  # each refresh asks for the same
def site_of(url: str) -> str:
    """Return the registrable domain of a URL's host (R24), or an unreadable URL unchanged."""
    try:
        return _site(host_of(url))
    except UrlError:
        return url


@lru_cache(maxsize=4096)  # hosts are few and asked for often: each document of a chain asks for its own
def _site(host: str) -> str:
    # An IP address, a single label and a public suffix are sites of their own.
    if ":" in host or host.rpartition(".")[2].isdecimal():
        return host
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


# What is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    is_new: bool = False
    """Whether the fetch is for a subscription document never seen before."""
    is_head: bool = False
    expected: frozenset[int] = frozenset()
    """Error statuses to expect (a guessed URL's 404): raised, but not counted as faults."""
    is_polled: bool = False
    """Whether no reader waits for it: a quarter of all places is for others."""
    at_most: int | None = None
    """Most requests at once to this host from now on (R32). None: as before."""
    turn: Callable[[], Awaitable[None]] | None = None
    """Awaited before each request, redirects and retries included; the time limit excludes it."""
    follows_refresh: bool = True
    """Whether an immediate HTML refresh counts as a temporary redirect."""
    feed_url: str = ""
    """Decides about the publisher's secrets (A2). Empty: no secrets."""


USUAL: Final = Manner()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    etag: str | None = None
    last_modified: str | None = None
    url: str | None = None
    """The only URL that gets these validators. None: any."""

    def header_fields(self, url: str) -> dict[str, str]:
        """Return the valid conditional fields of a request (RFC 9110, section 13.1)."""
        if self.url not in (None, url):
            return {}
        given = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {
            name: value for name, value in given.items() if value and value.isascii() and value.isprintable()
        }


# What it costs, and what came


@dataclass(slots=True)
class Transfer:
    url: str
    limit_seconds: float
    share: Share
    manner: Manner = USUAL
    validators: Validators = Validators()
    on_chunk: Callable[[str, bytes], None] | None = None
    """Called with the URL and each decoded piece of a 200 body."""
    spent_seconds: float = 0.0
    """Requests and pauses, up to the limit."""
    seen: list[str] = field(default_factory=list)
    cookies: ChainCookies = field(default_factory=ChainCookies)
    asked: set[tuple[str, str]] = field(default_factory=set)
    """Each requested URL with its Cookie field."""
    is_permanent: bool = True
    wire_bytes: int = 0
    body_bytes: int = 0
    heads: int = 0
    status: int | None = None
    repairs: frozenset[str] = frozenset()
    """See docs/repair.md#responses; only of the last response."""

    @property
    def left_seconds(self) -> float:
        return self.limit_seconds - self.spent_seconds

    def spend(self, seconds: float) -> None:
        self.spent_seconds = min(self.spent_seconds + seconds, self.limit_seconds)

    def facts(self) -> dict[str, object]:
        """Return the log fields of a fetch, without credentials and query strings."""
        return {
            "url": _format_url(self.url),
            "host": urlsplit(self.seen[-1]).hostname if self.seen else None,
            "hops": max(0, len(self.seen) - 1),
            "status": self.status,
            "wire_bytes": self.wire_bytes,
            "body_bytes": self.body_bytes,
            "duration_s": round(self.spent_seconds, 6),
            **({"repairs": sorted(self.repairs)} if self.repairs else {}),
        }


@lru_cache(maxsize=1024)  # each refresh tells of the same
def _format_url(url: str) -> str:
    return safe_url(url)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Fetched:
    """A publisher's document, or the fact that it has not changed."""

    url: str
    final_url: str
    hops: tuple[str, ...]
    permanent_url: str | None
    """The final URL, if all redirects were permanent (301, 308); else None."""
    not_modified: bool
    body: bytes
    """Decoded; empty when not modified."""
    media_type: str
    headers: Mapping[str, str]
    """The response's `KEPT_HEADERS`; lower-case names."""
    links: tuple[str, ...]
    wire_bytes: int
    """Body bytes before decoding."""
    fetched_at: float
    is_met: bool = False
    """Whether a redirect led to a document that the caller has, so the fetch ended there."""
    status: int
    repairs: tuple[str, ...] = ()

    @property
    def validators(self) -> ValidatorPair:
        """The response's validators; no other code reads them."""
        return validators_of(self.headers, now=self.fetched_at)


KEPT_HEADERS: Final = (
    "age",
    "cache-control",
    "content-length",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "memento-datetime",
    "retry-after",
    "transfer-encoding",
    "vary",
    "x-discourse-route",
    "x-wp-total",
)
