"""`wholefeed migrate --to URL`: a SQLite store moves into PostgreSQL, despite interruptions."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import serving
from tests.store.databases import a_database
from wholefeed.cli.main import main
from wholefeed.extras import to_add

WAIT_SECONDS = 300.0


def run(url: str, sql: str) -> list[tuple[Any, ...]]:
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(sql)
        return cursor.fetchall() if cursor.description else []


def begin(database: Path, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "wholefeed", "migrate", "--to", url],
        cwd=database.parent, env={**os.environ, "WHOLEFEED_STORE_PATH": str(database)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_move_that_is_killed_in_the_middle_goes_on(tmp_path: Path, empty_postgres_url: str) -> None:
    """After SIGKILL no server opens the rest; row counts and digests agree at the end."""
    import psycopg  # noqa: PLC0415 - an extra

    url, database = empty_postgres_url, a_database(tmp_path / "a.db", feeds=5, entries=4)
    run(url, "SELECT 1")
    stopped = begin(database, url)
    with psycopg.connect(url) as holder:
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:  # no table can be behind `document` when the copying begins
            try:
                holder.execute("SELECT name FROM moving")
                holder.execute("LOCK TABLE entry IN SHARE MODE NOWAIT")
                break
            except psycopg.Error:
                holder.rollback()
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'COPY%'"
        )
        while run(url, waiting) == [(0,)] and time.monotonic() < until:
            time.sleep(0.01)
        stopped.kill()
        assert stopped.wait(WAIT_SECONDS) == -signal.SIGKILL
        whole = {name for (name,) in run(url, "SELECT name FROM moving WHERE is_whole = 1")}
        assert {"feed", "segment", "document"} <= whole
        assert "entry" not in whole
    stopped.communicate()

    refused = subprocess.run(
        [sys.executable, "-m", "wholefeed", "migrate"], capture_output=True, text=True, check=False,
        cwd=tmp_path, env={**os.environ, "WHOLEFEED_STORE_URL": url},
    )  # fmt: skip
    assert (refused.returncode, "unfinished copy" in refused.stderr) == (1, True), refused.stderr

    resumed = begin(database, url)
    out, err = resumed.communicate(timeout=WAIT_SECONDS)
    assert resumed.returncode == 0, err
    assert "wholefeed: goes on after " in err
    assert "feed: 4 rows copied" not in err, "it was before"
    assert "entry: 16 rows copied" in err
    assert "entry: 16 rows compared, digest " in err
    assert "are copied and compared; set store.url to serve them from the database " in out


async def test_a_moved_store_answers_as_it_did(
    tmp_path: Path, origin: Origin, empty_postgres_url: str
) -> None:
    """Byte for byte, with the same ETag, and without a fetch. So do lists."""
    old = atom(*[an_item(f"old-{n}", n, "x\x7f😀" * 500) for n in range(20, 0, -1)], archive=True)
    origin.publish("/1", old)
    origin.publish("/", atom(an_item("new", 30), prev_archive="/1"))
    origin.publish("/gone", atom(an_item("n", 30), prev_archive="/404"))
    urls = [origin.url("/"), origin.url("/gone")]
    settings: dict[str, Any] = {
        "server_public_url": "https://feeds.example.org",
        "freshness_minimum_seconds": 900,
    }
    async with serving(tmp_path, **settings) as served:
        expected = [await served.whole(url) for url in urls]
        exported = (await served.ask("/opml")).body
    assert [each.status for each in expected] == [200, 200]

    moving = begin(tmp_path / "wholefeed.db", empty_postgres_url)
    _, err = await asyncio.to_thread(moving.communicate, timeout=WAIT_SECONDS)
    assert moving.returncode == 0, err
    origin.forget_requests()
    assert b'text="A feed"' in exported
    assert run(empty_postgres_url, "SELECT DISTINCT title FROM feed") == [("A feed",)]
    async with serving(tmp_path, store_url=empty_postgres_url, **settings) as served:
        assert (await served.ask("/opml")).body == exported
        found = [await served.whole(url) for url in urls]
        matched = [await served.ask("/feed", url=url) for url in urls]  # later answers come from memory
    for before, after in zip(expected * 2, found + matched, strict=True):
        assert (after.status, after.body, after.headers["ETag"]) == (200, before.body, before.headers["ETag"])
        assert after.headers["Last-Modified"] == before.headers["Last-Modified"]
    assert not origin.requests


def test_what_cannot_be_moved_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No database, an unreachable one, no URL: exit 1 or 2, without the password."""
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(tmp_path / "a.db"))
    url = "postgresql://someone:a-secret@127.0.0.1:1/name"
    assert main(["migrate", "--to", url]) == 1
    assert "nothing to move: there is no database" in capsys.readouterr().err
    a_database(tmp_path / "a.db")
    assert main(["migrate", "--to", url]) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1" in said
    assert "a-secret" not in said
    assert main(["migrate", "--to", "mysql://someone:a-secret@host/name"]) == 2
    said = capsys.readouterr().err
    assert "no URL of a PostgreSQL database" in said
    assert "a-secret" not in said


def test_a_store_is_not_moved_without_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """psycopg is an extra: exit 1, with its installation."""
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(tmp_path / "a.db"))
    for name in [
        each for each in sys.modules if each.startswith(("wholefeed.store.database_transfer", "psycopg"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert main(["migrate", "--to", "postgresql://127.0.0.1:1/name"]) == 1
    assert f"needs psycopg: {to_add('postgres')}" in capsys.readouterr().err
