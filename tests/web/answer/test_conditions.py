from __future__ import annotations

import pytest

from wholefeed.web.answer import accepts_gzip, is_not_modified


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("x-gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("*", True),
        ("*;q=0", False),
        ("*;q=0, gzip", True),
        ("deflate, br", False),
        ("gzip;q=0.3, identity;q=0.8", False),
        ("gzip;q=junk", False),
        ("identity", False),
    ],
)
def test_gzip_is_sent_where_it_is_welcome(header: str | None, expected: bool) -> None:
    """RFC 9110, 12.5.3."""
    assert accepts_gzip(header) is expected


DATE = "Sat, 21 Nov 2026 10:00:00 GMT"
AT = 1795255200.0


@pytest.mark.parametrize(
    ("if_none_match", "if_modified_since", "expected"),
    [
        ('"a"', None, True),
        ('W/"a"', None, True),
        ('"x", "a"', None, True),
        ("*", None, True),
        ('"x"', None, False),
        ('"x"', DATE, False),
        (None, DATE, True),
        (None, "Sat, 21 Nov 2026 09:59:59 GMT", False),
        (None, "yesterday", False),
        (None, None, False),
    ],
)
def test_a_reader_that_has_it_is_told_so(
    if_none_match: str | None, if_modified_since: str | None, expected: bool
) -> None:
    """RFC 9110, 13.2.2: If-None-Match outranks If-Modified-Since."""
    assert is_not_modified('"a"', AT, if_none_match, if_modified_since) is expected


def test_a_weak_tag_is_compared_with_what_it_says() -> None:
    """RFC 9110, 8.8.3.2: also of readers that have it from when it was taken for a strong one."""
    for tag in ('W/"a"', '"a"', '"x", W/"a"'):
        assert is_not_modified('W/"a"', AT, tag, None)
    assert not is_not_modified('W/"a"', AT, 'W/"x"', None)


def test_a_date_says_nothing_where_the_answer_has_none() -> None:
    """RFC 9110, 13.1.3."""
    assert not is_not_modified('"a"', None, None, DATE)
