"""Backup and examination of a database file, also while a server uses it."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from wholefeed.errors import StoreError, StoreUnusableError
from wholefeed.permissions import explain_failure
from wholefeed.store.migrations import read_migrations
from wholefeed.store.sqlite_file import APPLICATION_ID, inspect, is_writable, sync


def back_up(path: Path, target: Path, *, replace: bool = False) -> Backup:
    """Copy the database as of one moment, without delaying readers or writers. Blocks.

    The copy gets its name when it is whole, checked and on disk.

    Raises:
        StoreUnusableError: The database does not exist, or is another program's.
        StoreError: The copy cannot be written, or is not whole; then no copy remains.
    """
    if not path.exists():
        raise StoreUnusableError(
            f"nothing to copy: there is no database {path} (store.path, WHOLEFEED_STORE_PATH)"
        )
    version = inspect(path, len(read_migrations()))
    _check_target(path, target, replace=replace)
    draft = _draft(target)
    try:
        _copy(path, draft)
        feeds = _check_copy(draft, version)
        sync(draft)
        _check_target(path, target, replace=replace)
        draft.replace(target)
        sync(target.absolute().parent)
    except (sqlite3.Error, OSError) as exc:
        raise StoreError(f"cannot copy {path} to {target}: {exc}") from exc
    finally:
        draft.unlink(missing_ok=True)
    return Backup(target.stat().st_size, feeds)


class Backup(NamedTuple):
    bytes: int
    feeds: int


OWN_ENDS: Final = ("", "-wal", "-shm", ".lock", ".token", ".address")


def _check_target(path: Path, target: Path, *, replace: bool) -> None:
    own = {os.path.realpath(f"{each}{end}") for each in (path, path.resolve()) for end in OWN_ENDS}
    if os.path.realpath(target) in own:
        raise StoreError(f"{target} belongs to the database itself: name another file")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise StoreError(f"cannot write {target}: {explain_failure(target, exc)}") from exc
    if not stat.S_ISREG(mode):
        raise StoreError(f"{target} is no plain file: name one that is not there yet")
    if not replace:
        raise StoreError(f"{target} is there already: name another file, or replace it with --force")


def _draft(target: Path) -> Path:
    try:
        descriptor, name = tempfile.mkstemp(
            dir=target.absolute().parent, prefix=f".{target.name}.", suffix=".new"
        )
    except OSError as exc:
        raise StoreError(f"cannot write {target}: {explain_failure(target, exc)}") from exc
    os.close(descriptor)
    return Path(name)


# The process may be interrupted between two steps.
_PAGES_AT_ONCE: Final = 4096


def _copy(path: Path, draft: Path) -> None:
    with closing(_open_reader(path)) as source, closing(sqlite3.connect(draft, isolation_level=None)) as copy:
        # The copy is synced before it gets its name, so it needs neither a journal nor syncs of its own.
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # fixes the moment to copy
        source.backup(copy, pages=_PAGES_AT_ONCE)
        source.execute("COMMIT")


_BUSY_SECONDS: Final = 5.0


def _open_reader(path: Path) -> sqlite3.Connection:
    # An unwritable file counts as unchanging only if no server's files are beside it.
    used = any(Path(f"{path.resolve()}{end}").exists() for end in ("-wal", "-shm"))
    options = "mode=ro" if used or is_writable(path) else "mode=ro&immutable=1"
    uri = f"{path.resolve().as_uri()}?{options}"
    db = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    db.execute("PRAGMA query_only = ON")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def _check_copy(draft: Path, version: int) -> int:
    uri = f"{draft.as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (schema,) = db.execute("PRAGMA user_version").fetchone()
        (feeds,) = db.execute("SELECT count(*) FROM feed").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"the copy is damaged, so the database may be damaged, too: {found}")
    if (application, schema) != (APPLICATION_ID, version):
        expected, got = f"schema {version} of {APPLICATION_ID:#x}", f"{schema} of {application:#x}"
        raise sqlite3.DatabaseError(f"expected {expected} in the copy, got {got}")
    return int(feeds)


# Examination


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedFile:
    version: int
    newest: int
    damage: str | None
    """Empty: none found. None: no time to look everywhere."""
    checked_at: float | None
    """Time of the last request to a publisher. None: no request yet."""
    url: str
    """URL of the most recently requested subscription document; empty without feeds."""


_LAST_CHECKED_AT: Final = "SELECT max(checked_at) FROM feed"
_LAST_ASKED: Final = "SELECT fetch_url FROM feed ORDER BY asked_at DESC LIMIT 1"
# Steps of SQLite's virtual machine between two looks at the clock.
_CLOCK_STEPS: Final = 10_000


def examine(path: Path, *, seconds: float) -> ExaminedFile:
    """Examine a database for at most `seconds`. Blocks.

    Raises:
        StoreUnusableError: The file is another program's, damaged, or newer.
    """
    # Nothing is created: a file that nobody has open is read as unchanging.
    deadline = time.monotonic() + seconds
    newest = len(read_migrations())
    uri = f"{path.absolute().as_uri()}?mode=ro"
    if not Path(f"{path}-shm").exists():
        uri += "&immutable=1"
    version = inspect(path, newest, uri)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as db:
            (checked_at,) = db.execute(_LAST_CHECKED_AT).fetchone() if version else (None,)
            asked = db.execute(_LAST_ASKED).fetchone() if version else None
            db.set_progress_handler(lambda: time.monotonic() > deadline, _CLOCK_STEPS)
            return ExaminedFile(
                version=version,
                newest=newest,
                damage=_damage(db),
                checked_at=checked_at,
                url=asked[0] if asked else "",
            )
    except sqlite3.Error as exc:
        raise StoreUnusableError(f"{path} cannot be read: {exc}") from exc


_MOST_FAULTS: Final = 3
_QUICK_CHECK: Final = f"PRAGMA quick_check({_MOST_FAULTS})"


def _damage(db: sqlite3.Connection) -> str | None:
    try:
        said = [str(row[0]) for row in db.execute(_QUICK_CHECK)]
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    return "" if said == ["ok"] else "; ".join(said)


def lock_holder(path: Path, locks: Path = Path("/proc/locks")) -> int | None:
    """Return the process with the database's lock. None: nobody, or unknown."""
    try:
        lock = Path(f"{path}.lock").stat()
        lines = locks.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    place = f"{os.major(lock.st_dev):02x}:{os.minor(lock.st_dev):02x}:{lock.st_ino}"
    for line in lines:
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5] == place:  # noqa: PLR2004 - proc(5)
            return int(fields[4])
    return None
