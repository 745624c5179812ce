"""The cores and the memory that this process, or its container, may use.

`root` contains `proc` and `sys`; reading them blocks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> float:
    """Return the cores that the process may keep busy; a quota may allow a fraction."""
    quotas = (quota for folder in _groups(root, "cpu") for quota in _quota(folder))
    return min([_cores_by_affinity(), *quotas])


def _cores_by_affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(folder: Path) -> Iterator[float]:
    quota, _, period = _text(folder / "cpu.max").partition(" ")  # version 2
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")  # version 1
    if quota.isdigit() and period.isdigit() and int(period):  # else "max" or -1: none
        yield int(quota) / int(period)


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory limit, shared with the cgroup's other processes."""
    limits = (limit for folder in _groups(root, "memory") for limit, _ in _memory(folder))
    return min([os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *limits])


def free_memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory available now, including file caches."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _text(root / "proc/meminfo"), re.MULTILINE)
    available = [int(found[1]) * 1024] if found else []
    left = (limit - used for folder in _groups(root, "memory") for limit, used in _memory(folder))
    return max(0, min([memory_bytes(root), *available, *left]))


def _memory(folder: Path) -> Iterator[tuple[int, int]]:
    """Yield a cgroup's limit and its use without file caches."""
    for limit, used, prefix in (
        ("memory.max", "memory.current", ""),  # version 2
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),  # version 1
    ):
        most, taken = _text(folder / limit), _text(folder / used)
        if most.isdigit():  # else "max"
            known = _fields(_text(folder / "memory.stat"))
            files = sum(known.get(f"{prefix}{name}", 0) for name in ("inactive_file", "active_file"))
            yield int(most), max(0, int(taken) - files) if taken.isdigit() else 0


def _fields(text: str) -> dict[str, int]:
    pairs = (line.partition(" ")[::2] for line in text.splitlines())
    return {name: int(value) for name, value in pairs if value.isdigit()}


def _groups(root: Path, controller: str) -> Iterator[Path]:
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, place = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            yield from _along(mount, place)
        elif controller in controllers.split(","):
            yield from _along(mount / controllers, place)
            yield from _along(mount / controller, place)
    yield from (mount, mount / controller)


def _along(mount: Path, place: str) -> Iterator[Path]:
    """Yield a cgroup's folder and its parents; in a container the mount may be the cgroup."""
    here = mount / place.strip("/")
    for folder in (here, *here.parents):
        yield folder
        if folder == mount:
            return


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
