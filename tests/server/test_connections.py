from __future__ import annotations

import asyncio
import resource
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import serving
from tests.running import Proxy, a_config, running
from wholefeed.server.listening import MAX_CONNECTIONS, Connections, reaping
from wholefeed.web.keys import CONNECTIONS


class FakeConnection:
    transport: asyncio.Transport | None = None


async def connected(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert proxy.client.port is not None
    return await asyncio.open_connection(proxy.client.host, proxy.client.port)


@pytest.mark.fault("78")
async def test_a_header_that_never_ends_is_not_waited_for(tmp_path: Path, origin: Origin) -> None:
    """docs/faults.md row 78; docs/design.md#readers-connections: neither is a connection that says nothing;
    one that is served is."""
    origin.publish("/feed", atom(an_item("a")))
    async with running(a_config(tmp_path)) as proxy, asyncio.timeout(20):
        runner = proxy.client.server.runner
        assert runner is not None
        assert runner.server is not None
        silent, silent_writer = await connected(proxy)
        half, half_writer = await connected(proxy)
        half_writer.write(b"GET /feed HTTP/1.1\r\nHost: ")
        with origin.held("/feed") as gate:
            served = asyncio.create_task(proxy.get(origin.url("/feed")))
            await gate.reached()
            async with reaping(runner.server, proxy.app[CONNECTIONS], idle_seconds=0.05):
                for reader in (silent, half):
                    with suppress(ConnectionResetError):
                        assert await reader.read() == b""
            gate.release()
        assert (await served).status == 200
        for writer in (silent_writer, half_writer):
            writer.close()


@pytest.mark.fault("78")
def test_of_too_many_connections_the_ones_idle_longest_are_closed() -> None:
    """docs/faults.md row 78."""
    connections = Connections()
    held = [FakeConnection() for _ in range(5)]
    assert connections.overdue(held, at_most=5) == []
    with connections.busy(held[0]):
        assert connections.overdue(held, at_most=3) == held[1:3]
    assert connections.overdue(held, at_most=3) == held[1:3]


@pytest.mark.fault("78")
async def test_of_too_many_busy_connections_the_last_ones_are_refused(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 78: a supervisor is answered all the same."""
    origin.publish("/feed", atom(an_item("a")))
    connections = proxy.app[CONNECTIONS]
    with ExitStack() as stack:
        held = [FakeConnection() for _ in range(MAX_CONNECTIONS)]
        for each in held:
            stack.enter_context(connections.busy(each))
        refused = await proxy.get(origin.url("/feed"))
        assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        assert origin.requests == []
        assert (await proxy.ask("GET", "/healthz")).status == 200
    assert (await proxy.get(origin.url("/feed"))).status == 200


@pytest.mark.fault("78")
async def test_the_server_may_open_as_many_files_as_it_admits_connections(tmp_path: Path) -> None:
    """docs/faults.md row 78: where 1,024 are usual."""
    few = ["sh", "-c", 'ulimit -S -n 256 && exec "$@"', "sh"]
    async with serving(tmp_path, before=few) as served:
        soft, hard = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
    assert soft == hard or soft > MAX_CONNECTIONS


def test_a_busy_connection_is_never_closed() -> None:
    """Row 78: a connection in use is not closed for being idle, also when it was marked twice; afterwards it
    may be."""
    connections = Connections()
    held = FakeConnection()
    with connections.busy(held), connections.busy(held):
        pass
    with connections.busy(held):
        assert connections.overdue([held], idle_seconds=-1, at_most=0) == []
    assert connections.overdue([held], idle_seconds=-1) == [held]
