"""wholefeed.fetch.heads: repairs of heads of responses."""

from __future__ import annotations

import pytest

from wholefeed.fetch.heads import mend_head

STATUS = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        b"",
        b"Content-Type: text/xml\r\nContent-Length: 5\r\n",
        b"Content-Type:text/xml\nContent-Length:\t5 \n",
        b"X-Folded: a\r\n b\r\n\tc\r\n",
        b"X-Title: caf\xe9 \xe2\x80\x94\r\nX-Empty:\r\n",
        b"Transfer-Encoding: chunked\r\n",
    ],
    ids=["none", "usual", "LF alone", "folded", "not ASCII", "chunked"],
)
def test_a_valid_head_stays_as_it_is(fields: bytes) -> None:
    """And is not copied."""
    head = STATUS + fields + b"\r\n"
    mended, repairs = mend_head(head)
    assert mended is head
    assert repairs == frozenset()


@pytest.mark.parametrize(
    ("fields", "mended"),
    [
        (b"This is no header\r\nAge: 1\r\n", b"Age: 1\r\n"),
        (b"Age : 1\r\n", b"Age: 1\r\n"),
        (b"Age\t \t: 1\nEtag: 2\n", b"Age: 1\r\nEtag: 2\r\n"),
        (b": oops\r\nAge: 1\r\n", b"Age: 1\r\n"),
        (b"X Powered By: php\r\nAge: 1\r\n", b"Age: 1\r\n"),
        (b"X-Caf\xe9: 1\r\nAge: 1\r\n", b"Age: 1\r\n"),
        (b"no field\r\n but folded: 1\r\nAge: 1\r\n  2\r\n", b"Age: 1\r\n  2\r\n"),
        (b" folded: 1\r\nAge: 1\r\n", b"Age: 1\r\n"),
        (b"Content Length: 7\r\nContent-Length: 5\r\n", b"Content-Length: 5\r\n"),
        (b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: chunked\r\n"),
    ],
)
def test_lines_that_are_no_fields_are_mended_or_left_out(fields: bytes, mended: bytes) -> None:
    """docs/faults.md row 152; RFC 9112, sections 2.2 and 5.1."""
    assert mend_head(STATUS + fields + b"\r\n") == (STATUS + mended + b"\r\n", frozenset({"header-fields"}))


@pytest.mark.parametrize(
    ("line", "mended"),
    [
        (b"HTTP/1.1  200 OK", b"HTTP/1.1 200 OK"),
        (b"HTTP/1.1\t200\tOK", b"HTTP/1.1 200 OK"),
        (b"http/1.0 200 OK", b"HTTP/1.0 200 OK"),
        (b"HTTP/1.1 200OK", b"HTTP/1.1 200 OK"),
        (b"HTTP/1.1 200.", b"HTTP/1.1 200 "),
        (b"HTTP/2 200", b"HTTP/1.1 200 "),
    ],
)
def test_a_status_line_is_mended(line: bytes, mended: bytes) -> None:
    """docs/faults.md row 152; RFC 9112, section 4."""
    rest = b"\r\nAge: 1\r\n\r\n"
    assert mend_head(line + rest) == (mended + rest, frozenset({"status-line"}))


@pytest.mark.parametrize(
    "line", [b"HTTP/1.1 20 OK", b"HTTP/1.1 2000", b"HTTP/1.1 OK", b"HTTP 200 OK", b"SSH-2.0-x"]
)
def test_what_is_no_status_line_stays_so(line: bytes) -> None:
    """docs/faults.md row 33."""
    assert mend_head(line + b"\r\n\r\n") == (line + b"\r\n\r\n", frozenset())


@pytest.mark.parametrize(
    ("fields", "mended"),
    [
        (b"Content-Length: 5\r\nAge: 1\r\nContent-Length: 5\r\n", b"Age: 1\r\nContent-Length: 5\r\n"),
        (b"Content-Length: 5\r\ncontent-length:5\r\nCONTENT-LENGTH: 5 \r\n", b"Content-Length: 5\r\n"),
        (b"Content-Length: 5, 5\r\n", b"Content-Length: 5\r\n"),
        (b"Content-Length: 5,\r\n", b"Content-Length: 5\r\n"),
        (b"Content-Length:\r\nAge: 1\r\n", b"Age: 1\r\n"),
        (b"Content-Length: \r\nContent-Length: 5\r\n", b"Content-Length: 5\r\n"),
    ],
)
def test_equal_lengths_are_one_and_an_empty_one_is_none(fields: bytes, mended: bytes) -> None:
    """docs/faults.md row 152; RFC 9110, section 8.6."""
    assert mend_head(STATUS + fields + b"\r\n") == (STATUS + mended + b"\r\n", frozenset({"content-length"}))


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: 5\r\nContent-Length: 05\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: 5\r\n 5\r\n",
        b"Content-Length: five\r\n",
        b"no field\r\nX-A: b\0c\r\n",
        b"no field\r\nX-A: b\rX-B: c\r\n",
        b"no field\r\rContent-Length: 5\r\n",
    ],
)
def test_what_can_be_read_in_two_ways_stays_for_the_parser_to_refuse(fields: bytes) -> None:
    """docs/faults.md rows 31 and 33."""
    head = STATUS + fields + b"\r\n"
    assert mend_head(head) == (head, frozenset())


def test_two_lengths_stay_where_another_line_is_mended() -> None:
    """docs/faults.md row 31: the parser gets both."""
    head = STATUS + b"Age : 1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
    assert mend_head(head)[0].count(b"Content-Length") == 2
