"""PostgreSQL as the store's engine: what is of one moment, what is repeated, who waits for whom."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.patching import set_constant
from tests.store.postgres.conftest import OpenEngine
from wholefeed.core.model import Family, Kind
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.store.base import Database, fetch_all, fetch_value, run
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds

if TYPE_CHECKING:
    from wholefeed.store.postgres import PostgresEngine

URL = "https://example.org/feed.xml"
SLOW = "SELECT pg_sleep(30)"


def create(db: Database, url: str = URL) -> FeedRow:
    return feeds.create(db, url=url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=1763770000.12)


def count_up(db: Database, feed: int) -> int:
    """Read a number, and write what follows it: wrong when another does it in between."""
    revision = int(fetch_value(db, "SELECT revision FROM feed WHERE id = :feed", {"feed": feed}))
    time.sleep(0.001)
    run(db, "UPDATE feed SET revision = :next WHERE id = :feed", {"next": revision + 1, "feed": feed})
    return revision + 1


async def test_changes_of_a_feed_by_several_replicas_follow_each_other(another: OpenEngine) -> None:
    """Each begins with the lock on the feed's row: what two read and write is never lost."""
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(another()) for _ in range(3)]
        feed = await replicas[0].write(create)
        work = partial(count_up, feed=feed.id)
        found = await asyncio.gather(
            *(each.write(work, feed=feed.id) for _ in range(20) for each in replicas)
        )
        assert sorted(found) == list(range(1, 61))


async def test_a_feed_that_two_replicas_make_at_once_is_one(another: OpenEngine) -> None:
    """Each finds none and makes it; the second one is repeated, and finds the first one's."""
    async with another() as one, another() as other:
        for number in range(10):
            work = partial(create, url=f"https://example.org/{number}")
            made = await asyncio.gather(one.write(work), other.write(work), one.write(work))
            assert len({feed.id for feed in made}) == 1


async def test_transactions_that_wait_for_each_other_are_repeated(another: OpenEngine) -> None:
    """PostgreSQL ends one of two that hold what the other wants."""
    async with another() as one, another() as other:
        first = (await one.write(lambda db: create(db, "https://example.org/1"))).id
        second = (await one.write(lambda db: create(db, "https://example.org/2"))).id
        meeting, runs = threading.Barrier(2), list[int]()

        def work(db: Database, feeds_: tuple[int, int]) -> None:
            runs.append(feeds_[0])
            sql = "UPDATE feed SET revision = revision + 1 WHERE id = :feed"
            run(db, sql, {"feed": feeds_[0]})
            if len(runs) <= 2:
                meeting.wait(10)
            run(db, sql, {"feed": feeds_[1]})

        await asyncio.gather(
            one.write(lambda db: work(db, (first, second))), other.write(lambda db: work(db, (second, first)))
        )
        assert len(runs) > 2
        rows = await one.read(lambda db: fetch_all(db, "SELECT revision FROM feed"))
        assert [row[0] for row in rows] == [2, 2]


async def test_a_failed_statement_that_work_goes_on_after_is_no_commit(engine: PostgresEngine) -> None:
    """PostgreSQL answers such a COMMIT with ROLLBACK, which is no error by itself."""

    def work(db: Database) -> None:
        create(db)
        try:
            run(db, "SELECT 1 / 0")
        except Exception:  # noqa: BLE001 - what no work should do
            return

    with pytest.raises(StoreError):
        await engine.write(work)
    assert await engine.read(lambda db: fetch_value(db, "SELECT count(*) FROM feed")) == 0


async def test_writes_leave_a_connection_to_readers(engine: PostgresEngine) -> None:
    """However many there are, and however long they take."""
    go_on = threading.Event()
    writes = [asyncio.create_task(engine.write(lambda _: go_on.wait(10))) for _ in range(20)]
    try:
        assert await asyncio.wait_for(engine.read(lambda db: fetch_value(db, "SELECT 1")), 5) == 1
    finally:
        go_on.set()
    assert all(await asyncio.gather(*writes))


async def test_writes_of_one_feed_hold_one_connection(engine: PostgresEngine) -> None:
    """They wait for each other here, so that others' writes go on."""
    feed = (await engine.write(create)).id
    go_on = threading.Event()
    writes = [asyncio.create_task(engine.write(lambda _: go_on.wait(10), feed=feed)) for _ in range(20)]
    try:
        await asyncio.wait_for(engine.write(lambda db: create(db, "https://example.org/other")), 5)
    finally:
        go_on.set()
    assert all(await asyncio.gather(*writes))


@pytest.mark.fault("104a")
async def test_what_was_begun_waits_for_few_of_those_who_have_only_come(another: OpenEngine) -> None:
    """A refresh that was begun comes to its end, and an answer too, however many readers ask meanwhile."""
    async with another(connections=2) as engine:
        go_on, order = threading.Event(), list[str]()

        def first(_: object) -> None:
            go_on.wait(10)
            time.sleep(0.01)
            order.append("first")

        await engine.write(lambda _: None)  # what a connection needs before it writes takes its time

        firsts = [asyncio.create_task(engine.read(first, is_first=True)) for _ in range(20)]
        await asyncio.sleep(0.05)
        others = [
            asyncio.create_task(ask(lambda _: order.append("other"))) for ask in (engine.read, engine.write)
        ]
        await asyncio.sleep(0.05)
        assert engine.traffic.waiting == 20
        go_on.set()
        await asyncio.gather(*firsts, *others)
        assert order[12:] == 10 * ["first"]


@pytest.mark.fault("104a")
async def test_who_has_only_come_does_not_wait_for_ever(
    another: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to come again, and nothing is left of it."""
    async with another(connections=1) as engine:
        go_on = threading.Event()
        busy = asyncio.create_task(engine.read(lambda _: go_on.wait(10), is_first=True))
        await asyncio.sleep(0.05)
        set_constant(monkeypatch, "PATIENCE_SECONDS", 0.1)
        with pytest.raises(OverloadedError, match="too many wait for the database"):
            await engine.read(lambda _: None, is_first=True)
        monkeypatch.undo()
        go_on.set()
        assert await busy is True
        await engine.read(lambda _: None, is_first=True)
        assert engine.traffic.waiting == 0


async def test_what_need_not_last_does_not_wait_for_the_disk(engine: PostgresEngine) -> None:
    """Who does what is lost with the server anyway; what a publisher has sent is not."""
    loosely = partial(engine.write, is_lasting=False)
    shown = [
        await write(lambda db: fetch_value(db, "SHOW synchronous_commit"))
        for write in (engine.write, loosely, engine.write_at_once, engine.write)
    ]
    assert shown == ["on", "off", "off", "on"]


@pytest.mark.fault("71a")
async def test_a_database_that_is_too_slow_is_told_in_time(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader gets 503 with Retry-After, the statement is ended, and the connection is used again. What
    measures the whole store goes on."""
    set_constant(monkeypatch, "PATIENCE_SECONDS", 0.3)
    with pytest.raises(OverloadedError) as caught:
        await engine.read(lambda db: run(db, SLOW))
    assert caught.value.retry_after_seconds > 0
    slowly = "SELECT count(*) FROM pg_sleep(0.4)"
    assert await engine.read(lambda db: fetch_value(db, slowly), is_long=True) == 1
    monkeypatch.undo()
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = :query"
    async with asyncio.timeout(10):
        while await engine.read(lambda db: fetch_value(db, running, {"query": SLOW})):
            await asyncio.sleep(0.01)


@pytest.mark.fault("71a")
async def test_work_that_finds_no_connection_is_told_in_time(
    another: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All connections stay taken: whoever waited long enough is sent away, and nothing runs late."""
    async with another(connections=2) as engine:
        go_on, ran = threading.Event(), list[int]()
        busy = [asyncio.create_task(engine.read(lambda _: go_on.wait(10))) for _ in range(2)]
        await asyncio.sleep(0.1)
        set_constant(monkeypatch, "PATIENCE_SECONDS", 0.2)
        with pytest.raises(OverloadedError):
            await engine.read(lambda _: ran.append(1))
        writing = asyncio.create_task(engine.write(lambda _: ran.append(2)))
        await asyncio.sleep(0.3)
        go_on.set()
        with pytest.raises(OverloadedError, match="too many wait for the database"):
            await writing
        assert all(await asyncio.gather(*busy))
        assert ran == []


async def test_who_leaves_before_a_connection_is_free_waits_for_none_any_more(engine: PostgresEngine) -> None:
    """What waits is counted for `/metrics`: it comes back to nothing."""
    may_end, traffic = threading.Event(), engine.pool.traffic
    busy = [asyncio.create_task(engine.read(lambda _: may_end.wait(10))) for _ in range(4)]
    await asyncio.sleep(0)
    late = asyncio.create_task(engine.read(lambda _: None))
    await asyncio.sleep(0.1)
    assert (traffic.busy, traffic.waiting) == (4, 1)
    late.cancel()
    await asyncio.wait({late})
    may_end.set()
    await asyncio.gather(*busy)
    assert (traffic.busy, traffic.waiting) == (0, 0)
