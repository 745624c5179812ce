"""The running proxy's address: `serve` notes it beside its database for other commands.

A command may send the token there. So it trusts a note only if this user or root wrote it (root also trusts
the folder's owner), and its process still runs here. Otherwise the configured address counts.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from wholefeed.config.tables import Config

EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104


def http_url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def url_here(config: Config) -> str:
    return http_url(*server_address(config))


def server_address(config: Config) -> tuple[str, int]:
    """Return the proxy's host and port for this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.server.host, config.server.host)  # noqa: S104
    return host, config.server.port


def where_looked(config: Config) -> str:
    host, port = server_address(config)
    stored = "in store.url" if config.store.url else f"for {Path(config.store.path).absolute()} (store.path)"
    return f"looked on {host}, port {port} (server.host, server.port), and {stored}"


# Whether it answers

_HEALTH_SECONDS: Final = 4
_HEALTH_BYTES: Final = 128


def ask_for_health(config: Config) -> tuple[int, bytes]:
    """Return status and body of /healthz.

    Raises:
        OSError: No proxy answers; the reason in words.
    """
    from http.client import HTTPConnection, HTTPException

    try:
        with closing(HTTPConnection(*server_address(config), timeout=_HEALTH_SECONDS)) as connection:
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            return response.status, response.read(_HEALTH_BYTES)
    except HTTPException as exc:
        raise OSError(str(exc)) from exc


def answers(config: Config) -> bool:
    with suppress(OSError, ValueError):
        status, body = ask_for_health(config)
        return status == 200 and json.loads(body) == {"status": "ok"}  # noqa: PLR2004
    return False


# What the one that runs says of itself


def note(config: Config, port: int) -> None:
    """Note the proxy's port and address; an unwritable folder is no error."""
    path = _file_of(config)
    # Of several replicas in one folder, the last start counts.
    told = {"host": config.server.host, "port": port, "process": os.getpid(), "machine": os.uname().nodename}
    written = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        written.unlink(missing_ok=True)
        with written.open("x", encoding="utf-8") as file:
            json.dump(told, file)
        written.replace(path)  # whoever reads it finds all of it


def withdraw(config: Config) -> None:
    path = _file_of(config)
    with suppress(*_UNREADABLE):
        if _told(path)["process"] == os.getpid():
            path.unlink()


def with_running(config: Config) -> Config:
    noted = _read_notice(config)
    if noted is None or not noted.is_running:
        return config
    if (noted.host, noted.port) == (config.server.host, config.server.port):
        return config
    found = replace(config, server=replace(config.server, host=noted.host, port=noted.port))
    return found if answers(found) else config


def has_vanished(config: Config) -> bool:
    """Return whether the noted process died, so that another proxy may answer."""
    noted = _read_notice(config)
    return noted is not None and not noted.is_running


def _file_of(config: Config) -> Path:
    return Path(f"{config.store.path}.address")


class _Noted(NamedTuple):
    host: str
    port: int
    is_running: bool


def _read_notice(config: Config) -> _Noted | None:
    with suppress(*_UNREADABLE):
        told = _told(_file_of(config))
        if told["machine"] == os.uname().nodename:
            return _Noted(str(told["host"]), int(told["port"]), _is_running(told["process"]))
    return None


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it runs, and is another user's
    return True


_UNREADABLE: Final = (OSError, OverflowError, RecursionError, ValueError, TypeError, KeyError)
_NOTE_BYTES: Final = 1024


def _told(path: Path) -> Any:
    """Return the parsed note.

    Raises:
        OSError: No note, or an untrusted one.
        ValueError, RecursionError: No valid JSON.
    """
    # What is there may be anybody's, and anything: a pipe to wait for, a device to read for ever, a link.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        believed = {0, os.geteuid()}
        if not os.geteuid():
            believed.add(path.parent.stat().st_uid)
        if found.st_uid not in believed or not stat.S_ISREG(found.st_mode):
            raise PermissionError(f"expected a file that belongs to this user: {path}")
        return json.loads(file.read(_NOTE_BYTES))
