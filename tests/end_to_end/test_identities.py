"""Entries without an id of their own, from the publisher to the reader (rule R9)."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.feeds import an_item
from tests.feeds import atom as atom_feed
from tests.nameless import AFTERWARDS, MAKES, SHOW, STAGES, Make, Nameless, atom, rss, stage, titles
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import rows
from wholefeed.core.model import ATOM_NS, DC_NS, RDF_NS, RSS_10_NS

STORED = Path(__file__).parents[1] / "data" / "stored" / "schema-5.db.gz"
"""Stages of the story, by format, as stored under the earlier rule."""

STAYS = {"json": {"a", "g"}}
"""Items that stay beside `AFTERWARDS`, by format."""

DAY = 86_400
READ_BY = """
    SELECT DISTINCT d.parser_version FROM document AS d JOIN feed AS f ON f.id = d.feed WHERE f.url = '{}'
"""


def publish(origin: Origin, name: str, number: int) -> None:
    for path, body in stage(number, MAKES[name]).items():
        linked = body.replace(b'"/1"', f'"/{name}/1"'.encode())
        kind = "application/feed+json" if name == "json" else "application/xml"
        origin.publish(f"/{name}{path}", linked, content_type=kind)


def publish_archives(origin: Origin, make: Make, *documents: list[Nameless]) -> list[str]:
    """Publish documents as a chain, the newest as the subscription document; return the titles."""
    for number, items in enumerate(documents):
        older = f"/{number + 1}" if number + 1 < len(documents) else ""
        origin.publish(f"/{number}" if number else "/feed", make(*items, archive=bool(number), older=older))
    return [item.title for items in documents for item in items]


@pytest.mark.parametrize("name", MAKES)
async def test_every_item_of_the_story_is_there_once(name: str, proxy: Proxy, origin: Origin) -> None:
    """R8, R9, R19: items of one link, in one document, one after the other, archived and remembered."""
    for number in range(STAGES):
        publish(origin, name, number)
        proxy.clock.advance(2 * DAY)
        reply = await proxy.refreshed(origin.url(f"/{name}/feed"), full=True) if number else None
        if reply is None:
            await proxy.whole(origin.url(f"/{name}/feed"))
    reply = await proxy.get(origin.url(f"/{name}/feed"))
    assert sorted(titles(reply.body)) == sorted(AFTERWARDS | STAYS.get(name, set()))


@pytest.mark.parametrize("name", MAKES)
async def test_what_an_earlier_version_stored_is_read_again(
    name: str, tmp_path: Path, origin: Origin
) -> None:
    """R9: items split, settled and deleted ones stay away, nothing is doubled or fetched. The earlier version
    took `d` for `e`."""
    database = tmp_path / "wholefeed.db"
    database.write_bytes(gzip.decompress(STORED.read_bytes()))
    with closing(sqlite3.connect(database)) as db:
        for table, column in [
            *(("feed", each) for each in ("url", "fetch_url", "via_url")),
            *(("document", each) for each in ("url", "final_url", "links")),
        ]:
            own = f"127.0.0.1:{origin.port}"
            db.execute(f"UPDATE {table} SET {column} = replace({column}, '127.0.0.1:1', ?)", (own,))
        db.commit()
    publish(origin, name, STAGES - 1)
    url = origin.url(f"/{name}/feed")
    clock = Clock()
    clock.advance(STAGES * 3 * DAY)
    async with running(a_config(tmp_path), clock) as proxy:
        reply = await proxy.refreshed(url)
        assert sorted(titles(reply.body)) == sorted((AFTERWARDS - {"d"}) | STAYS.get(name, set()))
        origin.publish("/now", atom(Nameless("one")))
        await proxy.whole(origin.url("/now"))
        ((now,),) = rows(database, READ_BY.format(origin.url("/now")))
        assert rows(database, READ_BY.format(url)) == [(now,)]
    assert origin.counts()[f"/{name}/feed"] == 1


@pytest.mark.parametrize("make", [atom, rss])
async def test_episodes_that_all_link_to_the_show_are_all_there(
    make: Make, proxy: Proxy, origin: Origin
) -> None:
    """R9: one an archive; the link is not the channel's own, so only the enclosures differ."""
    page = "http://site.test/show"
    expected = publish_archives(
        origin, make, *([Nameless("episode", page, f"http://site.test/{n}.mp3")] for n in range(15))
    )
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, titles(reply.body)) == ("complete", expected)


@pytest.mark.parametrize("late", [4, 5, 6])
async def test_pages_of_one_link_are_all_there_in_whatever_order_they_come(
    late: int, proxy: Proxy, origin: Origin
) -> None:
    """R6, R9, R17: pages fetched ahead of a slow one distinguish nothing before others have come."""
    last = 9
    titles_of = {n: f"e{n}" for n in range(1, last + 1)}
    for n, title in titles_of.items():
        link = "http://site.test/show" if n > late - 1 else f"http://site.test/{n}"
        relations = {"first": 1, "last": last} | ({"next": n + 1} if n < last else {})
        head = "".join(f'<atom:link rel="{rel}" href="/feed?p={to}"/>' for rel, to in relations.items())
        body = rss(Nameless(title, link, f"http://site.test/{n}.mp3"))
        page = body.replace(b"<channel>", b"<channel>" + head.encode())
        origin.publish(f"/feed?p={n}", page)
        if n == 1:
            origin.publish("/feed", page)
    url = origin.url("/feed")
    with origin.held(f"/feed?p={late}") as gate:
        await proxy.begun(url)
        await gate.reached()
        async with asyncio.timeout(300):
            while not origin.requests_for(f"/feed?p={late + 2}"):
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)  # for the answers that are ahead to arrive
    reply = await proxy.whole(url)
    assert (reply.state, titles(reply.body)) == ("paged", list(titles_of.values()))


@pytest.mark.parametrize("name", MAKES)
async def test_an_item_that_links_to_the_id_of_another_is_not_that_one(
    name: str, proxy: Proxy, origin: Origin
) -> None:
    """R9: an item that lost its id is the same as before."""
    make, url = MAKES[name], origin.url("/feed")
    kind = "application/feed+json" if name == "json" else "application/xml"
    own = Nameless("own", "http://site.test/own", id="http://site.test/own")
    one = Nameless("one", "http://site.test/x", id="http://site.test/y")
    origin.publish("/feed", make(own, one, Nameless("two", "http://site.test/y")), content_type=kind)
    assert titles((await proxy.whole(url)).body) == ["own", "one", "two"]
    origin.publish("/feed", make(Nameless("own", "http://site.test/own")), content_type=kind)
    assert titles((await proxy.refreshed(url)).body) == ["own", "one", "two"]


async def test_items_that_only_their_media_tell_apart_are_all_there(proxy: Proxy, origin: Origin) -> None:
    """R9: pictures of one title and one link, remembered and come back."""
    url = origin.url("/feed")
    pictures = [f"<item><title>P</title><media:content url='/{n}.jpg'/></item>" for n in range(3)]
    begin = (
        '<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>T</title>'
        f"<link>{SHOW}</link><description/>"
    )
    for shown in (pictures, pictures[:1], pictures[1:]):
        origin.publish("/feed", f"{begin}{''.join(shown)}</channel></rss>")
        await proxy.whole(url)
        reply = await proxy.refreshed(url)
        assert titles(reply.body) == ["P"] * 3
        assert all(reply.body.count(b"/%d.jpg" % n) == 1 for n in range(3))


@pytest.mark.parametrize("written", ["author", "dc:creator", "itunes:author", "atom:author"])
@pytest.mark.parametrize("root", ["rss", "rdf:RDF"])
async def test_items_that_only_their_author_tells_apart_are_all_there(
    root: str, written: str, proxy: Proxy, origin: Origin
) -> None:
    """R9: daily columns of one title and one link, remembered and come back, for any line breaks in the
    name."""
    url = origin.url("/feed")
    inside = "<atom:name>{}</atom:name>" if written == "atom:author" else "{}"
    columns = [
        f"<item><title>C</title><{written}>{inside.format(name)}</{written}></item>"
        for name in ("Ann Lee", "Bob Lee")
    ]
    itunes = "http://www.itunes.com/dtds/podcast-1.0.dtd"
    namespaces = {"rdf": RDF_NS, "dc": DC_NS, "atom": ATOM_NS, "itunes": itunes}
    bound = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in namespaces.items())
    own = ' version="2.0"' if root == "rss" else f' xmlns="{RSS_10_NS}"'
    begin = f"<{root}{own}{bound}><channel><title>T</title><link>{SHOW}</link><description/>"
    for shown in (columns, columns[:1], [each.replace(" Lee", "\n Lee") for each in columns[1:]]):
        items = "".join(shown)
        end = f"{items}</channel></rss>" if root == "rss" else f"</channel>{items}</rdf:RDF>"
        origin.publish("/feed", begin + end)
        await proxy.whole(url)
        reply = await proxy.refreshed(url)
        assert titles(reply.body) == ["C"] * 2
        assert [reply.body.count(name) for name in (b"Ann", b"Bob")] == [1, 1]


async def test_an_item_beside_another_of_its_link_is_still_itself(proxy: Proxy, origin: Origin) -> None:
    """R9: it stands alone in one document, and beside another of its link in the next."""
    one, two = Nameless("one", "http://site.test/x"), Nameless("two", "http://site.test/x")
    url = origin.url("/feed")
    origin.publish("/feed", rss(one))
    await proxy.whole(url)
    origin.publish("/feed", rss(two, one))
    assert titles((await proxy.refreshed(url)).body) == ["two", "one"]
    origin.publish("/feed", rss(two))
    assert titles((await proxy.refreshed(url)).body) == ["two", "one"]
    origin.publish("/feed", rss(one))
    assert titles((await proxy.refreshed(url)).body) == ["one", "two"]


async def test_an_item_that_is_edited_stays_one_as_long_as_its_link_is_its_own(
    proxy: Proxy, origin: Origin
) -> None:
    """R9, R10: the link identifies it under any title."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(Nameless("before", "http://site.test/x")))
    await proxy.whole(url)
    origin.publish("/feed", rss(Nameless("after", "http://site.test/x")))
    assert titles((await proxy.refreshed(url)).body) == ["after"]


async def test_a_link_that_becomes_the_channels_own_identifies_nothing(proxy: Proxy, origin: Origin) -> None:
    """R9: for good, even if the channel links elsewhere again."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(Nameless("one"), link="http://site.test/elsewhere"))
    await proxy.whole(url)
    for title, link in (("two", SHOW), ("three", "http://site.test/elsewhere")):
        origin.publish("/feed", rss(Nameless(title), link=link))
        await proxy.refreshed(url)
    assert titles((await proxy.get(url)).body) == ["three", "two", "one"]


async def test_unlike_entries_of_one_id_are_told_of(proxy: Proxy, origin: Origin) -> None:
    """R9: one of them is shown; `/status` counts the entries with the id of another."""
    items = [Nameless(title, id="urn:same") for title in ("one", "two", "two", "three")]
    origin.publish("/feed", rss(*items))
    url = origin.url("/feed")
    assert titles((await proxy.whole(url)).body) == ["one"]
    (note,) = (await proxy.status(url))["notes"]
    assert (note["code"], note["text"].partition(" ")[0]) == ("IdentityRepeated", "3")


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (("<category>x</category>", "<category>y</category>"), ["IdentityRepeated"]),
        (
            (f'<t:title xmlns:t="{DC_NS}">x</t:title>', f'<t:title xmlns:t="{DC_NS}">y</t:title>'),
            ["IdentityRepeated"],
        ),
        (("\n<category>x</category>", "\n  <category>x</category>"), []),
    ],
    ids=["category", "dc:title", "white space alone"],
)
async def test_unlike_items_that_nothing_tells_apart_are_told_of(
    proxy: Proxy, origin: Origin, rest: tuple[str, str], told: list[str]
) -> None:
    """R9: content outside the keys does not separate two items, but makes them unlike."""
    body = rss(Nameless("one"), Nameless("one"))
    for each in rest:
        body = body.replace(b"</link></item>", f"</link>{each}</item>".encode(), 1)
    url = origin.url("/feed")
    origin.publish("/feed", body)
    assert titles((await proxy.whole(url)).body) == ["one"]
    assert [note["code"] for note in (await proxy.status(url))["notes"]] == told


async def test_versions_of_one_entry_are_none_to_be_told_of(proxy: Proxy, origin: Origin) -> None:
    """RFC 4287, 4.1.1: entries of one id and different update instants are versions of one entry."""
    origin.publish("/feed", atom_feed(an_item("a", 2, "new"), an_item("a", 1, "old")))
    url = origin.url("/feed")
    await proxy.whole(url)
    assert (await proxy.status(url))["notes"] == []


async def test_a_settled_item_takes_no_later_one_of_its_link_with_it(proxy: Proxy, origin: Origin) -> None:
    """R8, R9: its archive has dropped it; another item of its link was never archived."""
    page, url = "http://site.test/show", origin.url("/feed")
    first, second = (Nameless(title, page, f"http://site.test/{title}.mp3") for title in ("one", "two"))
    other, last = Nameless("other", "http://site.test/other"), Nameless("last", "http://site.test/last")
    origin.publish("/feed", rss(other, older="/1"))
    origin.publish("/1", rss(first, archive=True))
    await proxy.whole(url)
    origin.publish("/1", rss(other, archive=True))
    assert "one" not in titles((await proxy.refreshed(url, full=True)).body)
    for item in (second, last):
        origin.publish("/feed", rss(item, older="/1"))
        await proxy.refreshed(url)
    assert titles((await proxy.get(url)).body) == ["last", "two", "other"]


@pytest.mark.fault("57")
@pytest.mark.parametrize("name", MAKES)
async def test_an_id_that_all_items_have_identifies_none(
    name: str, proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R7, R9: each item is there once, also after it left and after a newer parser."""
    items = [Nameless(f"title {n}", f"http://site.test/{n}", id="N/A") for n in range(40)]
    url = origin.url("/feed")
    for start in range(36, -1, -3):
        origin.publish("/feed", MAKES[name](*items[start : start + 4]))
        await (proxy.refreshed(url) if start < 36 else proxy.whole(url))
    everything = [item.title for item in items]
    reply = await proxy.get(url)
    assert sorted(titles(reply.body)) == sorted(everything)
    (note,) = (await proxy.status(url))["notes"]
    assert (note["code"], note["text"].partition(" ")[0]) == ("IdentityUnusable", "4")
    set_constant(monkeypatch, "PARSER_VERSION", 10_000)
    again = await proxy.refreshed(url)
    assert (again.body, again.headers["ETag"]) == (reply.body, reply.headers["ETag"])


@pytest.mark.fault("57")
async def test_numbers_that_each_page_repeats_identify_none(proxy: Proxy, origin: Origin) -> None:
    """R6, R9: 35 items on four pages, each numbered from 0."""
    items = [
        [Nameless(f"{n}-{at}", f"http://site.test/{n}-{at}", id=f"{at}") for at in range(10)]
        for n in range(4)
    ]
    items[3] = items[3][:5]
    for n, page in enumerate(items):
        older = f"/{n + 1}" if n < 3 else ""
        origin.publish(f"/{n}" if n else "/feed", rss(*page, older=older).replace(b"prev-archive", b"next"))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, titles(reply.body)) == ("paged", [item.title for page in items for item in page])
