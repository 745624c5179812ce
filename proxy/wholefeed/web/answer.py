"""A reconstruction as HTTP answer: what a reader wants, the header, and the body in parts.

    wanted, may_be_whole, wait_seconds = Wants(config).of(asked, url, base, accept_encoding)
    ready = prepared_of(held, wanted)           # a whole feed that is held in memory; of others and of views:
    ready = prepared(reconstruction, await viewed(reconstruction, wanted, blocks))
    if not is_not_modified(ready.answer.etag, ready.modified_at(now), if_none_match, if_modified_since):
        async for part in slices(ready.answer, blocks): ...

The body is a prologue, which depends on the request, segments, and an epilogue. Segments are sent as they
are stored: for a reader that takes gzip no block is inflated or compressed again (docs/design.md#segments). A
feed cut for a reader with a cap (`limit`, `since`, `answer_bytes`) takes most of them whole; what is left of
the others is a `_Remnant`, made anew before the answer begins, or an `_Excerpt`, cut while it is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, Protocol
from uuid import NAMESPACE_URL, uuid5

from multidict import CIMultiDict

from wholefeed.config.tables import Config
from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue
from wholefeed.core.compose.segments import (
    DIGEST_BYTES,
    FINAL_BLOCK,
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
from wholefeed.logs import LaidOut
from wholefeed.service.memory import LARGEST_BLOCK_BYTES, Held
from wholefeed.service.results import Reconstruction
from wholefeed.store.rows import FeedRow, SegmentRow
from wholefeed.store.store import Store
from wholefeed.web.request import Asked, own_url, page_url, read_view, read_wait, view_query

# What a reader wants, and whether it has it already

_MOST_KEPT: Final = 2048
_LONGEST_KEPT: Final = 600
"""Characters of what a want is known by; no reader of feeds sends a longer field."""


class Wants:
    """What requests want of feeds: which representation, and how long they wait; read once for all alike."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kept: dict[tuple[str, str, str, str, str | None], _Want] = {}

    def of(self, asked: Asked, url: str, base: str, accept_encoding: str | None) -> _Want:
        """Return what a request wants.

        Args:
            asked: The request.
            url: Canonical URL of the feed.
            base: The proxy's URL, as `base_url` returns it.
            accept_encoding: The field of the request.

        Raises:
            RequestError: `wait`, `limit`, `since` or `answer_bytes` is not what it should be.
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

    def _read(self, asked: Asked, url: str, base: str, accept_encoding: str | None) -> _Want:
        options, limits = asked.query.options, self._config.limits
        whole_url = own_url(base, url, asked.mark)
        representation = Representation(
            self_url=whole_url + view_query(options),
            whole_url=whole_url,
            is_gzip=accepts_gzip(accept_encoding),
            warns=self._config.history.warn_entry,
            page_url=page_url(base, url),
            view=read_view(options, limits.answer_bytes),
        )
        wait_seconds = read_wait(options, limits.respond_within_seconds)
        return _Want(representation, representation.view.may_be_whole, wait_seconds)


class _Want(NamedTuple):
    representation: Representation
    may_be_whole: bool
    """Whether nothing is left out of a feed that is short enough."""
    wait_seconds: float


class Representation(NamedTuple):
    """What an answer depends on beside the feed. Each request looks by it for what has been made."""

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


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str | None) -> bool:
    """Whether gzip is at least as welcome as the plain text (RFC 9110, 12.5.3)."""
    if not accept_encoding:
        return False
    weights: dict[str, float] = {}
    for part in accept_encoding.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weights[name] = _weight(parameters)
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                return 0.0
            return weight if 0.0 <= weight <= 1.0 else 0.0
    return 1.0


_ENTITY_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


def is_not_modified(
    etag: str, modified_at: float | None, if_none_match: str | None, if_modified_since: str | None
) -> bool:
    """Whether a reader has this representation already (RFC 9110, 13.1.2, 13.1.3 and 13.2.2).

    Args:
        etag: Of the answer. Of a weak one the same counts (section 8.8.3.2).
        modified_at: Its Last-Modified, epoch seconds; None: it has none, and If-Modified-Since says nothing.
        if_none_match: The field of the request.
        if_modified_since: The same.
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

VARY: Final = "Accept-Encoding, Accept, Sec-Fetch-Dest"
"""What the answer under a feed's URL depends on: who opens it in a browser is led to a page."""
_OVERHEAD_BYTES: Final = 3072
"""Of the objects and the short texts of a prepared answer that is held."""


def prepared_of(held: Held, wanted: Representation) -> Prepared | None:
    """Return the answer with a whole feed that is held in memory, made at its first use.

    None: the view that is asked for leaves something out.
    """
    found: Prepared | None = held.made(wanted)
    if found is None:
        snapshot = held.snapshot
        reconstruction = Reconstruction(snapshot, snapshot.feed.is_stale, held)
        answer = _whole_answer(reconstruction, wanted)
        if answer is None:
            return None
        found = prepared(reconstruction, answer, is_healed=wanted.is_healed)
        answers = (answer.prologue, answer.segments, answer.sealed_prologue.block)
        urls = (wanted.self_url, wanted.whole_url, wanted.page_url)
        held.keep_made(wanted, found, _OVERHEAD_BYTES + sum(map(sys.getsizeof, (*answers, *urls))))
    return found


def prepared(reconstruction: Reconstruction, answer: Answer, *, is_healed: bool = False) -> Prepared:
    """Return an answer to a reconstruction, with its fields; `is_healed` as in `Representation`."""
    feed = reconstruction.feed
    modified_at = feed.modified_at or 0.0
    if (until := feed.turn.healed_until) is not None and not is_healed:  # its entry has left since then
        modified_at = max(modified_at, until)
    fields = {
        "Feed-Reconstruction": _reconstruction_field(reconstruction, is_cut=answer.is_cut),
        "ETag": answer.etag,
        "Vary": VARY,
        "Link": f'<{reconstruction.via_url}>; rel="via"',
    }
    of_body = {"Content-Type": content_type(feed.published_family)}
    if (length := answer.length) is not None:
        of_body["Content-Length"] = str(length)
    if answer.is_gzip:
        of_body["Content-Encoding"] = "gzip"
    changed_at = None if reconstruction.state is State.LOADING else float(int(modified_at))
    if changed_at is not None:
        fields["Last-Modified"] = formatdate(changed_at, usegmt=True)
    body_fields = CIMultiDict({**fields, **of_body})
    return Prepared(answer, CIMultiDict(fields), body_fields, changed_at, length, LaidOut(facts_of(feed)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """An answer, and its fields beside Cache-Control; those of the body are not part of a 304."""

    answer: Answer
    fields: CIMultiDict[str]
    body_fields: CIMultiDict[str]
    changed_at: float | None
    """Its Last-Modified, epoch seconds; None while a walk goes on: each publication would move it by one."""
    length: int | None
    """As `Answer.length`."""
    facts: LaidOut
    """What the log line tells of the feed."""

    def is_at_most(self, most_bytes: int) -> bool:
        """Whether the body is known to be so short."""
        return self.length is not None and self.length <= most_bytes

    def modified_at(self, now: float) -> float | None:
        """Return the Last-Modified of an answer that is made now, epoch seconds; None: it has none.

        Of two publications in one second the second has that of the next one, and none until that has come:
        it must not be later than Date (RFC 9110, section 8.8.2.1), and a body whose Last-Modified is that of
        the one before is thrown away by newsboat, its ETag kept (curl, CURLOPT_TIMECONDITION). A body without
        any is taken.
        """
        return None if self.changed_at is None or self.changed_at > now else self.changed_at

    def fields_at(self, now: float, *, has_body: bool) -> CIMultiDict[str]:
        """Return the fields of an answer that is made now. They are the caller's, who may add to them."""
        fields = (self.body_fields if has_body else self.fields).copy()
        if self.changed_at is not None and self.changed_at > now:  # as `modified_at` has it
            del fields["Last-Modified"]
        return fields


def facts_of(feed: FeedRow) -> dict[str, object]:
    state = str(feed.visible_state)
    return {"feed": feed.id, "state": state, "documents": feed.documents, "entries": feed.entries}


def _reconstruction_field(reconstruction: Reconstruction, *, is_cut: bool = False) -> str:
    """Return the value of Feed-Reconstruction (an item of RFC 8941), which is that of the whole feed.

    Parameters stand in this order: documents, entries, missing, since, stale, cut. `since` is when the feed
    was first seen, or came in its format; it goes with `remembered`, where older entries may be unknown.
    """
    feed = reconstruction.feed
    parameters = [
        str(reconstruction.state),
        f"documents={feed.documents}",
        f"entries={feed.entries}",
        f"missing={len(reconstruction.missing)}",
    ]
    if reconstruction.state is State.REMEMBERED:
        parameters.append(f'since="{format_rfc3339(feed.since)}"')
    if reconstruction.is_stale:
        parameters.append("stale")
    if is_cut:
        parameters.append("cut")
    return ";".join(parameters)


# What depends on the request: the prologue, the view and the ETag

_SEPARATOR: Final = {family: seal(segment_separator(family)) for family in Family}
_EPILOGUE: Final = {family: seal(text) for family, text in EPILOGUE.items()}


@dataclass(frozen=True)
class Answer:
    """One representation of a feed, ready to be sent."""

    prologue: bytes
    epilogue: bytes
    sealed_epilogue: Sealed
    segments: tuple[_Part, ...]
    separator: Sealed
    """Stands between two segments."""
    is_cut: bool
    """Whether entries were left out for a reader with a cap."""
    is_gzip: bool
    etag: str

    @cached_property
    def sealed_prologue(self) -> Sealed:
        return seal(self.prologue)

    @cached_property
    def gzip_end(self) -> bytes:
        """What stands behind the last segment of the gzip member of a feed of whole segments.

        The CRC of the member is put together from theirs: once, however often the answer is sent.
        """
        joining = _joining(self)
        for segment in self.segments:
            assert isinstance(segment, SegmentRow), "whole segments"
            joining.begin(segment)
        return joining.last()

    @property
    def text_bytes(self) -> int:
        """What the body comes to without content coding."""
        gaps = max(len(self.segments) - 1, 0)
        segments = sum(each.length for each in self.segments) + gaps * self.separator.length
        return len(self.prologue) + segments + len(self.epilogue)

    @property
    def length(self) -> int | None:
        """Content-Length; None where that shows only when all has been deflated."""
        if not self.is_gzip:
            return self.text_bytes
        gaps = max(len(self.segments) - 1, 0)
        ends = len(self.sealed_prologue.block) + len(self.sealed_epilogue.block)
        blocks = gaps * len(self.separator.block)
        for segment in self.segments:
            if isinstance(segment, _Excerpt):
                return None
            blocks += segment.deflated_bytes
        return len(GZIP_HEADER) + ends + blocks + len(FINAL_BLOCK) + len(gzip_trailer(0, 0))


async def viewed(reconstruction: Reconstruction, wanted: Representation, blocks: _Blocks) -> Answer:
    """Return the answer in the view that is asked for.

    Raises:
        OverloadedError: What it takes cannot be read in time.
    """
    view, feed = wanted.view, reconstruction.feed
    if (whole := _whole_answer(reconstruction, wanted)) is not None:
        return whole
    room = None
    if view.max_bytes is not None:
        prologue = _prologue(reconstruction, wanted, ALL_PREFIXES, is_cut=True, has_entries=True)
        room = view.max_bytes - len(prologue) - len(EPILOGUE[feed.published_family])
    cut = Cut(view, room=room, joint=len(segment_separator(feed.published_family)))
    async with reconstruction.in_time():
        parts = await _cut_parts(_segments(reconstruction), feed, cut, blocks)
    return prepare(reconstruction, wanted, parts if cut.is_cut else None)


def _whole_answer(reconstruction: Reconstruction, wanted: Representation) -> Answer | None:
    """Return the answer with all of a feed; None where the view that is asked for leaves something out."""
    view = wanted.view
    most = view.max_bytes
    if not view.may_be_whole:
        return None
    if most is not None and sum(each.length for each in reconstruction.snapshot.segments) > most:
        return None  # nothing is composed to find it out
    answer = prepare(reconstruction, wanted)
    return answer if most is None or answer.text_bytes <= most else None


def prepare(
    reconstruction: Reconstruction, wanted: Representation, parts: tuple[_Part, ...] | None = None
) -> Answer:
    """Return the answer with `parts`, which is what a view leaves of the segments, or with all of them."""
    feed, is_cut = reconstruction.feed, parts is not None
    family, prefixes = feed.published_family, feed.head_prefixes
    segments = _segments(reconstruction) if parts is None else parts
    for segment in segments:
        prefixes |= segment.prefixes
    prologue = _prologue(reconstruction, wanted, prefixes, is_cut=is_cut, has_entries=bool(segments))
    return Answer(
        prologue=prologue,
        epilogue=EPILOGUE[family],
        sealed_epilogue=_EPILOGUE[family],
        segments=segments,
        separator=_SEPARATOR[family],
        is_cut=is_cut,
        is_gzip=wanted.is_gzip,
        etag=_etag(prologue, segments, _SEPARATOR[family], is_gzip=wanted.is_gzip),
    )


def _segments(reconstruction: Reconstruction) -> tuple[SegmentRow, ...]:
    return tuple(each for each in reconstruction.snapshot.segments if each.length)


def _prologue(
    reconstruction: Reconstruction, wanted: Representation, prefixes: int, *, is_cut: bool, has_entries: bool
) -> bytes:
    feed = reconstruction.feed
    whole_url = wanted.whole_url or wanted.self_url
    warning = _warning(reconstruction, wanted) if wanted.warns else b""
    prologue = compose_prologue(
        feed.published_family,
        feed.head or b"",
        prefixes=prefixes,
        address=Address(wanted.self_url, reconstruction.via_url, whole_url if is_cut else ""),
        is_complete=reconstruction.state is State.COMPLETE and not is_cut and not warning,
        version=feed.version,
        warning=warning,
    )
    return prologue + segment_separator(feed.published_family) if warning and has_entries else prologue


_WARNED_DOCUMENTS: Final = 20
"""Missing documents that the pseudo-entry names; /status lists them all."""


def _warning(reconstruction: Reconstruction, wanted: Representation) -> bytes:
    feed, missing = reconstruction.feed, reconstruction.missing
    if _is_warning(reconstruction):
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


def _is_warning(reconstruction: Reconstruction) -> bool:
    """Whether readers are to be warned that the feed lacks something (R16)."""
    return reconstruction.state is State.PARTIAL and bool(reconstruction.missing)


def _etag(prologue: bytes, segments: tuple[_Part, ...], separator: Sealed, *, is_gzip: bool) -> str:
    """Equal texts have equal tags, whatever segments they come from, those of a cut large one excepted.

    A gzip body differs with the segments that the text is cut into, so its tag is weak (RFC 9110, 8.8.1): a
    strong one stands for one sequence of bytes.
    """
    digest = TextDigest()
    digest.add_text(prologue)
    for at, segment in enumerate(segments):
        if at:
            digest.add(separator)
        if isinstance(segment, _Excerpt):  # its text is not at hand
            digest.add_text(segment.digest)
        else:
            digest.add(segment)
    tag = digest.bytes().hex()
    return f'W/"{tag}-gzip"' if is_gzip else f'"{tag}"'


# A view: whole segments as they are stored, those in part made anew

_SEALED_BYTES: Final = 1 << 17
"""Of a text that is deflated before an answer begins; a longer one is while it is sent."""
_LISTED_BYTES: Final = 1 << 16
"""Of an outline that is looked through on the event loop; a longer one is on a thread."""


async def _cut_parts(
    segments: tuple[SegmentRow, ...], feed: FeedRow, cut: Cut, blocks: _Blocks
) -> tuple[_Part, ...]:
    """Return what a view takes of a feed, in output order. Only segments taken in part are read.

    Args:
        segments: Of the snapshot that is held.
        feed: As it is published.
        cut: The view, at its beginning.
        blocks: Where the text of the segments is.
    """
    parts: list[_Part] = []
    for segment in segments:
        match cut.take(segment):
            case Take.WHOLE:
                parts.append(segment)
            case Take.PART:
                part = await _taken_part(segment, feed, cut, blocks)
                if part is not None:
                    parts.append(part)
            case Take.NONE:
                continue
    return tuple(parts)


async def _taken_part(segment: SegmentRow, feed: FeedRow, cut: Cut, blocks: _Blocks) -> _Part | None:
    joint = segment_separator(feed.published_family)
    outline = await blocks.outline(segment)
    if outline is None:
        block = b"".join([piece async for piece in blocks.pieces(segment)])
        text, slices = await asyncio.to_thread(_read_entries, segment, feed, block)
        kept = cut.kept(slices, len(slices))
        if not kept:
            return None
        taken = b"".join(text[each.start : each.end] for each in kept)
        return await asyncio.to_thread(_remnant, segment, taken.removesuffix(joint))
    if len(outline) <= _LISTED_BYTES:
        kept = cut.kept(each_of(outline), number_of(outline))
    else:
        kept = await asyncio.to_thread(lambda: cut.kept(each_of(outline), number_of(outline)))
    if not kept:
        return None
    made = _excerpt(segment, kept, joint)
    if made.length > _SEALED_BYTES:
        return made
    return _remnant(segment, b"".join([text async for text in _texts_of(made, blocks)]))


def _read_entries(segment: SegmentRow, feed: FeedRow, block: bytes) -> tuple[bytes, list[Slice]]:
    text = inflate(block, segment.length, segment.crc32)
    return text, entries_of(feed.published_family, text, feed.version)


@dataclass(frozen=True, slots=True)
class _Remnant:
    """What a view keeps of a segment, where that is little: a segment made anew."""

    sealed: Sealed
    prefixes: int
    """As in `SegmentRow`."""

    @property
    def length(self) -> int:
        """Of the text."""
        return self.sealed.length

    @property
    def deflated_bytes(self) -> int:
        return len(self.sealed.block)

    @property
    def digest(self) -> bytes:
        return self.sealed.digest

    @property
    def crc32(self) -> int:
        return self.sealed.crc32


def _remnant(segment: SegmentRow, text: bytes) -> _Remnant:
    return _Remnant(seal(text), segment.prefixes)


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """What a view keeps of a segment, where that is much: taken from the segment's text while it is sent."""

    segment: SegmentRow
    ranges: tuple[tuple[int, int], ...]
    """Of the segment's text, ascending."""

    @property
    def length(self) -> int:
        """Of the text."""
        return sum(end - start for start, end in self.ranges)

    @property
    def prefixes(self) -> int:
        return self.segment.prefixes

    @property
    def digest(self) -> bytes:
        """Of what makes the text: which text of a segment, and what of it."""
        whole = self.segment
        said = f"{whole.digest.hex()} {whole.crc32:08x} {whole.length} {self.ranges}"
        return hashlib.blake2b(said.encode(), digest_size=DIGEST_BYTES).digest()


def _excerpt(segment: SegmentRow, kept: Sequence[Slice], joint: bytes) -> _Excerpt:
    """Return what is left of a segment.

    Args:
        segment: As it is stored.
        kept: What a view keeps of it; not nothing.
        joint: What stands between two entries, and not behind the last.
    """
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


_Part = SegmentRow | _Remnant | _Excerpt


# The body, put together from texts and deflated blocks

SLICE_BYTES: Final = 1 << 16
"""Of text, what is inflated and written at once; an answer that is no longer is sent with its header."""


async def slices(answer: Answer, blocks: _Blocks) -> AsyncIterator[bytes]:
    """Give the body in parts of about `SLICE_BYTES`, with one piece of one block in memory at a time."""
    joining = _joining(answer)
    for part in sliced(joining.first):
        yield part
    for segment in answer.segments:
        if isinstance(segment, _Excerpt):
            joining.begin_text()
            async for text in _texts_of(segment, blocks):
                if part := joining.add_text(text):
                    yield part
            if part := joining.end_text():
                yield part
            continue
        joining.begin(segment)
        async for piece in _pieces_of(segment, blocks):
            for part in joining.add(piece):
                yield part
        joining.end()
    for part in sliced(joining.last()):
        yield part


def sliced(chunk: bytes) -> Iterator[bytes]:
    """Give what is to be written in parts of at most `SLICE_BYTES`."""
    for start in range(0, len(chunk), SLICE_BYTES):
        yield chunk[start : start + SLICE_BYTES]


def joined(answer: Answer, blocks: Mapping[int, bytes]) -> bytes | None:
    """Return the body of a whole feed from the blocks that are held; None when one of them is not."""
    held = []
    for segment in answer.segments:
        if not isinstance(segment, SegmentRow) or (block := blocks.get(segment.id)) is None:
            return None
        held.append(block)
    if answer.is_gzip:
        between = answer.separator.block.join(held)
        return b"".join((GZIP_HEADER, answer.sealed_prologue.block, between, answer.gzip_end))
    joining = _joining(answer)
    body = [joining.first]
    for segment, block in zip(answer.segments, held, strict=True):
        assert isinstance(segment, SegmentRow), "seen above"
        joining.begin(segment)
        body += joining.add(block)
        joining.end()
    return b"".join((*body, joining.last()))


async def _pieces_of(part: SegmentRow | _Remnant, blocks: _Blocks) -> AsyncIterator[bytes]:
    """Give the deflated text of a part, a piece at a time; to be called while a snapshot is held."""
    if isinstance(part, _Remnant):
        yield part.sealed.block
        return
    async for piece in blocks.pieces(part):
        yield piece


async def _texts_of(part: _Excerpt, blocks: _Blocks) -> AsyncIterator[bytes]:
    """Give the text of an excerpt in parts of at most `SLICE_BYTES`; no more is read than it takes.

    To be called while a snapshot is held.
    """
    inflater = Inflater(part.segment.length, part.segment.crc32)
    ranges = iter(part.ranges)
    start, end = next(ranges)
    at = 0
    async for piece in blocks.pieces(part.segment):
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


class _Blocks(Protocol):
    """Where the blocks of segments are: the store, or `HeldBlocks` in front of it."""

    def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        """Give a segment's deflated text, a piece at a time; to be called while a snapshot is held."""

    async def outline(self, segment: SegmentRow) -> bytes | None:
        """Return where the entries of a segment stand in its text; None where that is not kept."""


class HeldBlocks:
    """The blocks of a feed, from memory where they are held, else from the store, and held then."""

    def __init__(self, held: Held, store: Store) -> None:
        self._held = held
        self._store = store

    async def pieces(self, segment: SegmentRow) -> AsyncIterator[bytes]:
        block = self._held.blocks.get(segment.id)
        if block is None and segment.deflated_bytes <= LARGEST_BLOCK_BYTES:
            block = b"".join([piece async for piece in self._store.pieces(segment)])
            self._held.keep_block(segment.id, block)
        if block is not None:
            yield block
            return
        async for piece in self._store.pieces(segment):
            yield piece

    async def outline(self, segment: SegmentRow) -> bytes | None:
        return await self._store.outline(segment)


def _joining(answer: Answer) -> _PlainJoining | _GzipJoining:
    if answer.is_gzip:
        return _GzipJoining(answer.sealed_prologue, answer.separator, answer.sealed_epilogue)
    return _PlainJoining(answer.prologue, answer.separator, answer.epilogue)


class _PlainJoining:
    """Makes the text of an answer. Between two segments, of either kind, the separator is put.

    A segment that is sent whole is told by `begin`, `add` for each piece of its block, and `end`; an excerpt
    by `begin_text`, `add_text` for each part of its text, and `end_text`. What they give is to be written,
    between `first` and `last`.
    """

    def __init__(self, prologue: bytes, separator: Sealed, epilogue: bytes) -> None:
        self._between = inflate(separator.block, separator.length, separator.crc32)
        self._epilogue = epilogue
        self._has_begun = False
        self._before = b""
        """What joins the segment that has begun to the one before it."""
        self._inflater = Inflater(0, 0)
        self.first: Final = prologue

    def begin(self, segment: SegmentRow | _Remnant) -> None:
        self.begin_text()
        self._inflater = Inflater(segment.length, segment.crc32)

    def add(self, piece: bytes) -> Iterator[bytes]:
        for text in self._inflater.add(piece, SLICE_BYTES):
            yield self.add_text(text)

    def end(self) -> None:
        """Check that the block was whole."""
        self._inflater.end()

    def begin_text(self) -> None:
        self._before = self._between if self._has_begun else b""
        self._has_begun = True

    def add_text(self, text: bytes) -> bytes:
        before, self._before = self._before, b""
        return before + text if before else text

    def end_text(self) -> bytes:
        return b""

    def last(self) -> bytes:
        return self._epilogue


class _GzipJoining:
    """Makes the gzip member of an answer, and the CRC of what is in it; otherwise as `_PlainJoining`."""

    def __init__(self, prologue: Sealed, separator: Sealed, epilogue: Sealed) -> None:
        self._separator = separator
        self._epilogue = epilogue
        self._crc, self._length = prologue.crc32, prologue.length
        self._has_begun = False
        self._before = b""
        self._deflater: Deflater | None = None
        self.first: Final = GZIP_HEADER + prologue.block

    def begin(self, segment: SegmentRow | _Remnant) -> None:
        self._separate()
        self._count(segment)

    def add(self, piece: bytes) -> Iterator[bytes]:
        before, self._before = self._before, b""
        yield from sliced(before + piece if before else piece)

    def end(self) -> None:
        """Nothing is checked: the reader has the CRC."""

    def begin_text(self) -> None:
        self._separate()
        self._deflater = Deflater()

    def add_text(self, text: bytes) -> bytes:
        """Return what the next part of the text makes, which may be nothing."""
        assert self._deflater is not None, "the text has begun"
        before, self._before = self._before, b""
        return before + self._deflater.add(text)

    def end_text(self) -> bytes:
        assert self._deflater is not None, "the text has begun"
        sealed = self._deflater.end()
        self._count(sealed)
        return sealed.block

    def last(self) -> bytes:
        self._count(self._epilogue)
        return self._epilogue.block + FINAL_BLOCK + gzip_trailer(self._crc, self._length)

    def _separate(self) -> None:
        self._before = b""
        if self._has_begun and self._separator.length:
            self._before = self._separator.block
            self._count(self._separator)
        self._has_begun = True

    def _count(self, part: SegmentRow | _Remnant | Sealed) -> None:
        self._crc = combine(self._crc, part.crc32, part.length)
        self._length += part.length
