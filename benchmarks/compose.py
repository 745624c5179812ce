"""Cost of one new entry in a large feed: `python -m benchmarks.compose`.

1,000 archive documents and a subscription document have 100 entries each, about 1 KB an entry. They are
generated before the measurement, and no network is used. "From nothing" parses, renders and stores every
document, with the transactions and look-ahead of a walk. It assembles as often as a refresh would, and
publishes. "One entry added" parses and stores the new subscription document, with a memory of the entry that
fell out, then assembles; the median of several runs counts. The target is 5 % of composing from nothing.

The last two rows measure the same through the service, with a publisher that answers at once from memory.
They include the walk, its decisions and intermediate publications.

In the end the feed is inflated as sent, and its entries are counted.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from benchmarks.support.feeds import Chain
from benchmarks.support.in_memory import BASE, URL, InMemoryFetcher, obtain, source_of
from benchmarks.support.report import Table, begin, expect, seconds
from wholefeed.config.tables import Config
from wholefeed.core.compose.segments import inflate
from wholefeed.core.jobs import Style
from wholefeed.core.model import Kind, Role, State
from wholefeed.core.refresh.arrivals import Placement
from wholefeed.core.refresh.basis import RefreshRequest
from wholefeed.fetch.base import site_of
from wholefeed.service.context import RefreshContext, WalkTurns
from wholefeed.service.memory import Memory
from wholefeed.service.new_documents import DepartingEntries, documents_to_remember, new_document
from wholefeed.service.pending import MOST_TOGETHER
from wholefeed.service.publishing import assemble
from wholefeed.service.refresh import Refresh
from wholefeed.service.service import FeedService
from wholefeed.service.sources import Obtained, Source
from wholefeed.service.storing import FeedStorage
from wholefeed.store.engine_choice import open_file
from wholefeed.store.rows import FeedRow, NewDocument
from wholefeed.store.sqlite_file import migrate_file
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table as documents_table
from wholefeed.store.tables import feed_table

TARGET: Final = 0.05
_WAIT_SECONDS: Final = 600.0
_AHEAD: Final = 5
"""Documents that a walk reads ahead of storing, with a publisher that answers at once."""


@dataclass(slots=True)
class Cost:
    put: float
    assemble: float

    @property
    def both(self) -> float:
        return self.put + self.assemble


async def from_nothing(store: Store, source: Source, chain: Chain) -> tuple[FeedRow, Cost]:
    """Store every document and assemble, in the batches of a walk."""
    urls = [URL, *(f"{BASE}/archive/{number}" for number in range(chain.archives, 0, -1))]
    began = time.perf_counter()
    storage: FeedStorage | None = None
    style: Style | None = None
    gathered: list[NewDocument] = []
    growing: asyncio.Task[None] | None = None
    assemble_seconds = 0.0
    left, ahead = deque(urls), deque[asyncio.Task[Obtained]]()
    for place, url in enumerate(urls):
        obtained = await (ahead.popleft() if ahead else obtain(source, left.popleft(), style))
        if storage is None:
            feed = await store.write(
                partial(
                    feed_table.create,
                    url=URL,
                    fetch_url=URL,
                    family=obtained.read.facts.family,
                    kind=Kind.ARCHIVED,
                    now=time.time(),
                )
            )
            storage = FeedStorage(store, source.work, feed.id, now=time.time, memory=Memory(0))
            style = obtained.style
            growing = asyncio.create_task(storage.fresh.wait_for_more(_WAIT_SECONDS))
        while left and len(ahead) < _AHEAD:
            ahead.append(asyncio.create_task(obtain(source, left.popleft(), style)))
        role = Role.ARCHIVE if place else Role.SUBSCRIPTION
        document = new_document(obtained, Placement(url=url, role=role, rank=place, is_settled=place > 1))
        gathered.append(document)
        if place % MOST_TOGETHER and place < chain.archives:
            continue
        await put(store, storage, gathered)
        gathered = []
        if growing is not None and growing.done():
            assemble_seconds += (await assembled(storage))[1]
            growing = asyncio.create_task(storage.fresh.wait_for_more(_WAIT_SECONDS))
    assert storage is not None
    assert growing is not None
    growing.cancel()
    put_seconds = time.perf_counter() - began - assemble_seconds
    published, last_seconds = await assembled(storage)
    return published, Cost(put_seconds, assemble_seconds + last_seconds)


async def one_added(store: Store, source: Source, feed: FeedRow) -> tuple[FeedRow, Cost]:
    began = time.perf_counter()
    obtained = await obtain(source, URL)
    rows = await store.read(partial(documents_table.list_all, feed=feed.id))
    documents = [new_document(obtained, Placement(url=URL, role=Role.SUBSCRIPTION, rank=0))]
    leaving = DepartingEntries(rows, rows[0], obtained, time.time())
    documents += await documents_to_remember(store, source.work, leaving)
    storage = FeedStorage(store, source.work, feed.id, now=time.time, memory=Memory(0))
    await put(store, storage, documents)
    put_seconds = time.perf_counter() - began
    published, assemble_seconds = await assembled(storage)
    return published, Cost(put_seconds, assemble_seconds)


async def put(store: Store, storage: FeedStorage, new: Sequence[NewDocument]) -> None:
    feed = storage.feed_id
    numbers = await store.write(
        partial(documents_table.put, feed=feed, documents=new, now=time.time()), feed=feed
    )
    for number, each in zip(numbers, new, strict=True):
        assert each.in_memory is not None, "it was made just now"
        storage.fresh.keep(number, each.in_memory)


async def assembled(storage: FeedStorage) -> tuple[FeedRow, float]:
    began = time.perf_counter()
    published = await assemble(storage, state=State.COMPLETE, notes=[])
    took = time.perf_counter() - began
    assert published is not None
    return published, took


async def sent_entries(store: Store, feed: FeedRow) -> int:
    count = 0
    async with store.snapshot(feed.id) as snapshot:
        for segment in snapshot.segments:
            block = b"".join([piece async for piece in store.pieces(segment)])
            text = inflate(block, segment.length, segment.crc32)
            count += text.count(b"<entry ") + text.count(b"<entry>")
    return count


def as_shown(times: list[float]) -> str:
    return f"{statistics.median(times) * 1000:.1f}"


async def measure_composing(path: Path, chain: Chain, runs: int, table: Table) -> None:
    fetcher = InMemoryFetcher(chain)
    source = source_of(fetcher)
    await migrate_file(path)
    async with open_file(path) as store:
        feed, whole = await from_nothing(store, source, chain)
        expect("entries", feed.entries, chain.total_entries)
        table.row("from nothing", as_shown([whole.put]), as_shown([whole.assemble]), as_shown([whole.both]))
        costs: list[Cost] = []
        for _ in range(runs):
            fetcher.add_entry()
            feed, cost = await one_added(store, source, feed)
            costs.append(cost)
        expect("entries", feed.entries, chain.total_entries + runs)
        expect("entries sent", await sent_entries(store, feed), feed.entries)
    both = [cost.both for cost in costs]
    assembling = [cost.assemble for cost in costs]
    table.row(
        f"one entry added, {runs} times",
        as_shown([cost.put for cost in costs]),
        as_shown(assembling),
        as_shown(both),
        f"{statistics.median(both) / whole.both:.2%}",
        seconds(both),
    )
    print(f"  of assembling alone: {statistics.median(assembling) / whole.assemble:.2%}")


async def measure_service(path: Path, chain: Chain, runs: int, table: Table) -> None:
    await migrate_file(path)
    async with open_file(path) as store:
        fetcher = InMemoryFetcher(chain)
        context = RefreshContext(
            store=store,
            source=source_of(fetcher),
            config=Config(),
            site_of=site_of,
            now=time.time,
            walks=WalkTurns(in_all=1, per_site=1),
        )
        feed, first_seconds = await first_request(context, chain)
        table.row("service: first request", "", "", as_shown([first_seconds]))
        times: list[float] = []
        for _ in range(runs):
            fetcher.add_entry()
            began = time.perf_counter()
            await Refresh(context, feed, RefreshRequest(is_forced=True)).run()
            times.append(time.perf_counter() - began)
            feed = await stored(store, feed)
        expect("entries", feed.entries, chain.total_entries + runs)
        expect("entries sent", await sent_entries(store, feed), feed.entries)
    ratio = f"{statistics.median(times) / first_seconds:.2%}"
    table.row(f"service: refresh, {runs} times", "", "", as_shown(times), ratio, seconds(times))


async def first_request(context: RefreshContext, chain: Chain) -> tuple[FeedRow, float]:
    service = FeedService(context)
    began = time.perf_counter()
    async with service.answer(URL, wait_seconds=_WAIT_SECONDS) as reconstruction:
        took = time.perf_counter() - began
        expect("state", str(reconstruction.state), str(State.COMPLETE))
        expect("entries", reconstruction.feed.entries, chain.total_entries)
    await service.close()
    return await stored(context.store, reconstruction.feed), took


async def stored(store: Store, feed: FeedRow) -> FeedRow:
    found = await store.read(partial(feed_table.find, feed=feed.id))
    assert found is not None
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what one new entry costs a large feed.")
    parser.add_argument("--archives", type=int, default=1000, help="archive documents (default 1000)")
    parser.add_argument("--entries", type=int, default=100, help="entries in each document (default 100)")
    parser.add_argument("--entry-bytes", type=int, default=1000, help="size of an entry (default 1000)")
    parser.add_argument("--runs", type=int, default=9, help="entries added, one by one (default 9)")
    return parser.parse_args()


async def measure(options: argparse.Namespace) -> None:
    chain = Chain(archives=options.archives, entries=options.entries, entry_bytes=options.entry_bytes)
    size = chain.documents * len(chain.archive(BASE, 1)) / 1e6
    print(f"{chain.documents} documents, {chain.total_entries} entries, {size:.0f} MB; target {TARGET:.0%}")
    table = Table("", "put ms", "assemble ms", "both ms", "ratio", "min-max s")
    with tempfile.TemporaryDirectory(prefix="wholefeed-compose-") as folder:
        await measure_composing(Path(folder) / "composing.db", chain, options.runs, table)
        await measure_service(Path(folder) / "service.db", chain, options.runs, table)


def main() -> None:
    options = arguments()
    begin()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
