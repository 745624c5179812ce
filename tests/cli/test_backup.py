"""`wholefeed backup`: a whole copy, also while the server writes; and its refusals."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests import empty_store
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import Served, serving
from wholefeed.cli.main import main

FEEDS = 12


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty database, without a server."""
    path = tmp_path / "store" / "feeds.db"
    path.parent.mkdir()
    monkeypatch.setenv("WHOLEFEED_STORE_PATH", str(path))
    empty_store.put_at(path)
    return path


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


async def run_backup(database: Path, target: Path, *flags: str) -> tuple[int, str]:
    """Run the command in its own process; return its exit code and messages."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "wholefeed", "backup", *flags, str(target),
        cwd=database.parent, env={**os.environ, "WHOLEFEED_STORE_PATH": str(database)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


def publish(origin: Origin, number: int) -> str:
    """Publish a feed with an archive; return its URL."""
    old = atom(*[an_item(f"old-{number}-{n}", n, "x" * 2000) for n in range(20, 0, -1)], archive=True)
    new = atom(an_item(f"new-{number}", 30), prev_archive=f"/{number}/1", feed_id=f"urn:{number}")
    origin.publish(f"/{number}/1", old)
    origin.publish(f"/{number}", new)
    return origin.url(f"/{number}")


async def answers(served: Served, urls: list[str]) -> list[tuple[str, bytes]]:
    found = [await served.whole(url) for url in urls]
    assert {each.status for each in found} == {200}
    return [(each.headers["ETag"], each.body.replace(str(served.port).encode(), b"PORT")) for each in found]


async def test_a_backup_under_writes_is_restored_and_gives_the_same_answers(
    tmp_path: Path, origin: Origin
) -> None:
    """Another server with the copy answers byte for byte, and asks no publisher."""
    before = [publish(origin, number) for number in range(3)]
    later = [publish(origin, number) for number in range(3, FEEDS)]
    target = tmp_path / "backup.db"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with serving(tmp_path, freshness_minimum_seconds=900) as served:
        expected = await answers(served, before)
        writing = asyncio.create_task(answers(served, later))
        code, said = await run_backup(tmp_path / "wholefeed.db", target)
        assert not [line for line in served.lines if line["level"] in ("warning", "error")]
        await writing
    assert code == 0, said
    assert said.startswith(f"{target}: {target.stat().st_size:,} bytes, ")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with closing(sqlite3.connect(target)) as db:
        titles = dict(db.execute("SELECT url, title FROM feed").fetchall())
    assert [titles[url] for url in before] == ["A feed"] * len(before)

    shutil.copy(target, elsewhere / "wholefeed.db")
    origin.forget_requests()
    async with serving(elsewhere, freshness_minimum_seconds=900) as restored:
        found = await answers(restored, before)
    assert [body for _, body in found] == [body for _, body in expected]
    asked = {each.target.split("/")[1] for each in origin.requests}
    assert asked.isdisjoint({"0", "1", "2"}), "only walks that the copy caught in the middle go on"


def test_a_backup_is_of_one_moment_and_makes_no_writer_wait(database: Path, tmp_path: Path) -> None:
    """Transactions of two rows never show in halves, and none waits for the copy."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE pair (x INTEGER, filler BLOB)")
        db.execute("INSERT INTO pair VALUES (0, ''), (0, zeroblob(40000000)), (0, '')")
    ended, written = threading.Event(), 0

    def write() -> None:
        nonlocal written
        with closing(sqlite3.connect(database, isolation_level=None, timeout=0)) as db:
            while not ended.is_set():
                db.execute("UPDATE pair SET x = x + 1 WHERE rowid <> 2")
                written += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        codes = [main(["backup", "--force", str(tmp_path / "copy.db")]) for _ in range(5)]
    finally:
        ended.set()
        writer.join()

    assert codes == [0] * 5
    assert written > 50
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        (least, most) = db.execute("SELECT min(x), max(x) FROM pair WHERE rowid <> 2").fetchone()
    assert 0 < least == most


def test_a_file_that_is_there_is_replaced_only_on_request(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --force an existing file stays; with it the copy replaces it, mode 0600."""
    target = tmp_path / "copy.db"
    target.write_text("precious")
    target.chmod(0o644)

    assert main(["backup", str(target)]) == 1
    assert (
        f"{target} is there already: name another file, or replace it with --force" in capsys.readouterr().err
    )
    assert target.read_text() == "precious"

    assert main(["backup", "--force", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}: {target.stat().st_size:,} bytes, 0 feeds\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert names(tmp_path) == {"store", "copy.db"}


@pytest.mark.parametrize("end", ["", "-wal", "-shm", ".lock", ".token"])
def test_the_database_s_own_files_are_no_place_for_a_copy(
    database: Path, end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal holds with --force, and through a link to the folder."""
    (database.parent.parent / "link").symlink_to(database.parent)
    target = database.parent.parent / "link" / f"{database.name}{end}"
    before = database.read_bytes()
    assert main(["backup", "--force", str(target)]) == 1
    assert "belongs to the database itself" in capsys.readouterr().err
    assert database.read_bytes() == before


@pytest.mark.parametrize("target", ["-", "store", "no/folder/copy.db", "/dev/null"])
def test_what_is_no_place_for_a_file_is_refused_in_one_line(
    database: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output, a folder, a missing folder, a device: also with --force."""
    assert main(["backup", "--force", target]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("wholefeed: ")
    assert said.err.count("\n") == 1
    assert not Path("/dev/null").is_file()


def test_no_database_no_backup(own_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong store.path creates neither database nor copy; a foreign file is not copied."""
    assert main(["backup", "copy.db"]) == 1
    assert "there is no database" in capsys.readouterr().err
    with closing(sqlite3.connect(own_folder / "wholefeed.db")) as db:
        db.execute("CREATE TABLE other (x)")
    assert main(["backup", "copy.db"]) == 1
    assert "a database of another program" in capsys.readouterr().err
    assert names(own_folder) == {"wholefeed.db"}


def test_a_copy_that_is_not_sound_does_not_count(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged database gives no backup, and --force keeps the sound one."""
    target = tmp_path / "copy.db"
    assert main(["backup", str(target)]) == 0
    sound = target.read_bytes()
    with database.open("r+b") as file:
        file.seek(4096 * 20)
        file.write(b"\xff" * 4096 * 4)

    assert main(["backup", "--force", str(target)]) == 1
    assert f"cannot copy {database} to {target}" in capsys.readouterr().err
    assert target.read_bytes() == sound
    assert names(tmp_path) == {"store", "copy.db"}


def test_the_copy_of_an_old_schema_keeps_it(tmp_path: Path, database: Path) -> None:
    """A backup before an update is not migrated on the way."""
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA user_version = 3")
    assert main(["backup", str(tmp_path / "copy.db")]) == 0
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)


def test_a_shared_database_is_copied_by_its_own_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 1, with the command to type, its arguments, and no password."""
    monkeypatch.setenv("WHOLEFEED_STORE_URL", "postgresql://me:a-secret@db.test:5433/feeds?sslmode=require")
    assert main(["backup", "my feeds.dump"]) == 1
    assert capsys.readouterr().err == (
        "wholefeed: store.url names a PostgreSQL database, which its own programs copy while it runs: pg_dump"
        " --format=custom --file='my feeds.dump' 'postgresql://me@db.test:5433/feeds?sslmode=require'\n"
    )
