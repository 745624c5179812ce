"""The index of an archive, as two servers write it and as nobody should."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.memento import MAX_INDEX_BYTES, MAX_ROWS, BadIndexError, Capture, instant_of, parse_index

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


def test_the_wayback_machine_s_index_is_read() -> None:
    """R33: the names of the columns come first, and say which is which."""
    page = parse_index(an_index(a_row("20190501120000"), a_row("20200501120000")))
    assert page.captures[0] == Capture(
        "20190501120000", "http://example.org/feed", "application/rss+xml", "D20190501120000"
    )
    assert [each.timestamp for each in page.captures] == ["20190501120000", "20200501120000"]
    assert (page.resume_key, page.rows) == ("", 2)


def test_columns_go_by_their_names() -> None:
    """R33: which columns an archive sends, and in what order, is its own affair."""
    body = json.dumps([["original", "timestamp"], ["http://example.org/feed", "20190501120000"]]).encode()
    assert parse_index(body).captures == (Capture("20190501120000", "http://example.org/feed"),)


def test_the_resume_key_stands_behind_an_empty_row() -> None:
    """R33: without it there would be no more than one page."""
    page = parse_index(an_index(a_row(), [], ["org,example)/feed 20190501120001"]))
    assert (page.resume_key, page.rows, len(page.captures)) == ("org,example)/feed 20190501120001", 1, 1)
    only_key = parse_index(an_index([], ["key"]))
    assert (only_key.resume_key, only_key.captures) == ("key", ())


@pytest.mark.parametrize("key", [7, None, ["a"], "a\nb", "k" * 3000])
def test_a_resume_key_that_is_none_is_no_key(key: object) -> None:
    """R33: it is sent back to the archive, and kept."""
    page = parse_index(an_index(a_row(), [], [key]))
    assert (page.resume_key, len(page.captures)) == ("", 1)


def test_pywb_s_index_is_read() -> None:
    """R33: an object a line, with other names."""
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
    """R33: nothing was archived."""
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
    """R33: an error page, another kind of JSON, nesting without end, more than was asked for."""
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


def test_a_revisit_has_no_status_of_its_own() -> None:
    """R33: the Wayback Machine writes a dash for a body that it has already."""
    assert len(parse_index(an_index(a_row(statuscode="-"))).captures) == 1


def test_no_more_rows_are_looked_at_than_can_have_been_asked_for() -> None:
    """R33."""
    page = parse_index(an_index(*[a_row() for _ in range(MAX_ROWS + 10)]))
    assert (len(page.captures), page.rows) == (MAX_ROWS, MAX_ROWS + 10)


def test_a_timestamp_is_an_instant_of_utc() -> None:
    """R33, R10: the capture is the time of fetch."""
    assert instant_of("20231114221320") == 1_700_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_an_index_or_refused(value: object) -> None:
    """R33: nothing else comes of it, and every capture has an instant."""
    try:
        page = parse_index(json.dumps(value).encode())
    except BadIndexError:
        return
    assert all(each.captured_at > -1e12 for each in page.captures)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_index_or_refused(body: bytes) -> None:
    """R33."""
    try:
        parse_index(body)
    except BadIndexError:
        return
