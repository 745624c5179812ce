"""tests.simulated: random stories, without faults of our own, and without chance."""

from __future__ import annotations

import pytest

from tests.simulated.stories import a_story, play

FIRST, COUNT, PER_TEST = 101, 96, 12
ERRORS = ("Error(", "Exception(", "refresh.failed", "feed.unkept", "feed.unpublished")
"""Reasons of a refresh that failed by the program's own fault."""


@pytest.fixture(autouse=True)
def no_blocking_call() -> None:
    """Let the store run on the loop itself, so that its answers take no time."""


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, PER_TEST))
def test_no_story_ends_in_an_error_of_our_own(first: int) -> None:
    """For any publishers, any order of documents, and any kill of a refresh."""
    for seed in range(first, first + PER_TEST):
        record = play(a_story(seed))
        said = [each for refresh in record.refreshes for each in (refresh.ends, *refresh.log)]
        wrong = {each for each in said if any(error in each for error in ERRORS)}
        assert (record.troubles, wrong) == ([], set()), f"python -m tests.simulated --show {seed}"


@pytest.mark.parametrize("seed", range(1001, 1005))
def test_what_becomes_of_a_story_is_no_matter_of_turns_of_the_loop(seed: int) -> None:
    """So another implementation can be compared: only the passed time counts."""
    assert play(a_story(seed)).line() == play(a_story(seed), idles=2).line()


def test_refreshes_are_killed_in_the_middle() -> None:
    """A fifth of them; after some the program starts on the documents stored by then."""
    ends = [each.ends for seed in range(1, 25) for each in play(a_story(seed)).refreshes]
    killed = [each for each in ends if each.startswith(("killed", "dropped"))]
    assert len(killed) > len(ends) / 8
    assert {"dropped", "killed, cancelled", "done"} <= {*ends}
