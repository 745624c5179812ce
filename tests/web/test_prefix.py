"""Reverse proxies that put wholefeed below a path, and strip that or keep it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import StartProxy
from wholefeed.web.request import forwarded_prefix, prefix_of, root_from, stripped

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
    """It is taken away once, and only where it is a whole path."""
    assert stripped(target, prefix_of(public_url)) == expected


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
    """Relative to the URL that the reader sees, whether the path was kept or stripped, or has no slash."""
    assert root_from(target, "/feeds") == root


@pytest.mark.parametrize(
    ("value", "prefix"),
    [
        ("/feeds", "/feeds"),
        ("/feeds/", "/feeds"),
        ("/a/b.c/~d_e-f", "/a/b.c/~d_e-f"),
        ("", ""),
        ("/", ""),
        ("feeds", ""),
        ("//evil.example", ""),
        ("/a//b", ""),
        ("/a/../b", ""),
        ("/.", ""),
        ('/"><script>', ""),
        ("/a%2fb", ""),
        ("/a?b", ""),
        ("/a b", ""),
        ("/a\n", ""),
        ("https://evil.example/", ""),
        ("/" + "a" * 300, ""),
    ],
)
def test_a_forwarded_prefix_is_a_plain_path_or_nothing(value: str, prefix: str) -> None:
    """What could lead elsewhere, or break out of a link, counts as not said."""
    assert forwarded_prefix(value) == prefix


@pytest.mark.parametrize("prefix", ["", "/feeds"])
async def test_requests_are_taken_with_the_prefix_and_without(
    start: StartProxy, origin: Origin, prefix: str
) -> None:
    """`location /feeds/` may keep the path or strip it: the same feed comes in both forms of its URL, with
    the same ETag, and links are made from public_url."""
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
    """A supervisor that counts `/healthz` in the log need not know the path. A path of the proxy's own means
    what it means without a prefix, and the root is found with a final slash and without."""
    proxy = await start(server={"public_url": public_url})
    with capture_logs() as logs:
        for target in expected:
            await proxy.ask("GET", target)
    paths = [line["path"] for line in logs if line["event"] == "request.answered"]
    assert paths == list(expected.values())


async def test_access_is_asked_for_below_the_prefix_as_well(start: StartProxy) -> None:
    """A prefix opens nothing: what is behind the token is so with it, and what is open is open."""
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
    """X-Forwarded-Prefix goes into links when it comes from server.trusted_proxies and is a plain path."""
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
