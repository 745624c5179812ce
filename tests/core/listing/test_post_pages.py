"""wholefeed.core.listing.post_pages: entries of a sitemap that their own pages show to be posts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from urllib.parse import urlsplit

import pytest

from tests.core.listing.site_models import POSTS
from tests.core.listing.sitemap_models import SITES, SiteModel, bear, built, one_category
from tests.core.listing.web import HOST, Looking, day_of, look_in
from wholefeed.core.listing.file_search import MOST_FILES
from wholefeed.core.listing.finding import MOST_LOOKS, LookMemory
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.text.dates import DAY_SECONDS

LEARNING = 3 + 1 + 2
"""Pages of the feed's entries, the front page, pages of the menu."""


def look_at(model: SiteModel, changes: dict[str, str | int] | None = None, **known: object) -> Looking:
    pages = model.pages | (changes or {})
    sitemaps = tuple(HOST + path for path in pages if path == "/sitemap-index.xml")
    return look_in(pages, model.feed, home_urls=(HOST + model.home,), sitemaps=sitemaps, **known)  # type: ignore[arg-type]


def look_again(
    model: SiteModel, first: Looking, changes: dict[str, str | int] | None = None, *, most_pages: int = 200
) -> Looking:
    memory = LookMemory.of(json.loads(json.dumps(asdict(first.found.known))))
    keys = frozenset(map(link_key, (*first.links, *(entry.link for entry in model.feed))))
    return look_at(model, changes, known=memory, known_keys=keys, most_pages=most_pages)


def older(model: SiteModel, looking: Looking) -> set[int]:
    """Return the posts found that the feed has not; a link of none fails."""
    truth = {link_key(link): number for link, number in model.truth.items()}
    return {truth[link_key(link)] for link in looking.links} - set(model.numbers)


@pytest.mark.parametrize("name", SITES)
def test_every_post_is_an_entry_and_nothing_else_is(name: str) -> None:
    """H10: with its day, in the manner of one program each; nothing where posts and pages are alike."""
    model = SITES[name]()
    looking = look_at(model)
    wanted = set(range(POSTS)) - set(model.numbers) if model.wanted else set()
    assert older(model, looking) == wanted
    numbers = {link_key(link): number for link, number in model.truth.items()}
    for page in looking.found.pages:
        for entry in page.entries:
            number = numbers[link_key(entry.link)]
            assert entry.at is not None
            assert abs(entry.at - day_of(number).timestamp()) < 1.5 * DAY_SECONDS
    assert not looking.found.missing
    assert not looking.found.is_cut
    assert len(looking.files) <= MOST_FILES
    assert len(looking.asked) <= POSTS + len(model.others) + LEARNING + MOST_LOOKS


@pytest.mark.parametrize("name", SITES)
def test_a_second_look_asks_for_no_page_again(name: str) -> None:
    """H8, H10: what is listed, and what is no entry, is known."""
    model = SITES[name]()
    first = look_at(model)
    if not first.links:
        return
    again = look_again(model, first)
    assert again.asked == []
    assert sorted(again.links) == sorted(first.links)


def test_pages_beyond_the_limit_are_looked_at_next_time() -> None:
    """H10: `history.list_pages` at a time, until all are known."""
    model = bear()
    looking = look_at(model, most_pages=12)
    assert looking.found.is_cut
    found = older(model, looking)
    assert 0 < len(found) <= 12
    for _ in range(3):
        looking = look_again(model, looking, most_pages=12)
        assert len(looking.asked) <= 12 + LEARNING
    assert older(model, looking) == set(range(POSTS)) - set(model.numbers)
    assert not looking.found.is_cut


def test_a_page_that_is_not_had_is_missing_and_asked_for_later() -> None:
    """H7, H10: the others are listed meanwhile; one that is gone is no entry."""
    model = bear()
    paths = [model.path(number) for number in (20, 21)]
    looking = look_at(model, {paths[0]: 503, paths[1]: 404})
    assert older(model, looking) == set(range(len(model.numbers), POSTS)) - {20, 21}
    assert [(each.url, each.status) for each in looking.found.missing] == [(HOST + paths[0], 503)]
    again = look_again(model, looking)
    assert HOST + paths[0] in again.links
    assert paths[1] not in again.asked


def test_a_publisher_that_fails_is_left_in_peace() -> None:
    """H9, H10: after three pages in a row the look ends."""
    model = bear()
    failing: dict[str, str | int] = {model.path(number): 500 for number in range(15, POSTS)}
    looking = look_at(model, failing)
    assert older(model, looking) == set(range(len(model.numbers), 15))
    assert looking.found.is_cut
    assert len(looking.found.missing) == 3


def test_pages_that_never_come_keep_no_others_waiting() -> None:
    """H10: three failures end a look only in a row, and those pages come last next time."""
    model = bear()
    numbers = range(len(model.numbers), POSTS)
    scattered: dict[str, str | int] = {model.path(number): 500 for number in numbers[3:20:4]}
    assert older(model, look_at(model, scattered)) == set(numbers) - set(numbers[3:20:4])
    first = look_at(model, {model.path(number): 500 for number in numbers[10:]})
    failing = {urlsplit(each.url).path: 500 for each in first.found.missing}
    assert len(failing) == 3
    again = look_again(model, first, {**failing})
    assert older(model, again) == {number for number in numbers if model.path(number) not in failing}
    brief = look_again(model, first, {**failing}, most_pages=4)
    assert {urlsplit(each.url).path for each in brief.found.missing} == set(failing)


def test_a_feed_of_one_category_is_seen_early() -> None:
    """H10: ten posts, most of them between the feed's entries, are enough."""
    model = one_category()
    looking = look_at(model)
    assert looking.why["/sitemap.xml"] == "feed-of-a-part"
    assert len(looking.asked) < 10 + LEARNING + MOST_LOOKS


def test_posts_at_the_root_cost_nothing_where_a_list_has_them() -> None:
    """H10: their pages are asked for only if no list is whole."""
    model = bear()
    rows = "".join(f"<li><a href='{model.path(number)}'>{number}</a></li>" for number in range(POSTS))
    looking = look_at(model, {"/blog/": f"<!doctype html><body><ul>{rows}</ul>"})
    assert len(looking.asked) <= MOST_LOOKS
    assert {link_key(link) for link in looking.links} == {link_key(link) for link in model.truth}


def test_a_list_that_is_dated_like_a_post_is_none() -> None:
    """H10: a page below the blog that has the elements of posts, and links many of them."""
    model = SITES["astro_tags"]()
    rows = "".join(f"<a href='{model.path(number)}'>{number}</a>" for number in range(POSTS))
    looking = look_at(model, {"/blog/tags-list": model.post(12).replace("</article>", f"{rows}</article>")})
    assert f"{HOST}/blog/tags-list" not in looking.links


@pytest.mark.parametrize("name", ["next_languages", "quartz", "nuxt", "nikola", "docusaurus_tags"])
def test_the_pages_of_short_names_are_looked_at_though_a_file_has_days(name: str) -> None:
    """H10: lists and drafts may have days as posts have. It takes no more than looking around may."""
    model = replace(SITES[name](), lastmod=day_of, page_lastmod=day_of(30))
    looking = look_at(model)
    assert older(model, looking) == set(range(POSTS)) - set(model.numbers)
    assert len(looking.asked) + len(looking.files) <= MOST_LOOKS + MOST_FILES


def test_a_post_that_is_not_in_the_feed_but_newer_is_none() -> None:
    """H10: a feed has the newest of all posts."""
    model = bear()
    looking = look_at(model, {"/reading-list-of-mine/": model.post(2)})
    assert f"{HOST}/reading-list-of-mine/" not in looking.links
    assert older(model, looking) == set(range(len(model.numbers), POSTS))


def test_days_of_a_build_are_none() -> None:
    """H10: pages have the days; those of the file are the same for all."""
    assert built(3) == built(30)
    days = [entry.at for page in look_at(SITES["hexo_root"]()).found.pages for entry in page.entries]
    assert len(set(days)) == len(days) == POSTS
