"""HTTP answers of reconstructions: representation, header fields and body.

A view (`limit`, `since`, `answer_bytes`, `pages`, `listed`) reuses most segments whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache, partial
from math import inf
from typing import Final, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from aiohttp import hdrs
from multidict import CIMultiDict

from wholefeed.config.tables import Config
from wholefeed.core.compose.as_atom import ConversionContext, convert_head, read_language
from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue, page_head
from wholefeed.core.compose.replaying import REPLAY_VERSION, replay_head
from wholefeed.core.compose.segments import DIGEST_BYTES, Sealed
from wholefeed.core.compose.views import (
    HEALED,
    WHOLE,
    Cut,
    FeedPage,
    MissingRange,
    View,
    compose_warning,
    told_missing,
)
from wholefeed.core.model import Family, State, content_type
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.verbatim.fragments import ALL_PREFIXES
from wholefeed.errors import NoSuchPageError
from wholefeed.logs import LaidOut
from wholefeed.service.bodies import JOINT, Body, BodyPart, StreamedText, take_parts
from wholefeed.service.entry_composer import Composition, EntryComposer
from wholefeed.service.memory import CachedFeed
from wholefeed.service.replays import Released, Replays, ReplayStyle, ReplayTimeline
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import warning_id
from wholefeed.store.rows import FeedRow, SegmentRow
from wholefeed.store.store import Store
from wholefeed.store.tables import segment_table
from wholefeed.store.tables.segment_table import OwnEntries
from wholefeed.web.request import (
    ONLY_VALUES,
    Asked,
    Replay,
    name_pages,
    own_url,
    page_url,
    parse_weights,
    read_replay,
    read_view,
    read_wait,
    view_query,
)

# Requested representations, and validation

_MOST_KEPT: Final = 2048
_LONGEST_KEPT: Final = 600
"""Characters of a cache key; readers of feeds send less."""


class Wants:
    """A cache of parsed requests for feeds."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kept: dict[tuple[str, str, str, str, str | None], tuple[Representation, float]] = {}

    def of(
        self, asked: Asked, url: str, base: str, accept_encoding: str | None
    ) -> tuple[Representation, float]:
        """Return the representation and the seconds to wait; `base` as from `base_url`.

        Raises:
            RequestError: A parameter is malformed.
        """
        key = (asked.target, url, base, asked.mark, accept_encoding)
        want = self._kept.get(key)
        if want is None:
            want = self._read(asked, url, base, accept_encoding)
            if len(asked.target) + len(base) + len(accept_encoding or "") <= _LONGEST_KEPT:
                if len(self._kept) >= _MOST_KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = want
        return want

    def _read(
        self, asked: Asked, url: str, base: str, accept_encoding: str | None
    ) -> tuple[Representation, float]:
        options, limits = asked.query.options, self._config.limits
        view = read_view(options, limits.answer_bytes)
        if self._config.history.texts == "off":
            view = view._replace(has_texts=False)
        own = own_url(base, url, asked.mark)
        whole_url = own if view.has_listed else f"{own}&listed=off"
        whole_url += "".join(f"&{name}={options[name]}" for name in ONLY_VALUES if name in options)
        token = options.get("token", "") if asked.knows_token else ""
        representation = Representation(
            self_url=own + view_query(options),
            whole_url=whole_url,
            is_gzip=accepts_gzip(accept_encoding),
            warns=self._config.history.warn_entry,
            page_url=page_url(base, url),
            view=view,
            pages_url="" if view.page is None else _pages_url(whole_url, token, view.page.size),
            replay=read_replay(options, whole_url),
        )
        return representation, read_wait(options, limits.respond_within_seconds)


def _pages_url(whole_url: str, token: str, size: int) -> str:
    return whole_url + (f"&token={quote(token, safe='')}" if token else "") + f"&pages={size}"


class Representation(NamedTuple):
    """Everything in a request that decides its answer; the key of cached answers."""

    self_url: str
    """The proxy's URL of this view."""
    is_gzip: bool
    warns: bool
    """Whether a partial or lately healed feed has the pseudo-entry (R16)."""
    whole_url: str = ""
    """The proxy's URL of the whole feed; empty: `self_url`."""
    page_url: str = ""
    """The feed's page, linked by the pseudo-entry; empty: no proxy."""
    is_healed: bool = False
    """Whether the pseudo-entry says now that the feed has healed."""
    view: View = WHOLE
    pages_url: str = ""
    """URL of the first page, with the token: apps add none to links."""
    links: tuple[tuple[str, str], ...] = ()
    """From a page to others: relations and URLs."""
    replay: Replay | None = None
    """None: the feed itself."""


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether gzip is at least as welcome as plain text (RFC 9110, 12.5.3)."""
    if not accept_encoding:
        return False
    weights = {name: weight if weight <= 1 else 0.0 for name, weight in parse_weights(accept_encoding)}
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


def is_not_modified(
    etag: str, modified_at: float | None, if_none_match: str | None, if_modified_since: str | None
) -> bool:
    """Whether the reader has this representation (RFC 9110, 13.1.2, 13.1.3 and 13.2.2).

    Weak tags match (8.8.3.2). Without Last-Modified, If-Modified-Since never matches.
    """
    if if_none_match is not None:
        if if_none_match == etag:  # the usual case
            return True
        return if_none_match.strip() == "*" or etag.removeprefix("W/") in _ENTITY_TAG.findall(if_none_match)
    if if_modified_since is None or modified_at is None:
        return False
    try:
        since = parsedate_to_datetime(if_modified_since)
        since_at = since.timestamp()
    except (TypeError, ValueError, OverflowError):  # or the year is out of range
        return False
    return since.tzinfo is not None and modified_at <= since_at


# Answers with all fields that do not depend on the time of the request

LOADING_SECONDS: Final = 5
"""Lifetime of a `loading` answer."""
VARY: Final = "Accept-Encoding, Accept, Sec-Fetch-Dest"
"""Accept and Sec-Fetch-Dest reveal browsers, which are redirected. With User-Agent, caches would keep a copy
for each reader.
"""
_OVERHEAD_BYTES: Final = 3072
"""Objects and short texts of a cached answer."""


def answer_from(held: CachedFeed, wanted: Representation) -> Answer | None:
    """Return the cached answer of a whole feed in memory, made at its first use.

    Returns:
        None if the view omits something.
    """
    found: Answer | None = held.made(wanted)
    if found is None and not _is_composed(wanted, held.snapshot.feed):  # which needs the store
        snapshot = held.snapshot
        found = _whole_answer(Reconstruction(snapshot, snapshot.feed.is_stale, held), wanted)
        if found is not None:
            body = found.body
            texts = (body.prologue, body.sealed_prologue.block, body.parts)
            urls = (wanted.self_url, wanted.whole_url, wanted.page_url)
            held.keep_made(wanted, found, _OVERHEAD_BYTES + sum(map(sys.getsizeof, (*texts, *urls))))
    return found


@dataclass(frozen=True)
class Answer:
    """A complete answer except for Cache-Control."""

    body: Body
    changed_at: float | None
    """Last-Modified, epoch seconds; None during a walk, whose publications would move it."""
    warns: bool
    fields: CIMultiDict[str]
    """For a 304: without fields of the body."""
    body_fields: CIMultiDict[str]
    facts: LaidOut

    def is_known(self, headers: Mapping[str, str], now: float) -> bool:
        if_none_match = headers.get(hdrs.IF_NONE_MATCH)
        if_modified_since = headers.get(hdrs.IF_MODIFIED_SINCE)
        if is_not_modified(self.body.etag, self.modification_instant(now), if_none_match, if_modified_since):
            return True
        former_etag = self.body.former_etag
        return if_none_match is not None and bool(former_etag) and former_etag in if_none_match

    def modification_instant(self, now: float) -> float | None:
        """Return Last-Modified, epoch seconds; None while it is later than Date (RFC 9110, 8.8.2.1).

        A second publication in one second gets the next second: newsboat drops a body with an unchanged
        Last-Modified but stores its ETag (curl, CURLOPT_TIMECONDITION).
        """
        return None if self.changed_at is None or self.changed_at > now else self.changed_at

    def fields_at(self, now: float, *, has_body: bool) -> CIMultiDict[str]:
        fields = (self.body_fields if has_body else self.fields).copy()
        if self.changed_at is not None and self.changed_at > now:  # see `modification_instant`
            del fields["Last-Modified"]
        return fields


def facts_of(feed: FeedRow) -> dict[str, object]:
    state = str(feed.visible_state)
    return {"feed": feed.id, "state": state, "documents": feed.documents, "entries": feed.entries}


def _reconstruction_field(
    reconstruction: Reconstruction,
    *,
    is_cut: bool = False,
    released: int | None = None,
    has_texts: bool = False,
) -> str:
    """Return Feed-Reconstruction (RFC 8941) for the whole feed.

    Order: documents, entries, missing, listed, texts, since, stale, cut, released. `listed` counts entries
    known only from pages (H7), `texts` those with the text of their page, of those that want one (T2).
    `since` dates the first sight of a `remembered` or `listed` feed, or of its format.
    """
    feed = reconstruction.feed
    parameters = [
        str(reconstruction.state),
        f"documents={feed.documents}",
        f"entries={feed.entries}",
        f"missing={len(reconstruction.missing)}",
    ]
    if feed.listed:
        parameters.append(f"listed={feed.listed}")
    if has_texts:
        parameters.append(f"texts={min(feed.texts, feed.texts_wanted)}/{feed.texts_wanted}")
    if reconstruction.state in (State.REMEMBERED, State.LISTED):
        parameters.append(f'since="{format_rfc3339(feed.since)}"')
    if reconstruction.is_stale:
        parameters.append("stale")
    if is_cut:
        parameters.append("cut")
    if released is not None:
        parameters.append(f"released={released}")
    return ";".join(parameters)


# Prologue, view and ETag: they depend on the request


def _has_texts(wanted: Representation, feed: FeedRow) -> bool:
    # also when all texts have gone again: Last-Modified must not move back
    return wanted.view.has_texts and feed.texts_at is not None


def _is_composed(wanted: Representation, feed: FeedRow) -> bool:
    return _has_texts(wanted, feed) or _becomes_atom(wanted, feed)


def _becomes_atom(wanted: Representation, feed: FeedRow) -> bool:
    return wanted.view.as_atom and feed.published_family is Family.JSON  # nothing else is converted (F1)


async def make_view(
    reconstruction: Reconstruction, wanted: Representation, store: Store, composer: EntryComposer
) -> Answer:
    """Return the answer; read only segments taken in part or composed anew.

    Raises:
        OverloadedError: Reading takes too long.
        NoSuchPageError: The page does not exist.
    """
    view, family = wanted.view, reconstruction.feed.published_family
    if _is_composed(wanted, reconstruction.feed):
        return await _make_composed_view(reconstruction, wanted, store, composer)
    if (whole := _whole_answer(reconstruction, wanted)) is not None:
        return whole
    _, reconstruction, _, wanted, own, room = await _narrow(reconstruction, wanted, store, composer)
    cut = Cut(view, reconstruction.feed.entries, room=room, joint=len(JOINT[family]))
    async with reconstruction.in_time():
        taken = await take_parts(
            _segments(reconstruction),
            own,
            cut,
            reconstruction.feed,
            store,
            reconstruction.held,
            is_page=view.page is not None,
        )
    dated_at = None if view.page is None else cut.newest_at
    is_whole = not (cut.is_cut or own.masks)
    return prepare(reconstruction, wanted, None if is_whole else taken, is_cut=cut.is_cut, dated_at=dated_at)


async def _narrow(
    reconstruction: Reconstruction, wanted: Representation, store: Store, composer: EntryComposer
) -> _NarrowedView:
    view, own = wanted.view, OwnEntries()
    if not view.has_listed:
        own = await _own(reconstruction, store)
        reconstruction, wanted = _without_lists(reconstruction, wanted, own.lists)
    shown, composition = await _compose_head(reconstruction, wanted, composer)
    if view.page is not None:
        shown, wanted = await _on_page(view.page, shown, wanted)
    wanted, room = _with_room(shown, wanted)
    return _NarrowedView(reconstruction, shown, composition, wanted, own, room)


class _NarrowedView(NamedTuple):
    reconstruction: Reconstruction
    """Without left out lists."""
    shown: Reconstruction
    """With the answer's head and format, while its segments have the feed's."""
    composition: Composition
    wanted: Representation
    own: OwnEntries
    room: int | None
    """Bytes for entries; None: unlimited."""


async def _make_composed_view(
    reconstruction: Reconstruction, wanted: Representation, store: Store, composer: EntryComposer
) -> Answer:
    """Return the answer with entries composed anew (T4, T6, F1), and keep it in memory."""
    view, held, key = wanted.view, reconstruction.held, wanted
    narrowed = await _narrow(reconstruction, wanted, store, composer)
    reconstruction, shown, composition, wanted, own, room = narrowed
    cut, segments = Cut(view, reconstruction.feed.entries), _segments(reconstruction)
    async with reconstruction.in_time():
        places = await composer.take_places(reconstruction, segments, own, cut)
    taken = places
    if room is not None:
        taken = await composer.fitting(reconstruction, places, room, composition)
    is_cut = cut.is_cut or len(taken) < len(places)
    part: BodyPart | None = None
    if room is None and composition.has_texts:
        async with reconstruction.in_time():
            part = await composer.compose_small(reconstruction.snapshot, taken, composition)
    if part is None:
        digest, composition = await composer.digest(reconstruction, taken, composition)
        compose = partial(composer.texts, reconstruction.snapshot, taken, composition)
        part = StreamedText(compose, digest, ("composed", digest))
    prefixes = shown.feed.head_prefixes
    for segment in segments:
        prefixes |= segment.prefixes
    dated_at = None if view.page is None else cut.newest_at
    prologue = _prologue(shown, wanted, prefixes, is_cut=is_cut, has_entries=bool(taken), dated_at=dated_at)
    changed_at = None
    if reconstruction.state is not State.LOADING:
        changed_at = _change_instant(shown.feed, is_healed=wanted.is_healed)
        if composition.has_texts:
            changed_at = max(changed_at, float(int(shown.feed.texts_at or 0.0)))
    parts = (part,) if taken else ()
    answer = _answer_of(shown, wanted, prologue, parts, changed_at=changed_at, is_cut=is_cut)
    if held is not None and reconstruction.is_stale == held.snapshot.feed.is_stale:
        size = _OVERHEAD_BYTES + len(prologue)
        if isinstance(part, Sealed):
            size += sys.getsizeof(part.block)
        else:
            size += _PLACE_BYTES * len(taken) + _DIGEST_BYTES * len(composition.texts or ())
        held.keep_made(key, answer, size)
    return answer


async def _compose_head(
    reconstruction: Reconstruction, wanted: Representation, composer: EntryComposer
) -> tuple[Reconstruction, Composition]:
    feed = reconstruction.feed
    texts = await composer.list_stored(reconstruction) if _has_texts(wanted, feed) else None
    if not _becomes_atom(wanted, feed):
        return reconstruction, Composition(feed.published_family, texts)
    head, snapshot = feed.head or b"", reconstruction.snapshot
    dates = [each.newest_at for each in snapshot.segments if each.newest_at is not None]
    make = partial(convert_head, head, identifier=feed.url, updated_at=max(dates, default=feed.since))
    made = make() if len(head) <= _SMALL_HEAD_BYTES else await asyncio.to_thread(make)
    context = ConversionContext(
        base=feed.via_url,
        language=read_language(head),
        undated_at=feed.since,
        ambiguous=await composer.read_ambiguous(reconstruction),
    )
    feed = replace(
        feed, published_family=Family.ATOM, version="", head=made.text, head_prefixes=made.prefixes
    )
    shown = replace(reconstruction, snapshot=replace(snapshot, feed=feed))
    return shown, Composition(Family.ATOM, texts, context)


_PLACE_BYTES: Final = 36
"""Memory for a number in a list."""
_DIGEST_BYTES: Final = 160
"""Memory for two digests in a mapping."""


def _with_room(reconstruction: Reconstruction, wanted: Representation) -> tuple[Representation, int | None]:
    """Drop a pseudo-entry without room (R16); return the bytes left for entries, too (None: unlimited)."""
    room = _room(reconstruction, wanted)
    if room is None or room >= 0 or not wanted.warns:
        return wanted, room
    # The header says the same as the pseudo-entry.
    wanted = wanted._replace(warns=False)
    return wanted, _room(reconstruction, wanted)


def _room(reconstruction: Reconstruction, wanted: Representation) -> int | None:
    view = wanted.view
    if view.max_bytes is None:
        return None
    dated_at = None if view.page is None else 0.0  # all dates have one length
    prologue = _prologue(
        reconstruction, wanted, ALL_PREFIXES, is_cut=True, has_entries=True, dated_at=dated_at
    )
    return view.max_bytes - len(prologue) - len(EPILOGUE[reconstruction.feed.published_family])


async def _own(reconstruction: Reconstruction, store: Store) -> OwnEntries:
    feed = reconstruction.feed
    if not feed.listed:
        return OwnEntries()
    numbers = [each.id for each in reconstruction.snapshot.segments]
    async with reconstruction.in_time():
        return await store.read(partial(segment_table.find_own, feed=feed.id, segments=numbers), feed=feed.id)


def _without_lists(
    reconstruction: Reconstruction, wanted: Representation, documents: int = 0
) -> tuple[Reconstruction, Representation]:
    """Return the feed without its lists (H1), which are `documents` of its documents."""
    own = reconstruction.without_lists(documents)
    lacked_lists_alone = reconstruction.feed.state is State.PARTIAL and own.feed.state is not State.PARTIAL
    # If only lists are missing, a feed without them lacks nothing, so nothing heals: no pseudo-entry.
    return own, wanted._replace(warns=wanted.warns and not lacked_lists_alone)


async def _on_page(
    page: FeedPage, reconstruction: Reconstruction, wanted: Representation
) -> tuple[Reconstruction, Representation]:
    """Return the feed and the representation of one page.

    A page changes only with its entries: it declares all prefixes, and only the first warns.
    """
    snapshot, feed, pages_url = reconstruction.snapshot, reconstruction.feed, wanted.pages_url
    total, is_loading = feed.entries, reconstruction.state is State.LOADING
    count, first = page.count(total), _pages_url(wanted.whole_url, "", page.size)
    if is_loading and page.number is not None:
        raise NoSuchPageError(
            f"the feed is still loading, and only its first page exists until it has loaded: {first}",
            retry_after_seconds=LOADING_SECONDS,
        )
    if page.number is not None and page.number > count:
        raise NoSuchPageError(f"expected {name_pages(count)}, got {page.number}; first: {first}")
    is_first = page.number in (None, count)
    head = feed.head or b""
    if total:  # an empty feed keeps the publisher's date
        head = await asyncio.to_thread(
            page_head, feed.published_family, feed.version, head, is_first=is_first
        )
    links = (("first", pages_url),) if is_loading else page.links(total, pages_url)
    wanted = wanted._replace(links=links, warns=wanted.warns and is_first)
    feed = replace(feed, head=head, head_prefixes=ALL_PREFIXES)
    return replace(reconstruction, snapshot=replace(snapshot, feed=feed)), wanted


def _whole_answer(reconstruction: Reconstruction, wanted: Representation) -> Answer | None:
    """Return the answer with all entries; None if the view omits something."""
    view = wanted.view
    most = view.max_bytes
    if not view.may_be_whole or (reconstruction.feed.listed and not view.has_listed):
        return None
    if not view.has_listed:
        reconstruction, wanted = _without_lists(reconstruction, wanted)
    if most is not None and sum(each.length for each in reconstruction.snapshot.segments) > most:
        return None  # known without composing
    answer = prepare(reconstruction, wanted)
    length = answer.body.text_bytes
    return None if most is not None and length is not None and length > most else answer


def prepare(
    reconstruction: Reconstruction,
    wanted: Representation,
    taken: Sequence[tuple[SegmentRow, BodyPart]] | None = None,
    *,
    is_cut: bool = False,
    dated_at: float | None = None,
) -> Answer:
    """Return the answer with segments `taken`, or all; `dated_at` dates an undated head."""
    feed = reconstruction.feed
    if taken is None:
        taken = [(each, each) for each in _segments(reconstruction)]
    prefixes = feed.head_prefixes
    for segment, _ in taken:
        prefixes |= segment.prefixes
    prologue = _prologue(
        reconstruction, wanted, prefixes, is_cut=is_cut, has_entries=bool(taken), dated_at=dated_at
    )
    changed_at = None
    if reconstruction.state is not State.LOADING:
        changed_at = _change_instant(feed, is_healed=wanted.is_healed)
    parts = tuple(part for _, part in taken)
    return _answer_of(reconstruction, wanted, prologue, parts, changed_at=changed_at, is_cut=is_cut)


def _answer_of(
    reconstruction: Reconstruction,
    wanted: Representation,
    prologue: bytes,
    parts: tuple[BodyPart, ...],
    *,
    changed_at: float | None,
    is_cut: bool,
    released: int | None = None,
) -> Answer:
    """Assemble an answer; `released` counts a replay's entries."""
    feed, family = reconstruction.feed, reconstruction.feed.published_family
    body = Body(family, prologue, parts, wanted.is_gzip)
    fields = {
        "Feed-Reconstruction": _reconstruction_field(
            reconstruction, is_cut=is_cut, released=released, has_texts=wanted.view.has_texts
        ),
        "ETag": body.etag,
        "Vary": VARY,
        "Link": f'<{reconstruction.via_url}>; rel="via"',
    }
    of_body = {"Content-Type": content_type(family)}
    if wanted.is_gzip:
        of_body["Content-Encoding"] = "gzip"
    if body.length is not None:
        of_body["Content-Length"] = str(body.length)
    if changed_at is not None:
        fields["Last-Modified"] = formatdate(changed_at, usegmt=True)
    return Answer(
        body=body,
        changed_at=changed_at,
        warns=wanted.warns,
        fields=CIMultiDict(fields),
        body_fields=CIMultiDict({**fields, **of_body}),
        facts=LaidOut(facts_of(feed)),
    )


def _change_instant(feed: FeedRow, *, is_healed: bool) -> float:
    changed_at = feed.modified_at or 0.0
    if (until := feed.turn.healed_until) is not None and not is_healed:  # the pseudo-entry has left since
        changed_at = max(changed_at, until)
    return float(int(changed_at))


def _segments(reconstruction: Reconstruction) -> tuple[SegmentRow, ...]:
    return tuple(each for each in reconstruction.snapshot.segments if each.length)


def _prologue(
    reconstruction: Reconstruction,
    wanted: Representation,
    prefixes: int,
    *,
    is_cut: bool,
    has_entries: bool,
    dated_at: float | None,
) -> bytes:
    feed, is_page = reconstruction.feed, wanted.view.page is not None
    whole_url = wanted.whole_url or wanted.self_url
    warning = _warning(reconstruction, wanted) if wanted.warns else b""
    prologue = compose_prologue(
        feed.published_family,
        feed.head or b"",
        prefixes=prefixes,
        address=Address(wanted.self_url, reconstruction.via_url, whole_url if is_cut else "", wanted.links),
        is_complete=reconstruction.state is State.COMPLETE and not (is_cut or warning or is_page),
        version=feed.version,
        warning=warning,
        dated_at=dated_at,
    )
    return prologue + JOINT[feed.published_family] if warning and has_entries else prologue


_WARNED_DOCUMENTS: Final = 20
"""In the pseudo-entry; /status lists all."""


def _warning(reconstruction: Reconstruction, wanted: Representation) -> bytes:
    """Return the pseudo-entry for missing documents or healing (R16), or b""."""
    feed, missing = reconstruction.feed, reconstruction.missing
    if reconstruction.state is State.PARTIAL and missing:
        shown = [MissingRange(attempt.url, attempt.reason) for attempt in missing[:_WARNED_DOCUMENTS]]
        told, url = told_missing(shown), wanted.page_url or shown[0].url
    elif wanted.is_healed and reconstruction.state is not State.LOADING:
        told, url = HEALED, wanted.page_url or reconstruction.via_url
    else:
        return b""
    dated_at = feed.warned_at
    if dated_at is None:  # published by a version without the column
        dated_at = min(attempt.first_at for attempt in missing)
    return compose_warning(
        feed.published_family,
        told,
        identifier=warning_id(feed.url),
        url=url,
        dated_at=dated_at,
        version=feed.version,
    )


# A replay: entries in the order of their release (P3 to P5)

_SMALL_HEAD_BYTES: Final = 1 << 14
"""Larger heads go to a thread."""


async def make_replay(
    reconstruction: Reconstruction,
    wanted: Representation,
    replays: Replays,
    timeline: ReplayTimeline | None,
    now: float,
    composer: EntryComposer,
) -> Answer:
    """Return the answer with the entries released so far; none without a timeline.

    Raises:
        OverloadedError: Reading takes too long.
    """
    view, replay = wanted.view, wanted.replay
    assert replay is not None, "it is asked for"
    shown, composition = await _compose_head(reconstruction, wanted, composer)
    feed = shown.feed
    family, version = feed.published_family, feed.version
    released = timeline.find_released(now) if timeline is not None else Released()
    newest_at = released[0].at if released else None
    identifier = uuid5(NAMESPACE_URL, f"wholefeed:replay:{feed.url}:{replay.pace}").urn
    make = partial(
        replay_head, family, version, feed.head or b"", identifier=identifier, is_dated=bool(released)
    )
    head = make() if len(feed.head or b"") <= _SMALL_HEAD_BYTES else await asyncio.to_thread(make)
    taken = released
    if timeline is not None:
        since = -inf if view.since is None else view.since
        taken = timeline.find_released(now, since=since, limit=view.limit)
    prefixes = feed.head_prefixes
    for segment in _segments(reconstruction):
        prefixes |= segment.prefixes

    def prologue(*, is_cut: bool) -> bytes:
        whole_url = wanted.whole_url if is_cut else ""
        address = Address(wanted.self_url, reconstruction.via_url, whole_url)
        return compose_prologue(
            family,
            head,
            prefixes=prefixes,
            address=address,
            is_complete=False,
            version=version,
            dated_at=newest_at,
        )

    style = ReplayStyle(family, replay.shows_original, *composer.steps_of(composition))
    if view.max_bytes is not None:
        room = view.max_bytes - len(prologue(is_cut=True)) - len(EPILOGUE[family])
        taken = await replays.fitting(reconstruction, taken, room, style)
    is_cut = len(taken) < len(released)
    texts = partial(replays.texts, reconstruction.snapshot, taken, style)
    digest = REPLAY_VERSION + await replays.digest(reconstruction, taken)
    if _is_composed(wanted, reconstruction.feed):
        digest += (await composer.digest(reconstruction, list(taken.places), composition))[0]
    opening, changed_at = prologue(is_cut=is_cut), None
    if timeline is not None:
        made_of = hashlib.blake2b(opening + digest, digest_size=DIGEST_BYTES).digest()
        modified_at = max(feed.modified_at or 0.0, (composition.has_texts and feed.texts_at) or 0.0)
        instants = (modified_at, timeline.begun_at, newest_at or 0)
        changed_at = replays.change_instant(feed.id, wanted.self_url, made_of, instants)
    return _answer_of(
        shown,
        wanted,
        opening,
        (StreamedText(texts, digest, (digest, replay.shows_original)),) if taken else (),
        changed_at=changed_at,
        is_cut=is_cut,
        released=len(released),
    )
