"""wholefeed.workers.machine: what a container may use; and how many workers that makes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wholefeed.workers.machine import free_memory_bytes, memory_bytes, usable_cores
from wholefeed.workers.pool import worker_count


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def put(root: Path, **files: str) -> Path:
    """Files below a root, `a__b_c` for `a/b.c`... named by their paths with __ for /."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "ascii")
    return root


def group(root: Path, line: str, **quotas: str) -> Path:
    put(root, proc__self__cgroup=line + "\n")
    for place, text in quotas.items():
        path = root / "sys/fs/cgroup" / place.replace("__", "/")
        path.mkdir(parents=True, exist_ok=True)
        (path / "cpu.max").write_text(text + "\n", "ascii")
    return root


def test_without_a_quota_all_cores_are_usable_that_the_process_may_run_on(tmp_path: Path) -> None:
    """As on a machine of one's own, or where there are no cgroups at all."""
    assert usable_cores(tmp_path) == 8
    assert usable_cores(group(tmp_path, "0::/a", a="max 100000")) == 8


@pytest.mark.parametrize(
    ("quotas", "cores"),
    [
        ({"a__b": "150000 100000"}, 1.5),
        ({"a": "300000 100000", "a__b": "max 100000"}, 3),
        ({"a": "200000 100000", "a__b": "400000 100000"}, 2),
        ({"a__b": "1600000 100000"}, 8),
        ({"a__b": "nonsense"}, 8),
        ({"a__b": "100000 0"}, 8),
    ],
)
def test_the_narrowest_quota_counts(tmp_path: Path, quotas: dict[str, str], cores: float) -> None:
    """Version 2: of the group itself and of those around it."""
    assert usable_cores(group(tmp_path, "0::/a/b", **quotas)) == cores


def test_in_a_container_the_mount_is_the_group(tmp_path: Path) -> None:
    """Its path may name folders that are not there."""
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("50000 100000", "ascii")
    assert usable_cores(group(tmp_path, "0::/docker/abc")) == 0.5


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_a_quota_of_version_1_counts(tmp_path: Path, mount: str) -> None:
    """Its controllers have a mount each, or one together."""
    put(tmp_path, proc__self__cgroup="5:memory:/x\n4:cpu,cpuacct:/a\n")
    folder = tmp_path / "sys/fs/cgroup" / mount / "a"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text("250000\n", "ascii")
    (folder / "cpu.cfs_period_us").write_text("100000\n", "ascii")
    assert usable_cores(tmp_path) == 2.5
    (folder / "cpu.cfs_quota_us").write_text("-1\n", "ascii")
    assert usable_cores(tmp_path) == 8


@pytest.mark.parametrize(
    ("quota", "workers"), [("max", 4), ("100000", 1), ("50000", 1), ("299999", 1), ("300000", 2)]
)
def test_auto_is_one_less_than_there_are_whole_cores(tmp_path: Path, quota: str, workers: int) -> None:
    """At least one, since a document must not stop the answers; at most four."""
    assert worker_count("auto", group(tmp_path, "0::/a", a=f"{quota} 100000")) == workers


def test_a_number_is_taken_as_it_is(tmp_path: Path) -> None:
    """More than there are cores, or none, if somebody wants it so."""
    assert [worker_count(each, tmp_path) for each in (0, 1, 64)] == [0, 1, 64]


def test_without_affinity_the_cores_of_the_machine_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """macOS has none."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores(tmp_path) == 3


MEMORY = """\
MemTotal:       4000000 kB
MemAvailable:   3000000 kB
"""
MIB = 1 << 20


def a_group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"memory.{name}").write_text(text + "\n", "ascii")


def test_without_a_limit_the_memory_of_the_machine_counts(tmp_path: Path) -> None:
    """What nobody has, as the kernel reckons it; where it tells nothing, all of it."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert free_memory_bytes(tmp_path) == memory_bytes(tmp_path) == whole
    put(tmp_path, proc__meminfo=MEMORY.replace("3000000", "1024"), proc__self__cgroup="0::/a\n")
    a_group(tmp_path / "sys/fs/cgroup/a", max="max", current=str(100 * MIB))
    assert (free_memory_bytes(tmp_path), memory_bytes(tmp_path)) == (MIB, whole)


def test_the_memory_of_a_container_counts(tmp_path: Path) -> None:
    """Version 2: its limit without what is in use, but for what the kernel keeps of files; of the groups
    around it too."""
    put(tmp_path, proc__meminfo=MEMORY, proc__self__cgroup="0::/a/b\n")
    stat = f"anon {80 * MIB}\nactive_file {7 * MIB}\ninactive_file {3 * MIB}\nshmem {MIB}"
    a_group(tmp_path / "sys/fs/cgroup/a/b", max=str(256 * MIB), current=str(100 * MIB), stat=stat)
    assert (free_memory_bytes(tmp_path), memory_bytes(tmp_path)) == (166 * MIB, 256 * MIB)
    a_group(tmp_path / "sys/fs/cgroup/a", max=str(200 * MIB), current=str(190 * MIB))
    assert (free_memory_bytes(tmp_path), memory_bytes(tmp_path)) == (10 * MIB, 200 * MIB)
    a_group(tmp_path / "sys/fs/cgroup/a", current=str(210 * MIB))
    assert free_memory_bytes(tmp_path) == 0


def test_memory_is_limited_by_version_1_too(tmp_path: Path) -> None:
    """Its figures have other names; no limit is a number, and larger than any machine."""
    put(tmp_path, proc__meminfo=MEMORY, proc__self__cgroup="4:memory:/a\n3:cpu:/x\n")
    folder, stat = tmp_path / "sys/fs/cgroup/memory/a", f"cache 1\ntotal_inactive_file {4 * MIB}"
    a_group(folder, limit_in_bytes=str(64 * MIB), usage_in_bytes=str(44 * MIB), stat=stat)
    assert (free_memory_bytes(tmp_path), memory_bytes(tmp_path)) == (24 * MIB, 64 * MIB)
    a_group(folder, limit_in_bytes="9223372036854771712")
    assert free_memory_bytes(tmp_path) == 3000000 * 1024
