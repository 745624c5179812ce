"""Places of entries with their text in another document, or in none (`wholefeed.core.compose.ordering`)."""

from __future__ import annotations

import pytest

from wholefeed.core.compose.ordering import Block, Homes, Pair, Slots, is_descending, key_of, sequence
from wholefeed.core.compose.weaving import UNDATED, Members, Spot, WovenMember

INDEX = {1: 0, 2: 1, 3: 2, 4: 3}
"""A subscription document, a memory document and two archives."""


def test_an_entry_stands_in_the_first_document_that_holds_it() -> None:
    """R20: for any copy with the served text; a remembered copy gives no place."""
    homes = Homes(INDEX, [2])
    homes.add(
        [Pair(2, 0, True, 4, 5), Pair(2, 0, True, 3, 1), Pair(4, 2, True, 1, 0), Pair(3, 4, True, 2, 7)]
    )
    assert homes.by_copy == {(2, 0): (3, 1), (4, 2): (1, 0)}
    assert homes.shared == {1, 2, 3, 4}


def test_a_copy_in_a_detached_document_gives_no_place() -> None:
    """R20."""
    homes = Homes(INDEX, [2])
    assert homes.add([Pair(2, 0, True, 9, 0)]) == set()


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ([1.0, 3.0, 2.0], [(2, 1.0), (0, 3.0), (1, 2.0)]),
        ([None, 3.0, None], [(0, 3.0), (1, 3.0), (2, 3.0)]),
        ([None, None], [(0, UNDATED), (1, UNDATED)]),
    ],
)
def test_the_entries_of_a_document_stand_as_they_are_sent(
    dates: list[float | None], expected: list[tuple[int, float]]
) -> None:
    """R20: an undated entry gets the date of the entry before it."""
    assert sequence(dates) == expected


def a_block(first: int, oldest: float | None, newest: float | None) -> Block:
    return Block(first, oldest, newest, (first,), (first,))


@pytest.mark.parametrize(
    ("date", "place"),
    [(95.0, 0), (90.0, 2), (85.0, 2), (70.0, 3), (65.0, 3), (45.0, 4), (40.0, 4), (10.0, 5)],
)
def test_a_date_stands_behind_all_that_is_newer_throughout(date: float, place: int) -> None:
    """R20: among equal dates, after the subscription document's and before others'."""
    blocks = [a_block(0, 90, 100), a_block(2, 75, 85), a_block(3, 50, 70), a_block(4, 20, 40)]
    assert Slots(blocks, 5).at(date) == place


def test_one_old_entry_in_the_newest_document_moves_nothing_to_the_top() -> None:
    """R20: pinned entries are such a case."""
    blocks = [a_block(0, 1, 100), a_block(2, 75, 85), a_block(3, 50, 70)]
    assert Slots(blocks, 4).at(72.0) == 3
    assert Slots(blocks, 4).at(90.0) == 0, "it stands in front of the pinned one"


def test_a_segment_is_parted_where_something_stands_within() -> None:
    """R20: inside a document or between two; not before the segment."""
    segment = (2, 3)
    blocks = [a_block(0, 90, 100), Block(2, 75, 85, (2,), segment), Block(3, 50, 70, (3,), segment)]
    slots = Slots(blocks, 4)
    assert slots.find_parted(87.0) is None
    assert slots.find_parted(80.0) == blocks[1]
    assert slots.find_parted(72.0) == blocks[2]
    assert not blocks[2].is_in(72.0)
    assert slots.find_parted(10.0) is None


@pytest.mark.parametrize(("remembered", "expected"), [((60, 80), True), ((60, 95), False), ((40, 80), False)])
def test_remembered_documents_that_stand_by_their_dates_stay_whole(
    remembered: tuple[float, float], expected: bool
) -> None:
    """R20."""
    blocks = [a_block(0, 90, 100), a_block(1, *remembered), a_block(2, 20, 50)]
    assert is_descending(blocks, [1]) is expected


def test_keys_sort_entries_as_they_stand() -> None:
    """R20: by place in a document, other entries by date."""
    slots = Slots([Block(0, 90, 100, (1,)), Block(2, 50, 70, (3,))], 4)
    held = [
        WovenMember(1, 0, 1, 100.0, Spot(1, 0)),
        WovenMember(2, 5, 1, 90.0, Spot(1, 1)),
        WovenMember(2, 1, 1, UNDATED, Spot(None, 0)),
        WovenMember(2, 2, 1, 80.0, Spot(None, 0)),
        WovenMember(3, 0, 1, 70.0, Spot(3, 0)),
        WovenMember(2, 3, 1, 60.0, Spot(None, 0)),
        WovenMember(3, 1, 1, 50.0, Spot(3, 1)),
        WovenMember(2, 4, 1, 10.0, Spot(None, 0)),
    ]
    keys = [key_of(member, INDEX, slots) for member in held]
    assert keys == sorted(keys)


def test_members_with_spots_are_read_as_they_were_written() -> None:
    """A segment stores its entries' places, also for documents without text in it."""
    stamps = {1: b"a" * 16, 2: b"b" * 16, 3: b"c" * 16}
    held = [WovenMember(2, 4, 100, 17.5, Spot(3, 2)), WovenMember(2, 0, 7, UNDATED, Spot(None, 0))]
    members = Members.read(Members.of(held, stamps).written())
    assert (list(members), list(members.stamps), members.has_spots) == (held, [2, 3], True)
    assert members.ends == tuple(held)
