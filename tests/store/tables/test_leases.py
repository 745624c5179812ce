"""Stored leases of replicas, on PostgreSQL alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import pytest

from wholefeed.core.model import Family, Kind
from wholefeed.service.replica import Replica
from wholefeed.store.base import Database, run
from wholefeed.store.engine_choice import open_shared
from wholefeed.store.store import Store
from wholefeed.store.tables import feed_table, leases
from wholefeed.store.tables.leases import (
    DEAD_SECONDS,
    Beat,
    LeaseResult,
    feed_lease,
)

NAME = "open:1"
_AGE = "UPDATE replica SET beat_at = beat_at - :seconds WHERE name = :name"
_AGE_LEASES = "UPDATE lease SET began_at = began_at - 1000, ended_at = ended_at - 1000"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    async with open_shared(postgres_url, connections=4) as store:
        yield store


async def beat(store: Store, *names: str) -> None:
    for name in names:
        await store.write(partial(leases.beat, replica=name, progress=[]))


async def die(store: Store, name: str) -> None:
    """Let a replica have been silent for too long."""
    await store.write(lambda db: run(db, _AGE, {"name": name, "seconds": DEAD_SECONDS}))


async def take(store: Store, replica: str, name: str = NAME, **how: Any) -> LeaseResult:
    return await store.write(partial(leases.take, name=name, replica=replica, **how))


def is_anothers(looked: LeaseResult) -> bool:
    """Whether another replica holds the lease."""
    return not looked.token and looked.before is not None and looked.before.is_live


async def is_held(store: Store, token: str, name: str = NAME) -> bool:
    return await store.read(partial(leases.is_held, name=name, token=token))


async def a_feed(store: Store) -> int:
    made = await store.write(
        partial(
            feed_table.create,
            url="https://o.test/feed",
            fetch_url="https://o.test/feed",
            family=Family.ATOM,
            kind=Kind.PLAIN,
            now=1.0,
        )
    )
    return made.id


async def test_one_of_many_that_want_a_lease_at_once_has_it(store: Store) -> None:
    """The others see its holder; a missing row is locked by its name."""
    names = [f"replica{number}" for number in range(8)]
    await beat(store, *names)
    found = await asyncio.gather(*(take(store, name) for name in names))
    assert sorted(bool(each.token) for each in found) == [False] * 7 + [True]
    assert sum(is_anothers(each) for each in found) == 7
    assert len({each.before.replica for each in found if each.before is not None}) == 1


@pytest.mark.fault("104a")
async def test_a_lease_is_held_until_it_ends_or_its_replica_is_dead(store: Store) -> None:
    """A late sign of life does not win back a lease."""
    await beat(store, "one", "other")
    first = await take(store, "one")
    assert is_anothers(await take(store, "other"))
    await die(store, "one")
    second = await take(store, "other")
    assert second.token not in ("", first.token)
    assert not await store.write(partial(leases.beat_replica_again, name="one"))
    assert await store.read(leases.count_live_replicas) == 1
    assert await store.write(partial(leases.beat_replica_again, name="other"))
    await beat(store, "one")
    held = await store.write(partial(leases.beat, replica="one", progress=[]))
    assert (held.was_known, held.lease_tokens, held.replicas) == (True, {}, 2)
    assert not await is_held(store, first.token)
    assert await is_held(store, second.token)
    await store.write(partial(leases.end, ends=[(NAME, first.token, "")]))
    assert await store.read(partial(leases.read_lease, name=NAME)) is not None
    await store.write(partial(leases.end, ends=[(NAME, second.token, "")]))
    assert await store.read(partial(leases.read_lease, name=NAME)) is None


async def test_what_a_replica_has_itself_is_begun_anew_or_left_alone(store: Store) -> None:
    """A refresh begins its claimed lease; nobody claims a begun one."""
    feed = await a_feed(store)
    await beat(store, "one")
    for name, on in ((NAME, None), (feed_lease(feed), feed)):
        claimed = await take(store, "one", name, feed=on)
        assert is_anothers(await take(store, "one", name, feed=on, takes_own=False))
        assert await is_held(store, claimed.token, name)
        begun = await take(store, "one", name, feed=on)
        assert await is_held(store, begun.token, name)
        assert not await is_held(store, claimed.token, name)


async def test_what_a_dead_replica_has_left_and_nobody_wants_is_done(store: Store) -> None:
    """A dead replica's unwanted lease ends, or it would be found repeatedly. Its failure stays for those who
    waited."""
    await beat(store, "one", "other")
    await take(store, "one")
    failed = await take(store, "one", "open:2")
    await store.write(partial(leases.end, ends=[("open:2", failed.token, "failed")]))
    await die(store, "one")
    for name in (NAME, "open:2"):
        assert not (await take(store, "other", name, wants=lambda before, row: False)).token
    assert set(await store.read(partial(leases.read_leases, names=[NAME, "open:2"]))) == {"open:2"}


async def test_who_takes_a_lease_is_alive_before_its_next_sign_of_life(store: Store) -> None:
    """After a crash of the server no replica is known: a lease taken then survives the next taker."""
    token = (await take(store, "one")).token
    assert is_anothers(await take(store, "other"))
    for was_known in (False, True):
        found = await store.write(partial(leases.beat, replica="one", progress=[]))
        assert (found.was_known, found.lease_tokens) == (was_known, {NAME: token})


async def test_how_it_failed_and_how_far_it_is_stands_in_a_lease(store: Store) -> None:
    """Each with the seconds passed by the database's clock."""
    await beat(store, "one")
    token = (await take(store, "one")).token
    telling = partial(leases.beat, replica="one", progress=[("half", NAME, token), ("no", NAME, "earlier")])
    assert (await store.write(telling)).lease_tokens == {NAME: token}
    lease = await store.read(partial(leases.read_lease, name=NAME))
    assert lease is not None
    assert (lease.progress, lease.is_live, lease.ended_seconds) == ("half", True, None)
    assert 0 <= (lease.silent_seconds or 0.0) < DEAD_SECONDS
    await store.write(partial(leases.end, ends=[(NAME, token, "failed")]))
    lease = await store.read(partial(leases.read_lease, name=NAME))
    assert lease is not None
    assert (lease.outcome, lease.is_live) == ("failed", False)
    assert 0 <= (lease.ended_seconds or 0.0) < DEAD_SECONDS


async def test_the_lease_on_a_feed_waits_for_who_is_changing_it(store: Store) -> None:
    """Writes begun under a lease commit before another replica has it; a claim does not wait."""
    feed = await a_feed(store)
    await beat(store, "one", "other")
    name = feed_lease(feed)
    began, may_end = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def change(db: Database) -> None:
        feed_table.update(db, feed, {"is_stale": True})
        loop.call_soon_threadsafe(began.set)
        asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(10)

    changing = asyncio.create_task(store.write(change, feed=feed))
    await began.wait()
    skipped = await take(store, "other", name, feed=feed, takes_own=False)
    assert not skipped.token
    taking = asyncio.create_task(take(store, "one", name, feed=feed))
    await asyncio.wait({taking}, timeout=0.2)
    assert not taking.done()
    may_end.set()
    await changing
    looked = await taking
    assert looked.token
    assert looked.feed is not None
    assert looked.feed.is_stale
    gone = await take(store, "one", feed_lease(feed + 1), feed=feed + 1)
    assert (gone.token, gone.feed) == ("", None)


async def test_what_a_dead_replica_has_left_is_found(store: Store) -> None:
    """Leases of feeds and abandoned walks are found. A reader waiting for a URL takes that lease itself."""
    feed = await a_feed(store)
    await beat(store, "one", "other")
    await take(store, "one", feed_lease(feed), feed=feed)
    await take(store, "one")
    await store.write(partial(feed_table.begin_walk, feed=feed, now=2.0), feed=feed)
    assert await store.read(partial(leases.list_orphans, limit=8)) == []
    assert await store.read(leases.list_unfinished) == []
    await store.write(partial(leases.leave_replicas, name="one"))
    assert await store.read(partial(leases.list_orphans, limit=8)) == [feed]
    assert await store.read(leases.list_unfinished) == [feed]
    await take(store, "other", feed_lease(feed), feed=feed)
    assert await store.read(partial(leases.list_orphans, limit=8)) == []
    assert await store.read(leases.list_unfinished) == []


async def test_what_nobody_asks_for_any_more_is_deleted(store: Store) -> None:
    """Old failures go, and long-dead replicas with their leases."""
    await beat(store, "one", "other")
    failed, _, _ = [
        await take(store, replica, name)
        for name, replica in (("failed", "one"), ("held", "other"), ("left", "one"))
    ]
    await store.write(partial(leases.end, ends=[("failed", failed.token, "so")]))
    await store.write(leases.forget_old)
    assert len(await store.read(partial(leases.read_leases, names=["failed", "held", "left"]))) == 3
    await store.write(lambda db: run(db, _AGE, {"name": "one", "seconds": 1000.0}))
    await store.write(lambda db: run(db, _AGE_LEASES))
    for _ in range(2):  # first the replicas, then what they held
        await store.write(leases.forget_old)
    assert set(await store.read(partial(leases.read_leases, names=["failed", "held", "left"]))) == {"held"}
    assert await store.read(leases.count_live_replicas) == 1


async def test_a_replica_that_has_left_stays_gone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled sign of life may still be written, but before the replica leaves."""
    member, may_beat, has_begun = Replica(store), threading.Event(), threading.Event()
    beat_at_once = leases.beat

    def beat_late(db: Database, replica: str, progress: Sequence[tuple[str, str, str]]) -> Beat:
        has_begun.set()
        may_beat.wait(10)
        return beat_at_once(db, replica, progress)

    monkeypatch.setattr(leases, "beat", beat_late)
    last = asyncio.create_task(member.beat())
    await asyncio.to_thread(has_begun.wait, 10)
    last.cancel()
    leaving = asyncio.create_task(member.leave())
    await asyncio.wait({leaving}, timeout=0.5)
    may_beat.set()
    await leaving
    await store.engine.write_at_once(lambda _: None)  # whatever was begun on that connection is over
    assert await store.read(leases.count_live_replicas) == 0
