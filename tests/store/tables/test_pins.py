from __future__ import annotations

import pytest

from wholefeed.store.tables.segments import Pins


def test_a_segment_is_held_until_its_last_user_leaves() -> None:
    """Row 66a: a segment that two answers send is kept until both have ended."""
    pins = Pins()
    with pins.held(7, [1, 2]):
        with pins.held(7, [2, 3]):
            assert pins.segments == {1, 2, 3}
        assert pins.segments == {1, 2}
        assert pins.sent == {7}
    assert (pins.segments, pins.sent) == (frozenset(), frozenset())


def fail_while_held(pins: Pins) -> None:
    with pins.reading(1), pins.held(7, iter([5])):
        assert (pins.feeds, pins.segments) == (frozenset([1]), frozenset([5]))
        raise KeyError


def test_an_error_lets_go() -> None:
    """Row 66: an answer that breaks off does not keep its segments from being removed for ever."""
    pins = Pins()
    with pytest.raises(KeyError):
        fail_while_held(pins)
    assert (pins.feeds, pins.segments) == (frozenset(), frozenset())
