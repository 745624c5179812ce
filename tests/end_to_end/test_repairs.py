"""Documents that are not well-formed, through the whole proxy (docs/faults.md rows 32, 45, 49;
docs/repair.md)."""

from __future__ import annotations

import pytest

from tests.feeds import an_item, atom, ids, own_ids
from tests.origin import Origin
from tests.running import Proxy

WHOLE = atom(an_item("b", 2), an_item("a", 1), archive=True)
CUT = WHOLE[: WHOLE.index(b"urn:a")]


@pytest.mark.fault("49")
async def test_a_truncated_archive_makes_the_feed_partial_until_it_is_whole(
    proxy: Proxy, origin: Origin
) -> None:
    """docs/faults.md row 49; R14: tried again when its time has come."""
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
    """docs/faults.md row 49: only a whole copy makes it whole."""
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
    """FAULTS: a good stored copy is never overwritten by a fault."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("c", 3), prev_archive="/1"))
    origin.publish("/1", WHOLE)
    await proxy.whole(url)
    origin.publish("/1", CUT)
    reply = await proxy.refreshed(url, full=True)

    assert (reply.state, own_ids(reply.body)) == ("complete", ["c", "b", "a"])


@pytest.mark.fault("49")
async def test_a_truncated_subscription_document_takes_nothing_away(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 49; R1: only a document that was received whole makes a feed complete by itself."""
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
    """docs/faults.md row 49, R6, R14: the walk goes on behind it; stored pages take no harm from one."""
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
