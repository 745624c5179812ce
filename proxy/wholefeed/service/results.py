"""What the service says of feeds: with what it answers, and what it remembers of URLs that it could not open.

`Reconstruction` is a feed as it can be served now, `Status` what is known of it, `Elsewhere` how far another
replica is with it. `Unopened` and `Made` are what openings remember of URLs, in bounded memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Final, Self

from wholefeed.core.model import State
from wholefeed.core.refresh.port import Attempt, Progress
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.service.memory import Held
from wholefeed.store.rows import FeedRow, Overview, Snapshot


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """A feed as it can be served now. The segments of `snapshot` stay readable while it is held."""

    snapshot: Snapshot
    is_stale: bool
    held: Held | None = None
    """What is held in memory of this snapshot, if anything is."""
    in_time: Callable[[], AbstractAsyncContextManager[None]] = field(
        default=nullcontext, repr=False, compare=False
    )
    """Bounds what is read before the answer leaves, as the reading of this was: `OverloadedError` then."""

    @property
    def state(self) -> State:
        return self.snapshot.feed.visible_state

    @property
    def missing(self) -> tuple[Attempt, ...]:
        """What could not be had, when it was published."""
        return self.snapshot.missing

    @property
    def via_url(self) -> str:
        """The publisher's URL of the subscription document."""
        return self.snapshot.feed.via_url

    @property
    def feed(self) -> FeedRow:
        """The feed as it was last published."""
        return self.snapshot.feed


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a feed without fetching anything."""

    overview: Overview
    is_refreshing: bool
    """Whether the publisher is being asked."""
    progress_documents: int
    progress_entries: int
    progress_fetched: int
    progress_left: int | None
    """Documents that probably follow; None: nobody knows."""
    progress_seconds: float | None
    """Since the walk began to use the network; None: it does not."""
    paused_until: float | None
    """Until then nothing is asked of the publisher's host, epoch seconds; None: it may be asked."""
    elsewhere: Elsewhere | None = None
    """How far another replica is with a refresh; None: none is at one."""

    @property
    def feed(self) -> FeedRow:
        """The feed as it was last published."""
        return self.overview.feed


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A refresh that another replica does, as it said in its lease at its last sign of life."""

    is_confirmed: bool = False
    """Whether the publisher has been heard of the subscription document."""
    is_walking: bool = False
    """Whether a walk runs; else the counts mean nothing."""
    documents: int = 0
    entries: int = 0
    fetched: int = 0
    left: int | None = None
    seconds: float | None = None
    """Since the walk began to use the network."""

    @property
    def progress(self) -> Progress | None:
        """How far the walk is; None where none runs."""
        if not self.is_walking:
            return None
        return Progress(
            documents=self.documents, entries=self.entries, fetched=self.fetched, told_left=self.left
        )

    @property
    def walked_seconds(self) -> float | None:
        """Since the walk began to use the network; None: it does not."""
        return self.seconds

    @classmethod
    def at(cls, progress: Progress | None, seconds: float | None, *, is_confirmed: bool) -> Self:
        if progress is None:
            return cls(is_confirmed=is_confirmed)
        return cls(
            is_confirmed=is_confirmed,
            is_walking=True,
            documents=progress.documents,
            entries=progress.entries,
            fetched=progress.fetched,
            left=progress.left,
            seconds=seconds,
        )

    def as_text(self) -> str:
        """Return what is kept in the lease."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what a lease tells: nothing yet, or from a replica of another version what is understood."""
        found = json.loads(text) if text else {}
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name in found})


# What openings remember of URLs

REMEMBERED_SECONDS: Final = 60.0
MAX_UNOPENED: Final = 4096


class Unopened:
    """What could not be opened a moment ago, so that not every request for it asks its publisher again.

        unopened = Unopened(now=time.time)
        unopened.remember(url, error)
        unopened.check(url)             # raises it for a minute at most (docs/faults.md row 21)

    What the publisher asked for beyond that (Retry-After) is the host's and kept there
    (`wholefeed.fetch.hosts`). Of more than `MAX_UNOPENED` the oldest is forgotten.

    Args:
        now: Epoch seconds; a clock that jumps makes it forget.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._errors: dict[str, tuple[float, float, DocumentError]] = {}
        """When it failed, for how many seconds that is remembered, and how it failed."""

    def __len__(self) -> int:
        return len(self._errors)

    def check(self, url: str) -> None:
        """Do nothing when the publisher may be asked.

        Raises:
            DocumentError: It was a moment ago, and this came of it; with the seconds until it may be again.
        """
        failed_at, rest_seconds, error = self._errors.get(url, (0.0, 0.0, None))
        if error is None:
            return
        passed_seconds = self._now() - failed_at
        if not 0 <= passed_seconds < rest_seconds:
            del self._errors[url]
            return
        raise error.fresh_copy(retry_after_seconds=rest_seconds - passed_seconds)

    def remember(self, url: str, error: DocumentError) -> None:
        """Keep why a URL could not be opened, unless it was not tried at all.

        No longer than the error says: a host that is left alone for a second more is asked after that second.
        """
        if isinstance(error, QueueFullError):
            return
        self._errors.pop(url, None)
        if len(self._errors) >= MAX_UNOPENED:
            del self._errors[next(iter(self._errors))]
        seconds = remembered_seconds(error.retry_after_seconds)
        self._errors[url] = (self._now(), seconds, error.fresh_copy())


def remembered_seconds(retry_after_seconds: float | None) -> float:
    """Return for how long a failure counts, by what it said of when to ask again."""
    return min(retry_after_seconds or REMEMBERED_SECONDS, REMEMBERED_SECONDS)


MAX_MADE: Final = 4096
"""URLs that are remembered."""


class Made:
    """Which URLs have come to lead to a feed lately: whoever found nothing before may find it now.

        before = made.count
        feed = ...                          # nothing, as of some moment in between
        if made.has_come(url, before):      # look again

    With many readers of many new feeds each look takes long, and some feed is made in that time: to look
    again because of any of them was most of what the database was asked.
    """

    def __init__(self) -> None:
        self.count = 0
        """How many feeds have been made, or were there already."""
        self._lately: dict[str, int] = {}
        """By URL, what `count` became; in that order."""
        self._forgotten = 0
        """What it was for the last one of those that are not remembered any more."""

    def note(self, *urls: str) -> None:
        """Take in that URLs may lead to a feed now."""
        self.count += 1
        for url in urls:
            self._lately.pop(url, None)
            self._lately[url] = self.count
        while len(self._lately) > MAX_MADE:
            self._forgotten = self._lately.pop(next(iter(self._lately)))

    def has_come(self, url: str, before: int) -> bool:
        """Whether a URL may lead to a feed that was made since `count` was that; -1: at any time."""
        return before < max(0, self._forgotten, self._lately.get(url, 0))
