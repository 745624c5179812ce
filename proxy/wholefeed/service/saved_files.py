"""Files that feed readers write, as documents of one feed (I4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from wholefeed.config.tables import LimitsConfig
from wholefeed.core.compose.saved_documents import make_saved_id, write_saved
from wholefeed.core.facts import Stored
from wholefeed.core.jobs import known_entries, match_export
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.saved.choosing import KnownEntry, SavedMatch, fit_entries
from wholefeed.core.saved.exports import may_be_export
from wholefeed.core.saved.interchange import write_interchange
from wholefeed.errors import (
    ImportRefusedError,
    OverloadedError,
    WorkError,
    WorkTooLargeError,
    WorkTooLongError,
)
from wholefeed.service.context import RefreshContext
from wholefeed.service.showing import read_document, warning_id
from wholefeed.service.sources import work_bytes
from wholefeed.store.reader_files import (
    ReadingLimits,
    is_database,
    match_database,
    read_database,
    require_unused,
)
from wholefeed.store.rows import DocumentRow, FeedRow
from wholefeed.store.tables import feed_table

READING_SECONDS: Final = 20.0
"""For one database; a feed of 20,000 entries takes half a second."""
_TIMES: Final = 4
"""Text of a database's entries for each of its bytes: rows of a hostile one may share their pages."""


class ConvertedFile(NamedTuple):
    documents: list[bytes]
    entries: int


class SavedFiles:
    """The readings of files for one service, one at a time."""

    def __init__(self, context: RefreshContext) -> None:
        self._context = context
        self._limits = context.config.limits
        self._turn = asyncio.Semaphore(1)

    async def convert(
        self,
        body: bytes,
        feed: FeedRow,
        own: DocumentRow,
        *,
        undated_at: float,
        is_dated: bool,
        is_forced: bool,
    ) -> ConvertedFile | None:
        """Return a file's entries of a feed as documents in its format; None: it is no such file.

        `undated_at` dates entries without a date in Atom: always if `is_dated`, else where none has one.

        Raises:
            ImportRefusedError: Unreadable, or without entries of this feed.
            OverloadedError: No memory is free.
        """
        if not (is_database(body) or may_be_export(body)):
            return None
        async with self._turn:
            try:
                match = await self._match(body, await self._list_urls(feed, own))
                if match is None:
                    return None
                known = await self._list_known(feed) if match.url or match.unnamed else []
                writing = partial(_write, match, known, own, warning_id(feed.url))
                return await asyncio.to_thread(
                    writing, undated_at=undated_at, is_dated=is_dated, is_forced=is_forced
                )
            except ParseError as exc:
                raise ImportRefusedError(exc.message, slug=exc.slug) from exc
            except WorkTooLargeError as exc:
                raise OverloadedError(str(exc)) from exc
            except WorkError as exc:
                raise ImportRefusedError(str(exc), slug=exc.slug) from exc

    async def _list_urls(self, feed: FeedRow, own: DocumentRow) -> list[str]:
        """Return the URLs that lead to the feed, or led there."""
        aliases = await self._context.store.read(partial(feed_table.list_aliases, feed=feed.id))
        return [feed.url, feed.fetch_url, own.url, own.final_url, *aliases]

    async def _match(self, body: bytes, urls: Sequence[str]) -> SavedMatch | None:
        if not is_database(body):
            work = self._context.source.work
            async with work.large.turn(len(body)):
                return await work.run(work_bytes(body), match_export, body, urls)
        # a file made for that may crash the library
        most, entries, seconds = _limit_reading(self._limits, _TIMES * len(body))
        work = self._context.source.work
        async with work.large.turn(len(body)):
            try:
                return await work.run_briefly(
                    READING_SECONDS, match_database, body, urls, (most, entries, seconds)
                )
            except (WorkTooLongError, WorkTooLargeError):
                raise
            except WorkError as exc:
                why = "expected a database that can be read, got one that ends the process of its reading"
                raise ImportRefusedError(why, slug="unsupported-format") from exc

    async def _list_known(self, feed: FeedRow) -> list[KnownEntry]:
        work, store = self._context.source.work, self._context.store
        found: list[KnownEntry] = []
        async with store.snapshot(feed.id) as snapshot:
            for number in range(len(snapshot.segments)):
                body = await read_document(snapshot, store, number)
                found += await work.run(work_bytes(body), known_entries, Stored(body, feed.url, ""))
        return found


def _write(
    match: SavedMatch,
    known: Sequence[KnownEntry],
    own: DocumentRow,
    own_id: str,
    *,
    undated_at: float,
    is_dated: bool,
    is_forced: bool,
) -> ConvertedFile:
    """Return the documents of a feed; the proxy's own entry `own_id` is none of the publisher's."""
    entries = [each for each in fit_entries(match, known, is_forced=is_forced) if each.id != own_id]
    if not is_dated:  # the file's date would put undated entries above all others
        undated_at = min((each.order_at for each in entries if each.order_at is not None), default=undated_at)
    documents = list(write_saved(entries, own.family, own.version, undated_at=undated_at))
    return ConvertedFile(documents, len(entries))


def _limit_reading(limits: LimitsConfig, most_bytes: int) -> ReadingLimits:
    return ReadingLimits(min(limits.feed_bytes, most_bytes), limits.entries_per_feed, READING_SECONDS)


# Files that are too large to be sent


MOST_LARGE_BYTES: Final = 256 << 20
"""For an export, which is read at once; a database may be larger."""
_PART_BYTES: Final = 2 << 20


def split_large(path: Path, url: str, limits: LimitsConfig) -> list[bytes]:
    """Return a large file's entries of a feed, as documents small enough to be sent. Blocks.

    The feed is chosen by this URL alone: the server knows others, but not the file.

    Raises:
        ImportRefusedError: Unreadable, without entries of this feed, or beyond a limit.
        OSError: The file cannot be read.
    """
    match = _match_large(path, url, limits)
    if match is None:
        raise ImportRefusedError(f"larger than limits.document_bytes = {limits.document_bytes}", slug="limit")
    try:
        if match.unnamed:
            why = "expected entries that name their feed, in a file larger than limits.document_bytes ="
            raise ImportRefusedError(f"{why} {limits.document_bytes}; got those of {match.program}")
        entries = fit_entries(match, (), is_forced=False)
    except ParseError as exc:
        raise ImportRefusedError(exc.message, slug=exc.slug) from exc
    # a part does not show that another entry of the file has the same link
    links = Counter(each.link for each in entries)
    entries = [
        each if each.id or links[each.link] == 1 else each._replace(id=make_saved_id(each))
        for each in entries
    ]
    part_bytes = min(_PART_BYTES, limits.document_bytes // 2)
    return list(write_interchange(match.program, match.url, entries, part_bytes=part_bytes))


def _match_large(path: Path, url: str, limits: LimitsConfig) -> SavedMatch | None:
    require_unused(path)
    with path.open("rb") as file:
        start = file.read(_START_BYTES)
        if is_database(start):
            return read_database(path, [url], _limit_reading(limits, MOST_LARGE_BYTES))
        body = start + file.read(MOST_LARGE_BYTES + 1 - len(start))
    if len(body) > MOST_LARGE_BYTES or not may_be_export(body):
        return None
    return match_export(body, [url])


_START_BYTES: Final = 64
