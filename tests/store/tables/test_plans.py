from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from wholefeed.store.base import TEMPORARY_TABLES
from wholefeed.store.tables import documents, feeds, live, segments

LISTS_ALL = {
    "wholefeed.store.tables.feeds._LIST",
    "wholefeed.store.tables.feeds._STATES",
    "wholefeed.store.tables.feeds._SEARCH_BY_URL",
    "wholefeed.store.tables.feeds._SEARCH_BY_ASKED",
    "wholefeed.store.tables.feeds._COUNT_MATCHING",
    "wholefeed.store.tables.feeds._UNFINISHED",
    "wholefeed.store.tables.feeds._COUNT_FEEDS",
}
"""What walks through a table because it returns or counts it."""

SMALL = re.compile(
    r"SCAN (c|changed|decided|json_each|probe|two|\(subquery-\d+\)|feed USING INDEX feed_walking)( |$)"
)
"""Temporary tables and arguments, as long as the change; an index of nothing but what is wanted; one row."""


def statements(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, value in vars(module).items():
        if name == "VERSIONS_OF_FEEDS":  # which goes to libpq as it stands
            continue
        if isinstance(value, str) and re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)\b", value):
            yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(
    ("name", "sql"),
    [found for module in (documents, feeds, live, segments) for found in statements(module)],
)
async def test_no_statement_walks_through_a_table(database: Path, name: str, sql: str) -> None:
    """docs/design.md#the-store: work is proportional to the change, not to the store."""
    with closing(sqlite3.connect(database)) as db:
        db.executescript(TEMPORARY_TABLES)
        named = dict.fromkeys(re.findall(r":(\w+)", sql), "[1]")
        parameters = named or [1] * sql.count("?")
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, parameters)]

    scans = [line for line in plan if line.startswith("SCAN") and not SMALL.match(line)]
    assert scans == [] or name in LISTS_ALL


def test_statements_are_found() -> None:
    """The check of query plans sees the store's statements; if it found none, it would check nothing."""
    assert sum(len(list(statements(module))) for module in (documents, feeds, live, segments)) > 40
