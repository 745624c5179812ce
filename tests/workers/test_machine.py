"""wholefeed.workers.machine: a container's resources, and the resulting number of workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wholefeed.workers.machine import free_memory_bytes, memory_bytes, usable_cores
from wholefeed.workers.pool import worker_count

GROUPS = "sys/fs/cgroup"
MIB = 1 << 20
WHOLE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def put(root: Path, line: str, files: dict[str, str]) -> Path:
    """A machine with this cgroup line of the process, and these files below `sys/fs/cgroup`."""
    lines = {"proc/self/cgroup": line, **{f"{GROUPS}/{place}": text for place, text in files.items()}}
    for place, text in lines.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text + "\n", "ascii")
    return root


V1_CPU = "5:memory:/x\n4:cpu,cpuacct:/a"


@pytest.mark.parametrize(
    ("line", "files", "cores"),
    [
        ("", {}, 8),
        ("0::/a", {"a/cpu.max": "max 100000"}, 8),
        ("0::/a/b", {"a/b/cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b", {"a/cpu.max": "300000 100000", "a/b/cpu.max": "max 100000"}, 3),
        ("0::/a/b", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "400000 100000"}, 2),
        ("0::/a", {"a/cpu.max": "1600000 100000"}, 8),
        ("0::/a", {"a/cpu.max": "nonsense"}, 8),
        ("0::/a", {"a/cpu.max": "100000 0"}, 8),
        ("0::/docker/abc", {"cpu.max": "50000 100000"}, 0.5),  # the mount is the group
        (V1_CPU, {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 2.5),
        (
            V1_CPU,
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "250000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
            2.5,
        ),
        (V1_CPU, {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_the_narrowest_quota_counts(tmp_path: Path, line: str, files: dict[str, str], cores: float) -> None:
    """Quotas of the group itself and of those around it, in cgroups of both versions; else all cores."""
    assert usable_cores(put(tmp_path, line, files)) == cores


@pytest.mark.parametrize(
    ("quota", "workers"), [("max", 4), ("100000", 1), ("50000", 1), ("299999", 1), ("300000", 2)]
)
def test_auto_is_one_less_than_there_are_whole_cores(tmp_path: Path, quota: str, workers: int) -> None:
    """At least one, since a document must not stop the answers; at most four. A given number counts
    unchanged."""
    assert worker_count("auto", put(tmp_path, "0::/a", {"a/cpu.max": f"{quota} 100000"})) == workers
    assert [worker_count(each, tmp_path) for each in (0, 1, 64)] == [0, 1, 64]


def test_without_affinity_the_cores_of_the_machine_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """macOS has none."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores(tmp_path) == 3


OF_A_GROUP = {
    "a/b/memory.max": str(256 * MIB),
    "a/b/memory.current": str(100 * MIB),
    "a/b/memory.stat": f"anon {80 * MIB}\nactive_file {7 * MIB}\ninactive_file {3 * MIB}\nshmem {MIB}",
}
OF_VERSION_1 = {
    "memory/a/memory.limit_in_bytes": str(64 * MIB),
    "memory/a/memory.usage_in_bytes": str(44 * MIB),
    "memory/a/memory.stat": f"cache 1\ntotal_inactive_file {4 * MIB}",
}


@pytest.mark.parametrize(
    ("line", "files", "free_bytes", "most_bytes"),
    [
        ("0::/a", {"a/memory.max": "max", "a/memory.current": str(100 * MIB)}, 1000 * MIB, WHOLE),
        ("0::/a/b", OF_A_GROUP, 166 * MIB, 256 * MIB),
        (
            "0::/a/b",
            {**OF_A_GROUP, "a/memory.max": str(200 * MIB), "a/memory.current": str(190 * MIB)},
            10 * MIB,
            200 * MIB,
        ),
        ("0::/a", {"a/memory.max": str(200 * MIB), "a/memory.current": str(210 * MIB)}, 0, 200 * MIB),
        ("4:memory:/a\n3:cpu:/x", OF_VERSION_1, 24 * MIB, 64 * MIB),
        (
            "4:memory:/a",
            {**OF_VERSION_1, "memory/a/memory.limit_in_bytes": "9223372036854771712"},
            1000 * MIB,
            WHOLE,
        ),
    ],
    ids=["no limit", "group", "around it", "overdrawn", "version 1", "version 1, no limit"],
)
def test_the_memory_of_a_container_counts(
    tmp_path: Path, line: str, files: dict[str, str], free_bytes: int, most_bytes: int
) -> None:
    """Its limit minus used memory, without the file cache; else the machine's free memory."""
    put(tmp_path, line, files)
    assert memory_bytes(tmp_path) == most_bytes
    if most_bytes == WHOLE:
        assert free_memory_bytes(tmp_path) == WHOLE, "where the kernel tells nothing"
    (tmp_path / "proc/meminfo").write_text(
        f"MemTotal: 2048000 kB\nMemAvailable:   {1000 << 10} kB\n", "ascii"
    )
    assert free_memory_bytes(tmp_path) == free_bytes
