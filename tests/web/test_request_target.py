from __future__ import annotations

import time
from contextlib import suppress

import pytest

from wholefeed.errors import RequestError
from wholefeed.web.request import (
    Query,
    feed_url,
    feed_urls,
    is_prefix_form,
    read_prefix,
    read_query,
    read_wait,
)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("url=https%3A%2F%2Fo.test%2Ff%3Fa%3D1", Query("https://o.test/f?a=1", {})),
        ("wait=2&url=https%3A%2F%2Fo.test%2F", Query("https://o.test/", {"wait": "2"})),
        ("url=https%3A%2F%2Fo.test%2Ff&a=1", Query("https://o.test/f", {})),
        ("url=https://o.test/f?a=1&b=2", Query("https://o.test/f?a=1&b=2", {})),
        ("url=https://o.test/f?a=1&wait=3&b=2", Query("https://o.test/f?a=1&b=2", {"wait": "3"})),
        ("url=https://o.test/f?q=%26&b", Query("https://o.test/f?q=%26&b", {})),
        ("url=https%3A%2F%2Fo.test%2Ff&amp;token=x", Query("https://o.test/f", {"token": "x"})),
        ("url=https://o.test/f&amp;x=1", Query("https://o.test/f", {})),
        ("url=https://o.test/f?a%3D1%26b%3D2&wait=1", Query("https://o.test/f?a=1&b=2", {"wait": "1"})),
        ("url=https://o.test/f?q=a%3Db", Query("https://o.test/f?q=a%3Db", {})),
        ("a=1&url=https://o.test/f", Query("https://o.test/f", {})),
        ("url=%20feed://o.test/f%20&a=1", Query("feed://o.test/f&a=1", {})),
        ("url=+https://o.test/f%0d%0A", Query("https://o.test/f", {})),
        ("url=+https%3A%2F%2Fo.test%2F%3Fq%3Dc%2B%2B+", Query("https://o.test/?q=c++", {})),
        ("", Query("", {})),
    ],
)
def test_a_query_names_a_url_and_options(raw: str, expected: Query) -> None:
    """docs/design.md#the-interface: what stands behind an unencoded URL and is no option belongs to it."""
    assert read_query(raw) == expected


@pytest.mark.parametrize(
    ("raw_path", "url"),
    [
        ("/https://o.test/f?a=1&wait=2", "https://o.test/f?a=1&wait=2"),
        ("/http://o.test/f%20g", "http://o.test/f%20g"),
        ("/https:/o.test/f", "https://o.test/f"),
        ("/HTTPS://o.test/", "https://o.test/"),
        ("//https://o.test/f", "https://o.test/f"),
        ("/https%3A%2F%2Fo.test%2Ff%3Fa%3D1", "https://o.test/f?a=1"),
        ("/%20https://o.test/f%20%0a", "https://o.test/f"),
        ("/feed:https://o.test/f?a=1", "https://o.test/f?a=1"),
        ("/feed:https:/o.test/f", "https://o.test/f"),
        ("/feed://o.test/f?a=1&b=2", "o.test/f?a=1&b=2"),
        ("/feed:/o.test/f", "o.test/f"),
        ("/feed%3A%2F%2Fo.test%2Ff", "o.test/f"),
        ("/feed://localhost:8000/f", "localhost:8000/f"),
        ("/o.test/f?a=1", "o.test/f?a=1"),
        ("/o.test:8000/f", "o.test:8000/f"),
        ("/www.o-o.test%2Ff", "www.o-o.test/f"),
    ],
)
def test_the_prefix_form_takes_everything_behind_the_slash(raw_path: str, url: str) -> None:
    """Written behind the slash a URL keeps its whole query, also collapsed to one slash or encoded."""
    assert is_prefix_form(raw_path)
    assert read_prefix(raw_path) == url


@pytest.mark.parametrize(
    "raw_path",
    [
        "/feed?url=https://o.test",
        "/",
        "/ftp://o.test/",
        "/https:",
        "/https:///x",
        "/feed",
        "/feed/",
        "/feed:",
        "/robots.txt",
        "/openapi.json",
        "/wp-login.php/x",
        "/.well-known/x",
        "/a/b.c/",
        "/o.test",
        "/1.2/x",
    ],
)
def test_other_targets_are_no_prefix_form(raw_path: str) -> None:
    """Paths of our own and other schemes are not taken for a feed's URL."""
    assert not is_prefix_form(raw_path)


@pytest.mark.parametrize(
    ("given", "url", "instead"),
    [
        ("example.org/feed", "https://example.org/feed", "http://example.org/feed"),
        ("Example.org", "https://example.org/", "http://example.org/"),
        ("example.org:8080/a?b", "https://example.org:8080/a?b", "http://example.org:8080/a?b"),
        ("localhost:8000/f", "https://localhost:8000/f", "http://localhost:8000/f"),
        ("192.0.2.1/f", "https://192.0.2.1/f", "http://192.0.2.1/f"),
        ("[2001:db8::1]/f", "https://[2001:db8::1]/f", "http://[2001:db8::1]/f"),
        ("//example.org/f", "https://example.org/f", "http://example.org/f"),
        ("feed://example.org/f", "https://example.org/f", "http://example.org/f"),
        ("FEED:example.org/f", "https://example.org/f", "http://example.org/f"),
        ("feed:https://example.org/f", "https://example.org/f", ""),
        ("feed://http://example.org/f", "http://example.org/f", ""),
        (" \thttp://example.org/f\r\n", "http://example.org/f", ""),
        ("\u00a0example.org/f ", "https://example.org/f", "http://example.org/f"),
    ],
)
def test_what_people_paste_is_taken_for_what_they_mean(given: str, url: str, instead: str) -> None:
    """Browsers show URLs without a scheme, and links to feeds bear one of their own."""
    assert feed_urls(given) == (url, instead)


@pytest.mark.parametrize(
    "given", ["feed", "feed:", "mailto:a@example.org", "a b.org", "javascript:alert(1)", "ann:pw@o.test/"]
)
def test_what_is_no_url_is_none(given: str) -> None:
    """docs/faults.md row 20."""
    with pytest.raises(RequestError):
        feed_url(given)


@pytest.mark.parametrize("given", ["a." * 4000 + "@", "." * 8000 + " ", "1" * 8000 + " "])
def test_what_is_no_url_is_seen_at_once(given: str) -> None:
    """However long: the loop that answers everybody waits meanwhile. It took five seconds."""
    started = time.process_time()
    with suppress(RequestError):
        feed_url(given)
    assert time.process_time() - started < 0.2


def test_blanks_within_a_prefixed_url_are_passed_at_once() -> None:
    """Only those behind it are looked at; it took half a second."""
    raw_path = "/https://o.test/" + "%20" * 2600
    started = time.process_time()
    assert read_prefix(raw_path + "x") == (raw_path + "x")[1:]
    assert read_prefix(raw_path) == "https://o.test/"
    assert time.process_time() - started < 0.1


def test_the_wait_is_at_most_what_is_configured() -> None:
    """`wait` can shorten limits.respond_within_seconds and never lengthen it."""
    assert read_wait({}, 8) == 8
    assert read_wait({"wait": "2.5"}, 8) == 2.5
    assert read_wait({"wait": "90"}, 8) == 8


@pytest.mark.parametrize("given", ["x", "-1", "nan", "inf"])
def test_a_wait_that_is_no_time_is_refused(given: str) -> None:
    """A `wait` that is negative, infinite or no number is 400, not an endless wait."""
    with pytest.raises(RequestError, match="wait in seconds"):
        read_wait({"wait": given}, 8)
