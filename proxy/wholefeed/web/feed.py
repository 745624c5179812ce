"""GET, HEAD and DELETE of a feed, in both forms of its URL.

A feed that is held in memory and fresh is answered from there (`_answer_from_memory`); any other is read
from the store, or from its publisher first (`_answer_from_store`).

A browser that opens a feed's URL is redirected to the feed for people (`/view`). It is known by
`Sec-Fetch-Dest: document` (W3C Fetch Metadata) together with HTML in Accept; readers do not send both.
Browsers send the first by https and to the visitor's own machine alone: by plain http from elsewhere they get
the feed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable
from functools import partial
from http import HTTPStatus
from math import inf
from typing import Final
from urllib.parse import quote

from aiohttp import hdrs, web
from multidict import CIMultiDict

from wholefeed.core.compose.views import Warned
from wholefeed.core.model import State
from wholefeed.core.replay import PaceError, ReplayPace
from wholefeed.errors import LoopDetectedError, OverloadedError, RequestError, StoreError
from wholefeed.logs import get_logger
from wholefeed.service.bodies import SLICE_BYTES, slice_bytes
from wholefeed.service.memory import CachedFeed
from wholefeed.service.results import Reconstruction
from wholefeed.store.rows import FeedRow
from wholefeed.web.answer import (
    LOADING_SECONDS,
    VARY,
    Answer,
    Representation,
    answer_from,
    facts_of,
    make_replay,
    make_view,
)
from wholefeed.web.keys import ASKED, COUNTS, SERVICE, STORE, WANTS, named_url, with_instead
from wholefeed.web.pages_base import begin_session, is_browser, root_of
from wholefeed.web.request import DESTINATION, REPLAY_OPTIONS, VIEW_OPTIONS, Asked, base_url

log = get_logger()


async def get_feed(request: web.Request) -> web.StreamResponse:
    """GET /feed?url=U: the reconstructed feed; a browser that opens it is sent to the feed for people."""
    asked = request[ASKED]
    if _is_opened(request):
        return to_view(request, asked)
    url, instead = asked.feed_urls
    if instead:
        return await with_instead(request, partial(_answer, request, asked))
    return await _answer(request, asked, url)


async def get_prefixed(request: web.Request) -> web.StreamResponse:
    """GET /https://…: the same as `get_feed`, the URL written behind the slash."""
    if not request[ASKED].is_prefixed:
        raise web.HTTPNotFound
    return await get_feed(request)


async def delete_feed(request: web.Request) -> web.StreamResponse:
    """DELETE /feed?url=U: forget the feed; with `entry` one entry of it (I2)."""
    await forget_named(request)
    return web.Response(status=204)


async def forget_named(request: web.Request) -> str:
    """Forget the feed that is named, or the entry of it; return the feed's URL.

    Raises:
        RequestError: The entry has no name: the feed is not taken for it.
    """
    url, entry = await named_url(request), named_entry(request[ASKED])
    if entry is None:
        await request.app[SERVICE].forget(url)
    else:
        await request.app[SERVICE].forget_entry(url, entry)
    return url


def named_entry(asked: Asked) -> str | None:
    """Return the id of the entry that a request is about; None: it is about the feed.

    Raises:
        RequestError: It has no name: the feed is not taken for it.
    """
    entry = asked.query.options.get("entry")
    if entry is not None and not entry.strip():
        raise RequestError("expected the parameter entry to be the id of an entry, got nothing")
    return entry


# The answer to a reader

_NOT_MODIFIED: Final = HTTPStatus.NOT_MODIFIED.value


async def _answer(request: web.Request, asked: Asked, url: str) -> web.StreamResponse:
    headers = request.headers
    if hdrs.VIA in headers:
        _refuse_loop(headers.getall(hdrs.VIA), url)
    app = asked.app
    service = app[SERVICE]
    base = base_url(request, asked)
    wanted, wait_seconds = app[WANTS].of(asked, url, base, headers.get(hdrs.ACCEPT_ENCODING))
    is_head = request.method == "HEAD"
    if wanted.replay is not None:
        return await _answer_replay(request, asked, url, wanted, wanted.replay.pace, wait_seconds)
    if (page := wanted.view.page) is not None:
        app[COUNTS].pages["first" if page.number is None else "other"] += 1
    if wanted.view.may_be_whole:
        if service.checks.are_needed:
            await service.checks.check(url)
        if (held := service.at_once(url, is_head=is_head)) is not None:
            response = await _answer_from_memory(held, wanted, request, asked)
            if response is not None:
                return response
    reconstructing = service.answer(
        url, wait_seconds=wait_seconds, is_head=is_head, from_memory=wanted.view.is_whole
    )
    async with reconstructing as reconstruction:
        return await _answer_from_store(reconstruction, wanted, request, asked)


_VIA: Final = re.compile(r"(?:^|,)\s*[^\s,]++\s+wholefeed(?=[\s,]|$)")
"""What this proxy calls itself; the name of a reverse proxy's host may hold the word."""


def _refuse_loop(vias: Iterable[str], url: str) -> None:
    """Refuse what came through this proxy already and leads in a circle.

    docs/faults.md row 19; RFC 9110, 7.6.3.
    """
    if any(_VIA.search(value) for value in vias):
        raise LoopDetectedError("the request came through wholefeed already", url=url)


async def _answer_from_memory(
    held: CachedFeed, wanted: Representation, request: web.Request, asked: Asked
) -> web.StreamResponse | None:
    """Answer from memory alone; None when something of the body is not held, or is to be left out.

    Of a longer answer the body is put together segment by segment, from blocks that the store keeps readable
    meanwhile.
    """
    app, feed = asked.app, held.snapshot.feed
    now = app[SERVICE].now()
    answer = answer_from(held, _at(wanted, feed, now))
    if answer is None:
        return None
    response, body = _without_body(request, asked, feed, answer, now), None
    if response is None:
        body = answer.body.join(held.blocks)
        if body is None:
            return None
    app[SERVICE].note_at_once(held)
    asked.facts = answer.facts
    if response is not None:
        return await send(request, response)
    assert body is not None, "it is a whole answer"
    await _note_warned(asked, answer, feed)
    fields = _fields(asked, feed, answer, now, has_body=True)
    if len(body) <= SLICE_BYTES:
        return await send(request, web.Response(headers=fields, body=body))
    return await send(request, web.StreamResponse(headers=fields), in_pieces(body))


async def _answer_from_store(
    reconstruction: Reconstruction, wanted: Representation, request: web.Request, asked: Asked
) -> web.StreamResponse:
    """Answer with what was read from the store, as far as it is not held."""
    feed, held, store = reconstruction.feed, reconstruction.held, asked.app[STORE]
    asked.add(**facts_of(feed))
    now = asked.app[SERVICE].now()
    wanted = _at(wanted, feed, now)
    answer = None
    if held is not None and reconstruction.is_stale == held.snapshot.feed.is_stale:
        answer = answer_from(held, wanted)
    if answer is None:
        answer = await make_view(reconstruction, wanted, store)
    response = _without_body(request, asked, feed, answer, now)
    if response is not None:
        return await send(request, response)
    await _note_warned(asked, answer, feed)
    fields = _fields(asked, feed, answer, now, has_body=True)
    pieces = answer.body.pieces(store, held)
    if answer.body.length is not None and answer.body.length <= SLICE_BYTES:
        async with reconstruction.in_time():
            body = b"".join([piece async for piece in pieces])
        return await send(request, web.Response(headers=fields, body=body))
    return await send(request, web.StreamResponse(headers=fields), pieces)


async def _answer_replay(
    request: web.Request,
    asked: Asked,
    url: str,
    wanted: Representation,
    pace: ReplayPace,
    wait_seconds: float,
) -> web.StreamResponse:
    """Answer with a feed from its beginning, as far as it is out (P5)."""
    service, is_head, since = asked.app[SERVICE], request.method == "HEAD", time.monotonic()
    asked.app[COUNTS].replays += 1
    async with service.answer(url, wait_seconds=wait_seconds, is_head=is_head) as reconstruction:
        feed, now = reconstruction.feed, service.now()
        asked.add(**facts_of(feed))
        left_seconds = max(0.0, wait_seconds - (time.monotonic() - since))
        try:
            timeline = await service.replays.timeline(reconstruction, pace, wait_seconds=left_seconds)
        except PaceError as exc:
            raise RequestError(str(exc)) from exc
        now = max(now, service.now())
        answer = await make_replay(reconstruction, wanted, service.replays, timeline, now)
        fresh_seconds = float(LOADING_SECONDS)
        if timeline is not None:
            next_at = timeline.next_at(now)
            fresh_seconds = min(_fresh_seconds(feed, asked, now), inf if next_at is None else next_at - now)
        response: web.StreamResponse | None = _without_body(request, asked, feed, answer, now)
        pieces = None
        if response is None:
            response = web.StreamResponse(headers=_fields(asked, feed, answer, now, has_body=True))
            pieces = answer.body.pieces(asked.app[STORE], reconstruction.held)
        response.headers[hdrs.CACHE_CONTROL] = _cache_control(feed, asked, fresh_seconds)
        return await send(request, response, pieces)


def _at(wanted: Representation, feed: FeedRow, now: float) -> Representation:
    """Return what is wanted of a feed now: for some days it says that it has healed."""
    is_healed = feed.warning is Warned.HEALED and feed.turn.is_healed_at(now)
    return wanted._replace(is_healed=True) if is_healed else wanted


def _without_body(
    request: web.Request, asked: Asked, feed: FeedRow, answer: Answer, now: float
) -> web.Response | None:
    """Return the answer to a reader that has the feed, or asks for the header alone; None for others."""
    if answer.is_known(request.headers, now):
        return web.Response(status=_NOT_MODIFIED, headers=_fields(asked, feed, answer, now, has_body=False))
    if request.method == "HEAD":
        return web.Response(headers=_fields(asked, feed, answer, now, has_body=True))
    return None


async def _note_warned(asked: Asked, answer: Answer, feed: FeedRow) -> None:
    """Note that a reader is sent the warning: it will be told when the feed has healed."""
    if answer.warns and feed.visible_state is State.PARTIAL:
        await asked.app[SERVICE].asked.note_warned(feed)


def _fields(asked: Asked, feed: FeedRow, answer: Answer, now: float, *, has_body: bool) -> CIMultiDict[str]:
    fields = answer.fields_at(now, has_body=has_body)
    is_loading = feed.visible_state is State.LOADING
    fresh_seconds = LOADING_SECONDS if is_loading else _fresh_seconds(feed, asked, now)
    fields[hdrs.CACHE_CONTROL] = _cache_control(feed, asked, fresh_seconds)
    return fields


def _fresh_seconds(feed: FeedRow, asked: Asked, now: float) -> float:
    left_seconds = asked.app[SERVICE].fresh_seconds_left(feed, now)
    return min(left_seconds, asked.config.freshness.maximum_seconds)


def _cache_control(feed: FeedRow, asked: Asked, fresh_seconds: float) -> str:
    server = asked.config.server
    scope = "private, " if feed.is_private or server.access_token or server.signing_keys else ""
    return f"{scope}max-age={int(fresh_seconds)}"


# Sending it

_STALLED_SECONDS: Final = 30
"""A reader that takes nothing for so long is let go (docs/faults.md row 65)."""
_TAKEN_BYTES: Final = 1 << 15
"""With a header before it still less than asyncio lets wait in a transport before it makes anybody wait."""


async def in_pieces(*texts: bytes) -> AsyncIterator[bytes]:
    """Give what is to be written together as `send` takes it."""
    for text in texts:
        for piece in slice_bytes(text):
            yield piece


async def send(
    request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes] | None = None
) -> web.StreamResponse:
    """Send an answer whose body is its own, which is one write, or comes in pieces.

    Of a failure in the middle the reader sees a broken body, no short feed (docs/faults.md row 66).
    """
    try:
        await response.prepare(request)
        if pieces is not None:
            async for piece in pieces:
                async with asyncio.timeout(_STALLED_SECONDS):
                    await response.write(piece)
        if _is_taken_at_once(request, response):
            await response.write_eof()
        else:
            async with asyncio.timeout(_STALLED_SECONDS):
                await response.write_eof()
    except (ConnectionError, TimeoutError):
        _abort(request)
    except (OverloadedError, StoreError) as exc:
        asked = request[ASKED]
        asked.add(slug=exc.slug)
        log.warning("answer.cut", feed=asked.facts.get("feed"), slug=exc.slug)
        _abort(request)
    except BaseException:
        _abort(request)
        raise
    return response


def _is_taken_at_once(request: web.Request, response: web.StreamResponse) -> bool:
    """Whether nothing can stall the end of an answer: a small one with nothing before it.

    A deadline would cost as much as a tenth of what such an answer does.
    """
    transport = request.transport
    if transport is None or not isinstance(response, web.Response):
        return False
    body = response.body  # its length is looked for in three places by `content_length`
    is_small = body is None or (isinstance(body, bytes) and len(body) < _TAKEN_BYTES)
    return is_small and transport.get_write_buffer_size() == 0


def _abort(request: web.Request) -> None:
    request[ASKED].add(aborted=True)
    if request.transport is not None:
        request.transport.abort()


# Those who open a feed in a browser

_FOLDER: Final = "/feed/"
_CARRIED: Final = (*REPLAY_OPTIONS, *VIEW_OPTIONS, "signed")


def _is_opened(request: web.Request) -> bool:
    """Whether somebody opens a URL in a browser: a page is what they can read."""
    return request.headers.get(DESTINATION) == "document" and is_browser(request)


def to_view(request: web.Request, asked: Asked) -> web.Response:
    """Lead to the feed for people, by a relative URL: it holds below any prefix of a reverse proxy.

    A token that came in the URL stays behind, for URLs are shown and kept: a session stands for it. Only
    whoever is let in by the token gets one: beside a signature a token is not looked at.
    """
    query = f"?url={quote(asked.query.url, safe='')}{carry_parameters(asked)}"
    token = asked.query.options.get("token")
    begins = token is not None and asked.knows_token and not asked.session
    if begins and asked.route == _FOLDER:  # whose session would be good for that folder alone
        query += f"&token={quote(token or '', safe='')}"
    fields = {"Location": f"{root_of(request)}view{query}", "Vary": VARY, "Cache-Control": "no-store"}
    response = web.Response(status=303, headers=fields)
    if begins and asked.route != _FOLDER:
        begin_session(request, response)
    return response


def carry_parameters(asked: Asked) -> str:
    """Return what else of a request goes with every link to the same feed."""
    options = asked.query.options
    return "".join(f"&{name}={quote(options[name], safe='')}" for name in _CARRIED if name in options)
