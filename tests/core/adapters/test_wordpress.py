"""The WordPress adapter against a blog in memory that changes between any two questions (R27, R28, R30).

Each seed is one blog, with its own posts, page size, and changes at some questions.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

import pytest

from tests.core.adapters.blog_answers import ROOT, Site
from tests.publishers.blog import Blog
from wholefeed.core.adapters.base import AdapterOutcome, Collection, PageQuestion
from wholefeed.core.adapters.wordpress_pages import BY_ID, FROM_FRONT
from wholefeed.core.adapters.wordpress_walk import BY_DATE
from wholefeed.core.text.dates import DAY_SECONDS

SHIFTING = ("add", "delete", "delete three", "edit", "go live", "bulk edit")
ALL = (*SHIFTING, "back-date")
SEEDS = 60
BEFORE_ALL = 1985.0
"""Days; a post back-dated to here is the oldest, and on no front page."""


@dataclass
class Story:
    """The outcome of a walk through a changing blog."""

    site: Site
    changes: int
    outcome: AdapterOutcome
    published: dict[int, int] = field(default_factory=dict)
    """By post ID, the question before whose answer the post was published."""

    @property
    def missing(self) -> set[int]:
        """Live posts not read, except those published after the walk read the tail."""
        again = [at for at, ask in enumerate(self.site.asked, 2) if ask.is_again and "orderby=ID" in ask.url]
        last = max(again, default=0)
        return {post for post in self.site.missing() if self.published.get(post, 0) < last}


def change(chance: random.Random, blog: Blog, kinds: Sequence[str]) -> None:
    kind, posts = chance.choice(kinds), blog.posts
    scheduled = [post for post in blog.everything if post.status == "future"]
    if kind == "add":
        blog.add()
    elif kind == "back-date":
        blog.back_date(days=chance.choice([1.5, 30, 300, 1000]))
    elif kind == "go live" and scheduled:  # an old draft: its ID is low
        post = chance.choice(scheduled)
        blog.edit(post)
        post.published, post.status = post.modified, "publish"
    elif kind == "bulk edit":
        blog.bulk_edit()
    elif kind == "edit" and posts:
        blog.edit(chance.choice(posts))
    elif kind.startswith("delete") and posts:
        blog.delete(*chance.sample(posts, min(len(posts), 3 if kind == "delete three" else 1)))


def a_story(
    seed: int,
    kinds: Sequence[str] = ALL,
    *,
    smallest_page: int = 1,
    alter: Callable[[Site], None] = lambda _site: None,
) -> Story:
    chance = random.Random(seed)
    blog = Blog(chance.randrange(1, 61))
    for _ in range(chance.randrange(4)):
        blog.schedule()
    site = Site(blog, per_feed=chance.randrange(smallest_page, 11), rest=chance.random() < 0.5)
    alter(site)
    pages = -(-len(blog.posts) // site.per_feed)
    changes = chance.choice([0, 1, 1, 2, 3, 6])
    times = Counter(chance.randrange(2, pages + 14) for _ in range(changes))
    published: dict[int, int] = {}

    def before(number: int) -> None:
        for _ in range(times[number]):
            live = {post.id for post in blog.posts}
            change(chance, blog, kinds)
            published.update(dict.fromkeys({post.id for post in blog.posts} - live, number))

    site.before = before
    outcome = site.collect()
    site.before = lambda _number: None
    return Story(site, changes, outcome, published)


def ignoring(*names: str) -> Callable[[Site], None]:
    def alter(site: Site) -> None:
        site.ignored = frozenset(names)

    return alter


@pytest.mark.parametrize("block", range(5))
def test_no_live_post_is_missing_whatever_changes_between_two_questions(block: int) -> None:
    """R28: posts are added, deleted, edited, back-dated, and published under low IDs."""
    for seed in range(block * SEEDS, (block + 1) * SEEDS):
        story = a_story(seed)
        assert story.outcome.is_honoured, seed
        assert story.missing == set(), seed


def test_what_is_published_at_the_very_end_comes_with_the_next_look() -> None:
    """R30: a day later, for any date of the post."""
    for seed in range(SEEDS):
        story = a_story(seed)
        story.site.now += DAY_SECONDS
        outcome = story.site.look()
        if outcome.wants_all:
            story.site.collect()
        assert story.site.missing() == set(), seed


def test_without_order_no_live_post_is_missing() -> None:
    """R28: where `orderby` has no effect, pages shift with every new post."""
    ways = Counter[str]()
    for seed in range(SEEDS):
        story = a_story(seed, SHIFTING, alter=ignoring("orderby", "order"))
        ways[story.outcome.known.way] += 1
        assert story.missing == set(), seed
    assert ways.keys() <= {BY_ID, FROM_FRONT}
    assert ways[FROM_FRONT] > SEEDS // 2


@pytest.mark.parametrize("ignored", ["*", "paged"])
def test_without_pages_the_archives_by_date_have_every_post(ignored: str) -> None:
    """R28: behind a cache that ignores parameters."""
    by_date = 0
    for seed in range(SEEDS // 2):
        story = a_story(seed, ["edit"], smallest_page=4, alter=ignoring(ignored))
        by_date += story.outcome.known.way == BY_DATE
        assert story.outcome.is_honoured, seed
        assert story.site.missing() == set(), seed
    assert by_date > SEEDS // 4  # the others are of one page, which is all there is


def without_validators(site: Site) -> None:
    site.has_validators = False


def without_head(site: Site) -> None:
    site.has_head = False


@pytest.mark.parametrize("alter", [without_validators, without_head])
def test_nothing_rests_on_fields_that_caches_take_away(alter: Callable[[Site], None]) -> None:
    """R28: without ETag and Last-Modified no sign shows late publication; without HEAD, GET counts pages."""
    for seed in range(SEEDS // 2):
        story = a_story(seed, ["add", "delete", "edit", "back-date"], alter=alter)
        assert story.missing == set(), seed


@pytest.mark.parametrize("posts", [1, 9, 10, 11, 20, 60])
@pytest.mark.parametrize("per_feed", [2, 3, 7, 10])
@pytest.mark.parametrize("rest", [True, False])
def test_a_quiet_blog_costs_few_questions(posts: int, per_feed: int, rest: bool) -> None:
    """R28: pages + 4 with the REST API, pages + 12 without, the subscription document included."""
    site = Site(Blog(posts), per_feed=per_feed, rest=rest)
    outcome = site.collect()
    assert (outcome.is_honoured, outcome.is_whole, site.missing()) == (True, True, set())
    pages = -(-posts // per_feed)
    assert (outcome.known.pages, outcome.known.way) == (pages, BY_ID)
    assert site.questions <= pages + (4 if rest else 12)


def test_pages_of_one_post_are_honoured_too() -> None:
    """R27: the last page by ID is then the subscription document, no repetition."""
    site = Site(Blog(7), per_feed=1)
    outcome = site.collect()
    assert (outcome.known.way, outcome.known.pages, site.missing()) == (BY_ID, 7, set())


@pytest.mark.parametrize("path", ["/category/news/feed/", "/search/lorem/feed/"])
def test_other_feeds_of_the_site_are_not_what_rest_counts(path: str) -> None:
    """R28: the adapter counts their pages without the REST API."""
    site = Site(Blog(60), path=path)
    outcome = site.collect()
    assert (outcome.known.total, site.missing()) == (None, set())
    assert not any("/wp-json/" in ask.url for ask in site.asked)


def test_an_import_that_turned_the_ids_around_is_no_ignored_order() -> None:
    """R28: the newest post may have the lowest ID."""
    blog = Blog(40)
    for post, number in zip(blog.posts[25:], range(40, 25, -1), strict=True):
        post.id = 10 + number
    site = Site(blog)
    assert site.collect().known.way == BY_ID
    assert site.missing() == set()


def test_a_total_above_what_the_pages_hold_causes_one_more_walk_and_no_third() -> None:
    """R31: the REST API may count posts absent from feeds, as a note says."""
    hidden = Blog(35)
    site = Site(Blog(30), rest=True)
    site.rest_blog = hidden
    outcome = site.collect()
    assert (outcome.known.total, outcome.known.collected) == (35, 30)
    first = site.questions
    site.known = _ended(site)
    site.collect()
    assert site.questions <= first - 3


def _ended(site: Site) -> Collection:
    return replace(site.known, ended_at=site.now)


# ---- Looks


def a_collected_blog(posts: int = 60) -> Site:
    site = Site(Blog(posts))
    site.collect()
    site.known = _ended(site)
    site.now += DAY_SECONDS
    return site


def asked(site: Site) -> list[str]:
    return [ask.url.partition("?")[2] for ask in site.asked]


def test_a_look_without_news_asks_by_date_of_change_and_for_the_tail() -> None:
    """R30: two pages by change, the last by ID, and the number after it."""
    site = a_collected_blog(55)
    assert not site.look().wants_all
    assert [each for each in asked(site) if "modified" in each] == [
        "orderby=modified",
        "orderby=modified&paged=2",
    ]
    assert len(site.asked) == 3


@pytest.mark.parametrize("posts", [11, 20])
def test_a_bulk_edit_is_noticed_as_a_tie(posts: int) -> None:
    """R30: posts with one instant of change may be on two pages or none, so all are read again."""
    site = a_collected_blog()
    site.blog.bulk_edit(site.blog.posts[:posts])
    outcome = site.look()
    assert outcome.wants_all


@pytest.mark.parametrize("posts", [12, 25])
def test_a_bulk_edit_behind_a_single_one_is_noticed(posts: int) -> None:
    """R30: a post on two pages, or a page's date, shows the edit."""
    site = a_collected_blog()
    site.blog.bulk_edit(site.blog.posts[:posts])
    site.blog.edit(site.blog.posts[50])
    site.stored.clear()
    outcome = site.look()
    edited = site.blog.posts[:posts]
    had_all = {post.id for post in edited}.isdisjoint(site.missing())
    assert outcome.wants_all or had_all


def published(blog: Blog, posts: int) -> None:
    for _ in range(posts):
        blog.add()


def published_and_back_dated(blog: Blog, posts: int) -> None:
    published(blog, posts)
    blog.back_date(days=BEFORE_ALL)


def replaced(blog: Blog, posts: int) -> None:
    blog.delete(*blog.posts[:posts])
    for days in range(posts):
        blog.back_date(days=BEFORE_ALL + days)


def made_fewer(blog: Blog, posts: int) -> None:
    blog.delete(*blog.posts[:posts])
    blog.back_date()


@pytest.mark.parametrize(
    ("before", "happens", "posts"),
    [
        pytest.param(60, published, 15, id="news in front"),
        pytest.param(60, made_fewer, 0, id="a post of long ago under the highest ID"),
        pytest.param(60, made_fewer, 25, id="the last page of before is gone"),
        pytest.param(13, published_and_back_dated, 19, id="the front has brought the next page of the tail"),
        pytest.param(20, published_and_back_dated, 19, id="the tail begins a page"),
        pytest.param(45, replaced, 10, id="what is new begins on the last page but one"),
    ],
)
def test_a_look_meets_every_live_post(before: int, happens: Callable[[Blog, int], None], posts: int) -> None:
    """R30: front pages until one has no news, then the last page by ID and its neighbours."""
    site = a_collected_blog(before)
    happens(site.blog, posts)
    outcome = site.look()
    assert (site.missing(), outcome.wants_all) == (set(), False)
    assert outcome.known.pages == -(-len(site.blog.posts) // 10)


@pytest.mark.parametrize("per_feed", [1, 3, 9])
def test_the_tail_is_found_where_pages_got_shorter(per_feed: int) -> None:
    """R30: the last page has the new front posts, and an earlier page the back-dated post."""
    site = a_collected_blog(18)
    site.blog.back_date(days=BEFORE_ALL)
    published(site.blog, per_feed)
    site.per_feed = per_feed
    site.look()
    assert site.missing() == set()


def test_a_bulk_edit_during_the_walk_is_remembered_as_a_tie() -> None:
    """R30: the order of change misses edits on pages already read."""
    site = Site(Blog(60))
    site.before = lambda number: site.blog.bulk_edit() if number == 7 else None
    assert site.collect().known.is_tied


def test_a_look_that_is_refused_does_not_count_as_one() -> None:
    """R30: the date of the last known change stays for the next look."""
    site = a_collected_blog()
    before = site.known.scanned_date
    site.blog.edit(site.blog.posts[3])
    site.refuses = lambda ask: "modified" in ask.url
    outcome = site.look()
    assert (outcome.is_whole, outcome.known.scanned_date) == (False, before)


def needed(asks: Sequence[PageQuestion]) -> list[str]:
    return [ask.url for ask in asks if ask.is_needed]


def test_a_page_that_is_gone_though_later_ones_answer_is_asked_for_once_more() -> None:
    """R6: it must exist, so its absence counts as missing."""
    site = Site(Blog(60), rest=False)
    site.refuses_gone = lambda ask: ask.url.endswith("paged=3")
    site.collect()
    assert needed(site.asked) == ["https://blog.test/feed/?orderby=ID&order=ASC&paged=3"]


def test_pages_that_go_because_posts_were_deleted_are_not_missing() -> None:
    """R6: no later page answers."""
    site = Site(Blog(60))
    site.before = lambda number: site.blog.delete(*site.blog.posts[5:45]) if number == 3 else None
    outcome = site.collect()
    assert (needed(site.asked), outcome.known.pages, site.missing()) == ([], 2, set())


@pytest.mark.parametrize("rest", [True, False])
@pytest.mark.parametrize("per_feed", [9, 7, 3])
def test_pages_that_get_shorter_in_the_middle_of_the_walk_lose_nothing(per_feed: int, rest: bool) -> None:
    """R28: no validator shows a changed `posts_per_rss`; the walk restarts once."""
    for at in range(1, 33, 3):
        site = Site(Blog(200), rest=rest)

        def before(number: int, site: Site = site, at: int = at) -> None:
            site.per_feed = per_feed if number >= at else 10

        site.before = before
        outcome = site.collect()
        assert (outcome.is_whole, site.missing()) == (True, set()), at
        assert site.questions <= 20 + 2 * -(-200 // per_feed)


def test_pages_that_get_shorter_again_and_again_are_partial() -> None:
    """R28: after a second such walk, all pages are read again later."""
    site = Site(Blog(200))
    site.before = lambda number: setattr(site, "per_feed", 10 if number < 8 else 7 if number < 26 else 5)
    outcome = site.collect()
    assert (outcome.is_whole, outcome.wants_all) == (False, True)
    assert "shorter" in outcome.reason
    site.before = lambda _number: None
    assert (site.collect().is_whole, site.missing()) == (True, set())


def test_pages_of_unequal_length_are_no_shorter_ones() -> None:
    """R28: some plugins drop posts from a page."""
    site = Site(Blog(200), rest=False)
    site.hidden = frozenset(post.id for post in site.blog.posts if post.id % 17 == 0)
    outcome = site.collect()
    assert (outcome.is_whole, site.missing()) == (True, set())
    assert site.questions <= 20 + 12


def test_a_deletion_may_move_the_entries_of_one_page_to_the_next() -> None:
    """R27: a repeated question brings other entries, but numbers still work."""
    site = Site(Blog(200))
    site.before = lambda number: site.blog.delete(*site.blog.posts[:10]) if number == 9 else None
    outcome = site.collect()
    assert (outcome.known.way, outcome.is_whole, site.missing()) == (BY_ID, True, set())


@pytest.mark.parametrize("rest", [True, False])
def test_where_posts_are_published_before_most_answers_no_loss_is_silent(rest: bool) -> None:
    """R28: scheduled posts, old and new, before two of three answers: one more look, then partial."""
    partial = 0
    for seed in range(SEEDS // 2):
        chance = random.Random(seed)
        blog = Blog(99)
        numbers = [*range(1, 11), *range(1000, 1030)]
        chance.shuffle(numbers)
        for number in numbers:
            blog.schedule(post_id=number)
        old = {post.id for post in blog.posts}
        site = Site(blog, rest=rest)

        def before(_number: int, blog: Blog = blog, chance: random.Random = chance) -> None:
            scheduled = [post for post in blog.everything if post.status == "future"]
            if scheduled and chance.random() < 2 / 3:
                blog.go_live(min(scheduled, key=lambda post: post.published))

        site.before = before
        outcome = site.collect()
        partial += not outcome.is_whole
        assert outcome.is_whole is not outcome.wants_all, seed
        assert not (outcome.is_whole and site.missing() & old), seed
    assert partial


# ---- Questions to publishers with a misleading appearance


@pytest.mark.parametrize("posts", [11, 14, 20])
def test_the_same_page_at_two_numbers_is_a_repetition(posts: int) -> None:
    """R27: where only the order has effect, pages 2 and 1 both have the oldest posts."""
    site = Site(Blog(posts))
    site.ignored = frozenset(["paged"])
    outcome = site.collect()
    assert (outcome.known.way, site.missing()) == (BY_DATE, set())


@pytest.mark.parametrize("way", ["page", "answer"])
def test_validators_that_tell_nothing_are_not_asked_about_on_and_on(way: str) -> None:
    """R28: caches change them each time, for a few requests more."""
    site = Site(Blog(300))
    answers = itertools.count()
    site.etag_of = lambda url, etag: f"{etag} {url if way == 'page' else next(answers)}"
    site.collect()
    assert site.missing() == set()
    assert site.questions <= 30 + 12


@pytest.mark.parametrize("at", range(6, 30, 3))
@pytest.mark.parametrize("way", ["page", "answer"])
def test_a_post_that_goes_live_is_seen_without_validators_that_tell_it(way: str, at: int) -> None:
    """R28: all later pages shift, seen at the end of the last."""
    blog = Blog(245)
    draft = blog.schedule(post_id=1)
    site = Site(blog, rest=False)
    answers = itertools.count()
    site.etag_of = lambda url, etag: f"{etag} {url if way == 'page' else next(answers)}"
    site.before = lambda number: blog.go_live(draft) if number == at else None
    site.collect()
    assert site.missing() == set()


@pytest.mark.parametrize("days", [0, 40, 400, 4000])
def test_a_file_below_every_path_is_not_asked_for_day_by_day(days: int) -> None:
    """R27: a static host answers any URL with the feed, for any month."""
    site = Site(Blog(10))
    site.rest, site.leads = False, lambda _url: f"{ROOT}{site.path}"
    site.now += days * DAY_SECONDS
    outcome = site.collect()
    assert not outcome.is_honoured
    assert site.questions <= 6


def test_archives_by_date_that_are_made_up_are_not_read_on_and_on() -> None:
    """R27: every path has other posts, for any date in the path."""
    site = Site(Blog(300))
    site.rest, numbers = False, itertools.count(2)

    def leads(url: str) -> str:
        is_dated = urlsplit(url).path != site.path
        return f"{ROOT}{site.path}" + (f"?paged={next(numbers)}" if is_dated else "")

    site.leads = leads
    outcome = site.collect()
    assert not outcome.is_honoured
    assert site.questions <= 8


@pytest.mark.parametrize("posts", [25, 95, 300, 900])
def test_a_head_that_is_always_answered_well_is_soon_not_believed(posts: int) -> None:
    """R28: GET counts the pages then, and not up to the highest number."""
    site = Site(Blog(posts), rest=False)
    site.is_head_always_there = True
    outcome = site.collect()
    assert (outcome.known.pages, site.missing()) == (-(-posts // 10), set())
    assert site.questions <= outcome.known.pages + 24


def copies_of_different_age(site: Site, seed: int) -> None:
    """Answer any query with one of three copies of the feed, ten posts apart."""
    chance = random.Random(seed)

    def leads(url: str) -> str:
        if urlsplit(url).path != site.path:
            return url
        return f"{ROOT}{site.path}?paged={chance.randrange(1, 4)}"

    site.leads = leads


@pytest.mark.parametrize("rest", [True, False])
@pytest.mark.parametrize("path", ["/feed/", "/category/news/feed/"])
def test_copies_of_different_age_are_no_pages(path: str, rest: bool) -> None:
    """R27, R28: never a whole history; archives by date are one."""
    for seed in range(SEEDS // 4):
        site = Site(Blog(300), path=path, rest=rest)
        copies_of_different_age(site, seed)
        outcome = site.collect()
        is_taken = outcome.is_honoured and outcome.is_whole
        assert not (is_taken and site.missing()), (seed, outcome.known.way)
        assert site.questions <= 150


@pytest.mark.fault("112")
def test_a_walk_in_which_page_after_page_brings_nothing_ends() -> None:
    """R28: after three pages; questions after the last page end too."""
    site = Site(Blog(300))
    numbers = itertools.cycle([2, 3, 4])
    site.leads = lambda url: (
        f"{ROOT}{site.path}?orderby=ID&order=ASC&paged={next(numbers)}" if "orderby=ID" in url else url
    )
    outcome = site.collect()
    assert (outcome.is_whole, outcome.wants_all, outcome.known.collected) == (False, True, 40)
    assert site.questions <= 1 + 1 + 30


@pytest.mark.fault("112")
def test_a_walk_whose_end_moves_on_and_on_ends() -> None:
    """R28: copies of different age follow the last page."""
    site = Site(Blog(300))
    numbers = itertools.cycle([28, 29])

    def leads(url: str) -> str:
        number = int(url.rpartition("paged=")[2]) if "orderby=ID" in url and "paged=" in url else 1
        return url.replace(f"paged={number}", f"paged={next(numbers)}") if number > 30 else url

    site.leads = leads
    outcome = site.collect()
    assert (outcome.is_whole, outcome.wants_all, site.missing()) == (False, True, set())
    assert site.questions <= 30 + 12


def test_a_look_that_gets_copies_of_different_age_ends() -> None:
    """R30: each copy is newer than the last look, so none ends it."""
    site = a_collected_blog()
    site.blog.bulk_edit(site.blog.posts[:20])
    site.blog.bulk_edit(site.blog.posts[20:40])
    numbers, answers = itertools.cycle([1, 3]), itertools.count()
    site.etag_of = lambda _url, etag: f"{etag} {next(answers)}"
    site.leads = lambda url: (
        f"{ROOT}{site.path}?orderby=modified&paged={next(numbers)}" if "modified" in url else url
    )
    assert site.look().wants_all
    assert site.questions <= 12


@pytest.mark.parametrize(
    ("posts", "claimed", "is_whole"), [(60, 121, False), (60, 120, True), (11, 30, True)]
)
def test_less_than_half_of_what_is_claimed_is_not_all(posts: int, claimed: int, is_whole: bool) -> None:
    """R31: and at least twenty fewer; a smaller difference is only noted."""
    site = Site(Blog(posts), rest=True)
    site.rest_blog = Blog(claimed)
    outcome = site.collect()
    assert (outcome.is_whole, outcome.wants_all, site.missing()) == (is_whole, not is_whole, set())
    assert is_whole or f"{claimed}" in outcome.reason


@pytest.mark.parametrize("front", [True, False])
def test_a_page_with_entries_at_the_highest_number_disproves_numbers(front: bool) -> None:
    """R28: by ID first, then in the feed's own order if possible, else not at all."""
    site = Site(Blog(300), path="/category/news/feed/", rest=False)
    site.leads = lambda url: (
        f"{ROOT}{site.path}?paged=2" if "orderby=ID" in url or (not front and "paged=" in url) else url
    )
    outcome = site.collect()
    assert (outcome.is_honoured, outcome.known.way) == (front, FROM_FRONT if front else "")
    assert not front or site.missing() == set()


@pytest.mark.parametrize("times", [1, 2])
def test_a_page_from_the_front_that_is_younger_than_the_one_before_is_asked_for_again(times: int) -> None:
    """R28: once; after a second such page the feed is partial."""
    site = Site(Blog(300), rest=False)
    stale = [times]

    def leads(url: str) -> str:
        if "orderby=ID" in url:
            return f"{ROOT}{site.path}?paged=2"
        if url.endswith("?paged=5") and stale[0]:
            stale[0] -= 1
            for _ in range(10):
                site.blog.add()
            return f"{ROOT}{site.path}"
        return url

    site.leads = leads
    outcome = site.collect()
    assert outcome.known.way == FROM_FRONT
    assert (outcome.is_whole, outcome.wants_all) == (times == 1, times == 2)
    assert times == 2 or not site.missing()
