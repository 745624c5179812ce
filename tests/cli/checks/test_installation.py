"""wholefeed.cli.doctor: Python, libraries, event loop, open files, memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from wholefeed.cli.doctor import (
    Machine,
    Verdict,
    check_versions,
    judge_machine,
    judge_versions,
    this_machine,
)

REQUIRED = [
    "aiohttp<4,>=3.14",
    "backports-zstd>=1.3; python_version < '3.14'",
    "uvloop>=0.22; extra == 'uvloop'",
    "idna>=3.10",
]
INSTALLED = {"aiohttp": "3.14.5", "backports-zstd": "1.3.0", "idna": "3.10"}


def verdicts(python: str = "3.11.7", **installed: str) -> dict[str, Verdict]:
    versions = {**INSTALLED, **installed}
    found = judge_versions(python, ">=3.11", REQUIRED, versions.get)
    return {each.check: each.verdict for each in found}


def test_what_is_within_its_bounds_is_good() -> None:
    """3.10 is newer than 3.9, and 1.3.0 is 1.3; an extra's library need not be there."""
    assert verdicts() == {"python": Verdict.GOOD, "libraries": Verdict.GOOD}


@pytest.mark.parametrize("python", ["3.10.14", "3.9.99"])
def test_an_old_python_is_wrong(python: str) -> None:
    """By numbers, not by letters."""
    assert verdicts(python)["python"] is Verdict.WRONG


@pytest.mark.parametrize(
    "installed",
    [{"aiohttp": "3.13.9"}, {"aiohttp": "4.0.0"}, {"aiohttp": "4.0.0a1"}, {"idna": "3.9"}],
)
def test_a_library_outside_its_bounds_is_wrong(installed: dict[str, str]) -> None:
    """Too old and too new."""
    assert verdicts(**installed)["libraries"] is Verdict.WRONG


def test_a_library_that_is_not_there_is_wrong_where_it_is_wanted() -> None:
    """backports.zstd is not wanted from Python 3.14 on."""
    versions = {name: version for name, version in INSTALLED.items() if name != "backports-zstd"}
    for python, verdict in (("3.13.1", Verdict.WRONG), ("3.14.0", Verdict.GOOD)):
        *_, libraries = judge_versions(python, ">=3.11", REQUIRED, versions.get)
        assert libraries.verdict is verdict
    assert "not installed" in judge_versions("3.13.1", "", REQUIRED, versions.get)[1].text


def test_the_tests_run_with_libraries_within_their_bounds() -> None:
    """The real look finds Python and the libraries of this environment."""
    assert {each.check for each in check_versions()} == {"python", "libraries"}
    assert {each.verdict for each in check_versions()} == {Verdict.GOOD}


def a_machine(open_files: int) -> Machine:
    return Machine(memory_bytes=0, open_files=open_files, is_container=False)


@pytest.mark.parametrize(
    ("open_files", "verdict"), [(1024, Verdict.WARNING), (4096, Verdict.GOOD), (-1, Verdict.GOOD)]
)
def test_few_open_files_are_a_warning(open_files: int, verdict: Verdict) -> None:
    """2,048 readers at once need as many and more."""
    found = judge_machine(a_machine(open_files), has_uvloop=True, loop="uvloop.Loop")
    assert {each.check: each.verdict for each in found}["open files"] is verdict


def test_the_event_loop_is_named_and_uvloop_advised_where_it_lacks() -> None:
    """It is faster, and not needed."""
    without, _ = judge_machine(a_machine(-1), has_uvloop=False, loop="asyncio.Loop")
    beside, _ = judge_machine(a_machine(-1), has_uvloop=True, loop="uvloop.Loop")
    assert without.verdict is beside.verdict is Verdict.GOOD
    assert "wholefeed[uvloop]" in without.advice
    assert not beside.advice
    assert "uvloop.Loop" in beside.text


def test_a_container_s_own_memory_counts(tmp_path: Path) -> None:
    """What its cgroup allows, where that is less than the machine has; `max` is no bound."""
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("268435456\n", "ascii")
    (tmp_path / ".dockerenv").touch()
    assert this_machine(tmp_path).memory_bytes == 1 << 28
    assert this_machine(tmp_path).is_container
    (group / "memory.max").write_text("max\n", "ascii")
    (tmp_path / ".dockerenv").unlink()
    assert this_machine(tmp_path).memory_bytes > 1 << 28
    assert not this_machine(tmp_path).is_container
