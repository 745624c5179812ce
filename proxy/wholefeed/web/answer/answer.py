"""A reconstruction as HTTP answer: head, segments, trailer, never recompressed (docs/design.md#segments)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from wholefeed.core.compose.compose import EPILOGUE, Address, compose_prologue
from wholefeed.core.compose.deflate import (
    FINAL_BLOCK,
    GZIP_HEADER,
    Sealed,
    TextDigest,
    gzip_trailer,
    seal,
)
from wholefeed.core.compose.views import WHOLE, Cut, View
from wholefeed.core.compose.warning import HEALED, Missing, compose_warning, told_missing
from wholefeed.core.formats import segment_separator
from wholefeed.core.terms import Family, State
from wholefeed.core.text.dates import format_rfc3339
from wholefeed.core.verbatim.well_known import ALL_PREFIXES
from wholefeed.service.results import Reconstruction
from wholefeed.store.rows import SegmentRow
from wholefeed.web.answer.blocks import Blocks
from wholefeed.web.answer.excerpt import Excerpt, texts_of
from wholefeed.web.answer.joining import GzipJoining, PlainJoining, sliced
from wholefeed.web.answer.parts import Part, cut_parts, pieces_of

_WARNED_DOCUMENTS: Final = 20
"""Missing documents that the pseudo-entry names; /status lists them all."""
_SEPARATOR: Final = {family: seal(segment_separator(family)) for family in Family}
_EPILOGUE: Final = {family: seal(text) for family, text in EPILOGUE.items()}


@dataclass(frozen=True)
class Answer:
    """One representation of a feed, ready to be sent."""

    prologue: bytes
    epilogue: bytes
    sealed_epilogue: Sealed
    segments: tuple[Part, ...]
    separator: Sealed
    """Stands between two segments."""
    is_cut: bool
    """Whether entries were left out for a reader with a cap."""
    is_gzip: bool
    etag: str

    @cached_property
    def sealed_prologue(self) -> Sealed:
        """The prologue, deflated."""
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
            if isinstance(segment, Excerpt):
                return None
            blocks += segment.deflated_bytes
        return len(GZIP_HEADER) + ends + blocks + len(FINAL_BLOCK) + len(gzip_trailer(0, 0))


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


async def viewed(reconstruction: Reconstruction, wanted: Representation, blocks: Blocks) -> Answer:
    """Return the answer in the view that is asked for; `OverloadedError` where it cannot be read in time."""
    view, feed = wanted.view, reconstruction.feed
    if (whole := whole_answer(reconstruction, wanted)) is not None:
        return whole
    room = None
    if view.max_bytes is not None:
        prologue = _prologue(reconstruction, wanted, ALL_PREFIXES, is_cut=True, has_entries=True)
        room = view.max_bytes - len(prologue) - len(EPILOGUE[feed.published_family])
    cut = Cut(view, room=room, joint=len(segment_separator(feed.published_family)))
    async with reconstruction.in_time():
        parts = await cut_parts(_segments(reconstruction), feed, cut, blocks)
    return prepare(reconstruction, wanted, parts if cut.is_cut else None)


def whole_answer(reconstruction: Reconstruction, wanted: Representation) -> Answer | None:
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
    reconstruction: Reconstruction, wanted: Representation, parts: tuple[Part, ...] | None = None
) -> Answer:
    """Compose what depends on the request.

    Args:
        reconstruction: What to send.
        wanted: What is asked for.
        parts: What is left of the segments, where that is not all.
    """
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


def _etag(prologue: bytes, segments: tuple[Part, ...], separator: Sealed, *, is_gzip: bool) -> str:
    """Equal bytes have equal tags, whatever segments they come from, those of a cut large one excepted."""
    digest = TextDigest()
    digest.add_text(prologue)
    for at, segment in enumerate(segments):
        if at:
            digest.add(separator)
        if isinstance(segment, Excerpt):  # its text is not at hand
            digest.add_text(segment.digest)
        else:
            digest.add(segment)
    return f'"{digest.bytes().hex()}{"-gzip" if is_gzip else ""}"'


async def slices(answer: Answer, blocks: Blocks) -> AsyncIterator[bytes]:
    """Give the body in parts of about `SLICE_BYTES`, with one piece of one block in memory at a time."""
    joining = _joining(answer)
    for part in sliced(joining.first):
        yield part
    for segment in answer.segments:
        if isinstance(segment, Excerpt):
            joining.begin_text()
            async for text in texts_of(segment, blocks):
                if part := joining.add_text(text):
                    yield part
            if part := joining.end_text():
                yield part
            continue
        joining.begin(segment)
        async for piece in pieces_of(segment, blocks):
            for part in joining.add(piece):
                yield part
        joining.end()
    for part in sliced(joining.last()):
        yield part


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


def _joining(answer: Answer) -> PlainJoining | GzipJoining:
    if answer.is_gzip:
        return GzipJoining(answer.sealed_prologue, answer.separator, answer.sealed_epilogue)
    return PlainJoining(answer.prologue, answer.separator, answer.epilogue)


def reconstruction_field(reconstruction: Reconstruction, *, is_cut: bool = False) -> str:
    """Return the value of Feed-Reconstruction (an item of RFC 8941), which is that of the whole feed.

    Parameters stand in this order: documents, entries, missing, since, stale, cut. `since` is when the feed
    was first seen; it goes with `remembered`, where older entries may be unknown.
    """
    feed = reconstruction.feed
    parameters = [
        str(reconstruction.state),
        f"documents={feed.documents}",
        f"entries={feed.entries}",
        f"missing={len(reconstruction.missing)}",
    ]
    if reconstruction.state is State.REMEMBERED:
        parameters.append(f'since="{format_rfc3339(feed.first_seen_at)}"')
    if reconstruction.is_stale:
        parameters.append("stale")
    if is_cut:
        parameters.append("cut")
    return ";".join(parameters)


def is_warning(reconstruction: Reconstruction) -> bool:
    """Whether it is a feed that its readers are to be warned of (R16)."""
    return reconstruction.state is State.PARTIAL and bool(reconstruction.missing)


def _warning(reconstruction: Reconstruction, wanted: Representation) -> bytes:
    feed, missing = reconstruction.feed, reconstruction.missing
    if is_warning(reconstruction):
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
