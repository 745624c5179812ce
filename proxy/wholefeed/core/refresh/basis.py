"""What a refresh works with: the feed, the request, the settings, and what those who wait can be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wholefeed.core.model import EntryId, State
from wholefeed.core.notes import OLDEST, DocumentTruncated, Ending, MementoServed, Note
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, Offer
from wholefeed.core.refresh.listing import Listing
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt, StoredFeed
from wholefeed.core.schedule import next_attempt_at
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.walk.ahead import count_left
from wholefeed.core.walk.chain import WalkLimits


@dataclass(slots=True)
class Progress:
    """What those who wait can be told while the walk runs."""

    documents: int = 1
    entries: int = 0
    fetched: int = 0
    urls: list[str] = field(default_factory=list)
    """Of the last three."""
    last_url: str = ""
    """Of the last document that will join, where it is known."""
    is_confirmed: bool = False
    """Whether the publisher has answered the question for the subscription document."""
    notes: tuple[Note, ...] = ()
    """On the subscription document."""

    @property
    def left(self) -> int | None:
        """Documents that probably follow, where their URLs count; None: nobody knows."""
        return count_left(self.urls, self.last_url) if self.urls else None

    def add(self, url: str, entries: int, last_url: str = "") -> None:
        """Count a document that has joined the feed; `last_url`: of the last one that will, where known."""
        self.documents += 1
        self.entries += entries
        self.urls = [*self.urls[-2:], url]
        self.last_url = last_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What all parts of a decision work with; the documents change meanwhile, and go beside it."""

    feed: StoredFeed
    """As it was before the refresh."""
    missing: Mapping[str, Attempt]
    """What could not be had before, by URL."""
    failure: Attempt | None
    """Of the subscription document, the last time."""
    settings: Settings
    request: RefreshRequest
    site_of: Callable[[str], str]
    now: Callable[[], float]
    """Epoch seconds."""
    offers: tuple[Offer[FreshDocument], ...] = ()
    """Documents from other sources than the publisher's links: from a web archive, an import, its lists."""
    progress: Progress = field(default_factory=Progress)

    @property
    def has_copies(self) -> bool:
        """Whether a web archive's copies are offered: then the refresh is for their sake alone (R33)."""
        return any(not offer.is_added for offer in self.offers)

    def is_truncated(self, url: str) -> bool:
        """Whether the stored document broke off when it was fetched last (docs/faults.md row 49)."""
        attempt = self.missing.get(url)
        return attempt is not None and attempt.reason == DocumentTruncated.slug

    def waits(self, url: str) -> bool:
        """Whether a document that could not be had whole is not to be tried again yet (R14)."""
        attempt = self.missing.get(url)
        is_insisted = self.request.is_forced or self.request.is_full
        return attempt is not None and not is_insisted and attempt.waits(self.now())

    def attempted(
        self, url: str, earlier: Attempt | None, failure: Failure | None, *, reason: str
    ) -> Attempt:
        """Return what is known of a document that could not be had this time either (R14).

        Failures count up, and the time of the first one stays (R16: the pseudo-entry is dated by it).
        `failure` None: it was had, and is not what it should be.
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
    is_collect_paused: Callable[[str], bool] = lambda _url: False
    """Whether a URL's host has asked to be left in peace with that (R32)."""
    limits: WalkLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """What a refresh is asked to do beside the usual."""

    is_forced: bool = False
    """A person asks: try at once what failed before, and have the subscription document whole (R14)."""
    is_full: bool = False
    """Have every document whole and take the publisher's chain for the truth (R14)."""
    may_walk: bool = True
    """Whether to walk; if not, only the subscription document is fetched."""
    is_polled: bool = False
    """Whether no reader waits for it."""
    removes: tuple[str, ...] = ()
    """URLs of imported documents that are to go (I1)."""
    forgets: tuple[EntryId, ...] = ()
    """Entries that are to go, until their publisher updates them (I2)."""
    listing: Listing | None = None
    """What a look at the publisher's pages came to (H7); what these list comes with it, as documents."""

    def merged(self, other: RefreshRequest) -> RefreshRequest:
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
class Walked:
    """What a walk found."""

    state: State = State.COMPLETE
    """What the feed is where nothing is missing."""
    path: list[int] = field(default_factory=list)
    """Numbers of documents that `KeepDocument` gives, newest first, without the subscription document."""
    notes: list[Note] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    """Why the documents that the notes name could not be had, by URL."""
    ending: Ending = OLDEST
    has_tried: bool = True
    """Whether anything was asked for; else what was missing before is as it was."""
    untried: frozenset[str] = frozenset()
    """URLs of what was not asked for all the same."""
    is_out_of_time: bool = False
    """Whether `Settings.walk_seconds` were over before it ended (R18)."""
    has_met: Callable[[str], bool] = lambda _url: False
    """Returns whether a document of the path bears a URL."""

    @property
    def has_copies(self) -> bool:
        """Whether a web archive's copy stands on the path: then it takes nothing away (R33)."""
        return any(note.kind is MementoServed for note in self.notes)

    @property
    def is_true_end(self) -> bool:
        """Whether nothing is missing behind the last document."""
        return self.ending.is_true_end
