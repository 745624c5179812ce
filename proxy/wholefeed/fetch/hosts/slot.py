"""A request that has its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wholefeed.fetch.hosts.host import Change, Host, Outcome, Start
from wholefeed.loggers import get_logger

log = get_logger()

_GOOD: Final = Outcome()
"""Of nearly every request."""


class Slot:
    """A request that has its place. Not told anything, it says nothing about the host.

    Args:
        host: What is known of it, which this adds to.
        start: How the request was begun.
        clock: The gate's.
        on_news: Called when the host may be left alone from now on.
    """

    def __init__(
        self, host: Host, start: Start, clock: Callable[[], float], on_news: Callable[[], None]
    ) -> None:
        self.host = host
        self.start = start
        self.outcome: Outcome | None = None
        """What it has found out so far."""
        self._clock = clock
        self._on_news = on_news

    def answered(self, *, is_strained: bool, rest_seconds: float | None = None) -> None:
        """A whole answer came.

        Args:
            is_strained: Whether its status is one of `BACKOFF_STATUSES`.
            rest_seconds: For how long it asks that the host be left alone (Retry-After).
        """
        is_good = not is_strained and rest_seconds is None
        self._learn(_GOOD if is_good else Outcome(is_strained=is_strained, rest_seconds=rest_seconds))

    def failed(self, slug: str, *, is_heard: bool) -> None:
        """No whole answer came; whether its head did."""
        self._learn(Outcome(slug=slug, is_heard=is_heard))

    def end(self) -> None:
        """The request is over."""
        if self.outcome is None:
            self.host.give_up(self.start)

    def _learn(self, outcome: Outcome) -> None:
        self.outcome = outcome
        now = self._clock()
        change = self.host.learn(self.start, outcome, now=now)
        if outcome is _GOOD and change is None:
            return
        log_change(self.host, self.start.port, change, now)
        if not outcome.is_good:
            self._on_news()


def log_change(host: Host, port: int, change: Change | None, now: float) -> None:
    """Log what has become of a port of a host."""
    if change is Change.RECOVERED:
        log.info("host.recovered", host=host.name, port=port)
    elif change is Change.RESTED:
        breaker = host.breakers[port]
        seconds = round(breaker.refused_seconds(now), 3)
        log.warning("host.rested", host=host.name, port=port, slug=breaker.reason, seconds=seconds)
