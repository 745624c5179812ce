"""What is copied, in which order, and in which portions. Pure.

    for table in in_order(tables):                              # those that others refer to come first
        sql, values = rows_after(table, last_key)
        for batch in batches(db.execute(sql, values)): ...

Rows are read in the order of a key, so that the key of the last row that was copied says where a copy stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any, Final, NamedTuple

ROWS_AT_MOST: Final = 5_000
BYTES_AT_MOST: Final = 4 << 20
"""Of a batch; a row may be larger, and then it is one by itself."""
ROW_ID: Final = "rowid"
_VALUE_BYTES: Final = 8
"""What a number counts as."""

Values = Sequence[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the database that is copied."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    """Columns that no two rows have alike; where it has none, the number that SQLite gives each row."""
    parents: frozenset[str] = frozenset()
    """The tables that its rows refer to."""


class Stand(NamedTuple):
    """How far the copy of a table has come."""

    rows: int = 0
    last: str | None = None
    """The key of the last row, as `write_key` writes it."""
    is_whole: bool = False


def in_order(tables: Iterable[Table]) -> list[Table]:
    """Return the tables so that each comes after those it refers to, otherwise by name."""
    named = {table.name: table for table in tables}
    sorter = TopologicalSorter(
        {name: sorted(table.parents & named.keys() - {name}) for name, table in named.items()}
    )
    sorter.prepare()
    ordered: list[Table] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        ordered += [named[name] for name in ready]
        sorter.done(*ready)
    return ordered


def rows_after(table: Table, key: Values | None) -> tuple[str, Values]:
    """Return the query for the rows behind a key, in its order, and its parameters; None: for all rows.

    Each row has the table's columns and, behind them, its key.
    """
    order, values = ", ".join(table.key), key or ()
    # sqlite3 takes no lone surrogates in a text, but in bytes
    marks = ", ".join("CAST(? AS TEXT)" if isinstance(each, str) else "?" for each in values)
    where = f" WHERE ({order}) > ({marks})" if values else ""
    columns = ", ".join([*table.columns, *table.key])
    bound = [each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each for each in values]
    return f"SELECT {columns} FROM {table.name}{where} ORDER BY {order}", bound  # noqa: S608 - its own names


def batches(
    rows: Iterable[Values], *, rows_at_most: int = ROWS_AT_MOST, bytes_at_most: int = BYTES_AT_MOST
) -> Iterator[list[Values]]:
    """Give rows in portions that are bounded by their number and by what is in them."""
    batch: list[Values] = []
    batch_bytes = 0
    for row in rows:
        row_bytes = sum(len(each) if isinstance(each, str | bytes) else _VALUE_BYTES for each in row)
        if batch and (len(batch) >= rows_at_most or batch_bytes + row_bytes > bytes_at_most):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(row)
        batch_bytes += row_bytes
    if batch:
        yield batch


def write_key(key: Values) -> str:
    """Return a key as a text of ASCII alone, whatever is in it."""
    return json.dumps([{"hex": each.hex()} if isinstance(each, bytes) else each for each in key])


def read_key(text: str) -> Values:
    """Return the key that was written so."""
    return [bytes.fromhex(each["hex"]) if isinstance(each, dict) else each for each in json.loads(text)]
