"""Place of the tests' files: in memory, if there is enough, since each commit waits for a disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

IN_MEMORY: Final = Path("/dev/shm")
ENOUGH_BYTES: Final = 2 * 1024**3


def prefer_memory() -> None:
    """Make temporary files in memory, unless TMPDIR names a folder."""
    if "TMPDIR" in os.environ or not os.access(IN_MEMORY, os.W_OK | os.X_OK):
        return
    volume = os.statvfs(IN_MEMORY)
    if volume.f_flag & os.ST_NOEXEC:  # tests make programs
        return
    if min(shutil.disk_usage(IN_MEMORY).free, _available_bytes()) < ENOUGH_BYTES:
        return
    os.environ["TMPDIR"] = str(IN_MEMORY)
    tempfile.tempdir = None


def _available_bytes() -> int:
    """Available memory of the machine and the process's group."""
    known = dict(line.split(":") for line in Path("/proc/meminfo").read_text("ascii").splitlines())
    found = [int(known["MemAvailable"].removesuffix("kB")) * 1024]
    with suppress(OSError, ValueError):  # no such group, or no bound
        most, used = (Path(f"/sys/fs/cgroup/memory.{name}").read_text("ascii") for name in ("max", "current"))
        found.append(int(most) - int(used))
    return min(found)
