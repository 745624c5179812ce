"""What a decision remarks on a feed and its documents, as what is to be done in the store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, assert_never

from wholefeed.core.refresh import intents
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentChanges, FeedChanges
from wholefeed.store.tables import documents, failures, feeds


def written(intent: intents.Remark, feed: int, now: float) -> Callable[[Database], Any]:
    """Return what writes a remark; it changes nothing of what the feed is made of."""
    match intent:
        case intents.NoteReply():
            return partial(_note_reply, feed=feed, intent=intent)
        case intents.NoteFailure(failure=failure, fresh_until=fresh_until):
            changes: FeedChanges = {"is_stale": True, "fresh_until": fresh_until}
            if failure is None:
                return partial(feeds.update, feed=feed, changes=changes)
            return partial(failures.note_refetch, feed=feed, failure=failure, changes=changes)
        case intents.Touch(document=document):
            touched: DocumentChanges = {"checked_at": now}
            if intent.is_settled is not None:
                touched["is_settled"] = intent.is_settled
            if intent.found_in is not None:
                touched["found_in"] = intent.found_in
            return partial(_touch, feed=feed, document=document, changes=touched)
        case intents.NoteCollection(collection):
            known: FeedChanges = {"collection": collection}
            return partial(feeds.update, feed=feed, changes=known)
        case _:
            assert_never(intent)


def _touch(db: Database, feed: int, document: int, changes: DocumentChanges) -> None:
    feeds.require_known(db, feed)  # of a feed that was forgotten meanwhile the store has lost nothing
    documents.touch(db, document, changes)


def touches_document(intent: intents.Remark) -> bool:
    """Whether a remark changes the row of a document."""
    is_said = isinstance(intent, intents.NoteReply) and intent.unchanged is not None
    return is_said or isinstance(intent, intents.Touch)


def _note_reply(db: Database, feed: int, intent: intents.NoteReply) -> None:
    changes: FeedChanges = {
        "is_stale": False,
        "checked_at": intent.checked_at,
        "fresh_until": intent.fresh_until,
        "is_private": intent.is_private,
    }
    if intent.fetch_url is not None:
        changes["fetch_url"] = intent.fetch_url
    if intent.move is not None:
        changes["moved_to"] = intent.move.target
        changes["moved_since"] = intent.move.since
        changes["moved_times"] = intent.move.times
    failures.note_refetch(db, feed, None, changes)
    if intent.unchanged is not None:
        documents.touch(db, intent.unchanged, {"checked_at": intent.checked_at})
