"""Rows 85 and 86 of docs/faults.md: the cost of many readers that are slow, or take a part of a feed."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.feeds import an_item, atom, ids, json_feed, rss, stamp
from tests.origin import Origin
from tests.running import Proxy
from tests.sqlite_faults import READING, SqliteFaults

PLAIN, GZIP = {"Accept-Encoding": "identity"}, {"Accept-Encoding": "gzip"}
READERS = 30
TEXT_BYTES = 8 << 20
MOST_BYTES = 48 << 20
"""For all readers; a copy of the text for each would be five times as much."""


def noise(seed: int, size: int) -> str:
    return random.Random(seed).randbytes(size // 2).hex()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def begin_to_read(proxy: Proxy, url: str, coding: str) -> asyncio.StreamWriter:
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


@pytest.mark.fault("86")
async def test_row_86_a_view_reads_what_it_sends(faults: SqliteFaults, proxy: Proxy, origin: Origin) -> None:
    """Row 86: the first entries of a large document, without inflating and parsing all of it."""
    items = [an_item(f"e{n}", 400 - n, noise(n, 10_000)) for n in range(400)]
    origin.publish("/feed", atom(*items, complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)

    async def pieces(**view: str) -> tuple[list[str], int]:
        faults.arm(0, "SQLITE_IOERR", only=READING)
        reply = await proxy.ask("GET", "/feed", params={"url": url, **view}, headers=PLAIN)
        return ids(reply.body), faults.statements

    names, whole = await pieces()
    assert (len(names), whole > 10) == (400, True)
    names, first = await pieces(limit="3")
    assert names == ["e0", "e1", "e2"]
    assert 0 < first < whole / 8
    names, latest = await pieces(since=stamp(351))
    assert len(names) == 50
    assert 0 < latest < whole / 3


@pytest.mark.fault("86")
@pytest.mark.parametrize("make", [atom, rss, json_feed])
@pytest.mark.sample("rss")
async def test_row_86_a_large_part_is_the_same_in_both_codings(
    proxy: Proxy, origin: Origin, make: Callable[..., bytes]
) -> None:
    """Row 86: it is deflated during sending; whole segments stand before and behind it."""
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
