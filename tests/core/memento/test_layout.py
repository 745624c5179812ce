"""Where an archive's index and copies stand."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from wholefeed.core.memento import Capture, IndexPage, Layout, position_behind

WAYBACK = Layout("https://web.archive.org")
PYWB = Layout("http://127.0.0.1:8080/feeds")
FEED = "http://example.org/feed?a=1&b=ä"


def asked(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@pytest.mark.parametrize(
    ("layout", "index"),
    [(WAYBACK, "https://web.archive.org/cdx/search/cdx?"), (PYWB, "http://127.0.0.1:8080/feeds/cdx?")],
)
def test_the_index_is_asked_for_whole_answers_page_by_page(layout: Layout, index: str) -> None:
    """R33: 200 alone, neighbours with one body once, and a key for the next page."""
    url = layout.oldest(FEED, limit=50)
    assert url.startswith(index)
    assert asked(url) == {
        "url": FEED,
        "output": "json",
        "filter": "statuscode:200",
        "collapse": "digest",
        "limit": "50",
        "showResumeKey": "true",
    }


def test_the_newest_copies_are_asked_for_as_each_server_has_it() -> None:
    """R33: the Wayback Machine takes a negative limit, pywb sorts."""
    assert asked(WAYBACK.newest(FEED, limit=20))["limit"] == "-20"
    query = asked(PYWB.newest(FEED, limit=20))
    assert (query["limit"], query["sort"]) == ("20", "reverse")


def test_the_next_page_is_asked_for_by_its_key() -> None:
    """R33."""
    position = position_behind(IndexPage(resume_key="a b&c=d"), limit=50)
    assert asked(WAYBACK.oldest(FEED, limit=50, position=position))["resumeKey"] == "a b&c=d"


def test_without_a_key_a_full_page_is_no_end() -> None:
    """R33: an index that knows no keys is cut off in silence."""
    captures = (Capture("20190501120000", FEED), Capture("20200501120000", FEED))
    position = position_behind(IndexPage(captures, rows=2), limit=2)
    assert asked(PYWB.oldest(FEED, limit=2, position=position))["from"] == "20200501120000"
    assert position_behind(IndexPage(captures, rows=2), limit=3) == ""
    assert position_behind(IndexPage((), rows=2), limit=2) == ""


def test_a_page_that_leads_to_itself_is_the_last_one() -> None:
    """R33: an archive that repeats itself is not asked for ever."""
    page = IndexPage((Capture("20200501120000", FEED),), rows=1)
    assert position_behind(page, limit=1, position="from=20200501120000") == ""
    assert position_behind(IndexPage(resume_key="k"), limit=1, position="resumeKey=k") == ""


def test_a_copy_is_asked_for_as_it_was_archived() -> None:
    """R33: `id_`, or links and banners of the archive would stand in it."""
    capture = Capture("20190501120000", "http://example.org/feed?x=%20y")
    copy = WAYBACK.copy(capture)
    assert copy == "https://web.archive.org/web/20190501120000id_/http://example.org/feed?x=%20y"
    assert WAYBACK.capture_at(copy) == capture
    assert PYWB.copy(capture).startswith("http://127.0.0.1:8080/feeds/20190501120000id_/")


@pytest.mark.parametrize(
    "url",
    [
        "https://web.archive.org/web/20190501120000/http://example.org/feed",
        "https://web.archive.org/web/2019id_/http://example.org/feed",
        "https://web.archive.org/web/20191301120000id_/http://example.org/feed",
        "https://web.archive.org/web/20190501120000id_/ftp://example.org/feed",
        "https://web.archive.org/web/20190501120000id_/",
        "https://elsewhere.example.org/web/20190501120000id_/http://example.org/feed",
        "http://example.org/feed",
    ],
)
def test_what_is_no_copy_is_told_from_one(url: str) -> None:
    """R33: redirects may lead anywhere, to the publisher or to a page with the archive's banner in it."""
    assert WAYBACK.capture_at(url) is None
