"""SQLite fails in the middle of a refresh, at every statement in turn; then the fault goes away.

The suite takes some of the statements; `python -m pytest tests/faults --exhaustive` takes every one.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from tests import empty_store
from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, Reply, a_config, running
from tests.shifting import Shifting, numbers_in, numbers_to
from tests.sqlite_faults import MESSAGES, ONLY_WRITING, SqliteFaults, check_database
from wholefeed.config.tables import Config

STRIDE, COMMIT_STRIDE, PASS_STRIDE = 97, 7, 29
FEWEST_STATEMENTS, FEWEST_COMMITS = 50, 8
SLUGS = {"store", "storage-full", "overloaded", "store-damaged"}
OLD = ["e6", "e5", "e4", "e3", "e2", "e1"]
NEW = ["e8", "e7", *OLD]


def publish_new(origin: Origin) -> None:
    """Entries have moved into a new archive, one has changed, and there are newer ones."""
    publish_chain(origin, archives=3)
    changed = an_item("e2", 2, "changed")
    origin.publish("/archive/1", atom(changed, an_item("e1", 1), archive=True, current="/feed"))


def a_patient_config(folder: Path, **sections: Any) -> Config:
    """Let no answer leave early: it shows the final state of the store."""
    return a_config(folder, limits={"respond_within_seconds": 60}, **sections)


async def a_template(folder: Path, origin: Origin, *, is_known: bool) -> Path:
    folder.mkdir()
    path = folder / "wholefeed.db"
    empty_store.put_at(path)
    if is_known:
        publish_chain(origin, archives=2)
        async with running(a_patient_config(folder)) as proxy:
            assert ids((await proxy.whole(origin.url("/feed"))).body) == OLD
    return path


@asynccontextmanager
async def started(template: Path, folder: Path) -> AsyncIterator[Proxy]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(template, folder / "wholefeed.db")
    async with running(a_patient_config(folder)) as proxy:
        proxy.clock.advance(4000)
        yield proxy


async def asked(proxy: Proxy, url: str) -> Reply | None:
    """Return the final answer; None: it broke off, so nobody takes it for the whole feed."""
    try:
        return await proxy.get(url)
    except aiohttp.ClientPayloadError:
        return None
    finally:
        await proxy.settled()


def check_answer(reply: Reply | None, name: str, old: list[str]) -> None:
    if reply is None or reply.status != 200:
        assert not (old and name in ONLY_WRITING), "what is stored can be read"
        assert reply is None or any(f'"urn:wholefeed:{slug}"'.encode() in reply.body for slug in SLUGS)
        return
    got = ids(reply.body)
    assert set(old) <= set(got)
    assert got in (NEW[: len(got)], NEW[-len(got) :])


def settled_archives(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT url FROM document WHERE role = 'archive' AND is_settled").fetchall()
    return {"/archive/" + url.rpartition("/")[2] for (url,) in rows}


async def check_recovery(proxy: Proxy, origin: Origin, faults: SqliteFaults, settled: set[str]) -> None:
    """Check that nothing is lost or fetched again, no transaction is open, and the feed heals."""
    url = origin.url("/feed")
    origin.forget_requests()
    if (await proxy.get(url)).status == 200:
        await proxy.settled()
        assert (await proxy.refreshed(url)).status == 200
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("complete", NEW)
    assert not origin.counts().keys() & settled, "a settled archive is never fetched again"
    assert max(origin.counts().values()) <= 3
    assert not faults.are_in_transaction
    assert (await proxy.ask("GET", "/readyz")).status == 200


@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_known", [False, True], ids=["walk", "refresh"])
@pytest.mark.parametrize("how", ["once", "for-good", "late-commit"])
@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.fault("68", "69", "71")
async def test_a_store_that_fails_anywhere_in_a_refresh_loses_nothing(
    tmp_path: Path,
    origin: Origin,
    faults: SqliteFaults,
    request: pytest.FixtureRequest,
    name: str,
    how: str,
    is_known: bool,
) -> None:
    """Rows 68, 69, 71: at any statement; the stored feed is served, and all is right once the store is."""
    is_late = how == "late-commit"
    stride = COMMIT_STRIDE if is_late else STRIDE
    if request.config.getoption("--exhaustive"):
        stride = 1
    template = await a_template(tmp_path / "template", origin, is_known=is_known)
    publish_new(origin)
    path = tmp_path / "run" / "wholefeed.db"
    old = OLD if is_known else []
    for number in count(1 + hash_of(name, how) % stride, stride):
        async with started(template, path.parent) as proxy:
            with capture_logs() as lines:
                faults.arm(number, name, for_good=how == "for-good", late_commit=is_late)
                reply = await asked(proxy, origin.url("/feed"))
                was_hit = faults.failed > 0
                faults.heal()
            check_answer(reply, name, old)
            assert not [line for line in lines if line["event"] in ("refresh.failed", "request.failed")]
            settled = settled_archives(path)
            is_damaged = (await proxy.ask("GET", "/readyz")).status == 503
            assert is_damaged == (was_hit and name == "SQLITE_CORRUPT")
            if not is_damaged:
                await check_recovery(proxy, origin, faults, settled)
        if is_damaged:  # it is not written to any more: somebody has to look after it
            async with running(a_patient_config(path.parent)) as proxy:
                proxy.clock.advance(4000)
                await check_recovery(proxy, origin, faults, settled)
        check_database(path)
        if not was_hit:
            break
    assert number > (FEWEST_COMMITS if is_late else FEWEST_STATEMENTS)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_known", [False, True], ids=["walk", "refresh"])
@pytest.mark.parametrize("how", ["once", "for-good"])
@pytest.mark.fault("68", "69")
async def test_a_store_that_fails_anywhere_in_a_collected_walk_loses_nothing(
    tmp_path: Path,
    origin: Origin,
    faults: SqliteFaults,
    request: pytest.FixtureRequest,
    how: str,
    is_known: bool,
) -> None:
    """Rows 68, 69; R20: at any statement; each live entry of a clean document stands in a segment.

    Answers leave early, so that the feed is published in the middle of its walk.
    """
    template = tmp_path / "template"
    template.mkdir()
    blog = WordPress(origin, posts=45)
    if is_known:
        async with running(a_config(template)) as proxy:
            assert (await proxy.whole(blog.feed_url())).state == "collected"
        for _ in range(12):
            blog.add()
    else:
        empty_store.put_at(template / "wholefeed.db")
    path = tmp_path / "run" / "wholefeed.db"
    stride = 1 if request.config.getoption("--exhaustive") else STRIDE
    for number in count(1 + hash_of(how) % stride, stride):
        shutil.rmtree(path.parent, ignore_errors=True)
        shutil.copytree(template, path.parent)
        async with running(a_config(path.parent, limits={"respond_within_seconds": 0.01})) as proxy:
            proxy.clock.advance(4000)
            faults.arm(number, "SQLITE_FULL", for_good=how == "for-good")
            await asked(proxy, blog.feed_url())
            was_hit = faults.failed > 0
            check_database(path)
            faults.heal()
            await asked(proxy, blog.feed_url())
            reply = await proxy.refreshed(blog.feed_url())
            assert (reply.state, blog.identities() - set(ids(reply.body))) == ("collected", set())
        check_database(path)
        if not was_hit:
            break
    assert number > FEWEST_STATEMENTS


@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_broken_off", [False, True], ids=["whole", "broken off"])
@pytest.mark.parametrize("how", ["once", "for-good"])
@pytest.mark.fault("158", "159")
async def test_a_store_that_fails_anywhere_in_a_pass_through_archives_loses_nothing(
    tmp_path: Path,
    origin: Origin,
    faults: SqliteFaults,
    request: pytest.FixtureRequest,
    how: str,
    is_broken_off: bool,
) -> None:
    """Rows 158, 159; R35: an entry that moves to the next archive is there after every statement."""
    publisher, url = Shifting(origin, size=3), origin.url("/feed")
    publisher.publish(14)
    template = tmp_path / "template"
    template.mkdir()
    async with running(a_patient_config(template)) as proxy:
        assert numbers_in((await proxy.whole(url)).body) == numbers_to(14)
    publisher.publish(16)
    if is_broken_off:
        origin.fault("/archive/3", Status(404))
    path = tmp_path / "run" / "wholefeed.db"
    stride = 1 if request.config.getoption("--exhaustive") else PASS_STRIDE
    for number in count(1 + hash_of(how) % stride, stride):
        async with started(template / "wholefeed.db", path.parent) as proxy:
            proxy.clock.advance(90_000)
            faults.arm(number, "SQLITE_FULL", for_good=how == "for-good")
            await asked(proxy, url)
            was_hit = faults.failed > 0
            faults.heal()
        async with running(a_patient_config(path.parent)) as proxy:  # as after a kill
            proxy.clock.advance(180_000)
            reply = await proxy.get(url)
            assert set(numbers_in(reply.body)) >= set(numbers_to(14))
            await proxy.settled()
            reply = await proxy.whole(url)
            assert (reply.state, numbers_in(reply.body)) == ("complete", numbers_to(16))
        check_database(path)
        if not was_hit:
            break
    assert number > FEWEST_STATEMENTS


def hash_of(*words: str) -> int:
    """Return a seed that differs between cases, and not between runs."""
    return sum("".join(words).encode())
