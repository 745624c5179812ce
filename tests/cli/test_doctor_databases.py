"""`wholefeed doctor`: findings on a database, as a file or shared by replicas."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from demo.proxy_process import free_port
from tests import empty_store
from tests.cli.test_doctor import GIB, GOOD, SKIPPED, WARNING, WRONG, gravest, verdicts
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.postgres import Cluster
from tests.running import Proxy
from wholefeed.cli.doctor import (
    CheckFinding,
    CheckVerdict,
    check_database,
    check_place,
    check_shared,
    judge_clock,
    judge_content,
    judge_date,
    judge_room,
    judge_shared,
)
from wholefeed.cli.main import main
from wholefeed.errors import StoreUnusableError
from wholefeed.store.sqlite_file import lock_database
from wholefeed.store.sqlite_upkeep import ExaminedFile, examine, lock_holder

pytest.importorskip("psycopg", reason="needs PostgreSQL's driver: make setup")
from wholefeed.store.postgres_upkeep import ExaminedDatabase
from wholefeed.store.postgres_upkeep import examine as examine_shared

# A database file

EXAMINED = ExaminedFile(version=13, newest=13, damage="", checked_at=1_000_000.0, url="")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that only its owner can read."""
    path = tmp_path / "feeds.db"
    path.touch(mode=0o600)
    return path


def a_store(path: Path) -> Path:
    """An empty database in the server's mode."""
    empty_store.put_at(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    return path


def add_aliases(path: Path, number: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        rows = [(f"http://a.example/{n:0200}",) for n in range(number)]
        db.execute("PRAGMA journal_mode = DELETE")
        db.executemany("INSERT INTO alias (url, feed) VALUES (?, 1)", rows)
        db.commit()


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
    """The folder must accept new files, and the database reads and writes."""
    assert list(check_place(path, tmp_path)) == []
    wanted = {"folder": (tmp_path, os.W_OK | os.X_OK), "read": (path, os.R_OK), "write": (path, os.W_OK)}
    monkeypatch.setattr(os, "access", lambda *asked: asked != wanted[denied])
    found = gravest(check_place(path, tmp_path), "database")
    assert found.verdict is WRONG
    assert words in found.text


def test_what_others_can_read_is_a_warning(path: Path, tmp_path: Path) -> None:
    """Tokens of podcasts stand in the database."""
    path.chmod(0o644)
    found = gravest(check_place(path, tmp_path), "database")
    assert (found.verdict, "mode 0644" in found.text) == (WARNING, True)


@pytest.mark.parametrize(
    ("size", "log_size", "free", "max_bytes", "expected", "words"),
    [
        (0, 0, 100 * GIB, 0, GOOD, "100.0 GiB are free"),
        (GIB, 0, 1 << 20, 0, WRONG, "1.0 MiB are free"),
        (GIB, 0, 200 << 20, 0, WARNING, "200.0 MiB are free"),
        (100 * GIB, 0, 4 * GIB, 0, WARNING, "the database has 100.0 GiB"),
        (GIB, 0, 100 * GIB, 200 * GIB, WARNING, "the volume is full before that size is reached"),
        (GIB, GIB, 100 * GIB, 0, WARNING, "-wal has 1.0 GiB"),
        (GIB, 0, 100 * GIB, 50 * GIB, GOOD, "100.0 GiB are free"),
    ],
)
def test_room_on_the_volume(
    path: Path, size: int, log_size: int, free: int, max_bytes: int, expected: CheckVerdict, words: str
) -> None:
    """The warning precedes a full disk; a bound beyond the volume is useless."""
    log = Path(f"{path}-wal")
    log.touch()
    os.truncate(path, size)
    os.truncate(log, log_size)
    found = gravest(judge_room(path, free, max_bytes), "disk")
    assert (found.verdict, words in found.text) == (expected, True)


@pytest.mark.parametrize(
    ("changes", "expected", "words"),
    [
        ({}, GOOD, "schema 13, sound"),
        ({"version": 12}, GOOD, "the next start migrates the database"),
        ({"damage": "row 1 missing from index"}, WRONG, "row 1 missing"),
        ({"damage": None}, SKIPPED, "too large"),
    ],
)
def test_what_is_in_it(path: Path, changes: dict[str, Any], expected: CheckVerdict, words: str) -> None:
    """Schema and soundness."""
    found = judge_content(path, replace(EXAMINED, **changes))
    assert (found.verdict, words in found.text) == (expected, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_root_is_told_of_files_that_the_service_cannot_open(tmp_path: Path) -> None:
    """After a restore as root, the service's user cannot open them; root itself can."""
    path, service = tmp_path / "feeds.db", 10001
    os.chown(tmp_path, service, service)
    for name in ("feeds.db", "feeds.db-wal", "feeds.db.lock"):
        (tmp_path / name).touch(mode=0o600)
        os.chown(tmp_path / name, service, service)
    assert list(check_place(path, tmp_path)) == []
    os.chown(path, 0, 0)
    found = gravest(check_place(path, tmp_path), "database")
    assert found.verdict is WRONG
    assert found.text.endswith(f"(uid {service}): {path}")
    os.chown(tmp_path, 0, 0)  # root itself can open everything
    assert list(check_place(path, tmp_path)) == []


def test_a_database_that_nobody_uses_is_looked_at_and_left_alone(tmp_path: Path) -> None:
    """No byte of it changes, and a missing one is not made."""
    path = tmp_path / "feeds.db"
    found, content = check_database(path, 0)
    assert (verdicts(found)["database"], content, list(tmp_path.iterdir())) == (GOOD, None, [])
    a_store(path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    found, content = check_database(path, 0)
    assert {each.verdict for each in found} == {GOOD}
    assert content is not None
    assert (content.version, content.url, content.checked_at) == (content.newest, "", None)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


async def test_a_database_in_use_is_looked_at_beside_the_server(proxy: Proxy, origin: Origin) -> None:
    """The doctor shows the newest feed, the last fetch, and the process with the database."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    found, content = await asyncio.to_thread(check_database, proxy.database, 0)
    assert content is not None
    assert (content.url, content.damage) == (origin.url("/feed"), "")
    assert judge_clock(content, proxy.clock()).verdict is GOOD
    assert any(f"process {os.getpid()} uses it" in each.text for each in found)


@pytest.mark.parametrize("body", [None, b"", b"no database at all" * 100])
def test_a_file_that_is_none_of_ours_is_wrong(tmp_path: Path, body: bytes | None) -> None:
    """serve would refuse it at its start; so is a missing folder."""
    path = tmp_path / "feeds.db" if body is not None else tmp_path / "none" / "feeds.db"
    if body is not None:
        path.write_bytes(body)
    assert verdicts(check_database(path, 0)[0])["database"] is WRONG


def test_damage_is_found(tmp_path: Path) -> None:
    """The damage lies in the middle, behind a good header."""
    path = a_store(tmp_path / "feeds.db")
    add_aliases(path, 500)
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
    """Unread parts are not called damaged."""
    path = a_store(tmp_path / "feeds.db")
    add_aliases(path, 20_000)
    assert examine(path, seconds=-1).damage is None
    assert examine(path, seconds=30).damage == ""


def test_who_holds_the_lock_is_told(tmp_path: Path) -> None:
    """The kernel's own list counts; without it, nobody is named."""
    path = tmp_path / "feeds.db"
    assert lock_holder(path) is None
    with lock_database(path):
        assert lock_holder(path) == os.getpid()
        assert lock_holder(path, tmp_path / "none") is None
    assert lock_holder(path) is None


def test_the_nearest_mount_says_the_file_system(tmp_path: Path) -> None:
    """A share mounted below a local disk is a share."""
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nnas:/x {tmp_path} nfs4 rw 0 0\nb {tmp_path}/deeper xfs rw 0 0\n"
    )
    remote, _ = check_place(tmp_path / "feeds.db", tmp_path, mounts)
    assert remote.verdict is WRONG
    assert "is on nfs4: SQLite's log does not work on network file systems" in remote.text
    for folder, told_by in ((tmp_path.parent, mounts), (tmp_path, tmp_path / "none")):
        assert [each.verdict for each in check_place(folder / "feeds.db", folder, told_by)] == [GOOD]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (judge_clock(EXAMINED, 1_000_100.0), GOOD),
        (judge_clock(EXAMINED, 999_950.0), GOOD),
        (judge_clock(EXAMINED, 900_000.0), WRONG),
        (judge_clock(None, 0), SKIPPED),
        (judge_clock(replace(EXAMINED, checked_at=None), 0), SKIPPED),
        (judge_date(1000.0, 1000.0, 1005.0), GOOD),
        (judge_date(950.0, 1000.0, 1005.0), GOOD),
        (judge_date(900.0, 1000.0, 1005.0), WRONG),
        (judge_date(1200.0, 1000.0, 1005.0), WRONG),
        (judge_date(None, 1000.0, 1005.0), SKIPPED),
    ],
)
def test_a_clock_is_held_against_what_is_stored_and_a_publisher_s(
    found: CheckFinding, expected: CheckVerdict
) -> None:
    """docs/faults.md row 73: no fetch lies in the future; a minute is tolerated."""
    assert found.verdict is expected


# A database that replicas share

SOUND = ExaminedDatabase(
    place="the database feeds at db.test", server=15, encoding="UTF8", version=14, newest=14, is_moving=False,
    is_standby=False, is_durable=True, is_pooled=False, is_superuser=False, can_create=False, lacking=(),
    connections_left=90, round_trip_seconds=0.0004, clock_ahead_seconds=0.1, bytes=5 << 20, replicas=2,
    checked_at=1.0, url="",
)  # fmt: skip
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def test_a_database_as_it_should_be() -> None:
    """The doctor shows version, size, schema, number of replicas, and round-trip time."""
    found = judge_shared(SOUND, connections=8)
    assert {each.verdict for each in found} == {GOOD}
    assert [each.text for each in found] == [
        "the database feeds at db.test: PostgreSQL 15, 5.0 MiB, schema 14, 2 replicas use it",
        "the user of store.url has the rights that a replica needs, and no more",
        "a query takes 0.40 ms",
    ]


@pytest.mark.parametrize(
    ("facts", "verdict", "text", "advice"),
    [
        ({"server": 14}, WRONG, "is PostgreSQL 14; wholefeed needs 15", "update the server"),
        ({"encoding": "SQL_ASCII"}, WRONG, "encoded in SQL_ASCII", "--encoding UTF8"),
        ({"is_pooled": True}, WRONG, "LISTEN get lost", "pool_mode = session"),
        ({"is_standby": True}, WRONG, "is a standby", "target_session_attrs"),
        ({"is_moving": True}, WRONG, "unfinished copy", "migrate --to"),
        ({"version": 13}, WRONG, "schema 13; this version needs 14", "owner"),
        ({"version": 13, "can_create": True}, GOOD, "makes schema 14", "owner"),
        ({"version": 0, "can_create": True}, GOOD, "15, 5.0 MiB, no tables yet", "owner"),
        ({"lacking": ("feed: DELETE",)}, WRONG, "lacks rights: feed: DELETE", "roles.sql"),
        ({"is_superuser": True}, WARNING, "superuser", "roles.sql"),
        ({"is_durable": False}, WARNING, "a power cut may destroy it", "fsync"),
        ({"connections_left": 8}, WARNING, "8 connections are left; a replica takes up to 11", "raise"),
        ({"round_trip_seconds": 0.02}, WARNING, "20.0 ms", "nearer"),
        ({"clock_ahead_seconds": -30.0}, WARNING, "differ by 30 s", "set-ntp"),
    ],
)
def test_what_is_not_as_it_should_be(
    facts: dict[str, Any], verdict: CheckVerdict, text: str, advice: str
) -> None:
    """Each fault has its own line, with advice."""
    found = judge_shared(replace(SOUND, **facts), connections=8)
    assert {each.verdict for each in found} <= {GOOD, SKIPPED, verdict}
    (said,) = [each for each in found if text in each.text]
    assert (said.verdict, advice in said.advice) == (verdict, True), said


@pytest.mark.usefixtures("no_server")
def test_a_real_database_is_looked_at(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tests run it without fsync, as its superuser."""
    seen = examine_shared(postgres_url)
    assert seen.version == seen.newest
    assert (seen.encoding, seen.lacking, seen.is_pooled, seen.is_standby) == ("UTF8", (), False, False)
    assert seen.server >= 15
    assert abs(seen.clock_ahead_seconds) < 5
    assert 0 < seen.round_trip_seconds < 5
    assert (seen.is_durable, seen.is_superuser) == (False, True)
    monkeypatch.setenv("WHOLEFEED_STORE_URL", postgres_url)
    assert main(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert f"good     database     the database {urlsplit(postgres_url).path[1:]} at 127.0.0.1" in shown
    assert "skipped  clock        no fetch is stored" in shown
    assert "disk" not in shown


def test_a_database_that_cannot_be_used_is_told(empty_postgres_url: str, shared_postgres: Cluster) -> None:
    """No table is made, and no password shown."""
    assert (
        max(verdicts(check_shared(empty_postgres_url, 8)[0]).values(), key=list(CheckVerdict).index)
        is WARNING
    )
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert shared_postgres.run(tables, empty_postgres_url) == [(0,)]
    shared_postgres.run("CREATE TABLE theirs (a int)", empty_postgres_url)
    for url, words in (
        (empty_postgres_url, "tables of another program"),
        ("postgresql://someone:a-secret@127.0.0.1:1/name", "cannot reach"),
    ):
        (found,), _ = check_shared(url, 8)
        assert (found.verdict, words in found.text, "a-secret" in found.text) == (WRONG, True, False)


@contextmanager
def pooled(url: str, folder: Path, mode: str) -> Iterator[str]:
    """Yield the database's URL through PgBouncer."""
    assert PGBOUNCER is not None
    parts, port = urlsplit(url), free_port(0)
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={parts.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = any\npool_mode = {mode}\nunix_socket_dir =\n"
        "ignore_startup_parameters = extra_float_digits\n[databases]\n"
        f"{parts.path[1:]} = host=127.0.0.1 port={parts.port} user=postgres\n"
    )
    for path in (folder, settings):
        path.chmod(0o755)
    process = subprocess.Popen([PGBOUNCER, "-q", "-u", "nobody", str(settings)], stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 10
        while time.monotonic() < until and process.poll() is None:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.01)
        yield parts._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_found_in_the_mode_that_does_not_work(
    mode: str, postgres_url: str, tmp_path: Path
) -> None:
    """In transaction mode two connections share one at the server; in session mode each has its own."""
    with pooled(postgres_url, tmp_path, mode) as url:
        assert examine_shared(url).is_pooled is (mode == "transaction")
