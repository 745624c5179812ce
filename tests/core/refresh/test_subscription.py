"""From the requested document to the subscription document (R3); when it is requested whole."""

from __future__ import annotations

import random
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

import pytest

from tests.core.refresh.world import Outcome, Page, Publisher, World
from tests.makers import FEED
from wholefeed.core.links import Navigation
from wholefeed.core.model import Family, Kind
from wholefeed.core.notes import CurrentUnavailable, NoSubscriptionDocument, ValidatorsDoubted
from wholefeed.core.refresh.arrivals import Failure, FoundSubscription
from wholefeed.core.refresh.subscription import MAX_FORWARD_STEPS, search

O = "http://o.test"  # noqa: E741
GONE = Failure(slug="publisher-status", publisher_status=404)
_T = TypeVar("_T")
DAY = 86_400.0
WEEK = 7 * DAY


def run(search: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine that never waits."""
    try:
        search.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    raise AssertionError("it waits")


class Searched(NamedTuple):
    url: str
    final_url: str
    family: Family
    navigation: Navigation


def seen(path: str, *, family: Family = Family.ATOM, is_archive: bool = True, **links: str) -> Searched:
    """A document with links by relation; targets are paths."""
    url = O + path
    targets = {name.replace("_", "-"): O + target for name, target in links.items()}
    navigation = Navigation(url=url, kind=Kind.PLAIN, links=targets, is_archive=is_archive, older_relation="")
    return Searched(url, url, family, navigation)


def found(start: Searched, others: Mapping[str, Searched]) -> tuple[FoundSubscription[Searched], list[str]]:
    """Search; return the result and the requested paths."""
    asked: list[str] = []

    async def fetch(url: str) -> Searched | Failure:
        asked.append(url.removeprefix(O))
        return others.get(asked[-1], GONE)

    return run(search(start.url, start, fetch)), asked


def test_a_document_that_is_no_archive_serves_itself() -> None:
    """R3: without a request."""
    feed = seen("/feed", is_archive=False)
    assert found(feed, {}) == (FoundSubscription(feed.url, feed), [])


def test_current_is_dereferenced_once_whatever_it_says_itself() -> None:
    """R3; draft-05, 6.1."""
    current = seen("/feed", current="/elsewhere")
    assert found(seen("/1", current="/feed"), {"/feed": current}) == (
        FoundSubscription(current.url, current),
        ["/feed"],
    )


def test_where_current_fails_the_document_that_was_asked_for_serves() -> None:
    """R3: partial."""
    asked = seen("/1", current="/feed")
    note = CurrentUnavailable(f"{O}/feed", reason="publisher-status")
    assert found(asked, {}) == (FoundSubscription(asked.url, asked, (note,)), ["/feed"])


def test_an_archive_leads_forward_to_the_newest_one() -> None:
    """R3: never complete; failures, circles and other formats end the way."""
    one, two = seen("/1", next_archive="/2"), seen("/2", next_archive="/3")
    newest = FoundSubscription(one.url, two, (NoSubscriptionDocument(two.url),))
    assert found(one, {"/2": two}) == (newest, ["/2", "/3"])
    assert found(one, {"/2": two, "/3": seen("/3", family=Family.RSS)}) == (newest, ["/2", "/3"])
    circle = seen("/2", next_archive="/1")
    assert found(one, {"/2": circle})[1] == ["/2"]


def test_an_archive_on_the_way_that_names_the_subscription_document_leads_there() -> None:
    """R3."""
    feed = seen("/feed", is_archive=False)
    others = {"/2": seen("/2", current="/feed"), "/feed": feed}
    assert found(seen("/1", next_archive="/2"), others) == (
        FoundSubscription(feed.url, feed),
        ["/2", "/feed"],
    )


def test_the_way_forward_is_not_endless() -> None:
    """R3, R18: the newest document reached then serves."""
    others = {f"/{n}": seen(f"/{n}", next_archive=f"/{n + 1}") for n in range(2, 200)}
    result, asked = found(seen("/1", next_archive="/2"), others)
    assert len(asked) == MAX_FORWARD_STEPS
    assert result.document.url == f"{O}/{MAX_FORWARD_STEPS + 1}"


# Publishers that say that nothing has changed (R14; docs/faults.md rows 156, 157)


def a_world() -> World:
    """A feed just fetched from a publisher that then always answers 304."""
    world = World(Publisher({FEED: Page(entries=("a",), etag="1")}, is_frozen=True))
    look(world, 0)
    return world


def look(world: World, seconds: float = DAY, **asked: bool) -> Outcome:
    world.now += seconds
    return world.refresh(random.Random(1), **asked)


def publish(world: World, *entries: str, etag: str = "1") -> None:
    world.publisher.pages[FEED] = Page(entries=entries, etag=etag)


def asked(world: World, looks: int) -> list[list[bool]]:
    """Whether each of so many daily requests had a condition."""
    return [look(world).conditional for _ in range(looks)]


def has_note(outcome: Outcome) -> bool:
    return ValidatorsDoubted in [note.kind for note in outcome.publication.notes]


def test_after_a_week_of_304_it_is_asked_for_whole_and_weekly_from_then_on() -> None:
    """R14: right after that look's 304; an unchanged feed needs no more."""
    world = a_world()
    assert asked(world, 15) == [*[[True]] * 6, [True, False]] * 2 + [[True]]
    assert world.feed.doubts == 0


def test_a_publisher_that_sends_the_document_is_not_asked_twice() -> None:
    """R14: the week starts at the last whole document, even an unchanged one; the week's news prove
    no lie.
    """
    world = a_world()
    asked(world, 6)
    publish(world, "b", "a", etag="2")
    world.publisher.is_frozen = False
    assert look(world).conditional == [True]
    assert world.feed.doubts == 0
    assert asked(world, 6) == [[True]] * 6


@pytest.mark.parametrize("etag", ["1", "2"], ids=["constant", "moving"])
def test_news_behind_a_304_ends_the_use_of_its_validators(etag: str) -> None:
    """R14: noted until they change with the news twice; unconditional requests count."""
    world = a_world()
    publish(world, "b", "a", etag=etag)
    asked(world, 6)
    found = look(world)
    assert found.conditional == [True, False]
    assert (has_note(found), world.feed.doubts) == (True, 2)
    assert asked(world, 3) == [[False]] * 3, "there is no news"
    publish(world, "c", "b", "a", etag=etag)
    assert (has_note(look(world)), world.feed.doubts) == (True, 2), "they stayed"
    publish(world, "d", "c", "b", "a", etag="3")
    assert (has_note(look(world)), world.feed.doubts) == (True, 1)
    publish(world, "e", "d", "c", "b", "a", etag="4")
    assert (has_note(look(world)), world.feed.doubts) == (False, 0)
    assert look(world).conditional == [True]


def test_other_bytes_that_bring_no_news_raise_no_doubt() -> None:
    """R14: some publishers write the time into each response, but their validators ignore it."""
    world = a_world()
    publish(world, "a", etag="2")
    assert asked(world, 7)[-1] == [True, False]
    assert world.feed.doubts == 0


@pytest.mark.parametrize("how", ["is_forced", "is_full"])
def test_a_person_s_refresh_has_no_conditions(how: str) -> None:
    """R14: news under the former validators raise doubts; other news do not."""
    world = a_world()
    publish(world, "b", "a", etag="2")
    found = look(world, 0, **{how: True})
    assert (found.conditional, has_note(found), world.feed.doubts) == ([False], False, 0)
    publish(world, "c", "b", "a", etag="2")
    found = look(world, 0, **{how: True})
    assert (found.conditional, has_note(found), world.feed.doubts) == ([False], True, 2)
    publish(world, "d", "c", "b", "a", etag="")
    look(world)
    assert world.feed.doubts == 0, "there is nothing left to be doubted"


def test_a_full_refresh_has_every_document_whole() -> None:
    """R14: no request has a condition, also for archives."""
    pages = {
        FEED: Page(links={"prev-archive": f"{O}/1"}, entries=("b",)),
        f"{O}/1": Page(entries=("a",)),
    }
    world = World(Publisher(pages, is_frozen=True))
    look(world, 0)
    found = look(world, 0, is_full=True)
    assert (found.asked, found.calls.count("keep_document")) == ([FEED, f"{O}/1"], 1)


def test_a_clock_that_is_set_back_costs_one_question() -> None:
    """R14; docs/faults.md row 73: once for each note of the wrong clock."""
    world = a_world()
    world.now -= 365 * DAY
    assert asked(world, 8) == [[True, False], *[[True]] * 6, [True, False]]


@pytest.mark.parametrize("failure", [Failure(slug="timeout"), Failure(slug="unexpected-status")])
def test_a_question_that_fails_leaves_what_the_304_said(failure: Failure) -> None:
    """R14: the feed does not become stale, and is requested a day later."""
    world = a_world()
    world.publisher.when_whole = failure
    assert asked(world, 9) == [*[[True]] * 6, *[[True, False]] * 3]
    assert world.failure is None
