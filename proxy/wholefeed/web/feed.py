"""GET, HEAD and DELETE of a feed, in both forms of its URL."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from aiohttp import web

from wholefeed.core.formats import content_type
from wholefeed.core.terms import State
from wholefeed.errors import LoopDetectedError
from wholefeed.loggers import get_logger
from wholefeed.service.results import Reconstruction
from wholefeed.web.answer.answer import (
    SLICE_BYTES,
    Answer,
    Representation,
    reconstruction_field,
    slices,
    viewed,
)
from wholefeed.web.answer.conditions import accepts_gzip, is_not_modified
from wholefeed.web.asked import Asked
from wholefeed.web.host_field import base_url
from wholefeed.web.keys import ASKED, CONFIG, SERVICE, STORE
from wholefeed.web.request_target import feed_url, own_url, read_view, read_wait, view_query

log = get_logger()

LOADING_SECONDS: Final = 5
"""How long a `loading` answer may be reused."""
_STALLED_SECONDS: Final = 30
"""A reader that takes nothing for so long is let go (docs/faults.md row 65)."""
_VIA: Final = re.compile(r"(?:^|,)\s*\S+\s+wholefeed(?=[\s,]|$)")
"""What this proxy calls itself; the name of a reverse proxy's host may hold the word."""


async def get_feed(request: web.Request) -> web.StreamResponse:
    """GET /feed?url=U: the reconstructed feed."""
    return await _answer(request, request[ASKED])


async def get_prefixed(request: web.Request) -> web.StreamResponse:
    """GET /https://…: the same, the URL written behind the slash."""
    asked = request[ASKED]
    if not asked.is_prefixed:
        raise web.HTTPNotFound
    return await _answer(request, asked)


async def delete_feed(request: web.Request) -> web.StreamResponse:
    """DELETE /feed?url=U: forget the feed."""
    await request.app[SERVICE].forget(feed_url(request[ASKED].query.url))
    return web.Response(status=204)


async def _answer(request: web.Request, asked: Asked) -> web.StreamResponse:
    query = asked.query
    url = feed_url(query.url)
    _refuse_loop(request, url)
    config = request.app[CONFIG]
    whole_url = own_url(base_url(request, asked, config.server), url, asked.mark)
    wanted = Representation(
        self_url=whole_url + view_query(query.options),
        whole_url=whole_url,
        is_gzip=accepts_gzip(request.headers.get("Accept-Encoding")),
        warns=config.history.warn_entry,
        view=read_view(query.options, config.limits.answer_bytes),
    )
    wait_seconds = read_wait(query.options, config.limits.respond_within_seconds)
    is_head = request.method == "HEAD"
    async with request.app[SERVICE].answer(url, wait_seconds=wait_seconds, is_head=is_head) as reconstruction:
        answer = await viewed(reconstruction, wanted, request.app[STORE])
        asked.facts.update(
            feed=reconstruction.feed.id,
            state=str(reconstruction.state),
            documents=reconstruction.feed.documents,
            entries=reconstruction.feed.entries,
        )
        headers = _headers(request, reconstruction, answer)
        if _has_it(request, reconstruction, answer):
            return await _send(request, web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers))
        headers["Content-Type"] = content_type(reconstruction.feed.published_family)
        headers["Content-Length"] = str(answer.length)
        if answer.is_gzip:
            headers["Content-Encoding"] = "gzip"
        if is_head:
            return await _send(request, web.Response(headers=headers))
        pieces = slices(answer, request.app[STORE])
        if answer.length <= SLICE_BYTES:
            body = b"".join([piece async for piece in pieces])
            return await _send(request, web.Response(headers=headers, body=body))
        return await _send(request, web.StreamResponse(headers=headers), pieces)


async def _send(
    request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes] | None = None
) -> web.StreamResponse:
    """Send the answer, whose body is its own or comes in pieces.

    What has a body of its own is one write. Of a failure in the middle the reader sees a broken body, no
    short feed (docs/faults.md row 66).
    """
    try:
        await response.prepare(request)
        if pieces is not None:
            async for piece in pieces:
                async with asyncio.timeout(_STALLED_SECONDS):
                    await response.write(piece)
        async with asyncio.timeout(_STALLED_SECONDS):
            await response.write_eof()
    except (ConnectionError, TimeoutError):
        _abort(request)
    except BaseException:
        _abort(request)
        raise
    return response


def _abort(request: web.Request) -> None:
    request[ASKED].facts["aborted"] = True
    if request.transport is not None:
        request.transport.abort()


def _headers(request: web.Request, reconstruction: Reconstruction, answer: Answer) -> dict[str, str]:
    now = request.app[SERVICE].now()  # RFC 9110, 8.8.2.1: never later than Date
    return {
        "Feed-Reconstruction": reconstruction_field(reconstruction, is_cut=answer.is_cut),
        "ETag": answer.etag,
        "Last-Modified": formatdate(min(reconstruction.feed.modified_at or 0.0, now), usegmt=True),
        "Cache-Control": _cache_control(request, reconstruction),
        "Vary": "Accept-Encoding",
        "Link": f'<{reconstruction.via_url}>; rel="via"',
    }


def _cache_control(request: web.Request, reconstruction: Reconstruction) -> str:
    feed = reconstruction.feed
    seconds = LOADING_SECONDS
    if reconstruction.state is not State.LOADING:
        now = request.app[SERVICE].now()
        seconds = int(
            min(max((feed.fresh_until or 0.0) - now, 0.0), request.app[CONFIG].freshness.maximum_seconds)
        )
    server = request.app[CONFIG].server
    scope = "private, " if feed.is_private or server.access_token or server.signing_keys else ""
    return f"{scope}max-age={seconds}"


def _has_it(request: web.Request, reconstruction: Reconstruction, answer: Answer) -> bool:
    return is_not_modified(
        answer.etag,
        reconstruction.feed.modified_at or 0.0,
        request.headers.get("If-None-Match"),
        request.headers.get("If-Modified-Since"),
    )


def _refuse_loop(request: web.Request, url: str) -> None:
    """What came through this proxy already leads in a circle (docs/faults.md row 19; RFC 9110, 7.6.3)."""
    if any(_VIA.search(value) for value in request.headers.getall("Via", [])):
        raise LoopDetectedError("the request came through wholefeed already", url=url)
