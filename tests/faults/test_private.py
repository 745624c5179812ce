"""Rows 137 to 142: the secrets of a publisher, and feeds fetched with them, go to nobody else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from structlog.testing import capture_logs

from tests.answers import Answer, Computed, Document, Raw, Request, Reset, Status, Truncated
from tests.faults.test_access import signed
from tests.feeds import an_item, atom, ids, own_ids, publish_chain
from tests.listing import LISTS
from tests.origin import Origin
from tests.private_feeds import (
    KEY,
    PLAIN,
    SECRETS,
    TOKEN,
    World,
    a_world,
    bears_none,
    bears_secrets,
    publisher,
)
from tests.publishers.archive_page import ArchivePage
from tests.publishers.wordpress import WordPress
from tests.running import a_config, running
from tests.web_archive import HASTY, WebArchive
from wholefeed import WholefeedError
from wholefeed.app import make_app
from wholefeed.config.tables import Config, config_of

HTML = "text/html"
FEED = atom(an_item("confided", 1), complete=True)


def page(target: str) -> Document:
    body = f'<html><link rel="alternate" type="application/atom+xml" href="{target}"></html>'
    return Document(body=body.encode(), headers=(("Content-Type", HTML),))


def closed(answer: Answer) -> Answer:
    return Computed(lambda request: answer if bears_secrets(request) else Status(401))


def echo(request: Request) -> Answer:
    said = request.headers.get("authorization", "") + request.headers.get("x-api-key", "")
    head = (
        f"HTTP/1.1 500 {said}\r\nX-Said: {said}\r\nRetry-After: {said}\r\nContent-Length: {len(said)}\r\n\r\n"
    )
    return Raw((head + said).encode())


# Acts of the publisher, or of somebody else: each prepares the publishers, and returns the URL to request


def redirects_elsewhere(world: World) -> str:
    world.private.redirect("/feed", world.other_url("/feed"))
    world.other.publish("/feed", FEED)
    return world.url("/feed")


def redirects_there_and_back(world: World) -> str:
    world.private.redirect("/feed", world.other_url("/feed"))
    world.other.redirect("/feed", world.url("/end"))
    world.private.publish("/end", FEED)
    return world.url("/feed")


def redirects_to_http(world: World) -> str:
    world.private.redirect("/feed", world.plain_url("/feed"))
    world.plain.publish("/feed", FEED)
    return world.url("/feed")


def links_an_archive_elsewhere(world: World) -> str:
    archive = atom(an_item("older"), archive=True, current=world.url("/feed"))
    world.private.publish("/feed", atom(an_item("private", 1), prev_archive=world.other_url("/1")))
    world.other.publish("/1", archive)
    return world.url("/feed")


def links_an_archive_by_http(world: World) -> str:
    world.private.publish("/feed", atom(an_item("private", 1), prev_archive=world.plain_url("/1")))
    world.plain.publish("/1", atom(an_item("older"), archive=True))
    return world.url("/feed")


def names_another_current(world: World) -> str:
    world.private.publish("/feed", atom(an_item("private", 1), archive=True, current=world.other_url("/now")))
    world.other.publish("/now", FEED)
    return world.url("/feed")


def redirects_elsewhere_by_a_page(world: World) -> str:
    world.private.redirect_by_page("/feed", world.other_url("/feed"))
    world.other.publish("/feed", FEED)
    return world.url("/feed")


def announces_a_feed_elsewhere(world: World) -> str:
    world.private.answer("/feed", page(world.other_url("/feed")))
    world.other.publish("/feed", FEED)
    return world.url("/feed")


def says_what_was_asked(world: World) -> str:
    world.private.answer("/feed", Computed(echo))
    return world.url("/feed")


def says_what_was_asked_of_an_archive(world: World) -> str:
    world.private.publish("/feed", atom(an_item("private", 1), prev_archive="/1"))
    world.private.answer("/1", Computed(echo))
    return world.url("/feed")


def speaks_no_http(world: World) -> str:
    world.private.answer("/feed", Raw(b"HTTP/nothing\r\n\r\n"))
    return world.url("/feed")


def breaks_off(world: World) -> str:
    world.private.answer("/feed", Truncated(FEED, 40))
    return world.url("/feed")


def resets(world: World) -> str:
    world.private.answer("/feed", Reset())
    return world.url("/feed")


def is_asked_by_http(world: World) -> str:
    world.plain.publish("/feed", FEED)
    return world.plain_url("/feed")


def is_redirected_to(world: World) -> str:
    world.other.redirect("/feed", world.url("/feed"))
    world.private.answer("/feed", closed(Document(body=FEED)))
    return world.other_url("/feed")


def is_an_archive_of_another(world: World) -> str:
    world.other.publish("/chain", atom(an_item("other", 1), prev_archive=world.url("/1")))
    world.private.answer("/1", closed(Document(body=atom(an_item("private"), archive=True))))
    return world.other_url("/chain")


def content(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("wholefeed.db*"))


@pytest.mark.fault("137", "138", "142")
@pytest.mark.parametrize(
    "plays",
    [
        redirects_elsewhere,
        redirects_there_and_back,
        redirects_to_http,
        redirects_elsewhere_by_a_page,
        links_an_archive_elsewhere,
        links_an_archive_by_http,
        names_another_current,
        announces_a_feed_elsewhere,
        says_what_was_asked,
        says_what_was_asked_of_an_archive,
        speaks_no_http,
        breaks_off,
        resets,
        is_asked_by_http,
        is_redirected_to,
        is_an_archive_of_another,
    ],
    ids=lambda plays: str(plays.__name__),
)
async def test_secrets_go_to_their_publisher_and_are_shown_nowhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plays: Callable[[World], str]
) -> None:
    """A2, A6: for any act of a publisher, no other request, answer, log line or stored row has them."""
    with capture_logs() as logs:
        async with a_world(tmp_path, fetch={"allow_downgrade": True}) as world:
            url = plays(world)
            await world.whole(url)
            told = await world.told(url)
            heard = [*world.other.requests, *world.plain.requests]
            private = world.private.requests
            stored = await asyncio.to_thread(content, tmp_path)
    assert heard or private
    assert all(map(bears_none, heard))
    is_own = url.startswith("https://private.example")
    assert all(map(bears_secrets if is_own else bears_none, private))
    shown = b"".join(told) + repr(logs).encode() + "".join(capsys.readouterr()).encode() + stored
    assert [secret for secret in SECRETS if secret.encode() in shown] == []


@pytest.mark.fault("138")
async def test_a_feed_of_another_host_gets_nothing_that_is_private(tmp_path: Path) -> None:
    """A2: redirects and links there carry no secrets, so that only public documents come."""
    async with a_world(tmp_path) as world:
        redirected = await world.whole(is_redirected_to(world))
        chained = await world.whole(is_an_archive_of_another(world))
        status = await world.proxy.ask(
            "GET", "/status", params={"url": world.other_url("/chain")}, headers=world.token
        )
    assert (redirected.status, redirected.slug) == (502, "origin-forbidden")
    assert (chained.state, own_ids(chained.body)) == ("partial", ["other"])
    assert [each["status"] for each in json.loads(status.body)["missing"]] == [401]


@pytest.mark.fault("139")
@pytest.mark.parametrize("is_known", [False, True], ids=["first", "known"])
async def test_no_url_elsewhere_leads_to_a_private_feed(tmp_path: Path, *, is_known: bool) -> None:
    """A3: readers of another host's page may not read the private feed it announces, or names as a document's
    own; nor by a URL that led there before it was private."""
    feed = Computed(lambda request: Document(body=FEED))  # now and then open to everybody
    server = {"access_token": TOKEN, "signing_keys": (KEY,)}
    ports: tuple[int, ...] = ()
    if is_known:
        async with a_world(tmp_path, publishers=[], server=server) as world:
            for path in ("/page", "/archive"):
                prepare_ways(world, feed)
                assert (await world.whole(world.other_url(path))).status == 200
            ports = (world.private.port, world.other.port)
    async with a_world(tmp_path, server=server) as world:
        for origin, port in zip((world.private, world.other), ports, strict=False):
            await origin.stop()
            origin.port = port
            await origin.start()
        prepare_ways(world, feed)
        if not is_known:  # nor is anything kept of it
            assert (await world.whole(world.other_url("/page"))).slug == "destination-forbidden"
            assert json.loads((await world.proxy.ask("GET", "/feeds", headers=world.token)).body) == []
        assert (await world.whole(world.url("/feed"))).status == 200
        for path in ("/page", "/archive"):
            url = world.other_url(path)
            mark = {"url": url, "signed": signed(url, KEY)}
            for route in ("/feed", "/view", "/status", "/events"):
                reply = await world.proxy.ask("GET", route, params=mark)
                assert (reply.status, reply.slug) in {
                    (403, "destination-forbidden"),
                    (404, "unknown-feed"),
                }, (path, route)
            assert (await world.whole(url)).slug == "destination-forbidden"
        assert (await world.whole(world.url("/page"))).status == 200
        if is_known:  # nor does a page that once led there become its own feed
            world.other.publish("/archive", atom(an_item("now a feed"), complete=True))
            world.proxy.clock.advance(120)
            assert (await world.whole(world.other_url("/archive"))).slug == "destination-forbidden"


@pytest.mark.fault("139")
async def test_no_feed_elsewhere_continues_a_private_one(tmp_path: Path) -> None:
    """A3, I3: otherwise readers of that feed would get its entries; nor does it continue a public one."""
    server = {"access_token": TOKEN, "signing_keys": (KEY,)}
    async with a_world(tmp_path, server=server) as world:
        private, other = world.url("/feed"), world.other_url("/feed")
        for origin, url in ((world.private, private), (world.other, other)):
            origin.publish("/feed", FEED)
            assert (await world.whole(url)).status == 200
        for old, new in ((private, other), (other, private)):
            asked = {"url": new, "old": old}
            reply = await world.proxy.ask("POST", "/continue", params=asked, headers=world.token)
            assert (reply.status, reply.slug) == (403, "destination-forbidden")


async def test_a_person_is_told_what_to_paste_instead(tmp_path: Path) -> None:
    """A3: allowing private addresses would not help."""
    async with a_world(tmp_path) as world:
        prepare_ways(world, Document(body=FEED))
        shown = {**world.token, "Accept": HTML}
        reply = await world.proxy.ask("GET", "/", params={"url": world.other_url("/page")}, headers=shown)
    assert reply.status == 403
    assert b"own address" in reply.body


def prepare_ways(world: World, feed: Answer) -> None:
    world.private.answer("/feed", feed)
    world.private.answer("/page", page("/feed"))
    world.other.answer("/page", page(world.url("/feed")))
    world.other.publish("/archive", atom(an_item("a"), archive=True, current=world.url("/feed")))


ROUTES = ("/feed", "/view", "/status", "/events", "/feeds", "/opml", "/metrics", "/")


async def test_a_private_feed_is_for_who_has_the_token_or_its_signature(tmp_path: Path) -> None:
    """A4: nobody else learns of it, even on loopback and in server.metrics_networks, open otherwise; no
    shared cache keeps it."""
    server = {"access_token": TOKEN, "signing_keys": (KEY,), "metrics_networks": ("127.0.0.0/8",)}
    async with a_world(tmp_path, server=server) as world:
        world.private.answer("/feed", closed(Document(body=FEED, etag='"1"')))
        url, other = world.url("/feed"), world.other_url("/feed")
        whole = await world.whole(url)
        ask, mark = world.proxy.ask, signed(url, KEY)
        marked = await ask("GET", "/feed", params={"url": url, "signed": mark}, headers=PLAIN)
        again = {**PLAIN, "If-None-Match": marked.headers["ETag"]}
        known = await ask("GET", "/feed", params={"url": url, "signed": mark}, headers=again)
        head = await ask("HEAD", "/feed", params={"url": url, "signed": mark})
        strangers = [
            await ask("GET", route, params={"url": url, **more}, headers={**PLAIN, "Accept": accept})
            for route in ROUTES
            for more in ({}, {"signed": signed(other, KEY)}, {"token": "not-the-token-of-all"})
            for accept in ("*/*", HTML)
        ]
        strangers.append(await ask("GET", f"/{quote(url, safe=':/')}"))
        strangers += [await ask("POST", route, params={"url": url}) for route in ("/refresh", "/forget")]
    assert (whole.status, ids(marked.body), known.status) == (200, ["confided"], 304)
    for reply in (whole, marked, known, head):
        assert reply.headers["Cache-Control"].startswith("private, ")
    assert all(b"confided" not in each.body for each in strangers)
    assert {each.status for each in strangers} == {200, 401, 403}
    open_routes = [each.status for each in strangers if each.status == 200]
    assert len(open_routes) == 6  # of /metrics alone, which name no feed


SECRET_KINDS = [{}, {"headers": {}}, {"credentials_file": ""}]


@pytest.mark.fault("141")
@pytest.mark.parametrize("table", SECRET_KINDS, ids=["both", "credentials", "headers"])
def test_without_a_token_such_a_configuration_does_not_start(
    tmp_path: Path, table: dict[str, object]
) -> None:
    """A4: neither a loopback address nor `server.open` replaces one."""
    for is_open in (False, True):
        with pytest.raises(WholefeedError, match=r"\[\[publisher\]\] private.example has .*access_token"):
            make_app(with_publisher(tmp_path, table, open=is_open))
    make_app(with_publisher(tmp_path, table, access_token=TOKEN))
    make_app(with_publisher(tmp_path, table, signing_keys=(KEY,)))


def test_what_is_no_secret_needs_no_token(tmp_path: Path) -> None:
    """A1: a name, a pace and a proxy are for everybody."""
    table = {"headers": {}, "credentials_file": "", "user_agent": "Reader/1", "min_interval_seconds": 1}
    make_app(with_publisher(tmp_path, table))


def with_publisher(path: Path, table: Mapping[str, object], **server: object) -> Config:
    own = config_of({"publisher": [publisher(path, **table)]}).publisher
    return replace(a_config(path, server=server), publisher=own)


def chain(origin: Origin) -> str:
    publish_chain(origin, archives=2)
    return origin.url("/feed")


def collected(origin: Origin) -> str:
    return WordPress(origin, posts=30).feed_url()


def listed(origin: Origin) -> str:
    ArchivePage(origin, posts=30).publish()
    return origin.url("/feed")


@pytest.mark.parametrize("publish", [chain, collected, listed], ids=lambda publish: str(publish.__name__))
async def test_each_request_for_a_private_feed_bears_its_secrets(
    tmp_path: Path, origin: Origin, publish: Callable[[Origin], str]
) -> None:
    """A2: archives, unlinked pages (R26), those of the site and its robots.txt (H1), and repeated fetches."""
    url = publish(origin)
    table = {"host": origin.host}
    config = await asyncio.to_thread(with_publisher, tmp_path, table, access_token=TOKEN)
    config = replace(config, history=a_config(tmp_path, history=LISTS).history)
    token = {"Authorization": f"Bearer {TOKEN}"}
    async with running(config) as proxy, asyncio.timeout(300):
        state = "loading"
        while state in ("loading", "remembered"):
            reply = await proxy.ask("GET", "/feed", params={"url": url, "wait": "2"}, headers=token)
            state = reply.state
            await asyncio.sleep(0.02)
        first = len(origin.requests)
        await proxy.ask("POST", "/refresh", params={"url": url, "full": "1"}, headers=token)
        await proxy.settled()
    assert state == {"chain": "complete"}.get(publish.__name__, publish.__name__)
    assert len(origin.requests) > first > 1
    assert [each.target for each in origin.requests if not bears_secrets(each)] == []


@pytest.mark.fault("138")
@pytest.mark.parametrize("publish", [chain, collected, listed], ids=lambda publish: str(publish.__name__))
async def test_no_document_of_a_feed_of_another_host_bears_secrets(
    tmp_path: Path, origin: Origin, publish: Callable[[Origin], str]
) -> None:
    """A2: nor unlinked documents, nor linked pages of the site; no robots.txt is shown."""
    url, table = publish(origin), {"host": origin.host}
    config = await asyncio.to_thread(with_publisher, tmp_path, table, access_token=TOKEN)
    config = replace(config, history=a_config(tmp_path, history=LISTS).history)
    async with Origin("127.0.0.3") as other, running(config) as proxy, asyncio.timeout(300):
        other.redirect("/feed", url)
        asked, token = {"url": other.url("/feed"), "wait": "2"}, {"Authorization": f"Bearer {TOKEN}"}
        state = "loading"
        while state in ("loading", "remembered"):
            reply = await proxy.ask("GET", "/feed", params=asked, headers=token)
            state = reply.state
            await asyncio.sleep(0.02)
    assert len(origin.requests) > 1
    assert {each.target for each in origin.requests if not bears_none(each)} <= {"/robots.txt"}


async def test_a_web_archive_learns_nothing_of_a_private_feed(tmp_path: Path) -> None:
    """A5: neither of the feed nor of its documents, when they are gone; other feeds are looked up."""
    async with WebArchive() as archive:
        history = {
            "memento": True,
            "memento_url": archive.origin.url("").rstrip("/"),
            "memento_query_hosts": ("*.example",),
        }
        fetch, parts = {"allow_networks": ("127.0.0.2/32",)}, {"archive_turns": HASTY()}
        async with a_world(tmp_path, history=history, fetch=fetch, parts=parts) as world:
            for origin in (world.private, world.other):
                origin.publish("/feed", atom(an_item("a", 1), prev_archive="/gone"))
                origin.answer("/lost", Status(410))
            for url in (world.url, world.other_url):
                assert (await world.whole(url("/feed"))).state == "partial"
                assert (await world.whole(url("/lost"))).status == 410
            async with asyncio.timeout(300):
                while archive.searches < 2:
                    await asyncio.sleep(0.05)
            await world.proxy.settled()
        asked = b"".join(each.head for each in archive.origin.requests)
    assert b"other.example" in asked
    assert b"private.example" not in asked
