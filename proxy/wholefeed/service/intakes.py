"""Intakes: ask for every feed of a list (B1 to B5).

Nobody waits: each result is stored when it comes, so a restart goes on from there. Readers come first: feeds
of lists are asked for like polls, none while a reader's walk waits.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from wholefeed.core.intake import MOST_FEEDS, MOST_LARGEST, FailedFeed, Tally, next_try_seconds
from wholefeed.errors import (
    DocumentError,
    NoSuchIntakeError,
    OverloadedError,
    StoreError,
    WholefeedError,
)
from wholefeed.logs import get_logger
from wholefeed.service.context import RefreshContext
from wholefeed.service.opening import Openings
from wholefeed.service.running import REST_SECONDS, Running
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import intake_table
from wholefeed.store.tables.document_table import EncodedBody, encode_body
from wholefeed.store.tables.intake_table import DueFeed, Gain, IntakeRow, ListedFeed, NewIntake

log = get_logger()

_LOOKED_AT: Final = 256
_IDLE_SECONDS: Final = 600.0
_IDLE_SHARED_SECONDS: Final = 5.0
"""Another replica may have got a list."""
_SHORTEST_SECONDS: Final = 0.05
"""Between two rounds."""
_LOOK_SECONDS: Final = 1.0
"""Until the next look while readers' walks wait, or all sites are being asked."""
_TALLY_SECONDS: Final = 0.5
"""Age of a tally that followers share."""
MOST_FOLLOWERS: Final = 64
MOST_LATEST: Final = 20


class IntakeReport(NamedTuple):
    intake: IntakeRow
    tally: Tally
    largest: Sequence[Gain] = ()
    latest: Sequence[Gain] = ()
    """The last one first."""
    failures: Sequence[FailedFeed] = ()


class Intakes:
    """Asks for the feeds of lists; belongs to one event loop. After `stopping` nobody follows."""

    def __init__(
        self,
        context: RefreshContext,
        running: Running,
        openings: Openings,
        stopping: asyncio.Future[None],
    ) -> None:
        self._context = context
        self._store = context.store
        self._running = running
        self._openings = openings
        self._stopping = stopping
        fetch = context.config.fetch
        self._most = max(1, fetch.concurrency // 2)  # the rest is for readers
        self._most_per_host = fetch.concurrency_per_host
        self._queue: list[DueFeed] = []
        self._looked_at = 0.0
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._hosts: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._followers = 0
        self._tallies: dict[str, tuple[float, Tally]] = {}

    # Lists

    async def begin(
        self,
        feeds: Sequence[ListedFeed],
        document: bytes,
        *,
        options: Mapping[str, str],
        left_out: int = 0,
        unchanged: str = "[]",
    ) -> str:
        """Store a list to be asked for; return the intake's id.

        The same list and options are the same intake until it is over.

        Raises:
            OverloadedError: Too many lists are being brought in.
        """
        told = json.dumps(dict(options), sort_keys=True)
        coded, digest = await asyncio.to_thread(_encode, document, told)
        new = NewIntake(
            id=secrets.token_hex(8),
            digest=digest,
            options=told,
            left_out=left_out,
            unchanged=unchanged,
            feeds=feeds,
            document=EncodedBody(coded, len(document)),
        )
        intake = await self._store.write(partial(intake_table.begin, new=new, now=self._context.now()))
        if intake == new.id:
            log.info("intake.begun", intake=intake, feeds=len(feeds))
        self._look_anew()
        return intake

    async def ask_again(self, intake: str) -> None:
        """Ask for the failed feeds of a list again, or raise `NoSuchIntakeError`."""
        await self._store.write(partial(intake_table.ask_again, intake=intake, now=self._context.now()))
        self._look_anew()

    async def forget(self, intake: str) -> None:
        """Stop and forget an intake, or raise `NoSuchIntakeError`; its feeds stay."""

        def work(db: Database) -> None:
            intake_table.require(db, intake)
            intake_table.delete(db, intake)

        await self._store.write(work)
        self._look_anew()
        log.info("intake.forgotten", intake=intake)

    def _look_anew(self) -> None:
        self._queue.clear()
        self._news.set()

    async def report(self, intake: str) -> IntakeReport:
        """Return an intake with its lists, or raise `NoSuchIntakeError`."""

        def look(db: Database) -> IntakeReport:
            return IntakeReport(
                intake_table.require(db, intake),
                self._count(db, intake),
                intake_table.list_largest(db, intake, MOST_LARGEST),
                intake_table.list_latest(db, intake, MOST_LATEST),
                intake_table.list_failures(db, intake, MOST_FEEDS),
            )

        return await self._store.read(look)

    async def newest(self, limit: int) -> list[IntakeReport]:
        """Return the newest intakes with their tallies alone."""

        def look(db: Database) -> list[IntakeReport]:
            rows = intake_table.list_newest(db, limit)
            return [IntakeReport(row, self._count(db, row.id)) for row in rows]

        return await self._store.read(look)

    def _count(self, db: Database, intake: str) -> Tally:
        tally = intake_table.count_stages(db, intake, now=self._context.now())
        if self._context.config.history.list == "off":
            tally.searching = 0
        return tally

    async def list_of(self, intake: str) -> tuple[IntakeRow, bytes]:
        """Return an intake and its list as it was sent, or raise `NoSuchIntakeError`."""

        def look(db: Database) -> tuple[IntakeRow, EncodedBody]:
            return intake_table.require(db, intake), intake_table.read_list(db, intake)

        row, coded = await self._store.read(look)
        return row, await asyncio.to_thread(coded.decode)

    # Following

    @asynccontextmanager
    async def follow(self, intake: str, seconds: float) -> AsyncIterator[AsyncIterator[IntakeReport | None]]:
        """Yield the tallies of an intake until it is over or forgotten; None: no change in `seconds`.

        Raises:
            OverloadedError: Too many followers.
        """
        if self._followers >= MOST_FOLLOWERS:
            raise OverloadedError(f"expected at most {MOST_FOLLOWERS} clients that follow lists at once")
        self._followers += 1
        try:
            yield self._changes(intake, seconds)
        finally:
            self._followers -= 1

    async def _changes(self, intake: str, seconds: float) -> AsyncIterator[IntakeReport | None]:
        told: Tally | None = None
        while not self._stopping.done():
            try:
                row, tally = await self._recent_tally(intake)
            except NoSuchIntakeError:
                return
            yield None if tally == told else IntakeReport(row, tally)
            told = tally
            if tally.is_over:
                return
            await asyncio.wait({self._stopping}, timeout=seconds)

    async def _recent_tally(self, intake: str) -> tuple[IntakeRow, Tally]:
        read_at, found = self._tallies.get(intake, (0.0, None))
        if found is None or time.monotonic() - read_at > _TALLY_SECONDS:
            found = await self._store.read(partial(self._count, intake=intake))
            self._tallies = {intake: (time.monotonic(), found)}
        row = await self._store.read(partial(intake_table.require, intake=intake))
        return row, found

    # Asking

    async def run(self) -> None:
        while True:
            self._news.clear()
            try:
                seconds = await self._round()
            except (StoreError, OverloadedError) as exc:
                log.warning("intakes.paused", slug=exc.slug)
                seconds = REST_SECONDS
            await self._wait(seconds)

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _round(self) -> float:
        """Ask for due feeds; return seconds until the next round."""
        # one replica drives all lists, so hosts get no more requests than one configuration allows
        async with self._context.sharing.task("intakes") as is_mine:
            while is_mine and await self._begin_due():
                await self._wait(_LOOK_SECONDS)
                self._news.clear()
        is_shared = self._context.sharing.is_shared
        idle_seconds = _IDLE_SHARED_SECONDS if is_shared else _IDLE_SECONDS
        due_at = await self._store.read(intake_table.next_due_at) if is_mine else None
        if due_at is None:
            return idle_seconds
        return min(max(due_at - self._context.now(), _SHORTEST_SECONDS), idle_seconds)

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def _begin_due(self) -> bool:
        """Begin as many feeds as may be asked for; return whether any is due or under way."""
        is_old = time.monotonic() - self._looked_at >= _IDLE_SHARED_SECONDS
        if is_old or not self._queue:
            await self._look()
        if not self._running.waiting:  # else readers wait for the network
            self._begin_chosen()
            if len(self._tasks) < self._most and len(self._queue) < _LOOKED_AT // 2:
                await self._look()  # those in the queue may all be of a few busy hosts
                self._begin_chosen()
        return bool(self._tasks or self._queue)

    async def _look(self) -> None:
        self._looked_at = time.monotonic()
        limit = _LOOKED_AT + len(self._tasks)
        due = await self._store.read(partial(intake_table.list_due, now=self._context.now(), limit=limit))
        self._queue = [each for each in due if (each.intake, each.place) not in self._tasks]

    def _choose(self) -> list[DueFeed]:
        chosen, rest = list[DueFeed](), list[DueFeed]()
        hosts = self._hosts.copy()
        for due in self._queue:
            host = _host(due.url)
            has_room = len(self._tasks) + len(chosen) < self._most and hosts[host] < self._most_per_host
            (chosen if has_room else rest).append(due)
            hosts[host] += has_room
        self._queue = rest
        return chosen

    def _begin_chosen(self) -> None:
        for due in self._choose():
            self._begin(due)

    def _begin(self, due: DueFeed) -> None:
        key, host = (due.intake, due.place), _host(due.url)
        if key in self._tasks:
            return
        self._hosts[host] += 1
        task = self._tasks[key] = asyncio.create_task(self._work_on(due))
        task.add_done_callback(partial(self._end, key, host))

    def _end(self, key: tuple[str, int], host: str, _: object) -> None:
        del self._tasks[key]
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]
        self._news.set()

    # One feed

    async def _work_on(self, due: DueFeed) -> None:
        try:
            if not await self._store.read(partial(intake_table.is_waiting, due=due)):
                return  # its list was forgotten, or another replica was quicker
            try:
                feed, is_counted = await self._ask(due.url)
            except WholefeedError as exc:
                await self._note_failure(due, exc)
            else:
                now = self._context.now()
                keep = partial(intake_table.keep_feed, due=due, feed=feed, is_counted=is_counted, now=now)
                await self._store.write(keep)
        except (StoreError, OverloadedError) as exc:
            log.warning("intake.unkept", intake=due.intake, slug=exc.slug)
            await asyncio.sleep(REST_SECONDS)  # the feed is still due, and is asked for again then
        except Exception:  # the last resort: the other feeds go on
            self._context.counts.troubles["intakes"] += 1
            log.exception("intake.failed", intake=due.intake)
            with suppress(StoreError, OverloadedError):
                await self._keep_failure(due, "internal", None)

    async def _ask(self, url: str) -> tuple[int, bool]:
        """Bring one feed up to date; return it, and whether it was stored and fresh already.

        Raises:
            WholefeedError: The feed is not here.
        """
        known = await self._context.find(url)
        if known is not None and self._is_fresh(known):
            return known.id, True
        opening = self._openings.join(url, may_walk=True, is_polled=True)
        await asyncio.wait({opening})
        if opening.cancelled():
            raise OverloadedError("the work on this feed was stopped")
        feed, flight = opening.result()
        if flight is None:
            return feed.id, False
        await asyncio.wait({flight})
        error = None if flight.cancelled() else flight.exception()
        stored = await self._context.find(feed.url)
        if error is not None and (stored is None or not stored.digest):
            raise error
        return feed.id, False

    def _is_fresh(self, feed: FeedRow) -> bool:
        is_running = self._running.running(feed.id) is not None
        return feed.digest is not None and not is_running and not self._running.is_due(feed)

    async def _note_failure(self, due: DueFeed, error: WholefeedError) -> None:
        status = pause_seconds = None
        if isinstance(error, DocumentError):
            status, pause_seconds = error.publisher_status, error.retry_after_seconds
        elif isinstance(error, OverloadedError):
            pause_seconds = error.retry_after_seconds
        again_seconds = next_try_seconds(error.slug, status, pause_seconds, due.tries + 1)
        if again_seconds is None:
            await self._keep_failure(due, error.slug, status)
            return
        tries = due.tries + isinstance(error, DocumentError)
        until = self._context.now() + again_seconds
        await self._store.write(partial(intake_table.put_off, due=due, tries=tries, until=until))

    async def _keep_failure(self, due: DueFeed, reason: str, status: int | None) -> None:
        now = self._context.now()
        keep = partial(intake_table.keep_failure, due=due, reason=reason, status=status, now=now)
        await self._store.write(keep)


def _encode(document: bytes, options: str) -> tuple[bytes, bytes]:
    """Return a list as it is stored, and its digest with its options."""
    digest = hashlib.blake2b(document, digest_size=16)
    digest.update(options.encode())
    return encode_body(document), digest.digest()


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""
