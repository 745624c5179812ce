"""A proxy with watched connections, for tests of targets that it must not reach.

async with watched(tmp_path, origin, names) as (proxy, outlet):
    ...
assert outlet.reached == {origin.host}          # and nothing else was ever connected to
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from tests.fetchers import Names, opening
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy, Reply, a_config, running
from wholefeed.core.text.urls import host_of, resolve
from wholefeed.web.request import feed_url


class _WatchedSocket(socket.socket):
    """Asks before it connects."""

    outlet: Outlet

    def connect(self, address: Any, /) -> None:
        self.outlet.pass_through(address[0])
        super().connect(address)


@dataclass
class Outlet:
    """Makes sockets for addresses that passed the guard; notes the targets, and lets none out elsewhere."""

    lets_out_to: frozenset[str]
    tried: list[str] = field(default_factory=list)
    """Each address before its connection, in order."""

    @property
    def reached(self) -> set[str]:
        return set(self.tried)

    def pass_through(self, address: str) -> None:
        self.tried.append(address)
        if address not in self.lets_out_to:
            raise ConnectionRefusedError(f"this test does not reach {address}")

    def __call__(self, family: int, kind: int, protocol: int) -> socket.socket:
        made = _WatchedSocket(family, kind, protocol)
        made.outlet = self
        return made


@asynccontextmanager
async def watched(
    path: Path,
    *origins: Origin,
    names: Names | None = None,
    ssl_context: SSLContext | None = None,
    fetch: Mapping[str, Any] | None = None,
    **sections: Any,
) -> AsyncIterator[tuple[Proxy, Outlet]]:
    """Start a proxy that may ask these origins alone, unless `fetch` says otherwise."""
    outlet = Outlet(frozenset(origin.host for origin in origins))
    networks = tuple(sorted(outlet.lets_out_to))
    config = a_config(path, fetch={"allow_networks": networks, **(fetch or {})}, **sections)
    opened = opening(resolver=names or Names(), make_socket=outlet, ssl_context=ssl_context)
    with pytest.MonkeyPatch.context() as patch:
        set_constant(patch, "_WRITER_PRAGMAS", ("PRAGMA synchronous = OFF", "PRAGMA foreign_keys = ON"))
        async with running(config, open_fetcher=opened) as proxy:
            yield proxy, outlet


async def asked(proxy: Proxy, target: str) -> Reply:
    """The answer to a request target, sent unchanged."""
    url = URL(str(proxy.client.make_url("/")).rstrip("/") + target, encoded=True)
    async with proxy.client.session.get(url) as response:
        return Reply(response.status, response.headers, await response.read())


async def asked_for(proxy: Proxy, url: str) -> Reply:
    """The feed of a URL; every character of it reaches the proxy."""
    return await asked(proxy, "/feed?url=" + quote(url, safe=""))


def named_host(url: str, *, base: str = "http://127.0.0.2/") -> str:
    """The host that a spelling leads to, normalised as the guard judges and logs it.

    Raises:
        ValueError: It leads to none.
    """
    return host_of(resolve(base, feed_url(url) if url.startswith("feed:") else url))
