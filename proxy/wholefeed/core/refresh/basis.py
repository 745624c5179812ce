"""The common data of a refresh: the feed, the request, the settings, and the progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wholefeed.core.model import EntryId, State
from wholefeed.core.notes import OLDEST, DocumentTruncated, Ending, MementoServed, Note
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, Offer
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt, StoredFeed
from wholefeed.core.schedule import next_attempt_at
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.walk.ahead import count_left
from wholefeed.core.walk.chain import WalkLimits


@dataclass(slots=True)
class RefreshProgress:
    documents: int = 1
    entries: int = 0
    fetched: int = 0
    urls: list[str] = field(default_factory=list)
    """URLs of the last three documents."""
    last_url: str = ""
    """URL of the last document that will join, if known."""
    is_confirmed: bool = False
    """Whether the publisher has responded about the subscription document."""
    notes: tuple[Note, ...] = ()

    @property
    def left(self) -> int | None:
        """Documents that probably follow, if their URLs count; None if unknown."""
        return count_left(self.urls, self.last_url) if self.urls else None

    def add(self, url: str, entries: int, last_url: str = "") -> None:
        self.documents += 1
        self.entries += entries
        self.urls = [*self.urls[-2:], url]
        self.last_url = last_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    feed: StoredFeed
    missing: Mapping[str, Attempt]
    failure: Attempt | None
    settings: Settings
    request: RefreshRequest
    site_of: Callable[[str], str]
    now: Callable[[], float]
    """Epoch seconds."""
    offers: tuple[Offer[FreshDocument], ...] = ()
    progress: RefreshProgress = field(default_factory=RefreshProgress)

    @property
    def has_copies(self) -> bool:
        """Whether mementos are offered: then the refresh is for their sake alone (R33)."""
        return any(not offer.is_added for offer in self.offers)

    def is_truncated(self, url: str) -> bool:
        """Return whether the last fetch of the stored document broke off (docs/faults.md row 49)."""
        attempt = self.missing.get(url)
        return attempt is not None and attempt.reason == DocumentTruncated.slug

    def waits(self, url: str) -> bool:
        """Return whether the next attempt on a missing or truncated document is not due (R14)."""
        attempt = self.missing.get(url)
        is_insisted = self.request.is_forced or self.request.is_full
        return attempt is not None and not is_insisted and attempt.waits(self.now())

    def count_attempt(
        self, url: str, earlier: Attempt | None, failure: Failure | None, *, reason: str
    ) -> Attempt:
        """Return the record of a further failure of a document (R14).

        The time of the first failure dates the pseudo-entry (R16). `failure` is None if the document came,
        but is unsuitable.
        """
        now, attempts = self.now(), 1 + (earlier.attempts if earlier else 0)
        next_at = now + self.settings.retry_missing_seconds
        if failure is not None:
            next_at = next_attempt_at(
                reason=failure.slug,
                status=failure.publisher_status,
                attempts=attempts,
                now=now,
                retry_after_seconds=failure.retry_after_seconds,
                retry_missing_seconds=self.settings.retry_missing_seconds,
                is_subscription=url == SUBSCRIPTION_ATTEMPT,
            )
        return Attempt(
            url=url,
            reason=reason,
            status=None if failure is None else failure.publisher_status,
            attempts=attempts,
            first_at=earlier.first_at if earlier else now,
            last_at=now,
            next_at=next_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    minimum_fresh_seconds: float = 300.0
    default_fresh_seconds: float = 900.0
    maximum_fresh_seconds: float = DAY_SECONDS
    retry_missing_seconds: float = 3600.0
    follows_pages: bool = True
    remembers: bool = True
    looks_ahead: bool = True
    window: int = 4
    """Most documents fetched ahead of the path."""
    walk_seconds: float = 3600.0
    may_collect: Callable[[str], bool] = lambda _url: True
    """Returns whether adapters may ask a URL's host for pages (R26)."""
    is_collect_paused: Callable[[str], bool] = lambda _url: False
    """Returns whether a URL's host wants a pause from adapters (R32)."""
    limits: WalkLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    is_forced: bool = False
    """Whether a person asks: retry failures at once, and fetch the subscription document unconditionally
    (R14)."""
    is_full: bool = False
    """Whether to fetch every document whole, and trust the publisher's chain (R14)."""
    may_walk: bool = True
    """If false, only the subscription document is fetched."""
    is_polled: bool = False
    """Whether no reader waits for the refresh."""
    removes: tuple[str, ...] = ()
    """URLs of imported documents to remove (I1)."""
    forgets: tuple[EntryId, ...] = ()
    """Entries to remove until their publisher updates them (I2)."""
    listing: ListingState | None = None
    """The result of a look at the publisher's pages (H7). Its entries are documents in `Basis.offers`."""

    def merge(self, other: RefreshRequest) -> RefreshRequest:
        return RefreshRequest(
            is_forced=self.is_forced or other.is_forced,
            is_full=self.is_full or other.is_full,
            may_walk=self.may_walk or other.may_walk,
            is_polled=self.is_polled and other.is_polled,
            removes=self.removes + other.removes,
            forgets=self.forgets + other.forgets,
            listing=other.listing or self.listing,
        )


# The outcome of a walk


@dataclass(slots=True)
class WalkResult:
    state: State = State.COMPLETE
    """The state of the feed, provided nothing is missing."""
    path: list[int] = field(default_factory=list)
    """Numbers of documents from `KeepDocument`, newest first, without the subscription document."""
    notes: list[Note] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    """Failures of the documents in the notes, by URL."""
    ending: Ending = OLDEST
    has_tried: bool = True
    """Whether the walk asked for anything; if not, earlier failures stay."""
    untried: frozenset[str] = frozenset()
    """URLs that the walk did not ask for even so."""
    is_out_of_time: bool = False
    """Whether `Settings.walk_seconds` ran out (R18)."""
    has_met: Callable[[str], bool] = lambda _url: False

    @property
    def has_copies(self) -> bool:
        """Whether a memento is on the path: then the walk removes no document (R33)."""
        return any(note.kind is MementoServed for note in self.notes)

    @property
    def is_true_end(self) -> bool:
        return self.ending.is_true_end
