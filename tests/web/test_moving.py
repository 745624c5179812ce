"""wholefeed.web.list_rewriting: subscriptions rewritten to URLs of the proxy and back, without loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from tests.cpu_time import cpu_limit
from tests.feeds import ids, publish_chain
from tests.origin import Origin
from tests.running import StartProxy
from wholefeed.config.tables import FetchConfig, ServerConfig
from wholefeed.core.opml import OpmlDocument, OutlineEntry, compose_opml, read_opml
from wholefeed.core.text.urls import UrlPlaces
from wholefeed.fetch.guard import AddressPolicy
from wholefeed.web.list_rewriting import Left, RewrittenList, moved_out, proxied_url, rewrite_list

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "opml").glob("*.opml"))
BASE = "http://127.0.0.1:8080"
OWN = UrlPlaces.of([BASE])
SERVERS = [
    ServerConfig(),
    ServerConfig(access_token="a-token&that=is-long"),
    ServerConfig(signing_keys=("a-key-that-nobody-guesses",)),
]


def led(
    document: OpmlDocument,
    *,
    base: str = BASE,
    own: UrlPlaces = OWN,
    server: ServerConfig = SERVERS[0],
    **fetch: Any,
) -> RewrittenList:
    policy, options = AddressPolicy.from_config(FetchConfig(**fetch)), {"answer_bytes": "5000000"}
    return rewrite_list(document, own, base=base, server=server, policy=policy, options=options)


def a_list(*urls: str) -> OpmlDocument:
    return read_opml(compose_opml("mine", [OutlineEntry("a & b", url, "") for url in urls]))


def urls(moved: RewrittenList) -> list[str]:
    return [each.url for each in read_opml(moved.document).subscriptions]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_there_and_back_gives_the_very_bytes(sample: Path, server: ServerConfig) -> None:
    """A list comes back whole with any kind of secret."""
    body = sample.read_bytes()
    moved = led(read_opml(body), server=server)
    assert moved.rewritten
    assert moved.document != body
    back = moved_out(read_opml(moved.document), OWN)
    assert back.document == body
    assert back.rewritten == moved.rewritten


def written(url: str, quote: str) -> str:
    """Return an attribute's value as exports have it."""
    escaped = url.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return quote + escaped.replace(quote, {'"': "&quot;", "'": "&apos;"}[quote]) + quote


PARTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), max_size=20)


@given(
    st.lists(
        st.builds("{}://example.org/{}?{}#{}".format, st.sampled_from(["http", "HTTPS"]), PARTS, PARTS, PARTS)
    ),
    st.sampled_from(SERVERS),
    st.sampled_from([BASE, "https://feeds.example/a/b"]),
    st.sampled_from(['"', "'"]),
)
def test_any_list_comes_back_as_it_was(urls: list[str], server: ServerConfig, base: str, quote: str) -> None:
    """All URLs and proxy addresses survive the way in and out, byte for byte."""
    values = [written(url, quote) for url in urls]
    outlines = "".join(f"  <outline xmlUrl={value}  x:y='&#x20;' />\r\n" for value in values)
    body = f"<opml xmlns:x='urn:x'><body>\n{outlines}</body></opml>\n".encode()
    own = UrlPlaces.of([base])
    moved = led(read_opml(body), base=base, own=own, server=server)
    assert moved.rewritten + len(moved.left) == len(urls)
    assert moved_out(read_opml(moved.document), own).document == body
    again = led(read_opml(moved.document), base=base, own=own, server=server)
    assert again.document == moved.document
    assert not again.rewritten


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("urn:example:1", Left.NOT_WEB),
        ("file:///etc/passwd", Left.NOT_WEB),
        ("exec:make-a-feed http://example.org/", Left.NOT_WEB),
        ("filter:strip:http://example.org/feed", Left.NOT_WEB),
        ("feed.xml", Left.NOT_WEB),
        ("", Left.NOT_WEB),
        ("https://ann:secret@example.org/feed", Left.CREDENTIALS),
        ("http:///feed", Left.INVALID),
        ("http://[::1/feed", Left.INVALID),
        ("http://192.168.1.20:3000/rss", Left.REFUSED),
        ("http://localhost/feed", Left.REFUSED),
        ("https://example.org:25/feed", Left.REFUSED),
        ("https://denied.example/feed", Left.REFUSED),
        (f"{BASE}/status?url=https%3A%2F%2Fexample.org%2F", Left.REFUSED),
        (f"{BASE}/feed?url=https%3A%2F%2Fexample.org%2F", Left.ALREADY),
        (f"{BASE}/feed?token=x&url=https://example.org/?a=1&b=2", Left.ALREADY),
        ("http://localhost:8080/https://example.org/feed?a=1", Left.ALREADY),
        ("https://any:token@127.0.0.1:8080/example.org/feed", Left.ALREADY),
    ],
)
def test_what_the_proxy_could_not_serve_stays_and_is_told(url: str, why: Left) -> None:
    """Nobody loses a feed by the rewrite."""
    document = a_list("https://example.org/", url)
    moved = led(document, deny_hosts=("denied.example",))
    assert urls(moved)[1] == url
    assert [(left.line, left.why) for left in moved.left] == [(6, why)]
    assert moved.counts() == {"rewritten": 1, str(why): 1}
    assert "secret" not in moved.left[0].url


def test_what_the_configuration_allows_is_moved() -> None:
    """`fetch.allow_networks` lets the proxy ask a feed in the own network."""
    document = a_list("http://192.168.1.20:3000/rss")
    assert led(document, allow_networks=("192.168.1.0/24",)).rewritten == 1


@pytest.mark.parametrize(
    ("proxied", "feed"),
    [
        ("/feed?url=https%3A%2F%2Fexample.org%2F%3Fa%3D1%26b%3D2", "https://example.org/?a=1&b=2"),
        ("/feed/?limit=5&url=https%3A%2F%2Fexample.org%2F&token=t&since=x&wait=1", "https://example.org/"),
        ("/feed?url=https%3A%2F%2Fexample.org%2F&signed=abc.180", "https://example.org/"),
        ("/feed?url=https://example.org/?a=1&b=2&answer_bytes=5000", "https://example.org/?a=1&b=2"),
        ("/https://example.org/feed?a=1&token=its-own", "https://example.org/feed?a=1&token=its-own"),
        ("/http:/example.org/feed", "http://example.org/feed"),
        ("/example.org/feed", "example.org/feed"),
    ],
)
@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:8080", "https://p.example/w", "http://nas", "http://[fd00::5]:81"]
)
def test_every_form_of_the_proxy_s_urls_leads_back(base: str, proxied: str, feed: str) -> None:
    """Forms behind `/feed?url=` and behind the slash, with token, signature and options."""
    moved = moved_out(a_list(base + proxied), UrlPlaces.of([BASE, base]))
    assert urls(moved) == [feed]


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://127.0.0.1:8080", "http://localhost:8080/feed?url=https%3A%2F%2Fa.test%2F"),
        ("http://localhost:8080", "https://any:token@[::1]:8080/feed?url=https%3A%2F%2Fa.test%2F"),
        ("https://p.example", "http://P.Example:80/feed?url=https%3A%2F%2Fa.test%2F"),
        ("http://p.example:80/w/", "https://p.example:443/w/feed?url=https%3A%2F%2Fa.test%2F"),
    ],
)
def test_the_proxy_knows_its_address_in_other_spellings(base: str, url: str) -> None:
    """http and https are equal behind a reverse proxy."""
    assert urls(moved_out(a_list(url), UrlPlaces.of([base]))) == ["https://a.test/"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://example.org/feed", Left.DIRECT),
        ("urn:x", Left.DIRECT),
        (f"{BASE}/", Left.DIRECT),
        (f"{BASE}/feed?limit=1", Left.DIRECT),
        (f"{BASE}/feed?url=a&url=b", Left.DIRECT),
        ("http://127.0.0.1:9090/feed?url=https%3A%2F%2Fa.test%2F", Left.ELSEWHERE),
        ("http://127.0.0.1.example:8080/https://a.test/", Left.ELSEWHERE),
        ("http://p.example/other/feed?url=https%3A%2F%2Fa.test%2F", Left.DIRECT),
    ],
)
def test_undo_leaves_alone_what_is_not_the_proxy_s(url: str, why: Left) -> None:
    """A URL that looks like a proxy's is told, for --base may be missing."""
    moved = moved_out(a_list(url), UrlPlaces.of([BASE, "http://p.example/w"]))
    assert urls(moved) == [url]
    assert [left.why for left in moved.left] == [why]


@pytest.mark.parametrize("behind", ["?=1" + "&a=1" * 25_000, "%20" * 60_000 + "x"])
def test_what_nobody_could_ask_for_is_left_at_once(behind: str) -> None:
    """200 KB in one URL took seconds to parse, or never ended."""
    document = a_list(f"{BASE}/https://o.test/{behind}", f"{BASE}/feed?url=https://o.test/{behind}")
    with cpu_limit(0.25):
        for moved in (led(document), moved_out(document, OWN)):
            assert [each.why for each in moved.left] == [Left.INVALID] * 2


def test_undo_leaves_no_token_beside_the_url() -> None:
    """newsboat exports the subscribed URL as `htmlUrl` where a feed names no site."""
    url = f"{BASE}/feed?url=https%3A%2F%2Fa.test%2F%3Fb=1%26c=2&amp;token=secret"
    outlines = '<outline htmlUrl="{0}" xmlUrl="{0}" text="A"/><outline xmlUrl="{0}"/>'
    given = f'<opml version="2.0"><body>{outlines}</body></opml>'
    moved = moved_out(read_opml(given.format(url).encode()), UrlPlaces.of([BASE]))
    assert moved.document.decode() == given.format("https://a.test/?b=1&amp;c=2")
    assert moved.rewritten == 2


def test_a_site_that_nobody_could_ask_for_is_left_at_once() -> None:
    """The limit for a site's URL is that of a feed's."""
    site = f"{BASE}/feed?url=https://o.test/?=1{'&amp;a=1' * 25_000}"
    outline = f'<outline xmlUrl="https://a.test/" htmlUrl="{site}"/>'
    document = read_opml(f'<opml version="2.0"><body>{outline}</body></opml>'.encode())
    with cpu_limit(0.25):
        assert moved_out(document, OWN).document == document.text


FEED = "https://example.org/feed?a=1&b=2"
TOKEN = "a-token&more=100%+#"
KEY = "a-key-that-nobody-guesses"


def test_without_secrets_it_is_the_feed_s_own() -> None:
    """The URL holds the feed's, percent-encoded, and the view."""
    options = {"since": "2026-01-31T00:00:00+01:00", "wait": "1"}
    assert proxied_url("http://p.test/x", FEED, ServerConfig(), options) == (
        "http://p.test/x/feed?url=https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1%26b%3D2"
        "&since=2026-01-31T00%3A00%3A00%2B01%3A00"
    )


@pytest.mark.parametrize(
    ("server", "secrets"),
    [
        ({"access_token": TOKEN}, {"token"}),
        ({"signing_keys": [KEY]}, {"signed"}),
        ({"access_token": TOKEN, "signing_keys": [KEY]}, {"token"}),
    ],
)
async def test_it_opens_the_feed(
    start: StartProxy, origin: Origin, server: dict[str, Any], secrets: set[str]
) -> None:
    """With a token, with signing keys and with both; not without."""
    publish_chain(origin, archives=1)
    proxy = await start(server=server)
    subscribed = proxied_url("http://p.test", origin.url("/feed"), ServerConfig(**server), {"limit": "2"})
    parts = urlsplit(subscribed)
    async with proxy.client.get(URL(f"{parts.path}?{parts.query}", encoded=True)) as response:
        assert response.status == 200
        assert len(ids(await response.read())) == 2
    assert (await proxy.get(origin.url("/feed"))).status in (401, 403)
    assert {name for name, _ in parse_qsl(parts.query)} == secrets | {"url", "limit"}
