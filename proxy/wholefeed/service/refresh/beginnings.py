"""What refreshes start from, of feeds that are held in memory: one that changes nothing reads nothing.

    beginnings = Beginnings(published)          # of the service
    start = Start(store, feed_id, beginnings)   # of one refresh
    rows, failures = await start.read(is_new=False)

It goes with what is held of the feed (`wholefeed.service.published`): whatever changes the feed drops both,
and the memory of both is bounded together. Where other processes change the store nothing is held.
The documents as they were parsed are held for themselves: they are what they are, whoever changes the feed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter
from typing import Final, NamedTuple

from wholefeed.core.refresh import intents
from wholefeed.core.refresh.stored import Attempt
from wholefeed.service.documents.parsed import ParsedDocuments
from wholefeed.service.published import Published
from wholefeed.store.changing import changed
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, Failures, FeedChanges, FeedRow
from wholefeed.store.store import Store
from wholefeed.store.tables import documents, failures, feeds

_MOST_READ: Final = 64
"""Documents of a feed that are read as it is published, for its next refresh."""
_KEY: Final = "beginning"
_NOTE_BYTES: Final = 600
_PAIR_BYTES: Final = 200
"""Beside the texts, which publishers have made as long as they like."""
_values: Final = attrgetter(*(each.name for each in fields(DocumentRow)))
_attempt_values: Final = attrgetter(*(each.name for each in fields(Attempt)))


class Beginning(NamedTuple):
    """What is stored of a feed beside its row."""

    rows: list[DocumentRow]
    """That of the subscription document does not tell when it was found to be unchanged since: no decision
    goes by that."""
    failures: Failures


class Beginnings:
    """Belongs to one service.

    Args:
        published: What is held of feeds.
        parsed_bytes: What documents may come to that are held as they were parsed.
    """

    def __init__(self, published: Published, parsed_bytes: int = 0) -> None:
        self._published = published
        self.parsed = ParsedDocuments(parsed_bytes)
        self.watched = published.filling
        """Watches for changes while one is read."""

    def find(self, feed: int) -> tuple[FeedRow, Beginning] | None:
        """Return what is held, behind the feed's row."""
        held = self._published.of(feed)
        found: Beginning | None = None if held is None else held.made(_KEY)
        return None if held is None or found is None else (held.snapshot.feed, found)

    def keep(self, feed: int, found: Beginning) -> None:
        """Hold what was read of a feed as it is held now.

        Detached documents are deleted some day without a word, so what has any is read each time.
        """
        held = self._published.of(feed)
        if held is not None and all(row.rank is not None for row in found.rows):
            held.keep_made(_KEY, found, _size(found))

    def let_go(self, feed: int) -> None:
        """Forget it: something is written that it would not tell."""
        held = self._published.of(feed)
        if held is not None:
            held.let_go(_KEY)


class Start:
    """Belongs to one refresh.

    Args:
        store: The store.
        feed_id: The feed.
        beginnings: What is held; None: nothing is.
    """

    def __init__(self, store: Store, feed_id: int, beginnings: Beginnings | None) -> None:
        self._store = store
        self._feed_id = feed_id
        self._beginnings = None if store.is_shared else beginnings
        self._feed: FeedRow | None = None  # as it is stored, as long as this refresh has written nothing
        self._checked: tuple[FeedRow, int] | None = None  # what is to be written, if that is all
        self._read_last: Beginning | None = None

    async def read(self, *, is_new: bool) -> Beginning:
        """Return what a decision starts from; of a feed that was made just now nothing is stored."""
        if is_new:
            return Beginning([], Failures((), None))
        if self._beginnings is None:
            return await self._store.read(self._look, feed=self._feed_id)
        if (held := self._beginnings.find(self._feed_id)) is not None:
            self._feed, found = held
            return found
        with self._beginnings.watched() as fill:
            self._feed, found = await self._store.read(self._look_with_row, feed=self._feed_id)
            if not fill.has_changed(self._feed_id):
                self._beginnings.keep(self._feed_id, found)
        return found

    def look_again(self, db: Database, count: int, rows: list[DocumentRow] | None) -> None:
        """Read it in the transaction that publishes the feed, if that is little, for the next refresh.

        Args:
            db: The connection.
            count: How many documents are published.
            rows: All documents, where they are known.
        """
        is_wanted = self._beginnings is not None and count <= _MOST_READ
        self._read_last = self._look(db, rows) if is_wanted else None

    def keep(self) -> None:
        """Hold what was read then."""
        if self._beginnings is not None and self._read_last is not None:
            self._beginnings.keep(self._feed_id, self._read_last)

    def other_than_stored(self, changes: FeedChanges) -> FeedChanges | None:
        """Return changes of a feed's columns, if they are known to say what its row says already: None."""
        feed = self._feed
        is_said = feed is not None and all(getattr(feed, name) == value for name, value in changes.items())
        return None if is_said else changes

    def remarked(self, intent: intents.Remark, *, is_first: bool) -> None:
        """Take note of what is to be written."""
        self._checked = None
        if is_first and self._feed is not None:
            self._checked = _only_checked(intent, self._feed)

    def writes(self) -> None:
        """Take note that something is written: what is known is no longer so."""
        self._feed = self._checked = None
        if self._beginnings is not None:
            self._beginnings.let_go(self._feed_id)

    def defer(self) -> bool:
        """Have what was remarked written later, if it is no more than until when the feed is fresh.

        Returns:
            Whether it is: then nothing is to be written now.
        """
        checked, self._checked = self._checked, None
        return checked is not None and self._store.note_unchanged(*checked)

    def _look_with_row(self, db: Database) -> tuple[FeedRow | None, Beginning]:
        """Look at its row, too: who began the refresh may have had it from before the last one ended."""
        return feeds.find(db, self._feed_id), self._look(db)

    def _look(self, db: Database, rows: list[DocumentRow] | None = None) -> Beginning:
        rows = documents.list_all(db, self._feed_id) if rows is None else rows
        return Beginning(rows, failures.read(db, self._feed_id))


def _only_checked(intent: intents.Remark, feed: FeedRow) -> tuple[FeedRow, int] | None:
    """Return the row that a remark makes of a feed's, and the document that has not changed.

    None: it says more than until when the feed is fresh.
    """
    if not isinstance(intent, intents.NoteReply) or intent.unchanged is None or feed.is_stale:
        return None
    if intent.fetch_url is not None or intent.move is not None or intent.is_private != feed.is_private:
        return None
    row = changed(feed, checked_at=intent.checked_at, fresh_until=intent.fresh_until)
    return row, intent.unchanged


def _size(found: Beginning) -> int:
    missing, last = found.failures
    attempts = missing if last is None else (*missing, last)
    size = sum(sys.getsizeof(each) + _sum(_attempt_values(each)) for each in attempts)
    return size + sum(map(_row_size, found.rows))


def _row_size(row: DocumentRow) -> int:
    inside = _PAIR_BYTES * len(row.links) + _sum(row.links.values())
    inside += sum(_NOTE_BYTES + _sum(note.values()) for note in row.notes)
    return inside + sys.getsizeof(row) + _sum(_values(row))


def _sum(values: Iterable[object]) -> int:
    return sum(map(sys.getsizeof, values))
