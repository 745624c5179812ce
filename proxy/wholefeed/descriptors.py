"""File descriptors of the process."""

from __future__ import annotations

import errno
import os
import resource
import socket
from contextlib import suppress
from typing import Final

KEPT: Final = 8
"""The last free descriptors, for the database, readers and look-ups."""
RETRY_AFTER_SECONDS: Final = 5
"""Other requests end meanwhile."""

_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def is_shortage(error: BaseException | None) -> bool:
    """Return whether the process or the system had no descriptor, or no memory for one."""
    return isinstance(error, OSError) and error.errno in _SHORTAGES


def are_short() -> bool:
    try:
        number = os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return True
    os.close(number)
    return _is_kept(number)


def leave_kept(made: socket.socket) -> socket.socket:
    """Return a new socket, unless it has one of the kept descriptors.

    Raises:
        OSError: EMFILE; the socket is closed.
    """
    if _is_kept(made.fileno()):
        made.close()
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return made


def _is_kept(number: int) -> bool:
    # The system gives the lowest free number, so all below it are in use.
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft != resource.RLIM_INFINITY and number >= soft - KEPT


class SpareDescriptor:
    """An open descriptor, to be given back in a shortage."""

    def __init__(self) -> None:
        self._number: int | None = None
        self.take()

    def take(self) -> None:
        """Take it again, unless in a shortage."""
        if self._number is None:
            with suppress(OSError):
                self._number = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def give(self) -> bool:
        """Free the descriptor; return whether it was there."""
        number, self._number = self._number, None
        if number is not None:
            os.close(number)
        return number is not None
