"""What `wholefeed doctor` says of a PostgreSQL database, by its facts and by a real one."""

from __future__ import annotations

import dataclasses
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from demo.proxy_process import free_port
from tests.postgres import Cluster
from wholefeed.cli.doctor import Finding, Verdict, check_shared, judge_shared, worst
from wholefeed.cli.main import main

pytest.importorskip("psycopg", reason="needs PostgreSQL's driver: make setup")
from wholefeed.store.postgres_upkeep import ExaminedDatabase, examine

SOUND = ExaminedDatabase(
    place="the database feeds at db.test", server=15, encoding="UTF8", version=14, newest=14, is_moving=False,
    is_standby=False, is_durable=True, is_pooled=False, is_superuser=False, can_create=False, lacking=(),
    connections_left=90, round_trip_seconds=0.0004, clock_ahead_seconds=0.1, bytes=5 << 20, replicas=2,
    checked_at=1.0, url="",
)  # fmt: skip
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


def judged(**facts: Any) -> list[Finding]:
    return judge_shared(dataclasses.replace(SOUND, **facts), connections=8)


def test_a_database_as_it_should_be() -> None:
    """Its version, size and schema, how many replicas use it, and how far away it is."""
    found = judged()
    assert worst(found) is Verdict.GOOD
    assert [each.text for each in found] == [
        "the database feeds at db.test: PostgreSQL 15, 5.0 MiB, schema 14, 2 replicas use it",
        "the user of store.url may do what a replica does, and no more",
        "a question and its answer take 0.40 ms",
    ]


@pytest.mark.parametrize(
    ("facts", "verdict", "text", "advice"),
    [
        ({"server": 14}, Verdict.WRONG, "is PostgreSQL 14; wholefeed needs 15", "update the server"),
        ({"encoding": "SQL_ASCII"}, Verdict.WRONG, "encoded in SQL_ASCII", "--encoding UTF8"),
        ({"is_pooled": True}, Verdict.WRONG, "LISTEN get lost", "pool_mode = session"),
        ({"is_standby": True}, Verdict.WRONG, "is a standby", "target_session_attrs"),
        ({"is_moving": True}, Verdict.WRONG, "unfinished copy", "migrate --to"),
        ({"version": 13}, Verdict.WRONG, "schema 13; this version needs 14", "owner"),
        ({"version": 13, "can_create": True}, Verdict.GOOD, "makes schema 14", "owner"),
        ({"version": 0, "can_create": True}, Verdict.GOOD, "15, 5.0 MiB, no tables yet", "owner"),
        ({"lacking": ("feed: DELETE",)}, Verdict.WRONG, "lacks rights: feed: DELETE", "roles.sql"),
        ({"is_superuser": True}, Verdict.WARNING, "superuser", "roles.sql"),
        ({"is_durable": False}, Verdict.WARNING, "a power cut may destroy it", "fsync"),
        (
            {"connections_left": 8},
            Verdict.WARNING,
            "8 connections are left; a replica takes up to 11",
            "raise",
        ),
        ({"round_trip_seconds": 0.02}, Verdict.WARNING, "20.0 ms", "nearer"),
        ({"clock_ahead_seconds": -30.0}, Verdict.WARNING, "differ by 30 s", "set-ntp"),
    ],
)
def test_what_is_not_as_it_should_be(facts: dict[str, Any], verdict: Verdict, text: str, advice: str) -> None:
    """Each has a line of its own, and says what to do."""
    found = judged(**facts)
    assert worst(found) is verdict
    (said,) = [each for each in found if text in each.text]
    assert (said.verdict, advice in said.advice) == (verdict, True), said


def test_a_real_database_is_looked_at(postgres_url: str) -> None:
    """Nothing is missing; the tests' server runs without fsync, and they as its superuser."""
    found = examine(postgres_url)
    assert found.version == found.newest
    assert (found.encoding, found.lacking, found.is_pooled, found.is_standby) == ("UTF8", (), False, False)
    assert found.server >= 15
    assert abs(found.clock_ahead_seconds) < 5
    assert 0 < found.round_trip_seconds < 5
    assert (found.is_durable, found.is_superuser) == (False, True)


def test_the_command_says_what_it_has_found(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The database of `store.url` in place of the file; a database without tables gets none by it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHOLEFEED_STORE_URL", postgres_url)
    monkeypatch.setenv("WHOLEFEED_SERVER_PORT", "9")
    assert main(["doctor", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert f"good     database     the database {urlsplit(postgres_url).path[1:]} at 127.0.0.1" in shown
    assert "skipped  clock        nothing is stored" in shown
    assert "disk" not in shown


def test_a_new_database_is_left_as_it_is(empty_postgres_url: str, shared_postgres: Cluster) -> None:
    """The doctor makes no table."""
    assert worst(check_shared(empty_postgres_url, 8)[0]) is Verdict.WARNING
    assert shared_postgres.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
                               empty_postgres_url) == [(0,)]  # fmt: skip


def test_a_database_that_cannot_be_used_is_told(empty_postgres_url: str, shared_postgres: Cluster) -> None:
    """One of another program's, and one that nobody answers for; no password is shown."""
    shared_postgres.run("CREATE TABLE theirs (a int)", empty_postgres_url)
    (found,), _ = check_shared(empty_postgres_url, 8)
    assert (found.verdict, "tables of another program" in found.text) == (Verdict.WRONG, True)
    (found,), _ = check_shared("postgresql://someone:a-secret@127.0.0.1:1/name", 8)
    assert (found.verdict, "cannot reach" in found.text, "a-secret" in found.text) == (
        Verdict.WRONG,
        True,
        False,
    )


def _is_listening(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def pooled(url: str, folder: Path, mode: str) -> Iterator[str]:
    """Give the database's URL through PgBouncer."""
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
        while time.monotonic() < until and process.poll() is None and not _is_listening(port):
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
    """In transaction mode two connections are one to the server; in session mode each is its own."""
    with pooled(postgres_url, tmp_path, mode) as url:
        assert examine(url).is_pooled is (mode == "transaction")
