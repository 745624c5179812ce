"""The end of a refresh: what leaves the feed, what is missing of it, and what it is from now on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.links.classify import says_incremental
from wholefeed.core.notes import DocumentUnavailable, FormatMismatch, Note
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.events import DocumentsRead
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import Detach, Publish, ReadDocuments, Reorder, Steps, carry_out, outcome
from wholefeed.core.refresh.mementos import standing
from wholefeed.core.refresh.progress import Walked
from wholefeed.core.refresh.stored import Attempt, StoredDocument, attempted
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.terms import Kind, Role, State
from wholefeed.core.walk.drift import settle_path

_OF_STORED: Final = frozenset({DocumentTruncated.slug, FormatMismatch.slug})
"""Why a document that is stored may count as missing."""


def settle_steps(
    given: Given, documents: Sequence[StoredDocument], current: Current, walked: Walked, state: State
) -> Steps[None]:
    """Take the drift, then publish the feed with what is missing of it.

    Args:
        given: What the refresh starts from.
        documents: As they were stored before the walk.
        current: The subscription document.
        walked: What the walk found.
        state: What the feed is where nothing is missing.
    """
    notes = (*current.notes, *walked.notes)
    if current.kind is not Kind.COMPLETE:  # else nothing but the subscription document stands
        notes = (*notes, *standing(given, documents))
    yield from _drift_steps(given, documents, current, walked, state)
    if not walked.is_true_end or any(note.partial for note in notes):
        state = State.PARTIAL
    missing = missing_of(given, notes, walked)
    yield from carry_out(Publish(state=state, notes=notes, ending=walked.ending, missing=missing))


def _drift_steps(
    given: Given, documents: Sequence[StoredDocument], current: Current, walked: Walked, state: State
) -> Steps[None]:
    """R15: what the publisher replaced in the chain leaves; the order is the path's.

    Nothing leaves a feed of pages (R6), or one that says that earlier entries are part of it (-00, 3).
    """
    if not walked.path:
        return
    role = Role.PAGE if state is State.PAGED else Role.ARCHIVE
    chain = [row.id for row in documents if row.role is role and row.rank is not None and not row.is_capture]
    stays = role is Role.PAGE or says_incremental(current.arrival.links)
    is_true_end = walked.is_true_end and not stays and not walked.has_copies
    drift = settle_path(chain, walked.path, is_true_end=is_true_end, is_full=given.request.is_full)
    if drift.detached:
        yield from carry_out(Detach(drift.detached))
    if drift.is_reordered or (role is Role.PAGE and (yield from _is_disordered(drift.order))):
        yield from carry_out(Reorder({each: rank for rank, each in enumerate(drift.order)}))


def _is_disordered(pages: Sequence[int]) -> Steps[bool]:
    """Pages are not always met in the order that they are to stand in."""
    read = yield from outcome(ReadDocuments(), DocumentsRead)
    listed = set(pages)
    return [row.id for row in read.documents if row.id in listed] != list(pages)


def missing_of(given: Given, notes: Sequence[Note], walked: Walked) -> tuple[Attempt, ...]:
    """Return all that makes the feed partial, each with the time of its next attempt (R14)."""
    partial = {note.url: note for note in notes if note.partial}
    unseen = [
        attempt
        for url, attempt in given.missing.items()
        if url not in partial and attempt.reason in _OF_STORED and not walked.is_true_end
    ]  # the walk may not have come by: it is as it was
    return (*unseen, *(_attempt(given, url, note, walked) for url, note in partial.items()))


def _attempt(given: Given, url: str, note: Note, walked: Walked) -> Attempt:
    now, earlier, failure = given.clock.now, given.missing.get(url), walked.failures.get(url)
    if earlier is not None and failure is None and earlier.waits(now):
        return earlier  # not tried this time
    if failure is None:
        next_at = now + given.settings.retry_missing_seconds
        return attempted(earlier, url, reason=note.slug, status=None, next_at=next_at, now=now)
    return attempted(
        earlier,
        url,
        reason=note.reason if isinstance(note, DocumentUnavailable) else failure.slug,
        status=failure.publisher_status,
        next_at=given.next_attempt_at(failure, earlier),
        now=now,
    )
