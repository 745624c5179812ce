"""Rows 85 and 86 of docs/faults.md: what many readers cost that are slow, or take a part of a feed."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.feeds import an_item, atom, ids, json_feed, rss, stamp
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.store.rows import SegmentRow
from wholefeed.web.keys import STORE

PLAIN, GZIP = {"Accept-Encoding": "identity"}, {"Accept-Encoding": "gzip"}
READERS = 30
TEXT_BYTES = 8 << 20
MOST_BYTES = 48 << 20
"""Of memory for all readers; a copy of the text for each would be five times as much."""


def noise(seed: int, size: int) -> str:
    """Text that hardly deflates."""
    return random.Random(seed).randbytes(size // 2).hex()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def begin_to_read(proxy: Proxy, url: str, coding: str) -> asyncio.StreamWriter:
    """Ask for a feed, take its first bytes, and no more."""
    server = proxy.client.server
    reader, writer = await asyncio.open_connection(str(server.host), server.port, limit=1024)
    head = f"GET /feed?url={quote(url, safe='')} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n"
    writer.write(f"{head}Accept-Encoding: {coding}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return writer


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


@pytest.mark.fault("85")
@pytest.mark.parametrize("coding", ["identity", "gzip"])
@pytest.mark.sample("gzip")
async def test_row_85_readers_that_read_slowly_hold_little_of_a_large_entry(
    proxy: Proxy, origin: Origin, coding: str
) -> None:
    """Row 85: one entry of megabytes, and readers that stop after its first bytes."""
    origin.publish("/feed", atom(an_item("a", 1, noise(1, TEXT_BYTES)), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    await hang_up(await begin_to_read(proxy, url, coding))
    before = resident_bytes()
    async with AsyncExitStack() as stack:
        for _ in range(READERS):
            writer = await begin_to_read(proxy, url, coding)
            stack.push_async_callback(hang_up, writer)
        await asyncio.sleep(0.2)
        assert resident_bytes() - before < MOST_BYTES


def count_pieces(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the size of each piece of a block that is read."""
    store, seen = proxy.app[STORE], list[int]()
    pieces = store.pieces

    async def counted(segment: SegmentRow) -> AsyncIterator[bytes]:
        async for piece in pieces(segment):
            seen.append(len(piece))
            yield piece

    monkeypatch.setattr(store, "pieces", counted)
    return seen


@pytest.mark.fault("86")
async def test_row_86_a_view_reads_what_it_sends(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 86: the first entries of a large document, without inflating and parsing all of it."""
    items = [an_item(f"e{n}", 400 - n, noise(n, 10_000)) for n in range(400)]
    origin.publish("/feed", atom(*items, complete=True))
    url = origin.url("/feed")
    whole = await proxy.whole(url)
    seen = count_pieces(proxy, monkeypatch)
    assert ids((await proxy.get(url, limit="3")).body) == ["e0", "e1", "e2"]
    assert sum(seen) < len(whole.body) / 8
    seen.clear()
    assert len(ids((await proxy.get(url, since=stamp(351))).body)) == 50
    assert sum(seen) < len(whole.body) / 3


@pytest.mark.fault("86")
@pytest.mark.parametrize("make", [atom, rss, json_feed])
@pytest.mark.sample("rss")
async def test_row_86_a_large_part_is_the_same_in_both_codings(
    proxy: Proxy, origin: Origin, make: Callable[..., bytes]
) -> None:
    """Row 86: it is deflated while it is sent; whole segments stand before and behind it."""
    newest = [an_item(f"n{n}", 900 - n, noise(n, 2_000)) for n in range(2)]
    mixed = [an_item(f"e{n}", n, noise(n, 20_000)) for n in range(1, 61)]
    relation = "next_url" if make is json_feed else "next"
    kind = "application/feed+json" if make is json_feed else "application/xml"
    origin.publish("/feed", make(*newest, **{relation: "/2"}), content_type=kind)
    origin.publish("/2", make(*mixed), content_type=kind)
    url = origin.url("/feed")
    assert (await proxy.whole(url)).state == "paged"
    queries: tuple[dict[str, str], ...] = (
        {"limit": "40"},
        {"since": stamp(20)},
        {"limit": "1000", "since": stamp(59)},
    )
    for query in queries:
        plain = await proxy.ask("GET", "/feed", params={"url": url, **query}, headers=PLAIN)
        packed = await proxy.ask("GET", "/feed", params={"url": url, **query}, headers=GZIP)
        assert gzip.decompress(packed.body) == plain.body
        assert packed.headers["ETag"] != plain.headers["ETag"]
        validated = {**PLAIN, "If-None-Match": plain.headers["ETag"]}
        again = await proxy.ask("GET", "/feed", params={"url": url, **query}, headers=validated)
        assert again.status == 304
        limit, since = int(query.get("limit", 1000)), query.get("since", "")
        expected = [item.name for item in (*newest, *reversed(mixed)) if stamp(item.updated or 0) >= since]
        names = items(plain.body) if make is json_feed else ids(plain.body)
        assert names == expected[:limit]


def items(body: bytes) -> list[str]:
    return [item["id"].removeprefix("urn:") for item in json.loads(body)["items"]]
