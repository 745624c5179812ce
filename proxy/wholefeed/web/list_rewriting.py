"""Rewrite subscription lists to the proxy's URLs and back, without any fetch.

An unservable URL stays unchanged and is counted, so that no list loses a feed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple, Self
from urllib.parse import quote

from wholefeed.config.tables import ServerConfig
from wholefeed.core.opml import OpmlDocument
from wholefeed.core.text.urls import HTTP_AUTHORITY, UrlPlaces, safe_url
from wholefeed.core.words import printable
from wholefeed.errors import InvalidUrlError, RequestError
from wholefeed.fetch.base import parse_target
from wholefeed.fetch.guard import AddressPolicy
from wholefeed.server.clients import sign
from wholefeed.web.request import (
    feed_url,
    is_prefix_form,
    own_url,
    read_prefix,
    read_query,
    replay_options,
    view_query,
)

_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
_LONGEST_URL: Final = 8192
"""Longest request line, in characters."""
_WEB: Final = re.compile(r"\s*(?:feed:/*)?https?:|\s*feed:", re.IGNORECASE)


def rewrite_list(
    document: OpmlDocument,
    own: UrlPlaces,
    *,
    base: str,
    server: ServerConfig,
    policy: AddressPolicy | None,
    options: Mapping[str, str] = _NO_OPTIONS,
) -> RewrittenList:
    """Return the list with the proxy's URLs; parameters as for `proxied_url`.

    `policy` limits the publishers; None: all are allowed.
    """

    def move(url: str) -> str | Left:
        if (behind := feed_behind(url, own)) is not None:
            return Left.ALREADY if behind else Left.REFUSED
        target = _check_url(url, policy)
        return target if isinstance(target, Left) else proxied_url(base, url, server, options)

    return _moved_urls(document, move)


def list_targets(document: OpmlDocument, own: UrlPlaces, policy: AddressPolicy) -> ListTargets:
    """Return the feeds to ask for, each once, and the lines without one.

    A URL that goes through the proxy already stands for the feed behind it.
    """
    found: dict[str, ListedTarget] = {}
    left = []
    for each in document.subscriptions:
        url = _find_target(each.url, own, policy)
        if isinstance(url, Left):
            left.append(LeftAlone(each.line, _format_url(each.url), url))
        else:
            title = " ".join(printable(each.title, " ").split())
            found.setdefault(url, ListedTarget(url, title, each.line))
    return ListTargets(tuple(found.values()), tuple(left))


class ListTargets(NamedTuple):
    feeds: tuple[ListedTarget, ...]
    left: tuple[LeftAlone, ...]


class ListedTarget(NamedTuple):
    url: str
    """Canonical."""
    title: str
    line: int


def _find_target(written: str, own: UrlPlaces, policy: AddressPolicy) -> str | Left:
    if len(written) > _LONGEST_URL:
        return Left.INVALID
    behind = feed_behind(written, own)
    return Left.REFUSED if behind == "" else _check_url(behind or written, policy)


def _check_url(url: str, policy: AddressPolicy | None) -> str | Left:
    if not _WEB.match(url):
        return Left.NOT_WEB
    try:
        canonical = feed_url(url)
        target = parse_target(canonical)
        if policy is not None:
            policy.check_target(target.host, target.port)
    except InvalidUrlError as exc:
        return Left.CREDENTIALS if exc.slug == "userinfo-not-allowed" else Left.INVALID
    except OSError:
        return Left.REFUSED
    return canonical


def moved_out(document: OpmlDocument, own: UrlPlaces) -> RewrittenList:
    """Return the list with the publishers' URLs, without token and options.

    It restores `htmlUrl` too: if a feed names no site, readers write the feed's URL there.
    """

    def move(url: str) -> str | Left:
        behind = feed_behind(url, own)
        if behind:
            return behind
        return Left.ELSEWHERE if _looks_proxied(url) else Left.DIRECT

    sites = [each.url if len(each.url) <= _LONGEST_URL else "" for each in document.sites]
    return _moved_urls(document, move, sites=[feed_behind(url, own) or None for url in sites])


def _looks_proxied(url: str) -> bool:
    authority = HTTP_AUTHORITY.match(url.strip())
    target = url.strip()[authority.end() :] if authority else ""
    return bool(_WEB.match(_find_feed(target)))


def _moved_urls(
    document: OpmlDocument, move: Callable[[str], str | Left], sites: Sequence[str | None] | None = None
) -> RewrittenList:
    urls: list[str | None] = []
    left = []
    for each in document.subscriptions:
        made = move(each.url) if len(each.url) <= _LONGEST_URL else Left.INVALID
        if isinstance(made, Left):
            left.append(LeftAlone(each.line, _format_url(each.url), made))
        urls.append(None if isinstance(made, Left) else made)
    return RewrittenList(document.with_urls(urls, sites), len(urls) - len(left), tuple(left))


def _format_url(url: str) -> str:
    return printable(safe_url(url.strip()))


class RewrittenList(NamedTuple):
    document: bytes
    rewritten: int
    left: tuple[LeftAlone, ...]

    def counts(self) -> dict[str, int]:
        return {"rewritten": self.rewritten, **Counter(str(each.why) for each in self.left)}


class LeftAlone(NamedTuple):
    line: int
    url: str
    """Safe to show."""
    why: Left


class Left(StrEnum):
    """Reasons to leave a subscription unchanged, with `words` for people."""

    words: str

    def __new__(cls, slug: str, words: str) -> Self:
        made = str.__new__(cls, slug)
        made._value_ = slug
        made.words = words
        return made

    ALREADY = "already", "goes through the proxy already"
    NOT_WEB = "not-web", "not http or https"
    CREDENTIALS = "credentials", "contains a user name or password, which the proxy would show to others"
    INVALID = "invalid", "no URL that can be fetched"
    REFUSED = "refused", "an address that this proxy does not ask (see fetch.allow_networks, fetch.ports)"
    DIRECT = "direct", "does not go through the proxy"
    ELSEWHERE = "elsewhere", "goes through a proxy at another address (`wholefeed opml --base` names it)"


# The feeds behind the proxy's own URLs


def feed_behind(url: str, own: UrlPlaces) -> str | None:
    """Return the feed's URL behind a proxy's URL.

    Returns:
        None: not the proxy's. Empty: no feed.
    """
    target = own.target(url)
    return None if target is None else _find_feed(target)


_FEED_PATH: Final = re.compile(r"/feed/?\?", re.IGNORECASE)


def _find_feed(target: str) -> str:
    if found := _FEED_PATH.match(target):
        try:
            return read_query(target[found.end() :].partition("#")[0]).url
        except RequestError:
            return ""
    return read_prefix(target) if is_prefix_form(target) else ""


def replay_behind(url: str, own: UrlPlaces) -> dict[str, str]:
    target = own.target(url) or ""
    if (found := _FEED_PATH.match(target)) is None:
        return {}
    try:
        options = read_query(target[found.end() :].partition("#")[0]).options
    except RequestError:
        return {}
    return replay_options(options)


# The URL to subscribe to


def proxied_url(base: str, url: str, server: ServerConfig, options: Mapping[str, str] = _NO_OPTIONS) -> str:
    """Return a reader's URL for a feed.

        proxied_url("https://feeds.example", "https://example.org/feed.atom", config.server)
        # https://feeds.example/feed?url=https%3A%2F%2Fexample.org%2Ffeed.atom&token=…

    It has the access token, which also opens pages, or else a signature for this feed. Only the running
    proxy's `server` has a generated token. `base` has no final slash; `options` select a view or replay.

    Raises:
        InvalidUrlError: The URL cannot be fetched.
    """
    token, keys = server.access_token, server.signing_keys
    canonical = feed_url(url)
    mark = sign(canonical, keys) if keys and not token else ""
    secret = f"&token={quote(token, safe='')}" if token else ""
    return own_url(base, url, mark) + secret + view_query(options)
