"""Entries with the texts of their pages, for answers (T4, T6). They are composed while they are sent.

A feed's segments stay as they are. `TextAnswers.digest` stands for the composed text in entity tags: it
depends on the entries and on the texts that they have.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from wholefeed.core.compose.views import Cut, Take
from wholefeed.core.texts.inserting import INSERT_VERSION, PageTextOf, insert_texts
from wholefeed.core.texts.wanted import PAGE_KEY_BYTES, read_entry_pages
from wholefeed.service.replays import Replays
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import DIGEST_BYTES, namespace_of, read_places, slices_of
from wholefeed.service.streamed_entries import AnswerRoom, SegmentCache, SegmentPlaces, join_entries
from wholefeed.store.rows import SegmentRow, Snapshot
from wholefeed.store.store import Store
from wholefeed.store.tables import text_table
from wholefeed.store.tables.segment_table import OwnEntries
from wholefeed.store.tables.text_table import EncodedText
from wholefeed.workers.pool import Workers

_BATCH_ENTRIES: Final = 32
"""Composed at once: 32 MiB of texts at most."""
_MOST_KEY_BYTES: Final = 1 << 23
"""Cached keys of half a million entries."""
_NO_PAGE: Final = bytes(PAGE_KEY_BYTES)


class TextAnswers:
    """Composes entries with texts; belongs to one event loop."""

    def __init__(self, store: Store, work: Workers, replays: Replays) -> None:
        self._store = store
        self._work = work
        self._replays = replays
        self._keys = SegmentCache(_MOST_KEY_BYTES)

    async def take_places(
        self, reconstruction: Reconstruction, segments: Iterable[SegmentRow], own: OwnEntries, cut: Cut
    ) -> list[int]:
        """Return the output places that a view takes, ascending."""
        places, before = list[int](), 0
        wanted = {segment.id for segment in segments}
        for segment in reconstruction.snapshot.segments:
            first, before = before, before + segment.entries
            if segment.id not in wanted:
                continue
            mask = own.masks.get(segment.id)
            numbers = [n for n in range(segment.entries) if mask is None or mask[n]]
            match cut.take(segment, own.entries(segment)):
                case Take.WHOLE:
                    places += [first + number for number in numbers]
                case Take.PART:
                    slices = await slices_of(segment, reconstruction.feed, self._store)
                    at = {slices[number].start: number for number in numbers}
                    kept = cut.kept([slices[number] for number in numbers[cut.skipped :]], len(numbers))
                    places += [first + at[each.start] for each in kept]
                case Take.NONE:
                    pass
        return places

    async def digest(self, reconstruction: Reconstruction, places: Sequence[int]) -> bytes:
        """Return a digest of the entries at these places with their texts, and of nothing else.

        Raises:
            OverloadedError: Segments cannot be read in time.
        """
        snapshot = reconstruction.snapshot
        segments = SegmentPlaces(snapshot)
        async with reconstruction.in_time():
            texts = await self._store.read(partial(text_table.read_digests, feed=snapshot.feed.id))
        found = hashlib.blake2b(INSERT_VERSION, digest_size=DIGEST_BYTES)
        read = dict[int, tuple[bytes, bytes]]()
        for place in places:
            number, at = segments.locate(place)
            if number not in read:
                async with reconstruction.in_time():
                    entries = await self._replays.entry_digests(snapshot, number)
                    read[number] = entries, await self._page_keys(snapshot, number)
            entries, keys = read[number]
            found.update(entries[at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES])
            key = keys[at * PAGE_KEY_BYTES : (at + 1) * PAGE_KEY_BYTES]
            found.update(texts.get(key, _NO_PAGE))
        return found.digest()

    def texts(self, snapshot: Snapshot, places: Sequence[int]) -> AsyncIterator[bytes]:
        """Return the composed entries in batches; the caller holds a snapshot."""
        made = (self.fill(snapshot, batch) for batch in _batches(places))
        return join_entries(made, snapshot.feed.published_family)

    async def fitting(
        self, reconstruction: Reconstruction, places: Sequence[int], room_bytes: int
    ) -> list[int]:
        """Return the first places with composed entries that fit, without entries larger than the room."""
        taken, room = list[int](), AnswerRoom(room_bytes, reconstruction.feed.published_family)
        for batch in _batches(places):
            async with reconstruction.in_time():
                made = await self.fill(reconstruction.snapshot, batch)
            taken += [place for place, text in zip(batch, made, strict=True) if room.take(text)]
            if room.is_full:
                break
        return taken

    async def fill(self, snapshot: Snapshot, places: Sequence[int]) -> list[bytes]:
        """Return the entries at these places, with the texts of their pages."""
        found = await read_places(snapshot, self._store, places)
        return await self.fill_texts(snapshot, places, [found[place] for place in places])

    async def fill_texts(
        self, snapshot: Snapshot, places: Sequence[int], texts: Sequence[bytes]
    ) -> list[bytes]:
        """Return these texts of entries with the texts of their pages."""
        keys = [key async for key in self._keys_of(snapshot, places)]
        look = partial(
            text_table.read_texts, feed=snapshot.feed.id, pages=[key for key in keys if key != _NO_PAGE]
        )
        stored = await self._store.read(look)
        if not stored:
            return list(texts)
        pages = await asyncio.to_thread(_decode, keys, stored)
        size = sum(map(len, texts)) + sum(len(each.html) for each in pages if each is not None)
        feed = snapshot.feed
        return await self._work.run(
            size, insert_texts, texts, pages, feed.published_family, namespace=namespace_of(feed)
        )

    async def _keys_of(self, snapshot: Snapshot, places: Iterable[int]) -> AsyncIterator[bytes]:
        segments = SegmentPlaces(snapshot)
        for place in places:
            number, at = segments.locate(place)
            keys = await self._page_keys(snapshot, number)
            yield keys[at * PAGE_KEY_BYTES : (at + 1) * PAGE_KEY_BYTES]

    async def _page_keys(self, snapshot: Snapshot, number: int) -> bytes:
        """Return the joined keys of the pages of a segment's entries."""
        read = partial(self._read_keys, snapshot, number)
        return await self._keys.get(snapshot.segments[number], read)

    async def _read_keys(self, snapshot: Snapshot, number: int) -> bytes:
        feed, segment = snapshot.feed, snapshot.segments[number]
        first = sum(each.entries for each in snapshot.segments[:number])
        keys = list[bytes]()
        for start in range(first, first + segment.entries, _KEYS_AT_ONCE):
            places = range(start, min(start + _KEYS_AT_ONCE, first + segment.entries))
            texts = list((await read_places(snapshot, self._store, places)).values())
            size = sum(map(len, texts))
            read = await self._work.run(
                size, read_entry_pages, texts, feed.published_family, namespace=namespace_of(feed)
            )
            keys += [each.key or _NO_PAGE for each in read]
        return b"".join(keys)


_KEYS_AT_ONCE: Final = 256


def _batches(places: Sequence[int]) -> Iterator[Sequence[int]]:
    return (places[start : start + _BATCH_ENTRIES] for start in range(0, len(places), _BATCH_ENTRIES))


def _decode(keys: Iterable[bytes], stored: dict[bytes, EncodedText]) -> list[PageTextOf | None]:
    made = list[PageTextOf | None]()
    for key in keys:
        found = stored.get(key)
        text = None if found is None else found.body.decode().decode()
        made.append(None if found is None or text is None else PageTextOf(found.url, text, found.length))
    return made
