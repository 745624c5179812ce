"""A table of [[publisher]]: its hosts, and the requests with its settings."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.answers import Document, Raw, Status
from tests.fetchers import Names
from tests.origin import Origin
from tests.private_feeds import BASIC, CREDENTIALS, Diverted, bears_none
from wholefeed.config.tables import FetchConfig, LimitsConfig, PublisherConfig
from wholefeed.core.text.urls import UrlError, canonical_url
from wholefeed.errors import DocumentError
from wholefeed.fetch.base import Manner
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.publishers import Publishers
from wholefeed.fetch.robots import Robots

SECRETS: dict[str, Any] = {
    "credentials_file": "named",
    "credentials": CREDENTIALS,
    "headers": (("X-Key", "canary"),),
}
OWN = PublisherConfig(host="feeds.example", **SECRETS)
BELOW = PublisherConfig(host="*.example", headers=(("X-Key", "of all below"),))
ASIDE = PublisherConfig(host="xn--bcher-kva.test", headers=(("X-Key", "of books"),))
NEAR = PublisherConfig(host="10.0.0.7", headers=(("X-Key", "of an address"),))
MAPPED = PublisherConfig(host="::ffff:10.0.0.8", headers=(("X-Key", "of another"),))
LOUD = PublisherConfig(host="loud.test", user_agent="Loud/1")
FAR = PublisherConfig(host="*.0.0.9", headers=(("X-Key", "of no address"),))
ALL = Publishers((OWN, BELOW, ASIDE, NEAR, MAPPED, LOUD, FAR))


@pytest.mark.parametrize(
    ("url", "publisher"),
    [
        ("https://feeds.example/a", OWN),
        ("HTTPS://FEEDS.Example:443/a", OWN),
        ("https://feeds.example./a", OWN),
        ("https://%66eeds.example/a", OWN),
        ("http://feeds.example:8443/a", OWN),
        ("https://\uff46\uff45\uff45\uff44\uff53.example/a", OWN),
        ("https://a.feeds.example/", BELOW),
        ("https://b.example", BELOW),
        ("https://example/", None),
        ("https://notfeeds.example.org/", None),
        ("https://feeds.example.evil.test/", None),
        ("https://evil.test/feeds.example", None),
        ("https://evil.test/?@feeds.example", None),
        ("https://evil.test#feeds.example", None),
        ("https://evil.test\\@feeds.example/", None),
        ("https://feeds.example@evil.test/", None),
        ("https://feeds.example:x@evil.test/", None),
        ("https://feeds.example\t.evil.test/", None),
        ("https://bücher.test/", ASIDE),
        ("https://BÜCHER.test/", ASIDE),
        ("https://xn--bcher-kva.test/", ASIDE),
        ("http://10.0.0.7/", NEAR),
        ("http://[::ffff:10.0.0.7]/", NEAR),
        ("http://[::FFFF:a00:8]/", MAPPED),
        ("http://10.0.0.8/", MAPPED),
        ("http://10.0.0.9/", None),
        ("http://167772167/", None),
        ("ftp://feeds.example/", None),
        ("feeds.example", None),
        ("", None),
    ],
)
def test_a_table_is_for_a_host_however_its_url_is_written(
    url: str, publisher: PublisherConfig | None
) -> None:
    """A1: "*." covers names below a name and not itself, the first match counts, and no other part of a URL
    passes for its host."""
    assert ALL.of(url) is publisher


HOSTS = ("feeds.example", "a.example", "bücher.test", "loud.test", "evil.test", "10.0.0.7")
URLS = st.builds(
    "{}://{}{}/{}".format,
    st.sampled_from(("http", "https")),
    st.sampled_from(HOSTS) | st.text("feds.xampl@:/\\%2e", min_size=1, max_size=16),
    st.sampled_from(("", ":8443", ".")),
    st.text(max_size=5),
)


@given(url=URLS, feed_url=URLS, is_safe=st.booleans())
def test_secrets_go_to_their_publisher_alone_for_its_own_feeds_in_safety(
    url: str, feed_url: str, *, is_safe: bool
) -> None:
    """A2: always: no field unless both are of one host's table, and the way is safe."""
    fields = ALL.secrets_for(url, feed_url=feed_url, is_safe=is_safe)
    own = ALL.private_of(url)
    if fields:
        assert is_safe
        assert own is not None
        assert own is ALL.private_of(feed_url)
    try:
        canonical_url(url)
    except UrlError:
        assert not fields
    assert ALL.are_apart(url, feed_url) == ALL.are_apart(feed_url, url)


def test_what_a_request_bears() -> None:
    """A2: the header fields, and Basic by RFC 7617; nothing for another feed, for none, or in the clear."""
    url, elsewhere = "https://feeds.example/1", "https://evil.test/"
    assert ALL.secrets_for(url, feed_url="http://FEEDS.example/", is_safe=True) == {
        "X-Key": "canary",
        "Authorization": f"Basic {BASIC}",
    }
    assert not ALL.secrets_for(url, feed_url=url, is_safe=False)
    for feed_url in (elsewhere, "", "https://a.example/", "https://loud.test/"):
        assert not ALL.secrets_for(url, feed_url=feed_url, is_safe=True), feed_url
    assert not ALL.secrets_for(elsewhere, feed_url=elsewhere, is_safe=True)
    assert not ALL.secrets_for("https://loud.test/", feed_url="https://loud.test/", is_safe=True)


def test_only_a_private_publisher_keeps_its_feeds_from_other_urls() -> None:
    """A3: a publisher with a name or a pace alone may link anywhere, and be linked to."""
    own, loud, other = "https://feeds.example/", "https://loud.test/", "https://evil.test/"
    assert not ALL.are_apart(own, "http://feeds.example/b")
    assert not ALL.are_apart(loud, other)
    for one in (loud, other, "https://a.example/"):
        assert ALL.are_apart(own, one)


# On the wire


@asynccontextmanager
async def asking(
    *publishers: PublisherConfig, names: Mapping[str, tuple[str, ...]] | None = None, **fetch: Any
) -> AsyncIterator[Fetcher]:
    """A fetcher with these publishers; the public addresses of `Diverted` lead to loopback."""
    config = FetchConfig(**{"allow_networks": ("127.0.0.0/8",), "retries": 0, **fetch})
    resolver, own = Names(names or {}), Publishers(publishers)
    async with Fetcher.open(
        config, LimitsConfig(), publishers=own, resolver=resolver, make_socket=Diverted
    ) as fetcher:
        yield fetcher


def publisher(host: str, **changes: Any) -> PublisherConfig:
    return PublisherConfig(host=host, **{**SECRETS, **changes})


@pytest.mark.parametrize(
    ("networks", "bears"), [(("127.0.0.0/8",), True), (("127.0.0.3/32",), False)], ids=["allowed", "public"]
)
async def test_without_tls_secrets_go_into_allowed_networks_alone(
    networks: tuple[str, ...], *, bears: bool
) -> None:
    """A2: the address really connected to counts, for any name; even on a reused connection."""
    async with Origin("127.0.0.2") as origin:
        origin.publish("/feed", b"<feed/>")
        own = publisher("private.example")
        public = {"private.example": ("93.184.216.34",)}
        async with asking(own, names=public, allow_networks=networks) as fetcher:
            url = f"http://private.example:{origin.port}/feed"
            for _ in range(2):
                await fetcher.fetch(url, manner=Manner(feed_url=url))
    assert [each.connection for each in origin.requests] == [1, 1]
    assert [not bears_none(each) for each in origin.requests] == [bears, bears]


async def test_a_request_for_no_feed_or_anothers_bears_nothing() -> None:
    """A2: a request that names no feed gets nothing."""
    async with Origin("127.0.0.2") as origin, asking(publisher("127.0.0.2")) as fetcher:
        origin.publish("/feed", b"<feed/>")
        await fetcher.fetch(origin.url("/feed"))
        await fetcher.fetch(origin.url("/feed"), manner=Manner(feed_url="http://127.0.0.3/"))
        await fetcher.fetch(origin.url("/feed"), manner=Manner(feed_url=origin.url("/other")))
    assert [bears_none(each) for each in origin.requests] == [True, True, False]


@pytest.mark.parametrize(
    "answer", [Raw(b"nonsense\r\n\r\n"), Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")]
)
async def test_no_error_of_the_client_holds_what_was_sent(answer: Raw) -> None:
    """A6: aiohttp's errors hold the request's fields; a log of such an error shows no secret."""
    async with Origin("127.0.0.2") as origin, asking(publisher("127.0.0.2")) as fetcher:
        origin.answer("/feed", answer)
        with pytest.raises(DocumentError) as caught:
            await fetcher.fetch(origin.url("/feed"), manner=Manner(feed_url=origin.url("/feed")))
    assert not bears_none(origin.requests[0])
    chain: list[BaseException] = []
    error: BaseException | None = caught.value
    while error is not None:
        chain.append(error)
        error = error.__cause__ or error.__context__
    assert any(isinstance(each, aiohttp.ClientError) for each in chain)
    held = [repr(each) + repr(getattr(each, "request_info", "")) for each in chain]
    assert not any(secret in text for text in held for secret in ("canary", BASIC))


async def test_cookies_of_a_chain_and_secrets_do_not_mix() -> None:
    """A2; docs/faults.md row 153: the operator's own Cookie replaces the chain's; a cookie possibly due to
    secrets needs TLS."""
    own = PublisherConfig(host="127.0.0.2", headers=(("Cookie", "canary=1"),))
    async with Origin("127.0.0.2") as origin, asking(own) as fetcher:
        headers = (("Location", "/next"), ("Set-Cookie", "seen=1; Path=/"))
        origin.answer("/feed", Status(302, headers))
        origin.publish("/next", b"<feed/>")
        await fetcher.fetch(origin.url("/feed"), manner=Manner(feed_url=origin.url("/feed")))
        await fetcher.fetch(origin.url("/feed"))
    sent = [each.headers.get("cookie") for each in origin.requests]
    assert sent == ["canary=1", "canary=1", None, None]


async def test_user_agent_and_pace_are_its_own() -> None:
    """A1: for every request to the host, for any feed; other hosts are not affected."""
    own = PublisherConfig(host="127.0.0.2", user_agent="Reader/1", min_interval_seconds=0.3)
    async with Origin("127.0.0.2") as origin, Origin("127.0.0.3") as other, asking(own) as fetcher:
        for each in (origin, other):
            each.publish("/feed", b"<feed/>")
            await asyncio.gather(*(fetcher.fetch(each.url("/feed")) for _ in range(2)))
    assert {each.headers["user-agent"] for each in origin.requests} == {"Reader/1"}
    assert all(each.headers["user-agent"].startswith("wholefeed/") for each in other.requests)
    paced, unpaced = ([each.at for each in found.requests] for found in (origin, other))
    assert paced[1] - paced[0] >= 0.29
    assert unpaced[1] - unpaced[0] < 0.29


async def test_robots_txt_is_asked_for_and_read_in_its_name() -> None:
    """A1, H1: by the User-Agent known to the publisher; for a private one with its secrets."""
    own = publisher("127.0.0.2", user_agent="Reader/1")
    async with Origin("127.0.0.2") as origin, asking(own) as fetcher:
        text = b"User-agent: reader\nDisallow: /\n\nUser-agent: wholefeed\nAllow: /\n"
        origin.answer("/robots.txt", Document(body=text, headers=(("Content-Type", "text/plain"),)))
        rule = await Robots(fetcher, "wholefeed/1", publishers=Publishers((own,))).rule(origin.url("/a"))
    assert not rule.may_ask
    assert not bears_none(origin.requests[0])


# By a proxy of its own


class Gateway:
    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Gateway]:
        server = await asyncio.start_server(self._serve, "127.0.0.4")
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        body = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n<feed/>"
        writer.write(body if self.heads[-1].startswith(b"GET") else b"HTTP/1.1 502 No\r\n\r\n")
        await writer.drain()
        writer.close()


@pytest.mark.parametrize("network", ["127.0.0.2/32", "127.0.0.4/32"], ids=["anywhere", "near"])
async def test_a_proxy_of_its_own_is_asked_for_it_alone_and_told_no_secret(network: str) -> None:
    """A1, A2: it may have any address and resolves the name; other requests go directly, behind the guard.
    Requests in the clear and a tunnel's request bear its own password and no secret."""
    async with Gateway().listening() as gateway, Origin("127.0.0.2") as direct:
        direct.publish("/feed", b"<feed/>")
        proxy = f"http://me:word@127.0.0.4:{gateway.port}"
        own = publisher("inside.example", proxy=proxy)
        networks = ("127.0.0.2/32", network)
        async with asking(own, allow_networks=networks) as fetcher:
            url, tunnelled = "http://inside.example/feed", "https://inside.example/feed"
            assert (await fetcher.fetch(url, manner=Manner(feed_url=url))).body == b"<feed/>"
            with pytest.raises(DocumentError) as refused:
                await fetcher.fetch(tunnelled, manner=Manner(feed_url=tunnelled))
            await fetcher.fetch(direct.url("/feed"))
            with pytest.raises(DocumentError) as guarded:
                await fetcher.fetch(f"http://127.0.0.5:{gateway.port}/")
    assert [head.split(b" ")[:2] for head in gateway.heads] == [
        [b"GET", url.encode()],
        [b"CONNECT", b"inside.example:443"],
    ]
    password = base64.b64encode(b"me:word")
    for head in gateway.heads:
        assert password in head
        assert not any(secret in head for secret in (b"canary", BASIC.encode()))
    assert (refused.value.slug, guarded.value.slug) == ("connection-failed", "destination-forbidden")
    assert not any(text in str(refused.value) for text in ("word", "canary"))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_not_there_is_told_from_a_publisher(scheme: str) -> None:
    """A1: the operator must not look for a mistyped proxy at the publisher."""
    with socket.socket() as bound:  # nobody listens
        bound.bind(("127.0.0.1", 0))
        own = publisher("inside.example", proxy=f"http://me:word@127.0.0.1:{bound.getsockname()[1]}")
        async with asking(own) as fetcher:
            with pytest.raises(DocumentError, match="no connection to the proxy") as failed:
                await fetcher.fetch(f"{scheme}://inside.example/feed")
    assert (failed.value.slug, "word" in str(failed.value)) == ("connection-failed", False)
