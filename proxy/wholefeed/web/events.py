"""GET /events: how far a feed's walk is, as it goes on (Server-Sent Events; HTML, section 9.2).

    retry: 5000

    event: status
    data: {"url": …, "progress": {"documents": 12, …}, …}

    event: end
    id: end
    data: {…}

Each `status` is the status object as it is then; `end` is the last one, when nothing is under way any more. A
browser asks again when a connection ends, whatever was said on it: what comes back with the id of `end` is
answered with 204, which tells it to stop. Whoever was cut off has no such id and is told the rest.
"""

from __future__ import annotations

import asyncio
import json
import time
from http import HTTPStatus
from typing import Final

from aiohttp import web

from wholefeed.service.results import Status
from wholefeed.service.watching import News
from wholefeed.web.keys import ASKED, SERVICE
from wholefeed.web.named import named_url
from wholefeed.web.status import status_object

KEEP_ALIVE_SECONDS: Final = 15.0
"""Of silence, before something is sent: what stands between may close what seems idle."""
RETRY_SECONDS: Final = 5
_LOOK_SECONDS: Final = 1.0
"""How soon it is seen that a reader has left."""
_STALLED_SECONDS: Final = 30
"""A reader that takes nothing for so long is let go (docs/faults.md row 65)."""
_END_ID: Final = "end"
_FIELDS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # nginx would keep events until it has a bufferful
}


async def get_events(request: web.Request) -> web.StreamResponse:
    """GET /events?url=U: the status object whenever it changes, until nothing is under way."""
    service = request.app[SERVICE]
    status = await service.status(await named_url(request))
    if request.headers.get("Last-Event-ID") == _END_ID and not status.is_refreshing:
        return web.Response(status=HTTPStatus.NO_CONTENT, headers={"Cache-Control": "no-store"})
    if request.method == "HEAD":
        return web.Response(headers=_FIELDS)
    async with service.watching.follow(status.feed.id) as news:
        return await _sent(request, news)


async def _sent(request: web.Request, news: News) -> web.StreamResponse:
    response = web.StreamResponse(headers=_FIELDS)
    try:
        await response.prepare(request)
        await _write(response, f"retry: {1000 * RETRY_SECONDS}\n\n")
        spoken_at = time.monotonic()
        while not news.is_over and _is_there(request):
            status = await news.next(_LOOK_SECONDS)
            if status is not None:
                await _write(response, _event(status, is_end=news.is_settled))
            elif time.monotonic() - spoken_at >= KEEP_ALIVE_SECONDS:
                await _write(response, ": still here\n\n")
            else:
                continue
            spoken_at = time.monotonic()
        await response.write_eof()
    except (ConnectionError, TimeoutError):
        request[ASKED].add(aborted=True)
        if request.transport is not None:
            request.transport.abort()
    return response


def _is_there(request: web.Request) -> bool:
    """Whether the reader is still connected; the server does not stop a handler when it leaves."""
    return request.transport is not None and not request.transport.is_closing()


def _event(status: Status, *, is_end: bool) -> str:
    name = f"end\nid: {_END_ID}" if is_end else "status"
    return f"event: {name}\ndata: {json.dumps(status_object(status))}\n\n"


async def _write(response: web.StreamResponse, text: str) -> None:
    async with asyncio.timeout(_STALLED_SECONDS):
        await response.write(text.encode())
