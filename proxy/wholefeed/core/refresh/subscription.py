"""The subscription document: the search for it, the request, and the effect on the feed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from wholefeed.core.adapters.base import NOTHING_COLLECTED
from wholefeed.core.links import Navigation, current_elsewhere, recall
from wholefeed.core.model import Family, Kind, Role
from wholefeed.core.notes import (
    CurrentUnavailable,
    LimitReached,
    NoSubscriptionDocument,
    Note,
    NoteKind,
    ValidatorsDoubted,
)
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.arrivals import (
    Failure,
    FoundSubscription,
    FreshDocument,
    Offer,
    Reply,
    ReplyFacts,
    SubscriptionFailed,
    SubscriptionPlacement,
)
from wholefeed.core.refresh.asking import (
    AskSubscription,
    FindKnown,
    NoteFailure,
    NoteReply,
    StoreSubscription,
    Talk,
    ask,
)
from wholefeed.core.refresh.basis import Basis
from wholefeed.core.refresh.listing_state import NOTHING_LISTED
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt, StoredDocument, subscription_of
from wholefeed.core.schedule import (
    CacheFields,
    Move,
    ValidatorPair,
    freshness_seconds,
    is_ahead,
    is_believed,
    is_private,
    may_be_frozen,
    next_doubts,
    note_move,
)
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS
from wholefeed.core.text.urls import canonical_url, same_document
from wholefeed.core.walk.chain import Arrival, has_news, is_new_throughout


class Searchable(Protocol):
    @property
    def url(self) -> str: ...
    @property
    def final_url(self) -> str: ...
    @property
    def family(self) -> Family: ...
    @property
    def navigation(self) -> Navigation: ...


_Searched = TypeVar("_Searched", bound=Searchable)


class SubscriptionRefresh:
    def __init__(self, basis: Basis, documents: Sequence[StoredDocument]) -> None:
        self._basis = basis
        self._feed = basis.feed
        self._documents = documents
        self._stored = subscription_of(documents)
        self._has_moved = self._has_gap = self._is_new_throughout = False
        # Whether the request was unconditional; whether right after a 304.
        self._is_whole = self._is_contradicted = False
        self._had_at: float | None = None  # what is noted where it was not sent
        self._doubts = self._feed.doubts

    def obtain(self) -> Talk[SubscriptionState | SubscriptionFailed]:
        """Fetch and store the subscription document; return it, or the failure if there is none."""
        is_beside = self._basis.has_copies or self._basis.request.listing is not None
        if is_beside and self._stored is not None:
            return self._current()  # its publisher is asked when its time comes
        came = yield from self._ask()
        if isinstance(came, SubscriptionFailed):
            yield NoteFailure(*self._failure(came.failure))
            return (yield from self._stand_in(came.copy)) or came
        self._basis.progress.is_confirmed = True
        if (found := came.found) is None:
            yield NoteReply(self._facts_of(came, unchanged=self._stored))
            return self._current()
        has_changed, has_news, notes = yield from self._take(came.url, found)
        yield NoteReply(self._facts_of(came, fetch_url=self._found_at(found)))
        return self._current(found.document, has_changed=has_changed, has_news=has_news, notes=notes)

    def _ask(self) -> Talk[Reply | SubscriptionFailed]:
        """Ask for the document; search (R3) only if the last search failed. Opening the feed made one."""
        stored, url, basis = self._stored, self._feed.fetch_url, self._basis
        if not (self._lacks(CurrentUnavailable, NoSubscriptionDocument)):
            is_usable = (
                stored is not None
                and stored.parser_version == PARSER_VERSION  # else its links may read new
                and stored.url == url
                and stored.marks is not None  # nobody has looked yet who publishes it (R26)
                and not basis.is_truncated(stored.final_url)  # what broke off is asked for whole
            )
            if stored is None or not is_usable:
                return (yield from ask(AskSubscription(url, None)))
            return (yield from self._ask_about(stored))
        if self._lacks(NoSubscriptionDocument) and stored is not None:
            url = stored.url  # forward from the newest archive that is known
        return (yield from ask(AskSubscription(url, None, searches=True)))

    def _ask_about(self, stored: StoredDocument) -> Talk[Reply | SubscriptionFailed]:
        """Ask for news of the document; unconditionally if a person asks or validators are doubted."""
        # After a week of nothing but 304, ask once more without conditions, and weekly from then on. A
        # request right after a 304 tells a wrong 304 from a real change during the week.
        request, feed, url = self._basis.request, self._feed, self._feed.fetch_url
        self._is_whole = request.is_forced or request.is_full or feed.doubts > 0
        came = yield from ask(AskSubscription(url, stored, is_whole=self._is_whole))
        now, had_at = self._basis.now(), stored.fetched_at if feed.had_at is None else feed.had_at
        if isinstance(came, SubscriptionFailed) or came.found or not may_be_frozen(had_at, now=now):
            return came
        whole = yield from ask(AskSubscription(url, stored, is_whole=True))
        if isinstance(whole, SubscriptionFailed):  # that nothing has changed counts until tomorrow
            self._had_at = now - WEEK_SECONDS + DAY_SECONDS
            return came
        self._is_whole = self._is_contradicted = True
        return whole

    def _lacks(self, *notes: NoteKind) -> bool:
        slugs = [note.slug for note in notes]
        return any(attempt.reason in slugs for attempt in self._basis.missing.values())

    # A document has come

    def _take(
        self, url: str, found: FoundSubscription[FreshDocument]
    ) -> Talk[tuple[bool, bool, tuple[Note, ...]]]:
        """Store a changed document; return whether it has changed, whether it brings news, and notes.

        `url` is the requested URL, before redirects.
        """
        stored, fresh, kind = self._stored, found.document, self._kind_of(found.document)
        has_changed = (
            stored is None
            or stored.is_stand_in  # the publisher's own, be it the same (R33)
            or stored.digest != fresh.arrival.digest
            or stored.url != url
            or stored.links != fresh.arrival.links
            or kind is not self._feed.kind
        )
        notes = (*found.notes, *fresh.reading_notes, *fresh.link_notes)
        if not has_changed:
            return False, False, notes
        brings_news = True
        is_listed = self._feed.listing != NOTHING_LISTED
        is_looked_at = kind is Kind.PAGED or self._feed.collection != NOTHING_COLLECTED or is_listed
        if is_looked_at or self._is_whole:
            known = yield from ask(FindKnown(fresh.arrival.url, fresh.arrival))
            keys = list(fresh.arrival.keys or ())
            brings_news = has_news(keys, known.updated_at)
            self._is_new_throughout = is_new_throughout(keys, known.updated_at)
            self._has_gap = is_listed and bool(keys) and keys[-1][0] not in known.updated_at
            self._doubt(fresh, brings_news=brings_news)
        is_paged = kind is Kind.PAGED  # what leaves a page has mostly moved to one that is not asked for
        is_kept = kind is not Kind.COMPLETE and (self._basis.settings.remembers or is_paged)
        if stored is not None and stored.is_stand_in and self._stands_behind(stored.memento):
            is_kept = False  # as the archive's copy that it was (R33)
        full = self._memory_limit(stored) if stored is not None and is_kept else ()
        yield StoreSubscription(
            SubscriptionPlacement(
                kind=kind,
                family=fresh.arrival.family,
                remembers=stored if is_kept and not full else None,
                changes_family=stored is not None and stored.family is not fresh.arrival.family,
                detached=self._leaving(url, fresh.arrival.family),
            )
        )
        return True, brings_news, (*notes, *full)

    def _doubt(self, fresh: FreshDocument, *, brings_news: bool) -> None:
        if self._is_whole and brings_news and self._stored is not None:
            self._doubts = next_doubts(
                self._doubts,
                fresh.validators,
                self._stored.validators,
                is_contradicted=self._is_contradicted,
            )

    def _stands_behind(self, memento: str) -> bool:
        attached = (row for row in self._documents if row.rank is not None)
        return any(row.is_capture and row.memento == memento for row in attached)

    def _kind_of(self, fresh: FreshDocument) -> Kind:
        """Return the feed's kind: paged stays paged while its link looks like a chain's (R4)."""
        stored = self._stored
        is_alike = stored is not None and recall(stored.links, is_archive=stored.is_marked).is_tentative
        was_paged = self._feed.kind is Kind.PAGED and is_alike and not self._basis.request.is_full
        return Kind.PAGED if fresh.is_tentative and was_paged else fresh.kind

    def _leaving(self, url: str, family: Family) -> tuple[int, ...]:
        return tuple(
            old.id
            for old in self._documents
            if old.rank is not None
            and (old.url != url if old.role is Role.SUBSCRIPTION else old.family is not family)
        )

    def _memory_limit(self, stored: StoredDocument) -> tuple[Note, ...]:
        """Return a note if the feed is too large to remember more copies (R18)."""
        limits = self._basis.settings.limits
        held = [each for each in self._documents if each.role is Role.MEMORY]
        if sum(each.entries for each in held) + stored.entries > limits.entries:
            return (LimitReached(stored.url, limit="limits.entries_per_feed", value=limits.entries),)
        if sum(each.body_bytes for each in held) + stored.body_bytes > limits.bytes:
            return (LimitReached(stored.url, limit="limits.feed_bytes", value=limits.bytes),)
        return ()

    # The meaning of the reply

    def _found_at(self, found: FoundSubscription[FreshDocument]) -> str | None:
        """Return the document's URL if the request was for an archive (R3)."""
        is_elsewhere = not found.notes and found.url != self._feed.fetch_url
        return canonical_url(found.url) if is_elsewhere else None

    def _facts_of(
        self, reply: Reply, *, fetch_url: str | None = None, unchanged: StoredDocument | None = None
    ) -> ReplyFacts:
        basis, now, feed = self._basis, self._basis.now(), self._feed
        headers = reply.headers
        if reply.is_update:
            headers = CacheFields(feed.cache_control, feed.expires).kept() | dict(headers)
        fresh_seconds = freshness_seconds(
            headers,
            now=now,
            minimum=basis.settings.minimum_fresh_seconds,
            default=basis.settings.default_fresh_seconds,
            maximum=basis.settings.maximum_fresh_seconds,
        )
        move, target = self._move(reply)
        self._has_moved = target is not None
        return ReplyFacts(
            checked_at=now,
            fresh_until=now + fresh_seconds if basis.request.may_walk else now,
            is_private=is_private(headers),
            cache_fields=CacheFields.of(headers),
            unchanged=unchanged.id if unchanged is not None else None,
            had_at=self._had_at if reply.is_update else now,
            doubts=self._doubts if self._doubts != feed.doubts else None,
            fetch_url=target or fetch_url,
            move=move,
            first_seen_at=now if is_ahead(feed.first_seen_at, now=now) else None,
            family_since=now if is_ahead(feed.family_since or 0.0, now=now) else None,
        )

    def _move(self, reply: Reply) -> tuple[Move | None, str | None]:
        """Follow the publisher to another address once the move is certain; key and history stay (R25)."""
        # A request by the new address gets a feed of its own. Anybody can redirect to another's feed, and the
        # entries remembered before would then be served as that feed's (docs/faults.md rows 23 and 91).
        feed, now = self._feed, self._basis.now()
        if reply.url != feed.fetch_url or (reply.permanent_url is None and not feed.moved_times):
            return None, None
        known = Move(feed.moved_to, feed.moved_since, feed.moved_times)
        move = note_move(known, reply.permanent_url, now=now)
        if move.target is not None and is_believed(move, now=now):
            return Move(), move.target
        return (move if move != known else None), None

    def _failure(self, failure: Failure) -> tuple[Attempt | None, float]:
        """Return the attempt, if the publisher was asked, and until when the stored feed serves."""
        basis = self._basis
        if failure.is_unasked:
            return None, basis.now() + (failure.retry_after_seconds or 0.0)
        attempt = basis.count_attempt(SUBSCRIPTION_ATTEMPT, basis.failure, failure, reason=failure.slug)
        return attempt, attempt.next_at

    def _stand_in(self, copy: Offer[FreshDocument] | None) -> Talk[SubscriptionState | None]:
        """Return a memento if the subscription document is gone and nothing else stored (R33)."""
        stored, feed = self._stored, self._feed
        if stored is not None:
            is_published = bool(feed.digest) and feed.revision == feed.published_revision
            return self._current() if stored.is_stand_in and not is_published else None
        if copy is None:
            return None
        fresh = copy.document
        placement = SubscriptionPlacement(kind=fresh.kind, family=fresh.arrival.family)
        yield StoreSubscription(placement)
        notes = (*fresh.reading_notes, *fresh.link_notes)
        return self._current(fresh, has_changed=True, has_news=True, notes=notes)

    # The document for the rest of the refresh

    def _current(
        self,
        fresh: FreshDocument | None = None,
        *,
        has_changed: bool = False,
        has_news: bool = False,
        notes: tuple[Note, ...] = (),
    ) -> SubscriptionState:
        stored = self._stored
        if self._doubts:
            notes = (*notes, ValidatorsDoubted(self._feed.fetch_url))
        if fresh is not None:
            arrival, kind = fresh.arrival, self._kind_of(fresh)
            relation, is_tentative = fresh.older_relation, fresh.is_tentative
        else:
            assert stored is not None, "nothing is confirmed that is not stored"
            arrival, kind = stored.as_arrival(), self._feed.kind
            finding = recall(stored.links, is_archive=stored.is_marked)
            relation, is_tentative = finding.relation, finding.is_tentative
        return SubscriptionState(
            arrival=arrival,
            kind=kind,
            relation=relation,
            is_tentative=is_tentative,
            is_confirmed=self._basis.progress.is_confirmed,
            has_changed=has_changed,
            changed_at=self._basis.now() if has_changed or stored is None else stored.fetched_at,
            has_moved=self._has_moved,
            has_news=has_news,
            has_gap=self._has_gap,
            is_new_throughout=self._is_new_throughout,
            validators=None if fresh is None else fresh.validators,
            stored_digest=None if stored is None else stored.digest,
            notes=notes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionState:
    arrival: Arrival
    kind: Kind
    relation: str
    """The relation to the older documents of a chain."""
    is_tentative: bool
    """Whether this is a chain only if its first target is not newer (R4)."""
    is_confirmed: bool
    """Whether the publisher has responded in this refresh."""
    has_changed: bool
    changed_at: float
    """Time of the last change, epoch seconds."""
    has_moved: bool
    """Whether the fetch URL has changed; the answer tells that (`via`)."""
    has_news: bool
    """For a feed of pages: whether the document brought an entry not stored before."""
    has_gap: bool = False
    """For a feed with listings: whether not even the last entry was stored (H8)."""
    is_new_throughout: bool = False
    """For a feed of pages: whether no entry was stored."""
    validators: ValidatorPair | None = None
    """Validators of the response; None if the document is unchanged."""
    stored_digest: bytes | None
    """Digest of the body stored before this refresh; None if there was none."""
    notes: tuple[Note, ...]


# From a requested document to the subscription document of its feed (R3)


async def search(url: str, asked: _Searched, fetch: Fetch[_Searched]) -> FoundSubscription[_Searched]:
    """Find the subscription document behind a document (R3).

    The document that `current` names serves; if it cannot be fetched, the given one. From an archive without
    `current`, `next-archive` leads to the newest one.
    """
    navigation = asked.navigation
    current = current_elsewhere(navigation, url, asked.final_url)
    if current is not None:
        came = await fetch(current)
        if isinstance(came, Failure):
            return FoundSubscription(url, asked, (CurrentUnavailable(current, reason=came.slug),))
        return FoundSubscription(current, came)
    if navigation.is_archive and navigation.current_url is None:
        return await _newest_archive(url, asked, fetch)
    return FoundSubscription(url, asked)


async def _newest_archive(
    url: str, asked: _Searched, fetch: Fetch[_Searched]
) -> FoundSubscription[_Searched]:
    newest = asked
    passed = [url, asked.final_url]
    for _ in range(MAX_FORWARD_STEPS):
        newer = newest.navigation.newer_url
        if not newer or any(same_document(newer, known) for known in passed):
            break
        came = await fetch(newer)
        if isinstance(came, Failure) or came.family is not asked.family:
            break
        if current_elsewhere(came.navigation, newer, came.final_url):
            return await search(newer, came, fetch)
        newest = came
        passed += [newer, came.final_url]
    return FoundSubscription(url, newest, (NoSubscriptionDocument(newest.url),))


# Most archive documents on the way to the newest one.
MAX_FORWARD_STEPS: Final = 100


Fetch = Callable[[str], Awaitable[_Searched | Failure]]
