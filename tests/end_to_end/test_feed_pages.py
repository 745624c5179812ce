"""Pages of a feed for apps that follow `next` (G1 to G3; RFC 5005, section 3), over HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from email.utils import formatdate
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.feeds import BASE_AT, Item, an_item, atom, atom_03, ids, json_feed, links, rdf, rss, stamp
from tests.origin import Origin
from tests.running import Proxy, Reply, StartProxy

Make = Callable[..., bytes]
FORMATS: list[Make] = [atom, atom_03, rss, rdf, json_feed]
PAGE = 10


def publish(origin: Origin, make: Make, count: int, text: str = "", **head: Any) -> list[str]:
    held = [an_item(f"e{number}", number, f"{text}{number}") for number in range(count, 0, -1)]
    if make is json_feed:
        origin.publish("/feed", json_feed(*held, **head), content_type="application/feed+json")
    else:
        origin.publish("/feed", make(*held, updated=count, **head))
    return [item.name for item in held]


def names(body: bytes) -> list[str]:
    if body.startswith(b"{"):
        return [item["id"].removeprefix("urn:") for item in json.loads(body)["items"]]
    return ids(body)


def leads(body: bytes) -> dict[str, str]:
    """Return the query of each link of a page."""
    if body.startswith(b"{"):
        document = json.loads(body)
        found = {name: url for name, url in document["_wholefeed"].items() if name != "via"}
        found |= {"self": document["feed_url"]}
        found |= {"next": document["next_url"]} if "next_url" in document else {}
    else:
        found = {
            relation: urls[0]
            for relation, urls in links(body).items()
            if relation not in ("via", "alternate")
        }
    return {relation: url.partition("%2Ffeed")[2] for relation, url in found.items()}


async def page(proxy: Proxy, url: str, number: int | None = None, **query: Any) -> Reply:
    numbered: dict[str, Any] = {} if number is None else {"page": str(number)}
    return await proxy.get(url, pages=str(PAGE), **numbered, **query)


async def walked(proxy: Proxy, url: str) -> list[Reply]:
    replies = [await page(proxy, url)]
    while following := leads(replies[-1].body).get("next"):
        replies.append(await page(proxy, url, int(following.rpartition("=")[2])))
    return replies


def newest_date(body: bytes) -> str:
    """Return the only date of a document's head."""
    if body.startswith(b"{"):
        return ""
    root = ElementTree.fromstring(body)
    head = root if root.tag.endswith("}feed") else root[0]
    dated = ("updated", "modified", "lastBuildDate", "pubDate", "date")
    (found,) = [each.text for each in head if each.tag.rpartition("}")[2] in dated]
    return found or ""


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.parametrize("memory_bytes", [1 << 26, 0])
async def test_pages_are_walked_to_the_oldest_entry(
    start: StartProxy, origin: Origin, make: Make, memory_bytes: int
) -> None:
    """G1: `next` leads from 10 to 19 new entries to all others, 10 a page, counted from the oldest."""
    proxy = await start(store={"memory_bytes": memory_bytes})
    expected = publish(origin, make, 37)
    url = origin.url("/feed")
    await proxy.whole(url)
    replies = await walked(proxy, url)
    assert [len(names(reply.body)) for reply in replies] == [17, 10, 10]
    assert [name for reply in replies for name in names(reply.body)] == expected
    first, second, third = ("&pages=10", "&pages=10&page=2", "&pages=10&page=1")
    whole = {"first": first, "last": third}
    found = [leads(reply.body) for reply in replies]
    for each in found:
        assert each.pop("whole", "") == "" == each.pop("urn:wholefeed:whole", "")
    assert found == [
        whole | {"self": first, "next": second},
        whole | {"self": second, "next": third, "previous": "&pages=10&page=3"},
        whole | {"self": third, "previous": second},
    ]
    numbered = (await page(proxy, url, 3)).body  # the same document at another address
    own = leads(numbered)["self"].replace("&", "&" if make is json_feed else "&amp;").encode()
    assert own.endswith(b"page=3")
    assert numbered.replace(own, own.removesuffix(b"&page=3").removesuffix(b"&amp;page=3")) == replies[0].body
    assert {reply.reconstruction for reply in replies} == {(await proxy.get(url)).reconstruction + ";cut"}


@pytest.mark.parametrize("make", FORMATS)
async def test_a_page_is_dated_as_its_newest_entry(proxy: Proxy, origin: Origin, make: Make) -> None:
    """G1: in the syntax of its format; JSON Feed has none."""
    publish(origin, make, 37)
    await proxy.whole(origin.url("/feed"))
    replies = await walked(proxy, origin.url("/feed"))
    dates = [stamp(hour) for hour in (37, 20, 10)]
    if make is rss:
        dates = [formatdate(BASE_AT + 3600 * hour, usegmt=True) for hour in (37, 20, 10)]
    assert [newest_date(reply.body) for reply in replies] == ([""] * 3 if make is json_feed else dates)


@pytest.mark.parametrize("make", FORMATS)
async def test_a_page_has_every_form_of_an_answer(proxy: Proxy, origin: Origin, make: Make) -> None:
    """G2; RFC 9110: HEAD, conditional requests and gzip."""
    publish(origin, make, 37)
    url = origin.url("/feed")
    await proxy.whole(url)
    for number in (None, 2):
        reply = await page(proxy, url, number)
        packed = await page(proxy, url, number, headers={"Accept-Encoding": "gzip"})
        query = {"url": url, "pages": "10", **({"page": "2"} if number else {})}
        identity = {"Accept-Encoding": "identity"}
        head = await proxy.ask("HEAD", "/feed", params=query, headers=identity)
        known = await page(proxy, url, number, headers={"If-None-Match": reply.headers["ETag"]})
        dated = await page(proxy, url, number, headers={"If-Modified-Since": reply.headers["Last-Modified"]})
        assert gzip.decompress(packed.body) == reply.body
        assert (head.status, head.body, int(head.headers["Content-Length"])) == (200, b"", len(reply.body))
        assert (known.status, dated.status, known.body) == (304, 304, b"")
        assert known.headers["ETag"] == head.headers["ETag"] == reply.headers["ETag"]
        assert (await proxy.get(url, headers={"If-None-Match": reply.headers["ETag"]})).status == 200


@pytest.mark.parametrize("count", [0, 1, 9, 10, 19, 20, 21])
async def test_a_short_feed_is_one_page(proxy: Proxy, origin: Origin, count: int) -> None:
    """G1, G2: if two pages would not be full; never fh:complete."""
    expected = publish(origin, atom, count, complete=True)
    url = origin.url("/feed")
    assert b"<fh:complete" in (await proxy.whole(url)).body
    reply = await page(proxy, url)
    assert names(reply.body) == expected[: max(10, count - 10) if count >= 20 else count]
    assert b"<fh:" not in reply.body
    assert ("next" in leads(reply.body), reply.reconstruction.endswith(";cut")) == (count >= 20,) * 2
    assert names((await page(proxy, url, 2 if count >= 20 else 1)).body) == names(reply.body)
    assert newest_date(reply.body) == stamp(count)


BIG = "long " * 3000
"""Ten such entries exceed the bytes deflated before an answer begins."""


@pytest.mark.parametrize("text", ["", BIG])
@pytest.mark.parametrize("make", FORMATS)
async def test_no_other_page_changes_when_entries_come(
    start: StartProxy, origin: Origin, make: Make, text: str
) -> None:
    """G1: neither 250 newer entries with new elements, nor a new date of the feed, nor a first page that
    grows into two."""
    proxy = await start(store={"memory_bytes": 0})
    publish(origin, make, 45, text)
    url = origin.url("/feed")
    await proxy.whole(url)
    before = [await page(proxy, url, number) for number in (1, 2, 3)]
    packed = [await page(proxy, url, number, headers={"Accept-Encoding": "gzip"}) for number in (1, 2, 3)]
    first = await page(proxy, url)

    publish(origin, make, 295, text)
    assert names((await proxy.refreshed(url)).body)[0] == "e295"
    for number, reply, zipped in zip((1, 2, 3), before, packed, strict=True):
        etags = [each.headers["ETag"] for each in (reply, zipped)]
        after = await page(proxy, url, number)
        again = await page(proxy, url, number, headers={"Accept-Encoding": "gzip"})
        assert after.body == reply.body == gzip.decompress(again.body)
        assert [after.headers["ETag"], again.headers["ETag"]] == etags
        assert (await page(proxy, url, number, headers={"If-None-Match": etags[0]})).status == 304
    assert names((await page(proxy, url)).body) == [f"e{number}" for number in range(295, 280, -1)]
    assert (await page(proxy, url)).headers["ETag"] != first.headers["ETag"]
    assert [name for reply in await walked(proxy, url) for name in names(reply.body)] == [
        f"e{number}" for number in range(295, 0, -1)
    ]


def chain_of(origin: Origin, make: Make, archives: int) -> list[str]:
    found: list[str] = []
    for place in range(archives + 1, 0, -1):
        numbers = range(7 * place, 7 * place - 7, -1)
        held = [Item(f"e{number}", number, f"text {number}") for number in numbers]
        found += [item.name for item in held]
        is_archive = place <= archives
        body = make(
            *held, updated=7 * place, archive=is_archive, prev_archive=f"/{place - 1}" if place > 1 else None
        )
        if place % 2 and make is not rdf:
            media = b' xmlns:media="http://search.yahoo.com/mrss/"'
            body = body.replace(b" xmlns:fh", media + b" xmlns:fh", 1)
            body = body.replace(b"<title>e", b"<media:keywords/><title>e", 1)
        origin.publish(f"/{place}" if is_archive else "/feed", body)
    return found


@pytest.mark.parametrize("make", [atom, rss, rdf])
@pytest.mark.parametrize("memory_bytes", [1 << 26, 0])
async def test_a_page_is_the_same_whatever_segments_it_comes_from(
    start: StartProxy, origin: Origin, make: Make, memory_bytes: int
) -> None:
    """G1, G3: across documents, and segments shared later."""
    proxy = await start(store={"memory_bytes": memory_bytes})
    expected = chain_of(origin, make, 7)
    url = origin.url("/feed")
    await proxy.whole(url)
    before = [await page(proxy, url, number) for number in range(1, 5)]
    assert [name for reply in await walked(proxy, url) for name in names(reply.body)] == expected

    chain_of(origin, make, 12)
    expected = names((await proxy.refreshed(url)).body)
    assert len(expected) == 91
    assert [name for reply in await walked(proxy, url) for name in names(reply.body)] == expected
    for number, reply in enumerate(before, 1):
        after = await page(proxy, url, number)
        assert after.body == reply.body
        assert after.headers["ETag"] == reply.headers["ETag"]


async def test_what_is_about_the_newest_entries_stands_on_the_first_page_alone(
    proxy: Proxy, origin: Origin
) -> None:
    """G1: tombstones and counts would change every page."""
    counted = '<o:totalResults xmlns:o="http://a9.com/-/spec/opensearchrss/1.0/">{}</o:totalResults>'
    deleted = '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:x" when="{}"/>'
    publish(origin, atom, 37, extra=counted.format(37))
    url = origin.url("/feed")
    await proxy.whole(url)
    before = (await page(proxy, url, 1)).body
    publish(origin, atom, 39, extra=counted.format(39) + deleted.format(stamp(40)))
    await proxy.refreshed(url)
    first = (await page(proxy, url)).body
    assert (await page(proxy, url, 1)).body == before
    assert b"deleted-entry" in first
    assert b"totalResults" not in first + before
    publish(origin, atom, 39, extra="<subtitle>new</subtitle>")
    await proxy.refreshed(url)
    assert b"<subtitle>new</subtitle>" in (await page(proxy, url, 1)).body


async def test_the_entry_about_what_is_missing_stands_on_the_first_page_alone(
    proxy: Proxy, origin: Origin
) -> None:
    """G1, R16: it does not count as an entry, and a reader of another page is not warned."""
    publish(origin, atom, 37, prev_archive="/gone")
    url = origin.url("/feed")
    while (await proxy.get(url, pages="10")).state == "loading":
        pass
    replies = await walked(proxy, url)
    assert [len(names(reply.body)) for reply in replies] == [18, 10, 10]
    assert names(replies[0].body)[0].startswith("uuid:")
    assert {reply.state for reply in replies} == {"partial"}


@pytest.mark.parametrize(("query", "is_told"), [({"page": "1"}, False), ({}, True)])
async def test_who_was_sent_an_inner_page_is_not_told_that_the_feed_has_healed(
    proxy: Proxy, origin: Origin, query: dict[str, Any], is_told: bool
) -> None:
    """R16: only warned readers learn it; HEAD and a refresh warn nobody."""
    publish(origin, atom, 37, prev_archive="/gone")
    url = origin.url("/feed")
    await proxy.ask("POST", "/refresh", params={"url": url})
    await proxy.ask("HEAD", "/feed", params={"url": url})
    await proxy.settled()
    assert (await proxy.get(url, pages="10", **query)).state == "partial"
    origin.publish("/gone", atom(an_item("old", 0), archive=True))
    await proxy.ask("POST", "/refresh", params={"url": url})
    await proxy.settled()
    healed = await proxy.get(url)
    assert healed.state == "complete"
    assert (names(healed.body)[0].startswith("uuid:")) is is_told


async def test_while_a_feed_is_loading_it_has_its_first_page(proxy: Proxy, origin: Origin) -> None:
    """G2: without `next`, fresh for 5 s; the answer says that other pages will come."""
    publish(origin, atom, 37, prev_archive="/1")
    origin.publish("/1", atom(an_item("old", 0), archive=True))
    url = origin.url("/feed")
    with origin.held("/1"):
        await proxy.begun(url)
        reply = await page(proxy, url, wait="0")
        other = await page(proxy, url, 1, wait="0")
    assert (reply.state, reply.headers["Cache-Control"], len(names(reply.body))) == (
        "loading",
        "max-age=5",
        17,
    )
    assert leads(reply.body).keys() == {"self", "first", "urn:wholefeed:whole"}
    assert (other.status, other.slug, other.headers["Retry-After"]) == (404, "no-such-page", "5")
    assert "loading" in json.loads(other.body)["detail"]
    await proxy.settled()
    assert len(names((await page(proxy, url, 1)).body)) == 10


async def test_a_page_that_is_not_there_is_404(proxy: Proxy, origin: Origin) -> None:
    """G2: with the URL of the first page."""
    publish(origin, atom, 37)
    url = origin.url("/feed")
    await proxy.whole(url)
    for number in ("4", "999999"):
        reply = await proxy.get(url, pages="10", page=number)
        assert (reply.status, reply.slug) == (404, "no-such-page")
        detail = json.loads(reply.body)["detail"]
        assert "from 1 to 3" in detail
        assert detail.endswith("%2Ffeed&pages=10")


@pytest.mark.parametrize(
    "query",
    [
        {"pages": "9"},
        {"pages": "1001"},
        {"pages": "x"},
        {"pages": ""},
        {"pages": "10", "page": "0"},
        {"pages": "10", "page": "-1"},
        {"pages": "10", "page": "two"},
        {"pages": "10", "page": ""},
        {"pages": "10", "limit": "3"},
        {"pages": "10", "since": "2026-01-31T00:00:00Z"},
        {"pages": "10", "page": "2", "answer_bytes": "5000"},
    ],
)
async def test_what_makes_no_page_is_400(proxy: Proxy, origin: Origin, query: dict[str, Any]) -> None:
    """G2: before any fetch."""
    reply = await proxy.get(origin.url("/feed"), **query)
    assert (reply.status, reply.slug) == (400, "bad-request")
    assert f"expected {'page ' if query.keys() == {'pages', 'page'} else 'pages'}" in reply.body.decode()
    assert origin.requests == []


async def test_page_is_the_publisher_s_where_pages_is_not(proxy: Proxy, origin: Origin) -> None:
    """P7: behind an unencoded URL, and the whole query in the prefix form."""
    publish(origin, atom, 37)
    body = atom(an_item("other"))
    origin.publish("/feed?a=1&page=2", body)
    origin.publish("/feed?pages=10&page=2", body)
    url = origin.url("/feed")
    await proxy.whole(url)
    plain = {"Accept-Encoding": "identity"}
    for target in (f"/feed?url={url}?a=1&page=2", f"/{url}?pages=10&page=2"):
        assert names((await proxy.ask("GET", target, headers=plain)).body) == ["other"]
    for query in ("&page=2&pages=10", "&pages=10&page=2"):
        reply = await proxy.ask("GET", f"/feed?url={url}{query}", headers=plain)
        assert names(reply.body) == [f"e{number}" for number in range(20, 10, -1)]


async def test_the_bound_of_an_answer_holds_for_a_page(start: StartProxy, origin: Origin) -> None:
    """`limits.answer_bytes`: no answer is longer; a cut page stays the same when entries come."""
    proxy = await start(limits={"answer_bytes": 3000})
    publish(origin, atom, 37, "long " * 60)
    url = origin.url("/feed")
    await proxy.whole(url)
    before = [await page(proxy, url, number) for number in (1, 2, 3)]
    publish(origin, atom, 57, "long " * 60)
    await proxy.refreshed(url)
    assert all(2400 < len(reply.body) <= 3000 for reply in before)
    assert [names(reply.body)[0] for reply in before] == ["e10", "e20", "e37"]
    assert [(await page(proxy, url, number)).body for number in (1, 2)] == [each.body for each in before[:2]]


async def test_the_bound_of_an_answer_holds_for_a_page_to_the_last_byte(
    start: StartProxy, origin: Origin
) -> None:
    """`limits.answer_bytes`: a page of exactly that size is whole; with one byte less it is cut."""
    publish(origin, atom, 37)

    async def oldest(most_bytes: int) -> bytes:
        proxy = await start(limits={"answer_bytes": most_bytes})
        await proxy.whole(origin.url("/feed"))
        return (await page(proxy, origin.url("/feed"), 1)).body

    size = len(await oldest(1 << 20))
    whole, less = await oldest(size), await oldest(size - 1)
    assert (len(whole), len(names(whole)), len(names(less))) == (size, 10, 9)


TOKEN = "a-token-that-is-long-enough"


async def test_the_links_of_a_page_let_in_whom_its_url_let_in(start: StartProxy, origin: Origin) -> None:
    """Apps follow links unchanged: links have the token only if the URL has it."""
    proxy = await start(server={"access_token": TOKEN})
    publish(origin, atom, 37)
    url = origin.url("/feed")
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    while (await page(proxy, url, headers=bearer)).state == "loading":
        pass
    assert (await page(proxy, url)).status == 401
    assert b"token" not in (await page(proxy, url, headers=bearer)).body
    reply = await page(proxy, url, token=TOKEN)
    following = links(reply.body)["next"][0]
    assert TOKEN not in links(reply.body)["self"][0]
    assert (await proxy.ask("GET", following.partition(str(proxy.client.port))[2])).status == 200
    gone = await page(proxy, url, 99, token=TOKEN)
    assert TOKEN.encode() not in gone.body


async def test_asking_for_pages_is_counted(proxy: Proxy, origin: Origin) -> None:
    """/metrics: shows whether readers go on behind the first page."""
    publish(origin, atom, 37)
    url = origin.url("/feed")
    await proxy.whole(url)
    assert await proxy.metric("wholefeed_feed_pages_total") == 0
    await walked(proxy, url)
    shown = (await proxy.ask("GET", "/metrics")).body.decode()
    assert 'wholefeed_feed_pages_total{page="first"} 1.0' in shown
    assert 'wholefeed_feed_pages_total{page="other"} 2.0' in shown


async def test_a_browser_is_led_to_all_of_the_feed(proxy: Proxy, origin: Origin) -> None:
    """`page` has another meaning there."""
    fields = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}
    query = {"url": origin.url("/feed"), "pages": "10", "page": "2"}
    reply = await proxy.ask("GET", "/feed", params=query, headers=fields, allow_redirects=False)
    assert reply.status == 303
    assert "&page=" not in reply.headers["Location"]
