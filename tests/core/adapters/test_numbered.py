"""`wholefeed.core.adapters.numbered`: GitLab, Joomla, Squarespace and Redmine (rules R26 to R31)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.core.adapters.publisher import NOW, Entries
from wholefeed.core.adapters.base import AdapterPage, Marks, Refused
from wholefeed.core.adapters.numbered import GitLab, Joomla, Redmine, Squarespace
from wholefeed.core.model import Family
from wholefeed.core.text.dates import DAY_SECONDS

UNAVAILABLE = Refused("http-503", 503)
GONE = Refused("http-404", 404)
HOUR = 3600


class Dated(Entries):
    """A publisher of dated entries, an hour apart unless `at` says otherwise."""

    repeats_last = False
    """Whether the last page repeats without end."""

    def at(self, name: str) -> float:
        return NOW - 10_000 * HOUR + int(name) * HOUR + 0.5

    def document(self, url: str, names: Sequence[str]) -> AdapterPage:
        dates = tuple(float(int(self.at(name))) for name in names)
        return replace(super().document(url, names), dates=dates)

    def from_place(self, start: int, count: int) -> Sequence[str]:
        if self.repeats_last and start + count >= len(self.names):
            return self.names[-count:]
        return self.names[start : start + count]


class Commits(Dated):
    """A branch's commits; a forced push deletes some."""

    adapter = GitLab()
    url = "https://git.example.org/group/thing/-/commits/main?format=atom"
    family = Family.ATOM
    site_id = "https://git.example.org/group/thing/-/commits/main"

    def __init__(self, count: int = 420) -> None:
        super().__init__(range(count, 0, -1), page=40)

    def guid(self, name: str) -> str:
        return f"https://git.example.org/group/thing/-/commit/{hashlib.sha1(name.encode()).hexdigest()}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        return self.from_place(int(query.get("offset", "0")), int(query.get("limit", "40")))


class Articles(Dated):
    """A category's articles; a question for a page that is not full gets the last page."""

    adapter = Joomla()
    url = "https://joomla.example.org/news?format=feed&type=rss"
    site_id = "https://joomla.example.org/news"
    marks = Marks(generator="Joomla! - Open Source Content Management")

    def __init__(self, count: int = 95) -> None:
        super().__init__(range(count, 0, -1), page=10)

    def guid(self, name: str) -> str:
        return f"https://joomla.example.org/news/{name}-article"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        start, total = int(query.get("limitstart", "0")), len(self.names)
        if start > total - self.page:
            start = max(0, (-(-total // self.page) - 1) * self.page)
        return self.names[start : start + self.page]


class Episodes(Dated):
    """A collection's posts by instant; `is_inclusive`: a page includes the instant asked for."""

    adapter = Squarespace()
    url = "https://show.example.org/episodes?format=rss"
    site_id = "https://show.example.org/episodes/"
    marks = Marks(generator="Site-Server v6.0.0-16818-16818 (http://www.squarespace.com)")
    is_inclusive = False

    def __init__(self, count: int = 95) -> None:
        super().__init__(range(count, 0, -1), page=20)

    def guid(self, name: str) -> str:
        return f"513abd71e4b0fe58c655c105:513abd71e4b0fe58c655c111:{int(name):024x}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        until = int(query["offset"]) if "offset" in query else float("inf")
        older = [
            name
            for name in self.names
            if self.at(name) * 1000 < until or (self.is_inclusive and self.at(name) * 1000 == until)
        ]
        return (
            self.names[-self.page :] if self.repeats_last and len(older) < self.page else older[: self.page]
        )


class News(Dated):
    """A project's news; `shown` is the count sent of a page's ten."""

    adapter = Redmine()
    url = "https://redmine.example.org/projects/some/news.atom"
    family = Family.ATOM
    site_id = "https://redmine.example.org/"
    marks = Marks(generator="https://www.redmine.org/ Redmine")

    def __init__(self, count: int = 95, shown: int = 10) -> None:
        super().__init__(range(count, 0, -1), page=shown)

    def guid(self, name: str) -> str:
        return f"https://redmine.example.org/news/{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        start = 10 * (int(query.get("page", "1")) - 1)
        return self.from_place(start, 10)[: self.page]


ALL: tuple[Callable[..., Any], ...] = (Commits, Articles, Episodes, News)
BY_NUMBER: tuple[Callable[..., Any], ...] = (Commits, Articles)

# Recognising the publisher

GIT, SHOW = "https://git.example.org/group/thing", "https://show.example.org/episodes"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("publisher", "changes"),
    [
        *((each, {}) for each in ALL),
        (Commits, {"url": f"{GIT}/-/commits/main.atom?feed_token=secret&limit=10"}),
        (Commits, {"marks": Marks(last_id=f"{GIT}/-/commit/{COMMIT}0123456789abcdef01234567")}),
        (Commits, {"site_id": f"{GIT}/commits/main", "marks": Marks(last_id=f"{GIT}/commit/{COMMIT}")}),
        (Articles, {"url": "https://joomla.example.org/news?format=feed&type=rss&limitstart=0"}),
        (News, {"url": f"{News.url}?page=1"}),
        (Articles, {"marks": Marks(generator="Joomla! 1.5 - Open Source Content Management")}),
        (Articles, {"url": "https://www.joomla.example.org/?format=feed&type=rss"}),
        (
            Articles,
            {
                "marks": Marks(generator="https://www.joomla.org Joomla! - Open Source Content Management"),
                "family": Family.ATOM,
            },
        ),
        (News, {"marks": Marks(generator="http://www.redmine.org/ Redmine", last_id=News().guid("1"))}),
    ],
)
def test_a_publisher_is_known_by_what_its_software_writes(
    publisher: Callable[[], Entries], changes: dict[str, object]
) -> None:
    """R26: by generator and ids; GitLab, without generator, by ids of one project."""
    feed = publisher()
    assert feed.adapter.fits(feed.sight(**changes))


@pytest.mark.parametrize(
    ("publisher", "changes"),
    [
        *((each, {"url": "https://copies.example.net/some"}) for each in ALL),
        *((each, {"site_id": ""}) for each in ALL),
        *((each, {"marks": Marks()}) for each in ALL),
        *((each, {"family": Family.JSON}) for each in ALL),
        (Commits, {"url": f"{GIT}/-/commits/main?format=atom&offset=40"}),
        (Commits, {"asked_url": f"{GIT}/-/commits/main?format=atom&offset=40"}),
        (Commits, {"marks": Marks(last_id=f"https://git.example.org/group/other/-/commit/{COMMIT}")}),
        (Commits, {"marks": Marks(last_id=f"{GIT}/-/commit/main")}),
        (Commits, {"site_id": f"{GIT}/-/issues"}),
        (Commits, {"site_id": "tag:github.com,2008:/group/thing/commits/main"}),
        (Commits, {"family": Family.RSS}),
        (Articles, {"url": "https://joomla.example.org/news?format=feed&limitstart=10"}),
        (Articles, {"asked_url": "https://joomla.example.org/news?format=feed&start=10"}),
        (Articles, {"marks": Marks(generator="TYPO3 - Open Source Content Management")}),
        (
            Articles,
            {
                "marks": Marks(
                    generator="Joomla! - Open Source Content Management",
                    last_id="https://joomla.example.org/news/1#comment-7",
                    has_comments=True,
                )
            },
        ),
        (Episodes, {"url": f"{SHOW}?format=rss&offset=1547826436000"}),
        (Episodes, {"marks": replace(Episodes.marks, last_id="513abd71e4b0fe58c655c105")}),
        (Episodes, {"marks": Marks(generator="Squarespace V5", last_id=Episodes().guid("1"))}),
        (Episodes, {"family": Family.ATOM}),
        (News, {"url": f"{News.url}?page=2"}),
        (News, {"marks": replace(News.marks, last_id="https://redmine.example.org/issues/7")}),
        (News, {"marks": replace(News.marks, last_id="https://other.example.org/news/7")}),
        (News, {"marks": replace(News.marks, last_id="https://redmine.example.org/news/7#note-2")}),
        (News, {"marks": Marks(generator="Redmine", last_id=News().guid("1"))}),
    ],
)
def test_others_are_left_alone(publisher: Callable[[], Entries], changes: dict[str, object]) -> None:
    """R26: copies elsewhere, other feeds of the same software, comments, and pages."""
    feed = publisher()
    assert not feed.adapter.fits(feed.sight(**changes))


# All pages, by rules R27 and R28


@pytest.mark.parametrize(
    ("publisher", "count", "questions"),
    [
        *((Commits, count, (count - 40) // 99 + 2) for count in (41, 139, 140, 1000)),
        *((Articles, count, (count - 10) // 9 + 5) for count in (*range(11, 32), 100, 201)),
        *((Episodes, count, (count - 20) // 19 + 2) for count in (21, 39, 40, 95)),
        *((News, count, 2 * -(-count // 10)) for count in (11, 20, 21, 95)),
    ],
)
def test_all_entries_come(publisher: Callable[[int], Entries], count: int, questions: int) -> None:
    """R28: one question a page, or two where pages can only be counted; a few for the end."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.known.collected) == (True, True, count)
    assert feed.given == feed.identities()
    assert len(feed.asked) <= questions


@pytest.mark.parametrize(
    ("publisher", "count"),
    [(Commits, 2), (Commits, 40), (Episodes, 2), (Episodes, 20), (News, 1), (News, 9), (News, 10)],
)
def test_few_entries_are_all_there_are(publisher: Callable[[int], Entries], count: int) -> None:
    """R27: the last entry alone, or an empty page, proves the parameter."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, len(feed.asked)) == (True, True, 1)


@pytest.mark.parametrize(
    ("publisher", "count", "questions"),
    [(Commits, 1, 0), (Articles, 1, 0), (Articles, 2, 1), (Articles, 10, 1), (Episodes, 1, 0)],
)
def test_nothing_is_claimed_where_no_answer_can_show_anything(
    publisher: Callable[[int], Entries], count: int, questions: int
) -> None:
    """R27: a single entry is also the first; Joomla sends a short category whole for any number."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, "do not tell" in outcome.reason) == (False, questions == 0)
    assert len(feed.asked) == questions


@pytest.mark.parametrize("has_news", [False, True])
@pytest.mark.parametrize(
    ("publisher", "count"),
    [*((each, 95) for each in ALL), (Commits, 5), (Episodes, 5), (News, 5), (News, 1)],
)
def test_an_ignored_parameter_is_seen_at_once(
    publisher: Callable[[int], Entries], count: int, has_news: bool
) -> None:
    """R27: the subscription document again is no page, even with news."""
    feed = publisher(count)
    feed.ignores = True
    feed.on_ask = lambda _number: feed.publish(1) if has_news else None
    assert not feed.collect().is_honoured
    assert len(feed.asked) == 1


@pytest.mark.parametrize("publisher", ALL)
def test_another_order_is_no_history(publisher: Callable[[], Any]) -> None:
    """R27: entries that do not follow the subscription document's prove nothing."""
    feed = publisher()
    feed.select = lambda query: feed.names[-40:-30] if feed.adapter.name != "squarespace" else feed.names[5:9]
    if publisher is News:
        feed.at = lambda name: NOW - int(name) * HOUR
    outcome = feed.collect()
    assert not outcome.is_honoured
    assert len(feed.asked) <= 7


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("refusal", [GONE, UNAVAILABLE, Refused("format")])
def test_nothing_is_claimed_where_the_first_page_cannot_be_had(
    publisher: Callable[[], Entries], refusal: Refused
) -> None:
    """R27: for any reason."""
    feed = publisher()
    feed.refusals[1] = refusal
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.reason, len(feed.asked)) == (False, refusal.slug, 1)


@pytest.mark.parametrize(("publisher", "highest"), [(Commits, 149), (Commits, 41), (Articles, 20)])
@pytest.mark.parametrize("is_first", [False, True])
def test_nothing_above_some_number_is_told(
    publisher: Callable[[], Any], highest: int, is_first: bool
) -> None:
    """R17, R31: few steps back until a new entry comes, for an empty page or the first page again."""
    feed = publisher()
    select, parameter = feed.select, feed.adapter.parameter
    beyond = feed.names[:10] if is_first else []
    feed.select = lambda query: beyond if int(query[parameter]) > highest else select(query)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.is_final) == (True, False, not is_first)
    assert ("moved" if is_first else "gives nothing") in outcome.reason
    assert len(feed.asked) <= 25


@pytest.mark.parametrize("publisher", ALL)
def test_a_page_that_cannot_be_had_ends_the_walk(publisher: Callable[[], Entries]) -> None:
    """R31: the entries after it are unknown."""
    feed = publisher()
    feed.refusals[3] = UNAVAILABLE
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason) == (True, False, "http-503")
    assert (outcome.is_final, len(feed.asked)) == (False, 3)


@pytest.mark.parametrize(("publisher", "questions"), [(Commits, 7), (Episodes, 7), (News, 23)])
def test_the_last_page_for_ever_is_the_end(publisher: Callable[[], Any], questions: int) -> None:
    """R28: a page with the same last entry brings nothing new."""
    feed = publisher()
    feed.repeats_last = True
    feed.collect()
    assert feed.given == feed.identities()
    assert len(feed.asked) <= questions


@pytest.mark.parametrize(
    ("publisher", "deleted"),
    [
        *((Commits, each) for each in ([420], [282, 281, 280], [1], range(400, 420), range(310, 400))),
        *((Articles, each) for each in ([95], [86], [77, 76, 75], range(60, 70), [1], range(1, 6))),
        *((Episodes, each) for each in ([95], [76], [75], range(40, 76), [1])),
        *((News, each) for each in ([95], [86], [85], range(60, 85), [1], range(1, 6))),
    ],
)
@pytest.mark.parametrize("question", [1, 3])
def test_a_deletion_loses_nothing(
    publisher: Callable[[], Entries], deleted: Iterable[int], question: int
) -> None:
    """R28: a page overlaps the one before it, or is read again."""
    feed = publisher()
    feed.on_ask = lambda number: feed.delete(*deleted) if number == question else None
    assert feed.collect().is_whole
    assert feed.given >= feed.identities()


@pytest.mark.parametrize(
    ("publisher", "new"),
    [(Commits, 1), (Commits, 99), (Commits, 150), (Articles, 1), (Articles, 9), (Episodes, 50), (News, 12)],
)
def test_new_entries_lose_nothing(publisher: Callable[[], Entries], new: int) -> None:
    """R28: shifted entries are read twice; the next look gets newer ones."""
    feed = publisher()
    before = feed.identities()
    feed.on_ask = lambda number: feed.publish(new) if number == 3 else None
    assert feed.collect().is_whole
    assert feed.given >= before


@pytest.mark.parametrize("publisher", BY_NUMBER)
def test_what_is_asked_for_from_further_up_is_not_what_came_before(publisher: Callable[[], Entries]) -> None:
    """R28: the URL of an earlier page has other entries now."""
    feed = publisher()
    feed.on_ask = lambda number: feed.delete(feed.names[0], feed.names[1]) if number == 3 else None
    feed.collect()
    assert [ask.is_again for ask in feed.asked[:4]] == [False, False, False, True]


@pytest.mark.parametrize("publisher", BY_NUMBER)
def test_a_publisher_that_is_emptied_meanwhile_is_no_endless_walk(publisher: Callable[[], Entries]) -> None:
    """R31: the feed says that pages do not join."""
    feed = publisher()
    feed.on_ask = lambda number: feed.delete(*range(1, 421)) if number == 3 else None
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, "moved" in outcome.reason) == (True, False, True)
    assert len(feed.asked) < 12


def test_pages_from_further_up_that_end_as_the_one_before_are_no_end() -> None:
    """R28: after each of two deletions, such a page ends with the last entry read."""
    feed = Articles(346)
    feed.on_ask = lambda number: feed.delete(feed.names[0]) if number in (5, 7) else None
    assert feed.collect().is_whole
    assert feed.given >= feed.identities()


def test_what_slips_to_the_last_page_while_its_end_is_looked_for_is_met() -> None:
    """R28: the page after it is empty, so a full last page is read again."""
    feed = News(95)
    feed.on_ask = lambda number: feed.delete(*feed.names[:6]) if number == 9 else None
    assert feed.collect().is_whole
    assert feed.given >= feed.identities()


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_deleted_while_pages_are_asked_for_loses_nothing(
    publisher: Callable[[int], Entries], seed: int
) -> None:
    """R28, R31: or the feed says so."""
    chance = random.Random(seed)
    feed = publisher(chance.randint(60, 400))

    def change(_number: int) -> None:
        if chance.random() < 0.3:
            feed.delete(*chance.sample(feed.names, chance.choice((1, 1, 2, 9))))

    feed.on_ask = change
    outcome = feed.collect()
    assert not outcome.is_whole or feed.given >= feed.identities()


# Features of one software


def test_what_a_url_says_of_the_number_of_commits_is_replaced() -> None:
    """R26: a count of entries is no page; other parameters stay."""
    feed = Commits()
    feed.page = 10
    job = replace(feed.job(), url=f"{GIT}/-/commits/main?limit=10&format=atom&feed_token=s")
    assert feed.play(GitLab().collect(job)).is_whole
    assert feed.targets[0] == "format=atom&feed_token=s&offset=9&limit=100"
    assert feed.given == feed.identities()


@pytest.mark.parametrize("is_inclusive", [False, True])
def test_the_instant_asked_for_may_belong_to_the_page_or_not(is_inclusive: bool) -> None:
    """R28: unlike the publisher's instants, dates have whole seconds; no entry is lost between pages."""
    feed = Episodes()
    feed.is_inclusive = is_inclusive
    feed.at = lambda name: float(NOW - 10_000 * HOUR + int(name) // 3 * HOUR)  # type: ignore[method-assign]
    assert feed.collect().is_whole
    assert feed.given == feed.identities()


def test_more_entries_of_one_second_than_a_page_has_are_told_of() -> None:
    """R31: no question reaches the entries after them."""
    feed = Episodes()
    feed.at = lambda name: NOW - 10_000 * HOUR + max(60, int(name)) * HOUR  # type: ignore[method-assign]
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.is_final) == (True, False, True)
    assert "same date" in outcome.reason


@pytest.mark.parametrize(("new", "deleted"), [(0, 0), (2, 0), (45, 0), (0, 3)])
def test_the_same_instants_are_asked_for_again(new: int, deleted: int) -> None:
    """R29: stored pages keep their exact URLs; new entries come in front."""
    feed = Episodes()
    known, before = feed.collected(), feed.targets
    known = replace(known, start_at=feed.document(feed.url, ["76"]).dates[0])
    feed.delete(*range(95, 95 - deleted, -1))
    feed.publish(new)
    feed.given.clear()
    assert feed.collect(known).is_whole
    assert feed.targets[: len(before)] == before
    assert len(feed.asked) <= len(before) + (new + 19) // 20
    assert feed.given == feed.identities()
    assert all(ask.url.endswith(f"offset={-ask.place}") for ask in feed.asked)


def test_a_site_that_shows_fewer_news_than_a_page_has_is_partial() -> None:
    """R31: entries left out of each page cannot be had anywhere."""
    feed = News(35, shown=6)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.is_final) == (True, False, True)
    assert outcome.reason
    assert News(6, shown=6).collect().is_whole


# News since the last look (R30)


@pytest.mark.parametrize(("publisher", "new"), [*((each, 0) for each in ALL), (Commits, 39), (Articles, 9)])
def test_nothing_is_asked_where_the_feed_reaches_back(publisher: Callable[[], Entries], new: int) -> None:
    """R30: the subscription document has all news."""
    feed = publisher()
    known = feed.collected()
    feed.publish(new)
    outcome = feed.look(known)
    assert (outcome.is_whole, feed.asked) == (True, [])
    assert (outcome.known.top != known.top) is (new > 0)


@pytest.mark.parametrize(
    ("publisher", "new", "questions"),
    [
        (Commits, 45, 2),
        (Commits, 250, 4),
        (Articles, 12, 2),
        (Articles, 35, 5),
        (Episodes, 60, 4),
        (News, 25, 7),
    ],
)
def test_what_the_feed_does_not_reach_is_asked_for(
    publisher: Callable[[], Entries], new: int, questions: int
) -> None:
    """R30: page by page, until one has only stored entries. The next look makes up for a failed one."""
    feed = publisher()
    known = feed.collected()
    feed.publish(new)
    feed.refusals[1] = UNAVAILABLE
    failed = feed.look(known)
    assert (failed.is_honoured, failed.is_whole, failed.reason) == (True, False, "http-503")
    assert failed.known.top == known.top
    feed.refusals.clear()
    assert feed.look(failed.known).is_whole
    assert feed.given == feed.identities()
    assert len(feed.asked) <= questions
    assert all(ask.is_again for ask in feed.asked)


def test_what_slips_up_while_news_are_asked_for_is_met() -> None:
    """R30: pages that can only be counted are read again."""
    feed = News()
    known = feed.collected()
    feed.publish(45)
    feed.on_ask = lambda number: feed.delete(*feed.names[:3]) if number == 2 else None
    assert feed.look(known).is_whole
    assert feed.has_given_all


def test_a_look_after_an_interruption_goes_on_to_what_was_known() -> None:
    """R30: after an interruption, gaps may follow a page without news."""
    feed = Commits()
    known = feed.collected()
    feed.publish(300)
    feed.stored |= feed.identities(feed.names[:150])
    assert feed.play(GitLab().look(feed.job(known, is_interrupted=True))).is_whole
    assert feed.given == feed.identities()


@pytest.mark.parametrize(("publisher", "place"), [(Commits, 60), (Articles, 14), (Episodes, 25), (News, 14)])
def test_a_page_is_asked_for_once_a_day(publisher: Callable[[], Entries], place: int) -> None:
    """R30: an entry added under an old date appears."""
    feed = publisher()
    known = feed.collected(seconds_ago=DAY_SECONDS + 1)
    neighbour = float(feed.names[place])
    feed.at = lambda name: NOW - 10_000 * HOUR + (neighbour if name == "4999" else int(name)) * HOUR  # type: ignore[attr-defined]
    feed.names.insert(place, "4999")
    assert feed.look(known).is_whole
    assert feed.given == feed.identities()
    assert 0 < len(feed.asked) <= (5 if publisher is News else 2)


@pytest.mark.parametrize("publisher", ALL)
def test_a_publisher_that_gives_up_its_pages_is_told_of(publisher: Callable[[], Entries]) -> None:
    """R30: entries beyond the feed's reach are lost then; otherwise nothing is missing."""
    feed = publisher()
    known = feed.collected(seconds_ago=DAY_SECONDS + 1)
    feed.ignores = True
    assert feed.look(known).is_whole
    feed.publish(feed.page + 5)
    outcome = feed.look(known)
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)
    assert "any more" in outcome.reason
