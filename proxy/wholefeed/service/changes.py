"""Which feeds have changed while the store was read.

    changes = Changes()
    with changes.watched() as fill:             # before the read of the store begins
        ...
        if not fill.has_changed(feed_id):       # what was read is the feed as it is

Nothing here waits or reads.
"""

from __future__ import annotations


class Fill:
    """Tells which feeds have changed since a read began; when that has ended nobody knows.

    It is the context in which the store is read; every answer with a stale feed enters one.
    """

    __slots__ = ("_changes", "_since", "has_ended")

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._since = changes.count
        self.has_ended = False

    def __enter__(self) -> Fill:
        self._changes.readers += 1
        self._since = self._changes.count
        return self

    def __exit__(self, *_: object) -> None:
        self.has_ended = True
        self._changes.readers -= 1
        if not self._changes.readers:
            self._changes.at.clear()

    def has_changed(self, feed_id: int) -> bool:
        """Whether the feed has, or may have."""
        changes = self._changes
        return self.has_ended or max(changes.at.get(feed_id, 0), changes.all_at) > self._since


class Changes:
    """When feeds have changed, counted; kept as long as anybody is reading, and many may for seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.at: dict[int, int] = {}
        self.all_at = 0
        self.readers = 0

    def note(self, feed_id: int) -> None:
        """Note that a feed has changed."""
        self.count += 1
        if self.readers:
            self.at[feed_id] = self.count

    def note_all(self) -> None:
        """Note that any feed may have changed."""
        self.count += 1
        self.all_at = self.count

    def watched(self) -> Fill:
        """Watch for changes."""
        return Fill(self)
