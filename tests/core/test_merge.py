from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.merge import (
    FALLEN_OUT,
    FORGOTTEN,
    MAX_PASSED_ON,
    OTHER,
    Burial,
    ComparedEntry,
    Copy,
    CopyPlace,
    CopyStanding,
    Fullness,
    choose,
    forgotten_at,
    is_buried,
    place_of,
    replacement,
    written,
)
from wholefeed.core.model import Role, Tombstone, entry_id
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
    standing: int = CopyStanding.OWN,
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
        standing,
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
    """R10: without instants, or with equal ones, for any place and date of the documents."""
    cut = a_copy(
        1, updated_at=updated_at, role=Role.SUBSCRIPTION, document_updated_at=9, fullness=Fullness.CUT
    )
    unknown = a_copy(2, updated_at=updated_at, role=Role.PAGE, document_updated_at=8)
    full = a_copy(3, updated_at=updated_at, role=Role.MEMORY, position=7, fullness=Fullness.FULL)
    assert [chosen(cut, unknown, full), chosen(cut, unknown), chosen(cut)] == [3, 2, 1]


def test_a_later_instant_goes_before_fuller_content() -> None:
    """R10; RFC 4287, 4.2.15: its publisher marks it as revised."""
    full = a_copy(1, updated_at=5, fullness=Fullness.FULL)
    assert chosen(full, a_copy(2, updated_at=6, fullness=Fullness.CUT)) == 2
    assert chosen(full._replace(updated_at=None), a_copy(2, updated_at=1)) == 2


@pytest.mark.parametrize("fullness", Fullness)
def test_of_equally_full_copies_the_dates_decide(fullness: Fullness) -> None:
    """R10: an edit shows, with or without full content."""
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
    """R10: the decision is independent of the order of arrival."""
    archive, page = a_copy(1, role=Role.ARCHIVE), a_copy(2, role=Role.PAGE)
    assert chosen(archive, page) == chosen(page, archive) == 1


def test_a_correction_in_an_earlier_subscription_document_outlives_its_leaving() -> None:
    """R8; RFC 5005, 4.1: publishers may correct an entry there and not in the archive."""
    correction = a_copy(1, updated_at=9, role=Role.MEMORY)
    assert chosen(correction, a_copy(2, updated_at=5), settled=True) == 1


def test_remembered_copies_leave_when_no_archive_holds_a_settled_identity() -> None:
    """R8."""
    assert chosen(a_copy(1, role=Role.MEMORY), settled=True) is None
    assert chosen(a_copy(1, role=Role.MEMORY), settled=False) == 1


def test_no_copy_gives_none() -> None:
    """R10: an identity without candidates has no live copy, and is no error."""
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
        standing=st.sampled_from(CopyStanding),
    ),
    max_size=4,
).map(lambda drawn: [copy._replace(key=n) for n, copy in enumerate(drawn)])


@given(copies, st.none() | st.sampled_from([1.0, 2.0]), st.booleans())
def test_the_choice_does_not_depend_on_the_order_of_arrival(
    drawn: list[Copy], subscription_updated_at: float | None, settled: bool
) -> None:
    """R10: equal copies are interchangeable; the copies decide everything else."""
    outcomes = set()
    for order in itertools.permutations(drawn):
        live = choose(order, subscription_updated_at=subscription_updated_at, settled=settled)
        outcomes.add(None if live is None else live._replace(key=0))
    if len({copy[2:5] for copy in drawn}) == len(drawn):  # no two stand in one place
        assert len(outcomes) == 1


@given(copies, st.none() | st.sampled_from([1.0, 2.0]))
def test_what_was_added_goes_behind_all_else(
    drawn: list[Copy], subscription_updated_at: float | None
) -> None:
    """I1, H6: imports, then entries merely listed, for any claims of their own.

    The usual rules apply among themselves.
    """
    live = choose(drawn, subscription_updated_at=subscription_updated_at, settled=False)
    if live is not None:
        best = max(copy.standing for copy in drawn)
        plain = [copy._replace(standing=CopyStanding.OWN) for copy in drawn if copy.standing == best]
        same = choose(plain, subscription_updated_at=subscription_updated_at, settled=False)
        assert same == live._replace(standing=CopyStanding.OWN)
        assert live.standing == best


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
    """R10: an edited old post makes it newer than the subscription document."""
    before = a_copy(1, role=Role.PAGE, document_updated_at=3, generated_at=10, is_collected=True)
    after = a_copy(2, role=Role.PAGE, document_updated_at=9, generated_at=20, is_collected=True, position=8)
    assert chosen(before, after, subscription_updated_at=5) == 2


def test_a_page_that_an_adapter_asked_for_is_no_newer_than_its_receipt() -> None:
    """R10: a publisher gains nothing from dates in the future."""
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
    """R10: for any nearer copy; one of unknown age loses."""
    memory = a_copy(1, role=Role.MEMORY, generated_at=made_at, fetched_at=NOW + 99)
    page = a_copy(2, role=Role.PAGE, generated_at=NOW + 60, is_collected=True, fetched_at=NOW + 60)
    assert chosen(memory, page) == 2
    assert chosen(memory._replace(generated_at=NOW + 61), page) == 1


@pytest.mark.parametrize("document_updated_at", [None, 7.0])
def test_of_pages_of_one_date_the_one_made_later_stays(document_updated_at: float | None) -> None:
    """R10: an edited RSS item has no own date; the later response has it, in any place."""
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


CUT, UNKNOWN, FULL = Fullness


def said(
    name: str, fullness: int | None = FULL, *, at: float | None = None, size: int = 100
) -> ComparedEntry:
    return ComparedEntry(entry_id(name), at, size, fullness)


def names(identities: Sequence[bytes]) -> list[str]:
    return [next(name for name in "abcd" if entry_id(name) == each) for each in identities]


def test_what_does_not_stand_there_any_more_is_gone() -> None:
    """R7, R8."""
    found = replacement([said("a"), said("b")], [said("b"), said("c")])
    assert (names(found.gone), found.fuller, found.needs_texts) == (["a"], [], False)
    assert found.present == {entry_id("b"): FULL}


def test_what_was_fuller_is_told_and_so_is_what_may_have_been() -> None:
    """R10: earlier rows do not say so."""
    old = [said("a", FULL), said("b", UNKNOWN), said("c", None), said("d", CUT)]
    found = replacement(old, [said(name, UNKNOWN) for name in "abcd"])
    assert names(found.fuller) == ["a", "c"]


def test_another_instant_is_another_revision() -> None:
    """R10: fullness counts only without instants, or with equal ones."""
    for before, now in ((None, 1.0), (1.0, None), (1.0, 2.0), (2.0, 1.0)):
        found = replacement([said("a", at=before)], [said("a", UNKNOWN, at=now, size=9)])
        assert (found.fuller, found.needs_texts, found.present) == ([], False, {entry_id("a"): OTHER})
    assert replacement([said("a", at=1.0)], [said("a", UNKNOWN, at=1.0)]).fuller


def test_texts_are_compared_where_half_of_the_entries_have_become_smaller() -> None:
    """R10: a cut affects many; a telling element makes comparison needless."""
    old = [said(name) for name in "abcd"]
    few = [said("a", size=9), *(said(name) for name in "bcd")]
    half = [said("a", size=9), said("b", size=9), said("c"), said("d", size=200)]
    lost = [said(name, UNKNOWN, size=9) for name in "abcd"]
    assert [replacement(old, new).needs_texts for new in (few, half, lost)] == [False, True, False]
    assert names(replacement(old, half).fuller) == ["a", "b"]


def test_texts_are_compared_where_some_were_cut_before() -> None:
    """R10: an unchanged cut text is still cut."""
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
def test_where_an_identity_repeats_the_latest_and_fullest_stands(new: list[ComparedEntry]) -> None:
    """R10: in any order."""
    old = [said(name, at=1.0) for name in "abcd"]
    found = {str(replacement(old, order).present) for order in itertools.permutations(new)}
    assert len(found) == 1


ROLES = st.sampled_from(list(Role))
PLACES = st.builds(place_of, ROLES, st.integers(-3, 3)) | st.just(FALLEN_OUT)
BURIALS = st.lists(st.builds(Burial, st.floats(0, 9), PLACES), max_size=3)
COPIES = st.lists(
    st.builds(
        Copy,
        key=st.integers(),
        updated_at=st.none() | st.floats(0, 9) | st.just(NOW * 9),
        role=ROLES,
        position=st.integers(-3, 3),
        ordinal=st.integers(0, 3),
        document_updated_at=st.none() | st.floats(0, 9),
        fetched_at=st.just(NOW),
        standing=st.just(CopyStanding.OWN),
    ),
    unique_by=lambda copy: (copy.role, copy.position, copy.ordinal),
    max_size=5,
)


def live(copies: list[Copy], burials: list[Burial]) -> Copy | None:
    return choose(copies, subscription_updated_at=None, settled=False, burials=burials)


@given(COPIES, BURIALS)
def test_what_lives_was_updated_after_every_deletion_or_stands_before_it(
    copies: list[Copy], burials: list[Burial]
) -> None:
    """R19; RFC 6721, 3: instants up to the deletion's are removed."""
    chosen = live(copies, burials)
    if chosen is None:
        return
    for burial in burials:
        if chosen.updated_at is not None and chosen.updated_at <= NOW:
            assert chosen.updated_at > burial.when_at
        else:
            assert place_of(chosen.role, chosen.position) < burial.place


@given(COPIES, BURIALS, st.randoms(use_true_random=False))
def test_the_order_of_copies_and_tombstones_is_of_no_account(
    copies: list[Copy], burials: list[Burial], random: object
) -> None:
    """docs/design.md#the-shape-of-the-code: only the copies decide the result."""
    expected = live(copies, burials)
    random.shuffle(copies)  # type: ignore[attr-defined]
    random.shuffle(burials)  # type: ignore[attr-defined]
    assert live(copies, burials) == expected


@given(COPIES, BURIALS)
def test_an_update_after_all_deletions_always_lives(copies: list[Copy], burials: list[Burial]) -> None:
    """R19."""
    update = Copy(-1, 10.0, Role.PAGE, 9, 9, None, NOW)
    chosen = live([*copies, update], burials)
    assert chosen is not None
    assert chosen.updated_at == 10.0


@given(COPIES)
def test_without_tombstones_nothing_is_removed(copies: list[Copy]) -> None:
    """R25."""
    assert (live(copies, []) is None) == (not copies)


def test_a_buried_copy_makes_way_for_one_that_is_not() -> None:
    """R19: a deletion removes copies up to its own instant only."""
    subscription = Copy(1, None, Role.SUBSCRIPTION, 0, 0, None, NOW)
    archive = Copy(2, 5.0, Role.ARCHIVE, 0, 0, None, NOW)
    assert live([subscription, archive], [Burial(5.0, FALLEN_OUT)]) == subscription
    assert live([archive], [Burial(5.0, FALLEN_OUT)]) is None
    assert live([archive], [Burial(4.9, FALLEN_OUT)]) == archive


def test_settled_is_judged_by_all_copies() -> None:
    """R8: an archive with a deleted copy still has it."""
    memory = Copy(1, 9.0, Role.MEMORY, 0, 0, None, NOW)
    archive = Copy(2, 5.0, Role.ARCHIVE, 0, 0, None, NOW)
    chosen = choose(
        [memory, archive], subscription_updated_at=None, settled=True, burials=[Burial(5.0, FALLEN_OUT)]
    )
    assert chosen == memory


def test_a_fallen_tombstone_stands_between_the_subscription_document_and_the_rest() -> None:
    """R19: a tombstone that left the document deletes undated copies in older documents only."""
    burials = [Burial(1.0, FALLEN_OUT)]
    assert not is_buried(None, place_of(Role.SUBSCRIPTION, 0), burials)
    for role in (Role.MEMORY, Role.ARCHIVE, Role.PAGE):
        assert is_buried(None, place_of(role, -(1 << 40)), burials)
    assert CopyPlace(0, 5) < FALLEN_OUT


def test_no_more_tombstones_are_passed_on_than_a_head_can_bear() -> None:
    """R19: the latest are written, so that the head stays readable."""
    many = [Tombstone(entry_id(str(n)), float(n), str(n)) for n in range(MAX_PASSED_ON + 5)]
    elements = written(many)
    assert len(elements) == MAX_PASSED_ON
    text = b"".join(elements)
    assert b'ref="4"' not in text
    assert b'ref="5"' in text


@pytest.mark.parametrize("role", Role)
def test_what_was_removed_stays_away_until_it_is_updated(role: Role) -> None:
    """I2: an undated copy anywhere, even if a publisher's tombstone spares it (R19)."""
    removed = [Burial(5.0, FORGOTTEN)]
    for updated_at, is_there in [(None, False), (4.0, False), (5.0, False), (6.0, True)]:
        copy = a_copy(1, updated_at=updated_at, role=role)
        live = choose([copy], subscription_updated_at=None, settled=False, burials=removed)
        assert (live is not None) is is_there
    in_the_future = a_copy(1, updated_at=NOW + DAY_SECONDS + 1, role=role)
    assert choose([in_the_future], subscription_updated_at=None, settled=False, burials=removed) is None


@pytest.mark.parametrize(
    ("copies", "instant"),
    [
        ([(3.0, NOW), (7.0, NOW), (None, NOW)], 7.0),
        ([(3.0, NOW), (NOW + 2 * DAY_SECONDS, NOW)], 3.0),
        ([(None, NOW)], 9.0),
        ([], 9.0),
    ],
    ids=["the latest", "but none in the future", "without any the time of the removal", "nor a copy"],
)
def test_a_removal_is_dated_like_the_latest_copy(
    copies: list[tuple[float | None, float]], instant: float
) -> None:
    """I2: an update published before the removal still counts when it arrives later."""
    assert forgotten_at(copies, now=9.0) == instant
