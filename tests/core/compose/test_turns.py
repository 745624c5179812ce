from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.compose.views import HEALED_SECONDS, Turn, Warned

NONE = Turn(Warned.NONE, None)


@pytest.mark.parametrize(
    ("before", "first_failed_at", "is_lost", "expected"),
    [
        (NONE, None, False, NONE),
        (NONE, 10.0, False, Turn(Warned.UNSENT, 10.0)),
        (Turn(Warned.UNSENT, 10.0), 10.0, False, Turn(Warned.UNSENT, 10.0)),
        (Turn(Warned.UNSENT, 10.0), None, False, Turn(Warned.NONE, 10.0)),
        (Turn(Warned.SENT, 10.0), 50.0, False, Turn(Warned.SENT, 10.0)),
        (Turn(Warned.SENT, 10.0), None, False, Turn(Warned.HEALED, 100.0)),
        (Turn(Warned.SENT, 100.0), None, False, Turn(Warned.HEALED, 101.0)),
        (Turn(Warned.SENT, 10.0), None, True, Turn(Warned.NONE, 10.0)),
        (Turn(Warned.SENT, 10.0), 50.0, True, Turn(Warned.LOST, 10.0)),
        (Turn(Warned.LOST, 10.0), None, False, Turn(Warned.NONE, 10.0)),
        (Turn(Warned.HEALED, 90.0), None, False, Turn(Warned.HEALED, 90.0)),
        (Turn(Warned.HEALED, 90.0), 50.0, False, Turn(Warned.UNSENT, 91.0)),
        (Turn(Warned.NONE, 90.0), 50.0, False, Turn(Warned.UNSENT, 91.0)),
    ],
)
def test_what_a_publication_makes_of_a_turn(
    before: Turn, first_failed_at: float | None, is_lost: bool, expected: Turn
) -> None:
    """R16: who was warned is told when all was had, and never of what was merely unlinked."""
    assert before.next(first_failed_at, is_lost=is_lost, now=100.0) == expected


def test_a_feed_says_for_a_fortnight_that_it_has_healed() -> None:
    """R16."""
    healed = Turn(Warned.HEALED, 100.0)
    assert healed.is_healed_at(100.0 + HEALED_SECONDS - 1)
    assert not healed.is_healed_at(100.0 + HEALED_SECONDS)
    assert not Turn(Warned.SENT, 100.0).is_healed_at(100.0)
    assert not NONE.is_healed_at(100.0)


@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 50)), st.booleans(), st.booleans()), max_size=20)
)
def test_each_turn_is_dated_later_than_the_last(history: list[tuple[int | None, bool, bool]]) -> None:
    """R16: whatever happens, readers take what is said last for the newest."""
    turn = NONE
    for number, (first, is_lost, is_sent) in enumerate(history):
        after = turn.next(first, is_lost=is_lost, now=float(number))
        if after.warned in (Warned.UNSENT, Warned.HEALED) and after != turn and turn.dated_at is not None:
            assert after.dated_at is not None
            assert after.dated_at > turn.dated_at
        assert (after.warned is Warned.HEALED) <= (turn.warned in (Warned.SENT, Warned.HEALED))
        turn = Turn(Warned.SENT, after.dated_at) if is_sent and after.warned is Warned.UNSENT else after
