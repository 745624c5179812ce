"""Python, the libraries, the event loop, and what the machine allows."""

from __future__ import annotations

import os
import platform
import re
import resource
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from wholefeed import __version__
from wholefeed.cli.checks.findings import Finding, good, skipped, warning, wrong

_REQUIREMENT: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<bounds>[^;]*)(?:;(?P<marker>.*))?")
_BOUND: Final = re.compile(r"(>=|<)\s*([0-9.]+)")
_PYTHON_BELOW: Final = re.compile(r"python_version < '([0-9.]+)'")
_OPEN_FILES: Final = 4096
_COMMAND: Final = 'pip install --upgrade --force-reinstall "wholefeed[uvloop]"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the machine, or the container, gives this process."""

    memory_bytes: int
    """0: not known."""
    open_files: int
    """As many as it may have open; -1: any number."""
    is_container: bool


def this_machine(root: Path = Path("/")) -> Machine:
    """Look at the machine."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Machine(
        memory_bytes=_memory_bytes(root),
        open_files=-1 if hard == resource.RLIM_INFINITY else hard,
        is_container=any((root / name).exists() for name in (".dockerenv", "run/.containerenv")),
    )


def _memory_bytes(root: Path) -> int:
    amounts = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = (root / name).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text.isdigit():
            amounts.append(int(text))
    return min(amounts)


def judge_versions(
    python: str,
    requires_python: str,
    requirements: Sequence[str],
    version_of: Callable[[str], str | None],
) -> list[Finding]:
    """Hold Python and each library against the bounds of the package.

    Args:
        python: The version of Python.
        requires_python: Its bounds, such as ">=3.11".
        requirements: The package's own, as its metadata lists them.
        version_of: Gives a library's version; None: it is not installed.
    """
    found = []
    if not _is_within(python, requires_python):
        advice = "install that Python and make the environment anew: make PYTHON=python3.13 setup"
        found.append(wrong("python", f"Python {python}; wholefeed needs {requires_python}", advice))
    else:
        found.append(good("python", f"Python {python}, wholefeed {__version__}"))
    outside, number = [], 0
    for requirement in requirements:
        match = _REQUIREMENT.match(requirement)
        if match is None or not _counts(match["marker"] or "", python):
            continue
        number += 1
        version, bounds = version_of(match["name"]), match["bounds"].strip()
        if version is None:
            outside.append(f"{match['name']} is not installed")
        elif not _is_within(version, bounds):
            outside.append(f"{match['name']} is {version}, expected {bounds}")
    if outside:
        found.append(wrong("libraries", "; ".join(outside), f"{_COMMAND}, or `make setup` in a checkout"))
    else:
        found.append(good("libraries", f"{number} libraries, each within its bounds"))
    return found


def check_versions() -> list[Finding]:
    """Hold what is installed against the bounds of the package."""
    try:
        about = metadata.metadata("wholefeed")
        requirements = metadata.requires("wholefeed") or []
    except metadata.PackageNotFoundError:
        return [skipped("libraries", "wholefeed itself is not installed, so its bounds are not known")]
    return judge_versions(
        platform.python_version(), about["Requires-Python"] or "", requirements, _installed_version
    )


def judge_machine(machine: Machine, *, has_uvloop: bool, loop: str) -> list[Finding]:
    """Judge the event loop and the limit of open files."""
    sqlite = f"SQLite {sqlite3.sqlite_version}"
    if has_uvloop:
        found = [good("event loop", f"{loop}; {sqlite}")]
    else:
        advice = 'optional: pip install "wholefeed[uvloop]" takes about 7 % less of the processor'
        found = [good("event loop", f"{loop}, uvloop is not installed; {sqlite}", advice)]
    if 0 <= machine.open_files < _OPEN_FILES:
        text = f"at most {machine.open_files} open files; {_OPEN_FILES} are wanted for many readers at once"
        advice = f"LimitNOFILE={_OPEN_FILES} in the unit of systemd, --ulimit nofile={_OPEN_FILES} for Docker"
        found.append(warning("open files", text, advice))
    else:
        allowed = "any number of" if machine.open_files < 0 else str(machine.open_files)
        found.append(good("open files", f"{allowed} open files"))
    return found


def check_machine(machine: Machine, loop: object) -> list[Finding]:
    """Judge this machine and the loop that runs."""
    kind = type(loop)
    has_uvloop = find_spec("uvloop") is not None
    return judge_machine(machine, has_uvloop=has_uvloop, loop=f"{kind.__module__}.{kind.__name__}")


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _counts(marker: str, python: str) -> bool:
    """Whether a requirement is for this Python and no extra's."""
    if "extra" in marker:
        return False
    below = _PYTHON_BELOW.search(marker.replace('"', "'"))
    return below is None or _numbers(python) < _numbers(below[1])


def _is_within(version: str, bounds: str) -> bool:
    for sign, bound in _BOUND.findall(bounds):
        if (_numbers(version) >= _numbers(bound)) is not (sign == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at the end: 3.11 is 3.11.0."""
    numbers = [int(each) for each in re.findall(r"\d+", re.split(r"[a-z+-]", version)[0])]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
