"""A reconstruction as an HTTP answer: head, segments, trailer, without recompressing (design, section 6)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
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


@dataclass(frozen=True, slots=True)
class Answer:
    """One representation of a feed, ready to be sent."""

    prologue: bytes
    epilogue: bytes
    segments: tuple[SegmentRow, ...]
    is_gzip: bool
    etag: str
    length: int


def prepare(reconstruction: Reconstruction, *, self_url: str, is_gzip: bool, warns: bool) -> Answer:
    """Compose what depends on the request and sum up the length.

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
    epilogue = EPILOGUE[feed.family]
    return Answer(
        prologue,
        epilogue,
        segments,
        is_gzip,
        _etag(prologue, segments, is_gzip=is_gzip),
        _gzip_length(prologue, epilogue, segments)
        if is_gzip
        else len(prologue) + len(epilogue) + sum(segment.length for segment in segments),
    )


def _etag(prologue: bytes, segments: tuple[SegmentRow, ...], *, is_gzip: bool) -> str:
    digest = hashlib.blake2b(prologue, digest_size=16)
    for segment in segments:
        digest.update(segment.digest)
    return f'"{digest.hexdigest()}{"-gzip" if is_gzip else ""}"'


def _gzip_length(prologue: bytes, epilogue: bytes, segments: tuple[SegmentRow, ...]) -> int:
    blocks = sum(segment.deflated_bytes for segment in segments)
    ends = len(seal(prologue).block) + len(seal(epilogue).block)
    return len(GZIP_HEADER) + ends + blocks + len(FINAL_BLOCK) + len(gzip_trailer(0, 0))


async def chunks(answer: Answer, store: Store) -> AsyncIterator[bytes]:
    """Give the body, at most one segment at a time."""
    if not answer.is_gzip:
        yield answer.prologue
        for segment in answer.segments:
            yield inflate(await store.block(segment.id), segment.length, segment.crc32)
        yield answer.epilogue
        return
    first = seal(answer.prologue)
    yield GZIP_HEADER + first.block
    crc, length = first.crc32, first.length
    for segment in answer.segments:
        yield await store.block(segment.id)
        crc = combine(crc, segment.crc32, segment.crc_shift)
        length += segment.length
    last: Sealed = seal(answer.epilogue)
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
