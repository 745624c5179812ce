"""A JSON Feed as Atom for readers that know XML only (F1 to F3), over HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import feedparser
import pytest
from yarl import URL

from tests.answers import Status
from tests.feeds import Item, an_item, atom, ids, json_feed, links, rss, stamp
from tests.origin import Origin
from tests.running import Proxy, Reply, StandingClock, StartProxy, a_config, running

ATOM = "{http://www.w3.org/2005/Atom}"
JSON = "application/feed+json"
AS_ATOM: Any = {"as": "atom"}
VERSION = "https://jsonfeed.org/version/1.1"


def publish(origin: Origin, *items: dict[str, Any], **head: Any) -> str:
    document = {"version": VERSION, "title": "A feed", **head, "items": items}
    origin.publish("/feed", json.dumps(document).encode(), content_type=JSON)
    return origin.url("/feed")


async def as_atom(proxy: Proxy, url: str, **options: Any) -> Reply:
    reply = await proxy.get(url, **AS_ATOM, **options)
    assert reply.status == 200, reply.body
    assert reply.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
    read = feedparser.parse(reply.body)
    assert not read.bozo, read.get("bozo_exception")
    assert read.version == "atom10"
    check_required(reply.body)
    return reply


def check_required(body: bytes) -> None:
    """Check what RFC 4287, sections 4.1.1 and 4.1.2, requires of a feed and its entries."""
    root = ElementTree.fromstring(body)
    assert root.tag == f"{ATOM}feed"
    for each in (root, *root.iterfind(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(each.findall(ATOM + name)) == 1, (name, ElementTree.tostring(each))
        assert (each.findtext(f"{ATOM}id") or "").strip()
    assert root.find(f"{ATOM}author/{ATOM}name") is not None
    for entry in root.iterfind(f"{ATOM}entry"):
        alternates = [
            each for each in entry.iterfind(f"{ATOM}link") if each.get("rel", "alternate") == "alternate"
        ]
        assert len(alternates) + len(entry.findall(f"{ATOM}content")) >= 1


ITEM = {
    "id": "tag:a,1",
    "url": "/posts/1",
    "external_url": "https://elsewhere.example/x?a=1&b=2",
    "title": 'A <title> & "more"',
    "content_html": '<p class="x">One &amp; two</p>\n<img src="/a.png">',
    "content_text": "One & two",
    "summary": "Short & good",
    "image": "https://site.example/i.png",
    "date_published": "2024-02-03T04:05:06.5+02:00",
    "date_modified": "2024-03-01T00:00:00Z",
    "authors": [{"name": "Ann", "url": "https://ann.example/"}, {"name": "Bob"}],
    "tags": ["one", "two & three"],
    "language": "de-CH",
    "attachments": [
        {
            "url": "https://site.example/1.mp3",
            "mime_type": "audio/mpeg",
            "size_in_bytes": 12345,
            "title": "Low",
        },
        {"url": "https://site.example/1.ogg", "mime_type": "audio/ogg", "duration_in_seconds": 61},
    ],
    "_own": {"left": "out"},
}


async def test_an_item_becomes_an_entry(proxy: Proxy, origin: Origin) -> None:
    """F2: id, links, title, dates, texts, authors, tags, language and attachments are the same."""
    url = publish(
        origin,
        ITEM,
        home_page_url="https://site.example/",
        description="About & more",
        authors=[{"name": "The feed"}],
        language="en",
        icon="https://site.example/512.png",
        favicon="https://site.example/64.png",
    )
    reply = await as_atom(proxy, url)
    root = ElementTree.fromstring(reply.body)
    head = {
        name: root.findtext(ATOM + name) for name in ("title", "id", "updated", "subtitle", "logo", "icon")
    }
    assert head == {
        "title": "A feed",
        "id": url,
        "updated": "2024-03-01T00:00:00Z",
        "subtitle": "About & more",
        "logo": "https://site.example/512.png",
        "icon": "https://site.example/64.png",
    }
    assert root.findtext(f"{ATOM}author/{ATOM}name") == "The feed"
    found = links(reply.body)
    own = f"{proxy.client.make_url('/feed')}?url={url.replace(':', '%3A').replace('/', '%2F')}&as=atom"
    assert (found["self"], found["via"], found["alternate"]) == ([own], [url], ["https://site.example/"])
    (entry,) = root.iterfind(f"{ATOM}entry")
    texts = {name: entry.findtext(ATOM + name) for name in ("id", "title", "published", "updated", "summary")}
    assert texts == {
        "id": ITEM["id"],
        "title": ITEM["title"],
        "published": ITEM["date_published"],
        "updated": ITEM["date_modified"],
        "summary": ITEM["summary"],
    }
    content = entry.find(f"{ATOM}content")
    assert content is not None
    assert (content.get("type"), content.text) == ("html", ITEM["content_html"])
    assert content.get("{http://www.w3.org/XML/1998/namespace}base") == url
    assert entry.get("{http://www.w3.org/XML/1998/namespace}lang") == "de-CH"
    assert [
        (each.get("rel"), each.get("href"), each.get("type"), each.get("length"), each.get("title"))
        for each in entry.iterfind(f"{ATOM}link")
    ] == [
        ("alternate", origin.url("/posts/1"), None, None, None),
        ("related", "https://elsewhere.example/x?a=1&b=2", None, None, None),
        ("enclosure", "https://site.example/1.mp3", "audio/mpeg", "12345", "Low"),
        ("enclosure", "https://site.example/1.ogg", "audio/ogg", None, None),
    ]
    assert [each.get("term") for each in entry.iterfind(f"{ATOM}category")] == ITEM["tags"]
    people = [
        (each.findtext(f"{ATOM}name"), each.findtext(f"{ATOM}uri"))
        for each in entry.iterfind(f"{ATOM}author")
    ]
    assert people == [("Ann", "https://ann.example/"), ("Bob", None)]
    read = feedparser.parse(reply.body).entries[0]
    assert (read.itunes_duration, read.media_thumbnail) == ("61", [{"url": "https://site.example/i.png"}])


@pytest.mark.parametrize("make", [atom, rss])
async def test_nothing_else_is_converted(proxy: Proxy, origin: Origin, make: Callable[..., bytes]) -> None:
    """F1: an Atom or RSS feed comes as it is, and a JSON Feed without the parameter does."""
    origin.publish("/feed", make(an_item("a", 1)))
    plain = await proxy.whole(origin.url("/feed"))
    asked = await proxy.get(origin.url("/feed"), **AS_ATOM)
    assert asked.body == plain.body.replace(b'feed"/>', b'feed&amp;as=atom"/>', 1)
    assert asked.headers["Content-Type"] == plain.headers["Content-Type"]
    origin.publish("/json", json_feed(an_item("a", 1)), content_type=JSON)
    assert (await proxy.get(origin.url("/json"))).headers["Content-Type"] == JSON
    target = f"{proxy.client.make_url('/feed')}?url={quote(origin.url('/json'), safe='')}&as=rss"
    refused = await proxy.client.session.get(URL(target, encoded=True))
    assert (refused.status, "expected as=atom, got 'rss'" in await refused.text()) == (400, True)


async def test_behind_an_unencoded_url_only_this_value_is_the_proxys(proxy: Proxy, origin: Origin) -> None:
    """F1, P7: any other value of `as` belongs to the publisher's URL."""
    for path in ("/feed", "/feed?as=html"):
        origin.publish(path, json_feed(an_item("a", 1)), content_type=JSON)
    base = proxy.client.make_url("/feed")
    ours = await proxy.client.session.get(f"{base}?url={origin.url('/feed')}&as=atom")
    assert ours.content_type == "application/atom+xml"
    theirs = await proxy.client.session.get(f"{base}?url={origin.url('/feed')}?&as=html")
    assert theirs.content_type == JSON
    assert origin.counts() == {"/feed": 1, "/feed?&as=html": 1} or set(origin.counts()) == {"/feed"}


async def test_conditions_and_head_count(proxy: Proxy, origin: Origin) -> None:
    """F3; RFC 9110, 13.1: ETag, Last-Modified, 304 and HEAD, also for another form of the same feed."""
    url = publish(origin, {"id": "1", "title": "A", "content_text": "a"})
    plain, reply = await proxy.whole(url), await as_atom(proxy, url)
    assert reply.headers["ETag"] != plain.headers["ETag"]
    assert reply.headers["Last-Modified"] == plain.headers["Last-Modified"]
    assert reply.reconstruction == plain.reconstruction
    for name, field in (("If-None-Match", "ETag"), ("If-Modified-Since", "Last-Modified")):
        again = await proxy.get(url, **AS_ATOM, headers={name: reply.headers[field]})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", reply.headers["ETag"])
    head = await proxy.ask("HEAD", "/feed", params={"url": url, "as": "atom"})
    assert (head.status, head.headers["Content-Type"]) == (200, reply.headers["Content-Type"])
    packed = await proxy.get(url, **AS_ATOM, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed.body) == reply.body
    assert (await as_atom(proxy, url)).body == reply.body, "from memory"
    publish(origin, {"id": "1", "title": "B", "content_text": "a"})
    changed = await proxy.refreshed(url)
    assert (await as_atom(proxy, url)).headers["ETag"] != reply.headers["ETag"]
    assert changed.headers["Content-Type"] == JSON


async def test_a_large_item_is_converted_in_a_worker(proxy: Proxy, origin: Origin) -> None:
    """F3: no item is too large, and the event loop stays free."""
    url = publish(
        origin, {"id": "1", "content_html": "&" * 400_000}, {"id": "2", "content_text": "x" * 1_500_000}
    )
    for options in ({}, {"replay": "1/day", "from": "2020-01-01T00:00:00Z"}):
        given: Any = options
        root = ElementTree.fromstring((await proxy.get(url, **AS_ATOM, **given)).body)
        texts = [each.findtext(f"{ATOM}content") or "" for each in root.iterfind(f"{ATOM}entry")]
        assert sorted(map(len, texts)) == [400_000, 1_500_000]


def a_history(count: int) -> list[Item]:
    return [an_item(f"e{number}", number, f"text {number} " + "x" * 300) for number in range(count, 0, -1)]


async def test_parts_of_a_feed_are_converted(proxy: Proxy, origin: Origin) -> None:
    """F3: with `limit`, `since` and `answer_bytes`, and with the warning of R16."""
    origin.publish("/feed", json_feed(*a_history(30), next_url=origin.url("/gone")), content_type=JSON)
    origin.fault("/gone", Status(500))
    url = origin.url("/feed")
    whole = await proxy.whole(url)
    assert whole.state == "partial"
    assert ids((await as_atom(proxy, url)).body)[1:] == [f"e{n}" for n in range(30, 0, -1)]
    assert feedparser.parse((await as_atom(proxy, url)).body).entries[0].author == "wholefeed"
    limited = await as_atom(proxy, url, limit="2")
    assert ids(limited.body)[1:] == ["e30", "e29"]
    assert limited.reconstruction.endswith(";cut")
    assert links(limited.body)["urn:wholefeed:whole"][0].endswith("&as=atom")
    since = await as_atom(proxy, url, since=stamp(28))
    assert ids(since.body)[1:] == ["e30", "e29", "e28"]
    small = await as_atom(proxy, url, answer_bytes="10000")
    assert 8000 < len(small.body) <= 10_000
    assert small.reconstruction.endswith(";cut")


async def test_pages_are_converted(proxy: Proxy, origin: Origin) -> None:
    """F3, G1: each page, with its links, and an inner one stays the same."""
    origin.publish("/feed", json_feed(*a_history(35)), content_type=JSON)
    url, number, found = origin.url("/feed"), "", list[str]()
    pages = list[bytes]()
    while True:
        reply = await as_atom(proxy, url, pages="10", **({"page": number} if number else {}))
        pages.append(reply.body)
        found += ids(reply.body)
        following = links(reply.body).get("next")
        if not following:
            break
        assert "&as=atom&pages=10&page=" in following[0]
        number = following[0].rpartition("=")[2]
    assert found == [f"e{n}" for n in range(35, 0, -1)]
    assert b"<updated>" in pages[1].partition(b"<entry")[0]
    origin.publish("/feed", json_feed(*a_history(36)), content_type=JSON)
    await proxy.refreshed(url)
    assert (await as_atom(proxy, url, pages="10", page="2")).body == pages[1]


@pytest.mark.parametrize("is_dated", [True, False])
async def test_a_replay_is_converted(tmp_path: Any, origin: Origin, is_dated: bool) -> None:
    """F3, P3, P4: dates are those of release, the id and the title the replay's own."""
    items = [{"id": str(n), "title": f"T{n}", "content_text": "x"} for n in range(3, 0, -1)]
    if is_dated:
        items = [{**each, "date_published": f"2020-01-0{each['id']}T00:00:00Z"} for each in items]
    url = publish(origin, *items)
    clock = StandingClock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        start: Any = {"replay": "1/day", "from": "2026-01-31T06:00:00Z"}
        reply = await as_atom(proxy, url, **start)
        plain = json.loads((await proxy.get(url, **start)).body)
        read = feedparser.parse(reply.body)
        assert [each.id for each in read.entries] == [each["id"] for each in plain["items"]]
        assert [each.updated for each in read.entries] == [each["date_published"] for each in plain["items"]]
        assert [each.title for each in read.entries] == [each["title"] for each in plain["items"]]
        assert read.feed.title == "A feed (replay)"
        assert read.feed.id.startswith("urn:uuid:")
        assert b"<itunes:block" in reply.body
        etag = {"If-None-Match": reply.headers["ETag"]}
        assert (await proxy.get(url, headers=etag, **start, **AS_ATOM)).status == 304


async def test_an_item_without_an_id_has_the_same_in_a_replay(tmp_path: Any, origin: Origin) -> None:
    """F2: made of the item as it is published, whatever its dates and title become."""
    date = "2020-01-01T00:00:00Z"
    url = publish(origin, {"title": "A", "date_published": date}, {"id": " ", "title": "B"})
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        await proxy.whole(url)
        start: Any = {"replay": "1/day", "from": "2026-01-31T06:00:00Z"}
        replayed = ids((await as_atom(proxy, url, **start)).body)
        assert sorted(replayed) == sorted(ids((await as_atom(proxy, url)).body))
        assert len(set(replayed)) == 2


HOSTILE: list[Any] = [
    {
        "id": "bad\u0000\u000b\ud800\uffff",
        "title": "\u0001<![CDATA[]]>",
        "content_html": "]]>\u0000<p>\u001f&#0;",
    },
    {
        "id": None,
        "url": ["x"],
        "title": {"a": 1},
        "content_html": 5,
        "tags": "x",
        "authors": "x",
        "attachments": {},
    },
    {"id": "", "url": "javascript:alert(1)", "external_url": "data:text/html,x", "content_text": True},
    {"id": "j", "url": "http://", "authors": [None, 3, {"name": 4, "url": "javascript:x"}, {"url": []}]},
    {"id": "d", "date_published": "2024-02-30", "date_modified": "9999999", "title": "no dates"},
    {"id": "e", "date_published": "0000-00-00T00:00:00Z", "date_modified": {"x": 1}, "language": 'x" y="z'},
    {"id": "f", "date_published": "2024-01-01T25:61:61Z", "date_modified": "2024-01-01T24:00:00Z"},
    {
        "id": "g",
        "attachments": [{}, None, {"url": "javascript:x"}, {"url": 'http://a/"><x>', "mime_type": '"><y'}],
    },
    {"id": "h", "attachments": [{"url": "http://a/", "size_in_bytes": "-1", "duration_in_seconds": "1e9"}]},
    {
        "id": "k",
        "tags": [None, 1, "", " ", "\u0000", 'a"b<c&d', ["x"]],
        "image": "javascript:x",
        "summary": " ",
    },
    {"id": "l" * 100_000, "title": "long id"},
    {
        "id": "m",
        "title": " \r\n\t x \r\n",
        "content_text": "a\r\nb\u2028c",
        "_wholefeed": {"text": "javascript:x"},
    },
    {"title": "no id, once"},
    {"title": "no id, twice", "url": "https://a.example/1"},
    {"title": "no id, thrice", "url": "https://a.example/1", "attachments": [{"url": "https://a.example/b"}]},
    {},
]
HEADS: list[dict[str, Any]] = [
    {
        "title": None,
        "description": ["x"],
        "home_page_url": 5,
        "authors": {"name": "x"},
        "icon": "javascript:x",
    },
    {"title": "\u0000\u0001", "description": "\ud800" * 100, "language": "<x>", "favicon": "data:,x"},
    {"title": "T" * 100_000, "description": "&<>" * 60_000, "authors": [{"name": "&" * 90}] * 50},
]


@pytest.mark.parametrize("head", HEADS)
async def test_a_hostile_feed_becomes_well_formed_atom(
    proxy: Proxy, origin: Origin, head: dict[str, Any]
) -> None:
    """F2: wrong types, control characters, no ids, no dates and dangerous URLs harm no reader."""
    url = publish(origin, *HOSTILE, **head)
    plain = await proxy.whole(url)
    assert plain.status == 200, plain.body
    body = (await as_atom(proxy, url)).body
    found = ids(body)
    assert len(found) == len(json.loads(plain.body)["items"]) == len(set(found))
    assert b"javascript:" not in body
    assert b"data:" not in body
    for options in ({"limit": "3"}, {"pages": "10"}, {"answer_bytes": "30000"}):
        await as_atom(proxy, url, **options)


async def test_texts_of_pages_come_in_atom_too(start: StartProxy, origin: Origin) -> None:
    """F3, T6: `text=full` goes with `as=atom`."""
    from tests.end_to_end.test_texts import ALONE, a_page, contents, text_of, with_texts  # noqa: PLC0415

    proxy = await start(history=ALONE)
    items = [
        {
            "id": str(n),
            "url": origin.url(f"/p/{n}"),
            "title": f"Post {n}",
            "content_text": f"Paragraph 0 of post {n}: It goes on […]",
        }
        for n in (3, 2, 1)
    ]
    url = publish(origin, *items)
    for n in (3, 2, 1):
        origin.answer(f"/p/{n}", a_page(n, text_of(n)))
    await with_texts(proxy, url, "3/3")
    reply = await as_atom(proxy, url, text="full")
    assert contents(reply) == [text_of(n) for n in (3, 2, 1)]
    assert reply.body.count(b"<wholefeed:text ") == 3
    assert [each.summary for each in feedparser.parse(reply.body).entries] == [
        each["content_text"] for each in items
    ]
