"""The database file: connections, lock and permissions, schema, and the meaning of SQLite's errors.

SQLite before 3.51.3 can damage a WAL database when two connections write or checkpoint at once, so one
connection does both. A file is inspected before SQLite may write to it, since opening a foreign database can
change it. A new database is built beside its place and moved there whole, so an empty or damaged file is
never this program's, and is refused.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sqlite3
import stat
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import aiosqlite

from wholefeed.descriptors import RETRY_AFTER_SECONDS
from wholefeed.errors import (
    DiskError,
    OverloadedError,
    StorageFullError,
    StoreDamagedError,
    StoreError,
    StoreUnusableError,
    WholefeedError,
)
from wholefeed.permissions import explain_failure
from wholefeed.store.base import Database, StoreSizes, fetch_value, run
from wholefeed.store.migrations import Migration, read_migrations

_T = TypeVar("_T")
_WRITER_PRAGMAS: Final = (
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",
    "PRAGMA wal_autocheckpoint = 8192",
    "PRAGMA journal_size_limit = 67108864",
)


async def open_writer(path: Path, script: str) -> SqliteConnection:
    """Open the connection that writes and checkpoints; `script` creates the temporary tables.

    On a read-only volume every write fails.
    """
    can_write = await asyncio.to_thread(is_writable, path)
    uri = await asyncio.to_thread(_writing_uri if can_write else readonly_uri, path)

    def prepare(db: sqlite3.Connection) -> None:
        if can_write and (mode := fetch_value(db, "PRAGMA journal_mode = WAL")) != "wal":
            raise StoreUnusableError(f"expected journal mode wal for {path}, got {mode}")
        for pragma in _WRITER_PRAGMAS:
            run(db, pragma)
        db.executescript(script)

    return await _open(uri, prepare)


_READER_PRAGMAS: Final = ("PRAGMA query_only = ON", "PRAGMA wal_autocheckpoint = 0")


async def open_reader(path: Path) -> SqliteConnection:
    def prepare(db: sqlite3.Connection) -> None:
        for pragma in _READER_PRAGMAS:
            run(db, pragma)

    return await _open(await asyncio.to_thread(readonly_uri, path), prepare)


_INTERRUPT_SECONDS: Final = 0.005


async def settle(db: SqliteConnection) -> None:
    """Stop the connection's work and leave its transaction (docs/design.md#the-store)."""
    # An interrupt ends only a statement that has begun, so it is repeated.
    while True:
        barrier = asyncio.ensure_future(db.rollback())
        while not barrier.done():
            await db.interrupt()
            await asyncio.wait({barrier}, timeout=_INTERRUPT_SECONDS)
        error = barrier.exception()
        if error is None:
            return
        if not is_interrupt(error):
            raise error


async def close(db: SqliteConnection) -> None:
    """Close the connection, even in the middle of work. An unclosed one hangs the process at exit."""
    try:
        await settle(db)
        # A pending interrupt would keep the last connection from checkpointing.
        await db.execute_fetchall("SELECT 1")
    except sqlite3.OperationalError as exc:  # a statement whose rows nobody took keeps the interrupt
        if not is_interrupt(exc):
            raise
    finally:
        await db.close()


_BUSY_SECONDS: Final = 2.0
# More than the program has, including those it builds.
_CACHED_STATEMENTS: Final = 512


async def _open(uri: str, prepare: Callable[[sqlite3.Connection], None]) -> SqliteConnection:
    try:
        db = await connect(
            uri,
            uri=True,
            isolation_level=None,
            timeout=_BUSY_SECONDS,
            cached_statements=_CACHED_STATEMENTS,
        )
        try:
            db.row_factory = sqlite3.Row
            await db.hop(prepare)
        except BaseException:
            await close(db)
            raise
    except sqlite3.Error as exc:
        raise translate_error(exc) from exc
    return db


_ROWS_AT_ONCE: Final = 64


async def connect(database: str, **options: Any) -> SqliteConnection:
    db = SqliteConnection(lambda: sqlite3.connect(database, **options), _ROWS_AT_ONCE)
    _ = await db
    return db


class SqliteConnection(aiosqlite.Connection):
    """A connection with its own thread, which runs whole functions."""

    # aiosqlite has no method for that: `_execute` and `_conn` are used here alone
    # (tests/store/test_sqlite_file.py).

    async def hop(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Run `work` in the connection's thread. The caller may be cancelled; the work runs to its end."""
        outcomes: list[_T] = []
        error: BaseException | None = await self._execute(  # type: ignore[no-untyped-call]
            lambda: _failure(lambda: outcomes.append(work(self._conn)))
        )
        if error is not None:
            raise error
        return outcomes[0]


def _failure(work: Callable[[], None]) -> BaseException | None:
    """Return a function's exception: a future would never accept a StopIteration."""
    try:
        work()
    except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
        each: BaseException | None = exc
        while each is not None:  # its frames would hold cursors, and those keep a transaction from ending
            traceback.clear_frames(each.__traceback__)
            each = each.__cause__ or each.__context__
        return exc
    return None


# The meaning of SQLite's errors (docs/faults.md rows 68 to 71)


_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


def is_busy(error: sqlite3.Error) -> bool:
    return _primary_code(error) in _BUSY


def is_interrupt(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _primary_code(error) == sqlite3.SQLITE_INTERRUPT


_FULL: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY})
# Errors of writing alone, of a full volume or of a disk that fails.
_FULL_EXTENDED: Final = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_DELETE,
        sqlite3.SQLITE_IOERR_COMMIT_ATOMIC,
    }
)
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def translate_error(error: sqlite3.Error) -> WholefeedError:
    if is_busy(error):
        return OverloadedError(f"the database is busy: {error}")
    if _primary_code(error) == sqlite3.SQLITE_CANTOPEN:
        return OverloadedError(
            f"the database could not open a file: {error}", retry_after_seconds=RETRY_AFTER_SECONDS
        )
    if _primary_code(error) in _FULL or _extended_code(error) in _FULL_EXTENDED:
        return StorageFullError(f"the database cannot be written: {error}")
    if _primary_code(error) in _DAMAGED:
        return StoreDamagedError(f"the database is damaged: {error}")
    kind = DiskError if _primary_code(error) == sqlite3.SQLITE_IOERR else StoreError
    return kind(f"the database failed ({getattr(error, 'sqlite_errorname', 'no code')}): {error}")


def _extended_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)


def _primary_code(error: sqlite3.Error) -> int:
    return _extended_code(error) & 0xFF


# Ownership of the database: this program's, current, and reserved for this process


APPLICATION_ID: Final = int.from_bytes(b"whfd")
"""Identifies the program in the file's header (SQLite file format, section 1.3.15)."""


def check_current(path: Path) -> None:
    """Raise `StoreUnusableError` unless the database exists with the newest schema. Blocks."""
    if not path.exists():
        raise StoreUnusableError(f"no database at {path}: expected one made by `wholefeed migrate`")
    newest = len(read_migrations())
    if (version := inspect(path, newest)) < newest:
        raise StoreUnusableError(
            f"expected schema {newest} in {path}, got {version}: `wholefeed migrate` brings it up to date"
        )


_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_LOOK_BUSY_SECONDS: Final = 5.0


def inspect(path: Path, newest: int, uri: str = "") -> int:
    """Return the schema version of an existing file, without writing to it.

    Raises:
        StoreUnusableError: The file is another program's, damaged, or newer than `newest`.
    """
    header = _read_header(path, newest)
    page_bytes = int.from_bytes(header[16:18])
    expected = int.from_bytes(header[28:32]) * (65536 if page_bytes == 1 else page_bytes)
    try:
        if _size(path) < expected and not _size(Path(f"{path}-wal")):
            raise StoreUnusableError(f"{path} is cut short: expected {expected} bytes, got {_size(path)}")
        with closing(sqlite3.connect(uri or readonly_uri(path), uri=True, timeout=_LOOK_BUSY_SECONDS)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except OSError as exc:
        raise StoreUnusableError(f"cannot read {path}: {explain_failure(path, exc)}") from exc
    except sqlite3.Error as exc:
        is_damaged = _primary_code(exc) in _DAMAGED
        raise StoreUnusableError(f"{path} {'is damaged' if is_damaged else 'cannot be read'}: {exc}") from exc
    if version > newest:
        raise _newer_schema_error(path, version, newest)
    return int(version)


def _read_header(path: Path, newest: int) -> bytes:
    """Return the file's first 100 bytes, checked (SQLite file format, section 1.3)."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as exc:
        raise StoreUnusableError(f"cannot read {path}: {explain_failure(path, exc)}") from exc
    if not header:
        raise StoreUnusableError(f"{path} is empty: expected a database of this program, or no file")
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise StoreUnusableError(
            f"{path} is no SQLite database: move it away, or name another file (WHOLEFEED_STORE_PATH)"
        )
    application_id = int.from_bytes(header[68:72])
    if application_id != APPLICATION_ID:
        raise StoreUnusableError(
            f"{path} is a database of another program: expected application_id {APPLICATION_ID:#x},"
            f" got {application_id:#x}"
        )
    if (version := int.from_bytes(header[60:64])) > newest:
        raise _newer_schema_error(path, version, newest)
    return header


def _newer_schema_error(path: Path, version: int, newest: int) -> StoreUnusableError:
    return StoreUnusableError(
        f"{path} has schema {version}, newer than this program's {newest}: update wholefeed"
    )


@contextmanager
def lock_database(path: Path) -> Iterator[None]:
    """Reserve the database file for this process, by a lock on `<path>.lock`. Blocks, briefly.

    Raises:
        StoreUnusableError: Another process has the lock, or the directory does not exist.
    """
    # The lock file stays: its removal would let two processes lock two files. On a read-only volume there is
    # no lock, since nobody can write the database.
    handle = _lock_handle(path)
    try:
        if handle is not None:
            _lock(handle, path)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock_handle(path: Path) -> int | None:
    try:
        return os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
    except OSError as exc:
        if path.exists() and not is_writable(path):
            return None
        raise StoreUnusableError(f"cannot use {path}: {explain_failure(Path(f'{path}.lock'), exc)}") from exc


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        raise StoreUnusableError(
            f"{path} is in use by another process: stop that one (`wholefeed doctor` names it), use it"
            " (`wholefeed url` says where), or name another database (WHOLEFEED_STORE_PATH)"
        ) from exc


# Space that SQLite needs beside a WAL database even for reading.
_WAL_INDEX_BYTES: Final = 32768


def is_writable(path: Path) -> bool:
    """Return whether file, directory and free space permit writing the database. Blocks."""
    folder = path.absolute().parent
    if not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        return False
    if _size(Path(f"{path}-shm")) >= _WAL_INDEX_BYTES:
        return True
    volume = os.statvfs(folder)
    free_blocks = volume.f_bavail if os.geteuid() else volume.f_bfree
    return free_blocks * volume.f_frsize >= _WAL_INDEX_BYTES


def _writing_uri(path: Path) -> str:
    return f"{path.absolute().as_uri()}?mode=rw"


def readonly_uri(path: Path) -> str:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    has_wal = _size(Path(f"{path}-wal")) > 0
    return uri if has_wal or is_writable(path) else f"{uri}&immutable=1"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# The schema, without the data


async def migrate_file(path: Path | str, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Create the database, or migrate it, in one transaction; return the applied migrations.

    An existing database is first copied to `<path>.before-NNNN`, where NNNN is its first missing migration.

    Raises:
        StoreUnusableError: The file is foreign, empty, damaged, newer or in use, or a migration failed. The
            database is unchanged.
    """
    return await asyncio.to_thread(_migrate_file, Path(path), migrations)


def _migrate_file(path: Path, migrations: Sequence[Migration] | None) -> list[str]:
    wanted = read_migrations() if migrations is None else migrations
    if path.exists():
        _read_header(path, len(wanted))  # before the lock, which leaves a file
    with lock_database(path):
        if not path.exists():
            return create_file(path, wanted)
        version = inspect(path, len(wanted))
        missing = wanted[version:]
        if not missing:
            return []
        with closing(sqlite3.connect(path, timeout=_LOOK_BUSY_SECONDS, isolation_level=None)) as db:
            _copy(db, Path(f"{path}.before-{missing[0].version:04}"), path)
            _complete_digests(db, path)
            return _apply(db, missing, path)


def create_file(path: Path, migrations: Sequence[Migration]) -> list[str]:
    try:
        with draft_of(path) as draft, closing(sqlite3.connect(draft, isolation_level=None)) as db:
            return _apply(db, migrations, path)
    except (sqlite3.Error, OSError) as exc:
        raise StoreUnusableError(f"cannot create {path}: {exc}") from exc


def _copy(db: sqlite3.Connection, target: Path, path: Path) -> None:
    try:
        target.unlink(missing_ok=True)  # of an attempt that was killed: there is room for one copy
        with draft_of(target) as draft:
            db.execute("VACUUM INTO :target", {"target": str(draft)})
    except (sqlite3.Error, OSError) as exc:
        raise StoreUnusableError(f"cannot copy {path} to {target} before migrating it: {exc}") from exc


@contextmanager
def draft_of(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path`. It appears at `path` whole and on disk, or not at all."""
    draft = Path(f"{path}.new")
    draft.unlink(missing_ok=True)
    Path(f"{draft}-journal").unlink(missing_ok=True)
    try:
        _create_private(draft)
        yield draft
        sync(draft)
        draft.replace(path)
        sync(path.absolute().parent)
    finally:
        draft.unlink(missing_ok=True)


_INCOMPLETE: Final = "SELECT id, digest FROM segment WHERE length(digest) = 16"
_BLOCK: Final = "SELECT deflated FROM block WHERE segment = :segment"
_BLOCK_REST: Final = "SELECT deflated FROM block_rest WHERE segment = :segment ORDER BY number"
_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_COMPLETE: Final = "UPDATE segment SET digest = :digest WHERE id = :segment"


def _complete_digests(db: sqlite3.Connection, path: Path) -> None:
    """Add the Adler-32 of its text, which later ETags contain, to each digest from wholefeed 0.1."""
    try:
        tables = {name for (name,) in db.execute(_TABLES)}
        rest = _BLOCK_REST if "block_rest" in tables else ""
        found = db.execute(_INCOMPLETE).fetchall() if "segment" in tables else []
        db.execute("BEGIN IMMEDIATE")
        for segment, digest in found:
            inflater, adler32 = zlib.decompressobj(-zlib.MAX_WBITS), 1
            for sql in filter(None, (_BLOCK, rest)):
                for (deflated,) in db.execute(sql, {"segment": segment}):
                    left = deflated
                    while left:
                        adler32 = zlib.adler32(inflater.decompress(left, _INFLATED_BYTES), adler32)
                        left = inflater.unconsumed_tail
            db.execute(_COMPLETE, {"segment": segment, "digest": digest + adler32.to_bytes(4)})
        db.execute("COMMIT")
    except (sqlite3.Error, zlib.error) as exc:  # closing the connection rolls back
        raise StoreUnusableError(f"cannot read the segments in {path}, which is unchanged: {exc}") from exc


_INFLATED_BYTES: Final = 1 << 20


def _apply(db: sqlite3.Connection, migrations: Sequence[Migration], path: Path) -> list[str]:
    # executescript() commits an open transaction first, so BEGIN stands in the script. One transaction for
    # all: a database between two schemas would need another copy at the next start.
    steps = [f"{each.sql}\nPRAGMA user_version = {each.version};\n" for each in migrations]
    script = "".join(
        ["BEGIN IMMEDIATE;\n", *steps, f"PRAGMA application_id = {APPLICATION_ID};\n", "COMMIT;"]
    )
    try:
        db.executescript(script)
    except sqlite3.Error as exc:  # closing the connection rolls back
        name = _find_failed(db, migrations).name
        raise StoreUnusableError(f"migration {name} failed and left {path} unchanged: {exc}") from exc
    return [each.name for each in migrations]


def _find_failed(db: sqlite3.Connection, migrations: Sequence[Migration]) -> Migration:
    """Return the migration that failed in the open transaction; the first, if all is undone already."""
    done = 0
    with suppress(sqlite3.Error):
        done = fetch_value(db, "PRAGMA user_version")
    return next((each for each in migrations if each.version > done), migrations[0])


# File permissions: for the owner alone


class TightenedFile(NamedTuple):
    path: Path
    problem: str = ""
    """Reason for remaining access; empty: access was removed."""


_OTHERS: Final = 0o077


def tighten(path: Path) -> list[TightenedFile]:
    """Remove other users' permissions from the database's files; return the affected files. Blocks."""
    # No file is opened: closing a descriptor would drop the process's SQLite locks
    # (https://sqlite.org/howtocorrupt.html, 2.2).
    return [TightenedFile(each, _take_rights(each, mode)) for each, mode in _files(path) if mode & _OTHERS]


def _files(path: Path) -> Iterator[tuple[Path, int]]:
    real = path.resolve()  # SQLite's own files are beside the target of a link
    names = [real, Path(f"{real}-wal"), Path(f"{real}-shm"), Path(f"{path}.lock")]
    copies = f"{path.name}.before-"
    names += sorted(each for each in path.absolute().parent.iterdir() if each.name.startswith(copies))
    for name in names:
        with suppress(OSError):
            found = name.lstat().st_mode
            if stat.S_ISREG(found):
                yield name, stat.S_IMODE(found)


def _take_rights(path: Path, mode: int) -> str:
    try:
        path.chmod(mode & ~_OTHERS)
    except OSError as exc:
        return exc.strerror or str(exc)
    return ""


_MODE: Final = 0o600


def _create_private(path: Path) -> None:
    # SQLite gives its other files the permissions of the database.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to disk. Blocks."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Size of the store


_RETIRED_BYTES: Final = "SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE retired_at IS NOT NULL"
_DATABASE: Final = "SELECT file FROM pragma_database_list WHERE name = 'main'"
_SIZED_ENDS: Final = ("", "-wal")


def measure_sizes(db: Database) -> StoreSizes:
    pages = fetch_value(db, "PRAGMA page_count")
    free = fetch_value(db, "PRAGMA freelist_count")
    page_bytes = fetch_value(db, "PRAGMA page_size")
    path = Path(fetch_value(db, _DATABASE))
    files = [path.with_name(path.name + end) for end in _SIZED_ENDS]
    return StoreSizes(
        used_bytes=int((pages - free) * page_bytes - fetch_value(db, _RETIRED_BYTES)),
        file_bytes=sum(file.stat().st_size for file in files if file.exists()),
        free_bytes=shutil.disk_usage(path.parent).free,
    )
