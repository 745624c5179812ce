"""The order of a refresh: from the request for the subscription document to the publication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from wholefeed.core.adapters.base import NOTHING_COLLECTED, Collection
from wholefeed.core.model import Kind, Role, State
from wholefeed.core.notes import End, Ending, HistoryNotOffered, Note
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.accounting import NO_SHIFTS, Shifts
from wholefeed.core.refresh.arrivals import SubscriptionFailed
from wholefeed.core.refresh.asking import Detach, EndWalk, Publish, Reread, Rows, SettleIds, Talk, Unlist, ask
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.collecting import Collecting
from wholefeed.core.refresh.concluding import conclude
from wholefeed.core.refresh.linked import find_ascent, is_followed, linked_history
from wholefeed.core.refresh.offered import add_lists, place_added, store_copies, take_added
from wholefeed.core.refresh.stored import StoredDocument, StoredFeed, subscription_of
from wholefeed.core.refresh.subscription import SubscriptionRefresh, SubscriptionState
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Trail

Documents = Sequence[StoredDocument]


def refresh(basis: Basis, documents: Documents) -> Talk[SubscriptionFailed | None]:
    """Bring a feed up to date; return the failure if it has no subscription document."""
    feed, request = basis.feed, basis.request

    # Imports and listings come first. To publish a feed at rest with imports needs no request.
    has_added = yield from take_added(basis, documents)
    if has_added:
        documents = yield from ask(Rows())
    if has_added and request.listing is None and is_at_rest(feed, documents):
        yield from place_added(documents, feed.family, feed.kind, feed.state)
        yield Publish(feed.state, None)
        return None

    # The subscription document is fetched, and stored if anything in it has changed.
    subscription = yield from SubscriptionRefresh(basis, documents).obtain()
    if isinstance(subscription, SubscriptionFailed):
        return subscription
    basis.progress.notes = subscription.notes

    # Parse stored documents with a newer parser, change the ids of posts, add mementos.
    is_new = yield from _renew_stored(basis, documents, subscription)
    is_new = is_new or subscription.has_changed or has_added or request.listing is not None
    if is_new:
        documents = yield from ask(Rows())

    # Find the history of the feed, and whether there is work.
    plan = plan_refresh(basis, documents, subscription)
    if not (is_new or subscription.has_moved or (plan.is_due and not basis.has_copies)):
        return None
    first = subscription_of(documents)
    basis.progress.entries = 0 if first is None else first.entries
    if plan.way is HistoryWay.PUT_OFF or (plan.is_walk and not feed.digest):
        yield Publish(State.LOADING, subscription.notes)
    if plan.way is HistoryWay.PUT_OFF:
        return None

    # Walk or collect the history; meanwhile fetched documents are published from time to time.
    walked = yield from _reconstruct(basis, documents, subscription, plan)

    # Detach withdrawn documents, note missing ones, and publish the feed.
    yield from conclude(basis, documents, subscription, walked)
    return None


def is_at_rest(feed: StoredFeed, documents: Documents) -> bool:
    """Return whether the last refresh was finished: then publishing imports needs no request."""
    is_whole = bool(feed.digest) and feed.revision == feed.published_revision and not feed.is_walking
    is_read = all(row.parser_version == PARSER_VERSION for row in documents)
    return is_whole and is_read and feed.state is not State.LOADING


def _renew_stored(basis: Basis, documents: Documents, subscription: SubscriptionState) -> Talk[bool]:
    is_new, feed = False, basis.feed
    if any(row.parser_version != PARSER_VERSION for row in documents):
        is_new |= yield from ask(Reread())
    if basis.request.is_full or (feed.renaming_at is not None and feed.renaming_at <= basis.now()):
        is_new |= yield from ask(SettleIds(joins=basis.request.is_full))
    if basis.has_copies:
        is_new |= yield from store_copies(basis, documents, subscription)
    if subscription.has_changed and any(row.is_listed for row in documents):
        yield Unlist()
    return is_new


# The plan


class HistoryWay(Enum):
    WHOLE = "the subscription document is all (R1, R5)"
    LINKS = "its links lead to a chain, or to pages (R2, R4, R6)"
    ADAPTER = "its publisher has it, and does not link it (R26)"
    NOWHERE = "no links, or none that are followed (R7)"
    PUT_OFF = "links or an adapter lead to it, and this request may not walk"


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    way: HistoryWay
    basis: Basis
    documents: Documents
    subscription: SubscriptionState
    collecting: Collecting | None

    @property
    def is_walk(self) -> bool:
        """Whether documents may be added for a long time."""
        if self.way is HistoryWay.ADAPTER and self.collecting is not None:
            return self.collecting.is_due
        return self.way is HistoryWay.LINKS

    @property
    def is_due(self) -> bool:
        """Whether there is work although nothing is new."""
        is_chain = self.subscription.kind in (Kind.ARCHIVED, Kind.LEGACY)
        return (
            _is_archive_due(self.basis, self.documents, self.subscription)
            or (is_chain and _is_account_due(self.basis))
            or (self.collecting is not None and self.collecting.is_due)
            or _is_unfinished(self.basis, has_adapter=self.collecting is not None)
        )


def plan_refresh(basis: Basis, documents: Documents, subscription: SubscriptionState) -> RefreshPlan:
    kind, collecting = subscription.kind, None
    if kind is Kind.PLAIN and subscription.is_confirmed:  # R26: only a responding publisher
        collecting = Collecting.of(basis, documents, subscription)
    may_walk = basis.request.may_walk
    if kind is Kind.COMPLETE:
        way = HistoryWay.WHOLE
    elif collecting is not None and (may_walk or not collecting.wants_all):
        way = HistoryWay.ADAPTER
    elif collecting is None and not is_followed(basis, kind):
        way = HistoryWay.NOWHERE
    else:
        way = HistoryWay.LINKS if may_walk else HistoryWay.PUT_OFF
    return RefreshPlan(way, basis, documents, subscription, collecting)


def _is_account_due(basis: Basis) -> bool:
    """Return whether to search archives for entries that others have lost (R35)."""
    shifts = basis.feed.shifts
    return shifts != NO_SHIFTS and Shifts.read(shifts).is_due(basis.now())


def _is_unfinished(basis: Basis, *, has_adapter: bool) -> bool:
    feed, request, now = basis.feed, basis.request, basis.now()
    was_switched_on = feed.state is State.REMEMBERED and is_followed(basis, feed.kind)
    was_switched_off = feed.state is State.COLLECTED and feed.kind is Kind.PLAIN and not has_adapter
    return (
        request.is_forced
        or request.is_full
        or feed.is_walking
        or not feed.digest
        or feed.revision != feed.published_revision  # an earlier refresh did not come to its end
        or find_ascent(feed) is not None  # news is not in the subscription document
        or was_switched_on
        or was_switched_off
        or feed.state is State.LOADING
        or any(not each.waits(now) for each in basis.missing.values())
    )


def _is_archive_due(basis: Basis, documents: Documents, subscription: SubscriptionState) -> bool:
    """Return whether to validate an archive on the stored path although nothing is new now (R13)."""
    # The subscription document may have changed within a day of the last check, and not since.
    if subscription.kind not in (Kind.ARCHIVED, Kind.LEGACY):
        return False
    stored = {document_key(row.url): row for row in documents if row.role is Role.ARCHIVE}
    if all(row.is_final for row in stored.values()):
        return False
    trail, links, is_newest = Trail(relation=subscription.relation), subscription.arrival.links, True
    while (row := stored.pop(document_key(trail.target(links) or ""), None)) is not None:
        if row.is_due(subscription.changed_at, is_newest=is_newest, now=basis.now()):
            return True
        links, is_newest = row.links, False
    return False


# The history


def _reconstruct(
    basis: Basis, documents: Documents, subscription: SubscriptionState, plan: RefreshPlan
) -> Talk[WalkResult]:
    if plan.way is HistoryWay.WHOLE:
        yield from _leave_alone(documents)
        return WalkResult(ending=Ending(End.WHOLE))
    if plan.way is HistoryWay.ADAPTER and plan.collecting is not None:
        walked = yield from _collect(plan.collecting)
    elif plan.way is HistoryWay.LINKS:
        walked = yield from _follow_links(basis, documents, subscription)
    else:
        end = End.NOT_OFFERED if subscription.kind is Kind.PLAIN else End.NOT_FOLLOWED
        notes = _note_denial(basis, subscription)
        walked = WalkResult(state=State.REMEMBERED, notes=notes, ending=Ending(end))
    if subscription.kind is Kind.PLAIN and walked.state is State.REMEMBERED:
        walked = add_lists(basis, documents, subscription, walked)
    return walked


def _leave_alone(documents: Documents) -> Talk[None]:
    """Detach all other documents: the subscription document is the whole feed (R1, R5)."""
    attached = (row for row in documents if row.rank is not None)
    leaving = [row.id for row in attached if row.role is not Role.SUBSCRIPTION]
    if leaving:
        yield Detach(leaving)


def _collect(collecting: Collecting) -> Talk[WalkResult]:
    walked = yield from collecting.run()
    if collecting.has_begun:
        yield _end_walk(walked)
    return replace(walked, has_met=collecting.is_met)


def _follow_links(basis: Basis, documents: Documents, subscription: SubscriptionState) -> Talk[WalkResult]:
    """Walk along the links; ask the publisher if they lead nowhere at once (R26)."""
    walked = yield from linked_history(basis, documents, subscription)
    yield EndWalk()
    if subscription.kind is Kind.PAGED and not walked.path:
        collecting = Collecting.of(basis, documents, subscription)
        collected = None if collecting is None else (yield from collecting.run())
        if collecting is not None and collected is not None and collected.state is State.COLLECTED:
            is_met, has_met = collecting.is_met, walked.has_met
            walked = replace(collected, has_met=lambda url: is_met(url) or has_met(url))
    yield _end_walk(walked)
    return walked


def _end_walk(walked: WalkResult) -> EndWalk:
    reason = next((note.slug for note in walked.notes if note.partial), "end")
    return EndWalk(reason, 1 + len(walked.path))


def _note_denial(basis: Basis, subscription: SubscriptionState) -> list[Note]:
    """Return the note on a denied history, if nobody has asked now (R27)."""
    if basis.feed.collection == NOTHING_COLLECTED or subscription.is_confirmed:
        return []
    known = Collection.read(basis.feed.collection)
    url = subscription.arrival.final_url
    return [HistoryNotOffered(url, adapter=known.adapter, reason=known.reason)] if known.is_denied else []
