from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.refresh.world import Outcome, Page, Publisher, World, asked_twice, incremental
from tests.makers import FEED
from wholefeed.core.model import IMPORT_URL, Family, Role, State
from wholefeed.core.notes import (
    DocumentUnavailable,
    End,
    JumpedHole,
    LimitReached,
    MementoServed,
    NewerNotOlder,
)
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.arrivals import Failure
from wholefeed.core.walk.chain import WalkLimits

HOUR, DAY = 3600.0, 86_400.0
O = "http://o.test"  # noqa: E741
FAILURES = st.sampled_from(
    [
        Failure(slug="timeout"),
        Failure(slug="publisher-status", publisher_status=404),
        Failure(slug="publisher-status", publisher_status=503, retry_after_seconds=120.0),
        Failure(slug="not-a-feed"),
    ]
)
SEEDS = st.integers(0, 2**32)


def archive(number: int) -> str:
    return f"{O}/archive/{number}"


def a_chain(archives: int, relation: str = "prev-archive", **changes: object) -> dict[str, Page]:
    """The subscription document, then the archives from the highest number, the newest, to 1."""
    urls = [FEED, *(archive(number) for number in range(archives, 0, -1))]
    pages = {}
    for place, url in enumerate(urls):
        links = {relation: urls[place + 1]} if place + 1 < len(urls) else {}
        pages[url] = Page(links=links, entries=(f"{url}#1", f"{url}#2"), **changes)  # type: ignore[arg-type]
    return pages


@st.composite
def publishers(draw: st.DrawFn) -> Publisher:
    """Chains, legacy chains, paged feeds and complete ones, with gaps, loops and other formats."""
    relation = draw(st.sampled_from(["prev-archive", "prev-archive", "prev", "previous", "next", "first"]))
    count = draw(st.integers(0, 7))
    pages = a_chain(count, relation)
    if relation == "first":  # the others lead from the first page on by `next`
        pages = a_chain(count, "next")
        pages[FEED] = replace(pages[FEED], links={**pages[FEED].links, "first": archive(max(count, 1))})
    for url in list(pages):
        page, chance = pages[url], draw(st.integers(0, 19))
        if url != FEED:
            page = replace(page, is_marked=draw(st.booleans()), is_uncacheable=draw(st.booleans()))
            if chance == 0:
                page = replace(page, links={relation: draw(st.sampled_from(sorted(pages)))})
            elif chance == 1:
                page = replace(page, family=Family.RSS)
            elif chance == 2:
                page = replace(page, entries=draw(st.sampled_from(list(pages.values()))).entries)
        elif chance == 0:
            page = replace(page, is_complete=True)
        elif chance == 1:
            page = replace(page, links=incremental(page.links))
        pages[url] = page
    others = [url for url in pages if url != FEED]
    failing = draw(st.dictionaries(st.sampled_from(others), FAILURES, max_size=2)) if others else {}
    return Publisher(pages, failing)


@st.composite
def changed(draw: st.DrawFn, publisher: Publisher) -> Publisher:
    pages, failing = dict(publisher.pages), dict(publisher.failing)
    for _ in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(["entry", "relink", "heal", "fail", "front", "edit", "remove"]))
        url = draw(st.sampled_from(sorted(pages)))
        feed = pages[FEED]
        if what == "entry":
            pages[FEED] = replace(feed, entries=(f"new-{draw(st.integers(0, 99))}", *feed.entries[:1]))
        elif what == "relink":
            target = draw(st.sampled_from(sorted(pages)))
            relation = next((name for name in pages[url].links if "prev" in name or name == "next"), "")
            if relation:
                pages[url] = replace(pages[url], links={**pages[url].links, relation: target})
        elif what == "heal":
            failing.clear()
        elif what == "fail" and url != FEED:
            failing[url] = draw(FAILURES)
        elif what == "front" and "prev-archive" in feed.links:
            new = archive(50 + draw(st.integers(0, 9)))
            pages[new] = Page(links={"prev-archive": feed.links["prev-archive"]}, entries=(f"{new}#1",))
            pages[FEED] = replace(feed, links={**feed.links, "prev-archive": new})
        elif what == "edit":
            pages[url] = replace(
                pages[url], entries=(*pages[url].entries, f"edit-{draw(st.integers(0, 99))}")
            )
        elif what == "remove" and url != FEED:
            del pages[url]
    return Publisher(pages, failing)


def outcome(world: World, told: Outcome) -> object:
    """A refresh's result for readers, for any order of arrival."""
    final = told.publication
    shown = [
        (attempt.url, attempt.reason, attempt.attempts, attempt.next_at) for attempt in final.missing or ()
    ]
    return world.shape, final.state, final.notes, final.ending, shown


@given(publishers(), st.data(), SEEDS, SEEDS)
def test_any_order_of_arrivals_ends_in_the_same_publication(
    publisher: Publisher, data: st.DataObject, one: int, other: int
) -> None:
    """R2, R6, R14: for any look-ahead, early links and network delays."""
    worlds = [World(publisher), World(publisher, looks_ahead=False)]
    chances = [random.Random(one), random.Random(other)]
    later = data.draw(changed(publisher))
    for is_full in (False, False, data.draw(st.booleans())):
        results = []
        for world, chance in zip(worlds, chances, strict=True):
            told = world.refresh(chance, is_forced=True, is_full=is_full)
            results.append(outcome(world, told))
            world.publisher = later
            world.now += HOUR
        assert results[0] == results[1]


@given(publishers(), st.data(), SEEDS)
def test_nothing_is_asked_for_twice_in_one_refresh(
    publisher: Publisher, data: st.DataObject, seed: int
) -> None:
    """R14, R17: neither by guess and link, nor along two trails."""
    world, chance = World(publisher), random.Random(seed)
    later = data.draw(changed(publisher))
    for request in ({}, {"is_forced": True}, {"is_full": True}):
        told = world.refresh(chance, **request)
        assert asked_twice(told.asked) == []
        world.publisher = later
        world.now += HOUR


@given(publishers(), st.data(), SEEDS)
def test_nothing_leaves_but_by_the_rules_that_say_so(
    publisher: Publisher, data: st.DataObject, seed: int
) -> None:
    """R25: R1 and R5; R15 after a walk to the true end; another format (R23)."""
    world, chance = World(publisher), random.Random(seed)
    world.refresh(chance)
    for is_full in (False, data.draw(st.booleans()), False):
        world.publisher = data.draw(changed(world.publisher))
        world.now += HOUR
        before = [each for each in world.attached if each.role in (Role.ARCHIVE, Role.PAGE)]
        told = world.refresh(chance, is_forced=True, is_full=is_full)
        left = [each for each in before if world.documents[each.id].rank is None]
        feed = world.publisher.pages[FEED]
        if not left or feed.is_complete:
            continue
        assert {each.role for each in left} == {Role.ARCHIVE}
        assert told.publication.state is State.COMPLETE
        assert "fh:incremental" not in feed.links
        stored = [each.id for each in before if each.role is Role.ARCHIVE]
        stayed = [stored.index(each) for each in stored if world.documents[each].rank is not None]
        assert is_full or max(stored.index(each.id) for each in left) < max(stayed)


@given(publishers(), SEEDS)
def test_a_publisher_that_did_not_change_is_asked_for_the_subscription_document_alone(
    publisher: Publisher, seed: int
) -> None:
    """R13, R14: or, where `next` leads to newer pages, the last one too (R6)."""
    world, chance = World(publisher), random.Random(seed)
    first = world.refresh(chance)
    world.now += 30.0 if world.missing else 3 * DAY  # before anything that failed is due
    shape = world.shape

    again = world.refresh(chance)

    assert again.asked == [FEED]
    assert world.shape == shape
    if again.published:
        assert again.publication.state is first.publication.state
        assert again.publication.missing == first.publication.missing


@given(publishers(), SEEDS)
def test_a_subscription_document_that_fails_changes_nothing(publisher: Publisher, seed: int) -> None:
    """R14: stored documents serve as stale, and the failure counts up."""
    world, chance = World(publisher), random.Random(seed)
    world.refresh(chance)
    shape, missing = world.shape, dict(world.missing)
    world.publisher = Publisher(publisher.pages, {FEED: Failure(slug="timeout")})
    for times in (1, 2):
        told = world.refresh(chance, is_forced=True)
        assert (told.asked, told.published, world.shape, world.missing) == ([FEED], [], shape, missing)
        assert not told.has_subscription
        assert world.failure is not None
        assert world.failure.attempts == times
    world.publisher = publisher
    world.refresh(chance)
    assert world.failure is None


@pytest.mark.parametrize("after", range(1, 60))
def test_a_refresh_that_is_cut_off_anywhere_is_made_up_for(after: int) -> None:
    """R14: the next refresh asks for the unstored rest and ends the same."""
    whole = World(Publisher(a_chain(5)))
    whole.refresh(random.Random(1))
    world = World(Publisher(a_chain(5)))
    world.cut_off(random.Random(after), after)
    kept = {each.url for each in world.attached if each.role is Role.ARCHIVE}

    again = world.refresh(random.Random(after))

    assert kept.isdisjoint(again.asked)
    assert (world.shape, world.feed.state, world.feed.is_walking) == (whole.shape, State.COMPLETE, False)
    assert world.missing == {}


def test_a_chain_is_walked_to_its_end_and_published_as_complete() -> None:
    """R2: in order, with the newest archive not settled yet (R13)."""
    world = World(Publisher(a_chain(3)))
    told = world.refresh(random.Random(0))
    assert [each.state for each in told.published] == [State.LOADING, State.COMPLETE]
    assert told.publication.ending is not None
    assert told.publication.ending.end is End.OLDEST
    assert told.publication.missing == ()
    assert [url for _, url in world.shape] == [FEED, archive(3), archive(2), archive(1)]
    assert [each.is_settled for each in world.attached] == [False, False, True, True]


def test_a_gap_is_published_as_missing_and_tried_again_in_its_time() -> None:
    """R14, R16."""
    world = World(Publisher(a_chain(3), {archive(2): Failure(slug="timeout")}))
    told = world.refresh(random.Random(0))
    assert told.publication.state is State.PARTIAL
    jump = JumpedHole(archive(2), goes_on_at=archive(1))
    assert told.publication.notes == (DocumentUnavailable(archive(2), reason="timeout"), jump)
    assert [(each.url, each.attempts) for each in told.publication.missing or ()] == [(archive(2), 1)]

    world.now += 30.0
    assert world.refresh(random.Random(0)).asked == [FEED]
    world.now += HOUR
    told = world.refresh(random.Random(0))
    assert archive(2) in told.asked
    assert [(each.url, each.attempts) for each in told.publication.missing or ()] == [(archive(2), 2)]

    world.publisher.failing.clear()
    told = world.refresh(random.Random(0), is_forced=True)
    assert (told.publication.state, told.publication.missing) == (State.COMPLETE, ())


def test_a_request_that_may_not_walk_asks_for_the_subscription_document_alone() -> None:
    """For HEAD of an unknown feed."""
    world = World(Publisher(a_chain(3)))
    told = world.refresh(random.Random(0), may_walk=False)
    assert told.asked == [FEED]
    assert [each.state for each in told.published] == [State.LOADING]
    assert told.publication.missing is None


def test_a_walk_that_was_cut_off_is_finished_though_the_publisher_has_not_changed() -> None:
    """R14, R16: also if the feed had been published as complete."""
    pages = a_chain(2)
    world = World(Publisher(pages))
    world.refresh(random.Random(0))
    pages[FEED] = replace(pages[FEED], links={"prev-archive": archive(4)})
    for number in (4, 3):
        pages[archive(number)] = Page(links={"prev-archive": archive(number - 1)}, entries=(f"new-{number}",))
    world.now += HOUR
    told = world.cut_off(random.Random(0), after=9)
    assert "fetch" in told.calls
    world.feed = replace(world.feed, published_revision=world.feed.revision)  # nothing else is unfinished
    assert world.feed.visible_state is State.LOADING

    again = world.refresh(random.Random(0))

    assert set(again.asked) == {FEED, archive(4), archive(3), archive(2)}  # 2 is looked at for the last time
    assert (world.feed.visible_state, len(world.shape)) == (State.COMPLETE, 5)


@pytest.mark.parametrize("has_changed", [False, True])
def test_bodies_are_read_again_where_an_older_parser_has_read_one_and_only_there(has_changed: bool) -> None:
    """docs/design.md#the-store: also for unchanged and for detached documents."""
    world = World(Publisher(a_chain(1)))
    first = world.refresh(random.Random(0))
    world.put(archive(9), Page(entries=("old",)), Role.ARCHIVE, None, parser_version=PARSER_VERSION - 1)
    if has_changed:
        page = world.publisher.pages[FEED]
        world.publisher.pages[FEED] = replace(page, entries=("new", *page.entries))
    world.now += HOUR

    again = world.refresh(random.Random(0))

    assert "reread" not in first.calls
    assert "reread" in again.calls


@pytest.mark.parametrize("seed", range(8))
def test_a_gap_is_left_alone_when_the_head_of_a_new_archive_names_it(seed: int) -> None:
    """R0, R14: an early link does not shorten the pause."""
    world = World(Publisher(a_chain(2), {archive(2): Failure(slug="timeout")}), looks_ahead=False)
    world.refresh(random.Random(seed))
    world.publisher.pages = a_chain(3)
    world.now += 30.0

    told = world.refresh(random.Random(seed))

    assert told.asked == [FEED, archive(3)]


def test_a_path_with_a_gap_takes_nothing_away_and_a_whole_one_what_it_passes_by() -> None:
    """R15, R25: archive 3 was replaced, effective after a walk to the true end."""
    world = World(Publisher(a_chain(4)))
    world.refresh(random.Random(0))
    pages = world.publisher.pages
    pages[FEED] = replace(pages[FEED], links={"prev-archive": archive(5)})
    pages[archive(5)] = Page(links={"prev-archive": archive(2)}, entries=("new",))
    one = next(each for each in world.attached if each.url == archive(1))
    del world.documents[one.id]  # never stored: a gap behind the joint
    world.publisher.failing[archive(1)] = Failure(slug="timeout")
    world.now += HOUR

    told = world.refresh(random.Random(0))
    assert told.publication.state is State.PARTIAL
    assert [url for _, url in world.shape] == [FEED, archive(5), archive(4), archive(3), archive(2)]

    world.publisher.failing.clear()
    told = world.refresh(random.Random(0), is_forced=True)
    assert told.publication.state is State.COMPLETE
    assert [url for _, url in world.shape] == [FEED, archive(5), archive(2), archive(1)]


def test_nothing_leaves_a_chain_whose_earlier_entries_are_part_of_the_feed() -> None:
    """R15; draft-00, 3: incremental."""
    world = World(Publisher(a_chain(3)))
    world.refresh(random.Random(0))
    pages = world.publisher.pages
    pages[FEED] = replace(pages[FEED], links=incremental({"prev-archive": archive(1)}))
    world.now += HOUR
    world.refresh(random.Random(0), is_full=True)
    assert {url for _, url in world.shape} == {FEED, archive(3), archive(2), archive(1)}


@pytest.mark.parametrize("seed", range(20))
def test_a_page_that_repeats_the_one_before_is_not_kept_whichever_comes_first(seed: int) -> None:
    """R6: fetched ahead or not."""
    pages = a_chain(6, "next")
    pages[archive(2)] = replace(pages[archive(2)], entries=pages[archive(3)].entries)
    pages[FEED] = replace(pages[FEED], links={**pages[FEED].links, "last": archive(1)})
    for url in pages:
        pages[url] = replace(pages[url], links={**pages[url].links, "last": archive(1)})
    world = World(Publisher(pages))
    world.refresh(random.Random(seed))
    assert [url for _, url in world.shape] == [FEED, *(archive(number) for number in (6, 5, 4, 3, 1))]


@pytest.mark.parametrize("seed", range(60))
def test_what_comes_while_a_walk_waits_for_its_turn_is_not_asked_for_twice(seed: int) -> None:
    """R14: a page is guessed, then named by the head before it."""
    whole = {
        url: replace(page, links={**page.links, "last": archive(1)})
        for url, page in a_chain(6, "next").items()
    }
    pages = dict(whole)
    pages[archive(3)] = replace(pages[archive(3)], links={"last": archive(3)})
    world = World(Publisher({url: pages[url] for url in (FEED, *map(archive, (6, 5, 4, 3)))}))
    world.refresh(random.Random(seed))
    world.publisher = Publisher(whole)
    told = world.refresh(random.Random(seed), is_full=True)
    assert asked_twice(told.asked) == []
    assert len(world.shape) == 7


def test_what_a_doubtful_chain_has_brought_is_not_asked_for_again_among_pages() -> None:
    """R4, R6: for the newer target of a bare `prev`."""
    pages = a_chain(2, "prev")
    empty = replace(pages[archive(2)], entries=())
    pages[archive(2)] = empty
    pages[FEED] = replace(pages[FEED], links={"previous": archive(2), "current": FEED, "next": archive(1)})
    told = World(Publisher(pages)).refresh(random.Random(0))
    assert asked_twice(told.asked) == []
    assert told.publication.state is State.PAGED
    assert NewerNotOlder(archive(2)) in told.publication.notes


def test_no_archive_is_looked_at_while_the_subscription_document_has_not_changed() -> None:
    """R13: neither the newest archive, nor in a forced refresh."""
    world = World(Publisher(a_chain(3)))
    world.refresh(random.Random(0))
    world.now += 3 * DAY
    assert world.refresh(random.Random(0), is_forced=True).asked == [FEED]
    assert len(world.refresh(random.Random(0), is_full=True).asked) == 4


@pytest.mark.parametrize("seed", range(8))
def test_no_head_is_read_early_for_what_is_guessed_anyway(seed: int) -> None:
    """R0: look-ahead already has the links of documents under way whose URLs count on.

    The head of the walk's current document is always read early: it shows wrong guesses.
    """
    told = World(Publisher(a_chain(20)), window=3).refresh(random.Random(seed))
    assert any(len(foreseen) == 2 for _, foreseen in told.foreseen)
    for under_way, foreseen in told.foreseen:
        next_on_path = max(under_way, key=lambda url: int(url.rpartition("/")[2]))
        assert next_on_path not in foreseen
        assert len(under_way) >= 3 or not foreseen


@pytest.mark.parametrize("seed", range(8))
def test_heads_are_read_early_where_urls_do_not_count_on(seed: int) -> None:
    """R0: only its head shows the next document."""
    names = [FEED, *(f"{O}/{name}" for name in ("ash", "beech", "elm", "fir", "oak", "yew"))]
    links = [{"prev-archive": behind} for behind in names[1:]] + [{}]
    pages = {url: Page(links=each, entries=(url,)) for url, each in zip(names, links, strict=True)}
    told = World(Publisher(pages), window=2).refresh(random.Random(seed))
    assert not any(foreseen for _, foreseen in told.foreseen)


GONE = Failure(slug="publisher-status", publisher_status=404)
CHANCE = random.Random(0)


def a_world(archives: int, *missing: int, **settings: object) -> World:
    """A chain with some archives answering 404; one request at a time."""
    failing = {archive(number): GONE for number in missing}
    return World(Publisher(a_chain(archives), failing), **{"looks_ahead": False, **settings})


def numbers(world: World) -> list[int]:
    return [int(url.rpartition("/")[2]) for role, url in world.shape if role is Role.ARCHIVE]


def asked(told: Outcome) -> list[int]:
    return [int(url.rpartition("/")[2]) for url in told.asked if url != FEED]


def missing(told: Outcome) -> dict[str, int]:
    return {each.url: each.attempts for each in told.publication.missing or ()}


def test_the_chain_goes_on_behind_its_holes_and_each_is_told() -> None:
    """R34, R16: all documents are published; the partial feed tells its holes."""
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
    """R14, R34: documents joined behind it are stored; others wait for the retry, like the hole."""
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
    """R14, R34: one gone for good (410) waits a day, another an hour."""
    world = a_world(9, 7)
    world.publisher.failing[archive(4)] = replace(GONE, publisher_status=410)
    world.refresh(CHANCE)
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert (asked(told), missing(told)) == ([7], {archive(7): 2, archive(4): 1})
    world.now += DAY
    told = world.refresh(CHANCE)
    assert (asked(told), missing(told)) == ([7, 4], {archive(7): 3, archive(4): 2})


def test_a_newest_archive_that_fails_does_not_hide_what_is_missing_behind() -> None:
    """R34: the walk goes on along the stored chain to its hole."""
    world = a_world(9, 4)
    world.refresh(CHANCE)
    feed = world.publisher.pages[FEED]
    new = Page(links={"prev-archive": archive(9)}, entries=("ten",))
    world.publisher.pages |= {FEED: replace(feed, links={"prev-archive": archive(10)}), archive(10): new}
    world.publisher.failing[archive(10)] = Failure(slug="publisher-failed", publisher_status=500)
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert missing(told) == {archive(10): 1, archive(4): 2}
    assert asked(told) == [10, 4]  # 9 is the newest existing one (R13)
    assert numbers(world) == [9, 8, 7, 6, 5, 3, 2, 1]

    world.publisher.failing.clear()
    world.now += DAY
    told = world.refresh(CHANCE)
    assert (told.publication.state, numbers(world)) == (State.COMPLETE, [*range(10, 0, -1)])


def test_what_is_known_counts_as_known_though_the_walk_has_not_fetched_it() -> None:
    """R34: after a restart or a day, documents come from the store without entries."""
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
    """R15, R34: a replaced document may still exist under its number."""
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
    """R1, R23, R34: a one-time claim of completeness, or change of format."""
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


def test_an_orphan_behind_a_hole_leaves_when_the_chain_is_whole_without_it() -> None:
    """R15, R34: joining by a guess gives no more right to stay."""
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
    """R6: no way leads past a missing page."""
    pages = a_chain(5, "next")
    failure = Failure(slug="publisher-failed", publisher_status=500)
    world = World(Publisher(pages, {archive(3): failure}), looks_ahead=False)
    assert asked(world.refresh(CHANCE)) == [5, 4, 3]


@given(st.sets(st.integers(1, 8), max_size=5), st.integers(5, 60), SEEDS, st.booleans())
def test_a_walk_that_was_killed_ends_like_one_that_was_not(
    holes: set[int], after: int, seed: int, looks_ahead: bool
) -> None:
    """R14, R34: the same documents in the same order."""
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
    """R25, R34: documents only join, in the chain's order, and finally all."""
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


COPY = "http://archive.test/web/20190501120000id_/"


def a_copied_world(archives: int, *copied: int, chance: random.Random = CHANCE) -> World:
    """A walked chain with mementos for some archives that the publisher no longer has."""
    pages = a_chain(archives)
    world = World(Publisher(pages, {archive(number): GONE for number in copied}), looks_ahead=False)
    world.refresh(chance)
    for number in copied:
        page = replace(pages[archive(number)], is_marked=False)
        world.put(archive(number), page, Role.ARCHIVE, None, memento=COPY + archive(number))
    world.now += 1
    return world


@given(SEEDS)
def test_a_copy_takes_its_place_and_its_publisher_is_left_alone(seed: int) -> None:
    """R33, R14: until the next attempt; documents behind are fetched at once."""
    world = a_copied_world(5, 3, chance=random.Random(seed))
    told = world.refresh(random.Random(seed))
    assert numbers(world) == [5, 4, 3, 2, 1]
    assert archive(3) not in told.asked
    assert told.publication.state is State.PARTIAL
    assert missing(told).keys() == {archive(3)}
    assert [each.reason for each in told.publication.missing or ()] == ["publisher-status"]
    (note,) = [each for each in told.publication.notes if each.kind is MementoServed]
    assert (note.url, note.facts["copy_url"]) == (archive(3), COPY + archive(3))


def test_another_format_does_not_take_its_place() -> None:
    """R33, R23: a failure at the retry changes nothing."""
    world = a_copied_world(5, 3)
    world.refresh(CHANCE)
    del world.publisher.failing[archive(3)]
    world.publisher.pages[archive(3)] = Page(family=Family.RSS, entries=("page",))
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert archive(3) in told.asked
    assert numbers(world) == [5, 4, 3, 2, 1]
    assert missing(told).keys() == {archive(3)}
    (row,) = [each for each in world.attached if each.url == archive(3)]
    assert row.memento


def test_a_full_refresh_asks_for_what_copies_stand_in_for() -> None:
    """R33, R14."""
    world = a_copied_world(4, 2)
    world.refresh(CHANCE)
    told = world.refresh(CHANCE, is_full=True)
    assert archive(2) in told.asked
    assert numbers(world) == [4, 3, 2, 1]


def test_a_copy_of_a_page_stands_in_for_it() -> None:
    """R33, R6: the page is retried in its time; even an equal body replaces the memento."""
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
    assert missing(told)[archive(2)] == 2

    world.publisher.failing.clear()
    world.now += 2 * HOUR
    told = world.refresh(CHANCE)
    assert told.publication.state is State.PAGED
    assert [row.memento for row in world.attached] == ["", "", ""]


def test_a_copy_makes_no_refresh_walk() -> None:
    """R33, R13: a memento is never settled, but its attempt sets the time."""
    world = a_copied_world(3, 2)
    world.refresh(CHANCE)
    world.now += HOUR / 2
    told = world.refresh(CHANCE)
    assert (told.asked, told.published) == ([FEED], [])


def test_copies_of_a_subscription_document_keep_their_places_among_pages() -> None:
    """R33, R20: after all pages, newest first, in any direction of pages."""
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


# Imports of documents (I1)

KEPT = f"{IMPORT_URL}1"


def with_import(world: World, *entries: str) -> Outcome:
    world.kept = {KEPT: Page(entries=entries)}
    return world.refresh(random.Random(0))


def test_an_import_asks_nobody_and_changes_no_state() -> None:
    """I1: a feed at rest keeps its state; imports stand behind all else."""
    for state, pages in (("remembered", a_chain(0)), ("partial", a_chain(2)), ("paged", a_chain(2, "next"))):
        if state == "partial":
            del pages[archive(1)]
        world = World(Publisher(pages))
        before = world.refresh(random.Random(0)).publication
        assert before.state == state
        told = with_import(world, "old")
        assert (told.asked, told.publication.state, told.publication.notes) == ([], before.state, ())
        assert (told.publication.ending, told.publication.missing) == (None, None)
        assert world.shape[-1] == (Role.PAGE, KEPT)
        assert world.refresh(random.Random(0)).asked == [FEED]
        assert world.shape[-1] == (Role.PAGE, KEPT)


@pytest.mark.parametrize("is_chain", [True, False])
def test_an_import_is_no_part_of_a_complete_feed(is_chain: bool) -> None:
    """I1, R1, R2: it joins when the feed is not complete, and leaves when it is again."""
    publisher = Publisher(a_chain(2) if is_chain else {FEED: Page(entries=("a",), is_complete=True)})
    whole = publisher.pages[FEED]
    world = World(publisher)
    world.refresh(random.Random(0))
    assert with_import(world, "old").publication.state is State.COMPLETE
    assert (Role.PAGE, KEPT) not in world.shape
    publisher.pages[FEED] = Page(entries=("b",))
    assert world.refresh(random.Random(0)).publication.state is State.REMEMBERED
    assert (Role.PAGE, KEPT) in world.shape
    publisher.pages[FEED] = whole
    assert world.refresh(random.Random(0)).publication.state is State.COMPLETE
    assert (Role.PAGE, KEPT) not in world.shape


def test_an_import_into_an_unfinished_feed_finishes_it_first() -> None:
    """I1, R14: the earlier refresh's work is done first, and the result is published."""
    world = World(Publisher(a_chain(2)))
    world.cut_off(random.Random(0), 12)
    told = with_import(world, "old")
    assert FEED in told.asked
    assert told.publication.state is State.COMPLETE
    assert (Role.PAGE, KEPT) not in world.shape


def test_what_is_taken_back_is_kept_no_longer() -> None:
    """I1."""
    world = World(Publisher(a_chain(0)))
    world.refresh(random.Random(0))
    with_import(world, "old")
    told = world.refresh(random.Random(0), removes=(KEPT,))
    assert (told.asked, told.calls[:1]) == ([], ["remove"])
    assert KEPT not in [each.url for each in world.documents.values()]


def test_an_import_of_another_format_waits_for_its_own() -> None:
    """I1, R23."""
    publisher = Publisher({FEED: Page(entries=("a",))})
    world = World(publisher)
    world.refresh(random.Random(0))
    with_import(world, "old")
    publisher.pages[FEED] = Page(entries=("a",), family=Family.RSS)
    world.refresh(random.Random(0))
    assert (Role.PAGE, KEPT) not in world.shape
    publisher.pages[FEED] = Page(entries=("a", "b"))
    world.refresh(random.Random(0))
    assert (Role.PAGE, KEPT) in world.shape
