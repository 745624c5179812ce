from __future__ import annotations

import pytest

from wholefeed.fetch.base import site_of


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
