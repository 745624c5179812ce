"""Settings of the C library for memory that is given back to it.

glibc hands out a large block from its heaps once it has been given one of that size back, and has a heap for
each of several threads. Documents of 1 MB pass through four of them (the event loop, SQLite's, a worker's):
memory in front of smaller blocks stays resident, 15 MB in a first walk.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 17
"""From here on a block is the system's own, and goes back to it at once."""
_TRIMMED_BYTES: Final = 1 << 20
_HEAPS: Final = 2
_OPERATORS_OWN: Final = ("MALLOC_", "GLIBC_TUNABLES")


def give_large_blocks_back(environ: Mapping[str, str]) -> bool:
    """Let large blocks go back to the system when they are freed; return whether that can be asked for.

    Args:
        environ: Where it sets the C library's own variables, nothing is changed.
    """
    if any(name.startswith(_OPERATORS_OWN) for name in environ):
        return False
    with suppress(OSError, AttributeError):  # mallopt(3) is glibc's
        mallopt = ctypes.CDLL(None).mallopt
        wanted = {_M_MMAP_THRESHOLD: _LARGE_BYTES, _M_TRIM_THRESHOLD: _TRIMMED_BYTES, _M_ARENA_MAX: _HEAPS}
        return all(mallopt(name, value) == 1 for name, value in wanted.items())
    return False
