"""Files of feed readers, made from posts: the tables and members that an import reads (I4).

The schemas are those of newsboat 2.21, NetNewsWire 7, lemon24/reader 3.26 and Liferea 1.14, without columns
unrelated to entries. `tests/readers/test_imports.py` compares two of them with the programs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tests.feeds import BASE_AT


class Post(NamedTuple):
    """A post, with its feed."""

    name: str
    hours: int
    feed: str
    site: str = "http://site.test"

    @property
    def id(self) -> str:
        return f"urn:{self.name}"

    @property
    def link(self) -> str:
        return f"{self.site}/{self.name}"

    @property
    def at(self) -> int:
        return BASE_AT + 3600 * self.hours

    @property
    def stamp(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def html(self) -> str:
        return f"<p>saved text of {self.name}</p>"


# Exports in JSON


def google_reader(posts: Sequence[Post]) -> bytes:
    return _greader(posts, lambda post: {"id": f"tag:google.com,2005:reader/item/{post.at:016x}"})


def freshrss(posts: Sequence[Post]) -> bytes:
    return _greader(posts, lambda post: {"id": "tag:google.com,2005:reader/item/1", "guid": post.id})


def _greader(posts: Sequence[Post], ids: Callable[[Post], dict[str, Any]]) -> bytes:
    items = [
        {
            **ids(post),
            "published": post.at,
            "title": f"{post.name} &amp; <i>more</i>",
            "canonical": [{"href": post.link}],
            "alternate": [{"href": post.link, "type": "text/html"}],
            "content": {"direction": "ltr", "content": post.html},
            "author": "Ann",
            "categories": ["user/-/state/com.google/starred", "user/-/label/secret"],
            "origin": {"streamId": f"feed/{len(post.feed)}", "feedUrl": post.feed}
            if "guid" in ids(post)
            else {"streamId": f"feed/{post.feed}", "title": "A feed"},
        }
        for post in posts
    ]
    return json.dumps({"id": "user/1/state/com.google/starred", "title": "Starred", "items": items}).encode()


def miniflux(posts: Sequence[Post]) -> bytes:
    entries = [
        {
            "id": number,
            "hash": f"{number:064x}",
            "title": f"{post.name} & more",
            "url": post.link,
            "published_at": post.stamp,
            "created_at": post.stamp,
            "content": post.html,
            "author": "Ann",
            "enclosures": [],
            "feed": {"id": 1, "feed_url": post.feed, "site_url": post.site},
        }
        for number, post in enumerate(posts)
    ]
    return json.dumps({"total": len(entries), "entries": entries}).encode()


def feedbin(posts: Sequence[Post], *, numbers: dict[str, int] | None = None) -> bytes:
    """The export of starred entries; with numbers of feeds, the API's form."""
    entries = [
        {
            "id": number,
            "title": f"{post.name} & more",
            "author": "Ann",
            "content": post.html,
            "url": post.link,
            "published": post.stamp,
            "created_at": post.stamp,
        }
        | ({} if numbers is None else {"feed_id": numbers[post.feed]})
        for number, post in enumerate(posts)
    ]
    return json.dumps(entries).encode()


# Databases


def a_database(script: str, rows: dict[str, list[tuple[Any, ...]]]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0])) if values else ""
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        connection.commit()
        return connection.serialize()


NEWSBOAT = """
CREATE TABLE rss_feed (rssurl VARCHAR(1024) PRIMARY KEY NOT NULL, url VARCHAR(1024) NOT NULL,
  title VARCHAR(1024) NOT NULL);
CREATE TABLE rss_item (id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, guid VARCHAR(64) NOT NULL,
  title VARCHAR(1024) NOT NULL, author VARCHAR(1024) NOT NULL, url VARCHAR(1024) NOT NULL,
  feedurl VARCHAR(1024) NOT NULL, pubDate INTEGER NOT NULL, content VARCHAR(65535) NOT NULL,
  unread INTEGER(1) NOT NULL, enclosure_url VARCHAR(1024), enclosure_type VARCHAR(1024),
  enqueued INTEGER(1) NOT NULL DEFAULT 0, flags VARCHAR(52), deleted INTEGER(1) NOT NULL DEFAULT 0,
  base VARCHAR(128) NOT NULL DEFAULT "");
CREATE INDEX idx_feedurl ON rss_item (feedurl);
"""


def newsboat(posts: Sequence[Post]) -> bytes:
    items = [
        (
            *(number, post.id, f"{post.name} & more", "Ann", post.link, post.feed, post.at, post.html, 1),
            *("", "", 0, "", 0, post.site),
        )
        for number, post in enumerate(posts)
    ]
    deleted = [(999_999, "urn:deleted", "d", "", "http://d", posts[0].feed, 1, "d", 0, "", "", 0, "", 1, "")]
    feeds = [(feed, "", "") for feed in dict.fromkeys(post.feed for post in posts)]
    return a_database(NEWSBOAT, {"rss_feed": feeds, "rss_item": items + deleted})


NETNEWSWIRE = """
CREATE TABLE articles (articleID TEXT NOT NULL PRIMARY KEY, feedID TEXT NOT NULL, uniqueID TEXT NOT NULL,
  title TEXT, contentHTML TEXT, contentText TEXT, markdown TEXT, url TEXT, externalURL TEXT, summary TEXT,
  imageURL TEXT,
  bannerImageURL TEXT, datePublished DATE, dateModified DATE, searchRowID INTEGER, authors TEXT);
CREATE TABLE statuses (articleID TEXT NOT NULL PRIMARY KEY, read BOOL NOT NULL DEFAULT 0,
  starred BOOL NOT NULL DEFAULT 0, dateArrived DATE NOT NULL DEFAULT 0);
CREATE VIRTUAL TABLE search USING fts4(title, body);
CREATE TRIGGER articles_after_delete AFTER DELETE ON articles BEGIN
  DELETE FROM search WHERE rowid = OLD.searchRowID; END;
"""


def netnewswire(posts: Sequence[Post]) -> bytes:
    authors = json.dumps([{"authorID": "x", "name": "Ann"}])
    articles = [
        (
            *(str(number), post.feed, post.id, f"{post.name} & more", post.html, None, None, post.link, None),
            *(None, None, None, float(post.at), float(post.at), number, authors),
        )
        for number, post in enumerate(posts)
    ]
    return a_database(NETNEWSWIRE, {"articles": articles})


LEMON24 = """
CREATE TABLE feeds (url TEXT PRIMARY KEY NOT NULL, title TEXT, updates_enabled INTEGER NOT NULL DEFAULT 1);
CREATE TABLE entries (id TEXT NOT NULL, feed TEXT NOT NULL, title TEXT, link TEXT, updated TIMESTAMP,
  author TEXT, published TIMESTAMP, summary TEXT, content TEXT, enclosures TEXT,
  first_updated TIMESTAMP NOT NULL,
  PRIMARY KEY (id, feed), FOREIGN KEY (feed) REFERENCES feeds (url));
"""


def lemon24(posts: Sequence[Post]) -> bytes:
    authors = json.dumps([{"name": "Ann", "href": None, "email": None}])
    entries = [
        (
            *(post.id, post.feed, f"{post.name} &amp; more", post.link, None, authors),
            *(post.stamp[:-1].replace("T", " "), None),
            *(json.dumps([{"value": post.html, "type": "text/html", "language": None}]), None, post.stamp),
        )
        for post in posts
    ]
    return a_database(LEMON24, {"entries": entries})


LIFEREA = """
CREATE TABLE items (item_id INTEGER PRIMARY KEY AUTOINCREMENT, parent_item_id INTEGER, node_id TEXT,
  parent_node_id TEXT, title TEXT, read INTEGER, updated INTEGER, popup INTEGER, marked INTEGER, source TEXT,
  source_id TEXT, valid_guid INTEGER, description TEXT, date INTEGER, comment_feed_id TEXT, comment INTEGER);
CREATE TABLE metadata (item_id INTEGER, nr INTEGER, key TEXT, value TEXT, PRIMARY KEY (item_id, nr));
CREATE TABLE subscription (node_id STRING, source STRING, PRIMARY KEY (node_id));
CREATE TRIGGER item_removal DELETE ON items BEGIN DELETE FROM metadata WHERE item_id = old.item_id; END;
"""


def liferea(posts: Sequence[Post]) -> bytes:
    nodes = {feed: f"node{number}" for number, feed in enumerate(dict.fromkeys(post.feed for post in posts))}
    around = '<div xmlns="http://www.w3.org/1999/xhtml" xml:base="{}">{}</div>'
    items = [
        (
            *(number, 0, nodes[post.feed], "", f"{post.name} & more", 0, 0, 1, 0, post.link, post.id, 1),
            *(around.format(post.site, post.html), post.at, None, 0),
        )
        for number, post in enumerate(posts, start=1)
    ]
    metadata = [(number, 1, "author", "Ann") for number, _ in enumerate(posts, start=1)]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "items": items,
        "metadata": metadata,
        "subscription": [(node, feed) for feed, node in nodes.items()],
    }
    return a_database(LIFEREA, rows)


NAMED: dict[str, Callable[[Sequence[Post]], bytes]] = {
    "Google Reader": google_reader,
    "FreshRSS": freshrss,
    "miniflux": miniflux,
    "newsboat": newsboat,
    "NetNewsWire": netnewswire,
    "lemon24/reader": lemon24,
    "Liferea": liferea,
}
"""The formats that name the feed of each entry."""
