"""The database: its place, its rights, its schema, whether it is sound, who uses it, and the clock by it."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from wholefeed.cli.checks.findings import Finding, good, skipped, warning, wrong
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.errors import StoreUnusableError
from wholefeed.store.sqlite.examine import Examined, examine, lock_holder

EXAMINE_SECONDS: Final = 4.0
_CHECK: Final = "database"
_LEAST_FREE_BYTES: Final = 64 << 20
_FEW_FREE_BYTES: Final = 512 << 20
_LARGE_LOG_BYTES: Final = 512 << 20
_CLOCK_SECONDS: Final = 60.0
_REMOTE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs"}
)
_EXPOSED: Final = 0o077
_ROOT: Final = 0
_BESIDE: Final = ("-wal", "-shm", ".lock", ".token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the database is, or is to be, and what may be done there."""

    path: Path
    has_folder: bool
    is_folder_writable: bool
    is_there: bool
    is_readable: bool
    is_writable: bool
    mode: int
    """Of the file, its rights alone."""
    bytes: int
    log_bytes: int
    """Of what is not yet in the file."""
    free_bytes: int
    file_system: str
    """Empty: not known."""
    holder: int | None
    """The process that has it for itself."""
    foreign: tuple[str, ...] = ()
    """Files of it that belong to another user than their folder."""
    folder_owner: int = 0


class Newest(Protocol):
    """What was read of a database, whichever it is."""

    @property
    def checked_at(self) -> float | None:
        """When a publisher was asked last; None: none was."""

    @property
    def url(self) -> str:
        """Of the subscription document that was asked for last; empty where there are no feeds."""


def look_at(path: Path, mounts: Path = Path("/proc/mounts")) -> Place:
    """Look at the place of a database. Blocks."""
    folder = path.absolute().parent
    has_folder, is_there = folder.is_dir(), path.exists()
    return Place(
        path=path,
        has_folder=has_folder,
        is_folder_writable=os.access(folder, os.W_OK | os.X_OK),
        is_there=is_there,
        is_readable=os.access(path, os.R_OK),
        is_writable=os.access(path, os.W_OK),
        mode=stat.S_IMODE(path.stat().st_mode) if is_there else 0,
        bytes=path.stat().st_size if is_there else 0,
        log_bytes=log.stat().st_size if (log := Path(f"{path}-wal")).exists() else 0,
        free_bytes=shutil.disk_usage(folder).free if has_folder else 0,
        file_system=_file_system(folder, mounts),
        holder=lock_holder(path),
        foreign=_foreign(path, folder) if has_folder else (),
        folder_owner=folder.stat().st_uid if has_folder else 0,
    )


def _foreign(path: Path, folder: Path) -> tuple[str, ...]:
    """Return the files of a database that belong to somebody else than their folder does."""
    owner = folder.stat().st_uid
    files = (Path(f"{path}{suffix}") for suffix in ("", *_BESIDE))
    return tuple(str(file) for file in files if file.exists() and file.stat().st_uid != owner)


def check_database(path: Path, max_bytes: int) -> tuple[list[Finding], Examined | None]:
    """Look at the database and judge it; also return what was read of it. Blocks, for seconds at most."""
    place = look_at(path)
    found = list(judge_place(place, max_bytes))
    if not (place.is_there and place.is_readable):
        return found, None
    try:
        examined = examine(path, seconds=EXAMINE_SECONDS)
    except StoreUnusableError as exc:
        advice = "restore a backup, or name another file: WHOLEFEED_STORE_PATH (docs/operations.md, Storage)"
        return [*found, wrong(_CHECK, str(exc), advice)], None
    return [*found, *judge_content(place, examined)], examined


def judge_place(place: Place, max_bytes: int) -> Iterator[Finding]:
    """Judge where the database is; `max_bytes` is `store.max_bytes`."""
    folder = place.path.absolute().parent
    if not place.has_folder:
        yield wrong(_CHECK, f"the folder {folder} is not there", f"mkdir -p {folder}")
        return
    if place.file_system in _REMOTE:
        text = f"{folder} is on {place.file_system}: SQLite's log does not work on network file systems"
        yield wrong(_CHECK, text, "set store.path to a local disk")
    if not place.is_folder_writable:
        yield wrong(
            _CHECK, f"{folder} cannot be written by uid {os.geteuid()}", f"chown {os.geteuid()} {folder}"
        )
    if place.is_there:
        yield from _rights(place)
    elif place.is_folder_writable:
        yield good(_CHECK, f"{place.path} is not there yet; the first start makes it")
    yield from _room(place, max_bytes)


def _rights(place: Place) -> Iterator[Finding]:
    if not (place.is_readable and place.is_writable):
        lack = "read" if not place.is_readable else "written"
        text = f"{place.path} cannot be {lack} by uid {os.geteuid()}"
        yield wrong(_CHECK, text, f"chown {os.geteuid()} {place.path}*")
    elif place.foreign and os.geteuid() == _ROOT and place.folder_owner != _ROOT:
        # root may do everything; the service, whose folder it is, cannot open what was copied there as root
        text = f"not of the user whose folder it is (uid {place.folder_owner}): {', '.join(place.foreign)}"
        yield wrong(_CHECK, text, f"chown {place.folder_owner} {place.path}*")
    elif place.mode & _EXPOSED:
        text = f"others on this machine can read {place.path} (mode {place.mode:04o})"
        yield warning(_CHECK, text, f"chmod 600 {place.path}*")


def _room(place: Place, max_bytes: int) -> Iterator[Finding]:
    free, advice = f"{_size(place.free_bytes)} are free on its volume", "make room, or set store.max_bytes"
    if place.free_bytes < _LEAST_FREE_BYTES:
        yield wrong("disk", free, advice)
    elif place.free_bytes < max(_FEW_FREE_BYTES, place.bytes // 20):
        yield warning("disk", f"{free}; the database has {_size(place.bytes)}", advice)
    elif max_bytes > place.bytes + place.free_bytes:
        text = f"store.max_bytes is {_size(max_bytes)}, and {free}: the volume is full before it counts"
        yield warning("disk", text, f"store.max_bytes = {(place.bytes + place.free_bytes) * 9 // 10}")
    else:
        yield good("disk", free)
    if place.log_bytes > _LARGE_LOG_BYTES:
        text = f"{place.path}-wal has {_size(place.log_bytes)}: it was not worked in for long"
        yield warning("disk", text, "start the server again; then look whether it shrinks")


def judge_content(place: Place, examined: Examined) -> Iterator[Finding]:
    """Judge what is in the database."""
    about = f"{place.path}: {_size(place.bytes)}, schema {examined.version}"
    if examined.version < examined.newest:
        text = f"{about}; this version has {examined.newest}, and the next start brings it there, with a copy"
        yield good(_CHECK, text, "wholefeed migrate does it now")
    elif examined.damage:
        text = f"{place.path} is damaged: {examined.damage[:200]}"
        yield wrong(_CHECK, text, "stop the server, keep a copy, and restore a backup (docs/operations.md)")
    elif examined.damage is None:
        seconds = f"{EXAMINE_SECONDS:g} s"
        yield skipped(_CHECK, f"{about}; too large to be looked through in {seconds}, sound so far")
    else:
        yield good(_CHECK, f"{about}, sound")
    if place.holder is not None:
        yield good(_CHECK, f"process {place.holder} uses it{_command(place.holder)}")


def judge_clock(examined: Newest | None, now: float) -> list[Finding]:
    """Hold the clock against what was stored last, which cannot be of the future."""
    if examined is None or examined.checked_at is None:
        return [skipped("clock", "nothing is stored that the clock could be held against")]
    at = format_rfc3339(examined.checked_at)
    if examined.checked_at > now + _CLOCK_SECONDS:
        text = f"it is {format_rfc3339(now)} by this machine, and a publisher was asked at {at} already"
        return [wrong("clock", text, "set the clock: timedatectl set-ntp true")]
    return [good("clock", f"{format_rfc3339(now)}, after the newest fetch that is stored")]


def judge_date(date: float | None, before: float, after: float) -> list[Finding]:
    """Hold the clock against the Date of an answer that came between two instants of it."""
    if date is None:
        return [skipped("clock", "the publisher told no Date to hold the clock against")]
    off_seconds = max(before - date, date - after, 0.0)
    if off_seconds > _CLOCK_SECONDS:
        text = f"the clock is {off_seconds:.0f} s away from the publisher's ({format_rfc3339(date)})"
        return [wrong("clock", text, "set the clock: timedatectl set-ntp true")]
    return [good("clock", "it agrees with the publisher's")]


def check_clock(examined: Newest | None) -> list[Finding]:
    """Hold the clock of this machine against what is stored."""
    return judge_clock(examined, time.time())


def _file_system(folder: Path, mounts: Path) -> str:
    """Return the kind of the file system that a folder is on; the last mount over it counts."""
    found = (Path("/"), "")
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
        folder = folder.resolve()
    except OSError:
        return ""
    for line in lines:
        _, place, kind, *_ = [*line.split(), "", "", ""]
        at = Path(place.replace("\\040", " "))
        if folder.is_relative_to(at) and len(at.parts) >= len(found[0].parts):
            found = (at, kind)
    return found[1]


def _command(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = b" ".join(words).decode("utf-8", "replace").strip()
    return f": {text[:80]}" if text.isprintable() and text else ""


def _size(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size / 1024:.0f} KiB"
