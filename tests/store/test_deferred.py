"""wholefeed.store.store: what is written a moment later is there for whoever asks."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.named_store import NamedStore
from tests.sqlite_faults import SqliteFaults, rows
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from wholefeed.store import sqlite_file
from wholefeed.store import store as store_module
from wholefeed.store.rows import FeedRow

FRESH_UNTIL = "SELECT checked_at, fresh_until FROM feed"


def nobody(*_: object) -> None:
    """Nothing is done with what is told."""


async def a_checked_feed(store: NamedStore) -> tuple[FeedRow, int]:
    """A feed of one document, with the row that says that it was looked at, and the document."""
    feed = await a_feed(store)
    document, *_ = await store.put_documents(feed.id, [a_document(URL, an_entry("a"))], now=NOW)
    found = await store.feed(feed.id)
    assert found is not None
    return replace(found, checked_at=NOW + 5, fresh_until=NOW + 60), document


async def test_it_is_read_at_once_and_written_a_moment_later(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R13: whoever asks the store has it; the file has it without anybody asking."""
    monkeypatch.setattr(store_module, "WRITE_SECONDS", 0.05)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        assert store.store.note_unchanged(row, document)
        assert rows(database, FRESH_UNTIL) == [(None, None)]
        async with asyncio.timeout(10):
            while rows(database, FRESH_UNTIL) != [(NOW + 5, NOW + 60)]:
                await asyncio.sleep(0.01)
        assert rows(database, "SELECT checked_at FROM document") == [(NOW + 5,)]

        again = replace(row, checked_at=NOW + 70, fresh_until=NOW + 90)
        assert store.store.note_unchanged(again, document)
        assert await store.feed(row.id) == again


async def test_what_is_written_after_it_is_not_undone(database: Path) -> None:
    """What is remarked later is newer: it may be that the publisher could not be reached."""
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        store.store.note_unchanged(row, document)
        await store.update_feed(row.id, fresh_until=NOW + 7)
        found = await store.feed(row.id)

    assert found == replace(row, fresh_until=NOW + 7)
    assert rows(database, FRESH_UNTIL) == [(NOW + 5, NOW + 7)]


@pytest.mark.fault("73")
async def test_it_counts_for_more_than_what_a_wrong_clock_wrote(database: Path) -> None:
    """docs/faults.md row 73: later than what has just been said can only be what was of the future."""
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        await store.update_feed(row.id, checked_at=NOW + 3600, fresh_until=NOW + 7200)
        store.store.note_unchanged(row, document)
        async with store.store.snapshot(row.id) as snapshot:
            assert (snapshot.feed.checked_at, snapshot.feed.fresh_until) == (NOW + 5, NOW + 60)


async def test_a_store_that_is_closed_has_written_it(database: Path) -> None:
    """Nothing is asked of publishers again because of a restart."""
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        store.store.note_unchanged(row, document)

    assert rows(database, FRESH_UNTIL) == [(NOW + 5, NOW + 60)]


async def test_who_reads_does_not_wait_behind_a_long_transaction(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other feeds are read meanwhile as ever; who held this one as it was lets go of it afterwards."""
    monkeypatch.setattr(store_module, "READ_SECONDS", 0.05)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        told: list[int] = []
        store.store.on_change(told.append)
        may_end = threading.Event()
        long = asyncio.create_task(store.write(lambda _: may_end.wait(30)))
        try:
            await asyncio.sleep(0)
            assert store.store.note_unchanged(row, document)
            async with asyncio.timeout(5):
                found = [await store.feed(row.id) for _ in range(3)]
        finally:
            may_end.set()
        assert await long
        assert found == [replace(row, checked_at=None, fresh_until=None)] * 3
        await store.write(lambda _: None)
        assert await store.feed(row.id) == row
        assert told == [row.id]


async def test_answers_do_not_wait_for_it(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have it, as has whoever asks by a URL; one of another feed leaves at once, too."""
    monkeypatch.setattr(store_module, "READ_SECONDS", 30)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        other = await a_feed(store, URL + "/2")
        may_end = threading.Event()
        long = asyncio.create_task(store.write(lambda _: may_end.wait(30)))
        try:
            await asyncio.sleep(0)
            assert store.store.note_unchanged(row, document)
            async with asyncio.timeout(5):
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
    """Rows 68, 70: whoever holds the feed lets go of it; the next one is written at once, and fails."""
    faults = SqliteFaults()
    monkeypatch.setattr(sqlite_file, "connect", faults.connect)
    async with NamedStore.open(database) as store:
        row, document = await a_checked_feed(store)
        told: list[int] = []
        store.store.on_change(told.append)
        faults.arm(1, "SQLITE_FULL", for_good=True)

        assert store.store.note_unchanged(row, document)
        found = await store.feed(row.id)

        assert told == [row.id]
        assert found is not None
        assert found.fresh_until is None
        assert not store.store.note_unchanged(row, document)
        faults.heal()
