"""Politeness: how many requests run at once, at one host and in all, and when a host wants to be left alone.

A request takes a place at its host first and one of the places in all last, so a host with a long queue
never holds more places in all than it may use at once, and the others pass it. Queues are first come,
first served. A host that is neither busy, spaced out nor backing off is forgotten.

    gate = HostGate(concurrency=32, per_host=4)
    async with gate.slot("example.org", url=url):
        ...
    gate.penalize("example.org", gate.now() + 120)      # Retry-After: 120

A host is a host name: ports do not multiply what one machine has to bear (FAULTS row 24). What the limit
of one host is stands in `_Host.places`; limits that adapt to how a host answers belong there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from proxy.errors import PublisherError

BACKOFF_STATUSES: Final = frozenset({429, 503})
"""Statuses whose Retry-After counts for the whole host (FAULTS row 55)."""


_FIRST_SWEEP: Final = 1024
_FIRST_PAUSE_SECONDS: Final = 0.5
_LONGEST_PAUSE_SECONDS: Final = 8.0


def backoff_seconds(attempt: int, jitter: float) -> float:
    """Return how long to wait before a request is tried again: 0.5 s, doubling to 8 s, less up to half.

    Args:
        attempt: How often it was tried again already.
        jitter: From 0 to 1; spreads tries that failed together.
    """
    pause_seconds = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(attempt, 16), _LONGEST_PAUSE_SECONDS)
    return float(pause_seconds * (1 - jitter / 2))


@dataclass(slots=True)
class _Host:
    """What is known of one host. Instants are those of the gate's clock."""

    places: asyncio.Semaphore
    requests: int = 0
    """Running and queued."""
    next_start_at: float = 0.0
    blocked_until: float = 0.0

    def is_idle(self, now: float) -> bool:
        return self.requests == 0 and now >= self.next_start_at and now >= self.blocked_until


class HostGate:
    """Hands out the places; belongs to one event loop.

    Args:
        concurrency: Requests at once in all.
        per_host: Requests at once at one host.
        min_interval_seconds: Between the starts of two requests at one host.
        clock: Monotonic, in seconds.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        *,
        concurrency: int,
        per_host: int,
        min_interval_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._places = asyncio.Semaphore(concurrency)
        self._per_host = per_host
        self._min_interval_seconds = min_interval_seconds
        self._clock = clock
        self._sleep = sleep
        self._hosts: dict[str, _Host] = {}
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        """Return how many hosts are remembered."""
        return len(self._hosts)

    def now(self) -> float:
        """Return the present instant of the gate's clock."""
        return self._clock()

    @asynccontextmanager
    async def slot(self, host: str, *, url: str) -> AsyncIterator[None]:
        """Hold a place at a host, waiting for one if need be.

        Raises:
            PublisherError: `host-backoff`: the host asked to be left alone, with the seconds that remain;
                also when it does so while this request waits.
        """
        self._check_backoff(host, url)
        state = self._state(host)
        state.requests += 1
        try:
            async with state.places:
                self._check_backoff(host, url)
                await self._wait_for_turn(state)
                async with self._places:
                    self._check_backoff(host, url)
                    yield
        finally:
            state.requests -= 1
            if state.is_idle(self._clock()):
                self._hosts.pop(host, None)

    def penalize(self, host: str, until: float) -> None:
        """Refuse requests to a host until an instant of the gate's clock. The latest instant counts."""
        state = self._state(host)
        state.blocked_until = max(state.blocked_until, until)

    def blocked_seconds(self, host: str) -> float:
        """Return for how long requests to a host are still refused; 0 when they are not."""
        state = self._hosts.get(host)
        return 0.0 if state is None else max(0.0, state.blocked_until - self._clock())

    async def _wait_for_turn(self, state: _Host) -> None:
        if self._min_interval_seconds <= 0:
            return
        now = self._clock()
        start_at = max(now, state.next_start_at)
        state.next_start_at = start_at + self._min_interval_seconds
        if start_at > now:
            await self._sleep(start_at - now)

    def _check_backoff(self, host: str, url: str) -> None:
        remaining_seconds = self.blocked_seconds(host)
        if remaining_seconds > 0:
            raise PublisherError(
                f"the publisher asked not to be asked again for {remaining_seconds:.0f} s",
                url=url,
                slug="host-backoff",
                retry_after_seconds=remaining_seconds,
            )

    def _state(self, host: str) -> _Host:
        state = self._hosts.get(host)
        if state is None:
            if len(self._hosts) >= self._sweep_at:
                self._forget_idle_hosts()
            state = self._hosts[host] = _Host(asyncio.Semaphore(self._per_host))
        return state

    def _forget_idle_hosts(self) -> None:
        now = self._clock()
        self._hosts = {host: state for host, state in self._hosts.items() if not state.is_idle(now)}
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._hosts))
