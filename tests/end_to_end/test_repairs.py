"""Documents that are not well-formed, through the whole proxy (docs/faults.md rows 32, 45, 49, 148;
docs/repair.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.feeds import an_item, atom, ids, own_ids, rss
from tests.origin import Origin
from tests.running import Proxy

WHOLE = atom(an_item("b", 2), an_item("a", 1), archive=True)
CUT = WHOLE[: WHOLE.index(b"urn:a")]


@pytest.mark.fault("49")
async def test_a_truncated_archive_makes_the_feed_partial_until_it_is_whole(
    proxy: Proxy, origin: Origin
) -> None:
    """docs/faults.md row 49; R14: tried again at its time."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("d", 4), prev_archive="/2"))
    origin.publish("/2", atom(an_item("c", 3), archive=True, prev_archive="/1"))
    origin.publish("/1", CUT)
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("partial", ["d", "c", "b"])
    assert [each["reason"] for each in (await proxy.status(url))["missing"]] == ["truncated"]

    origin.forget_requests()
    proxy.clock.advance(1000)
    origin.publish("/feed", atom(an_item("e", 5), an_item("d", 4), prev_archive="/2"))
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("partial", ["e", "d", "c", "b"])
    assert origin.counts()["/1"] == 0

    origin.publish("/1", WHOLE)
    proxy.clock.advance(4000)
    reply = await proxy.whole(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["e", "d", "c", "b", "a"])


async def test_what_was_truncated_stays_so_while_the_walk_does_not_come_by(
    proxy: Proxy, origin: Origin
) -> None:
    """docs/faults.md row 49: only a whole copy heals it."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/1"))
    origin.publish("/1", CUT, etag='"1"')
    assert (await proxy.whole(url)).state == "partial"
    origin.publish("/feed", atom(an_item("e", 5), prev_archive="/2"))
    assert (await proxy.refreshed(url)).state == "partial"
    reasons = {each["url"]: each["reason"] for each in (await proxy.status(url))["missing"]}
    assert reasons == {origin.url("/1"): "truncated", origin.url("/2"): "publisher-status"}

    origin.publish("/2", atom(an_item("d", 4), archive=True, prev_archive="/1"))
    reply = await proxy.refreshed(url)
    assert reply.state == "partial"
    assert [each["url"] for each in (await proxy.status(url))["missing"]] == [origin.url("/1")]


@pytest.mark.fault("49")
async def test_a_whole_archive_does_not_give_way_to_a_truncated_one(proxy: Proxy, origin: Origin) -> None:
    """FAULTS: a fault never overwrites a good stored copy."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/1"))
    origin.publish("/1", WHOLE)
    await proxy.whole(url)
    origin.publish("/1", CUT)
    reply = await proxy.refreshed(url, full=True)

    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a"])


@pytest.mark.fault("49")
async def test_a_truncated_subscription_document_takes_nothing_away(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 49; R1: only a document received whole makes a feed complete by itself."""
    url = origin.url("/feed")
    whole = atom(an_item("b", 2), an_item("a", 1), complete=True)
    origin.publish("/feed", whole)
    assert (await proxy.whole(url)).state == "complete"
    origin.publish("/feed", whole[: whole.index(b"urn:a")], etag='"cut"')
    proxy.clock.advance(4000)
    reply = await proxy.whole(url)
    assert reply.state == "partial"
    assert set(ids(reply.body)) > {"a", "b"}
    proxy.clock.advance(4000)
    assert (await proxy.whole(url)).state == "partial"

    origin.publish("/feed", whole)
    proxy.clock.advance(4000)
    reply = await proxy.whole(url)
    assert (reply.state, own_ids(reply.body)) == ("complete", ["b", "a"])


async def test_a_truncated_page_makes_the_feed_partial_until_it_is_whole(
    proxy: Proxy, origin: Origin
) -> None:
    """docs/faults.md row 49, R6, R14: the walk goes on behind it; it does not harm stored pages."""
    url = origin.url("/feed")
    page = atom(an_item("d", 4), an_item("c", 3), next="/3")
    origin.publish("/feed", atom(an_item("f", 6), an_item("e", 5), next="/2"))
    origin.publish("/2", page[: page.index(b"urn:c")])
    origin.publish("/3", atom(an_item("b", 2), an_item("a", 1)))
    reply = await proxy.whole(url)
    assert (reply.state, sorted(set(ids(reply.body)) & set("abcdef"))) == ("partial", list("abdef"))
    proxy.clock.advance(1000)
    assert (await proxy.whole(url)).state == "partial"
    assert [each["reason"] for each in (await proxy.status(url))["missing"]] == ["truncated"]

    origin.publish("/2", page)
    proxy.clock.advance(4000)
    reply = await proxy.whole(url)
    assert (reply.state, own_ids(reply.body)) == ("paged", list("fedcba"))

    origin.publish("/2", page[: page.index(b"urn:c")])
    await proxy.refreshed(url, full=True)
    reply = await proxy.whole(url)
    assert sorted(set(ids(reply.body)) & set("abcdef")) == list("abcdef")


OTHERWISE = {
    "Item": lambda feed: feed.replace("item>", "Item>"),
    "ITEM with TITLE": lambda feed: feed.replace("item>", "ITEM>").replace("title>", "TITLE>"),
    "a wrapper": lambda feed: feed.replace("<item>", "<items><item>", 1).replace(
        "</channel>", "</items></channel>"
    ),
    "a namespace on the channel": lambda feed: feed.replace("<channel", '<channel xmlns="urn:nobody-s"'),
    "entries in RSS": lambda feed: feed.replace("item>", "entry>").replace("guid", "id"),
}


@pytest.mark.fault("148")
@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE)
async def test_a_feed_that_is_known_does_not_freeze_when_it_is_spelt_otherwise(
    proxy: Proxy, origin: Origin, change: Callable[[str], str]
) -> None:
    """Row 148; R7, R8: departed entries are remembered, and new ones appear."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(*(an_item(name, n) for name, n in (("c", 3), ("b", 2), ("a", 1)))))
    assert own_ids((await proxy.whole(url)).body) == ["c", "b", "a"]
    for number, names in enumerate(("fed", "ihg")):
        body = rss(*(an_item(name, 10 * (number + 1) - n) for n, name in enumerate(names)))
        proxy.clock.advance(4000)
        origin.publish("/feed", change(body.decode()).encode())
        await proxy.whole(url)
    reply = await proxy.whole(url)
    assert (reply.status, reply.state) == (200, "remembered")
    assert own_ids(reply.body) == list("ihgfedcba")
    assert {note["code"] for note in (await proxy.status(url))["notes"]} >= {"DocumentRepaired"}


@pytest.mark.fault("148")
@pytest.mark.parametrize("written", ["https://www.w3.org/2005/Atom", "http://www.w3.org/2005/atom/", ""])
@pytest.mark.parametrize("make", [rss, atom])
async def test_a_chain_is_walked_whatever_its_namespaces_are_spelt(
    proxy: Proxy, origin: Origin, make: Callable[..., bytes], written: str
) -> None:
    """Row 148; R2: links to archives and fh:archive count, in each document."""
    origin.publish("/feed", _misspelt(make(an_item("c", 3), prev_archive="/2"), written))
    origin.publish("/2", _misspelt(make(an_item("b", 2), archive=True, prev_archive="/1"), written))
    origin.publish("/1", make(an_item("a", 1), archive=True))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a"])
    assert b'"http://www.w3.org/2005/Atom"' in reply.body
    assert not written or written.encode() not in reply.body


def _misspelt(body: bytes, written: str) -> bytes:
    body = body.replace(b"http://www.w3.org/2005/Atom", written.encode())
    return body.replace(b"/syndication/history/1.0", b"/syndication/history/1.0/")
