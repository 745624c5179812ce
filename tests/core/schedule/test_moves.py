from __future__ import annotations

import pytest

from wholefeed.core.schedule import Move, is_believed, note_move

DAY = 86400.0


@pytest.mark.parametrize(
    ("instants", "believed"),
    [
        ([0, 1, 2], False),
        ([0, DAY + 1], False),
        ([0, DAY / 2, DAY], False),
        ([0, DAY / 2, DAY + 1], True),
        ([0, 1, 2, 3, DAY + 1], True),
    ],
)
def test_a_move_is_believed_after_three_times_over_more_than_a_day(
    instants: list[float], believed: bool
) -> None:
    """docs/faults.md row 35."""
    move = Move()
    for now in instants:
        move = note_move(move, "http://new.test/", now=now)
    assert is_believed(move, now=instants[-1]) is believed


def test_an_answer_in_the_old_place_begins_the_count_anew() -> None:
    """Row 35: a permanent redirect that was taken back, or leads elsewhere, is not remembered too early."""
    move = Move("http://new.test/", 0, 9)
    assert note_move(move, None, now=DAY * 2) == Move()
    assert note_move(move, "http://else.test/", now=DAY * 2) == Move("http://else.test/", DAY * 2, 1)


def test_a_clock_put_back_begins_the_count_anew() -> None:
    """docs/faults.md row 73."""
    assert note_move(Move("http://new.test/", 100, 2), "http://new.test/", now=50).times == 1
