"""What happens, counted: each part adds where it logs the event, and `/metrics` shows the sums.

    counts = Counts()                       # one an application; `wholefeed.app` hands it down
    counts.documents["not-modified"] += 1
    counts.failed("timeout")

Plain numbers, so that counting costs less than a microsecond and needs no library, and does not depend on
which events a level of the log lets through. The keys of a table are few: routes, states, slugs; never a text
of a publisher or a reader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from wholefeed.core.slugs import SLUGS

ANSWER_SECONDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 8.0, 10.0, 30.0),
)
"""From a fresh 304 out of memory to what readers bear; limits.respond_within_seconds is 8 by default."""
FETCH_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0, 60.0)
WALK_SECONDS: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)

TASKS: Final = ("house-keeping", "polling", "archive", "lists", "hosts", "taking-over")
"""What goes on in the background. A sum that is not shown as 0 first has no increase to be seen."""

NONE: Final = "none"
"""Stands for a state, a status or a reason where there is none."""


class Durations:
    """How long something took, counted by how long.

    Args:
        bounds: The upper ends of the ranges, in seconds, ascending; the last range has none.
    """

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
    """All sums since the start. The methods add under a slug, or to several sums."""

    answers: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """By route, state and status; a status of 0 is none: the reader left before."""
    answer_seconds: dict[str, Durations] = field(default_factory=dict)
    """By route."""
    answer_bytes: int = 0
    aborted: int = 0
    """Answers that were cut off."""
    problems: Counter[str] = field(default_factory=Counter)
    """Error answers, by slug."""
    sources: Counter[str] = field(default_factory=lambda: Counter(memory=0, store=0, publisher=0))
    """Answers with a feed: `memory`, `store`, or `publisher` where one had to be waited for."""
    pages: Counter[str] = field(default_factory=lambda: Counter(first=0, other=0))
    """Pages of feeds that were asked for: the `first`, with the newest entries, and others by number."""
    documents: Counter[str] = field(default_factory=lambda: Counter({"fetched": 0, "not-modified": 0}))
    """Fetched, by outcome."""
    failures: Counter[str] = field(default_factory=Counter)
    """Documents that were needed and could not be had, by slug."""
    failed_guesses: int = 0
    unshared: int = 0
    """Requests to publishers that this replica alone knew of, while the shared database did not answer."""
    fetch_seconds: Durations = field(default_factory=lambda: Durations(FETCH_SECONDS))
    wire_bytes: int = 0
    body_bytes: int = 0
    look_ahead: Counter[str] = field(default_factory=lambda: Counter(hit=0, miss=0))
    """Documents asked for before the path of a walk came to them: `hit` when it did, else `miss`."""
    walks_begun: int = 0
    walks: Counter[str] = field(default_factory=Counter)
    """By what ended them: `end`, or the slug of what is missing first."""
    walk_seconds: Durations = field(default_factory=lambda: Durations(WALK_SECONDS))
    publications: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of refreshes that brought something to say of their feed, by state and reason; a quiet one is none."""
    failed_refreshes: Counter[str] = field(default_factory=Counter)
    """By slug."""
    replays: int = 0
    """Requests for a feed from its beginning, at a pace."""
    imports: Counter[str] = field(default_factory=lambda: Counter(taken=0, known=0, refused=0))
    """Documents that people had kept (I1), by what came of them."""
    looks: Counter[str] = field(default_factory=lambda: Counter(listed=0, nothing=0))
    """At publishers' pages (H1), by whether they list the history of the feed."""
    evicted: int = 0
    """Feeds that were forgotten because the store was too large."""
    troubles: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(TASKS, 0)))
    """What goes on in the background and failed, by name."""

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
        """Count a document that could not be had; a guess that leads nowhere is counted apart."""
        if is_guess:
            self.failed_guesses += 1
        else:
            self.failures[_known(slug)] += 1

    def count_transfer(self, wire_bytes: int, body_bytes: int, seconds: float) -> None:
        """Count what a fetch took, whatever came of it."""
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
