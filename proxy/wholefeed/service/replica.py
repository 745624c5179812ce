"""This process among the replicas: its signs of life, the leases that it has, and those it waits for.

    replica = Replica(store)
    await replica.beat()                                    # alive from now on, as long as `run` goes on
    lease, looked = await replica.take("task:purge")
    if lease is not None:
        async with replica.working(lease):                  # given back at the end
            ...

There is one way to have a lease, whatever it is for: it is taken, something works under it, it is given back.

    taken     nothing works under it yet    -> working; given back when two signs of life find it so
    working   no other replica begins       -> given back at its end; lost where another may have it
    given back, as soon as the database can be reached; whoever waits for it is told
    lost      what worked under it is stopped, and writes nothing any more

The tables are `wholefeed.store.tables.leases`.
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

BEAT_SECONDS: Final = 2.0
"""Between two signs of life."""
CUT_OFF_SECONDS: Final = 5.0
"""Less than `DEAD_SECONDS`, after which the others take it for dead."""
RETRY_SECONDS: Final = 0.5
"""After the database could not be reached, or an error of our own."""
LOOK_SECONDS: Final = 1.0
"""Between two looks at what is waited for."""
STUCK_SECONDS: Final = 30.0
"""A loop that has not come round for so long is not alive."""
_PULSE_SECONDS: Final = 0.25
"""Between two looks of the thread."""
_LATE_SECONDS: Final = BEAT_SECONDS + 0.5
"""After so long without a sign of life the thread gives one."""


@dataclass(slots=True, eq=False)
class Lease:
    """A lease that this replica has."""

    name: str
    token: str
    """Of this taking of it: what an earlier one does late means nothing."""
    before: LeaseRow | None = None
    """As it was stored until then."""
    feed: FeedRow | None = None
    """As it was then, if the lease is on one."""
    limit: asyncio.Timeout | None = None
    """Ends the work under it when it is lost; None: nothing has begun."""
    tell: Callable[[], str] = str
    """Says how far the work is, for the others."""
    outcome: str = ""
    """What they are told at the end."""

    @property
    def is_begun(self) -> bool:
        """Whether something works under it, or did."""
        return self.limit is not None


@dataclass(slots=True, eq=False)
class Wait:
    """Somebody here who waits until a lease may be free."""

    name: str
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    progress: str = ""
    """How far its holder was at the last look."""


class Replica:
    """One process; `run` goes on as long as it is used."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.store = store
        self._clock = clock
        self.name = secrets.token_hex(8)
        self.replicas = 1
        """How many there are, as far as is known."""
        self.is_forgotten = True
        """Whether the database may have lost who was at what; for whoever takes that up to reset."""
        self.held: dict[str, Lease] = {}
        self._sign = ("", -math.inf)
        """The last sign of life: under which name, and when it was sent."""
        self._seen_at = clock()
        """When the loop was seen to come round."""
        self._failure: StoreError | OverloadedError | None = None
        """Why the last sign of life could not be given."""
        self._unused = set[tuple[str, str]]()
        """What it had by the last sign of life, and nothing worked under: name and token."""
        self._ends: dict[str, tuple[str, str, str]] = {}
        """By token: what the database is to hear of."""
        self._has_ended = asyncio.Event()
        self._waits = set[Wait]()

    async def run(self) -> None:
        """Live until cancelled, whatever happens: without signs of life the others take it for dead."""
        is_over = threading.Event()
        threading.Thread(target=self._stand_in, args=(is_over,), name="pulse", daemon=True).start()
        try:
            while True:
                try:
                    async with asyncio.TaskGroup() as tasks:
                        tasks.create_task(self._keep_beating())
                        tasks.create_task(self._keep_ending())
                        tasks.create_task(self._keep_looking())
                except Exception:  # an error of our own
                    log.exception("background.failed", name="sharing")
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            is_over.set()

    # Its life

    @property
    def signed_at(self) -> float:
        """When the last sign of life was sent that the database has heard of."""
        return self._sign[1]

    @property
    def silent_seconds(self) -> float:
        """Since the last sign of life; endless where the others know of none under this name."""
        name, sent_at = self._sign
        return self._clock() - sent_at if name == self.name else math.inf

    @property
    def is_cut_off(self) -> bool:
        """Whether the others may take this one for dead."""
        return self.silent_seconds > CUT_OFF_SECONDS

    def require(self) -> None:
        """Make sure that the others take this one for alive, or raise `LeaseLostError`."""
        if self.is_cut_off:
            why = f": {self._failure}" if self._failure is not None else ""
            slug = self._failure.slug if isinstance(self._failure, StorageFullError) else ""
            raise LeaseLostError(f"cut off from the database that the replicas share{why}", slug=slug)

    async def beat(self) -> None:
        """Give a sign of life, and find out what has become of the leases.

        Raises:
            StoreError: The database failed.
            OverloadedError: It could not be reached.
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
        """Give back what nothing works under: who took it, or was to begin, has failed or was cancelled."""
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
        """Where the others may take it for dead, stop everything and be another one from now on."""
        if self._sign[0] != self.name or not self.is_cut_off:
            return False
        held, name, self.name = list(self.held.values()), self.name, secrets.token_hex(8)
        log.warning("replica.isolated", replica=name, stopped=sum(each.is_begun for each in held))
        for each in held:
            self._lose(each)
        self.wake()
        return True

    def _stand_in(self, is_over: threading.Event) -> None:
        """Give signs of life while the loop is late; in a thread."""
        while not is_over.wait(_PULSE_SECONDS):
            at, (name, sent_at) = self._clock(), self._sign
            is_stuck = at - self._seen_at > STUCK_SECONDS
            if name != self.name or is_stuck or not _LATE_SECONDS <= at - sent_at < CUT_OFF_SECONDS:
                continue
            with suppress(StoreError, OverloadedError):
                is_known = self.store.engine.write_in_thread(partial(leases.beat_replica_again, name=name))
                if is_known and self._sign == (name, sent_at):  # a name that was given up is none any more
                    self._sign = name, at

    async def leave(self) -> None:
        """Tell the others at once that this one has ended."""
        name, self.name = self.name, secrets.token_hex(8)
        if self._ends:
            await self.store.write_single(partial(leases.end, ends=list(self._ends.values())))
        # As `beat` does: a sign of life that is under way still would bring it back.
        await self.store.engine.write_at_once(partial(leases.leave_replicas, name=name))

    # Its leases

    async def take(
        self,
        name: str,
        wants: LeaseCondition = always,
        *,
        feed: int | None = None,
        takes_own: bool = True,
    ) -> tuple[Lease | None, LeaseResult]:
        """Take a lease if it can be had at once; the arguments are those of `leases.take`.

        Raises:
            StoreError: The database failed.
            OverloadedError: It could not be reached.
            LeaseLostError: The others may take this replica for dead.
        """
        self.require()
        take = partial(leases.take, name=name, replica=self.name, wants=wants)
        looked = await self.store.write_loosely(partial(take, feed=feed, takes_own=takes_own))
        if not looked.token:
            return None, looked
        lease = self.held[name] = Lease(name, looked.token, looked.before, looked.feed)
        return lease, looked

    @asynccontextmanager
    async def working(self, lease: Lease, tell: Callable[[], str] = str) -> AsyncIterator[None]:
        """Work under a lease, and give it back at the end, with its outcome.

        A refresh that is cancelled leaves it: at the end of the program the others take up its walk.

        Raises:
            LeaseLostError: It was lost in the middle.
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
        """Make sure, within a transaction, that a lease is still this one's, or raise `LeaseLostError`."""
        self.require()
        is_known = lease is not None and self.held.get(lease.name) is lease
        if lease is None or not is_known or not leases.is_held(db, lease.name, lease.token):
            raise LeaseLostError("another replica has taken over")

    def give_back(self, lease: Lease) -> None:
        """Have a lease given back as soon as the database can be reached."""
        self._drop(lease)
        self._ends.setdefault(lease.token, (lease.name, lease.token, lease.outcome))
        self._has_ended.set()

    def _lose(self, lease: Lease) -> None:
        """Stop the work: it is not this replica's any more."""
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

    # What others have

    @contextmanager
    def waiting(self, name: str) -> Iterator[Wait]:
        """Be woken when a lease may be free; from before it is looked at, so that no notice is missed.

        A notice of the database wakes whoever waits. One may be lost, and who dies sends none: so what is
        waited for is looked at each second, all of it in one query.
        """
        wait = Wait(name)
        self._waits.add(wait)
        try:
            yield wait
        finally:
            self._waits.remove(wait)

    def wait_for(self, name: str) -> Wait | None:
        """Return who waits for a lease here, if anybody does."""
        return next((each for each in self._waits if each.name == name), None)

    def wake(self, name: str | None = None) -> None:
        """Wake whoever waits for a lease; without a name everybody: notices may have been lost."""
        for wait in self._waits:
            if name in (None, wait.name):
                wait.woken.set()

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
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
