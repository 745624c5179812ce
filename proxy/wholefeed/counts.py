"""Counters of events, incremented where the event is logged, for `/metrics`.

Plain numbers cost less than a microsecond. Keys never contain text of a publisher or a reader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from wholefeed.core.slugs import SLUGS

# From a fresh 304 out of memory to the patience of readers; 8: limits.respond_within_seconds.
ANSWER_SECONDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 8.0, 10.0, 30.0),
)
FETCH_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0)
WALK_SECONDS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)

TASKS: Final = ("house-keeping", "polling", "archive", "lists", "texts", "intakes", "hosts", "taking-over")
"""Background tasks; a sum needs a first 0 to show an increase."""

NONE: Final = "none"


class Durations:
    """Counts of durations by range; `bounds` are the ranges' ascending upper ends in seconds."""

    __slots__ = ("bounds", "numbers", "total_seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.numbers = [0] * (len(bounds) + 1)
        self.total_seconds = 0.0

    def add(self, seconds: float) -> None:
        self.numbers[bisect_left(self.bounds, seconds)] += 1
        self.total_seconds += seconds


@dataclass(slots=True)
class Counts:
    answers: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """By route, state and status; 0: the reader left before."""
    answer_seconds: dict[str, Durations] = field(default_factory=dict)
    """By route."""
    answer_bytes: int = 0
    aborted: int = 0
    problems: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=lambda: Counter(memory=0, store=0, publisher=0))
    """Answers with a feed from memory, the store, or a publisher waited for."""
    pages: Counter[str] = field(default_factory=lambda: Counter(first=0, other=0))
    """Requests for pages of feeds: the `first` has the newest entries."""
    documents: Counter[str] = field(default_factory=lambda: Counter({"fetched": 0, "not-modified": 0}))
    failures: Counter[str] = field(default_factory=Counter)
    failed_guesses: int = 0
    unshared: int = 0
    """Requests to publishers while the shared database did not respond."""
    fetch_seconds: Durations = field(default_factory=lambda: Durations(FETCH_SECONDS))
    wire_bytes: int = 0
    body_bytes: int = 0
    look_ahead: Counter[str] = field(default_factory=lambda: Counter(hit=0, miss=0))
    """Fetches ahead of a walk: `hit` if its path came to them."""
    walks_begun: int = 0
    walks: Counter[str] = field(default_factory=Counter)
    """By ending: `end`, or the first missing document's slug."""
    walk_seconds: Durations = field(default_factory=lambda: Durations(WALK_SECONDS))
    publications: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By state and reason; refreshes without a change do not count."""
    failed_refreshes: Counter[str] = field(default_factory=Counter)
    replays: int = 0
    imports: Counter[str] = field(default_factory=lambda: Counter(taken=0, known=0, refused=0))
    looks: Counter[str] = field(default_factory=lambda: Counter(listed=0, nothing=0))
    evicted: int = 0
    troubles: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(TASKS, 0)))

    def count_answer(self, route: str, state: str, status: int, seconds: float, body_bytes: int) -> None:
        self.answers[route, state, status] += 1
        durations = self.answer_seconds.get(route)
        if durations is None:
            durations = self.answer_seconds[route] = Durations(ANSWER_SECONDS)
        durations.numbers[bisect_left(ANSWER_SECONDS, seconds)] += 1  # as `add` does, without the call
        durations.total_seconds += seconds
        self.answer_bytes += body_bytes

    def count_refusal(self, slug: str) -> None:
        self.problems[_known(slug)] += 1

    def count_failure(self, slug: str, *, is_guess: bool = False) -> None:
        if is_guess:
            self.failed_guesses += 1
        else:
            self.failures[_known(slug)] += 1

    def count_transfer(self, wire_bytes: int, body_bytes: int, seconds: float) -> None:
        self.wire_bytes += wire_bytes
        self.body_bytes += body_bytes
        self.fetch_seconds.add(seconds)

    def walk_ended(self, ending: str, seconds: float) -> None:
        self.walks[ending if ending == "end" else _known(ending)] += 1
        self.walk_seconds.add(seconds)

    def count_publication(self, state: str, reason: str) -> None:
        self.publications[state, reason if reason == NONE else _known(reason)] += 1

    def refresh_failed(self, slug: str) -> None:
        self.failed_refreshes[_known(slug)] += 1


def _known(slug: str) -> str:
    return slug if slug in SLUGS else "other"
