"""Rule R19: what a tombstone removes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.merge import (
    FALLEN_OUT,
    MAX_PASSED_ON,
    Burial,
    Copy,
    Place,
    choose,
    is_buried,
    place_of,
    written,
)
from wholefeed.core.model import Role, Tombstone, entry_id

NOW = 1_000_000.0
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
    """R19; RFC 6721, 3: never a copy whose instant is not after the deletion's."""
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
    """docs/design.md#the-shape-of-the-code: the result depends on what the copies are."""
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
    """R19: a deletion removes an archive's copy up to its own instant, and none that was updated later."""
    subscription = Copy(1, None, Role.SUBSCRIPTION, 0, 0, None, NOW)
    archive = Copy(2, 5.0, Role.ARCHIVE, 0, 0, None, NOW)
    assert live([subscription, archive], [Burial(5.0, FALLEN_OUT)]) == subscription
    assert live([archive], [Burial(5.0, FALLEN_OUT)]) is None
    assert live([archive], [Burial(4.9, FALLEN_OUT)]) == archive


def test_settled_is_judged_by_all_copies() -> None:
    """R8: an archive that holds a deleted copy still holds it."""
    memory = Copy(1, 9.0, Role.MEMORY, 0, 0, None, NOW)
    archive = Copy(2, 5.0, Role.ARCHIVE, 0, 0, None, NOW)
    chosen = choose(
        [memory, archive], subscription_updated_at=None, settled=True, burials=[Burial(5.0, FALLEN_OUT)]
    )
    assert chosen == memory


def test_a_fallen_tombstone_stands_between_the_subscription_document_and_the_rest() -> None:
    """R19: a tombstone that left the document deletes undated copies of older documents, none of the
    newest."""
    burials = [Burial(1.0, FALLEN_OUT)]
    assert not is_buried(None, place_of(Role.SUBSCRIPTION, 0), burials)
    for role in (Role.MEMORY, Role.ARCHIVE, Role.PAGE):
        assert is_buried(None, place_of(role, -(1 << 40)), burials)
    assert Place(0, 5) < FALLEN_OUT


def test_no_more_tombstones_are_passed_on_than_a_head_can_bear() -> None:
    """R19: of too many deletions the latest are written into the head, so that it stays readable."""
    many = [Tombstone(entry_id(str(n)), float(n), str(n)) for n in range(MAX_PASSED_ON + 5)]
    elements = written(many)
    assert len(elements) == MAX_PASSED_ON
    text = b"".join(elements)
    assert b'ref="4"' not in text
    assert b'ref="5"' in text
