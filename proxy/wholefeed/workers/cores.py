"""How many cores this process may use, and so how many workers are worth having.

A container may be given less than the machine has: by affinity, or by a quota of its cgroup.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

AUTO: Final = "auto"
MOST_WORKERS: Final = 4
"""Of those that are chosen here: a first walk is bound by the network before it keeps more of them busy."""


def worker_count(setting: int | str, root: Path = Path("/")) -> int:
    """Return how many workers `limits.workers` stands for. It reads files.

    Args:
        setting: A number, or "auto": one less than there are usable cores, from 1 to 4.
        root: Where `proc` and `sys` are.
    """
    if isinstance(setting, int):
        return setting
    return max(1, min(int(usable_cores(root)) - 1, MOST_WORKERS))


def usable_cores(root: Path = Path("/")) -> float:
    """Return how many cores this process may keep busy; a quota may allow a part of one."""
    return min([_cores_by_affinity(), *_quotas(root)])


def _cores_by_affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quotas of the cgroups that the process is in, and of those around them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, place = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            yield from _along(root / "sys/fs/cgroup", place)
        elif "cpu" in controllers.split(","):
            yield from _along(root / "sys/fs/cgroup" / controllers, place)
            yield from _along(root / "sys/fs/cgroup/cpu", place)


def _along(mount: Path, place: str) -> Iterator[float]:
    """Yield the quotas from a cgroup up to the mount. In a container the mount may be the group itself."""
    here = mount / place.strip("/")
    for folder in (here, *here.parents):
        yield from _quota(folder)
        if folder == mount:
            return


def _quota(folder: Path) -> Iterator[float]:
    quota, _, period = _text(folder / "cpu.max").partition(" ")  # version 2
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")  # version 1
    if quota.isdigit() and period.isdigit() and int(period):  # else "max" or -1: none
        yield int(quota) / int(period)


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
