"""A Unix socket to listen on, beside host and port: for a reverse proxy on the same machine.

    with bound("/run/wholefeed/wholefeed.sock") as listener: ...

A file that a process left behind is replaced, a socket that somebody listens on is not, and anything else
that bears the name is left alone. At exit the file goes, if it is still the one that was made here.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

_ALL_BUT_OWNER_AND_GROUP: Final = 0o117
"""Owner and group may connect (0660)."""
_CONNECT_SECONDS: Final = 2.0


@contextmanager
def bound(path: str) -> Iterator[socket.socket]:
    """Yield a socket that is bound to a path and does not listen yet. Blocks, briefly.

    Raises:
        OSError: It cannot be; `filename` is the path, and `strerror` says why in words for people.
    """
    _make_way(path)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
        umask = os.umask(_ALL_BUT_OWNER_AND_GROUP)
        try:
            listener.bind(path)
        except OSError as exc:
            raise OSError(exc.errno, exc.strerror, path) from exc
        finally:
            os.umask(umask)
        made = _identity(path)
        try:
            yield listener
        finally:
            if made is not None and _identity(path) == made:
                with suppress(OSError):
                    Path(path).unlink()


def _make_way(path: str) -> None:
    """Remove the socket of a process that has ended."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, path) from exc
    if not stat.S_ISSOCK(mode):
        raise OSError(errno.EEXIST, "something is there that is no socket", path)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as probe:
        probe.settimeout(_CONNECT_SECONDS)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
        except OSError as exc:
            raise OSError(exc.errno or errno.EIO, f"whether anybody listens is unknown: {exc}", path) from exc
    raise OSError(errno.EADDRINUSE, "something listens there already", path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
