"""Moving subscriptions: the URLs of a list led through the proxy, and back to their publishers.

    own = OwnAddresses(["http://127.0.0.1:8080"])
    moved = moved_in(read_opml(body), Way(own.bases[0], config.server, policy), own)
    moved.document, moved.rewritten, moved.left     # what was left alone, and why
    moved_out(read_opml(moved.document), own)       # back again

What does not come through unharmed is left as it is and told: nobody loses a feed by moving.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from wholefeed.config.tables import ServerConfig
from wholefeed.core.opml.document import OpmlDocument
from wholefeed.core.text.redact import safe_url
from wholefeed.errors import InvalidUrlError, RequestError
from wholefeed.fetch.guard.addresses import AddressPolicy
from wholefeed.fetch.targets import parse_target
from wholefeed.web.proxied import proxied_url
from wholefeed.web.request_target import feed_url, is_prefix_form, read_prefix, read_query

_WEB: Final = re.compile(r"\s*(?:feed:/*)?https?:|\s*feed:", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_LONGEST: Final = 8192
"""Characters of a URL that anybody could ask for: a request line is no longer."""
_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_FEED_PATH: Final = re.compile(r"/feed/?\?", re.IGNORECASE)


class Left(StrEnum):
    """Why a subscription stays as it is."""

    ALREADY = "already"
    NOT_WEB = "not-web"
    CREDENTIALS = "credentials"
    INVALID = "invalid"
    REFUSED = "refused"
    DIRECT = "direct"
    ELSEWHERE = "elsewhere"


IN_WORDS: Final[Mapping[Left, str]] = MappingProxyType(
    {
        Left.ALREADY: "goes through the proxy already",
        Left.NOT_WEB: "not http or https",
        Left.CREDENTIALS: "has a user name or password in it, which the proxy would not keep to itself",
        Left.INVALID: "no URL that can be fetched",
        Left.REFUSED: "an address that this proxy does not ask (see fetch.allow_networks, fetch.ports)",
        Left.DIRECT: "does not go through the proxy",
        Left.ELSEWHERE: "goes through a proxy at another address: name that with --base",
    }
)


class LeftAlone(NamedTuple):
    """One subscription that stays as it is."""

    line: int
    url: str
    """As it may be shown."""
    why: Left


class Moved(NamedTuple):
    """A list after the move."""

    document: bytes
    rewritten: int
    left: tuple[LeftAlone, ...]

    def counts(self) -> dict[str, int]:
        """Return how many were rewritten, and how many left for each reason."""
        return {"rewritten": self.rewritten, **Counter(str(each.why) for each in self.left)}


class OwnAddresses:
    """Where the proxy is reached; http and https, and the names of this machine, are one.

    Args:
        bases: Scheme and authority, and a path where there is one, without a final slash.
    """

    def __init__(self, bases: Iterable[str]) -> None:
        found = [address for base in bases if base and (address := _address_of(base)) is not None]
        self._own: Final = {
            (name, port, parts.path.rstrip("/"))
            for (host, port), parts in found
            for name in (_LOOPBACK if host in _LOOPBACK else (host,))
        }

    def feed_behind(self, url: str) -> str | None:
        """Return the URL of the feed that one of the proxy's own leads to, as it stands there.

        None: it is none of the proxy's. Empty: it is, and leads to no feed.
        """
        text = url.strip()
        address, authority = _address_of(text), _AUTHORITY.match(text)
        if address is None or authority is None:
            return None
        target = text[authority.end() :]
        for host, port, path in self._own:
            if address[0] == (host, port) and target.startswith(f"{path}/"):
                return _feed_in(target[len(path) :])
        return None


def _address_of(url: str) -> tuple[tuple[str, int | None], SplitResult] | None:
    """Return host and port (None: the scheme's own) and the parts of an http(s) URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORT or not parts.hostname:
        return None
    return (parts.hostname, None if port == _DEFAULT_PORT[parts.scheme] else port), parts


def _feed_in(target: str) -> str:
    """Return the feed's URL that a request target of the proxy names; empty: none."""
    if found := _FEED_PATH.match(target):
        try:
            return read_query(target[found.end() :].partition("#")[0]).url
        except RequestError:
            return ""
    return read_prefix(target) if is_prefix_form(target) else ""


class Way(NamedTuple):
    """How subscriptions are led through the proxy."""

    base: str
    """The proxy's URL, without a final slash."""
    server: ServerConfig
    """Of the running proxy, for the token or the signatures."""
    policy: AddressPolicy
    """Which publishers it asks."""
    options: Mapping[str, str] = MappingProxyType({})
    """Of the view: what is added to each URL."""


def moved_in(document: OpmlDocument, way: Way, own: OwnAddresses) -> Moved:
    """Return the list with each subscription through the proxy."""

    def move(url: str) -> str | Left:
        if (behind := own.feed_behind(url)) is not None:
            return Left.ALREADY if behind else Left.REFUSED
        if not _WEB.match(url):
            return Left.NOT_WEB
        try:
            target = parse_target(feed_url(url))
            way.policy.check_target(target.host, target.port)
        except InvalidUrlError as exc:
            return Left.CREDENTIALS if exc.slug == "userinfo-not-allowed" else Left.INVALID
        except OSError:
            return Left.REFUSED
        return proxied_url(way.base, url, way.server, way.options)

    return _moved(document, move)


def moved_out(document: OpmlDocument, own: OwnAddresses) -> Moved:
    """Return the list with each subscription at its publisher again, whatever token and options it bore.

    So is the `htmlUrl` beside it: where a feed names no site, readers put the URL there that they ask for.
    """

    def move(url: str) -> str | Left:
        behind = own.feed_behind(url)
        if behind:
            return behind
        return Left.ELSEWHERE if _looks_proxied(url) else Left.DIRECT

    sites = [each.url if len(each.url) <= _LONGEST else "" for each in document.sites]
    return _moved(document, move, sites=[own.feed_behind(url) or None for url in sites])


def _looks_proxied(url: str) -> bool:
    authority = _AUTHORITY.match(url.strip())
    target = url.strip()[authority.end() :] if authority else ""
    return bool(_WEB.match(_feed_in(target)))


def _moved(
    document: OpmlDocument, move: Callable[[str], str | Left], sites: Sequence[str | None] | None = None
) -> Moved:
    urls: list[str | None] = []
    left = []
    for each in document.subscriptions:
        made = move(each.url) if len(each.url) <= _LONGEST else Left.INVALID
        if isinstance(made, Left):
            left.append(LeftAlone(each.line, _shown(each.url), made))
        urls.append(None if isinstance(made, Left) else made)
    return Moved(document.with_urls(urls, sites), len(urls) - len(left), tuple(left))


def _shown(url: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in safe_url(url.strip()))
