"""Objects of a request are freed at its end, without the collector.

They would hold bodies of documents, answers and parsed text: 50 MB for a thousand readers.
"""

from __future__ import annotations

import asyncio
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
from wholefeed.web.keys import STORE

FORMATS: dict[str, Callable[..., bytes]] = {"atom": atom, "rss": rss, "json": json_feed}


@contextmanager
def garbage() -> Iterator[Counter[str]]:
    """Yield the project's objects left for the collector, once the block has ended."""
    found: Counter[str] = Counter()
    gc.collect()
    gc.disable()
    try:
        yield found
        there = counted()
        gc.collect()
        found.update(there - counted())
    finally:
        gc.enable()


def counted() -> Counter[str]:
    """Return the number of the project's objects.

    The collector's list (`gc.DEBUG_SAVEALL`) lacks those in a cycle with a suspended generator: closing it
    frees them, before the list is made.
    """
    kinds = map(type, gc.get_objects())
    return Counter(
        kind.__qualname__
        for kind in kinds
        if str(kind.__module__).startswith("wholefeed.") or kind is web.Request
    )


async def ask_often(proxy: Proxy, ask: Callable[[], Coroutine[Any, Any, object]]) -> Counter[str]:
    """Return the leftovers of all requests but the last."""
    await ask()
    with garbage() as found:
        for _ in range(3):
            await ask()
        await proxy.settled()
        await at_rest(proxy)
    return found


async def at_rest(proxy: Proxy) -> None:
    """Wait until no thread works: results precede the release of their objects."""
    await proxy.app[STORE].write(lambda _: None)  # pending writes come first
    before, now = None, counted()
    while now != before:
        await asyncio.sleep(0.02)
        before, now = now, counted()


@pytest.mark.parametrize("made", FORMATS)
async def test_a_refresh_leaves_nothing_for_the_collector(proxy: Proxy, origin: Origin, made: str) -> None:
    """A cold feed, an unchanged one, and one with a new entry."""
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


@pytest.mark.parametrize("text", ["&nbsp;", "<b>", "a & b", "\xe9", "<![CDATA[", "<img src='/'/>"], ids=repr)
async def test_a_document_that_is_mended_leaves_nothing_for_the_collector(
    proxy: Proxy, origin: Origin, text: str
) -> None:
    """Row 45: the parsing error goes, with parser and text; and so do parsers of relative addresses (R22)."""
    numbers = iter(range(1000))

    async def mended() -> None:
        path = f"/{next(numbers)}"
        body = atom(an_item("a", 1, "TEXT"), an_item("b", 2)).replace(b"http://site.test/", b"/")
        origin.publish(path, body.replace(b"TEXT", text.encode("latin-1")))
        assert (await proxy.whole(origin.url(path))).status == 200

    assert await ask_often(proxy, mended) == {}


@pytest.mark.parametrize("entries", [2, 0])
async def test_a_walk_leaves_nothing_for_the_collector(proxy: Proxy, origin: Origin, entries: int) -> None:
    """R2: the documents of a walk may be large."""
    publish_chain(origin, archives=3)
    items = [an_item(f"long{number}", number, "text " * 1000) for number in range(entries)]
    origin.publish("/archive/1", atom(*items, extra=f"<subtitle>{'long ' * 1000}</subtitle>", archive=True))
    url = origin.url("/feed")

    async def walk() -> None:
        assert (await proxy.whole(url)).state == "complete"
        assert (await proxy.ask("DELETE", f"/feed?url={url}")).status == 204

    assert await ask_often(proxy, walk) == {}
