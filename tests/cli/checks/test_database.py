"""wholefeed.cli.doctor and wholefeed.store.sqlite_upkeep: a database looked at from outside."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.cli.doctor import (
    Finding,
    Verdict,
    check_database,
    check_place,
    judge_clock,
    judge_content,
    judge_date,
    judge_room,
)
from wholefeed.errors import StoreUnusableError
from wholefeed.store.migrations import read_migrations
from wholefeed.store.sqlite_file import locked, migrate_file
from wholefeed.store.sqlite_upkeep import Examined, examine, lock_holder

GIB = 1 << 30
EXAMINED = Examined(version=13, newest=13, damage="", checked_at=1_000_000.0, url="")


def verdict(found: Iterable[Finding], check: str) -> tuple[Verdict, str]:
    """The gravest of one check, and its words."""
    order = list(Verdict)
    worst = max((each for each in found if each.check == check), key=lambda each: order.index(each.verdict))
    assert worst.advice or worst.verdict in (Verdict.GOOD, Verdict.SKIPPED)
    return worst.verdict, worst.text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that only its owner can read."""
    path = tmp_path / "feeds.db"
    path.touch(mode=0o600)
    return path


def test_a_good_place_is_good(path: Path, tmp_path: Path) -> None:
    """There is nothing to say of rights and a local disk; of the room, that there is enough."""
    assert list(check_place(path, tmp_path)) == []
    assert [each.verdict for each in judge_room(path, 100 * GIB, 0)] == [Verdict.GOOD]


@pytest.mark.parametrize(
    ("denied", "words"),
    [
        ("folder", "cannot be written by uid"),
        ("read", "cannot be read by uid"),
        ("write", "be written by uid"),
    ],
)
def test_what_keeps_the_server_from_starting_is_wrong(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denied: str, words: str
) -> None:
    """The folder must take new files, and the database be read and written."""
    wanted = {"folder": (tmp_path, os.W_OK | os.X_OK), "read": (path, os.R_OK), "write": (path, os.W_OK)}
    monkeypatch.setattr(os, "access", lambda *asked: asked != wanted[denied])
    found, text = verdict(check_place(path, tmp_path), "database")
    assert found is Verdict.WRONG
    assert words in text


def test_a_folder_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    """Nothing else is said then."""
    (found,), _ = check_database(tmp_path / "none" / "feeds.db", 0)
    assert found.verdict is Verdict.WRONG
    assert "is not there" in found.text


def test_what_others_can_read_is_a_warning(path: Path, tmp_path: Path) -> None:
    """Tokens of podcasts stand in the database."""
    path.chmod(0o644)
    found, text = verdict(check_place(path, tmp_path), "database")
    assert found is Verdict.WARNING
    assert "mode 0644" in text


@pytest.mark.parametrize(
    ("size", "log_size", "free", "max_bytes", "expected", "words"),
    [
        (GIB, 0, 1 << 20, 0, Verdict.WRONG, "1.0 MiB are free"),
        (GIB, 0, 200 << 20, 0, Verdict.WARNING, "200.0 MiB are free"),
        (100 * GIB, 0, 4 * GIB, 0, Verdict.WARNING, "the database has 100.0 GiB"),
        (GIB, 0, 100 * GIB, 200 * GIB, Verdict.WARNING, "the volume is full before it counts"),
        (GIB, GIB, 100 * GIB, 0, Verdict.WARNING, "-wal has 1.0 GiB"),
        (GIB, 0, 100 * GIB, 50 * GIB, Verdict.GOOD, "100.0 GiB are free"),
    ],
)
def test_room_on_the_volume(
    path: Path, size: int, log_size: int, free: int, max_bytes: int, expected: Verdict, words: str
) -> None:
    """Before it is full, not after; a bound that the volume cannot hold is none."""
    os.truncate(path, size)
    log = Path(f"{path}-wal")
    log.touch()
    os.truncate(log, log_size)
    found, text = verdict(judge_room(path, free, max_bytes), "disk")
    assert found is expected
    assert words in text


@pytest.mark.parametrize(
    ("changes", "expected", "words"),
    [
        ({}, Verdict.GOOD, "schema 13, sound"),
        ({"version": 12}, Verdict.GOOD, "the next start brings it there"),
        ({"damage": "row 1 missing from index"}, Verdict.WRONG, "row 1 missing"),
        ({"damage": None}, Verdict.SKIPPED, "too large"),
    ],
)
def test_what_is_in_it(path: Path, changes: dict[str, Any], expected: Verdict, words: str) -> None:
    """Schema and soundness."""
    found, text = verdict([judge_content(path, replace(EXAMINED, **changes))], "database")
    assert found is expected
    assert words in text


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_root_is_told_of_files_that_the_service_cannot_open(tmp_path: Path) -> None:
    """What was restored as root, in a folder of the service's user: root itself can open it."""
    path, service = tmp_path / "feeds.db", 10001
    os.chown(tmp_path, service, service)
    for name in ("feeds.db", "feeds.db-wal", "feeds.db.lock"):
        (tmp_path / name).touch(mode=0o600)
        os.chown(tmp_path / name, service, service)
    assert "database" not in {each.check for each in check_place(path, tmp_path)}
    os.chown(path, 0, 0)
    found, words = verdict(check_place(path, tmp_path), "database")
    assert found is Verdict.WRONG
    assert words.endswith(f"(uid {service}): {path}")
    os.chown(tmp_path, 0, 0)  # of a root that runs it itself: it can open everything
    assert list(check_place(path, tmp_path)) == []


def test_a_database_that_nobody_uses_is_looked_at_and_left_alone(tmp_path: Path) -> None:
    """Nothing is created beside it, and no byte of it changes."""
    path = tmp_path / "feeds.db"
    asyncio.run(migrate_file(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")  # as the server has it
    path.chmod(0o600)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    found, content = check_database(path, 0)
    assert {each.verdict for each in found} == {Verdict.GOOD}
    assert content is not None
    assert (content.version, content.url, content.checked_at) == (len(read_migrations()), "", None)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


async def test_a_database_in_use_is_looked_at_beside_the_server(proxy: Proxy, origin: Origin) -> None:
    """Its newest feed, when a publisher was asked, and which process has it."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    found, content = await asyncio.to_thread(check_database, proxy.database, 0)
    assert content is not None
    assert content.url == origin.url("/feed")
    assert content.damage == ""
    assert verdict([judge_clock(content, proxy.clock())], "clock")[0] is Verdict.GOOD
    assert any(f"process {os.getpid()} uses it" in each.text for each in found)


def test_no_database_is_made(tmp_path: Path) -> None:
    """A doctor looks."""
    found, content = check_database(tmp_path / "feeds.db", 0)
    assert verdict(found, "database")[0] is Verdict.GOOD
    assert content is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("body", [b"", b"no database at all" * 100])
def test_a_file_that_is_none_of_ours_is_wrong(tmp_path: Path, body: bytes) -> None:
    """As serve would say at its start."""
    path = tmp_path / "feeds.db"
    path.write_bytes(body)
    assert verdict(check_database(path, 0)[0], "database")[0] is Verdict.WRONG


def test_damage_is_found(tmp_path: Path) -> None:
    """In the middle of a file whose header is good."""
    path = tmp_path / "feeds.db"
    asyncio.run(migrate_file(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.executemany(
            "INSERT INTO alias (url, feed) SELECT ?, 1",
            [(f"http://a.example/{n:0200}",) for n in range(500)],
        )
        db.commit()
    body = bytearray(path.read_bytes())
    for at in range(len(body) - 5 * 4096, len(body) - 4096, 512):
        body[at : at + 64] = os.urandom(64)
    path.write_bytes(body)
    try:
        damage = examine(path, seconds=5).damage
    except StoreUnusableError:
        damage = "cannot be read"
    assert damage


def test_a_large_database_is_looked_at_no_longer_than_there_is_time(tmp_path: Path) -> None:
    """What was not looked at is not called damaged."""
    path = tmp_path / "feeds.db"
    asyncio.run(migrate_file(path))
    with closing(sqlite3.connect(path)) as db:
        db.executemany(
            "INSERT INTO alias (url, feed) VALUES (?, 1)", [(f"http://a.example/{n}",) for n in range(20_000)]
        )
        db.commit()
    assert examine(path, seconds=-1).damage is None
    assert examine(path, seconds=30).damage == ""


def test_who_holds_the_lock_is_told(tmp_path: Path) -> None:
    """By the kernel's own list; where there is none, nobody is named."""
    path = tmp_path / "feeds.db"
    assert lock_holder(path) is None
    with locked(path):
        assert lock_holder(path) == os.getpid()
        assert lock_holder(path, tmp_path / "none") is None
    assert lock_holder(path) is None


def test_the_nearest_mount_says_the_file_system(tmp_path: Path) -> None:
    """A share that is mounted below a local disk is a share."""
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nnas:/x {tmp_path} nfs4 rw 0 0\nb {tmp_path}/deeper xfs rw 0 0\n"
    )
    path = tmp_path / "feeds.db"
    (remote, _) = check_place(path, tmp_path, mounts)
    assert remote.verdict is Verdict.WRONG
    assert "is on nfs4: SQLite's log does not work on network file systems" in remote.text
    for folder, told_by in ((tmp_path.parent, mounts), (tmp_path, tmp_path / "none")):
        assert [each.verdict for each in check_place(folder / "feeds.db", folder, told_by)] == [Verdict.GOOD]


@pytest.mark.parametrize(
    ("now", "expected"),
    [(1_000_100.0, Verdict.GOOD), (999_950.0, Verdict.GOOD), (900_000.0, Verdict.WRONG)],
)
def test_a_clock_before_what_is_stored_is_wrong(now: float, expected: Verdict) -> None:
    """docs/faults.md row 73: publishers cannot have been asked in the future."""
    assert verdict([judge_clock(EXAMINED, now)], "clock")[0] is expected


def test_a_clock_without_anything_to_hold_it_against_is_skipped() -> None:
    """No database, or no feed in it."""
    assert verdict([judge_clock(None, 0)], "clock")[0] is Verdict.SKIPPED
    assert verdict([judge_clock(replace(EXAMINED, checked_at=None), 0)], "clock")[0] is Verdict.SKIPPED


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (1000.0, Verdict.GOOD),
        (950.0, Verdict.GOOD),
        (900.0, Verdict.WRONG),
        (1200.0, Verdict.WRONG),
        (None, Verdict.SKIPPED),
    ],
)
def test_a_clock_far_from_a_publisher_s_is_wrong(date: float | None, expected: Verdict) -> None:
    """A minute may be the publisher's own fault."""
    assert judge_date(date, 1000.0, 1005.0).verdict is expected
