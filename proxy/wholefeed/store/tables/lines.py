"""Lines: which entries a feed that is replayed ever had, in the order in which they came (rule P1).

    begin(db, feed, dates, now)                 # the first time; publications append from then on
    append(db, feed, segments, dates, now)      # within a publication
    found = read(db, feed)                      # all lines, and where their entries stand

`wholefeed.core.replay` decides by them when an entry is released.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import newest_first
from wholefeed.core.compose.weaving import Members
from wholefeed.core.replay import Line
from wholefeed.store.base import Database, Row, fetch_all, fetch_one, json_ids, run, run_many
from wholefeed.store.tables.feeds import unknown

Dates = Mapping[int, Sequence[float | None]]
"""Of documents, when each of their entries says that it was published, from the top."""


class Lines(NamedTuple):
    """What is known of the lines of a feed."""

    begun: int | None
    """How many there were when they were begun; None: they have not been begun."""
    lines: Sequence[Line]
    """By number, from 1 on."""
    numbers: Mapping[int, Sequence[int]]
    """Of the entries of each segment, from the top; of one whose entries have none yet there is nothing."""


class Contents(NamedTuple):
    """The entries of a segment."""

    segment: int
    documents: Sequence[int]
    """That are in it as a whole, in output order."""
    members: bytes = b""
    """Of a segment of a collected feed, as `Members` writes them."""


_BEGUN: Final = "SELECT lines_begun FROM feed WHERE id = :feed"
_LINES: Final = "SELECT arrived_at, sorted_at, is_dated FROM line WHERE feed = :feed ORDER BY number"
_NUMBERS: Final = """
    SELECT n.segment, n.packed FROM segment AS s CROSS JOIN lined AS n ON n.segment = s.id
    WHERE s.feed = :feed
"""


def read(db: Database, feed: int) -> Lines:
    """Return all lines of a feed, also of segments that were retired: answers may still be using them.

    Raises `UnknownFeedError` where the feed was forgotten.
    """
    row = fetch_one(db, _BEGUN, {"feed": feed})
    if row is None:
        raise unknown(feed)
    lines = [Line(each[0], each[1], bool(each[2])) for each in fetch_all(db, _LINES, {"feed": feed})]
    packed = fetch_all(db, _NUMBERS, {"feed": feed})
    return Lines(row[0], lines, {each[0]: array(_NUMBER, bytes(each[1])) for each in packed})


_NUMBER: Final = "I"
_WITHOUT: Final = """
    SELECT e.document, e.ordinal FROM entry AS e
    WHERE e.document IN (SELECT value FROM json_each(:documents)) AND e.is_live = 1 AND NOT EXISTS (
        SELECT 1 FROM line AS l WHERE l.feed = :feed AND l.identity = e.identity
    )
"""


def without(db: Database, feed: int, documents: Iterable[int]) -> set[int]:
    """Return those of these documents that have live entries without a line."""
    found = fetch_all(db, _WITHOUT, {"feed": feed, "documents": json_ids(documents)})
    return {row[0] for row in found}


_STATE: Final = "SELECT lines_begun, revision, published_revision, is_walking FROM feed WHERE id = :feed"
_UNNUMBERED: Final = """
    SELECT s.id, m.packed FROM segment AS s LEFT JOIN member AS m ON m.segment = s.id
    WHERE s.feed = :feed AND s.position IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM lined AS n WHERE n.segment = s.id)
    ORDER BY s.position
"""
_DOCUMENTS: Final = """
    SELECT id, segment FROM document WHERE feed = :feed AND segment IS NOT NULL AND rank IS NOT NULL
    ORDER BY CASE role WHEN 'subscription' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, rank, id
"""
_NOTE_BEGUN: Final = """
    UPDATE feed SET lines_begun = (SELECT count(*) FROM line WHERE feed = :feed)
    WHERE id = :feed AND lines_begun IS NULL
"""


def begin(db: Database, feed: int, dates: Dates, now: float) -> bool:
    """Give each live entry of a feed a line, those published first in front.

    Returns whether that is done: not while what is stored is another thing than what is published. Raises
    `UnknownFeedError` where the feed was forgotten.
    """
    state = fetch_one(db, _STATE, {"feed": feed})
    if state is None:
        raise unknown(feed)
    begun, revision, published, is_walking = state
    if is_walking or revision != published:
        return False
    documents: dict[int, list[int]] = {}
    for document, segment in fetch_all(db, _DOCUMENTS, {"feed": feed}):
        documents.setdefault(segment, []).append(document)
    rows = fetch_all(db, _UNNUMBERED, {"feed": feed})
    contents = [Contents(row[0], documents.get(row[0], ()), bytes(row[1] or b"")) for row in rows]
    append(db, feed, contents, dates, now)
    if begun is None:
        run(db, _NOTE_BEGUN, {"feed": feed})
    return True


_ENTRIES: Final = """
    SELECT e.document, e.ordinal, e.identity, e.order_at, l.number, l.sorted_at
    FROM entry AS e LEFT JOIN line AS l ON l.feed = :feed AND l.identity = e.identity
    WHERE e.document IN (SELECT value FROM json_each(:documents)) AND e.is_live = 1
    ORDER BY e.document, e.ordinal
"""
_LAST: Final = "SELECT number, arrived_at FROM line WHERE feed = :feed ORDER BY number DESC LIMIT 1"
_PUT: Final = """
    INSERT INTO line (feed, number, identity, arrived_at, sorted_at, is_dated) VALUES (?, ?, ?, ?, ?, ?)
"""
_PUT_NUMBERS: Final = "INSERT INTO lined (segment, packed) VALUES (?, ?)"


def append(db: Database, feed: int, segments: Sequence[Contents], dates: Dates, now: float) -> None:
    """Number what the segments hold, in output order; entries that never had a line get one.

    Those that come together are numbered from the oldest on. One without a date of its own is put beside its
    older neighbour. Of documents that `dates` lack, entries are taken to be as old as the output sorts them.
    """
    entries = [list(_entries(db, feed, each)) for each in segments]
    numbers: dict[bytes, int] = {}
    new: list[tuple[float, bytes, bool]] = []
    neighbour: float | None = None
    for row in reversed([row for each in entries for row in each]):
        if row["number"] is not None:
            numbers[row["identity"]], neighbour = row["number"], row["sorted_at"]
            continue
        said = dates.get(row["document"], ())
        at = said[row["ordinal"]] if row["ordinal"] < len(said) else row["order_at"]
        neighbour = neighbour if at is None else at
        new.append((_NEVER if neighbour is None else neighbour, row["identity"], at is not None))
    new.sort(key=itemgetter(0))
    last = fetch_one(db, _LAST, {"feed": feed}) if new else None
    last_number, last_arrived_at = (0, 0) if last is None else last
    # In the next second: no reader was told before it that there is nothing newer.
    arrived_at = max(int(now) + 1, last_arrived_at)
    rows = []
    for number, (sorted_at, identity, is_dated) in enumerate(new, start=last_number + 1):
        numbers[identity] = number
        rows.append((feed, number, identity, arrived_at, sorted_at, int(is_dated)))
    run_many(db, _PUT, rows)
    packed = [
        (segment.segment, array(_NUMBER, [numbers[row["identity"]] for row in each]).tobytes())
        for segment, each in zip(segments, entries, strict=True)
    ]
    run_many(db, _PUT_NUMBERS, packed)


_NEVER: Final = -1e12
"""In front of all instants that there are: of what no older neighbour has a date."""


def _entries(db: Database, feed: int, segment: Contents) -> Iterator[Row]:
    """Give the entries of a segment as they stand in it: those of each document the newest first (R20)."""
    members = Members.read(segment.members) if segment.members else None
    documents = segment.documents if members is None else list(members.stamps)
    found = fetch_all(db, _ENTRIES, {"feed": feed, "documents": json_ids(documents)})
    if members is not None:
        at = {(row["document"], row["ordinal"]): row for row in found}
        yield from (at[each.document, each.ordinal] for each in members)
        return
    own: dict[int, list[Row]] = {document: [] for document in documents}
    for row in found:
        own[row["document"]].append(row)
    for rows in own.values():
        yield from (rows[place] for place in newest_first([row["order_at"] for row in rows]))


_CARRY: Final = """
    UPDATE line SET identity = :identity WHERE feed = :feed AND identity = :before AND NOT EXISTS (
        SELECT 1 FROM line WHERE feed = :feed AND identity = :identity
    )
"""


def carry(db: Database, feed: int, before: bytes, identity: bytes) -> None:
    """Let an entry that is identified anew keep its line; of several that were one, the first one has it."""
    run(db, _CARRY, {"feed": feed, "before": before, "identity": identity})
