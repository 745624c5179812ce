"""What is known of a feed, as JSON: /status, /feeds; and what /refresh answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from wholefeed.core.adapters.collection import Collection
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.service.account import ChainDocument
from wholefeed.service.results import Status
from wholefeed.store.rows import DocumentRow, FeedRow
from wholefeed.web.keys import SERVICE
from wholefeed.web.named import named_url


async def get_status(request: web.Request) -> web.StreamResponse:
    """GET /status?url=U: the status object, with the whole chain."""
    status, account = await request.app[SERVICE].account(await named_url(request))
    return json_answer(account_object(status, account))


async def get_feeds(request: web.Request) -> web.StreamResponse:
    """GET /feeds: the known feeds."""
    return json_answer([summary_object(feed) for feed in await request.app[SERVICE].feeds()])


def status_object(status: Status) -> dict[str, Any]:
    """Return the status object that README and `/openapi.json` describe. Times are RFC 3339, UTC."""
    feed, failures = status.feed, status.overview.failures
    return {
        **summary_object(feed),
        "missing": [_missing(attempt) for attempt in failures.missing],
        "failure": _failure(failures.subscription) if failures.subscription is not None else None,
        "notes": json.loads(feed.notes),
        "ending": None if feed.is_walking else json.loads(feed.ending) or None,
        "refreshing": status.is_refreshing,
        "walking": feed.is_walking,
        "paused_until": _time(status.paused_until),
        "collection": _collection(Collection.read(feed.collection)),
        "progress": {
            "documents": status.progress_documents,
            "entries": status.progress_entries,
            "fetched": status.progress_fetched,
            "left": status.progress_left,
            "seconds": None if status.progress_seconds is None else int(status.progress_seconds),
        },
        "bytes": status.overview.stored_bytes,
    }


def account_object(status: Status, account: Sequence[ChainDocument]) -> dict[str, Any]:
    """Return the status object with the account of the feed's documents under `chain`."""
    return {**status_object(status), "chain": [_chained(each) for each in account]}


def _chained(told: ChainDocument) -> dict[str, Any]:
    """Return one document of the chain; what is not known of it is null."""
    document = told.document
    return {
        "url": told.url,
        "role": document.role if document is not None else None,
        "standing": told.standing,
        "relation": told.relation or None,
        "from": told.source or None,
        "adapter": (document.found_by or None) if document is not None else None,
        "failure": _failure(told.attempt) if told.attempt is not None else None,
        "fetched": _time(document.fetched_at) if document is not None else None,
        "checked": _time(document.checked_at) if document is not None else None,
        "entries": document.entries if document is not None else None,
        "duplicates": told.duplicates if document is not None else None,
        "bytes": document.body_bytes if document is not None else None,
        "notes": list(document.notes) if document is not None else [],
        "memento": _memento(document) if document is not None else None,
    }


def _memento(document: DocumentRow) -> dict[str, Any] | None:
    """Return which copy of a web archive a document is (R33); None: it came from its publisher."""
    if not document.memento:
        return None
    return {"url": document.memento, "captured": _time(document.fetched_at)}


def summary_object(feed: FeedRow) -> dict[str, Any]:
    """Return what a list of feeds tells of each."""
    return {
        "url": feed.url,
        "kind": feed.kind,
        "state": feed.visible_state,
        "stale": feed.is_stale,
        "format": feed.published_family,
        "documents": feed.documents,
        "entries": feed.entries,
        "since": _time(feed.first_seen_at),
        "last_refresh": _time(feed.checked_at),
        "next_refresh": _time(feed.fresh_until),
    }


def _collection(known: Collection) -> dict[str, Any] | None:
    """Return what is known of a history that the publisher does not link (R31)."""
    if not known.adapter:
        return None
    return {
        "adapter": known.adapter,
        "way": known.way or None,
        "pages": known.pages,
        "claimed": known.total,
        "collected": known.collected,
        "walked": _time(known.ended_at),
        "looked": _time(known.looked_at),
        "next_attempt": _time(known.retry_at),
        "reason": known.reason or None,
    }


def _missing(attempt: Attempt) -> dict[str, Any]:
    return {"url": attempt.url, **_failure(attempt)}


def _failure(attempt: Attempt) -> dict[str, Any]:
    return {
        "reason": attempt.reason,
        "status": attempt.status,
        "attempts": attempt.attempts,
        "next_attempt": _time(attempt.next_at),
    }


def _time(instant: float | None) -> str | None:
    return format_rfc3339(instant) if instant else None


def json_answer(value: object, *, status: int = 200) -> web.Response:
    """Answer with JSON that nobody keeps."""
    return web.json_response(value, status=status, headers={"Cache-Control": "no-store"})
