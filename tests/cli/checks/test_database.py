"""wholefeed.cli.doctor_probes and wholefeed.store.sqlite_upkeep: a database looked at from outside."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.cli.doctor_probes import (
    Finding,
    Place,
    Verdict,
    check_database,
    judge_clock,
    judge_content,
    judge_date,
    judge_place,
    look_at,
)
from wholefeed.errors import StoreUnusableError
from wholefeed.store.migrations import read_migrations
from wholefeed.store.sqlite_file import locked, migrate_file
from wholefeed.store.sqlite_upkeep import Examined, examine, lock_holder

GIB = 1 << 30
PLACE = Place(
    path=Path("/data/feeds.db"),
    has_folder=True,
    is_folder_writable=True,
    is_there=True,
    is_readable=True,
    is_writable=True,
    mode=0o600,
    bytes=GIB,
    log_bytes=0,
    free_bytes=100 * GIB,
    file_system="ext4",
    holder=None,
)
EXAMINED = Examined(version=13, newest=13, damage="", checked_at=1_000_000.0, url="")


def verdict(found: Iterator[Finding] | list[Finding], check: str) -> tuple[Verdict, str]:
    """The gravest of one check, and its words."""
    order = list(Verdict)
    worst = max((each for each in found if each.check == check), key=lambda each: order.index(each.verdict))
    assert worst.advice or worst.verdict in (Verdict.GOOD, Verdict.SKIPPED)
    return worst.verdict, worst.text


def test_a_good_place_is_good() -> None:
    """Room, rights and a local disk."""
    assert {each.verdict for each in judge_place(PLACE, 0)} == {Verdict.GOOD}


@pytest.mark.parametrize(
    ("changes", "expected", "words"),
    [
        ({"has_folder": False}, Verdict.WRONG, "is not there"),
        ({"is_folder_writable": False}, Verdict.WRONG, "cannot be written by uid"),
        ({"is_readable": False}, Verdict.WRONG, "cannot be read by uid"),
        ({"is_writable": False}, Verdict.WRONG, "cannot be written by uid"),
        ({"mode": 0o644}, Verdict.WARNING, "mode 0644"),
        ({"file_system": "nfs4"}, Verdict.WRONG, "network file systems"),
        ({"is_there": False}, Verdict.GOOD, "the first start makes it"),
    ],
)
def test_rights_and_place_of_the_database(changes: dict[str, object], expected: Verdict, words: str) -> None:
    """What keeps the server from starting is wrong; what others can read is a warning."""
    found, text = verdict(judge_place(replace(PLACE, **changes), 0), "database")  # type: ignore[arg-type]
    assert found is expected
    assert words in text


@pytest.mark.parametrize(
    ("changes", "max_bytes", "expected", "words"),
    [
        ({"free_bytes": 1 << 20}, 0, Verdict.WRONG, "1.0 MiB are free"),
        ({"free_bytes": 200 << 20}, 0, Verdict.WARNING, "200.0 MiB are free"),
        ({"bytes": 100 * GIB, "free_bytes": 4 * GIB}, 0, Verdict.WARNING, "the database has 100.0 GiB"),
        ({}, 200 * GIB, Verdict.WARNING, "the volume is full before it counts"),
        ({"log_bytes": GIB}, 0, Verdict.WARNING, "-wal has 1.0 GiB"),
        ({}, 50 * GIB, Verdict.GOOD, "100.0 GiB are free"),
    ],
)
def test_room_on_the_volume(
    changes: dict[str, object], max_bytes: int, expected: Verdict, words: str
) -> None:
    """Before it is full, not after; a bound that the volume cannot hold is none."""
    found, text = verdict(judge_place(replace(PLACE, **changes), max_bytes), "disk")  # type: ignore[arg-type]
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
def test_what_is_in_it(changes: dict[str, object], expected: Verdict, words: str) -> None:
    """Schema and soundness."""
    found, text = verdict(judge_content(PLACE, replace(EXAMINED, **changes)), "database")  # type: ignore[arg-type]
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
    assert not look_at(path).foreign
    os.chown(path, 0, 0)
    found, words = verdict(judge_place(look_at(path), 0), "database")
    assert found is Verdict.WRONG
    assert words.endswith(f"(uid {service}): {path}")
    own = replace(look_at(path), folder_owner=0)  # of a root that runs it itself: it can open everything
    assert "database" not in {each.check for each in judge_place(own, 0)}


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
    assert verdict(judge_clock(content, proxy.clock()), "clock")[0] is Verdict.GOOD
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
    assert look_at(tmp_path / "feeds.db", mounts).file_system == "nfs4"
    assert look_at(tmp_path.parent / "feeds.db", mounts).file_system == "ext4"
    assert look_at(tmp_path / "feeds.db", tmp_path / "none").file_system == ""


@pytest.mark.parametrize(
    ("now", "expected"),
    [(1_000_100.0, Verdict.GOOD), (999_950.0, Verdict.GOOD), (900_000.0, Verdict.WRONG)],
)
def test_a_clock_before_what_is_stored_is_wrong(now: float, expected: Verdict) -> None:
    """docs/faults.md row 73: publishers cannot have been asked in the future."""
    assert verdict(judge_clock(EXAMINED, now), "clock")[0] is expected


def test_a_clock_without_anything_to_hold_it_against_is_skipped() -> None:
    """No database, or no feed in it."""
    assert verdict(judge_clock(None, 0), "clock")[0] is Verdict.SKIPPED
    assert verdict(judge_clock(replace(EXAMINED, checked_at=None), 0), "clock")[0] is Verdict.SKIPPED


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
    assert verdict(judge_date(date, 1000.0, 1005.0), "clock")[0] is expected
