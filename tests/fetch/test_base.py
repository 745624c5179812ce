"""wholefeed.fetch.base: URLs in requests, targets of redirects, and the sites of hosts."""

from __future__ import annotations

import pytest

from wholefeed.errors import PublisherError
from wholefeed.fetch.base import parse_target, redirect_target, site_of

BASE = parse_target("https://example.org/a/feed")


@pytest.mark.parametrize(
    ("given", "sent", "host", "port"),
    [
        ("http://example.org", "http://example.org/", "example.org", 80),
        ("HTTPS://Example.ORG:443/Feed#top", "https://example.org/Feed", "example.org", 443),
        ("http://example.org:8080/?q=1", "http://example.org:8080/?q=1", "example.org", 8080),
        ("http://example.org/?", "http://example.org/?", "example.org", 80),
        (
            "http://bücher.example/ü?ü",
            "http://xn--bcher-kva.example/%C3%BC?%C3%BC",
            "xn--bcher-kva.example",
            80,
        ),
        ("http://[2606:4700::1]:81/", "http://[2606:4700::1]:81/", "2606:4700::1", 81),
        ("http://example.org/a/../b/./c", "http://example.org/b/c", "example.org", 80),
    ],
)
def test_a_target_is_what_the_url_means(given: str, sent: str, host: str, port: int) -> None:
    """Rows 9, 27: host in lower case and IDNA, escaped path, no fragment and the right port."""
    target = parse_target(given)
    assert (target.url, target.host, target.port) == (sent, host, port)


def test_path_and_query_are_sent_as_they_are_written() -> None:
    """Signed URLs break when their percent-encoding is tidied."""
    url = "http://example.org/%7Ea%2fb?sig=%2f%3d+%41&x=[1]|2"
    assert parse_target(url).url == "http://example.org/%7Ea%2fb?sig=%2f%3d+%41&x=%5B1%5D%7C2"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("https://example.net/new", "https://example.net/new"),
        ("/new", "https://example.org/new"),
        ("new?page=2#top", "https://example.org/a/new?page=2"),
        ("../b", "https://example.org/b"),
        ("//example.net/x", "https://example.net/x"),
        ("?page=2", "https://example.org/a/feed?page=2"),
        (" /a b ", "https://example.org/a%20b"),
        ("/caf\udce9", "https://example.org/caf%E9"),
        ("/b\\new.atom", "https://example.org/b/new.atom"),
        ("..\\b\\new.atom", "https://example.org/b/new.atom"),
        ("https://example.net/b\\new.atom?x", "https://example.net/b/new.atom?x"),
    ],
)
def test_a_redirect_leads_where_its_location_says(location: str, url: str) -> None:
    """RFC 9110, section 10.2.2; RFC 3986, section 5."""
    assert redirect_target(BASE, location).url == url


@pytest.mark.parametrize(
    "location",
    ["\\\\evil.example\\x", "/\\evil.example/", "https:\\\\evil.example/", "https:/\\evil.example/", "?a\\b"],
)
def test_a_backslash_that_may_begin_an_authority_leads_nowhere(location: str) -> None:
    """docs/faults.md row 20: clients disagree on the host."""
    with pytest.raises(PublisherError) as caught:
        redirect_target(BASE, location)
    assert caught.value.slug == "bad-redirect"


@pytest.mark.parametrize("location", ["", " ", "https://:80/", "https://example.org/\0", "//"])
def test_a_redirect_that_leads_nowhere_is_as_good_as_a_loop(location: str) -> None:
    """docs/faults.md row 35."""
    with pytest.raises(PublisherError) as caught:
        redirect_target(BASE, location)
    assert caught.value.slug == "redirect-loop"


@pytest.mark.parametrize(
    ("url", "site"),
    [
        ("http://example.org/feed", "example.org"),
        ("https://Feeds.Blog.Example.ORG:8443/", "example.org"),
        ("http://a.example.co.uk/", "example.co.uk"),
        ("http://one.github.io/", "one.github.io"),
        ("http://two.github.io/", "two.github.io"),
        ("http://co.uk/", "co.uk"),
        ("http://www.bücher.example/", "xn--bcher-kva.example"),
        ("http://localhost:8080/", "localhost"),
        ("http://192.0.2.1:81/", "192.0.2.1"),
        ("http://192.0.2.2/", "192.0.2.2"),
        ("http://[2001:db8::1]/", "2001:db8::1"),
        ("http://feed.test./", "feed.test"),
        ("not a url", "not a url"),
    ],
)
def test_names_the_registrable_domain(url: str, site: str) -> None:
    """R24."""
    assert site_of(url) == site
