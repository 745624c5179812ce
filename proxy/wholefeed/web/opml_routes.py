"""Subscription lists (B1).

Otherwise nothing is fetched: a hundred walks at once would delay waiting readers.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterable, Iterator, Mapping, Sequence
from email.message import Message
from email.parser import BytesHeaderParser
from functools import partial
from typing import Final

from aiohttp import web

from wholefeed.config.tables import Config
from wholefeed.core.intake import MOST_FEEDS
from wholefeed.core.opml import MAX_BYTES, OpmlDocument, OutlineEntry, compose_opml, read_opml
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.text.urls import UrlPlaces
from wholefeed.core.words import count_noun
from wholefeed.errors import RequestError, UploadError
from wholefeed.fetch.guard import AddressPolicy
from wholefeed.service.service import FeedService
from wholefeed.store.rows import FeedSummary
from wholefeed.store.tables.intake_table import ListedFeed
from wholefeed.web.intake_routes import answer_begun, read_intake_id, write_unchanged
from wholefeed.web.keys import ASKED, CONFIG, LISTS, SERVICE, UPLOADS
from wholefeed.web.list_rewriting import (
    Left,
    ListTargets,
    RewrittenList,
    list_targets,
    moved_out,
    proxied_url,
    rewrite_list,
)
from wholefeed.web.pages_base import is_browser, page
from wholefeed.web.request import (
    REPLAY_OPTIONS,
    VIEW_OPTIONS,
    base_url,
    is_set,
    read_replay,
    read_view,
    receive_upload,
    too_large,
)

# GET and POST of /opml

_MEDIA_TYPE: Final = "text/x-opml"
COUNTS_FIELD: Final = "Opml-Subscriptions"
"""Counts of rewritten and unchanged subscriptions, an RFC 8941 dictionary."""


async def get_opml(request: web.Request) -> web.StreamResponse:
    if "intake" in request.query:
        return await _changed_list(request, read_intake_id(request.query["intake"]))
    config = request.app[CONFIG]
    base = base_url(request, request[ASKED])
    return download_list(await export(request.app[SERVICE].every_feed(), base, config))


async def _changed_list(request: web.Request, intake: str) -> web.Response:
    """Return the list of an intake with the proxy's URLs."""
    service = request.app[SERVICE]
    async with service.checks.answering():
        row, sent = await service.intakes.list_of(intake)
    moved = await _rewrite(request, sent, json.loads(row.options))
    return _download(moved.document, _NAME)


async def export(feeds: AsyncIterable[Sequence[FeedSummary]], base: str, config: Config) -> bytes:
    """Return a list of feeds through the proxy, without unpublished ones."""
    listed: list[OutlineEntry] = []
    async for rows in feeds:
        listed += [
            OutlineEntry(row.title or row.url, proxied_url(base, row.url, config.server), row.site)
            for row in rows
            if row.digest
        ]
    return compose_opml("wholefeed", listed)


def download_list(document: bytes) -> web.Response:
    return _download(document, "wholefeed.opml")


async def post_opml(request: web.Request) -> web.StreamResponse:
    """Rewrite a list to the proxy's URLs, or back with `undo=1`.

    With `ask=1`, bring it in instead. A browser gets a page first; its form sends the result as `made` for
    download.
    """
    late = partial(UploadError, slug="bad-request")
    async with receive_upload(request, request.app[UPLOADS], MAX_BYTES, what="list", late=late) as body:
        sent, fields = await _list_in(request, body)
        if "made" in fields:
            return _download(sent, _NAME)
        options = {**request[ASKED].query.options, **fields}
        if is_set(options, "ask"):
            return await _bring_in(request, sent, options)
        moved = await _rewrite(request, sent, options)
    counts = moved.counts()
    request[ASKED].add(opml=counts)
    if is_browser(request) and len(moved.document) <= _SHOWN_BYTES:
        return await _moved_page(request, moved, is_undone=is_set(options, "undo"))
    return _download(moved.document, _NAME, {COUNTS_FIELD: _format_counts(counts)})


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={number}" for name, number in counts.items())


async def _bring_in(request: web.Request, body: bytes, options: Mapping[str, str]) -> web.Response:
    if is_set(options, "undo"):
        raise RequestError("expected ask or undo, got both")
    config = request.app[CONFIG]
    base = base_url(request, request[ASKED])
    read_view(options, 0)
    read_replay(options, f"{base}/feed?url=U")
    async with request.app[LISTS].turn(len(body)):
        listed = await asyncio.to_thread(read_targets, body, base, config)
    service = request.app[SERVICE]
    async with service.checks.answering():
        intake = await bring_in(service, listed, body, _kept_options(options))
        report = await service.intakes.report(intake)
    return answer_begun(request, report)


def read_targets(body: bytes, base: str, config: Config) -> ListTargets:
    """Read a list, and return the feeds to ask for; blocks.

    Raises:
        UploadError: The list cannot be read, or names too many feeds.
    """
    own = UrlPlaces.of([base, config.server.public_url])
    found = list_targets(_read_list(body), own, AddressPolicy.from_config(config.fetch))
    if len(found.feeds) > MOST_FEEDS:
        message = f"expected a list of at most {MOST_FEEDS:,} feeds, got {len(found.feeds):,}"
        raise UploadError(message, slug="limit")
    return found


async def bring_in(service: FeedService, listed: ListTargets, body: bytes, options: Mapping[str, str]) -> str:
    """Begin to ask for each feed of a list; return the intake's id, or raise as `Intakes.begin`."""
    return await service.intakes.begin(
        [ListedFeed(*each) for each in listed.feeds],
        body,
        options=options,
        left_out=len(listed.left),
        unchanged=write_unchanged(listed.left),
    )


_NAME: Final = "subscriptions.opml"
_SHOWN_BYTES: Final = MAX_BYTES // 2
"""Longer lists do not fit into the page's form."""
_MOST_LEFT: Final = 100
"""Unchanged subscriptions on the page, for each reason."""


async def _moved_page(request: web.Request, moved: RewrittenList, *, is_undone: bool) -> web.Response:
    left: dict[Left, list[tuple[int, str]]] = {}
    for each in moved.left:
        left.setdefault(each.why, []).append((each.line, each.url))
    changed = count_noun(moved.rewritten, "subscription", "subscriptions")
    return await page(
        request,
        "moved.html",
        done=f"{changed} changed {'back to the publishers' if is_undone else 'to this proxy'}",
        left=[(why.words, urls) for why, urls in left.items()],
        most=_MOST_LEFT,
        made=b64encode(moved.document).decode(),
    )


async def _rewrite(request: web.Request, body: bytes, options: Mapping[str, str]) -> RewrittenList:
    config = request.app[CONFIG]
    base = base_url(request, request[ASKED])
    read_view(options, 0)
    read_replay(options, f"{base}/feed?url=U")
    async with request.app[LISTS].turn(len(body)):
        return await asyncio.to_thread(_moved_list, body, base, config, options)


def _moved_list(body: bytes, base: str, config: Config, options: Mapping[str, str]) -> RewrittenList:
    own = UrlPlaces.of([base, config.server.public_url])
    document = _read_list(body)
    if is_set(options, "undo"):
        return moved_out(document, own)
    policy = AddressPolicy.from_config(config.fetch)
    view = _kept_options(options)
    return rewrite_list(document, own, base=base, server=config.server, policy=policy, options=view)


def _read_list(body: bytes) -> OpmlDocument:
    try:
        return read_opml(body)
    except ParseError as exc:
        raise UploadError(exc.message, slug=exc.slug) from exc


def _kept_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that each URL of a changed list gets."""
    names = (*REPLAY_OPTIONS, *VIEW_OPTIONS) if "replay" in options else VIEW_OPTIONS
    return {name: options[name] for name in names if name in options}


_FIELD_BYTES: Final = 200
"""Limit for a field other than the list."""
_FORM_FIELDS: Final = ("undo", "ask", *REPLAY_OPTIONS, *VIEW_OPTIONS)
_MAX_PARTS: Final = 20
_HEAD_BYTES: Final = 1 << 12
"""Limit for a field's head, before its value."""
_LONGEST_BOUNDARY: Final = 70
"""RFC 2046, 5.1.1."""


async def _list_in(request: web.Request, body: bytes) -> tuple[bytes, dict[str, str]]:
    """Return the list, from the body or the field `file` or `made`, and other fields.

    Forms are read whole: aiohttp's line-wise reading of empty lines blocks the loop.

    Raises:
        UploadError: The form is malformed or has no file.
    """
    if request.content_type != "multipart/form-data":
        return body, {}
    said = Message()
    said["Content-Type"] = request.headers["Content-Type"]
    return await asyncio.to_thread(_read_form, body, said.get_boundary(""))


def _read_form(body: bytes, boundary: str) -> tuple[bytes, dict[str, str]]:
    file: bytes | None = None
    fields: dict[str, str] = {}
    for number, (head, value) in enumerate(_parts(body, boundary), 1):
        if head.get_content_maintype() == "multipart" or number > _MAX_PARTS:
            raise UploadError("expected a form with a field file and few others")
        name = head.get_param("name", header="Content-Disposition")
        if name == "made":
            file, fields["made"] = _decode(value), "1"
        elif name == "file" and file is None:
            file = value
        elif len(value) > _FIELD_BYTES:
            raise too_large(len(value), _FIELD_BYTES)
        elif name in _FORM_FIELDS:
            fields[name] = value.decode("utf-8", "replace").strip()
    if file is None:
        raise UploadError("expected the list as the form's field file, got none")
    return file, {name: value for name, value in fields.items() if value}


def _decode(value: bytes) -> bytes:
    try:
        return b64decode(value, validate=True)
    except ValueError as exc:
        raise UploadError("expected the field made in base64, as the page has it") from exc


def _parts(body: bytes, boundary: str) -> Iterator[tuple[Message, bytes]]:
    """Yield head and value of each field (RFC 7578; RFC 2046, 5.1.1)."""
    if not 0 < len(boundary) <= _LONGEST_BOUNDARY:
        raise _unreadable()
    marked = re.escape(boundary.encode("utf-8", "surrogateescape"))
    body = b"\r\n" + body  # equal delimiters are found twice as fast
    delimiters = re.compile(rb"\r\n--" + marked + rb"(?P<last>--)?[ \t]*(?=\r\n|\Z)").finditer(body)
    before = next(delimiters, None)
    while before is not None and not before["last"]:
        behind = next(delimiters, None)
        head_end = body.find(b"\r\n\r\n", before.end(), before.end() + _HEAD_BYTES)
        if behind is None or not -1 < head_end < behind.start():
            raise _unreadable()
        head = BytesHeaderParser().parsebytes(body[before.end() + 2 : head_end + 2])
        if head.defects:
            raise _unreadable()
        yield head, body[head_end + 4 : behind.start()]
        before = behind
    if before is None:
        raise _unreadable()


def _unreadable() -> UploadError:
    return UploadError("expected a form that can be read, with the list as its field file")


def _download(document: bytes, name: str, fields: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=document,
        headers={
            "Content-Type": _MEDIA_TYPE,  # without charset: the list declares its own
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
            **(fields or {}),
        },
    )
