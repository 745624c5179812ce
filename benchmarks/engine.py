"""Cost of a trip to the database: `python -m benchmarks.engine [--url URL]`.

Writes documents of 12 kB into the store's own table and reads them back by key, one transaction each, several
at a time. Measures SQLite in a temporary folder and, with --url, an empty PostgreSQL database.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import count
from typing import Final

from benchmarks.support.report import expect
from wholefeed.config.tables import StoreConfig
from wholefeed.core.model import Family, Kind, Role
from wholefeed.store.base import Database, fetch_one, fetch_value, run
from wholefeed.store.engine_choice import migrate_store, open_store
from wholefeed.store.rows import NewDocument
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table, feed_table

URL: Final = "http://o.test/feed"
NOW: Final = 1_700_000_000.0
BODY_BYTES: Final = 12_000

_GET: Final = "SELECT coded FROM body WHERE document = :document"
_ROW: Final = "SELECT * FROM feed WHERE id = :feed"
_PUT: Final = "INSERT INTO body (document, length, coded) VALUES (:document, :length, :coded)"
_NEXT: Final = "SELECT coalesce(max(id), 0) + 1 FROM document"


async def rate(name: str, work: Callable[[], Awaitable[object]], times: int, at_once: int) -> None:
    """Print how often an action runs in a second, and its CPU time in this process."""
    numbers = iter(range(times))

    async def some() -> None:
        for _ in numbers:
            await work()

    cpu, began_at = time.process_time(), time.perf_counter()
    await asyncio.gather(*(some() for _ in range(at_once)))
    seconds, cpu = time.perf_counter() - began_at, time.process_time() - cpu
    print(f"{name:58} {times / seconds:9,.0f} /s {cpu / times * 1e6:7.0f} us of CPU here")


def a_document(number: int) -> NewDocument:
    """A document without entries and with an incompressible body."""
    body = os.urandom(BODY_BYTES)
    url = f"{URL}/{number}"
    return NewDocument(
        url=url,
        final_url=url,
        role=Role.ARCHIVE,
        rank=number,
        family=Family.ATOM,
        body=body,
        digest=body[:32],
        media_type="application/atom+xml",
        fetched_at=NOW,
        parser_version=1,
        entries=(),
        coded=body,
    )


async def measure(store: Store, times: int) -> None:
    make = partial(feed_table.create, url=URL, fetch_url=URL, family=Family.ATOM, kind=Kind.ARCHIVED, now=NOW)
    feed = (await store.write(make)).id
    numbers = count()

    async def put() -> None:
        one = [a_document(next(numbers))]
        await store.write(partial(document_table.put, feed=feed, documents=one, now=NOW), feed=feed)

    await rate("put a document of 12 kB, whole, one feed", put, max(10, times // 10), 1)
    first = await store.read(lambda db: fetch_value(db, "SELECT min(id) FROM document"))
    last = await store.read(lambda db: fetch_value(db, "SELECT max(id) FROM document"))
    expect("documents", last - first + 1, next(numbers))
    await store.write(lambda db: run(db, "CREATE TABLE scratch AS SELECT * FROM body WHERE document < 0"))
    insert, rows = _PUT.replace("body", "scratch", 1), count(1)

    async def put_body() -> None:
        values = {"document": next(rows), "length": BODY_BYTES, "coded": os.urandom(BODY_BYTES)}
        await store.write(lambda db: run(db, insert, values))

    async def get_row() -> None:
        await store.read(lambda db: fetch_one(db, _ROW, {"feed": feed}))

    wanted = count()

    def get(db: Database, number: int) -> int:
        return len(fetch_value(db, _GET, {"document": number}))

    async def get_body() -> None:
        number = first + next(wanted) % (last - first + 1)
        expect("bytes", await store.read(partial(get, number=number)), BODY_BYTES)

    for at_once in (1, 8, 32):
        await rate(f"insert a body of 12 kB, {at_once} at once", put_body, times, at_once)
        await rate(f"read a body of 12 kB by key, {at_once} at once", get_body, times, at_once)
        await rate(f"read the row of a feed by key, {at_once} at once", get_row, times, at_once)
    await store.write(lambda db: run(db, "DROP TABLE scratch"))


async def main(url: str, times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = StoreConfig(path=f"{folder}/store.db", url=url)
        await migrate_store(settings)
        opened: AbstractAsyncContextManager[Store] = open_store(settings)
        async with opened as store:
            await measure(store, times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="", help="of an empty PostgreSQL database")
    parser.add_argument("--times", type=int, default=5000, help="how often each thing is done")
    options = parser.parse_args()
    asyncio.run(main(options.url, options.times))
