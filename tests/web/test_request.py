"""wholefeed.web.request: URLs and options of a request, and the prefix of a reverse proxy."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from tests.cpu_time import cpu_limit
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import StartProxy
from wholefeed.errors import RequestError
from wholefeed.web.request import (
    CONTINUE_OPTIONS,
    Query,
    feed_url,
    feed_urls,
    forwarded_prefix,
    is_prefix_form,
    prefix_of,
    read_prefix,
    read_query,
    read_replay,
    read_view,
    read_wait,
    root_from,
    strip_prefix,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("url=https%3A%2F%2Fo.test%2Ff%3Fa%3D1", Query("https://o.test/f?a=1", {})),
        ("wait=2&url=https%3A%2F%2Fo.test%2F", Query("https://o.test/", {"wait": "2"})),
        ("url=https%3A%2F%2Fo.test%2Ff&a=1", Query("https://o.test/f", {})),
        ("url=https://o.test/f?a=1&b=2", Query("https://o.test/f?a=1&b=2", {})),
        ("url=https://o.test/f?a=1&wait=3&b=2", Query("https://o.test/f?a=1&b=2", {"wait": "3"})),
        ("url=https://o.test/f?q=%26&b", Query("https://o.test/f?q=%26&b", {})),
        ("url=https%3A%2F%2Fo.test%2Ff&amp;token=x", Query("https://o.test/f", {"token": "x"})),
        ("url=https://o.test/f&amp;x=1", Query("https://o.test/f", {})),
        ("url=https://o.test/f?a%3D1%26b%3D2&wait=1", Query("https://o.test/f?a=1&b=2", {"wait": "1"})),
        ("url=https://o.test/f?q=a%3Db", Query("https://o.test/f?q=a%3Db", {})),
        ("a=1&url=https://o.test/f", Query("https://o.test/f", {})),
        ("url=%20feed://o.test/f%20&a=1", Query("feed://o.test/f&a=1", {})),
        ("url=+https://o.test/f%0d%0A", Query("https://o.test/f", {})),
        ("url=+https%3A%2F%2Fo.test%2F%3Fq%3Dc%2B%2B+", Query("https://o.test/?q=c++", {})),
        ("", Query("", {})),
    ],
)
def test_a_query_names_a_url_and_options(raw: str, expected: Query) -> None:
    """docs/design.md#the-interface: text behind an unencoded URL belongs to it, options apart."""
    assert read_query(raw) == expected


def test_a_form_may_have_blanks_around_the_other_url() -> None:
    """Blanks come along where people copy a URL (I3)."""
    raw = "url=https%3A%2F%2Fn.test%2F&old=+https%3A%2F%2Fo.test%2F%3Fq%3Dc%2B%2B+"
    assert read_query(raw, CONTINUE_OPTIONS).options == {"old": "https://o.test/?q=c++"}


@pytest.mark.parametrize(
    ("raw_path", "url"),
    [
        ("/https://o.test/f?a=1&wait=2", "https://o.test/f?a=1&wait=2"),
        ("/http://o.test/f%20g", "http://o.test/f%20g"),
        ("/https:/o.test/f", "https://o.test/f"),
        ("/HTTPS://o.test/", "https://o.test/"),
        ("//https://o.test/f", "https://o.test/f"),
        ("/https%3A%2F%2Fo.test%2Ff%3Fa%3D1", "https://o.test/f?a=1"),
        ("/%20https://o.test/f%20%0a", "https://o.test/f"),
        ("/feed:https://o.test/f?a=1", "https://o.test/f?a=1"),
        ("/feed:https:/o.test/f", "https://o.test/f"),
        ("/feed://o.test/f?a=1&b=2", "o.test/f?a=1&b=2"),
        ("/feed:/o.test/f", "o.test/f"),
        ("/feed%3A%2F%2Fo.test%2Ff", "o.test/f"),
        ("/feed://localhost:8000/f", "localhost:8000/f"),
        ("/o.test/f?a=1", "o.test/f?a=1"),
        ("/o.test:8000/f", "o.test:8000/f"),
        ("/www.o-o.test%2Ff", "www.o-o.test/f"),
    ],
)
def test_the_prefix_form_takes_everything_behind_the_slash(raw_path: str, url: str) -> None:
    """The query stays whole, also after one slash or encoded."""
    assert is_prefix_form(raw_path)
    assert read_prefix(raw_path) == url


@pytest.mark.parametrize(
    "raw_path",
    [
        "/feed?url=https://o.test",
        "/",
        "/ftp://o.test/",
        "/https:",
        "/https:///x",
        "/feed",
        "/feed/",
        "/feed:",
        "/robots.txt",
        "/openapi.json",
        "/wp-login.php/x",
        "/.well-known/x",
        "/a/b.c/",
        "/o.test",
        "/1.2/x",
    ],
)
def test_other_targets_are_no_prefix_form(raw_path: str) -> None:
    """Paths of our own and other schemes are not mistaken for a feed's URL."""
    assert not is_prefix_form(raw_path)


@pytest.mark.parametrize(
    ("given", "url", "instead"),
    [
        ("example.org/feed", "https://example.org/feed", "http://example.org/feed"),
        ("Example.org", "https://example.org/", "http://example.org/"),
        ("example.org:8080/a?b", "https://example.org:8080/a?b", "http://example.org:8080/a?b"),
        ("localhost:8000/f", "https://localhost:8000/f", "http://localhost:8000/f"),
        ("192.0.2.1/f", "https://192.0.2.1/f", "http://192.0.2.1/f"),
        ("[2001:db8::1]/f", "https://[2001:db8::1]/f", "http://[2001:db8::1]/f"),
        ("//example.org/f", "https://example.org/f", "http://example.org/f"),
        ("feed://example.org/f", "https://example.org/f", "http://example.org/f"),
        ("FEED:example.org/f", "https://example.org/f", "http://example.org/f"),
        ("feed:https://example.org/f", "https://example.org/f", ""),
        ("feed://http://example.org/f", "http://example.org/f", ""),
        (" \thttp://example.org/f\r\n", "http://example.org/f", ""),
        ("\u00a0example.org/f ", "https://example.org/f", "http://example.org/f"),
    ],
)
def test_what_people_paste_is_taken_for_what_they_mean(given: str, url: str, instead: str) -> None:
    """Browsers omit the scheme, and links to feeds bear their own."""
    assert feed_urls(given) == (url, instead)


@pytest.mark.parametrize(
    "given", ["feed", "feed:", "mailto:a@example.org", "a b.org", "javascript:alert(1)", "ann:pw@o.test/"]
)
def test_what_is_no_url_is_none(given: str) -> None:
    """docs/faults.md row 20."""
    with pytest.raises(RequestError):
        feed_url(given)


@pytest.mark.parametrize("given", ["a." * 4000 + "@", "." * 8000 + " ", "1" * 8000 + " "])
def test_what_is_no_url_is_seen_at_once(given: str) -> None:
    """The loop that answers everybody waits meanwhile; a long one took five seconds."""
    with cpu_limit(0.05), suppress(RequestError):
        feed_url(given)


@pytest.mark.parametrize(("given", "shown"), [("3/week", "3/week"), ("9/hour", "1/day"), ("a&b", "1/day")])
def test_the_example_for_a_replay_is_a_valid_one(given: str, shown: str) -> None:
    """P1: with the rate that was asked for, if it is one."""
    with pytest.raises(RequestError, match=re.escape(f"such as http://p/f&replay={shown}&from=")):
        read_replay({"replay": given}, "http://p/f")


def test_blanks_within_a_prefixed_url_are_passed_at_once() -> None:
    """Only blanks behind the URL count; the search took half a second."""
    raw_path = "/https://o.test/" + "%20" * 2600
    with cpu_limit(0.025):
        assert read_prefix(raw_path + "x") == (raw_path + "x")[1:]
        assert read_prefix(raw_path) == "https://o.test/"


def test_the_wait_is_at_most_what_is_configured() -> None:
    """`wait` can shorten limits.respond_within_seconds and never lengthen it."""
    assert read_wait({}, 8) == 8
    assert read_wait({"wait": "2.5"}, 8) == 2.5
    assert read_wait({"wait": "90"}, 8) == 8
    for none in ("x", "-1", "nan", "inf"):
        with pytest.raises(RequestError, match="wait in seconds"):
            read_wait({"wait": none}, 8)


IDENTITY = {"Accept-Encoding": "identity"}
PUBLIC = "https://example.org/feeds"


@pytest.mark.parametrize(
    ("public_url", "target", "expected"),
    [
        ("https://h", "/feed?url=x", "/feed?url=x"),
        ("https://h/feeds", "/feed?url=x", "/feed?url=x"),
        ("https://h/feeds/", "/feeds/feed?url=x", "/feed?url=x"),
        ("https://h/feeds", "/feeds/https://a.example/b?c", "/https://a.example/b?c"),
        ("https://h/feeds", "/feeds", "/"),
        ("https://h/feeds", "/feeds?x", "/?x"),
        ("https://h/feeds", "/feedsx/feed", "/feedsx/feed"),
        ("https://h/feeds", "/feeds/feeds/feed", "/feeds/feed"),
        ("https://h/a/b", "/a/b/status", "/status"),
        ("https://h/a/b", "/a/status", "/a/status"),
    ],
)
def test_the_prefix_is_the_path_of_the_public_url(public_url: str, target: str, expected: str) -> None:
    """The prefix is removed once, and only as a whole path."""
    assert strip_prefix(target, prefix_of(public_url)) == expected


@pytest.mark.parametrize(
    ("target", "root"),
    [
        ("/", "./"),
        ("/view?url=a/b/c", "./"),
        ("/static/x", "../"),
        ("/feeds/", "./"),
        ("/feeds/view?url=x", "./"),
        ("/feeds/a/b", "../"),
        ("/feeds", "feeds/"),
    ],
)
def test_a_page_s_links_lead_to_the_proxy_s_own_root(target: str, root: str) -> None:
    """Links are relative to the reader's URL, with the path kept or stripped."""
    assert root_from(target, "/feeds") == root


@pytest.mark.parametrize(
    ("value", "prefix"),
    [
        ("/feeds", "/feeds"),
        ("/feeds/", "/feeds"),
        ("/a/b.c/~d_e-f", "/a/b.c/~d_e-f"),
        *((refused, "") for refused in ("", "/", "feeds", "//evil.example", "/a//b", "/a/../b", "/.")),
        *(
            (refused, "")
            for refused in ("/a%2fb", '/"><script>', "/a?b", "/a b", "/a\n", "https://evil.example/")
        ),
        ("/" + "a" * 300, ""),
    ],
)
def test_a_forwarded_prefix_is_a_plain_path_or_nothing(value: str, prefix: str) -> None:
    """A prefix that could lead elsewhere, or break out of a link, is ignored."""
    assert forwarded_prefix(value) == prefix


@pytest.mark.parametrize("prefix", ["", "/feeds"])
async def test_requests_are_taken_with_the_prefix_and_without(
    start: StartProxy, origin: Origin, prefix: str
) -> None:
    """`location /feeds/` may keep or strip the path: feed and ETag are equal."""
    origin.publish("/a/feed", atom(an_item("1", 1)))
    url = origin.url("/a/feed")
    proxy = await start(server={"public_url": PUBLIC})
    plain = await proxy.ask("GET", "/feed", params={"url": url}, headers=IDENTITY)
    asked = await proxy.ask("GET", f"{prefix}/feed", params={"url": url}, headers=IDENTITY)
    behind = await proxy.ask("GET", f"{prefix}/{url}", headers=IDENTITY)
    status = await proxy.ask("GET", f"{prefix}/status", params={"url": url})
    head = await proxy.ask("HEAD", f"{prefix}/{url}")
    unknown = await proxy.ask("GET", f"{prefix}/nothing")
    style = await proxy.ask("GET", f"{prefix}/static/page.css")
    wrong = await proxy.ask("PUT", f"{prefix}/feed", params={"url": url})

    assert (asked.status, asked.body) == (200, plain.body)
    assert asked.headers["ETag"] == plain.headers["ETag"]
    assert f'href="{PUBLIC}/feed?url=http%3A%2F%2F127.0.0.1'.encode() in asked.body
    assert behind.status == head.status == status.status == style.status == 200
    assert behind.body == plain.body
    assert unknown.status == 404
    assert wrong.status == 405


@pytest.mark.parametrize(
    ("public_url", "expected"),
    [
        (
            PUBLIC,
            {
                "/feeds/healthz": "/healthz",
                "/feeds": "/feeds",
                "/feeds/feeds": "/feeds",
                "/feeds/": "/",
                "/feeds/http:/x.invalid/": "/{url}",
                "/feeds/no": "unmatched",
            },
        ),
        (
            "https://example.org/feed",
            {"/feed": "/feed", "/feed/": "/feed/", "/status": "/status", "/feed/status": "/status"},
        ),
        ("https://example.org/below", {"/below": "/", "/below/": "/"}),
    ],
)
async def test_the_log_names_the_route_without_the_prefix(
    start: StartProxy, public_url: str, expected: dict[str, str]
) -> None:
    """A supervisor that counts `/healthz` need not know the path."""
    proxy = await start(server={"public_url": public_url})
    with capture_logs() as logs:
        for target in expected:
            await proxy.ask("GET", target)
    paths = [line["path"] for line in logs if line["event"] == "request.answered"]
    assert paths == list(expected.values())


async def test_access_is_asked_for_below_the_prefix_as_well(start: StartProxy) -> None:
    """A prefix opens nothing behind the token, and closes nothing open."""
    proxy = await start(server={"public_url": PUBLIC, "access_token": "a-token-for-the-readers"})
    for path in ("/feeds/feeds", "/feeds/status?url=http://a.example/", "/feeds/http://a.example/"):
        assert (await proxy.ask("GET", path)).status == 401, path
    assert (await proxy.ask("DELETE", "/feeds/feed?url=http://a.example/")).status == 401
    assert (await proxy.ask("GET", "/feeds/healthz")).status == 200
    assert (await proxy.ask("GET", "/feeds/feeds?token=a-token-for-the-readers")).status == 200


@pytest.mark.parametrize(
    ("trusted", "said", "base"),
    [
        (["127.0.0.0/8"], "/below", "/below"),
        (["127.0.0.0/8"], "/forged, /below/", "/below"),
        (["127.0.0.0/8"], '/"><script>', ""),
        (["127.0.0.0/8"], "//evil.example", ""),
        (["10.0.0.0/8"], "/below", ""),
        ([], "/below", ""),
    ],
)
async def test_a_reverse_proxy_that_is_believed_says_what_path_it_has_stripped(
    start: StartProxy, origin: Origin, trusted: list[str], said: str, base: str
) -> None:
    """X-Forwarded-Prefix goes into links if a plain path from server.trusted_proxies."""
    origin.publish("/feed", atom(an_item("1", 1)))
    proxy = await start(server={"trusted_proxies": tuple(trusted)})
    headers = {"X-Forwarded-Prefix": said, "Host": "localhost"}
    reply = await proxy.get(origin.url("/feed"), headers=headers)
    assert f'href="http://localhost{base}/feed?url='.encode() in reply.body
    assert b"script" not in reply.body
    assert b"evil" not in reply.body


async def test_public_url_goes_before_what_a_reverse_proxy_says(start: StartProxy, origin: Origin) -> None:
    """The operator's word counts."""
    origin.publish("/feed", atom(an_item("1", 1)))
    proxy = await start(server={"public_url": PUBLIC, "trusted_proxies": ("127.0.0.0/8",)})
    reply = await proxy.get(origin.url("/feed"), headers={"X-Forwarded-Prefix": "/other"})
    assert f'href="{PUBLIC}/feed?url='.encode() in reply.body


def test_text_is_the_proxy_s_with_one_value() -> None:
    """T1, P7: behind a URL that is not encoded, any other value belongs to that."""
    raw = "url=https://example.org/feed?a=1"
    assert read_query(f"{raw}&text=full") == Query("https://example.org/feed?a=1", {"text": "full"})
    assert read_query(f"{raw}&text=half").url == "https://example.org/feed?a=1&text=half"
    encoded = "url=https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1"
    assert read_query(f"{encoded}&text=half").options == {"text": "half"}
    assert read_view({"text": "full"}, 0).has_texts
    with pytest.raises(RequestError, match="expected text=full"):
        read_view({"text": "half"}, 0)
