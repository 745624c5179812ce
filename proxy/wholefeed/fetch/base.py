"""The data of one fetch: its target, how it is asked for, and what came.

    target = parse_target("https://Example.org/Feed?a=%2f")     # https://example.org/Feed?a=%2f
    target = redirect_target(target, "../new.atom")
    Validators(etag=fetched.validators.etag)                    # for the next request
    site_of(fetched.final_url)                                  # example.org

Nothing here does a request, and nothing decides whether one may be made.
"""

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
    """An http(s) URL that can be sent, and what the guard needs of it."""

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
    """Return the target that a URL names; its fragment is dropped.

    The authority is sent in canonical form, because the address guard judges it; path and query are sent as
    the publisher wrote them, because some publishers sign them. UrlError: it is none that can be fetched.
    """
    canonical = split(canonical_url(text))
    scheme, authority = canonical.scheme, canonical.authority
    assert scheme is not None, "a canonical URL has a scheme"
    assert authority is not None, "a canonical URL has an authority"
    given = split(text)
    path = quote(without_dot_segments(given.path), safe=_PATH) or "/"
    query = None if given.query is None else quote(given.query, safe=_QUERY)
    sent = canonical._replace(path=path, query=query, fragment=None)
    port_match = _PORT.search(authority)
    assert port_match is not None, "the empty text matches"
    host = authority[: port_match.start()].strip("[]")
    port = int(port_match[1]) if port_match[1] else DEFAULT_PORTS[scheme]
    return Target(join_parts(sent), host, port, scheme == "https")


_UNDECODED: Final = re.compile("[\udc80-\udcff]")


def redirect_target(base: Target, location: str, *, allow_downgrade: bool = False) -> Target:
    """Return where a Location field leads (RFC 9110, section 10.2.2; docs/faults.md rows 13 and 14).

    Octets of the field that are no UTF-8 stand in it as surrogates. A backslash in the path is a slash, as
    browsers have it (URL Standard, 4.4, "path state").

    Raises:
        PublisherError: `redirect-loop`: it leads nowhere. `bad-redirect`. `downgrade`.
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
    """Make slashes of the backslashes in a path; those that may be part of an authority stay as they are."""
    parts = split(reference.strip())
    is_path = not parts.path.startswith(("\\", "/\\")) and (
        parts.scheme is None or parts.authority is not None
    )
    return join_parts(parts._replace(path=parts.path.replace("\\", "/"))) if is_path else reference


@lru_cache(maxsize=1024)  # each refresh asks for the same
def site_of(url: str) -> str:
    """Return the registrable domain of an http(s) URL's host (rule R24); the port plays no part.

    An IP address, a name of one label and a public suffix are sites of their own, and so is a URL that
    cannot be read: it is returned as it is. The public suffix list comes with a package.
    """
    try:
        return _site(host_of(url))
    except UrlError:
        return url


@lru_cache(maxsize=4096)  # hosts are few and asked for often: each document of a chain asks for its own
def _site(host: str) -> str:
    if ":" in host or host.rpartition(".")[2].isdecimal():
        return host
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


# What is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What a fetch asks for, and how."""

    is_new: bool = False
    """Whether it is for a subscription document that was never seen: as in `Host.rest`."""
    is_head: bool = False
    """Whether the head of the answer is all that is wanted (RFC 9110, section 9.3.2)."""
    expected: frozenset[int] = frozenset()
    """Statuses that answer what is asked: a document that is not there then is no failure."""
    at_most: int | None = None
    """Requests at once that the host may get from now on, where that is less than usual (R32)."""
    turn: Callable[[], Awaitable[None]] | None = None
    """Waits until one more request may be made. Awaited before each, redirects and further tries included;
    takes none of the time."""
    follows_refresh: bool = True
    """Whether an HTML page that refreshes to another URL at once leads there, like a temporary redirect."""
    feed_url: str = ""
    """Of the feed that it is for: its publisher's secrets go along to that publisher (A2). Empty: none do."""


USUAL: Final = Manner()


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a document was sent with when it was fetched last; makes a request conditional (RFC 9110, 8.8)."""

    etag: str | None = None
    last_modified: str | None = None
    url: str | None = None
    """Who sent them: a validator means nothing to another document. None: whoever answers."""

    def header_fields(self, url: str) -> dict[str, str]:
        """Return the fields of a request to a URL (RFC 9110, section 13.1); a broken validator is none."""
        if self.url not in (None, url):
            return {}
        given = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {
            name: value for name, value in given.items() if value and value.isascii() and value.isprintable()
        }


# What it costs, and what came


@dataclass(slots=True)
class Transfer:
    """One fetch under way, and its cost so far, also when it fails."""

    url: str
    limit_seconds: float
    share: Share
    """What its body may take of the memory for all."""
    manner: Manner = USUAL
    validators: Validators = Validators()
    on_chunk: Callable[[str, bytes], None] | None = None
    """Given the URL and the decoded body of a 200, piece by piece, as it arrives."""
    spent_seconds: float = 0.0
    """On requests and pauses; never more than the limit."""
    seen: list[str] = field(default_factory=list)
    """Each URL that was asked, in order."""
    cookies: ChainCookies = field(default_factory=ChainCookies)
    """What redirects have set."""
    asked: set[tuple[str, str]] = field(default_factory=set)
    """Each URL that was asked, with the Cookie field that went along."""
    is_permanent: bool = True
    """Whether all redirects so far were."""
    wire_bytes: int = 0
    """Of bodies, as they came."""
    body_bytes: int = 0
    """Decoded."""
    heads: int = 0
    """Answers that have begun."""
    status: int | None = None
    """The last one that came."""
    repairs: frozenset[str] = frozenset()
    """What of the last response was not as HTTP has it (docs/repair.md#responses)."""

    @property
    def left_seconds(self) -> float:
        return self.limit_seconds - self.spent_seconds

    def spend(self, seconds: float) -> None:
        self.spent_seconds = min(self.spent_seconds + seconds, self.limit_seconds)

    def facts(self) -> dict[str, object]:
        """Return the fields of every event of a fetch: never credentials, never a query string."""
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
    """A document as its publisher sent it, or that it has not changed."""

    url: str
    """As asked for."""
    final_url: str
    hops: tuple[str, ...]
    """Every URL between the one asked for and the final one."""
    permanent_url: str | None
    """Where redirects led that were all permanent (301, 308); None where there were none, or others."""
    not_modified: bool
    body: bytes
    """Decoded; empty when not modified."""
    media_type: str
    """Content-Type as sent."""
    headers: Mapping[str, str]
    """Those of `KEPT_HEADERS` that the publisher sent; lower-case names."""
    links: tuple[str, ...]
    """Values of the Link fields (RFC 8288)."""
    wire_bytes: int
    """Of the body as it came, before decoding."""
    fetched_at: float
    is_met: bool = False
    """Whether redirects led to a document that the caller has: it was not asked for, and is not modified."""
    status: int
    repairs: tuple[str, ...] = ()
    """What was not as HTTP has it (docs/repair.md#responses)."""

    @property
    def validators(self) -> ValidatorPair:
        """What it can be asked for conditionally with; the only place where they are read."""
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
"""Fields of an answer that are of use once it is here."""
