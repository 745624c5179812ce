"""Refreshes whose store fails in the middle, for a moment or for longer."""

from __future__ import annotations

import asyncio

import pytest

from tests.feeds import publish_chain
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.errors import StorageFullError


@pytest.mark.parametrize("error", [StorageFullError("the volume is full"), ValueError("an error of our own")])
async def test_a_refresh_that_ends_by_an_error_fetches_nothing_any_more(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Its publication meanwhile fails and then it: what it fetches ahead is cancelled all the same."""
    publish_chain(origin, archives=12)
    has_failed = asyncio.Event()

    async def publish(*_: object, **__: object) -> None:
        has_failed.set()
        raise error

    async def put_documents(*_: object, **__: object) -> None:
        raise StorageFullError("the volume is full")

    with origin.held("/archive/7") as seven, origin.held("/archive/6") as six, origin.held("/archive/5"):
        await proxy.begun(origin.url("/feed"))
        async with asyncio.timeout(20):
            await asyncio.gather(seven.reached(), six.reached())
            monkeypatch.setattr(proxy.store, "publish", publish)
            await has_failed.wait()
            monkeypatch.setattr(proxy.store, "put_documents", put_documents)
            seven.release()
            await proxy.settled()
        async with asyncio.timeout(2):  # less than any time-out of theirs
            while origin.running_requests:
                await asyncio.sleep(0.01)
