"""What an archive is asked for, and which of its copies are taken."""

from __future__ import annotations

import pytest

from wholefeed.core.memento import (
    MAX_TRIES,
    UNHEARD_ATTEMPTS,
    Capture,
    for_gone,
    for_missing,
    instant_of,
    is_confirmed,
    is_gone,
    is_same_resource,
    may_be_sent,
)

URL = "https://example.org/feed"
NOW = instant_of("20240101000000")
ATOM = "application/atom+xml"


def a_capture(year: int, digest: str = "", media_type: str = ATOM, url: str = URL) -> Capture:
    return Capture(f"{year}0501120000", url, media_type, digest or str(year))


def years(captures: list[Capture]) -> list[int]:
    return [int(each.timestamp[:4]) for each in captures]


@pytest.mark.parametrize("status", [404, 410])
def test_what_a_publisher_says_is_gone_is_gone_at_once(status: int) -> None:
    """R33."""
    assert is_gone("publisher-status", status, attempts=1)


@pytest.mark.parametrize("reason", ["dns-error", "connection-failed", "timeout"])
def test_a_host_is_dead_when_nothing_was_heard_of_it_for_a_while(reason: str) -> None:
    """R33: a network that fails for a moment is no reason to ask an archive."""
    assert not is_gone(reason, None, attempts=1)
    assert is_gone(reason, None, attempts=UNHEARD_ATTEMPTS)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("publisher-status", 500),
        ("publisher-status", 503),
        ("origin-forbidden", 403),
        ("host-backoff", None),
        ("destination-forbidden", None),
        ("loop-detected", None),
        ("too-large", None),
        ("overloaded", None),
        ("not-a-feed", None),
    ],
)
def test_what_fails_otherwise_is_not_gone(reason: str, status: int | None) -> None:
    """R33: least of all what this proxy is not to ask."""
    assert not is_gone(reason, status, attempts=99)


@pytest.mark.parametrize("reason", ["not-a-feed", "format", "cross-origin-unconfirmed"])
def test_of_a_chain_what_something_else_stands_in_place_of_is_gone_too(reason: str) -> None:
    """R33: publishers lead to their front page what they have no more."""
    assert is_gone(reason, None, attempts=1, is_part=True)
    assert is_gone(reason, 200, attempts=1, is_part=True)


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://example.org/feed", True),
        ("https://example.org/feed?key=secret", False),
        ("https://example.org/feed?", False),
        ("https://ann:secret@example.org/feed", False),
        ("http://10.0.0.7/feed", False),
        ("http://[fd00::1]/feed", False),
        ("http://127.0.0.1/feed", False),
        ("http://8.8.8.8/feed", True),
        ("http://intranet/feed", False),
        ("http://wiki.corp/feed", False),
        ("http://printer.local/feed", False),
        ("not a URL", False),
    ],
)
def test_nobody_s_secrets_and_nobody_s_network_are_told_to_an_archive(url: str, may: bool) -> None:
    """R33."""
    assert may_be_sent(url, ()) is may


def test_a_listed_host_s_urls_may_be_sent_whatever_they_are() -> None:
    """R33: history.memento_query_hosts. Credentials never are."""
    hosts = ("example.org", "*.wiki.corp", "127.0.0.1")
    assert may_be_sent("https://example.org/?feed=rss2", hosts)
    assert may_be_sent("https://a.wiki.corp/?feed=rss2", hosts)
    assert may_be_sent("http://127.0.0.1:8080/feed", hosts)
    assert not may_be_sent("https://www.example.org/?feed=rss2", hosts)
    assert not may_be_sent("https://ann:secret@example.org/feed", hosts)


def test_of_a_missing_document_the_newest_copy_comes_first() -> None:
    """R33: others serve only if that is of no use."""
    assert years(for_missing([a_capture(2015), a_capture(2019), a_capture(2017)], URL, now=NOW)) == [
        2019, 2017, 2015,
    ]  # fmt: skip
    many = [a_capture(year) for year in range(2000, 2020)]
    assert years(for_missing(many, URL, now=NOW)) == list(range(2019, 2019 - MAX_TRIES, -1))


def test_what_was_sent_as_html_is_tried_last() -> None:
    """R33: it is mostly the page that stood there later."""
    captures = [a_capture(2019, media_type="text/html; charset=utf-8"), a_capture(2015)]
    assert years(for_missing(captures, URL, now=NOW)) == [2015, 2019]
    assert years(for_gone(captures, URL, now=NOW)) == [2015]


def test_of_a_feed_that_is_gone_all_copies_come_oldest_first() -> None:
    """R33: each body once, as it was seen first; collapsing is of neighbours alone."""
    captures = [a_capture(2019, "a"), a_capture(2015, "a"), a_capture(2017, "b"), a_capture(2018, "a")]
    assert years(for_gone(captures, URL, now=NOW)) == [2015, 2017]


def test_copies_of_anything_else_and_of_a_time_to_come_are_none() -> None:
    """R33: whatever an index lists."""
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
    """R33: archives sort by SURT, which leaves out the scheme and `www.`."""
    assert is_same_resource(URL, other) is is_same


@pytest.mark.parametrize(
    ("site_id", "links", "is_confirmed_"),
    [
        ("urn:feed", {}, True),
        ("urn:other", {}, False),
        ("", {}, False),
        ("urn:other", {"current": "http://www.example.org/feed"}, True),
        ("urn:other", {"current": "https://example.net/feed"}, False),
    ],
)
def test_a_copy_must_say_that_it_belongs(site_id: str, links: dict[str, str], is_confirmed_: bool) -> None:
    """R33, R24: the domain may be somebody else's now."""
    assert is_confirmed(site_id, links, feed_site_id="urn:feed", feed_urls=[URL]) is is_confirmed_


def test_a_channel_that_moved_to_https_is_the_same() -> None:
    """R33: and a URN is no URL that might be spelled in another way."""
    for site_id, feed_site_id, expected in (
        ("http://example.org", "https://www.example.org/", True),
        ("http://example.org/a", "http://example.org/b", False),
        ("urn:a/", "urn:a", False),
    ):
        found = is_confirmed(site_id, {}, feed_site_id=feed_site_id, feed_urls=())
        assert found is expected
