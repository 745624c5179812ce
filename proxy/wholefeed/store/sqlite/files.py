"""The database's files as files: for their owner alone, and what is told of those that cannot be used.

`tighten` opens nothing: to close a descriptor of a database drops the locks that SQLite holds on it in this
process (https://sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_MODE: Final = 0o600
_OTHERS: Final = 0o077
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


class Tightened(NamedTuple):
    """A file that others could use."""

    path: Path
    problem: str = ""
    """Why they still can; empty: they cannot any more."""


def create_private(path: Path) -> None:
    """Make an empty file for its owner alone; what SQLite makes beside a database gets the database's rights.

    Raises:
        OSError: It cannot be made, or is there already.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))


def tighten(path: Path) -> list[Tightened]:
    """Take the rights of others from the database's files; return those that had any. Blocks.

    Args:
        path: The database, which is this program's own.
    """
    return [Tightened(each, _tighten(each, mode)) for each, mode in _files(path) if mode & _OTHERS]


def unusable(path: Path, error: OSError) -> str:
    """Return why a path cannot be used; where rights lack, whose they are and what to do."""
    if error.errno not in _DENIED:
        return str(error.strerror or error)
    place = path if path.exists() else path.absolute().parent
    missing = "writable" if os.access(place, os.R_OK) else "readable"
    is_own = place.stat().st_uid == os.geteuid()
    remedy = "chmod u+rwX" if is_own else f"chown {os.geteuid()}:{os.getegid()}"
    return f"{place} is not {missing} for user {os.geteuid()}: {remedy} {shlex.quote(str(place))}"


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk. Blocks."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _files(path: Path) -> Iterator[tuple[Path, int]]:
    """Give the files of a database, with their modes; SQLite's own stand beside what a link leads to."""
    real = path.resolve()
    names = [real, Path(f"{real}-wal"), Path(f"{real}-shm"), Path(f"{path}.lock")]
    copies = f"{path.name}.before-"
    names += sorted(each for each in path.absolute().parent.iterdir() if each.name.startswith(copies))
    for name in names:
        with suppress(OSError):
            found = name.lstat().st_mode
            if stat.S_ISREG(found):
                yield name, stat.S_IMODE(found)


def _tighten(path: Path, mode: int) -> str:
    try:
        path.chmod(mode & ~_OTHERS)
    except OSError as exc:
        return exc.strerror or str(exc)
    return ""
