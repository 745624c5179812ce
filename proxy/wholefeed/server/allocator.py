"""Settings of glibc that return freed memory to the system.

Once glibc has got a block of 1 MB back, it takes such blocks from heaps, where 15 MB stay resident after a
first walk.
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
"""Larger blocks return to the system at once when freed."""
_TRIMMED_BYTES: Final = 1 << 20
_HEAPS: Final = 2
_OPERATORS_OWN: Final = ("MALLOC_", "GLIBC_TUNABLES")


def give_large_blocks_back(environ: Mapping[str, str]) -> bool:
    """Let freed large blocks go back to the system; return whether they do.

    An operator's own settings for malloc in `environ` stay: nothing changes.
    """
    if any(name.startswith(_OPERATORS_OWN) for name in environ):
        return False
    with suppress(OSError, AttributeError):  # mallopt(3) is glibc's
        mallopt = ctypes.CDLL(None).mallopt
        wanted = {_M_MMAP_THRESHOLD: _LARGE_BYTES, _M_TRIM_THRESHOLD: _TRIMMED_BYTES, _M_ARENA_MAX: _HEAPS}
        return all(mallopt(name, value) == 1 for name, value in wanted.items())
    return False
