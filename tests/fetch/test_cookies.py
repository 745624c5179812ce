"""wholefeed.fetch.cookies: cookies of a chain of redirects go back to their host only."""

from __future__ import annotations

import pytest

from wholefeed.fetch.cookies import MAX_COOKIE_BYTES, MAX_COOKIES, ChainCookies

NOW = 1_700_000_000.0
URL = "http://example.org/feeds/all.xml"


def sent(*fields: str, to: str = URL, by: str = URL) -> str:
    """Return the Cookie field after one response with these Set-Cookie fields."""
    cookies = ChainCookies()
    cookies.store(by, fields, now=NOW)
    return cookies.find_field(to)


@pytest.mark.parametrize(
    ("field", "pair"),
    [
        ("seen=1", "seen=1"),
        ("seen=1; Path=/; HttpOnly; SameSite=Lax", "seen=1"),
        (" seen = a b ;Path=/feeds", "seen=a b"),
        ('seen="1"; Domain=.example.org', 'seen="1"'),
        ("seen=; Expires=Tue, 14 Nov 2034 22:13:20 GMT", "seen="),
        ("seen=1; Expires=tomorrow; Max-Age=60", "seen=1"),
        ("seen=1; Path=relative", "seen=1"),
    ],
)
def test_a_cookie_goes_back_to_its_host(field: str, pair: str) -> None:
    """RFC 6265, sections 4.1 and 5.2: the pair alone, unchanged."""
    assert sent(field) == pair


@pytest.mark.parametrize(
    ("to", "is_sent"),
    [
        ("http://example.org/feeds/all.xml?check=1", True),
        ("https://example.org/feeds/all.xml", True),
        ("http://www.example.org/feeds/all.xml", False),
        ("http://org/feeds/all.xml", False),
        ("http://example.org:8080/feeds/all.xml", False),
        ("http://example.org/other", False),
        ("http://example.org/feedsx", False),
        ("http://example.org/feeds", True),
    ],
)
def test_a_cookie_goes_to_no_other_host_or_path(to: str, is_sent: bool) -> None:
    """docs/faults.md row 153: not even if its Domain allows it; RFC 6265, 5.1.4."""
    assert sent("seen=1; Domain=example.org", to=to) == ("seen=1" if is_sent else "")


def test_what_came_by_https_goes_by_https_alone() -> None:
    """docs/faults.md row 153, even without Secure; and Secure by http sets nothing."""
    secure = URL.replace("http:", "https:")
    assert sent("seen=1", by=secure, to=secure) == "seen=1"
    assert sent("seen=1", by=secure, to=URL) == ""
    assert sent("seen=1; Secure", by=URL, to=secure) == ""


@pytest.mark.parametrize(
    "end",
    [
        "Max-Age=0",
        "Max-Age=-1; Expires=Tue, 14 Nov 2034 22:13:20 GMT",
        "Expires=Thu, 01-Jan-1970 00:00:00 GMT",
    ],
)
def test_a_cookie_that_expires_is_removed(end: str) -> None:
    """RFC 6265, section 5.3: publishers remove cookies so."""
    assert sent("seen=1; Path=/", "other=2; Path=/", f"seen=; Path=/; {end}") == "other=2"


@pytest.mark.parametrize(
    "field", ["", "seen", "=1", "a b=1", "seen=\u00e9", "seen=a\x01b", "seen\udce9=1", ";seen=1"]
)
def test_what_is_no_cookie_is_none(field: str) -> None:
    """A request contains only visible ASCII."""
    assert sent(field) == ""


def test_cookies_are_few_and_small() -> None:
    """docs/faults.md row 153: cookies beyond the room are dropped; a repeated one uses its own room."""
    many = [f"c{number}={number}" for number in range(100)]
    assert sent(*many).split("; ") == many[:MAX_COOKIES]
    assert sent("a=" + "x" * MAX_COOKIE_BYTES, "b=1") == "b=1"
    half = "x" * (MAX_COOKIE_BYTES // 2)
    assert sent(f"a={half}", "a=2", f"b={half}") == f"a=2; b={half}"
