"""Two replicas on one PostgreSQL together respect a publisher's limits."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy, a_config, running


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let shared knowledge last on a busy machine."""
    set_constant(monkeypatch, "LATE_SECONDS", 30.0)


UNSHARED = "wholefeed_unshared_requests_total"

PATHS = [f"/feed/{number}" for number in range(8)]


def publish(origin: Origin) -> list[str]:
    for path in PATHS:
        origin.publish(path, atom(an_item(path, 1)))
    return [origin.url(path) for path in PATHS]


async def ask(proxy: Proxy, urls: list[str]) -> list[int]:
    replies = await asyncio.gather(*(proxy.get(url) for url in urls))
    return [reply.status for reply in replies]


async def test_a_publisher_gets_no_more_requests_at_once_than_from_one(
    tmp_path: Path, postgres_url: str, origin: Origin
) -> None:
    """fetch.concurrency_per_host covers all replicas together, and every document comes."""
    urls = publish(origin)
    origin.latency_seconds = 0.05
    config = a_config(tmp_path, store={"url": postgres_url}, fetch={"concurrency_per_host": 2})
    async with running(config) as one, running(config) as other:
        replies = await asyncio.gather(ask(one, urls[::2]), ask(other, urls[1::2]))
        assert [status for each in replies for status in each] == [200] * len(urls)
        assert origin.peak_requests == 2
        assert [await each.metric(UNSHARED) for each in (one, other)] == [0, 0]
    assert sum(origin.counts().values()) == len(urls)


async def test_a_publisher_that_told_one_replica_to_wait_is_not_asked_by_another(
    tmp_path: Path, postgres_url: str, origin: Origin
) -> None:
    """docs/faults.md row 55, over replicas: stored feeds are answered, stale, without a request."""
    first, second, *_ = publish(origin)
    config = a_config(tmp_path, store={"url": postgres_url})
    async with running(config) as one, running(config) as other:
        assert (await one.get(first)).status == 200
        assert (await other.get(second)).status == 200
        origin.fault(PATHS[0], Status(429, headers=(("Retry-After", "600"),)))
        await one.refreshed(first)
        origin.forget_requests()
        reply = await other.refreshed(second)
        assert reply.reconstruction.endswith(";stale")
        assert origin.requests == []


async def test_requests_are_spaced_out_over_replicas(
    tmp_path: Path, postgres_url: str, origin: Origin
) -> None:
    """fetch.min_interval_per_host_seconds is between any two requests of any replicas."""
    urls, seconds = publish(origin)[:4], 0.4
    config = a_config(tmp_path, store={"url": postgres_url}, fetch={"min_interval_per_host_seconds": seconds})
    async with running(config) as one, running(config) as other:
        await asyncio.gather(ask(one, urls[:2]), ask(other, urls[2:]))
    came = sorted(request.at for request in origin.requests)
    assert len(came) == 4
    assert all(later - earlier > seconds * 0.8 for earlier, later in pairwise(came))
