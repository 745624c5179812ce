"""A reconstruction as an HTTP answer: head, segments, trailer, without recompressing (design, section 6)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cached_property
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from proxy.core.compose import EPILOGUE, Address, Missing, compose_prologue, compose_warning
from proxy.core.deflate import FINAL_BLOCK, GZIP_HEADER, Sealed, combine, gzip_trailer, inflate, seal
from proxy.core.terms import State
from proxy.service.answers import Reconstruction
from proxy.store.rows import SegmentRow
from proxy.store.store import Store

_WARNED_DOCUMENTS: Final = 20
"""Missing documents that the pseudo-entry names; /status lists them all."""
_SLICE_BYTES: Final = 1 << 16
_EPILOGUE: Final = {family: seal(text) for family, text in EPILOGUE.items()}


@dataclass(frozen=True)
class Answer:
    """One representation of a feed, ready to be sent."""

    prologue: bytes
    epilogue: bytes
    sealed_epilogue: Sealed
    segments: tuple[SegmentRow, ...]
    is_gzip: bool
    etag: str

    @cached_property
    def sealed_prologue(self) -> Sealed:
        """The prologue, deflated."""
        return seal(self.prologue)

    @property
    def length(self) -> int:
        """Content-Length."""
        if not self.is_gzip:
            return len(self.prologue) + sum(each.length for each in self.segments) + len(self.epilogue)
        ends = len(self.sealed_prologue.block) + len(self.sealed_epilogue.block)
        blocks = sum(segment.deflated_bytes for segment in self.segments)
        return len(GZIP_HEADER) + ends + blocks + len(FINAL_BLOCK) + len(gzip_trailer(0, 0))


def prepare(reconstruction: Reconstruction, *, self_url: str, is_gzip: bool, warns: bool) -> Answer:
    """Compose what depends on the request.

    Args:
        reconstruction: What to send.
        self_url: The proxy's URL of the feed.
        is_gzip: The content coding.
        warns: Whether a partial feed carries the pseudo-entry (R16).
    """
    feed = reconstruction.feed
    segments = reconstruction.snapshot.segments
    prefixes = feed.head_prefixes
    for segment in segments:
        prefixes |= segment.prefixes
    prologue = compose_prologue(
        feed.family,
        feed.head or b"",
        prefixes=prefixes,
        address=Address(self_url, reconstruction.via_url),
        is_complete=reconstruction.state is State.COMPLETE,
        warning=_warning(reconstruction) if warns else b"",
    )
    return Answer(
        prologue=prologue,
        epilogue=EPILOGUE[feed.family],
        sealed_epilogue=_EPILOGUE[feed.family],
        segments=segments,
        is_gzip=is_gzip,
        etag=_etag(prologue, segments, is_gzip=is_gzip),
    )


def _etag(prologue: bytes, segments: tuple[SegmentRow, ...], *, is_gzip: bool) -> str:
    digest = hashlib.blake2b(prologue, digest_size=16)
    for segment in segments:
        digest.update(segment.digest)
    return f'"{digest.hexdigest()}{"-gzip" if is_gzip else ""}"'


async def slices(answer: Answer, store: Store) -> AsyncIterator[bytes]:
    """Give the body in pieces of at most 64 KiB, with one segment in memory at a time."""
    async for chunk in _chunks(answer, store):
        for piece in _sliced(chunk):
            yield piece


def _sliced(chunk: bytes) -> Iterator[bytes]:
    for start in range(0, len(chunk), _SLICE_BYTES):
        yield chunk[start : start + _SLICE_BYTES]


async def _chunks(answer: Answer, store: Store) -> AsyncIterator[bytes]:
    if not answer.is_gzip:
        yield answer.prologue
        for segment in answer.segments:
            yield inflate(await store.block(segment.id), segment.length, segment.crc32)
        yield answer.epilogue
        return
    first, last = answer.sealed_prologue, answer.sealed_epilogue
    yield GZIP_HEADER + first.block
    crc, length = first.crc32, first.length
    for segment in answer.segments:
        yield await store.block(segment.id)
        crc = combine(crc, segment.crc32, segment.crc_shift)
        length += segment.length
    crc = combine(crc, last.crc32, last.crc_shift)
    yield last.block + FINAL_BLOCK + gzip_trailer(crc, length + last.length)


def reconstruction_field(reconstruction: Reconstruction) -> str:
    """Return the value of Feed-Reconstruction (an item of RFC 8941)."""
    feed = reconstruction.feed
    parameters = f"documents={feed.documents};entries={feed.entries};missing={len(reconstruction.missing)}"
    stale = ";stale" if reconstruction.is_stale else ""
    return f"{reconstruction.state};{parameters}{stale}"


def _warning(reconstruction: Reconstruction) -> bytes:
    missing = reconstruction.missing
    if reconstruction.state is not State.PARTIAL or not missing:
        return b""
    first = datetime.fromtimestamp(int(min(attempt.first_at for attempt in missing)), UTC)
    name = f"wholefeed:missing:{reconstruction.feed.url} {missing[0].url}"
    return compose_warning(
        reconstruction.feed.family,
        identifier=uuid5(NAMESPACE_URL, name).urn,
        missing=[Missing(attempt.url, attempt.reason) for attempt in missing[:_WARNED_DOCUMENTS]],
        first_failed=first.strftime("%Y-%m-%dT%H:%M:%SZ"),
        first_failed_rfc822=format_datetime(first, usegmt=True),
    )
