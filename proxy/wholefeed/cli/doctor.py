"""The checks of `wholefeed doctor`, which run at once, each for seconds at most, and change nothing.

`check_…` examines a subject, `judge_…` takes facts, so that tests can judge any machine.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import json
import os
import platform
import re
import resource
import shutil
import socket
import sqlite3
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import Enum, StrEnum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import DefaultResolver

from wholefeed import __version__
from wholefeed.cli.access_token import is_loopback, needs_token
from wholefeed.cli.address import EVERYWHERE, http_url, server_address
from wholefeed.config.tables import FILE_SUFFIX, KEYS, PUBLISHER_KEYS, Config
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.schedule import is_ahead
from wholefeed.core.text.dates import format_rfc3339, parse_rfc822
from wholefeed.core.text.urls import safe_url
from wholefeed.core.words import count_noun
from wholefeed.errors import DocumentError, StoreUnusableError
from wholefeed.extras import to_add, to_install
from wholefeed.fetch.base import Fetched, Manner
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.guard import AddressPolicy, host_pattern, is_matched
from wholefeed.fetch.publishers import Publishers
from wholefeed.futures import in_daemon
from wholefeed.server.clients import UNIX, Networks
from wholefeed.store.sqlite_upkeep import OWN_ENDS, ExaminedFile, examine, lock_holder
from wholefeed.workers.machine import memory_bytes

if TYPE_CHECKING:
    from wholefeed.store.postgres_upkeep import ExaminedDatabase


# What a check has found


class CheckVerdict(StrEnum):
    """The result of a check; only `WRONG` keeps wholefeed from its work."""

    GOOD = "good"
    SKIPPED = "skipped"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    check: str
    verdict: CheckVerdict
    text: str
    """A sentence without its full stop."""
    advice: str = ""


def good(check: str, text: str, advice: str = "") -> CheckFinding:
    return CheckFinding(check, CheckVerdict.GOOD, text, advice)


def skip(check: str, text: str, advice: str = "") -> CheckFinding:
    return CheckFinding(check, CheckVerdict.SKIPPED, text, advice)


def warning(check: str, text: str, advice: str) -> CheckFinding:
    return CheckFinding(check, CheckVerdict.WARNING, text, advice)


def wrong(check: str, text: str, advice: str) -> CheckFinding:
    return CheckFinding(check, CheckVerdict.WRONG, text, advice)


def worst(findings: Sequence[CheckFinding]) -> CheckVerdict:
    """Return the gravest verdict; skipped counts as good."""
    verdicts = {finding.verdict for finding in findings}
    return next(
        (each for each in (CheckVerdict.WRONG, CheckVerdict.WARNING) if each in verdicts), CheckVerdict.GOOD
    )


def as_text(findings: Sequence[CheckFinding]) -> str:
    lines = []
    for finding in findings:
        lines.append(f"{finding.verdict:<8} {finding.check:<12} {finding.text}")
        if finding.advice:
            lines.append(f"{'':22}-> {finding.advice}")
    verdicts = [finding.verdict for finding in findings]
    wrongs, warnings = verdicts.count(CheckVerdict.WRONG), verdicts.count(CheckVerdict.WARNING)
    total = f"{count_noun(wrongs, 'thing is', 'things are')} wrong" if wrongs else "nothing is wrong"
    lines += ["", total + (f", {count_noun(warnings, 'warning', 'warnings')}" if warnings else "")]
    return "\n".join(lines) + "\n"


def as_object(findings: Sequence[CheckFinding]) -> dict[str, Any]:
    return {"verdict": worst(findings), "checks": [asdict(finding) for finding in findings]}


# All checks

CHECK_SECONDS: Final = 9.5


async def run_checks(config: Config, url: str, machine: Machine, *, is_offline: bool) -> list[CheckFinding]:
    """Run all checks at once; return their findings in a fixed order.

    `url` is a document to fetch, empty for none; `is_offline` limits the checks to this machine.
    """
    loop, is_container = type(asyncio.get_running_loop()), machine.is_container
    has_uvloop, named = find_spec("uvloop") is not None, f"{loop.__module__}.{loop.__name__}"
    checks = {
        "installation": beside(
            lambda: check_versions() + judge_machine(machine, has_uvloop=has_uvloop, loop=named)
        ),
        "settings": beside(
            lambda: [
                *judge_settings(config, machine),
                *judge_publishers(config, url),
                *check_secrets(config, os.environ, is_container=is_container),
            ]
        ),
        "database": _check_store(config, url, is_offline=is_offline),
        "fetch": check_fetch("" if is_offline else url, config),
        "server": check_server(config, is_container=is_container, is_offline=is_offline),
    }
    results = await asyncio.gather(*(_run_bounded(name, check) for name, check in checks.items()))
    return [finding for result in results for finding in result]


async def _check_store(config: Config, url: str, *, is_offline: bool) -> list[CheckFinding]:
    store = config.store
    found, examined = await beside(
        lambda: (
            check_shared(store.url, store.connections)
            if store.url
            else check_database(Path(store.path), store.max_bytes)
        )
    )
    found.append(judge_clock(examined, time.time()))
    if is_offline:
        return [*found, skip("dns", "not asked: --offline")]
    known_url = url or (examined.url if examined is not None else "")
    return [*found, await check_names(urlsplit(known_url).hostname or _EXAMPLE_HOST, config)]


_T = TypeVar("_T")


async def beside(work: Callable[[], _T]) -> _T:
    """Run blocking work in a thread that may outlive the command: a dead disk may block for ever."""
    return await in_daemon(work, name="doctor")


async def _run_bounded(name: str, check: Awaitable[list[CheckFinding]]) -> list[CheckFinding]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check
    except TimeoutError:
        text = f"it took longer than {CHECK_SECONDS:g} s"
        return [warning(name, text, "try again; the cause may be a disk or a network that does not respond")]
    except Exception as exc:  # noqa: BLE001 - the others are worth having above all
        text = f"this check failed: {type(exc).__name__}: {exc}"
        return [wrong(name, text, "report this line to the project")]


# Python, the libraries, the event loop, and what the machine allows


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    memory_bytes: int
    """0: unknown."""
    open_files: int
    """Limit of open files; -1: none."""
    is_container: bool


def this_machine(root: Path = Path("/")) -> Machine:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Machine(
        memory_bytes=memory_bytes(root),
        open_files=-1 if hard == resource.RLIM_INFINITY else hard,
        is_container=any((root / name).exists() for name in (".dockerenv", "run/.containerenv")),
    )


def check_versions() -> list[CheckFinding]:
    try:
        about = metadata.metadata("wholefeed")
    except metadata.PackageNotFoundError:
        return [skip("libraries", "wholefeed itself is not installed, so its bounds are not known")]
    requirements, python_bounds = metadata.requires("wholefeed") or [], about["Requires-Python"] or ""
    return judge_versions(platform.python_version(), python_bounds, requirements, _installed_version)


def _installed_version(name: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return None


_REQUIREMENT: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<bounds>[^;]*)(?:;(?P<marker>.*))?")


def judge_versions(
    python: str,
    requires_python: str,
    requirements: Sequence[str],
    version_of: Callable[[str], str | None],
) -> list[CheckFinding]:
    found = [good("python", f"Python {python}, wholefeed {__version__}")]
    if not _is_within(python, requires_python):
        advice = "install that Python and make the environment anew: make PYTHON=python3.13 setup"
        found = [wrong("python", f"Python {python}; wholefeed needs {requires_python}", advice)]
    matches = filter(None, map(_REQUIREMENT.match, requirements))
    wanted = [match for match in matches if _is_for(match["marker"] or "", python)]
    outside = {}
    for match in wanted:
        name, bounds = match["name"], match["bounds"].strip()
        if (version := version_of(name)) is None:
            outside[f"{name}{bounds}"] = f"{name} is not installed"
        elif not _is_within(version, bounds):
            outside[f"{name}{bounds}"] = f"{name} is {version}, expected {bounds}"
    if outside:
        return [*found, wrong("libraries", "; ".join(outside.values()), to_install(outside))]
    return [*found, good("libraries", f"{len(wanted)} libraries, each within its bounds")]


_PYTHON_BELOW: Final = re.compile(r"python_version < '([0-9.]+)'")


def _is_for(marker: str, python: str) -> bool:
    if "extra" in marker:
        return False
    below = _PYTHON_BELOW.search(marker.replace('"', "'"))
    return below is None or _numbers(python) < _numbers(below[1])


_BOUND: Final = re.compile(r"(>=|<)\s*([0-9.]+)")


def _is_within(version: str, bounds: str) -> bool:
    return all(
        (_numbers(version) >= _numbers(bound)) is (sign == ">=") for sign, bound in _BOUND.findall(bounds)
    )


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers without final zeros: 3.11 equals 3.11.0."""
    numbers = [int(each) for each in re.findall(r"\d+", re.split(r"[a-z+-]", version)[0])]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


_OPEN_FILES: Final = 4096


def judge_machine(machine: Machine, *, has_uvloop: bool, loop: str) -> list[CheckFinding]:
    sqlite = f"SQLite {sqlite3.sqlite_version}"
    found = [good("event loop", f"{loop}; {sqlite}")]
    if not has_uvloop:
        advice = f"optional: {to_add('uvloop')}; the proxy uses about 7 % less processor time with it"
        found = [good("event loop", f"{loop}, uvloop is not installed; {sqlite}", advice)]
    if 0 <= machine.open_files < _OPEN_FILES:
        text = f"at most {machine.open_files} open files; {_OPEN_FILES} are wanted for many readers at once"
        advice = f"LimitNOFILE={_OPEN_FILES} in the unit of systemd, --ulimit nofile={_OPEN_FILES} for Docker"
        return [*found, warning("open files", text, advice)]
    allowed = "any number of" if machine.open_files < 0 else str(machine.open_files)
    return [*found, good("open files", f"{allowed} open files")]


# Settings that are each allowed, and do not fit together or this machine

_SETTINGS: Final = "settings"
_SET_TOKEN: Final = "WHOLEFEED_SERVER_ACCESS_TOKEN=$(openssl rand -hex 16)"  # noqa: S105 - how to make one


def judge_settings(config: Config, machine: Machine) -> list[CheckFinding]:
    found = [
        *_judge_access(config),
        *_judge_names(config),
        *_judge_networks(config),
        *_judge_times(config, machine),
        *_judge_sizes(config, machine),
        *_judge_history(config),
    ]
    return found or [good(_SETTINGS, "the settings fit together: `wholefeed config` shows them")]


def _judge_access(config: Config) -> Iterator[CheckFinding]:
    server = config.server
    is_closed = bool(server.access_token or server.signing_keys)
    is_public = not is_loopback(server.host)
    if needs_token(server):
        text = f"server.host {server.host} can be reached by others and no token is set"
        if config.store.url:
            text += ": each replica makes its own token, which the others refuse"
            yield warning(_SETTINGS, text, f"{_SET_TOKEN} for all of them")
        else:
            text += f": a token is made at the first start and stored in {config.store.path}.token"
            yield good(_SETTINGS, text)
    if server.open and is_public and not is_closed:
        advice = "server.open = false: a token is made at the next start"
        yield warning(_SETTINGS, "server.open lets anybody fetch through this proxy", advice)
        if config.fetch.allow_networks:
            text = "server.open with fetch.allow_networks lets anybody read from those private networks"
            yield wrong(_SETTINGS, text, "empty fetch.allow_networks, or set server.access_token")
    if (server.public_url or server.socket) and not is_public and not is_closed:
        key = "server.public_url" if server.public_url else "server.socket"
        text = f"{key} is set, but neither a token nor signing keys: requests through a reverse"
        text += " proxy seem to come from this machine, so anybody may use the proxy"
        yield warning(_SETTINGS, text, _SET_TOKEN)
    if server.signing_keys and not server.access_token:
        text = "server.signing_keys without server.access_token: nobody can list, refresh or forget feeds"
        yield warning(_SETTINGS, text, _SET_TOKEN)
    url = urlsplit(server.public_url)
    is_local = is_loopback(url.hostname or "") or "." not in (url.hostname or "")
    if url.scheme == "http" and is_closed and not is_local:
        text = f"server.public_url {server.public_url} is http: tokens and signatures can be read on the way"
        advice = "put a reverse proxy with TLS in front, and https:// into server.public_url"
        yield warning(_SETTINGS, text, advice)


_LOOPBACK: Final = ipaddress.ip_address("127.0.0.1")


def _judge_names(config: Config) -> Iterator[CheckFinding]:
    server = config.server
    believes_socket = UNIX in server.trusted_proxies
    if server.trusted_proxies and not (server.public_url or server.allowed_hosts):
        text = "server.trusted_proxies is set, but no host name for readers: they get status 421"
        yield warning(_SETTINGS, text, 'server.public_url = "https://feeds.example.org", with your name')
    if server.public_url and server.client_requests_per_minute and not server.trusted_proxies:
        text = "server.client_requests_per_minute counts all readers behind the reverse proxy as one"
        advice = 'server.trusted_proxies = ["127.0.0.1/32"], with your proxy\'s address'
        yield warning(_SETTINGS, text, advice)
    if server.socket and server.client_requests_per_minute and not believes_socket:
        text = "server.client_requests_per_minute counts all requests through server.socket as one client"
        yield warning(_SETTINGS, text, f'add "{UNIX}" to server.trusted_proxies')
    if believes_socket and not server.socket:
        text = f'server.trusted_proxies has "{UNIX}", and no server.socket is set: no request comes that way'
        yield warning(_SETTINGS, text, 'server.socket = "/run/wholefeed/wholefeed.sock"')
    is_open_here = Networks(server.metrics_networks).include(_LOOPBACK)
    if is_open_here and server.public_url and not server.trusted_proxies:
        text = "server.metrics_networks contains this machine: a reverse proxy on it may show /metrics to all"
        yield warning(_SETTINGS, text, "set server.trusted_proxies, or refuse /metrics there")


def _judge_networks(config: Config) -> Iterator[CheckFinding]:
    if _everyone(config.server.trusted_proxies):
        text = "server.trusted_proxies trusts everybody: any client can claim another address and host name"
        yield wrong(_SETTINGS, text, "list the addresses of your reverse proxies alone")
    if _everyone(config.server.metrics_networks):
        text = "server.metrics_networks opens /metrics to everybody"
        yield warning(_SETTINGS, text, "list the address of Prometheus alone")
    if _everyone(config.fetch.allow_networks):
        text = "fetch.allow_networks turns the guard of private addresses off"
        yield warning(_SETTINGS, text, "list the networks that your publishers are in")
    for host in sorted({*config.fetch.allow_hosts} & {*config.fetch.deny_hosts}):
        text = f"{host} is in fetch.allow_hosts and in fetch.deny_hosts: it is never asked"
        yield warning(_SETTINGS, text, "take it out of one of them")


def _everyone(networks: tuple[str, ...]) -> bool:
    return any(ipaddress.ip_network(each).prefixlen == 0 for each in networks if each != UNIX)


_PATIENCE_SECONDS: Final = 10
_DOCKER_SECONDS: Final = 10


def _judge_times(config: Config, machine: Machine) -> Iterator[CheckFinding]:
    limits, fetch = config.limits, config.fetch
    if limits.respond_within_seconds > _PATIENCE_SECONDS:
        text = f"limits.respond_within_seconds is {limits.respond_within_seconds:g}: some readers wait 10 s"
        yield warning(_SETTINGS, text, "limits.respond_within_seconds = 8")
    if fetch.connect_timeout_seconds > fetch.document_timeout_seconds:
        text = "fetch.connect_timeout_seconds is longer than fetch.document_timeout_seconds: it has no effect"
        yield warning(_SETTINGS, text, "make fetch.connect_timeout_seconds the shorter one")
    grace_seconds = config.server.shutdown_grace_seconds
    if machine.is_container and grace_seconds >= _DOCKER_SECONDS:
        text = f"server.shutdown_grace_seconds is {grace_seconds:g}: Docker kills after 10 s"
        advice = "server.shutdown_grace_seconds = 8, or `docker stop --time` longer than it"
        yield warning(_SETTINGS, text, advice)


def _judge_sizes(config: Config, machine: Machine) -> Iterator[CheckFinding]:
    limits, fetch, most_bytes = config.limits, config.fetch, machine.memory_bytes
    held_bytes = config.store.memory_bytes
    text = f"store.memory_bytes is {_mib(held_bytes)}, more than"
    if most_bytes and held_bytes > most_bytes:
        text += f" the {_mib(most_bytes)} that there are"
        yield wrong(_SETTINGS, text, f"store.memory_bytes = {most_bytes // 8}")
    elif most_bytes and held_bytes > most_bytes // 2:
        text += f" half of the {_mib(most_bytes)} there are"
        yield warning(_SETTINGS, text, f"store.memory_bytes = {most_bytes // 8}")
    if limits.document_bytes > limits.feed_bytes:
        text = "limits.document_bytes is larger than limits.feed_bytes: a feed ends at its first document"
        yield warning(_SETTINGS, text, "make limits.feed_bytes the larger one")
    if limits.workers == 0:
        text = "limits.workers is 0: the server reads large documents itself, which slows every answer"
        yield warning(_SETTINGS, text, 'limits.workers = "auto"')
    if fetch.concurrency_per_host > fetch.concurrency:
        text = "fetch.concurrency_per_host is larger than fetch.concurrency: it has no effect"
        yield warning(_SETTINGS, text, "make fetch.concurrency the larger one")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"


def _judge_history(config: Config) -> Iterator[CheckFinding]:
    history = config.history
    if 0 < history.poll_seconds < config.freshness.minimum_seconds:
        text = "history.poll_seconds is shorter than freshness.minimum_seconds: most polls ask nobody"
        yield warning(_SETTINGS, text, "make it at least as long")
    if history.poll_seconds and not history.remember:
        text = "history.poll_seconds without history.remember: entries found by polls are not stored"
        yield warning(_SETTINGS, text, "history.remember = true, or history.poll_seconds = 0")
    if history.memento and not config.fetch.proxy and config.fetch.allow_hosts:
        host = urlsplit(history.memento_url).hostname or ""
        if not any(is_matched(host, host_pattern(each)) for each in config.fetch.allow_hosts):
            text = f"history.memento asks {host}, which is not in fetch.allow_hosts"
            yield warning(_SETTINGS, text, f'add "{host}" to fetch.allow_hosts')


def judge_publishers(config: Config, url: str) -> Iterator[CheckFinding]:
    server, publishers = config.server, Publishers(config.publisher)
    is_closed = server.access_token or server.signing_keys or needs_token(server)
    if not is_closed and (private := next((each for each in publishers if each.is_private), None)):
        text = f"[[publisher]] {private.host} has headers or credentials: the server does not start"
        yield wrong(_SETTINGS, text, _SET_TOKEN)
    own = publishers.of(url)
    if own is None:
        return
    wants = [key.key for key in PUBLISHER_KEYS[1:] if getattr(own, key.key)]
    text = f"[[publisher]] {own.host} applies to {safe_url(url)}: {', '.join(wants) or 'nothing set'}"
    parts, policy = urlsplit(url), AddressPolicy.from_config(config.fetch)
    host = parts.hostname or ""
    is_near = policy.is_exempt(host) and not _has_proxy(config, host)
    if own.is_private and parts.scheme == "http" and not is_near:
        text += "; by http its headers and credentials are sent only to addresses in fetch.allow_networks"
        yield warning(_SETTINGS, text, "ask for it by https")
    else:
        yield good(_SETTINGS, text)


def _has_proxy(config: Config, host: str) -> bool:
    own = Publishers(config.publisher).of_host(host)
    return bool(config.fetch.proxy or (own and own.proxy))


# Files that secrets come from: those that are named, and the token that was made


def check_secrets(
    config: Config, environ: Mapping[str, str], *, is_container: bool
) -> Iterator[CheckFinding]:
    """Judge files with secrets; a container has no other users. Blocks."""
    variables = (key.variable + FILE_SUFFIX for key in KEYS if key.secret)
    files = {Path(environ[name]): name for name in variables if name in environ}
    for each in config.publisher:
        if each.credentials_file:
            files[Path(each.credentials_file)] = f"credentials_file of [[publisher]] {each.host}"
    made = Path(f"{config.store.path}.token")
    if made.exists():
        files[made] = "the access token that wholefeed made"
    for path, what in files.items():
        if not is_container and _is_open_to_others(path.absolute()):
            text = f"others on this machine can read {path} ({what})"
            advice = f"chmod o-rwx {path}, and make a new secret: this one may be known"
            yield warning("secrets", text, advice)
        else:
            yield good("secrets", f"{path} ({what})")


def _is_open_to_others(path: Path) -> bool:
    try:
        may_read = path.stat().st_mode & stat.S_IROTH
        return bool(may_read) and all(each.stat().st_mode & stat.S_IXOTH for each in path.parents)
    except OSError:  # of what this user may not look at
        return False


# The database: a file, which has a place, rights and a content, or the one that replicas share

_DATABASE: Final = "database"
_EXAMINE_SECONDS: Final = 4.0


def check_database(path: Path, max_bytes: int) -> tuple[list[CheckFinding], ExaminedFile | None]:
    """Judge the database; also return its facts. Blocks for seconds at most."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return [wrong(_DATABASE, f"the folder {folder} is not there", f"mkdir -p {folder}")], None
    found = [*check_place(path, folder), *judge_room(path, shutil.disk_usage(folder).free, max_bytes)]
    if not os.access(path, os.R_OK):
        return found, None
    try:
        examined = examine(path, seconds=_EXAMINE_SECONDS)
    except StoreUnusableError as exc:
        advice = "restore a backup, or name another file: WHOLEFEED_STORE_PATH (docs/operations.md, Storage)"
        return [*found, wrong(_DATABASE, str(exc), advice)], None
    found.append(judge_content(path, examined))
    if (holder := lock_holder(path)) is not None:
        found.append(good(_DATABASE, f"process {holder} uses it{_command_of(holder)}"))
    return found, examined


_REMOTE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs"}
)
_MOUNTS: Final = Path("/proc/mounts")


def check_place(path: Path, folder: Path, mounts: Path = _MOUNTS) -> Iterator[CheckFinding]:
    if (kind := _file_system(folder, mounts)) in _REMOTE:
        text = f"{folder} is on {kind}: SQLite's log does not work on network file systems"
        yield wrong(_DATABASE, text, "set store.path to a local disk")
    is_folder_writable = os.access(folder, os.W_OK | os.X_OK)
    if not is_folder_writable:
        yield _unwritable(_DATABASE, folder)
    if path.exists():
        yield from _check_rights(path, folder)
    elif is_folder_writable:
        yield good(_DATABASE, f"{path} is not there yet; the first start makes it")


def _unwritable(check: str, folder: Path) -> CheckFinding:
    user = os.geteuid()
    return wrong(check, f"{folder} cannot be written by uid {user}", f"chown {user} {folder}")


def _file_system(folder: Path, mounts: Path) -> str:
    """Return the type of a folder's file system; the last mount over it counts."""
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


_EXPOSED: Final = 0o077


def _check_rights(path: Path, folder: Path) -> Iterator[CheckFinding]:
    user, owner = os.geteuid(), folder.stat().st_uid
    files = [file for end in OWN_ENDS if (file := Path(f"{path}{end}")).exists()]
    foreign = [str(file) for file in files if file.stat().st_uid != owner]
    mode = stat.S_IMODE(path.stat().st_mode)
    if not (os.access(path, os.R_OK) and os.access(path, os.W_OK)):
        lack = "written" if os.access(path, os.R_OK) else "read"
        yield wrong(_DATABASE, f"{path} cannot be {lack} by uid {user}", f"chown {user} {path}*")
    elif foreign and not user and owner:
        # root may do everything; the service, whose folder it is, cannot open what was copied there as root
        text = f"not owned by the owner of the folder (uid {owner}): {', '.join(foreign)}"
        yield wrong(_DATABASE, text, f"chown {owner} {path}*")
    elif mode & _EXPOSED:
        text = f"others on this machine can read {path} (mode {mode:04o})"
        yield warning(_DATABASE, text, f"chmod 600 {path}*")


_LEAST_FREE_BYTES: Final = 64 << 20
_FEW_FREE_BYTES: Final = 512 << 20
_LARGE_LOG_BYTES: Final = _FEW_FREE_BYTES


def judge_room(path: Path, free_bytes: int, max_bytes: int) -> Iterator[CheckFinding]:
    size, log_size = _bytes_of(path), _bytes_of(Path(f"{path}-wal"))
    free, advice = f"{_size(free_bytes)} are free on its volume", "make room, or set store.max_bytes"
    if free_bytes < _LEAST_FREE_BYTES:
        yield wrong("disk", free, advice)
    elif free_bytes < max(_FEW_FREE_BYTES, size // 20):
        yield warning("disk", f"{free}; the database has {_size(size)}", advice)
    elif max_bytes > size + free_bytes:
        text = (
            f"store.max_bytes is {_size(max_bytes)}, and {free}: the volume is full before that size"
            " is reached"
        )
        yield warning("disk", text, f"store.max_bytes = {(size + free_bytes) * 9 // 10}")
    else:
        yield good("disk", free)
    if log_size > _LARGE_LOG_BYTES:
        text = f"{path}-wal has {_size(log_size)}: it has not been merged into the database for long"
        yield warning("disk", text, "start the server again; then look whether it shrinks")


def _bytes_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _size(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size / 1024:.0f} KiB"


def judge_content(path: Path, examined: ExaminedFile) -> CheckFinding:
    about = f"{path}: {_size(_bytes_of(path))}, schema {examined.version}"
    if examined.version < examined.newest:
        text = (
            f"{about}; this version needs {examined.newest}; the next start migrates the database,"
            " after a copy"
        )
        return good(_DATABASE, text, "wholefeed migrate does it now")
    if examined.damage:
        text = f"{path} is damaged: {examined.damage[:200]}"
        advice = "stop the server, keep a copy, and restore a backup (docs/operations.md)"
        return wrong(_DATABASE, text, advice)
    if examined.damage is None:
        seconds = f"{_EXAMINE_SECONDS:g} s"
        return skip(_DATABASE, f"{about}; too large to be checked in {seconds}; the checked part is sound")
    return good(_DATABASE, f"{about}, sound")


def _command_of(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = b" ".join(words).decode("utf-8", "replace").strip()
    return f": {text[:80]}" if text.isprintable() and text else ""


def check_shared(url: str, connections: int) -> tuple[list[CheckFinding], ExaminedDatabase | None]:
    """Judge the database of `store.url`; also return its facts. Blocks for seconds."""
    try:
        from wholefeed.store.postgres_upkeep import examine
    except ImportError:
        return [wrong(_DATABASE, "store.url needs psycopg", to_add("postgres"))], None
    try:
        examined = examine(url)
    except StoreUnusableError as exc:
        return [wrong(_DATABASE, str(exc), "look at store.url, the server and its pg_hba.conf")], None
    return judge_shared(examined, connections), examined


def judge_shared(examined: ExaminedDatabase, connections: int) -> list[CheckFinding]:
    return [
        *_judge_shared_server(examined),
        _judge_schema(examined),
        _judge_user(examined),
        *_judge_connections(examined, connections),
    ]


_OLDEST_SERVER: Final = 15
_SHARED_CLOCK_SECONDS: Final = 5.0


def _judge_shared_server(examined: ExaminedDatabase) -> Iterator[CheckFinding]:
    place = examined.place
    if examined.server < _OLDEST_SERVER:
        text = f"{place} is PostgreSQL {examined.server}; wholefeed needs {_OLDEST_SERVER} or newer"
        yield wrong(_DATABASE, text, "update the server")
    if examined.encoding != "UTF8":
        text = f"{place} is encoded in {examined.encoding}: feeds need UTF8, for all characters"
        yield wrong(_DATABASE, text, "createdb --encoding UTF8 --template template0, and move the data there")
    if examined.is_pooled:
        text = "a pooler gives each transaction another connection: prepared statements, temporary tables and"
        text += " LISTEN get lost"
        yield wrong(_DATABASE, text, "name the server itself, or let the pooler use pool_mode = session")
    if examined.is_standby:
        text = f"{place} is a standby: it can be read but not written"
        yield wrong(_DATABASE, text, "name the primary; store.url may list hosts, with target_session_attrs")
    if not examined.is_durable:
        text = f"{place} runs without fsync or full_page_writes: a power cut may destroy it"
        yield warning(_DATABASE, text, "ALTER SYSTEM RESET fsync; ALTER SYSTEM RESET full_page_writes")
    if abs(examined.clock_ahead_seconds) > _SHARED_CLOCK_SECONDS:
        text = f"its clock and this machine's differ by {abs(examined.clock_ahead_seconds):.0f} s"
        yield warning("clock", text, "timedatectl set-ntp true, on both")


def _judge_schema(examined: ExaminedDatabase) -> CheckFinding:
    about = f"{examined.place}: PostgreSQL {examined.server}, {examined.bytes / (1 << 20):,.1f} MiB"
    owner = "run `wholefeed migrate` as the tables' owner"
    if examined.is_moving:
        text = f"{about}; it holds the unfinished copy of a SQLite database"
        return wrong(_DATABASE, text, "`wholefeed migrate --to` goes on with it")
    if examined.version == examined.newest:
        text = f"{about}, schema {examined.version}"
        return good(_DATABASE, f"{text}, {examined.replicas} replicas use it" if examined.replicas else text)
    if examined.can_create:
        had = f"schema {examined.version}" if examined.version else "no tables yet"
        return good(_DATABASE, f"{about}, {had}; the next start makes schema {examined.newest}", owner)
    text = f"{about}, schema {examined.version or 'none'}; this version needs {examined.newest}, and its"
    return wrong(_DATABASE, f"{text} user may not make tables", owner)


_ROLES: Final = "deploy/replicas/roles.sql"


def _judge_user(examined: ExaminedDatabase) -> CheckFinding:
    if examined.lacking:
        text = f"the user of store.url lacks rights: {'; '.join(examined.lacking)}"
        return wrong("rights", text, f"{_ROLES} has the GRANTs")
    if examined.is_superuser:
        text = "the user of store.url is a superuser of the whole server"
        return warning("rights", text, f"serve as one with the least rights: {_ROLES}")
    if not examined.version:
        return skip("rights", "there are no tables yet")
    text = "and may change its tables, which `serve` does not need" if examined.can_create else "and no more"
    return good("rights", f"the user of store.url has the rights that a replica needs, {text}")


_BESIDE_CONNECTIONS: Final = 3
"""Connections of a replica for notices, for queries about feeds, and for signs of life."""
_SLOW_DATABASE_SECONDS: Final = 0.005
"""Answers outside memory need some round trips, refreshes some dozen."""


def _judge_connections(examined: ExaminedDatabase, connections: int) -> Iterator[CheckFinding]:
    needed = connections + _BESIDE_CONNECTIONS
    if examined.connections_left < needed:
        text = f"{examined.connections_left} connections are left; a replica takes up to {needed}"
        advice = "raise max_connections or the role's limit, or lower store.connections"
        yield warning("connections", text, advice)
    milliseconds = examined.round_trip_seconds * 1000
    if examined.round_trip_seconds > _SLOW_DATABASE_SECONDS:
        text = f"a query takes {milliseconds:.1f} ms"
        advice = "bring the replicas nearer to the database: a refresh sends some dozen queries"
        yield warning("connections", text, advice)
    else:
        yield good("connections", f"a query takes {milliseconds:.2f} ms")


# The clock, held against what is stored and against a publisher's

_CLOCK_SECONDS: Final = 60.0
_SET_CLOCK: Final = "set the clock: timedatectl set-ntp true"


def judge_clock(examined: ExaminedFile | ExaminedDatabase | None, now: float) -> CheckFinding:
    """Compare the clock with the newest stored fetch."""
    if examined is None or examined.checked_at is None:
        return skip("clock", "no fetch is stored to compare the clock with")
    if is_ahead(examined.checked_at, now=now):
        at = format_rfc3339(examined.checked_at)
        text = f"this machine's clock says {format_rfc3339(now)}, but a publisher was already asked at {at}"
        return wrong("clock", text, _SET_CLOCK)
    return good("clock", f"{format_rfc3339(now)}, after the newest fetch that is stored")


def judge_date(date: float | None, before: float, after: float) -> CheckFinding:
    """Compare the clock with a response's Date; `before` and `after` enclose its arrival."""
    if date is None:
        return skip("clock", "the publisher sent no Date to compare the clock with")
    off_seconds = max(before - date, date - after)
    if off_seconds > _CLOCK_SECONDS:
        text = f"the clock is {off_seconds:.0f} s away from the publisher's ({format_rfc3339(date)})"
        return wrong("clock", text, _SET_CLOCK)
    return good("clock", "it agrees with the publisher's")


# Names, and the way out: one document is fetched as the proxy would fetch it

_WAY_OUT: Final = "look whether this machine may go out: firewall, or fetch.proxy where it must use one"
_FETCH_ADVICE: Final = {
    "destination-forbidden": "if it is a feed of your own network: fetch.allow_networks;"
    " else see fetch.ports, fetch.allow_hosts and fetch.deny_hosts",
    "dns-error": "look whether the name is right, and which name server answers: /etc/resolv.conf",
    "dns-timeout": "look which name server is asked: /etc/resolv.conf; in a container, its network",
    "tls-certificate": "update the system's certificates (ca-certificates), or the publisher's have expired",
    "connection-failed": _WAY_OUT,
    "timeout": _WAY_OUT,
    "downgrade": "the publisher redirects from https to http: fetch.allow_downgrade",
    "too-large": "limits.document_bytes",
}
_OTHER_ADVICE: Final = "this is the publisher's response; `wholefeed explain URL` shows more about a feed"
LOOKUP_SECONDS: Final = 4.0
_SLOW_NAMES_SECONDS: Final = 2.0


async def check_names(host: str, config: Config, resolver: AbstractResolver | None = None) -> CheckFinding:
    if _has_proxy(config, host):
        return skip("dns", f"not looked up here: the proxy for {host} looks names up")
    names = resolver or DefaultResolver()
    started = time.monotonic()
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            addresses = await names.resolve(host, 443)
    except TimeoutError:
        servers = await beside(_name_servers)
        text = f"no name server answered in {LOOKUP_SECONDS:g} s ({servers}): this machine may be offline"
        return wrong("dns", text, _FETCH_ADVICE["dns-timeout"])
    except OSError as exc:
        servers = await beside(_name_servers)
        text = f"{host} could not be looked up ({servers}): {exc.strerror or exc}"
        return wrong("dns", text, "look whether this machine is online, and /etc/resolv.conf")
    finally:
        await names.close()
    took_seconds = time.monotonic() - started
    found = ", ".join(sorted({each["host"] for each in addresses})[:3])
    if took_seconds > _SLOW_NAMES_SECONDS:
        text = f"{host} is {found}, after {took_seconds:.1f} s"
        return warning("dns", text, "the first name server may be dead: /etc/resolv.conf")
    return good("dns", f"{host} is {found}")


def _name_servers() -> str:
    try:
        lines = Path("/etc/resolv.conf").read_text("utf-8", "replace").splitlines()
    except OSError:
        return "no /etc/resolv.conf"
    named = [line.split()[1] for line in lines if line.startswith("nameserver") and len(line.split()) > 1]
    return ", ".join(named) or "/etc/resolv.conf names none"


_EXAMPLE_HOST: Final = "example.org"
FETCH_SECONDS: Final = 8.0


async def check_fetch(url: str, config: Config) -> list[CheckFinding]:
    """Fetch one document once, as the proxy does, and judge it."""
    if not url:
        return [skip("fetch", "nothing was fetched", "wholefeed doctor https://example.org/feed.atom")]
    fetch = replace(
        config.fetch,
        retries=0,
        connect_timeout_seconds=min(config.fetch.connect_timeout_seconds, FETCH_SECONDS / 2),
        document_timeout_seconds=min(config.fetch.document_timeout_seconds, FETCH_SECONDS),
    )
    before = time.time()
    try:
        opening = Fetcher.open(fetch, config.limits, publishers=Publishers(config.publisher))
        async with opening as fetcher:
            fetched = await fetcher.fetch(url, manner=Manner(feed_url=url))
    except DocumentError as exc:
        at = f", at {safe_url(exc.url)}" if exc.url != url else ""
        text = f"{safe_url(url)}: {exc.args[0]} ({exc.slug}{at})"
        return [wrong("fetch", text, _FETCH_ADVICE.get(exc.slug, _OTHER_ADVICE))]
    date = parse_rfc822(fetched.headers.get("date", ""))
    document = await beside(lambda: _judge_document(fetched, config.limits.xml_depth))
    return [document, judge_date(date, before, time.time())]


def _judge_document(fetched: Fetched, max_depth: int) -> CheckFinding:
    hops = len(fetched.hops) + (fetched.final_url != fetched.url)
    redirects = f" after {hops} redirect{'s' * (hops > 1)} to {safe_url(fetched.final_url)}" if hops else ""
    came = f"{fetched.status}, {len(fetched.body)} bytes of {fetched.media_type or 'no type'}{redirects}"
    try:
        document = parse(fetched.body, fetched.final_url, fetched.media_type, max_depth=max_depth)
    except ParseError as exc:
        text = f"{safe_url(fetched.url)}: {came}; the document is no readable feed ({exc.slug})"
        advice = "if the document is a page that announces a feed, subscribe to the page"
        return warning("fetch", text, advice)
    return good("fetch", f"{safe_url(fetched.url)}: {came}; {len(document.entries)} entries")


# Whether the server runs, and whether a reader can reach it from where it is


class Listener(Enum):
    WHOLEFEED = "wholefeed"
    STRANGER = "something else"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class ProxyAnswer:
    base: str
    listener: Listener
    why: str = ""
    """Empty for wholefeed."""
    leads_to: str = ""


async def check_server(config: Config, *, is_container: bool, is_offline: bool) -> list[CheckFinding]:
    server = config.server
    host, port = server_address(config)
    outer_host = await beside(lambda: _outer_address(server.host))
    own, outer, public, by_socket = await asyncio.gather(
        _ask(http_url(host, port)),
        _ask(http_url(outer_host, port) if outer_host else ""),
        _ask("" if is_offline else server.public_url.rstrip("/")),
        _ask("http://localhost" if server.socket else "", server.socket),
    )
    assert own is not None, "there is an address"
    return [*judge_server(config, own, outer, public, by_socket, is_container=is_container)]


_SOMEWHERE: Final = {socket.AF_INET: ("192.0.2.1", 9), socket.AF_INET6: ("2001:db8::1", 9)}
"""Documentation addresses; choosing a route to them sends nothing."""


def _outer_address(host: str) -> str:
    """Return this machine's address for other machines; empty: none."""
    if is_loopback(host):
        return ""
    if host not in EVERYWHERE:
        return host
    family = socket.AF_INET if host == "0.0.0.0" else socket.AF_INET6  # noqa: S104
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect(_SOMEWHERE[family])
            address = str(way.getsockname()[0])
    except OSError:
        return ""
    return "" if is_loopback(address) else address


_ASK_SECONDS: Final = 4.0
_HEALTH_BYTES: Final = 1024
_SHOWN_CHARACTERS: Final = 200
_REDIRECTS: Final = range(300, 400)


async def _ask(base: str, unix_socket: str = "") -> ProxyAnswer | None:
    if not base:
        return None
    timeout = aiohttp.ClientTimeout(total=_ASK_SECONDS)
    connector = aiohttp.UnixConnector(unix_socket) if unix_socket else aiohttp.TCPConnector()
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False, connector=connector) as session,
            session.get(f"{base}/healthz", allow_redirects=False) as response,
        ):
            body = await response.content.read(_HEALTH_BYTES)
    except TimeoutError:
        return ProxyAnswer(base, Listener.NOBODY, f"no answer in {_ASK_SECONDS:g} s")
    except aiohttp.ClientConnectorError as exc:
        return ProxyAnswer(base, Listener.NOBODY, exc.strerror or str(exc))
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        return ProxyAnswer(base, Listener.STRANGER, str(exc) or type(exc).__name__)
    with suppress(ValueError):
        if response.status == 200 and json.loads(body) == {"status": "ok"}:  # noqa: PLR2004
            return ProxyAnswer(base, Listener.WHOLEFEED)
    location = response.headers.get("Location", "") if response.status in _REDIRECTS else ""
    return ProxyAnswer(base, Listener.STRANGER, f"status {response.status}", location[:_SHOWN_CHARACTERS])


def judge_server(
    config: Config,
    own: ProxyAnswer,
    outer: ProxyAnswer | None = None,
    public: ProxyAnswer | None = None,
    by_socket: ProxyAnswer | None = None,
    *,
    is_container: bool,
) -> Iterator[CheckFinding]:
    """Judge whether the server runs, and the needs of readers elsewhere.

    None: no such address, or not asked.
    """
    server, is_running = config.server, own.listener is Listener.WHOLEFEED
    yield _judge_own(own)
    if by_socket is not None:
        yield _judge_socket(by_socket, server.socket, is_running=is_running)
    if public is not None:
        yield _judge_public(public, is_running=is_running)
    if not is_loopback(server.host):
        if outer is not None and is_running:
            yield _judge_outer(outer)
    elif not (server.socket or server.public_url):
        yield _judge_local(server.host, own.base, is_container=is_container)


def _judge_own(own: ProxyAnswer) -> CheckFinding:
    if own.listener is Listener.STRANGER:
        text = f"the server at {own.base} is not wholefeed ({own.why})"
        return wrong("server", text, "stop that server, or use another port: WHOLEFEED_SERVER_PORT=8081")
    if own.listener is Listener.NOBODY:
        return skip("server", f"nothing listens at {own.base} ({own.why})", "wholefeed serve")
    return good("server", f"the server runs at {own.base}")


def _judge_socket(found: ProxyAnswer, path: str, *, is_running: bool) -> CheckFinding:
    if found.listener is Listener.WHOLEFEED:
        return good(
            "socket", f"the server answers at {path}; the owner and the group of that file may connect"
        )
    if is_running and found.why == os.strerror(errno.EACCES):
        text = f"uid {os.geteuid()} may not connect to {path}; its owner and its group may"
        advice = f"ls -l {path} shows both; add the reverse proxy's user to that group"
        return skip("socket", text, advice)
    if is_running:
        text = f"the server runs, and does not answer at {path} ({found.why})"
        advice = f"ls -l {path}; a server that was started before server.socket was set must be started again"
        return wrong("socket", text, advice)
    if found.listener is Listener.STRANGER:
        return wrong("socket", f"the server at {path} is not wholefeed ({found.why})", "name another path")
    return _judge_new_socket(path)


def _judge_new_socket(path: str) -> CheckFinding:
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        return wrong("socket", f"the folder {folder} is not there", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        return _unwritable("socket", folder)
    if os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        return wrong("socket", f"{path} is no socket: the server would not start", "name another path")
    return good("socket", f"nobody listens at {path} yet")


def _judge_public(public: ProxyAnswer, *, is_running: bool) -> CheckFinding:
    if public.listener is Listener.WHOLEFEED:
        return good("public url", f"readers reach it at {public.base}")
    if not is_running:
        text = f"{public.base} was not reached ({public.why}); the server does not run"
        return skip("public url", text)
    text = f"the server runs, and {public.base}/healthz does not answer from here ({public.why})"
    advice = "look at the reverse proxy and the name's address; its path must end where public_url does"
    if public.leads_to:
        advice = f"it redirects to {public.leads_to}: should public_url be that?"
    return wrong("public url", text, advice)


def _judge_local(host: str, base: str, *, is_container: bool) -> CheckFinding:
    advice = "WHOLEFEED_SERVER_HOST=0.0.0.0 (a token is made at the next start)"
    if is_container:
        text = f"server.host is {host} in a container: only programs in the container's network reach it"
        return warning("readers", text, advice)
    text = f"only programs of this machine reach it, as {base}/feed?url=…"
    advice = f"for a reader on another machine or in a container: {advice}"
    return good("readers", text, f"{advice}, and that reader's own guard must allow this address")


def _judge_outer(outer: ProxyAnswer) -> CheckFinding:
    if outer.listener is Listener.WHOLEFEED:
        text = f"other machines of this network reach it at {outer.base}, unless a firewall is between them"
        return good("readers", text)
    text = f"the server runs, and does not answer at this machine's own address {outer.base} ({outer.why})"
    return warning("readers", text, "look at the firewall, or set server.public_url")
