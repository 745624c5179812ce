"""Intakes (B1 to B5).

begin(db, NewIntake(...), now=now)
for feed in list_due(db, now, limit=64): ...
keep_feed(db, feed, stored, now=now)         # or keep_failure, or put_off
tally = count_stages(db, intake, now=now)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from wholefeed.core.intake import (
    FAILURE_SECONDS,
    MOST_KEPT,
    MOST_UNFINISHED,
    NO_SUCH_INTAKE,
    FailedFeed,
    Stage,
    Tally,
)
from wholefeed.core.model import State
from wholefeed.errors import REMEMBERED_SECONDS, NoSuchIntakeError, OverloadedError
from wholefeed.store.base import (
    Database,
    Row,
    fetch_all,
    fetch_one,
    fetch_value,
    run,
    run_counting,
    run_many,
    vary_by_engine,
)
from wholefeed.store.rows import VISIBLE_STATE
from wholefeed.store.tables.document_table import EncodedBody
from wholefeed.store.tables.feed_table import host_of

# Intakes


class IntakeRow(NamedTuple):
    id: str
    began_at: float
    options: str
    left_out: int
    unchanged: str


class ListedFeed(NamedTuple):
    url: str
    title: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIntake:
    id: str
    digest: bytes
    options: str
    left_out: int
    unchanged: str
    feeds: Sequence[ListedFeed]
    document: EncodedBody


_SAME: Final = """
    SELECT id FROM intake AS i WHERE digest = :digest AND EXISTS (
        SELECT 1 FROM intake_feed AS f WHERE f.intake = i.id AND f.due_at IS NOT NULL
    )
    ORDER BY began_at LIMIT 1
"""
_COUNT_UNFINISHED: Final = """
    SELECT count(DISTINCT intake) FROM intake_feed WHERE due_at IS NOT NULL
"""
_BEGIN: Final = """
    INSERT INTO intake (id, began_at, digest, options, left_out, unchanged)
    VALUES (:id, :now, :digest, :options, :left_out, :unchanged)
"""
_PUT_LIST: Final = "INSERT INTO intake_list (intake, length, coded) VALUES (:id, :length, :coded)"
_PUT_FEED: Final = """
    INSERT INTO intake_feed (intake, place, url, title, line, stage, due_at, ended_at, reason, status)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_RECENT_FAILURES: Final = """
    SELECT url, ended_at, reason, status FROM intake_feed
    WHERE stage = 'failed' AND ended_at > :since AND ended_at <= :now ORDER BY ended_at
"""


def begin(db: Database, new: NewIntake, now: float) -> str:
    """Store an intake; return its id, or that of an unfinished one of the same list.

    Raises:
        OverloadedError: Too many intakes are unfinished.
    """
    same = fetch_value(db, _SAME, {"digest": new.digest})
    if same is not None:
        return str(same)
    if fetch_value(db, _COUNT_UNFINISHED) >= MOST_UNFINISHED:
        message = f"expected at most {MOST_UNFINISHED} lists that are being brought in, got one more"
        raise OverloadedError(message, retry_after_seconds=60)
    values = {"id": new.id, "digest": new.digest, "options": new.options}
    run(db, _BEGIN, {**values, "now": now, "left_out": new.left_out, "unchanged": new.unchanged})
    run(db, _PUT_LIST, {"id": new.id, "length": new.document.length, "coded": new.document.coded})
    failures = {
        row["url"]: row
        for row in fetch_all(db, _RECENT_FAILURES, {"since": now - FAILURE_SECONDS, "now": now})
    }
    rows = [
        (new.id, place, *feed, *_first_stage(failures.get(feed.url), now))
        for place, feed in enumerate(new.feeds, 1)
    ]
    run_many(db, _PUT_FEED, rows)
    _drop_oldest(db)
    return new.id


def _first_stage(failure: Row | None, due_at: float) -> tuple[object, ...]:
    if failure is None:
        return (Stage.WAITING, due_at, None, "", None)
    return (Stage.FAILED, None, failure["ended_at"], failure["reason"], failure["status"])


_OLD: Final = """
    SELECT id FROM intake AS i WHERE NOT EXISTS (
        SELECT 1 FROM intake_feed AS f WHERE f.intake = i.id AND f.due_at IS NOT NULL
    )
    ORDER BY began_at DESC LIMIT 1000 OFFSET :most
"""
_DELETE: Final = "DELETE FROM intake WHERE id = ?"


def _drop_oldest(db: Database) -> None:
    run_many(db, _DELETE, [(row["id"],) for row in fetch_all(db, _OLD, {"most": MOST_KEPT})])


def delete(db: Database, intake: str) -> bool:
    return run_counting(db, _DELETE, (intake,)) > 0


_COLUMNS: Final = "id, began_at, options, left_out, unchanged"
_FIND: Final = f"SELECT {_COLUMNS} FROM intake WHERE id = :intake"  # noqa: S608 - names of columns


def require(db: Database, intake: str) -> IntakeRow:
    """Return an intake, or raise `NoSuchIntakeError`."""
    row = fetch_one(db, _FIND, {"intake": intake})
    if row is None:
        raise NoSuchIntakeError(NO_SUCH_INTAKE)
    return IntakeRow(*row)


_LIST: Final = f"SELECT {_COLUMNS} FROM intake ORDER BY began_at DESC, id LIMIT :limit"  # noqa: S608


def list_newest(db: Database, limit: int) -> list[IntakeRow]:
    return [IntakeRow(*row) for row in fetch_all(db, _LIST, {"limit": limit})]


_GET_LIST: Final = "SELECT coded, length FROM intake_list WHERE intake = :intake"


def read_list(db: Database, intake: str) -> EncodedBody:
    """Return the list as sent; the caller decodes it."""
    row = fetch_one(db, _GET_LIST, {"intake": intake})
    if row is None:
        raise NoSuchIntakeError(NO_SUCH_INTAKE)
    return EncodedBody(bytes(row["coded"]), row["length"])


# Feeds to ask for


class DueFeed(NamedTuple):
    intake: str
    place: int
    url: str
    tries: int


_DUE: Final = vary_by_engine(
    """
    SELECT intake, place, url, tries FROM (
        SELECT intake, place, url, tries, due_at,
            row_number() OVER (PARTITION BY {host} ORDER BY due_at, intake, place) AS turn
        FROM intake_feed WHERE due_at <= :now
    ) AS due
    ORDER BY turn, due_at, intake, place LIMIT :limit
    """,
    **host_of("url"),
)


def list_due(db: Database, now: float, limit: int) -> list[DueFeed]:
    """Return due feeds of all lists; hosts take turns."""
    return [DueFeed(*row) for row in fetch_all(db, _DUE, {"now": now, "limit": limit})]


_NEXT_DUE: Final = "SELECT min(due_at) FROM intake_feed WHERE due_at IS NOT NULL"


def next_due_at(db: Database) -> float | None:
    found = fetch_value(db, _NEXT_DUE)
    return None if found is None else float(found)


_IS_WAITING: Final = """
    SELECT 1 FROM intake_feed WHERE intake = :intake AND place = :place AND due_at IS NOT NULL
"""


def is_waiting(db: Database, due: DueFeed) -> bool:
    return fetch_value(db, _IS_WAITING, {"intake": due.intake, "place": due.place}) is not None


_KEEP_FEED: Final = """
    UPDATE intake_feed SET
        stage = 'here', due_at = NULL, ended_at = :now, is_counted = :is_counted, reason = '', status = NULL,
        feed = (SELECT id FROM feed WHERE id = :feed),
        entries_before = coalesce((
            SELECT max(entries) FROM document
            WHERE feed = :feed AND role = 'subscription' AND rank IS NOT NULL
        ), 0)
    WHERE intake = :intake AND place = :place AND due_at IS NOT NULL
"""


def keep_feed(db: Database, due: DueFeed, feed: int, *, is_counted: bool, now: float) -> None:
    """Note that a feed is stored, unless it was forgotten meanwhile."""
    values = {"intake": due.intake, "place": due.place, "feed": feed, "is_counted": int(is_counted)}
    run(db, _KEEP_FEED, {**values, "now": now})


_KEEP_FAILURE: Final = """
    UPDATE intake_feed SET
        stage = 'failed', due_at = NULL, ended_at = :now, reason = :reason, status = :status, tries = :tries
    WHERE intake = :intake AND place = :place AND due_at IS NOT NULL
"""


def keep_failure(db: Database, due: DueFeed, reason: str, status: int | None, now: float) -> None:
    values = {"intake": due.intake, "place": due.place, "tries": due.tries + 1}
    run(db, _KEEP_FAILURE, {**values, "reason": reason, "status": status, "now": now})


_PUT_OFF: Final = """
    UPDATE intake_feed SET due_at = :until, tries = :tries
    WHERE intake = :intake AND place = :place AND due_at IS NOT NULL
"""


def put_off(db: Database, due: DueFeed, tries: int, until: float) -> None:
    values = {"intake": due.intake, "place": due.place}
    run(db, _PUT_OFF, {**values, "tries": tries, "until": until})


_ASK_AGAIN: Final = """
    UPDATE intake_feed SET stage = 'waiting', tries = 0,
        due_at = CASE WHEN ended_at > :asked_until THEN :now + ended_at - :asked_until ELSE :now END
    WHERE intake = :intake AND stage = 'failed'
"""


def ask_again(db: Database, intake: str, now: float) -> int:
    """Let the failed feeds of an intake wait until nobody remembers the failure; return their number."""
    require(db, intake)
    values = {"intake": intake, "now": now, "asked_until": now - REMEMBERED_SECONDS}
    return run_counting(db, _ASK_AGAIN, values)


# What became of them

_FEEDS: Final = "intake_feed AS i LEFT JOIN feed AS f ON f.id = i.feed"
# A subscription document may have an entry twice.
_BEFORE: Final = "CASE WHEN f.entries < i.entries_before THEN f.entries ELSE i.entries_before END"
_STATE: Final = f"CASE WHEN f.id IS NULL THEN NULL ELSE {VISIBLE_STATE} END"
_COUNT: Final = f"""
    SELECT i.stage AS stage, {_STATE} AS state, count(*) AS feeds, sum(i.is_counted) AS counted,
        sum({_BEFORE}) AS before, sum(f.entries) AS now,
        sum(CASE WHEN f.list_at <= :soon THEN 1 ELSE 0 END) AS searching
    FROM {_FEEDS} WHERE i.intake = :intake GROUP BY 1, 2
"""  # noqa: S608 - names of columns
_SOON_SECONDS: Final = 60.0


def count_stages(db: Database, intake: str, *, now: float) -> Tally:
    tally = Tally()
    for row in fetch_all(db, _COUNT, {"intake": intake, "soon": now + _SOON_SECONDS}):
        stage, state, feeds, counted, before, entries, searching = row
        state = None if state is None else State(state)
        tally.add(Stage(stage), state, int(feeds), before=int(before or 0), now=int(entries or 0))
        tally.counted += int(counted)
        tally.searching += int(searching or 0)
    return tally


class Gain(NamedTuple):
    url: str
    title: str
    state: State
    before: int
    now: int


_GAINS: Final = f"""
    SELECT f.url, coalesce(nullif(f.title, ''), nullif(i.title, ''), f.url) AS name, {VISIBLE_STATE},
        {_BEFORE}, f.entries
    FROM intake_feed AS i JOIN feed AS f ON f.id = i.feed WHERE i.intake = :intake AND i.stage = 'here'
"""  # noqa: S608 - names of columns
_LARGEST: Final = f"""
    {_GAINS} AND f.entries > i.entries_before
    ORDER BY f.entries - i.entries_before DESC, i.place LIMIT :limit
"""
_LATEST: Final = f"{_GAINS} ORDER BY i.ended_at DESC, i.place DESC LIMIT :limit"


def list_largest(db: Database, intake: str, limit: int) -> list[Gain]:
    return _read_gains(db, _LARGEST, intake, limit)


def list_latest(db: Database, intake: str, limit: int) -> list[Gain]:
    return _read_gains(db, _LATEST, intake, limit)


def _read_gains(db: Database, sql: str, intake: str, limit: int) -> list[Gain]:
    rows = fetch_all(db, sql, {"intake": intake, "limit": limit})
    return [Gain(url, title, State(state), before, now) for url, title, state, before, now in rows]


_FAILURES: Final = """
    SELECT url, title, line, reason, status FROM intake_feed
    WHERE intake = :intake AND stage = 'failed' ORDER BY place LIMIT :limit
"""


def list_failures(db: Database, intake: str, limit: int) -> list[FailedFeed]:
    return [FailedFeed(*row) for row in fetch_all(db, _FAILURES, {"intake": intake, "limit": limit})]
