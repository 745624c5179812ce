"""A database that goes away: restarted, cut off, ended by an administrator, full, read-only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from tests.patching import set_constant
from tests.postgres import Cluster
from tests.store.postgres.conftest import open_engine
from tests.store.postgres.relay import Relay, a_relay
from tests.store.postgres.test_engine import count_up, create
from wholefeed.config.tables import StoreConfig
from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError
from wholefeed.store.base import Database, fetch_all, fetch_value, run
from wholefeed.store.opening import migrate_store
from wholefeed.store.store import Store

if TYPE_CHECKING:
    from wholefeed.store.postgres import PostgresEngine

END_OWN = "SELECT pg_terminate_backend(pg_backend_pid())"
COUNT = "SELECT count(*) FROM feed"
END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database()
"""
REVISION = "SELECT revision FROM feed"


@pytest.fixture
async def relay(postgres_url: str) -> AsyncIterator[Relay]:
    async with a_relay(postgres_url) as relay:
        yield relay


@pytest.fixture
async def relayed(relay: Relay) -> AsyncIterator[PostgresEngine]:
    """An engine whose connections go by way of the relay."""
    async with open_engine(relay.url, connections=4) as engine:
        yield engine


@pytest.fixture
def cluster(own_postgres: Cluster) -> Cluster:
    """A server of the test's own, to be stopped."""
    return own_postgres


@pytest.mark.parametrize("is_first", [True, False], ids=["at the first statement", "after a change"])
async def test_a_connection_lost_in_a_transaction_is_repeated(engine: PostgresEngine, is_first: bool) -> None:
    """Nothing of it can be stored, so it is done again, once, on another connection."""
    feed = (await engine.write(create)).id
    ended = list[bool]()

    def work(db: Database) -> int:
        if is_first and not ended:
            ended.append(True)
            run(db, END_OWN)
        revision = count_up(db, feed)
        if not ended:
            ended.append(True)
            run(db, END_OWN)
        return revision

    assert await engine.write(work, feed=feed) == 1
    assert ended == [True]
    assert await engine.read(lambda db: fetch_value(db, REVISION)) == 1


async def test_a_read_whose_connection_is_lost_is_repeated(engine: PostgresEngine) -> None:
    """Connections that a restart has cut are found out by using them."""
    ended = list[bool]()

    def work(db: Database) -> int:
        count = int(fetch_value(db, COUNT))
        if not ended:
            ended.append(True)
            run(db, END_OWN)
        return count

    assert await engine.read(work) == 0


@pytest.mark.fault("71a")
async def test_a_commit_whose_answer_is_lost_is_not_done_twice(relay: Relay, relayed: PostgresEngine) -> None:
    """The server is asked what became of the transaction: it was committed."""
    feed = (await relayed.write(create)).id
    told = list[int]()
    relayed.on_change = told.append
    relay.cut_at_commit(reaches_server=True)
    assert await relayed.write(lambda db: count_up(db, feed), feed=feed) == 1
    assert await relayed.read(lambda db: fetch_value(db, REVISION)) == 1
    assert told == [feed]


@pytest.mark.fault("71a")
async def test_a_commit_that_never_reached_the_server_is_done_again(
    relay: Relay, relayed: PostgresEngine
) -> None:
    """The server is asked what became of the transaction: it was undone."""
    feed, runs = (await relayed.write(create)).id, list[int]()

    def work(db: Database) -> int:
        runs.append(1)
        return count_up(db, feed)

    relay.cut_at_commit(reaches_server=False)
    assert await relayed.write(work, feed=feed) == 1
    assert len(runs) == 2
    assert await relayed.read(lambda db: fetch_value(db, REVISION)) == 1


@pytest.mark.fault("71b")
async def test_a_commit_that_nobody_can_tell_about_is_an_error(
    relay: Relay, relayed: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server stays away: whoever asked is told to come again, and memory that the feed may be another."""
    feed = (await relayed.write(create)).id
    told = list[int]()
    relayed.on_change = told.append
    set_constant(monkeypatch, "PATIENCE_SECONDS", 0.5)
    relay.cut_at_commit(reaches_server=True)

    def work(db: Database) -> int:
        relay.is_open = False
        return count_up(db, feed)

    with pytest.raises(OverloadedError) as caught:
        await relayed.write(work, feed=feed)
    assert caught.value.retry_after_seconds > 0
    assert told == [feed]


async def test_another_server_knows_nothing_of_a_commit(
    relay: Relay, relayed: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of transactions mean others on a standby that was promoted: its word is not taken."""
    feed = (await relayed.write(create)).id
    set_constant(monkeypatch, "HISTORY", "SELECT CAST(clock_timestamp() AS text)")
    relay.cut_at_commit(reaches_server=True)
    with pytest.raises(OverloadedError, match="what became of a COMMIT is not known"):
        await relayed.write(lambda db: count_up(db, feed), feed=feed)


@pytest.mark.fault("71a")
async def test_a_restart_is_waited_for_by_who_writes_and_told_to_who_reads(cluster: Cluster) -> None:
    """A walk goes on behind it; a reader is answered from memory, or told to come again, at once."""
    await migrate_store(StoreConfig(url=cluster.url()))
    async with open_engine(cluster.url(), connections=4) as engine:
        feed = (await engine.write(create)).id
        assert await engine.read(lambda db: fetch_value(db, COUNT)) == 1
        await asyncio.to_thread(cluster.stop, "immediate")
        began_at = time.monotonic()
        with pytest.raises(OverloadedError) as caught:
            await engine.read(lambda db: fetch_value(db, COUNT))
        assert time.monotonic() - began_at < 2
        assert caught.value.retry_after_seconds > 0
        writing = [
            asyncio.create_task(engine.write(lambda db: count_up(db, feed), feed=feed)) for _ in range(5)
        ]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(cluster.start)
        assert sorted(await asyncio.gather(*writing)) == [1, 2, 3, 4, 5]
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await engine.read(lambda db: fetch_value(db, REVISION)) == 5
                    break
                except OverloadedError:
                    await asyncio.sleep(0.1)


@pytest.mark.fault("71b")
async def test_a_server_that_stays_away_fails_writes_in_time(
    relay: Relay, relayed: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is not told: the feed is what it was. And the next one after it is back goes through."""
    feed = (await relayed.write(create)).id
    told = list[int]()
    relayed.on_change = told.append
    set_constant(monkeypatch, "PATIENCE_SECONDS", 0.5)
    relay.is_open = False
    relay.cut_all()
    with pytest.raises(OverloadedError):
        await relayed.write(lambda db: count_up(db, feed), feed=feed)
    assert told == []
    relay.is_open = True
    monkeypatch.undo()
    assert await relayed.write(lambda db: count_up(db, feed), feed=feed) == 1
    assert told == [feed]


async def test_a_server_that_answers_nothing_fails_reads_in_time(
    relay: Relay, relayed: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when packets are dropped on the way; the same connections serve when they come again."""
    assert await relayed.read(lambda db: fetch_value(db, COUNT)) == 0
    set_constant(monkeypatch, "PATIENCE_SECONDS", 0.3)
    relay.is_silent = True
    with pytest.raises(OverloadedError, match="does not answer in time"):
        await relayed.read(lambda db: fetch_value(db, COUNT))
    relay.is_silent = False
    monkeypatch.undo()
    assert await relayed.read(lambda db: fetch_value(db, COUNT)) == 0


@pytest.mark.fault("107")
async def test_what_a_silent_server_was_writing_is_done_on_another_connection(
    relay: Relay, relayed: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A primary may be halted for good: its connections are not for ever those that write."""
    feed, runs = (await relayed.write(create)).id, list[int]()
    set_constant(monkeypatch, "WRITE_SECONDS", 0.5)

    def work(db: Database) -> int:
        runs.append(1)
        relay.is_silent = len(runs) == 1
        return count_up(db, feed)

    writing = asyncio.create_task(relayed.write(work))
    async with asyncio.timeout(10):
        while not relay.is_silent:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.6)
        relay.is_silent = False
        assert await writing == 1
    assert len(runs) == 2


@pytest.mark.fault("71a")
async def test_who_finds_no_connection_takes_turns_on_those_that_there_are(
    relay: Relay, relayed: PostgresEngine
) -> None:
    """The server takes no more of them: nobody is refused as long as it answers on one."""
    assert await relayed.read(lambda db: fetch_value(db, COUNT)) == 0
    relay.is_open = False
    asked = [relayed.read(lambda db: fetch_value(db, "SELECT 7 FROM pg_sleep(0.1)")) for _ in range(8)]
    assert await asyncio.gather(*asked) == [7] * 8
    relay.is_open = True


@pytest.mark.fault("107")
async def test_a_silent_server_does_not_keep_an_engine_from_closing(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads and writes that are under way are told that it closes; what was not committed is not there."""
    set_constant(monkeypatch, "CLOSE_SECONDS", 0.3)
    async with open_engine(relay.url, connections=4) as engine:
        feed = (await engine.write(create)).id
        relay.is_silent = True
        asked = [
            asyncio.create_task(engine.write(lambda db: count_up(db, feed), feed=feed)),
            asyncio.create_task(engine.write_at_once(lambda db: run(db, "SELECT 1"))),
            asyncio.create_task(engine.read(lambda db: fetch_value(db, COUNT))),
        ]
        await asyncio.sleep(0.1)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in results] == [OverloadedError] * 3
    relay.is_silent = False
    async with open_engine(relay.url) as again:
        assert await again.read(lambda db: fetch_value(db, REVISION)) == 0


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ("53100", StorageFullError),
        ("25006", StorageFullError),
        ("XX001", StoreDamagedError),
        ("53200", OverloadedError),
        ("57014", OverloadedError),
        ("55P03", OverloadedError),
        ("40001", OverloadedError),
        ("23514", StoreError),
        ("42P01", StoreError),
    ],
)
async def test_what_the_server_says_is_told_as_what_it_means(
    engine: PostgresEngine, state: str, error: type[StoreError]
) -> None:
    """Full and read-only, damaged, busy: the same errors as SQLite's, which readers know what to do about."""
    code = f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}', DETAIL = 'secret'; END $$"
    with pytest.raises(error) as caught:
        await engine.write(lambda db: run(db, code))
    assert type(caught.value) is error
    assert "secret" not in str(caught.value)


@pytest.mark.fault("71a")
async def test_a_full_disk_is_noticed_and_so_is_room(engine: PostgresEngine) -> None:
    """What is stored is still read; `check` tries to write, and finds that it can be again."""
    fail = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$"
    await engine.write(lambda db: run(db, fail))
    trigger = "CREATE TRIGGER full_disk BEFORE INSERT ON {} EXECUTE FUNCTION fail()"
    for table in ("feed", "probe"):
        await engine.write(lambda db, table=table: run(db, trigger.format(table)))  # type: ignore[misc]
    store = Store(engine)
    with pytest.raises(StorageFullError):
        await store.write(create)
    assert not store.is_writable
    assert await store.read(lambda db: fetch_value(db, COUNT)) == 0
    with pytest.raises(StorageFullError):
        await store.check()
    for table in ("feed", "probe"):
        await engine.write(lambda db, table=table: run(db, f"DROP TRIGGER full_disk ON {table}"))  # type: ignore[misc]
    await store.check()
    assert store.is_writable


@pytest.mark.fault("71a")
async def test_a_database_that_was_made_read_only_is_told_and_recovers(
    engine: PostgresEngine, postgres_url: str
) -> None:
    """By an administrator, or by a server that is a standby now: each try is on a connection of its own."""
    feed = (await engine.write(create)).id
    name = await engine.read(lambda db: fetch_value(db, "SELECT current_database()"))

    def set_read_only(value: str) -> None:
        import psycopg  # noqa: PLC0415 - an extra

        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute("SET default_transaction_read_only = off")
            db.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}')
            db.execute(END_OTHERS)

    await asyncio.to_thread(set_read_only, "on")
    with pytest.raises(StorageFullError):
        await engine.write(lambda db: count_up(db, feed), feed=feed)
    assert not engine.condition.is_sound
    assert await engine.read(lambda db: fetch_value(db, COUNT)) == 1
    await asyncio.to_thread(set_read_only, "off")
    await engine.write(lambda db: count_up(db, feed), feed=feed)
    assert engine.condition.is_sound


async def test_a_table_that_another_replica_has_changed_is_read_on(engine: PostgresEngine) -> None:
    """A statement that was prepared before is refused by the server: it is prepared anew."""
    feed = (await engine.write(create)).id

    def read(db: Database) -> list[str]:
        [row] = fetch_all(db, "SELECT * FROM feed WHERE id = :feed", {"feed": feed})
        return list(row.keys())

    before = await engine.read(read)
    for _ in range(12):  # so often that it is prepared
        assert await engine.read(read) == before
    await engine.write(lambda db: run(db, "ALTER TABLE feed ADD COLUMN another integer"))
    assert await engine.read(read) == [*before, "another"]
