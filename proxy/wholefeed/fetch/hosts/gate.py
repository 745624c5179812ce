"""Politeness: how many requests run at once, at one host and in all, and when a host is left alone.

Requests queue at their host. A place in all that becomes free goes to the host that holds the fewest, so a
host with a long queue, or a slow one, delays itself and nobody else; within a host it is first come, first
served. What a request found out is told to its slot:

    gate = HostGate(concurrency=32, per_host=4)
    async with gate.slot("example.org", 443, url=url) as slot:
        ...
        slot.answered(is_strained=True, rest_seconds=120)   # or slot.failed("timeout", is_heard=False)

A host is a host name, whatever the port, for everything that spares a machine: requests at once, their
spacing, Retry-After (docs/faults.md rows 24, 55). Whether it can be reached is known for each port by itself:
a closed one says nothing about the others, and no link to it stops a feed at another.

State is kept of hosts that are busy or known for something, `MAX_HOSTS` at most, those asked last.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, Self

from wholefeed.config.tables import FetchConfig
from wholefeed.errors import QueueFullError
from wholefeed.fetch.hosts.host import Host, Rest
from wholefeed.fetch.hosts.pace import Pace
from wholefeed.fetch.hosts.queue import Queue, Waiter, refusal_of
from wholefeed.fetch.hosts.shared import Entry, SharedHosts
from wholefeed.fetch.hosts.slot import Slot, log_change

MAX_HOSTS: Final = 4096
MAX_WAITING: Final = 1024
"""Requests that wait for a place, in all."""
MAX_WAITING_PER_HOST: Final = 256
RETRY_AFTER_SECONDS: Final = 10.0


class Timer(Protocol):
    """What `asyncio.AbstractEventLoop.call_later` returns."""

    def cancel(self) -> None:
        """Do not call any more."""


class HostGate:
    """Hands out the places; belongs to one event loop.

    Args:
        concurrency: Requests at once in all.
        per_host: Requests at once at one host, at most.
        min_interval_seconds: Between the starts of two requests at one host.
        max_waiting_per_host: Requests that wait for a place at one host.
        retry_after_seconds: What is said to whom the queue has no room for.
        shared: Where other processes ask the same hosts: what all of them share. A place here comes first, so
            that queues and their order are this process's own.
        clock: Monotonic, in seconds.
        call_later: Calls back after seconds; the default is the running loop's.
    """

    def __init__(
        self,
        *,
        concurrency: int,
        per_host: int,
        min_interval_seconds: float = 0.0,
        max_waiting_per_host: int = MAX_WAITING_PER_HOST,
        retry_after_seconds: float = RETRY_AFTER_SECONDS,
        shared: SharedHosts | None = None,
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
    ) -> None:
        self._concurrency = concurrency
        self._per_host = per_host
        self._min_interval_seconds = min_interval_seconds
        self.max_waiting_per_host = max_waiting_per_host
        self._retry_after_seconds = retry_after_seconds
        self._shared = shared
        self._clock = clock
        self._call_later = call_later
        self.running = 0
        """How many requests have a place."""
        self.waiting = 0
        """How many wait for one."""
        self._hosts: dict[str, Queue] = {}  # the one that was asked least recently first
        self._queued: dict[Queue, None] = {}  # those with a queue, the least recently served first
        self._timer: Timer | None = None

    @classmethod
    def from_config(cls, fetch: FetchConfig, *, shared: SharedHosts | None = None) -> Self:
        """Return a gate as the configuration has it."""
        return cls(
            concurrency=fetch.concurrency,
            per_host=fetch.concurrency_per_host,
            min_interval_seconds=fetch.min_interval_per_host_seconds,
            shared=shared,
        )

    def __len__(self) -> int:
        """Return how many hosts are remembered."""
        return len(self._hosts)

    def now(self) -> float:
        """Return the present instant of the gate's clock."""
        return self._clock()

    @asynccontextmanager
    async def slot(
        self, host: str, port: int, *, url: str, is_new: bool = False, at_most: int | None = None
    ) -> AsyncIterator[Slot]:
        """Hold a place at a host, waiting for one if need be; `is_new` as in `Waiter`, `at_most` in `Manner`.

        Raises:
            PublisherError: The host is left alone, be it from a moment on while this request waits. The slug
                says why (`host-backoff`: it asked for that), and for how long.
            QueueFullError: Too many wait already.
        """
        queue = self._queue(host)
        queue.host.pace.limit(at_most)
        try:
            slot = await self._turn(queue, port, url, is_new=is_new)
            entry = None
            try:
                if self._shared is not None:
                    entry = await self._share(self._shared, queue, slot, url, is_new=is_new, at_most=at_most)
                yield slot
            finally:
                self._leave(queue, slot)
                if self._shared is not None and entry is not None:
                    self._shared.leave(entry, slot.outcome)
        finally:
            if queue.is_unremarkable(self._clock()) and self._hosts.get(host) is queue:
                del self._hosts[host]

    def penalize(self, host: str, until: float) -> None:
        """Refuse requests to a host until an instant of the gate's clock. The latest instant counts."""
        queue = self._queue(host)
        queue.host.block(until)
        self._refuse_waiting(queue)

    def blocked_seconds(self, host: str, port: int = 0) -> float:
        """Return for how long a host, or a port of it, is left alone; 0 when it is not.

        What other processes have found out counts as of the last request to the host from here.
        """
        queue = self._hosts.get(host)
        return 0.0 if queue is None else queue.host.rest_seconds(port, self._clock())

    async def _share(
        self, shared: SharedHosts, queue: Queue, slot: Slot, url: str, *, is_new: bool, at_most: int | None
    ) -> Entry:
        """Take a place among all processes too, and learn what the others have found out."""
        host, port = queue.host, slot.start.port
        given = await shared.enter(host.name, port, is_new=is_new, at_most=at_most)
        now = self._clock()
        if isinstance(given, Rest):
            log_change(host, port, host.obey(given, port, is_new=is_new, now=now), now)
            self._refuse_waiting(queue)
            raise refusal_of(given, url)
        slot.start = replace(slot.start, at=now)
        if given.allowed is not None:
            host.pace.follow(given.allowed)
        return given

    # The queues

    async def _turn(self, queue: Queue, port: int, url: str, *, is_new: bool) -> Slot:
        """Wait until a request may begin; it is counted as running then."""
        now = self._clock()
        if (refusal := queue.refusal(port, url, is_new=is_new, now=now)) is not None:
            raise refusal
        if self.waiting >= MAX_WAITING or len(queue.waiting) >= self.max_waiting_per_host:
            message = "too many requests wait for a publisher already"
            raise QueueFullError(message, url=url, retry_after_seconds=self._retry_after_seconds)
        if not self._queued and self.running < self._concurrency and queue.may_start(now):
            return self._started(queue, port, now)  # nobody is overtaken
        waiter = Waiter(port, url, asyncio.get_running_loop().create_future(), is_new)
        queue.waiting.append(waiter)
        self.waiting += 1
        self._queued.setdefault(queue)
        self._dispatch()
        try:
            outcome = await waiter.turn
        except asyncio.CancelledError:
            self._take_from_queue(queue, waiter)
            if not waiter.turn.cancelled() and isinstance(waiter.turn.result(), Slot):
                self._leave(queue, waiter.turn.result())
            raise
        if isinstance(outcome, Slot):
            return outcome
        raise outcome

    def _dispatch(self) -> None:
        """Let requests begin, as many as may."""
        now = self._clock()
        while self.running < self._concurrency:
            ready = (queue for queue in self._queued if queue.may_start(now))
            queue = min(ready, key=lambda each: each.running, default=None)
            if queue is None:
                break
            self._begin(queue, now)
        self._wake_up_later(now)

    def _begin(self, queue: Queue, now: float) -> None:
        waiter = queue.waiting[0]
        self._take_from_queue(queue, waiter)
        if queue in self._queued:  # the others are served first
            self._queued[queue] = self._queued.pop(queue)
        if waiter.turn.done():  # cancelled just now
            return
        refusal = queue.refusal(waiter.port, waiter.url, is_new=waiter.is_new, now=now)
        waiter.turn.set_result(self._started(queue, waiter.port, now) if refusal is None else refusal)

    def _started(self, queue: Queue, port: int, now: float) -> Slot:
        """Let a request begin, of which nothing says that it may not."""
        queue.running += 1
        self.running += 1
        start = queue.host.begin(port, now=now, interval_seconds=self._min_interval_seconds)
        return Slot(queue.host, start, self._clock, partial(self._refuse_waiting, queue))

    def _wake_up_later(self, now: float) -> None:
        """See to it that a host whose requests are spaced out is served when it may be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        starts_at = [each.host.next_start_at for each in self._queued if each.host.next_start_at > now]
        if starts_at:
            call_later = self._call_later or asyncio.get_running_loop().call_later
            self._timer = call_later(min(starts_at) - now, self._dispatch)

    def _refuse_waiting(self, queue: Queue) -> None:
        """Tell those that wait for a host which is left alone from now on."""
        for waiter in list(queue.waiting):
            refusal = queue.refusal(waiter.port, waiter.url, is_new=waiter.is_new, now=self._clock())
            if refusal is not None:
                self._take_from_queue(queue, waiter)
                if not waiter.turn.done():
                    waiter.turn.set_result(refusal)

    def _take_from_queue(self, queue: Queue, waiter: Waiter) -> None:
        if waiter in queue.waiting:
            queue.waiting.remove(waiter)
            self.waiting -= 1
        if not queue.waiting:
            self._queued.pop(queue, None)

    def _leave(self, queue: Queue, slot: Slot) -> None:
        slot.end()
        queue.running -= 1
        self.running -= 1
        if self._queued:
            self._dispatch()

    def _queue(self, name: str) -> Queue:
        queue = self._hosts.pop(name, None)
        if queue is None:
            if len(self._hosts) >= MAX_HOSTS:
                self._forget_one()
            queue = Queue(Host(name, Pace(self._per_host)))
        self._hosts[name] = queue
        return queue

    def _forget_one(self) -> None:
        idle = next((name for name, queue in self._hosts.items() if not queue.is_busy), None)
        if idle is not None:
            del self._hosts[idle]
