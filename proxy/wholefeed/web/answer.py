"""A reconstruction as an HTTP answer: the representation that the reader asks for, its header, and its body.

    wanted, wait_seconds = Wants(config).of(asked, url, base, accept_encoding)
    answer = answer_from(held, wanted)          # of a whole feed in memory; of others and of views:
    answer = await viewed(reconstruction, wanted, store)
    if not answer.is_known(request.headers, now):
        async for part in slices(answer, store): ...

The body is a prologue, which depends on the request, segments, and an epilogue. Segments are sent as they
are stored: for a reader that takes gzip no block is inflated or compressed again (docs/design.md#segments). A
view (`limit`, `since`, `answer_bytes`, `pages`, `listed`) takes most segments whole; a part of one is sealed
anew before the answer begins, or is an `_Excerpt`, cut while it is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import formatdate, parsedate_to_datetime
from functools import cached_property, lru_cache, partial
from itertools import compress, islice
from math import inf
from typing import Final, NamedTuple
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from aiohttp import hdrs
from multidict import CIMultiDict

from wholefeed.config.tables import Config
from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue, page_head
from wholefeed.core.compose.replaying import REPLAY_VERSION, replay_head
from wholefeed.core.compose.segments import (
    DIGEST_BYTES,
    FINAL_BLOCK,
    FORMER_DIGEST_BYTES,
    GZIP_HEADER,
    Deflater,
    Inflater,
    Sealed,
    Slice,
    TextDigest,
    combine,
    each_of,
    gzip_trailer,
    inflate,
    number_of,
    seal,
)
from wholefeed.core.compose.views import (
    HEALED,
    WHOLE,
    Cut,
    FeedPage,
    Missing,
    Take,
    View,
    compose_warning,
    entries_of,
    told_missing,
)
from wholefeed.core.model import Family, State, content_type, segment_separator
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.verbatim.fragments import ALL_PREFIXES
from wholefeed.errors import NoSuchPageError
from wholefeed.logs import LaidOut
from wholefeed.service.memory import LARGEST_BLOCK_BYTES, Held
from wholefeed.service.replaying import Released, Replays, Timeline
from wholefeed.service.results import Reconstruction
from wholefeed.store.rows import FeedRow, SegmentRow
from wholefeed.store.store import Store
from wholefeed.store.tables import segments
from wholefeed.store.tables.segments import Own
from wholefeed.web.request import (
    Asked,
    Replay,
    own_url,
    page_url,
    read_replay,
    read_view,
    read_wait,
    view_query,
    weighed,
)

# What a reader wants, and whether it has it already

_MOST_KEPT: Final = 2048
_LONGEST_KEPT: Final = 600
"""Characters of what a want is known by; no reader of feeds sends a longer field."""


class Wants:
    """What requests want of feeds: which representation, and how long they wait; read once for all alike."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kept: dict[tuple[str, str, str, str, str | None], tuple[Representation, float]] = {}

    def of(
        self, asked: Asked, url: str, base: str, accept_encoding: str | None
    ) -> tuple[Representation, float]:
        """Return what a request wants of the feed at the canonical URL, and how many seconds it waits for it.

        `base` is as `base_url` returns it.

        Raises:
            RequestError: `wait`, or what names a part of the feed, is not what it should be.
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
        own = own_url(base, url, asked.mark)
        whole_url = own if view.has_listed else f"{own}&listed=off"
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
    """What an answer depends on beside the feed; the key of answers that have been made."""

    self_url: str
    """The proxy's URL of what is asked for."""
    is_gzip: bool
    """The content coding."""
    warns: bool
    """Whether a partial feed carries the pseudo-entry, and for a while one that has healed (R16)."""
    whole_url: str = ""
    """The proxy's URL of the whole feed, where that is another."""
    page_url: str = ""
    """The proxy's page of the feed, which the pseudo-entry links to; empty where there is no proxy."""
    is_healed: bool = False
    """Whether it is said now that the feed has healed."""
    view: View = WHOLE
    pages_url: str = ""
    """The first page's, as who asks may ask for it: apps follow links without the token that they know."""
    links: tuple[tuple[str, str], ...] = ()
    """Of a page to others: relations and URLs."""
    replay: Replay | None = None
    """None: the feed itself."""


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether gzip is at least as welcome as the plain text (RFC 9110, 12.5.3)."""
    if not accept_encoding:
        return False
    weights = {name: weight if weight <= 1 else 0.0 for name, weight in weighed(accept_encoding)}
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


def is_not_modified(
    etag: str, modified_at: float | None, if_none_match: str | None, if_modified_since: str | None
) -> bool:
    """Whether a reader has this representation already (RFC 9110, 13.1.2, 13.1.3 and 13.2.2).

    Of a weak tag the same counts (section 8.8.3.2). Where the answer has no Last-Modified, If-Modified-Since
    says nothing.
    """
    if if_none_match is not None:
        if if_none_match == etag:  # as nearly every reader sends it
            return True
        return if_none_match.strip() == "*" or etag.removeprefix("W/") in _ENTITY_TAG.findall(if_none_match)
    if if_modified_since is None or modified_at is None:
        return False
    try:
        since = parsedate_to_datetime(if_modified_since)
        since_at = since.timestamp()
    except (TypeError, ValueError, OverflowError):  # also of years that no clock has
        return False
    return since.tzinfo is not None and modified_at <= since_at


# An answer with the header fields that go with it: all that does not depend on the time of the request

LOADING_SECONDS: Final = 5
"""How long a `loading` answer may be reused."""
VARY: Final = "Accept-Encoding, Accept, Sec-Fetch-Dest"
"""What the answer under a feed's URL depends on: who opens it in a browser is led to a page."""
_OVERHEAD_BYTES: Final = 3072
"""Of the objects and the short texts of a prepared answer that is held."""


def answer_from(held: Held, wanted: Representation) -> Answer | None:
    """Return the answer with a whole feed that is held in memory, made at its first use.

    None: the view that is asked for leaves something out.
    """
    found: Answer | None = held.made(wanted)
    if found is None:
        snapshot = held.snapshot
        found = _whole_answer(Reconstruction(snapshot, snapshot.feed.is_stale, held), wanted)
        if found is not None:
            texts = (found.prologue, found.sealed_prologue.block, found.parts)
            urls = (wanted.self_url, wanted.whole_url, wanted.page_url)
            held.keep_made(wanted, found, _OVERHEAD_BYTES + sum(map(sys.getsizeof, (*texts, *urls))))
    return found


@dataclass(frozen=True)
class Answer:
    """One representation of a feed, ready to be sent: its body, and its fields beside Cache-Control."""

    family: Family
    prologue: bytes
    sealed_prologue: Sealed
    parts: tuple[_Part, ...]
    is_gzip: bool
    etag: str
    length: int | None
    """Content-Length; None where that shows only when all has been deflated."""
    changed_at: float | None
    """Its Last-Modified, epoch seconds; None while a walk goes on: each publication would move it by one."""
    warns: bool
    """Whether it says what a partial feed lacks, where that is wanted."""
    fields: CIMultiDict[str]
    """Of a 304: without those of the body."""
    body_fields: CIMultiDict[str]
    facts: LaidOut
    """What the log line tells of the feed."""

    @cached_property
    def gzip_end(self) -> bytes:
        """What stands behind the last of whole segments: made once, however often the answer is sent."""
        return _gzip_end(self, self.parts)

    def is_known(self, headers: Mapping[str, str], now: float) -> bool:
        """Whether a reader that asks now with these fields has it already."""
        if_none_match = headers.get(hdrs.IF_NONE_MATCH)
        if_modified_since = headers.get(hdrs.IF_MODIFIED_SINCE)
        if is_not_modified(self.etag, self.modified_at(now), if_none_match, if_modified_since):
            return True
        return if_none_match is not None and bool(self.former_etag) and self.former_etag in if_none_match

    @cached_property
    def former_etag(self) -> str:
        """The tag by which wholefeed 0.1 knew these bytes, so that no reader has them again; empty: none."""
        digest = hashlib.blake2b(self.prologue, digest_size=DIGEST_BYTES)
        for part in self.parts:
            if not isinstance(part, SegmentRow) or len(part.digest) != FORMER_DIGEST_BYTES:
                return ""
            digest.update(part.digest[:DIGEST_BYTES])
        return f'"{digest.hexdigest()}{"-gzip" if self.is_gzip else ""}"' if self.parts else ""

    def modified_at(self, now: float) -> float | None:
        """Return the Last-Modified of an answer that is made now, epoch seconds; None: it has none.

        Of two publications in one second the second has that of the next one, and none until that has come:
        it must not be later than Date (RFC 9110, section 8.8.2.1), and a body whose Last-Modified is that of
        the one before is thrown away by newsboat, its ETag kept (curl, CURLOPT_TIMECONDITION). A body without
        any is taken.
        """
        return None if self.changed_at is None or self.changed_at > now else self.changed_at

    def fields_at(self, now: float, *, has_body: bool) -> CIMultiDict[str]:
        """Return the fields of an answer that is made now; the caller may add to them."""
        fields = (self.body_fields if has_body else self.fields).copy()
        if self.changed_at is not None and self.changed_at > now:  # as `modified_at` has it
            del fields["Last-Modified"]
        return fields


def facts_of(feed: FeedRow) -> dict[str, object]:
    state = str(feed.visible_state)
    return {"feed": feed.id, "state": state, "documents": feed.documents, "entries": feed.entries}


def _reconstruction_field(
    reconstruction: Reconstruction, *, is_cut: bool = False, released: int | None = None
) -> str:
    """Return the value of Feed-Reconstruction (an item of RFC 8941), which is that of the whole feed.

    Parameters stand in this order: documents, entries, missing, listed, since, stale, cut, released.
    `listed`, where there are any, is how many of the entries stand in the publisher's pages alone (H7).
    `since` is when the feed was first seen, or came in its format; it goes with `remembered` and `listed`,
    where of older entries none may be known, or no more than what is listed. `released` goes with a replay.
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
    if reconstruction.state in (State.REMEMBERED, State.LISTED):
        parameters.append(f'since="{format_rfc3339(feed.since)}"')
    if reconstruction.is_stale:
        parameters.append("stale")
    if is_cut:
        parameters.append("cut")
    if released is not None:
        parameters.append(f"released={released}")
    return ";".join(parameters)


# What depends on the request: the prologue, the view and the ETag

_JOINT: Final = {family: segment_separator(family) for family in Family}
"""What stands between two segments, as between two entries."""
_SEPARATOR: Final = {family: seal(text) for family, text in _JOINT.items()}
_EPILOGUE: Final = {family: seal(text) for family, text in EPILOGUE.items()}


async def viewed(reconstruction: Reconstruction, wanted: Representation, store: Store) -> Answer:
    """Return the answer in the view that is asked for. Only segments taken in part are read.

    Raises:
        OverloadedError: What it takes cannot be read in time.
        NoSuchPageError: The page that is asked for is not there.
    """
    view, family = wanted.view, reconstruction.feed.published_family
    if (whole := _whole_answer(reconstruction, wanted)) is not None:
        return whole
    own = Own()
    if not view.has_listed:
        own = await _own(reconstruction, store)
        reconstruction, wanted = _without_lists(reconstruction, wanted, own.lists)
    if view.page is not None:
        reconstruction, wanted = await _on_page(view.page, reconstruction, wanted)
    wanted, room = _with_room(reconstruction, wanted)
    cut = Cut(view, reconstruction.feed.entries, room=room, joint=len(_JOINT[family]))
    taken: list[tuple[SegmentRow, _Part]] = []
    async with reconstruction.in_time():
        for segment in _segments(reconstruction):
            part: _Part | None
            match cut.take(segment, own.entries(segment)):
                case Take.WHOLE:
                    part = segment
                case Take.PART:
                    part = await _taken_part(segment, own, reconstruction, cut, store)
                    if view.page is not None and isinstance(part, _Excerpt):
                        part = await _read_through(part, store, reconstruction.held)
                case Take.NONE:
                    part = None
            if part is not None:
                taken.append((segment, part))
    dated_at = None if view.page is None else cut.newest_at
    is_whole = not (cut.is_cut or own.masks)
    return prepare(reconstruction, wanted, None if is_whole else taken, is_cut=cut.is_cut, dated_at=dated_at)


def _with_room(reconstruction: Reconstruction, wanted: Representation) -> tuple[Representation, int | None]:
    """Return what is wanted, and how many bytes the entries may come to; None: any number.

    The pseudo-entry is left out where there is no room for it: the header says the same (R16).
    """
    room = _room(reconstruction, wanted)
    if room is None or room >= 0 or not wanted.warns:
        return wanted, room
    wanted = wanted._replace(warns=False)
    return wanted, _room(reconstruction, wanted)


def _room(reconstruction: Reconstruction, wanted: Representation) -> int | None:
    """Return how many bytes the entries may come to; None: any number."""
    view = wanted.view
    if view.max_bytes is None:
        return None
    dated_at = None if view.page is None else 0.0  # all dates are of one length
    prologue = _prologue(
        reconstruction, wanted, ALL_PREFIXES, is_cut=True, has_entries=True, dated_at=dated_at
    )
    return view.max_bytes - len(prologue) - len(EPILOGUE[reconstruction.feed.published_family])


async def _own(reconstruction: Reconstruction, store: Store) -> Own:
    feed = reconstruction.feed
    if not feed.listed:
        return Own()
    numbers = [each.id for each in reconstruction.snapshot.segments]
    async with reconstruction.in_time():
        return await store.read(partial(segments.own, feed=feed.id, segments=numbers), feed=feed.id)


def _without_lists(
    reconstruction: Reconstruction, wanted: Representation, documents: int = 0
) -> tuple[Reconstruction, Representation]:
    """Return the feed without the lists in its publisher's pages (H1), and what is wanted of it.

    `documents` hold these lists. Where nothing else is missing, nobody is told that the feed has healed.
    """
    own = reconstruction.without_lists(documents)
    lacked_lists_alone = reconstruction.feed.state is State.PARTIAL and own.feed.state is not State.PARTIAL
    return own, wanted._replace(warns=wanted.warns and not lacked_lists_alone)


async def _on_page(
    page: FeedPage, reconstruction: Reconstruction, wanted: Representation
) -> tuple[Reconstruction, Representation]:
    """Return a feed with the head that a page of it bears, and what is wanted with the page's links.

    The bytes of a page depend on its own entries, and on nothing else that each publication changes: it
    declares all prefixes that any entry may use, and only the first one to read has word of what is missing.
    """
    snapshot, feed, pages_url = reconstruction.snapshot, reconstruction.feed, wanted.pages_url
    total, is_loading = feed.entries, reconstruction.state is State.LOADING
    count, first = page.count(total), _pages_url(wanted.whole_url, "", page.size)
    if is_loading and page.number is not None:
        raise NoSuchPageError(
            f"the feed is loading, and until it is there it has its first page alone: {first}",
            retry_after_seconds=LOADING_SECONDS,
        )
    if page.number is not None and page.number > count:
        raise NoSuchPageError(
            f"expected page as a number from 1 to {count}, got {page.number}; first: {first}"
        )
    is_first = page.number in (None, count)
    head = feed.head or b""
    if total:  # one without entries has the publisher's date
        head = await asyncio.to_thread(
            page_head, feed.published_family, feed.version, head, is_first=is_first
        )
    links = (("first", pages_url),) if is_loading else page.links(total, pages_url)
    wanted = wanted._replace(links=links, warns=wanted.warns and is_first)
    feed = replace(feed, head=head, head_prefixes=ALL_PREFIXES)
    return replace(reconstruction, snapshot=replace(snapshot, feed=feed)), wanted


def _whole_answer(reconstruction: Reconstruction, wanted: Representation) -> Answer | None:
    """Return the answer with all of a feed; None where the view that is asked for leaves something out."""
    view = wanted.view
    most = view.max_bytes
    if not view.may_be_whole or (reconstruction.feed.listed and not view.has_listed):
        return None
    if not view.has_listed:
        reconstruction, wanted = _without_lists(reconstruction, wanted)
    if most is not None and sum(each.length for each in reconstruction.snapshot.segments) > most:
        return None  # nothing is composed to find it out
    answer = prepare(reconstruction, wanted)
    length = _text_bytes(answer.family, answer.prologue, answer.parts)
    return None if most is not None and length is not None and length > most else answer


def prepare(
    reconstruction: Reconstruction,
    wanted: Representation,
    taken: Sequence[tuple[SegmentRow, _Part]] | None = None,
    *,
    is_cut: bool = False,
    dated_at: float | None = None,
) -> Answer:
    """Return the answer with what a view takes of which segments, or with all of them.

    `is_cut`: it leaves something out; `dated_at` is for a head without a date of its own.
    """
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
        changed_at = _changed_at(feed, is_healed=wanted.is_healed)
    parts = tuple(part for _, part in taken)
    return _answer_of(reconstruction, wanted, prologue, parts, changed_at=changed_at, is_cut=is_cut)


def _answer_of(
    reconstruction: Reconstruction,
    wanted: Representation,
    prologue: bytes,
    parts: tuple[_Part, ...],
    *,
    changed_at: float | None,
    is_cut: bool,
    released: int | None = None,
) -> Answer:
    """Return the answer that is made of these; of a replay so many entries are `released`."""
    feed, family = reconstruction.feed, reconstruction.feed.published_family
    sealed_prologue = seal(prologue)
    etag = _etag(prologue, parts, family, is_gzip=wanted.is_gzip)
    fields = {
        "Feed-Reconstruction": _reconstruction_field(reconstruction, is_cut=is_cut, released=released),
        "ETag": etag,
        "Vary": VARY,
        "Link": f'<{reconstruction.via_url}>; rel="via"',
    }
    of_body = {"Content-Type": content_type(family)}
    if wanted.is_gzip:
        length = _gzip_bytes(family, sealed_prologue, parts)
        of_body["Content-Encoding"] = "gzip"
    else:
        length = _text_bytes(family, prologue, parts)
    if length is not None:
        of_body["Content-Length"] = str(length)
    if changed_at is not None:
        fields["Last-Modified"] = formatdate(changed_at, usegmt=True)
    return Answer(
        family=family,
        prologue=prologue,
        sealed_prologue=sealed_prologue,
        parts=parts,
        is_gzip=wanted.is_gzip,
        etag=etag,
        length=length,
        changed_at=changed_at,
        warns=wanted.warns,
        fields=CIMultiDict(fields),
        body_fields=CIMultiDict({**fields, **of_body}),
        facts=LaidOut(facts_of(feed)),
    )


def _text_bytes(family: Family, prologue: bytes, parts: Sequence[_Part]) -> int | None:
    length = len(prologue) + max(len(parts) - 1, 0) * len(_JOINT[family]) + len(EPILOGUE[family])
    for part in parts:
        if part.length is None:
            return None
        length += part.length
    return length


def _gzip_bytes(family: Family, prologue: Sealed, parts: Sequence[_Part]) -> int | None:
    blocks = max(len(parts) - 1, 0) * len(_SEPARATOR[family].block)
    for part in parts:
        if isinstance(part, _Excerpt | _Made):
            return None
        blocks += len(part.block) if isinstance(part, Sealed) else part.deflated_bytes
    ends = len(prologue.block) + len(_EPILOGUE[family].block)
    return len(GZIP_HEADER) + ends + blocks + len(FINAL_BLOCK) + len(gzip_trailer(0, 0))


def _changed_at(feed: FeedRow, *, is_healed: bool) -> float:
    changed_at = feed.modified_at or 0.0
    if (until := feed.turn.healed_until) is not None and not is_healed:  # its entry has left since then
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
    return prologue + _JOINT[feed.published_family] if warning and has_entries else prologue


_WARNED_DOCUMENTS: Final = 20
"""Missing documents that the pseudo-entry names; /status lists them all."""


def _warning(reconstruction: Reconstruction, wanted: Representation) -> bytes:
    """Return the pseudo-entry that says what the feed lacks (R16), or that it has healed; empty: neither."""
    feed, missing = reconstruction.feed, reconstruction.missing
    if reconstruction.state is State.PARTIAL and missing:
        shown = [Missing(attempt.url, attempt.reason) for attempt in missing[:_WARNED_DOCUMENTS]]
        told, url = told_missing(shown), wanted.page_url or shown[0].url
    elif wanted.is_healed and reconstruction.state is not State.LOADING:
        told, url = HEALED, wanted.page_url or reconstruction.via_url
    else:
        return b""
    dated_at = feed.warned_at
    if dated_at is None:  # it was published before there was such a date
        dated_at = min(attempt.first_at for attempt in missing)
    return compose_warning(
        feed.published_family,
        told,
        identifier=uuid5(NAMESPACE_URL, f"wholefeed:missing:{feed.url}").urn,
        url=url,
        dated_at=dated_at,
        version=feed.version,
    )


def _etag(prologue: bytes, segments: Sequence[_Part], family: Family, *, is_gzip: bool) -> str:
    """Equal texts have equal tags, whatever segments they come from, those of a cut large one excepted.

    Pages are not excepted: their large parts have been read.

    A gzip body differs with the segments that the text is cut into, so its tag is weak (RFC 9110, 8.8.1): a
    strong one stands for one sequence of bytes.
    """
    digest = TextDigest()
    digest.add_text(prologue)
    for at, segment in enumerate(segments):
        if at:
            digest.add(_SEPARATOR[family])
        if not isinstance(segment, _Excerpt | _Made):
            digest.add(segment)
        elif segment.read is not None:
            digest.add(segment.read)
        else:  # its text is not at hand
            digest.add_text(segment.digest)
    tag = digest.bytes().hex()
    return f'W/"{tag}-gzip"' if is_gzip else f'"{tag}"'


# A view: whole segments as they are stored, those in part made anew

_SEALED_BYTES: Final = 1 << 17
"""Of a text that is deflated before an answer begins; a longer one is while it is sent."""
_LISTED_BYTES: Final = 1 << 16
"""Of an outline that is looked through on the event loop; a longer one is on a thread."""


async def _taken_part(
    segment: SegmentRow, own: Own, reconstruction: Reconstruction, cut: Cut, store: Store
) -> Sealed | _Excerpt | None:
    feed, held = reconstruction.feed, reconstruction.held
    joint = _JOINT[feed.published_family]
    outline = await store.outline(segment)
    if outline is None:
        block = b"".join([piece async for piece in _pieces_of(segment, store, held)])
        text, entries = await asyncio.to_thread(_read_entries, segment, feed, block)
        kept = cut.kept(entries[cut.skipped :], len(entries))
        if not kept:
            return None
        taken = b"".join(text[each.start : each.end] for each in kept)
        return await asyncio.to_thread(seal, taken.removesuffix(joint))
    slices, number = each_of(outline, cut.skipped), number_of(outline)
    if (mask := own.masks.get(segment.id)) is not None:  # it has an outline, as each that holds entries
        slices, number = islice(compress(each_of(outline), mask), cut.skipped, None), own.entries(segment)
    if len(outline) <= _LISTED_BYTES:
        kept = cut.kept(slices, number)
    else:
        kept = await asyncio.to_thread(cut.kept, slices, number)
    if not kept:
        return None
    excerpt = _excerpt(segment, kept, joint)
    if excerpt.length > _SEALED_BYTES:
        return excerpt
    return seal(b"".join([text async for text in _excerpted(excerpt, store, held)]))


def _read_entries(segment: SegmentRow, feed: FeedRow, block: bytes) -> tuple[bytes, list[Slice]]:
    text = inflate(block, segment.length, segment.crc32)
    return text, entries_of(feed.published_family, text, feed.version)


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """A large part of a segment that a view keeps: taken from the segment's text while it is sent."""

    segment: SegmentRow
    ranges: tuple[tuple[int, int], ...]
    """Of the segment's text, ascending."""
    read: Sealed | None = None
    """What is known of its text where that has been read, which is in no block yet."""

    @property
    def length(self) -> int:
        """Of the text."""
        return sum(end - start for start, end in self.ranges)

    @property
    def digest(self) -> bytes:
        """Of what makes the text: which text of a segment, and what of it."""
        whole = self.segment
        said = f"{whole.digest.hex()} {whole.crc32:08x} {whole.length} {self.ranges}"
        return hashlib.blake2b(said.encode(), digest_size=DIGEST_BYTES).digest()


async def _read_through(part: _Excerpt, store: Store, held: Held | None) -> _Excerpt:
    """Read the text of a part of a page, whose tag must not move with the segments (G1)."""
    whole = TextDigest()
    async for text in _excerpted(part, store, held):
        whole.add_text(text)
    return replace(part, read=whole.sealed(b""))


def _excerpt(segment: SegmentRow, kept: Sequence[Slice], joint: bytes) -> _Excerpt:
    """Return what is left of a segment where a view keeps these entries; `joint` is not behind the last."""
    ranges: list[tuple[int, int]] = []
    for each in kept:
        if ranges and ranges[-1][1] == each.start:
            ranges[-1] = ranges[-1][0], each.end
        else:
            ranges.append((each.start, each.end))
    start, end = ranges[-1]
    if end < segment.length:
        ranges[-1] = start, end - len(joint)
    return _Excerpt(segment, tuple(ranges))


@dataclass(frozen=True, slots=True)
class _Made:
    """Text that is made while it is sent; how long it is shows at its end."""

    texts: Callable[[], AsyncIterator[bytes]]
    digest: bytes
    key: Hashable
    """What it is held by: it says which entries, and how they are made."""
    length: None = None
    read: None = None


_Part = SegmentRow | Sealed | _Excerpt | _Made
"""What is sent of a segment: all of it, as it is stored; a little, made anew; much. Or what is replayed."""


# A replay: entries in the order of their release (P3 to P5)

_SMALL_HEAD_BYTES: Final = 1 << 14
"""A larger one is read on a thread."""


async def replayed(
    reconstruction: Reconstruction,
    wanted: Representation,
    replays: Replays,
    timeline: Timeline | None,
    now: float,
) -> Answer:
    """Return the answer with what is out of a replay now: nothing, where it has no timeline yet.

    Raises:
        OverloadedError: What it takes cannot be read in time.
    """
    feed, view, replay = reconstruction.feed, wanted.view, wanted.replay
    assert replay is not None, "it is asked for"
    family, version = feed.published_family, feed.version
    released = timeline.released(now) if timeline is not None else Released()
    newest_at = released[0].at if released else None
    identifier = uuid5(NAMESPACE_URL, f"wholefeed:replay:{feed.url}:{replay.pace}").urn
    make = partial(
        replay_head, family, version, feed.head or b"", identifier=identifier, is_dated=bool(released)
    )
    head = make() if len(feed.head or b"") <= _SMALL_HEAD_BYTES else await asyncio.to_thread(make)
    taken = released
    if timeline is not None:
        since = -inf if view.since is None else view.since
        taken = timeline.released(now, since=since, limit=view.limit)
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

    if view.max_bytes is not None:
        room = view.max_bytes - len(prologue(is_cut=True)) - len(EPILOGUE[family])
        shows_original = replay.shows_original
        taken = await replays.fitting(reconstruction, taken, room, shows_original=shows_original)
    is_cut = len(taken) < len(released)
    texts = partial(replays.texts, reconstruction.snapshot, taken, shows_original=replay.shows_original)
    digest = REPLAY_VERSION + await replays.digest(reconstruction, taken)
    opening, changed_at = prologue(is_cut=is_cut), None
    if timeline is not None:
        made_of = hashlib.blake2b(opening + digest, digest_size=DIGEST_BYTES).digest()
        instants = (feed.modified_at or 0.0, timeline.begun_at, newest_at or 0)
        changed_at = replays.changed_at(feed.id, wanted.self_url, made_of, instants)
    return _answer_of(
        reconstruction,
        wanted,
        opening,
        (_Made(texts, digest, (digest, replay.shows_original)),) if taken else (),
        changed_at=changed_at,
        is_cut=is_cut,
        released=len(released),
    )


# The body, put together from texts and deflated blocks

SLICE_BYTES: Final = 1 << 16
"""Of text, what is inflated and written at once; an answer that is no longer is sent with its header."""


async def slices(answer: Answer, store: Store, held: Held | None = None) -> AsyncIterator[bytes]:
    """Give the body in parts of about `SLICE_BYTES`, with one piece of one block in memory at a time.

    To be read while a snapshot is held. Blocks come from memory where they are held there, else from the
    store, and are held then.
    """
    family, sealed = answer.family, list[SegmentRow | Sealed]()
    opening, joint = answer.prologue, _JOINT[family]
    if answer.is_gzip:
        opening, joint = GZIP_HEADER + answer.sealed_prologue.block, _SEPARATOR[family].block
    for piece in sliced(opening):
        yield piece
    before = b""
    for part in answer.parts:
        pieces = _deflated(part, sealed, store, held) if answer.is_gzip else _texts_of(part, store, held)
        async for piece in pieces:
            yield before + piece if before else piece
            before = b""
        before = joint
    for piece in sliced(_gzip_end(answer, sealed) if answer.is_gzip else EPILOGUE[family]):
        yield piece


async def _deflated(
    part: _Part, sealed: list[SegmentRow | Sealed], store: Store, held: Held | None
) -> AsyncIterator[bytes]:
    """Give a part deflated, and add to `sealed` what its CRC and length are known by."""
    part = _kept(part, held)
    if not isinstance(part, _Excerpt | _Made):
        sealed.append(part)
        async for block in _pieces_of(part, store, held):
            for piece in sliced(block):
                yield piece
        return
    deflater = Deflater()
    with _keeping(part, held) as kept:
        async for text in _texts_of(part, store, held):
            if piece := deflater.add(text):
                kept.add(piece)
                yield piece
        sealed.append(end := deflater.end())
        kept.end(end)
        if end.block:
            yield end.block


def _kept(part: _Part, held: Held | None) -> _Part:
    """Return what was replayed before, deflated, where that is held; any other part as it is."""
    found: Sealed | None = held.made(part.key) if held is not None and isinstance(part, _Made) else None
    return part if found is None else found


_MOST_KEPT_BYTES: Final = 1 << 24
"""Of a replay, deflated: more is made each time. To make 50,000 entries takes seconds of CPU."""


class _Keeping:
    """Collects what is made of a replay while it is sent, for whoever asks for the same next."""

    def __init__(self, key: Hashable, held: Held | None) -> None:
        self._key = key
        self._held = held
        self._pieces: list[bytes] = []
        self._bytes = 0

    def add(self, piece: bytes) -> None:
        if self._held is None:
            return
        self._pieces.append(piece)
        self._bytes += len(piece)
        if self._bytes > _MOST_KEPT_BYTES:
            self._pieces.clear()
            self._held = None

    def end(self, end: Sealed) -> None:
        if self._held is not None:
            block = b"".join([*self._pieces, end.block])
            self._held.keep_made(self._key, replace(end, block=block), sys.getsizeof(block))


@contextmanager
def _keeping(part: _Excerpt | _Made, held: Held | None) -> Iterator[_Keeping]:
    """Collect a replay; nothing of other parts, nor while another answer of the feed is being collected."""
    if held is None or held.is_collecting or not isinstance(part, _Made):
        yield _Keeping(None, None)
        return
    held.is_collecting = True
    try:
        yield _Keeping(part.key, held)
    finally:
        held.is_collecting = False


def _gzip_end(answer: Answer, sealed: Sequence[_Part]) -> bytes:
    """Return what stands behind the last segment of a gzip member; its CRC is put together from theirs."""
    separator, epilogue = _SEPARATOR[answer.family], _EPILOGUE[answer.family]
    between = [each for part in sealed for each in (separator, part)][1:]
    crc32 = length = 0
    for part in (answer.sealed_prologue, *between, epilogue):
        assert not isinstance(part, _Excerpt | _Made), "sealed"
        crc32 = combine(crc32, part.crc32, part.length)
        length += part.length
    return epilogue.block + FINAL_BLOCK + gzip_trailer(crc32, length)


def joined(answer: Answer, blocks: Mapping[int, bytes]) -> bytes | None:
    """Return the body of a whole feed from the blocks that are held; None where it is long, or one is not."""
    if answer.length is None or answer.length > LARGEST_BLOCK_BYTES:
        return None
    found: list[tuple[SegmentRow, bytes]] = []
    for segment in answer.parts:
        if not isinstance(segment, SegmentRow) or (block := blocks.get(segment.id)) is None:
            return None
        found.append((segment, block))
    if answer.is_gzip:
        between = _SEPARATOR[answer.family].block.join([block for _, block in found])
        return b"".join((GZIP_HEADER, answer.sealed_prologue.block, between, answer.gzip_end))
    texts = [inflate(block, segment.length, segment.crc32) for segment, block in found]
    text = _JOINT[answer.family].join(texts)
    return b"".join((answer.prologue, text, EPILOGUE[answer.family]))


def sliced(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), SLICE_BYTES):
        yield chunk[start : start + SLICE_BYTES]


async def _texts_of(part: _Part, store: Store, held: Held | None) -> AsyncIterator[bytes]:
    part = _kept(part, held)
    if isinstance(part, _Excerpt | _Made):
        made = part.texts() if isinstance(part, _Made) else _excerpted(part, store, held)
        async for text in made:
            yield text
        return
    inflater = Inflater(part.length, part.crc32)
    async for piece in _pieces_of(part, store, held):
        for text in inflater.add(piece, SLICE_BYTES):
            yield text
    inflater.end()


async def _excerpted(part: _Excerpt, store: Store, held: Held | None) -> AsyncIterator[bytes]:
    """Give the text of an excerpt; no more is read than it takes."""
    inflater = Inflater(part.segment.length, part.segment.crc32)
    ranges = iter(part.ranges)
    start, end = next(ranges)
    at = 0
    async for piece in _pieces_of(part.segment, store, held):
        for text in inflater.add(piece, SLICE_BYTES):
            while start < at + len(text):
                yield text[max(start - at, 0) : end - at]
                if end > at + len(text):
                    break
                following = next(ranges, None)
                if following is None:
                    return
                start, end = following
            at += len(text)
    raise ValueError(f"damaged block: expected {end} bytes, got {at}")


async def _pieces_of(part: SegmentRow | Sealed, store: Store, held: Held | None) -> AsyncIterator[bytes]:
    """Give the deflated text of a part, a piece at a time."""
    if isinstance(part, Sealed):
        yield part.block
        return
    block = None
    if held is not None:
        block = held.blocks.get(part.id)
        if block is None and part.deflated_bytes <= LARGEST_BLOCK_BYTES:
            block = b"".join([piece async for piece in store.pieces(part)])
            held.keep_block(part.id, block)
    if block is not None:
        yield block
        return
    async for piece in store.pieces(part):
        yield piece
