"""Examination of a PostgreSQL database for `wholefeed doctor`, also while replicas use it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import psycopg

from wholefeed.store.migrations import read_migrations
from wholefeed.store.postgres_migrate import connect_for_command, first_value, place_of, read_version
from wholefeed.store.tables.leases import COUNT_LIVE

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedDatabase:
    place: str
    """Name for display, without the password."""
    server: int
    encoding: str
    version: int
    """0: no schema yet."""
    newest: int
    is_moving: bool
    """Whether it is the unfinished copy of a SQLite database."""
    is_standby: bool
    is_durable: bool
    """Whether it survives a power cut (fsync, full_page_writes)."""
    is_pooled: bool
    """Whether a pooler gives each transaction another connection."""
    is_superuser: bool
    can_create: bool
    """Whether the user may create tables, which `wholefeed migrate` needs and `serve` does not."""
    lacking: tuple[str, ...]
    """Missing rights that a server needs."""
    connections_left: int
    """Further connections that the server, or the role, permits."""
    round_trip_seconds: float
    clock_ahead_seconds: float
    bytes: int
    replicas: int
    checked_at: float | None
    """Time of the last request to a publisher. None: no request yet."""
    url: str
    """URL of the most recently requested subscription document; empty without feeds."""


_Connection = psycopg.Connection[Any]
_CONNECT_SECONDS: Final = 4
_connected: Final = partial(connect_for_command, name="wholefeed doctor", within_seconds=_CONNECT_SECONDS)


def examine(url: str) -> ExaminedDatabase:
    """Examine a database, or raise `StoreUnusableError` if that is impossible. Blocks."""
    with _connected(url) as db:
        return _examine_connection(db, url)


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


def _examine_connection(db: _Connection, url: str) -> ExaminedDatabase:
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
    """Return whether a pooler gives two client connections the same server connection."""
    # In transaction mode it gives the most recently freed one to the next transaction.
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
