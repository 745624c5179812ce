"""wholefeed.core.saved.choosing: which feed of a file is the one, and which entries are known (I4)."""

from __future__ import annotations

import pytest

from wholefeed.core.parse.limits import ParseError
from wholefeed.core.saved.choosing import KnownEntry, choose_feed, fit_entries
from wholefeed.core.saved.saved_entries import SavedEnclosure, SavedEntry, SavedFeed, SavedFile

FEED = "https://www.example.org/feed/"


def a_file(*urls: str) -> SavedFile:
    return SavedFile("program", [SavedFeed(url, [SavedEntry(id=url)]) for url in urls])


@pytest.mark.parametrize(
    ("written", "is_same"),
    [
        ("http://example.org/feed", True),
        ("HTTPS://WWW.EXAMPLE.ORG:443/feed/", True),
        ("feed:https://example.org/feed", True),
        ("https://example.org/feed/atom", False),
        ("https://example.org/feed?cat=1", False),
        ("https://blog.example.org/feed", False),
        ("http://[", False),
        ("http://127.0.0.1/feed?url=https://example.org/feed&replay=1/day", True),
        ("http://127.0.0.1/other?url=https://example.org/feed", False),
    ],
)
def test_a_url_is_compared_in_its_key(written: str, is_same: bool) -> None:
    """I4, H6: http or https, the last slash and www make no difference, all else does."""
    match = choose_feed(a_file(written), [FEED])
    assert (len(match.entries) == 1) is is_same


def test_a_url_s_parameter_is_a_feed_only_if_it_is_a_url() -> None:
    """I4: two sites may have a parameter `url` with the same value."""
    assert not choose_feed(a_file("https://a.test/feed?url=news"), ["https://b.test/feed?url=news"]).url


def test_feeds_of_both_spellings_are_one() -> None:
    """I4: a reader may have subscribed to it twice."""
    match = choose_feed(a_file("http://example.org/feed", "http://x.test/", FEED), [FEED])
    assert [entry.id for entry in match.entries] == ["http://example.org/feed", FEED]


def test_the_nearest_are_told_first() -> None:
    """I4: of the same host, then of the same domain; the longest common start first."""
    urls = [
        "http://a.test/",
        "https://blog.example.org/",
        "https://example.org/x",
        "https://example.org/feeds",
    ]
    match = choose_feed(a_file(*urls), [FEED])
    assert match.others == [urls[3], urls[2], urls[1]]
    with pytest.raises(ParseError, match=r"with 4 feeds, the nearest of them: https://example\.org/feeds, "):
        fit_entries(match, [], is_forced=True)
    one = choose_feed(a_file(urls[0]), [FEED])
    with pytest.raises(ParseError, match=r"with one feed: http://a\.test/$"):
        fit_entries(one, [], is_forced=True)


def test_links_become_absolute() -> None:
    """I4: Liferea saves them as they were written."""
    entry = SavedEntry(link="/1", enclosures=(SavedEnclosure("1.mp3"),))
    (found,) = choose_feed(SavedFile("p", [SavedFeed(FEED, [entry])]), [FEED]).entries
    assert found.link == "https://www.example.org/1"
    assert found.enclosures[0].url == "https://www.example.org/1.mp3"


def test_ids_come_from_the_only_entry_with_the_link() -> None:
    """I4: of several with one link, none is told to be it."""
    known = [
        KnownEntry("urn:1", "http://site.test/1"),
        KnownEntry("http://site.test/2", "http://site.test/2"),  # a list's (H5)
        KnownEntry("urn:3", "http://site.test/3"),
        *(KnownEntry(f"urn:{n}", "http://site.test/") for n in (8, 9)),
    ]
    saved = [
        SavedEntry(link="https://site.test/1/", title="1"),
        SavedEntry(id="urn:two", link="http://site.test/2", title="2"),
        SavedEntry(id="urn:three", link="http://site.test/3", title="3"),
        SavedEntry(link="http://site.test/", title="4"),
        SavedEntry(link="http://site.test/5", title="5"),
        SavedEntry(link="http://site.test/5", title="6"),
    ]
    match = choose_feed(SavedFile("p", [SavedFeed(FEED, saved)]), [FEED])
    found = {each.title: each.id for each in fit_entries(match, known, is_forced=False)}
    assert found == {"1": "urn:1", "2": "http://site.test/2", "3": "urn:three", "4": "", "5": "", "6": ""}


def test_links_to_two_places_of_one_page_are_two_entries() -> None:
    """I4: a list of changes links each of them by a fragment."""
    known = [KnownEntry("urn:2", "http://site.test/changes#v2")]
    saved = [SavedEntry(link="http://site.test/changes#v1")]
    match = choose_feed(SavedFile("p", [SavedFeed(FEED, saved)]), [FEED])
    assert fit_entries(match, known, is_forced=False) == saved
    saved = [SavedEntry(link="https://site.test/changes/#v2")]
    match = choose_feed(SavedFile("p", [SavedFeed(FEED, saved)]), [FEED])
    assert [each.id for each in fit_entries(match, known, is_forced=False)] == ["urn:2"]


def test_the_latest_of_doubles_counts_and_the_newest_stands_first() -> None:
    """I4: a file may hold an entry under several labels."""
    saved = [
        SavedEntry(id="a", title="old", updated_at=1.0),
        SavedEntry(id="a", title="new", updated_at=2.0),
        SavedEntry(id="b", title="b"),
        SavedEntry(id="c", title="c", published_at=3.0),
        SavedEntry(),
    ]
    match = choose_feed(SavedFile("p", [SavedFeed(FEED, saved)]), [FEED])
    assert [each.title for each in fit_entries(match, [], is_forced=False)] == ["c", "new", "b"]
