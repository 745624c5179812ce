"""Web archives: when to ask, the questions, and the mementos to use (R33)."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.memento import (
    MAX_INDEX_BYTES,
    MAX_ROWS,
    MAX_TRIES,
    UNHEARD_ATTEMPTS,
    BadIndexError,
    Capture,
    IndexPage,
    Layout,
    for_gone,
    for_missing,
    instant_of,
    is_confirmed,
    is_gone,
    is_same_resource,
    may_be_sent,
    parse_index,
    position_behind,
)

URL = "https://example.org/feed"
NOW = instant_of("20240101000000")
ATOM = "application/atom+xml"


def a_capture(year: int, digest: str = "", media_type: str = ATOM, url: str = URL) -> Capture:
    return Capture(f"{year}0501120000", url, media_type, digest or str(year))


def years(captures: list[Capture]) -> list[int]:
    return [int(each.timestamp[:4]) for each in captures]


@pytest.mark.parametrize(
    ("reason", "status", "attempts", "is_part", "expected"),
    [
        ("publisher-status", 404, 1, False, True),
        ("publisher-status", 410, 1, False, True),
        ("publisher-status", 503, 99, False, False),
        ("origin-forbidden", 403, 99, False, False),
        ("host-backoff", None, 99, False, False),
        ("too-large", None, 99, False, False),
        ("dns-error", None, 1, False, False),
        ("dns-error", None, UNHEARD_ATTEMPTS, False, True),
        ("timeout", None, UNHEARD_ATTEMPTS, False, True),
        ("timeout", 500, UNHEARD_ATTEMPTS, False, False),
        ("not-a-feed", None, 99, False, False),
        ("not-a-feed", None, 1, True, True),
        ("format", 200, 1, True, True),
        ("cross-origin-unconfirmed", None, 1, True, True),
    ],
)
def test_a_document_is_gone_when_its_publisher_will_not_give_it_any_more(
    reason: str, status: int | None, attempts: int, is_part: bool, expected: bool
) -> None:
    """R33: at once if the publisher says so, later if its host is silent, never for a forbidden URL. In a
    chain, also if another document replaced it.
    """
    assert is_gone(reason, status, attempts=attempts, is_part=is_part) is expected
    assert is_part or is_gone(reason, status, attempts=attempts) is expected


@pytest.mark.parametrize(
    ("url", "hosts", "may"),
    [
        ("https://example.org/feed", "", True),
        ("https://example.org/feed?key=secret", "", False),
        ("https://example.org/feed?", "", False),
        ("https://ann:secret@example.org/feed", "", False),
        ("http://10.0.0.7/feed", "", False),
        ("http://[fd00::1]/feed", "", False),
        ("http://8.8.8.8/feed", "", True),
        ("http://intranet/feed", "", False),
        ("http://wiki.corp/feed", "", False),
        ("not a URL", "", False),
        ("https://example.org/?feed=rss2", "example.org", True),
        ("https://a.wiki.corp/?feed=rss2", "*.wiki.corp", True),
        ("http://127.0.0.1:8080/feed", "127.0.0.1", True),
        ("https://www.example.org/?feed=rss2", "example.org", False),
        ("https://ann:secret@example.org/feed", "example.org", False),
    ],
)
def test_nobody_s_secrets_and_nobody_s_network_are_told_to_an_archive(
    url: str, hosts: str, may: bool
) -> None:
    """R33: except queries of history.memento_query_hosts; credentials never leave."""
    assert may_be_sent(url, (hosts,)) is may


def test_of_a_missing_document_the_newest_copy_comes_first() -> None:
    """R33: others serve only if the newest fails."""
    assert years(for_missing([a_capture(2015), a_capture(2019), a_capture(2017)], URL, now=NOW)) == [
        2019, 2017, 2015,
    ]  # fmt: skip
    many = [a_capture(year) for year in range(2000, 2020)]
    assert years(for_missing(many, URL, now=NOW)) == list(range(2019, 2019 - MAX_TRIES, -1))


def test_what_was_sent_as_html_is_tried_last() -> None:
    """R33: it is mostly a later page."""
    captures = [a_capture(2019, media_type="text/html; charset=utf-8"), a_capture(2015)]
    assert years(for_missing(captures, URL, now=NOW)) == [2015, 2019]
    assert years(for_gone(captures, URL, now=NOW)) == [2015]


def test_of_a_feed_that_is_gone_all_copies_come_oldest_first() -> None:
    """R33: each body once, at its first capture; indexes collapse neighbours only."""
    captures = [a_capture(2019, "a"), a_capture(2015, "a"), a_capture(2017, "b"), a_capture(2018, "a")]
    assert years(for_gone(captures, URL, now=NOW)) == [2015, 2017]


def test_copies_of_anything_else_and_of_a_time_to_come_are_none() -> None:
    """R33: for any rows of an index."""
    captures = [
        a_capture(2015, url="https://other.example.org/feed"),
        a_capture(2016, url="https://example.org/other"),
        a_capture(2030),
        a_capture(2017, url="http://www.example.org/feed/"),
    ]
    assert years(for_missing(captures, URL, now=NOW)) == [2017]
    assert years(for_gone(captures, URL, now=NOW)) == [2017]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        ("http://www.example.org:80/feed/", True),
        ("https://example.org/Feed", True),
        ("https://example.org:8443/feed", False),
        ("https://example.org/feed?a=1", False),
        ("https://example.net/feed", False),
        ("no URL", False),
    ],
)
def test_what_is_one_url_to_an_archive(other: str, is_same: bool) -> None:
    """R33: archives sort by SURT, without the scheme and `www.`."""
    assert is_same_resource(URL, other) is is_same


@pytest.mark.parametrize(
    ("site_id", "links", "expected"),
    [
        ("https://www.example.org/", {}, True),
        ("http://example.org", {}, True),
        ("http://example.org/a", {}, False),
        ("", {}, False),
        ("urn:other", {"current": "http://www.example.org/feed"}, True),
        ("urn:other", {"current": "https://example.net/feed"}, False),
    ],
)
def test_a_copy_must_say_that_it_belongs(site_id: str, links: dict[str, str], expected: bool) -> None:
    """R33, R24: the domain may have a new owner; a channel moved to https is the same."""
    own = "https://www.example.org/"
    assert is_confirmed(site_id, links, feed_site_id=own, feed_urls=[URL]) is expected
    assert not is_confirmed("urn:a/", {}, feed_site_id="urn:a", feed_urls=())


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
    """R33: status 200, equal neighbours once, and a key for the next page."""
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
    """R33: the Wayback Machine has a negative limit, pywb a sort order."""
    assert asked(WAYBACK.newest(FEED, limit=20))["limit"] == "-20"
    query = asked(PYWB.newest(FEED, limit=20))
    assert (query["limit"], query["sort"]) == ("20", "reverse")


def test_without_a_key_a_full_page_is_no_end() -> None:
    """R33: an index without keys is cut silently."""
    captures = (Capture("20190501120000", FEED), Capture("20200501120000", FEED))
    position = position_behind(IndexPage(captures, rows=2), limit=2)
    assert asked(PYWB.oldest(FEED, limit=2, position=position))["from"] == "20200501120000"
    assert position_behind(IndexPage(captures, rows=2), limit=3) == ""
    assert position_behind(IndexPage((), rows=2), limit=2) == ""


def test_a_page_that_leads_to_itself_is_the_last_one() -> None:
    """R33: a repeating archive is not asked forever."""
    page = IndexPage((Capture("20200501120000", FEED),), rows=1)
    assert position_behind(page, limit=1, position="from=20200501120000") == ""
    assert position_behind(IndexPage(resume_key="k"), limit=1, position="resumeKey=k") == ""


def test_a_copy_is_asked_for_as_it_was_archived() -> None:
    """R33: without `id_` it would contain the archive's links and banners."""
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
    """R33: redirects may lead to the publisher, or to the archive's banner."""
    assert WAYBACK.capture_at(url) is None


NAMES = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]


def a_row(timestamp: object = "20190501120000", **columns: object) -> list[object]:
    row = {
        "urlkey": "org,example)/feed",
        "timestamp": timestamp,
        "original": "http://example.org/feed",
        "mimetype": "application/rss+xml",
        "statuscode": "200",
        "digest": f"D{timestamp}",
        "length": "1000",
    }
    return [(row | columns)[name] for name in NAMES]


def an_index(*rows: list[object]) -> bytes:
    return json.dumps([NAMES, *rows]).encode()


def test_columns_go_by_their_names() -> None:
    """R33: the Wayback Machine sends names first; a revisit has no status."""
    page = parse_index(an_index(a_row("20231114221320"), a_row("20200501120000", statuscode="-")))
    assert page.captures[0] == Capture(
        "20231114221320", "http://example.org/feed", "application/rss+xml", "D20231114221320"
    )
    assert page.captures[0].captured_at == 1_700_000_000
    assert (len(page.captures), page.resume_key, page.rows) == (2, "", 2)
    body = json.dumps([["original", "timestamp"], ["http://example.org/feed", "20190501120000"]]).encode()
    assert parse_index(body).captures == (Capture("20190501120000", "http://example.org/feed"),)


def test_the_resume_key_stands_behind_an_empty_row() -> None:
    """R33: without it only one page would be read."""
    page = parse_index(an_index(a_row(), [], ["org,example)/feed 20190501120001"]))
    assert (page.resume_key, page.rows, len(page.captures)) == ("org,example)/feed 20190501120001", 1, 1)
    only_key = parse_index(an_index([], ["key"]))
    assert (only_key.resume_key, only_key.captures) == ("key", ())
    asked_behind = WAYBACK.oldest(FEED, limit=50, position=position_behind(page, limit=50))
    assert asked(asked_behind)["resumeKey"] == page.resume_key
    for none in (7, None, ["a"], "a\nb", "k" * 3000):
        page = parse_index(an_index(a_row(), [], [none]))
        assert (page.resume_key, len(page.captures)) == ("", 1)


def test_pywb_s_index_is_read() -> None:
    """R33: one object a line, with other names."""
    lines = [
        {
            "urlkey": "org,example)/feed",
            "timestamp": f"{year}0501120000",
            "url": "http://example.org/feed",
            "mime": "application/atom+xml",
            "status": "200",
            "digest": "D",
        }
        for year in (2019, 2020)
    ]
    page = parse_index("\n".join(map(json.dumps, lines)).encode())
    assert [each.timestamp for each in page.captures] == ["20190501120000", "20200501120000"]
    assert page.captures[0].media_type == "application/atom+xml"
    assert page.rows == 2


@pytest.mark.parametrize("body", [b"", b" \n", b"[]", b"[[]]", an_index()])
def test_an_index_may_be_empty(body: bytes) -> None:
    """R33: nothing is archived."""
    assert parse_index(body).captures == ()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"null",
        b"7",
        b'"x"',
        b'[{"timestamp": "20190501120000"}]',
        b"[[1], 2]",
        b"[" * 100_000,
        b'{"a": ' * 50_000,
        b"{\n}",
        b"[" + b"9" * 10_000 + b"]",
        b" " * (MAX_INDEX_BYTES + 1),
    ],
)
def test_what_is_no_index_is_refused(body: bytes) -> None:
    """R33: an error page, other JSON, endless nesting, more rows than requested."""
    with pytest.raises(BadIndexError):
        parse_index(body)


@pytest.mark.parametrize(
    "columns",
    [
        {"timestamp": "2019"},
        {"timestamp": "20191301120000"},
        {"timestamp": "२०१९०५०११२००००"},
        {"timestamp": 20190501120000},
        {"timestamp": None},
        {"original": "ftp://example.org/feed"},
        {"original": "http://user:secret@example.org/feed"},
        {"original": "http://example.org/" + "a" * 5000},
        {"original": "http://example.org/\x00"},
        {"original": ["http://example.org/feed"]},
        {"statuscode": "301"},
        {"statuscode": "404"},
    ],
)
def test_a_row_that_cannot_be_used_is_passed_over(columns: dict[str, object]) -> None:
    """R33: the others count."""
    bad = a_row(**columns)
    page = parse_index(an_index(bad, a_row("20200501120000")))
    assert [each.timestamp for each in page.captures] == ["20200501120000"]
    assert page.rows == 2


def test_no_more_rows_are_looked_at_than_can_have_been_asked_for() -> None:
    """R33."""
    page = parse_index(an_index(*[a_row() for _ in range(MAX_ROWS + 10)]))
    assert (len(page.captures), page.rows) == (MAX_ROWS, MAX_ROWS + 10)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(JSON.map(json.dumps).map(str.encode) | st.binary(max_size=200))
def test_anything_is_an_index_or_refused(body: bytes) -> None:
    """R33: no other result, and every capture has an instant."""
    try:
        page = parse_index(body)
    except BadIndexError:
        return
    assert all(each.captured_at > -1e12 for each in page.captures)
