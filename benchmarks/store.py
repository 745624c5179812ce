"""Cost of the store: `python -m benchmarks.store [DOCUMENTS] [ENTRIES]`.

Stores a feed of DOCUMENTS archive documents with ENTRIES entries each (1,000 and 100), publishes it, changes
one entry as a refresh does, and reads everything back. Entries are not parsed: only the store and the choice
of live copies count.
"""

from __future__ import annotations

import asyncio
import hashlib
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.deflate import atom_text
from wholefeed.core.compose.segments import Build, Keep, plan, seal
from wholefeed.core.model import Family, Kind, Role, State, entry_id
from wholefeed.store.engine_choice import open_file
from wholefeed.store.rows import NewDocument, NewEntry, NewSegment, Publication
from wholefeed.store.sqlite_file import migrate_file
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table as documents_table
from wholefeed.store.tables import feed_table
from wholefeed.store.tables import segment_table as segments_table

NOW = 1_700_000_000.0
URL = "http://o.test/feed"
ENTRY_BYTES = 900


def a_document(url: str, names: list[str], text: bytes, *, rank: int, **changes: float) -> NewDocument:
    """An archive document, or the subscription document at rank -1."""
    updated_at = changes.get("updated_at", 1000.0)
    return NewDocument(
        url=url,
        final_url=url,
        role=Role.ARCHIVE if rank >= 0 else Role.SUBSCRIPTION,
        rank=rank,
        family=Family.ATOM,
        body=text[: len(names) * ENTRY_BYTES],
        digest=hashlib.sha256(url.encode()).digest(),
        media_type="application/atom+xml",
        fetched_at=NOW,
        updated_at=updated_at,
        parser_version=1,
        entries=[NewEntry(entry_id(name), updated_at, updated_at, ENTRY_BYTES) for name in names],
        links={"prev-archive": url},
        is_settled=rank > 0,
    )


async def publish(store: Store, feed: int, text: bytes) -> int:
    """Plan, seal and publish; return the number of built segments."""
    revision, placed = await store.read(
        lambda db: (feed_table.require(db, feed).revision, segments_table.places(db, feed))
    )
    sizes = {one.document: one.live_bytes for one in placed}
    segments: list[int | NewSegment] = []
    for step in plan(placed):
        match step:
            case Keep(segment):
                segments.append(segment)
            case Build(documents):
                part = text[: sum(sizes[number] for number in documents)]
                sealed = await asyncio.to_thread(seal, part)
                segments.append(
                    NewSegment(
                        documents=documents,
                        sealed=sealed,
                        prefixes=0,
                        newest_at=None,
                        oldest_at=None,
                        entries=1,
                        parser_version=1,
                    )
                )
    publication = Publication(
        segments=segments,
        family=Family.ATOM,
        via_url=URL,
        state=State.COMPLETE,
        title="A feed",
        site="https://example.org/",
        head=b"<feed>",
        head_prefixes=0,
        context=None,
        digest=hashlib.sha256(str(revision).encode()).digest(),
        documents=len(placed),
        entries=0,
        text_bytes=sum(sizes.values()),
        notes="[]",
        parser_version=1,
    )
    published = partial(
        segments_table.publish,
        feed=feed,
        publication=publication,
        revision=revision,
        pins=store.pins,
        now=NOW,
    )
    assert await store.write(published, feed=feed)
    return sum(not isinstance(segment, int) for segment in segments)


async def put(store: Store, feed: int, document: NewDocument) -> None:
    await store.write(partial(documents_table.put, feed=feed, documents=[document], now=NOW), feed=feed)


async def reorder(store: Store, feed: int, ranks: Mapping[int, int]) -> None:
    await store.write(
        partial(documents_table.arrange, feed=feed, ranks=ranks, detached=(), now=NOW), feed=feed
    )


async def timed(name: str, work: Callable[[], Awaitable[object]], *, rounds: int = 1) -> None:
    """Print the median duration; return the last result."""
    times = []
    result: object = None
    for _ in range(rounds):
        begun = time.perf_counter()
        result = await work()
        times.append(time.perf_counter() - begun)
    shown = f"  -> {result}" if isinstance(result, int) else ""
    print(f"{name:58} {statistics.median(times) * 1000:9.2f} ms{shown}")


async def measure(store: Store, documents: int, entries: int) -> None:
    text = atom_text(max(2 << 20, 1001 * ENTRY_BYTES))
    created = partial(
        feed_table.create, url=URL, fetch_url=URL, family=Family.ATOM, kind=Kind.ARCHIVED, now=NOW
    )
    feed = (await store.write(created)).id
    times = []
    for number in range(documents):
        names = [f"{number}-{at}" for at in range(entries)]
        document = a_document(f"{URL}/{number}", names, text, rank=number)
        begun = time.perf_counter()
        await put(store, feed, document)
        times.append(time.perf_counter() - begun)
    print(f"{documents} documents, {documents * entries} entries")
    for name, some in (("first", times[:100]), ("last", times[-100:])):
        what = f"put a document of {entries} entries, the {name} 100"
        print(f"{what:58} {statistics.median(some) * 1000:9.2f} ms")
    await timed("publish all -> segments built", lambda: publish(store, feed, text))

    fresh = iter(range(10**9))

    async def put_large(url: str) -> None:
        names = [f"large-{next(fresh)}" for _ in range(1000)]
        await put(store, feed, a_document(url, names, text, rank=10**6))

    await timed(
        "put a new document of 1000 entries", lambda: put_large(f"{URL}/large-{next(fresh)}"), rounds=9
    )
    await timed("put a document of 1000 entries in place of another", lambda: put_large(URL + "/0"), rounds=9)

    async def refresh() -> int:
        number = next(fresh)
        names = [f"{documents // 2}-{number % entries}", *(f"head-{at}" for at in range(10))]
        await put(store, feed, a_document(URL, names, text, rank=-1, updated_at=2000.0 + number))
        return await publish(store, feed, text)

    await refresh()
    await timed("refresh that supersedes one entry -> segments built", refresh, rounds=9)
    await timed("documents()", lambda: store.read(partial(documents_table.list_all, feed=feed)), rounds=5)
    await timed("places()", lambda: store.read(partial(segments_table.places, feed=feed)), rounds=5)
    ids = [row.id for row in await store.read(partial(documents_table.list_all, feed=feed))]
    await timed(
        "live_ordinals() of one document",
        lambda: store.read(partial(documents_table.live_ordinals, documents=ids[5:6])),
        rounds=9,
    )
    await timed(
        "body() of one document",
        lambda: store.read(partial(documents_table.read_body, document=ids[5])),
        rounds=9,
    )

    async def read_all() -> int:
        async with store.snapshot(feed) as snapshot:
            pieces = [len(piece) for each in snapshot.segments async for piece in store.pieces(each)]
            return sum(pieces)

    await timed("snapshot and all blocks -> bytes", read_all, rounds=5)

    order = {number: rank for rank, number in enumerate(ids[1:])}
    await timed("shift all ranks by one", lambda: reorder(store, feed, order))
    turned = dict(zip(order, reversed(order.values()), strict=True))
    await timed("turn the whole order around", lambda: reorder(store, feed, turned))
    await timed("forget the feed", lambda: store.forget(feed, now=NOW))


async def main(documents: int, entries: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        await migrate_file(path)
        async with open_file(path) as store:
            await measure(store, documents, entries)


if __name__ == "__main__":
    sizes = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*sizes) if sizes else main(1000, 100))
