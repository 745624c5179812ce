"""PostgreSQL as the store's engine: repetition, waiting, and a database that goes away."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.named_store import NamedStore
from tests.patching import set_constant
from tests.postgres import Cluster
from tests.store.conftest import OpenEngine, connected, open_engine
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from tests.store.relay import Relay, a_relay
from wholefeed.config.tables import StoreConfig
from wholefeed.core.model import Family, Kind
from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError
from wholefeed.store.base import Database, fetch_all, fetch_value, run, run_counting
from wholefeed.store.engine_choice import migrate_store, open_shared
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import feed_table
from wholefeed.store.tables.document_table import KEEP_DETACHED_SECONDS

if TYPE_CHECKING:
    from wholefeed.store.postgres import PostgresEngine

SLOW = "SELECT pg_sleep(30)"


def create(db: Database, url: str = URL) -> FeedRow:
    return feed_table.create(
        db, url=url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=1763770000.12
    )


def count_up(db: Database, feed: int) -> int:
    """Read a number, and write its successor: wrong when another does so in between."""
    revision = int(fetch_value(db, "SELECT revision FROM feed WHERE id = :feed", {"feed": feed}))
    time.sleep(0.001)
    run(db, "UPDATE feed SET revision = :next WHERE id = :feed", {"next": revision + 1, "feed": feed})
    return revision + 1


async def test_changes_of_a_feed_by_several_replicas_follow_each_other(another: OpenEngine) -> None:
    """Each change locks the feed's row first, so that no read and write is lost."""
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(another()) for _ in range(3)]
        feed = await replicas[0].write(create)
        work = partial(count_up, feed=feed.id)
        found = await asyncio.gather(
            *(each.write(work, feed=feed.id) for _ in range(20) for each in replicas)
        )
        assert sorted(found) == list(range(1, 61))


async def test_transactions_that_wait_for_each_other_are_repeated(another: OpenEngine) -> None:
    """PostgreSQL ends one of two deadlocked transactions."""
    async with another() as one, another() as other:
        first = (await one.write(lambda db: create(db, "https://example.org/1"))).id
        second = (await one.write(lambda db: create(db, "https://example.org/2"))).id
        meeting, runs = threading.Barrier(2), list[int]()

        def work(db: Database, feeds_: tuple[int, int]) -> None:
            runs.append(feeds_[0])
            sql = "UPDATE feed SET revision = revision + 1 WHERE id = :feed"
            run_counting(db, sql, {"feed": feeds_[0]})  # it waits until it holds the row
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
    """PostgreSQL answers such a COMMIT with ROLLBACK, without an error."""

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
    """Any number of writes, of any duration, leaves readers a connection."""
    go_on = threading.Event()
    writes = [asyncio.create_task(engine.write(lambda _: go_on.wait(10))) for _ in range(20)]
    try:
        assert await asyncio.wait_for(engine.read(lambda db: fetch_value(db, "SELECT 1")), 5) == 1
    finally:
        go_on.set()
    assert all(await asyncio.gather(*writes))


async def test_writes_of_one_feed_hold_one_connection(engine: PostgresEngine) -> None:
    """They wait in the process, so that other feeds' writes go on."""
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
    """A begun refresh or answer ends, however many readers ask meanwhile."""
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
    """The reader is asked to come again, and nothing is left behind."""
    async with another(connections=1) as engine:
        go_on = threading.Event()
        busy = asyncio.create_task(engine.read(lambda _: go_on.wait(10), is_first=True))
        await asyncio.sleep(0.05)
        set_constant(monkeypatch, "PATIENCE_SECONDS", 0.1)
        with pytest.raises(OverloadedError, match="too many requests wait for the database"):
            await engine.read(lambda _: None, is_first=True)
        monkeypatch.undo()
        go_on.set()
        assert await busy is True
        await engine.read(lambda _: None, is_first=True)
        assert engine.traffic.waiting == 0


async def test_what_need_not_last_does_not_wait_for_the_disk(engine: PostgresEngine) -> None:
    """A lease is lost with the server anyway; a publisher's document is not."""
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
    """The reader gets 503 with Retry-After, the statement ends, and the connection is reused. Measurement of
    the whole store goes on."""
    set_constant(monkeypatch, "PATIENCE_SECONDS", 0.3)
    with pytest.raises(OverloadedError) as caught:
        await engine.read(lambda db: run(db, SLOW))
    assert caught.value.retry_after_seconds > 0
    slowly = "SELECT count(*) FROM pg_sleep(0.4)"
    assert await engine.read(lambda db: fetch_value(db, slowly), is_long=True) == 1
    monkeypatch.undo()
    running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = :query"
    async with asyncio.timeout(300):
        while await engine.read(lambda db: fetch_value(db, running, {"query": SLOW})):
            await asyncio.sleep(0.01)


@pytest.mark.fault("71a")
async def test_work_that_finds_no_connection_is_told_in_time(
    another: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All connections stay busy: requests get an error after a limit, and nothing runs late."""
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
        with pytest.raises(OverloadedError, match="too many requests wait for the database"):
            await writing
        assert all(await asyncio.gather(*busy))
        assert ran == []


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
    """An engine with its connections through the relay."""
    async with open_engine(relay.url, connections=4) as engine:
        yield engine


@pytest.mark.fault("71a")
async def test_a_commit_whose_answer_is_lost_is_not_done_twice(relay: Relay, relayed: PostgresEngine) -> None:
    """The engine asks the server for the transaction's state: it was committed."""
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
    """The engine asks the server for the transaction's state: it was undone."""
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
    """The server stays away: the reader is asked to come again, and memory drops the feed."""
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
    """Transaction numbers mean others on a promoted standby, so its state is not trusted."""
    feed = (await relayed.write(create)).id
    set_constant(monkeypatch, "HISTORY", "SELECT CAST(clock_timestamp() AS text)")
    relay.cut_at_commit(reaches_server=True)
    with pytest.raises(OverloadedError, match="not known whether the last COMMIT succeeded"):
        await relayed.write(lambda db: count_up(db, feed), feed=feed)


@pytest.mark.fault("71a")
async def test_a_restart_is_waited_for_by_who_writes_and_told_to_who_reads(own_postgres: Cluster) -> None:
    """A walk goes on after the restart; a reader gets an answer from memory, or 503, at once."""
    await migrate_store(StoreConfig(url=own_postgres.url()))
    async with open_engine(own_postgres.url(), connections=4) as engine:
        feed = (await engine.write(create)).id
        assert await engine.read(lambda db: fetch_value(db, COUNT)) == 1
        await asyncio.to_thread(own_postgres.stop, "immediate")
        began_at = time.monotonic()
        with pytest.raises(OverloadedError) as caught:
            await engine.read(lambda db: fetch_value(db, COUNT))
        assert time.monotonic() - began_at < 2
        assert caught.value.retry_after_seconds > 0
        writing = [
            asyncio.create_task(engine.write(lambda db: count_up(db, feed), feed=feed)) for _ in range(5)
        ]
        await asyncio.sleep(0.5)
        await asyncio.to_thread(own_postgres.start)
        assert sorted(await asyncio.gather(*writing)) == [1, 2, 3, 4, 5]
        async with asyncio.timeout(300):
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
    """Memory keeps the unchanged feed. A write after the server's return succeeds."""
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
    """Dropped packets fail reads; the same connections serve when packets come again."""
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
    """A primary may be halted for good: writes leave its connections."""
    feed, runs = (await relayed.write(create)).id, list[int]()
    set_constant(monkeypatch, "WRITE_SECONDS", 0.5)

    def work(db: Database) -> int:
        runs.append(1)
        relay.is_silent = len(runs) == 1
        return count_up(db, feed)

    writing = asyncio.create_task(relayed.write(work))
    async with asyncio.timeout(300):
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
    """The server accepts no further connection: nobody is refused while one answers."""
    assert await relayed.read(lambda db: fetch_value(db, COUNT)) == 0
    relay.is_open = False
    asked = [relayed.read(lambda db: fetch_value(db, "SELECT 7 FROM pg_sleep(0.1)")) for _ in range(8)]
    assert await asyncio.gather(*asked) == [7] * 8
    relay.is_open = True


@pytest.mark.fault("107")
async def test_a_silent_server_does_not_keep_an_engine_from_closing(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads and writes under way learn that the engine closes; uncommitted changes are absent."""
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
    """Full, read-only, damaged, busy: the same errors as SQLite's."""
    code = f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}', DETAIL = 'secret'; END $$"
    with pytest.raises(error) as caught:
        await engine.write(lambda db: run(db, code))
    assert type(caught.value) is error
    assert "secret" not in str(caught.value)


@pytest.mark.fault("71a")
async def test_a_full_disk_is_noticed_and_so_is_room(engine: PostgresEngine) -> None:
    """Stored feeds are still read; `check` tries to write, and notices the room."""
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
    """By an administrator, or on a standby: each try uses a new connection."""
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
    """The server refuses an old prepared statement: it is prepared anew."""
    feed = (await engine.write(create)).id

    def read(db: Database) -> list[str]:
        [row] = fetch_all(db, "SELECT * FROM feed WHERE id = :feed", {"feed": feed})
        return list(row.keys())

    before = await engine.read(read)
    for _ in range(12):  # so often that it is prepared
        assert await engine.read(read) == before
    await engine.write(lambda db: run(db, "ALTER TABLE feed ADD COLUMN another integer"))
    assert await engine.read(read) == [*before, "another"]


NAP = "SELECT pg_sleep(1)"
OTHERS = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"


def nap(db: Database) -> object:
    return fetch_value(db, NAP)


async def test_who_works_and_who_waits_is_counted(engine: PostgresEngine) -> None:
    """At most four connections are busy; further requests wait, and none in the end."""
    asked = [asyncio.create_task(engine.read(nap)) for _ in range(6)]
    async with asyncio.timeout(300):
        while engine.traffic.busy < 4:
            await asyncio.sleep(0.01)
        assert (engine.traffic.busy, engine.traffic.waiting) == (4, 2)
        await asyncio.gather(*asked)
    traffic = engine.traffic
    assert (traffic.connections, traffic.busy, traffic.waiting) == (4, 0, 0)
    assert (traffic.repeated, traffic.lost, traffic.notices_lost) == (0, 0, 0)


async def test_what_breaks_off_is_counted(
    engine: PostgresEngine, shared_postgres: Cluster, postgres_url: str
) -> None:
    """A server ends its connections: each open one counts once, the listener's included."""
    await engine.read(nap)
    before = engine.traffic.connections
    await asyncio.to_thread(shared_postgres.run, f"{OTHERS} AND datname = current_database()", postgres_url)
    assert await engine.read(lambda db: fetch_value(db, "SELECT 1")) == 1
    async with asyncio.timeout(300):
        while not engine.traffic.notices_lost:
            await asyncio.sleep(0.01)
    traffic = engine.traffic
    assert 1 <= traffic.lost <= before
    assert traffic.repeated == traffic.lost
    assert traffic.connections <= 4
    assert (traffic.notices_lost, traffic.busy) == (1, 0)


LATER = NOW + KEEP_DETACHED_SECONDS + 1


async def test_a_document_that_is_attached_meanwhile_is_not_purged(postgres_url: str) -> None:
    """R8: the clean-up takes no document that another replica reattaches, and does not wait for it."""
    async with open_shared(postgres_url, connections=2) as opened:
        store = NamedStore(opened)
        feed = (await a_feed(store)).id
        (number,) = await store.put_documents(feed, [a_document(URL, an_entry("a"), rank=None)], now=NOW)
        other = await asyncio.to_thread(connected, postgres_url)
        try:
            other.execute("BEGIN")
            other.execute("UPDATE document SET rank = 1, detached_at = NULL WHERE id = :id", {"id": number})
            assert await store.upkeep.purge(now=LATER) == 0
            other.execute("COMMIT")
        finally:
            other.close()
        assert await store.upkeep.purge(now=LATER) == 0
        assert [row.id for row in await store.documents(feed)] == [number]


async def test_a_row_that_another_replica_makes_meanwhile_is_found(another: OpenEngine) -> None:
    """Both find no row: the second starts again, and finds the first's."""
    meeting, made = threading.Barrier(2), list[bool]()

    def work(db: Database) -> None:
        is_there = bool(fetch_value(db, "SELECT count(*) FROM probe"))
        made.append(not is_there)
        if not is_there:
            meeting.wait(10)
            run(db, "INSERT INTO probe (id, filler) VALUES (1, '')")

    async with another() as one, another() as other:
        await asyncio.gather(one.write(work), other.write(work))
    assert made == [True, True, False]


async def test_two_replicas_make_a_feed_once(postgres_url: str) -> None:
    """R25: the second gets the first's feed."""
    async with (
        open_shared(postgres_url, connections=8) as one,
        open_shared(postgres_url, connections=8) as two,
    ):
        stores = [NamedStore(each) for each in (one, two)]
        for n in range(20):
            made = await asyncio.gather(*(a_feed(each, f"{URL}/{n}") for each in stores * 4))
            assert len({row.id for row in made}) == 1
