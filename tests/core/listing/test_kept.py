"""What a look keeps of pages: what may count, once, and no more than there is room for."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Callable

import pytest

from tests.core.listing.web import HOST, NOW, a_feed, a_list, an_item, look_in, name_of, site_of
from wholefeed.core.listing.file_search import FileRequest
from wholefeed.core.listing.finding import ListJob, NotHad, PageRequest, look
from wholefeed.core.listing.kept import MOST_BYTES, Keeping
from wholefeed.core.listing.lists import ListedFeedEntries
from wholefeed.core.listing.page_reading import MAX_KEPT_BYTES, ListPage, read_page

SEARCH_BYTES = 32_000_000
"""What a look may take (H9)."""


def a_page(body: str, url: str = f"{HOST}/") -> ListPage:
    return read_page(body.encode(), url, "text/html; charset=utf-8")


def keeping() -> Keeping:
    return Keeping(ListedFeedEntries.of(a_feed(), lambda _: True))


def test_links_that_lead_nowhere_are_not_kept() -> None:
    """H9: entries, the next page, counted pages, years and archives are, wherever they stand."""
    links = {
        "/posts/about-a-9/": "x",
        "/page/2/": "2",
        "/x": "Older posts",
        "/2019/": "2019",
        "/archive/": "All",
    }
    others = {"/about/": "About me", "https://b.test/x": "A friend", "/tags/x/": "x"}
    page = a_page("".join(f'<p><a href="{url}">{text}</a>' for url, text in (links | others).items()))
    kept = keeping().keep(page)
    assert [link.url.removeprefix(HOST) for link in kept.links] == list(links)
    assert kept.links == tuple(link for link in page.links if link.url.removeprefix(HOST) in links)


def test_what_stands_on_several_pages_is_kept_once() -> None:
    """H9: the menus of pages are the same objects, though each page came from a worker of its own."""
    menu = "".join(f"<a href=/page/{number}/>page {number}</a>" for number in range(34))
    kept = keeping()
    first, second = (
        kept.keep(pickle.loads(pickle.dumps(a_page(menu + an_item(number))))) for number in (1, 2)
    )
    assert all(one is other for one, other in zip(first.links[:30], second.links[:30], strict=True))


def test_a_page_for_which_there_is_no_room_is_cut() -> None:
    """H9: and no other one is of use behind it."""
    kept = keeping()
    count = 0
    page = kept.keep(a_page(""))
    while not kept.is_full:
        rows = "".join(f"<a href=/posts/about-{n}-{count}-{'y' * 400}/>x</a>" for n in range(2000))
        page = kept.keep(a_page(rows))
        count += len(page.links)
    assert page.is_cut
    assert count * 900 < MOST_BYTES


@pytest.mark.fault("146")
@pytest.mark.parametrize(
    "row",
    [
        f"<p><a href=/{'y' * 900}{{0}}/>1</a>",
        "<p><a href=/x{0}/>" + "\U0001f600" * 300 + "</a>",
        "<p><a href=/x{0}/ title='" + "\U0001f600" * 300 + "'></a>",
    ],
    ids=["URLs", "texts", "titles"],
)
def test_texts_and_urls_of_a_page_are_bounded_together(row: str) -> None:
    """H9: one that has more is cut, and says so."""
    page = a_page("".join(row.format(number) for number in range(15_000)))
    kept = {id(text): text for link in page.links for text in (link.url, link.key, link.text)}
    assert sum(len(text) for text in kept.values()) < MAX_KEPT_BYTES
    assert len(pickle.dumps(page)) < 1.5 * MAX_KEPT_BYTES
    assert page.is_cut


@pytest.mark.fault("146")
def test_no_search_takes_more_memory_than_it_may() -> None:
    """H9: each page has links to long URLs, as many as are read, and leads on."""

    def read(number: int) -> bytes:
        own = "".join(an_item(post) for post in range(5)) if number == 1 else ""
        long = "y" * 450
        more = own + "".join(f"<p><a href=/{long}/{number}/{link}/>{link}</a>" for link in range(6000))
        body = f"<a rel=next href={HOST}/page/{number + 1}/>Older</a><ul>{more}</ul>"
        return pickle.dumps(a_page(body, f"{HOST}/page/{number}/" if number > 1 else f"{HOST}/"))

    pages = [read(number) for number in range(1, 4)]
    looking = look(
        ListJob(feed_url=f"{HOST}/feed", home_urls=(f"{HOST}/",), entries=a_feed(), site_of=site_of, now=NOW)
    )
    ask: PageRequest | FileRequest = next(looking)
    tracemalloc.start()
    try:
        while pages or not isinstance(ask, PageRequest):
            is_page = isinstance(ask, PageRequest)
            ask = looking.send(
                pickle.loads(pages.pop(0)) if is_page else NotHad(ask.url, "robots", None, True)
            )
        pytest.fail("a look that is full asks for no more pages")
    except StopIteration:
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < SEARCH_BYTES


def years_in_pages(path: str) -> str:
    """Each year has pages without end, of long links; the newest one begins with the feed's entries."""
    year, _, number = path.strip("/").partition("/page/")
    if not year:
        return "<ul>" + "".join(f"<li><a href=/{each}/>{each}</a>" for each in range(2024, 2004, -1))
    first = 10 + 1500 * (200 * (2024 - int(year)) + int(number or 1))
    own = "".join(an_item(post) for post in range(10)) if (year, number) == ("2024", "") else ""
    items = "".join(
        f"<li><a href=/posts/{name_of(post)}{'-q' * 150}/>{post} {'t' * 250}</a>"
        for post in range(first, first + 1500)
    )
    return f"<ul>{own or items}</ul><a href=/{year}/page/{int(number or 1) + 1}/>Older</a>"


def archives_beside_each_other(path: str) -> str:
    """Each page has the feed's entries, a list that may go on, and a menu of its own."""
    ways = "".join(f"<a href=/archive{number}>archive</a>" for number in range(1, 9))
    menu = "".join(f"<a href=/{path[1:]}x{n}{'y' * 150}>{n} {'z' * 100}</a>" for n in range(6000))
    return a_list(range(6), f"<a href={path}/2/>Older</a>{ways}<nav>{menu}</nav>")


@pytest.mark.fault("146")
@pytest.mark.parametrize("answer", [years_in_pages, archives_beside_each_other])
def test_a_search_of_many_pages_takes_no_more_memory_than_it_may(answer: Callable[[str], str]) -> None:
    """H9: years that go on without end, and many pages that may be the list; none is asked twice."""
    read: dict[str, bytes] = {}
    asked = search(answer, read)
    tracemalloc.start()  # of the second search alone: its pages are read by now
    try:
        assert search(answer, read) == asked
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < SEARCH_BYTES
    assert len(asked) == len(set(asked)) > 2


def search(answer: Callable[[str], str], read: dict[str, bytes]) -> list[str]:
    """Let a look ask for up to 30 pages, which are read once and kept as a worker sends them."""
    looking = look(
        ListJob(feed_url=f"{HOST}/feed", home_urls=(f"{HOST}/",), entries=a_feed(), site_of=site_of, now=NOW)
    )
    asked: list[str] = []
    try:
        ask = next(looking)
        while len(asked) < 30:
            if not isinstance(ask, PageRequest):
                ask = looking.send(NotHad(ask.url, "robots", None, True))
                continue
            asked.append(ask.url)
            if ask.url not in read:
                read[ask.url] = pickle.dumps(a_page(answer(ask.url.removeprefix(HOST)), ask.url))
            ask = looking.send(pickle.loads(read[ask.url]))
    except StopIteration:
        pass
    return asked


def test_a_long_list_with_a_long_menu_is_read_to_its_end() -> None:
    """H4, H9: 100 pages of 30 posts, each with the months of 20 years."""
    months = "".join(
        f"<li class=m><a href=/{year}/{month:02}/>{month}</a>"
        for year in range(2000, 2020)
        for month in range(1, 13)
    )
    pages = {
        f"/page/{n}/" if n > 1 else "/": a_list(
            range(30 * n - 30, 30 * n), (f"<a href=/page/{n + 1}/>Older</a>" if n < 100 else "") + months
        )
        for n in range(1, 101)
    }
    looking = look_in(pages)
    assert looking.numbers == list(range(3000))
    assert not looking.found.is_cut
