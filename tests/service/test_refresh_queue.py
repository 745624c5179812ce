"""wholefeed.service.refresh_queue: many feeds refreshed at a person's request, a few at a time."""

from __future__ import annotations

import asyncio

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from wholefeed.service.refresh_queue import AT_ONCE

FEEDS = 12


async def filled(proxy: Proxy, origin: Origin) -> list[int]:
    """Read feeds, and return their numbers."""
    for each in range(FEEDS):
        origin.publish(f"/{each}", atom(an_item("a"), feed_id=f"urn:{each}"))
        await proxy.whole(origin.url(f"/{each}"))
    await proxy.settled()
    origin.forget_requests()
    return [feed.id for feed in await proxy.service.feeds()]


async def test_a_few_are_asked_at_once_and_each_once(proxy: Proxy, origin: Origin) -> None:
    """However often they are added; a feed forgotten meanwhile is passed over."""
    feeds, queue = await filled(proxy, origin), proxy.service.queue
    with origin.held("/0") as first, origin.held("/1") as second:
        for _ in range(3):
            queue.add([*feeds[:2], *feeds])
        assert (queue.progress.total, len(queue)) == (FEEDS, FEEDS)
        async with asyncio.timeout(20):
            while not all(origin.requests_for(path) for path in ("/0", "/1", "/11")):
                await asyncio.sleep(0.005)
        queue.add([feeds[0], 99_999])
        first.release()
        second.release()
    await proxy.settled()
    assert origin.counts() == {f"/{each}": 1 for each in range(FEEDS)}
    assert queue.progress.begun == queue.progress.total == FEEDS + 1
    queue.add(feeds[:1])
    assert queue.progress.total == 1
    await proxy.settled()


async def test_no_more_are_begun_than_may_be(start: StartProxy, origin: Origin) -> None:
    """A quarter of the requests to publishers is theirs; a forgotten feed leaves the queue."""
    proxy = await start(fetch={"concurrency": 8})
    feeds, queue = await filled(proxy, origin), proxy.service.queue
    assert AT_ONCE > 2
    with origin.held("/0") as first, origin.held("/1") as second:
        queue.add(feeds)
        async with asyncio.timeout(20):
            while len(origin.counts()) < 2:
                await asyncio.sleep(0.005)
        assert set(origin.counts()) == {"/0", "/1"}
        assert proxy.service.is_being_asked(feeds[5])
        await proxy.service.forget_all(feeds[4:])
        assert not proxy.service.is_being_asked(feeds[5])
        first.release()
        second.release()
    await proxy.settled()
    assert set(origin.counts()) == {"/0", "/1", "/10", "/11"}


async def test_the_end_of_the_program_ends_the_queue(proxy: Proxy, origin: Origin) -> None:
    """Nothing more is begun."""
    feeds, queue = await filled(proxy, origin), proxy.service.queue
    with origin.held("/0"), origin.held("/1"), origin.held("/10"), origin.held("/11"):
        queue.add(feeds)
        while len(origin.counts()) < AT_ONCE:
            await asyncio.sleep(0.005)
        await queue.close()
        assert len(queue) == 0
        await proxy.interrupted()
    assert len(origin.counts()) == AT_ONCE
