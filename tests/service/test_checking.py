"""wholefeed.service.checking: no feed goes back over replicas, and without a database, memory serves.

By itself: its time limit for the database, and the size of its queries. At the end the database falls
silent.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests.faults.test_running import incompressible
from tests.feeds import an_item, atom, ids
from tests.origin import Origin
from tests.patching import set_constant
from tests.postgres import Cluster
from tests.processes import Served, serving, starting
from tests.replicas import replicas
from tests.running import Clock, Proxy, Reply
from tests.service.snapshots import a_snapshot, hold, url_of
from tests.store.relay import a_relay
from wholefeed.config.tables import LimitsConfig
from wholefeed.service.checking import PATIENCE_SECONDS, Checks
from wholefeed.service.memory import Memory
from wholefeed.store.store import Store
from wholefeed.store.tables.feed_table import Version, version_of

COMMITS = {"sent": 40, "lost": 12}
"""Without notices, the turn at a host changes each second."""
NOTHING_SENT = (
    "CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE sql AS ''",
    'ALTER DATABASE "{name}" SET search_path = public, pg_catalog',
)
"""A function that shadows PostgreSQL's own."""

DATABASE_REPLACED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    'ALTER DATABASE "{name}" RENAME TO "{name}_before"',
    'CREATE DATABASE "{name}" TEMPLATE "{name}_before"',
)
"""The same rows, in another database of that name."""

LISTENING_ENDED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'wholefeed notices' AND datname = '{name}'
"""


def publish(origin: Origin, number: int) -> None:
    """Publish a feed of one entry, with its number of changes."""
    origin.publish("/feed", atom(an_item("a", number, f"change {number}."), complete=True))


def change_of(reply: Reply) -> int:
    """Return the change in an answer."""
    assert reply.status == 200, (reply.status, reply.body)
    found = re.search(rb"change (\d+)\.", reply.body)
    assert found is not None
    return int(found[1])


def modified_at(reply: Reply) -> float | None:
    """Last-Modified; None: published twice in this second."""
    if "Last-Modified" not in reply.headers:
        return None
    return parsedate_to_datetime(reply.headers["Last-Modified"]).timestamp()


@pytest.mark.fault("106")
@pytest.mark.parametrize("notices", ["sent", "lost"])
@pytest.mark.sample("lost")
async def test_a_reader_who_asks_two_replicas_in_turn_never_sees_a_feed_go_back(
    postgres_url: str, shared_postgres: Cluster, tmp_path: Path, origin: Origin, notices: str
) -> None:
    """Last-Modified does not go back, and equal ETags have equal bodies; also without timely notices."""
    if notices == "lost":
        for each in NOTHING_SENT:
            shared_postgres.run(each.format(name=urlsplit(postgres_url).path[1:]), postgres_url)
    publish(origin, 0)
    url = origin.url("/feed")
    bodies: dict[str, bytes] = {}

    async with replicas(postgres_url, tmp_path) as both:
        await both[0].whole(url)

        async def change() -> None:
            for number in range(1, COMMITS[notices]):
                publish(origin, number)
                changed = await both[number % 2].refreshed(url)
                assert change_of(changed) >= number - 1

        async def read(turn: int) -> None:
            last, last_at, count = 0, 0.0, turn
            while not changing.done():
                reply = await both[count % 2].get(url)
                at = modified_at(reply) or last_at
                assert (change_of(reply), at) >= (last, last_at)
                assert at >= last_at
                assert bodies.setdefault(reply.headers["ETag"], reply.body) == reply.body
                last, last_at, count = change_of(reply), at, count + 1

        changing = asyncio.create_task(change())
        await asyncio.gather(changing, *(read(turn) for turn in range(4)))
        assert [change_of(await each.get(url)) for each in both] == [COMMITS[notices] - 1] * 2
        assert all(each.service.load.memory.hits for each in both)


async def test_a_check_that_finds_nothing_new_leaves_the_feed_in_memory(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """The other replica's 304 moves only the end of the feed's freshness, here too."""
    clock = Clock()
    origin.publish("/feed", atom(an_item("a"), complete=True), etag='"1"')
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path, clock=clock) as (one, other):
        await one.whole(url)
        await one.get(url)
        await other.get(url)
        clock.advance(2000)
        renewed = await other.get(url)
        before = one.service.load.memory
        reply = await one.get(url)
        assert one.service.load.memory.misses == before.misses
        seconds = [int(each.headers["Cache-Control"].partition("max-age=")[2]) for each in (reply, renewed)]
        assert 0 <= seconds[1] - seconds[0] <= 2
        assert seconds[1] > 600
    assert origin.counts() == {"/feed": 2}


@pytest.mark.fault("107")
async def test_nobody_waits_for_a_lock_for_good(postgres_url: str, tmp_path: Path, origin: Origin) -> None:
    """503 with Retry-After in time; accepted work happens after the lock."""
    import psycopg  # noqa: PLC0415 - an extra

    publish(origin, 0)
    url = origin.url("/feed")
    asked = [
        *(("GET", path, {}) for path in ("/feeds", "/opml")),
        *(("GET", path, {"url": url}) for path in ("/status", "/events", "/view", "/")),
        ("GET", "/status", {"url": "without-a-scheme.test"}),
        *((method, path, {"url": url}) for method, path in (("POST", "/refresh"), ("DELETE", "/feed"))),
    ]

    async def refused(method: str, path: str, query: dict[str, str]) -> None:
        reply = await replica.ask(method, path, params=query)
        assert (reply.status, "Retry-After" in reply.headers) == (503, True), (path, reply.body)

    limits = {"respond_within_seconds": 0.1}
    async with replicas(postgres_url, tmp_path, number=1, limits=limits) as (replica,):
        await replica.begun(url)
        await replica.settled()
        with psycopg.connect(postgres_url, autocommit=True) as holder:
            holder.execute("BEGIN")
            holder.execute("LOCK TABLE feed IN ACCESS EXCLUSIVE MODE")
            async with asyncio.timeout(300):
                await asyncio.gather(*(refused(*each) for each in asked))
            holder.execute("ROLLBACK")
            holder.execute("BEGIN")
            holder.execute("LOCK TABLE feed IN SHARE MODE")
            async with asyncio.timeout(300):
                await refused("DELETE", "/feed", {"url": url})
            holder.execute("ROLLBACK")
        async with asyncio.timeout(300):
            while (await replica.ask("DELETE", "/feed", params={"url": url})).status != 404:
                await asyncio.sleep(0.05)
    assert origin.counts() == {"/feed": 1}


@pytest.mark.fault("106")
async def test_a_feed_that_is_forgotten_on_one_replica_is_not_served_by_another(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Memory does not serve it either: it is fetched again."""
    publish(origin, 0)
    url = origin.url("/feed")
    async with replicas(postgres_url, tmp_path) as (one, other):
        await one.whole(url)
        await other.get(url)
        await other.get(url)
        assert (await one.ask("DELETE", "/feed", params={"url": url})).status == 204
        publish(origin, 1)
        assert change_of(await other.get(url)) == 1
    assert origin.counts() == {"/feed": 2}


@pytest.mark.fault("108")
async def test_what_changed_while_notices_were_lost_is_let_go_and_the_rest_is_not(
    postgres_url: str, shared_postgres: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """All of memory is compared once notices return, with or without requests."""
    publish(origin, 0)
    origin.publish("/other", atom(an_item("b"), complete=True))
    url, other_url = origin.url("/feed"), origin.url("/other")
    async with replicas(postgres_url, tmp_path, number=1) as (proxy,):
        for each in (url, other_url, url, other_url):
            await proxy.whole(each)
        assert proxy.service.load.memory.feeds == 2
        changed = f"UPDATE feed SET revision = revision + 1 WHERE url = '{url}'"
        await asyncio.to_thread(shared_postgres.run, changed, postgres_url)
        ended = LISTENING_ENDED.format(name=urlsplit(postgres_url).path[1:])
        await asyncio.to_thread(shared_postgres.run, ended)
        async with asyncio.timeout(300):
            while proxy.service.load.memory.feeds == 2:
                await asyncio.sleep(0.02)
        before = proxy.service.load.memory
        assert ids((await proxy.get(other_url)).body) == ["b"]
        assert proxy.service.load.memory.misses == before.misses
        assert change_of(await proxy.get(url)) == 0


@pytest.mark.fault("108")
async def test_nothing_is_trusted_that_was_held_of_another_database(
    postgres_url: str, shared_postgres: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """A replacement may give the same numbers to other feeds and segments."""
    publish(origin, 0)
    url, name = origin.url("/feed"), urlsplit(postgres_url).path[1:]

    def replace_it() -> None:
        for sql in DATABASE_REPLACED:
            shared_postgres.run(sql.format(name=name))

    try:
        async with a_relay(postgres_url) as relay, replicas(relay.url, tmp_path, number=1) as (proxy,):
            await proxy.whole(url)
            await proxy.get(url)
            assert proxy.service.load.memory.feeds == 1
            relay.is_open = False
            relay.cut_all()
            await asyncio.to_thread(replace_it)
            assert proxy.service.load.memory.feeds == 1
            relay.is_open = True
            async with asyncio.timeout(300):
                while proxy.service.load.memory.feeds:
                    await asyncio.sleep(0.02)
            assert change_of(await until_served(proxy, url)) == 0
    finally:
        await asyncio.to_thread(shared_postgres.run, f'DROP DATABASE IF EXISTS "{name}_before" WITH (FORCE)')


@pytest.mark.fault("107")
async def test_memory_serves_while_the_database_is_silent(
    postgres_url: str, tmp_path: Path, origin: Origin
) -> None:
    """Readers wait a moment at most, also for a due feed, served stale."""
    clock = Clock()
    publish(origin, 0)
    url = origin.url("/feed")
    async with (
        a_relay(postgres_url) as relay,
        replicas(relay.url, tmp_path, number=1, clock=clock) as (proxy,),
    ):
        await proxy.whole(url)
        served = await proxy.get(url)
        relay.is_silent = True
        publish(origin, 1)
        began = time.monotonic()
        assert [(await proxy.get(url)).body for _ in range(3)] == [served.body] * 3
        clock.advance(3000)
        stale = await proxy.get(url)
        assert (stale.body, stale.reconstruction.endswith(";stale")) == (served.body, True)
        assert time.monotonic() - began < 6  # less than a reader waits for a publisher
        relay.is_silent = False
        async with asyncio.timeout(300):
            while change_of(await proxy.get(url)) != 1:
                await asyncio.sleep(0.1)


@pytest.mark.fault("107a")
async def test_an_answer_that_has_begun_is_cut_where_the_database_falls_silent(
    postgres_url: str, tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log gives the reason. An unstarted answer is 503."""
    large = an_item("a", 2, incompressible("a", 1 << 20))
    origin.publish("/feed", atom(large, an_item("b", 1), complete=True))
    url = origin.url("/feed")
    limits = {"respond_within_seconds": 0.1}
    async with (
        a_relay(postgres_url) as relay,
        replicas(relay.url, tmp_path, number=1, limits=limits) as (proxy,),
    ):
        assert (await until_served(proxy, url)).state == "complete"
        relay.silent_at = b"FROM block "
        set_constant(monkeypatch, "PATIENCE_SECONDS", 0.5)
        with capture_logs() as lines:
            async with asyncio.timeout(300):
                with pytest.raises(aiohttp.ClientPayloadError):
                    await proxy.get(url)
                monkeypatch.undo()
                while "request.answered" not in [line["event"] for line in lines]:
                    await asyncio.sleep(0.01)
        [cut] = [line for line in lines if line["event"] == "answer.cut"]
        [answered] = [line for line in lines if line["event"] == "request.answered"]
        assert (cut["slug"], cut["feed"]) == ("overloaded", answered["feed"])
        assert (answered["status"], answered["aborted"]) == (200, True)

        relay.silent_at, relay.is_silent = b"FROM outline ", False
        await until_served(proxy, url)
        async with asyncio.timeout(300):
            reply = await proxy.get(url, limit="1")
        assert (reply.status, relay.is_silent) == (503, True), reply.headers
        relay.is_silent = False


async def until_served(proxy: Proxy, url: str) -> Reply:
    async with asyncio.timeout(300):
        while (reply := await proxy.get(url)).status != 200:
            await asyncio.sleep(0.1)
        return reply


@pytest.mark.fault("107")
async def test_memory_serves_while_the_database_is_down(
    own_postgres: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """Other requests get 503 with Retry-After. It goes on by itself."""
    publish(origin, 0)
    origin.publish("/other", atom(an_item("b"), complete=True))
    url, other_url = origin.url("/feed"), origin.url("/other")
    async with replicas(own_postgres.url(), tmp_path, number=1) as (proxy,):
        await proxy.whole(url)
        served = await proxy.get(url)
        await asyncio.to_thread(own_postgres.stop, "immediate")
        async with asyncio.timeout(300):
            for _ in range(3):
                assert (await proxy.get(url)).body == served.body
            refused = await proxy.get(other_url)
        assert (refused.status, int(refused.headers["Retry-After"]) > 0) == (503, True)
        await asyncio.to_thread(own_postgres.start)
        assert ids((await until_served(proxy, other_url)).body) == ["b"]
        publish(origin, 1)
        assert change_of(await proxy.refreshed(url)) == 1


# By itself

DOUBTED = 2500


class AStore:
    """A database that others change, with instant answers."""

    is_shared = True

    def __init__(self) -> None:
        self.engine = self
        self.asked = list[Collection[int]]()
        self.found = dict[int, Version]()
        self.lost: Callable[[], None] = lambda: None

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Nothing replaces it."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        self.lost = callback

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        self.asked.append(feeds)
        await asyncio.sleep(0.001)
        return self.found


def checks_on(store: AStore, memory: Memory) -> Checks:
    return Checks(cast(Store, store), memory, LimitsConfig())


@pytest.mark.fault("104a")
async def test_a_loop_that_is_late_is_not_taken_for_a_silent_database() -> None:
    """A feed changed by another replica leaves memory, despite a late answer."""
    memory = Memory(1 << 20)
    hold(memory, a_snapshot(1))
    checks = checks_on(AStore(), memory)
    checking = asyncio.create_task(checks.check(url_of(1)))
    await asyncio.sleep(0)
    time.sleep(PATIENCE_SECONDS + 0.1)
    await checking
    assert memory.find(url_of(1)) is None
    assert not checks.are_blind


@pytest.mark.fault("108")
async def test_what_may_have_changed_is_looked_at_in_parts() -> None:
    """No query is so long that the server ends it; unchanged feeds stay."""
    memory, store = Memory(1 << 30), AStore()
    for feed in range(1, DOUBTED + 1):
        hold(memory, a_snapshot(feed))
        store.found[feed] = version_of(a_snapshot(feed).feed)
    del store.found[DOUBTED]
    checks = checks_on(store, memory)
    store.lost()
    async with asyncio.timeout(300):
        while memory.usage.feeds == DOUBTED:
            await asyncio.sleep(0.01)
    await checks.close()
    assert [len(feeds) for feeds in store.asked] == [1000, 1000, 500]
    assert memory.usage.feeds == DOUBTED - 1


# A PostgreSQL that gives neither answer nor error

PATHS = ("/held", "/stored", "/new")
RESPOND_SECONDS = 4
BESIDE_SECONDS = 3.0
"""Allowance for a busy machine."""


def a_replica(cluster: Cluster, folder: Path) -> AbstractAsyncContextManager[Served]:
    return serving(folder, store_url=cluster.url(), limits_respond_within_seconds=RESPOND_SECONDS)


async def timed(replica: Served, path: str, **query: str) -> tuple[Reply, float]:
    began = time.monotonic()
    reply = await replica.ask(path, **query)
    return reply, time.monotonic() - began


@pytest.mark.fault("107")
async def test_a_database_that_is_frozen_keeps_nobody_waiting(
    own_postgres: Cluster, tmp_path: Path, origin: Origin
) -> None:
    """Other requests get Retry-After. After the thaw nothing is fetched twice."""
    for path in PATHS:
        origin.publish(path, atom(an_item(path), complete=True))
    held, stored, new = map(origin.url, PATHS)
    async with a_replica(own_postgres, tmp_path) as one, a_replica(own_postgres, tmp_path) as other:
        for replica, url in ((one, held), (one, held), (other, stored)):
            assert (await replica.whole(url)).status == 200
        asked = [("/feed", stored), ("/feed", new), ("/status", held), ("/readyz", "")]
        with own_postgres.frozen():
            replies = await asyncio.gather(
                timed(one, "/feed", url=held),
                *(timed(one, path, **({"url": url} if url else {})) for path, url in asked),
            )
            (served, held_seconds), *refused = replies
            assert (served.status, ids(served.body)) == (200, ["/held"])
            assert held_seconds < 0.5 + BESIDE_SECONDS
            for reply, seconds in refused:
                assert (reply.status, "Retry-After" in reply.headers) == (503, True)
                assert seconds < RESPOND_SECONDS + 1 + BESIDE_SECONDS
            assert refused[-1][1] < 2 + BESIDE_SECONDS
        async with asyncio.timeout(300):
            for path, url in asked:
                while (await one.ask(path, **({"url": url} if url else {}))).status != 200:
                    await asyncio.sleep(0.1)
        assert origin.counts() == dict.fromkeys(PATHS, 1)

        with own_postgres.frozen():
            waiting = asyncio.create_task(timed(one, "/feed", url=origin.url("/another")))
            await asyncio.sleep(0.2)
            one.process.terminate()
            began = time.monotonic()
            assert await one.ended() == 0
            assert time.monotonic() - began < 10 + BESIDE_SECONDS
            assert (await waiting)[0].status == 503


@pytest.mark.parametrize("silent_at", [b"to_regclass", b"LISTEN"], ids=["migrating", "listening"])
@pytest.mark.fault("107")
async def test_sigterm_ends_a_start_on_a_database_that_falls_silent(
    postgres_url: str, tmp_path: Path, silent_at: bytes
) -> None:
    """Exit 0 in time, also while a thread waits for the server."""
    async with a_relay(postgres_url) as relay, starting(tmp_path, store_url=relay.url) as replica:
        relay.silent_at = silent_at
        async with asyncio.timeout(300):
            while not relay.is_silent:
                await asyncio.sleep(0.05)
        replica.process.terminate()
        async with asyncio.timeout(BESIDE_SECONDS):
            assert await replica.ended() == 0
        assert replica.events() == ["server.stopped"]
