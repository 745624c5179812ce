"""A list made anew is one that can be read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from wholefeed.core.opml import Listed, compose_opml, read_opml


def test_titles_urls_and_sites_come_through() -> None:
    """OPML 2.0: `text` is there, `type` is rss, `xmlUrl` and `htmlUrl` are what they were; no site, no
    htmlUrl."""
    feeds = [
        Listed('A & B\'s "<news>"\x0b', "http://p.test/feed?url=a&token=b", "https://example.org/"),
        Listed("Ü", "http://p.test/feed?url=b", ""),
    ]
    made = compose_opml("mine & yours", feeds)
    root = ET.fromstring(made)
    assert (root.tag, root.attrib) == ("opml", {"version": "2.0"})
    assert root.findtext("head/title") == "mine & yours"
    first, second = root.findall("body/outline")
    assert first.attrib == {
        "type": "rss",
        "text": 'A & B\'s "<news>"',
        "title": 'A & B\'s "<news>"',
        "xmlUrl": "http://p.test/feed?url=a&token=b",
        "htmlUrl": "https://example.org/",
    }
    assert "htmlUrl" not in second.attrib
    assert [each.url for each in read_opml(made).subscriptions] == [feed.url for feed in feeds]


def test_a_list_of_nothing_is_a_list() -> None:
    """A proxy that knows no feed yet exports an empty list."""
    assert read_opml(compose_opml("x", [])).subscriptions == ()
