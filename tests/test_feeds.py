"""Tests read feeds as readers do: `tests.feeds` compared with feedparser."""

from __future__ import annotations

from collections.abc import Callable

import feedparser
import pytest

from tests.feeds import an_item, atom, atom_03, ids, rdf, rss, texts
from tests.publishers import wordpress_feeds
from tests.publishers.blog import Blog


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
def test_entries_are_read_as_feedparser_reads_them(make: Callable[..., bytes]) -> None:
    """Ids and texts in each format, as the makers write them, an undated entry too."""
    held(make(an_item("b", 2), an_item("a", None, "more\ntext "), an_item("ü", 1, "größer &lt;b&gt;")))


@pytest.mark.parametrize("name", ["rss2", "atom", "rdf"])
def test_posts_are_read_as_feedparser_reads_them(name: str) -> None:
    """The text of an entry counts before its excerpt."""
    site = wordpress_feeds.self_hosted("http://blog.test", "A blog", "6.6", pretty=True)
    channel = wordpress_feeds.Channel(site=site, title="A blog", self_url="http://blog.test/feed/", updated=0)
    held(wordpress_feeds.feed(name, channel, Blog(5).posts).encode())


def held(body: bytes) -> None:
    """The feed has entries, and both read them alike."""
    entries = feedparser.parse(body).entries
    assert entries
    assert ids(body) == [each.get("id", "").removeprefix("urn:") for each in entries]
    said = [each.content[0].value if "content" in each else each.summary for each in entries]
    assert list(texts(body).values()) == said
