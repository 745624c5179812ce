"""R34 over many refreshes: what a chain with holes asks for, keeps and tells."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.refresh.test_decision import DAY, HOUR, SEEDS, a_chain, archive
from tests.core.refresh.world import Outcome, Page, Publisher, World
from tests.makers import FEED
from wholefeed.core.model import Family, Role, State
from wholefeed.core.notes import DocumentUnavailable, End, JumpedHole, LimitReached
from wholefeed.core.refresh.port import Failure
from wholefeed.core.walk.chain import WalkLimits

GONE = Failure(slug="publisher-status", publisher_status=404)
CHANCE = random.Random(0)


def a_world(archives: int, *missing: int, **settings: object) -> World:
    """A chain of which some archives answer 404; one document is asked for at a time."""
    failing = {archive(number): GONE for number in missing}
    return World(Publisher(a_chain(archives), failing), **{"looks_ahead": False, **settings})


def numbers(world: World) -> list[int]:
    """The archives of the feed, in output order."""
    return [int(url.rpartition("/")[2]) for role, url in world.shape if role is Role.ARCHIVE]


def asked(told: Outcome) -> list[int]:
    """The archives that were asked for, in that order."""
    return [int(url.rpartition("/")[2]) for url in told.asked if url != FEED]


def missing(told: Outcome) -> dict[str, int]:
    return {each.url: each.attempts for each in told.publication.missing or ()}


def test_the_chain_goes_on_behind_its_holes_and_each_is_told() -> None:
    """R34, R16: everything that is there comes out; the feed is partial, and says where it goes on."""
    world = a_world(9, 7, 4, 3)
    told = world.refresh(CHANCE)
    assert numbers(world) == [9, 8, 6, 5, 2, 1]
    assert missing(told) == {archive(7): 1, archive(4): 1}
    assert told.publication.state is State.PARTIAL
    assert told.publication.ending is not None
    assert told.publication.ending.end is End.OLDEST
    unavailable = [DocumentUnavailable(archive(number), reason="publisher-status") for number in (7, 4)]
    jumps = [JumpedHole(archive(7), goes_on_at=archive(6)), JumpedHole(archive(4), goes_on_at=archive(2))]
    assert told.publication.notes == (unavailable[0], jumps[0], unavailable[1], jumps[1])


def test_nothing_is_asked_for_until_a_hole_is_retried() -> None:
    """R14, R34: what joined behind it is stored; what did not stays away until then, as the hole does."""
    world = a_world(9, 7, 4, 3)
    world.refresh(CHANCE)
    feed = world.publisher.pages[FEED]
    world.publisher.pages[FEED] = replace(feed, entries=("new",))
    world.now += HOUR / 2
    told = world.refresh(CHANCE)
    assert (asked(told), missing(told)) == ([], {archive(7): 1, archive(4): 1})
    assert numbers(world) == [9, 8, 6, 5, 2, 1]

    world.now += HOUR
    told = world.refresh(CHANCE)
    assert asked(told) == [7, 4, 3]
    assert missing(told) == {archive(7): 2, archive(4): 2}
    assert numbers(world) == [9, 8, 6, 5, 2, 1]


def test_each_hole_is_retried_in_its_own_time() -> None:
    """R14, R34: one that is gone for good (410) rests for a day, another an hour."""
    world = a_world(9, 7)
    world.publisher.failing[archive(4)] = replace(GONE, publisher_status=410)
    world.refresh(CHANCE)
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert (asked(told), missing(told)) == ([7], {archive(7): 2, archive(4): 1})
    world.now += DAY
    told = world.refresh(CHANCE)
    assert (asked(told), missing(told)) == ([7, 4], {archive(7): 3, archive(4): 2})


def test_an_oldest_document_that_links_to_nothing_costs_three_requests_more() -> None:
    """R34: none of them again before the missing document is tried again; none of them counts as missing."""
    world = a_world(9)
    for number in (1, 2, 3, 4, 5):
        del world.publisher.pages[archive(number)]
    told = world.refresh(CHANCE)
    assert (asked(told), missing(told)) == ([9, 8, 7, 6, 5, 4, 3, 2], {archive(5): 1})
    world.now += HOUR / 2
    assert asked(world.refresh(CHANCE)) == []
    world.now += HOUR
    assert asked(world.refresh(CHANCE)) == [5, 4, 3, 2]


@pytest.mark.parametrize("heals", [(7,), (4,), (7, 4, 3)])
def test_a_hole_that_heals_takes_its_place(heals: tuple[int, ...]) -> None:
    """R14, R20, R34: the documents stand in the order of the chain; without holes the feed is complete."""
    world = a_world(9, 7, 4, 3)
    world.refresh(CHANCE)
    for number in heals:
        del world.publisher.failing[archive(number)]
    world.now += HOUR
    told = world.refresh(CHANCE)
    there = {9, 8, 6, 5, 2, 1, *heals}
    assert numbers(world) == sorted(there, reverse=True)
    assert told.publication.state is (State.COMPLETE if len(there) == 9 else State.PARTIAL)
    assert {*missing(told)} == {archive(number) for number in (7, 4, 3) if number in {7, 4, 3} - {*heals}} - (
        {archive(3)} if 4 not in heals else set()
    )


def test_a_newest_archive_that_fails_does_not_hide_what_is_missing_behind() -> None:
    """R34: the stored chain is walked on behind it, and the hole in it is retried and told."""
    world = a_world(9, 4)
    world.refresh(CHANCE)
    feed = world.publisher.pages[FEED]
    new = Page(links={"prev-archive": archive(9)}, entries=("ten",))
    world.publisher.pages |= {FEED: replace(feed, links={"prev-archive": archive(10)}), archive(10): new}
    world.publisher.failing[archive(10)] = Failure(slug="publisher-failed", publisher_status=500)
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert missing(told) == {archive(10): 1, archive(4): 2}
    assert asked(told) == [10, 4]  # 9 is the newest one that is there (R13)
    assert numbers(world) == [9, 8, 7, 6, 5, 3, 2, 1]

    world.publisher.failing.clear()
    world.now += DAY
    told = world.refresh(CHANCE)
    assert (told.publication.state, numbers(world)) == (State.COMPLETE, [*range(10, 0, -1)])


@pytest.mark.parametrize(
    "behind",
    [
        Page(entries=("stranger",), site_id="urn:x"),
        Page(entries=(f"{FEED}#1", f"{archive(9)}#2")),
        Page(entries=()),
    ],
    ids=["another feed", "entries that are known", "no entries"],
)
def test_a_publisher_with_an_answer_to_every_url_gives_nothing_to_join(behind: Page) -> None:
    """R34: three of them are asked for and dropped; so it is at each retry."""
    world = a_world(9, 7)
    world.publisher.pages |= {archive(number): behind for number in (6, 5, 4)}
    for _ in range(2):
        told = world.refresh(CHANCE)
        assert asked(told)[-4:] == [7, 6, 5, 4]
        assert numbers(world) == [9, 8]
        assert {*missing(told)} == {archive(7)}
        assert JumpedHole.slug not in [note.slug for note in told.publication.notes]
        world.now += HOUR


def test_what_is_known_counts_as_known_though_the_walk_has_not_fetched_it() -> None:
    """R34: after a restart or a day the documents of the path come from the store, without their entries."""
    world = a_world(9, 7)
    world.refresh(CHANCE)
    world.publisher.pages = {
        url: page for url, page in world.publisher.pages.items() if url in (FEED, archive(9), archive(8))
    }
    world = World(world.publisher, looks_ahead=False)
    world.refresh(CHANCE)
    world.publisher.pages[archive(6)] = Page(entries=world.publisher.pages[archive(8)].entries)
    world.now += HOUR
    told = world.refresh(CHANCE)
    assert (asked(told), numbers(world)) == ([7, 6, 5, 4], [9, 8])


def test_what_was_replaced_is_not_brought_back_by_a_guess() -> None:
    """R15, R34: a document that its publisher replaced may still stand under its number."""
    world = a_world(6)
    world.refresh(CHANCE)
    pages = world.publisher.pages
    pages[archive(7)] = Page(links={"prev-archive": archive(3)}, entries=("four to six, shortened",))
    pages[FEED] = replace(pages[FEED], links={"prev-archive": archive(7)})
    world.now += HOUR
    world.refresh(CHANCE)
    assert numbers(world) == [7, 3, 2, 1]

    pages[archive(9)] = Page(links={"prev-archive": archive(8)}, entries=("nine",))
    pages[archive(8)] = Page(links={"prev-archive": archive(7)}, entries=("eight",))
    pages[archive(7)] = replace(pages[archive(7)], links={"prev-archive": archive(5)})
    pages[FEED] = replace(pages[FEED], links={"prev-archive": archive(9)})
    world.publisher.failing |= {archive(7): GONE, archive(5): GONE}
    world.documents = {each.id: each for each in world.documents.values() if each.url != archive(7)}
    world.now += HOUR
    told = world.refresh(CHANCE)
    assert asked(told) == [9, 8, 7]  # 6, 5 and 4 are stored and detached
    assert numbers(world) == [9, 8, 3, 2, 1]


@pytest.mark.parametrize("what", [{"is_complete": True}, {"family": Family.RSS, "links": {}}])
def test_what_left_with_the_whole_chain_comes_back_with_it(what: dict[str, Any]) -> None:
    """R1, R23, R34: a publisher that for once says that this is all, or changes its format, costs nothing."""
    world = a_world(9, 7, 4)
    world.refresh(CHANCE)
    page = world.publisher.pages[FEED]
    world.publisher.pages[FEED] = replace(page, **what)
    world.now += HOUR / 4
    world.refresh(CHANCE)
    assert numbers(world) == []
    world.publisher.pages[FEED] = replace(page, entries=("back",))
    world.now += HOUR / 4
    world.refresh(CHANCE)
    assert numbers(world) == [9, 8, 6, 5, 3, 2, 1]


def test_a_chain_with_a_hole_takes_nothing_away() -> None:
    """R15, R34: though the walk came to its oldest document, and by one that was stored."""
    world = a_world(9)
    world.refresh(CHANCE)
    pages = world.publisher.pages
    pages |= {
        archive(12): Page(links={"prev-archive": archive(11)}, entries=("twelve",)),
        archive(11): Page(links={"prev-archive": archive(10)}, entries=("eleven",)),
        archive(8): replace(pages[archive(8)], entries=("other",)),
    }
    pages[FEED] = replace(pages[FEED], links={"prev-archive": archive(12)})
    pages[archive(9)] = replace(pages[archive(9)], links={"prev-archive": archive(5)})
    world.publisher.failing[archive(10)] = GONE
    for request in ({}, {"is_full": True}):
        world.now += HOUR
        told = world.refresh(CHANCE, **request)
        assert told.publication.state is State.PARTIAL
        assert "detach" not in told.calls
        assert numbers(world) == [12, 11, *range(9, 0, -1)]


def test_an_orphan_behind_a_hole_leaves_when_the_chain_is_whole_without_it() -> None:
    """R15, R34: what joined by a guess is no more than any document in front of the joint."""
    world = a_world(9, 7)
    world.publisher.pages[archive(7)] = Page(links={"prev-archive": archive(5)}, entries=("seven",))
    world.refresh(CHANCE)
    assert numbers(world) == [9, 8, 6, 5, 4, 3, 2, 1]
    world.publisher.failing.clear()
    world.now += HOUR
    told = world.refresh(CHANCE)
    assert (told.publication.state, numbers(world)) == (State.COMPLETE, [9, 8, 7, 5, 4, 3, 2, 1])


def test_a_limit_ends_a_walk_behind_a_hole() -> None:
    """R18, R34."""
    limits = WalkLimits(documents=5, bytes=10**9, entries=10**6)
    world = a_world(9, 7, limits=limits)
    told = world.refresh(CHANCE)
    assert numbers(world) == [9, 8, 6, 5]
    assert told.publication.notes[0] == LimitReached(archive(4), limit="limits.documents_per_feed", value=5)
    assert {*missing(told)} == {archive(7), archive(4)}


def test_pages_are_walked_as_ever() -> None:
    """R6: there is no way past a page that is missing."""
    pages = a_chain(5, "next")
    failure = Failure(slug="publisher-failed", publisher_status=500)
    world = World(Publisher(pages, {archive(3): failure}), looks_ahead=False)
    assert asked(world.refresh(CHANCE)) == [5, 4, 3]


@given(st.sets(st.integers(1, 8), max_size=5), st.integers(5, 60), SEEDS, st.booleans())
def test_a_walk_that_was_killed_ends_like_one_that_was_not(
    holes: set[int], after: int, seed: int, looks_ahead: bool
) -> None:
    """R14, R34: wherever it was cut off, the same documents stand in the same order."""
    worlds = [a_world(9, *holes, looks_ahead=looks_ahead) for _ in range(2)]
    worlds[0].cut_off(random.Random(seed), after=after)
    for world in worlds:
        world.refresh(random.Random(seed))
    assert numbers(worlds[0]) == numbers(worlds[1])
    assert {*worlds[0].missing} == {*worlds[1].missing}
    assert {world.feed.visible_state for world in worlds} == {State.PARTIAL if holes else State.COMPLETE}


@given(st.lists(st.sets(st.integers(1, 9), max_size=5), min_size=1, max_size=5), SEEDS)
def test_what_was_had_stays_and_what_heals_comes_whatever_fails_when(
    stages: list[set[int]], seed: int
) -> None:
    """R25, R34: documents only ever join, in the order of the chain; in the end all are there."""
    world, chance = a_world(9), random.Random(seed)
    told, seen = None, set[int]()
    for failing in [*stages, set[int]()]:
        world.publisher.failing = {archive(number): GONE for number in failing}
        told = world.refresh(chance, is_forced=True)
        assert seen <= {*numbers(world)}
        assert numbers(world) == sorted(numbers(world), reverse=True)
        assert {*missing(told)} <= {archive(number) for number in failing}
        seen = {*numbers(world)}
        world.now += HOUR
    assert told is not None
    assert (told.publication.state, seen) == (State.COMPLETE, {*range(1, 10)})
