"""The table of routes: what may be a URL behind the slash."""

from __future__ import annotations

import time

import pytest

from tests.running import Proxy


@pytest.mark.parametrize("path", ["a." * 4000, "." * 8000, "%20" * 2600 + "x", "a" * 8000])
async def test_what_is_no_route_is_refused_at_once(proxy: Proxy, path: str) -> None:
    """Whatever anybody asks for is held against every route, on the loop that answers all: it took 2 s."""
    took_seconds = []
    for _ in range(3):  # the collector may look through all that a run of tests has made meanwhile
        started = time.process_time()
        reply = await proxy.ask("GET", f"/{path}")
        took_seconds.append(time.process_time() - started)
        assert reply.status == 404
    assert min(took_seconds) < 0.4
