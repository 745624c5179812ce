"""What is copied, in which order, and in which portions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.store.moving import Table, batches, in_order, read_key, rows_after, write_key

ROWS = st.lists(st.tuples(st.integers(0, 9), st.binary(max_size=40)), max_size=50)
KEYS = st.lists(
    st.one_of(st.integers(), st.text(), st.binary(), st.characters(categories=["Cs"])), min_size=1
)


def a_table(name: str, *parents: str) -> Table:
    return Table(name=name, columns=("a", "b"), key=("a",), parents=frozenset(parents))


def test_tables_come_after_those_they_refer_to() -> None:
    """A foreign key is held at once, so that a row's feed, document or segment must be there already."""
    tables = [a_table("body", "document"), a_table("document", "segment", "feed"), a_table("feed"),
              a_table("segment", "feed"), a_table("alone"), a_table("self", "self")]  # fmt: skip
    assert [each.name for each in in_order(tables)] == [
        "alone",
        "feed",
        "self",
        "segment",
        "document",
        "body",
    ]


@given(ROWS, st.integers(1, 7), st.integers(1, 100))
def test_batches_hold_every_row_once_within_their_bounds(
    rows: list[tuple[int, bytes]], at_most: int, size: int
) -> None:
    """All rows in their order; no batch is empty or too large, but for a row that is so by itself."""
    found = list(batches(rows, rows_at_most=at_most, bytes_at_most=size))
    assert [row for batch in found for row in batch] == rows
    assert all(1 <= len(batch) <= at_most for batch in found)
    assert all(len(batch) == 1 or sum(8 + len(row[1]) for row in batch) <= size for batch in found)


@given(KEYS)
def test_a_key_survives_being_written(key: list[object]) -> None:
    """Where a copy stands is kept as text of ASCII alone, whatever characters a URL has."""
    written = write_key(key)
    assert written.isascii()
    assert "\0" not in written
    assert list(read_key(written)) == key


def test_rows_are_asked_for_behind_a_key() -> None:
    """A copy that goes on reads what is behind the last row that came, in the order of the key."""
    table = Table(name="attempt", columns=("feed", "reason"), key=("feed", "url"))
    everything = "SELECT feed, reason, feed, url FROM attempt"
    assert rows_after(table, None) == (f"{everything} ORDER BY feed, url", [])
    assert rows_after(table, (1, "\udc80")) == (
        f"{everything} WHERE (feed, url) > (?, CAST(? AS TEXT)) ORDER BY feed, url",
        [1, b"\xed\xb2\x80"],
    )
