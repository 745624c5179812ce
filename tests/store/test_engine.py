"""Promises of both engines: transactions, reads of one moment, notices, and an end in time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from tests import empty_store
from tests.store.places import Place
from wholefeed.core.model import Family, Kind
from wholefeed.errors import OverloadedError, StorageFullError, StoreError, UnknownFeedError
from wholefeed.store import sqlite
from wholefeed.store.base import Database, fetch_all, fetch_one, fetch_value, run
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Engine
from wholefeed.store.tables import feed_table

URL = "https://example.org/feed.xml"
COUNT = "SELECT count(*) FROM feed"
REVISION = "SELECT revision FROM feed"
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def opened(place: Place) -> AbstractAsyncContextManager[Engine]:
    """Open the engine at a place."""
    if not place.url:
        empty_store.put_at(place.path)
        return sqlite.open_engine(place.path)
    from wholefeed.store import postgres  # noqa: PLC0415 - an extra

    return postgres.open_engine(place.url, connections=4)


@pytest.fixture
async def engine(place: Place) -> AsyncIterator[Engine]:
    async with opened(place) as engine:
        yield engine


def create(db: Database, url: str = URL) -> FeedRow:
    return feed_table.create(
        db, url=url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=1763770000.12
    )


def count_up(db: Database) -> int:
    run(db, "UPDATE feed SET revision = revision + 1")
    return int(fetch_value(db, REVISION))


async def test_values_come_back_as_they_were(engine: Engine) -> None:
    """Instants to the microsecond, truth values as numbers, bytes, odd texts, NULL."""
    odd = "https://example.org/\0\x7f?%s" + ("\ud800" if engine.is_shared else "")
    feed = await engine.write(lambda db: create(db, odd))
    changes: Any = {"is_stale": True, "head": b"\0\xff%s", "notes": '["%"]'}
    await engine.write(lambda db: feed_table.update(db, feed.id, changes), feed=feed.id)
    row = await engine.read(lambda db: fetch_one(db, "SELECT * FROM feed WHERE url = :url", {"url": odd}))
    assert row is not None
    assert row["first_seen_at"] == 1763770000.12
    assert (row["url"], row["is_stale"], row["head"], row["digest"]) == (odd, 1, b"\0\xff%s", None)
    assert type(row["is_stale"]) is int
    assert type(row["head"]) is bytes


async def test_a_row_is_read_by_place_by_name_and_in_order(engine: Engine) -> None:
    """Rows work as `sqlite3.Row` does."""
    row = await engine.read(
        lambda db: fetch_one(db, "SELECT 1 AS a, 'x' AS b, sum(n) AS c FROM (SELECT 2 AS n) AS n")
    )
    assert row is not None
    assert (row[0], row["b"], row[-1]) == (1, "x", 2)
    assert {name: row[name] for name in row.keys()} == {"a": 1, "b": "x", "c": 2}  # noqa: SIM118 - a row
    assert (list(row), len(row), row.keys()) == ([1, "x", 2], 3, ["a", "b", "c"])
    with pytest.raises(IndexError):
        row["d"]


async def test_a_read_is_of_one_moment(engine: Engine) -> None:
    """Row 66a: commits between the statements of a read stay unseen, at the first run and later."""
    await engine.write(create)
    for _ in range(2):
        has_read, is_changed = threading.Event(), threading.Event()

        def read(
            db: Database, read: threading.Event = has_read, changed: threading.Event = is_changed
        ) -> bool:
            before = fetch_value(db, REVISION)
            is_same = bool(fetch_value(db, REVISION) == before)
            read.set()
            assert changed.wait(10)
            return is_same and bool(fetch_value(db, REVISION) == before)

        reading = asyncio.create_task(engine.read(read))
        assert await asyncio.to_thread(has_read.wait, 10)
        await engine.write(count_up)
        is_changed.set()
        assert await reading


@pytest.mark.parametrize("is_single", [False, True])
async def test_what_reads_cannot_write(engine: Engine, *, is_single: bool) -> None:
    """docs/design.md#the-store."""
    await engine.write(create)
    with pytest.raises((StorageFullError, AssertionError)):
        await engine.read(lambda db: run(db, "DELETE FROM feed"), is_single=is_single)
    assert await engine.read(lambda db: fetch_value(db, COUNT)) == 1


async def test_reads_that_fail_keep_no_connection(engine: Engine) -> None:
    """More failed reads than connections do not block the next read."""
    for _ in range(5):
        with pytest.raises(StoreError, match="nowhere"):
            await engine.read(lambda db: fetch_all(db, "SELECT * FROM nowhere"))
    assert await engine.read(lambda db: fetch_value(db, "SELECT 7")) == 7


async def test_what_work_raises_undoes_it_and_comes_through(engine: Engine) -> None:
    """Row 67: the connection stays usable."""

    def work(db: Database) -> None:
        create(db)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await engine.write(work)
    assert await engine.read(lambda db: fetch_value(db, COUNT)) == 0


async def test_who_listens_is_told_before_who_asked(engine: Engine) -> None:
    """Listeners get the feed, or the requested result. An undone transaction tells nobody, so holders of the
    feed can still answer, unless others have forgotten it."""

    def fail(_: Database) -> None:
        raise UnknownFeedError("it was forgotten")

    told = list[object]()
    engine.on_change = told.append
    feed = (await engine.write(create)).id
    assert told == []
    await engine.write(count_up, feed=feed)
    assert told == [feed]
    await engine.write(count_up, feed=feed, tell=lambda result: told.append(("told", result)))
    assert told[1:] == [("told", 2)]
    with pytest.raises(StoreError, match="nowhere"):
        await engine.write(lambda db: run(db, "DELETE FROM nowhere"), feed=feed, tell=told.append)
    assert told[2:] == []
    with pytest.raises(UnknownFeedError):
        await engine.write(fail, feed=feed, tell=told.append)
    assert told[2:] == ([feed] if engine.is_shared else [])


async def test_who_leaves_stops_no_transaction(engine: Engine) -> None:
    """docs/design.md#the-store: the transaction completes, and listeners are told."""
    feed = (await engine.write(create)).id
    has_begun, may_go_on, is_told = threading.Event(), threading.Event(), asyncio.Event()
    engine.on_change = lambda _: is_told.set()

    def work(db: Database) -> None:
        has_begun.set()
        may_go_on.wait(10)
        count_up(db)

    writing = asyncio.create_task(engine.write(work, feed=feed))
    assert await asyncio.to_thread(has_begun.wait, 10)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    may_go_on.set()
    await asyncio.wait_for(is_told.wait(), 10)
    assert await engine.read(lambda db: fetch_value(db, REVISION)) == 1


async def test_closing_finishes_what_writes_and_ends_what_reads(place: Place) -> None:
    """Row 74: a stopped process waits for no slow reader, and loses no accepted write."""
    slow_sql = "SELECT pg_sleep(30)" if place.url else ENDLESS
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(opened(place))
        has_begun = threading.Event()

        def slow(db: Database) -> None:
            has_begun.set()
            fetch_all(db, slow_sql)

        reading = asyncio.create_task(engine.read(slow))
        writing = asyncio.create_task(engine.write(create))
        assert await asyncio.to_thread(has_begun.wait, 10)
        await asyncio.sleep(0.1)  # the statement has reached the database
        began_at = time.monotonic()
        await stack.aclose()
        assert time.monotonic() - began_at < 10
    assert (await writing).url == URL
    with pytest.raises(OverloadedError) as caught:
        await reading
    assert caught.value.slug == "shutting-down"
    with pytest.raises(OverloadedError):
        await engine.write(create)
    with pytest.raises(OverloadedError):
        await engine.read(lambda db: fetch_value(db, "SELECT 1"))
