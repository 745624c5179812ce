from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from wholefeed.store.tables import arrangement as chain
from wholefeed.store.tables import bodies, copies, documents, feeds, live, months, segments
from wholefeed.store.tables import outlook as polling
from wholefeed.store.tables.temporary import TEMPORARY_TABLES

LISTS_ALL = {
    "wholefeed.store.tables.feeds._LIST",
    "wholefeed.store.tables.feeds._STATES",
    "wholefeed.store.tables.feeds._SEARCH_BY_URL",
    "wholefeed.store.tables.feeds._SEARCH_BY_ASKED",
    "wholefeed.store.tables.feeds._COUNT_MATCHING",
    "wholefeed.store.tables.feeds._UNFINISHED",
    "wholefeed.store.tables.outlook._COUNT",
}
"""What walks through a table because it returns or counts it."""

SMALL = re.compile(
    r"SCAN (c|changed|decided|json_each|two|\(subquery-\d+\)|feed USING INDEX feed_walking)( |$)"
)
"""Temporary tables and arguments, as long as the change; and an index of nothing but what is wanted."""


def statements(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, value in vars(module).items():
        if isinstance(value, str) and re.match(r"\s*(SELECT|UPDATE|DELETE|INSERT)\b", value):
            yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(
    ("name", "sql"),
    [
        found
        for module in (bodies, chain, copies, documents, feeds, live, months, polling, segments)
        for found in statements(module)
    ],
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
    assert sum(len(list(statements(module))) for module in (chain, documents, feeds, live, segments)) > 40
