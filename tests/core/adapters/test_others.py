"""`wholefeed.core.adapters.others`: GitHub, Discourse, Reddit, Mastodon and Blogger (rules R26 to R31)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.core.adapters.publisher import Entries, looked
from wholefeed.core.adapters.base import Adapter, Collection, Marks, Refused
from wholefeed.core.adapters.numbered import Blogger
from wholefeed.core.adapters.others import Discourse, GitHub, Mastodon, Reddit
from wholefeed.core.model import Family
from wholefeed.core.text.dates import DAY_SECONDS

UNAVAILABLE = Refused("http-503", 503)
GONE = Refused("http-404", 404)
FORBIDDEN = Refused("http-403", 403)


class Releases(Entries):
    """A repository's releases; `lost` is the answer to an unknown tag."""

    adapter = GitHub()
    url = "https://github.com/some/thing/releases.atom"
    family = Family.ATOM
    site_id = "tag:github.com,2008:https://github.com/some/thing/releases"

    def __init__(self, count: int = 95) -> None:
        super().__init__(range(count, 0, -1), page=10)
        self.lost: Callable[[], Sequence[str] | Refused] = lambda: ()
        self.repeats_last = False

    def guid(self, name: str) -> str:
        return f"tag:github.com,2008:Repository/7/{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        if query["after"] not in self.names:
            return self.lost()
        place = self.names.index(query["after"]) + 1
        if self.repeats_last and place == len(self.names):
            return self.names[-5:]
        return self.names[place : place + 10]


class ForumPosts(Entries):
    """A forum's posts by number; `spans`: a version from before May 2024."""

    adapter = Discourse()
    url = "https://forum.example.org/posts.rss"
    marks = Marks(route="posts/latest")

    def __init__(self, count: int = 420, numbers: Iterable[int] = (), *, spans: bool = False) -> None:
        super().__init__(sorted(numbers or range(1, count + 1), reverse=True), page=50)
        self.spans = spans

    def guid(self, name: str) -> str:
        return f"forum.example.org-post-{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        before = int(query["before"])
        lowest = before - 50 if self.spans else 0
        return [name for name in self.names if lowest <= int(name) < before][:50]


class Submissions(Entries):
    """A subreddit's newest thousand; a removed post hides those after it."""

    adapter = Reddit()
    url = "https://www.reddit.com/r/some/new/.rss"
    family = Family.ATOM
    site_id = "/r/some/new/.rss"

    def __init__(self, count: int = 420) -> None:
        super().__init__(range(count, 0, -1), page=25)
        self.lost: Sequence[str] | Refused = FORBIDDEN

    def guid(self, name: str) -> str:
        return f"t3_{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        name = query["after"].removeprefix("t3_")
        if name not in self.names:
            return self.lost
        listing = self.names[:1000]
        place = listing.index(name) + 1 if name in listing else len(listing)
        return listing[place : place + min(100, int(query.get("limit", "25")))]


class Statuses(Entries):
    adapter = Mastodon()
    url = "https://social.example.org/@ann.rss"
    marks = Marks(generator="Mastodon v4.3.0")

    def __init__(self, count: int = 120) -> None:
        super().__init__(range(count, 0, -1), page=20)

    def guid(self, name: str) -> str:
        return f"https://social.example.org/@ann/{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        return self.names[: min(200, int(query["limit"]))]


class BlogPosts(Entries):
    adapter: Adapter = Blogger()
    url = "https://some.blogspot.com/feeds/posts/default?alt=rss"
    marks = Marks(generator="Blogger")

    def __init__(self, count: int = 420, most: int = 100) -> None:
        super().__init__(range(count, 0, -1), page=25)
        self.most = most
        self.repeats_last = False

    def guid(self, name: str) -> str:
        return f"tag:blogger.com,1999:blog-1.post-{name}"

    def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
        start = int(query.get("start-index", "1")) - 1
        found = self.names[start : start + min(self.most, int(query.get("max-results", "25")))]
        is_last = start + self.most >= len(self.names)
        return self.names[-self.most :] if self.repeats_last and is_last else found


ALL: tuple[Callable[..., Any], ...] = (Releases, ForumPosts, Submissions, Statuses, BlogPosts)
PAGED: tuple[Callable[..., Any], ...] = (Releases, Submissions, BlogPosts)
"""Publishers with a second page, which tests refuse or repeat."""


# Recognising the publisher

BLOG, REPOSITORY = "https://some.blogspot.com/feeds", "https://github.com/some/thing"
SUBREDDIT = "https://www.reddit.com/r/some"


@pytest.mark.parametrize(
    ("publisher", "changes"),
    [
        (Releases, {}),
        (Releases, {"url": f"{REPOSITORY}/tags.atom"}),
        (ForumPosts, {}),
        (Submissions, {}),
        (Submissions, {"url": f"{SUBREDDIT}.rss?limit=50", "site_id": "/r/some.rss?limit=50"}),
        (Submissions, {"url": "https://reddit.com/.rss", "site_id": "/.rss"}),
        (Submissions, {"site_id": "/r/some+other/top/.rss?sort=top&t=week"}),
        (Submissions, {"site_id": "/user/ann/submitted.rss"}),
        (Submissions, {"site_id": "/user/ann/m/many/new/.rss"}),
        (Statuses, {}),
        (Statuses, {"marks": Marks(generator="Mastodon v4.3.0-alpha.0+glitch")}),
        (Statuses, {"url": "https://social.example.org/@ann/with_replies.rss?limit=50"}),
        (BlogPosts, {"url": "https://some.blogspot.com/feeds/posts/default?start-index=1&max-results=500"}),
        (BlogPosts, {}),
        (BlogPosts, {"url": f"{BLOG}/123/posts/summary", "family": Family.ATOM}),
        (BlogPosts, {"marks": Marks(generator="http://www.blogger.com Blogger")}),
        (BlogPosts, {"url": "https://some.blogspot.com/rss.xml"}),
        (BlogPosts, {"url": "https://feeds.feedburner.com/some"}),
    ],
)
def test_a_publisher_is_known_by_what_its_software_writes(
    publisher: Callable[[], Entries], changes: dict[str, object]
) -> None:
    """R26: by host and ids, route, or generator; a blog also by the requested URL."""
    feed = publisher()
    assert feed.adapter.fits(feed.sight(**changes))


@pytest.mark.parametrize(
    ("publisher", "changes"),
    [
        (Releases, {"url": "https://git.example.org/some/thing/releases.atom"}),
        (Releases, {"url": f"{REPOSITORY}/commits/main.atom"}),
        (Releases, {"url": f"{REPOSITORY}/releases.atom?after=v9"}),
        (Releases, {"asked_url": f"{REPOSITORY}/releases.atom?after=v9"}),
        (Releases, {"site_id": "tag:git.example.org,2008:https://git.example.org/some/thing/releases"}),
        (Releases, {"marks": Marks(last_id="tag:github.com,2008:Grit::Commit/0a1b2c")}),
        (Releases, {"family": Family.RSS}),
        (ForumPosts, {"marks": Marks(last_id="forum.example.org-post-7")}),
        (ForumPosts, {"marks": Marks(route="posts/user_posts_feed", last_id="forum.example.org-post-7")}),
        (ForumPosts, {"marks": Marks(route="posts/latest", last_id="https://forum.example.org/t/7")}),
        (ForumPosts, {"url": "https://forum.example.org/posts.rss?before=9"}),
        (ForumPosts, {"family": Family.ATOM}),
        (Submissions, {"url": "https://www.notreddit.com/r/some/new/.rss"}),
        (Submissions, {"url": "https://reddit.com.example.org/r/some/new/.rss"}),
        (Submissions, {"url": f"{SUBREDDIT}/new/.rss?after=t3_7"}),
        (Submissions, {"asked_url": f"{SUBREDDIT}/new/.rss?before=t3_7"}),
        (Submissions, {"marks": Marks(last_id="t1_abc")}),
        (Submissions, {"site_id": "/r/some/comments/.rss"}),
        (Submissions, {"site_id": "/r/some/comments/7/title/.rss"}),
        (Submissions, {"site_id": "/search.rss?q=some"}),
        (Submissions, {"site_id": "/user/ann/.rss"}),
        (Submissions, {"family": Family.RSS}),
        (Statuses, {"marks": Marks(generator="Not Mastodon v4")}),
        (Statuses, {"marks": Marks(generator="Mastodon")}),
        (Statuses, {"asked_url": "https://social.example.org/@ann.rss?limit=200"}),
        (Statuses, {"family": Family.ATOM}),
        (BlogPosts, {"marks": Marks(generator="http://www.blogger.com.example.org Blogger")}),
        (BlogPosts, {"marks": Marks(generator="Bloggerish 2.0")}),
        (BlogPosts, {"url": f"{BLOG}/comments/default", "asked_url": f"{BLOG}/comments/default"}),
        (BlogPosts, {"url": f"{BLOG}/posts/default?start-index=26"}),
        (BlogPosts, {"asked_url": f"{BLOG}/posts/default?start-index=5"}),
        (BlogPosts, {"family": Family.JSON}),
    ],
)
def test_others_are_left_alone(publisher: Callable[[], Entries], changes: dict[str, object]) -> None:
    """R26: other hosts, other feeds of the same software, and single pages."""
    feed = publisher()
    assert not feed.adapter.fits(feed.sight(**changes))


@pytest.mark.parametrize(
    ("adapter", "identity", "key"),
    [
        (GitHub(), "tag:github.com,2008:Repository/7/sub/module/v1.0", "sub/module/v1.0"),
        (GitHub(), "tag:github.com,2008:Repository/7/a&amp;b", "a&b"),
        (GitHub(), "tag:github.com,2008:Repository/x/v1.0", None),
        (GitHub(), "tag:github.com,2008:Repository/7/", None),
        (Discourse(), "forum.example.org-post-7", "7"),
        (Discourse(), "post-7", "7"),
        (Discourse(), "post-07", None),
        (Discourse(), "compost-7", None),
        (Discourse(), "post-99999999999999999999", None),
        (Reddit(), "t3_157kyrd", "t3_157kyrd"),
        (Reddit(), "t1_157kyrd", None),
        (Reddit(), "t3_157kyrd&after=", None),
    ],
)
def test_the_key_of_an_entry_is_read_from_its_id(
    adapter: GitHub | Discourse | Reddit, identity: str, key: str | None
) -> None:
    """R28: a tag follows the repository's number; a post's number ends its guid."""
    assert adapter.key_of(identity) == key


# All pages, by rules R27 and R28


@pytest.mark.parametrize(
    ("publisher", "count", "questions"),
    [
        *((Releases, count, -(-count // 10) + 1) for count in (11, 20, 21, 95)),
        *((ForumPosts, count, count // 50 + 2) for count in (1, 49, 50, 51, 101, 420)),
        *((Submissions, count, (count - 25) // 100 + 3) for count in (26, 125, 126, 225, 899)),
        *((Statuses, count, 1) for count in (21, 199)),
        *((BlogPosts, count, (count - 25) // 99 + 2) for count in (26, 124, 125, 1000)),
    ],
)
def test_all_entries_come(publisher: Callable[[int], Entries], count: int, questions: int) -> None:
    """R28: one question a page, and one or two for the end."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.known.collected) == (True, True, count)
    assert feed.given == feed.identities()
    assert len(feed.asked) <= questions


@pytest.mark.parametrize(
    ("publisher", "count", "questions"),
    [
        *((Releases, 1, 1), (Releases, 10, 1), (Submissions, 1, 1), (Submissions, 25, 1)),
        *((Statuses, 2, 2), (Statuses, 20, 2)),
        *((BlogPosts, 2, 1), (BlogPosts, 25, 1)),
    ],
)
def test_few_entries_are_all_there_are(
    publisher: Callable[[int], Entries], count: int, questions: int
) -> None:
    """R27: an empty page, or one as short as asked for, proves the parameter."""
    feed = publisher(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.known.pages, len(feed.asked)) == (True, 1, questions)


@pytest.mark.parametrize(
    ("publisher", "count"),
    [(Releases, 0), (Submissions, 0), (Statuses, 0), (Statuses, 1), (BlogPosts, 0), (BlogPosts, 1)],
)
def test_nothing_is_claimed_where_no_answer_can_show_anything(
    publisher: Callable[[int], Entries], count: int
) -> None:
    """R27."""
    assert not publisher(count).collect().is_honoured


@pytest.mark.parametrize("has_news", [False, True])
@pytest.mark.parametrize(
    ("publisher", "count", "questions"),
    [
        (Releases, 95, 1),
        (Submissions, 420, 1),
        (Statuses, 5, 2),
        (Statuses, 120, 2),
        (BlogPosts, 5, 1),
        (BlogPosts, 420, 1),
    ],
)
def test_an_ignored_parameter_is_seen_at_once(
    publisher: Callable[[int], Entries], count: int, questions: int, has_news: bool
) -> None:
    """R27: the subscription document again is no page, even with news."""
    feed = publisher(count)
    feed.ignores = True
    feed.on_ask = lambda _number: feed.publish(1) if has_news else None
    assert not feed.collect().is_honoured
    assert len(feed.asked) <= questions


@pytest.mark.parametrize("publisher", ALL)
@pytest.mark.parametrize("refusal", [GONE, UNAVAILABLE, Refused("format")])
def test_nothing_is_claimed_where_the_first_page_cannot_be_had(
    publisher: Callable[[], Entries], refusal: Refused
) -> None:
    """R27: for any reason."""
    feed = publisher()
    feed.refusals[1] = refusal
    outcome = feed.collect()
    assert not outcome.is_honoured
    assert outcome.reason
    assert len(feed.asked) == 1


@pytest.mark.parametrize("publisher", PAGED)
def test_a_page_that_cannot_be_had_ends_the_walk(publisher: Callable[[], Entries]) -> None:
    """R31: the entries after it are unknown."""
    feed = publisher()
    feed.refusals[3] = UNAVAILABLE
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason) == (True, False, "http-503")
    assert len(feed.asked) == 3


@pytest.mark.parametrize(("publisher", "questions"), [(Releases, 12), (BlogPosts, 7)])
def test_the_last_page_for_ever_is_the_end(publisher: Callable[[], Any], questions: int) -> None:
    """R28: nothing new comes, and nothing follows its last entry."""
    feed = publisher()
    feed.repeats_last = True
    assert feed.collect().is_whole
    assert feed.given == feed.identities()
    assert len(feed.asked) <= questions


@pytest.mark.parametrize(
    ("publisher", "deleted"),
    [
        *((Releases, each) for each in ([50], [66], [65, 64], [95], [20, 70])),
        *((ForumPosts, each) for each in ([371], [321], [100, 101], [1])),
        *((Submissions, each) for each in ([296], [196, 195], [1], range(290, 310))),
        (Statuses, [101, 120]),
        *((BlogPosts, each) for each in ([420], [297, 296, 295], [1], range(400, 420), range(310, 400))),
    ],
)
@pytest.mark.parametrize("question", [1, 3])
def test_a_deletion_loses_nothing(
    publisher: Callable[[], Entries], deleted: Iterable[int], question: int
) -> None:
    """R28: a page begins after an entry or from further up; a number works after its post is gone."""
    feed = publisher()
    feed.on_ask = lambda number: feed.delete(*deleted) if number == question else None
    assert feed.collect().is_whole
    assert feed.has_given_all
    assert not (publisher is ForumPosts and any(ask.is_again for ask in feed.asked))


@pytest.mark.parametrize(
    ("publisher", "new", "question"),
    [
        (Releases, 1, 3),
        (Submissions, 70, 3),
        (Statuses, 1, 1),
        (BlogPosts, 30, 3),
        (BlogPosts, 99, 3),
        (BlogPosts, 150, 3),
    ],
)
def test_new_entries_lose_nothing(publisher: Callable[[], Entries], new: int, question: int) -> None:
    """R28: shifted entries are read twice; the next look gets newer ones."""
    feed = publisher()
    before = feed.identities()
    feed.on_ask = lambda number: feed.publish(new) if number == question else None
    assert feed.collect().is_whole
    assert feed.given >= before


# GitHub alone


def test_tags_are_quoted() -> None:
    """R28: a tag may hold any character with a meaning in URLs."""
    feed = Releases(30)
    feed.names[9] = "pkg/v1+a&b=c d%"
    feed.collect()
    assert feed.targets[0] == "after=pkg%2Fv1%2Ba%26b%3Dc%20d%25"
    assert feed.given == feed.identities()


@pytest.mark.parametrize("lost", ["empty", "first", "404"])
@pytest.mark.parametrize("question", [2, 6, 9])
def test_the_entry_that_is_asked_behind_may_be_deleted(lost: str, question: int) -> None:
    """R28: for any answer of GitHub, the walk goes on from the tag before."""
    feed = Releases()
    answers: dict[str, Callable[[], Sequence[str] | Refused]] = {
        "empty": lambda: (),
        "first": lambda: feed.names[:10],
        "404": lambda: GONE,
    }
    feed.lost = answers[lost]
    feed.on_ask = lambda number: feed.delete(96 - 10 * question) if number == question else None
    assert feed.collect().is_whole
    assert feed.has_given_all


@pytest.mark.parametrize("lost", [(), ("95", "94"), GONE])
def test_two_keys_in_a_row_that_are_gone_are_told_of(lost: Sequence[str] | Refused) -> None:
    """R31: neither of the last two pages shows where to go on."""
    feed = Releases()
    feed.lost = lambda: lost
    feed.on_ask = lambda number: feed.delete(56, 46) if number == 5 else None
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)


def test_releases_that_vanish_all_the_time_are_no_endless_walk() -> None:
    """R31: the feed says that the entries after them were not read."""
    feed = Releases()
    feed.on_ask = lambda number: feed.names.pop(19) if number > 1 else None
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason != "") == (True, False, True)
    assert len(feed.asked) < 20


def test_a_release_may_vanish_on_each_page() -> None:
    """R28: each page that arrives renews the walk's patience."""
    feed = Releases(300)

    def delete(number: int) -> None:
        if number > 1 and not any(ask.is_again for ask in feed.asked[-2:]):
            feed.delete(feed.targets[-1].removeprefix("after="))

    feed.on_ask = delete
    assert feed.collect().is_whole
    assert feed.has_given_all
    assert sum(ask.is_again for ask in feed.asked) > 5


@pytest.mark.parametrize("new", [2, 35])
def test_the_same_pages_are_asked_for_after_a_restart(new: int) -> None:
    """R29: earlier questions keep their exact URLs; new entries come in front."""
    feed = Releases()
    feed.collect()
    before = feed.targets
    feed.publish(new)
    assert feed.collect(Collection(start_id=feed.guid("86"))).is_whole
    assert feed.targets[: len(before)] == before
    assert len(feed.asked) <= len(before) + new // 10 + 2
    assert feed.given == feed.identities()


@pytest.mark.parametrize("deleted", [[86], range(90, 96)])
def test_the_first_key_may_be_gone_or_stand_in_the_feed(deleted: Iterable[int]) -> None:
    """R29: then the pages start after the present feed; overlapping ones suffice."""
    feed = Releases()
    feed.lost = lambda: GONE
    feed.delete(*deleted)
    assert feed.collect(Collection(start_id=feed.guid("86"))).is_whole
    assert feed.given == feed.identities()
    assert "after=80" not in feed.targets


# Reddit alone


def test_as_many_as_are_asked_for_come() -> None:
    """R28: a hundred a page, for any count in the feed's URL."""
    feed = Submissions()
    feed.url = f"{SUBREDDIT}/.rss?limit=5&sort=new"
    feed.collect()
    assert feed.targets[:2] == [
        "sort=new&limit=100&after=t3_396",
        "sort=new&limit=100&after=t3_296",
    ]


@pytest.mark.parametrize(("count", "is_whole"), [(899, True), (900, False), (1000, False), (1500, False)])
def test_a_full_listing_is_not_promised_to_be_all(count: int, is_whole: bool) -> None:
    """R31: no question reaches the entries after it."""
    feed = Submissions(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.is_final) == (True, is_whole, not is_whole)
    assert ("1,000" in outcome.reason) is not is_whole
    assert feed.given == feed.identities(feed.names[:1000])
    assert len(feed.asked) <= 10 + 2


def test_what_was_removed_is_asked_behind_as_a_trial() -> None:
    """R28, R32: 403 concerns that entry alone, unless the page before it gets 403 too."""
    feed = Submissions()
    feed.on_ask = lambda number: feed.delete(196) if number == 3 else None
    assert feed.collect().is_whole
    assert [ask.is_trial for ask in feed.asked[:5]] == [False, True, True, False, True]


def test_a_publisher_that_forbids_the_pages_behind_is_told_of() -> None:
    """R31: the entry asked after still exists, so the refusal concerns the pages."""
    feed = Submissions()
    feed.refusals[3] = FORBIDDEN
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, outcome.reason) == (True, False, "http-403")
    assert len(feed.asked) == 4


# Discourse and Blogger alone


@pytest.mark.parametrize(
    ("numbers", "spans"), [([*range(100), *range(230, 420)], True), (range(5000, 5060), False)]
)
def test_a_span_of_private_messages_is_not_the_end(numbers: Iterable[int], spans: bool) -> None:
    """R28: versions before May 2024 searched only the fifty numbers below a post's; no sign shows the
    version.
    """
    feed = ForumPosts(numbers=[number + 1 for number in numbers], spans=spans)
    assert feed.collect().is_whole
    assert feed.given == feed.identities()
    assert spans or len(feed.asked) <= 1 + 1 + 3


def test_a_page_may_be_short() -> None:
    """R28: it leaves out posts of deleted users."""

    class Short(ForumPosts):
        def select(self, query: dict[str, str]) -> Sequence[str] | Refused:
            found = super().select(query)
            assert not isinstance(found, Refused)
            return found[::2] or found

    feed = Short()
    assert feed.collect().is_whole
    assert not feed.given.isdisjoint(feed.identities([1, 2]))


def test_a_blog_that_leads_its_feed_elsewhere_is_asked_at_its_own_url() -> None:
    """R26: services republish such feeds at their own URL, and ignore parameters."""
    feed = BlogPosts()
    job = replace(feed.job(), url="https://feeds.feedburner.com/some")
    assert feed.play(Blogger().collect(job)).is_honoured
    assert feed.given == feed.identities()
    assert {ask.url.partition("?")[0] for ask in feed.asked} == {feed.url.partition("?")[0]}
    assert all(target.endswith("&redirect=false") for target in feed.targets)


def test_a_blog_that_is_emptied_meanwhile_is_no_endless_walk() -> None:
    """R31: the feed says that pages do not join."""
    feed = BlogPosts()
    feed.on_ask = lambda number: feed.delete(*range(1, 421)) if number == 3 else None
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole) == (True, False)
    assert len(feed.asked) < 10


# Mastodon alone: one page (R31)


@pytest.mark.parametrize("count", [200, 500])
def test_a_full_page_is_not_promised_to_be_all(count: int) -> None:
    """R31: unreachable entries may exist; a look without questions says so too."""
    feed = Statuses(count)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, "200" in outcome.reason) == (True, False, True)
    outcome = feed.look(looked(outcome))
    assert (outcome.is_honoured, outcome.is_whole, feed.asked) == (True, False, [])


@pytest.mark.parametrize(("new", "is_whole"), [(90, True), (199, True), (200, False), (300, False)])
def test_what_was_had_once_grows_beyond_a_page(new: int, is_whole: bool) -> None:
    """R31: nothing is missing while a page reaches known entries; a walk promises no more."""
    feed = Statuses(120)
    known, stored = feed.collected(), set(feed.given)
    feed.publish(new)
    outcome = feed.look(known)
    assert outcome.is_whole is is_whole
    assert not is_whole or feed.given == feed.identities()
    again = feed.look(looked(outcome))
    assert (again.is_whole, feed.asked) == (is_whole, [])
    feed.stored = stored
    assert feed.collect(known).is_whole is is_whole


# News since the last look (R30)


@pytest.mark.parametrize(
    ("publisher", "new"),
    [(Releases, 0), (Releases, 9), (Submissions, 24), (Statuses, 19), (BlogPosts, 0), (BlogPosts, 24)],
)
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
        (Releases, 25, 3),
        (ForumPosts, 180, 4),
        (Submissions, 180, 3),
        (Statuses, 30, 1),
        (BlogPosts, 25, 2),
        (BlogPosts, 150, 3),
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


@pytest.mark.parametrize(
    ("publisher", "place", "questions"),
    [(Releases, 14, 2), (Submissions, 40, 2), (Statuses, 30, 1), (BlogPosts, 40, 2)],
)
def test_a_page_is_asked_for_once_a_day(publisher: Callable[[], Entries], place: int, questions: int) -> None:
    """R30: an entry added under an old date appears."""
    feed = publisher()
    known = feed.collected(seconds_ago=DAY_SECONDS + 1)
    feed.names.insert(place, "4999")
    assert feed.look(known).is_whole
    assert feed.given == feed.identities()
    assert 0 < len(feed.asked) <= questions


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
