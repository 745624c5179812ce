"""Where the entries of a segment stand in its text, and of when they are: for views that take some of them.

    outline = pack([(120, updated_at), (80, None)], 1, 202)
    unpack(outline)         # [Slice(0, 121, updated_at), Slice(121, 202, None)]

Sixteen bytes an entry: where its slice ends, and its date. The next one begins there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import isnan, nan
from typing import Final, NamedTuple

_ENTRY: Final = struct.Struct("=Qd")


class Slice(NamedTuple):
    """An entry within the text of a segment, up to the next one."""

    start: int
    end: int
    order_at: float | None


def pack(entries: Sequence[tuple[int, float | None]], joint: int, length: int) -> bytes:
    """Return the outline of a segment.

    Args:
        entries: Length and date of each, in their order.
        joint: How many bytes stand between two of them.
        length: Of the whole, with what ends it.
    """
    ends = list(accumulate([size + joint for size, _ in entries]))
    ends[-1:] = [length] if ends else []
    dates = [nan if order_at is None else order_at for _, order_at in entries]
    return b"".join(map(_ENTRY.pack, ends, dates))


def join(outlines: Iterable[bytes]) -> bytes:
    """Return the outline of segments whose texts become one, in that order."""
    joined: list[bytes] = []
    before = 0
    for outline in outlines:
        for end, order_at in _ENTRY.iter_unpack(outline):
            joined.append(_ENTRY.pack(before + end, order_at))
        before = _ENTRY.unpack(joined[-1])[0] if joined else 0
    return b"".join(joined)


def unpack(outline: bytes) -> list[Slice]:
    """Return the slices of a segment."""
    return list(each_of(outline))


def each_of(outline: bytes) -> Iterator[Slice]:
    """Yield the slices of a segment, for who may not need all of them."""
    start = 0
    for end, order_at in _ENTRY.iter_unpack(outline):
        yield Slice(start, end, None if isnan(order_at) else order_at)
        start = end


def between(outline: bytes, first: int, last: int) -> list[Slice]:
    """Return the slices from one up to another, without a look at those before and behind."""
    start = _ENTRY.unpack_from(outline, (first - 1) * _ENTRY.size)[0] if first else 0
    wanted = outline[first * _ENTRY.size : last * _ENTRY.size]
    slices: list[Slice] = []
    for each in each_of(wanted):
        slices.append(each._replace(start=slices[-1].end if slices else start))
    return slices


def number_of(outline: bytes) -> int:
    """Return how many slices a segment has."""
    return len(outline) // _ENTRY.size
