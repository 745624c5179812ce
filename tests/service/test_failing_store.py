"""Refreshes with a store, or a document's processing, that fails in the middle."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import SqliteFaults
from wholefeed.core.text.urls import canonical_url
from wholefeed.errors import OverloadedError, StorageFullError, UnknownFeedError, WholefeedError, WorkError
from wholefeed.service import pending
from wholefeed.service.memory import Memory
from wholefeed.service.publishing import Rendering
from wholefeed.service.storing import FeedStorage
from wholefeed.store import sqlite_file
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedChanges, FeedRow, Publication
from wholefeed.store.tables import document_table, feed_table, segment_table, text_table
from wholefeed.web.keys import STORE
from wholefeed.workers.pool import Workers


@pytest.mark.parametrize("error", [StorageFullError("the volume is full"), ValueError("an error of our own")])
async def test_a_refresh_that_ends_by_an_error_fetches_nothing_any_more(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Early fetches are cancelled all the same."""
    publish_chain(origin, archives=12)
    has_failed = asyncio.Event()

    async def publish(*_: object, **__: object) -> None:
        has_failed.set()
        raise error

    def put_documents(*_: object, **__: object) -> None:
        raise StorageFullError("the volume is full")

    with origin.held("/archive/7") as seven, origin.held("/archive/6") as six:
        await proxy.begun(origin.url("/feed"))
        async with asyncio.timeout(300):
            await asyncio.gather(seven.reached(), six.reached())
            monkeypatch.setattr(FeedStorage, "publish", publish)
            await has_failed.wait()
            monkeypatch.setattr(document_table, "put_arranged", put_documents)
            seven.release()
            await proxy.settled()
        async with asyncio.timeout(2):  # less than any time-out of such publishers
            while origin.running_requests:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [OverloadedError("it is locked"), StorageFullError("the volume is full")])
@pytest.mark.sample("error0")
async def test_a_publication_meanwhile_that_fails_once_costs_nothing_else(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, error: WholefeedError
) -> None:
    """The next publication shows the documents so far."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    real = FeedStorage.publish
    is_published = asyncio.Event()
    failures = 0

    async def publish(storage: FeedStorage, publication: Publication, *, revision: int) -> FeedRow | None:
        nonlocal failures
        if not failures:
            failures += 1
            raise error
        published = await real(storage, publication, revision=revision)
        is_published.set()
        return published

    with origin.held("/archive/1") as oldest, capture_logs() as lines:
        await proxy.begun(url)
        await oldest.reached()
        monkeypatch.setattr(FeedStorage, "publish", publish)
        async with asyncio.timeout(300):
            await is_published.wait()
        assert (await proxy.get(url, wait="0.1")).reconstruction == "loading;documents=3;entries=6;missing=0"
        oldest.release()
        await proxy.settled()
    reply = await proxy.get(url, wait="0.1")
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    (told,) = [line for line in lines if line["event"] == "feed.unpublished"]
    assert (told["log_level"], told["slug"]) == ("warning", error.slug)
    assert "feed.unkept" not in [line["event"] for line in lines]


@pytest.mark.fault("71b")
async def test_what_is_held_is_answered_with_although_nothing_can_be_read_or_written(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even the publisher's failure cannot be noted."""
    faults = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", faults.connect)
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    async with running(a_config(tmp_path)) as proxy:
        for _ in range(2):
            await proxy.whole(url)
        origin.answer("/feed", Status(500))
        proxy.clock.advance(90_000)
        faults.arm(1, "SQLITE_IOERR", for_good=True)
        for _ in range(2):
            reply = await proxy.get(url)
            assert reply.status == 200, reply.body
            assert ids(reply.body) == ["a"]
        assert faults.failed
        faults.heal()


async def test_a_refresh_that_is_cancelled_while_a_publication_ends_is_cancelled(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed forgotten at the end of its walk is not published once more."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    begun, ending = asyncio.Event(), asyncio.Event()
    calls = 0

    async def publish(*_: object, **__: object) -> None:
        nonlocal calls
        calls += 1
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.sleep(0.2)

    with origin.held("/archive/1") as oldest:
        await proxy.begun(url)
        await oldest.reached()
        monkeypatch.setattr(FeedStorage, "publish", publish)
        async with asyncio.timeout(300):
            await begun.wait()
            origin.answer(
                "/archive/1", Status(404)
            )  # so that nothing has to be written, which would wait for it
            oldest.release()
            await ending.wait()
            assert (await proxy.ask("DELETE", "/feed", params={"url": url})).status == 204
    assert calls == 1


async def test_a_remark_is_kept_when_what_it_was_to_be_written_with_fails(
    proxy: Proxy, origin: Origin
) -> None:
    """The next write includes it."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    feed = await proxy.store.feed_by_url(url)
    assert feed is not None
    now = proxy.clock()

    storage = FeedStorage(proxy.app[STORE], Workers(0), feed.id, now=proxy.clock, memory=Memory(0))
    noted: FeedChanges = {"is_stale": True, "failed_at": now, "fresh_until": now + 7000}
    storage.write_later(feed_table.update, noted)

    def fail(*_: object) -> None:
        raise StorageFullError("the volume is full")

    with pytest.raises(StorageFullError):
        await storage.write(fail)
    await storage.flush()

    stored = await proxy.store.feed(feed.id)
    assert stored is not None
    assert (stored.is_stale, stored.fresh_until) == (True, now + 7000)


@pytest.mark.parametrize(
    "error", [WorkError("its worker was killed"), StorageFullError("the volume is full")]
)
async def test_a_publisher_is_left_alone_when_what_it_sent_cannot_be_published(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, error: WholefeedError
) -> None:
    """The stored feed is fresh as its publisher said."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    origin.publish(
        "/feed", atom(an_item("b", 2), an_item("a", 1)), headers=[("Cache-Control", "max-age=600")]
    )
    proxy.clock.advance(90_000)
    origin.forget_requests()

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as broken, capture_logs() as lines:
        if isinstance(error, WorkError):
            broken.setattr(Rendering, "compose_head", fail)
        else:
            broken.setattr(segment_table, "publish", fail)
        for _ in range(3):
            reply = await proxy.get(url)
            assert (reply.status, ids(reply.body)) == (200, ["a"])
            assert reply.headers["Cache-Control"] != "max-age=0"
    assert origin.counts() == {"/feed": 1}
    assert [line["slug"] for line in lines if line["event"] == "feed.unkept"] == [error.slug]
    assert ids((await proxy.refreshed(url)).body) == ["b", "a"]


@pytest.mark.parametrize("error", [OverloadedError("it is locked"), StorageFullError("the volume is full")])
@pytest.mark.sample("error0")
async def test_documents_that_a_publication_meanwhile_could_not_put_are_put_later(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, error: WholefeedError
) -> None:
    """Documents that wait for more stay waiting: no feed is complete without them."""
    monkeypatch.setattr(pending, "LONGEST_SECONDS", 60.0)
    expected = publish_chain(origin, archives=5)
    url = origin.url("/feed")
    real = document_table.put_arranged
    has_failed = asyncio.Event()

    def put(*arguments: Any) -> list[int]:
        if not has_failed.is_set():
            loop.call_soon_threadsafe(has_failed.set)
            raise error
        return real(*arguments)

    loop = asyncio.get_running_loop()
    with origin.held("/archive/3") as gate, capture_logs() as lines:
        await proxy.begun(url)
        await gate.reached()
        monkeypatch.setattr(document_table, "put_arranged", put)
        async with asyncio.timeout(300):
            await has_failed.wait()
            while not [line for line in lines if line["event"] == "feed.unpublished"]:
                await asyncio.sleep(0.01)
        gate.release()
        await proxy.settled()
    reply = await proxy.get(url, wait="0.1")
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert {count for path, count in origin.counts().items() if path.startswith("/archive/")} == {1}


async def test_a_remark_on_a_document_of_a_forgotten_feed_is_no_failure_of_the_store(
    proxy: Proxy, origin: Origin
) -> None:
    """The refresh says so, and nothing warrants a warning."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    await proxy.whole(url)
    feed = await proxy.store.feed_by_url(url)
    assert feed is not None
    (document, *_) = await proxy.store.documents(feed.id)
    storage = FeedStorage(proxy.app[STORE], Workers(0), feed.id, now=proxy.clock, memory=Memory(0))
    storage.touch(document.id, {"checked_at": proxy.clock()})
    await proxy.service.forget(canonical_url(url))
    with pytest.raises(UnknownFeedError):
        await storage.flush()


async def test_a_publisher_whose_list_cannot_be_kept_is_not_asked_again_at_once(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H1: neither the list nor the time of the next look can be stored."""
    ArchivePage(origin, posts=30).publish()
    faults = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", faults.connect)
    async with running(a_config(tmp_path, history=LISTS)) as proxy:
        with origin.held("/archive/") as gate:
            await proxy.get(origin.url("/feed"))
            await gate.reached()
            faults.arm(1, "SQLITE_FULL", for_good=True)
        async with asyncio.timeout(300):
            while not faults.failed:
                await asyncio.sleep(0.02)
        await asyncio.sleep(1)
        counts = origin.counts()
        faults.heal()
        assert counts["/archive/"] == counts["/"] == 1
        proxy.clock.advance(2 * 3600.0)
        proxy.service.lists.wake()
        await looked(proxy)
        assert (await proxy.get(origin.url("/feed"))).state == "listed"


async def test_texts_that_fail_keep_no_other_feed_of_the_host_waiting(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T2: also where the one that fails was due first."""
    real, asked = text_table.settle, list[int]()

    def settle(db: Database, feed: int, **values: Any) -> FeedRow:
        asked.append(feed)
        if feed == asked[0]:
            raise ValueError("an error of our own")
        return real(db, feed, **values)

    monkeypatch.setattr(text_table, "settle", settle)
    for number, name in enumerate(("/first", "/second"), 1):
        origin.publish(name, atom(an_item("a", 1)))
        await proxy.get(origin.url(name), text="full")
        async with asyncio.timeout(60):
            while len(asked) < number:
                await asyncio.sleep(0.01)
    assert asked[1] != asked[0]
