"""Where the entries of a segment stand in its text, and of when they are: for views that take some of them.

    outline = pack(slices)
    unpack(outline) == slices

Sixteen bytes an entry: where its slice ends, and its date. The next one begins there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_ENTRY: Final = struct.Struct("=Qd")


class Slice(NamedTuple):
    """An entry within the text of a segment, up to the next one."""

    start: int
    end: int
    order_at: float | None


def pack(slices: Iterable[Slice]) -> bytes:
    """Return the outline of a segment, whose slices follow one another from 0."""
    return b"".join(
        _ENTRY.pack(each.end, math.nan if each.order_at is None else each.order_at) for each in slices
    )


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
        yield Slice(start, end, None if math.isnan(order_at) else order_at)
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
