"""Documents that sources other than the publisher's links offer to a refresh: imports, listings, mementos.

Such a document settles, detaches and buries nothing. Its statements about the feed itself do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wholefeed.core.listing.lists import LEAST
from wholefeed.core.model import Family, Kind, Role, State
from wholefeed.core.notes import End, Ending, MementoServed, Note
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, Offer, Placement, adds_to
from wholefeed.core.refresh.asking import (
    Attach,
    Detach,
    Drop,
    FindKnown,
    KeepDocument,
    NoteListing,
    Remove,
    Talk,
    ask,
)
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.refresh.stored import Attempt, StoredDocument, subscription_of
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc3339
from wholefeed.core.text.urls import document_key

BEHIND_ALL: Final = 1 << 40
"""Rank of a memento from 1970; later ones rank before it."""


def take_added(basis: Basis, documents: Sequence[StoredDocument]) -> Talk[bool]:
    """Store imports and listings, remove documents (I1) and entries (I2); return whether there were any."""
    added = [offer for offer in basis.offers if offer.is_added]
    attached = {row.url: row.rank for row in documents if row.is_listed}
    for offer in added:
        place = Placement(url=offer.copy_url, role=Role.PAGE, rank=attached.get(offer.copy_url))
        yield KeepDocument(offer.copy_url, place)
    removed = [row.id for row in documents if row.url in basis.request.removes]
    if removed or basis.request.forgets:
        yield Remove(removed, basis.request.forgets)
    return bool(added or removed or basis.request.forgets)


def place_added(
    documents: Sequence[StoredDocument],
    family: Family,
    kind: Kind,
    state: State,
    *,
    has_lists: bool | None = None,
) -> Talk[None]:
    """Attach imports and listings to the feed, behind all others; detach them from a complete feed.

    With None as `has_lists`, listings stay as they are.
    """
    # The publisher calls a complete feed so; further documents would contradict that.
    is_whole = state is State.COMPLETE or kind is Kind.COMPLETE
    leaving, coming = list[int](), dict[int, int]()
    for row in documents:
        if not row.is_added:
            continue
        is_wanted = has_lists if row.is_listed else True
        if is_whole or is_wanted is False:
            leaving += [row.id] if row.rank is not None else []
        elif is_wanted and row.rank is None and row.family is family:
            coming[row.id] = BEHIND_ALL - (0 if row.is_listed else int(row.fetched_at))
    if leaving:
        yield Detach(leaving)
    if coming:
        yield Attach(coming)


def store_copies(
    basis: Basis, documents: Sequence[StoredDocument], subscription: SubscriptionState
) -> Talk[bool]:
    """Store the useful mementos (R33); return whether there were any."""
    # A memento of another document is stored detached until the walk misses that document. One of the
    # subscription document becomes a page behind all others, if it adds anything.
    # If a feed is gone and nothing of it is stored, the newest memento stands in for its subscription
    # document, and the feed is partial. The publisher's own document replaces it.
    own = {(row.role, document_key(row.url)) for row in documents if not row.is_stand_in}
    serving = {row.memento for row in documents if row.role is Role.SUBSCRIPTION and row.rank is not None}
    is_any = False
    for offer in basis.offers:
        if offer.is_added:
            continue
        is_page = offer.is_subscription or subscription.kind is Kind.PAGED
        role = Role.PAGE if is_page else Role.ARCHIVE
        url = offer.copy_url if offer.is_subscription else offer.url
        is_of_use = (role, document_key(url)) not in own
        if is_of_use and offer.is_subscription and offer.copy_url not in serving:
            is_of_use = yield from _brings_anything(offer)
        if is_of_use:
            rank = BEHIND_ALL - int(offer.captured_at) if offer.is_subscription else None
            yield KeepDocument(offer.copy_url, Placement(url=url, role=role, rank=rank))
        else:
            yield Drop(offer.copy_url)
        is_any |= is_of_use
    return is_any


def _brings_anything(offer: Offer[FreshDocument]) -> Talk[bool]:
    known = yield from ask(FindKnown(offer.copy_url, offer.document.arrival, with_copies=True))
    return adds_to(known, offer.document, offer.captured_at)


def note_copies(basis: Basis, documents: Sequence[StoredDocument]) -> list[Note]:
    copies = (row for row in documents if row.origin.policy.note is not None)
    attached = [row for row in copies if row.rank is not None]
    notes = [row.as_memento() for row in attached if row.role is Role.SUBSCRIPTION]
    of_use = (row for row in attached if row.is_capture and row.live_bytes)
    captures = sorted(of_use, key=lambda row: row.fetched_at)
    if captures:
        oldest, newest = captures[0], captures[-1]
        times = [format_rfc3339(each.fetched_at) for each in (oldest, newest)]
        when = times[1] if oldest is newest else f"{times[0]} to {times[1]}"
        facts = {"copy_url": newest.memento, "captured": when, "copies": len(captures)}
        notes.append(MementoServed(basis.feed.fetch_url, **facts))
    return notes


# Lists in a publisher's pages (H7, H8)


def add_lists(
    basis: Basis, documents: Sequence[StoredDocument], subscription: SubscriptionState, walked: WalkResult
) -> WalkResult:
    """Return the walk's result with listings as the history, if there are any (H7)."""
    family, listing = subscription.arrival.family, _listing_of(basis)
    rows = [row for row in documents if row.is_listed and row.family is family]
    if listing.family != family or not any(row.entries for row in rows):
        return walked
    notes, asked = list(listing.notes()), basis.request.listing
    partial = tuple(note for note in notes if note.partial)
    failures = {each.url: Failure(slug=each.slug, publisher_status=each.status) for each in listing.missing}
    return replace(
        walked,
        state=State.LISTED,
        notes=[*walked.notes, *notes],
        failures=walked.failures | ({} if asked is None else failures),
        ending=Ending(None, partial) if partial else Ending(End.LISTED),
        untried=frozenset() if asked is not None else frozenset(each.url for each in listing.missing),
    )


def _listing_of(basis: Basis) -> ListingState:
    asked = basis.request.listing
    return ListingState.read(basis.feed.listing) if asked is None else asked


def plan_look(
    basis: Basis,
    documents: Sequence[StoredDocument],
    subscription: SubscriptionState,
    *,
    is_plain: bool,
    missing: Sequence[Attempt],
) -> Talk[None]:
    """Note the state of the publisher's listings, and the time of the next look (H1, H8).

    `is_plain` says that no other source brings the feed's history.
    """
    feed, listing, now = basis.feed, _listing_of(basis), basis.now()
    first = subscription_of(documents)
    at = feed.list_at
    if not is_plain or first is None or first.entries < LEAST:
        at = None
    elif basis.request.listing is not None:
        pages = {each.url for each in listing.missing}
        at = listing.next_at((each.next_at for each in missing if each.url in pages), now=now)
    elif at is None or listing.family not in ("", subscription.arrival.family):
        at = max(now, listing.retry_at or now)
    elif subscription.has_gap:
        at = min(at, max(now, listing.retry_at or now, (listing.looked_at or now) + DAY_SECONDS))
    written = listing.written()
    if (written, at) != (feed.listing, feed.list_at):
        yield NoteListing(written, at)
