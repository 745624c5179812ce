"""What is done beside the pool: the hosts that replicas know of together, and a look for `wholefeed doctor`.

answer = await rows.swap([HostChange("example.org", before=seen.stamp, stamp="a/7", state="{}", ...)])
answer.rows["example.org"].stamp == "a/7"       # else somebody else was faster: this is what stands there

examine("postgresql://…").lacking               # () where the user may do all that a server does
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import psycopg

from wholefeed.store.base import Database, run
from wholefeed.store.migrations import read_migrations
from wholefeed.store.postgres_connection import PostgresDatabase, connect, cut, translated
from wholefeed.store.postgres_migrate import connected, first_value, place_of, read_version
from wholefeed.store.tables.leases import COUNT_LIVE, DEAD_SECONDS

_T = TypeVar("_T")


class HostChange(NamedTuple):
    """What is to be known of a host, if what was known of it has still this stamp."""

    name: str
    before: str
    """The stamp of what it was made from; empty: of nothing."""
    stamp: str
    """Never given to anything else."""
    state: str
    kept_until: float
    """The row may be deleted after that."""
    notices: tuple[str, ...] = ()
    """Sent if it is changed."""


@dataclass(frozen=True, slots=True)
class HostRow:
    stamp: str
    state: str


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What stands in the database now."""

    now: float
    """Its clock, epoch seconds, not later than when this was answered."""
    lost: frozenset[str]
    """Names of replicas that have given no sign of life for long."""
    rows: Mapping[str, HostRow]
    """Those that were to be changed, changed or not, by name."""


_SILENT_SECONDS: Final = 5.0
"""More than a statement may take: a server that has not answered by then is not waited for."""
_CLOSE_SECONDS: Final = 1.0
# Nothing is lost that would not be learnt again: a commit does not wait for the disk.
_SETTINGS: Final = """
    SET synchronous_commit = off;
    SET statement_timeout = '2s';
    SET default_transaction_isolation = 'read committed'
"""
SPARED_SECONDS: Final = 60.0
"""A row stays for so long after there is nothing more to remember: others may still go by what they have read
of it."""
MAX_ROWS: Final = 100_000
"""Those that are to be remembered longest stay."""
_SWEEP: Final = """
DELETE FROM host WHERE kept_until < clock_seconds() - :spared
    OR name IN (SELECT name FROM host ORDER BY kept_until DESC OFFSET :most)
"""


class HostRows:
    """The table `host`, changed by comparing and swapping. Owns a connection and its thread; `close` it.

    One statement, and so one round trip, whatever number of hosts it is about, and no lock that outlasts it:
    a replica that stops in the middle keeps nobody waiting. What a state says is `wholefeed.fetch.hosts`'.

    The connection is one of its own, so that politeness waits for no transaction of a feed.

    Args:
        url: Of the database, as libpq takes it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._thread = ThreadPoolExecutor(1, "hosts")
        self._db: PostgresDatabase | None = None

    async def swap(self, changes: Sequence[HostChange]) -> HostAnswer:
        """Change what can be changed, and send the notices that go with it.

        Raises:
            OverloadedError: The database cannot be asked now.
            StorageFullError: It cannot be written.
            StoreError: It failed otherwise.
        """
        return await self._in_thread(lambda db: swap_hosts(db, changes))

    async def sweep(self) -> int:
        """Delete what there is nothing to remember of; return how many rows. Raises as `swap`."""
        return await self._in_thread(lambda db: run(db, _SWEEP, {"spared": SPARED_SECONDS, "most": MAX_ROWS}))

    async def close(self) -> None:
        """Close the connection, after what has begun, if that is soon."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        last = self._thread.submit(lambda: None)
        self._thread.shutdown(wait=False)
        if wait({last}, _CLOSE_SECONDS).not_done:
            self._cut()
            wait({last}, _CLOSE_SECONDS)
        if self._db is not None:
            self._db.close()

    def _cut(self) -> None:
        db = self._db
        if db is not None:
            cut(db.raw)

    async def _in_thread(self, work: Callable[[Database], _T]) -> _T:
        loop = asyncio.get_running_loop()
        late = loop.call_later(_SILENT_SECONDS, self._cut)
        try:
            return await loop.run_in_executor(self._thread, self._run, work)
        finally:
            late.cancel()

    def _run(self, work: Callable[[Database], Any]) -> Any:
        try:
            if self._db is None or self._db.is_lost:
                self._db = connect(self._url)
                self._db.executescript(_SETTINGS)
            return work(self._db)
        except psycopg.Error as exc:
            if self._db is not None:  # it may lead to a server that is a standby now
                self._db.close()
                self._db = None
            raise translated(exc) from exc


# ON CONFLICT waits for whoever changes the row, and sees then what has become of it; a SELECT beside it would
# see the row as it was when the statement began. Rows are taken in the order of their names, so that two
# statements never wait for each other. `before` is a column because nothing else of a given row is seen
# there.
_SWAP: Final = """
WITH given AS (
    SELECT * FROM json_to_recordset(CAST(:changes AS json)) AS each
        (name text, before text, stamp text, state text, kept_until double precision, notices json)
), put AS (
    INSERT INTO host (name, before, stamp, state, kept_until)
    SELECT name, before, stamp, state, kept_until FROM given ORDER BY name
    ON CONFLICT (name) DO UPDATE SET
        stamp = CASE WHEN host.stamp = excluded.before THEN excluded.stamp ELSE host.stamp END,
        state = CASE WHEN host.stamp = excluded.before THEN excluded.state ELSE host.state END,
        kept_until = CASE WHEN host.stamp = excluded.before THEN excluded.kept_until ELSE host.kept_until END
    RETURNING name, stamp, state
), told AS (
    SELECT pg_notify('wholefeed', notice.value)
    FROM put JOIN given USING (name, stamp), json_array_elements_text(given.notices) AS notice
)
SELECT
    clock_seconds() AS now,
    (SELECT json_agg(name) FROM replica WHERE beat_at <= clock_seconds() - :dead_seconds) AS lost,
    (SELECT json_agg(put) FROM put) AS rows,
    (SELECT count(*) FROM told) AS told
"""


def swap_hosts(db: Database, changes: Sequence[HostChange]) -> HostAnswer:
    """Change what can be changed, and send the notices that go with it."""
    given = {"changes": json.dumps([each._asdict() for each in changes]), "dead_seconds": DEAD_SECONDS}
    (row,) = db.execute(_SWAP, given).fetchall()
    return HostAnswer(
        row["now"],
        frozenset(row["lost"] or ()),
        {each["name"]: HostRow(each["stamp"], each["state"]) for each in row["rows"] or ()},
    )


# A look at a database, without changing anything, beside replicas that may be using it


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedDatabase:
    """What can be told of a PostgreSQL database."""

    place: str
    """What it may be called: no password is in it."""
    server: int
    """The major version of PostgreSQL."""
    encoding: str
    version: int
    """Of its schema; 0: it has none yet."""
    newest: int
    """The schema of this program."""
    is_moving: bool
    """Whether it holds the unfinished copy of a SQLite database."""
    is_standby: bool
    is_durable: bool
    """Whether it survives a power cut (fsync, full_page_writes)."""
    is_pooled: bool
    """Whether a pooler gives each transaction another connection."""
    is_superuser: bool
    can_create: bool
    """Whether the user may make tables: `wholefeed migrate` needs that, `serve` does not."""
    lacking: tuple[str, ...]
    """The rights that a server needs and the user has not."""
    connections_left: int
    """That the server, or the role, takes beside those that there are."""
    round_trip_seconds: float
    clock_ahead_seconds: float
    """By how much its clock is ahead of this machine's."""
    bytes: int
    replicas: int
    """That live."""
    checked_at: float | None
    """When a publisher was asked last; None: none was."""
    url: str
    """Of the subscription document that was asked for last; empty where there are no feeds."""


_Connection = psycopg.Connection[Any]
_CONNECT_SECONDS: Final = 4
_connected: Final = partial(connected, name="wholefeed doctor", within_seconds=_CONNECT_SECONDS)


def examine(url: str) -> ExaminedDatabase:
    """Look at a database. Blocks.

    Raises:
        StoreUnusableError: It cannot be reached, is none of this program's, or newer.
    """
    with _connected(url) as db:
        return _examined(db, url)


_FACTS: Final = """
    SELECT current_setting('server_encoding') AS encoding,
        current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' AS is_durable,
        pg_is_in_recovery() AS is_standby,
        (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
        has_database_privilege(current_database(), 'TEMPORARY') AS has_temporary,
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS can_create,
        to_regclass('moving') IS NOT NULL AS is_moving,
        pg_database_size(current_database()) AS bytes,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend')
            AS connections_left,
        (SELECT CASE WHEN rolconnlimit < 0 THEN NULL ELSE rolconnlimit END FROM pg_roles
            WHERE rolname = current_user) AS connections_of_role,
        extract(epoch FROM clock_timestamp())::float8 AS now
"""
_RIGHTS: Final = """
    SELECT c.relname || ': ' || string_agg(r.name, ', ' ORDER BY r.name)
    FROM pg_class AS c
    CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS r (name)
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
        AND (c.relname <> 'wholefeed_schema' OR r.name = 'SELECT') AND c.relname <> 'moving'
        AND NOT has_table_privilege(c.oid, r.name)
    GROUP BY c.relname ORDER BY c.relname
"""
_NEWEST: Final = "SELECT max(checked_at) FROM feed"
_ASKED: Final = "SELECT fetch_url FROM feed ORDER BY asked_at DESC LIMIT 1"


def _examined(db: _Connection, url: str) -> ExaminedDatabase:
    began = time.time()
    cursor = db.execute(_FACTS)
    row = cursor.fetchone()
    assert row is not None
    assert cursor.description is not None
    facts = dict(zip((column.name for column in cursor.description), row, strict=True))
    now = (began + time.time()) / 2
    newest = read_migrations("postgres")[-1].version
    version = read_version(db, newest)
    rights = [right for (right,) in db.execute(_RIGHTS)]
    if not facts["has_temporary"]:
        rights.append("the database: TEMPORARY")
    can_look = bool(version) and not any("SELECT" in right for right in rights)
    by_role = facts["connections_of_role"]
    left = facts["connections_left"]
    return ExaminedDatabase(
        place=place_of(url),
        server=db.info.server_version // 10_000,
        encoding=facts["encoding"],
        version=version,
        newest=newest,
        is_moving=facts["is_moving"],
        is_standby=facts["is_standby"],
        is_durable=facts["is_durable"],
        is_pooled=_is_pooled(db, url),
        is_superuser=facts["is_superuser"],
        can_create=facts["can_create"],
        lacking=tuple(rights),
        connections_left=left if by_role is None else min(left, by_role),
        round_trip_seconds=_round_trip_seconds(db),
        clock_ahead_seconds=facts["now"] - now,
        bytes=facts["bytes"],
        replicas=first_value(db, COUNT_LIVE) if can_look else 0,
        checked_at=first_value(db, _NEWEST) if can_look else None,
        url=(first_value(db, _ASKED) or "") if can_look else "",
    )


def _is_pooled(db: _Connection, url: str) -> bool:
    """Whether two connections are one to the server: it was given on while nobody was in a transaction.

    A pooler in transaction mode gives the connection that became free last to the next transaction.
    """
    first = first_value(db, "SELECT pg_backend_pid()")
    with _connected(url) as other, other.transaction():
        return bool(first_value(other, "SELECT pg_backend_pid()") == first)


_ROUND_TRIPS: Final = 21


def _round_trip_seconds(db: _Connection) -> float:
    taken = []
    for _ in range(_ROUND_TRIPS):
        began = time.perf_counter()
        db.execute("SELECT 1")
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
