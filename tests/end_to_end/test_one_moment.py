"""What is told of a feed is told the same everywhere, and is always of one moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom, publish_chain, rss
from tests.origin import Origin
from tests.running import Clock, Proxy, a_config, running
from wholefeed.errors import StoreError
from wholefeed.service.refresh.storing import FeedStorage
from wholefeed.store.rows import FeedRow, Publication, Snapshot
from wholefeed.web.keys import STORE


async def states(proxy: Proxy, url: str) -> tuple[str, str, str]:
    """Ask for the state by each way there is: /feed, /status and /feeds."""
    reply = await proxy.get(url, wait="0.1")
    status = await proxy.status(url)
    async with proxy.client.get("/feeds") as response:
        (listed,) = await response.json()
    return reply.state, status["state"], listed["state"]


def add_archive(origin: Origin, number: int) -> None:
    """Let the subscription document of `publish_chain` link to one more archive document."""
    link = f"/archive/{number}"
    origin.publish("/feed", atom(an_item("newest", 900), prev_archive=link))
    older = f"/archive/{number - 1}"
    origin.publish(link, atom(an_item(f"new-{number}", 800), archive=True, prev_archive=older))


async def test_a_walk_that_was_cut_off_is_loading_wherever_one_asks(tmp_path: Path, origin: Origin) -> None:
    """R16: after a restart in the middle of a walk, while the publisher hangs: it may still add documents."""
    publish_chain(origin, archives=2)
    url, clock = origin.url("/feed"), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        assert (await proxy.whole(url)).state == "complete"
        add_archive(origin, 3)
        clock.advance(4000)
        with origin.held("/archive/3") as gate:
            await proxy.get(url, wait="0.1")
            await gate.reached()
            assert await states(proxy, url) == ("loading",) * 3
            await proxy.service.close()

    with origin.held("/feed") as gate:
        async with running(a_config(tmp_path), clock) as proxy:
            await gate.reached()
            assert await states(proxy, url) == ("loading",) * 3
            gate.release()
            await proxy.settled()
            assert await states(proxy, url) == ("complete",) * 3


async def test_a_mere_refetch_keeps_the_state_wherever_one_asks(proxy: Proxy, origin: Origin) -> None:
    """R16: that the subscription document is being asked for adds no documents."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await proxy.whole(url)
    proxy.clock.advance(4000)
    with origin.held("/feed"):
        assert await states(proxy, url) == ("complete",) * 3


async def test_what_is_missing_is_of_the_publication_that_is_sent(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: a feed that heals while it is being read is told as it was: `partial` with what was missing."""
    publish_chain(origin, archives=3)
    origin.remove("/archive/2")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).reconstruction.startswith("partial;documents=3;entries=")
    origin.publish("/archive/2", atom(an_item("healed", 2), archive=True, prev_archive="/archive/1"))
    read = proxy.store.snapshot
    has_healed: list[bool] = []

    @asynccontextmanager
    async def read_and_let_heal(feed_id: int) -> AsyncIterator[Snapshot]:
        async with read(feed_id) as snapshot:
            if not has_healed:
                has_healed.append(True)
                await proxy.service.refresh(url)
                await proxy.settled()
            yield snapshot

    monkeypatch.setattr(proxy.app[STORE], "snapshot", read_and_let_heal)

    async with proxy.service.answer(url, wait_seconds=1.0) as told:
        assert (told.state, len(told.missing)) == ("partial", 1)
    async with proxy.service.answer(url, wait_seconds=1.0) as told:
        assert (told.state, len(told.missing)) == ("complete", 0)


async def test_what_is_missing_is_told_with_its_publication_or_not_at_all(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16: a refresh that cannot publish leaves nothing of what it found missing to be told."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    before = await proxy.whole(url)
    add_archive(origin, 4)  # 4 links to 3, which is not there
    publish = FeedStorage.publish

    async def fail_at_the_end(
        storage: FeedStorage, publication: Publication, *, revision: int
    ) -> FeedRow | None:
        if publication.state != "loading":
            raise StoreError("the disk is on fire")
        return await publish(storage, publication, revision=revision)

    monkeypatch.setattr(FeedStorage, "publish", fail_at_the_end)
    await proxy.refreshed(url)
    status = await proxy.status(url)
    assert (status["state"], status["missing"]) == ("loading", [])
    assert status["entries"] == int(before.reconstruction.split(";")[2].removeprefix("entries="))

    monkeypatch.undo()
    reply = await proxy.refreshed(url)
    assert reply.reconstruction.startswith("partial;documents=4;")
    assert [each["attempts"] for each in (await proxy.status(url))["missing"]] == [1]


async def test_last_modified_moves_when_a_walk_begins_and_when_it_ends(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.2: a body that no longer says `complete` is another one, and so is the one after it."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    first = await proxy.whole(url)
    add_archive(origin, 3)
    proxy.clock.advance(4000)
    since = {"If-Modified-Since": first.headers["Last-Modified"]}
    with origin.held("/archive/3") as gate:
        await proxy.get(url, wait="0.1")
        await gate.reached()
        loading = await proxy.get(url, wait="0.1", headers=since)
        assert (loading.status, loading.state) == (200, "loading")
    await proxy.settled()
    since = {"If-Modified-Since": loading.headers["Last-Modified"]}
    last = await proxy.get(url, headers=since)
    assert (last.status, last.state) == (200, "complete")


async def test_last_modified_moves_when_the_feed_is_asked_for_elsewhere(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.2: the answer tells the publisher's address (`via`), so a move makes it another one."""
    origin.publish("/moved", atom(an_item("a", 1)))
    origin.redirect("/feed", "/moved", status=301)
    url = origin.url("/feed")
    before = after = await proxy.whole(url)
    for _ in range(4):
        proxy.clock.advance(40_000)
        after = await proxy.whole(url)
        if before.headers["Link"] != after.headers["Link"]:
            break
        assert before.headers["Last-Modified"] == after.headers["Last-Modified"]
    assert origin.url("/moved") in after.headers["Link"]
    assert before.headers["Last-Modified"] != after.headers["Last-Modified"]


@asynccontextmanager
async def unpublished(proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """A refresh has stored what came, and its publication has not been made yet."""
    publish = FeedStorage.publish
    has_come, may_go = asyncio.Event(), asyncio.Event()

    async def held(*arguments: Any, **named: Any) -> FeedRow | None:
        has_come.set()
        await may_go.wait()
        return await publish(*arguments, **named)

    monkeypatch.setattr(FeedStorage, "publish", held)
    assert (await proxy.ask("POST", "/refresh", params={"url": url})).status == 202
    await has_come.wait()
    yield
    may_go.set()
    await proxy.settled()


async def told(proxy: Proxy, url: str) -> tuple[bytes, dict[str, str]]:
    """The body of a feed and what its head says of it."""
    reply = await proxy.get(url, wait="0")
    names = ("Content-Type", "ETag", "Last-Modified", "Link", "Feed-Reconstruction")
    return reply.body, {name: reply.headers[name] for name in names}


async def test_a_feed_whose_format_changes_is_the_old_one_until_the_new_one_is_published(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R16, R23: body and Content-Type are of one publication, however long the next one takes."""
    publish_chain(origin, archives=2, make=rss)
    url = origin.url("/feed")
    await proxy.whole(url)
    before = await told(proxy, url)
    assert before[1]["Content-Type"].startswith("application/rss+xml")
    publish_chain(origin, archives=2)
    proxy.clock.advance(60)
    async with unpublished(proxy, url, monkeypatch):
        assert (await told(proxy, url))[0] == before[0]
        assert (await told(proxy, url))[1]["Content-Type"] == before[1]["Content-Type"]
        assert (await proxy.status(url))["format"] == "rss"
    after = await told(proxy, url)
    assert after[1]["Content-Type"].startswith("application/atom+xml")
    assert after[1]["Last-Modified"] > before[1]["Last-Modified"]
    assert (await proxy.status(url))["format"] == "atom"
