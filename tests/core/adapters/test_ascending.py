"""`wholefeed.core.adapters.ascending`: topics of Discourse, and Lemmy (rules R26 to R31)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as AbstractCollection
from dataclasses import replace
from typing import Any

import pytest

from tests.core.adapters.publisher import Entries
from wholefeed.core.adapters.ascending import DiscourseTopics, Lemmy
from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Collection,
    Marks,
    PageQuestion,
    PageResponse,
    Refused,
)
from wholefeed.core.model import Family
from wholefeed.core.refresh.collecting_pages import is_downward
from wholefeed.core.text.dates import DAY_SECONDS

UNAVAILABLE = Refused("http-503", 503)
GONE = Refused("http-404", 404)


class Numbered(Entries):
    """A publisher of pages from the oldest entry on; an entry's name is its date."""

    adapter: DiscourseTopics | Lemmy
    size: int
    first = 1
    order: tuple[str, str]

    def __init__(self, count: int = 420, page: int | None = None) -> None:
        super().__init__(range(count, 0, -1), page=page or self.size)
        self.kept: dict[str, AdapterPage] = {}
        """Pages stored by the driver, by URL."""
        self.repeats_last = False
        self.has_end = False
        """Whether the page after the last one is a 404."""
        self.is_order_read = True
        self.is_page_read = True

    def collect(self, known: Collection | None = None, **more: Any) -> AdapterOutcome:
        """Ask for all pages; every page is stored until the end."""
        outcome = super().collect(known, **more)
        self.kept.clear()
        return outcome

    def page_url(self, number: int) -> str:
        return self.adapter.url_of(self.job(), number)

    def answer(self, ask: PageQuestion) -> PageResponse:
        if ask.url in self.kept and not ask.is_again:
            return replace(self.kept[ask.url], is_stored=True)
        answer = super().answer(ask)
        if isinstance(answer, AdapterPage) and not ask.is_probe:
            self.kept[ask.url] = answer
        return answer

    def document(self, url: str, names: Sequence[str]) -> AdapterPage:
        dates = [float(name) for name in names]
        page = super().document(url, names)
        return replace(page, dates=tuple(dates), is_ascending=is_downward(dates))

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        place = int(query["page"]) - self.first if self.is_page_read else 0
        names = self.names[::-1] if self.is_order_read else self.names
        assert query[self.order[0]] == self.order[1]
        if self.repeats_last:
            place = min(place, (len(names) - 1) // self.size)
        found = names[place * self.size : (place + 1) * self.size]
        return found or (GONE if self.has_end else ())


class Topics(Numbered):
    adapter = DiscourseTopics()
    url = "https://forum.example.org/latest.rss"
    site_id = "https://forum.example.org/latest"
    marks = Marks(route="list/latest_feed")
    size, first, order = 30, 0, ("ascending", "true")

    def guid(self, name: str) -> str:
        return f"forum.example.org-topic-{name}"


class CategoryTopics(Topics):
    url = "https://forum.example.org/c/above/some/5.rss"
    site_id = "https://forum.example.org/c/above/some/5"
    marks = Marks(route="list/category_feed")

    def __init__(self, count: int = 420) -> None:
        super().__init__(count, page=25)
        self.is_category_read = True

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        assert query["category"] == "5"
        if self.is_category_read:
            return super().select(query)
        names, self.names = self.names, [each for name in self.names for each in (f"{name}.5", name)]
        found = super().select(query)
        self.names = names
        return found


class Posts(Numbered):
    adapter = Lemmy()
    url = "https://lemmy.example.org/feeds/c/some.xml?sort=New"
    site_id = "https://elsewhere.example.net/c/some"
    size, order = 50, ("sort", "Old")

    def __init__(self, count: int = 420) -> None:
        super().__init__(count, page=20)

    def guid(self, name: str) -> str:
        return f"https://lemmy.example.org/post/{name}"


class HotPosts(Posts):
    """Popular posts first: here those with an even number."""

    url = "https://lemmy.example.org/feeds/c/some.xml"
    is_oldest_first = True

    def job(self, known: Any = None, **more: Any) -> AdapterJob:
        names, self.names = self.names, [each for each in self.names if int(each) % 2 == 0]
        self.names.sort(key=int, reverse=not self.is_oldest_first)
        job = super().job(known, **more)
        self.names = names
        return job


ALL: tuple[Callable[..., Any], ...] = (Topics, CategoryTopics, Posts)
FORUM, INSTANCE = "https://forum.example.org", "https://lemmy.example.org"


# Recognising the publisher


@pytest.mark.parametrize(
    ("publisher", "changes"),
    [
        (Topics, {}),
        (Topics, {"marks": Marks(route="list/latest_feed", last_id="topic-7")}),
        (Topics, {"url": f"{FORUM}/latest.rss?status=open"}),
        (CategoryTopics, {}),
        (CategoryTopics, {"url": f"{FORUM}/f/c/some/5.rss", "site_id": f"{FORUM}/f/c/some/5"}),
        (Posts, {}),
        (HotPosts, {}),
        (Posts, {"url": f"{INSTANCE}/feeds/u/ann.xml", "site_id": f"{INSTANCE}/u/ann"}),
    ],
)
def test_a_publisher_is_known_by_what_its_software_writes(
    publisher: Callable[[], Numbered], changes: dict[str, object]
) -> None:
    """R26: by route and guids, or by guids at the publisher's own host and the channel's link."""
    feed = publisher()
    assert feed.adapter.fits(feed.sight(**changes))


@pytest.mark.parametrize(
    ("publisher", "changes"),
    [
        (Topics, {"marks": Marks(last_id="forum.example.org-topic-7")}),
        (Topics, {"marks": Marks(route="list/top_feed", last_id="forum.example.org-topic-7")}),
        (Topics, {"marks": Marks(route="list/latest_feed", last_id="forum.example.org-post-7")}),
        (Topics, {"url": f"{FORUM}/latest.rss?page=2"}),
        (Topics, {"asked_url": f"{FORUM}/latest.rss?order=activity"}),
        (Topics, {"family": Family.ATOM}),
        (CategoryTopics, {"site_id": f"{FORUM}/c/some"}),
        (CategoryTopics, {"site_id": "https://another.example.org/c/some/5"}),
        (Posts, {"marks": Marks(last_id="https://another.example.org/post/7")}),
        (Posts, {"marks": Marks(last_id=f"{INSTANCE}/comment/7")}),
        (Posts, {"site_id": INSTANCE}),
        (Posts, {"site_id": f"{INSTANCE}/inbox"}),
        (Posts, {"url": f"{INSTANCE}/feeds/c/some.xml?page=2"}),
        (Posts, {"asked_url": f"{INSTANCE}/feeds/c/some.xml?sort=Old"}),
        (Posts, {"family": Family.ATOM}),
    ],
)
def test_others_are_left_alone(publisher: Callable[[], Numbered], changes: dict[str, object]) -> None:
    """R26: other feeds of the same software, and URLs of single pages."""
    feed = publisher()
    assert not feed.adapter.fits(feed.sight(**changes))


# All pages, by rules R27 and R28


@pytest.mark.parametrize(
    ("publisher", "count", "questions"),
    [
        *((Topics, count, count // 30 + 10) for count in (31, 60, 61, 420)),
        *((CategoryTopics, count, count // 30 + 10) for count in (26, 30, 31, 420)),
        *((Posts, count, count // 50 + 10) for count in (21, 50, 51, 100, 101, 420)),
        (HotPosts, 420, 18),
        (Posts, 5000, 100 + 18),
    ],
)
def test_all_entries_come(publisher: Callable[[int], Numbered], count: int, questions: int) -> None:
    """R28: one question a page, two a doubling, a few for both ends."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.known.collected) == (True, True, count)
    assert outcome.known.pages == -(-count // feed.size)
    assert feed.given == feed.identities()
    assert len(feed.asked) <= questions


def without_pages(feed: Numbered, numbers: AbstractCollection[int]) -> None:
    answer, counting = feed.answer, {feed.page_url(1)}
    urls = set(map(feed.page_url, numbers))

    def answered(ask: PageQuestion) -> PageResponse:
        is_counted = ask.is_probe or ask.url in counting
        counting.discard(ask.url)
        return GONE if ask.url in urls and not is_counted else answer(ask)

    feed.answer = answered  # type: ignore[method-assign]


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("gap", [(3,), (3, 4), (1,)])
def test_a_page_without_entries_amid_is_told_of(
    publisher: Callable[[], Numbered], gap: tuple[int, ...]
) -> None:
    """R31: deletions shift entries, so those of the empty page were never read."""
    feed = publisher()
    without_pages(feed, gap)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.is_final) == (True, False, False)


@pytest.mark.parametrize("publisher", [*ALL, HotPosts])
def test_pages_that_are_gone_when_they_were_counted_prove_nothing(publisher: Callable[[], Numbered]) -> None:
    """R27: no page has an entry."""
    feed = publisher()
    without_pages(feed, range(1, 20))
    assert not feed.collect().is_honoured


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("count", [2, 20])
def test_few_entries_are_all_there_are(publisher: Callable[[int], Numbered], count: int) -> None:
    """R27: the first page is the reversed feed, without a next page."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.known.pages, len(feed.asked)) == (True, 1, 2)


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_asked_where_no_answer_can_show_anything(
    publisher: Callable[[int], Numbered], count: int
) -> None:
    """R27: one entry has no order."""
    feed = publisher(count)
    assert not feed.collect().is_honoured
    assert not feed.asked


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("count", [5, 420])
@pytest.mark.parametrize(
    ("ignored", "questions"), [("ignores", 1), ("is_order_read", 1), ("is_page_read", 2)]
)
def test_ignored_parameters_are_seen_at_once(
    publisher: Callable[[int], Numbered], count: int, ignored: str, questions: int
) -> None:
    """R27: all of them, the order or the numbers; one page needs no numbers."""
    feed = publisher(count)
    setattr(feed, ignored, ignored == "ignores")
    assert not feed.collect().is_honoured
    assert len(feed.asked) <= questions


def test_the_last_page_for_ever_proves_nothing() -> None:
    """R27: a publisher of this kind has an end."""
    feed = Topics()
    feed.repeats_last = True
    assert not feed.collect().is_honoured
    assert len(feed.asked) < 20


@pytest.mark.parametrize("has_news", [False, True])
def test_a_category_that_is_ignored_is_seen(has_news: bool) -> None:
    """R27: a page as old as the feed but without its entries shows another category."""
    feed = CategoryTopics()
    feed.is_category_read = False
    feed.on_ask = lambda number: feed.publish(1) if has_news and number == 2 else None
    assert not feed.collect().is_honoured
    feed = CategoryTopics()
    feed.on_ask = lambda number: feed.publish(1) if has_news and number == 2 else None
    assert feed.collect().is_honoured


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("question", [1, 2, 4])
@pytest.mark.parametrize("refusal", [UNAVAILABLE, Refused("redirected")])
def test_nothing_is_claimed_before_the_number_of_pages_is_known(
    publisher: Callable[[], Numbered], question: int, refusal: Refused
) -> None:
    """R27: for any reason."""
    feed = publisher()
    feed.refusals[question] = refusal
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.reason) == (False, refusal.slug)
    assert len(feed.asked) == question


@pytest.mark.parametrize("publisher", ALL)
def test_404_is_an_end_too(publisher: Callable[[], Numbered]) -> None:
    """R28: after the last page."""
    feed = publisher()
    feed.has_end = True
    assert feed.collect().is_whole
    assert feed.given == feed.identities()


@pytest.mark.parametrize(("publisher", "question"), [(Topics, 11), (Posts, 10)])
def test_a_page_that_cannot_be_had_ends_the_walk(publisher: Callable[[], Numbered], question: int) -> None:
    """R31: a page in another order ends the walk too."""
    feed = publisher()
    feed.refusals[question] = UNAVAILABLE
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason) == (True, False, "http-503")
    assert len(feed.asked) == question
    feed = publisher()
    feed.on_ask = lambda number: setattr(feed, "ignores", number >= question)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, "any more" in outcome.reason) == (True, False, True)
    assert len(feed.asked) == question


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("deleted", [[420], [1], [10, 31], range(80, 140), range(1, 200), range(401, 421)])
@pytest.mark.parametrize("question", [3, 9, 11, 15])
def test_a_deletion_loses_nothing(
    publisher: Callable[[], Numbered], deleted: Iterable[int], question: int
) -> None:
    """R28: deletions shift entries to pages not yet read."""
    feed = publisher()
    feed.on_ask = lambda number: feed.delete(*deleted) if number == question else None
    assert feed.collect().is_whole
    assert feed.has_given_all


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("new", [1, 45, 150])
@pytest.mark.parametrize("question", [1, 4, 9, 12])
def test_new_entries_come_too(publisher: Callable[[], Numbered], new: int, question: int) -> None:
    """R28: the walk reads the last page again, and pages after it."""
    feed = publisher()
    feed.on_ask = lambda number: feed.publish(new) if number == question else None
    assert feed.collect().is_whole
    assert feed.has_given_all


@pytest.mark.parametrize("deleted", [[], [300], [5, 6]])
def test_pages_of_before_a_walk_was_cut_off_serve_while_they_are_the_same(deleted: Iterable[int]) -> None:
    """R28: the walk reads one again; after a shift, each lower one until an unchanged page."""

    feed = Topics()
    urls = [DiscourseTopics().url_of(feed.job(), number) for number in range(6, 15)]
    for url in urls:
        feed.answer(PageQuestion(url))
    feed.delete(*deleted)
    assert feed.collect().is_whole
    assert feed.has_given_all
    again = [ask for ask in feed.asked if ask.is_again and ask.url in urls]
    assert len(again) == {(): 2, (300,): 7, (5, 6): 10}[tuple(deleted)]


def test_the_first_page_is_asked_for_again_whatever_is_stored() -> None:
    """R28: deletions in it moved newer entries there since."""
    feed = Topics()
    urls = [DiscourseTopics().url_of(feed.job(), number) for number in (1, *range(6, 15))]
    feed.answer(PageQuestion(urls.pop(0)))
    feed.delete(1)
    for url in urls:
        feed.answer(PageQuestion(url))
    assert feed.collect().is_whole
    assert feed.has_given_all


# News since the last look (R30)


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("new", [0, 9])
def test_nothing_is_asked_where_the_feed_reaches_back(publisher: Callable[[], Numbered], new: int) -> None:
    """R30: the subscription document has all news."""
    feed = publisher()
    known = feed.collected()
    feed.publish(new)
    outcome = feed.look(known)
    assert (outcome.is_whole, feed.asked) == (True, [])
    assert (outcome.known.top != known.top) is (new > 0)


@pytest.mark.parametrize("publisher", [*ALL, HotPosts])
@pytest.mark.parametrize("new", [40, 180])
@pytest.mark.parametrize("deleted", [(), range(100, 190)])
def test_what_the_feed_does_not_reach_is_asked_for(
    publisher: Callable[[], Numbered], new: int, deleted: Iterable[int]
) -> None:
    """R30: from the last page on, and back where deletions shifted entries. The next look makes up for a
    failed one.
    """
    feed = publisher()
    known = feed.collected()
    feed.publish(new)
    feed.delete(*deleted)
    feed.refusals[1] = UNAVAILABLE
    failed = feed.look(known)
    assert (failed.is_honoured, failed.is_whole, failed.reason) == (True, False, "http-503")
    assert failed.known == known
    feed.refusals.clear()
    outcome = feed.look(failed.known)
    assert outcome.is_whole
    assert feed.has_given_all
    assert outcome.known.pages == -(-len(feed.names) // feed.size)
    assert len(feed.asked) <= 2 * (new // feed.size) + 3 + 4 * bool(deleted)


@pytest.mark.parametrize("publisher", [*ALL, HotPosts])
@pytest.mark.parametrize("question", [2, 3])
def test_what_a_deletion_moves_while_news_are_asked_for_is_met(
    publisher: Callable[[], Numbered], question: int
) -> None:
    """R30: the look reads pages again after entries shifted to them."""
    feed = publisher()
    known = feed.collected()
    feed.publish(4 * feed.size)
    feed.on_ask = lambda number: feed.delete(*range(100, 105)) if number == question else None
    assert feed.look(known).is_whole
    assert feed.has_given_all


@pytest.mark.parametrize("is_oldest_first", [True, False])
def test_a_feed_in_another_order_is_asked_for_news_each_time(is_oldest_first: bool) -> None:
    """R30: its known entries prove nothing about news, even if it looks sorted by date."""
    feed = HotPosts()
    feed.is_oldest_first = is_oldest_first
    known = feed.collected()
    feed.publish(3)
    assert feed.look(known).is_whole
    assert feed.has_given_all
    assert len(feed.asked) == 1


@pytest.mark.parametrize("publisher", ALL)
def test_the_last_page_is_asked_for_once_a_day(publisher: Callable[[int], Numbered]) -> None:
    """R30: its stored copy may lack entries."""
    feed = publisher(421)
    known = feed.collected(seconds_ago=DAY_SECONDS + 1)
    assert feed.look(known).is_whole
    assert len(feed.asked) == 1


@pytest.mark.parametrize("publisher", ALL)
def test_a_publisher_that_gives_up_its_pages_is_told_of(publisher: Callable[[], Numbered]) -> None:
    """R30: entries beyond the feed's reach are lost then; otherwise nothing is missing."""
    feed = publisher()
    known = feed.collected(seconds_ago=DAY_SECONDS + 1)
    feed.ignores = True
    assert feed.look(known).is_whole
    feed.publish(feed.page + 5)
    outcome = feed.look(known)
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)
    assert "any more" in outcome.reason
    assert len(feed.asked) == 1
