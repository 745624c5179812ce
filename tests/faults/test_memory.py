"""Rows of docs/faults.md about memory: a server in its own process receives input designed to fill it."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import random
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import brotli  # type: ignore[import-untyped]
import pytest

from benchmarks.support.server import Server, running_server
from tests.answers import Answer, Document, Request, Wire
from tests.cgroups import memory_group
from tests.feeds import an_item, atom, own_ids, publish_chain
from tests.origin import ATOM, Origin
from tests.running import Proxy

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

MEBIBYTE = 1 << 20
FEED = atom(an_item("x", 9, "TEXT"))
LARGE = 30 * MEBIBYTE
"""Within the limit of a body, 32 MiB."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A patient server, for a busy machine."""
    folder = tmp_path_factory.mktemp("server")
    with running_server(folder, limits_respond_within_seconds=50, fetch_retries=0) as server:
        yield server


async def asked(server: Server, url: str, route: str = "/feed") -> tuple[int, bytes]:
    target = f"http://127.0.0.1:{server.port}{server.feed_target(url).replace('/feed', route, 1)}"
    async with aiohttp.ClientSession() as session, session.get(target) as response:
        assert response.status != 503 or "Retry-After" in response.headers
        return response.status, await response.read()


def coded(coding: str, content: bytes) -> Document:
    return Document(body=content, headers=(("Content-Type", ATOM), ("Content-Encoding", coding)))


def packed(content: bytes) -> Answer:
    """Compress so that neither the size on the wire nor the ratio is refused."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31, 9, zlib.Z_HUFFMAN_ONLY)
    return coded("gzip", packer.compress(content) + packer.flush())


def deflated_zeros(mebibytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * mebibytes


def element(attributes: str = "", inside: str = "") -> Answer:
    return packed(FEED.replace(b"TEXT", f"<b{attributes}>{inside}</b>".encode()))


def many(attribute: str, count: int) -> str:
    return "".join(attribute.format(n, n) for n in range(count))


def doctype(declared: str, inside: str) -> Answer:
    return packed(
        FEED.replace(b"<feed", f"<!DOCTYPE feed [{declared}]><feed".encode()).replace(
            b"TEXT", inside.encode()
        )
    )


BOMBS: dict[str, tuple[Callable[[], Answer], str]] = {
    "gzip": (lambda: coded("gzip", gzip.compress(b"")[:10] + deflated_zeros(1024)), "too-large"),
    "deflate": (lambda: coded("deflate", b"\x78\x9c" + deflated_zeros(1024)), "too-large"),
    "br": (lambda: coded("br", brotli.compress(bytes(256 * MEBIBYTE), quality=1)), "too-large"),
    "zstd": (lambda: coded("zstd", zstd.compress(bytes(256 * MEBIBYTE))), "too-large"),
    "laughs": (
        lambda: doctype(
            '<!ENTITY a "ha">'
            + "".join(
                f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
            ),
            "&j;",
        ),
        "dtd-forbidden",
    ),
    "quadratic": (lambda: doctype(f'<!ENTITY q "{"q" * 100_000}">', "&q;" * 100_000), "dtd-forbidden"),
    "depth": (lambda: element(inside="<a>" * 1_000_000 + "</a>" * 1_000_000), "xml-limit"),
    "attributes": (lambda: element(many(' a{}=""', 300_000)), "xml-limit"),
    "declarations": (lambda: element(many(' xmlns:p{}="u:{}"', 100_000)), "xml-limit"),
    "namespace": (lambda: element(f' xmlns:p="u:{"x" * 100_000}"', many("<p:e{}/>", 20_000)), "xml-limit"),
    "elements": (lambda: packed(b'<rss version="2.0"><channel>' + b"<a/>" * 5_000_000), "xml-limit"),
    "elements of an odd root": (lambda: packed(b"<RSS><items>" + b"<a/>" * 5_000_000), "xml-limit"),
    "depth of an odd root": (lambda: packed(b"<RSS><items>" + b"<a>" * 1_000_000), "xml-limit"),
    "elements of an entry": (lambda: element(inside="<a/>" * 2_100_000), "xml-limit"),
    "attribute": (lambda: element(f' a="{"x" * LARGE}"'), "xml-limit"),
    "name": (lambda: element(inside=f"<{'x' * LARGE}/>"), "xml-limit"),
    "attribute of 50 MB": (lambda: element(f' a="{"x" * 50_000_000}"'), "too-large"),
    "comment of 50 MB": (lambda: element(inside=f"<!--{'x' * 50_000_000}-->"), "too-large"),
}


PEAK_BYTES = 300 * MEBIBYTE
"""A decoded and read body, and memory retained by the allocator, take less."""
SOON_SECONDS = 20.0
"""Far above the time on a busy machine, far below the unguarded time."""


@pytest.mark.fault("36", "40", "43", "44")
async def test_what_is_meant_to_fill_memory_does_not(server: Server, origin: Origin) -> None:
    """One after the other, each refused for its own fault; decoded and expanded they come to gigabytes."""
    origin.publish("/sound", atom(an_item("a"), complete=True))
    assert (await asked(server, origin.url("/sound")))[0] == 200
    baseline = server.peak_bytes()
    for number, (name, (make, slug)) in enumerate(BOMBS.items()):
        path = f"/bomb/{number}"
        origin.answer(path, make())
        started = time.monotonic()
        status, body = await asked(server, origin.url(path))
        expected = (502 if slug == "too-large" else 422, f"urn:wholefeed:{slug}")
        assert (status, json.loads(body)["type"]) == expected, name
        assert time.monotonic() - started < SOON_SECONDS, name
        assert server.peak_bytes() - baseline < PEAK_BYTES, name
    assert (await asked(server, origin.url("/sound")))[0] == 200


@pytest.mark.fault("44", "62")
async def test_row_62_an_entry_of_30_megabytes(server: Server, origin: Origin) -> None:
    """Rows 44, 62: served whole, byte for byte: no limit of names or values counts its text."""
    content = atom(an_item("a", 1, "x" * LARGE), complete=True)
    origin.answer("/feed", packed(content))
    status, reply = await asked(server, origin.url("/feed"))
    assert status == 200
    assert content[content.index(b"<content>") : content.index(b"</entry>")] in reply


@pytest.mark.fault("62")
async def test_row_62_a_hundred_thousand_entries(tmp_path: Path, origin: Origin) -> None:
    """Five times as many documents take hardly more memory; the largest document counts, not the feed."""
    peaks: list[int] = []
    expected: list[str] = []
    with running_server(tmp_path, limits_respond_within_seconds=50) as server:
        for archives, name in ((4, "/feed?few"), (24, "/feed?many")):
            expected = publish_chain(origin, archives=archives, entries=4000)
            reply = await asyncio.to_thread(server.whole, origin.url(name))
            assert (reply.state, reply.entries) == ("complete", len(expected))
            peaks.append(server.peak_bytes())
    assert len(expected) == 100_000
    assert peaks[1] - peaks[0] < 96 * MEBIBYTE


class Metered:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.sent_bytes = 0

    async def send(self, request: Request, wire: Wire) -> None:
        body, chunked = self.document.body, self.document.chunked
        length = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))
        await wire.send_head(200, [length, *self.document.headers])
        for start in range(0, len(body), 1 << 16):
            piece = body[start : start + (1 << 16)]
            await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.sent_bytes += len(piece)
        if chunked:
            await wire.send(b"0\r\n\r\n")


@pytest.mark.fault("121")
@pytest.mark.parametrize("has_length", [True, False], ids=["with a length", "without"])
@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_row_121_large_archives_are_asked_for_once(
    server: Server, origin: Origin, coding: str, has_length: bool
) -> None:
    """Look-ahead reserves memory before a request, by the size of the documents before: no body is fetched
    twice."""
    origin.publish("/feed", atom(an_item("e9", 9), prev_archive=f"/{coding}/6"))
    archives = {
        f"/{coding}/{number}": Metered(replace(large_archive(number, coding), chunked=not has_length))
        for number in range(6, 0, -1)
    }
    for path, answer in archives.items():
        origin.answer(path, answer)
    reply = await asyncio.to_thread(server.whole, origin.url(f"/feed?{coding}"))
    assert (reply.state, reply.entries) == ("complete", 7)
    asked_for = [request.target for request in origin.requests]
    assert sorted(set(asked_for) & archives.keys()) == sorted(archives)
    assert [path for path in set(asked_for) if asked_for.count(path) > 1] == []
    assert all(each.sent_bytes == len(each.document.body) for each in archives.values())


def large_archive(number: int, coding: str) -> Document:
    """15 MB; less than half of that when coded."""
    older = f"/{coding}/{number - 1}" if number > 1 else None
    body = atom(an_item(f"e{number}", number, large_text(number, 15)), archive=True, prev_archive=older)
    return coded(coding, gzip.compress(body, 1) if coding == "gzip" else body)


def large_text(number: int, mebibytes: int) -> str:
    """Gzip shrinks it to a third or a quarter."""
    chance = random.Random(number)
    words = [f"{chance.getrandbits(28):x}" for _ in range(1 << 12)]
    text = " ".join(chance.choices(words, k=MEBIBYTE // 4))[:MEBIBYTE]
    return text * mebibytes


@pytest.mark.fault("122")
async def test_row_122_large_documents_do_not_end_a_server_with_little_memory(
    tmp_path: Path, origin: Origin
) -> None:
    """160 MB and six feeds of 27 MB at once: too little for one, and the answers say so.

    The kernel ends nobody, and others are answered.
    """
    publish_six_large_feeds(origin)
    origin.publish("/sound", atom(an_item("a"), complete=True))
    with (
        memory_group(160 * MEBIBYTE) as group,
        running_server(tmp_path, before=group.join, limits_respond_within_seconds=12) as server,
    ):
        asking = [asyncio.create_task(asked(server, origin.url(f"/{number}"))) for number in range(6)]
        assert (await in_the_end(server, origin.url("/sound")))[0] == 200
        replies = await asyncio.gather(*asking)
        slugs = {json.loads(body)["type"].rpartition(":")[2] for _, body in replies}
        assert "memory-short" in slugs <= {"memory-short", "overloaded", "timeout"}
        assert (await asked(server, origin.url("/sound")))[0] == 200
        assert group.killed() == 0


@pytest.mark.fault("122")
async def test_row_122_large_documents_are_read_one_by_one_in_a_small_container(
    tmp_path: Path, origin: Origin
) -> None:
    """256 MB are enough for the same: each comes whole."""
    publish_six_large_feeds(origin)
    with (
        memory_group(256 * MEBIBYTE) as group,
        running_server(
            tmp_path, before=group.join, limits_respond_within_seconds=50, history_list="off"
        ) as server,
    ):
        replies = await asyncio.gather(*(in_the_end(server, origin.url(f"/{number}")) for number in range(6)))
        assert [(status, body.count(b"<entry")) for status, body in replies] == [(200, 3000)] * 6
        assert group.killed() == 0


def publish_six_large_feeds(origin: Origin) -> None:
    text = large_text(1, 1)[: 27 * MEBIBYTE // 3000]
    body = atom(*(an_item(f"e{number}", number, text) for number in range(3000)))
    for number in range(6):
        origin.answer(f"/{number}", coded("gzip", gzip.compress(body, 1)))


async def in_the_end(server: Server, url: str) -> tuple[int, bytes]:
    until = time.monotonic() + 40
    status, body = await asked(server, url)
    while status == 503 and time.monotonic() < until:
        await asyncio.sleep(0.5)
        status, body = await asked(server, url)
    return status, body


@pytest.mark.fault("122")
async def test_row_122_a_document_that_there_is_no_memory_for_is_missing(
    tmp_path: Path, origin: Origin
) -> None:
    """128 MB and an archive of 27 MB: the feed is partial, with the reason, and the server lives."""
    origin.publish("/feed", atom(an_item("new", 9), prev_archive="/archive"))
    archive = atom(an_item("old", 1, large_text(1, 27)), archive=True)
    origin.answer("/archive", coded("gzip", gzip.compress(archive, 1)))
    with (
        memory_group(128 * MEBIBYTE) as group,
        running_server(tmp_path, before=group.join) as server,
    ):
        reply = await asyncio.to_thread(server.whole, origin.url("/feed"))
        assert (reply.state, own_ids(reply.body)) == ("partial", ["new"])
        status = await asked(server, origin.url("/feed"), route="/status")
        assert [each["reason"] for each in json.loads(status[1])["missing"]] == ["memory-short"]
        assert group.killed() == 0


@pytest.mark.parametrize(
    "body", ["<html>", "<other>", "<!DOCTYPE feed [<!ENTITY a 'b'>]><feed>", '{"a":[1,],']
)
@pytest.mark.sample("<other>")
async def test_nothing_is_kept_of_a_document_that_is_refused(proxy: Proxy, origin: Origin, body: str) -> None:
    """The waiters of a flight and its error form a cycle; the body does not hang on it."""
    origin.publish("/feed", body + "x" * MEBIBYTE)
    origin.publish("/chain", atom(an_item("a"), prev_archive="/feed"))
    await proxy.status(origin.url("/feed"))
    for url, status in ((origin.url("/feed"), 422), (origin.url("/chain"), 200)):
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            assert (await proxy.get(url)).status == status
            async with asyncio.timeout(300):  # a thread that has parsed may not have let go yet
                while tracemalloc.get_traced_memory()[0] > MEBIBYTE // 2:
                    await asyncio.sleep(0.01)
        finally:
            tracemalloc.stop()
            gc.enable()
