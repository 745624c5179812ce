from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.walk.drift import settle_path

IDS = st.lists(st.integers(0, 12), unique=True, max_size=8)


@pytest.mark.parametrize(
    ("stored", "path", "detached", "order", "is_reordered"),
    [
        pytest.param([], [1, 2], [], [1, 2], False, id="the first walk"),
        pytest.param([1, 2], [1, 2], [], [1, 2], False, id="nothing new"),
        pytest.param([1, 2], [3, 1, 2], [], [3, 1, 2], False, id="a new archive in front"),
        pytest.param([1, 2, 3], [4, 2, 3], [1], [4, 2, 3], False, id="the newest one replaced"),
        pytest.param([1, 2, 3], [1, 4, 3], [2], [1, 4, 3], True, id="the middle replaced"),
        pytest.param([1, 2, 3], [3], [1, 2], [3], False, id="the link skips some"),
        pytest.param([1, 2, 3], [1], [], [1, 2, 3], False, id="a dropped tail"),
        pytest.param([1, 2, 3], [4, 1], [], [4, 1, 2, 3], False, id="a dropped tail behind a new archive"),
        pytest.param([1, 2], [3, 4], [], [3, 4, 1, 2], False, id="a chain renamed throughout"),
        pytest.param([1, 2], [], [], [1, 2], False, id="the subscription document lost its link"),
        pytest.param([1, 2, 3], [2, 1, 3], [], [2, 1, 3], True, id="another order"),
        pytest.param([1, 2, 3], [1, 4], [], [1, 4, 2, 3], True, id="another tail"),
    ],
)
def test_a_path_to_the_true_end_replaces_what_stood_in_front_of_the_joint(
    stored: list[int], path: list[int], detached: list[int], order: list[int], is_reordered: bool
) -> None:
    """R15."""
    drift = settle_path(stored, path, is_true_end=True)
    assert (drift.detached, drift.order) == (tuple(detached), tuple(order))
    assert drift.is_reordered is is_reordered


@pytest.mark.parametrize(
    ("stored", "path", "order"),
    [
        pytest.param([1, 2, 3], [4], [4, 1, 2, 3], id="before it rejoins"),
        pytest.param([1, 2, 3], [4, 2], [4, 1, 2, 3], id="after it rejoined"),
        pytest.param([1, 2, 3], [1, 4], [1, 4, 2, 3], id="a new one behind a stored one"),
    ],
)
def test_a_path_that_ended_early_takes_nothing_away(
    stored: list[int], path: list[int], order: list[int]
) -> None:
    """R15, R25."""
    drift = settle_path(stored, path, is_true_end=False)
    assert (drift.detached, drift.order) == ((), tuple(order))


def test_a_full_refresh_takes_the_publishers_chain_for_the_truth() -> None:
    """R14."""
    drift = settle_path([1, 2, 3], [4, 1], is_true_end=True, is_full=True)
    assert (drift.detached, drift.order) == ((2, 3), (4, 1))
    assert settle_path([1, 2], [4], is_true_end=False, is_full=True).detached == ()


@given(IDS, IDS, st.booleans(), st.booleans())
def test_every_document_is_in_the_order_once_or_detached(
    stored: list[int], path: list[int], is_true_end: bool, is_full: bool
) -> None:
    """R25: no other rule removes documents."""
    drift = settle_path(stored, path, is_true_end=is_true_end, is_full=is_full)
    assert sorted([*drift.order, *drift.detached]) == sorted({*stored, *path})
    assert not set(drift.detached) & set(path)
    assert [document for document in drift.order if document in path] == path
    again = settle_path(drift.order, path, is_true_end=is_true_end, is_full=is_full)
    assert again.detached == () or is_true_end
    if not is_full:
        assert settle_path(drift.order, path, is_true_end=False).order == drift.order
