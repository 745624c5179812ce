"""Messages about files that this user may not use."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})


def explain_failure(path: Path, error: OSError, *, is_read: bool = False) -> str:
    """Return why a path cannot be used; for missing permissions, also who has them, and a remedy.

    `is_read` says that reading is enough. Blocks briefly.
    """
    if error.errno not in _DENIED:
        return str(error.strerror or error)
    place = _find_barrier(path)
    found = place.stat()
    quoted, user, is_own = shlex.quote(str(place)), os.geteuid(), found.st_uid == os.geteuid()
    if is_read or not os.access(place, os.R_OK):
        missing, bits = "readable", _READ_BITS
    else:
        missing, bits = "writable", _WRITE_BITS
    mode = "u+r" if is_read and place.is_file() else "u+rwX"
    if is_own:
        remedy = f"chmod {mode} {quoted}"
    elif is_read:  # its owner may have others than this program in mind
        remedy = f"chgrp {os.getegid()} {quoted} && chmod g+rX {quoted}"
    else:
        remedy = f"chown {user}:{os.getegid()} {quoted}"
    names = _list_permitted(found, bits)
    only = f", only for {' and '.join(names)}" if names else ""
    return f"{place} is not {missing} for user {_user_name(user)}{only}: {remedy}"


def _find_barrier(path: Path) -> Path:
    """Return the path itself, or the nearest folder above it that can be looked at."""
    place = path.absolute()
    while place != place.parent:
        with suppress(OSError):
            place.lstat()
            return path if place == path.absolute() else place
        place = place.parent
    return place


_READ_BITS: Final = (stat.S_IRUSR, stat.S_IRGRP)
_WRITE_BITS: Final = (stat.S_IWUSR, stat.S_IWGRP)


def _list_permitted(found: os.stat_result, bits: tuple[int, int]) -> list[str]:
    of_user, of_group = (bool(found.st_mode & bit) for bit in bits)
    names = [_user_name(found.st_uid)] if of_user and found.st_uid != os.geteuid() else []
    if of_group and found.st_gid not in {os.getegid(), *os.getgroups()}:
        names.append(f"the group {_group_name(found.st_gid)}")
    return names


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # as in many containers
        return str(number)


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
