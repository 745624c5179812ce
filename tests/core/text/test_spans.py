"""wholefeed.core.words: numbers with their nouns, and spans of time, in words."""

from __future__ import annotations

import pytest

from wholefeed.core.words import ago, ahead, counted, duration

DAY = 86_400


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (90, "1 minute ago"),
        (7200, "2 hours ago"),
        (DAY, "1 day ago"),
        (800 * DAY, "2 years ago"),
        (-5, "just now"),
    ],
)
def test_how_long_ago_is_said_in_the_largest_unit(seconds: float, words: str) -> None:
    """A page tells it as a person would; a clock that jumped back makes no negative number."""
    assert ago(1000.0, 1000.0 + seconds) == words


def test_what_is_due_waits_for_a_reader() -> None:
    """Nothing is fetched by the clock alone: a feed whose time has come is refreshed when it is asked for."""
    assert ahead(1060.0, 1000.0) == "in 1 minute"
    assert ahead(900.0, 1000.0) == "when a reader asks"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0 seconds"),
        (1.9, "1 second"),
        (59, "59 seconds"),
        (3599, "59 minutes"),
        (200_000, "2 days"),
        (800 * DAY, "2 years"),
    ],
)
def test_durations_are_told_in_their_largest_unit(seconds: float, told: str) -> None:
    """Rounded down; of a clock that was put back none is below zero."""
    assert duration(seconds) == told
    assert counted(12_000, "entry", "entries") == "12,000 entries"
