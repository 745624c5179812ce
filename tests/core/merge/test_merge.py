from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.merge import Copy, Fullness, choose
from wholefeed.core.model import Role
from wholefeed.core.text.dates import DAY_SECONDS

NOW = 1_000_000.0


def a_copy(
    key: int = 1,
    *,
    updated_at: float | None = None,
    role: Role = Role.ARCHIVE,
    position: int = 0,
    ordinal: int = 0,
    document_updated_at: float | None = None,
    fetched_at: float = NOW,
    generated_at: float | None = None,
    is_collected: bool = False,
    fullness: Fullness = Fullness.UNKNOWN,
) -> Copy:
    return Copy(
        key,
        updated_at,
        role,
        position,
        ordinal,
        document_updated_at,
        fetched_at,
        generated_at,
        is_collected,
        fullness,
    )


def chosen(*copies: Copy, subscription_updated_at: float | None = None, settled: bool = False) -> int | None:
    live = choose(copies, subscription_updated_at=subscription_updated_at, settled=settled)
    return None if live is None else live.key


def test_the_latest_update_instant_wins_wherever_it_stands() -> None:
    """R10; RFC 5005, 4.2."""
    assert chosen(a_copy(1, updated_at=5, role=Role.SUBSCRIPTION), a_copy(2, updated_at=6, position=9)) == 2


def test_a_dated_copy_beats_an_undated_one() -> None:
    """R10."""
    assert chosen(a_copy(1, role=Role.SUBSCRIPTION, document_updated_at=9), a_copy(2, updated_at=1)) == 2


def test_an_instant_more_than_a_day_after_the_fetch_counts_as_none() -> None:
    """R10; docs/faults.md row 58."""
    assert chosen(a_copy(1, updated_at=NOW + DAY_SECONDS + 1), a_copy(2, updated_at=1)) == 2
    assert chosen(a_copy(1, updated_at=NOW + DAY_SECONDS), a_copy(2, updated_at=1)) == 1


def test_equal_instants_fall_to_the_most_recently_updated_document() -> None:
    """R10; RFC 5005, 4.2."""
    older = a_copy(1, updated_at=5, position=0, document_updated_at=7)
    newer = a_copy(2, updated_at=5, position=1, document_updated_at=8)
    assert chosen(older, newer) == 2


@pytest.mark.parametrize("updated_at", [None, 5.0])
def test_full_content_goes_before_none_and_either_before_what_was_cut(updated_at: float | None) -> None:
    """R10: without instants, or with equal ones, wherever they stand, whatever their documents' dates."""
    cut = a_copy(
        1, updated_at=updated_at, role=Role.SUBSCRIPTION, document_updated_at=9, fullness=Fullness.CUT
    )
    unknown = a_copy(2, updated_at=updated_at, role=Role.PAGE, document_updated_at=8)
    full = a_copy(3, updated_at=updated_at, role=Role.MEMORY, position=7, fullness=Fullness.FULL)
    assert [chosen(cut, unknown, full), chosen(cut, unknown), chosen(cut)] == [3, 2, 1]


def test_a_later_instant_goes_before_fuller_content() -> None:
    """R10; RFC 4287, 4.2.15: its publisher says that it was revised."""
    full = a_copy(1, updated_at=5, fullness=Fullness.FULL)
    assert chosen(full, a_copy(2, updated_at=6, fullness=Fullness.CUT)) == 2
    assert chosen(full._replace(updated_at=None), a_copy(2, updated_at=1)) == 2


@pytest.mark.parametrize("fullness", Fullness)
def test_of_equally_full_copies_the_dates_decide(fullness: Fullness) -> None:
    """R10: an edit shows, be there full content or not."""
    older = a_copy(1, document_updated_at=7, fullness=fullness)
    assert chosen(older, a_copy(2, position=9, document_updated_at=8, fullness=fullness)) == 2


@pytest.mark.parametrize("role", [Role.ARCHIVE, Role.PAGE])
def test_an_archive_or_page_is_at_most_as_recent_as_its_subscription_document(role: Role) -> None:
    """R10: some generators write "now" into every document."""
    subscription = a_copy(1, updated_at=5, role=Role.SUBSCRIPTION, document_updated_at=8)
    other = a_copy(2, updated_at=5, role=role, document_updated_at=99)
    assert chosen(subscription, other, subscription_updated_at=8) == 1


def test_at_a_tie_the_copy_nearer_the_subscription_document_stays() -> None:
    """R10."""
    copies = [
        a_copy(1, role=Role.SUBSCRIPTION, ordinal=3),
        a_copy(2, role=Role.SUBSCRIPTION, ordinal=4),
        a_copy(3, role=Role.MEMORY),
        a_copy(4, position=0),
        a_copy(5, position=1),
    ]
    while len(copies) > 1:
        assert chosen(*reversed(copies)) == copies[0].key
        del copies[0]


def test_an_archive_document_comes_before_a_page_in_the_same_place() -> None:
    """R10: what was decided does not depend on the order of arrival."""
    archive, page = a_copy(1, role=Role.ARCHIVE), a_copy(2, role=Role.PAGE)
    assert chosen(archive, page) == chosen(page, archive) == 1


def test_a_correction_in_an_earlier_subscription_document_outlives_its_leaving() -> None:
    """R8; RFC 5005, 4.1: publishers may correct an entry there instead of in the archive."""
    correction = a_copy(1, updated_at=9, role=Role.MEMORY)
    assert chosen(correction, a_copy(2, updated_at=5), settled=True) == 1


def test_remembered_copies_leave_when_no_archive_holds_a_settled_identity() -> None:
    """R8."""
    assert chosen(a_copy(1, role=Role.MEMORY), settled=True) is None
    assert chosen(a_copy(1, role=Role.MEMORY), settled=False) == 1


def test_no_copy_gives_none() -> None:
    """R10: an identity without a candidate has no live copy, and is no error."""
    assert chosen() is None


copies = st.lists(
    st.builds(
        a_copy,
        updated_at=st.none() | st.sampled_from([1.0, 2.0, NOW * 9]),
        role=st.sampled_from(list(Role)),
        position=st.integers(0, 2),
        ordinal=st.integers(0, 2),
        document_updated_at=st.none() | st.sampled_from([1.0, 2.0, 3.0]),
        generated_at=st.none() | st.sampled_from([1.0, 2.0]),
        fullness=st.sampled_from(Fullness),
    ),
    max_size=4,
).map(lambda drawn: [copy._replace(key=n) for n, copy in enumerate(drawn)])


@given(copies, st.none() | st.sampled_from([1.0, 2.0]), st.booleans())
def test_the_choice_does_not_depend_on_the_order_of_arrival(
    drawn: list[Copy], subscription_updated_at: float | None, settled: bool
) -> None:
    """R10: equal copies may stand for each other; all else is decided by what the copies are."""
    outcomes = set()
    for order in itertools.permutations(drawn):
        live = choose(order, subscription_updated_at=subscription_updated_at, settled=settled)
        outcomes.add(None if live is None else live._replace(key=0))
    if len({copy[2:5] for copy in drawn}) == len(drawn):  # no two stand in one place
        assert len(outcomes) == 1


@given(copies)
def test_an_entry_is_never_lost_unless_it_was_settled(drawn: list[Copy]) -> None:
    """R25."""
    live = choose(drawn, subscription_updated_at=None, settled=False)
    assert (live is None) == (not drawn)


@pytest.mark.parametrize("role", [Role.SUBSCRIPTION, Role.ARCHIVE, Role.PAGE])
def test_settled_entries_stay_while_a_document_holds_them(role: Role) -> None:
    """R8."""
    assert chosen(a_copy(1, role=role), settled=True) == 1


def test_a_page_that_an_adapter_asked_for_is_dated_by_itself() -> None:
    """R10: an old post that was edited stands on a page that is newer than the subscription document."""
    before = a_copy(1, role=Role.PAGE, document_updated_at=3, generated_at=10, is_collected=True)
    after = a_copy(2, role=Role.PAGE, document_updated_at=9, generated_at=20, is_collected=True, position=8)
    assert chosen(before, after, subscription_updated_at=5) == 2


def test_a_page_that_an_adapter_asked_for_is_no_newer_than_its_receipt() -> None:
    """R10: a publisher that dates its pages in the future gains nothing by it."""
    ahead = a_copy(1, role=Role.PAGE, document_updated_at=NOW + 9, generated_at=NOW, is_collected=True)
    later = a_copy(
        2,
        role=Role.PAGE,
        document_updated_at=NOW + 5,
        fetched_at=NOW + 5,
        generated_at=NOW + 5,
        is_collected=True,
        position=8,
    )
    assert chosen(ahead, later) == 2


@pytest.mark.parametrize("made_at", [None, NOW])
def test_a_remembered_copy_is_as_old_as_the_document_it_stood_in(made_at: float | None) -> None:
    """R10: whatever stands nearer, and whenever it was remembered; one of unknown age gives way."""
    memory = a_copy(1, role=Role.MEMORY, generated_at=made_at, fetched_at=NOW + 99)
    page = a_copy(2, role=Role.PAGE, generated_at=NOW + 60, is_collected=True, fetched_at=NOW + 60)
    assert chosen(memory, page) == 2
    assert chosen(memory._replace(generated_at=NOW + 61), page) == 1


@pytest.mark.parametrize("document_updated_at", [None, 7.0])
def test_of_pages_of_one_date_the_one_made_later_stays(document_updated_at: float | None) -> None:
    """R10: an edited RSS item bears no date of its own; whatever stands nearer, the later answer has it."""
    first = a_copy(1, role=Role.SUBSCRIPTION, document_updated_at=document_updated_at, generated_at=NOW)
    later = a_copy(
        2,
        role=Role.PAGE,
        document_updated_at=document_updated_at,
        generated_at=NOW + 60,
        is_collected=True,
        fetched_at=NOW + 60,
    )
    assert chosen(first, later, subscription_updated_at=document_updated_at) == 2
