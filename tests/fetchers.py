"""Makers for tests that fetch: a fetcher that may ask loopback, and names that resolve without a network."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from aiohttp.abc import AbstractResolver, ResolveResult

from wholefeed.config.tables import FetchConfig, LimitsConfig
from wholefeed.fetch.budget import MemoryBudget
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.politeness import HostGate


@dataclass
class Names(AbstractResolver):
    """Resolves names from a table; an OSError in it is raised, unknown ones have no address."""

    table: Mapping[str, tuple[str, ...] | OSError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        found = self.table.get(host, OSError(None, "no such name"))
        if isinstance(found, OSError):
            raise found
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=0,
            )
            for address in found
        ]

    async def close(self) -> None:
        """Do nothing: there is no resource."""


class SilentNames(Names):
    """A name server that never answers."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        await asyncio.Event().wait()
        return []


class SocketSpy:
    """Replaces socket.socket: counts, and lets nothing out."""

    def __init__(self) -> None:
        self.opened = 0

    def __call__(self, family: int, kind: int, protocol: int) -> NoReturn:
        self.opened += 1
        raise OSError("this test opens no socket")


@contextlib.asynccontextmanager
async def a_fetcher(
    *,
    resolver: AbstractResolver | None = None,
    own_addresses: Callable[[str, int], bool] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
    budget: MemoryBudget | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
    document_bytes: int = 1 << 20,
    **fetch: Any,
) -> AsyncIterator[Fetcher]:
    """Open a fetcher that by default may ask 127.0.0.0/8 and tries once."""
    config = FetchConfig(**{"allow_networks": ("127.0.0.0/8",), "retries": 0, **fetch})
    limits = LimitsConfig(document_bytes=document_bytes)
    async with Fetcher.open(
        config,
        limits,
        resolver=resolver or Names(),
        own_addresses=own_addresses,
        ssl_context=ssl_context,
        make_socket=make_socket,
        budget=budget,
        sleep=sleep,
        jitter=jitter,
    ) as fetcher:
        yield fetcher


def opening(
    *, clock: Callable[[], float] | None = None, **parts: Any
) -> Callable[..., AbstractAsyncContextManager[Fetcher]]:
    """The fetcher's opener for a proxy: `running(config, open_fetcher=opening(resolver=names))`.

    Args:
        clock: By which a host that was left alone is asked again; of its limits the usual ones count.
        parts: Given to the fetcher in place of its own.
    """
    if clock is not None:
        parts["gate"] = HostGate(concurrency=32, per_host=4, clock=clock)
    return partial(Fetcher.open, **parts)
