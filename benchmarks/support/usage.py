"""CPU time, to the microsecond, and memory of a process and its children; Linux only.

    before = cpu_seconds(pid)
    …
    cpu_seconds(pid) - before

Other load on the machine hardly changes CPU time, unlike wall time.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SCHEDULER_CLOCK: Final = 2
_SAMPLE_SECONDS: Final = 0.02


def cpu_seconds(pid: int) -> float:
    """Return user and system seconds of a process, its descendants, and the children it waited for."""
    return sum(_own_seconds(each) for each in tree(pid))


def tree(pid: int) -> list[int]:
    found = [pid]
    for parent in found:  # grows while it is walked
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text("ascii").split()]
    return found


def resident_bytes(pid: int) -> int:
    """Return the resident bytes of a process and its descendants; shared memory counts twice."""
    return sum(status_kib(each, "VmRSS") for each in tree(pid)) * 1024


def peak_bytes(pid: int) -> int:
    """Return the highest resident bytes of this one process."""
    return status_kib(pid, "VmHWM") * 1024


def status_kib(pid: int, name: str) -> int:
    """Return a figure of /proc/PID/status; 0 for an ended process."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0
    found = re.search(rf"^{name}:\s*(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _own_seconds(pid: int) -> float:
    """Return the seconds of one process and of its ended children.

    The kernel's CPU clock of a process counts nanoseconds and includes ended threads; its number is derived
    as in clock_getcpuclockid(3). /proc counts in hundredths of a second.
    """
    try:
        running = time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return running + (int(fields[13]) + int(fields[14])) / _TICKS


class Peak:
    """Highest resident memory of a process and its descendants together during the watch."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_over = threading.Event()
        self.bytes = 0

    def watch(self) -> None:
        while not self._is_over.wait(_SAMPLE_SECONDS):
            self.bytes = max(self.bytes, resident_bytes(self._pid))

    def stop(self) -> None:
        self._is_over.set()


@contextlib.contextmanager
def sharing_a_processor(pids: Iterable[int]) -> Iterator[None]:
    """Let these processes, with all threads, take turns on one processor meanwhile.

    On two processors of one core, work beside other work takes up to half as long again, at the scheduler's
    whim.
    """
    before = os.sched_getaffinity(0)
    own = {max(before)}
    for pid in pids:
        for each in tree(pid):
            for task in Path(f"/proc/{each}/task").iterdir():
                os.sched_setaffinity(int(task.name), own)
    os.sched_setaffinity(0, own)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def watching(pid: int) -> Iterator[Peak]:
    peak = Peak(pid)
    thread = threading.Thread(target=peak.watch)
    thread.start()
    try:
        yield peak
    finally:
        peak.stop()
        thread.join()
        peak.bytes = max(peak.bytes, peak_bytes(pid))
