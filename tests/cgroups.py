"""A cgroup with a limit of memory, for a server in a process of its own, where one may be made.

with memory_group(256 << 20) as group:
    with running_server(folder, before=group.join) as server: ...
    assert group.killed() == 0
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path("/sys/fs/cgroup")
_END_SECONDS: Final = 5.0


class MemoryGroup:
    """A cgroup of version 2 or 1."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def join(self) -> list[str]:
        """Prefix for a command that runs in the group."""
        return ["/bin/sh", "-c", f'echo $$ > {self._folder}/cgroup.procs && exec "$@"', "sh"]

    def killed(self) -> int:
        """Number of processes ended by the kernel for lack of memory in the group."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError):
                found = re.search(r"^oom_kill (\d+)$", (self._folder / name).read_text("ascii"), re.MULTILINE)
                return int(found[1]) if found else 0
        return 0

    def limit(self, limit_bytes: int) -> None:
        """Set the limit, swap included if there is any; OSError if not allowed."""
        with suppress(OSError):
            (self._folder / "memory.swap.max").write_text("0", "ascii")
        name = "memory.max" if (self._folder / "memory.max").exists() else "memory.limit_in_bytes"
        (self._folder / name).write_text(str(limit_bytes), "ascii")

    def remove(self) -> None:
        """End its processes, then remove it."""
        until = time.monotonic() + _END_SECONDS
        while time.monotonic() < until:
            for pid in (self._folder / "cgroup.procs").read_text("ascii").split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            try:
                self._folder.rmdir()
            except OSError:
                time.sleep(0.05)
            else:
                return


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[MemoryGroup]:
    """Make a cgroup with that much memory; skip the test if not allowed."""
    for mount in (_ROOT, _ROOT / "memory"):
        if not (mount / "cgroup.procs").exists():
            continue
        folder = mount / f"wholefeed-test-{os.getpid()}"
        group = MemoryGroup(folder)
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            try:
                group.limit(limit_bytes)
            except OSError:
                continue
            yield group
            return
        finally:
            group.remove()
    pytest.skip("no cgroup with a limit of memory can be made here")
