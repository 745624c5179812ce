"""What one transaction puts of a feed, and what it looks at for what comes next.

was = await storage.write(partial(put_and_look, feed_id=feed_id, putting=Putting(puts, now), new=new))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from wholefeed.service.documents.fresh import at_hand
from wholefeed.service.documents.memory import Leaving
from wholefeed.service.documents.shapes import Put
from wholefeed.service.refresh.material import Material, look
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, FeedChanges, FeedRow, NewDocument
from wholefeed.store.tables import arrangement, documents


class Putting(NamedTuple):
    """Documents that are put, and with them what changes of the chain and of the feed."""

    puts: Sequence[Put]
    now: float
    """Epoch seconds."""
    ranks: Mapping[int, int] = MappingProxyType({})
    """As for `arrangement.arrange`."""
    detached: tuple[int, ...] = ()
    """The same."""
    changes: FeedChanges | None = None
    """Columns of the feed."""
    leaving: Leaving | None = None
    """What leaves the document that is replaced; what is to be remembered of it is put, too."""
    looks: bool = False
    """Whether to look in the same trip at what a decision wants to know and publish next."""


class WasPut(NamedTuple):
    """What came of it."""

    numbers: list[int]
    """Of the documents."""
    puts: list[Put]
    """The same, those included that are remembered."""
    rows: list[DocumentRow] | None
    """All documents of the feed, and what a publication is made of: where that was asked for."""
    material: Material | None


def feed_of(was: WasPut) -> FeedRow | None:
    """Return the feed's row, if that was looked at."""
    return None if was.material is None else was.material.feed


def put_and_look(db: Database, feed_id: int, putting: Putting, new: Sequence[NewDocument]) -> WasPut:
    """Put documents; `new` are those of `putting`, with large bodies encoded."""
    leaving, changes = putting.leaving, putting.changes or {}
    remembered = leaving.documents(db) if leaving is not None and leaving.is_at_hand else []
    puts = [*putting.puts, *remembered]
    coming = [*new, *(each.new for each in remembered)]
    numbers = arrangement.put(db, feed_id, coming, putting.ranks, putting.detached, changes, putting.now)
    if not putting.looks:
        return WasPut(numbers, puts, None, None)
    fresh = {number: each.fresh for number, each in zip(numbers, puts, strict=True)}
    rows = documents.list_all(db, feed_id)
    return WasPut(numbers, puts, rows, look(db, feed_id, at_hand(fresh), rows))
