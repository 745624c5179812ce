"""Feeds that answers wait for, and what was held of them."""

from __future__ import annotations

from wholefeed.service.memory import Awaited


def test_a_feed_is_awaited_as_long_as_any_answer_waits() -> None:
    """Answers come and go in any order; other feeds are not waited for."""
    awaited = Awaited()
    first, second = awaited.by_answer(1), awaited.by_answer(1)
    with second:
        with first:
            assert 1 in awaited
        assert 1 in awaited
        assert 2 not in awaited
    assert 1 not in awaited


def test_what_was_left_of_a_feed_is_taken_once() -> None:
    """Of a feed that nobody waits for nothing is kept, nor beyond the last answer."""
    awaited = Awaited()
    awaited.leave(1, {0: b"x"})
    with awaited.by_answer(1):
        assert awaited.taken(1) == {}
        awaited.leave(1, {0: b"x"})
        assert awaited.taken(1) == {0: b"x"}
        assert awaited.taken(1) == {}
        awaited.leave(1, {0: b"y"})
    with awaited.by_answer(1):
        assert awaited.taken(1) == {}
        awaited.leave(1, {0: b"z"})
        awaited.leave_nothing()
        assert awaited.taken(1) == {}


def test_an_answer_that_fails_waits_no_longer() -> None:
    """However it ends."""
    awaited = Awaited()
    try:
        with awaited.by_answer(1):
            raise RuntimeError
    except RuntimeError:
        assert 1 not in awaited
