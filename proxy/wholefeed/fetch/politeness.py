"""Politeness: limits on requests at once, at one host and in all, and pauses for hosts.

A free place goes to the host with the fewest requests under way, so a slow host delays no other. A host
is a name without its port, except that reachability counts by port (docs/faults.md rows 24, 55).
`wholefeed.fetch.hosts` decides; this module queues and waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

from wholefeed.config.tables import FetchConfig
from wholefeed.errors import DocumentError, PublisherError, PublisherTimeoutError, QueueFullError
from wholefeed.fetch.hosts import BACKOFF, TIMEOUTS, Change, Host, Pace, Start
from wholefeed.fetch.publishers import NO_PUBLISHERS, Publishers
from wholefeed.logs import get_logger

log = get_logger()

MAX_HOSTS: Final = 4096
MAX_WAITING: Final = 1024
"""Over all hosts."""
MAX_WAITING_PER_HOST: Final = 256
RETRY_AFTER_SECONDS: Final = 10.0


class HostGate:
    """A gate that gives requests their places; belongs to one event loop.

    `turns` arbitrates between processes that ask the same hosts.
    """

    def __init__(
        self,
        *,
        concurrency: int,
        per_host: int,
        min_interval_seconds: float = 0.0,
        publishers: Publishers = NO_PUBLISHERS,
        turns: HostTurns | None = None,
        clock: Callable[[], float] = time.monotonic,
        call_later: Callable[[float, Callable[[], None]], Any] | None = None,
    ) -> None:
        self._concurrency = concurrency
        self._most_before_polled = concurrency - concurrency // 4
        self._per_host = per_host
        self._min_interval_seconds = min_interval_seconds
        self._publishers = publishers
        self._turns = turns
        self._clock = clock
        self._call_later = call_later
        self.running = 0  # requests that have a place
        self.waiting = 0  # and those that wait for one
        self._hosts: dict[str, Host] = {}  # the one that was asked least recently first
        self._queued: dict[Host, None] = {}  # those with a queue, the least recently served first
        self._timer: Any = None  # as `call_later` returns it

    @classmethod
    def from_config(
        cls, fetch: FetchConfig, publishers: Publishers = NO_PUBLISHERS, *, turns: HostTurns | None = None
    ) -> Self:
        return cls(
            concurrency=fetch.concurrency,
            per_host=fetch.concurrency_per_host,
            min_interval_seconds=fetch.min_interval_per_host_seconds,
            publishers=publishers,
            turns=turns,
        )

    def __len__(self) -> int:
        return len(self._hosts)

    @asynccontextmanager
    async def slot(
        self,
        name: str,
        port: int,
        *,
        url: str,
        is_new: bool = False,
        is_polled: bool = False,
        at_most: int | None = None,
    ) -> AsyncIterator[Slot]:
        """Hold a place at a host, after a wait if need be; the last three arguments as in `Manner`.

        Raises:
            PublisherError: The host rests, or begins to while this request waits.
            QueueFullError: Too many requests wait.
        """
        host = self._host(name)
        host.pace.limit(at_most)
        try:
            slot = await self._wait(host, port, url, is_new=is_new, is_polled=is_polled)
            try:
                yield slot
            finally:
                self._leave(slot)
        finally:
            is_known_for = host.is_busy or not host.is_unremarkable(self._clock())
            if not is_known_for and self._hosts.get(name) is host:
                del self._hosts[name]

    def blocked_seconds(self, name: str, port: int = 0) -> float:
        """Return a port's seconds of rest; other processes' knowledge dates from this one's last turn."""
        host = self._hosts.get(name)
        return 0.0 if host is None else host.rest_seconds(port, self._clock())

    def _host(self, name: str) -> Host:
        host = self._hosts.pop(name, None)
        if host is None:
            host = Host(name, Pace(self._per_host))
            # Busy hosts stay; of the others the least recently asked one goes.
            if len(self._hosts) >= MAX_HOSTS:
                idle = next((each for each in self._hosts.values() if not each.is_busy), None)
                if idle is not None:
                    del self._hosts[idle.name]
        self._hosts[name] = host
        return host

    async def _wait(self, host: Host, port: int, url: str, *, is_new: bool, is_polled: bool) -> Slot:
        waiter = _Waiter(port, url, is_new, is_polled, asyncio.get_running_loop().create_future())
        if (refusal := _refusal(host, waiter, self._clock())) is not None:
            raise refusal
        if self.waiting >= MAX_WAITING or len(host.waiting) >= MAX_WAITING_PER_HOST:
            message = "too many requests wait for a publisher already"
            raise QueueFullError(message, url=url, retry_after_seconds=RETRY_AFTER_SECONDS)
        # readers' requests go before those that no reader waits for
        place = len(host.waiting) if is_polled else sum(not each.is_polled for each in host.waiting)
        host.waiting.insert(place, waiter)
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
        now = self._clock()
        while self._queued and self.running < self._concurrency:
            ready = [host for host in self._queued if self._may_start(host, now)]
            host = min(ready, key=lambda each: each.running, default=None)
            if host is None:
                break
            self._begin(host, now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        starts_at = [each.next_start_at for each in self._queued if each.next_start_at > now]
        if starts_at:  # of hosts whose requests are spaced out
            call_later = self._call_later or asyncio.get_running_loop().call_later
            self._timer = call_later(min(starts_at) - now, self._dispatch)

    def _may_start(self, host: Host, now: float) -> bool:
        if host.running >= host.pace.allowed or now < host.next_start_at:
            return False
        if host.waiting[0].is_polled and self.running >= self._most_before_polled:
            return False
        return self._turns is None or self._turns.is_ours(host, self._has_turn)

    def _has_turn(self, host: Host) -> None:
        # The knowledge of other processes counts from now on.
        if self._hosts.get(host.name) is host:
            self._refuse_waiting(host)
        self._dispatch()

    def _begin(self, host: Host, now: float) -> None:
        waiter = host.waiting[0]
        self._take_from_queue(host, waiter)
        if host in self._queued:  # the others are served first
            self._queued[host] = self._queued.pop(host)
        if waiter.turn.done():  # cancelled just now
            return
        if (refusal := _refusal(host, waiter, now)) is not None:
            waiter.turn.set_result(refusal)
            return
        host.running += 1
        self.running += 1
        if self._turns is not None:
            self._turns.began(host)
        own = self._publishers.of_host(host.name)
        interval_seconds = (own and own.min_interval_seconds) or self._min_interval_seconds
        start = host.begin(waiter.port, now=now, interval_seconds=interval_seconds)
        waiter.turn.set_result(Slot(host, start, self._clock, self._refuse_waiting))

    def _refuse_waiting(self, host: Host) -> None:
        now = self._clock()
        for waiter in list(host.waiting):
            if (refusal := _refusal(host, waiter, now)) is not None:
                self._take_from_queue(host, waiter)
                if not waiter.turn.done():
                    waiter.turn.set_result(refusal)

    def _take_from_queue(self, host: Host, waiter: _Waiter) -> None:
        if waiter in host.waiting:
            host.waiting.remove(waiter)
            self.waiting -= 1
        if not host.waiting:
            self._queued.pop(host, None)

    def _leave(self, slot: Slot) -> None:
        slot.end()
        slot.host.running -= 1
        self.running -= 1
        if self._turns is not None:
            self._turns.ended(slot.host)
        if self._queued:
            self._dispatch()


@dataclass(slots=True, eq=False)
class Slot:
    """The place of a request; without a note it teaches nothing about the host."""

    host: Host
    _start: Start
    _clock: Callable[[], float]
    _on_news: Callable[[Host], None]
    """Called when the host may rest from now on."""
    _is_told: bool = False

    def note_answer(self, *, is_strained: bool, rest_seconds: float | None = None) -> None:
        now = self._clock()
        change = self.host.learn(self._start, now=now, is_strained=is_strained, rest_seconds=rest_seconds)
        self._tell(change, now)
        if is_strained or rest_seconds is not None:
            self._on_news(self.host)

    def note_failure(self, slug: str, *, is_heard: bool) -> None:
        now = self._clock()
        change = self.host.learn(self._start, now=now, slug=slug, is_heard=is_heard)
        self._tell(change, now)
        self._on_news(self.host)

    def end(self) -> None:
        if not self._is_told:
            self.host.give_up(self._start)

    def _tell(self, change: Change, now: float) -> None:
        self._is_told = True
        port = self._start.port
        if change == "recovered":
            log.info("host.recovered", host=self.host.name, port=port)
        elif change == "rested":
            breaker = self.host.breakers[port]
            seconds = round(breaker.refused_seconds(now), 3)
            log.warning("host.rested", host=self.host.name, port=port, slug=breaker.reason, seconds=seconds)


class HostTurns(Protocol):
    """Arbitration between processes: one asks a host at a time.

    Where arbitration fails, each process follows its own rules.
    """

    def is_ours(self, host: Host, on_turn: Callable[[Host], None]) -> bool:
        """Return whether this process may begin a request; if not, ask for the turn.

        The host takes over the knowledge of the process before. `on_turn` runs when the turn comes, or may be
        asked for again.
        """

    def began(self, host: Host) -> None:
        """Note a request's start."""

    def ended(self, host: Host) -> None:
        """Note a request's end."""


@dataclass(slots=True, eq=False)
class _Waiter:
    port: int
    url: str
    is_new: bool
    is_polled: bool
    turn: asyncio.Future[Any]
    """Result: the request's slot, or the error that refuses it."""


def _refusal(host: Host, waiter: _Waiter, now: float) -> DocumentError | None:
    rest = host.rest(waiter.port, is_new=waiter.is_new, now=now)
    if rest is None:
        return None
    slug, seconds = rest
    if slug == BACKOFF:
        message = f"the publisher asked for a pause of {seconds:.0f} s"
    else:
        message = f"the host could not be reached a moment ago and is left alone for {seconds:.0f} s"
    error = PublisherTimeoutError if slug in TIMEOUTS else PublisherError
    return error(message, url=waiter.url, slug=slug, retry_after_seconds=seconds)
