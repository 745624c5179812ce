"""tests.origin: properties that tests rely on without noticing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.answers import Reset
from tests.origin import Origin


@asynccontextmanager
async def asked(origin: Origin) -> AsyncIterator[asyncio.StreamReader]:
    """Ask for /feed."""
    async with asyncio.timeout(300):
        reader, writer = await asyncio.open_connection(origin.host, origin.port)
        writer.write(b"GET /feed HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        try:
            yield reader
        finally:
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()


async def test_requests_that_are_answered_at_once_are_counted(origin: Origin) -> None:
    """Tests of politeness say "at most so many": too low a count would let anything pass."""
    with origin.held("/feed") as gate:
        async with asked(origin), asked(origin):
            await gate.reached(2)
            assert (gate.waiting, origin.peak_requests, origin.open_connections) == (2, 2, 2)
    assert (origin.counts(), origin.total_connections) == ({"/feed": 2}, 2)


async def test_data_before_a_reset_arrives(origin: Origin) -> None:
    """Row 32 can be tried: the bytes before a reset reach the client first."""
    origin.answer("/feed", Reset(b"HTTP/1.1 200 OK\r\n\r\nabc"))
    async with asked(origin) as reader:
        assert (await reader.readuntil(b"abc")).startswith(b"HTTP/1.1 200 OK\r\n")
        with pytest.raises(ConnectionResetError):
            await reader.read()


def test_a_publisher_stays_on_loopback() -> None:
    """No test can open a port to the network."""
    with pytest.raises(AssertionError):
        Origin("0.0.0.0")
