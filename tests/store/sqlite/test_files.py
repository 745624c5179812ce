"""The database's files belong to their owner alone; and what is used of aiosqlite that is private."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiosqlite
import pytest
from structlog.testing import capture_logs

from wholefeed.store import sqlite_file
from wholefeed.store.migrations import Migration
from wholefeed.store.opening import open_file
from wholefeed.store.sqlite_file import migrate_file, tighten

FIRST = Migration(1, "0001_first", "CREATE TABLE one (x INTEGER) STRICT;")
SECOND = Migration(2, "0002_second", "CREATE TABLE two (x INTEGER) STRICT;")


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """As on most machines, what is made may be read by everybody unless it is made otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def test_every_file_of_a_new_database_is_its_owner_s_alone(tmp_path: Path) -> None:
    """Bodies of private feeds lie in the database, so nobody else may read it, or its log."""
    path = tmp_path / "feeds.db"
    await migrate_file(path)
    async with open_file(path):
        assert modes(tmp_path) == dict.fromkeys(
            ["feeds.db", "feeds.db-wal", "feeds.db-shm", "feeds.db.lock"], 0o600
        )


async def test_the_copy_before_a_migration_is_private_too(tmp_path: Path) -> None:
    """docs/faults.md row 72: the copy holds the same feeds."""
    path = tmp_path / "feeds.db"
    await migrate_file(path, [FIRST])
    await migrate_file(path, [FIRST, SECOND])
    assert modes(tmp_path)["feeds.db.before-0002"] == 0o600


async def test_what_others_could_read_is_tightened_and_told(tmp_path: Path) -> None:
    """Files of an earlier version were readable for everybody: the next start takes that back, each with a
    log line, and does so once. The rights of the owner stay what they are."""
    path = tmp_path / "feeds.db"
    await migrate_file(path)
    old = [path, tmp_path / "feeds.db.before-0007"]
    shutil.copy(path, old[1])
    old[0].chmod(0o644)
    old[1].chmod(0o444)

    with capture_logs() as logs:
        async with open_file(path):
            assert modes(tmp_path)["feeds.db-wal"] == 0o600
        async with open_file(path):
            pass

    assert (modes(tmp_path)["feeds.db"], modes(tmp_path)["feeds.db.before-0007"]) == (0o600, 0o400)
    assert [(log["event"], log["path"]) for log in logs] == [("store.tightened", str(each)) for each in old]


async def test_the_file_that_a_link_leads_to_is_tightened_and_no_other(tmp_path: Path) -> None:
    """`store.path` may be a symbolic link: what SQLite keeps stands beside the file it leads to. A link that
    bears the name of a copy is left alone, with what it leads to."""
    volume = tmp_path / "volume"
    volume.mkdir()
    path, other = tmp_path / "feeds.db", tmp_path / "other"
    await migrate_file(volume / "real.db")
    (volume / "real.db").chmod(0o640)
    path.symlink_to(volume / "real.db")
    other.write_bytes(b"")
    other.chmod(0o644)
    (tmp_path / "feeds.db.before-0001").symlink_to(other)

    assert [found.path for found in await asyncio.to_thread(tighten, path)] == [volume / "real.db"]
    assert modes(volume)["real.db"] == 0o600
    assert modes(tmp_path)["other"] == 0o644


WITHOUT_PRIVILEGES = (
    ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)
"""Root may write everything; without these capabilities it is one user of many."""

needs_setpriv = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root needs setpriv to be an ordinary user"
)


def serve(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the server, which cannot start, as a user whom file modes bind."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("WHOLEFEED_")}
    env |= {"WHOLEFEED_STORE_PATH": str(folder / "feeds.db"), **environ}
    command = [*WITHOUT_PRIVILEGES, sys.executable, "-m", "wholefeed", "serve", "--port", "0"]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=30, check=False
    )


@needs_setpriv
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_folder_that_cannot_be_written_is_told_with_the_user_and_the_remedy(
    tmp_path: Path, host: str
) -> None:
    """A volume of somebody else's is what a container often gets: the message says who cannot write what, and
    what to do; where a token is to be made first as well."""
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o555)
    user, group, remedy = os.geteuid(), os.getegid(), "chmod u+rwX"
    if user == 0:
        os.chown(volume, 10001, 10001)
        remedy = f"chown {user}:{group}"

    done = serve(volume, WHOLEFEED_SERVER_HOST=host)

    assert f"{volume} is not writable for user {user}: {remedy} {volume}\n" in done.stderr
    assert (done.returncode, done.stdout) == (1, "")


@needs_setpriv
def test_a_database_that_cannot_be_read_is_told_by_its_own_name(tmp_path: Path) -> None:
    """The file stands in the way then, and not its folder."""
    path = tmp_path / "feeds.db"
    path.write_bytes(b"x" * 100)
    path.chmod(0)

    done = serve(tmp_path)

    assert f"{path} is not readable for user {os.geteuid()}: chmod u+rwX {path}\n" in done.stderr
    assert done.returncode == 1


def test_what_is_private_of_aiosqlite_is_used_in_one_method() -> None:
    """It has no public way to run a function of many statements in the connection's thread."""
    private = [name for name in vars(aiosqlite.Connection) if name.startswith("_") and name[1] != "_"]
    pattern = re.compile(rf"\.({'|'.join(private)}|_connection|_running|_tx|_thread)\b")
    folder = Path(sqlite_file.__file__).parent
    used = [found for path in folder.glob("sqlite*.py") for found in pattern.findall(path.read_text())]
    assert sorted(used) == ["_conn", "_execute"]
