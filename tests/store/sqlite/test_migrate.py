from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from wholefeed.errors import StoreUnusableError
from wholefeed.store import sqlite_file
from wholefeed.store.migrations import Migration, read_migrations
from wholefeed.store.sqlite_file import APPLICATION_ID, check_current, locked, migrate_file

FIRST = Migration(1, "0001_first", "CREATE TABLE one (x INTEGER) STRICT;\nINSERT INTO one VALUES (1);")
SECOND = Migration(2, "0002_second", "CREATE TABLE two (x INTEGER) STRICT;")
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
    """Row 72: the copy made before a migration also has what stood in the write-ahead log only."""
    await migrate_file(path, [FIRST])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO one VALUES (2)")

        await migrate_file(path, [FIRST, SECOND])

    assert scalar(path.with_name("feeds.db.before-0002"), "SELECT count(*) FROM one") == 2


@pytest.mark.fault("72")
async def test_a_failed_migration_leaves_the_old_schema(path: Path) -> None:
    """docs/faults.md row 72: one transaction each."""
    await migrate_file(path, [FIRST])

    for _ in range(2):
        with pytest.raises(StoreUnusableError, match="0002_broken failed"):
            await migrate_file(path, [FIRST, BROKEN])
        assert scalar(path, "PRAGMA user_version") == 1
        assert scalar(path, "SELECT count(*) FROM sqlite_schema WHERE name = 'two'") == 0

    assert await migrate_file(path, [FIRST, SECOND]) == ["0002_second"]


async def test_a_new_database_appears_whole_or_not_at_all(path: Path) -> None:
    """Row 72: when a migration of a new database fails, no half-made file is left for the next start to
    refuse."""
    with pytest.raises(StoreUnusableError, match="0002_broken failed"):
        await migrate_file(path, [FIRST, BROKEN])

    assert files(path) == set()


async def test_what_an_interrupted_creation_left_is_in_nobodys_way(path: Path) -> None:
    """Row 67: a half-made file of a start that was killed is replaced."""
    path.with_name("feeds.db.new").write_bytes(b"half")
    path.with_name("feeds.db.new-journal").write_bytes(b"half")

    assert await migrate_file(path, [FIRST]) == ["0001_first"]
    assert files(path) == {"feeds.db"}


def an_empty_file(path: Path) -> str:
    path.write_bytes(b"")
    return "is empty"


def a_text_file(path: Path) -> str:
    path.write_text("no database" * 100)
    return "no SQLite database"


def a_short_file(path: Path) -> str:
    path.write_bytes(b"SQLite format 3\0")
    return "no SQLite database"


def another_programs(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("PRAGMA journal_mode = WAL; PRAGMA application_id = 7; CREATE TABLE t (x);")
    return "another program"


def an_unmarked_one(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    return "another program"


def a_newer_one(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99; CREATE TABLE t (x);"
        )
    return "schema 99, newer"


def one_cut_short(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;"
            "CREATE TABLE t (x); INSERT INTO t VALUES (randomblob(50000));"
        )
    path.write_bytes(path.read_bytes()[:30_000])
    return "cut short"


def one_whose_schema_is_damaged(path: Path) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; CREATE TABLE t (x);")
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xff" * 3996
    path.write_bytes(data)
    return "is damaged"


@pytest.mark.parametrize(
    "make",
    [
        an_empty_file,
        a_text_file,
        a_short_file,
        another_programs,
        an_unmarked_one,
        a_newer_one,
        one_cut_short,
        one_whose_schema_is_damaged,
    ],
)
@pytest.mark.fault("70")
async def test_a_file_that_cannot_be_used_is_refused_and_left_alone(path: Path, make: object) -> None:
    """docs/faults.md row 70: never deletes or overwrites."""
    assert callable(make)
    message = make(path)
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


async def test_an_older_schema_is_not_current(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 70: a check finds a missing or older database, says which schema was expected, and writes
    nothing."""
    monkeypatch.setattr(sqlite_file, "read_migrations", lambda: (FIRST, SECOND))
    with pytest.raises(StoreUnusableError, match="no database"):
        await asyncio.to_thread(check_current, path)

    await migrate_file(path, [FIRST])

    with pytest.raises(StoreUnusableError, match=r"expected schema 2 .*, got 1"):
        await asyncio.to_thread(check_current, path)
    assert files(path) == {"feeds.db"}


async def test_a_second_process_is_refused(path: Path) -> None:
    """Row 71: while one process holds a database, another neither migrates nor opens it; afterwards it
    may."""
    await migrate_file(path, [FIRST])

    with locked(path):
        with pytest.raises(StoreUnusableError, match="in use by another process"):
            await migrate_file(path, [FIRST, SECOND])
        with pytest.raises(StoreUnusableError, match="in use"), locked(path):
            pass
    with locked(path):
        pass


async def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    """A database in a folder that does not exist is told by its reason, not by a traceback."""
    with pytest.raises(StoreUnusableError, match="No such file or directory"):
        await migrate_file(tmp_path / "nowhere" / "feeds.db")


def test_a_volume_that_cannot_be_written_needs_no_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/faults.md row 69: what is stored is served from a read-only volume."""
    path.write_bytes(b"x")
    path.with_name("feeds.db.lock").mkdir()  # cannot be opened for writing
    with pytest.raises(StoreUnusableError, match="cannot use"), locked(path):
        pass
    monkeypatch.setattr(sqlite_file, "is_writable", lambda _: False)

    with locked(path):
        pass
    assert sqlite_file.readonly_uri(path).endswith("?mode=ro&immutable=1")
