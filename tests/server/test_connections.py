from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from unittest.mock import Mock

import pytest
from aiohttp import StreamReader

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import serving
from tests.running import Proxy
from wholefeed.server.listening import MAX_CONNECTIONS, Connections, reaping
from wholefeed.web.keys import CONNECTIONS


class FakeConnection:
    transport: Mock | None = None


@contextmanager
def busy(connections: Connections, connection: FakeConnection) -> Iterator[None]:
    """Answer a request inside."""
    use = connections.use_of(connection)
    connections.begin(use)
    yield
    connections.end(use, time.monotonic())


def a_body() -> StreamReader:
    """The body of a request, of which nothing has come yet."""
    return StreamReader(Mock(), 1 << 16, loop=Mock())


async def connected(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert proxy.client.port is not None
    return await asyncio.open_connection(proxy.client.host, proxy.client.port)


@pytest.mark.fault("78")
async def test_a_header_that_never_ends_is_not_waited_for(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 78; docs/design.md#readers-connections: neither is a connection that says nothing;
    one that is served is."""
    origin.publish("/feed", atom(an_item("a")))
    async with asyncio.timeout(20):
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
    connections = Connections(at_most=5)
    held = [FakeConnection() for _ in range(5)]
    assert connections.overdue(held) == []
    connections.at_most = 3
    with busy(connections, held[0]):
        assert connections.overdue(held) == held[1:3]
    assert connections.overdue(held) == held[1:3]


@pytest.mark.fault("95a")
def test_a_connection_is_half_open_until_its_request_has_come_whole() -> None:
    """docs/faults.md row 95a: it is not counted as busy, is closed where another has to have its place, and
    not for being idle while a handler waits for the rest."""
    connections = Connections(at_most=2)
    held = [FakeConnection(), FakeConnection()]
    use, body = connections.use_of(held[0]), a_body()
    connections.begin(use, body)
    assert connections.busy_count == 0
    assert connections.overdue(held, idle_seconds=-1) == held[1:]
    connections.at_most = 1
    assert connections.overdue(held) == held[:1]
    body.feed_eof()
    assert connections.busy_count == 1
    assert connections.overdue(held) == held[1:]
    connections.end(use, time.monotonic())
    assert connections.busy_count == 0


@pytest.mark.fault("95a")
def test_what_comes_after_its_answer_makes_no_connection_busy() -> None:
    """Row 95a: also not one that had to make room meanwhile."""
    connections = Connections()
    held, body = FakeConnection(), a_body()
    use = connections.use_of(held)
    connections.begin(use, body)
    connections.end(use, time.monotonic())
    body.feed_eof()
    assert connections.busy_count == 0
    connections.begin(use, a_body())
    connections.make_room()
    connections.end(use, time.monotonic())
    assert connections.busy_count == 0


@pytest.mark.fault("96")
def test_a_new_connection_takes_the_place_of_the_oldest_that_waits() -> None:
    """docs/faults.md row 96: one that is answered keeps its place, though it is older."""
    connections = Connections(at_most=2)
    answered, waiting = FakeConnection(), FakeConnection()
    for each in (answered, waiting):
        each.transport = Mock(spec=asyncio.Transport)
        connections.admit(each, 0)
    with busy(connections, answered):
        connections.admit(FakeConnection(), 2)
    assert answered.transport is not None
    assert waiting.transport is not None
    assert not answered.transport.abort.called
    assert waiting.transport.abort.called
    assert connections.closed == 1


@pytest.mark.fault("78")
async def test_of_too_many_busy_connections_the_last_ones_are_refused(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 78: a supervisor is answered all the same."""
    origin.publish("/feed", atom(an_item("a")))
    connections = proxy.app[CONNECTIONS]
    with ExitStack() as stack:
        held = [FakeConnection() for _ in range(MAX_CONNECTIONS)]
        for each in held:
            stack.enter_context(busy(connections, each))
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
    with busy(connections, held), busy(connections, held):
        pass
    connections.at_most = 0
    with busy(connections, held):
        assert connections.overdue([held], idle_seconds=-1) == []
    assert connections.overdue([held], idle_seconds=-1) == [held]
