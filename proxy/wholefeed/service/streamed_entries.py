"""Parts of answers composed while they are sent (P2, T6, F3)."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Generic, TypeVar

from wholefeed.core.model import SEPARATOR, Family, segment_end, segment_separator
from wholefeed.store.rows import SegmentRow, Snapshot

_Facts = TypeVar("_Facts")


class SegmentPlaces:
    """The segments of entries, by their places in output order, from 0."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._segments = snapshot.segments
        self._ends = list(accumulate(segment.entries for segment in self._segments))

    def locate(self, place: int) -> tuple[int, int]:
        """Return segment number, and place there."""
        number = bisect_right(self._ends, place)
        return number, place - self._ends[number] + self._segments[number].entries


def divide_places(snapshot: Snapshot, places: Sequence[int]) -> Iterator[Sequence[int]]:
    """Divide places of entries into batches; one batch is in memory at a time."""
    segments = SegmentPlaces(snapshot)
    mean = [segment.length / max(segment.entries, 1) for segment in snapshot.segments]
    start, size_bytes = 0, 0.0
    for number, place in enumerate(places):
        size = mean[segments.locate(place)[0]]
        if number > start and (number - start == _BATCH_ENTRIES or size_bytes + size > _BATCH_BYTES):
            yield places[start:number]
            start, size_bytes = number, 0.0
        size_bytes += size
    if start < len(places):
        yield places[start:]


_BATCH_ENTRIES: Final = 256
_BATCH_BYTES: Final = 1 << 20
"""Estimated text in memory for an answer."""


class SegmentCache(Generic[_Facts]):
    """Facts about segments. The least recently used ones go first; a segment of an id never changes."""

    def __init__(self, most_bytes: int, size_of: Callable[[_Facts], int]) -> None:
        self._most_bytes = most_bytes
        self._size_of = size_of
        self._found: OrderedDict[int, _Facts] = OrderedDict()
        """By id, least recently used first."""
        self._bytes = 0

    async def get(self, segment: SegmentRow, read: Callable[[], Awaitable[_Facts]]) -> _Facts:
        found = self._found.get(segment.id)
        if found is None:
            found = await read()
            if segment.id not in self._found:  # another answer may have read them meanwhile
                self._bytes += self._size_of(found)
        self._found[segment.id] = found
        self._found.move_to_end(segment.id)
        while self._bytes > self._most_bytes and len(self._found) > 1:
            self._bytes -= self._size_of(self._found.popitem(last=False)[1])
        return found


class AnswerRoom:
    """Bytes of an answer for entries, each with what joins it to the next."""

    def __init__(self, room_bytes: int, family: Family) -> None:
        self._whole_bytes = self._left_bytes = room_bytes
        self._joint_bytes = len(SEPARATOR[family])

    def take(self, text: bytes) -> bool:
        """Return whether an entry fits; one larger than all room is passed over."""
        size = len(text) + self._joint_bytes
        fits = size <= self._left_bytes
        if size <= self._whole_bytes:
            self._left_bytes -= size
        return fits

    @property
    def is_full(self) -> bool:
        return self._left_bytes < 0


async def join_entries(batches: Iterable[Awaitable[Sequence[bytes]]], family: Family) -> AsyncIterator[bytes]:
    """Yield the text of each batch."""
    joint = b""
    for batch in batches:
        yield joint + SEPARATOR[family].join(await batch) + segment_end(family)
        joint = segment_separator(family)
