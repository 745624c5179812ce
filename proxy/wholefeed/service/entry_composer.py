"""Entries composed while sent: with texts of their pages (T4, T6), or as Atom (F1).

`EntryComposer.digest` stands for the composed text in entity tags: it depends on the entries, their texts and
the composition.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from wholefeed.core.compose.as_atom import CONVERT_VERSION, ConversionContext, convert_items, name_items
from wholefeed.core.compose.segments import Sealed, seal
from wholefeed.core.compose.views import Cut, Take
from wholefeed.core.model import EntryId, Family
from wholefeed.core.texts.inserting import INSERT_VERSION, PageTextOf, insert_texts
from wholefeed.core.texts.wanted import PAGE_KEY_BYTES, read_entry_pages
from wholefeed.errors import OverloadedError
from wholefeed.service.bodies import SEALED_BYTES
from wholefeed.service.replays import Replays
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import DIGEST_BYTES, Fill, namespace_of, read_places, slices_of
from wholefeed.service.sources import work_bytes
from wholefeed.service.streamed_entries import (
    AnswerRoom,
    SegmentCache,
    SegmentPlaces,
    divide_places,
    join_entries,
)
from wholefeed.store.rows import SegmentRow, Snapshot
from wholefeed.store.store import Store
from wholefeed.store.tables import identity_table, text_table
from wholefeed.store.tables.segment_table import OwnEntries
from wholefeed.store.tables.text_table import EncodedText
from wholefeed.workers.pool import Workers

_BATCH_ENTRIES: Final = 32
"""Composed at once: 32 MiB of texts at most."""
_MOST_KEY_BYTES: Final = 1 << 23
"""Cached keys of half a million entries."""
_NO_PAGE: Final = bytes(PAGE_KEY_BYTES)
StoredDigests = Mapping[bytes, bytes]
"""Digests of the texts that a feed has, by the key of their page."""


class Composition(NamedTuple):
    """How the entries of an answer differ from those in segments."""

    family: Family
    texts: StoredDigests | None = None
    """The texts of pages that entries have (T1), and no others; None: none have one."""
    conversion: ConversionContext | None = None
    """For items as Atom entries (F1); None: entries keep their format."""

    @property
    def has_texts(self) -> bool:
        return self.texts is not None


class EntryComposer:
    """Composes entries for answers; belongs to one event loop."""

    def __init__(self, store: Store, work: Workers, replays: Replays) -> None:
        self._store = store
        self._work = work
        self._replays = replays
        self._keys = SegmentCache[bytes](_MOST_KEY_BYTES, len)

    async def take_places(
        self, reconstruction: Reconstruction, segments: Iterable[SegmentRow], own: OwnEntries, cut: Cut
    ) -> list[int]:
        """Return places, ascending."""
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

    async def read_ambiguous(self, reconstruction: Reconstruction) -> frozenset[EntryId]:
        """Return the keys that identify no entry of the feed (R9)."""
        number = reconstruction.feed.id
        async with reconstruction.in_time():
            return await self._store.read(partial(identity_table.read_ambiguous, feed=number), feed=number)

    async def list_stored(self, reconstruction: Reconstruction) -> StoredDigests:
        """Return the texts that the feed has now; an answer has these alone.

        Raises:
            OverloadedError: The store does not answer in time.
        """
        async with reconstruction.in_time():
            feed = reconstruction.snapshot.feed.id
            return await self._store.read(partial(text_table.read_digests, feed=feed))

    async def digest(
        self, reconstruction: Reconstruction, places: Sequence[int], composition: Composition
    ) -> tuple[bytes, Composition]:
        """Return a digest of the entries at these places as composed, and that composition.

        Raises:
            OverloadedError: Segments cannot be read in time.
        """
        snapshot = reconstruction.snapshot
        segments = SegmentPlaces(snapshot)
        found, texts = hashlib.blake2b(digest_size=DIGEST_BYTES), composition.texts or {}
        if composition.conversion is not None:
            found.update(CONVERT_VERSION + composition.conversion.digest())
        if composition.has_texts:
            found.update(INSERT_VERSION)
        read, used = dict[int, tuple[bytes, bytes]](), dict[bytes, bytes]()
        for place in places:
            number, at = segments.locate(place)
            if number not in read:
                await asyncio.sleep(0)  # a million entries take a second
                async with reconstruction.in_time():
                    entries = await self._replays.entry_digests(snapshot, number)
                    keys = await self._page_keys(snapshot, number) if composition.has_texts else b""
                    read[number] = entries, keys
            entries, keys = read[number]
            found.update(entries[at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES])
            key = keys[at * PAGE_KEY_BYTES : (at + 1) * PAGE_KEY_BYTES]
            if key:
                found.update(texts.get(key, _NO_PAGE))
            if key in texts:
                used[key] = texts[key]
        return found.digest(), composition._replace(texts=used) if composition.has_texts else composition

    async def compose_small(
        self, snapshot: Snapshot, places: Sequence[int], composition: Composition
    ) -> Sealed | None:
        """Return the composed entries of a small answer with all texts stored now; None: it is not small."""
        if len(places) > _BATCH_ENTRIES:
            return None
        made = join_entries([self._compose(snapshot, places, composition, None)], composition.family)
        text = b"".join([each async for each in made])
        return await asyncio.to_thread(seal, text) if len(text) <= SEALED_BYTES else None

    def texts(
        self, snapshot: Snapshot, places: Sequence[int], composition: Composition
    ) -> AsyncIterator[bytes]:
        """Return the composed entries in batches; the caller holds a snapshot."""
        batches = _batches(snapshot, places, composition)
        made = (self._compose(snapshot, batch, composition, composition.texts) for batch in batches)
        return join_entries(made, composition.family)

    async def fitting(
        self,
        reconstruction: Reconstruction,
        places: Sequence[int],
        room_bytes: int,
        composition: Composition,
    ) -> list[int]:
        """Return the first places with composed entries that fit, without entries larger than the room."""
        taken, room = list[int](), AnswerRoom(room_bytes, composition.family)
        for batch in _batches(reconstruction.snapshot, places, composition):
            async with reconstruction.in_time():
                made = await self._compose(reconstruction.snapshot, batch, composition, composition.texts)
            taken += [place for place, text in zip(batch, made, strict=True) if room.take(text)]
            if room.is_full:
                break
        return taken

    async def _compose(
        self,
        snapshot: Snapshot,
        places: Sequence[int],
        composition: Composition,
        stored: StoredDigests | None,
    ) -> list[bytes]:
        found = await read_places(snapshot, self._store, places)
        texts = [found[place] for place in places]
        if composition.has_texts:
            texts = await self._prepare(snapshot, places, texts, composition, stored)
        if composition.conversion is not None:
            texts = await self._convert(texts, composition.conversion)
        return texts

    async def _prepare(
        self,
        snapshot: Snapshot,
        places: Sequence[int],
        texts: Sequence[bytes],
        composition: Composition,
        stored: StoredDigests | None,
    ) -> list[bytes]:
        if (context := composition.conversion) is not None:
            size = sum(map(work_bytes, texts))
            texts = await self._work.run(size, name_items, texts, context.ambiguous)
        if composition.has_texts:
            return await self.fill_texts(snapshot, places, texts, stored)
        return list(texts)

    def steps_of(self, composition: Composition) -> tuple[Fill | None, Fill | None]:
        """Return the steps before and after a replay sets the dates of entries (P3)."""
        context, finish = composition.conversion, None
        if context is not None:

            async def finish(
                _snapshot: Snapshot, _places: Sequence[int], texts: Sequence[bytes]
            ) -> list[bytes]:
                return await self._convert(texts, context)

        if composition.has_texts or context is not None:
            return partial(self._prepare, composition=composition, stored=composition.texts), finish
        return None, None

    async def _convert(self, texts: Sequence[bytes], context: ConversionContext) -> list[bytes]:
        return await self._work.run(sum(map(work_bytes, texts)), convert_items, texts, context)

    async def fill_texts(
        self,
        snapshot: Snapshot,
        places: Sequence[int],
        texts: Sequence[bytes],
        stored: StoredDigests | None = None,
    ) -> list[bytes]:
        """Return these texts of entries with the texts of their pages; by default, with all stored ones.

        Raises:
            OverloadedError: One of the texts has changed since they were listed: the answer has another tag.
        """
        keys = [key async for key in self._keys_of(snapshot, places)]
        wanted = [key for key in keys if (key != _NO_PAGE if stored is None else key in stored)]
        look = partial(text_table.read_texts, feed=snapshot.feed.id, pages=wanted)
        found = await self._store.read(look)
        if stored is not None and any(key not in found or found[key].digest != stored[key] for key in wanted):
            raise OverloadedError("texts of the feed have just changed", retry_after_seconds=1)
        if not found:
            return list(texts)
        pages = await asyncio.to_thread(_decode, keys, found)
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


def _batches(snapshot: Snapshot, places: Sequence[int], composition: Composition) -> Iterator[Sequence[int]]:
    """Divide places by the estimated size of their entries."""
    if composition.has_texts:
        yield from (places[start : start + _BATCH_ENTRIES] for start in range(0, len(places), _BATCH_ENTRIES))
    else:
        yield from divide_places(snapshot, places)


def _decode(keys: Iterable[bytes], stored: dict[bytes, EncodedText]) -> list[PageTextOf | None]:
    made = list[PageTextOf | None]()
    for key in keys:
        found = stored.get(key)
        text = None if found is None else found.body.decode().decode()
        made.append(None if found is None or text is None else PageTextOf(found.url, text, found.length))
    return made
