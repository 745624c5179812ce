"""This process among the replicas: its signs of life and its leases.

A lease without work at two successive signs of life is given back. A lease is lost if another replica may
have taken it: its work stops and writes nothing more. Giving a lease back wakes replicas that wait for it.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from wholefeed.errors import LeaseLostError, OverloadedError, StorageFullError, StoreError
from wholefeed.logs import get_logger
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import leases
from wholefeed.store.tables.leases import LeaseCondition, LeaseResult, LeaseRow, always

log = get_logger()

BEAT_SECONDS: Final = 2.0  # between two signs of life
CUT_OFF_SECONDS: Final = 5.0  # less than `DEAD_SECONDS`, after which others presume a replica dead
RETRY_SECONDS: Final = 0.5  # after a database failure or an internal error
LOOK_SECONDS: Final = 1.0  # between two looks at awaited leases
STUCK_SECONDS: Final = 30.0  # an event loop late by more counts as dead
_PULSE_SECONDS: Final = 0.25  # between two looks of the thread
_LATE_SECONDS: Final = BEAT_SECONDS + 0.5  # without a sign of life, until the thread gives one


@dataclass(slots=True, eq=False)
class Lease:
    name: str
    token: str
    """New at each taking: late actions under an earlier one have no effect."""
    before: LeaseRow | None = None
    """The stored row before the lease was taken."""
    feed: FeedRow | None = None
    """The feed then; None: the lease is not on a feed."""
    limit: asyncio.Timeout | None = None
    """Ends the work when the lease is lost; None: no work has begun."""
    tell: Callable[[], str] = str
    """Returns progress."""
    outcome: str = ""
    """For other replicas, at the end."""

    @property
    def is_begun(self) -> bool:
        return self.limit is not None


@dataclass(slots=True, eq=False)
class Wait:
    name: str
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    progress: str = ""
    """The holder's progress at the last look."""


class Replica:
    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self._clock = clock
        self.name = secrets.token_hex(8)
        self.replicas = 1  # last known number
        # Whether the database may have lost all leases; the code that reacts resets it.
        self.is_forgotten = True
        self.held: dict[str, Lease] = {}
        self._sign = ("", -math.inf)  # name and sending time of the last sign of life
        self._seen_at = clock()  # the loop's last round
        self._failure: StoreError | OverloadedError | None = None  # of the last sign of life
        self._unused = set[tuple[str, str]]()  # names and tokens unused at the last sign of life
        self._ends: dict[str, tuple[str, str, str]] = {}  # by token: leases to give back
        self._has_ended = asyncio.Event()
        self._waits = set[Wait]()

    async def run(self) -> None:
        """Give signs of life until cancelled, despite all errors: silent replicas are presumed dead."""
        is_over = threading.Event()
        threading.Thread(target=self._stand_in, args=(is_over,), name="pulse", daemon=True).start()
        try:
            while True:
                try:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(self._keep_beating())
                        tasks.create_task(self._keep_ending())
                        tasks.create_task(self._keep_looking())
                except Exception:  # an internal error
                    log.exception("background.failed", name="sharing")
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            is_over.set()

    # Signs of life

    @property
    def signed_at(self) -> float:
        """Sending time of the last received sign of life."""
        return self._sign[1]

    @property
    def silent_seconds(self) -> float:
        """Time since the last sign of life; infinite if the others know none under this name."""
        name, sent_at = self._sign
        return self._clock() - sent_at if name == self.name else math.inf

    @property
    def is_cut_off(self) -> bool:
        """Whether others may presume this replica dead."""
        return self.silent_seconds > CUT_OFF_SECONDS

    def require(self) -> None:
        """Raise `LeaseLostError` if this replica is cut off."""
        if self.is_cut_off:
            why = f": {self._failure}" if self._failure is not None else ""
            slug = self._failure.slug if isinstance(self._failure, StorageFullError) else ""
            raise LeaseLostError(f"cut off from the database that the replicas share{why}", slug=slug)

    async def beat(self) -> None:
        """Give a sign of life, and drop lost leases.

        Raises:
            StoreError, OverloadedError: The database failed or is out of reach.
        """
        sent_at, name, held = self._clock(), self.name, list(self.held.values())
        progress = [(text, each.name, each.token) for each in held if (text := each.tell())]
        beat = await self.store.engine.write_at_once(partial(leases.beat, replica=name, progress=progress))
        if name != self.name:
            return
        if self._sign[0] == name and not beat.was_known:
            log.warning("replica.forgotten", replica=name)
            self.is_forgotten = True
        self._sign, self.replicas = (name, sent_at), beat.replicas
        for each in held:
            if self.held.get(each.name) is each and beat.lease_tokens.get(each.name) != each.token:
                self._lose(each)
        self._end_unused(beat.lease_tokens)

    def _end_unused(self, held: Mapping[str, str]) -> None:
        """Give back unused leases: taking or beginning failed or was cancelled."""
        used = {each.token for each in self.held.values() if each.is_begun}
        unused = {(name, token) for name, token in held.items() if token not in used}
        for name, token in unused & self._unused:
            self.give_back(Lease(name, token))
        self._unused = unused

    async def _keep_beating(self) -> None:
        while True:
            pause_seconds = BEAT_SECONDS
            self._seen_at = self._clock()
            silent_seconds = self.silent_seconds if self._sign[0] == self.name else 0.0
            try:
                async with asyncio.timeout(CUT_OFF_SECONDS - silent_seconds):
                    await self.beat()
                self._failure = None
            except (StoreError, OverloadedError, TimeoutError) as exc:
                self._failure = None if isinstance(exc, TimeoutError) else exc
                log.warning("replica.unheard", replica=self.name, reason=str(exc))
                pause_seconds = RETRY_SECONDS
            if self._has_begun_again():
                continue
            await asyncio.sleep(pause_seconds)
            self._has_begun_again()  # the process was stopped

    def _has_begun_again(self) -> bool:
        """If cut off, stop all work and change names."""
        if self._sign[0] != self.name or not self.is_cut_off:
            return False
        held, name, self.name = list(self.held.values()), self.name, secrets.token_hex(8)
        log.warning("replica.isolated", replica=name, stopped=sum(each.is_begun for each in held))
        for each in held:
            self._lose(each)
        self.wake()
        return True

    def _stand_in(self, is_over: threading.Event) -> None:
        """Give signs of life while the loop is late; runs in a thread."""
        while not is_over.wait(_PULSE_SECONDS):
            at, (name, sent_at) = self._clock(), self._sign
            is_stuck = at - self._seen_at > STUCK_SECONDS
            if name != self.name or is_stuck or not _LATE_SECONDS <= at - sent_at < CUT_OFF_SECONDS:
                continue
            with suppress(StoreError, OverloadedError):
                is_known = self.store.engine.write_in_thread(partial(leases.beat_replica_again, name=name))
                if is_known and self._sign == (name, sent_at):  # an abandoned name stays dead
                    self._sign = name, at

    async def leave(self) -> None:
        name, self.name = self.name, secrets.token_hex(8)
        if self._ends:
            await self.store.write_single(partial(leases.end, ends=list(self._ends.values())))
        # Written like `beat`, else a running sign of life would revive the name.
        await self.store.engine.write_at_once(partial(leases.leave_replicas, name=name))

    # Own leases

    async def take(
        self,
        name: str,
        wants: LeaseCondition = always,
        *,
        feed: int | None = None,
        takes_own: bool = True,
    ) -> tuple[Lease | None, LeaseResult]:
        """Take a lease as `leases.take` does; raise as `beat` and `require`."""
        self.require()
        take = partial(leases.take, name=name, replica=self.name, wants=wants)
        looked = await self.store.write_loosely(partial(take, feed=feed, takes_own=takes_own))
        if not looked.token:
            return None, looked
        lease = self.held[name] = Lease(name, looked.token, looked.before, looked.feed)
        return lease, looked

    @asynccontextmanager
    async def working(self, lease: Lease, tell: Callable[[], str] = str) -> AsyncIterator[None]:
        """Work under a lease, and give it back with its outcome.

        A cancelled refresh keeps the lease: when the program ends, other replicas continue its walk.

        Raises:
            LeaseLostError: The lease was lost during the work.
        """
        lease.tell, lease.limit = tell, asyncio.timeout(None)
        try:
            async with lease.limit:
                yield
        except LeaseLostError:
            self._drop(lease)
            raise
        except BaseException as exc:
            if isinstance(exc, TimeoutError) and lease.limit.expired():
                raise LeaseLostError(f"another replica may have taken over: {lease.name}") from exc
            if not (isinstance(exc, asyncio.CancelledError) and lease.feed is not None):
                self.give_back(lease)
            raise
        self.give_back(lease)

    def require_held(self, db: Database, lease: Lease | None) -> None:
        """Raise `LeaseLostError` in a transaction unless this replica has the lease."""
        self.require()
        is_known = lease is not None and self.held.get(lease.name) is lease
        if lease is None or not is_known or not leases.is_held(db, lease.name, lease.token):
            raise LeaseLostError("another replica has taken over")

    def give_back(self, lease: Lease) -> None:
        """Give a lease back once the database can be reached."""
        self._drop(lease)
        self._ends.setdefault(lease.token, (lease.name, lease.token, lease.outcome))
        self._has_ended.set()

    def _lose(self, lease: Lease) -> None:
        """Stop the work under a lost lease."""
        self._drop(lease)
        if lease.limit is not None:
            with suppress(RuntimeError):  # it has ended
                lease.limit.reschedule(asyncio.get_running_loop().time())

    def _drop(self, lease: Lease) -> None:
        held = self.held.get(lease.name)
        if held is not None and held.token == lease.token:
            del self.held[lease.name]

    async def _keep_ending(self) -> None:
        while True:
            await self._has_ended.wait()
            self._has_ended.clear()
            ends = dict(self._ends)
            try:
                await self.store.write_single(partial(leases.end, ends=list(ends.values())))
            except (StoreError, OverloadedError):
                await asyncio.sleep(RETRY_SECONDS)
                self._has_ended.set()
                continue
            for token in ends:
                del self._ends[token]

    # Leases of others

    @contextmanager
    def waiting(self, name: str) -> Iterator[Wait]:
        """Wake the yielded `Wait` when a lease may be free. Enter before looking, to miss no notice."""
        wait = Wait(name)
        self._waits.add(wait)
        try:
            yield wait
        finally:
            self._waits.remove(wait)

    def wait_for(self, name: str) -> Wait | None:
        return next((each for each in self._waits if each.name == name), None)

    def wake(self, name: str | None = None) -> None:
        """Wake waits for one lease, or for all."""
        for wait in self._waits:
            if name in (None, wait.name):
                wait.woken.set()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            # Notices may get lost, and a dead replica sends none: look each second, in one query.
            waits = list(self._waits)
            if not waits:
                continue
            try:
                names = {each.name for each in waits}
                found = await self.store.read(partial(leases.read_leases, names=names))
            except (StoreError, OverloadedError):
                continue
            for wait in waits:
                lease = found.get(wait.name)
                if lease is None or not lease.is_live:
                    wait.woken.set()
                else:
                    wait.progress = lease.progress
