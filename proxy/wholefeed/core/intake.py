"""Intakes, each a subscription list that somebody brought in: tally and sentences (B1 to B5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from wholefeed.core.model import State
from wholefeed.core.slugs import failure_in_words, may_pass
from wholefeed.core.words import count_noun

MOST_FEEDS: Final = 10_000
MOST_UNFINISHED: Final = 8
MOST_KEPT: Final = 20
"""Beyond these, the oldest finished intakes go."""
MOST_LARGEST: Final = 5
NO_SUCH_INTAKE: Final = "no list was brought in under this id, or it was forgotten"
FAILURE_SECONDS: Final = 3600.0
"""A feed that failed so recently in another intake is not asked again."""


class Stage(StrEnum):
    WAITING = "waiting"
    HERE = "here"
    FAILED = "failed"


# Failures that may pass: such a feed waits, and is asked again

MOST_TRIES: Final = 3
LONGEST_WAIT_SECONDS: Final = 600.0
_SHORTEST_WAIT_SECONDS: Final = 5.0
_USUAL_WAIT_SECONDS: Final = 30.0
_OWN_FAULTS: Final = frozenset({"overloaded", "shutting-down", "store", "storage-full", "unknown-feed"})
"""Nothing was learned about the publisher, so the try does not count."""
_PAUSES: Final = frozenset({"host-backoff", "memory-short"})
_PAUSE_STATUSES: Final = frozenset({429, 503})


def next_try_seconds(slug: str, status: int | None, pause_seconds: float | None, tries: int) -> float | None:
    """Return the seconds until a failed feed is asked again; None: the failure stands.

    `status` and `pause_seconds` come from the publisher; `tries` counts this one.
    """
    wait_seconds = _USUAL_WAIT_SECONDS if pause_seconds is None else pause_seconds
    bounded = max(_SHORTEST_WAIT_SECONDS, wait_seconds)
    if slug in _OWN_FAULTS:
        return min(bounded, LONGEST_WAIT_SECONDS)
    is_pause = slug in _PAUSES or status in _PAUSE_STATUSES
    return bounded if is_pause and tries < MOST_TRIES and bounded <= LONGEST_WAIT_SECONDS else None


# The tally


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of one intake. Entries and states are today's, so they may grow after its end."""

    waiting: int = 0
    failed: int = 0
    forgotten: int = 0
    """Feeds forgotten after they came."""
    counted: int = 0
    """Stored and fresh feeds: nobody was asked."""
    before: int = 0
    """Entries of the subscription documents alone, each once."""
    now: int = 0
    states: dict[State, int] = field(default_factory=dict)
    searching: int = 0
    """Feeds with a site still to be searched for older entries (H1)."""

    @property
    def here(self) -> int:
        return sum(self.states.values())

    @property
    def feeds(self) -> int:
        return self.waiting + self.done

    @property
    def done(self) -> int:
        return self.here + self.failed + self.forgotten

    @property
    def is_over(self) -> bool:
        return not self.waiting

    def add(self, stage: Stage, state: State | None, feeds: int, *, before: int, now: int) -> None:
        """Count feeds of one stage; `state` is that of the stored feed, None without one."""
        if stage is Stage.WAITING:
            self.waiting += feeds
        elif stage is Stage.FAILED:
            self.failed += feeds
        elif state is None:
            self.forgotten += feeds
        else:
            self.states[state] = self.states.get(state, 0) + feeds
            self.before += before
            self.now += now


_ORDER: Final = (
    *(State.COMPLETE, State.COLLECTED, State.PAGED, State.LISTED, State.REMEMBERED),
    *(State.PARTIAL, State.LOADING),
)


# Sentences for people


def describe_gain(title: str, before: int, now: int) -> str:
    """Return `The Keeper's Log: 10 entries before, 302 now`."""
    return f"{title}: {_before_and_now(before, now)}"


def describe_progress(tally: Tally) -> str:
    """Return `120 of 212 feeds asked, 92 to go, 6 failed`."""
    asked = f"{tally.done:,} of {count_noun(tally.feeds, 'feed', 'feeds')} asked"
    return f"{asked}, {tally.waiting:,} to go, {tally.failed:,} failed"


def describe_totals(tally: Tally) -> str:
    """Return `212 feeds: 2,120 entries before, 48,310 now; 31 complete, … 6 failed`."""
    parts = [f"{tally.states[state]:,} {state}" for state in _ORDER if tally.states.get(state)]
    others = ((tally.failed, "failed"), (tally.forgotten, "forgotten"), (tally.waiting, "to go"))
    parts += [f"{number:,} {word}" for number, word in others if number]
    feeds = count_noun(tally.feeds, "feed", "feeds")
    sums = f"{feeds}: {_before_and_now(tally.before, tally.now)}"
    return f"{sums}; {', '.join(parts)}" if parts else sums


def describe_counted(tally: Tally) -> str:
    """Return a sentence; empty: all were asked for."""
    if not tally.counted:
        return ""
    are_fresh = count_noun(tally.counted, "feed was", "feeds were")
    return f"{are_fresh} here and fresh already, so no publisher was asked again."


def describe_searching(tally: Tally) -> str:
    if not tally.searching:
        return ""
    sites = count_noun(tally.searching, "site is", "sites are")
    return f"{sites} still to be searched for older entries, so these numbers may grow."


def _before_and_now(before: int, now: int) -> str:
    return f"{count_noun(before, 'entry', 'entries')} before, {now:,} now"


# What can be done about a failure

_GONE: Final = (
    "The feed is gone from there: look on the site for its new address and put that into the list, or"
    " unsubscribe."
)
_PASSES: Final = "This may pass: ask for the failed ones again later."
_UNREACHABLE: Final = (
    "See whether a browser can open the site. If it can, ask again; if not, it may have moved, or ended."
)
_NO_FEED: Final = "Look on the site for a link called RSS, Atom or Feed, and put its address into the list."
_REFUSES: Final = (
    "The site refuses programs without its permission: the operator of this proxy can set what it asks for."
)
_PRIVATE: Final = "The operator of this proxy can allow that address."
_LARGE: Final = "Subscribe to it directly: it is more than this proxy takes."
_CERTIFICATE: Final = "Tell the site, or see whether it has another address."
_ADVICE: Final[Mapping[str, str]] = {
    "bad-redirect": _GONE,
    "redirect-loop": _GONE,
    "destination-forbidden": _PRIVATE,
    "downgrade": _PRIVATE,
    "dns-error": _UNREACHABLE,
    "connection-failed": _UNREACHABLE,
    "timeout": _UNREACHABLE,
    "dns-timeout": _UNREACHABLE,
    "origin-forbidden": _REFUSES,
    "tls-certificate": _CERTIFICATE,
    "too-large": _LARGE,
    "too-costly": _LARGE,
    "limit": _LARGE,
    "not-a-feed": _NO_FEED,
    "no-subscription-document": _NO_FEED,
    "empty": _NO_FEED,
    "unsupported-format": _NO_FEED,
    "unsupported-encoding": _NO_FEED,
    "malformed-xml": _NO_FEED,
    "malformed-json": _NO_FEED,
    "dtd-forbidden": _NO_FEED,
    "xml-limit": _NO_FEED,
}
_GONE_STATUSES: Final = frozenset({404, 410})


def advise(slug: str, status: int | None) -> str:
    if status in _GONE_STATUSES:
        return _GONE
    return _ADVICE.get(slug, _PASSES if may_pass(slug, status) else _UNREACHABLE)


@dataclass(frozen=True, slots=True)
class FailedFeed:
    url: str
    title: str
    line: int
    slug: str
    status: int | None

    @property
    def why(self) -> str:
        return failure_in_words(self.slug, self.status)

    @property
    def advice(self) -> str:
        return advise(self.slug, self.status)


def group_by_advice(failures: Iterable[FailedFeed]) -> dict[str, list[FailedFeed]]:
    """Return the largest group first."""
    found: dict[str, list[FailedFeed]] = {}
    for each in failures:
        found.setdefault(each.advice, []).append(each)
    return dict(sorted(found.items(), key=lambda group: -len(group[1])))
