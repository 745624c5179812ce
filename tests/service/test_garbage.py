"""What a request leaves behind is gone when it ends, and does not wait for the collector.

Bodies of documents, answers and what was parsed would stay with it: with a thousand readers that is 50 MB.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.feeds import an_item, atom, json_feed, publish_chain, rss
from tests.origin import Origin
from tests.running import Proxy

FORMATS: dict[str, Callable[..., bytes]] = {"atom": atom, "rss": rss, "json": json_feed}


@contextmanager
def garbage() -> Iterator[Counter[str]]:
    """Give what of the project's would be left for the collector, once the block has ended."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        for each in gc.garbage:
            kind = type(each)
            if kind.__module__.startswith("wholefeed.") or kind is web.Request:
                found[kind.__qualname__] += 1
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


async def ask_often(proxy: Proxy, ask: Callable[[], Coroutine[Any, Any, object]]) -> Counter[str]:
    """Return what is left of the requests before the last one, which may be held until the next."""
    await ask()
    with garbage() as found:
        for _ in range(3):
            await ask()
        await proxy.settled()
    return found


@pytest.mark.parametrize("made", FORMATS)
async def test_a_refresh_leaves_nothing_for_the_collector(proxy: Proxy, origin: Origin, made: str) -> None:
    """A cold feed, one that has not changed, and one with a new entry: parsers, decisions, requests go."""
    document = FORMATS[made]
    numbers = iter(range(1000))

    async def cold() -> None:
        path = f"/cold/{next(numbers)}"
        origin.publish(path, document(an_item("a", 1)), etag='"1"')
        await proxy.whole(origin.url(path))

    async def unchanged() -> None:
        proxy.clock.advance(100_000)
        await proxy.get(origin.url("/cold/0"))

    async def changed() -> None:
        number = next(numbers)
        origin.publish("/cold/0", document(an_item(f"n{number}", number)), etag=f'"{number}"')
        await unchanged()

    for ask in (cold, unchanged, changed):
        assert await ask_often(proxy, ask) == {}, ask.__name__


async def test_a_walk_leaves_nothing_for_the_collector(proxy: Proxy, origin: Origin) -> None:
    """R2: nor do the documents of a walk, whose bodies may be large."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")

    async def walk() -> None:
        assert (await proxy.whole(url)).state == "complete"
        assert (await proxy.ask("DELETE", f"/feed?url={url}")).status == 204

    assert await ask_often(proxy, walk) == {}
