"""`wholefeed.core.adapters.others` (rules R26 to R31)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.adapters.publisher import Entries, looked
from wholefeed.core.adapters.base import Collection, Marks, Outcome, Refused
from wholefeed.core.adapters.others import Blogger
from wholefeed.core.model import Family

DAY = 86_400.0
UNAVAILABLE = Refused("http-503", 503)


class Posts(Entries):
    """A blog's posts; of a blog with few the feed has all."""

    url = "https://some.blogspot.com/feeds/posts/default?alt=rss"

    def __init__(self, count: int = 420, most: int = 100) -> None:
        super().__init__(range(count, 0, -1), page=25)
        self.most = most
        self.repeats_last = False

    @property
    def marks(self) -> Marks:
        return Marks(generator="Blogger")

    def guid(self, name: str) -> str:
        return f"tag:blogger.com,1999:blog-1.post-{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        start = int(query.get("start-index", "1")) - 1
        found = self.names[start : start + min(self.most, int(query.get("max-results", "25")))]
        is_last = start + self.most >= len(self.names)
        return self.names[-self.most :] if self.repeats_last and is_last else found

    def delete(self, *names: int) -> None:
        self.names = [name for name in self.names if int(name) not in names]

    def collect(self) -> Outcome:
        return self.play(Blogger().collect(self.job()))

    def look(self, known: Collection) -> Outcome:
        self.asked.clear()
        return self.play(Blogger().look(self.job(known)))


@pytest.mark.parametrize(
    ("generator", "url"),
    [
        ("Blogger", "https://some.blogspot.com/feeds/posts/default?alt=rss"),
        ("http://www.blogger.com Blogger", "https://blog.example.org/feeds/posts/default"),
        ("http://www.blogger.com Blogger", "https://www.blogger.com/feeds/123/posts/summary"),
        ("Blogger", "https://some.blogspot.com/feeds/posts/default/-/cats?alt=rss"),
        ("Blogger", "https://some.blogspot.com/rss.xml"),
    ],
)
def test_blogs_are_known(generator: str, url: str) -> None:
    """R26: by the generator, where a blog's feeds stand."""
    assert Blogger().fits(Posts().sight(marks=Marks(generator=generator), url=url, asked_url=url))


@pytest.mark.parametrize(
    "changes",
    [
        {"marks": Marks()},
        {"marks": Marks(generator="http://www.blogger.com.example.org Blogger")},
        {"marks": Marks(generator="Bloggerish 2.0")},
        {"marks": Marks(generator="https://wordpress.org/?v=6.6")},
        {"url": "https://feeds.feedburner.com/some"},
        {"url": "https://some.blogspot.com/feeds/comments/default?alt=rss"},
        {"url": "https://some.blogspot.com/feeds/77/comments/default"},
        {"url": "https://some.blogspot.com/feeds/posts/default?start-index=26"},
        {"asked_url": "https://some.blogspot.com/feeds/posts/default?start-index=5"},
        {"family": Family.JSON},
    ],
)
def test_others_are_left_alone(changes: dict[str, object]) -> None:
    """R26: neither comments, nor copies elsewhere, nor what is a page already."""
    if "url" in changes:
        changes = {"asked_url": changes["url"], **changes}
    assert not Blogger().fits(Posts().sight(**changes))


def test_a_blog_that_leads_its_feed_elsewhere_is_known() -> None:
    """R26: by the URL that it is asked for by; services republish such feeds at theirs."""
    publisher = Posts()
    assert Blogger().fits(publisher.sight(url="https://feeds.feedburner.com/some"))
    job = replace(publisher.job(), url="https://feeds.feedburner.com/some")
    assert publisher.play(Blogger().collect(job)).is_honoured
    assert publisher.given == publisher.identities()
    assert {ask.url.partition("?")[0] for ask in publisher.asked} == {publisher.url.partition("?")[0]}
    assert all(target.endswith("&redirect=false") for target in publisher.targets)


@pytest.mark.parametrize("count", [26, 99, 124, 125, 420, 1000])
@pytest.mark.parametrize("most", [100, 50])
def test_all_posts_come(count: int, most: int) -> None:
    """R28: each page begins where the one before it ended."""
    publisher = Posts(count, most)
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.known.collected) == (True, True, count)
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) <= (count - 25) // (most - 1) + 2


@pytest.mark.parametrize("count", [2, 7, 25])
def test_few_posts_are_all_there_are(count: int) -> None:
    """R27: what is given from the last one on shows that the number counts."""
    publisher = Posts(count)
    assert publisher.collect().is_honoured
    assert publisher.targets == [f"alt=rss&start-index={count}&max-results=100"]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_claimed_of_one_post(count: int) -> None:
    """R27: what is given from the first on shows nothing."""
    publisher = Posts(count)
    assert not publisher.collect().is_honoured
    assert publisher.asked == []


@pytest.mark.parametrize("count", [5, 420])
def test_an_ignored_number_is_seen_at_once(count: int) -> None:
    """R27: the subscription document once more, also while a post comes."""
    publisher = Posts(count)
    publisher.ignores = True
    publisher.on_ask = lambda number: publisher.names.insert(0, str(1000 + number))
    assert not publisher.collect().is_honoured
    assert len(publisher.asked) == 1


@pytest.mark.parametrize("refusal", [Refused("http-404", 404), UNAVAILABLE, Refused("format")])
def test_nothing_is_claimed_where_the_first_page_cannot_be_had(refusal: Refused) -> None:
    """R27: whatever the reason is."""
    publisher = Posts()
    publisher.refusals[1] = refusal
    outcome = publisher.collect()
    assert not outcome.is_honoured
    assert outcome.reason
    assert len(publisher.asked) == 1


def test_a_page_that_cannot_be_had_ends_the_walk() -> None:
    """R31: nobody knows what stands behind it."""
    publisher = Posts()
    publisher.refusals[3] = UNAVAILABLE
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason) == (True, False, "http-503")


def test_the_last_page_for_ever_is_the_end() -> None:
    """R28: nothing stands behind its last entry."""
    publisher = Posts()
    publisher.repeats_last = True
    assert publisher.collect().is_whole
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) <= 7


@pytest.mark.parametrize(
    "deleted", [[420], [300], [297], [296], [1], [*range(400, 420)], [*range(310, 400)], [297, 296, 295]]
)
@pytest.mark.parametrize("question", [1, 3, 5])
def test_a_deletion_loses_nothing(deleted: list[int], question: int) -> None:
    """What moved up is found by asking from further up."""
    publisher = Posts()
    publisher.on_ask = lambda number: publisher.delete(*deleted) if number == question else None
    assert publisher.collect().is_whole
    assert publisher.given >= publisher.identities()


@pytest.mark.parametrize("new", [1, 30, 98, 99, 100, 150])
def test_new_posts_lose_nothing(new: int) -> None:
    """What moved down is met twice."""
    publisher = Posts()

    def add(number: int) -> None:
        if number == 3:
            publisher.names[:0] = [str(1000 + each) for each in range(new)]

    publisher.on_ask = add
    assert publisher.collect().is_whole
    assert publisher.given >= publisher.identities(range(1, 421))


def test_a_blog_that_is_emptied_meanwhile_is_no_endless_walk() -> None:
    """R31: what cannot be joined is told."""
    publisher = Posts()
    publisher.on_ask = lambda number: publisher.delete(*range(1, 421)) if number == 3 else None
    outcome = publisher.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)
    assert len(publisher.asked) < 10


@pytest.mark.parametrize("new", [0, 1, 24])
def test_nothing_is_asked_where_the_feed_reaches_back(new: int) -> None:
    """R30: the subscription document has all that is new."""
    publisher = Posts()
    known = looked(publisher.collect())
    publisher.names[:0] = [str(1000 + each) for each in range(new)]
    assert publisher.look(known).is_whole
    assert publisher.asked == []


@pytest.mark.parametrize("new", [25, 60, 150])
def test_what_the_feed_does_not_reach_is_asked_for(new: int) -> None:
    """R30: page by page, until one has nothing that is not stored."""
    publisher = Posts()
    known = looked(publisher.collect())
    publisher.stored = set(publisher.given)
    publisher.names[:0] = [str(1000 + each) for each in range(new)]
    assert publisher.look(known).is_whole
    assert publisher.given == publisher.identities()
    assert len(publisher.asked) <= new // 100 + 2


def test_a_page_is_asked_for_once_a_day() -> None:
    """R30: a post that was filed under an old date shows."""
    publisher = Posts()
    known = looked(publisher.collect(), seconds_ago=DAY + 1)
    publisher.stored = set(publisher.given)
    publisher.names.insert(40, "1000")
    assert publisher.look(known).is_whole
    assert publisher.given == publisher.identities()


def test_a_look_that_fails_is_made_up_for() -> None:
    """What the feed does not reach stays unknown until a look has had it."""
    publisher = Posts()
    known = looked(publisher.collect())
    publisher.stored = set(publisher.given)
    publisher.names[:0] = [str(1000 + each) for each in range(60)]
    publisher.refusals[1] = UNAVAILABLE
    failed = publisher.look(known)
    assert (failed.is_whole, failed.reason, failed.known.top) == (False, "http-503", known.top)
    publisher.refusals.clear()
    assert publisher.look(failed.known).is_whole
    assert publisher.given == publisher.identities()
