"""POST and DELETE /import: documents that people kept (I1)."""

from __future__ import annotations

from typing import Any

from aiohttp import hdrs, web

from wholefeed.core.text.dates import format_rfc3339, parse_rfc822
from wholefeed.core.words import printable
from wholefeed.errors import RequestError
from wholefeed.service.imports import Continued, ImportedDocument, SuppliedDocument
from wholefeed.web.api import json_answer
from wholefeed.web.keys import ASKED, CONFIG, SERVICE, UPLOADS, named_url
from wholefeed.web.request import is_set, read_instant, receive_upload


async def post_import(request: web.Request) -> web.StreamResponse:
    """Import the body into a feed.

    Its time is `at`, else its newest date, else Last-Modified. `name` is for display. `force` skips the
    evidence that it belongs to the feed.
    """
    url, options = await named_url(request), request[ASKED].query.options
    at = read_instant(options, "at") if "at" in options else None
    most_bytes = request.app[CONFIG].limits.document_bytes
    async with receive_upload(request, request.app[UPLOADS], most_bytes, what="document") as body:
        kept = SuppliedDocument(
            body,
            _format_name(options.get("name", "")),
            at=at,
            file_at=parse_rfc822(request.headers.get(hdrs.LAST_MODIFIED, "")),
            is_forced=is_set(options, "force"),
        )
        return json_answer(taken_object(await request.app[SERVICE].imports.take(url, kept)))


async def delete_import(request: web.Request) -> web.StreamResponse:
    """Remove an import by its name or URL."""
    name = request[ASKED].query.options.get("name", "")
    if not name:
        raise RequestError("expected the parameter name, that of an import as /status shows it, got none")
    removed = await request.app[SERVICE].imports.remove(await named_url(request), name)
    return json_answer({"removed": removed})


def taken_object(taken: ImportedDocument) -> dict[str, Any]:
    return {
        "url": taken.url,
        "name": taken.name,
        "outcome": "taken" if taken.is_new else "known",
        "as_of": format_rfc3339(taken.as_of),
        "entries": taken.entries,
        "new": taken.new_entries,
        "served": taken.is_served,
        "state": taken.feed.visible_state,
    }


def continued_object(continued: Continued) -> dict[str, Any]:
    return {
        "entries": continued.entries,
        "new": continued.new_entries,
        "served": continued.is_served,
        "state": continued.feed.visible_state,
    }


def _format_name(name: str) -> str:
    """Return a name on one line, without invisible characters."""
    return " ".join(printable(name, " ").split())
