"""Files of feed readers, whose entries of one feed are put into it (I4)."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from tests.answers import Redirect
from tests.feeds import an_item, atom, json_feed, own_ids, rdf, rss, stamp
from tests.listing import looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, Reply, StartProxy
from tests.saved_files import NAMED, Post, feedbin, freshrss, google_reader, miniflux, newsboat

Write = Callable[[Sequence[Post]], bytes]
in_all_formats = pytest.mark.parametrize("write", NAMED.values(), ids=NAMED.keys())


async def imported(proxy: Proxy, url: str, body: bytes, **options: str) -> Reply:
    return await proxy.ask("POST", "/import", params={"url": url, **options}, data=body)


async def taken(proxy: Proxy, url: str, body: bytes, **options: str) -> dict[str, Any]:
    reply = await imported(proxy, url, body, **options)
    assert reply.status == 200, reply.body
    await proxy.settled()
    found: dict[str, Any] = json.loads(reply.body)
    return found


def posts_of(url: str, *names: str) -> list[Post]:
    """Posts an hour apart, the first the oldest, and one of another feed."""
    return [
        *(Post(name, number, url) for number, name in enumerate(names, start=1)),
        Post("x", 9, "http://x.test/f"),
    ]


# Formats


@in_all_formats
async def test_the_entries_of_the_feed_join_behind_its_own(
    proxy: Proxy, origin: Origin, write: Write
) -> None:
    """I4, I1: the publisher's own wins, nothing is there twice, and nothing of another feed comes."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2)))
    await proxy.whole(url)
    said = await taken(proxy, url, write(posts_of(url, "a", "b", "c")), name="saved", at=stamp(20))
    assert (said["outcome"], said["entries"], said["new"], said["served"]) == ("taken", 3, 1, True)
    reply = await proxy.get(url)
    assert len(own_ids(reply.body)) == 3
    assert own_ids(reply.body)[:2] == ["c", "b"]
    for text in (b"text of c<", b"text of b<", b"saved text of a", b"a &amp; more", b"<name>Ann</name>"):
        assert text in reply.body
    for text in (b"saved text of b", b"saved text of x", b"urn:deleted", b"secret"):
        assert text not in reply.body
    assert stamp(1).encode() in reply.body
    again = await taken(proxy, url, write(posts_of(url, "a", "b", "c")), name="saved", at=stamp(20))
    assert (again["outcome"], again["entries"], again["new"]) == ("known", 3, 0)
    (shown,) = [each for each in (await proxy.status(url))["chain"] if each["import"] is not None]
    assert shown["import"]["name"] == "saved"
    removed = await proxy.ask("DELETE", "/import", params={"url": url, "name": "saved"})
    assert json.loads(removed.body) == {"removed": 1}
    await proxy.settled()
    assert own_ids((await proxy.get(url)).body) == ["c", "b"]


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed], ids=["atom", "rss", "rdf", "json"])
@pytest.mark.parametrize("write", [freshrss, miniflux], ids=["with ids", "without"])
async def test_it_becomes_a_document_in_the_format_of_the_feed(
    proxy: Proxy, origin: Origin, make: Callable[..., bytes], write: Write
) -> None:
    """I4: with link, title, date, author and text, in each format."""
    url = origin.url("/feed")
    origin.publish("/feed", make(an_item("c", 3)))
    await proxy.whole(url)
    said = await taken(proxy, url, write(posts_of(url, "a", "b")))
    assert (said["entries"], said["new"]) == (2, 2)
    body = (await proxy.get(url)).body.decode()
    for name in ("a", "b"):
        assert f"http://site.test/{name}" in body
        assert f"saved text of {name}" in body
    assert "a &amp; more" in body or "a & more" in body
    assert "Ann" in body
    assert ("urn:a" in body) is (write is freshrss)


async def test_many_entries_become_several_documents(proxy: Proxy, origin: Origin) -> None:
    """I4: each small enough to be rendered alone; they go by one name."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("own", 3000)))
    await proxy.whole(url)
    names = [f"p{number}" for number in range(1100)]
    said = await taken(proxy, url, newsboat(posts_of(url, *names)), name="cache.db")
    assert (said["entries"], said["new"], said["as_of"]) == (1100, 1100, stamp(1100))
    assert own_ids((await proxy.get(url)).body) == ["own", *reversed(names)]
    assert (await proxy.status(url))["imported"]["documents"] == 2
    removed = await proxy.ask("DELETE", "/import", params={"url": url, "name": "cache.db"})
    assert json.loads(removed.body) == {"removed": 2}


# Which feed


def _spell(url: str, kind: str) -> str:
    host = url.removeprefix("http://")
    return {
        "https": f"https://{host}",
        "a slash": f"{url}/",
        "feed:": f"feed://{host}",
        "a password": f"http://user:secret@{host}",
        "through this proxy": f"http://localhost:8080/feed?url={quote(url, safe='')}&token=t",
        "behind its address": f"http://localhost:8080/{url}",
    }[kind]


@pytest.mark.parametrize(
    "kind", ["https", "a slash", "feed:", "a password", "through this proxy", "behind its address"]
)
async def test_its_url_counts_in_any_spelling(proxy: Proxy, origin: Origin, kind: str) -> None:
    """I4, H6: as the reader was told to subscribe to it, perhaps through a proxy like this one."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    said = await taken(proxy, url, newsboat(posts_of(_spell(url, kind), "a")))
    assert said["new"] == 1


async def test_another_url_that_leads_to_it_counts(proxy: Proxy, origin: Origin) -> None:
    """I4: a redirect's, or that of the page that announces the feed; a reader may have subscribed to it."""
    url, former, page = origin.url("/feed"), origin.url("/former"), origin.url("/")
    origin.publish("/feed", atom(an_item("b", 2)))
    origin.fault("/former", Redirect("/feed", 301))
    link = '<link rel="alternate" type="application/atom+xml" href="/feed">'
    origin.publish("/", f"<!doctype html><html><head>{link}</head></html>".encode(), content_type="text/html")
    for opened, places in ((former, (former, url)), (page, (page, url))):
        await proxy.whole(opened)
        for place in places:
            said = await taken(proxy, opened, newsboat(posts_of(place, f"{opened}-{place}")))
            assert said["new"] == 1


async def test_what_this_proxy_added_is_no_entry(proxy: Proxy, origin: Origin) -> None:
    """I4, R16: a reader of this proxy has saved the entry that says what is missing."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), prev_archive="/gone"))
    added = (await proxy.whole(url)).body
    (warning,) = re.findall(rb"<id>(urn:uuid:[^<]+)</id>", added)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(newsboat(posts_of(url, "a", "w")))
        connection.execute("UPDATE rss_item SET guid = ? WHERE guid = 'urn:w'", (warning.decode(),))
        connection.commit()
        body = connection.serialize()
    said = await taken(proxy, url, body)
    assert (said["entries"], said["new"]) == (1, 1)


@in_all_formats
async def test_a_file_without_the_feed_is_refused_with_the_nearest(
    proxy: Proxy, origin: Origin, write: Write
) -> None:
    """I4: those of the same host first, at most three, without passwords; nothing is stored."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    near = origin.url("/feeds/all").replace("//", "//user:secret@")
    feeds = [*(f"http://{number}.test/feed" for number in range(5)), near]
    reply = await imported(
        proxy, url, write([Post(f"p{number}", 1, feed) for number, feed in enumerate(feeds)])
    )
    assert (reply.status, reply.slug) == (422, "another-feed")
    detail = json.loads(reply.body)["detail"]
    assert f"6 feeds, the nearest of them: {origin.url('/feeds/all')}, " in detail
    assert detail.count("http://") == 3
    assert "secret" not in detail
    assert (await proxy.status(url))["imported"] is None


# Files that name no feed


async def test_feedbin_s_stars_have_to_be_forced(proxy: Proxy, origin: Origin) -> None:
    """I4: they name no feed, so links like the feed's own decide, where its owner says so."""
    url = origin.url("/feed")
    own = [an_item(name, 9 - place) for place, name in enumerate("hgf")]
    origin.publish("/feed", atom(*own).replace(b"http://site.test/", b"http://site.test/blog/2020/"))
    await proxy.whole(url)
    posts = [Post(name, 1, "", "http://site.test/blog/2020") for name in "ab"]
    others = [Post("c", 1, "", "http://site.test/news/2020"), Post("d", 1, "", "http://x.test/blog/2020")]
    body = feedbin([*posts, *others])
    reply = await imported(proxy, url, body)
    assert (reply.status, reply.slug) == (422, "another-feed")
    assert "force" in json.loads(reply.body)["detail"]
    assert (await taken(proxy, url, body, force="1"))["new"] == 2
    text = (await proxy.get(url)).body
    assert [text.count(b"saved text of " + name) for name in (b"a", b"b", b"c", b"d")] == [1, 1, 0, 0]


async def test_feedbin_s_numbers_of_feeds_are_found_out(proxy: Proxy, origin: Origin) -> None:
    """I4: the feed with an entry in common, and links like its own; no other has to be forced in."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(*(an_item(name, 9) for name in "hgf")))
    await proxy.whole(url)
    mine = [Post(name, 1, "mine") for name in "abh"]
    linking = [Post("f", 1, "linking"), *(Post(name, 1, "linking", "http://x.test/1") for name in "de")]
    said = await taken(proxy, url, feedbin([*linking, *mine], numbers={"mine": 4, "linking": 7}))
    assert (said["entries"], said["new"]) == (3, 2)
    reply = await imported(proxy, url, feedbin(linking, numbers={"linking": 7}))
    assert reply.slug == "another-feed"


async def test_a_whole_blog_does_not_join_the_feed_of_its_category(proxy: Proxy, origin: Origin) -> None:
    """I4: other posts stand between those of the category; in its own feed the file's posts all do."""
    url, whole = origin.url("/feed"), origin.url("/all")
    origin.publish("/feed", atom(*(an_item(name, 9 - place) for place, name in enumerate("hec"))))
    origin.publish("/all", atom(*(an_item(name, 9 - place) for place, name in enumerate("hgfedc"))))
    for each in (url, whole):
        await proxy.whole(each)
    posts = [Post(name, number, "blog") for number, name in enumerate("abcdefgh", start=1)]
    numbered, stars = feedbin(posts, numbers={"blog": 4}), feedbin(posts)
    for body in (numbered, stars):
        assert (await imported(proxy, url, body)).slug == "another-feed"
    assert (await taken(proxy, whole, numbered))["new"] == 2
    assert (await taken(proxy, whole, stars, name="again"))["new"] == 0


async def test_a_file_that_is_there_needs_no_room(start: StartProxy, origin: Origin) -> None:
    """I4, R18: documents without anything new are not stored again."""
    proxy = await start(limits={"entries_per_feed": 9})
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2)))
    await proxy.whole(url)
    body = newsboat(posts_of(url, "m", "n", "o", "p", "q"))
    assert (await taken(proxy, url, body, name="once"))["new"] == 5
    assert (await taken(proxy, url, body, name="once"))["outcome"] == "known"
    assert (await imported(proxy, url, newsboat(posts_of(url, "r", "s", "t", "u")))).slug == "limit"


async def test_a_database_is_read_in_another_process(start: StartProxy, origin: Origin) -> None:
    """I4: a hostile one may crash the library that reads it."""
    proxy = await start(limits={"workers": 1})
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    assert proxy.service.load.workers == 0
    await taken(proxy, url, newsboat(posts_of(url, "a")))
    assert proxy.service.load.workers == 1


async def test_an_undated_entry_is_no_news(proxy: Proxy, origin: Origin) -> None:
    """I4: Atom wants a date; it is that of the oldest in the file."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3)))
    await proxy.whole(url)
    entries = json.loads(miniflux([Post("a", 1, url), Post("b", 2, url), Post("d", 4, url)]))
    entries["entries"][1]["published_at"] = ""
    await taken(proxy, url, json.dumps(entries).encode())
    text = (await proxy.get(url)).body
    places = [text.index(b"saved text of " + name) for name in (b"d", b"a", b"b")]
    assert places[0] < min(places[1:])


async def test_links_that_run_are_left_out(proxy: Proxy, origin: Origin) -> None:
    """I4: however they are written."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3)))
    await proxy.whole(url)
    entries = json.loads(miniflux([Post(name, 1, url) for name in "ab"]))
    entries["entries"][0]["url"] = " Java\tscript:alert(1)//"
    entries["entries"][1]["enclosures"] = [
        {"url": "data:text/html,x", "mime_type": "text/html", "size": True}
    ]
    await taken(proxy, url, json.dumps(entries).encode())
    text = (await proxy.get(url)).body
    assert (text.count(b"saved text of"), b"script:" in text, b"data:" in text) == (2, False, False)


# What is there already


async def test_an_entry_without_its_id_is_the_one_with_its_link(proxy: Proxy, origin: Origin) -> None:
    """I4, R36: though its date differs, and also where the publisher gives no id."""
    url = origin.url("/feed")
    dated = "<pubDate>Wed, 01 Jan 2020 00:00:00 GMT</pubDate>"
    items = "".join(
        f"<item><title>{name}</title><link>https://www.site.test/{name}</link>{guid}{dated}</item>"
        for name, guid in (("a", "<guid isPermaLink='false'>7</guid>"), ("b", ""))
    )
    origin.publish("/feed", f"<rss version='2.0'><channel><title>t</title>{items}</channel></rss>".encode())
    await proxy.whole(url)
    posts = [Post(name, 1, url, "http://www.site.test") for name in "abc"]
    for write in (google_reader, miniflux):
        await taken(proxy, url, write(posts))
    assert (await proxy.get(url)).body.count(b"<item") == 3


@pytest.mark.parametrize("write", [freshrss, miniflux], ids=["with ids", "without"])
async def test_a_listed_entry_gets_its_saved_text(start: StartProxy, origin: Origin, write: Write) -> None:
    """I4, H6: what a page only lists is there once, with the text that a reader has saved of it."""
    proxy = await start(history={"list": "auto", "list_interval_seconds": 0.1})
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    older = blog.newest_first[10:13]
    posts = [Post(f"post-{each.number}/", 1, url, origin.url(f"/{each.day.year}")) for each in older]
    said = await taken(proxy, url, write(posts))
    assert said["new"] == 3
    whole = await proxy.get(url)
    assert (whole.state, whole.body.count(b"<item")) == ("listed", 30)
    assert whole.body.count(b"saved text of") == 3


async def test_a_complete_feed_keeps_it_and_does_not_serve_it(proxy: Proxy, origin: Origin) -> None:
    """I4, I1."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), complete=True))
    await proxy.whole(url)
    said = await taken(proxy, url, newsboat(posts_of(url, "a")))
    assert (said["new"], said["served"], said["state"]) == (1, False, "complete")
    assert own_ids((await proxy.get(url)).body) == ["b"]


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        ({"documents_per_feed": 2}, "documents_per_feed"),
        ({"feed_bytes": 200_000}, "feed_bytes"),
        ({"entries_per_feed": 1050}, "entries_per_feed"),
    ],
    ids=["documents", "bytes", "entries"],
)
async def test_a_file_that_does_not_fit_leaves_nothing(
    start: StartProxy, origin: Origin, limits: dict[str, int], key: str
) -> None:
    """I4, R18: all of its documents are counted before the first is stored."""
    proxy = await start(limits=limits)
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("own", 3000)))
    await proxy.whole(url)
    reply = await imported(proxy, url, miniflux(posts_of(url, *(f"p{number}" for number in range(1100)))))
    assert (reply.status, reply.slug) == (422, "limit")
    assert f"limits.{key}" in json.loads(reply.body)["detail"]
    assert (await proxy.status(url))["imported"] is None


async def test_a_reference_with_thousands_of_digits_stands_for_no_character(
    proxy: Proxy, origin: Origin
) -> None:
    """I4, R22: neither an import nor a feed's page fails; Python reads no number of that length."""
    url, title = origin.url("/feed"), f"A &#{'1' * 5000}; &amp; B"
    texts = f"<title><![CDATA[{title}]]></title><description><![CDATA[{title}]]></description>"
    item = f"<item>{texts}<guid>1</guid></item>"
    origin.publish("/feed", f'<rss version="2.0"><channel><title>t</title>{item}</channel></rss>'.encode())
    await proxy.whole(url)
    saved = {"origin": {"streamId": "feed/1", "feedUrl": url}, "guid": "2", "title": title}
    assert (await taken(proxy, url, json.dumps({"items": [saved]}).encode()))["new"] == 1
    page = await proxy.ask("GET", "/view", params={"url": url})
    assert page.status == 200
    assert page.body.count("A \ufffd &amp; B".encode()) >= 2


async def test_a_json_feed_of_the_publisher_is_none(proxy: Proxy, origin: Origin) -> None:
    """I4, R23: only one that says it was saved is made into another format."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    await proxy.whole(url)
    document = json.loads(json_feed(an_item("a", 1)))
    document |= {"feed_url": url, "published_at": 1}
    assert (await imported(proxy, url, json.dumps(document).encode())).slug == "format"
    document["_wholefeed"] = {"saved_by": "my own program"}
    assert (await taken(proxy, url, json.dumps(document).encode()))["new"] == 1
    assert own_ids((await proxy.get(url)).body) == ["b", "a"]
