"""GET, HEAD and DELETE of a feed, in both forms of its URL.

Browsers are redirected to `/view`: only they send HTML in Accept with `Sec-Fetch-Dest: document` (W3C Fetch
Metadata). Over plain http from another machine they omit the latter; then Accept and User-Agent decide.
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
from wholefeed.web.pages_base import begin_session, is_browser, opens_page, root_of
from wholefeed.web.request import DESTINATION, REPLAY_OPTIONS, VIEW_OPTIONS, Asked, base_url

log = get_logger()


async def get_feed(request: web.Request) -> web.StreamResponse:
    asked = request[ASKED]
    if _is_opened(request, asked):
        return to_view(request, asked)
    url, instead = asked.feed_urls
    if instead:
        return await with_instead(request, partial(_answer, request, asked))
    return await _answer(request, asked, url)


async def get_prefixed(request: web.Request) -> web.StreamResponse:
    if not request[ASKED].is_prefixed:
        raise web.HTTPNotFound
    return await get_feed(request)


async def delete_feed(request: web.Request) -> web.StreamResponse:
    """Forget a feed, or its entry `entry` (I2)."""
    await forget_named(request)
    return web.Response(status=204)


async def forget_named(request: web.Request) -> str:
    """Forget a feed or its entry, and return the feed's URL; raises as `named_entry`."""
    url, entry = await named_url(request), named_entry(request[ASKED])
    if entry is None:
        await request.app[SERVICE].forget(url)
    else:
        await request.app[SERVICE].forget_entry(url, entry)
    return url


def named_entry(asked: Asked) -> str | None:
    """Return the id of the entry; None: the request names a feed.

    Raises:
        RequestError: The id is empty, and must not mean the whole feed.
    """
    entry = asked.query.options.get("entry")
    if entry is not None and not entry.strip():
        raise RequestError("expected the parameter entry to be the id of an entry, got nothing")
    return entry


# Answers

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
"""This proxy's own name; a reverse proxy's host may contain the word."""


def _refuse_loop(vias: Iterable[str], url: str) -> None:
    """Refuse a request that already passed this proxy (docs/faults.md row 19; RFC 9110, 7.6.3)."""
    if any(_VIA.search(value) for value in vias):
        raise LoopDetectedError("the request came through wholefeed already", url=url)


async def _answer_from_memory(
    held: CachedFeed, wanted: Representation, request: web.Request, asked: Asked
) -> web.StreamResponse | None:
    """Answer from memory; None if a part is not in memory, or the view omits something."""
    app, feed = asked.app, held.snapshot.feed
    now = app[SERVICE].now()
    answer = answer_from(held, _at(wanted, feed, now))
    if answer is None:
        return None
    response, body = _without_body(request, asked, feed, answer, now), None
    if response is None:
        body = answer.body.join(held.blocks, held.made)
        if body is None:
            return None
    app[SERVICE].note_at_once(held)
    if wanted.view.has_texts:
        app[SERVICE].texts.note_asked(feed)
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
    feed, held, store = reconstruction.feed, reconstruction.held, asked.app[STORE]
    asked.add(**facts_of(feed))
    now = asked.app[SERVICE].now()
    wanted = _at(wanted, feed, now)
    if wanted.view.has_texts:
        asked.app[SERVICE].texts.note_asked(feed)
    answer = None
    if held is not None and reconstruction.is_stale == held.snapshot.feed.is_stale:
        answer = answer_from(held, wanted)
    if answer is None:
        answer = await make_view(reconstruction, wanted, store, asked.app[SERVICE].composer)
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
    """Answer with the entries released so far (P5)."""
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
        if wanted.view.has_texts:
            service.texts.note_asked(feed)
        answer = await make_replay(reconstruction, wanted, service.replays, timeline, now, service.composer)
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
    is_healed = feed.warning is Warned.HEALED and feed.turn.is_healed_at(now)
    return wanted._replace(is_healed=True) if is_healed else wanted


def _without_body(
    request: web.Request, asked: Asked, feed: FeedRow, answer: Answer, now: float
) -> web.Response | None:
    """Return a 304 or an answer to HEAD; None: a body is needed."""
    if answer.is_known(request.headers, now):
        return web.Response(status=_NOT_MODIFIED, headers=_fields(asked, feed, answer, now, has_body=False))
    if request.method == "HEAD":
        return web.Response(headers=_fields(asked, feed, answer, now, has_body=True))
    return None


async def _note_warned(asked: Asked, answer: Answer, feed: FeedRow) -> None:
    """Note that a reader gets the warning and will need the note of healing."""
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


# Sending

_STALLED_SECONDS: Final = 30
"""A reader that takes nothing this long is cut off (docs/faults.md row 65)."""
_TAKEN_BYTES: Final = 1 << 15
"""With its header still below asyncio's high-water mark."""


async def in_pieces(*texts: bytes) -> AsyncIterator[bytes]:
    for text in texts:
        for piece in slice_bytes(text):
            yield piece


async def send(
    request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes] | None = None
) -> web.StreamResponse:
    """Send an answer, or `pieces` as its body.

    A failure breaks the body off, so that no reader sees a short feed (docs/faults.md row 66).
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
    """Whether the transport buffers the whole answer: a deadline would cost a tenth of its time."""
    transport = request.transport
    if transport is None or not isinstance(response, web.Response):
        return False
    body = response.body  # `content_length` would be slower
    is_small = body is None or (isinstance(body, bytes) and len(body) < _TAKEN_BYTES)
    return is_small and transport.get_write_buffer_size() == 0


def _abort(request: web.Request) -> None:
    request[ASKED].add(aborted=True)
    if request.transport is not None:
        request.transport.abort()


# Browsers

_FOLDER: Final = "/feed/"
_CARRIED: Final = (*REPLAY_OPTIONS, *VIEW_OPTIONS, "signed")


def _is_opened(request: web.Request, asked: Asked) -> bool:
    headers = request.headers
    destination = headers.get(DESTINATION)
    if destination is not None:
        return destination == "document" and is_browser(request)
    # Our own pages link the feed to be saved as a file.
    return opens_page(headers.get(hdrs.ACCEPT, ""), headers.get(hdrs.USER_AGENT, "")) and not (
        _is_linked_here(request, asked)
    )


def _is_linked_here(request: web.Request, asked: Asked) -> bool:
    referer = request.headers.get(hdrs.REFERER, "")
    own = (base_url(request, asked), f"{request.scheme}://{request.headers.get(hdrs.HOST, '')}")
    return referer.startswith(tuple(f"{each}/" for each in own))


def to_view(request: web.Request, asked: Asked) -> web.Response:
    """Redirect to `/view` by a relative URL, valid below any prefix.

    A session replaces the token that opened the request, since URLs are shown and stored.
    """
    query = f"?url={quote(asked.query.url, safe='')}{carry_parameters(asked)}"
    token = asked.query.options.get("token")
    begins = token is not None and asked.knows_token and not asked.session
    if begins and asked.route == _FOLDER:  # a cookie set here is valid only below /feed/
        query += f"&token={quote(token or '', safe='')}"
    fields = {"Location": f"{root_of(request)}view{query}", "Vary": VARY, "Cache-Control": "no-store"}
    response = web.Response(status=303, headers=fields)
    if begins and asked.route != _FOLDER:
        begin_session(request, response)
    return response


def carry_parameters(asked: Asked) -> str:
    """Return the parameters for links to the same feed."""
    options = asked.query.options
    return "".join(f"&{name}={quote(options[name], safe='')}" for name in _CARRIED if name in options)
