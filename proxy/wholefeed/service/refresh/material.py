"""What a publication is made of, as it is stored at one moment.

material = await store.read(lambda db: look(db, feed_id, at_hand, documents.list_all(db, feed_id)))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from wholefeed.core.compose.segmenting import Placed
from wholefeed.core.model import Tombstone
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.terms import Role
from wholefeed.service.documents.fresh import ANY
from wholefeed.store.database import Database
from wholefeed.store.rows import DocumentRow, FeedRow, SegmentRow
from wholefeed.store.tables import bodies, feeds, segments, tombstones
from wholefeed.store.tables.documents import live_counts, live_ordinals

_READ_AHEAD_BYTES: Final = 256 * 1024
"""Of the bodies that are likely to be rendered, read before it is known which are."""


class Held(NamedTuple):
    """What was read to render a document."""

    live: Sequence[int]
    """The ordinals of its live entries."""
    body: bytes | None
    """None: it is at hand."""


def read(db: Database, wanted: Sequence[int], at_hand: Mapping[int, int]) -> dict[int, Held]:
    """Read what is needed of documents.

    Args:
        db: The connection.
        wanted: Their numbers.
        at_hand: As `FreshDocuments.at_hand`.
    """
    rendered = {document: at_hand[document] for document in wanted if at_hand.get(document, ANY) != ANY}
    counts = live_counts(db, rendered) if rendered else {}
    found = {
        document: Held(range(entries), None)
        for document, entries in rendered.items()
        if counts.get(document, 0) == entries
    }
    others = [document for document in wanted if document not in found]
    for document, live in live_ordinals(db, others).items() if others else ():
        is_at_hand = at_hand.get(document) == ANY
        found[document] = Held(live, None if is_at_hand else bodies.read(db, document))
    return found


class Material(NamedTuple):
    """What is stored of a feed, as far as a publication is made of it; all of one moment."""

    feed: FeedRow
    documents: list[DocumentRow]
    """The attached ones, in output order."""
    places: list[Placed]
    """The same."""
    deleted: list[Tombstone]
    missing: tuple[Attempt, ...]
    published: tuple[SegmentRow, ...]
    held: dict[int, Held]
    """Of the subscription document, and of others that are likely to be rendered."""


def look(
    db: Database, feed_id: int, at_hand: Mapping[int, int], documents: Sequence[DocumentRow]
) -> Material | None:
    """Read what a publication is made of; of what has changed, the bodies too where they are small.

    Args:
        db: The connection.
        feed_id: The feed.
        at_hand: As `FreshDocuments.at_hand`.
        documents: All of the feed, as they are stored at this moment.

    Returns:
        None when there is no subscription document.
    """
    feed = feeds.find(db, feed_id)
    places = segments.places(db, feed_id) if feed is not None else []
    rows = {row.id: row for row in documents if row.rank is not None}
    attached = [rows[place.document] for place in places]
    if feed is None or not attached or attached[0].role is not Role.SUBSCRIPTION:
        return None
    wanted, room = [attached[0].id], _READ_AHEAD_BYTES
    for place, row in zip(places, attached, strict=True):
        if (place.segment is None or not place.is_clean) and place.live_bytes and row is not attached[0]:
            room -= 0 if row.id in at_hand else row.body_bytes
            if room < 0:
                break
            wanted.append(row.id)
    published = segments.shown(db, feed)
    return Material(
        feed=feed,
        documents=attached,
        places=places,
        deleted=tombstones.counting(db, feed_id),
        missing=published.missing,
        published=published.segments,
        held=read(db, wanted, at_hand),
    )
