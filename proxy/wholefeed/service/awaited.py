"""Feeds whose refresh answers wait for: what it publishes is held at once, with what was held before.

awaited = Awaited()
with awaited.by_answer(feed_id):
    awaited.leave(feed_id, blocks)          # it was dropped
    ...
    known = awaited.taken(feed_id)          # it is published again
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager


class Awaited:
    """Belongs to one memory."""

    def __init__(self) -> None:
        self._answers: dict[int, int] = {}
        """How many wait, by feed."""
        self._left: dict[int, Mapping[int, bytes]] = {}
        """The blocks of feeds that were dropped, until they are published again."""

    def __contains__(self, feed_id: object) -> bool:
        return feed_id in self._answers

    def by_answer(self, feed_id: int) -> AbstractContextManager[None]:
        """Say that an answer waits for the refresh of a feed."""
        return _Waiting(self, feed_id)

    def begin(self, feed_id: int) -> None:
        """An answer begins to wait."""
        self._answers[feed_id] = self._answers.get(feed_id, 0) + 1

    def end(self, feed_id: int) -> None:
        """It waits no longer."""
        self._answers[feed_id] -= 1
        if not self._answers[feed_id]:
            del self._answers[feed_id]
            self._left.pop(feed_id, None)

    def leave(self, feed_id: int, blocks: Mapping[int, bytes]) -> None:
        """Keep the blocks of a feed that is dropped, if it is waited for."""
        if feed_id in self._answers:
            self._left[feed_id] = blocks

    def taken(self, feed_id: int) -> Mapping[int, bytes]:
        """Return what was left of a feed, once."""
        return self._left.pop(feed_id, {})

    def leave_nothing(self) -> None:
        """Let go of what was left."""
        self._left.clear()


class _Waiting:
    """Every answer with a stale feed is one; a generator would cost three times as much."""

    __slots__ = ("_awaited", "_feed_id")

    def __init__(self, awaited: Awaited, feed_id: int) -> None:
        self._awaited = awaited
        self._feed_id = feed_id

    def __enter__(self) -> None:
        self._awaited.begin(self._feed_id)

    def __exit__(self, *_: object) -> None:
        self._awaited.end(self._feed_id)
