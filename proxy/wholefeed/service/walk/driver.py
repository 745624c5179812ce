"""Drive one walk: the core says what it wants, this fetches, reads the store and keeps what joins.

Documents that are stored and not due cost no network (rules R2, R14); those that are due are revalidated
(R13); a document fetched ahead is kept in memory until the chain links to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from wholefeed.core.notes import ArchiveChanged, DocumentUnavailable, LimitReached, Note
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.schedule.freshness import is_uncacheable
from wholefeed.core.schedule.revalidation import settles
from wholefeed.core.terms import Role
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.walk import Walk
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.fetched import Fetched
from wholefeed.fetch.validators import Validators
from wholefeed.futures import clear_tracebacks
from wholefeed.loggers import get_logger
from wholefeed.service.documents.shapes import arrival_from, arrival_of, new_document
from wholefeed.service.documents.source import Obtained, Source
from wholefeed.service.walk.grounds import Grounds, Progress, Walked
from wholefeed.store.rows import DocumentRow
from wholefeed.store.store import Store

log = get_logger()

Outcome = Obtained | Fetched | DocumentError
_STEPS_WITHOUT_REST: Final = 64
"""Stored documents walked through before other tasks get a turn."""


class WalkDriver:
    """One walk. `run` is called once."""

    def __init__(
        self,
        walk: Walk,
        source: Source,
        store: Store,
        grounds: Grounds,
        *,
        on_network: Callable[[], Awaitable[None]],
        progress: Progress | None = None,
    ) -> None:
        self._walk = walk
        self._source = source
        self._store = store
        self._grounds = grounds
        self._on_network = on_network
        self._pending: dict[str, asyncio.Task[Outcome]] = {}
        self._obtained: dict[str, Obtained] = {}
        self._revalidated: set[str] = set()
        self._joined = len(walk.path)
        self._walked = Walked()
        self._has_touched_network = False
        self._deadline = time.monotonic() + grounds.walk_seconds
        self.progress = progress or Progress()

    async def run(self) -> Walked:
        """Walk to the end. The notes say how it ended; never raises for what a publisher does.

        Raises:
            StoreError: What was fetched cannot be kept.
        """
        try:
            await self._drive()
        finally:
            await self._abandon()
        await self._keep_joined()
        assert self._walk.ending is not None, "driven to its end"
        self._walked.ending = self._walk.ending
        self._walked.notes += self._walk.ending.notes
        return self._walked

    async def _drive(self) -> None:
        steps = 0
        while self._walk.ending is None:
            steps += 1
            if steps % _STEPS_WITHOUT_REST == 0:
                await asyncio.sleep(0)
            if self._answer_from_store():
                continue
            await self._start_wanted()
            await self._keep_joined()
            done, _ = await asyncio.wait(
                self._pending.values(),
                timeout=max(0.0, self._deadline - time.monotonic()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not done:
                limit = self._grounds.walk_seconds
                self._walk.stop(LimitReached(self._walk.wanted[0].url, "limits.walk_seconds", limit))
            for url in [url for url, task in self._pending.items() if task in done]:
                await self._take(url, self._pending.pop(url).result())
            done.clear()  # else it keeps the documents in memory until the next one has come

    def _answer_from_store(self) -> bool:
        """Give the walk its next document, or why not, without network. False: it must be fetched."""
        wanted = [want.url for want in self._walk.wanted if not want.is_guess]
        if not wanted or wanted[0] in self._pending:
            return False
        url = wanted[0]
        row = self._grounds.stored_as(url)
        if row is not None and (url in self._revalidated or not self._is_gap(url)):
            if url in self._revalidated or not self._is_due(url, row):
                self._walk.arrived(url, arrival_from(row))
                return True
            return False
        if not self._grounds.waits(url):
            return False
        self._walk.failed(url, DocumentUnavailable(url, self._grounds.attempts[url].reason))
        return True

    def _is_due(self, url: str, row: DocumentRow) -> bool:
        """Return whether a stored document is to be revalidated."""
        is_unfit = row.family is not self._walk.path[0].family  # the publisher may have changed over (R23)
        if is_unfit or self._grounds.is_truncated(url):
            return not self._grounds.waits(url)
        return self._grounds.is_due(row, len(self._walk.path))

    def _is_gap(self, url: str) -> bool:
        """Return whether a stored document counts as missing."""
        return False

    async def _start_wanted(self) -> None:
        for want in self._walk.wanted:
            if want.url in self._pending:
                continue
            row = self._grounds.stored_as(want.url)
            if row is None and not self._has_touched_network:
                self._has_touched_network = True
                await self._on_network()
                self._deadline = time.monotonic() + self._grounds.walk_seconds
            self._pending[want.url] = asyncio.create_task(self._fetch(want.url, row))

    async def _fetch(self, url: str, row: DocumentRow | None) -> Outcome:
        validators = None
        if row is not None:
            validators = Validators(etag=row.etag, last_modified=row.last_modified, url=row.final_url)
        while True:
            try:
                return await self._source.obtain(
                    url,
                    validators=validators,
                    on_older=lambda older: self._predict(url, older),
                    relation=self._grounds.relation,
                    is_ahead=self._is_ahead(url),
                )
            except QueueFullError as exc:  # a walk has time
                await asyncio.sleep(exc.retry_after_seconds or 0.0)
            except DocumentError as exc:
                clear_tracebacks(exc)
                return exc.with_traceback(None)

    def _is_ahead(self, url: str) -> bool:
        """Whether the path has to come to a document yet."""
        return any(want.url != url for want in self._walk.wanted[:1])

    def _predict(self, url: str, older: str) -> None:
        """Begin to fetch what the head of a document that still arrives links to."""
        self._walk.predicted(url, older)
        if older not in self._pending and self._grounds.stored_as(older) is None:
            for want in self._walk.wanted:
                if want.url == older:
                    self._pending[older] = asyncio.create_task(self._fetch(older, None))

    async def _take(self, url: str, outcome: Outcome) -> None:
        row = self._grounds.stored_as(url)
        self.progress.fetched += 1
        self.progress.last_url = url
        if isinstance(outcome, Obtained) and (row is None or self._may_replace(url, outcome)):
            self._obtained[url] = outcome
            self._walk.arrived(url, await self._arrival(url, outcome))
            return
        if row is not None and self._serves(outcome):
            self._revalidated.add(url)
            if isinstance(outcome, Fetched):
                await self._confirm(row)
            self._walk.arrived(url, self._confirmed(row))
            return
        assert isinstance(outcome, DocumentError), "a document without a stored copy is fetched whole"
        self._walked.failures[url] = outcome.fresh_copy()  # without the body, which its traceback may hold
        self._walk.failed(url, self._failure(url, outcome))

    async def _arrival(self, url: str, obtained: Obtained) -> Arrival:
        return arrival_of(url, obtained)

    def _serves(self, outcome: Outcome) -> bool:
        """Return whether a stored copy serves; of an archive in any case (docs/faults.md row 53)."""
        return True

    def _confirmed(self, row: DocumentRow) -> Arrival:
        return arrival_from(row)

    def _failure(self, url: str, error: DocumentError) -> Note:
        return DocumentUnavailable(url, error.slug)

    def _may_replace(self, url: str, outcome: Obtained) -> bool:
        """Whether a stored document gives way to what came now: a whole one not to one that broke off."""
        return not _is_truncated(outcome) or self._grounds.is_truncated(url)

    async def _confirm(self, row: DocumentRow) -> None:
        """An archive document has not changed; behind the newest one it is final now (R13)."""
        is_final = settles(
            is_newest=len(self._walk.path) == 1, is_marked=row.is_marked, is_uncacheable=row.is_uncacheable
        )
        await self._store.touch_document(row.id, checked_at=self._grounds.now(), is_settled=is_final)

    async def _keep_joined(self) -> None:
        """Store what has joined the path, one transaction a document, in the order of the path."""
        path = self._walk.path
        while self._joined < len(path):
            arrival = path[self._joined]
            async with self._grounds.writing:
                kept = await self._keep(arrival, self._joined)
            if kept is not None:
                self._walked.path.append(kept)
            self._joined += 1
            self.progress.documents += 1
            self.progress.entries += arrival.entries

    def _tell(self, url: str, obtained: Obtained | None) -> None:
        """Note what is wrong with a document that has joined; that a stored one broke off is remembered."""
        if obtained is not None:
            self._walked.notes += [replace(note, url=url) for note in obtained.document.notes]
        elif self._grounds.is_truncated(url):
            self._walked.notes.append(DocumentTruncated(url))

    async def _keep(self, arrival: Arrival, place: int) -> int | None:
        """Store a document that has joined; return its id, None when it is not worth keeping."""
        row = self._grounds.stored_as(arrival.url)
        obtained = self._obtained.get(arrival.url)
        rank = row.rank if row is not None and row.rank is not None else self._grounds.first_rank + place
        self._tell(arrival.url, obtained)
        if obtained is None:
            assert row is not None, "what joins without a fetch is stored"
            if row.rank is None:
                await self._store.attach(self._grounds.feed_id, row.id, rank, now=self._grounds.now())
            return row.id
        if row is not None and row.digest != obtained.digest:
            self._walked.notes.append(ArchiveChanged(arrival.url))
        document = new_document(
            row.url if row is not None else arrival.url,
            obtained,
            role=Role.ARCHIVE,
            rank=rank,
            is_settled=settles(
                is_newest=place == 1,
                is_marked=obtained.navigation.is_archive,
                is_uncacheable=is_uncacheable(obtained.fetched.headers),
            ),
            brought_news=self._walk.news(arrival.url),
        )
        (identifier,) = await self._store.put_documents(
            self._grounds.feed_id, [document], now=self._grounds.now()
        )
        del self._obtained[arrival.url]
        return identifier

    async def _abandon(self) -> None:
        """Cancel what was fetched ahead and is not needed."""
        tasks = list(self._pending.values())
        self._pending.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_truncated(obtained: Obtained) -> bool:
    return any(isinstance(note, DocumentTruncated) for note in obtained.document.notes)
