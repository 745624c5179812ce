"""Subscription lists: the known feeds as one, and a list led through the proxy or back to the publishers.

    own = OwnAddresses(["http://127.0.0.1:8080"])
    moved = moved_in(read_opml(body), Way("http://127.0.0.1:8080", config.server, policy), own)
    moved.document, moved.rewritten, moved.left     # what was left alone, and why
    moved_out(read_opml(moved.document), own)       # back again

What does not come through unharmed is left as it is and told: nobody loses a feed by moving.

Nothing is fetched here: readers ask for what they subscribe to soon enough, each at its own pace, and a
hundred walks that nobody waits for would stand in the way of those that somebody does.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from wholefeed.config.tables import Config, ServerConfig
from wholefeed.core.compose.compose import heading_of
from wholefeed.core.opml import MAX_BYTES, Listed, OpmlDocument, compose_opml, read_opml
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.text.urls import safe_url
from wholefeed.errors import InvalidUrlError, RequestError, UploadError
from wholefeed.fetch.base import parse_target
from wholefeed.fetch.guard import AddressPolicy
from wholefeed.server.clients import sign
from wholefeed.service.service import FeedService
from wholefeed.store.rows import FeedRow
from wholefeed.web.keys import ASKED, CONFIG, SERVICE
from wholefeed.web.request import (
    VIEW_OPTIONS,
    base_url,
    feed_url,
    is_prefix_form,
    own_url,
    read_prefix,
    read_query,
    read_view,
    view_query,
)

# GET and POST of /opml

_MEDIA_TYPE: Final = "text/x-opml"
COUNTS_FIELD: Final = "Opml-Subscriptions"
"""How many were rewritten, and how many left and why: an RFC 8941 dictionary."""


async def get_opml(request: web.Request) -> web.StreamResponse:
    """GET /opml: the known feeds, through the proxy."""
    config = request.app[CONFIG]
    base = base_url(request, request[ASKED], config.server)
    return _download(await exported(request.app[SERVICE], base, config), "wholefeed.opml")


async def exported(service: FeedService, base: str, config: Config) -> bytes:
    """Return the known feeds as a subscription list, through the proxy whose URL is `base`."""
    listed: list[Listed] = []
    async for rows in service.every_feed():
        listed += await asyncio.to_thread(_listed, rows, base, config)
    return compose_opml("wholefeed", listed)


def _listed(rows: Sequence[FeedRow], base: str, config: Config) -> list[Listed]:
    found = []
    for row in rows:
        heading = heading_of(row.published_family, row.version, row.head or b"", row.via_url)
        url = proxied_url(base, row.url, config.server)
        found.append(Listed(heading.title or row.url, url, heading.site))
    return found


UPLOAD_SECONDS: Final = 60


async def post_opml(request: web.Request) -> web.StreamResponse:
    """POST /opml: the list that is sent, with its feeds through the proxy; with `undo=1`, without it."""
    asked, config = request[ASKED], request.app[CONFIG]
    base = base_url(request, asked, config.server)
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            body, fields = await _uploaded(request)
    except TimeoutError as exc:
        raise UploadError(f"expected the whole list within {UPLOAD_SECONDS} s", slug="bad-request") from exc
    options = {**asked.query.options, **fields}
    read_view(options, 0)
    is_undone = options.get("undo", "") not in ("", "0", "false")
    document, counts = await asyncio.to_thread(_moved_list, body, base, config, options, is_undone=is_undone)
    asked.add(opml=counts)
    told = ", ".join(f"{name}={number}" for name, number in counts.items())
    return _download(document, "subscriptions.opml", {COUNTS_FIELD: told})


def _moved_list(
    body: bytes, base: str, config: Config, options: Mapping[str, str], *, is_undone: bool
) -> tuple[bytes, dict[str, int]]:
    """Return the list after the move, and what became of how many."""
    own = OwnAddresses([base, config.server.public_url])
    try:
        document = read_opml(body)
    except ParseError as exc:
        raise UploadError(exc.message, slug=exc.slug) from exc
    if is_undone:
        moved = moved_out(document, own)
    else:
        policy = AddressPolicy.from_config(config.fetch)
        view = {name: options[name] for name in VIEW_OPTIONS if name in options}
        moved = moved_in(document, Way(base, config.server, policy, view), own)
    return moved.document, moved.counts()


_FIELD_BYTES: Final = 200
"""Of a field of the form beside the file."""
_FORM_FIELDS: Final = ("undo", *VIEW_OPTIONS)
_MAX_PARTS: Final = 20


async def _uploaded(request: web.Request) -> tuple[bytes, dict[str, str]]:
    """Return the list that is sent, alone or as the field `file` of a form, and the form's other fields.

    Whatever the Content-Type says that is no form: it is the list itself.

    Raises:
        UploadError: It is no form that can be read, or has no file.
        HTTPRequestEntityTooLarge: It is longer than a list may be.
    """
    if request.content_type != "multipart/form-data":
        body = bytearray()
        async for piece in request.content.iter_any():
            body += piece
            if len(body) > MAX_BYTES:
                raise _too_large(len(body), MAX_BYTES)
        return bytes(body), {}
    try:
        return await _read_form(request)
    except (ValueError, HttpProcessingError, web.RequestPayloadError) as exc:
        raise UploadError("expected a form that can be read, with the list as its field file") from exc


async def _read_form(request: web.Request) -> tuple[bytes, dict[str, str]]:
    file: bytes | None = None
    fields: dict[str, str] = {}
    reader, number = await request.multipart(), 0
    while (part := await reader.next()) is not None:
        number += 1
        if not isinstance(part, BodyPartReader) or number > _MAX_PARTS:
            raise UploadError("expected a form with a field file and few others")
        if part.name == "file" and file is None:
            file = await _read_part(part, MAX_BYTES)
        else:
            value = await _read_part(part, _FIELD_BYTES)
            if part.name in _FORM_FIELDS:
                fields[part.name] = value.decode("utf-8", "replace").strip()
    if file is None:
        raise UploadError("expected the list as the form's field file, got none")
    return file, {name: value for name, value in fields.items() if value}


async def _read_part(part: BodyPartReader, at_most: int) -> bytes:
    body = bytearray()
    while piece := await part.read_chunk():
        body += piece
        if len(body) > at_most:
            raise _too_large(len(body), at_most)
    return bytes(body)


def _too_large(size: int, at_most: int) -> web.HTTPRequestEntityTooLarge:
    reason = f"expected at most {at_most} bytes, got more"
    return web.HTTPRequestEntityTooLarge(at_most, size, reason=reason)


def _download(document: bytes, name: str, fields: Mapping[str, str] | None = None) -> web.Response:
    """Return a list as a file to keep. Its encoding is what it says itself."""
    return web.Response(
        body=document,
        headers={
            "Content-Type": _MEDIA_TYPE,
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
            **(fields or {}),
        },
    )


# Moving subscriptions

_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
_LONGEST_URL: Final = 8192
"""Characters of a URL that anybody could ask for: a request line is no longer."""
_WEB: Final = re.compile(r"\s*(?:feed:/*)?https?:|\s*feed:", re.IGNORECASE)


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

    return _moved_urls(document, move)


def moved_out(document: OpmlDocument, own: OwnAddresses) -> Moved:
    """Return the list with each subscription at its publisher again, whatever token and options it bore.

    So is the `htmlUrl` beside it: where a feed names no site, readers put the URL there that they ask for.
    """

    def move(url: str) -> str | Left:
        behind = own.feed_behind(url)
        if behind:
            return behind
        return Left.ELSEWHERE if _looks_proxied(url) else Left.DIRECT

    sites = [each.url if len(each.url) <= _LONGEST_URL else "" for each in document.sites]
    return _moved_urls(document, move, sites=[own.feed_behind(url) or None for url in sites])


def _looks_proxied(url: str) -> bool:
    authority = _AUTHORITY.match(url.strip())
    target = url.strip()[authority.end() :] if authority else ""
    return bool(_WEB.match(_feed_in(target)))


def _moved_urls(
    document: OpmlDocument, move: Callable[[str], str | Left], sites: Sequence[str | None] | None = None
) -> Moved:
    urls: list[str | None] = []
    left = []
    for each in document.subscriptions:
        made = move(each.url) if len(each.url) <= _LONGEST_URL else Left.INVALID
        if isinstance(made, Left):
            left.append(_LeftAlone(each.line, _shown(each.url), made))
        urls.append(None if isinstance(made, Left) else made)
    return Moved(document.with_urls(urls, sites), len(urls) - len(left), tuple(left))


def _shown(url: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in safe_url(url.strip()))


class Way(NamedTuple):
    """How subscriptions are led through the proxy."""

    base: str
    """The proxy's URL, without a final slash."""
    server: ServerConfig
    """Of the running proxy, for the token or the signatures."""
    policy: AddressPolicy
    """Which publishers it asks."""
    options: Mapping[str, str] = _NO_OPTIONS
    """Of the view: what is added to each URL."""


class Moved(NamedTuple):
    document: bytes
    rewritten: int
    left: tuple[_LeftAlone, ...]

    def counts(self) -> dict[str, int]:
        """Return how many were rewritten, and how many left for each reason."""
        return {"rewritten": self.rewritten, **Counter(str(each.why) for each in self.left)}


class _LeftAlone(NamedTuple):
    """A subscription that stays as it is."""

    line: int
    url: str
    """As it may be shown."""
    why: Left


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


# Where the proxy is reached, and the feeds behind its URLs

_DEFAULT_PORT: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


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


_AUTHORITY: Final = re.compile(r"https?://[^/?#]*", re.IGNORECASE)


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


_FEED_PATH: Final = re.compile(r"/feed/?\?", re.IGNORECASE)


def _feed_in(target: str) -> str:
    """Return the feed's URL that a request target of the proxy names; empty: none."""
    if found := _FEED_PATH.match(target):
        try:
            return read_query(target[found.end() :].partition("#")[0]).url
        except RequestError:
            return ""
    return read_prefix(target) if is_prefix_form(target) else ""


# The URL to subscribe to


def proxied_url(base: str, url: str, server: ServerConfig, options: Mapping[str, str] = _NO_OPTIONS) -> str:
    """Return the URL by which a reader subscribes to a feed.

        proxied_url("https://feeds.example", "https://example.org/feed.atom", config.server)
        # https://feeds.example/feed?url=https%3A%2F%2Fexample.org%2Ffeed.atom&token=…
        proxied_url(base, url, config.server, {"answer_bytes": "5000000"})

    It holds the access token where there is one, else a signature where there are signing keys: a signature
    opens one feed alone, but a reader that knows the token can also ask for `/status` and the pages.

    Args:
        base: Scheme and authority, and the path of the proxy where it has one, without a final slash.
        url: The feed's URL. It stands there as it is given, blanks and all, so that it can be had back.
        server: Of the running proxy: where the access token was made at its first start, it stands in a file,
            not in the configuration (`wholefeed.cli.access_token.known_token`).
        options: Of the view: `limit`, `since` and `answer_bytes`, as they stand in a query.

    Raises:
        InvalidUrlError: It is none that can be fetched.
    """
    token, keys = server.access_token, server.signing_keys
    canonical = feed_url(url)
    mark = sign(canonical, keys) if keys and not token else ""
    secret = f"&token={quote(token, safe='')}" if token else ""
    return own_url(base, url, mark) + secret + view_query(options)
