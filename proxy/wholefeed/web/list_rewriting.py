"""Change the URLs of subscriptions to the proxy's, and back; nothing is fetched or looked up.

    own = Places.of(["http://127.0.0.1:8080"])
    moved = moved_in(read_opml(body), own, base="http://127.0.0.1:8080", server=config.server, policy=policy)
    moved.document, moved.rewritten, moved.left     # what was left alone, and why
    moved_out(read_opml(moved.document), own)       # back again

A URL that the proxy could not serve stays as it is, and is counted with its reason: moving loses no feed.
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
"""Characters of a URL that anybody could ask for: a request line is no longer."""
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
    """Return the list with each subscription through the proxy.

    `policy` says which publishers it asks (None: all of these); the rest is as for `proxied_url`.
    """

    def move(url: str) -> str | Left:
        if (behind := feed_behind(url, own)) is not None:
            return Left.ALREADY if behind else Left.REFUSED
        if not _WEB.match(url):
            return Left.NOT_WEB
        try:
            target = parse_target(feed_url(url))
            if policy is not None:
                policy.check_target(target.host, target.port)
        except InvalidUrlError as exc:
            return Left.CREDENTIALS if exc.slug == "userinfo-not-allowed" else Left.INVALID
        except OSError:
            return Left.REFUSED
        return proxied_url(base, url, server, options)

    return _moved_urls(document, move)


def moved_out(document: OpmlDocument, own: UrlPlaces) -> RewrittenList:
    """Return the list with each subscription at its publisher again, whatever token and options it bore.

    So is the `htmlUrl` beside it: where a feed names no site, readers put the URL there that they ask for.
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
            left.append(_LeftAlone(each.line, _format_url(each.url), made))
        urls.append(None if isinstance(made, Left) else made)
    return RewrittenList(document.with_urls(urls, sites), len(urls) - len(left), tuple(left))


def _format_url(url: str) -> str:
    return printable(safe_url(url.strip()))


class RewrittenList(NamedTuple):
    document: bytes
    rewritten: int
    left: tuple[_LeftAlone, ...]

    def counts(self) -> dict[str, int]:
        """Return how many were rewritten, and how many left for each reason."""
        return {"rewritten": self.rewritten, **Counter(str(each.why) for each in self.left)}


class _LeftAlone(NamedTuple):
    line: int
    url: str
    """As it may be shown."""
    why: Left


class Left(StrEnum):
    """Why a subscription stays as it is; `words` say it to people."""

    words: str

    def __new__(cls, slug: str, words: str) -> Self:
        made = str.__new__(cls, slug)
        made._value_ = slug
        made.words = words
        return made

    ALREADY = "already", "goes through the proxy already"
    NOT_WEB = "not-web", "not http or https"
    CREDENTIALS = "credentials", "has a user name or password in it, which the proxy would not keep to itself"
    INVALID = "invalid", "no URL that can be fetched"
    REFUSED = "refused", "an address that this proxy does not ask (see fetch.allow_networks, fetch.ports)"
    DIRECT = "direct", "does not go through the proxy"
    ELSEWHERE = "elsewhere", "goes through a proxy at another address (`wholefeed opml --base` names it)"


# The feeds behind the proxy's own URLs


def feed_behind(url: str, own: UrlPlaces) -> str | None:
    """Return the URL of the feed that one of the proxy's own leads to, as it stands there.

    None: it is none of the proxy's. Empty: it is, and leads to no feed.
    """
    target = own.target(url)
    return None if target is None else _find_feed(target)


_FEED_PATH: Final = re.compile(r"/feed/?\?", re.IGNORECASE)


def _find_feed(target: str) -> str:
    """Return the feed's URL that a request target of the proxy names; empty: none."""
    if found := _FEED_PATH.match(target):
        try:
            return read_query(target[found.end() :].partition("#")[0]).url
        except RequestError:
            return ""
    return read_prefix(target) if is_prefix_form(target) else ""


def replay_behind(url: str, own: UrlPlaces) -> dict[str, str]:
    """Return the parameters of the replay that one of the proxy's own URLs names; none for any other."""
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
    """Return the URL by which a reader subscribes to a feed.

        proxied_url("https://feeds.example", "https://example.org/feed.atom", config.server)
        # https://feeds.example/feed?url=https%3A%2F%2Fexample.org%2Ffeed.atom&token=…
        proxied_url(base, url, config.server, {"answer_bytes": "5000000"})

    It holds the access token where there is one, else a signature where there are signing keys: a signature
    opens one feed alone, but a reader that knows the token can also ask for `/status` and the pages.

    `base` has no final slash; `server` is that of the running proxy, with the token that may have been made
    at its first start; `options` are those of the view, as they stand in a query.

    Raises:
        InvalidUrlError: It is none that can be fetched.
    """
    token, keys = server.access_token, server.signing_keys
    canonical = feed_url(url)
    mark = sign(canonical, keys) if keys and not token else ""
    secret = f"&token={quote(token, safe='')}" if token else ""
    return own_url(base, url, mark) + secret + view_query(options)
