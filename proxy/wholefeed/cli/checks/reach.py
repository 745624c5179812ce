"""Whether the server runs, and whether a reader can reach it from where it is."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

import aiohttp

from wholefeed.cli.access_token import is_loopback
from wholefeed.cli.checks.beside import beside
from wholefeed.cli.checks.findings import Finding, good, skipped, warning, wrong
from wholefeed.cli.command import server_address
from wholefeed.config.tables import Config

ASK_SECONDS: Final = 4.0
_CHECK: Final = "server"
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104
_SOMEWHERE: Final = {socket.AF_INET: ("192.0.2.1", 9), socket.AF_INET6: ("2001:db8::1", 9)}
"""Addresses of documentation: to choose a way to them sends nothing."""
_MOST_BYTES: Final = 1024
_SHOWN_CHARACTERS: Final = 200
_REDIRECTS: Final = range(300, 400)


class Heard(Enum):
    """What answers at an address."""

    WHOLEFEED = "wholefeed"
    STRANGER = "something else"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one address."""

    base: str
    heard: Heard
    why: str = ""
    """Where it is not wholefeed."""
    leads_to: str = ""
    """Where it redirects to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What was tried."""

    own: Answer
    """From this machine."""
    outer: Answer | None
    """By the address that others see; None: there is none, or only this machine is listened to."""
    public: Answer | None
    """By `server.public_url`; None: there is none, or it was not to be asked."""
    socket: Answer | None = None
    """By `server.socket`; None: there is none."""


async def check_server(config: Config, *, is_container: bool, is_offline: bool) -> list[Finding]:
    """Ask the server by each of its addresses."""
    host, port = server_address(config)
    public_url = "" if is_offline else config.server.public_url.rstrip("/")
    outer_host = await beside(lambda: _outer_address(config.server.host))
    own, outer, public, by_socket = await asyncio.gather(
        _ask(_base(host, port)),
        _ask(_base(outer_host, port) if outer_host else ""),
        _ask(public_url),
        _ask("http://localhost" if config.server.socket else "", config.server.socket),
    )
    assert own is not None, "there is an address"
    reached = Reached(own=own, outer=outer, public=public, socket=by_socket)
    return list(judge_server(reached, config, is_container=is_container))


def judge_server(reached: Reached, config: Config, *, is_container: bool) -> Iterator[Finding]:
    """Say whether it runs, and what a reader elsewhere needs."""
    own = reached.own
    if own.heard is Heard.STRANGER:
        text = f"what answers at {own.base} is not wholefeed ({own.why})"
        yield wrong(_CHECK, text, "end that, or take another port: WHOLEFEED_SERVER_PORT=8081")
    elif own.heard is Heard.NOBODY:
        yield skipped(_CHECK, f"nothing listens at {own.base} ({own.why})", "wholefeed serve")
    else:
        yield good(_CHECK, f"it runs at {own.base}")
    if reached.socket is not None:
        yield from _judge_socket(
            reached.socket, config.server.socket, is_running=own.heard is Heard.WHOLEFEED
        )
    yield from _judge_public(reached, is_running=own.heard is Heard.WHOLEFEED)
    yield from _judge_others(reached, config, is_container=is_container)


def _judge_socket(found: Answer, path: str, *, is_running: bool) -> Iterator[Finding]:
    if found.heard is Heard.WHOLEFEED:
        yield good("socket", f"it answers at {path}; who is in the group of that file may ask there")
    elif is_running and found.why == os.strerror(errno.EACCES):
        text = f"uid {os.geteuid()} may not ask at {path}; its owner and its group may"
        yield skipped(
            "socket", text, f"ls -l {path} tells who: a reverse proxy's user belongs into that group"
        )
    elif is_running:
        text = f"the server runs, and does not answer at {path} ({found.why})"
        advice = f"ls -l {path}; a server that was started before server.socket was set must be started again"
        yield wrong("socket", text, advice)
    elif found.heard is Heard.STRANGER:
        yield wrong("socket", f"what answers at {path} is not wholefeed ({found.why})", "name another path")
    elif not (folder := Path(path).absolute().parent).is_dir():
        yield wrong("socket", f"the folder {folder} is not there", f"mkdir -p {folder}")
    elif not os.access(folder, os.W_OK | os.X_OK):
        text = f"{folder} cannot be written by uid {os.geteuid()}"
        yield wrong("socket", text, f"chown {os.geteuid()} {folder}")
    elif os.path.lexists(path) and not stat.S_ISSOCK(os.lstat(path).st_mode):
        yield wrong("socket", f"{path} is no socket: the server would not start", "name another path")
    else:
        yield good("socket", f"nobody listens at {path} yet")


def _judge_public(reached: Reached, *, is_running: bool) -> Iterator[Finding]:
    public = reached.public
    if public is None:
        return
    if public.heard is Heard.WHOLEFEED:
        yield good("public url", f"readers reach it at {public.base}")
    elif not is_running:
        yield skipped("public url", f"{public.base} was not reached ({public.why}); the server does not run")
    else:
        text = f"the server runs, and {public.base}/healthz does not answer from here ({public.why})"
        advice = "look at the reverse proxy and the name's address; its path must end where public_url does"
        if public.leads_to:
            advice = f"it leads on to {public.leads_to}: is that what public_url should be?"
        yield wrong("public url", text, advice)


def _judge_others(reached: Reached, config: Config, *, is_container: bool) -> Iterator[Finding]:
    server, outer = config.server, reached.outer
    if is_loopback(server.host):
        if is_container and not (server.socket or server.public_url):
            text = f"server.host is {server.host} in a container: only what shares its network reaches it"
            yield warning(
                "readers", text, "WHOLEFEED_SERVER_HOST=0.0.0.0 (a token is made at the next start)"
            )
        elif not (server.socket or server.public_url):
            text = f"only programs of this machine reach it, as {reached.own.base}/feed?url=…"
            advice = (
                "for a reader on another machine or in a container: WHOLEFEED_SERVER_HOST=0.0.0.0 (a token is"
                " made at the next start), and that reader's own guard must allow this address"
            )
            yield good("readers", text, advice)
        return
    if outer is None or reached.own.heard is not Heard.WHOLEFEED:
        return
    if outer.heard is Heard.WHOLEFEED:
        text = f"other machines of this network reach it at {outer.base}, unless a firewall is between them"
        yield good("readers", text)
    else:
        text = (
            f"the server runs, and does not answer at this machine's own address {outer.base} ({outer.why})"
        )
        yield warning("readers", text, "look at the firewall, or set server.public_url")


async def _ask(base: str, unix_socket: str = "") -> Answer | None:
    """Ask for the health; None where there is no address."""
    if not base:
        return None
    timeout = aiohttp.ClientTimeout(total=ASK_SECONDS)
    connector = aiohttp.UnixConnector(unix_socket) if unix_socket else aiohttp.TCPConnector()
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False, connector=connector) as session,
            session.get(f"{base}/healthz", allow_redirects=False) as response,
        ):
            body = await response.content.read(_MOST_BYTES)
    except TimeoutError:
        return Answer(base, Heard.NOBODY, f"no answer in {ASK_SECONDS:g} s")
    except aiohttp.ClientConnectorError as exc:
        return Answer(base, Heard.NOBODY, exc.strerror or str(exc))
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        return Answer(base, Heard.STRANGER, str(exc) or type(exc).__name__)
    with suppress(ValueError):
        if response.status == 200 and json.loads(body) == {"status": "ok"}:  # noqa: PLR2004
            return Answer(base, Heard.WHOLEFEED)
    leads_to = (
        response.headers.get("Location", "")[:_SHOWN_CHARACTERS] if response.status in _REDIRECTS else ""
    )
    return Answer(base, Heard.STRANGER, f"status {response.status}", leads_to)


def _base(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _outer_address(host: str) -> str:
    """Return the address by which other machines see this one; empty where it is not listened on."""
    if is_loopback(host):
        return ""
    if host not in _EVERYWHERE:
        return host
    family = socket.AF_INET if host == "0.0.0.0" else socket.AF_INET6  # noqa: S104
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way:
            way.connect(_SOMEWHERE[family])
            address = str(way.getsockname()[0])
    except OSError:
        return ""
    return "" if is_loopback(address) else address
