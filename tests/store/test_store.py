from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from tests.named_store import NamedStore
from tests.sqlite_faults import Connections
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry, publish
from tests.store.places import Place
from wholefeed.errors import StorageFullError, StoreUnusableError
from wholefeed.futures import to_the_end
from wholefeed.store import sqlite_file
from wholefeed.store.base import fetch_value

ENTRIES = 50
ROOT = Path(__file__).parents[2]
WRITES_FOR_EVER = f"""
import asyncio, sys
from pathlib import Path
from tests.store.places import Place
from tests.store.makers import NOW, a_document, a_feed, an_entry, publish

async def main():
    async with Place(Path(sys.argv[1]), sys.argv[2]).opened() as store:
        feed = (await a_feed(store)).id
        for n in range(100000):
            entries = [an_entry(f"{{n}}-{{at}}") for at in range({ENTRIES})]
            document = a_document(f"http://o.test/{{n}}", *entries, rank=n, body=b"%d" % n * 2000)
            (number,) = await store.put_documents(feed, [document], now=NOW)
            await publish(store, feed)
            print(number, n, flush=True)

asyncio.run(main())
"""


def files(database: Path) -> set[str]:
    return {item.name for item in database.parent.iterdir()}


async def test_what_was_stored_is_there_after_a_restart(place: Place) -> None:
    """Row 67: feed, body and live entries are there after closing and opening; of SQLite in one file, without
    a log beside it."""
    async with place.opened() as store:
        feed = (await a_feed(store)).id
        (number,) = await store.put_documents(feed, [a_document(URL, an_entry("a"), body=b"x")], now=NOW)
        before = await publish(store, feed)

    async with place.opened() as store:
        assert await store.feed_by_url(URL) == before
        assert await store.body(number) == b"x"
        assert await store.live_ordinals([number]) == {number: (0,)}
    assert files(place.path) == (set() if place.url else {"store.db", "store.db.lock"})


async def test_a_database_that_is_not_current_is_refused(tmp_path: Path) -> None:
    """Row 70: a missing or empty file is not opened as a store."""
    with pytest.raises(StoreUnusableError, match="no database"):
        async with NamedStore.open(tmp_path / "store.db"):
            pass
    (tmp_path / "empty.db").write_bytes(b"")
    with pytest.raises(StoreUnusableError, match="is empty"):
        async with NamedStore.open(tmp_path / "empty.db"):
            pass


async def test_a_second_process_is_refused(database: Path) -> None:
    """docs/design.md#the-store: exactly one connection writes and checkpoints."""
    async with NamedStore.open(database):
        with pytest.raises(StoreUnusableError, match="in use by another process"):
            async with NamedStore.open(database):
                pass
    async with NamedStore.open(database) as store:
        await store.check()


@pytest.mark.fault("67")
async def test_a_killed_process_leaves_whole_documents(place: Place) -> None:
    """docs/faults.md row 67: all acknowledged documents are there, and no half document."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITES_FOR_EVER, str(place.path), place.url,
        stdout=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        acknowledged = [(await process.stdout.readline()).split() for _ in range(25)]
    finally:
        process.kill()
    rest = await process.stdout.read()
    acknowledged += [line.split() for line in rest.splitlines(keepends=True) if line.endswith(b"\n")]
    await process.wait()

    async with place.opened() as store:
        found = await store.feed_by_url(URL)
        assert found is not None
        stored = {row.id: row for row in await store.documents(found.id)}
        assert len(acknowledged) <= len(stored) <= len(acknowledged) + 1
        assert {int(number) for number, _ in acknowledged} <= stored.keys()
        live = await store.live_ordinals(stored)
        for number, row in stored.items():
            assert await store.body(number) == row.url.rpartition("/")[2].encode() * 2000
            assert live[number] == tuple(range(ENTRIES))
        assert await publish(store, found.id) is not None
    if not place.url:
        assert place.rows("PRAGMA integrity_check") == [("ok",)]
        assert place.rows("PRAGMA foreign_key_check") == []


@pytest.mark.fault("68")
async def test_a_full_volume_is_told_until_there_is_room(connections: Connections, database: Path) -> None:
    """docs/faults.md row 68: readers get what is stored; readiness fails, and recovers by itself."""
    async with NamedStore.open(database) as store:
        feed = (await a_feed(store)).id
        await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
        await publish(store, feed)
        await store.check()
        pages = await connections.writer.hop(lambda db: fetch_value(db, "PRAGMA page_count"))
        await connections.writer.execute(f"PRAGMA max_page_count = {pages}")
        large = a_document("http://o.test/large", *[an_entry(f"{n}") for n in range(1000)])

        with pytest.raises(StorageFullError):
            await store.put_documents(feed, [large], now=NOW)
        with pytest.raises(StorageFullError):
            await store.check()
        async with store.snapshot(feed) as snapshot:
            await store.block(snapshot.segments[0].id)

        await connections.writer.execute(f"PRAGMA max_page_count = {pages + 1000}")
        await store.check()
        await store.put_documents(feed, [large], now=NOW)
        assert len(await store.documents(feed)) == 2


@pytest.mark.fault("69")
async def test_a_read_only_volume_serves_what_is_stored(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/faults.md row 69."""
    async with NamedStore.open(database) as store:
        feed = (await a_feed(store)).id
        await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
        before = await publish(store, feed)
    monkeypatch.setattr(sqlite_file, "is_writable", lambda _: False)
    monkeypatch.setattr(sqlite_file, "is_writable", lambda _: False)
    names = files(database)

    async with NamedStore.open(database) as store:
        async with store.snapshot(feed) as snapshot:
            assert snapshot.feed == before
            assert await store.block(snapshot.segments[0].id)
        with pytest.raises(StorageFullError):
            await a_feed(store, "http://o.test/new")
        with pytest.raises(StorageFullError):
            await store.check()
    assert files(database) == names


async def test_random_cancellations_leave_whole_documents(store: NamedStore) -> None:
    """docs/design.md#the-store."""
    feed = (await a_feed(store)).id
    for n in range(60):
        entries = [an_entry(f"{n}-{at}") for at in range(20)]
        task = asyncio.create_task(
            store.put_documents(feed, [a_document(f"{URL}/{n}", *entries, rank=n)], now=NOW)
        )
        for _ in range(n % 12):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    await store.update_feed(feed, asked_at=NOW)  # stands behind everything that was asked for
    rows = await store.documents(feed)
    live = await store.live_ordinals([row.id for row in rows])
    assert len(rows) > 20
    assert all(ordinals == tuple(range(20)) for ordinals in live.values())


async def test_a_store_that_is_closed_while_cancelled_leaves_no_thread(database: Path) -> None:
    """docs/design.md#the-store: a connection that is not closed hangs the process at exit."""
    is_open = asyncio.Event()

    async def serve() -> None:
        async with NamedStore.open(database):
            is_open.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(serve())
    await is_open.wait()
    workers = [t for t in threading.enumerate() if "_connection_worker_thread" in t.name]
    assert len(workers) >= 5
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task

    for worker in workers:
        await asyncio.to_thread(worker.join, 5)
        assert not worker.is_alive()
    async with NamedStore.open(database) as store:
        await store.check()


async def test_closing_comes_to_its_end_before_a_cancellation_goes_on() -> None:
    """Row 74: a store that is being closed when its task is cancelled, even repeatedly, is closed all the
    same."""
    may_close = asyncio.Event()
    is_closed = asyncio.Event()

    async def close() -> None:
        await may_close.wait()
        is_closed.set()

    task = asyncio.create_task(to_the_end(close))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_close.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert is_closed.is_set()
