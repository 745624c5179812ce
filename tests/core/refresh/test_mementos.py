"""R33 in decisions: what becomes of a web archive's copies while their publisher is asked again."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given

from tests.core.refresh.test_decision import DAY, HOUR, SEEDS, a_chain, archive
from tests.core.refresh.world import Outcome, Page, Publisher, World
from tests.makers import FEED
from wholefeed.core.model import Family, Kind, Role, State
from wholefeed.core.notes import ArchiveChanged, MementoServed
from wholefeed.core.refresh.port import Attempt, Failure

COPY = "http://archive.test/web/20190501120000id_/"
GONE = Failure(slug="publisher-status", publisher_status=404)
CHANCE = random.Random(0)


def a_world(archives: int, *copied: int, chance: random.Random = CHANCE) -> World:
    """A chain that was walked, of which the publisher no longer gives some archives; copies stand in."""
    pages = a_chain(archives)
    world = World(Publisher(pages, {archive(number): GONE for number in copied}), looks_ahead=False)
    world.refresh(chance)
    for number in copied:
        page = replace(pages[archive(number)], is_marked=False)
        world.put(archive(number), page, Role.ARCHIVE, None, memento=COPY + archive(number))
    world.now += 1
    return world


def numbers(world: World) -> list[int]:
    """The archives of the feed, in output order."""
    return [int(url.rpartition("/")[2]) for role, url in world.shape if role is Role.ARCHIVE]


def asked(told: Outcome) -> list[str]:
    return [url for url in told.asked if url != FEED]


def missing(told: Outcome) -> dict[str, Attempt]:
    return {each.url: each for each in told.publication.missing or ()}


@given(SEEDS)
def test_a_copy_takes_its_place_and_its_publisher_is_left_alone(seed: int) -> None:
    """R33, R14: until its time has come; what lies behind it is asked for at once."""
    world = a_world(5, 3, chance=random.Random(seed))
    told = world.refresh(random.Random(seed))
    assert numbers(world) == [5, 4, 3, 2, 1]
    assert archive(3) not in told.asked
    assert told.publication.state is State.PARTIAL
    assert missing(told).keys() == {archive(3)}
    assert missing(told)[archive(3)].reason == "publisher-status"
    (note,) = [each for each in told.publication.notes if each.kind is MementoServed]
    assert (note.url, note.facts["copy_url"]) == (archive(3), COPY + archive(3))


def test_a_copy_stays_while_its_publisher_fails_again() -> None:
    """R33, R14: each attempt counts."""
    world = a_world(5, 3)
    world.refresh(CHANCE)
    for attempts in (2, 3):
        world.now += DAY
        told = world.refresh(CHANCE)
        assert asked(told).count(archive(3)) == 1
        assert missing(told)[archive(3)].attempts == attempts
        assert numbers(world) == [5, 4, 3, 2, 1]
        assert told.publication.state is State.PARTIAL


def test_its_publisher_s_own_document_takes_its_place() -> None:
    """R33: whole, and without a word of a change: nobody changed it."""
    world = a_world(5, 3)
    world.refresh(CHANCE)
    del world.publisher.failing[archive(3)]
    own = replace(world.publisher.pages[archive(3)], entries=("own",))
    world.publisher.pages[archive(3)] = own
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert told.publication.state is State.COMPLETE
    assert numbers(world) == [5, 4, 3, 2, 1]
    assert not any(each.kind in (ArchiveChanged, MementoServed) for each in told.publication.notes)
    (row,) = [each for each in world.attached if each.url == archive(3)]
    assert (row.memento, row.is_final) == ("", True)


def test_another_format_does_not_take_its_place() -> None:
    """R33, R23: an error at the retry changes nothing."""
    world = a_world(5, 3)
    world.refresh(CHANCE)
    del world.publisher.failing[archive(3)]
    world.publisher.pages[archive(3)] = Page(family=Family.RSS, entries=("page",))
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert archive(3) in asked(told)
    assert numbers(world) == [5, 4, 3, 2, 1]
    assert missing(told).keys() == {archive(3)}
    (row,) = [each for each in world.attached if each.url == archive(3)]
    assert row.memento


def test_a_copy_on_the_path_takes_nothing_away() -> None:
    """R33, R15: though the path rejoins the chain, and comes to its end."""
    world = a_world(5, 3)
    world.refresh(CHANCE)
    new = Page(links={"prev-archive": archive(1)}, entries=("new",), is_marked=False)
    feed = world.publisher.pages[FEED]
    world.publisher.pages[FEED] = replace(
        feed, links={**feed.links, "prev-archive": archive(9)}, entries=("newest",)
    )
    world.publisher.failing[archive(9)] = GONE
    world.now += DAY
    world.refresh(CHANCE)
    world.put(archive(9), new, Role.ARCHIVE, None, memento=COPY + archive(9))
    told = world.refresh(CHANCE)
    assert set(numbers(world)) == {9, 5, 4, 3, 2, 1}
    assert "detach" not in told.calls


def test_a_full_refresh_asks_for_what_copies_stand_in_for() -> None:
    """R33, R14."""
    world = a_world(4, 2)
    world.refresh(CHANCE)
    told = world.refresh(CHANCE, is_full=True)
    assert archive(2) in asked(told)
    assert numbers(world) == [4, 3, 2, 1]


def test_a_copy_of_a_page_stands_in_for_it() -> None:
    """R33, R6: it is asked for in its time like the others, and replaced even by the same body."""
    pages = {
        FEED: Page(links={"next": archive(2)}, entries=("c",)),
        archive(2): Page(links={"next": archive(1)}, entries=("b",)),
        archive(1): Page(entries=("a",)),
    }
    failing = {archive(2): Failure(slug="publisher-status", publisher_status=500)}
    world = World(Publisher(pages, failing), looks_ahead=False)
    world.refresh(CHANCE)
    world.put(archive(2), pages[archive(2)], Role.PAGE, None, memento=COPY + archive(2))
    world.now += 1
    told = world.refresh(CHANCE)
    assert [url for _, url in world.shape] == [FEED, archive(2), archive(1)]
    assert (told.publication.state, set(missing(told))) == (State.PARTIAL, {archive(2)})
    assert archive(2) not in told.asked

    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert archive(2) in told.asked
    assert missing(told)[archive(2)].attempts == 2

    world.publisher.failing.clear()
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert told.publication.state is State.PAGED
    assert [row.memento for row in world.attached] == ["", "", ""]


def test_copies_of_a_subscription_document_keep_the_feed_partial() -> None:
    """R33: they are told together, with the times of the first and the last."""
    world = World(Publisher({FEED: Page(entries=("a",))}))
    world.refresh(CHANCE)
    for year, at in ((2015, 1_430_000_000.0), (2017, 1_490_000_000.0)):
        copy = f"{COPY}{year}"
        number = world.put(copy, Page(entries=(f"y{year}",)), Role.PAGE, -int(at), memento=copy)
        world.change(number, fetched_at=at)
    told = world.refresh(CHANCE)
    assert told.publication.state is State.PARTIAL
    (note,) = told.publication.notes
    assert note.kind is MementoServed
    assert (note.url, note.facts["copies"]) == (FEED, 2)
    assert note.facts["captured"] == "2015-04-25T22:13:20Z to 2017-03-20T08:53:20Z"
    assert world.feed.kind is Kind.PLAIN
    assert missing(told).keys() == {FEED}

    world.publisher.pages[FEED] = Page(entries=("a",), is_complete=True)
    told = world.refresh(CHANCE)
    assert told.publication.state is State.COMPLETE  # R1: what the publisher says of it counts
    assert [each.role for each in world.attached] == [Role.SUBSCRIPTION]


def test_a_copy_makes_no_refresh_walk() -> None:
    """R33, R13: though it is never settled; there is an attempt, and its time counts."""
    world = a_world(3, 2)
    world.refresh(CHANCE)
    world.now += HOUR / 2
    told = world.refresh(CHANCE)
    assert (told.asked, told.published) == ([FEED], [])


def test_copies_of_a_subscription_document_keep_their_places_among_pages() -> None:
    """R33, R20: behind all pages, the newest first, however the publisher turns those round."""
    pages = {
        FEED: Page(links={"next": archive(2)}, entries=("c",)),
        archive(2): Page(links={"next": archive(1)}, entries=("b",)),
        archive(1): Page(entries=("a",)),
    }
    world = World(Publisher(pages), looks_ahead=False)
    world.refresh(CHANCE)
    copy = f"{COPY}2015"
    number = world.put(copy, Page(entries=("old",)), Role.PAGE, 1 << 39, memento=copy)
    world.publisher.pages = {
        FEED: Page(links={"next": archive(1)}, entries=("d", "c")),
        archive(1): Page(links={"next": archive(2)}, entries=("a", "new")),
        archive(2): Page(entries=("b",)),
    }
    world.now += DAY
    told = world.refresh(CHANCE, is_full=True)
    assert [url for _, url in world.shape] == [FEED, archive(1), archive(2), copy]
    assert told.ranked
    assert number not in told.ranked
