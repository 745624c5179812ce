"""wholefeed.core.listing.finding: which page has the list, where it goes on, what it lists."""

from __future__ import annotations

import json
import re
from calendar import month_abbr
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.listing.web import (
    HOST,
    Looking,
    a_feed,
    a_list,
    an_entry,
    an_item,
    day_of,
    in_pages,
    look_in,
    name_of,
    path_of,
    title_of,
)
from wholefeed.core.listing.finding import MOST_LOOKS, WHY, LookMemory, why_in_words
from wholefeed.core.listing.page_links import link_key

ALL = list(range(30))
A_MOMENT = timedelta(seconds=1)


def menu(*paths: str) -> str:
    return "<nav>" + "".join(f"<a href={path}>{path.strip('/')}</a>" for path in paths) + "</nav>"


def dates(looking: Looking) -> dict[int, tuple[str, str]]:
    """The days that were listed and what they are from, by the number of the post."""
    entries = [entry for page in looking.found.pages for entry in page.entries]
    return {
        number: (
            "" if entry.at is None else f"{datetime.fromtimestamp(entry.at, UTC):%Y-%m-%d}",
            entry.dated_by,
        )
        for number, entry in zip(looking.numbers, entries, strict=True)
    }


# Where to look


def test_the_feeds_own_page_is_looked_at_first() -> None:
    """H2: the page that the feed's head links; where the list stands there, nothing else is asked."""
    looking = look_in({"/": a_list(ALL)})
    assert (looking.numbers, looking.asked) == (ALL, ["/"])
    assert [page.url for page in looking.found.pages] == [f"{HOST}/"]
    assert look_in({"/": a_list(ALL)}, home_urls=()).asked == ["/"]


@pytest.mark.parametrize("path", ["/archive/", "/archives.html", "/blog/", "/writing", "/history"])
def test_links_lead_to_archives_by_their_words_or_paths(path: str) -> None:
    """H2: archive, posts, blog, articles, writing, history, by the path or the text of a link."""
    assert look_in({"/": menu("/about", path), path: a_list(ALL)}).asked == ["/", path]
    by_words = "<p>Here are <a href=/z>all posts</a>, and <a href=/y>a dog</a>.</p>"
    assert look_in({"/": by_words, "/z": a_list(ALL)}).asked == ["/", "/z"]


def test_the_same_names_are_tried_at_the_root_of_the_site() -> None:
    """H2: where no link leads to a list."""
    looking = look_in({"/": "<p>Hello", "/archive/": a_list(ALL)})
    assert looking.numbers == ALL
    assert looking.why == {"/": "no-list", "/archives/": "http-status 404"}


def test_at_most_eight_pages_are_looked_at() -> None:
    """H2, H9: however many are named as lists are."""
    many = [f"/{letter}/archive" for letter in "abcdefghijklmnop"]
    looking = look_in({"/": menu(*many), "*": "<p>Nothing"})
    assert len(looking.asked) == MOST_LOOKS == 8
    assert not looking.found.pages
    assert set(looking.why.values()) == {"no-list"}


def test_what_has_the_shape_of_an_entry_is_not_looked_at() -> None:
    """H2: a post titled "Archive", wherever it is linked; what a menu links otherwise is none."""
    post = "<p><a href=/posts/archive/>Archive</a></p>"
    looking = look_in({"/": a_list(range(5), post), "*": "<p>Nothing"})
    assert "/posts/archive/" not in looking.asked
    entries = [an_entry(number, link=f"{HOST}/{name_of(number)}/") for number in range(5)]
    linked = "".join(f"<h2><a href=/{name_of(number)}/>{title_of(number)}</a></h2>" for number in range(30))
    looking = look_in({"/": menu("/archive/"), "/archive/": linked}, entries)
    assert looking.asked == ["/", "/archive/"]
    assert len(looking.links) == 30


def test_years_that_stand_alike_are_one_candidate() -> None:
    """H2: [a menu of years used up all eight pages] none of them is looked at before the archive."""
    years = menu(*(f"/{year}/" for year in range(2024, 2010, -1)))
    looking = look_in({"/": years + menu("/archive/"), "/archive/": a_list(ALL), "*": "<p>Nothing"})
    assert looking.asked == ["/", "/archive/"]


def test_three_requests_are_kept_for_the_walk() -> None:
    """H2: [looking at names of lists spent all that the walk needed] as soon as a way is known."""
    many = menu(*(f"/{letter}/archive" for letter in "abcdefghijkl"))
    pages = {
        key: text + (many if key == "/" else "") for key, text in in_pages(30, 3, word="Further").items()
    }
    pages = {key: text.replace("Further", "»") for key, text in pages.items()}
    looking = look_in({**pages, "*": "<p>Nothing"})
    assert looking.numbers == ALL
    assert sum("archive" in path for path in looking.asked) == MOST_LOOKS - 1 - 3


@pytest.mark.parametrize("above", ["tag", "tags", "category", "categories", "topics", "author"])
def test_tags_are_no_lists_whatever_their_names(above: str) -> None:
    """H2: [a blog's tags `notes`, `history`, `journal` used up all eight pages] and their numbered pages."""
    tags = menu(f"/{above}/notes/", f"/{above}/history/", f"/{above}/journal/page/2/")
    looking = look_in({"/": tags + menu("/writing/"), "/writing/": a_list(ALL), "*": "<p>Nothing"})
    assert looking.asked == ["/", "/writing/"]


def test_the_menu_of_the_site_is_tried_before_guesses() -> None:
    """H2: after the names that are known, four links at most, those last that seldom lead to lists."""
    pages = {"/": f"<p>Hello{menu('/about/', '/contact/', '/words/')}", "/words/": a_list(ALL)}
    assert look_in({**pages, "*": "<p>Nothing"}).asked == ["/", "/words/"]
    names = [f"/{letter}/" for letter in "abcdefgh"]
    looking = look_in(
        {"/": menu(*names), "/archives/": a_list(ALL), **{name: f"<h1>{name}</h1>" for name in names}}
    )
    assert looking.asked == ["/", *names[:4], "/archives/"]


def test_no_other_site_is_asked() -> None:
    """H1: the feed's own site only, whatever links or redirects lead elsewhere."""
    elsewhere = "<nav><a href=https://b.test/archive/>Archive</a></nav><link rel=next href=https://b.test/2>"
    looking = look_in({"/": elsewhere, "/archives/": "-> https://b.test/", "https://b.test/": a_list(ALL)})
    assert all(path.startswith("/") for path in looking.asked)
    assert looking.why["/archives/"] == "cross-origin"
    assert not looking.found.pages
    assert look_in({"https://b.test/": a_list(ALL)}, home_urls=("https://b.test/",)).asked[0] == "/"


def test_robots_and_errors_are_told() -> None:
    """H7: what was looked at, and why it did not count; a word for each."""
    looking = look_in({"/": 503, "/archives/": 0})
    assert looking.why["/"] == "http-status 503"
    assert looking.why["/archives/"] == "robots"
    assert why_in_words("http-status 503") == WHY["http-status"]
    assert why_in_words("timeout") == "the publisher did not respond in time"
    assert why_in_words("anything") == WHY["not-had"]


# What a list is


@pytest.mark.parametrize(
    "region", ["aside", "nav", "header", "footer", 'div class="sidebar"', 'div role="navigation"']
)
def test_sidebars_are_no_lists(region: str) -> None:
    """H3: [sidebars of "Recent" and "Popular" gave five posts]."""
    assert not look_in({"/": f"<body><{region}>{a_list(ALL)}</{region.partition(' ')[0]}>"}).found.pages


def test_an_article_may_have_a_header() -> None:
    """H3: links in the header of an article are its own."""
    articles = "".join(
        f"<article><header><h2><a href={path_of(number)}>{title_of(number)}</a></h2></header><p>X</article>"
        for number in ALL
    )
    assert look_in({"/": articles}).numbers == ALL


def test_links_that_stand_alike_are_not_all_entries() -> None:
    """H3: ["Projects" and "About" stand alike on a person's page]."""
    other = "<li><a href=/projects/>Projects</a><li><a href=/posts/>All</a><li><a href=https://b.test/posts/x/>B</a>"
    assert look_in({"/": a_list(ALL).replace("<ul>", f"<ul>{other}")}).numbers == ALL
    dated = [an_entry(n, link=f"{HOST}/2024/{n + 1:02}/{name_of(n)}") for n in range(5)]
    page = "".join(f"<li><a href=/2024/{n + 1:02}/{name_of(n)}>{title_of(n)}</a>" for n in range(9))
    looking = look_in({"/": f"<ul>{page}<li><a href=/tags/a/b>B</a><li><a href=/2023/x/y>Y</a></ul>"}, dated)
    assert [link.rpartition("/")[2] for link in looking.links] == [name_of(n) for n in range(9)]


def test_nine_in_ten_of_the_feeds_entries_have_to_be_met() -> None:
    """H3: and three at least."""
    entries = a_feed(10)
    assert look_in({"/": a_list([0, *range(2, 30)])}, entries).numbers == [0, *range(2, 30)]
    looking = look_in({"/": a_list([0, *range(3, 30)])}, entries)
    assert (looking.links, looking.why["/"]) == ([], "feeds-entries-not-met")
    assert look_in({"/": a_list(ALL)}, a_feed(3)).numbers == ALL
    looking = look_in({"/": a_list(ALL)}, a_feed(2))
    assert (looking.asked, looking.why) == ([], {"/feed.xml": "entries-elsewhere"})


def test_nothing_stands_above_the_feeds_first_entry() -> None:
    """H3: what does is no post, or one that the feed has not."""
    assert not look_in({"/": a_list([40, *ALL], dated=False)}).links
    assert not look_in({"/": a_list([0, 1, 40, 2, 3, 4, 5, 6], dated=False)}).links


def test_what_is_pinned_stands_further_down_by_its_date_too() -> None:
    """H3: twice on the page, or on top alone with an older date; each is listed once."""
    assert look_in({"/": a_list([20, *ALL], dated=False)}).numbers == ALL
    assert look_in({"/": a_list([20, *range(20)])}).numbers == ALL[:21]
    assert look_in({"/": a_list([3, 0, 1, 2, *range(4, 30)])}).numbers == [0, 1, 2, *range(4, 30), 3]


def test_as_many_may_be_pinned_as_stand_on_top_of_every_page() -> None:
    """H3: more than three, or without dates, have to stand on top of each page, or below, too."""
    pins = "".join(an_item(n, dated=False) for n in range(40, 46))
    undated = {key: re.sub("<time.*?</time> ", "", text) for key, text in in_pages(30, 8).items()}
    pages = {key: text.replace("<ul>", f"<ul>{pins}") for key, text in undated.items()}
    assert sorted(look_in(pages).numbers) == [*ALL, *range(40, 46)]
    pages["/page/2/"] = pages["/page/2/"].replace(an_item(43, dated=False), "")
    assert not look_in(pages).links


def test_what_stands_behind_the_feeds_entries_may_be_none() -> None:
    """H3: ["more jobs", "upgrade notes"] undated where those have dates; a few in a row of their own."""
    more = "".join(an_item(n, dated=False) for n in range(60, 64))
    for below in (more, f"</ul><p>More jobs<ul>{more}"):
        assert look_in({"/": a_list(ALL).replace("</ul>", f"{below}</ul>")}).numbers == ALL
        assert not look_in({"/": a_list(range(5)).replace("</ul>", f"{below}</ul>")}).links
    undated = a_list(range(5), dated=False).replace("</ul>", "</ul><p>Upgrade notes<ul>{}</ul>")
    assert not look_in({"/": undated.format(more)}).links
    older = "".join(an_item(n) for n in range(5, 8))
    assert look_in({"/": undated.format(older)}).numbers == list(range(8))
    assert look_in({"/": a_list(range(8), dated=False)}).numbers == list(range(8)), "in the same row"
    assert look_in({"/": a_list(ALL).replace(f"<time datetime={day_of(29):%Y-%m-%d}", "<i")}).numbers == ALL


def test_entries_without_titles_may_stand_in_several_positions() -> None:
    """H5: [Tumblr] a list is walked over all permalinks; what most links say, or a date, is no title."""

    def post(n: int) -> str:
        title = f"<h2><a href={path_of(n)}>{title_of(n)}</a></h2>" if n % 4 == 0 else ""
        kind = "quote" if n % 3 else "photo"
        return (
            f"<article>{title}<div class={kind}><a href={path_of(n)}>{day_of(n):%d %B %Y}</a></div></article>"
        )

    entries = [replace(each, title=each.title if n % 4 == 0 else "") for n, each in enumerate(a_feed(9))]
    pages = {"/": "".join(map(post, range(12))) + "<a href=/2>2</a>", "/2": "".join(map(post, range(12, 30)))}
    looking = look_in(pages, entries)
    assert looking.numbers == ALL
    titles = [entry.title for page in looking.found.pages for entry in page.entries]
    assert titles == ["" if n % 4 else title_of(n) for n in ALL]
    notes = "".join(f"<p>x <a href={path_of(n)}>{n} notes</a></p>" for n in ALL)
    found = look_in({"/": notes}, [replace(each, title="") for each in a_feed()])
    assert {entry.title for page in found.found.pages for entry in page.entries} == {""}


def test_a_list_that_dates_its_entries_goes_before_one_that_does_not() -> None:
    """H3: where both promise as much, for eight requests at most; ten in a row on one day are no dates."""
    pages = in_pages(40, 10)
    pages["/"] += menu("/page/4/", "/archive/")
    for archive in (
        a_list(range(40), dated=False),
        "".join(
            f"<p><time datetime=2024-05-20>x</time> <a href={path_of(n)}>{title_of(n)}</a>" for n in range(40)
        ),
    ):
        assert look_in({**pages, "/archive/": archive}).asked == ["/", "/archive/", *list(pages)[1:]]
    pages = in_pages(40, 3)
    pages["/"] += menu("/page/14/", "/archive/")
    looking = look_in({**pages, "/archive/": a_list(range(40), dated=False)})
    assert (looking.asked, len(looking.links)) == (["/", "/archive/"], 40)


def test_oldest_first_is_a_list_too() -> None:
    """H3: it is given newest first."""
    looking = look_in({"/": a_list(reversed(ALL))})
    assert looking.numbers == ALL
    assert [page.url for page in looking.found.pages] == [f"{HOST}/"]


@pytest.mark.parametrize(
    "row",
    [
        "<li><a href={post}>{title}</a> in <a href={other}>Dogs</a>",
        "<li><a href={post}><img src=x></a> <a href={post}>{title}</a>, <a href={other}>Ann</a>",
        "<tr><td><a href={other}>Ann</a><td><a href={post}>{title}</a>",
        "<tr><td><a href={post}>{title}</a><td><a href={other}>Dogs</a>",
    ],
)
def test_what_stands_beside_each_entry_is_none(row: str) -> None:
    """H3: categories and authors whose paths have the shape of entries', in rows without classes."""

    def rows(numbers: range) -> str:
        others = [f"/posts/{name}/" for name in ("dogs", "cats", "travel", "ann")]
        made = [
            row.format(post=path_of(n), title=title_of(n), other=others[n * 7 % 11 % len(others)])
            for n in numbers
        ]
        return f"<{'table' if row.startswith('<tr') else 'ul'}>{''.join(made)}</table></ul>"

    assert look_in({"/": rows(range(30))}).numbers == ALL
    pages = {"/": rows(range(10)), "/page/2/": rows(range(10, 20)), "/page/3/": rows(range(20, 30))}
    for number, path in enumerate(("/", "/page/2/"), 2):
        pages[path] += f"<a href=/page/{number}/>Older</a>"
    assert look_in(pages).numbers == ALL


@pytest.mark.parametrize("dated", [True, False])
def test_what_stands_under_another_heading_is_none(dated: bool) -> None:
    """H3: projects and talks stand alike on a person's page, and have paths of the same shape."""
    others = "".join(
        f"<li>{f'<time datetime=2024-0{n}-01>then</time> ' if dated else ''}<a href=/posts/thing-{n}/>{n}</a>"
        for n in range(1, 9)
    )
    for count in (5, 30):
        writing = "".join(an_item(n, dated=dated) for n in range(count))
        page = f"<h2>Writing</h2><ul>{writing}</ul><h2>Projects</h2><ul>{others}</ul>"
        assert look_in({"/": page}).numbers == (ALL if count > 5 else [])
        turned = f"<h2>Projects</h2><ul>{others}</ul><h2>Writing</h2><ul>{writing}</ul>"
        assert look_in({"/": turned}).numbers in (ALL if count > 5 else [], [])


def test_comments_are_no_entries_of_a_list_of_posts() -> None:
    """H3: the feed of comments links a part of a page each; a feed whose links all name one part does not."""
    comments = [an_entry(n, link=f"{HOST}{path_of(n)}#comment-{90 - n}") for n in range(5)]
    assert not look_in({"/": a_list(ALL)}, comments).links
    posts = [an_entry(n, link=f"{HOST}{path_of(n)}#feed") for n in range(5)]
    assert look_in({"/": a_list(ALL)}, posts).numbers == ALL


def test_the_whole_blog_is_no_list_of_one_tag() -> None:
    """H3: [a whole blog was listed for the feed of one tag]: others stand between its entries."""
    tagged = [an_entry(number) for number in (0, 3, 4, 8, 9)]
    assert not look_in({"/": a_list(ALL), "/archive/": a_list(ALL)}, tagged).links


def test_links_elsewhere_and_comments_are_no_entries() -> None:
    """H3: a link blog, and the feed of comments."""
    elsewhere = [an_entry(number, link=f"https://b.test/{number}") for number in range(8)]
    assert look_in({"/": a_list(ALL)}, [*elsewhere, *a_feed(2)]).why == {"/feed.xml": "entries-elsewhere"}
    comments = [an_entry(n // 2, link=f"{HOST}{path_of(n // 2)}#comment-{n}") for n in range(10)]
    assert look_in({"/": a_list(ALL)}, comments).why == {"/feed.xml": "entries-elsewhere"}


def grouped(groups: list[list[int]], *, shift: int = 0, tag: str = "ul") -> str:
    """A page of lists under headings, its dates so many posts wrong."""
    items = [
        f"<h2>Subject</h2><{tag}>"
        + "".join(
            f"<li><a href={path_of(n)}>{title_of(n)}</a> <time datetime={day_of(n + shift):%Y-%m-%d}>x</time>"
            for n in numbers
        )
        + f"</{tag}>"
        for numbers in groups
    ]
    return "<main>" + "".join(items)


SUBJECTS = [[1, 4, 7, 9], [0, 2, 3, 5, 6, 8]]


def test_a_list_by_subject_counts_on_a_page_of_its_own() -> None:
    """H3: shuffled, in two groups at least, each with the feed's entries in order; given by dates."""
    assert look_in({"/": menu("/archive/"), "/archive/": grouped(SUBJECTS)}).numbers == list(range(10))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(grouped([[1, 4, 7, 9, 0, 2, 3, 5]]), id="one group"),
        pytest.param(grouped([[4, 1, 7, 9], [0, 2, 3, 5]]), id="in its own order"),
        pytest.param(grouped(SUBJECTS) + "<a rel=next href=/2>Next</a>", id="with further pages"),
        pytest.param(f"<table><tr><td>{grouped(SUBJECTS)}</table>", id="in a table"),
        pytest.param(grouped(SUBJECTS, shift=3), id="with other dates"),
        pytest.param(grouped([[1, 4, 7, 9], [0, 40, 2, 3, 5, 6, 8]]), id="with others between"),
    ],
)
def test_shuffled_links_are_no_list(page: str) -> None:
    """H3: [news fronts, forums, menus of documentation, a whole blog were listed]."""
    looking = look_in({"/": menu("/archive/"), "/archive/": page, "/2": "<p>"})
    assert (looking.links, looking.why["/archive/"]) == ([], "out-of-order")


def test_a_front_page_of_subjects_is_no_list() -> None:
    """H3: [news fronts]."""
    assert not look_in({"/": grouped(SUBJECTS)}).links


def test_a_page_of_what_the_feed_has_is_none() -> None:
    """H3: it would list nothing."""
    assert look_in({"/": a_list(range(5))}).why["/"] == "nothing-more"


def test_of_lists_that_promise_as_much_the_one_of_fewest_requests_is_taken() -> None:
    """H3: an archive of one page before numbered ones; numbers before months [123 requests instead of 20]."""
    pages = in_pages(30, 3)
    pages["/"] += menu("/page/10/", "/archive/")
    looking = look_in({**pages, "/archive/": a_list(ALL)})
    assert looking.asked == ["/", "/archive/"]
    months = [f"/{day_of(number):%Y/%m}/" for number in ALL]
    by_month = {month: a_list(n for n in ALL if months[n] == month) for month in months}
    pages = in_pages(30, 6)
    pages["/"] += menu("/page/5/", *dict.fromkeys(months))
    assert look_in({**by_month, **pages}).asked == ["/", *(f"/page/{number}/" for number in range(2, 6))]


def test_numbers_that_promise_as_much_are_counted() -> None:
    """H3: last number times a page; where it is not said, at the pace of the feed since the first year."""
    pages, archive = in_pages(30, 3), in_pages(30, 6, "/archive/{}", first="/archive/")
    pages["/"] += menu("/page/10/", "/archive/")
    archive["/archive/"] += menu("/archive/5")
    assert look_in({**pages, **archive}).asked == ["/", *archive]
    years = {f"/{day_of(number).year}/": "" for number in range(90)}
    years = {key: a_list(n for n in range(90) if f"/{day_of(n).year}/" == key) for key in years}
    pages = in_pages(90, 4)
    pages["/"] += menu(*years)
    assert look_in({**pages, **years}).asked == ["/", *years]


def test_a_list_of_few_is_not_all() -> None:
    """H3: what goes on promises more than a page of hardly more than the feed has."""
    pages = in_pages(30, 5)
    pages["/"] += menu("/archive/")
    assert look_in({**pages, "/archive/": a_list(range(8))}).numbers == ALL
    many = {
        f"/{year}/": a_list(n for n in range(90) if day_of(n).year == year) for year in range(2024, 2018, -1)
    }
    links = "".join(
        f"<li><a href={path}>{path[1:5]}</a> ({text.count('<li>')})" for path, text in many.items()
    )
    assert look_in({"/": a_list(ALL) + f"<ol>{links}</ol>", **many}).numbers == list(range(90))
    few = {"/": a_list(range(8)), "/archive/": menu("/2024/", "/2023/", "/2022/")}
    years = {f"/{year}/": a_list(n for n in ALL if day_of(n).year == year) for year in (2024, 2023, 2022)}
    few["/"] += menu("/archive/")
    assert look_in({**few, **years}).numbers == ALL


def test_another_list_is_walked_if_one_fails() -> None:
    """H3: the numbered pages of something else, then the archive."""
    front = a_list(range(5), menu("/archive/") + "<a href=/page/2/>2</a> <a href=/page/9/>9</a>")
    wrong = a_list(range(40, 60)).replace("<ul>", "<ol>")
    looking = look_in({"/": front, "/page/2/": wrong, "/archive/": a_list(range(12))})
    assert looking.numbers == list(range(12))


def test_texts_that_are_titles_come_before_others() -> None:
    """H3: themes link a date, a picture and "Continue reading" to the same URL."""
    articles = "".join(
        f"<article><a class=a href={path_of(n)}>#</a><i><a class=b href={path_of(n)}>{n} replies</a></i>"
        f"<a class=c href={path_of(n)}>{n} likes</a>"
        f"<a class=d href={path_of(n)}>{day_of(n):%d %B %Y}</a><a href={path_of(n)}><img src=x></a>"
        f"<h2><a href={path_of(n)}>{title_of(n)}</a></h2>X <a class=m href={path_of(n)}>Continue reading</a>"
        "</article>"
        for n in ALL
    )
    looking = look_in({"/": articles})
    assert [entry.title for entry in looking.found.pages[0].entries] == [title_of(n) for n in ALL]
    assert dates(looking)[29] == (f"{day_of(29):%Y-%m-%d}", "page")


def test_links_without_titles_are_no_list() -> None:
    """H5: [texts] "Continue reading" to each entry is the title of none, unless the feed has no titles."""
    page = "".join(f"<p>X <a href={path_of(n)}>Continue reading</a>" for n in ALL)
    assert not look_in({"/": page}).links
    assert look_in({"/": page}, [replace(entry, title="") for entry in a_feed()]).numbers == ALL


def test_a_page_that_was_not_read_to_its_end_is_told() -> None:
    """H9: there is more of the list."""
    assert look_in({"/": a_list(ALL) + "<a " + "x " * 500}).found.is_cut


# Pages of a list


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("/page/{}/", "Older"),
        ("/page/{}/", "« Older posts"),
        ("/page:{}", "{}"),
        ("/?page={}", "&raquo;"),
        ("/{}", "2"),
        ("/index{}.html", "nothing"),
        ("/blog/page/{}", "Next page →"),
    ],
)
def test_a_list_goes_on_by_words_and_numbers(target: str, word: str) -> None:
    """H4: rel=next, a link by its words, or one whose URL counts up."""
    first = "/blog/" if target.startswith("/blog") else "/"
    looking = look_in({"/": menu("/blog/"), **in_pages(30, 4, target, word, first)})
    assert looking.numbers == ALL
    assert len(looking.asked) <= 10
    assert [len(page.entries) for page in looking.found.pages] == [4] * 7 + [2]


def test_a_list_goes_on_by_its_relation() -> None:
    """H4: rel=next in the head, or of a link without words."""
    pages = {key: text.replace(">Older<", " rel=next>x<") for key, text in in_pages(30, 6, "/z{}z").items()}
    assert look_in(pages).numbers == ALL
    pages = {
        key: f"<link rel=next href=/z{int(key[2:-1] or 1) + 1}z>" + text.replace("<a href=/z", "<a hrof=/z")
        for key, text in in_pages(30, 6, "/z{}z", first="/z1z").items()
    }
    assert look_in({"/": menu("/z1z").replace(">z1z", ">Archive"), **pages}).numbers == ALL


def test_a_list_goes_on_by_offsets_and_downwards() -> None:
    """H4: `?offset=20`, and `index-18` that counts down."""
    offsets = {
        f"/?offset={start}" if start else "/": a_list(
            range(start, start + 6),
            "".join(f"<a href=/?offset={at}>{at // 6 + 1}</a>" for at in (6, 12, 18, 24)),
        )
        for start in range(0, 30, 6)
    }
    assert look_in(offsets).numbers == ALL
    down = {
        f"/index-{4 - start // 6}.html" if start else "/": a_list(
            range(start, start + 6),
            "".join(
                f"<a href=/index-{at}.html>p</a>" for at in {4 - start // 6 - 1 if start else 3} if at >= 0
            ),
        )
        for start in range(0, 30, 6)
    }
    assert look_in(down).numbers == ALL


@pytest.mark.parametrize("status", [404, 410])
def test_a_page_behind_the_last_one_is_the_end(status: int) -> None:
    """H4: [Hexo's Icarus links one too many] where no page linked a later one."""
    pages: dict[str, str | int] = {**in_pages(30, 6)}
    pages["/page/5/"] = a_list(range(24, 30), "<a href=/page/6/>Older</a>")
    looking = look_in({**pages, "/page/6/": status})
    assert (looking.numbers, looking.found.missing) == (ALL, ())
    assert [each.status for each in look_in({**pages, "/page/6/": 503}).found.missing] == [503]


BUTTONS = {
    "data-url": "<button class=load-more data-url={}>…</button>",
    "data-next": "<div class=x data-next={}></div>",
    "hx-get": "<div hx-get={} hx-trigger=revealed></div>",
    "a link": "<a class=load-more href={}>Load more posts</a>",
}


@pytest.mark.parametrize(
    ("name", "names_next"),
    [*((name, True) for name in BUTTONS), *((name, False) for name in BUTTONS if name != "a link")],
)
def test_a_list_goes_on_by_a_button(name: str, names_next: bool) -> None:
    """H4: with parts of pages, each of which names the next one, or is counted by a script."""
    button = BUTTONS[name]
    pages = {
        "/": f"<!doctype html><main><ul>{''.join(map(an_item, range(6)))}</ul>{button.format('/more?page=2')}"
    }
    for number in range(2, 6):
        behind = button.format(f"/more?page={number + 1}") if names_next and number < 5 else ""
        pages[f"/more?page={number}"] = f"{''.join(map(an_item, range(6 * number - 6, 6 * number)))}{behind}"
    looking = look_in(pages)
    assert looking.numbers == ALL
    further = [] if names_next else ["/more?page=6"]
    assert looking.asked == ["/", *(f"/more?page={number}" for number in range(2, 6)), *further]
    assert not looking.found.missing


def test_a_button_that_gives_something_else_ends_nothing() -> None:
    """H4: what it gives has to join."""
    page = f"{a_list(range(5))}<button class=load-more data-url=/more>More</button><a href=/page/2/>2</a>"
    pages = {"/": page, "/more": "<p><a href=/posts/other/>Other</a>", "/page/2/": a_list(range(5, 12))}
    assert look_in(pages).numbers == list(range(12))


def by_month() -> dict[str, list[int]]:
    months: dict[str, list[int]] = {}
    for number in ALL:
        months.setdefault(f"/{day_of(number):%Y/%m}/", []).append(number)
    return months


def test_months_to_choose_from_are_levels() -> None:
    """H4: in a form."""
    months = by_month()
    form = f"<select>{''.join(f'<option value={path}>{path}</option>' for path in months)}</select>"
    pages = {path: a_list(numbers) for path, numbers in months.items()}
    looking = look_in({"/": a_list(range(5), form), **pages})
    assert (looking.numbers, looking.asked) == (ALL, ["/", *months])


def test_a_calendar_leads_from_month_to_month() -> None:
    """H4: its link to the month before; the months above are those of the feed's entries."""
    months = by_month()
    paths = list(months)
    pages = {
        path: a_list(months[path])
        + f"<table><tr><td><a href={before}>« {month_abbr[int(before[6:8] or 1)]}</a></table>" * bool(before)
        for path, before in zip(paths, [*paths[1:], ""], strict=True)
    }
    front = a_list(range(5)) + f"<table><tr><td><a href={paths[1]}>« Apr</a></table>"
    looking = look_in({"/": front, **pages})
    assert (looking.numbers, looking.asked) == (ALL, ["/", *paths])
    gone: dict[str, str | int] = {"/": front, **pages, paths[20]: 404}
    assert look_in(gone).found.missing == ()


def chain(count: int, *, older: str = "prev", dated: bool = True) -> dict[str, str]:
    """Posts that link their neighbours."""
    newer = "next" if older == "prev" else "prev"
    made = {}
    for n in range(count):
        links = f"<a rel={older} href={path_of(n + 1)}>x</a>" if n + 1 < count else ""
        links += f"<a rel={newer} href={path_of(n - 1)}>y</a>" if n else ""
        date = f"<time datetime={day_of(n):%Y-%m-%d}>x</time>" if dated else ""
        made[path_of(n)] = f"<article><h1>{title_of(n)}</h1>{date}<p>X</article>{links}"
    return made


@pytest.mark.parametrize("older", ["prev", "next"])
def test_posts_that_link_the_one_before_are_a_chain(older: str) -> None:
    """H4: from the feed's last three on, which show it; one request each, as many as pages of a list."""
    pages = {"/": "<p>Hello", **chain(30, older=older)}
    looking = look_in(pages)
    assert looking.numbers == ALL
    assert looking.asked[-28:] == [path_of(n) for n in range(2, 30)]
    assert dates(looking)[29] == (f"{day_of(29):%Y-%m-%d}", "page")
    assert [entry.title for entry in looking.found.pages[0].entries][29] == title_of(29)
    keys = {link_key(link) for link in looking.links}
    again = look_in(pages, known=looking.found.known, known_keys=keys)
    assert (again.asked, again.links, again.found.known) == ([path_of(4)], [], looking.found.known)
    cut = look_in(pages, most_pages=9)
    assert (len(cut.links), cut.found.is_cut) == (5 + 9, True)


@pytest.mark.parametrize("pages", [chain(30, dated=False), {path_of(n): "<p>x" for n in range(9)}])
def test_pages_that_lead_on_otherwise_are_no_chain(pages: dict[str, str]) -> None:
    """H4: [manuals link their pages so, too] posts have the dates that the feed says."""
    looking = look_in({"/": "<p>Hello", **pages})
    assert not looking.links
    assert len(looking.asked) <= MOST_LOOKS


def test_what_is_known_is_the_end_of_what_was_read() -> None:
    """H4: pages may overlap, in order; a page that begins elsewhere is not the next one."""
    pages = {"/": a_list(range(10), "<a href=/page/2/>Older</a>"), "/page/2/": a_list(range(8, 20))}
    assert look_in(pages).numbers == list(range(20))
    for numbers in ([*range(4, 8), *range(12, 20)], [*range(10, 14), 3, *range(14, 20)]):
        pages["/page/2/"] = a_list(numbers)
        assert look_in(pages).numbers == list(range(10))


def test_rel_next_is_no_better_evidence_than_a_number() -> None:
    """H4: [mkdocs writes it to the next page of the menu] the next candidate is tried."""
    front = a_list(range(6), "<a rel=next href=/about>Next</a><a href=/page/2/>2</a>")
    looking = look_in({"/": front, "/about": "<p>Me", "/page/2/": a_list(range(6, 12))})
    assert looking.numbers == list(range(12))
    assert looking.why == {"/about": "no-list"}
    looking = look_in({"/": front, "/page/2/": a_list(range(6, 12))})
    assert (looking.numbers, looking.found.missing) == (list(range(12)), ())


def test_pages_of_another_shape_do_not_join() -> None:
    """H4: the list has the same paths on each page."""
    front = a_list(range(6), "<a href=/page/2/>Older</a>")
    other = a_list(range(6, 12)).replace("<ul>", "<ol class=best>")
    assert look_in({"/": front, "/page/2/": other}).numbers == list(range(6))


def test_what_is_pinned_on_each_page_is_listed_once() -> None:
    """H4: links that stand on top of both pages apart."""
    pages = {key: text.replace("<ul>", f"<ul>{an_item(17)}") for key, text in in_pages(30, 6).items()}
    assert look_in(pages).numbers == ALL
    pages = {key: text.replace("<ul>", f"<ul>{an_item(40)}") for key, text in in_pages(30, 6).items()}
    assert sorted(look_in(pages).numbers) == [*ALL, 40]


@pytest.mark.parametrize("bracket", ["", " ({})"])
def test_years_are_a_list_of_two_levels(bracket: str) -> None:
    """H4: links to years, also in a sidebar; H3: their sums in brackets are what they promise."""
    years: dict[int, list[int]] = {}
    for number in range(90):
        years.setdefault(day_of(number).year, []).append(number)
    menu_of = "".join(f"<li><a href=/{year}/>{year}</a>{bracket.format(len(years[year]))}" for year in years)
    pages = {f"/{year}/": a_list(numbers) for year, numbers in years.items()}
    looking = look_in({"/": f"<aside><ul>{menu_of}</ul></aside>{a_list(range(5))}", **pages})
    assert looking.numbers == list(range(90))
    assert looking.asked == ["/", *pages]


def test_years_may_be_the_oldest_first_in_themselves_and_have_pages() -> None:
    """H4: each page of a year with a list of the same shape, which goes on as others do."""
    years: dict[int, list[int]] = {}
    for number in range(60):
        years.setdefault(day_of(number).year, []).append(number)
    pages: dict[str, str] = {}
    for year, numbers in years.items():
        pages |= {
            f"/{year}/": a_list(
                numbers[::-1][:9], f"<a href=/{year}/page/2/>Next</a>" if numbers[9:] else ""
            ),
            f"/{year}/page/2/": a_list(numbers[::-1][9:]),
        }
    looking = look_in({"/": menu(*(f"/{year}/" for year in years)), **pages})
    assert looking.numbers == list(range(60))


def test_a_year_whose_months_are_linked_is_read_by_what_it_lists() -> None:
    """H4: its months are read where it lists nothing itself."""
    months: dict[str, list[int]] = {}
    for number in ALL:
        months.setdefault(f"/{day_of(number):%Y/%m}/", []).append(number)
    years = dict.fromkeys(month[:6] for month in months)
    pages = {month: a_list(numbers) for month, numbers in months.items()}
    of_years = {year: menu(*(month for month in months if month.startswith(year))) for year in years}
    listing = {
        year: page + a_list(n for n in ALL if f"/{day_of(n).year}/" == year)
        for year, page in of_years.items()
    }
    assert look_in({"/": menu(*years), **pages, **listing}, a_feed(3)).asked == ["/", *years]
    looking = look_in({"/": menu(*years), **of_years, **pages}, a_feed(3))
    assert looking.numbers[:9] == ALL[:9]


def test_years_that_all_answer_alike_are_none() -> None:
    """H4: [a site that answers every path]."""
    looking = look_in({"/": menu("/2024/", "/2023/", "/2022/"), "*": a_list(ALL[:8])})
    assert not looking.links
    years = {"/2024/": a_list(range(8)), "/2023/": a_list(range(8, 20)), "/2022/": a_list(range(8, 20))}
    assert look_in({"/": menu(*years), **years}).why["/"] == "repeats"


def test_years_of_something_else_are_left_at_once() -> None:
    """H3, H4: others stand between the feed's entries; years of another site are not asked for."""
    years = {"/2024/": a_list([0, 1, 40, 2, 3]), "/2023/": a_list([4, 5, 6])}
    looking = look_in({"/": menu(*years), **years})
    assert not looking.links
    assert "/2023/" not in looking.asked
    assert "/2024/" not in look_in({"/": menu("/2024/"), "/2024/": a_list(ALL)}).asked
    entries = [an_entry(n, link=f"{HOST}/{name_of(n)}/") for n in (4, 0, 1, 2, 3)]
    titled = "".join(
        f"<li><a href=/{name}/>x</a>" for name in ("2011", "2012", *(name_of(n) for n in (2, 4, 1)))
    )
    assert "/2011/" not in look_in({"/": f"<ul>{titled}</ul>"}, entries).asked
    elsewhere = menu("https://b.test/2024/", "https://b.test/2023/")
    assert all(path.startswith("/") for path in look_in({"/": elsewhere}).asked)


def test_a_redirect_that_adds_a_slash_is_remembered() -> None:
    """H4: the next pages are asked for with it."""
    pages = in_pages(30, 6, "/page/{}")
    with_slash = {f"{key}/" if key != "/" else key: text for key, text in pages.items()}
    looking = look_in({**{key: f"-> {key}/" for key in pages if key != "/"}, **with_slash})
    assert looking.asked == ["/", "/page/2", "/page/3/", "/page/4/", "/page/5/"]
    assert looking.numbers == ALL


def test_a_page_that_could_not_be_had_is_missing() -> None:
    """H7: the pages behind it are read where they are counted, and it is asked for again."""
    pages: dict[str, str | int] = {**in_pages(30, 5)}
    pages["/"] = f"{pages['/']}{menu('/page/6/')}"
    pages["/page/2/"] = f"{pages['/page/2/']}{menu('/page/6/')}"
    looking = look_in({**pages, "/page/3/": 503})
    assert looking.numbers == [*range(10), *range(15, 30)]
    (missing,) = looking.found.missing
    assert (missing.url, missing.slug, missing.status) == (f"{HOST}/page/3/", "http-status", 503)
    assert looking.found.known.missing == (f"{HOST}/page/3/",)
    keys = {link_key(link) for link in looking.links}
    again = look_in(pages, known=looking.found.known, known_keys=keys)
    assert again.asked == ["/", "/page/3/", "/page/4/"], "the one behind it shows that it joins"
    assert again.numbers == [*range(5), *range(10, 15)]
    assert again.found.known.missing == ()
    gone = look_in({**pages, "/page/3/": 410})
    assert [each.status for each in gone.found.missing] == [410]
    assert gone.found.known.missing == ()


def test_a_list_is_read_to_its_end_or_the_limit() -> None:
    """H4: at most so many pages."""
    looking = look_in(in_pages(60, 5), most_pages=4)
    assert looking.numbers == list(range(20))
    assert looking.found.is_cut
    assert not look_in(in_pages(20, 5), most_pages=4).found.is_cut
    years = {
        f"/{year}/": a_list(n for n in range(90) if day_of(n).year == year) for year in range(2024, 2018, -1)
    }
    looking = look_in({"/": menu(*years), **years}, most_pages=2)
    assert looking.found.is_cut
    assert len(looking.found.pages) == 2


def test_a_site_that_answers_every_path_lists_nothing() -> None:
    """H9: soft 404; no page of it is guessed once it is seen."""
    looking = look_in({"*": a_list(range(5), menu("/archive/") + "<a href=/page/2/>Older</a>")})
    assert not looking.links
    assert "/posts/" not in looking.asked


# Entries


def test_an_entrys_link_is_cleaned() -> None:
    """H5: no fragment, no utm parameters; each once."""
    page = a_list(ALL).replace("/>About", "/?utm_source=list#top>About")
    looking = look_in({"/": page})
    assert looking.links == [HOST + path_of(n) for n in ALL]


def test_an_entrys_link_is_percent_encoded_in_one_way() -> None:
    """H5, H6: so that the feed's own is known by it in whatever way it is written."""
    page = a_list(ALL).replace("/posts/about-", "/posts/%c3%a9%41bout-")
    feed_links = [
        f"{HOST}/posts/\N{LATIN SMALL LETTER E WITH ACUTE}About-{name_of(n)[6:]}/" for n in range(5)
    ]
    entries = [an_entry(n, link=link) for n, link in enumerate(feed_links)]
    links = look_in({"/": page}, entries).links
    assert links[-1] == f"{HOST}/posts/%C3%A9About-{name_of(29)[6:]}/"


def test_dates_are_those_beside_it() -> None:
    """H5: from <time datetime>; the feed's own entries have the feed's."""
    looking = look_in({"/": a_list(ALL)})
    assert dates(looking)[20] == (f"{day_of(20):%Y-%m-%d}", "page")


def test_dates_under_headings() -> None:
    """H5: a day and month has the year above it, which alone is its first day; a link "2011" is a title."""
    lines = [f"<li>{day_of(n):%d %b} <a href={path_of(n)}>{title_of(n)}</a>" for n in ALL]
    first = next(n for n in ALL if day_of(n).year == 2023)
    lines[first] = f"</ul><h2>2023</h2><ul>{lines[first]}"
    lines[first + 2] = f"<li>{day_of(first + 2):%d %b} <a href={path_of(first + 2)}>2011</a>"
    lines[first + 4] = f"<li><a href={path_of(first + 4)}>{title_of(first + 4)}</a>"
    looking = look_in({"/": f"<h2>2024</h2><ul>{''.join(lines[: first + 6])}"})
    found = dates(looking)
    assert found[first] == (f"{day_of(first):%Y-%m-%d}", "page")
    assert found[first + 3] == (f"{day_of(first + 3):%Y-%m-%d}", "page")
    assert found[first + 4] == ("2023-01-01", "year")
    (page,) = looking.found.pages
    assert page.entries[first + 2].title == "2011"


def test_dates_in_urls() -> None:
    """H5: `/2009/03/14/`; with a month alone its first day, noted."""
    for form, expected in (("/%Y/%m/%d/", ("%Y-%m-%d", "url")), ("/%Y/%m/", ("%Y-%m-01", "month"))):
        entries = [an_entry(n, link=f"{HOST}{day_of(n):{form}}{name_of(n)}") for n in range(5)]
        page = "".join(f"<li><a href={day_of(n):{form}}{name_of(n)}>{title_of(n)}</a>" for n in ALL)
        (found,) = look_in({"/": f"<ul>{page}"}, entries).found.pages
        assert found.entries[20].at is not None
        at = datetime.fromtimestamp(found.entries[20].at, UTC)
        assert (f"{at:%Y-%m-%d}", found.entries[20].dated_by) == (f"{day_of(20):{expected[0]}}", expected[1])


def test_without_any_date_it_is_the_next_newer_one() -> None:
    """H5: noted; the feed's own entries have one; where nothing has any, there is none."""
    looking = look_in({"/": a_list(ALL, dated=False)})
    assert dates(looking)[4][1] == "page"
    assert dates(looking)[29] == (f"{day_of(4) - A_MOMENT:%Y-%m-%d}", "neighbour")
    undated = [an_entry(n, at=None) for n in range(5)]
    assert set(dates(look_in({"/": a_list(ALL, dated=False)}, undated)).values()) == {("", "")}


def test_an_undated_entry_is_put_between_its_neighbours() -> None:
    """H5: evenly; never on another post's date; a second below the last one where none is older."""
    items = [an_item(n, dated=n not in (10, 11, 12)) for n in ALL]
    looking = look_in({"/": f"<ul>{''.join(items)}"})
    entries = looking.found.pages[0].entries
    assert [entry.dated_by for entry in entries[9:14]] == ["page", *["neighbour"] * 3, "page"]
    assert [f"{datetime.fromtimestamp(entry.at or 0, UTC):%m-%d}" for entry in entries[10:13]] == [
        f"{day_of(n):%m-%d}" for n in (10, 11, 12)
    ]
    found = look_in({"/": a_list(ALL, dated=False)}).found.pages[0].entries
    assert len({entry.at for entry in found}) == 30


def test_dates_that_are_not_the_feeds_are_none() -> None:
    """H5: no invention: what gives the feed's entries other dates than theirs dates no others."""
    page = a_list(ALL).replace("<time datetime=", "<time datetime=2001-01-01 x=")
    assert dates(look_in({"/": page}))[29] == (f"{day_of(4) - A_MOMENT:%Y-%m-%d}", "neighbour")


@pytest.mark.parametrize(
    "date", ["2124-01-01", "0001-01-01", "9999-12-31", "99999-01-01", "-5", "1969-01-01"]
)
def test_dates_out_of_range_are_none(date: str) -> None:
    """H9: of the future, or before there was a web."""
    page = a_list(ALL).replace(f"<time datetime={day_of(29):%Y-%m-%d}", f"<time datetime={date}")
    assert dates(look_in({"/": page}))[29] == (f"{day_of(28) - A_MOMENT:%Y-%m-%d}", "neighbour")


# Looking again


def seen(count: int = 30, page_posts: int = 6) -> Looking:
    """A site that was looked at when it had posts from 5 on."""
    shifted = {
        key: a_list(range(5 + 6 * place, min(11 + 6 * place, 35)), f"<a href=/page/{place + 2}/>Older</a>")
        for place, key in enumerate(["/", *(f"/page/{number}/" for number in range(2, 6))])
    }
    looking = look_in(shifted, [an_entry(n) for n in range(5, 10)])
    assert looking.numbers == list(range(5, 35))
    return looking


def test_only_the_first_page_is_read_again() -> None:
    """H8: where its top joins what is known; what was kept is JSON."""
    before = seen()
    known = LookMemory.of(json.loads(json.dumps(asdict(before.found.known))))
    assert known == before.found.known
    keys = {link_key(link) for link in before.links}
    again = look_in(in_pages(35, 6), a_feed(), known=known, known_keys=keys)
    assert again.asked == ["/"]
    assert again.numbers == list(range(6))


def test_what_slipped_by_is_read_to_where_it_joins() -> None:
    """H8: the feed has less than came since; its own entries join nothing."""
    before = seen()
    keys = {link_key(link) for link in before.links} | {link_key(entry.link) for entry in a_feed(3)}
    again = look_in(in_pages(35, 3), a_feed(3), known=before.found.known, known_keys=keys)
    assert again.asked == ["/", "/page/2/"]
    assert again.numbers == list(range(6))


def test_years_are_read_again_from_the_newest_on() -> None:
    """H8: the page that links them, and as many of them as are new."""
    years = {
        f"/{year}/": a_list(n for n in range(60) if day_of(n).year == year)
        for year in (2024, 2023, 2022, 2021)
    }
    before = look_in({"/": menu(*years), **years})
    keys = {link_key(link) for link in before.links}
    again = look_in({"/": menu(*years), **years}, known=before.found.known, known_keys=keys)
    assert again.asked == ["/", "/2024/"]
    assert again.found.known == before.found.known


def test_a_list_that_is_not_as_it_was_is_looked_for_anew() -> None:
    """H8: another shape, or another page of the site."""
    before = seen()
    pages = {"/": menu("/archive/"), "/archive/": a_list(ALL)}
    again = look_in(pages, known=before.found.known)
    assert again.asked == ["/", "/archive/"]
    assert again.found.known.first_url == f"{HOST}/archive/"
    assert not look_in({"/": "<p>Moved"}, known=before.found.known).found.known.first_url


def test_a_first_page_that_fails_changes_nothing() -> None:
    """H8: what is known of the list is known still."""
    before = seen()
    again = look_in({"/": 503}, known=before.found.known)
    assert (again.asked, again.found.known, again.found.pages) == (["/"], before.found.known, ())
    assert [each.status for each in again.found.missing] == [503]
    assert look_in({"/": 410}, known=before.found.known).found.known == LookMemory()


# Always


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=12), min_size=1, max_size=5),
    st.integers(0, 12),
    st.sampled_from(["", "<a rel=next href=/page/2/>Older</a>", menu("/2024/", "/2023/", "/archive/")]),
)
def test_whatever_stands_there(groups: list[list[int]], count: int, behind: str) -> None:
    """H3, H9: links of another host are never listed, nothing twice; the same answers, the same look."""
    body = "".join(f"<h2>X</h2>{a_list(numbers)}" for numbers in groups) + behind
    body += "<ul>" + "".join(f"<li><a href=https://b.test{path_of(n)}>x</a>" for n in range(9)) + "</ul>"
    pages = {
        "/": body,
        "/page/2/": a_list(range(count, 30)),
        "/2024/": a_list(range(count)),
        "/archive/": body,
    }
    looking = look_in(pages)
    assert look_in(pages) == looking
    assert len(looking.numbers) == len(set(looking.numbers))
    assert len(looking.asked) <= len(looking.found.pages) + MOST_LOOKS
    if looking.links:
        assert set(range(5)) <= set(looking.numbers) or len({*range(5)} & {*looking.numbers}) >= 5


@given(st.integers(3, 12), st.integers(1, 40), st.integers(1, 9))
def test_every_post_of_a_list_is_found_in_order(feed: int, more: int, page_posts: int) -> None:
    """H3, H4: whatever feed and pages hold, but what one page of the feed's first entries cannot show."""
    count = feed + more
    looking = look_in(in_pages(count, page_posts), a_feed(feed))
    assert looking.numbers == list(range(count))
    assert look_in({"/": a_list(reversed(range(count)))}, a_feed(feed)).numbers == list(range(count))


def a_row(numbers: range, form: str = "<a href={}>{}</a>") -> str:
    return "".join(form.format(path_of(number), title_of(number)) for number in numbers)


MANY = 15_000
HOSTILE = {
    "many entries": a_row(range(MANY)),
    "many shapes": a_row(range(MANY), "<p class={1:.11}{0:.3}><a href={0}>{1}</a>"),
    "many archives": a_row(range(5)) + "".join(f"<a href=/{n}/archive>archive</a>" for n in range(MANY)),
    "many numbers": a_row(range(5)) + "".join(f"<a href=/page/{n}>2</a>" for n in range(MANY)),
    "many rows of numbers": a_row(range(5)) + "".join(f"<a href=/{n}/page/2>2</a>" for n in range(MANY)),
    "many years": a_row(range(5)) + menu(*(f"/{n}/2004/" for n in range(MANY))),
    "many next pages": a_row(range(5)) + "".join(f"<a rel=next href=/x{n}y>Next</a>" for n in range(MANY)),
    "many groups": a_row(range(5, 0, -1)) + a_row(range(6, MANY), "<h2>x</h2><a href={}>{}</a>"),
    "long URLs": a_row(range(5)) + "".join(f"<a href=/{'1/' * 450}{n}>1</a>" for n in range(MANY // 5)),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.cpu(20)
def test_a_hostile_site_costs_little(name: str) -> None:
    """H9: each page of it has as many links as are read; no more requests than elsewhere."""
    looking = look_in({"*": HOSTILE[name]})
    assert len(looking.asked) <= len(looking.found.pages) + MOST_LOOKS


def test_pages_of_what_is_no_list_count_as_looked_at() -> None:
    """H9: eight requests beside the pages of the list, whatever joins what is none in the end."""
    pages = in_pages(60, 5)
    looking = look_in(
        {**pages, "/page/2/": pages["/page/2/"].replace("<ul>", f"<ul>{an_item(50)}")}, a_feed(7)
    )
    assert not looking.links
    assert len(looking.asked) <= MOST_LOOKS
    looking = look_in(pages, [an_entry(n) for n in (*range(10), *range(90, 95))])
    assert not looking.links
    assert looking.asked[:3] == ["/", "/page/2/", "/page/3/"]
    assert "/page/4/" not in looking.asked
    assert len(looking.asked) == MOST_LOOKS


@pytest.mark.cpu(20)
def test_an_endless_list_ends() -> None:
    """H4, H9: each page with other links, and one more to come."""
    pages = {
        f"/page/{n}/" if n > 1 else "/": a_list(range(6 * n - 6, 6 * n), f"<a href=/page/{n + 1}/>Older</a>")
        for n in range(1, 300)
    }
    looking = look_in(pages)
    assert len(looking.asked) == len(looking.found.pages) == 200
    assert looking.found.is_cut


def test_what_is_behind_missing_pages_ends() -> None:
    """H4, H8: pages that come again lead on without end; as many are read as of any list."""
    pages: dict[str, str | int] = {**in_pages(30, 6)}
    known = replace(seen().found.known, missing=tuple(f"{HOST}/gone/{n}/" for n in range(4)))
    for number in range(4):
        for place in range(100):
            first = 1000 + 500 * number + 5 * place
            path = f"/gone/{number}/{place}/" if place else f"/gone/{number}/"
            older = f"<a rel=next href=/gone/{number}/{place + 1}/>Older</a>"
            pages[path] = a_list(range(first, first + 5), older)
    keys = {link_key(link) for link in seen().links}
    looking = look_in(pages, known=known, known_keys=keys, most_pages=10)
    assert len(looking.asked) == len(looking.found.pages) == 10
    assert looking.found.is_cut
    assert looking.found.known.missing == known.missing[1:]


def test_an_entrys_dates_need_no_order() -> None:
    """H3: entries of one day stand in any order in a feed and in a list."""
    day = day_of(0).timestamp()
    entries = [replace(an_entry(n), at=day + n) for n in range(5)]
    assert look_in({"/": a_list(ALL)}, entries).numbers == ALL
    entries = [replace(an_entry(n), at=day + 100_000 * n) for n in range(5)]
    assert not look_in({"/": a_list(ALL)}, entries).links
