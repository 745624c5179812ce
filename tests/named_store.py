"""A store with one named function for each question, for tests of the tables.

The program itself combines questions in one function for `Store.read` or `Store.write`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self, Unpack

from wholefeed.core.compose.segments import Placed
from wholefeed.core.facts import CopyDates
from wholefeed.core.model import EntryId, Family, Kind, Tombstone
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.schedule import Times
from wholefeed.store.base import Database
from wholefeed.store.engine_choice import open_file
from wholefeed.store.rows import (
    DocumentChanges,
    DocumentRow,
    Failures,
    FeedChanges,
    FeedRow,
    FeedSummary,
    NewDocument,
    Overview,
    Publication,
)
from wholefeed.store.store import Store
from wholefeed.store.tables import document_table, failures, feed_table, live, segment_table
from wholefeed.store.tables.feed_table import Outlook, outlook


class NamedStore:
    """The functions of the tables as methods, each a transaction of its own, beside the store's methods."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read = store.read
        self.write = store.write
        self.check = store.check
        self.forget = store.forget
        self.snapshot = store.snapshot
        self.versions = store.engine.versions
        self.pins = store.pins
        self.upkeep = store.upkeep

    @classmethod
    @asynccontextmanager
    async def open(cls, path: Path | str) -> AsyncIterator[Self]:
        async with open_file(path) as store:
            yield cls(store)

    async def block(self, segment_id: int) -> bytes:
        """The whole deflated text of a segment."""

        def work(db: Database) -> bytes:
            pieces = [segment_table.piece(db, segment_id, 0)]
            while len(pieces[-1]) == segment_table.PIECE_BYTES:
                pieces.append(segment_table.piece(db, segment_id, len(pieces)))
            return b"".join(pieces)

        return await self.read(work)

    async def feed_by_url(self, url: str) -> FeedRow | None:
        return await self.read(lambda db: feed_table.find_by_url(db, url))

    async def feed(self, feed_id: int) -> FeedRow | None:
        return await self.read(lambda db: feed_table.find(db, feed_id))

    async def feeds(self, *, limit: int = 1000, offset: int = 0) -> list[FeedSummary]:
        return await self.read(lambda db: feed_table.list_feeds(db, limit, offset))

    async def unfinished_feeds(self) -> list[FeedRow]:
        return await self.read(feed_table.list_unfinished)

    async def outlook(self, times: Times) -> Outlook:
        return await self.read(lambda db: outlook(db, times))

    async def overview(self, feed_id: int) -> Overview:
        return await self.read(lambda db: failures.overview(db, feed_id))

    async def create_feed(
        self, url: str, *, fetch_url: str, family: Family, kind: Kind, now: float
    ) -> FeedRow:
        return await self.write(
            partial(feed_table.create, url=url, fetch_url=fetch_url, family=family, kind=kind, now=now)
        )

    async def add_alias(self, url: str, feed_id: int) -> None:
        await self.write(lambda db: feed_table.add_alias(db, url, feed_id), feed=feed_id)

    async def update_feed(self, feed_id: int, **changes: Unpack[FeedChanges]) -> FeedRow:
        def work(db: Database) -> FeedRow:
            feed_table.update(db, feed_id, changes)
            return feed_table.require(db, feed_id)

        return await self.write(work, feed=feed_id)

    async def begin_walk(self, feed_id: int, *, now: float) -> None:
        await self.write(lambda db: feed_table.begin_walk(db, feed_id, now), feed=feed_id)

    async def note_refetch(
        self, feed_id: int, failure: Attempt | None, **changes: Unpack[FeedChanges]
    ) -> None:
        await self.write(lambda db: failures.note_refetch(db, feed_id, failure, changes), feed=feed_id)

    async def failures(self, feed_id: int) -> Failures:
        return await self.read(lambda db: failures.read(db, feed_id))

    async def documents(self, feed_id: int) -> list[DocumentRow]:
        return await self.read(lambda db: document_table.list_all(db, feed_id))

    async def body(self, document_id: int) -> bytes:
        return await self.read(lambda db: document_table.read_body(db, document_id))

    async def live_ordinals(self, document_ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
        return await self.read(lambda db: document_table.live_ordinals(db, document_ids))

    async def superseded(self, feed_id: int) -> dict[int, int]:
        return await self.read(lambda db: document_table.count_superseded(db, feed_id))

    async def copy_dates(self, document_id: int) -> tuple[CopyDates, ...]:
        return await self.read(lambda db: document_table.copy_dates(db, document_id))

    async def known(
        self, feed_id: int, identities: Sequence[EntryId], *, but: int | None = None
    ) -> dict[EntryId, float | None]:
        return await self.read(lambda db: document_table.find_known_dates(db, feed_id, identities, but))

    async def tombstones(self, feed_id: int) -> list[Tombstone]:
        return await self.read(lambda db: live.list_tombstones(db, feed_id))

    async def put_documents(
        self,
        feed_id: int,
        new: Sequence[NewDocument],
        *,
        now: float,
        ranks: Mapping[int, int] | None = None,
        detached: Collection[int] = (),
        **changes: Unpack[FeedChanges],
    ) -> list[int]:
        return await self.write(
            lambda db: document_table.put_arranged(db, feed_id, new, ranks or {}, detached, changes, now),
            feed=feed_id,
        )

    async def touch_document(self, document_id: int, **changes: Unpack[DocumentChanges]) -> None:
        await self.write(lambda db: document_table.touch(db, document_id, changes))

    async def arrange(
        self,
        feed_id: int,
        *,
        ranks: Mapping[int, int],
        detached: Collection[int] = (),
        now: float,
        is_withdrawn: bool = False,
    ) -> None:
        await self.write(
            lambda db: document_table.arrange(db, feed_id, ranks, detached, now, is_withdrawn=is_withdrawn),
            feed=feed_id,
        )

    async def attach(self, feed_id: int, document_id: int, rank: int, *, now: float) -> None:
        await self.arrange(feed_id, ranks={document_id: rank}, now=now)

    async def detach(
        self, feed_id: int, document_ids: Collection[int], *, now: float, is_withdrawn: bool = False
    ) -> None:
        await self.arrange(feed_id, ranks={}, detached=document_ids, now=now, is_withdrawn=is_withdrawn)

    async def reorder(self, feed_id: int, ranks: Mapping[int, int], *, now: float) -> None:
        await self.arrange(feed_id, ranks=ranks, now=now)

    async def placed(self, feed_id: int) -> tuple[int, list[Placed]]:
        return await self.read(
            lambda db: (feed_table.require(db, feed_id).revision, segment_table.places(db, feed_id))
        )

    async def publish(
        self, feed_id: int, publication: Publication, *, revision: int, now: float
    ) -> FeedRow | None:
        return await self.write(
            partial(
                segment_table.publish,
                feed=feed_id,
                publication=publication,
                revision=revision,
                pins=self.pins,
                now=now,
            ),
            feed=feed_id,
        )
