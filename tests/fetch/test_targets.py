"""wholefeed.fetch.base: URLs as they are sent, and where redirects lead."""

from __future__ import annotations

import pytest

from wholefeed.core.text.urls import UrlError
from wholefeed.errors import PublisherError
from wholefeed.fetch.base import parse_target, redirect_target

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
    """Rows 9, 27: what is sent has the host in lower case and IDNA, escaped path, no fragment and the right
    port."""
    target = parse_target(given)
    assert (target.url, target.host, target.port) == (sent, host, port)


def test_path_and_query_are_sent_as_they_are_written() -> None:
    """Signed URLs break when their percent-encoding is tidied."""
    url = "http://example.org/%7Ea%2fb?sig=%2f%3d+%41&x=[1]|2"
    assert parse_target(url).url == "http://example.org/%7Ea%2fb?sig=%2f%3d+%41&x=%5B1%5D%7C2"


@pytest.mark.parametrize("host", ["①②⑦.⓪.⓪.①", "127。0。0。1", "\uff11\uff12\uff17.0.0.1"])
def test_other_digits_are_an_address_too(host: str) -> None:
    """docs/faults.md row 9."""
    assert parse_target(f"http://{host}/").host == "127.0.0.1"


@pytest.mark.parametrize(
    "url", ["ftp://example.org/", "http://u:p@example.org/", "http://2130706433/", "feed"]
)
def test_what_cannot_be_fetched_is_no_target(url: str) -> None:
    """docs/faults.md rows 8, 16, 17, 20."""
    with pytest.raises(UrlError):
        parse_target(url)


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
    ],
)
def test_a_redirect_leads_where_its_location_says(location: str, url: str) -> None:
    """RFC 9110, section 10.2.2; RFC 3986, section 5."""
    assert redirect_target(BASE, location).url == url


@pytest.mark.parametrize(
    "location",
    [
        *("ftp://example.org/", "javascript:alert(1)", "https://u:p@example.org/", "https://[::1%25lo]/"),
        *("https://exa mple.org/", "https://127.1/", "/" + "x" * 3000, "https:\\\\example.org\\"),
    ],
)
def test_a_redirect_that_cannot_be_followed_is_refused(location: str) -> None:
    """docs/faults.md rows 13, 14; no credentials are shown."""
    with pytest.raises(PublisherError) as caught:
        redirect_target(BASE, location)
    assert caught.value.slug == "bad-redirect"
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    "location", ["", " ", "https://:80/", "https://example.org:99999/", "https://example.org/\0", "//"]
)
def test_a_redirect_that_leads_nowhere_is_as_good_as_a_loop(location: str) -> None:
    """docs/faults.md row 35."""
    with pytest.raises(PublisherError) as caught:
        redirect_target(BASE, location)
    assert caught.value.slug == "redirect-loop"


def test_a_redirect_out_of_https_is_refused_unless_allowed() -> None:
    """docs/faults.md row 14."""
    with pytest.raises(PublisherError) as caught:
        redirect_target(BASE, "http://example.org/a")
    assert caught.value.slug == "downgrade"
    assert redirect_target(BASE, "http://example.org/a", allow_downgrade=True).url == "http://example.org/a"
    assert redirect_target(parse_target("http://example.org/"), "https://example.org/").is_secure
