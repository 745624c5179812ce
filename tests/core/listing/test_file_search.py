"""wholefeed.core.listing.file_search: histories that sitemaps and search indexes name."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from tests.core.listing.site_models import (
    EDITED,
    INDEXES,
    PAGES,
    POSTS,
    SHOWN,
    SITEMAPS,
    Model,
    at_root,
    in_blog,
    index,
    naming,
    url,
    urlset,
)
from tests.core.listing.web import (
    HOST,
    Looking,
    a_feed,
    a_job,
    a_list,
    an_entry,
    answer,
    day_of,
    in_pages,
    look_in,
    name_of,
    path_of,
    title_of,
)
from wholefeed.core.listing.file_search import MOST_FILES, SitemapNamesRequest
from wholefeed.core.listing.finding import MOST_LOOKS, FoundLists, LookMemory, NotHad, PageRequest, look
from wholefeed.core.listing.page_links import link_key
from wholefeed.core.text.dates import DAY_SECONDS

ALL = list(range(30))


def look_at(model: Model, **known: object) -> Looking:
    home = next(path for path in model.pages if path in ("/", "/blog"))
    return look_in(
        model.pages,
        model.feed,
        home_urls=(HOST + home,),
        sitemaps=model.sitemaps,
        generator=model.generator,
        **known,  # type: ignore[arg-type]
    )


def a_map(*numbers: int, more: str = "") -> str:
    return urlset([*(url(path_of(number), day_of(number)) for number in numbers), more])


@pytest.mark.parametrize("name", [*SITEMAPS, *INDEXES])
def test_a_site_becomes_whole(name: str) -> None:
    """H10, H11: every post is an entry, nothing else is; titles and days are those of the posts or none."""
    model = (SITEMAPS | INDEXES)[name]
    looking = look_at(model)
    wanted = {link_key(HOST + model.path(number)): number for number in range(POSTS)}
    found = {link_key(entry.link): entry for page in looking.found.pages for entry in page.entries}
    assert found.keys() == wanted.keys()
    assert len(looking.files) <= MOST_FILES
    for key, entry in found.items():
        assert entry.title == (title_of(wanted[key]) if model.has_titles else "")
        if model.has_days:
            assert entry.at is not None
            assert abs(entry.at - day_of(wanted[key]).timestamp()) < DAY_SECONDS
        elif wanted[key] >= SHOWN:
            assert entry.dated_by == "neighbour"
    kind = "index" if name in INDEXES else "sitemap"
    assert [(each.kind, each.entries, each.is_served) for each in looking.found.sources] == [
        (kind, POSTS, True)
    ]


@pytest.mark.parametrize("name", [*SITEMAPS, *INDEXES])
def test_a_second_look_reads_the_same_files_alone(name: str) -> None:
    """H8: no page is asked for, and what is known stays."""
    model = (SITEMAPS | INDEXES)[name]
    first = look_at(model)
    known = LookMemory.of(json.loads(json.dumps(asdict(first.found.known))))
    again = look_at(model, known=known, known_keys=frozenset(map(link_key, first.links)))
    assert again.asked == []
    assert sorted(again.links) == sorted(first.links)
    assert again.found.known == known


def test_a_known_file_that_is_gone_has_everything_searched_again() -> None:
    """H8: as a list that has changed."""
    known = look_in({"/": "<p>Hello", "/sitemap.xml": a_map(*ALL)}).found.known
    assert (known.way, known.first_url) == ("sitemap", f"{HOST}/sitemap.xml")
    assert look_in({"/": a_list(ALL)}, known=known).numbers == ALL
    lost = look_in({"/sitemap.xml": 503}, known=known)
    assert (lost.found.known, [each.status for each in lost.found.missing]) == (known, [503])


def test_robots_txt_says_where_sitemaps_are() -> None:
    """H10: else they are tried where most are; a file of another site is not asked for."""
    pages = {"/": "<p>Hello", "/maps/all.xml": a_map(*ALL)}
    looking = look_in(pages, sitemaps=(f"{HOST}/maps/all.xml",))
    assert (looking.numbers, looking.files) == (ALL, ["/maps/all.xml"])
    assert look_in(pages).files == ["/sitemap.xml", "/sitemap_index.xml"]
    assert look_in(pages, sitemaps=("https://b.test/sitemap.xml",)).files == []


def test_an_index_may_stand_beside_other_sitemaps_in_robots_txt() -> None:
    """H10: Jetpack names its index and a sitemap of the last two days' news."""
    pages = {
        "/": "<p>Hello",
        "/sitemap.xml": index("/sitemap-1.xml", "/image-sitemap-1.xml"),
        "/sitemap-1.xml": a_map(*ALL),
        "/news-sitemap.xml": urlset([]),
    }
    names = (f"{HOST}/sitemap.xml", f"{HOST}/news-sitemap.xml")
    looking = look_in(pages, sitemaps=names)
    assert looking.numbers == ALL
    assert looking.files == ["/news-sitemap.xml", "/sitemap.xml", "/sitemap-1.xml"]
    again = look_in(pages, sitemaps=names, known=looking.found.known)
    assert (again.numbers, again.files) == (ALL, ["/sitemap.xml", "/sitemap-1.xml"])
    nested = {**pages, "/sitemap-1.xml": index("/sitemap-2.xml"), "/sitemap-2.xml": a_map(*ALL)}
    assert "/sitemap-2.xml" not in look_in(nested, sitemaps=names).files, "one level deep"


def test_a_sitemap_is_tried_before_lists_are_guessed() -> None:
    """H2, H10: where it names no page that is called like a list, none is asked for."""
    pages = {"/": "<p>Hello", "/sitemap.xml": a_map(*ALL), "*": "<p>Nothing"}
    assert look_in(pages).asked == ["/"]
    named = {**pages, "/sitemap.xml": a_map(*ALL, more=url("/archives/")), "/archives/": a_list(ALL)}
    looking = look_in(named)
    assert looking.asked == ["/", "/archives/"]
    assert [each.kind for each in looking.found.sources] == ["list", "sitemap"]
    assert all(entry.title for page in looking.found.pages for entry in page.entries)


def test_sitemaps_for_posts_are_read_first_and_those_for_others_never() -> None:
    """H10: the index of WordPress; two files in place of four."""
    looking = look_at(SITEMAPS["wordpress"])
    assert looking.files == ["/wp-sitemap.xml", "/wp-sitemap-posts-post-1.xml"]


def test_sitemaps_by_year_are_all_read() -> None:
    """H10: the feed's entries are in the last one alone."""
    years = sorted({day_of(number).year for number in ALL})
    maps: dict[str, str | int] = {
        f"/map-{year}.xml": a_map(*(n for n in ALL if day_of(n).year == year)) for year in years
    }
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": index(*maps), **maps})
    assert sorted(looking.numbers) == ALL
    lacking = {**maps, f"/map-{years[0]}.xml": 503}
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": index(*maps), **lacking})
    assert [each.status for each in looking.found.missing] == [503]
    assert not looking.found.is_cut
    assert len(looking.numbers) < len(ALL)


def test_files_in_vain_come_to_an_end() -> None:
    """H9, H10: however many an index or a page names."""
    empty = {f"/map-{number}.xml": urlset([url(f"/x/y/{number}")]) for number in range(50)}
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": index(*empty), **empty})
    assert len(looking.files) == MOST_FILES + 1, "an index counts if it names others"
    assert len(looking.asked) <= MOST_LOOKS
    named = naming("".join(f'<link href="/{number}/search.json">' for number in range(9)))
    assert len(look_in({"/": named}).files) == MOST_FILES


# Sources beside each other


def test_a_list_counts_before_a_sitemap_and_a_dated_index_before_both() -> None:
    """H10, H11: each is told with its number of entries."""
    pages = {**in_pages(30, 6), "/sitemap.xml": a_map(*ALL)}
    looking = look_in(pages)
    assert looking.numbers == ALL
    told = [(each.kind, each.entries, each.alone, each.is_served) for each in looking.found.sources]
    assert told == [("list", 30, 0, True), ("sitemap", 30, 0, False)]
    posts = [{"url": path_of(n), "title": title_of(n), "date": day_of(n).isoformat()} for n in ALL]
    front = naming("<script>f('/search.json')</script>") + pages["/"]
    looking = look_in({**pages, "/": front, "/search.json": json.dumps(posts)})
    assert looking.numbers == ALL
    assert looking.asked == ["/"]
    assert [each.kind for each in looking.found.sources] == ["index", "sitemap"]


def test_a_few_more_pages_in_a_sitemap_are_told_and_not_listed() -> None:
    """H10: a list leaves out pages that are no posts."""
    extra = url(path_of(4), day_of(4)) + url("/posts/drafts-of-mine/", day_of(7))
    looking = look_in({"/": a_list(ALL), "/sitemap.xml": a_map(*ALL, more=extra)})
    assert looking.numbers == ALL
    told = [(each.kind, each.entries, each.alone, each.is_served) for each in looking.found.sources]
    assert told == [("list", 30, 0, True), ("sitemap", 31, 1, False)]


def test_the_sitemap_goes_on_where_a_list_ends_early() -> None:
    """H10: by many more entries, or by older ones."""
    looking = look_in({"/": a_list(range(12)), "/sitemap.xml": a_map(*ALL)})
    assert looking.numbers == ALL
    assert [(each.kind, each.alone) for each in looking.found.sources] == [("list", 0), ("sitemap", 18)]
    looking = look_in({"/": a_list(range(27)), "/sitemap.xml": a_map(*ALL)})
    assert looking.numbers == ALL


def test_a_sitemap_dates_the_entries_of_a_list_without_dates() -> None:
    """H5, H10: if its dates are the feed's."""
    looking = look_in({"/": a_list(ALL, dated=False), "/sitemap.xml": a_map(*ALL)})
    days = [entry.at for page in looking.found.pages for entry in page.entries]
    assert [round((at or 0) / DAY_SECONDS) for at in days] == [
        round(day_of(n).timestamp() / DAY_SECONDS) for n in ALL
    ]


# Posts or pages


def test_posts_at_the_root_are_told_from_pages_by_a_file_of_their_own_or_not_at_all() -> None:
    """H10: in one sitemap `/my-setup` looks like a post; nothing is listed."""
    entries = [an_entry(number, link=HOST + at_root(number)) for number in range(6)]
    urls = [*(url(at_root(number), day_of(number)) for number in ALL), *(url(p, day_of(9)) for p in PAGES)]
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": urlset(urls)}, entries)
    assert not looking.links
    assert looking.why["/sitemap.xml"] == "pages-not-told"


def test_posts_at_the_root_that_a_page_links_as_the_feeds_are_entries() -> None:
    """H10: what stands in no order on a front page by subject, and in the sitemap."""
    entries = [an_entry(number, link=HOST + at_root(number)) for number in range(6)]
    order = [*range(29, 5, -1), 0, 3, 1, 5, 2, 4]
    front = "".join(f"<h2><a href={at_root(n)}>{title_of(n)}</a></h2>" for n in order)
    urls = [*(url(at_root(number), day_of(number)) for number in ALL), *(url(p, day_of(9)) for p in PAGES)]
    looking = look_in({"/": front, "/sitemap.xml": urlset(urls)}, entries)
    assert sorted(looking.links) == sorted(HOST + at_root(number) for number in ALL)


def test_a_menu_with_one_of_the_feeds_entries_tells_nothing() -> None:
    """H10: `/my-setup/` stands beside "start here: about bread"."""
    entries = [an_entry(number, link=HOST + at_root(number)) for number in range(6)]
    menu = "".join(f"<p><a href={path}>x</a>" for path in (*PAGES, at_root(0)))
    posts = "".join(f"<h2><a href={at_root(n)}>{title_of(n)}</a></h2>" for n in range(6))
    urls = [*(url(at_root(number), day_of(number)) for number in ALL), *(url(p, day_of(9)) for p in PAGES)]
    looking = look_in({"/": menu + posts, "/sitemap.xml": urlset(urls)}, entries)
    assert not set(looking.links) & {HOST + path.rstrip("/") for path in PAGES}
    assert not set(looking.links) & {HOST + path for path in PAGES}


def test_a_group_of_tags_in_an_index_does_not_tell_posts_from_pages() -> None:
    """H11: pages stand among the posts, and tags in an array of their own."""
    entries = [an_entry(number, link=HOST + at_root(number)) for number in range(6)]
    rows = [{"url": at_root(n), "title": title_of(n)} for n in ALL]
    more = [{"url": path, "title": "x"} for path in PAGES]
    tags = [{"url": f"/tags/{n}/", "title": "x"} for n in range(9)]
    front = naming("<script>f('/search.json')</script>")
    file = json.dumps({"all": [*rows, *more], "tags": tags})
    looking = look_in({"/": front, "/search.json": file}, entries)
    assert (looking.links, looking.why["/search.json"]) == ([], "pages-not-told")
    file = json.dumps({"posts": rows, "pages": more, "tags": tags})
    assert len(look_in({"/": front, "/search.json": file}, entries).links) == len(ALL)


def test_the_folder_of_the_whole_site_tells_nothing() -> None:
    """H10: `/~ann/my-setup/` beside `/~ann/on-bread/` is as `/my-setup/` beside `/on-bread/`."""
    entries = [an_entry(number, link=f"{HOST}/~ann{at_root(number)}") for number in range(6)]
    urls = [url(f"/~ann{path}", EDITED) for path in (*map(at_root, ALL), "/", *PAGES)]
    looking = look_in({"/~ann/sitemap.xml": urlset(urls)}, entries, home_urls=(f"{HOST}/~ann/",))
    assert looking.files == ["/~ann/sitemap.xml"]
    assert not looking.links


def test_pages_without_dates_are_none_where_posts_have_some() -> None:
    """H10: jekyll-sitemap dates posts alone."""
    more = "".join(map(url, ("/posts/my-setup/", "/posts/uses/")))
    assert sorted(look_in({"/": "<p>Hello", "/sitemap.xml": a_map(*ALL, more=more)}).numbers) == ALL


def test_further_pages_of_a_list_are_no_entries() -> None:
    """H10: Astro's sitemap names `/blog/2/` beside the posts; with numbered posts, these are entries."""
    names = ("2", "3", "page-4", "page5", "2021", "archive-2020")
    entries = [an_entry(number, link=f"{HOST}{in_blog(number)}/") for number in range(6)]
    urls = [*(url(f"{in_blog(n)}/", day_of(n)) for n in ALL), *(url(f"/blog/{n}/", day_of(9)) for n in names)]
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": urlset(urls)}, entries)
    assert sorted(link.rstrip("/") for link in looking.links) == sorted(HOST + in_blog(n) for n in ALL)
    numbered = [an_entry(number, link=f"{HOST}/blog/{90 - number}/") for number in range(6)]
    file = urlset(url(f"/blog/{90 - number}/", day_of(number)) for number in ALL)
    assert len(look_in({"/": "<p>Hello", "/sitemap.xml": file}, numbered).links) == len(ALL)


def test_a_whole_list_is_compared_with_a_few_files_alone() -> None:
    """H10: the first, the last, and one more of an index, unless they name many posts that the list lacks."""
    maps = {f"/map-{n}.xml": a_map(*range(3 * n, 3 * n + 3)) for n in range(10)}
    pages = {**in_pages(30, 6), "/sitemap.xml": index(*maps), **maps}
    assert look_in(pages).files == ["/sitemap.xml", "/map-0.xml", "/map-9.xml", "/map-1.xml"]
    looking = look_in({**pages, "/": a_list(range(5)), "/page/2/": 404})
    assert len(looking.files) == 1 + len(maps)
    assert sorted(looking.numbers) == ALL


def test_a_failure_to_read_robots_txt_makes_no_post_missing() -> None:
    """H7, H10: the question for sitemaps has the URL of a post."""
    steps, asked = look(a_job()), []
    ask = next(steps)
    found: FoundLists | None = None
    while found is None:
        asked.append(ask)
        is_page = isinstance(ask, PageRequest)
        reply = answer({"/": "<p>Hello"}, ask.url) if is_page else NotHad(ask.url, "timeout", None, False)
        try:
            ask = steps.send(reply)
        except StopIteration as end:
            found = end.value
    assert any(isinstance(each, SitemapNamesRequest) for each in asked)
    assert not {each.url for each in found.missing} & {entry.link for entry in a_feed()}


def test_an_index_is_read_within_the_limit_of_pages() -> None:
    """H10: whether its files are named for posts or not."""
    maps = [f"/{name}-{n}.xml" for name in ("posts", "map") for n in range(9)]
    files = {path: urlset([url(f"/posts/x{n}/")]) for n, path in enumerate(maps)}
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": index(*maps), **files}, most_pages=6)
    assert looking.files == ["/sitemap.xml", *maps[:6]]


# The feed of a part


@pytest.mark.parametrize("order", ["by name", "newest first"])
def test_a_feed_of_one_tag_gets_nothing_from_the_sitemap_of_the_whole_site(order: str) -> None:
    """H10: others were published between its entries."""
    numbers = sorted(ALL, key=name_of) if order == "by name" else ALL
    entries = [an_entry(number) for number in range(0, 18, 3)]
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": a_map(*numbers)}, entries)
    assert not looking.links
    assert looking.why["/sitemap.xml"] == "feed-of-a-part"


def test_without_dates_the_urls_and_pages_say_what_a_feed_is_of() -> None:
    """H10: a feed below `/tags/`, or one whose entries stand among others on a page, is of a part."""
    plain = urlset(url(path_of(number)) for number in sorted(ALL, key=name_of))
    pages = {"/": "<p>Hello", "/sitemap.xml": plain}
    assert sorted(look_in(pages).numbers) == ALL
    assert not look_in(pages, feed_url=f"{HOST}/tags/home/feed.xml").links
    entries = [an_entry(number) for number in range(0, 18, 3)]
    assert not look_in({**pages, "/": a_list(ALL)}, entries).links


def test_days_of_changes_are_no_days_of_publication() -> None:
    """H10: all posts were changed on one day, or one after it was published."""
    same = urlset(
        [
            *(url(path_of(n), day_of(n)) for n in range(5)),
            *(url(path_of(n), day_of(20)) for n in range(5, 30)),
        ]
    )
    entries = [
        e for page in look_in({"/": "<p>Hello", "/sitemap.xml": same}).found.pages for e in page.entries
    ]
    assert {each.dated_by for each in entries[5:]} == {"neighbour"}
    late = urlset(url(path_of(n), day_of(2 if n == 12 else n)) for n in ALL)
    looking = look_in({"/": "<p>Hello", "/sitemap.xml": late})
    assert sorted(looking.numbers) == ALL
    dated = {e.link: e.dated_by for page in looking.found.pages for e in page.entries}
    assert dated[HOST + path_of(12)] == "neighbour"
    assert dated[HOST + path_of(13)] == "page"


# Substack


def a_substack(most: int = 12) -> Model:
    """Its interface gives as many as it wants, whatever is asked for; beyond the last one it gives none."""
    rows = [
        {
            "id": number,
            "title": title_of(number),
            "slug": name_of(number),
            "post_date": f"{day_of(number):%Y-%m-%dT%H:%M:%S.000Z}",
            "canonical_url": f"{HOST}/p/{name_of(number)}",
            "audience": "everyone",
            "publishedBylines": [{"id": 7, "name": "Ann", "handle": "ann"}],
        }
        for number in range(POSTS)
    ]
    pages = {
        f"/api/v1/archive?sort=new&search=&offset={start}&limit=50": json.dumps(rows[start : start + most])
        for start in range(0, POSTS + most, most)
    }
    pages[f"/api/v1/archive?sort=new&search=&offset={POSTS}&limit=50"] = "[]"
    return Model(
        {"/": "<p>Hello", **pages}, lambda n: f"/p/{name_of(n)}", has_titles=True, generator="Substack"
    )


def test_substack_gives_its_archive() -> None:
    """H11: by the generator, in pages as long as they come; not without it."""
    looking = look_at(a_substack())
    assert [link.rpartition("/")[2] for link in looking.links] == [name_of(number) for number in range(POSTS)]
    assert [each.kind for each in looking.found.sources] == ["archive"]
    assert not any(path.startswith("/api/") for path in look_in({"/": "<p>Hello"}, a_feed()).files)
    model = a_substack()
    assert look_in({**model.pages, "/": "<p>Hello"}, model.feed).files == [
        "/sitemap.xml",
        "/sitemap_index.xml",
    ]
