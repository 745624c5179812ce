"""`wholefeed fetch`: from the running proxy, from the configured store, else without storing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.proxy_process import free_port
from tests.answers import Answer, Document, Raw, Reset, Silence, Status, Truncated
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, a_config, running


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    output: bytes
    said: str
    shown: str
    """Standard error, if a terminal."""


Fetch = Callable[..., Awaitable[Done]]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    """Run `wholefeed fetch` in the folder of the test's store, in its own process."""
    nowhere = free_port()

    async def run(
        *arguments: str, proxy: Proxy | None = None, port: int = 0, is_terminal: bool = False
    ) -> Done:
        ours, theirs = os.openpty() if is_terminal else (-1, asyncio.subprocess.PIPE)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WHOLEFEED_")}
        own = {
            "WHOLEFEED_FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
            "WHOLEFEED_FETCH_RETRIES": "0",
            "WHOLEFEED_SERVER_PORT": str(proxy.client.port if proxy else port or nowhere),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "wholefeed", "fetch", *arguments,
            cwd=tmp_path, env=kept | own, stdout=asyncio.subprocess.PIPE, stderr=theirs,
        )  # fmt: skip
        output, said = await asyncio.wait_for(process.communicate(), 40)
        shown = b""
        if is_terminal:
            shown = os.read(ours, 1 << 16)
            os.close(ours)
            os.close(theirs)
        assert process.returncode is not None
        return Done(process.returncode, output, (said or b"").decode(), shown.decode())

    return run


WAYS = ["running", "stored", "neither"]


async def fetched(way: str, fetch: Fetch, tmp_path: Path, url: str, *arguments: str, **options: bool) -> Done:
    """Fetch a feed from a running proxy, from the store of an ended one, or unknown."""
    if way == "neither":
        return await fetch(url, *arguments, **options)
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        if way == "running":
            return await fetch(url, *arguments, proxy=proxy, **options)
    return await fetch(url, *arguments, **options)


@pytest.mark.parametrize("way", WAYS)
async def test_each_way_gives_the_whole_feed(fetch: Fetch, origin: Origin, tmp_path: Path, way: str) -> None:
    """Exit 0; a fresh stored feed costs the publisher nothing, and no database is made."""
    names = publish_chain(origin, archives=2)
    done = await fetched(way, fetch, tmp_path, origin.url("/feed"))
    assert (done.code, done.said) == (0, "")
    assert ids(done.output) == names
    assert {*origin.counts().values()} == {1}
    assert [*tmp_path.iterdir()] == [] or way != "neither"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample("running")
async def test_each_way_gives_a_history_that_nothing_links(
    fetch: Fetch, origin: Origin, tmp_path: Path, way: str
) -> None:
    """R31: exit 0, for every page was read; the state tells of the uncertainty."""
    blog = WordPress(origin, posts=25)
    done = await fetched(way, fetch, tmp_path, blog.feed_url())
    assert (done.code, done.said) == (0, "")
    assert done.output.count(b"<item>") == 25


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample("stored")
async def test_each_way_tells_by_its_exit_code_that_something_is_missing(
    fetch: Fetch, origin: Origin, tmp_path: Path, way: str
) -> None:
    """3: a partial feed; the present part is written, to a file too."""
    publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    done = await fetched(way, fetch, tmp_path, origin.url("/feed"), "-o", "whole.atom")
    assert (done.code, done.output) == (3, b"")
    assert (tmp_path / "whole.atom").read_bytes().count(b"text of e") == 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample("running")
async def test_each_way_shows_its_progress_on_a_terminal(
    fetch: Fetch, origin: Origin, tmp_path: Path, way: str
) -> None:
    """The last line names the state."""
    publish_chain(origin, archives=1)
    done = await fetched(way, fetch, tmp_path, origin.url("/feed"), is_terminal=True)
    assert "complete: 2 documents, 4 entries" in done.shown
    assert len(ids(done.output)) == 4


@pytest.mark.parametrize("way", ["running", "stored"])
@pytest.mark.sample("stored")
async def test_what_is_due_is_asked_for_again(fetch: Fetch, origin: Origin, tmp_path: Path, way: str) -> None:
    """`fetch` asks for the subscription document, and new ones behind it."""
    publish_chain(origin, archives=1)
    url, config = origin.url("/feed"), a_config(tmp_path)
    async with running(config) as proxy:
        await proxy.whole(url)
        names = publish_chain(origin, archives=2)
        proxy.clock.advance(3600)
        await proxy.store.update_feed(1, fresh_until=1.0)
        done = await fetch(url, proxy=proxy) if way == "running" else None
    done = done or await fetch(url)
    assert (done.code, ids(done.output)) == (0, names)
    assert origin.counts()["/feed"] == 2


@pytest.mark.parametrize("way", ["running", "stored"])
@pytest.mark.sample("running")
async def test_a_feed_that_is_not_known_is_fetched_without_keeping_it(
    fetch: Fetch, origin: Origin, tmp_path: Path, way: str
) -> None:
    """Neither the proxy nor the store knows it afterwards."""
    publish_chain(origin, archives=1)
    origin.publish("/other", atom(an_item("a"), complete=True))
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(origin.url("/other"))
        done = await fetch(origin.url("/feed"), proxy=proxy) if way == "running" else None
    done = done or await fetch(origin.url("/feed"))
    assert (done.code, len(ids(done.output))) == (0, 4)
    async with running(a_config(tmp_path)) as proxy:
        assert [feed.url for feed in await proxy.service.feeds()] == [origin.url("/other")]


@pytest.mark.parametrize("way", ["stored", "neither"])
@pytest.mark.sample("stored")
async def test_a_walk_that_is_not_waited_for_is_exit_3(
    fetch: Fetch, origin: Origin, tmp_path: Path, way: str
) -> None:
    """The part so far is written."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    if way == "stored":
        async with running(a_config(tmp_path)) as proxy:
            await proxy.whole(url)
            publish_chain(origin, archives=2)
            await proxy.store.update_feed(1, fresh_until=1.0)
    with origin.held("/archive/1" if way == "neither" else "/archive/2"):
        done = await fetch(url, "--wait", "2")
    assert (done.code, done.said) == (3, "")
    assert len(ids(done.output)) >= 2


async def test_a_proxy_that_is_still_loading_is_exit_3(fetch: Fetch, origin: Origin, tmp_path: Path) -> None:
    """The part so far is written."""
    publish_chain(origin, archives=2)
    with origin.held("/archive/1"):
        async with running(a_config(tmp_path)) as proxy:
            await proxy.begun(origin.url("/feed"))
            done = await fetch(origin.url("/feed"), "--wait", "0", proxy=proxy)
    assert (done.code, done.said) == (3, "")
    assert len(ids(done.output)) >= 2


async def test_a_stored_feed_whose_publisher_fails_is_given_as_it_is(
    fetch: Fetch, origin: Origin, tmp_path: Path
) -> None:
    """The feed is stale, and complete."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(origin.url("/feed"))
        await proxy.store.update_feed(1, fresh_until=1.0)
    origin.fault("/feed", Status(500))
    done = await fetch(origin.url("/feed"))
    assert (done.code, ids(done.output)) == (0, ["a"])


async def test_what_is_not_wholefeed_is_gone_on_without(fetch: Fetch, origin: Origin) -> None:
    """Another program has the port; the feed can still be fetched."""
    publish_chain(origin, archives=1)
    port = int(origin.url("").rpartition(":")[2].strip("/"))
    done = await fetch(origin.url("/feed"), port=port)
    assert (done.code, len(ids(done.output))) == (0, 4)
    assert done.said.startswith("wholefeed: going on without a proxy: ")
    assert done.said.count("\n") == 1


async def test_a_proxy_that_does_not_let_it_in_is_gone_on_without(
    fetch: Fetch, origin: Origin, tmp_path: Path
) -> None:
    """Another's proxy wants an unknown token, and the command has its own store."""
    publish_chain(origin, archives=1)
    (tmp_path / "another").mkdir()
    config = a_config(tmp_path / "another", server={"access_token": "a-token-of-the-test"})
    async with running(config) as proxy:
        done = await fetch(origin.url("/feed"), proxy=proxy)
    assert (done.code, len(ids(done.output))) == (0, 4)
    assert "going on without a proxy: the proxy on 127.0.0.1" in done.said
    assert "answered 401: this command needs the proxy's access token: run it in the folder of" in done.said


async def test_a_store_that_cannot_be_used_is_exit_1_and_one_line(fetch: Fetch, tmp_path: Path) -> None:
    """The store might hold the feed; its failure is not passed over in silence."""
    (tmp_path / "wholefeed.db").write_bytes(b"something else")
    done = await fetch("http://a.example/feed")
    assert (done.code, done.output, done.said.count("\n")) == (1, b"", 1)
    assert "is no SQLite database" in done.said


@pytest.fixture
async def false_proxy() -> AsyncIterator[Origin]:
    """Answers as a proxy with every feed; the test supplies the answer for /feed."""
    async with Origin() as origin:
        origin.publish("/healthz", json.dumps({"status": "ok"}).encode())
        origin.answer("/status", Document(body=json.dumps({"refreshing": False}).encode()))
        yield origin


def port_of(origin: Origin) -> int:
    return int(origin.url("").rpartition(":")[2].strip("/"))


COMPLETE = ("Feed-Reconstruction", "complete;documents=1;entries=1;missing=0")
UNUSABLE: dict[str, Answer] = {
    "reset": Reset(),
    "cut off": Truncated(b"<feed/>" * 9, 7, headers=(COMPLETE,)),
    "cut off, chunked": Truncated(b"<feed/>" * 9, 7, chunked=True, headers=(COMPLETE,)),
    "no length": Raw(b"HTTP/1.1 200 OK\r\n%b: %b\r\n\r\n<feed/>" % (*(each.encode() for each in COMPLETE),)),
    "no state": Document(body=b"<feed/>"),
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.sample("cut off", "reset")
async def test_an_answer_that_is_not_whole_is_gone_on_without(
    fetch: Fetch, origin: Origin, false_proxy: Origin, answer: Answer
) -> None:
    """Nothing of it reaches standard output; the feed is reconstructed without the proxy."""
    names = publish_chain(origin, archives=1)
    false_proxy.answer("/feed", answer)
    done = await fetch(origin.url("/feed"), port=port_of(false_proxy))
    assert (done.code, ids(done.output)) == (0, names)
    assert done.said.startswith("wholefeed: going on without a proxy: ")
    assert done.said.count("\n") == 1


async def test_an_answer_in_chunks_is_taken(fetch: Fetch, origin: Origin, false_proxy: Origin) -> None:
    """Reverse proxies send chunks."""
    false_proxy.answer("/feed", Document(body=b"<feed/>", chunked=True, headers=(COMPLETE,)))
    done = await fetch(origin.url("/feed"), port=port_of(false_proxy))
    assert (done.code, done.output, done.said) == (0, b"<feed/>", "")


async def test_a_feed_that_the_proxy_cuts_is_exit_3_and_one_line(
    fetch: Fetch, origin: Origin, tmp_path: Path
) -> None:
    """The answer is written; the line names the setting."""
    names = publish_chain(origin, archives=6)
    async with running(a_config(tmp_path, limits={"answer_bytes": 2500})) as proxy:
        await proxy.get(origin.url("/feed"))
        await proxy.settled()
        done = await fetch(origin.url("/feed"), proxy=proxy)
    assert done.code == 3
    assert 0 < len(ids(done.output)) < len(names)
    assert "limits.answer_bytes" in done.said
    assert done.said.count("\n") == 1


async def test_sigterm_ends_it_while_the_proxy_hangs(
    origin: Origin, false_proxy: Origin, tmp_path: Path
) -> None:
    """Exit 143 at once, before the timeout of the proxy's answer."""
    false_proxy.answer("/feed", Silence())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "wholefeed", "fetch", origin.url("/feed"),
        cwd=tmp_path, env={**os.environ, "WHOLEFEED_SERVER_PORT": str(port_of(false_proxy))},
    )  # fmt: skip
    async with asyncio.timeout(300):
        while not false_proxy.requests_for("/feed"):
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 143
