"""The end of a refresh: departed and missing documents, and the new state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wholefeed.core.links import says_incremental
from wholefeed.core.model import Family, Kind, Role, State
from wholefeed.core.notes import (
    DocumentTruncated,
    DocumentUnavailable,
    FormatChanged,
    FormatMismatch,
    Note,
    PageStale,
)
from wholefeed.core.refresh.asking import Attach, Detach, Publish, Rows, Talk, ask
from wholefeed.core.refresh.basis import Basis, WalkResult
from wholefeed.core.refresh.offered import note_copies, place_added, plan_look
from wholefeed.core.refresh.stored import Attempt, StoredDocument
from wholefeed.core.refresh.subscription import SubscriptionState
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.drift import settle_path


def conclude(
    basis: Basis, documents: Sequence[StoredDocument], subscription: SubscriptionState, walked: WalkResult
) -> Talk[None]:
    """Detach withdrawn documents, then publish the feed with its missing documents.

    `documents` are the rows from before the walk.
    """
    family, kind, state = subscription.arrival.family, subscription.kind, walked.state
    notes = (*subscription.notes, *walked.notes)
    if kind is not Kind.COMPLETE:  # a complete feed has no other document
        notes = (*notes, *note_copies(basis, documents))
    if state is not State.COMPLETE:
        notes = (*notes, *_note_other_formats(basis, documents, family))
    if walked.path:
        yield from _settle_drift(basis, documents, subscription, walked)
    if not walked.is_true_end or any(note.partial for note in notes):
        state = State.PARTIAL
    is_listed = walked.state is State.LISTED
    is_plain = kind is Kind.PLAIN and walked.state in (State.LISTED, State.REMEMBERED)
    yield from place_added(documents, family, kind, state, has_lists=is_listed)
    missing = yield from _list_missing(basis, documents, notes, walked)
    yield from plan_look(basis, documents, subscription, is_plain=is_plain, missing=missing)
    yield Publish(state, notes, walked.ending, missing)


def _settle_drift(
    basis: Basis, documents: Sequence[StoredDocument], subscription: SubscriptionState, walked: WalkResult
) -> Talk[None]:
    """Detach documents that the publisher replaced in the chain, and put the chain in order (R15)."""
    # Nothing leaves a feed of pages (R6), or one that calls earlier entries part of itself (-00, 3).
    role = Role.PAGE if walked.state is State.PAGED else Role.ARCHIVE
    of_role = (row for row in documents if row.role is role and not row.is_capture)
    chain = [row.id for row in of_role if row.rank is not None]
    stays = role is Role.PAGE or says_incremental(subscription.arrival.links)
    is_true_end = walked.is_true_end and not stays and not walked.has_copies
    drift = settle_path(chain, walked.path, is_true_end=is_true_end, is_full=basis.request.is_full)
    if drift.detached:
        yield Detach(drift.detached, is_withdrawn=True)
    is_reordered = drift.is_reordered
    if role is Role.PAGE and not is_reordered:  # a walk does not always meet pages in their stored order
        listed = set(drift.order)
        rows = yield from ask(Rows())
        is_reordered = [row.id for row in rows if row.id in listed] != list(drift.order)
    if is_reordered:
        yield Attach({each: rank for rank, each in enumerate(drift.order)})


def _list_missing(
    basis: Basis, documents: Sequence[StoredDocument], notes: Sequence[Note], walked: WalkResult
) -> Talk[tuple[Attempt, ...]]:
    """Return an attempt for each document that makes the feed partial (R14)."""
    partial = {note.url: note for note in notes if note.partial}
    unseen = []
    for url, attempt in basis.missing.items():
        if url not in partial and not (yield from _is_had_or_gone(documents, attempt, walked)):
            unseen.append(attempt)  # the walk did not reach it, so it stays missing
    return (*unseen, *(_attempt(basis, url, note, walked) for url, note in partial.items()))


def _is_had_or_gone(documents: Sequence[StoredDocument], attempt: Attempt, walked: WalkResult) -> Talk[bool]:
    """Return whether a stored document no longer counts as missing, though others do."""
    # The walk has reached the document, or no document links to it any more.
    if walked.is_true_end or attempt.reason not in _OF_STORED or walked.has_met(attempt.url):
        return True
    key = document_key(attempt.url)
    return key in _list_link_keys(documents) and key not in _list_link_keys((yield from ask(Rows())))


def _list_link_keys(documents: Sequence[StoredDocument]) -> set[str]:
    return {document_key(target) for row in documents for target in row.links.values()}


_OF_STORED: Final = frozenset({DocumentTruncated.slug, FormatMismatch.slug})


def _attempt(basis: Basis, url: str, note: Note, walked: WalkResult) -> Attempt:
    """Return the new attempt for a missing document, or the earlier one if nobody tried."""
    earlier, failure = basis.missing.get(url), walked.failures.get(url)
    is_waiting = failure is None and earlier is not None and earlier.waits(basis.now())
    is_untried = is_waiting or not walked.has_tried or url in walked.untried
    if earlier is not None and is_untried:
        return earlier
    reason = note.slug if failure is None else failure.slug
    if failure is not None and note.kind is DocumentUnavailable:
        reason = note.facts["reason"]
    attempt = basis.count_attempt(url, earlier, failure, reason=reason)
    return replace(attempt, next_at=basis.now() + _STALE_SECONDS) if note.kind is PageStale else attempt


# Pause before fetching a page again after a cache sent an older copy.
_STALE_SECONDS: Final = 60.0


def _note_other_formats(basis: Basis, documents: Sequence[StoredDocument], family: Family) -> list[Note]:
    """Return a note on stored documents for each format other than the feed's (R23)."""
    left: dict[Family, float] = {}
    for row in documents:
        if row.family is not family and row.detached_at is not None and row.entries and not row.is_stand_in:
            left[row.family] = max(left.get(row.family, 0.0), row.detached_at)
    return [
        FormatChanged(basis.feed.fetch_url, found=family, other=other, last_had=format_rfc3339(at))
        for other, at in left.items()
    ]
