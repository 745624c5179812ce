"""What a refresh starts from, and what its decisions ask of whoever carries them out: `RefreshIO`.

The service has one that fetches and stores, the tests have one in memory. What is awaited may let others go
on: while a walk runs, what has come so far is published meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeVar

from wholefeed.core.adapters.base import Marks, There
from wholefeed.core.merge import Copy, is_preferred
from wholefeed.core.model import IMPORT_URL, LIST_URL, EntryId, Family, Kind, Role, State
from wholefeed.core.notes import (
    OLDEST,
    DocumentTruncated,
    Ending,
    MementoServed,
    Note,
)
from wholefeed.core.refresh.accounting import NO_SHIFTS, Departure
from wholefeed.core.refresh.listing import Listing
from wholefeed.core.schedule import (
    NO_VALIDATORS,
    CacheFields,
    Move,
    ValidatorPair,
    is_ahead,
    next_attempt_at,
    seconds_left,
)
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc3339
from wholefeed.core.walk.ahead import count_left
from wholefeed.core.walk.chain import Arrival, WalkLimits


class RefreshIO(Protocol):
    """What a refresh does to the world. What is not awaited is noted or begun, and done a moment later."""

    # the subscription document

    async def ask_subscription(
        self, url: str, stored: StoredDocument | None, *, is_whole: bool = False, searches: bool = False
    ) -> SubscriptionCame | Reply | SubscriptionFailed:
        """Fetch the subscription document; a mere reply: what is stored is what its publisher would send.

        `stored`: ask whether this has changed; None, or `is_whole`: have it whole. `searches`: look for it
        from the document of this URL on, which may be an archive (R3).
        """

    async def store_subscription(self, placement: SubscriptionPlacement) -> None:
        """Store the subscription document that has come."""

    def note_reply(self, reply: ReplyFacts) -> None:
        """The publisher is there: note what its reply means for the feed."""

    def note_failure(self, failure: Attempt | None, fresh_until: float) -> None:
        """Let what is stored serve as stale; None: its publisher was not asked, which is no failure."""

    # what is stored

    async def reread(self) -> bool:
        """Parse the stored bodies that an older parser has read; return whether there were any."""

    async def settle_ids(self) -> bool:
        """Serve posts under the ids that their publisher has used for a day (R36).

        A full refresh also joins posts that an earlier version took for two. Returns whether any changed.
        """

    async def documents(self) -> Sequence[StoredDocument]:
        """Return the documents as they are stored now, in output order, the detached ones last."""

    async def entries(self, document: int) -> Sequence[tuple[EntryId, float | None]]:
        """Return a document's entries from the top, each with the instant that the output sorts by (R20)."""

    async def known(
        self, url: str, arrival: Arrival, *, with_copies: bool = False, with_pages: bool = False
    ) -> KnownEntries:
        """Look in attached documents for the entries of one that has come under this URL, and waits.

        What was stored since may identify its entries anew (R9). `with_copies`: tell also which of their
        copies are live, those in memory documents excepted. `with_pages`: tell also which stand on pages.
        """

    async def departure(self, document: int, url: str, arrival: Arrival, waiting: Sequence[int]) -> Departure:
        """Return what becomes of the entries of a stored archive document when what has come replaces it.

        `waiting`: stored documents that are to be replaced, too, and whose entries do not count (R35).
        """

    async def doubtful(self) -> frozenset[EntryId]:
        """Return the entries that are stored as doubtful (R35)."""

    async def settle_doubtful(self) -> None:
        """Let the doubtful entries leave the feed: they were deleted (R35)."""

    async def put(self, url: str, placement: Placement) -> int:
        """Store a document that has come under a URL; return its number.

        One below 0 is a stand-in, as good as the number wherever documents are named.
        """

    async def put_together(self, placements: Mapping[str, Placement]) -> Sequence[int]:
        """Store documents that have come, by their URLs, in one transaction; return their numbers."""

    def drop(self, url: str) -> None:
        """Let go of a document that has come and is not worth keeping."""

    def touch(
        self,
        document: int,
        *,
        is_settled: bool | None = None,
        is_uncacheable: bool | None = None,
        found_in: int | None = None,
    ) -> None:
        """Note that a document was looked at and is as it was, or is gone; what is None stays as it is."""

    async def attach(self, ranks: Mapping[int, int]) -> None:
        """Give documents these ranks; those that were detached are part of the feed again."""

    async def detach(self, documents: Sequence[int], *, is_withdrawn: bool) -> None:
        """Keep documents, but no longer as part of the feed (R25).

        Where their publisher took them out of its chain (R14, R15), what they hold is settled (R8).
        """

    async def remove(self, documents: Sequence[int]) -> None:
        """Keep documents no longer: whoever imported them has taken them back (I1)."""

    async def forget(self, entries: Sequence[EntryId]) -> None:
        """Serve entries no longer, until their publisher updates them (I2)."""

    async def set_kind(self, kind: Kind) -> None:
        """Note that the feed turned out to be of another kind."""

    def note_collection(self, collection: str) -> None:
        """Note what is known of the history that is not linked, as `Collection.written` gives it (R26)."""

    def note_listing(self, listing: str, at: float | None) -> None:
        """Note what is known of the publisher's lists (`Listing.written`), and when to look next (H8)."""

    def note_shifts(self, shifts: str) -> None:
        """Note what is known of archives that shift, as `Shifts.written` gives it (R35)."""

    async def unlist(self) -> None:
        """Take out of the lists what the subscription document has by itself, under the same link (H6)."""

    # the walk

    async def begin_walk(self) -> None:
        """Wait for a turn to use the network; from then on documents may be added, also after a restart."""

    def start_timer(self) -> None:
        """Count the seconds of network that a walk may use from now (`Settings.walk_seconds`)."""

    def fetch(self, url: str, stored: StoredDocument | None, relation: str) -> None:
        """Begin to fetch a document of the walk.

        `stored` as for `ask_subscription`; `relation` leads to the document behind it, which
        `Decision.predicted` is told early.
        """

    def fetch_page(self, url: str, *, is_head: bool, expected: frozenset[int]) -> None:
        """Begin to fetch what an adapter asks for, few at once (R32).

        Args:
            url: Of the page.
            is_head: Ask only whether it is there.
            expected: Statuses that are an answer to the question, and no failure.
        """

    async def wait(self) -> tuple[str, Answer] | None:
        """Return the first fetch that has ended, by its URL; None: the time of the walk is over (R18)."""

    async def stop_fetching(self) -> None:
        """Let go of the fetches under way."""

    async def rest(self) -> None:
        """Let others have a turn: much was walked through without waiting for anything."""

    def pause_host(self, url: str, until: float) -> None:
        """Let no adapter ask the host of a URL until then, epoch seconds (R32)."""

    async def end_walk(self, ending: str, documents: int) -> None:
        """Give the turn back; `ending`: of what made the feed partial the first slug, else `end`."""

    # readers

    async def publish(
        self,
        *,
        state: State,
        notes: Sequence[Note] | None,
        ending: Ending | None = None,
        missing: Sequence[Attempt] | None = None,
    ) -> None:
        """Let readers have the feed as it is stored now.

        `missing` is all that could not be had (R14); where it, `notes` or `ending` is None, what is stored
        stays.
        """


# What a decision works with


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

    io: RefreshIO
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
    copies: tuple[ArchivedCopy, ...] = ()
    """What a web archive gave of documents that are missing: the refresh is for their sake alone."""
    added: tuple[ArchivedCopy, ...] = ()
    """What somebody had kept and puts into the feed (I1), or pages of the publisher's list (H7)."""
    progress: Progress = field(default_factory=Progress)

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


# The feed as it is stored: the store's rows extend these, so what is decided needs no database


@dataclass(slots=True, kw_only=True)
class StoredFeed:
    """A feed: where it comes from, and what it was when it was published last."""

    id: int
    url: str
    """The canonical key."""
    fetch_url: str
    moved_to: str | None
    """Where permanent redirects have led of late, `moved_times` in a row since `moved_since`."""
    moved_since: float | None
    moved_times: int
    family: Family
    kind: Kind
    state: State
    """As published; `visible_state` tells what whoever asks gets to see."""
    is_walking: bool
    """Whether a walk has begun to use the network and has not ended: it may still add documents."""
    revision: int
    """Counts the changes of documents and live entries; a plan names the one it was made from."""
    published_revision: int
    """The one that was published last; another than `revision`: something is not to be seen yet."""
    notes: str
    """JSON, as the service wrote it."""
    digest: bytes | None
    """Of what was published; None until something is."""
    cache_control: str = ""
    """What the publisher has said of its subscription document, as `CacheFields` has it."""
    expires: str = ""
    collection: str
    """What is known of a history that the publisher does not link, as `Collection.written` gives it (R26)."""
    listing: str
    """What is known of the lists in its pages, as `Listing.written` gives it (H7)."""
    list_at: float | None
    """When they are to be looked at next (H8); None: never."""
    first_seen_at: float
    """Epoch seconds."""
    family_since: float | None
    """When it came in its family after it had been of another; None: it has been of this one ever since."""
    had_at: float | None = None
    """When its publisher sent the subscription document last, be it the same; None: nobody knows."""
    renamed: int = 0
    """How many of its posts have had several ids (R36)."""
    renaming_at: float | None = None
    """When one of these ids will have been used for a day that its post is not served under yet."""
    doubts: int = 0
    """About its validators, as `schedule.next_doubts` counts them; 0: they are used."""
    shifts: str = NO_SHIFTS
    """What is known of archives that shift, as `Shifts.written` gives it (R35)."""

    @property
    def visible_state(self) -> State:
        """What the feed is at this moment, for whoever asks and by whatever way (R16).

        A walk that was cut off, by a kill or a full disk, is taken up again and may still add documents. A
        mere refetch of the subscription document adds none: it keeps the state.
        """
        return State.LOADING if self.is_walking else self.state


@dataclass(slots=True, kw_only=True)
class StoredDocument:
    """A stored document, without its body and entries."""

    id: int
    url: str
    final_url: str
    role: Role
    rank: int | None
    """Ascending in output order among the documents of its role; None: detached."""
    detached_at: float | None
    family: Family
    site_id: str
    links: Mapping[str, str]
    is_marked: bool
    """Whether it bears fh:archive."""
    is_settled: bool
    """Whether it was fetched or revalidated when it was no longer the newest of its chain."""
    is_uncacheable: bool
    """Whether the publisher serves it with no-cache or no-store."""
    brought_news: bool
    digest: bytes
    etag: str | None
    last_modified: str | None
    fetched_at: float
    """When it was had with the body that is stored, epoch seconds."""
    checked_at: float
    """When it was last fetched or revalidated, or was gone."""
    parser_version: int
    body_bytes: int
    entries: int
    updated_at: float | None
    """Of the document itself (R10)."""
    marks: str | None
    """What it says about its publisher, as `Marks.written` gives it; None where nobody has looked."""
    found_by: str
    """The adapter that asked for it (R26); empty where a link leads to it."""
    found_in: int
    """Of its walks through all pages: the number of the last one that had it."""
    live_bytes: int = 1
    """What readers are sent of it; 0 where other documents have better copies of all its entries."""
    memento: str = ""
    """Where a web archive's copy stands, which this is (R33), the name that it was imported by (I1), or the
    page that lists what it holds (H7); empty: the publisher's own document."""

    @property
    def is_imported(self) -> bool:
        """Whether somebody had kept it and put it into the feed (I1)."""
        return self.url.startswith(IMPORT_URL)

    @property
    def is_listed(self) -> bool:
        """Whether it holds what a page of the publisher's lists (H7)."""
        return self.url.startswith(LIST_URL)

    @property
    def is_added(self) -> bool:
        """Whether it is one of these two: none that the feed itself is made of."""
        return self.is_imported or self.is_listed

    @property
    def is_capture(self) -> bool:
        """Whether it is a copy of an earlier subscription document: it goes by a URL of its own."""
        return self.is_added or (bool(self.memento) and self.url == self.memento)

    @property
    def is_final(self) -> bool:
        """Whether it is an archive document that is never asked for again: see `is_due`."""
        return not self.memento and self.is_settled and (self.is_marked or not self.is_uncacheable)

    def is_due(self, subscription_changed_at: float, *, is_newest: bool, now: float) -> bool:
        """Return whether an archive document is to be revalidated on this walk (R13).

        Archive documents do not change (RFC 5005, section 4), but publishers link archives that still grow:
        the newest one of a chain is not believed until another has taken its place.

        FETCHED as the newest         -> OPEN     due when the subscription document has changed, once a day
        FETCHED behind the newest     -> SETTLED
        OPEN, no longer the newest    -> due at once, for the last time -> SETTLED; daily while it is gone
        SETTLED, but unmarked and sent with no-cache or no-store -> due as if it were the newest

        For an archive's copy there is an attempt, whose time counts (R33).

        Args:
            subscription_changed_at: When the subscription document was last had with a change, epoch seconds.
            is_newest: Whether it is the newest archive document of its chain, on the path of this walk.
            now: Epoch seconds.
        """
        if self.memento or self.is_final:
            return False
        if is_ahead(self.checked_at, now=now):
            return True
        is_a_day_ago = self.checked_at <= now - DAY_SECONDS
        is_outdated = subscription_changed_at > self.checked_at
        if not self.is_settled and not is_newest:
            return is_a_day_ago or is_outdated
        return is_a_day_ago and is_outdated

    @property
    def validators(self) -> ValidatorPair:
        return ValidatorPair(self.etag or "", self.last_modified or "")

    def as_memento(self) -> Note:
        """Return the note that a web archive's copy stands in for the document, and from when it is."""
        captured = format_rfc3339(self.fetched_at)
        return MementoServed(self.url, copy_url=self.memento, captured=captured, copies=1)

    def as_arrival(self) -> Arrival:
        return Arrival(
            url=self.url,
            final_url=self.final_url,
            family=self.family,
            site_id=self.site_id,
            links=self.links,
            digest=self.digest,
            body_bytes=self.body_bytes,
            entries=self.entries,
            keys=None,
            news=self.brought_news,
        )


_Document = TypeVar("_Document", bound=StoredDocument)


def subscription_of(documents: Iterable[_Document]) -> _Document | None:
    for each in documents:
        if each.role is Role.SUBSCRIPTION and each.rank is not None:
            return each
    return None


SUBSCRIPTION_ATTEMPT: Final = ""
"""The URL under which the failure of the subscription document itself is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A document that could not be had, and when to try again."""

    url: str
    reason: str
    status: int | None
    attempts: int
    first_at: float
    last_at: float
    next_at: float

    @property
    def is_subscription(self) -> bool:
        """Whether it is the subscription document's: the feed is stale, and nothing of it is missing."""
        return self.url == SUBSCRIPTION_ATTEMPT

    def waits(self, now: float) -> bool:
        """Whether its time has not come; what a wrong clock has noted is waited for by nobody."""
        return seconds_left(self.last_at, self.next_at, now=now, longest_seconds=DAY_SECONDS) > 0


# A document that has come


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshDocument:
    """A document that has just been fetched, as far as decisions need it; `RefreshIO` keeps its body."""

    arrival: Arrival
    kind: Kind
    """What it says that its feed is; meant for the subscription document alone (R0)."""
    older_relation: str
    is_tentative: bool
    """Whether that leads to a chain only if the document it leads to is not newer (R4)."""
    updated_at: float | None = None
    """Of the document itself (R10)."""
    marks: Marks = field(default_factory=Marks)
    validators: ValidatorPair = NO_VALIDATORS
    order: tuple[float | None, ...] = ()
    """What the output sorts its entries by, from the top; of a page that an adapter asked for."""
    fullness: bytes = b""
    """Of each of its entries, from the top, as a `Fullness` (R10)."""
    reading_notes: tuple[Note, ...] = ()
    link_notes: tuple[Note, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether it broke off (docs/faults.md row 49)."""
        return any(note.kind is DocumentTruncated for note in self.reading_notes)

    def may_replace(self, row: StoredDocument, family: Family) -> bool:
        """Whether a stored document gives way to this in a feed of a family.

        A whole one in the feed's format does to none that broke off; a web archive's copy to no other format
        than the feed's (R23, R33).
        """
        if row.memento:
            return self.arrival.family is family
        return not (self.is_truncated and row.family is self.arrival.family is family)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedCopy:
    """A web archive's copy of a document that its publisher does not give (R33), or one that is added.

    Somebody had kept that (I1), or a page of the publisher's lists what it holds (H7).
    """

    url: str
    """Of the document."""
    copy_url: str
    """Where the copy stands, by which it is put or dropped."""
    captured_at: float
    """When it was made, which is its time of fetch (R10)."""
    fresh: FreshDocument
    """As it was archived; its flags are left out."""
    is_subscription: bool
    """Whether it is of the subscription document, at whatever time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a document could not be had, or could not be used."""

    slug: str
    publisher_status: int | None = None
    """The HTTP status that the publisher sent, where there was one."""
    retry_after_seconds: float | None = None
    is_unasked: bool = False
    """Whether the publisher was not even asked: too much waits already."""


# What came of the question for the subscription document


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionCame:
    """The subscription document is here, whole or as much as there is of it."""

    url: str
    """What it is looked for by from now on."""
    reply: Reply
    fresh: FreshDocument
    notes: tuple[Note, ...] = ()
    """Why it may not be the subscription document (R3)."""


class SubscriptionFailed(NamedTuple):
    """The subscription document could not be had."""

    failure: Failure
    error: Exception
    """Which whoever asked for the refresh is told, where nothing stands in."""
    copy: ArchivedCopy | None = None
    """What an archive has of it, where it was asked because nothing is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a publisher said beside the subscription document."""

    url: str
    """As asked for."""
    permanent_url: str | None
    """Where redirects led that were all permanent; None where there were none, or others."""
    headers: Mapping[str, str]
    """Lower-case names."""
    is_update: bool = False
    """Whether it was a 304: what it does not say is as it was (RFC 9111, section 3.2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyFacts:
    """What a reply means for the feed: its publisher is there, and freshness counts from now."""

    checked_at: float
    fresh_until: float
    is_private: bool
    cache_fields: CacheFields
    unchanged: int | None
    """The document that it says has not changed."""
    fetch_url: str | None
    """Where the subscription document is asked for from now on, when that is elsewhere."""
    move: Move | None
    """What is known of a permanent move, when that is something else than before."""
    first_seen_at: float | None = None
    """When the feed was first seen, where a clock that ran ahead had noted a later time."""
    family_since: float | None = None
    """The same of when it came in its family."""
    had_at: float | None = None
    """As in `StoredFeed`; None: it is as it was."""
    doubts: int | None = None
    """The same."""


# What came of a fetch of the walk


class Unchanged(NamedTuple):
    """The publisher says that a stored document has not changed."""

    is_uncacheable: bool | None = None
    """As `StoredDocument.is_uncacheable`; None where it says nothing of that: it is as it was."""


class LedBack(NamedTuple):
    """The URL of a document of the walk redirects to another one that is on the path already (R17)."""

    met_url: str


Answer = FreshDocument | Unchanged | LedBack | Failure | There
"""`There`: HEAD was answered."""


# How a document is stored, and what is known of its entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """How a document that has come is stored; a field without a word here is as in `StoredDocument`."""

    url: str
    """It is put under this one."""
    role: Role
    rank: int | None
    """None: it is kept, but no part of the feed yet."""
    remembers: StoredDocument | None = None
    """What it replaces, when the entries that leave that are to be kept: a page (R6), an archive (R35)."""
    is_doubtful: bool = False
    """Whether entries that leave the archive document that it replaces may have moved (R35)."""
    is_settled: bool = False
    brought_news: bool = True
    found_by: str = ""
    found_in: int = 0
    may_wait: bool = False
    """Whether it may be put with those that come next: nothing is stored of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionPlacement:
    """How the subscription document is stored, and what no longer fits it with it, all at once (R8, R23)."""

    kind: Kind
    """Of the feed from now on."""
    family: Family
    """The same."""
    remembers: StoredDocument | None = None
    """The document that it replaces, when the copies of entries that leave it are to be kept."""
    changes_family: bool = False
    """Whether the feed was of another family: then its memory documents come back."""
    detached: tuple[int, ...] = ()
    """Documents that leave with their format (R23), or the URL that the feed had: they settle nothing."""


class KnownEntries(NamedTuple):
    """What is stored of entries."""

    updated_at: Mapping[EntryId, float | None]
    """The latest update instant of those that stand in attached documents."""
    live: Mapping[EntryId, Copy] = MappingProxyType({})
    """Where that was asked for: the copies that are live in documents other than memory."""
    subscription_updated_at: float | None = None
    """Where that was asked for: the date of the subscription document."""
    on_pages: frozenset[EntryId] = frozenset()
    """Where that was asked for: those that stand on attached pages."""


def adds_to(
    read: KnownEntries, fresh: FreshDocument, fetched_at: float, *, is_collected: bool = False
) -> bool:
    """Return whether a document holds an entry, or a better copy, that no other does but memory (R6, R10).

    `read` is what is stored of its entries, `is_collected` whether an adapter asked for it (R26).
    """
    return any(
        identity not in read.live
        or is_preferred(
            Copy(
                key=ordinal,
                updated_at=updated_at,
                role=Role.PAGE,
                position=_NOWHERE,
                ordinal=ordinal,
                document_updated_at=fresh.updated_at,
                fetched_at=fetched_at,
                generated_at=fetched_at if is_collected else None,
                is_collected=is_collected,
                fullness=fullness,
            ),
            read.live[identity],
            subscription_updated_at=read.subscription_updated_at,
        )
        for ordinal, ((identity, updated_at), fullness) in enumerate(
            zip(fresh.arrival.keys or (), fresh.fullness, strict=True)
        )
    )


_NOWHERE: Final = 1 << 62
"""The place of a document that is compared with what is stored: of two equal copies it is not preferred."""


# The outcome of a walk


@dataclass(slots=True)
class WalkResult:
    """What a walk found."""

    state: State = State.COMPLETE
    """What the feed is where nothing is missing."""
    path: list[int] = field(default_factory=list)
    """Ids of the stored documents, newest first, the subscription document excluded."""
    notes: list[Note] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    """Why the documents that the notes name could not be had, by URL."""
    ending: Ending = OLDEST
    has_tried: bool = True
    """Whether anything was asked for; else what was missing before is as it was."""
    untried: frozenset[str] = frozenset()
    """URLs of what was not asked for all the same."""

    @property
    def has_copies(self) -> bool:
        """Whether a web archive's copy stands on the path: then it takes nothing away (R33)."""
        return any(note.kind is MementoServed for note in self.notes)

    @property
    def is_true_end(self) -> bool:
        """Whether nothing is missing behind the last document."""
        return self.ending.is_true_end
