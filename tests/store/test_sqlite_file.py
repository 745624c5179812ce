"""A database file: its owner, its structure, and the meaning of SQLite's errors."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import aiosqlite
import pytest
from structlog.testing import capture_logs

from wholefeed.errors import (
    DiskError,
    OverloadedError,
    StorageFullError,
    StoreDamagedError,
    StoreError,
    StoreUnusableError,
    WholefeedError,
)
from wholefeed.store import sqlite_file
from wholefeed.store.engine_choice import open_file
from wholefeed.store.migrations import Migration, read_migrations
from wholefeed.store.sqlite_file import (
    APPLICATION_ID,
    check_current,
    lock_database,
    migrate_file,
    tighten,
    translate_error,
)

FIRST = Migration(1, "0001_first", "CREATE TABLE one (x INTEGER) STRICT;\nINSERT INTO one VALUES (1);")
SECOND = Migration(2, "0002_second", "CREATE TABLE two (x INTEGER) STRICT;")
THIRD = Migration(3, "0003_third", "CREATE TABLE three (x INTEGER) STRICT;")
BROKEN = Migration(2, "0002_broken", "CREATE TABLE two (x INTEGER) STRICT; SELECT nonsense;")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "feeds.db"


def scalar(path: Path, sql: str) -> object:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchone()[0]


def files(path: Path) -> set[str]:
    return {item.name for item in path.parent.iterdir()} - {f"{path.name}.lock"}


async def test_a_new_database_has_the_newest_schema(path: Path) -> None:
    """A first start makes a sound file with all migrations and its application id; a second one changes
    nothing."""
    names = [migration.name for migration in await asyncio.to_thread(read_migrations)]

    assert await migrate_file(path) == names
    assert await migrate_file(path) == []

    assert scalar(path, "PRAGMA user_version") == len(names)
    assert scalar(path, "PRAGMA application_id") == APPLICATION_ID
    assert scalar(path, "PRAGMA integrity_check") == "ok"
    assert files(path) == {"feeds.db"}
    await asyncio.to_thread(check_current, path)


@pytest.mark.fault("72")
async def test_only_what_is_missing_is_applied_and_a_copy_is_made_before(path: Path) -> None:
    """docs/faults.md row 72."""
    await migrate_file(path, [FIRST])
    assert files(path) == {"feeds.db"}

    assert await migrate_file(path, [FIRST, SECOND]) == ["0002_second"]

    copy = path.with_name("feeds.db.before-0002")
    assert scalar(copy, "PRAGMA user_version") == 1
    assert scalar(copy, "PRAGMA application_id") == APPLICATION_ID
    assert scalar(copy, "SELECT x FROM one") == 1
    assert scalar(path, "SELECT count(*) FROM two") == 0
    assert files(path) == {"feeds.db", "feeds.db.before-0002"}


async def test_a_copy_holds_what_was_still_in_the_log(path: Path) -> None:
    """Row 72: the copy before a migration includes the content of the write-ahead log."""
    await migrate_file(path, [FIRST])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO one VALUES (2)")

        await migrate_file(path, [FIRST, SECOND])

    assert scalar(path.with_name("feeds.db.before-0002"), "SELECT count(*) FROM one") == 2


@pytest.mark.fault("72")
async def test_a_failed_migration_leaves_the_old_schema(path: Path) -> None:
    """docs/faults.md row 72."""
    await migrate_file(path, [FIRST])

    for _ in range(2):
        with pytest.raises(StoreUnusableError, match="0002_broken failed"):
            await migrate_file(path, [FIRST, BROKEN])
        assert scalar(path, "PRAGMA user_version") == 1
        assert scalar(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'two'") == 0

    assert await migrate_file(path, [FIRST, SECOND]) == ["0002_second"]


@pytest.mark.fault("72")
async def test_an_upgrade_that_ends_again_and_again_leaves_one_copy(path: Path) -> None:
    """Row 72: all migrations or none, and no second copy beside a half-made one."""
    await migrate_file(path, [FIRST])
    broken = replace(THIRD, sql=f"{THIRD.sql} SELECT nonsense;")
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match="0003_third failed"):
            await migrate_file(path, [FIRST, SECOND, broken])
        assert scalar(path, "PRAGMA user_version") == 1
        assert files(path) == {"feeds.db", "feeds.db.before-0002"}
    path.with_name("feeds.db.before-0002.new").write_bytes(b"half")
    assert await migrate_file(path, [FIRST, SECOND, THIRD]) == ["0002_second", "0003_third"]
    assert files(path) == {"feeds.db", "feeds.db.before-0002"}


async def test_what_an_interrupted_creation_left_is_in_nobodys_way(path: Path) -> None:
    """Row 67: a half-made file of a killed start is replaced."""
    path.with_name("feeds.db.new").write_bytes(b"half")
    path.with_name("feeds.db.new-journal").write_bytes(b"half")

    assert await migrate_file(path, [FIRST]) == ["0001_first"]
    assert files(path) == {"feeds.db"}


OWN = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; CREATE TABLE t (x);"
NEWER = OWN.replace("= 1;", "= 99;")
LARGE = f"{OWN} INSERT INTO t VALUES (randomblob(50000));"
UNUSABLE: dict[str, tuple[str | bytes, str]] = {
    "empty": (b"", "is empty"),
    "a text": (b"no database" * 100, "no SQLite database"),
    "short": (b"SQLite format 3\0", "no SQLite database"),
    "another program's": (
        "PRAGMA journal_mode = WAL; PRAGMA application_id = 7; CREATE TABLE t (x);",
        "another program",
    ),
    "unmarked": ("CREATE TABLE t (x); INSERT INTO t VALUES (1);", "another program"),
    "newer": (NEWER, "schema 99, newer"),
    "cut short": (LARGE, "cut short"),
    "damaged": (OWN, "is damaged"),
}
"""A file's bytes, or SQL to write into it; and the error message."""


@pytest.mark.parametrize("kind", UNUSABLE)
@pytest.mark.fault("70")
async def test_a_file_that_cannot_be_used_is_refused_and_left_alone(path: Path, kind: str) -> None:
    """docs/faults.md row 70: never deletes or overwrites."""
    content, message = UNUSABLE[kind]
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.executescript(content)
    if kind == "cut short":
        path.write_bytes(path.read_bytes()[:30_000])
    elif kind == "damaged":
        data = path.read_bytes()
        path.write_bytes(data[:100] + b"\xff" * 3996 + data[4096:])
    before = path.read_bytes(), files(path)

    with pytest.raises(StoreUnusableError, match=message):
        await migrate_file(path)
    with pytest.raises(StoreUnusableError, match=message):
        await asyncio.to_thread(check_current, path)

    assert (path.read_bytes(), files(path)) == before


@pytest.mark.fault("70")
async def test_a_newer_schema_is_seen_in_the_log_too(path: Path) -> None:
    """docs/faults.md row 70: the file's header may be older than its write-ahead log."""
    await migrate_file(path, [FIRST])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA user_version = 9")
        with pytest.raises(StoreUnusableError, match="schema 9, newer"):
            await migrate_file(path, [FIRST])


def test_a_volume_that_cannot_be_written_needs_no_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/faults.md row 69: a read-only volume still serves stored feeds."""
    path.write_bytes(b"x")
    path.with_name("feeds.db.lock").mkdir()  # cannot be opened for writing
    with pytest.raises(StoreUnusableError, match="cannot use"), lock_database(path):
        pass
    monkeypatch.setattr(sqlite_file, "is_writable", lambda _: False)

    with lock_database(path):
        pass
    assert sqlite_file.readonly_uri(path).endswith("?mode=ro&immutable=1")


# Whose its files are


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """A umask that lets everybody read new files, as on most machines."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def test_every_file_of_a_new_database_is_its_owner_s_alone(tmp_path: Path) -> None:
    """The database holds bodies of private feeds: nobody else may read it, its log, or the copy before a
    migration."""
    path = tmp_path / "feeds.db"
    every = await asyncio.to_thread(read_migrations)
    await migrate_file(path, every[:-1])
    await migrate_file(path)
    async with open_file(path):
        names = ["", "-wal", "-shm", ".lock", f".before-{len(every):04}"]
        assert modes(tmp_path) == dict.fromkeys([f"feeds.db{name}" for name in names], 0o600)


async def test_what_others_could_read_is_tightened_and_told(tmp_path: Path) -> None:
    """Files of an earlier version were readable for everybody: the next start tightens them once, each with a
    log line. The owner's rights stay."""
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
    """`store.path` may be a symbolic link: SQLite's files stand beside its target. A link with a copy's name
    is left alone, with its target."""
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
"""Root may write everything; without these capabilities it is an ordinary user."""

needs_setpriv = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root needs setpriv to be an ordinary user"
)


def serve(folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the server as a user bound by file modes; it cannot start."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("WHOLEFEED_")}
    env |= {"WHOLEFEED_STORE_PATH": str(folder / "feeds.db"), **environ}
    command = [*WITHOUT_PRIVILEGES, sys.executable, "-m", "wholefeed", "serve", "--port", "0"]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


@needs_setpriv
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_folder_that_cannot_be_written_is_told_with_the_user_and_the_remedy(
    tmp_path: Path, host: str
) -> None:
    """The message names the user, the unwritable folder and the remedy, as a container's volume often needs;
    also for the token's folder."""
    volume = tmp_path / "volume"
    volume.mkdir(mode=0o555)
    user, group, remedy = os.geteuid(), os.getegid(), "chmod u+rwX"
    if user == 0:
        os.chown(volume, 10001, 10001)
        remedy = f"chown {user}:{group}"

    done = serve(volume, WHOLEFEED_SERVER_HOST=host)

    assert f"{volume} is not writable for user {user_name()}: {remedy} {volume}\n" in done.stderr
    assert (done.returncode, done.stdout) == (1, "")


@needs_setpriv
def test_a_database_that_cannot_be_read_is_told_by_its_own_name(tmp_path: Path) -> None:
    """The error names the file, not its folder."""
    path = tmp_path / "feeds.db"
    path.write_bytes(b"x" * 100)
    path.chmod(0)

    done = serve(tmp_path)

    assert f"{path} is not readable for user {user_name()}: chmod u+rwX {path}\n" in done.stderr
    assert done.returncode == 1


async def test_a_statement_whose_rows_nobody_took_keeps_no_connection_open(path: Path) -> None:
    """Its interrupt meets all later statements, and ends no shutdown with an error."""
    path.touch()
    db = await sqlite_file.open_writer(path, "")
    cursor = await db.execute("SELECT 1 UNION SELECT 2")
    assert await cursor.fetchone() is not None
    await sqlite_file.close(db)
    with pytest.raises(ValueError, match="no active connection"):
        await db.execute("SELECT 1")


async def test_a_failed_job_leaves_no_statement_that_keeps_the_connection_open(path: Path) -> None:
    """Its exception, still known to a caller, would hold its cursors: the transaction could never end."""
    path.touch()
    db = await sqlite_file.open_writer(
        path, "CREATE TABLE main.row (id); INSERT INTO row VALUES (1), (2), (3)"
    )

    def write(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute("SELECT id FROM row")
        raise LookupError(next(rows))

    with pytest.raises(LookupError) as caught:
        await db.hop(write)
    async with asyncio.timeout(300):
        await sqlite_file.close(db)
    assert caught.traceback


def test_what_is_private_of_aiosqlite_is_used_in_one_method() -> None:
    """aiosqlite has no public way to run a function of many statements in the connection's thread."""
    private = [name for name in vars(aiosqlite.Connection) if name.startswith("_") and name[1] != "_"]
    pattern = re.compile(rf"\.({'|'.join(private)}|_connection|_running|_tx|_thread)\b")
    folder = Path(sqlite_file.__file__).parent
    used = [found for path in folder.glob("sqlite*.py") for found in pattern.findall(path.read_text())]
    assert sorted(used) == ["_conn", "_execute"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SQLITE_BUSY", OverloadedError),
        ("SQLITE_BUSY_SNAPSHOT", OverloadedError),
        ("SQLITE_FULL", StorageFullError),
        ("SQLITE_READONLY_DBMOVED", StorageFullError),
        ("SQLITE_IOERR_WRITE", StorageFullError),
        ("SQLITE_IOERR_FSYNC", StorageFullError),
        ("SQLITE_IOERR_DIR_FSYNC", StorageFullError),
        ("SQLITE_IOERR_READ", DiskError),
        ("SQLITE_CANTOPEN", OverloadedError),
        ("SQLITE_NOTADB", StoreDamagedError),
        ("SQLITE_CONSTRAINT", StoreError),
        ("", StoreError),
    ],
)
def test_sqlites_errors_become_the_services(name: str, expected: type[WholefeedError]) -> None:
    """docs/faults.md rows 68, 69, 71; an error of the sqlite3 module itself has no code."""
    error = sqlite3.OperationalError("it failed")
    if name:
        error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, name), name
    assert type(translate_error(error)) is expected
