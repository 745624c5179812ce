"""Look at a database without changing anything, beside a server that may be using it.

    examined = examine(path, seconds=5.0)
    examined.damage                 # "" where the file is sound

Nothing is created: where nobody has the file open it is read as one that does not change.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wholefeed.errors import StoreUnusableError
from wholefeed.store.migrations import read_migrations
from wholefeed.store.sqlite.migrate import inspect

_STEPS: Final = 10_000
"""Of SQLite's machine, between two looks at the clock."""
_MOST_FAULTS: Final = 3
_QUICK_CHECK: Final = f"PRAGMA quick_check({_MOST_FAULTS})"
_NEWEST: Final = "SELECT max(checked_at) FROM feed"
_ASKED: Final = "SELECT fetch_url FROM feed ORDER BY asked_at DESC LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What can be told of a database file."""

    version: int
    """Of its schema."""
    newest: int
    """The schema of this program."""
    damage: str | None
    """Empty: none was found; None: there was no time to look everywhere."""
    checked_at: float | None
    """When a publisher was asked last; None: none was."""
    url: str
    """Of the subscription document that was asked for last; empty where there are no feeds."""


def examine(path: Path, *, seconds: float) -> Examined:
    """Look at a database for so long at most. Blocks.

    Raises:
        StoreUnusableError: It is none of this program's, damaged, or newer.
    """
    deadline = time.monotonic() + seconds
    newest = len(read_migrations())
    uri = f"{path.absolute().as_uri()}?mode=ro"
    if not Path(f"{path}-shm").exists():
        uri += "&immutable=1"
    version = inspect(path, newest, uri)
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as db:
            (checked_at,) = db.execute(_NEWEST).fetchone() if version else (None,)
            asked = db.execute(_ASKED).fetchone() if version else None
            db.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
            return Examined(
                version=version,
                newest=newest,
                damage=_damage(db),
                checked_at=checked_at,
                url=asked[0] if asked else "",
            )
    except sqlite3.Error as exc:
        raise StoreUnusableError(f"{path} cannot be read: {exc}") from exc


def lock_holder(path: Path, locks: Path = Path("/proc/locks")) -> int | None:
    """Return the process that has the database for itself; None: nobody, or it cannot be told.

    Args:
        path: The database.
        locks: Where the kernel lists who holds which lock.
    """
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


def _damage(db: sqlite3.Connection) -> str | None:
    try:
        said = [str(row[0]) for row in db.execute(_QUICK_CHECK)]
    except sqlite3.OperationalError as exc:
        if exc.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    return "" if said == ["ok"] else "; ".join(said)
