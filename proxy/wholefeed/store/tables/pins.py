"""Which segments answers are using (docs/faults.md row 66a): known to this process alone.

A segment is removed only when it was retired by an earlier transaction and nobody uses it. Whoever is
about to read a feed's segments says so first (`reading`), so there is no moment in which a segment that
was seen live could be removed before it is pinned.

The event loop alone counts. The sets are asked for in the writer's thread, within the transaction that
removes: list() of a dict is one step of the interpreter, so nothing is counted in the middle of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Pins:
    """Counts the users of segments, and the feeds whose segments are being read."""

    def __init__(self) -> None:
        self._segments: Counter[int] = Counter()
        self._feeds: Counter[int] = Counter()
        self._sent: Counter[int] = Counter()

    @property
    def segments(self) -> frozenset[int]:
        """Segments in use."""
        return frozenset(list(self._segments))

    @property
    def feeds(self) -> frozenset[int]:
        """Feeds of which any segment may be about to be pinned."""
        return frozenset(list(self._feeds))

    @property
    def sent(self) -> frozenset[int]:
        """Feeds that answers under way are made of."""
        return frozenset(list(self._sent))

    @contextmanager
    def reading(self, feed: int) -> Iterator[None]:
        """Hold all segments of a feed while it is found out which they are."""
        with _counted(self._feeds, (feed,)):
            yield

    @contextmanager
    def held(self, feed: int, segments: Iterable[int]) -> Iterator[None]:
        """Hold these segments of a feed."""
        with _counted(self._sent, (feed,)), _counted(self._segments, tuple(segments)):
            yield


@contextmanager
def _counted(counter: Counter[int], keys: tuple[int, ...]) -> Iterator[None]:
    counter.update(keys)
    try:
        yield
    finally:
        counter.subtract(keys)
        for key in keys:
            if counter[key] <= 0:
                del counter[key]
