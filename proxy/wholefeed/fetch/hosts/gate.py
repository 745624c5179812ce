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
from typing import Final, Protocol

from wholefeed.errors import QueueFullError
from wholefeed.fetch.hosts.breaker import UNHEARD
from wholefeed.fetch.hosts.host import TIMEOUTS, Host, Waiter
from wholefeed.fetch.hosts.pace import Pace
from wholefeed.loggers import get_logger

log = get_logger()

MAX_HOSTS: Final = 4096
MAX_WAITING: Final = 1024
"""Requests that wait for a place, in all."""
MAX_WAITING_PER_HOST: Final = 256
RETRY_AFTER_SECONDS: Final = 10.0


class Timer(Protocol):
    """What `asyncio.AbstractEventLoop.call_later` returns."""

    def cancel(self) -> None:
        """Do not call any more."""


class Slot:
    """A request that has its place. Not told anything, it says nothing about the host."""

    def __init__(self, gate: HostGate, host: Host, port: int) -> None:
        self._gate = gate
        self.host = host
        self._port = port
        self._started_at = gate.now()
        self._is_exception = self._started_at < host.blocked_until
        breaker = host.breakers.get(port)
        self._is_probe = breaker is not None and breaker.begun()

    def answered(self, *, is_strained: bool, rest_seconds: float | None = None) -> None:
        """A whole answer came.

        Args:
            is_strained: Whether its status is one of `BACKOFF_STATUSES`.
            rest_seconds: For how long it asks that the host be left alone (Retry-After).
        """
        self._heard()
        if is_strained:
            self._strained()
        else:
            self.host.pace.answered()
        if rest_seconds is not None:
            self._gate.penalize(self.host.name, self._gate.now() + rest_seconds)
        if is_strained and self._is_exception:
            self.host.closed_until = self.host.blocked_until

    def failed(self, slug: str, *, is_heard: bool) -> None:
        """No whole answer came; whether its head did."""
        if is_heard or slug not in UNHEARD:
            self._heard()
        else:
            self._is_probe = False
            self._gate.note_unheard(self.host, self._port, slug)
        if slug in TIMEOUTS:
            self._strained()

    def end(self) -> None:
        """The request is over."""
        breaker = self.host.breakers.get(self._port)
        if self._is_probe and breaker is not None:
            breaker.given_up()

    def _heard(self) -> None:
        self._is_probe = False
        self._gate.note_heard(self.host, self._port)

    def _strained(self) -> None:
        self.host.pace.strained(started_at=self._started_at, now=self._gate.now())


class HostGate:
    """Hands out the places; belongs to one event loop.

    Args:
        concurrency: Requests at once in all.
        per_host: Requests at once at one host, at most.
        min_interval_seconds: Between the starts of two requests at one host.
        max_waiting_per_host: Requests that wait for a place at one host.
        retry_after_seconds: What is said to whom the queue has no room for.
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
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], Timer] | None = None,
    ) -> None:
        self._concurrency = concurrency
        self._per_host = per_host
        self._min_interval_seconds = min_interval_seconds
        self.max_waiting_per_host = max_waiting_per_host
        self._retry_after_seconds = retry_after_seconds
        self._clock = clock
        self._call_later = call_later
        self.running = 0
        """How many requests have a place."""
        self.waiting = 0
        """How many wait for one."""
        self._hosts: dict[str, Host] = {}  # the one that was asked least recently first
        self._queued: dict[Host, None] = {}  # those with a queue, the least recently served first
        self._timer: Timer | None = None

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
        state = self._host(host)
        state.pace.limit(at_most)
        try:
            waiter = Waiter(port, url, asyncio.get_running_loop().create_future(), is_new)
            slot = await self._turn(state, waiter)
            try:
                yield slot
            finally:
                self._leave(slot)
        finally:
            if state.is_unremarkable(self._clock()) and self._hosts.get(host) is state:
                del self._hosts[host]

    def penalize(self, host: str, until: float) -> None:
        """Refuse requests to a host until an instant of the gate's clock. The latest instant counts."""
        state = self._host(host)
        state.blocked_until = max(state.blocked_until, until)
        self._refuse_waiting(state)

    def blocked_seconds(self, host: str, port: int = 0) -> float:
        """Return for how long a host, or a port of it, is left alone; 0 when it is not."""
        if (state := self._hosts.get(host)) is None:
            return 0.0
        now, breaker = self._clock(), state.breakers.get(port)
        return max(state.blocked_until - now, 0.0 if breaker is None else breaker.refused_seconds(now))

    def note_heard(self, host: Host, port: int) -> None:
        """Something was heard of a port: it is as good as any."""
        breaker = host.breakers.pop(port, None)
        if breaker is not None and not breaker.is_closed:
            log.info("host.recovered", host=host.name, port=port)

    def note_unheard(self, host: Host, port: int, slug: str) -> None:
        """Nothing was heard of a port."""
        now = self._clock()
        breaker = host.breaker(port)
        was_closed = breaker.is_closed
        breaker.failed(slug, now=now)
        if was_closed and not breaker.is_closed:
            seconds = round(breaker.refused_seconds(now), 3)
            log.warning("host.rested", host=host.name, port=port, slug=slug, seconds=seconds)
        self._refuse_waiting(host)

    # The queues

    async def _turn(self, host: Host, waiter: Waiter) -> Slot:
        """Wait until a request may begin; it is counted as running then."""
        if (refusal := host.refusal(waiter, self._clock())) is not None:
            raise refusal
        if self.waiting >= MAX_WAITING or len(host.waiting) >= self.max_waiting_per_host:
            message = "too many requests wait for a publisher already"
            raise QueueFullError(message, url=waiter.url, retry_after_seconds=self._retry_after_seconds)
        host.waiting.append(waiter)
        self.waiting += 1
        self._queued.setdefault(host)
        self._dispatch()
        try:
            outcome = await waiter.turn
        except asyncio.CancelledError:
            self._take_from_queue(host, waiter)
            if not waiter.turn.cancelled() and isinstance(waiter.turn.result(), Slot):
                self._leave(waiter.turn.result())
            raise
        if isinstance(outcome, Slot):
            return outcome
        raise outcome

    def _dispatch(self) -> None:
        """Let requests begin, as many as may."""
        now = self._clock()
        while self.running < self._concurrency:
            ready = (host for host in self._queued if host.may_start(now))
            host = min(ready, key=lambda each: each.running, default=None)
            if host is None:
                break
            self._begin(host, now)
        self._wake_up_later(now)

    def _begin(self, host: Host, now: float) -> None:
        waiter = host.waiting[0]
        self._take_from_queue(host, waiter)
        if host in self._queued:  # the others are served first
            self._queued[host] = self._queued.pop(host)
        if waiter.turn.done():  # cancelled just now
            return
        refusal = host.refusal(waiter, now)
        if refusal is not None:
            waiter.turn.set_result(refusal)
            return
        host.running += 1
        self.running += 1
        host.next_start_at = now + self._min_interval_seconds
        waiter.turn.set_result(Slot(self, host, waiter.port))

    def _wake_up_later(self, now: float) -> None:
        """See to it that a host whose requests are spaced out is served when it may be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        starts_at = [host.next_start_at for host in self._queued if host.next_start_at > now]
        if starts_at:
            call_later = self._call_later or asyncio.get_running_loop().call_later
            self._timer = call_later(min(starts_at) - now, self._dispatch)

    def _refuse_waiting(self, host: Host) -> None:
        """Tell those that wait for a host which is left alone from now on."""
        for waiter in list(host.waiting):
            if (refusal := host.refusal(waiter, self._clock())) is not None:
                self._take_from_queue(host, waiter)
                if not waiter.turn.done():
                    waiter.turn.set_result(refusal)

    def _take_from_queue(self, host: Host, waiter: Waiter) -> None:
        if waiter in host.waiting:
            host.waiting.remove(waiter)
            self.waiting -= 1
        if not host.waiting:
            self._queued.pop(host, None)

    def _leave(self, slot: Slot) -> None:
        slot.end()
        slot.host.running -= 1
        self.running -= 1
        self._dispatch()

    def _host(self, name: str) -> Host:
        host = self._hosts.pop(name, None)
        if host is None:
            if len(self._hosts) >= MAX_HOSTS:
                self._forget_one()
            host = Host(name, Pace(self._per_host))
        self._hosts[name] = host
        return host

    def _forget_one(self) -> None:
        idle = next((name for name, host in self._hosts.items() if not host.is_busy), None)
        if idle is not None:
            del self._hosts[idle]
