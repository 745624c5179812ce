"""The decision of a refresh, whatever its publisher does and in whatever order it comes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.refresh.world import Outcome, Page, Publisher, World, asked_twice, incremental
from tests.makers import FEED
from wholefeed.core.model import Family, Role, State
from wholefeed.core.notes import DocumentUnavailable, End, JumpedHole, NewerNotOlder, PageGone
from wholefeed.core.parse.limits import PARSER_VERSION
from wholefeed.core.refresh.port import Failure

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
    """The subscription document, and archives from the newest, which has the highest number, to 1."""
    urls = [FEED, *(archive(number) for number in range(archives, 0, -1))]
    pages = {}
    for place, url in enumerate(urls):
        links = {relation: urls[place + 1]} if place + 1 < len(urls) else {}
        pages[url] = Page(links=links, entries=(f"{url}#1", f"{url}#2"), **changes)  # type: ignore[arg-type]
    return pages


@st.composite
def publishers(draw: st.DrawFn) -> Publisher:
    """Chains, legacy chains, paged feeds and complete ones; gaps, loops, and other formats in them."""
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
    """The publisher some time later."""
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
    """What a reader gets to see of a refresh, whatever the order in which documents came."""
    final = told.publication
    shown = [
        (attempt.url, attempt.reason, attempt.attempts, attempt.next_at) for attempt in final.missing or ()
    ]
    return world.shape, final.state, final.notes, final.ending, shown


@given(publishers(), st.data(), SEEDS, SEEDS)
def test_any_order_of_arrivals_ends_in_the_same_publication(
    publisher: Publisher, data: st.DataObject, one: int, other: int
) -> None:
    """R2, R6, R14: look-ahead, early links and the network's whims change nothing of what is published."""
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
    """R14, R17: neither by a guess and a link, nor along two trails through pages."""
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
    """R25: R1 and R5; R15, that is a chain that was walked to its true end; another format (R23)."""
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
    """R13, R14: and, where pages get newer along `next`, for the last of them (R6)."""
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
    """R14: what is stored serves as stale, and the failure counts up."""
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
    """R14: whatever was carried out of it, the next one asks for what is not stored, and ends the same."""
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
    """R2: in order, the newest archive not settled yet (R13)."""
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
    """HEAD of a feed that is not known."""
    world = World(Publisher(a_chain(3)))
    told = world.refresh(random.Random(0), may_walk=False)
    assert told.asked == [FEED]
    assert [each.state for each in told.published] == [State.LOADING]
    assert told.publication.missing is None


def test_a_page_behind_the_last_one_is_the_end() -> None:
    """R6: 404 where no `last` link says that there should be more."""
    pages = a_chain(2, "next")
    pages[archive(1)] = replace(pages[archive(1)], links={"next": archive(0)})
    told = World(Publisher(pages)).refresh(random.Random(0))
    assert told.publication.state is State.PAGED
    assert told.publication.notes == (PageGone(archive(0), reason="publisher-status"),)


def test_what_is_whole_by_its_own_word_stands_alone() -> None:
    """R1: everything else leaves, nothing is followed."""
    pages = a_chain(2)
    world = World(Publisher(pages))
    world.refresh(random.Random(0))
    pages[FEED] = replace(pages[FEED], is_complete=True)
    world.now += HOUR
    told = world.refresh(random.Random(0))
    assert (told.asked, told.publication.state) == ([FEED], State.COMPLETE)
    assert world.shape == [(Role.SUBSCRIPTION, FEED)]


def test_a_walk_that_was_cut_off_is_finished_though_the_publisher_has_not_changed() -> None:
    """R14, R16: also where the feed had been published as complete before."""
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
    """docs/design.md#the-store: also where it has not changed, and of a document that is detached."""
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


def test_a_gap_is_left_alone_when_the_subscription_document_alone_has_changed() -> None:
    """R14: its time has not come, whatever else there is to walk for."""
    world = World(Publisher(a_chain(3), {archive(2): Failure(slug="timeout")}))
    world.refresh(random.Random(0))
    feed = world.publisher.pages[FEED]
    world.publisher.pages[FEED] = replace(feed, entries=("new",))
    world.now += 30.0

    told = world.refresh(random.Random(0))

    assert told.asked == [FEED]
    assert [(each.url, each.attempts) for each in told.publication.missing or ()] == [(archive(2), 1)]


@pytest.mark.parametrize("seed", range(8))
def test_a_gap_is_left_alone_when_the_head_of_a_new_archive_names_it(seed: int) -> None:
    """R0, R14: a link in a head that still arrives is no reason to ask before its time."""
    world = World(Publisher(a_chain(2), {archive(2): Failure(slug="timeout")}), looks_ahead=False)
    world.refresh(random.Random(seed))
    world.publisher.pages = a_chain(3)
    world.now += 30.0

    told = world.refresh(random.Random(seed))

    assert told.asked == [FEED, archive(3)]


def test_a_path_with_a_gap_takes_nothing_away_and_a_whole_one_what_it_passes_by() -> None:
    """R15, R25: archive 3 was replaced; that counts once the chain is walked to its true end."""
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


def test_a_page_that_is_linked_no_more_stays() -> None:
    """R6, R25."""
    world = World(Publisher(a_chain(3, "next")))
    world.refresh(random.Random(0))
    pages = world.publisher.pages
    pages[archive(3)] = replace(pages[archive(3)], links={"next": archive(1)})
    world.now += HOUR
    told = world.refresh(random.Random(0), is_full=True)
    assert told.publication.state is State.PAGED
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
    """R14: a page is guessed, and the head of the one before it names it meanwhile."""
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
    """R4, R6: the target of a bare `prev` that turns out to be newer."""
    pages = a_chain(2, "prev")
    empty = replace(pages[archive(2)], entries=())
    pages[archive(2)] = empty
    pages[FEED] = replace(pages[FEED], links={"previous": archive(2), "current": FEED, "next": archive(1)})
    told = World(Publisher(pages)).refresh(random.Random(0))
    assert asked_twice(told.asked) == []
    assert told.publication.state is State.PAGED
    assert NewerNotOlder(archive(2)) in told.publication.notes


def test_no_archive_is_looked_at_while_the_subscription_document_has_not_changed() -> None:
    """R13: not the newest one either, and not when a refresh is insisted on."""
    world = World(Publisher(a_chain(3)))
    world.refresh(random.Random(0))
    world.now += 3 * DAY
    assert world.refresh(random.Random(0), is_forced=True).asked == [FEED]
    assert len(world.refresh(random.Random(0), is_full=True).asked) == 4


@pytest.mark.parametrize("seed", range(8))
def test_no_head_is_read_early_for_what_is_guessed_anyway(seed: int) -> None:
    """R0: where enough documents are under way and their URLs count on, look-ahead has what they link to.

    The document that the walk has come to is read early in any case: it tells where the guesses are wrong.
    """
    told = World(Publisher(a_chain(20)), window=3).refresh(random.Random(seed))
    assert any(len(foreseen) == 2 for _, foreseen in told.foreseen)
    for under_way, foreseen in told.foreseen:
        next_on_path = max(under_way, key=lambda url: int(url.rpartition("/")[2]))
        assert next_on_path not in foreseen
        assert len(under_way) >= 3 or not foreseen


@pytest.mark.parametrize("seed", range(8))
def test_heads_are_read_early_where_urls_do_not_count_on(seed: int) -> None:
    """R0: each leads to the next one, and nothing else does."""
    names = [FEED, *(f"{O}/{name}" for name in ("ash", "beech", "elm", "fir", "oak", "yew"))]
    links = [{"prev-archive": behind} for behind in names[1:]] + [{}]
    pages = {url: Page(links=each, entries=(url,)) for url, each in zip(names, links, strict=True)}
    told = World(Publisher(pages), window=2).refresh(random.Random(seed))
    assert not any(foreseen for _, foreseen in told.foreseen)
