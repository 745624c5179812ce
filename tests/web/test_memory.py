"""Answers from memory: their cost, and their equality with the store's answers."""

from __future__ import annotations

import asyncio
import gc
import gzip
import hashlib
import tempfile
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.feeds import an_item, atom, ids, publish_chain
from tests.origin import Origin
from tests.running import Proxy, Reply, StartProxy, a_config, running
from wholefeed.core.text.urls import canonical_url
from wholefeed.errors import StorageFullError
from wholefeed.service.results import Reconstruction
from wholefeed.store.tables import feed_table
from wholefeed.web.answer import Answer, Representation, prepare
from wholefeed.web.keys import STORE
from wholefeed.web.request import own_url

HOUR = 3600.0
CODINGS = ("gzip", "identity")


def count_store_calls(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note each call of a thread, for the store or not."""
    calls: list[str] = []

    def counting(owner: Any, name: str) -> None:
        way: Callable[..., Any] = getattr(owner, name)

        def called(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return way(*args, **options)

        monkeypatch.setattr(owner, name, called)

    for name in ("read", "write", "pieces", "snapshot"):
        counting(proxy.app[STORE], name)
    counting(asyncio.get_running_loop(), "run_in_executor")
    return calls


async def asked_at(proxy: Proxy, url: str) -> float:
    """Return the instant of the last request for a feed, from the store."""
    feed = await proxy.store.feed_by_url(url)
    assert feed is not None
    return feed.asked_at


async def ask_for_all(proxy: Proxy, url: str, **view: str) -> list[int]:
    """Ask by GET and HEAD in both codings, and for a 304 of each."""
    found = []
    for coding in CODINGS:
        query, headers = {"url": url, **view}, {"Accept-Encoding": coding}
        reply = await proxy.ask("GET", "/feed", params=query, headers=headers)
        validated = {**headers, "If-None-Match": reply.headers["ETag"]}
        again = await proxy.ask("GET", "/feed", params=query, headers=validated)
        head = await proxy.ask("HEAD", "/feed", params=query, headers=headers)
        assert again.reconstruction == head.reconstruction == reply.reconstruction
        found += [reply.status, again.status, head.status]
    return found


@pytest.mark.parametrize("memory_bytes", [1 << 26, 0])
async def test_a_fresh_answer_touches_neither_database_nor_thread(
    start: StartProxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, memory_bytes: int
) -> None:
    """A feed in memory is answered without the store."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    proxy = await start(store={"memory_bytes": memory_bytes})
    await proxy.whole(url)
    await proxy.settled()
    await ask_for_all(proxy, url)
    calls = count_store_calls(proxy, monkeypatch)
    assert await ask_for_all(proxy, url) == [200, 304, 200] * 2
    assert (calls == []) is (memory_bytes > 0)
    assert (proxy.service.load.memory.hits > 0) is (memory_bytes > 0)


@pytest.mark.parametrize(("answer_bytes", "is_short_enough"), [("5000000", True), ("2000", False)])
async def test_an_answer_below_a_reader_s_cap_is_as_cheap_as_one_without(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, answer_bytes: str, is_short_enough: bool
) -> None:
    """Readers with a cap poll as often; only a cut asks the store."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    await proxy.whole(url)
    await proxy.settled()
    assert ("cut" in (await proxy.get(url, answer_bytes=answer_bytes)).reconstruction) is not is_short_enough
    calls = count_store_calls(proxy, monkeypatch)
    assert await ask_for_all(proxy, url, answer_bytes=answer_bytes) == [200, 304, 200] * 2
    assert (calls == []) is is_short_enough


@pytest.mark.parametrize("entry_bytes", [200_000, 800_000])
async def test_a_long_answer_takes_from_memory_the_blocks_that_are_small(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch, entry_bytes: int
) -> None:
    """The store is asked only if a block is missing."""
    for n in range(4):
        text = noise(n, entry_bytes)
        older = f"/{n + 1}" if n < 3 else None
        document = atom(an_item(f"e{n}", 9 - n, text), archive=n > 0, prev_archive=older)
        origin.publish(f"/{n}", document)
    url = origin.url("/0")
    first = await proxy.whole(url)
    await proxy.settled()
    for coding in CODINGS:
        await proxy.get(url, headers={"Accept-Encoding": coding})
    calls = count_store_calls(proxy, monkeypatch)
    assert (await proxy.get(url)).body == first.body
    assert (calls.count("snapshot"), calls.count("pieces")) == ((0, 0) if entry_bytes < 400_000 else (1, 4))


async def test_when_feeds_were_asked_for_is_written_together(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request waits for this write; shutdown writes the rest."""
    urls = [origin.url(f"/{n}") for n in range(3)]
    for n, url in enumerate(urls):
        origin.publish(
            f"/{n}", atom(an_item("a", 1), complete=True), headers=[("Cache-Control", "max-age=80000")]
        )
        await proxy.whole(url)
    await proxy.settled()
    proxy.clock.advance(2 * HOUR)
    calls = count_store_calls(proxy, monkeypatch)
    for url in urls * 2:
        assert (await proxy.get(url)).status == 200
    assert "write" not in calls
    before = [await asked_at(proxy, url) for url in urls]
    await proxy.service.close()
    after = [await asked_at(proxy, url) for url in urls]
    assert [at - was for at, was in zip(after, before, strict=True)] == pytest.approx([2 * HOUR] * 3, abs=30)
    assert calls.count("write") == 1


def noise(seed: int, length: int) -> str:
    """Return text that compresses to about half."""
    return "".join(hashlib.sha256(f"{seed}.{n}".encode()).hexdigest() for n in range(length // 64))


async def test_what_a_request_wants_is_read_anew_where_anything_of_it_differs(
    proxy: Proxy, origin: Origin
) -> None:
    """Equal requests are parsed once; another host name, coding or option is parsed anew."""
    origin.publish("/feed", atom(an_item("a"), an_item("b")))
    await proxy.whole(origin.url("/feed"))
    port = proxy.client.port
    for host in (f"one.localhost:{port}", f"two.localhost:{port}"):
        for coding in CODINGS:
            for limit, shown in (("1", 1), ("2", 2)):
                for _ in range(2):
                    reply = await proxy.ask(
                        "GET",
                        "/feed",
                        params={"url": origin.url("/feed"), "limit": limit},
                        headers={"Host": host, "Accept-Encoding": coding},
                    )
                    body = gzip.decompress(reply.body) if coding == "gzip" else reply.body
                    assert f"http://{host}/feed?url=" in body.decode()
                    assert len(ids(body)) == shown
                    assert reply.headers.get("Content-Encoding", "identity") == coding


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("Host: localhost\r\nAccept-Encoding: gzip, {}", b"Content-Encoding: gzip"),
        ("Host: {}", b"421 Misdirected"),
    ],
)
async def test_nothing_is_kept_by_long_fields(
    proxy: Proxy, origin: Origin, fields: str, expected: bytes
) -> None:
    """Anybody may send fields of 8 KB, each time different."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    await proxy.whole(url)
    tracemalloc.start()
    try:
        for number in range(200):
            sent = fields.format(f"{number}{'x' * 7000}")
            request = f"GET /feed?url={url} HTTP/1.0\r\n{sent}\r\n\r\n"
            assert expected in await proxy.raw(request.encode())
        gc.collect()
        held_bytes = tracemalloc.get_traced_memory()[0]  # 2 KB of each connection, too, until they are reaped
        assert held_bytes < 1_250_000, "of 64 codings it is known for a while what they mean"
    finally:
        tracemalloc.stop()


async def test_what_is_made_for_a_host_name_is_counted_with_its_urls(proxy: Proxy, origin: Origin) -> None:
    """Each host name has an answer of its own."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    await proxy.whole(url)
    sizes, lengths = list[int](), (10, 210)
    for length in lengths:
        before = proxy.service.load.memory.bytes
        reply = await proxy.get(url, headers={"Host": "x" * length})
        assert reply.status == 200
        sizes.append(proxy.service.load.memory.bytes - before)
    assert sizes[1] - sizes[0] >= 4 * (lengths[1] - lengths[0]), "and stands in the document"


@dataclass
class Story:
    """A proxy with memory, changing publishers, and the steps in between."""

    proxy: Proxy
    origin: Origin
    entries: dict[int, int] = field(default_factory=dict)
    asked: set[asyncio.Task[Any]] = field(default_factory=set)
    failing_writes: int = 0
    compared: int = 0

    def publish(self, feed: int) -> None:
        count = self.entries[feed] = self.entries.get(feed, 0) + 1
        items = [an_item(f"{feed}.{n}", n) for n in reversed(range(count))]
        if count > 2:
            self.origin.publish(f"/{feed}/1", atom(*items[2:], feed_id=f"urn:{feed}", archive=True))
        older = f"/{feed}/1" if count > 2 else None
        self.origin.publish(f"/{feed}", atom(*items[:2], feed_id=f"urn:{feed}", prev_archive=older))
        self.origin.redirect(f"/to/{feed}", f"/{feed}", status=302)

    def url(self, feed: int, *, is_alias: bool = False) -> str:
        return self.origin.url(f"/to/{feed}" if is_alias else f"/{feed}")

    def begin(self, work: Any) -> None:
        self.asked.add(asyncio.create_task(work))

    async def end(self) -> None:
        """Wait until nothing is under way."""
        if self.asked:
            await asyncio.wait(self.asked)
        for task in self.asked:
            task.result()
        self.asked.clear()
        await self.proxy.settled()

    def fail_writes(self) -> None:
        """Let the store refuse some writes from now on."""
        store = self.proxy.app[STORE]
        write = store.write

        async def failing(work: Any, **options: Any) -> Any:
            if self.failing_writes:
                self.failing_writes -= 1
                raise StorageFullError("no room")
            return await write(work, **options)

        store.write = failing  # type: ignore[method-assign]

    async def play(self, step: tuple[Any, ...]) -> None:
        match step:
            case "publish", feed:
                self.publish(feed)
            case "ask", feed, coding, is_alias:
                url = self.url(feed, is_alias=is_alias)
                self.begin(self.proxy.get(url, headers={"Accept-Encoding": coding}))
            case "compare", feed, coding, is_alias:
                await self.compare(feed, coding, is_alias=is_alias)
            case "refresh", feed:
                self.begin(self.proxy.ask("POST", "/refresh", params={"url": self.url(feed)}))
            case "forget", feed:
                self.begin(self.proxy.ask("DELETE", "/feed", params={"url": self.url(feed)}))
            case "advance", seconds:
                self.proxy.clock.advance(seconds)
            case "fail", number:
                self.failing_writes = number
            case "pause", seconds:
                await asyncio.sleep(seconds)

    async def from_store(self, url: str, *, is_gzip: bool) -> tuple[Answer, bytes] | None:
        """Return the answer made from the database alone."""
        store = self.proxy.app[STORE]
        row = await store.read(lambda db: feed_table.find_by_url(db, canonical_url(url)))
        if row is None or not row.digest:
            return None
        own = own_url(f"http://{self.proxy.client.host}:{self.proxy.client.port}", canonical_url(url))
        wanted = Representation(self_url=own, whole_url=own, is_gzip=is_gzip, warns=True)
        async with store.snapshot(row.id) as snapshot:
            reconstruction = Reconstruction(snapshot, snapshot.feed.is_stale)
            answer = prepare(reconstruction, wanted)
            body = b"".join([piece async for piece in answer.body.pieces(store)])
            return answer, body

    async def compare(self, feed: int, coding: str, *, is_alias: bool) -> None:
        """GET again when all is quiet, and compare with the store's answer byte for byte."""
        url = self.url(feed, is_alias=is_alias)
        await self.end()
        await self.proxy.get(url, headers={"Accept-Encoding": coding})
        await self.proxy.settled()
        expected = await self.from_store(url, is_gzip=coding == "gzip")
        reply = await self.proxy.get(url, headers={"Accept-Encoding": coding})
        if expected is None or self.proxy.service.is_busy:
            return
        self.compared += 1
        answer, body = expected
        assert reply.status == 200
        self.require(reply, answer, answer.body_fields)
        assert reply.body == body
        again = await self.proxy.get(
            url, headers={"Accept-Encoding": coding, "If-None-Match": reply.headers["ETag"]}
        )
        assert again.status == 304
        self.require(again, answer, answer.fields)

    def require(self, reply: Reply, answer: Answer, fields: Mapping[str, str]) -> None:
        """Compare fields; a Last-Modified in the future is left out."""
        expected = dict(fields)
        if answer.modification_instant(self.proxy.clock() - 2) is None:
            expected.pop("Last-Modified", None)
        assert {name: reply.headers[name] for name in expected} == expected


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 2)),
    st.tuples(st.just("ask"), st.integers(0, 2), st.sampled_from(CODINGS), st.booleans()),
    st.tuples(st.just("compare"), st.integers(0, 2), st.sampled_from(CODINGS), st.booleans()),
    st.tuples(st.just("refresh"), st.integers(0, 2)),
    st.tuples(st.just("forget"), st.integers(0, 2)),
    st.tuples(st.just("advance"), st.sampled_from([1.0, 1000.0, 100_000.0])),
    st.tuples(st.just("fail"), st.integers(1, 3)),
    st.tuples(st.just("pause"), st.sampled_from([0.0, 0.001, 0.01])),
)


@settings(max_examples=settings().max_examples // 2)
@given(steps=st.lists(STEPS, min_size=6, max_size=25))
def test_an_answer_from_memory_is_the_one_that_the_store_would_give(steps: list[Any]) -> None:
    """Publications, refreshes, forgotten feeds and failed writes go on meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(played(Path(folder), steps))


async def played(folder: Path, steps: list[Any]) -> None:
    async with Origin() as origin, running(a_config(folder)) as proxy:
        story = Story(proxy, origin)
        story.fail_writes()
        for feed in range(3):
            story.publish(feed)
        for step in steps:
            await story.play(step)
        story.failing_writes = 0
        for feed in range(3):
            for coding in CODINGS:
                await story.compare(feed, coding, is_alias=coding == "gzip")
        assert story.compared
