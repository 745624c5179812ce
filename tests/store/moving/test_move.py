"""The copy as a whole, into a target that can be stopped anywhere."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.moving.databases import ODD, a_database
from wholefeed.errors import StoreError, StoreUnusableError
from wholefeed.store.moving import Digest, Stand, Table, Values, move, opened_source
from wholefeed.store.sqlite_file import locked


class StoppedError(Exception):
    """The process was killed."""


class Memory:
    """A target in memory, which keeps what was put before it was stopped."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Values]] = {}
        self.stands: dict[str, Stand] = {}
        self.numbers: Mapping[tuple[str, str], int] | None = None
        self.puts_left = 10**9

    def begin(self, mark: str, tables: Sequence[Table]) -> Mapping[str, Stand]:
        return self.stands

    def put(self, table: Table, rows: Sequence[Values], stand: Stand) -> None:
        if self.puts_left == 0:
            raise StoppedError
        self.puts_left -= 1
        self.rows.setdefault(table.name, []).extend(row[: len(table.columns)] for row in rows)
        self.stands[table.name] = stand

    def digest(self, table: Table) -> Digest:
        digest = Digest()
        for row in self.rows.get(table.name, []):
            digest.add(row)
        return digest

    def numbered(self, table: Table) -> list[str]:
        return ["id"] if table.name in ("feed", "segment", "document", "tombstone") else []

    def finish(self, numbers: Mapping[tuple[str, str], int]) -> None:
        self.numbers = numbers


def test_everything_is_copied_and_numbers_are_never_given_again(tmp_path: Path) -> None:
    """Every table but the probe comes over, texts as they were; the number of a forgotten feed counts."""
    path, target, said = a_database(tmp_path / "a.db", feeds=4), Memory(), list[str]()
    with opened_source(path) as source:
        moved = move(source, target, say=said.append)
    with closing(sqlite3.connect(path)) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    assert set(target.rows) | {"probe", "sqlite_sequence"} == names
    assert all(target.rows.values()), "each table had something"
    assert ODD in [row[2] for row in target.rows["memento_search"]]
    assert target.numbers is not None
    assert target.numbers["feed", "id"] == 4, "although feed 4 is gone"
    assert (moved.tables, moved.rows) == (len(target.rows), sum(map(len, target.rows.values())))
    assert "feed: 3 rows copied" in said


def test_a_copy_that_is_stopped_at_any_batch_goes_on_where_it_stood(tmp_path: Path) -> None:
    """Stopped before each put in turn, and begun again: no row is missing, none comes twice."""
    path, target = a_database(tmp_path / "a.db", feeds=3), Memory()
    stops = 0
    while target.numbers is None:
        target.puts_left = 1
        try:
            with opened_source(path) as source:
                move(source, target, say=lambda line: None, rows_at_most=1)
        except StoppedError:
            stops += 1
    assert stops > sum(map(len, target.rows.values())), "once a row, and once a table at its end"
    whole = Memory()
    with opened_source(path) as source:
        move(source, whole, say=lambda line: None)
    assert target.rows == whole.rows


def test_what_differs_is_found_and_the_copy_stays_unfinished(tmp_path: Path) -> None:
    """A row that changed on its way is told by the name of its table."""
    path, target = a_database(tmp_path / "a.db"), Memory()
    put = target.put

    def spoil(table: Table, rows: Sequence[Values], stand: Stand) -> None:
        spoilt = [[*row[:-2], row[-2] + b"!", row[-1]] for row in rows] if table.name == "body" else rows
        put(table, spoilt, stand)

    target.put = spoil  # type: ignore[method-assign]
    with opened_source(path) as source, pytest.raises(StoreError, match="body is not what it was: 3 rows"):
        move(source, target, say=lambda line: None)
    assert target.numbers is None


def test_the_mark_tells_a_database_that_was_worked_in(tmp_path: Path) -> None:
    """A copy may go on at another path, but not after a server has worked in the database."""
    path = a_database(tmp_path / "a.db")
    with opened_source(path) as source:
        before = source.mark
    path = path.rename(tmp_path / "b.db")
    with opened_source(path) as source:
        assert source.mark == before
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE feed SET asked_at = asked_at + 1 WHERE id = 3")
    with opened_source(path) as source:
        assert source.mark != before


def test_a_database_in_use_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    """A server holds the lock; and one that starts meanwhile does not get it."""
    path = a_database(tmp_path / "a.db")
    before = path.read_bytes()
    with (
        locked(path),
        pytest.raises(StoreUnusableError, match="in use by another process"),
        opened_source(path),
    ):
        pass
    with opened_source(path) as source:
        with pytest.raises(StoreUnusableError, match="in use by another process"), locked(path):
            pass
        move(source, Memory(), say=lambda line: None)
    assert path.read_bytes() == before


def test_a_database_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The path is what `store.path` says."""
    expected = r"nothing to move: there is no database .*/a\.db"
    with pytest.raises(StoreUnusableError, match=expected), opened_source(tmp_path / "a.db"):
        pass
