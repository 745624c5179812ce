"""The store's file and its volume fail: docs/faults.md, rows 53 and 67 to 72."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.answers import Status
from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.patching import set_constant
from tests.processes import can_mount, serving, with_mount
from tests.running import Proxy, Reply, a_config, running
from tests.sqlite_faults import Connections, SqliteFaults, check_database, rows

APPLICATION_ID = 2003330660
"""docs/operations.md has it."""

needs_mounts = pytest.mark.skipif(not can_mount(), reason="no mounts of one's own are allowed here")
ALWAYS_DUE = {"freshness_minimum_seconds": 0, "freshness_default_seconds": 0}


def problem(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.body.decode().partition('"urn:wholefeed:')[2].partition('"')[0]


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as filler:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError as exc:
                assert exc.errno == errno.ENOSPC  # noqa: PT017


@pytest.mark.fault("53")
@pytest.mark.parametrize("status", [404, 410])
async def test_an_archive_that_is_gone_is_served_from_the_store(
    proxy: Proxy, origin: Origin, status: int
) -> None:
    """The newest one, fetched again when the feed changes, and those behind it."""
    expected = publish_chain(origin, archives=3)
    url = origin.url("/feed")
    await proxy.whole(url)
    for number in (3, 2, 1):
        origin.fault(f"/archive/{number}", Status(status))
    origin.publish("/feed", atom(an_item("new", 99), updated=99, prev_archive="/archive/3"))
    proxy.clock.advance(2 * 86_400)
    origin.forget_requests()

    reply = await proxy.whole(url)

    assert (reply.state, ids(reply.body)) == ("complete", ["new", *expected])
    assert b"complete/>" in reply.body
    assert origin.counts() == {"/feed": 1, "/archive/3": 1}
    assert (await proxy.status(url))["missing"] == []


@needs_mounts
@pytest.mark.fault("68")
async def test_a_full_volume_leaves_what_is_stored_and_is_left_behind_by_itself(
    tmp_path: Path, origin: Origin
) -> None:
    """Row 68: stored feeds are served, others are 503; with room again all goes on."""
    volume = tmp_path / "volume"
    volume.mkdir()
    old = publish_chain(origin, archives=3)
    origin.publish("/other", atom(an_item("other")))
    known, unknown = origin.url("/feed"), origin.url("/other")
    mount = with_mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(volume))
    async with serving(tmp_path, before=mount, database=volume / "feeds.db", **ALWAYS_DUE) as served:
        assert ids((await served.whole(known)).body) == old
        fill(served.seen(volume) / "filler")
        new = publish_chain(origin, archives=4)

        reply = await served.get(known)
        assert (reply.status, reply.state, ids(reply.body)) == (200, "complete", old)
        assert problem(await served.get(unknown)) == (503, "storage-full")
        full = await served.ask("/readyz")
        assert (problem(full), full.headers.get("Retry-After")) == ((503, "storage-full"), "60")
        assert (await served.ask("/healthz")).status == 200

        (served.seen(volume) / "filler").unlink()
        async with asyncio.timeout(300):  # two seconds, unless the machine is busy; a rest takes a minute
            while ids((await served.whole(known)).body) != new:
                await asyncio.sleep(0.05)
        assert (await served.ask("/readyz")).status == 200
        assert (await served.whole(unknown)).status == 200
        events = served.events()
        assert [event for event in events if event.startswith("store.")] == ["store.full", "store.recovered"]
        assert not {"refresh.failed", "request.failed"} & set(events)


@pytest.mark.fault("68")
@pytest.mark.parametrize(
    ("error", "only", "answer"),
    [
        ("SQLITE_IOERR_FSYNC", "^COMMIT$", (503, "storage-full")),
        ("SQLITE_IOERR", r"INTO document\b", (200, "")),
    ],
)
async def test_a_disk_that_fails_is_told_and_news_come_when_it_works_again(
    tmp_path: Path,
    origin: Origin,
    monkeypatch: pytest.MonkeyPatch,
    faults: SqliteFaults,
    error: str,
    only: str,
    answer: tuple[int, str],
) -> None:
    """Row 68: as for a full volume, if it cannot be written; the publisher does not rest for a minute."""
    set_constant(monkeypatch, "PROBE_SECONDS", 0.05)
    old, url = publish_chain(origin, archives=1), origin.url("/feed")
    async with running(a_config(tmp_path, freshness={"minimum_seconds": 0, "default_seconds": 0})) as proxy:
        await proxy.whole(url)
        await proxy.settled()
        new = publish_chain(origin, archives=2)
        faults.arm(1, error, for_good=True, only=only)
        assert ids((await proxy.whole(url)).body) == old
        await proxy.settled()
        assert problem(await proxy.ask("GET", "/readyz")) == answer
        assert await proxy.metric("wholefeed_store_writable") == (answer[0] == 200)
        faults.heal()
        async with asyncio.timeout(300):
            while ids((await proxy.whole(url)).body) != new:
                await asyncio.sleep(0.01)
        assert await proxy.metric("wholefeed_store_writable") == 1


@needs_mounts
@pytest.mark.fault("68")
async def test_a_start_on_a_full_volume_serves_what_is_stored(tmp_path: Path, origin: Origin) -> None:
    """Row 68: the proxy serves stored feeds, and /readyz says `storage-full`."""
    volume = tmp_path / "volume"
    volume.mkdir()
    expected = publish_chain(origin, archives=2)
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(origin.url("/feed"))
    mount = with_mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(volume))
    mount[-2] = mount[-2].replace(
        "exec", f"cp {tmp_path}/wholefeed.db {volume}/ && (cat /dev/zero >{volume}/filler 2>&-; true) && exec"
    )
    async with serving(tmp_path, before=mount, database=volume / "wholefeed.db") as served:
        reply = await served.get(origin.url("/feed"))
        assert (reply.state, ids(reply.body)) == ("complete", expected)
        assert problem(await served.ask("/readyz")) == (503, "storage-full")


@needs_mounts
@pytest.mark.fault("69")
async def test_a_read_only_volume_serves_what_is_stored_and_says_what_it_cannot(
    tmp_path: Path, origin: Origin
) -> None:
    """Row 69: stored feeds are served; no file is touched, and the log says it once."""
    volume = tmp_path / "volume"
    volume.mkdir()
    expected = publish_chain(origin, archives=2)
    origin.publish("/other", atom(an_item("other")))
    async with running(a_config(volume)) as proxy:
        await proxy.whole(origin.url("/feed"))
    before = {item.name: item.read_bytes() for item in volume.iterdir()}
    mount = with_mount("--bind", str(volume), str(volume))
    mount[-2] = mount[-2].replace("exec", f"mount -o remount,ro,bind '{volume}' && exec")

    async with serving(tmp_path, before=mount, database=volume / "wholefeed.db", **ALWAYS_DUE) as served:
        reply = await served.get(origin.url("/feed"))
        assert (reply.status, reply.state, ids(reply.body)) == (200, "complete", expected)
        assert problem(await served.get(origin.url("/other"))) == (503, "storage-full")
        assert problem(await served.ask("/readyz")) == (503, "storage-full")
        assert [event for event in served.events() if event.startswith("store.")].count("store.full") == 1
        assert "store.recovered" not in served.events()

    assert {item.name: item.read_bytes() for item in volume.iterdir()} == before


def an_empty_file(path: Path) -> str:
    path.write_bytes(b"")
    return "is empty"


def a_foreign_one(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    return "database of another program"


def a_newer_one(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 99")
    return "has schema 99, newer than this program's"


@pytest.mark.fault("70")
@pytest.mark.parametrize("make", [an_empty_file, a_foreign_one, a_newer_one])
async def test_a_file_that_is_not_its_own_ends_the_start_and_is_left_alone(
    tmp_path: Path,
    make: Callable[[Path], str],
) -> None:
    """Row 70: an empty, foreign or newer file ends the start with one line, and stays byte for byte."""
    path = tmp_path / "wholefeed.db"
    message = make(path)
    before = path.read_bytes()

    async with serving(tmp_path) as served:
        assert await served.ended() == 1

    (line,) = served.told.splitlines()
    assert line.startswith(f"wholefeed: {path}")
    assert message in line
    assert path.read_bytes() == before
    assert {item.name for item in tmp_path.iterdir()} == {"wholefeed.db"}


async def test_a_second_process_is_refused_and_the_first_goes_on(tmp_path: Path, origin: Origin) -> None:
    """Row 71: on one database, with one clear line."""
    publish_chain(origin, archives=1)
    async with running(a_config(tmp_path)) as first:
        async with serving(tmp_path) as second:
            assert second.port == 0
            assert await second.ended() == 1
        told = f"wholefeed: {tmp_path / 'wholefeed.db'} is in use by another process: "
        assert second.told.startswith(told)
        assert second.told.count("\n") == 1
        assert (await first.whole(origin.url("/feed"))).status == 200


@pytest.mark.fault("70")
async def test_a_file_that_is_damaged_in_use_is_read_as_far_as_possible_and_not_written(
    tmp_path: Path, origin: Origin
) -> None:
    """Row 70: stored feeds are served, new ones get 503 `store-damaged`."""
    old = publish_chain(origin, archives=3)
    origin.publish("/other", atom(an_item("other")))
    link = '<link rel="alternate" type="application/atom+xml" href="/feed">'
    origin.publish("/page", f"<html><head>{link}</head></html>", content_type="text/html")
    known, unknown = origin.url("/feed"), origin.url("/other")
    config = a_config(tmp_path)
    async with running(config) as proxy:
        await proxy.whole(known)
    path = tmp_path / "wholefeed.db"
    damage(path, "entry")

    with capture_logs() as lines:
        async with running(config) as proxy:
            publish_chain(origin, archives=4)
            reply = await proxy.refreshed(known)
            assert (reply.status, reply.state, ids(reply.body)) == (200, "complete", old)
            assert problem(await proxy.get(unknown)) == (503, "store-damaged")
            assert problem(await proxy.ask("GET", "/readyz")) == (503, "store-damaged")
            assert (await proxy.ask("GET", "/healthz")).status == 200
            # To know it by another URL, too, would touch tables alone that are sound.
            assert problem(await proxy.get(origin.url("/page"))) == (503, "store-damaged")
            assert rows(path, "SELECT url FROM alias") == []
            assert (await proxy.refreshed(known)).status == 200
    assert [line["event"] for line in lines].count("store.damaged") == 1
    assert not [line for line in lines if line["event"] in ("refresh.failed", "request.failed")]


def damage(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)


@pytest.mark.fault("71")
async def test_a_locked_database_serves_and_asks_whoever_it_cannot_serve_to_come_back(
    tmp_path: Path, origin: Origin, connections: Connections
) -> None:
    """Row 71: stored feeds are served, others get 503 with Retry-After."""
    old = publish_chain(origin, archives=2)
    origin.publish("/other", atom(an_item("other")))
    known, unknown = origin.url("/feed"), origin.url("/other")
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(known)
        await connections.writer.execute("PRAGMA busy_timeout = 0")
        new = publish_chain(origin, archives=3)
        with closing(sqlite3.connect(tmp_path / "wholefeed.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            reply = await proxy.refreshed(known)
            assert (reply.status, ids(reply.body)) == (200, old)
            refused = await proxy.get(unknown)
            assert problem(refused) == (503, "overloaded")
            assert int(refused.headers["Retry-After"]) > 0
            other.execute("ROLLBACK")
        assert ids((await proxy.refreshed(known)).body) == new
        assert (await proxy.get(unknown)).status == 200
    check_database(tmp_path / "wholefeed.db")
