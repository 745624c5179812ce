"""The store: durability, delayed writes, and size."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.named_store import NamedStore
from tests.sqlite_faults import Connections, SqliteFaults, rows
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry, publish
from tests.store.places import Place
from wholefeed.errors import OverloadedError, StorageFullError, StoreUnusableError
from wholefeed.store import sqlite_file, store
from wholefeed.store import store as store_module
from wholefeed.store.base import fetch_value
from wholefeed.store.engine_choice import open_shared
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Engine, Summary, Upkeep
from wholefeed.store.tables.segment_table import Pins

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
    """Row 67: feed, body and live entries survive a restart; SQLite's in one file without a log."""
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
    """docs/faults.md row 68: readers get stored feeds; readiness fails, and recovers by itself."""
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
    """docs/design.md#the-store: an open connection hangs the process at exit."""
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


FRESH_UNTIL = "SELECT checked_at, fresh_until FROM feed"


def nobody(*_: object) -> None:
    """A listener that ignores notices."""


async def a_checked_feed(store: NamedStore) -> tuple[FeedRow, int]:
    """A feed of one document, with the row of its check, and the document."""
    feed = await a_feed(store)
    document, *_ = await store.put_documents(feed.id, [a_document(URL, an_entry("a"))], now=NOW)
    found = await store.feed(feed.id)
    assert found is not None
    return replace(found, checked_at=NOW + 5, fresh_until=NOW + 60), document


async def test_it_is_read_at_once_and_written_a_moment_later(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R13: a read returns it at once; the file gets it without a request."""
    monkeypatch.setattr(store_module, "WRITE_SECONDS", 0.05)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        assert store.store.note_unchanged(row, document)
        assert rows(database, FRESH_UNTIL) == [(None, None)]
        async with asyncio.timeout(300):
            while rows(database, FRESH_UNTIL) != [(NOW + 5, NOW + 60)]:
                await asyncio.sleep(0.01)
        assert rows(database, "SELECT checked_at FROM document") == [(NOW + 5,)]

        again = replace(row, checked_at=NOW + 70, fresh_until=NOW + 90)
        assert store.store.note_unchanged(again, document)
        assert await store.feed(row.id) == again


async def test_what_is_written_after_it_is_not_undone(database: Path) -> None:
    """A later note is newer: for example that the publisher could not be reached."""
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        store.store.note_unchanged(row, document)
        await store.update_feed(row.id, fresh_until=NOW + 7)
        found = await store.feed(row.id)

    assert found == replace(row, fresh_until=NOW + 7)
    assert rows(database, FRESH_UNTIL) == [(NOW + 5, NOW + 7)]


@pytest.mark.fault("73")
async def test_it_counts_for_more_than_what_a_wrong_clock_wrote(database: Path) -> None:
    """docs/faults.md row 73: a later stored time can only come from a wrong clock."""
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        await store.update_feed(row.id, checked_at=NOW + 3600, fresh_until=NOW + 7200)
        store.store.note_unchanged(row, document)
        async with store.store.snapshot(row.id) as snapshot:
            assert (snapshot.feed.checked_at, snapshot.feed.fresh_until) == (NOW + 5, NOW + 60)


async def test_who_reads_does_not_wait_behind_a_long_transaction(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other feeds are read meanwhile; holders of the changed feed drop it afterwards."""
    monkeypatch.setattr(store_module, "READ_SECONDS", 0.05)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        told: list[int] = []
        store.store.engine.on_change = told.append
        may_end = threading.Event()
        long = asyncio.create_task(store.write(lambda _: may_end.wait(30)))
        try:
            await asyncio.sleep(0)
            assert store.store.note_unchanged(row, document)
            async with asyncio.timeout(300):
                found = [await store.feed(row.id) for _ in range(3)]
        finally:
            may_end.set()
        assert await long
        assert found == [replace(row, checked_at=None, fresh_until=None)] * 3
        await store.write(lambda _: None)
        assert await store.feed(row.id) == row
        assert told == [row.id]


async def test_answers_do_not_wait_for_it(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers and look-ups by URL include it; another feed's answer leaves at once."""
    monkeypatch.setattr(store_module, "READ_SECONDS", 30)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        other = await a_feed(store, URL + "/2")
        may_end = threading.Event()
        long = asyncio.create_task(store.write(lambda _: may_end.wait(30)))
        try:
            await asyncio.sleep(0)
            assert store.store.note_unchanged(row, document)
            async with asyncio.timeout(300):
                assert await store.store.find(other.url) == other
                async with store.store.snapshot(other.id) as found:
                    assert found.feed == other
                async with store.store.snapshot(row.id) as found:
                    assert found.feed == row
        finally:
            may_end.set()
        await long
        assert await store.store.find(URL) == row


async def test_what_cannot_be_written_is_told_to_have_changed(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows 68, 70: holders drop the feed; the next write runs at once, and fails."""
    faults = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", faults.connect)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        told: list[int] = []
        store.store.engine.on_change = told.append
        faults.arm(1, "SQLITE_FULL", for_good=True)

        assert store.store.note_unchanged(row, document)
        found = await store.feed(row.id)

        assert told == [row.id]
        assert found is not None
        assert found.fresh_until is None
        assert not store.store.note_unchanged(row, document)
        faults.heal()


class Measuring:
    """An engine that measures the store for as long as a test says."""

    is_shared = True

    def __init__(self) -> None:
        self.reads = 0
        self.may_end = asyncio.Event()

    async def read(self, _: object, *, is_long: bool = False, is_single: bool = False) -> Summary:
        self.reads += is_long
        await self.may_end.wait()
        return Summary({}, 1, 2, None)


BODY = random.Random(1).randbytes(1 << 20)
"""Incompressible."""


async def test_what_is_stored_counts_until_it_is_forgotten(store: NamedStore) -> None:
    """Row 68: eviction continues until the rest fits, so deleted feeds must stop counting at once."""
    before = await store.upkeep.used_bytes()
    feed = (await a_feed(store)).id
    await store.put_documents(feed, [a_document(URL, an_entry("a"), body=BODY)], now=NOW)
    await publish(store, feed)

    stored = await store.upkeep.used_bytes() - before
    await store.forget(feed, now=NOW)

    assert len(BODY) * 0.95 < stored < len(BODY) * 1.2  # free pages are used first
    assert await store.upkeep.used_bytes() - before < len(BODY) // 20


async def test_without_a_feed_as_much_less_is_stored_as_it_takes(postgres_url: str) -> None:
    """Evicting many feeds sums the rows of each, and all rows once: both agree."""
    async with open_shared(postgres_url, connections=2) as opened:
        store = NamedStore(opened)
        for number, name in enumerate("abc"):
            feed = (await a_feed(store, f"{URL}/{name}")).id
            held = [
                a_document(f"{URL}/{name}/{n}", an_entry(str(n)), body=BODY[:n]) for n in range(1, number + 2)
            ]
            await store.put_documents(feed, held, now=NOW)
            await publish(store, feed)
        await a_feed(store)
        used_bytes = await store.upkeep.used_bytes()
        for feed, _ in await store.upkeep.least_asked():
            own_bytes = await store.upkeep.feed_bytes(feed)
            assert own_bytes
            await store.forget(feed, now=NOW)
            used_bytes -= own_bytes
            assert await store.upkeep.used_bytes() == used_bytes
        assert used_bytes == 0


async def test_the_summary_says_how_large_it_is(store: NamedStore, place: Place) -> None:
    """The free space of an absent volume is unknown."""
    await a_feed(store)
    summary = await store.upkeep.summary()

    assert summary is not None
    assert summary.feeds == {"loading": (1, 0)}
    assert summary.file_bytes > 0
    assert summary.used_bytes > 0
    assert (summary.free_bytes is None) == bool(place.url)


async def test_a_long_measurement_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 107: the other figures come in time, and the measurement ends though its client has left."""
    monkeypatch.setattr(store, "SUM_UP_SECONDS", 0.02)
    engine = Measuring()
    measured = Upkeep(cast(Engine, engine), Pins())
    for _ in range(2):
        async with asyncio.timeout(300):
            assert await measured.summary() is None
    engine.may_end.set()
    await asyncio.sleep(0)
    assert await measured.summary() == Summary({}, 1, 2, None)
    assert engine.reads == 1


async def test_a_store_that_does_not_answer_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 107: its summary may be old and does not show that."""
    monkeypatch.setattr(store, "ANSWER_SECONDS", 0.02)
    silent = Upkeep(cast(Engine, Measuring()), Pins())
    with pytest.raises(OverloadedError):
        async with asyncio.timeout(300):
            await silent.require_answer()
