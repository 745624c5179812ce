"""Segments: insert-only text, ready to be sent; and the publication of a feed made of them.

A segment outside the current publication is retired: a later transaction deletes it when no answer uses it
(`Pins`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import date
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

from wholefeed.core.chart import month_number
from wholefeed.core.compose.segments import Placed
from wholefeed.core.compose.views import ViewTurn, Warned
from wholefeed.core.compose.weaving import Members
from wholefeed.core.model import State
from wholefeed.core.origins import Origin
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import StoreError
from wholefeed.store.base import (
    NOW,
    Cursor,
    Database,
    ask,
    either,
    fetch_all,
    fetch_one,
    fetch_value,
    json_ids,
    run,
    run_counting,
    run_many,
    vary_by_engine,
)
from wholefeed.store.rows import (
    FEED_COLUMNS,
    SEGMENT_COLUMNS,
    FeedRow,
    NewSegment,
    Publication,
    SegmentRow,
    Snapshot,
    feed_row,
    match_urls,
    segment_row,
)
from wholefeed.store.tables import failures, lines
from wholefeed.store.tables.feed_table import require, unknown_feed_error


def snapshot(db: Database, feed: int) -> Snapshot:
    return read_snapshot(db, require(db, feed))


_SEGMENTS_OF_FEED: Final = f"""
    SELECT {SEGMENT_COLUMNS} FROM segment WHERE feed = :feed AND position IS NOT NULL ORDER BY position
"""  # noqa: S608 - names of columns


def read_snapshot(db: Database, feed: FeedRow) -> Snapshot:
    return ask_snapshot(db, feed.id)(feed)


def ask_snapshot(db: Database, feed: int) -> Callable[[FeedRow], Snapshot]:
    segments = ask(db, _SEGMENTS_OF_FEED, {"feed": feed}, lambda rows: tuple(map(segment_row, rows)))
    failed = failures.ask_for(db, feed)
    return lambda row: Snapshot(row, segments(), failed().missing)


PIECE_BYTES: Final = 1 << 17
"""Bytes of one piece of a deflated segment: the part in memory at once."""
_FIRST_PIECE: Final = "SELECT deflated FROM block WHERE segment = :segment"
_PIECE: Final = "SELECT deflated FROM block_rest WHERE segment = :segment AND number = :number"


def piece(db: Database, segment: int, number: int) -> bytes:
    row = fetch_one(db, _PIECE if number else _FIRST_PIECE, {"segment": segment, "number": number})
    if row is None:
        raise StoreError(f"no segment is stored under the number {segment} with a piece {number}")
    return bytes(row["deflated"])


_OUTLINE: Final = "SELECT packed FROM outline WHERE segment = :segment"


def outline(db: Database, segment: int) -> bytes | None:
    """Return the packed positions of a segment's entries. None: not stored."""
    found = fetch_value(db, _OUTLINE, {"segment": segment})
    return None if found is None else bytes(found)


_MEMBERS: Final = """
    SELECT m.segment, m.packed FROM segment AS s CROSS JOIN member AS m ON m.segment = s.id
    WHERE s.feed = :feed AND s.position IS NOT NULL
"""


def members(db: Database, feed: int) -> dict[int, bytes]:
    """Return the entries of each segment that consists of entries, not whole documents (R20)."""
    return {row[0]: bytes(row[1]) for row in fetch_all(db, _MEMBERS, {"feed": feed})}


_LINKED: Final = """
    SELECT d.segment, d.id FROM document AS d JOIN segment AS s ON s.id = d.segment
    WHERE d.feed = :feed AND d.rank IS NOT NULL AND s.position IS NOT NULL
    ORDER BY CASE d.role WHEN 'subscription' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, d.rank, d.id
"""
_IN_ORDER: Final = "SELECT id FROM segment WHERE feed = :feed AND position IS NOT NULL ORDER BY position"


def contents(db: Database, feed: int) -> list[tuple[int, int | None]]:
    """Return (document, ordinal of an entry) in output order; ordinal None: the whole document."""
    found, documents = members(db, feed), dict[int, list[int]]()
    for segment, document in fetch_all(db, _LINKED, {"feed": feed}):
        documents.setdefault(segment, []).append(document)
    order: list[tuple[int, int | None]] = []
    for (segment,) in fetch_all(db, _IN_ORDER, {"feed": feed}):
        if segment in found:
            order += [(member.document, member.ordinal) for member in Members.read(found[segment])]
        else:
            order += [(document, None) for document in documents.get(segment, ())]
    return order


class OwnEntries(NamedTuple):
    """The entries in some segments that have a source besides the publisher's pages (H7)."""

    lists: int = 0
    """Number of attached documents with listed entries."""
    masks: Mapping[int, bytes] = MappingProxyType({})
    """A mask for each segment with listed entries: one byte an entry, from the top, 1 for an own entry."""

    def entries(self, segment: SegmentRow) -> int:
        mask = self.masks.get(segment.id)
        return segment.entries if mask is None else mask.count(1)


_IS_LIST: Final = match_urls([Origin.LISTING])
_LISTS: Final = f"SELECT id, rank IS NOT NULL FROM document WHERE feed = :feed AND {_IS_LIST}"  # noqa: S608
_MEMBERS_OF: Final = """
    SELECT segment, packed FROM member WHERE segment IN (SELECT value FROM json_each(:segments))
"""


def find_own(db: Database, feed: int, segments: Iterable[int]) -> OwnEntries:
    """Find a feed's own entries in its segments, retired ones included."""
    lists = {row[0]: bool(row[1]) for row in fetch_all(db, _LISTS, {"feed": feed})}
    masks = {}
    for segment, packed in db.execute(_MEMBERS_OF, {"segments": json_ids(segments)}):
        held = Members.read(bytes(packed))
        if lists.keys() & held.stamps.keys():
            masks[int(segment)] = bytes([member.document not in lists for member in held])
    return OwnEntries(sum(lists.values()), masks)


_ORDER: Final = "CASE d.role WHEN 'subscription' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, d.rank, d.id"
_ORIGINS: Final = f"""
    SELECT d.segment, d.origin, (
        SELECT count(*) FROM entry AS e WHERE e.document = d.id AND e.is_live = 1
    ) AS entries
    FROM document AS d
    WHERE d.feed = :feed AND d.rank IS NOT NULL AND d.segment IN (SELECT value FROM json_each(:segments))
    ORDER BY {_ORDER}
"""  # noqa: S608 - names of columns
_ORIGINS_OF: Final = """
    SELECT id, origin FROM document WHERE feed = :feed AND id IN (SELECT value FROM json_each(:documents))
"""


def list_origins(db: Database, feed: int, segments: Sequence[int]) -> dict[int, list[Origin | None]]:
    """Return origins from the top, by the present documents."""
    found: dict[int, list[Origin | None]] = {}
    for segment, origin, entries in fetch_all(db, _ORIGINS, {"feed": feed, "segments": json_ids(segments)}):
        found.setdefault(segment, []).extend([Origin(origin)] * entries)
    woven = {
        int(segment): Members.read(bytes(packed))
        for segment, packed in fetch_all(db, _MEMBERS_OF, {"segments": json_ids(segments)})
    }
    documents = {document for members in woven.values() for document in members.stamps}
    rows = fetch_all(db, _ORIGINS_OF, {"feed": feed, "documents": json_ids(documents)}) if documents else ()
    origins = {document: Origin(origin) for document, origin in rows}
    for segment, members in woven.items():
        found[segment] = [origins.get(member.document) for member in members]
    return found


_PLACED: Final = """
    SELECT id, segment, is_dirty = 0, is_settled, live_bytes
    FROM document
    WHERE feed = :feed AND rank IS NOT NULL
    ORDER BY CASE role WHEN 'subscription' THEN 0 WHEN 'memory' THEN 1 ELSE 2 END, rank, id
"""


def places(db: Database, feed: int) -> list[Placed]:
    return ask_places(db, feed)()


def ask_places(db: Database, feed: int) -> Callable[[], list[Placed]]:
    return ask(
        db,
        _PLACED,
        {"feed": feed},
        lambda rows: [Placed(row[0], row[1], bool(row[2]), bool(row[3]), row[4]) for row in rows],
    )


_HOLDS_MEMORY: Final = """
    SELECT 1 FROM document AS d CROSS JOIN segment AS s ON s.id = d.segment
    WHERE d.feed = :feed AND d.role = 'memory' AND d.rank IS NOT NULL AND s.position IS NOT NULL LIMIT 1
"""


def holds_memory(db: Database, feed: int) -> bool:
    return fetch_value(db, _HOLDS_MEMORY, {"feed": feed}) is not None


# Publication


_BEFORE: Final = "SELECT revision, warning, warned_at, lines_begun FROM feed WHERE id = :feed"
_POSITIONS: Final = "SELECT id, position FROM segment WHERE feed = :feed"
_RETIRE: Final = vary_by_engine(
    """
    UPDATE segment SET position = NULL, retired_at = {now}
    WHERE feed = :feed AND position IS NOT NULL AND id NOT IN (SELECT value FROM json_each(:kept))
    """,
    now=NOW,
)
_MOVE: Final = "UPDATE segment SET position = ? WHERE id = ?"
_UNLINK: Final = """
    UPDATE document SET segment = NULL, is_dirty = 0
    WHERE feed = :feed AND live_bytes = 0 AND (segment IS NOT NULL OR is_dirty <> 0)
"""
# A document has no segment of its own if its entries are in segments of entries.
_UNLINK_WOVEN: Final = """
    UPDATE document SET segment = NULL, is_dirty = 0
    WHERE feed = :feed AND (is_dirty <> 0 OR segment IN (
        SELECT id FROM segment WHERE feed = :feed AND position IS NULL
    ))
"""
_LIVE: Final = "SELECT count(*) FROM entry WHERE feed = :feed AND is_live = 1"
_MISPLACED: Final = """
    SELECT count(*) FROM document AS d LEFT JOIN segment AS s ON s.id = d.segment
    WHERE d.feed = :feed AND d.rank IS NOT NULL AND d.live_bytes > 0
        AND (d.is_dirty <> 0 OR s.position IS NULL)
"""
_PUBLISHED: Final = tuple(
    each.name
    for each in fields(Publication)
    if each.name not in ("segments", "missing", "is_woven", "is_alike", "dates")
)
_LISTED: Final = match_urls([Origin.LISTING], "d.url")
_PUBLISH: Final = vary_by_engine(
    """
    UPDATE feed SET
        state = :state, title = :title, site = :site, head = :head, head_prefixes = :head_prefixes,
        context = :context, documents = :documents, entries = :entries, text_bytes = :text_bytes,
        notes = :notes, parser_version = :parser_version, version = :version, published_revision = revision,
        published_family = :family, via_url = :via_url,
        modified_at = CASE
            -- A second ago, so that the next one is not in the future; but behind what feeds said that stood
            -- here before, unless a clock was wrong.
            WHEN modified_at IS NULL
                THEN {latest}(
                    :now - 1,
                    {earliest}((SELECT modified_at FROM forgotten WHERE id = 1) + 1, :now + 86400)
                )
            WHEN (digest = :digest OR :is_alike = 1) AND is_walking = :is_walking THEN modified_at
            ELSE {latest}(:now, modified_at + 1)
        END,
        listed = (
            SELECT count(*) FROM document AS d CROSS JOIN entry AS e ON e.document = d.id AND e.is_live = 1
            WHERE d.feed = :feed AND {listed}
        ),
        digest = :digest, is_walking = :is_walking, warning = :warning, warned_at = :warned_at,
        ending = coalesce(:ending, ending)
    WHERE id = :feed
    RETURNING {columns}
    """,
    latest=("max", "greatest"),
    earliest=("min", "least"),
    columns=(FEED_COLUMNS, FEED_COLUMNS),
    listed=(_LISTED, _LISTED),
)


def publish(
    db: Database, feed: int, publication: Publication, *, revision: int, pins: Pins, now: float
) -> FeedRow | None:
    """Publish a feed, or return None if the stored documents changed since the publication was made.

    Raises:
        UnknownFeedError: The feed was forgotten.
    """
    asked = db.execute(_BEFORE, {"feed": feed})
    stored = fetch_all(db, _POSITIONS, {"feed": feed})
    before = next(iter(asked), None)
    if before is None:
        raise unknown_feed_error(feed)
    current = {row["id"]: row["position"] for row in stored if row["position"] is not None}
    kept = [segment for segment in publication.segments if isinstance(segment, int)]
    if before["revision"] != revision or not current.keys() >= set(kept):
        return None
    if len(stored) > len(current):  # earlier transactions retired some
        run(db, _SWEEP, _sweep_parameters(pins, feed))
    run(db, _RETIRE, {"feed": feed, "kept": json_ids(kept), "now": now})
    inserted, linked = _put_in_order(db, feed, publication.segments, current)
    _settle(db, feed, publication)
    _check_linked(feed, linked)
    if inserted and before["lines_begun"] is not None:
        lines.append(db, feed, inserted, publication.dates, now)
    values = {name: getattr(publication, name) for name in _PUBLISHED}
    is_lost = False
    if publication.missing is not None:
        is_lost = failures.replace_missing(db, feed, publication.missing)
    turn = ViewTurn(Warned(before["warning"]), before["warned_at"])
    if not publication.is_walking:
        first_at = failures.first_failed_at(db, feed) if publication.state is State.PARTIAL else None
        turn = turn.next(first_at, is_lost=is_lost, now=now)
    shown_as = {"feed": feed, "now": now, "warning": turn.warned, "warned_at": turn.dated_at}
    row = fetch_one(db, _PUBLISH, {**values, **shown_as, "is_alike": int(publication.is_alike)})
    assert row is not None, "it was there when this began"
    return feed_row(row)


def _settle(db: Database, feed: int, publication: Publication) -> None:
    """Unlink documents that need no segment, and raise `StoreError` if a live entry is in none."""
    run(db, _UNLINK_WOVEN if publication.is_woven else _UNLINK, {"feed": feed})
    if publication.is_woven:
        if (live := fetch_value(db, _LIVE, {"feed": feed})) != publication.entries:
            raise StoreError(f"expected {live} live entries in segments, got {publication.entries}")
    elif misplaced := fetch_value(db, _MISPLACED, {"feed": feed}):
        raise StoreError(f"expected every live entry in a segment, got {misplaced} documents in none")


# Gap between positions, so that inserting a segment rarely moves others.
_STRIDE: Final = 1 << 20


def spread(positions: Sequence[int | None]) -> list[int]:
    """Return ascending positions in output order, with existing ones unchanged where possible.

    None stands for a new segment.
    """
    given = [position for position in positions if position is not None]
    fresh = [index * _STRIDE for index in range(len(positions))]
    if not given or any(a >= b for a, b in pairwise(given)):
        return fresh
    result: list[int] = []
    gap = 0
    for position in (*positions, None):
        is_end = len(result) + gap == len(positions)
        if position is None and not is_end:
            gap += 1
            continue
        low = result[-1] if result else None
        filled = _between(low, position, gap)
        if filled is None:
            return fresh
        result += filled
        gap = 0
        if position is not None:
            result.append(position)
    return result


def _between(low: int | None, high: int | None, count: int) -> list[int] | None:
    if low is None:
        assert high is not None
        return [high - _STRIDE * (count - index) for index in range(count)]
    step = _STRIDE if high is None else (high - low) // (count + 1)
    return [low + step * (index + 1) for index in range(count)] if step or not count else None


_OF_SEALED: Final = ("length", "crc32", "crc_shift", "digest")
_OF_SEGMENT: Final = (
    "prefixes", "newest_at", "oldest_at", "entries", "parser_version", "context",
)  # fmt: skip
_INSERTED: Final = ("feed", "position", "deflated_bytes", *_OF_SEALED, *_OF_SEGMENT)
_INSERT: Final = f"""
    INSERT INTO segment ({", ".join(_INSERTED)}) VALUES ({", ".join(f":{name}" for name in _INSERTED)})
    RETURNING id
"""  # noqa: S608 - names of columns
_INSERT_BLOCK: Final = "INSERT INTO block (segment, deflated) VALUES (:segment, :deflated)"
_INSERT_REST: Final = "INSERT INTO block_rest (segment, number, deflated) VALUES (?, ?, ?)"
_INSERT_OUTLINE: Final = "INSERT INTO outline (segment, packed) VALUES (:segment, :packed)"
_INSERT_MEMBERS: Final = "INSERT INTO member (segment, packed) VALUES (:segment, :packed)"
_LINK: Final = """
    UPDATE document SET segment = :segment, is_dirty = 0
    WHERE id IN (SELECT value FROM json_each(:documents)) AND feed = :feed AND rank IS NOT NULL
"""


# Cursors of the updates that link documents to a segment, with these documents.
_Linked = list[tuple[Cursor, Sequence[int]]]


def _put_in_order(
    db: Database, feed: int, segments: Sequence[int | NewSegment], current: Mapping[int, int]
) -> tuple[list[lines.SegmentContents], _Linked]:
    positions = spread([current[each] if isinstance(each, int) else None for each in segments])
    moves, new = [], []
    for segment, position in zip(segments, positions, strict=True):
        if isinstance(segment, NewSegment):
            new.append((segment, position))
        elif current[segment] != position:
            moves.append((position, segment))
    inserted = _insert(db, feed, new)
    run_many(db, _MOVE, moves)
    return inserted


def _check_linked(feed: int, linked: _Linked) -> None:
    """Raise `StoreError` unless all documents existed."""
    # Reading the counts waits, so this comes after all statements were sent.
    for cursor, documents in linked:
        if cursor.rowcount != len(documents):
            raise StoreError(f"expected attached documents of feed {feed}, got {documents}")


def _insert(
    db: Database, feed: int, new: Sequence[tuple[NewSegment, int]]
) -> tuple[list[lines.SegmentContents], _Linked]:
    asked = [db.execute(_INSERT, _segment_row(feed, *each)) for each in new]
    found, linked = list[lines.SegmentContents](), _Linked()
    for rows, (each, _) in zip(asked, new, strict=True):
        number = int(next(iter(rows))["id"])
        found.append(lines.SegmentContents(number, each.documents, each.members))
        _put_text(db, number, each)
        if not each.members:
            values = {"segment": number, "documents": json_ids(each.documents), "feed": feed}
            linked.append((db.execute(_LINK, values), each.documents))
    return found, linked


def _segment_row(feed: int, segment: NewSegment, position: int) -> dict[str, object]:
    return {
        "feed": feed,
        "position": position,
        "deflated_bytes": len(segment.sealed.block),
        **{name: getattr(segment.sealed, name) for name in _OF_SEALED},
        **{name: getattr(segment, name) for name in _OF_SEGMENT},
    }


def _put_text(db: Database, number: int, segment: NewSegment) -> None:
    block = segment.sealed.block
    run(db, _INSERT_BLOCK, {"segment": number, "deflated": block[:PIECE_BYTES]})
    if len(block) > PIECE_BYTES:
        starts = enumerate(range(PIECE_BYTES, len(block), PIECE_BYTES), 1)
        rest = ((number, n, block[start : start + PIECE_BYTES]) for n, start in starts)
        db.executemany(_INSERT_REST, rest)
    if segment.outline:
        run(db, _INSERT_OUTLINE, {"segment": number, "packed": segment.outline})
    if segment.members:
        run(db, _INSERT_MEMBERS, {"segment": number, "packed": segment.members})


# Retired segments


class Pins:
    """Counters of the users of segments, and of the feeds of current readers (docs/faults.md row 66a)."""

    # A reader first announces itself (`reading`), so no segment disappears before the reader pins it. Only
    # the event loop counts. The writer's thread reads the sets: list() of a dict is one step of the
    # interpreter, so it never sees half a change.

    def __init__(self) -> None:
        self._segments: Counter[int] = Counter()
        self._feeds: Counter[int] = Counter()
        self._sent: Counter[int] = Counter()

    @property
    def segments(self) -> frozenset[int]:
        return frozenset(list(self._segments))

    @property
    def feeds(self) -> frozenset[int]:
        return frozenset(list(self._feeds))

    @property
    def sent(self) -> frozenset[int]:
        """Feeds of the answers in progress."""
        return frozenset(list(self._sent))

    @contextmanager
    def reading(self, feed: int) -> Iterator[None]:
        """Protect all segments of a feed until the caller pins them."""
        with _count_users(self._feeds, (feed,)):
            yield

    @contextmanager
    def hold(self, feed: int, segments: Iterable[int]) -> Iterator[None]:
        with _count_users(self._sent, (feed,)), _count_users(self._segments, tuple(segments)):
            yield


@contextmanager
def _count_users(counter: Counter[int], keys: tuple[int, ...]) -> Iterator[None]:
    counter.update(keys)
    try:
        yield
    finally:
        counter.subtract(keys)
        for key in keys:
            if counter[key] <= 0:
                del counter[key]


_KEEP_RETIRED_SECONDS: Final = 3600
_SWEEP: Final = either(
    sqlite="""
        DELETE FROM segment
        WHERE retired_at IS NOT NULL AND (:feed IS NULL OR feed = :feed)
            AND id NOT IN (SELECT value FROM json_each(:pinned))
            AND (feed IS NULL AND :is_reading = 0
                OR feed IS NOT NULL AND feed NOT IN (SELECT value FROM json_each(:reading)))
    """,
    # Rows that another process deletes or keeps at this moment are skipped.
    postgres=f"""
        DELETE FROM segment WHERE id IN (
            SELECT id FROM segment
            WHERE retired_at < {NOW[1]} - {_KEEP_RETIRED_SECONDS}
                AND (feed = :feed OR CAST(:feed AS bigint) IS NULL)
                AND id NOT IN (SELECT value FROM json_each(:pinned))
            FOR UPDATE SKIP LOCKED
        )
    """,  # noqa: S608 - constants
)


def sweep_retired(db: Database, pins: Pins, feed: int | None = None) -> int:
    """Delete segments that earlier transactions retired and no answer uses; return their number."""
    # A single process deletes them at once. One of several spares all for an hour, which `keep_retired`
    # extends.
    return run_counting(db, _SWEEP, _sweep_parameters(pins, feed))


def _sweep_parameters(pins: Pins, feed: int | None) -> dict[str, object]:
    # First the feeds: a reader that leaves them has already pinned its segments. Each set is read once, since
    # the event loop continues to count.
    reading = pins.feeds
    pinned = pins.segments
    return {
        "feed": feed,
        "pinned": json_ids(pinned),
        "reading": json_ids(reading),
        "is_reading": bool(reading),
    }


_KEEP: Final = vary_by_engine(
    """
    UPDATE segment SET retired_at = {now}
    WHERE retired_at IS NOT NULL AND id IN (SELECT value FROM json_each(:pinned))
    """,
    now=NOW,
)


def keep_retired(db: Database, pins: Pins, now: float) -> int:
    """Restart the hour of retired segments in use by answers; return their number."""
    return run_counting(db, _KEEP, {"pinned": json_ids(pins.segments), "now": now})


# Live entries of a feed by month


Months = Mapping[int | None, int]
"""None: without a date."""


def months(db: Database, feed: int) -> dict[int, Months]:
    """Return the number of live entries by month, for each attached document.

    `wholefeed.core.words` numbers the months.
    """
    return {row["id"]: _by_month(row["days"] or "") for row in fetch_all(db, _DAYS, {"feed": feed})}


# SQL groups by days, because months need a calendar. It groups each document separately: for a million
# entries that takes 0.4 s of a core, one sorter for all 0.6 s. 719162 days lie between 0001-01-01, the first
# possible date, and the epoch, so that rounding goes one way on both sides of the epoch.
_DAY: Final = f"e.order_at / {DAY_SECONDS} + 719162"
_DAYS: Final = vary_by_engine(
    """
    SELECT d.id, (
        SELECT {joined}(coalesce(CAST(day AS text), '') || ':' || entries, ',')
        FROM (
            SELECT {day} AS day, count(*) AS entries
            FROM entry AS e WHERE e.document = d.id AND e.is_live = 1
            GROUP BY 1
        ) {named}
    ) AS days
    FROM document AS d
    WHERE d.feed = :feed AND d.rank IS NOT NULL
    """,
    joined=("group_concat", "string_agg"),
    named=("", "AS counted"),
    day=(f"CAST({_DAY} AS INTEGER)", f"CAST(trunc({_DAY}) AS bigint)"),
)


def _by_month(days: str) -> Months:
    found: Counter[int | None] = Counter()
    for each in days.split(",") if days else ():
        day, _, entries = each.partition(":")
        found[_month(int(day)) if day else None] += int(entries)
    return found


def _month(day: int) -> int:
    at = date.fromordinal(min(max(day + 1, 1), date.max.toordinal()))
    return month_number(at.year, at.month)
