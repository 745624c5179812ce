"""What a process and its children have used: CPU time to the microsecond, and memory; Linux only.

    before = cpu_seconds(pid)
    …
    cpu_seconds(pid) - before

CPU time hardly moves with what else the machine does, unlike wall time.
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
    """Return user and system time of a process, of its descendants, and of those that it has waited for."""
    return sum(_own_seconds(each) for each in tree(pid))


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for parent in found:  # grows while it is walked
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text("ascii").split()]
    return found


def resident_bytes(pid: int) -> int:
    """Return the memory that is resident in a process and its descendants; what they share counts twice."""
    return sum(status_kib(each, "VmRSS") for each in tree(pid)) * 1024


def peak_bytes(pid: int) -> int:
    """Return the most memory that was ever resident in this one process."""
    return status_kib(pid, "VmHWM") * 1024


def status_kib(pid: int, name: str) -> int:
    """Return a figure of /proc/PID/status; 0 for a process that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0
    found = re.search(rf"^{name}:\s*(\d+)", status, re.MULTILINE)
    return int(found[1]) if found else 0


def _own_seconds(pid: int) -> float:
    """Return the time of one process and of its children that have ended.

    The kernel's CPU clock of a process counts nanoseconds and its threads that have ended; its number is made
    of the process's as clock_getcpuclockid(3) does. /proc counts in hundredths of a second.
    """
    try:
        running = time.clock_gettime((~pid << 3) | _SCHEDULER_CLOCK)
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return running + (int(fields[13]) + int(fields[14])) / _TICKS


class Peak:
    """The most memory that was resident in a process and its descendants at once, while it was watched."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._is_over = threading.Event()
        self.bytes = 0

    def watch(self) -> None:
        """Look until told to stop."""
        while not self._is_over.wait(_SAMPLE_SECONDS):
            self.bytes = max(self.bytes, resident_bytes(self._pid))

    def stop(self) -> None:
        """End the watch."""
        self._is_over.set()


@contextlib.contextmanager
def sharing_a_processor(pids: Iterable[int]) -> Iterator[None]:
    """Let this process and others, with all of their threads, take turns on one processor meanwhile.

    Where two processors are the threads of one core, what runs beside something else takes up to half as
    long again, and who runs beside whom is up to the scheduler.
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
    """Watch the memory of a process and its descendants."""
    peak = Peak(pid)
    thread = threading.Thread(target=peak.watch)
    thread.start()
    try:
        yield peak
    finally:
        peak.stop()
        thread.join()
        peak.bytes = max(peak.bytes, peak_bytes(pid))
