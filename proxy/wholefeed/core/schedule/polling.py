"""When a known feed is asked for unasked, and how such polls are spread over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SHORTEST_PAUSE_SECONDS: Final = 0.05
"""Between the starts of two polls, however many feeds there are."""


@dataclass(frozen=True, slots=True)
class Times:
    """What it is measured against whether a feed is due."""

    now: float
    """Epoch seconds."""
    interval_seconds: float
    """Between two polls of a feed."""
    longest_seconds: float
    """The furthest that a publisher's freshness, or the next attempt, can be ahead."""


def poll_due_at(checked_at: float, fresh_until: float, times: Times) -> float:
    """Return the instant from which a feed is polled: an interval after the last time, once it is stale.

    `fresh_until` is where the publisher's freshness ends (RFC 9111, section 4.2) or, after a failure, the
    next attempt: nobody is asked sooner than they allow. An instant that only a clock that has jumped can
    have written (docs/faults.md row 73) counts as none.

    Args:
        checked_at: When the publisher was last heard of, epoch seconds.
        fresh_until: Epoch seconds.
        times: Now, and the configured ones.
    """
    now = times.now
    own = checked_at + times.interval_seconds if checked_at <= now else now
    publisher = fresh_until if fresh_until <= now + times.longest_seconds else now
    return max(own, publisher)


def pause_seconds(*, interval_seconds: float, feeds: int, jitter: float, longest_seconds: float) -> float:
    """Return how long to wait between the starts of two polls, so that they spread evenly.

    All feeds together come by in half an interval to a whole one, unless `SHORTEST_PAUSE_SECONDS` or
    `longest_seconds` says otherwise; however many are due at once, after a start for example.

    Args:
        interval_seconds: Between two polls of a feed.
        feeds: How many are known.
        jitter: From 0 to 1.
        longest_seconds: Largest result; few feeds need not be spread over hours.
    """
    even_seconds = interval_seconds / max(feeds, 1) * (1 - jitter / 2)
    return min(max(even_seconds, SHORTEST_PAUSE_SECONDS), longest_seconds)
