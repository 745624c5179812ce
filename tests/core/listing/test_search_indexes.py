"""wholefeed.core.listing.search_indexes and index_names: files for search, and their names in pages."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.listing.web import HOST
from tests.cpu_time import cpu_limit
from wholefeed.core.listing.index_names import find_indexes
from wholefeed.core.listing.search_indexes import MOST_ENTRIES, SearchIndex, read_index
from wholefeed.core.listing.site_files import FileEntry

DAY = 1_577_836_800.0
"""2020-01-01."""


def read(body: object) -> SearchIndex | None:
    text = body if isinstance(body, str) else json.dumps(body)
    return read_index(text.encode(), f"{HOST}/js/search.json", "application/json")


def entry(value: dict[str, object]) -> FileEntry:
    index = read([value])
    assert index is not None
    return index.groups[0][0]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"url": "/a/"}, "/a/"),
        ({"permalink": f"{HOST}/a/", "url": "x"}, "/a/"),
        ({"path": "2020/a/"}, "/2020/a/"),
        ({"location": "a/#part"}, "/a/"),
        ({"href": "?p=1"}, "/js/search.json?p=1"),
    ],
)
def test_a_link_is_found_by_its_usual_names(value: dict[str, object], path: str) -> None:
    """H11: absolute, or below the site's root."""
    assert entry(value).url == HOST + path


@pytest.mark.parametrize(
    "said",
    [
        "2020-01-01",
        "2020-01-01 00:00:00 +0000",
        "2020-01-01T00:00:00.000Z",
        "January 1, 2020",
        "1 Jan 2020",
        DAY,
        DAY * 1000,
    ],
)
def test_a_date_is_read_as_such_files_write_it(said: object) -> None:
    """H11: and nothing else is one."""
    assert entry({"url": "/a", "date": said}).at == DAY
    assert entry({"url": "/a", "date": "soon"}).at is None
    assert entry({"url": "/a", "date": 7}).at is None
    assert entry({"url": "/a", "date": True}).at is None
    assert entry({"url": "/a", "date": 10**400}).at is None


def test_arrays_and_objects_are_groups_of_their_own() -> None:
    """H11: so posts and pages are told apart; titles are text."""
    index = read(
        {"posts": [{"url": "/a", "title": "A &amp; b\n c"}], "more": {"pages": [{"url": "/b"}]}, "x": [1]}
    )
    assert index is not None
    assert [[each.url for each in group] for group in index.groups] == [[f"{HOST}/a"], [f"{HOST}/b"]]
    assert index.groups[0][0].title == "A & b c"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{",
        "[1, 2]",
        '{"a": "b"}',
        "function f() {}",
        "<rss/>",
        "<html>",
        "<search/>",
        "[" * 100_000,
    ],
)
def test_other_files_are_no_indexes(body: str) -> None:
    """H11: an error page, a script or a file of settings."""
    assert read(body) is None


HOSTILE = {
    "brackets": "[" * 2_000_000,
    "objects": "[" + "{}," * 300_000 + "1]",
    "entries": json.dumps([{"url": f"/{n}"} for n in range(25_000)]),
    "long": json.dumps([{"url": "/" + "x" * 2_000_000, "title": "x" * 2_000_000}]),
    "hosts": json.dumps([{"url": f"http://é{n}.test"} for n in range(30_000)], ensure_ascii=False),
    "nested": '{"a":' * 60_000 + "1" + "}" * 60_000,
    "blanks": " " * 2_000_000,
    "words": "a." * 1_000_000,
    "XML": "<search>" + "<entry><url>/a</url></entry>" * 25_000 + "</search>",
}


@pytest.mark.fault("146")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_index_costs_little(name: str) -> None:
    """H9, H11: a second of computing for each megabyte."""
    with cpu_limit(0.25 * max(0.5, len(HOSTILE[name]) / 1e6)):
        index = read(HOSTILE[name])
    assert index is None or sum(map(len, index.groups)) <= MOST_ENTRIES


@given(st.binary(max_size=300) | st.text(alphabet="[]{}\"':,url/a<>&;= ", max_size=200).map(str.encode))
def test_any_bytes_are_read(body: bytes) -> None:
    """H9: never an error, of an index or of a page that names some."""
    read_index(body, f"{HOST}/search.json", "application/json")
    find_indexes(body, f"{HOST}/")


@pytest.mark.parametrize(
    ("page", "path"),
    [
        ("<link rel=preload href=../index.json as=fetch>", "/index.json"),
        ('<script>var CONFIG = {"path":"search.xml","root":"/"};</script>', "/blog/search.xml"),
        ('<script>x({"contentUrl":"\\/content.json"})</script>', "/content.json"),
        ("<div data-index='/assets/js/search-data.json?v=3'>", "/assets/js/search-data.json"),
        ('<script src="/assets/js/lunr/lunr-store.js"></script>', "/assets/js/lunr/lunr-store.js"),
        ("<script>fetch(`/search.json`)</script>", "/search.json"),
        (
            '<script>fetch("/en.search-data.min.a1b2c3d4e5.json")</script>',
            "/en.search-data.min.a1b2c3d4e5.json",
        ),
        ('<link rel="manifest" href="/manifest.json">', None),
        ('<script src="/search.min.js"></script>', None),
        ('<link href="/opensearch.xml">', None),
        ("<p>See search.json for more", None),
    ],
)
def test_pages_name_indexes(page: str, path: str | None) -> None:
    """H11: in attributes and scripts, by the names that software gives them."""
    found = find_indexes(page.encode(), f"{HOST}/blog/")
    assert list(found[:1]) == ([] if path is None else [HOST + path])


@pytest.mark.fault("146")
@pytest.mark.parametrize("row", ["'x.json", ".json", "/search.json'", "=" + "a" * 300 + ".js ", "a.json?"])
def test_a_page_of_names_costs_little(row: str) -> None:
    """H9: however many there are."""
    with cpu_limit(0.25):
        assert len(find_indexes((row * (2_000_000 // len(row))).encode(), f"{HOST}/")) <= 3
