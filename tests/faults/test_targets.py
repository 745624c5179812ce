"""Part A of the faults, beyond spelling: resolution, redirects, links, and traces in the store.

No test here lets a packet out: names resolve from a table, and a socket to any address but the test's own
publishers is stopped and noted.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog
import trustme
from aiohttp.abc import ResolveResult
from structlog.testing import capture_logs

from tests.feeds import an_item, atom, ids, own_ids
from tests.fetchers import Names
from tests.guarding import asked_for, watched
from tests.origin import Origin

PUBLISHER, OTHER = "127.0.0.2", "127.0.0.3"
PRIVATE = [
    *("http://10.0.0.9/", "//10.0.0.9/", "http://inside.example/", "http://localhost:8080/"),
    *("http://[::1]/", "http://127.0.0.2:22/"),
]
NAMES = {"inside.example": ("10.0.0.1",)}
REDIRECTS = [
    *((location, (403, "destination-forbidden")) for location in PRIVATE),
    ("ftp://127.0.0.2/feed", (502, "bad-redirect")),
    ("file:///etc/passwd", (502, "bad-redirect")),
    ("data:application/atom+xml,<feed/>", (502, "bad-redirect")),
]


def events(logs: list[MutableMapping[str, Any]], *names: str) -> list[MutableMapping[str, Any]]:
    return [line for line in logs if line["event"] in names]


class Rebinding(Names):
    """A name server with a public address for the resolver, and another for the connection."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [_Turning(each) for each in await super().resolve(host, port, family)]  # type: ignore[misc]


class _Turning(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        if key != "host":
            return super().__getitem__(key)
        self["looks"] = self.get("looks", 0) + 1
        return "2606:4700::1111" if self["looks"] == 1 else super().__getitem__("host")


@pytest.mark.fault("11")
@pytest.mark.parametrize("addresses", [("127.0.0.1",), ("127.0.0.1", "::1"), ("::ffff:10.0.0.1",)])
async def test_a_name_that_changes_its_mind_is_stopped_at_the_socket(
    tmp_path: Path, addresses: tuple[str, ...]
) -> None:
    """docs/faults.md row 11; docs/design.md#the-guard: the guard stands at the use of the address, on each
    leg of several."""
    async with (
        Origin("127.0.0.1") as canary,
        watched(tmp_path, names=Rebinding({"turning.example": addresses})) as (proxy, outlet),
    ):
        reply = await proxy.get(f"http://turning.example:{canary.port}/")
        assert canary.total_connections == 0
    assert (reply.status, reply.slug) == (403, "destination-forbidden")
    assert outlet.tried == []


@pytest.mark.fault("12")
@pytest.mark.parametrize(
    ("addresses", "tried"),
    [
        (
            ("10.0.0.1", "93.184.215.14", "fd00::1", "2606:4700::1111", "::1", "127.0.0.1"),
            {"93.184.215.14", "2606:4700::1111"},
        ),
        (("::ffff:10.0.0.1", "::ffff:93.184.215.14"), {"::ffff:93.184.215.14"}),
        (("169.254.169.254", "93.184.215.14"), {"93.184.215.14"}),
    ],
)
async def test_only_the_public_addresses_of_a_name_are_tried(
    tmp_path: Path, addresses: tuple[str, ...], tried: set[str]
) -> None:
    """docs/faults.md row 12: every leg of happy eyeballs; none of them answers here."""
    async with watched(tmp_path, names=Names({"mixed.example": addresses})) as (proxy, outlet):
        reply = await proxy.get("http://mixed.example/")
    assert (reply.status, reply.slug) == (502, "connection-failed")
    assert outlet.reached == tried


@pytest.mark.fault("12")
async def test_the_public_address_of_a_mixed_name_serves(tmp_path: Path) -> None:
    """docs/faults.md row 12; an exempt publisher on loopback stands for a public one."""
    names = Names({"mixed.example": ("10.0.0.1", "127.0.0.1", PUBLISHER, "::1")})
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin, names=names) as (proxy, outlet):
        origin.publish("/feed", atom(an_item("a", 1)))
        reply = await proxy.get(f"http://mixed.example:{origin.port}/feed")
    assert ids(reply.body) == ["a"]
    assert outlet.tried == [PUBLISHER]


@pytest.mark.fault("13")
async def test_a_subscription_document_does_not_redirect_to_a_refused_target(tmp_path: Path) -> None:
    """docs/faults.md row 13, SUB: a problem if nothing is stored, after two hops too; else the stored feed,
    stale."""
    async with (
        Origin(PUBLISHER) as origin,
        Origin(OTHER) as other,
        watched(tmp_path, origin, other, names=Names(NAMES)) as (proxy, outlet),
    ):
        origin.publish("/feed", atom(an_item("a", 1)))
        first = await proxy.get(origin.url("/feed"))
        for number, (location, expected) in enumerate(REDIRECTS):
            origin.redirect(f"/new/{number}", other.url(f"/hop/{number}"), status=301)
            other.redirect(f"/hop/{number}", location, status=307)
            with capture_logs() as logs:
                unknown = await proxy.get(origin.url(f"/new/{number}"))
            assert (unknown.status, unknown.slug) == expected, location
            (told,) = events(logs, "document.fetched", "document.failed", "target.refused")
            assert (told["slug"], told["status"]) == (expected[1], 307)

            origin.redirect("/feed", location)
            stored = await proxy.refreshed(origin.url("/feed"))
            assert (stored.status, stored.body) == (200, first.body), location
            assert stored.reconstruction == first.reconstruction + ";stale"
        assert [each["url"] for each in await proxy.feeds()] == [origin.url("/feed")]
    assert outlet.reached == {PUBLISHER, OTHER}


@pytest.mark.fault("13")
async def test_an_archive_does_not_redirect_to_a_refused_target(tmp_path: Path) -> None:
    """docs/faults.md row 13, ARC; it heals when the publisher does."""
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin, names=Names(NAMES)) as (proxy, outlet):
        for number, (location, (_, reason)) in enumerate(REDIRECTS):
            url, older = origin.url(f"/{number}"), f"/older/{number}"
            origin.publish(f"/{number}", atom(an_item("b", 2), prev_archive=older))
            origin.redirect(older, location)
            reply = await proxy.whole(url)
            assert (reply.status, reply.state, own_ids(reply.body)) == (200, "partial", ["b"]), location
            missing = (await proxy.status(url))["missing"]
            assert [(each["url"], each["reason"]) for each in missing] == [(origin.url(older), reason)]
        origin.publish("/older/0", atom(an_item("a", 1), archive=True))
        healed = await proxy.refreshed(origin.url("/0"))
    assert (healed.state, own_ids(healed.body)) == ("complete", ["b", "a"])
    assert outlet.reached == {PUBLISHER}


@pytest.mark.fault("154")
async def test_a_page_does_not_lead_to_a_refused_target(tmp_path: Path) -> None:
    """docs/faults.md row 154: a page or field that refreshes obeys the rules of redirects for address, port
    and credentials. Only http(s) URLs are followed."""
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin, names=Names(NAMES)) as (proxy, outlet):
        web = [row for row in REDIRECTS if row[0].startswith("http")]
        for number, (location, expected) in enumerate(
            [*web, ("http://me:hidden@h.test/", (502, "bad-redirect"))]
        ):
            origin.redirect_by_page(f"/page/{number}", location)
            origin.publish(
                f"/field/{number}", "moved", content_type="text/html", headers=[("Refresh", f"0; {location}")]
            )
            for way in ("page", "field"):
                reply = await proxy.get(origin.url(f"/{way}/{number}"))
                assert (reply.status, reply.slug) == expected, location
                assert b"hidden" not in reply.body
        origin.redirect_by_page("/file", "file:///etc/passwd")
        reply = await proxy.get(origin.url("/file"))
        assert (reply.status, reply.slug) == (422, "not-a-feed")
    assert outlet.reached == {PUBLISHER}


@pytest.mark.fault("14")
async def test_a_redirect_with_credentials_is_not_followed(tmp_path: Path) -> None:
    """docs/faults.md row 14; docs/design.md#fetching: neither to another publisher nor within one, and shown
    nowhere."""
    async with (
        Origin(PUBLISHER) as origin,
        Origin(OTHER) as other,
        watched(tmp_path, origin, other) as (proxy, _),
    ):
        with capture_logs() as logs:
            for number, userinfo in enumerate(("user:hidden", "user", ":hidden", "", "user%3Ahidden")):
                for path, target in ((f"/away/{number}", other), (f"/here/{number}", origin)):
                    origin.redirect(path, target.url("/feed").replace("//", f"//{userinfo}@"))
                    reply = await proxy.get(origin.url(path))
                    assert (reply.status, reply.slug) == (502, "bad-redirect"), userinfo
                    assert b"hidden" not in reply.body
        assert other.requests == []
    assert "/feed" not in {request.target for request in origin.requests}
    assert [line for line in logs if "hidden" in str(line)] == []


@pytest.mark.fault("14", "154")
@pytest.mark.parametrize("by_page", [False, True])
@pytest.mark.parametrize("is_allowed", [False, True])
async def test_https_leads_to_http_only_where_that_is_allowed(
    tmp_path: Path, is_allowed: bool, by_page: bool
) -> None:
    """docs/faults.md rows 14 and 154: fetch.allow_downgrade; for both kinds of documents, by a redirect and
    by a page that refreshes."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(PUBLISHER).configure_cert(server)
    authority.configure_trust(client)
    async with (
        Origin(PUBLISHER, tls=server) as origin,
        Origin(PUBLISHER) as plain,
        watched(tmp_path, origin, ssl_context=client, fetch={"allow_downgrade": is_allowed}) as (proxy, _),
    ):
        origin.publish("/feed", atom(an_item("b", 2), prev_archive="/1"))
        plain.publish("/feed", atom(an_item("b", 2)))
        plain.publish("/1", atom(an_item("a", 1), archive=True))
        lead = origin.redirect_by_page if by_page else origin.redirect
        lead("/1", plain.url("/1"))
        lead("/moved", plain.url("/feed"))
        moved = await proxy.whole(origin.url("/moved"))
        chained = await proxy.whole(origin.url("/feed"))
        missing = (await proxy.status(origin.url("/feed")))["missing"]
    if is_allowed:
        assert (moved.status, chained.state, ids(chained.body)) == (200, "complete", ["b", "a"])
    else:
        assert (moved.status, moved.slug) == (502, "downgrade")
        assert (chained.state, [each["reason"] for each in missing]) == ("partial", ["downgrade"])
        assert plain.requests == []


@pytest.mark.fault("15")
@pytest.mark.parametrize(
    "link",
    [
        '<link rel="prev-archive" href="http://10.0.0.9/1"/>',
        '<link rel="prev-archive" href="//inside.example/1"/>',
        '<link xml:base="http://10.0.0.9/" rel="prev-archive" href="1"/>',
        '<link xml:base="//[::ffff:10.0.0.9]/a/" rel="prev-archive" href="../1"/>',
    ],
)
async def test_a_link_to_a_private_host_is_a_security_event(tmp_path: Path, link: str) -> None:
    """docs/faults.md row 15, ARC: logged once, with the feed that links there, and not at every poll."""
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin, names=Names(NAMES)) as (proxy, outlet):
        url = origin.url("/feed")
        origin.publish("/feed", atom(an_item("b", 2), prev_archive="/1"))
        origin.publish("/1", atom(an_item("a", 1), archive=True, extra=link))
        kept = [structlog.contextvars.merge_contextvars]
        with capture_logs(processors=kept) as logs:
            reply = await proxy.whole(url)
            proxy.clock.advance(1000)
            origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2), prev_archive="/1"))
            later = await proxy.whole(url)
        (missing,) = (await proxy.status(url))["missing"]
    assert (reply.status, reply.state, later.state) == (200, "partial", "partial")
    assert {"b", "a"} < set(ids(reply.body))
    assert {"c", "b", "a"} < set(ids(later.body))
    assert missing["reason"] == "destination-forbidden"
    (told,) = events(logs, "target.refused")
    expected = {"outcome": "refused", "slug": "destination-forbidden", "log_level": "warning", "status": None}
    assert told.items() >= expected.items()
    assert told["feed"] == 1
    assert told["url"] == missing["url"]
    assert events(logs, "document.failed") == []
    assert outlet.reached == {PUBLISHER}


@pytest.mark.fault("16")
async def test_a_link_that_is_no_plain_http_url_is_a_bad_link(tmp_path: Path) -> None:
    """docs/faults.md row 16, ARC: `bad-link`; it gets no request, and the stored chain is served."""
    links = [
        *("file:///etc/passwd", "ftp://127.0.0.2/1", "gopher://127.0.0.2/1", "unix:/run/docker.sock"),
        *("data:application/atom+xml,x", "javascript:alert(1)", "http://user:hidden@127.0.0.2/1"),
    ]
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin) as (proxy, outlet):
        for number, href in enumerate(links):
            url = origin.url(f"/feed/{number}")
            origin.publish(f"/feed/{number}", atom(an_item("b", 2), prev_archive=f"/{number}"))
            origin.publish(f"/{number}", atom(an_item("a", 1), archive=True, prev_archive=href))
            reply = await proxy.whole(url)
            status = await proxy.status(url)
            assert (reply.status, reply.state) == (200, "partial"), href
            assert {"b", "a"} < set(ids(reply.body))
            assert [each["reason"] for each in status["missing"]] == ["bad-link"]
            assert "hidden" not in str(status) + reply.body.decode()
    assert len(origin.requests) == 2 * len(links)
    assert outlet.reached == {PUBLISHER}


@pytest.mark.fault("17")
async def test_credentials_in_a_feed_s_url_are_refused_and_shown_nowhere(tmp_path: Path) -> None:
    """docs/faults.md row 17: 400 `userinfo-not-allowed`."""
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin) as (proxy, outlet):
        url = origin.url("/feed").replace("//", "//user:hidden@")
        with capture_logs() as logs:
            replies = [await proxy.ask("GET", form + url) for form in ("/feed?url=", "/status?url=", "/")]
    assert {(reply.status, reply.slug) for reply in replies} == {(400, "userinfo-not-allowed")}
    assert "hidden" not in str(logs)
    assert not [reply for reply in replies if b"hidden" in reply.body]
    assert outlet.tried == []


@pytest.mark.fault("18")
async def test_ports_of_other_services_are_refused(tmp_path: Path) -> None:
    """docs/faults.md row 18: the answer names fetch.ports; for a public host and an exempt one, before any
    look-up."""
    names = Names({"example.org": ("93.184.215.14",)})
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin, names=names) as (proxy, outlet):
        for port in (1, 22, 25, 79, 81, 110, 442, 444, 993, 1023):
            for host in ("example.org", PUBLISHER):
                reply = await proxy.get(f"http://{host}:{port}/")
                assert (reply.status, reply.slug) == (403, "destination-forbidden"), port
                assert f"does not ask port {port}, unless fetch.ports lists it" in reply.body.decode()
    assert names.asked == outlet.tried == []


NO_URLS = [
    *("http://127.0.0.2/" + "x" * 2048, "http://127.0.0.2/?" + "x" * 2048, "http://a" + ".a" * 200),
    *("http://127.0.0.2/\r\nHost: x", "http://127.0.0.2/\0"),
    *("http://127.0.0.2/a b", "http://127.0.0.2/\x7f", "http://127.0.0.2/x\x85"),
    *("http://example.org\\@127.0.0.2/", "http://127.0.0.2:0/", "http://127.0.0.2:65536/", "http://:80/"),
    *("http:///feed", "http://", "/feed", "example"),
]


@pytest.mark.fault("20")
async def test_what_is_no_url_is_refused(tmp_path: Path) -> None:
    """docs/faults.md row 20: 400 `invalid-url`."""
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin) as (proxy, outlet):
        replies = {url: await asked_for(proxy, url) for url in NO_URLS}
    assert {url: (reply.status, reply.slug) for url, reply in replies.items()} == dict.fromkeys(
        NO_URLS, (400, "invalid-url")
    )
    assert outlet.tried == []


@pytest.mark.fault("20")
async def test_a_fragment_is_dropped(tmp_path: Path) -> None:
    """docs/faults.md row 20: one feed for any text behind the `#`; a URL of 2,048 characters is accepted."""
    async with Origin(PUBLISHER) as origin, watched(tmp_path, origin) as (proxy, _):
        longest = origin.url("/" + "x" * (2048 - len(origin.url("/"))))
        origin.publish(longest.removeprefix(origin.url("")), atom(an_item("a", 1)))
        assert (await asked_for(proxy, longest)).status == 200
        assert (await asked_for(proxy, longest + "x")).status == 400
        origin.publish("/feed", atom(an_item("a", 1)))
        for fragment in ("", "#", "#top", "#@10.0.0.1/"):
            reply = await asked_for(proxy, origin.url("/feed") + fragment)
            assert (reply.status, reply.headers["Link"]) == (200, f'<{origin.url("/feed")}>; rel="via"')
        assert len(await (await proxy.client.get("/feeds")).json()) == 2
    assert {request.target for request in origin.requests_for("/feed")} == {"/feed"}


@pytest.mark.parametrize(
    ("fetch", "is_served"),
    [
        ({"allow_hosts": ("feeds.example",)}, {"feeds.example"}),
        ({"allow_hosts": ("*.feeds.example",)}, {"a.feeds.example"}),
        ({"deny_hosts": ("feeds.example",)}, {"a.feeds.example", PUBLISHER}),
        ({"deny_hosts": (PUBLISHER,)}, set()),
        ({"allow_networks": ()}, set()),
        ({"allow_networks": ("127.0.0.2/31",)}, {"feeds.example", "a.feeds.example", PUBLISHER}),
    ],
)
async def test_the_operator_says_which_hosts_may_be_asked(
    tmp_path: Path, fetch: dict[str, tuple[str, ...]], is_served: set[str]
) -> None:
    """config.example.toml: fetch.allow_hosts, deny_hosts and allow_networks, for a user."""
    hosts = ("feeds.example", "a.feeds.example", PUBLISHER)
    names = Names(dict.fromkeys(hosts, (PUBLISHER,)))
    async with (
        Origin(PUBLISHER) as origin,
        watched(tmp_path, origin, names=names, fetch=fetch) as (proxy, outlet),
    ):
        origin.publish("/feed", atom(an_item("a", 1)))
        replies = {host: await proxy.get(f"http://{host}:{origin.port}/feed") for host in hosts}
    assert {host for host, reply in replies.items() if reply.status == 200} == is_served
    assert {reply.status for host, reply in replies.items() if host not in is_served} <= {403}
    assert outlet.reached == ({PUBLISHER} if is_served else set())


async def test_behind_a_proxy_urls_are_judged_and_names_are_the_proxy_s(tmp_path: Path) -> None:
    """config.example.toml: fetch.proxy. Every connection is to it; the guard still judges URLs."""
    names = Names()
    async with Origin(PUBLISHER) as gateway:
        fetch = {"proxy": gateway.url(""), "allow_networks": (), "deny_hosts": ("denied.example",)}
        gateway.publish("http://feeds.example/feed", atom(an_item("b", 2), prev_archive="http://10.0.0.9/"))
        gateway.redirect("http://feeds.example/old", "http://[::1]/")
        async with watched(tmp_path, gateway, names=names, fetch=fetch) as (proxy, outlet):
            reply = await proxy.whole("http://feeds.example/feed")
            (missing,) = (await proxy.status("http://feeds.example/feed"))["missing"]
            refused = [
                await proxy.get(url)
                for url in (
                    *("http://feeds.example/old", "http://127.0.0.2/", "http://localhost/"),
                    *("http://denied.example/", "http://feeds.example:22/"),
                )
            ]
    assert (reply.status, missing["reason"]) == (200, "destination-forbidden")
    assert {(each.status, each.slug) for each in refused} == {(403, "destination-forbidden")}
    assert [request.target for request in gateway.requests] == [
        "http://feeds.example/feed",
        "http://feeds.example/old",
    ]
    assert outlet.reached == {PUBLISHER}
    assert names.asked == []
