"""`wholefeed.core.adapters.feedburner`: copies with their history at the source (rules R24, R26 to R31)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.core.adapters.publisher import NOW
from tests.core.adapters.test_others import BlogPosts
from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    AdapterPage,
    Asking,
    Collection,
    Marks,
    PageQuestion,
    PageResponse,
    Refused,
    Sight,
)
from wholefeed.core.adapters.feedburner import COPIES, FeedBurner
from wholefeed.core.adapters.table import find_adapter
from wholefeed.core.model import Family

BURNED = "https://feeds.feedburner.com/some"
WORDPRESS, BLOGGER = COPIES
GENERATORS = {WORDPRESS.name: "https://wordpress.org/?v=6.6", BLOGGER.name: "Blogger"}
UNAVAILABLE = Refused("http-503", 503)
GONE = Refused("http-404", 404)


class Copy(BlogPosts):
    """A copy of a blog's feed; the source is a `BlogPosts`.

    Args:
        count: Entries of the source.
        copied: How many of them the copy has.
    """

    adapter = BLOGGER
    url = BURNED
    site_id = "http://some.blogspot.com/"

    def __init__(self, count: int = 420, copied: int = 25) -> None:
        super().__init__(count)
        self.copied = copied
        self.copy: Callable[[list[str]], Sequence[str]] = lambda names: names[:copied]
        self.source_marks = Marks(generator="Blogger")
        self.leads_to = ""
        """Redirect target of the source's URL."""

    def job(self, known: Collection | None = None, **more: Any) -> AdapterJob:
        job = super().job(known, **more)
        page = self.document(self.url, self.copy(self.names))
        self.stored.update(page.identities)
        return replace(job, page=page)

    def answer(self, ask: PageQuestion) -> PageResponse:
        answer = super().answer(ask)
        if isinstance(answer, AdapterPage):
            marks = replace(self.source_marks, last_id=answer.marks.last_id)
            url = self.leads_to if self.leads_to and "start-index" not in ask.url else ask.url
            return replace(answer, marks=marks, url=url)
        return answer


# Recognising the publisher


def sight(generator: str, **changes: Any) -> Sight:
    marks = Marks(generator=generator, last_id="7", is_burned=changes.pop("is_burned", False))
    values: dict[str, Any] = {
        "asked_url": BURNED,
        "url": BURNED,
        "family": Family.RSS,
        "site_id": "http://some.example.org",
        "marks": marks,
    }
    return Sight(**(values | changes))


@pytest.mark.parametrize("adapter", COPIES)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"url": "http://feeds2.feedburner.com/some?format=xml"},
        {"url": "http://feedproxy.google.com/some"},
        {"url": "https://feeds.example.org/some", "is_burned": True},
        {"site_id": "https://example.org/blog/"},
    ],
)
def test_a_copy_is_known_by_its_host_or_by_feedburners_element(adapter: Any, changes: dict[str, Any]) -> None:
    """R26: and by the generator of its source."""
    one = sight(GENERATORS[adapter.name], **changes)
    assert adapter.fits(one)
    found = find_adapter(one.asked_url, one.url, one.family, one.site_id, one.marks.written())
    assert found is adapter


@pytest.mark.parametrize("adapter", COPIES)
@pytest.mark.parametrize(
    "changes",
    [
        {"url": "https://feeds.example.org/some"},
        {"url": "https://feeds.feedburner.com.example.org/some"},
        {"marks": Marks(generator="Some Engine")},
        {"marks": Marks(generator="https://wordpress.org/?v=6.6 Blogger", has_comments=True)},
        {"family": Family.ATOM},
        {"site_id": ""},
        {"site_id": "tag:example.org,2020:some"},
        {"site_id": "ftp://example.org/"},
    ],
)
def test_others_are_left_alone(adapter: Any, changes: dict[str, Any]) -> None:
    """R26: other copies, unknown sources, and heads without a source."""
    assert not adapter.fits(sight(GENERATORS[adapter.name], **changes))


def test_a_blog_that_leads_to_its_copy_is_asked_itself() -> None:
    """R26: at the requested URL, with `redirect=false`."""
    url = "https://some.blogspot.com/feeds/posts/default?alt=rss"
    found = find_adapter(url, BURNED, Family.RSS, "http://some.blogspot.com/", '{"generator": "Blogger"}')
    assert found is not None
    assert found.name == "blogger"


# The source, by rules R24 and R27


@pytest.mark.parametrize("copied", [5, 25])
def test_all_entries_of_the_source_come(copied: int) -> None:
    """R28: the source's adapter asks its own host only."""
    feed = Copy(copied=copied)
    outcome = feed.collect()
    assert (outcome.is_honoured, outcome.is_whole, feed.has_given_all) == (True, True, True)
    assert feed.targets[0] == "alt=rss&redirect=false"
    assert all(ask.url.startswith("http://some.blogspot.com/feeds/posts/default?") for ask in feed.asked)


def test_the_source_may_lead_to_its_present_address() -> None:
    """R28: the redirect target is asked for pages once the driver knows that it belongs here (R24)."""
    feed = Copy()
    feed.leads_to = "https://www.some-blog.example/feeds/posts/default?alt=rss&redirect=false"
    assert feed.collect().is_whole
    assert feed.has_given_all
    assert all(ask.url.startswith("https://www.some-blog.example/") for ask in feed.asked[1:])


def same_choice(names: list[str]) -> Sequence[str]:
    return names[:60:3]


def most_of_them(names: list[str]) -> Sequence[str]:
    return [name for place, name in enumerate(names[:30]) if place % 4]


def interleaved(names: list[str]) -> Sequence[str]:
    return [each for name in names[:20] for each in (name, f"{name}1", f"{name}2")]


def one_alone(names: list[str]) -> Sequence[str]:
    return [names[0], *map(str, range(7000, 7024))]


def another(names: list[str]) -> Sequence[str]:
    return [f"{name}9" for name in names[:25]]


def without_the_newest(names: list[str]) -> Sequence[str]:
    return names[4:29]


def with_some_added(names: list[str]) -> Sequence[str]:
    return [*names[:5], "7001", *names[5:10], "7002", *names[10:24]]


def longer(names: list[str]) -> Sequence[str]:
    return names[:100]


@pytest.mark.parametrize(
    ("copy", "is_one"),
    [
        (without_the_newest, True), (with_some_added, True), (longer, True),
        (same_choice, False), (most_of_them, False), (interleaved, False),
        (one_alone, False), (another, False),
    ],
)  # fmt: skip
def test_a_source_has_the_entries_of_its_copy(
    copy: Callable[[list[str]], Sequence[str]], is_one: bool
) -> None:
    """R27: the copy may be late, longer, and have extra entries; a category would have gaps in the middle."""
    feed = Copy()
    feed.copy = copy
    outcome = feed.collect()
    assert outcome.is_honoured is is_one
    assert is_one or (len(feed.asked), outcome.reason.endswith("is not the original feed")) == (1, True)


@pytest.mark.parametrize("generator", ["Some Engine", "https://wordpress.org/?v=6.6"])
def test_a_source_of_another_kind_is_none(generator: str) -> None:
    """R26: its answers are unknown."""
    feed = Copy()
    feed.source_marks = Marks(generator=generator)
    assert not feed.collect().is_honoured
    assert len(feed.asked) == 1


@pytest.mark.parametrize(
    "refusal",
    [UNAVAILABLE, GONE, Refused("redirected"), Refused("format"), Refused("cross-origin-unconfirmed")],
)
def test_nothing_is_claimed_where_the_source_cannot_be_had(refusal: Refused) -> None:
    """R27: also if the source redirects to the copy; the reason names the URL."""
    feed = Copy()
    feed.refusals[1] = refusal
    outcome = feed.collect()
    assert not outcome.is_honoured
    assert refusal.slug in outcome.reason
    assert "http://some.blogspot.com/feeds/" in outcome.reason
    assert len(feed.asked) == 1


@pytest.mark.parametrize(
    ("link", "urls"),
    [
        ("http://a.test", ["http://a.test/feed/", "http://a.test/?feed=rss2"]),
        ("https://a.test/blog/?x=1#y", ["https://a.test/blog/feed/", "https://a.test/blog/?feed=rss2"]),
    ],
)
def test_two_urls_at_most_are_tried(link: str, urls: list[str]) -> None:
    """R27: the second only without the first, since some sites lack pretty addresses."""
    for refusals, asked in (({1: GONE, 2: GONE}, urls), ({1: UNAVAILABLE}, urls[:1])):
        feed = Copy()
        feed.adapter, feed.site_id, feed.refusals = WORDPRESS, link, refusals
        assert not feed.collect().is_honoured
        assert [ask.url for ask in feed.asked] == asked


# News since the last look (R30)


@pytest.mark.parametrize("new", [0, 3, 60])
def test_the_source_is_asked_for_news(new: int) -> None:
    """R30: its adapter looks again; the next look makes up for a failure."""
    feed = Copy()
    known = feed.collected()
    feed.publish(new)
    feed.refusals[1] = UNAVAILABLE
    failed = feed.look(known)
    assert (failed.is_honoured, failed.is_whole, "http-503" in failed.reason) == (True, False, True)
    feed.refusals.clear()
    outcome = feed.look(known)
    assert (outcome.is_whole, feed.has_given_all) == (True, True)
    assert feed.asked[0].is_again
    assert len(feed.asked) <= 1 + new // 20


class Told:
    name = "told"

    def __init__(self) -> None:
        self.jobs: list[AdapterJob] = []

    def fits(self, sight: Sight) -> bool:
        return True

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        self.jobs.append(job)
        yield from ()
        return job.report_look()

    collect = look


@pytest.mark.parametrize(
    ("copied_at", "began_date"), [(NOW, NOW - 50), (NOW - 90, NOW - 90), (None, NOW - 50)]
)
def test_the_source_s_adapter_is_told_of_the_source(copied_at: float | None, began_date: float) -> None:
    """R28, R30: its document, news not yet in the copy, and the earlier of two dates of change, as the copy
    is written later.
    """
    source = Told()
    feed = Copy()
    known = replace(feed.collected(), began_date=copied_at)
    feed.publish(2)
    feed.copy = lambda names: names[2:27]
    asking = FeedBurner(source, ("feed/",)).look(feed.job(known))
    (ask,) = next(asking)
    page = replace(feed.document(ask.url, feed.names[:25]), updated_at=NOW - 50, news=2)
    assert asking.send([page]) == [ask._replace(is_held=False, is_again=False)]
    with pytest.raises(StopIteration):
        asking.send([page])
    (job,) = source.jobs
    assert (job.url, job.page.identities, job.has_news) == (ask.url, page.identities, True)
    assert job.known.began_date == began_date
