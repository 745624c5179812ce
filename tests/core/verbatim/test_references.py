from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.model import ATOM_NS, WELL_KNOWN_PREFIXES, Family, Scope
from wholefeed.core.verbatim.addresses import has_relative_reference, url_names

URL = "http://example.org/feed"
IN_RSS = url_names([Scope(WELL_KNOWN_PREFIXES, "", URL)], Family.RSS)
IN_ATOM = url_names([Scope({"": ATOM_NS, "a": ATOM_NS}, "", URL)], Family.ATOM)


@pytest.mark.parametrize(
    "text",
    [
        b"<link>a</link>",
        b"<link  >\n/a</link>",
        b"<guid>x</guid>",
        b"<wfw:commentRss>/a</wfw:commentRss>",
        b"<a href='../a'>",
        b'<a href=""/>',
        b"<a href=a>",
        b"<a\nhref\t=\n'a'>",
        b"&lt;a href=&quot;a",
        b"&lt;img src=&#039;a",
        b"&lt;img src=&#x22;a",
        b"&amp;lt;img src=&amp;quot;a",
        b"<img data-src='a'>",
        b"<video poster='a'>",
    ],
)
def test_a_relative_reference_is_found(text: bytes) -> None:
    """RFC 3986, 4.2."""
    assert has_relative_reference(b"<item>" + text, IN_RSS)
    assert has_relative_reference(b"<a href='x'><b>" + text, IN_RSS, 15)
    assert not has_relative_reference(text + b" ", IN_RSS, len(text))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<link>http://a</link>",
        b"<link> HTTPS://a</link>",
        b"<link/>a<links>a</links>",
        b"<guid isPermaLink='false'>a</guid>",
        b"<a href='mailto:a'>",
        b'<a href="http://a/?href=b&url=c">',
        b"<a xhref='a' hrefs='a' title='href'>",
        b"url=a",
        b"<uri>a</uri>",
        b"<slash:comments>1</slash:comments>",
        b"<atom:link rel='self' type='a'/>",
    ],
)
def test_what_is_none_is_not_taken_for_one(text: bytes) -> None:
    """R22: absolute URLs, other attributes and plain text are no relative reference, so no byte is added."""
    assert not has_relative_reference(b"<item>" + text, IN_RSS)


def test_atom_s_elements_that_hold_a_uri_count_in_atom() -> None:
    """RFC 4287, 3.2.2, 4.2.5, 4.2.6 and 4.2.8."""
    assert has_relative_reference(b"<a:uri>x</a:uri>", IN_ATOM)
    assert has_relative_reference(b"<uri>/x</uri>", IN_ATOM)
    assert has_relative_reference(b"<author><name>Ann</name><url>/ann</url></author>", IN_ATOM)  # of 0.3
    assert has_relative_reference(b"<logo>x.png</logo>", IN_ATOM)
    assert has_relative_reference(b"<id>/x</id>", IN_ATOM)
    assert not has_relative_reference(b"<uri>http://x</uri>", IN_ATOM)
    assert not has_relative_reference(b"<id>urn:x</id>", IN_ATOM)


@pytest.mark.parametrize(
    "text",
    [
        b"<link>" + b" " * 1_000_000 + b"<",
        b"<link>" * 200_000 + b"<",
        b"<link " * 200_000,
        b" href=" + b" " * 1_000_000,
        b" href=" * 200_000 + b"a",
        b" href='http" * 100_000,
        b" href=" + b"a" * 1_000_000,
        b"=" * 1_000_000,
    ],
)
def test_no_text_takes_longer_than_its_length(text: bytes) -> None:
    """R22: a megabyte of half-written links is looked through in linear time, and holds up no answer."""
    started = time.perf_counter()
    for _ in range(3):
        has_relative_reference(text, IN_RSS)
        has_relative_reference(text, IN_ATOM)
    assert time.perf_counter() - started < 5


@given(st.binary(), st.integers(0, 50), st.integers(0, 50))
def test_any_slice_can_be_looked_at(text: bytes, start: int, end: int) -> None:
    """R22: no bytes and no offsets make the search for relative references fail."""
    assert has_relative_reference(text, IN_RSS, start, end) in (True, False)
