"""The transfer of a SQLite database into a PostgreSQL one."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.databases import ODD, a_database
from wholefeed.errors import StoreError, StoreUnusableError
from wholefeed.store.sqlite_file import lock_database

psycopg = pytest.importorskip("psycopg")
from wholefeed.store.database_transfer import (  # noqa: E402 - it needs psycopg
    Table,
    TransferResult,
    batches,
    digest_of,
    open_source,
    open_target,
    read_key,
    rows_after,
    transfer_rows,
    write_key,
)


def run(url: str, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(sql, parameters)
        return cursor.fetchall() if cursor.description else []


def moved(path: Path, url: str, *, rows_at_most: int = 1000) -> TransferResult:
    with open_source(path) as source, open_target(url) as target:
        return transfer_rows(source, target, say=lambda line: None, rows_at_most=rows_at_most)


@contextmanager
def refused(kind: type[StoreError], text: str) -> Iterator[None]:
    with pytest.raises(kind, match=text):
        yield


def test_everything_arrives_as_it_was(tmp_path: Path, postgres_url: str) -> None:
    """Numbers, times to the microsecond, bytes and odd texts; a forgotten feed's number is not reused."""
    path = a_database(tmp_path / "a.db", feeds=4)

    said = list[str]()
    with open_source(path) as source, open_target(postgres_url) as target:
        found = transfer_rows(source, target, say=said.append)

    assert "feed: 3 rows copied" in said
    with closing(sqlite3.connect(path)) as db:
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    names -= {"probe", "sqlite_sequence"}
    assert found.tables == len(names)
    counts = [run(postgres_url, f"SELECT count(*) FROM {name}")[0][0] for name in names]
    assert found.rows == sum(counts)
    assert all(counts), "of a table that nothing is in nothing is shown"
    assert run(postgres_url, "SELECT to_regclass('moving')") == [(None,)], "servers may open it"
    rows = run(postgres_url, "SELECT id, checked_at, digest, url FROM feed ORDER BY id")
    assert [row[0] for row in rows] == [1, 2, 3]
    assert rows[0][1:] == (1_763_770_001.123456, bytes(range(16)), "https://example.org/1/")
    assert rows[1][3] == "https://example.org/2/" + ODD.replace("\x7f", "\x7f007f").replace(
        "\0", "\x7f0000"
    ).replace("\udc80", "\x7fdc80")
    added = "INSERT INTO segment (length, crc32, crc_shift, deflated_bytes, digest, prefixes, entries,"
    added += " parser_version, retired_at) VALUES (0, 0, 0, 0, '', 0, 0, 0, 0) RETURNING id"
    assert run(postgres_url, added) == [(5,)]
    assert run(postgres_url, "SELECT nextval(pg_get_serial_sequence('feed', 'id'))") == [(5,)], "4 is gone"


def test_a_copy_that_was_broken_off_goes_on(tmp_path: Path, postgres_url: str) -> None:
    """A failed transfer leaves its rows and its position; transferred rows are not transferred again."""
    path = a_database(tmp_path / "a.db", feeds=3, entries=10)
    run(postgres_url, "ALTER TABLE entry ADD CONSTRAINT no_more CHECK (document < 2)")
    with refused(StoreError, "no_more"):
        moved(path, postgres_url, rows_at_most=4)
    assert run(postgres_url, "SELECT rows, is_whole FROM moving WHERE name = 'entry'") == [(8, 0)]
    run(postgres_url, "ALTER TABLE entry DROP CONSTRAINT no_more")
    before = run(postgres_url, "SELECT ctid, xmin::text FROM entry")

    moved(path, postgres_url, rows_at_most=4)

    after = run(postgres_url, "SELECT ctid, xmin::text FROM entry")
    assert set(before) < set(after)
    assert len(after) == 20


def test_what_was_changed_in_the_copy_is_found(tmp_path: Path, postgres_url: str) -> None:
    """The transfer is read back: a row changed meanwhile keeps it unfinished."""
    path = a_database(tmp_path / "a.db")
    run(postgres_url, "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.coded := 'x'; RETURN NEW; END $$")  # fmt: skip
    run(postgres_url, "CREATE TRIGGER spoil BEFORE INSERT ON body FOR EACH ROW EXECUTE FUNCTION spoil()")
    with refused(StoreError, "body is not what it was: 3 rows"):
        moved(path, postgres_url)
    assert run(postgres_url, "SELECT to_regclass('moving') IS NOT NULL") == [(True,)]


def test_a_database_that_holds_something_else_is_refused(tmp_path: Path, postgres_url: str) -> None:
    """Neither a used store nor the unfinished transfer of another store is overwritten."""
    path, other = a_database(tmp_path / "a.db"), a_database(tmp_path / "b.db", feeds=6)
    run(postgres_url, "ALTER TABLE entry ADD CONSTRAINT no_more CHECK (false) NOT VALID")
    with refused(StoreError, "no_more"):
        moved(path, postgres_url)
    with refused(StoreUnusableError, "unfinished copy of another SQLite database"):
        moved(other, postgres_url)
    run(postgres_url, "ALTER TABLE entry DROP CONSTRAINT no_more")
    moved(path, postgres_url)
    with refused(StoreUnusableError, "not empty: feed has rows"):
        moved(path, postgres_url)


def test_a_database_that_somebody_uses_is_refused(tmp_path: Path, postgres_url: str) -> None:
    """A server there would write beside the transfer, and a second transfer beside the first."""
    path = a_database(tmp_path / "a.db")
    now = "extract(epoch FROM clock_timestamp())"
    run(postgres_url, f"INSERT INTO replica (name, began_at, beat_at) VALUES ('r', 0, {now})")
    with refused(StoreUnusableError, "in use by a server"):
        moved(path, postgres_url)
    run(postgres_url, f"UPDATE replica SET beat_at = {now} - 10")
    with open_target(postgres_url), refused(StoreUnusableError, "another process copies"):
        moved(path, postgres_url)
    moved(path, postgres_url)


def test_a_server_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    """The message is libpq's, on one line, without the password."""
    path = a_database(tmp_path / "a.db")
    with pytest.raises(StoreError, match="PostgreSQL: connection failed") as said:
        moved(path, "postgresql://someone:a-secret@127.0.0.1:1/wholefeed")
    assert "a-secret" not in str(said.value)
    assert "\n" not in str(said.value)


def test_the_mark_tells_a_database_that_was_worked_in(tmp_path: Path) -> None:
    """A transfer may resume at another path, but not after a server used the database."""
    path = a_database(tmp_path / "a.db")
    with open_source(path) as source:
        before = source.mark
    path = path.rename(tmp_path / "b.db")
    with open_source(path) as source:
        assert source.mark == before
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE feed SET asked_at = asked_at + 1 WHERE id = 3")
    with open_source(path) as source:
        assert source.mark != before


def test_a_database_in_use_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    """A server holds the lock; one that starts meanwhile does not get it."""
    path = a_database(tmp_path / "a.db")
    before = path.read_bytes()
    with (
        lock_database(path),
        pytest.raises(StoreUnusableError, match="in use by another process"),
        open_source(path),
    ):
        pass
    with open_source(path) as source:
        with pytest.raises(StoreUnusableError, match="in use by another process"), lock_database(path):
            pass
        assert source.count(source.tables[0]) == 3
    assert path.read_bytes() == before


ROWS = st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=40)), max_size=50)
KEYS = st.lists(
    st.one_of(st.integers(), st.text(), st.binary(), st.characters(categories=["Cs"])), min_size=1
)


@given(ROWS, st.integers(1, 7), st.integers(1, 100))
def test_batches_hold_every_row_once_within_their_bounds(
    rows: list[tuple[int, bytes]], at_most: int, size: int
) -> None:
    """All rows in order; batches are neither empty nor too large, except for a single large row."""
    found = list(batches(rows, rows_at_most=at_most, bytes_at_most=size))
    assert [row for batch in found for row in batch] == rows
    assert all(1 <= len(batch) <= at_most for batch in found)
    assert all(len(batch) == 1 or sum(8 + len(row[1]) for row in batch) <= size for batch in found)


def test_rows_are_asked_for_behind_a_key() -> None:
    """A resumed transfer reads rows after the last one, in the order of the key."""
    table = Table(name="attempt", columns=("feed", "reason"), key=("feed", "url"))
    everything = "SELECT feed, reason, feed, url FROM attempt"
    assert rows_after(table, None) == (f"{everything} ORDER BY feed, url", [])
    assert rows_after(table, (1, "\udc80")) == (
        f"{everything} WHERE (feed, url) > (?, CAST(? AS TEXT)) ORDER BY feed, url",
        [1, b"\xed\xb2\x80"],
    )


@given(KEYS)
def test_a_key_survives_being_written(key: list[object]) -> None:
    """The position is stored as ASCII text, with any characters in a URL."""
    written = write_key(key)
    assert written.isascii()
    assert "\0" not in written
    assert list(read_key(written)) == key


VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.characters(categories=["Cs"]),
    st.binary(),
)
ODD_ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=20)


@given(ODD_ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_count(rows: list[tuple[object, object]], chance: random.Random) -> None:
    """The engines sort texts differently."""
    shuffled = chance.sample(rows, len(rows))
    assert digest_of(rows) == digest_of(shuffled)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([("a", "bc")], [("ab", "c")]),
        ([("a",)], [(b"a",)]),
        ([(1,)], [(1.0,)]),
        ([(1,)], [("1",)]),
        ([(None,)], [("",)]),
        ([(1,), (1,)], [(1,)]),
        ([(1763770000.123456,)], [(1763770000.0,)]),
        ([("a\0b",)], [("ab",)]),
        ([], [()]),
    ],
)
def test_what_differs_differs(one: list[tuple[object, ...]], other: list[tuple[object, ...]]) -> None:
    """Types, limits between values, number of rows and the last digit of a time all count."""
    assert digest_of(one) != digest_of(other)
