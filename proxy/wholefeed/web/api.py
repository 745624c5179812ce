"""JSON for programs: status, events, list of feeds, health and the interface's description."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final, NamedTuple

from aiohttp import web
from multidict import CIMultiDict

from wholefeed import __version__
from wholefeed.core.adapters.base import Collection
from wholefeed.core.listing.finding import LookOutcome, why_in_words
from wholefeed.core.listing.joined_sources import SourceOutcome
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.listing_state import ListingState
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.texts.extracting import why_no_text
from wholefeed.service.account import ChainDocument
from wholefeed.service.results import Reconstruction, Status
from wholefeed.service.texts import element_in_words
from wholefeed.service.watching import News
from wholefeed.store.rows import DocumentRow, FeedRow, FeedSummary, ImportSummary
from wholefeed.web.answer import is_not_modified
from wholefeed.web.feed import send
from wholefeed.web.keys import CONFIG, SERVICE, STORE, named_url

# The state of a feed


async def get_status(request: web.Request) -> web.StreamResponse:
    status, account = await request.app[SERVICE].account(await named_url(request))
    return json_answer(account_object(status, account))


async def get_feeds(request: web.Request) -> web.StreamResponse:
    service = request.app[SERVICE]
    return json_answer([summary_object(feed, service.poll_at(feed)) for feed in await service.feeds()])


def account_object(status: Status, account: Sequence[ChainDocument]) -> dict[str, Any]:
    return {**status_object(status), "chain": [_describe_document(each) for each in account]}


def status_object(status: Status) -> dict[str, Any]:
    """Return a status object (docs/http.md, `/openapi.json`); times are RFC 3339, UTC."""
    feed, failures, progress = status.feed, status.overview.failures, status.progress
    return {
        **summary_object(feed, status.poll_at),
        "missing": [_missing(attempt) for attempt in failures.missing],
        "failure": _failure(failures.subscription) if failures.subscription is not None else None,
        "notes": json.loads(feed.notes),
        "ending": None if feed.is_walking else json.loads(feed.ending) or None,
        "refreshing": status.is_refreshing,
        "walking": feed.is_walking,
        "paused_until": _time(status.paused_until),
        "collection": _collection(Collection.read(feed.collection)),
        "listing": _listing(status),
        "texts": _texts(status),
        "progress": {
            "documents": progress.documents,
            "entries": progress.entries,
            "fetched": progress.fetched,
            "left": progress.left,
            "seconds": None if progress.seconds is None else int(progress.seconds),
        },
        "bytes": status.overview.stored_bytes,
        "imported": None if status.overview.imported is None else _describe_imports(status.overview.imported),
    }


def published_object(reconstruction: Reconstruction) -> dict[str, Any]:
    feed = reconstruction.feed
    return {
        "state": reconstruction.state,
        "stale": reconstruction.is_stale,
        "failure": None,
        "entries": feed.entries,
        "missing": [_missing(attempt) for attempt in reconstruction.missing],
        "collection": _collection(Collection.read(feed.collection)),
    }


def summary_object(feed: FeedRow | FeedSummary, poll_at: float | None = None) -> dict[str, Any]:
    """Return a feed's item in lists; `poll_at`: its next unasked refresh."""
    return {
        "url": feed.url,
        "title": feed.title or None,
        "kind": feed.kind,
        "state": feed.visible_state,
        "stale": feed.is_stale,
        "format": feed.published_family,
        "documents": feed.documents,
        "entries": feed.entries,
        "since": _time(feed.since),
        "last_refresh": _time(feed.checked_at),
        "fresh_until": _time(feed.fresh_until),
        "next_refresh": _time(poll_at),
    }


def _describe_document(told: ChainDocument) -> dict[str, Any]:
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
        "listed": told.is_listed,
        "memento": _memento(document) if document is not None else None,
        "import": _import(document) if document is not None else None,
    }


def _memento(document: DocumentRow) -> dict[str, Any] | None:
    """Return a web archive's memento (R33), if the document is one."""
    if document.origin is not Origin.MEMENTO:
        return None
    return {"url": document.memento, "captured": _time(document.fetched_at)}


def _import(document: DocumentRow) -> dict[str, Any] | None:
    """Return name and time of an imported document (I1)."""
    return {"name": document.memento, "as_of": _time(document.fetched_at)} if document.is_imported else None


def _describe_imports(known: ImportSummary) -> dict[str, Any]:
    return {"documents": known.documents, "entries": known.entries, "served": known.are_served}


def _collection(known: Collection) -> dict[str, Any] | None:
    """Return the state of a history collected without links (R31)."""
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


def _listing(status: Status) -> dict[str, Any] | None:
    """Return the state of lists in pages (H7); None: neither searched nor planned."""
    known = ListingState.read(status.feed.listing)
    if known.looked_at is None and status.list_at is None:
        return None
    return {
        "url": known.known.first_url or None,
        "pages": known.pages,
        "entries": status.feed.listed,
        "guessed": known.guessed,
        "limit": known.limit or None,
        "sources": [_source(each) for each in known.sources],
        "passed_over": [_passed_over(each) for each in known.looked],
        "looked": _time(known.looked_at),
        "next_look": None if status.list_at is None else format_rfc3339(status.list_at),
    }


def _source(source: SourceOutcome) -> dict[str, Any]:
    return {
        "kind": source.kind,
        "url": source.url,
        "entries": source.entries,
        "alone": source.alone,
        "served": source.is_served,
    }


def _texts(status: Status) -> dict[str, Any] | None:
    """Return the state of texts from pages (T2); None: nobody has asked for them."""
    feed, known = status.feed, status.overview.texts
    if known is None:
        return None
    return {
        "wanted": feed.texts_wanted,
        "taken": min(feed.texts, feed.texts_wanted),
        "element": element_in_words(known.learned) or None,
        "refused": [
            {"reason": each.why, "pages": each.pages, "url": each.url, "text": why_no_text(each.why)}
            for each in known.refused
        ],
        "changed": _time(feed.texts_at),
        "asked": _time(known.asked_at),
        "next_look": _time(known.due_at),
    }


def _passed_over(page: LookOutcome) -> dict[str, Any]:
    reason, _, status = page.why.partition(" ")
    status_code = int(status) if status.isdecimal() else None
    text = why_in_words(page.why)
    return {"url": page.url, "reason": reason, "status": status_code, "text": text}


def _missing(attempt: Attempt) -> dict[str, Any]:
    return {"url": attempt.url, **_failure(attempt)}


def _failure(attempt: Attempt) -> dict[str, Any]:
    return {
        "reason": attempt.reason,
        "status": attempt.status,
        "attempts": attempt.attempts,
        "last_attempt": _time(attempt.last_at),
        "next_attempt": _time(attempt.next_at),
    }


def _time(instant: float | None) -> str | None:
    return format_rfc3339(instant) if instant else None


def json_answer(value: object, *, status: int = 200) -> web.Response:
    """Answer with uncached JSON."""
    return web.json_response(value, status=status, headers={"Cache-Control": "no-store"})


# Progress (Server-Sent Events; HTML, section 9.2)

KEEP_ALIVE_SECONDS: Final = 15.0
"""Silence before a comment, since proxies close idle connections."""
_RETRY_SECONDS: Final = 5
LOOK_SECONDS: Final = 1.0
"""Delay until a departed reader is noticed."""
_END_ID: Final = "end"
EVENT_FIELDS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would buffer events
}


async def get_events(request: web.Request) -> web.StreamResponse:
    """Send the status object on every change, then `end` when no work remains (docs/http.md).

    Browsers reconnect after any end; 204 for the id of `end` stops them.
    """
    service = request.app[SERVICE]
    status = await service.status(await named_url(request))
    if not status.is_refreshing and (end := answer_after_end(request)) is not None:
        return end
    if request.method == "HEAD":
        return web.Response(headers=EVENT_FIELDS)
    async with service.watching.follow(status.feed.id) as news:
        return await send_events(request, _events(news))


async def _events(news: News) -> AsyncIterator[Event | None]:
    while not news.is_over:
        status = await news.next(LOOK_SECONDS)
        yield None if status is None else Event(status_object(status), is_end=not status.is_refreshing)


class Event(NamedTuple):
    """News for a follower; with `is_end` the last."""

    data: Mapping[str, object]
    is_end: bool


def answer_after_end(request: web.Request) -> web.Response | None:
    """Return the answer that stops a browser after `end`; None: it asks the first time."""
    if request.headers.get("Last-Event-ID") != _END_ID:
        return None
    return web.Response(status=HTTPStatus.NO_CONTENT, headers={"Cache-Control": "no-store"})


async def send_events(request: web.Request, events: AsyncIterator[Event | None]) -> web.StreamResponse:
    """Send events as they come; None stands for `LOOK_SECONDS` without one."""
    return await send(request, web.StreamResponse(headers=EVENT_FIELDS), _write_events(request, events))


async def _write_events(request: web.Request, events: AsyncIterator[Event | None]) -> AsyncIterator[bytes]:
    yield f"retry: {1000 * _RETRY_SECONDS}\n\n".encode()
    spoken_at = time.monotonic()
    async for event in events:
        if not _is_there(request):
            return
        if event is not None:
            name = f"end\nid: {_END_ID}" if event.is_end else "status"
            yield f"event: {name}\ndata: {json.dumps(event.data)}\n\n".encode()
        elif time.monotonic() - spoken_at >= KEEP_ALIVE_SECONDS:
            yield b": still here\n\n"
        else:
            continue
        spoken_at = time.monotonic()


def _is_there(request: web.Request) -> bool:
    """Whether the reader is connected; the server does not stop its handler."""
    return request.transport is not None and not request.transport.is_closing()


# Liveness and readiness

_READY_SECONDS: Final = 2.0
"""Balancers and supervisors wait hardly longer."""
_ALIVE: Final = b'{"status": "ok"}'
_HEALTH_FIELDS: Final = {"Cache-Control": "no-store", "Content-Type": "application/json; charset=utf-8"}
_ALIVE_FIELDS: Final = CIMultiDict({**_HEALTH_FIELDS, "Content-Length": str(len(_ALIVE))})


async def get_healthz(request: web.Request) -> web.StreamResponse:
    return web.Response(body=_ALIVE, headers=_ALIVE_FIELDS)


async def get_readyz(request: web.Request) -> web.StreamResponse:
    """Answer 200 if the store is open, migrated and writable.

    Raises:
        StoreError: It is not (503 `storage-full`: full volume).
        OverloadedError: A shared database is too slow.
    """
    async with request.app[SERVICE].checks.in_time(_READY_SECONDS):
        await request.app[STORE].check()
    return web.Response(body=b'{"status": "ready"}', headers=_HEALTH_FIELDS)


# The HTTP interface, described for programs (OpenAPI 3.1)


async def get_openapi(request: web.Request) -> web.StreamResponse:
    body, etag = _describe_api(request.app[CONFIG].server.public_url)
    fields = {"Cache-Control": "no-cache", "ETag": etag}
    if is_not_modified(etag, None, request.headers.get("If-None-Match"), None):
        return web.Response(status=304, headers=fields)
    return web.Response(body=body, content_type="application/json", charset="utf-8", headers=fields)


@cache
def _describe_api(public_url: str) -> tuple[bytes, str]:
    body = json.dumps(description(public_url)).encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def description(public_url: str = "") -> dict[str, Any]:
    """Return the OpenAPI document: `openapi.json` with HEAD, version and URL added.

    `tests/web/test_api.py` compares it with routes and answers.
    """
    return {
        **_WRITTEN,
        "info": {**_WRITTEN["info"], "version": __version__},
        "servers": [{"url": public_url or "/"}],
    }


def _written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(__package__).joinpath("openapi.json").read_text("utf-8"))
    for item in found["paths"].values():
        if "get" in item:
            item["head"] = _head(item["get"])
    return found


def _head(get: dict[str, Any]) -> dict[str, Any]:
    """Describe HEAD: GET without content."""
    responses = {
        status: {name: part for name, part in response.items() if name != "content"}
        for status, response in get["responses"].items()
    }
    return {**get, "operationId": get["operationId"].replace("get", "head", 1), "responses": responses}


_WRITTEN: Final = _written()
