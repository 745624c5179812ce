"""wholefeed.core.merge: what becomes of the entries of a document when another one takes its place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.merge import OTHER, Fullness, Said, replacement
from wholefeed.core.model import entry_id

CUT, UNKNOWN, FULL = Fullness


def said(name: str, fullness: int | None = FULL, *, at: float | None = None, size: int = 100) -> Said:
    return Said(entry_id(name), at, size, fullness)


def names(identities: Sequence[bytes]) -> list[str]:
    return [next(name for name in "abcd" if entry_id(name) == each) for each in identities]


def test_what_does_not_stand_there_any_more_is_gone() -> None:
    """R7, R8."""
    found = replacement([said("a"), said("b")], [said("b"), said("c")])
    assert (names(found.gone), found.fuller, found.needs_texts) == (["a"], [], False)
    assert found.present == {entry_id("b"): FULL}


def test_what_was_fuller_is_told_and_so_is_what_may_have_been() -> None:
    """R10: rows of before say nothing of it."""
    old = [said("a", FULL), said("b", UNKNOWN), said("c", None), said("d", CUT)]
    found = replacement(old, [said(name, UNKNOWN) for name in "abcd"])
    assert names(found.fuller) == ["a", "c"]


def test_another_instant_is_another_revision() -> None:
    """R10: without instants, or with equal ones, fullness counts."""
    for before, now in ((None, 1.0), (1.0, None), (1.0, 2.0), (2.0, 1.0)):
        found = replacement([said("a", at=before)], [said("a", UNKNOWN, at=now, size=9)])
        assert (found.fuller, found.needs_texts, found.present) == ([], False, {entry_id("a"): OTHER})
    assert replacement([said("a", at=1.0)], [said("a", UNKNOWN, at=1.0)]).fuller


def test_texts_are_compared_where_half_of_the_entries_have_become_smaller() -> None:
    """R10: what cuts texts cuts many; where the element tells already nothing need be compared."""
    old = [said(name) for name in "abcd"]
    few = [said("a", size=9), *(said(name) for name in "bcd")]
    half = [said("a", size=9), said("b", size=9), said("c"), said("d", size=200)]
    lost = [said(name, UNKNOWN, size=9) for name in "abcd"]
    assert [replacement(old, new).needs_texts for new in (few, half, lost)] == [False, True, False]
    assert names(replacement(old, half).fuller) == ["a", "b"]


def test_texts_are_compared_where_some_were_cut_before() -> None:
    """R10: what says the same is cut still."""
    found = replacement([said("a", CUT)], [said("a", UNKNOWN)])
    assert (found.fuller, found.needs_texts) == ([], True)


@given(
    st.lists(
        st.builds(
            said,
            st.sampled_from("abcd"),
            st.sampled_from(Fullness),
            at=st.none() | st.sampled_from([1.0, 2.0]),
            size=st.sampled_from([9, 100]),
        ),
        max_size=4,
    )
)
def test_where_an_identity_repeats_the_latest_and_fullest_stands(new: list[Said]) -> None:
    """R10: whatever their order."""
    old = [said(name, at=1.0) for name in "abcd"]
    found = {str(replacement(old, order).present) for order in itertools.permutations(new)}
    assert len(found) == 1
