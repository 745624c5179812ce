"""The number by which two databases are compared."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.store.moving import digest_of

VALUES = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.characters(categories=["Cs"]),
    st.binary(),
)
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=20)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_count(rows: list[tuple[object, object]], chance: random.Random) -> None:
    """The engines sort texts each in their own way."""
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
    """Kinds, limits between values, number of rows and the last digit of a time all count."""
    assert digest_of(one) != digest_of(other)


def test_what_no_database_holds_is_refused() -> None:
    """A kind that one driver gives and the other does not would never compare."""
    with pytest.raises(TypeError, match="expected what a database holds, got list"):
        digest_of([[[]]])
