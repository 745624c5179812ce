"""What a decision starts from: the feed as it is stored, what the operator wants, what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from wholefeed.core.notes import FormatMismatch, Note
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.events import ArchivedCopy, Failure, FreshDocument
from wholefeed.core.refresh.stored import Attempt, StoredDocument, StoredFeed
from wholefeed.core.schedule.backoff import next_attempt_at
from wholefeed.core.terms import Family, Kind
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.walk.limits import WalkLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the configuration says about refreshes. Times in seconds."""

    minimum_fresh_seconds: float = 300.0
    default_fresh_seconds: float = 900.0
    maximum_fresh_seconds: float = DAY_SECONDS
    retry_missing_seconds: float = 3600.0
    follows_pages: bool = True
    remembers: bool = True
    looks_ahead: bool = True
    window: int = 4
    """Documents fetched ahead of the path at most."""
    walk_seconds: float = 3600.0
    may_collect: Callable[[str], bool] = lambda _url: True
    """Whether pages that a publisher does not link may be asked for at a URL's host (R26)."""
    collect_paused_until: Callable[[str], float | None] = lambda _url: None
    """Until when a URL's host has asked to be left in peace with that (R32), epoch seconds."""
    limits: WalkLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """What a refresh is asked to do beside the usual."""

    is_forced: bool = False
    """Try at once what failed before (R14)."""
    is_full: bool = False
    """Revalidate every document and take the publisher's chain for the truth (R14)."""
    may_walk: bool = True
    """Whether to walk; without, only the subscription document is fetched."""
    is_polled: bool = False
    """Whether no reader waits for it."""

    def merged(self, other: RefreshRequest) -> RefreshRequest:
        """Return the request that meets both."""
        return RefreshRequest(
            is_forced=self.is_forced or other.is_forced,
            is_full=self.is_full or other.is_full,
            may_walk=self.may_walk or other.may_walk,
            is_polled=self.is_polled and other.is_polled,
        )


class Clock:
    """The instant at which a decision was told something last, in epoch seconds: it has no other time."""

    def __init__(self, now: float) -> None:
        self.now = now


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """All of it; the documents, which change meanwhile, go beside."""

    feed: StoredFeed
    """As it was before the refresh."""
    missing: Mapping[str, Attempt]
    """What could not be had before, by URL."""
    failure: Attempt | None
    """Of the subscription document, the last time."""
    settings: Settings
    request: RefreshRequest
    site_of: Callable[[str], str]
    clock: Clock
    copies: tuple[ArchivedCopy, ...] = ()
    """What a web archive gave of documents that are missing: the refresh is for their sake alone."""

    def is_followed(self, kind: Kind) -> bool:
        """Return whether the links of such a feed are followed; the others are R1's, R5's and R7's."""
        is_paged = kind is Kind.PAGED and self.settings.follows_pages
        return is_paged or kind in (Kind.ARCHIVED, Kind.LEGACY)

    def lacks(self, *notes: type[Note]) -> bool:
        """Return whether something was missing for one of these reasons."""
        slugs = {note.slug for note in notes}
        return any(attempt.reason in slugs for attempt in self.missing.values())

    def is_truncated(self, url: str) -> bool:
        """Whether the stored document broke off when it was fetched last (docs/faults.md row 49)."""
        attempt = self.missing.get(url)
        return attempt is not None and attempt.reason == DocumentTruncated.slug

    def is_of_other_format(self, url: str, family: Family) -> bool:
        """Whether it did not come in the feed's family when it was had last, whatever is stored (R23)."""
        attempt = self.missing.get(url)
        return attempt is not None and attempt.reason == FormatMismatch.slug and family is self.feed.family

    def remarks(self, url: str, fresh: FreshDocument | None, row: StoredDocument | None) -> list[Note]:
        """Return what is wrong with a document that has joined; of one that is stored, that it broke off.

        Or that it is no more than a web archive's copy (R33).
        """
        if fresh is not None:
            return [replace(note, url=url) for note in fresh.reading_notes]
        if row is not None and row.memento:
            return [row.as_memento()]
        return [DocumentTruncated(url)] if self.is_truncated(url) else []

    def waits(self, url: str) -> bool:
        """Whether a document that could not be had, whole, is not to be tried again yet (R14)."""
        attempt = self.missing.get(url)
        is_insisted = self.request.is_forced or self.request.is_full
        return attempt is not None and not is_insisted and attempt.waits(self.clock.now)

    def next_attempt_at(
        self, failure: Failure, earlier: Attempt | None, *, is_subscription: bool = False
    ) -> float:
        """Return the epoch second from which a document that could not be had is tried again (R14)."""
        return next_attempt_at(
            reason=failure.slug,
            status=failure.publisher_status,
            attempts=1 + (earlier.attempts if earlier else 0),
            now=self.clock.now,
            retry_after_seconds=failure.retry_after_seconds,
            retry_missing_seconds=self.settings.retry_missing_seconds,
            is_subscription=is_subscription,
        )
