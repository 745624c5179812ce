"""Make sure that a database file is this program's and current, before anything else touches it.

A file is looked at before SQLite may write to it, because opening a foreign database can already change
it. A new database is built beside its place and moved there whole, so a file that is empty, foreign or
damaged is never one that this program left behind: it is refused and stays as it is.

    applied = await migrate_file(path)   # ["0001_store"]

Only the schema is dealt with here; what is in it belongs to `wholefeed.store`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from wholefeed.errors import StoreUnusableError
from wholefeed.store.migrations import Migration, read_migrations
from wholefeed.store.sqlite.files import create_private, sync, unusable

APPLICATION_ID: Final = int.from_bytes(b"whfd")
"""Stands in the file's header (SQLite file format, section 1.3.15)."""

_MAGIC: Final = b"SQLite format 3\0"
_HEADER_BYTES: Final = 100
_BUSY_SECONDS: Final = 5.0
_WAL_INDEX_BYTES: Final = 32768
"""What SQLite allocates beside a WAL database before it can even be read."""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


async def migrate_file(path: Path | str, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Create the database, or bring it to the newest schema, one transaction a migration.

    An existing database is copied to `<path>.before-NNNN` first, NNNN being the first migration it lacks.

    Returns:
        The names of the migrations applied, oldest first.

    Raises:
        StoreUnusableError: The file is foreign, empty, damaged, newer than this program or in use by another
            process, or a migration failed. The database is what it was.
    """
    return await asyncio.to_thread(_migrate_file, Path(path), migrations)


def check_current(path: Path) -> None:
    """Make sure that the database exists and has the newest schema. Blocks.

    Raises:
        StoreUnusableError: It has not, or is none of this program's.
    """
    if not path.exists():
        raise StoreUnusableError(f"no database at {path}: expected one made by `wholefeed migrate`")
    newest = len(read_migrations())
    if (version := inspect(path, newest)) < newest:
        raise StoreUnusableError(
            f"expected schema {newest} in {path}, got {version}: `wholefeed migrate` brings it up to date"
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the database file for this process alone, through a lock on `<path>.lock`. Blocks, briefly.

    The lock file stays behind: removing it would let two processes lock two different files. On a volume
    that cannot be written nobody writes the database either, and no lock is taken.

    Raises:
        StoreUnusableError: Another process holds it, or its directory does not exist.
    """
    handle = _lock_handle(path)
    try:
        if handle is not None:
            _lock(handle, path)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def is_writable(path: Path) -> bool:
    """Tell whether the database can be written: file, directory, room for the WAL's index. Blocks."""
    folder = path.absolute().parent
    if not (os.access(path, os.W_OK) and os.access(folder, os.W_OK)):
        return False
    if _size(Path(f"{path}-shm")) >= _WAL_INDEX_BYTES:
        return True
    volume = os.statvfs(folder)
    free_blocks = volume.f_bavail if os.geteuid() else volume.f_bfree
    return free_blocks * volume.f_frsize >= _WAL_INDEX_BYTES


def database_uri(path: Path) -> str:
    """Return the URI that opens the existing database for writing. Blocks."""
    return f"{path.absolute().as_uri()}?mode=rw"


def readonly_uri(path: Path) -> str:
    """Return the URI that opens the database for reading, even on a read-only volume. Blocks."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    has_wal = _size(Path(f"{path}-wal")) > 0
    return uri if has_wal or is_writable(path) else f"{uri}&immutable=1"


def _lock_handle(path: Path) -> int | None:
    try:
        return os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as exc:
        if path.exists() and not is_writable(path):
            return None
        raise StoreUnusableError(f"cannot use {path}: {unusable(Path(f'{path}.lock'), exc)}") from exc


def _lock(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        raise StoreUnusableError(
            f"{path} is in use by another process: stop that, ask it over HTTP (where it is say server.port"
            " and WHOLEFEED_SERVER_PORT), or name another database (WHOLEFEED_STORE_PATH)"
        ) from exc


def _migrate_file(path: Path, migrations: Sequence[Migration] | None) -> list[str]:
    wanted = read_migrations() if migrations is None else migrations
    with locked(path):
        if not path.exists():
            return _create(path, wanted)
        version = inspect(path, len(wanted))
        missing = wanted[version:]
        if not missing:
            return []
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)) as db:
            _copy(db, Path(f"{path}.before-{missing[0].version:04}"), path)
            return _apply(db, missing, path)


def _create(path: Path, migrations: Sequence[Migration]) -> list[str]:
    """Build the database beside its place; it appears there whole or not at all."""
    draft = Path(f"{path}.new")
    draft.unlink(missing_ok=True)
    Path(f"{draft}-journal").unlink(missing_ok=True)
    try:
        create_private(draft)
        with closing(sqlite3.connect(draft, isolation_level=None)) as db:
            applied = _apply(db, migrations, path)
        draft.rename(path)
    except (sqlite3.Error, OSError) as exc:
        raise StoreUnusableError(f"cannot create {path}: {exc}") from exc
    finally:
        draft.unlink(missing_ok=True)
    sync(path.absolute().parent)
    return applied


def inspect(path: Path, newest: int, uri: str = "") -> int:
    """Return the schema version of an existing file, without writing to it; by a URI of one's own.

    Raises:
        StoreUnusableError: It is none of this program's, damaged, or newer than `newest`.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
        _check_header(path, header, newest)
        with closing(sqlite3.connect(uri or readonly_uri(path), uri=True, timeout=_BUSY_SECONDS)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except OSError as exc:
        raise StoreUnusableError(f"cannot read {path}: {unusable(path, exc)}") from exc
    except sqlite3.Error as exc:
        is_damaged = getattr(exc, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        raise StoreUnusableError(f"{path} {'is damaged' if is_damaged else 'cannot be read'}: {exc}") from exc
    if version > newest:
        raise _newer(path, version, newest)
    return int(version)


def _check_header(path: Path, header: bytes, newest: int) -> None:
    """Judge the file by its first 100 bytes (SQLite file format, section 1.3)."""
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
        raise _newer(path, version, newest)
    page_bytes = int.from_bytes(header[16:18])
    expected = int.from_bytes(header[28:32]) * (65536 if page_bytes == 1 else page_bytes)
    if _size(path) < expected and not _size(Path(f"{path}-wal")):
        raise StoreUnusableError(f"{path} is cut short: expected {expected} bytes, got {_size(path)}")


def _newer(path: Path, version: int, newest: int) -> StoreUnusableError:
    return StoreUnusableError(
        f"{path} has schema {version}, newer than this program's {newest}: update wholefeed"
    )


def _copy(db: sqlite3.Connection, target: Path, path: Path) -> None:
    """Copy the database, whole and on disk before it bears its name."""
    draft = Path(f"{target}.new")
    draft.unlink(missing_ok=True)
    try:
        create_private(draft)
        db.execute("VACUUM INTO :target", {"target": str(draft)})
        sync(draft)
        draft.replace(target)
        sync(target.absolute().parent)
    except (sqlite3.Error, OSError) as exc:
        draft.unlink(missing_ok=True)
        raise StoreUnusableError(f"cannot copy {path} to {target} before migrating it: {exc}") from exc


def _apply(db: sqlite3.Connection, migrations: Sequence[Migration], path: Path) -> list[str]:
    applied = []
    for migration in migrations:
        # executescript() commits an open transaction first, so BEGIN stands in the script.
        script = (
            f"BEGIN IMMEDIATE;\n{migration.sql}\n"
            f"PRAGMA application_id = {APPLICATION_ID};\n"
            f"PRAGMA user_version = {migration.version};\nCOMMIT;"
        )
        try:
            db.executescript(script)
        except sqlite3.Error as exc:  # closing the connection rolls back
            raise StoreUnusableError(
                f"migration {migration.name} failed and left {path} unchanged: {exc}"
            ) from exc
        applied.append(migration.name)
    return applied


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
