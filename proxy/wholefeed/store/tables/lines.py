"""Lines: every entry that a replayed feed ever had, in the order of arrival (rule P1)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from wholefeed.core.compose.compose import newest_first
from wholefeed.core.compose.weaving import Members
from wholefeed.core.replay import Line
from wholefeed.store.base import Database, Row, fetch_all, fetch_one, fetch_value, json_ids, run, run_many
from wholefeed.store.tables.feed_table import unknown_feed_error

# Publication dates of documents' entries, from the top.
Dates = Mapping[int, Sequence[float | None]]


class Lines(NamedTuple):
    begun: int | None
    """Number of lines when numbering began. None: it has not begun."""
    lines: Sequence[Line]
    """In the order of their numbers, from 1."""
    numbers: Mapping[int, Sequence[int]]
    """Numbers of the entries of each segment, from the top. Segments without numbers are left out."""


class SegmentContents(NamedTuple):
    segment: int
    documents: Sequence[int]
    """Documents wholly in the segment, in output order."""
    members: bytes = b""
    """In a collected feed: the entries, as `Members` writes them."""


_BEGUN: Final = "SELECT lines_begun FROM feed WHERE id = :feed"
_LINES: Final = "SELECT arrived_at, sorted_at, is_dated FROM line WHERE feed = :feed ORDER BY number"
_NUMBERS: Final = """
    SELECT n.segment, n.packed FROM segment AS s CROSS JOIN lined AS n ON n.segment = s.id
    WHERE s.feed = :feed
"""


def read(db: Database, feed: int) -> Lines:
    """Return all lines of a feed, also of retired segments, or raise `UnknownFeedError`."""
    row = fetch_one(db, _BEGUN, {"feed": feed})
    if row is None:
        raise unknown_feed_error(feed)
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


def find_unnumbered(db: Database, feed: int, documents: Iterable[int]) -> set[int]:
    """Return the documents with a live entry without a line."""
    found = fetch_all(db, _WITHOUT, {"feed": feed, "documents": json_ids(documents)})
    return {row[0] for row in found}


# First numbering


class Plan(NamedTuple):
    revision: int
    """The feed's revision, which must not change."""
    rows: Sequence[_NewLine]
    numbers: Sequence[tuple[int, bytes]]


_NewLine = tuple[int, int, bytes, int, float, int]
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
_CLEAR: Final = "DELETE FROM line WHERE feed = :feed AND number >= :number"


def plan(db: Database, feed: int, dates: Dates, now: float) -> Plan | None:
    """Return a plan for the published entries without a number, or raise `UnknownFeedError`.

    None: the stored entries differ from the published ones.
    """
    begun, revision, published, is_walking = _state(db, feed)
    if is_walking or revision != published:
        return None
    documents: dict[int, list[int]] = {}
    for document, segment in fetch_all(db, _DOCUMENTS, {"feed": feed}):
        documents.setdefault(segment, []).append(document)
    rows = fetch_all(db, _UNNUMBERED, {"feed": feed})
    contents = [SegmentContents(row[0], documents.get(row[0], ()), bytes(row[1] or b"")) for row in rows]
    return Plan(revision, *_number_entries(db, feed, contents, dates, now, is_first=begun is None))


def _state(db: Database, feed: int) -> Row:
    state = fetch_one(db, _STATE, {"feed": feed})
    if state is None:
        raise unknown_feed_error(feed)
    return state


def put(db: Database, feed: int, revision: int, rows: Sequence[_NewLine]) -> bool:
    """Store some rows of a plan, in order; return whether the plan is still valid."""
    begun, present, *_ = _state(db, feed)
    number = rows[0][1]
    if present != revision:
        return False
    if begun is None and number == 1:  # rows of an interrupted numbering
        run(db, _CLEAR, {"feed": feed, "number": number})
    if _last(db, feed)[0] != number - 1:
        return False
    return run_many(db, _PUT, rows)


_COUNT: Final = "SELECT count(*) FROM line WHERE feed = :feed"
_NOTE_BEGUN: Final = "UPDATE feed SET lines_begun = coalesce(lines_begun, :count) WHERE id = :feed"


def finish(db: Database, feed: int, made: Plan) -> bool:
    """Store the rest of a plan after all its rows; return whether the plan is still valid."""
    _, present, *_ = _state(db, feed)
    count = fetch_value(db, _COUNT, {"feed": feed})
    if present != made.revision or count != _last(db, feed)[0] or (made.rows and count != made.rows[-1][1]):
        return False
    run_many(db, _PUT_NUMBERS, made.numbers)
    run(db, _NOTE_BEGUN, {"feed": feed, "count": count})
    return True


# Numbering within each publication


def append(db: Database, feed: int, segments: Sequence[SegmentContents], dates: Dates, now: float) -> None:
    """Number the entries of new segments, in output order. An entry keeps its line if it has one."""
    rows, numbers = _number_entries(db, feed, segments, dates, now)
    run_many(db, _PUT, rows)
    run_many(db, _PUT_NUMBERS, numbers)


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


def _last(db: Database, feed: int) -> tuple[int, int]:
    row = fetch_one(db, _LAST, {"feed": feed})
    return (0, 0) if row is None else (row[0], row[1])


def _number_entries(
    db: Database,
    feed: int,
    segments: Sequence[SegmentContents],
    dates: Dates,
    now: float,
    *,
    is_first: bool = False,
) -> tuple[list[_NewLine], list[tuple[int, bytes]]]:
    """Return new lines for segments in output order, and the numbers of all their entries."""
    # Entries that arrive together are numbered from the oldest. One without a date goes next to its older
    # neighbour. Entries of documents that `dates` lack have the date that the output sorts by.
    entries = [list(_entries(db, feed, each)) for each in segments]
    numbers: dict[bytes, int] = {}
    new: list[tuple[float, bytes, bool]] = []
    neighbour: float | None = None
    for row in reversed([row for each in entries for row in each]):
        if row["number"] is not None and not is_first:
            numbers[row["identity"]], neighbour = row["number"], row["sorted_at"]
            continue
        said = dates.get(row["document"], ())
        at = said[row["ordinal"]] if row["ordinal"] < len(said) else row["order_at"]
        neighbour = neighbour if at is None else at
        new.append((_NEVER if neighbour is None else neighbour, row["identity"], at is not None))
    new.sort(key=itemgetter(0))
    last_number, last_arrived_at = _last(db, feed) if new and not is_first else (0, 0)
    # The next second, since an answer in this one may already have claimed that nothing is newer.
    arrived_at = max(int(now) + 1, last_arrived_at)
    rows: list[_NewLine] = []
    for number, (sorted_at, identity, is_dated) in enumerate(new, start=last_number + 1):
        numbers[identity] = number
        rows.append((feed, number, identity, arrived_at, sorted_at, int(is_dated)))
    packed = [
        (segment.segment, array(_NUMBER, [numbers[row["identity"]] for row in each]).tobytes())
        for segment, each in zip(segments, entries, strict=True)
    ]
    return rows, packed


# Before all real instants, for undated entries without an older neighbour.
_NEVER: Final = -1e12


def _entries(db: Database, feed: int, segment: SegmentContents) -> Iterator[Row]:
    members = Members.read(segment.members) if segment.members else None
    documents = segment.documents if members is None else list(members.stamps)
    found = fetch_all(db, _ENTRIES, {"feed": feed, "documents": json_ids(documents)})
    if members is not None:
        at = {(row["document"], row["ordinal"]): row for row in found}
        yield from (at[each.document, each.ordinal] for each in members)
        return
    own: dict[int, list[Row]] = {document: [] for document in documents}  # the newest first in each (R20)
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
    """Give an entry's line to its new identity. If several were one, the first gets it."""
    run(db, _CARRY, {"feed": feed, "before": before, "identity": identity})
