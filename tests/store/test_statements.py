"""Each statement of the tables, on both engines: work is proportional to the change, not to the store."""

from __future__ import annotations

import pkgutil
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.store.conftest import connected
from wholefeed.store import tables
from wholefeed.store.base import TWINS, either
from wholefeed.store.postgres_connection import PostgresDatabase
from wholefeed.store.tables import copies, document_table, feed_table, live, segment_table
from wholefeed.store.tables.live import TEMPORARY_TABLES

LISTS_ALL = {
    "wholefeed.store.tables.feed_table._LIST",
    "wholefeed.store.tables.feed_table._STATES",
    "wholefeed.store.tables.feed_table._SEARCH",
    "wholefeed.store.tables.feed_table._COUNT",
    "wholefeed.store.tables.feed_table._UNFINISHED",
    "wholefeed.store.tables.feed_table._COUNT_FEEDS",
}
"""Statements that scan a table because they return or count it."""

SMALL_IN_SQLITE = re.compile(
    r"SCAN (c|changed|decided|due|json_each|probe|two|\(subquery-\d+\)|feed USING INDEX feed_walking)( |$)"
)
"""Temporary tables and arguments as long as the change; partial indexes; single rows; what is due."""


def statements(*modules: ModuleType) -> dict[str, str]:
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, str) and re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)\b", value)
    }


def named(sql: str) -> set[str]:
    """A statement's parameters by name; texts in it have none."""
    return set(re.findall(r"(?<!:):(\w+)", re.sub(r"'[^']*'", "''", sql)))


def test_no_statement_walks_through_a_table_of_sqlite(database: Path) -> None:
    """Statements that return or count a whole table are listed."""
    found = statements(copies, document_table, feed_table, live, segment_table)
    assert len(found) > 40
    walking = dict[str, list[str]]()
    with closing(sqlite3.connect(database)) as db:
        db.executescript(TEMPORARY_TABLES)
        for name, sql in found.items():
            parameters = dict.fromkeys(named(sql), "[1]") or [1] * sql.count("?")
            plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, parameters)]
            walking[name] = [
                line for line in plan if line.startswith("SCAN") and not SMALL_IN_SQLITE.match(line)
            ]
    assert {name for name, scans in walking.items() if scans} <= LISTS_ALL, walking


# On PostgreSQL

_BYTES = """
before coded content context deflated digest enclosure enclosures filler head identity key link nothing one
other own packed page
"""
BYTES = frozenset(re.findall(r"\w+", _BYTES))
_TEXTS = """
documents ending etag family feeds fetch_url final_url found_by kept keys kind last_modified links marks
media_type memento name names notes outcome payload pinned position progress reading reason replica role
served id intake options unchanged
 segments site_id sort state subscription token url urls version via_url warning way why words learned
"""
TEXTS = frozenset(re.findall(r"\w+", _TEXTS))
OTHERS: dict[str, dict[str, object]] = {
    "wholefeed.store.tables.document_table._EXPIRED": {"before": 1.0},
    "wholefeed.store.tables.feed_table._DUE": {"before": 1.0, "now": 1e6, "ahead": 1e6},
    "wholefeed.store.tables.feed_table._NEXT_DUE_AT": {"before": 1.0, "ahead": 1e6},
    "wholefeed.store.tables.posts._DUE": {"before": 1.0},
    "wholefeed.store.tables.segment_table._INSERT": {"position": 1},
    "wholefeed.store.tables.segment_table._PUBLISH": {"documents": 1},
    "wholefeed.store.tables.text_table._ALIKE": {"first": b"a", "last": b"a"},
}
"""Names with another meaning than in other statements."""

SMALL = {
    "concerned",
    "changed",
    "contested",
    "decided",
    "forgotten",
    "probe",
    "lease",
    "replica",
    "intake",
    "intake_list",
}
"""Tables as long as the change, of one row, or as many as replicas, their leases, or kept lists."""
PARTIAL = {"feed_unfinished", "segment_retired", "intake_feed_due"}
"""Indexes of wanted rows alone."""
WALKED = LISTS_ALL | {
    "wholefeed.store.tables.failures._OPEN_SEARCHES",  # of all that is missing in any feed
    "wholefeed.store.tables.failures._TROUBLES",
    "wholefeed.store.tables.failures._NEXT_SEARCH_AT",
}


FILLED = """
    SET LOCAL session_replication_role = replica;  -- nothing is looked up, row by row
    INSERT INTO feed (url, fetch_url, family, kind, state, first_seen_at, asked_at, checked_at, fresh_until)
        SELECT 'u' || n, 'u', 'atom', 'plain', 'complete', n, n, n, n FROM generate_series(1, 4000) AS n;
    INSERT INTO alias SELECT 'a' || n, n FROM generate_series(1, 4000) AS n;
    INSERT INTO segment (
        feed, position, length, crc32, crc_shift, deflated_bytes, digest, prefixes, entries, parser_version
    ) SELECT n, 1, 1, 1, 1, 1, 'd', 1, 1, 1 FROM generate_series(1, 4000) AS n;
    INSERT INTO block SELECT n, 'd' FROM generate_series(1, 4000) AS n;
    INSERT INTO block_rest SELECT n, 1, 'd' FROM generate_series(1, 4000) AS n;
    INSERT INTO outline SELECT n, 'd' FROM generate_series(1, 4000) AS n;
    INSERT INTO member SELECT n, 'd' FROM generate_series(1, 4000) AS n;
    INSERT INTO document (
        feed, url, final_url, role, rank, family, site_id, links, is_marked, is_settled, is_uncacheable,
        brought_news, digest, media_type, fetched_at, checked_at, parser_version, body_bytes, entries,
        segment, is_dirty, live_bytes, origin
    ) SELECT n, 'u' || n, 'u', 'archive', 1, 'atom', '', '{}', 0, 0, 0, 0, 'd', '', 1, 1, 1, 1, 1, n, 0, 0,
            'publisher' FROM generate_series(1, 4000) AS n;
    INSERT INTO body SELECT n, 1, 'd' FROM generate_series(1, 4000) AS n;
    INSERT INTO entry (document, ordinal, feed, identity, size, is_live)
        SELECT n / 10 + 1, n % 10, n / 10 + 1, decode(md5('' || n), 'hex'), 1, least(n % 9, 1)
        FROM generate_series(1, 39900) AS n;
    INSERT INTO entry_key SELECT n, 1, n, md.d, md.d, md.d, md.d
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT decode(md5('' || n), 'hex') AS d) AS md;
    INSERT INTO ambiguous_key SELECT n, decode(md5('' || n), 'hex') FROM generate_series(1, 4000) AS n;
    INSERT INTO settled SELECT n, md.d, md.d, md.d, md.d, md.d
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT decode(md5('' || n), 'hex') AS d) AS md;
    INSERT INTO tombstone (feed, identity, document, when_at, ref)
        SELECT n, decode(md5('' || n), 'hex'), n, 1, '' FROM generate_series(1, 4000) AS n;
    INSERT INTO trait SELECT n, n, decode(md5('' || n), 'hex') FROM generate_series(1, 4000) AS n;
    INSERT INTO other_id SELECT n, md.d, md.d, 1, 1
        FROM generate_series(1, 4000) AS n, LATERAL (SELECT decode(md5('' || n), 'hex') AS d) AS md;
    INSERT INTO attempt SELECT n, 'u', 'r', 1, 1, 1, 1, 1 FROM generate_series(1, 4000) AS n;
    INSERT INTO memento_search SELECT n, 'u', '', 1, 1 FROM generate_series(1, 4000) AS n;
    INSERT INTO concerned SELECT decode(md5('' || n), 'hex'), 0 FROM generate_series(1, 50) AS n;
    INSERT INTO contested SELECT decode(md5('' || n), 'hex'), 0, 0 FROM generate_series(1, 50) AS n;
    INSERT INTO changed SELECT n FROM generate_series(1, 5) AS n;
    INSERT INTO decided SELECT n, 1, 1 FROM generate_series(1, 50) AS n;
    INSERT INTO text_plan (feed, asked_at, revision) SELECT id, 1, 1 FROM feed;
    INSERT INTO intake SELECT 'i' || n, n, 'd', '{}', 0, '[]' FROM generate_series(1, 20) AS n;
    INSERT INTO intake_list SELECT id, 1, 'd' FROM intake;
    INSERT INTO intake_feed (intake, place, url, title, line, stage, ended_at, feed)
        SELECT 'i' || (n % 20 + 1), n, 'u', '', 1, CASE n % 9 WHEN 0 THEN 'here' ELSE 'failed' END, n, n
        FROM generate_series(1, 4000) AS n;
    ANALYZE intake, intake_list, intake_feed, text_plan;
    ANALYZE feed, alias, segment, block, block_rest, outline, member, document, body, entry,
        entry_key, ambiguous_key, settled, tombstone, attempt, memento_search, trait, other_id
"""
"""Enough rows that an index is the shorter way; and the rows of one change."""


def every_statement() -> dict[str, str]:
    names = [f"{tables.__name__}.{each.name}" for each in pkgutil.iter_modules(tables.__path__)]
    found = statements(*map(import_module, names))
    for name in ("identity_table._BEARERS", "posts._FIND", "posts._IDS_OF_POSTS"):  # from which two are made
        del found[f"wholefeed.store.tables.{name}"]
    return found


def values(name: str, sql: str) -> Any:
    """Arguments of the program's types."""
    names = named(sql)
    if not names:
        return [None] * sql.count("?")
    made = {each: b"b" * 16 if each in BYTES else "[1]" if each in TEXTS else 1 for each in names}
    return made | {each: value for each, value in OTHERS.get(name, {}).items() if each in names}


@pytest.fixture
def db(postgres_url: str) -> Iterator[PostgresDatabase]:
    db = connected(postgres_url)
    db.executescript(TEMPORARY_TABLES)
    yield db
    db.close()


def planned(db: PostgresDatabase, name: str, sql: str) -> dict[str, Any]:
    explain = "EXPLAIN (FORMAT JSON) "
    text = either(sqlite=explain + sql, postgres=explain + TWINS[sql]) if sql in TWINS else explain + sql
    ((found,),) = db.execute(text, values(name, sql)).fetchall()
    plan: dict[str, Any] = found[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", []):
        yield from nodes(each)


def test_each_statement_is_taken(db: PostgresDatabase) -> None:
    """PostgreSQL finds every table, column and function of it, and a type for each parameter."""
    refused = {}
    assert len(every_statement()) > 90
    for name, sql in every_statement().items():
        try:
            planned(db, name, sql)
        except Exception as error:  # noqa: BLE001 - all are wanted
            refused[name] = str(error)
    assert refused == {}


def test_no_statement_walks_through_a_table_of_postgres(db: PostgresDatabase) -> None:
    """docs/design.md#the-store: work is proportional to the change, not to the store."""
    # Of tables so small the whole may be read sooner than some of it.
    db.executescript(f"BEGIN; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; {FILLED}")
    walked = {
        (name, node["Relation Name"])
        for name, sql in every_statement().items()
        if name not in WALKED
        for node in nodes(planned(db, name, sql))
        if node["Node Type"] in ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Index Scan")
        if "Index Cond" not in node and node.get("Index Name") not in PARTIAL
        if node.get("Relation Name", "concerned") not in SMALL
    }
    assert walked == set()
