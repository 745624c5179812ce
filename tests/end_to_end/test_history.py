"""The main job through the whole proxy: chains and complete feeds, served whole (R0 to R3, R20, R21)."""

from __future__ import annotations

import gzip
from urllib.parse import quote

import feedparser
import pytest

from tests.feeds import an_item, atom, ids, links, publish_chain, rss, texts
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy

pytestmark = on_both


@pytest.mark.parametrize("make", [atom, rss])
async def test_an_archived_feed_comes_out_whole(proxy: Proxy, origin: Origin, make: object) -> None:
    """R2; RFC 5005, 4.2: every entry of the chain once, newest first."""
    expected = publish_chain(origin, archives=5, entries=3, make=make)

    reply = await proxy.whole(origin.url("/feed"))

    assert reply.status == 200
    assert reply.reconstruction == "complete;documents=6;entries=18;missing=0"
    assert ids(reply.body) == expected
    family = "atom" if make is atom else "rss"
    assert reply.headers["Content-Type"] == f"application/{family}+xml; charset=utf-8"


async def test_each_document_is_asked_for_once_and_archives_never_again(proxy: Proxy, origin: Origin) -> None:
    """R2, R13: stored documents cost no request."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    await proxy.whole(url)
    assert set(origin.counts().values()) == {1}

    origin.forget_requests()
    await proxy.get(url)
    assert origin.requests == []

    proxy.clock.advance(3600)
    await proxy.whole(url)
    assert set(origin.counts()) == {"/feed"}


async def test_complete_on_an_archive_document_means_nothing(proxy: Proxy, origin: Origin) -> None:
    """R1."""
    origin.publish("/feed", atom(an_item("b", 2), prev_archive="/1"))
    origin.publish("/1", atom(an_item("a", 1), archive=True, complete=True, prev_archive="/0"))
    origin.publish("/0", atom(an_item("z", 0), archive=True))
    assert ids((await proxy.whole(origin.url("/feed"))).body) == ["b", "a", "z"]


async def test_an_archive_leads_to_its_subscription_document(proxy: Proxy, origin: Origin) -> None:
    """R3; draft-05, 6.1: the proxy fetches and remembers `current`."""
    expected = publish_chain(origin, archives=3)

    reply = await proxy.whole(origin.url("/archive/2"))

    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert f'<{origin.url("/feed")}>; rel="via"' in reply.headers["Link"]
    origin.forget_requests()
    assert ids((await proxy.whole(origin.url("/feed"))).body) == expected
    assert origin.requests == []


async def test_an_archive_whose_subscription_document_fails_serves_partial(
    proxy: Proxy, origin: Origin
) -> None:
    """R3."""
    publish_chain(origin, archives=2)
    origin.remove("/feed")
    reply = await proxy.whole(origin.url("/archive/2"))
    assert reply.state == "partial"
    assert ids(reply.body)[1:] == ["e4", "e3", "e2", "e1"]
    (missing,) = (await proxy.status(origin.url("/archive/2")))["missing"]
    assert (missing["url"], missing["reason"]) == (origin.url("/feed"), "current-unavailable")


async def test_an_archive_without_a_way_back_goes_forward_and_is_never_complete(
    proxy: Proxy, origin: Origin
) -> None:
    """R3: fh:archive without `current`."""
    origin.publish("/3", atom(an_item("c", 3), archive=True, prev_archive="/2"))
    origin.publish("/2", atom(an_item("b", 2), archive=True, prev_archive="/1", next_archive="/3"))
    origin.publish("/1", atom(an_item("a", 1), archive=True, next_archive="/2"))
    reply = await proxy.whole(origin.url("/1"))
    assert reply.state == "partial"
    assert ids(reply.body)[1:] == ["c", "b", "a"]
    (missing,) = (await proxy.status(origin.url("/1")))["missing"]
    assert missing["reason"] == "no-subscription-document"


async def test_a_feed_that_offers_nothing_is_remembered(proxy: Proxy, origin: Origin) -> None:
    """R7: the union of all documents seen."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)) == ("remembered", ["b", "a"])

    origin.publish("/feed", atom(an_item("d", 4), an_item("c", 3)))
    reply = await proxy.refreshed(url)
    assert (reply.state, ids(reply.body)) == ("remembered", ["d", "c", "b", "a"])

    origin.publish("/feed", atom(an_item("e", 5), an_item("a", 1)))
    reply = await proxy.refreshed(url)
    assert ids(reply.body) == ["e", "d", "c", "b", "a"], "newest first (R20)"


async def test_the_head_says_what_the_document_is(proxy: Proxy, origin: Origin) -> None:
    """R21."""
    origin.publish(
        "/feed",
        atom(
            an_item("a"),
            complete=True,
            self="http://else.test/",
            hub="http://hub.test/",
            next="/2",
            first="/1",
            alternate="/site",
            extra="<fh:stateful>0</fh:stateful>",
        ),
    )
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    found = links(reply.body)
    assert set(found) == {"self", "via", "alternate"}
    assert found["via"] == [url]
    assert found["self"][0].startswith(str(proxy.client.make_url("/feed")))
    assert reply.body.count(b"complete/>") == 1
    assert b"stateful" not in reply.body


async def test_a_missing_archive_makes_it_partial_and_is_told(proxy: Proxy, origin: Origin) -> None:
    """R2, R16; docs/faults.md row 54: every reachable entry without fh:complete, with URL and reason of the
    gap."""
    publish_chain(origin, archives=4)
    origin.remove("/archive/2")
    url = origin.url("/feed")

    reply = await proxy.whole(url)

    assert reply.reconstruction == "partial;documents=4;entries=8;missing=1"
    warning, *rest = ids(reply.body)
    assert rest == ["e10", "e9", "e8", "e7", "e6", "e5", "e2", "e1"]
    assert origin.url("/archive/2") in texts(reply.body)[warning]
    assert b"complete/>" not in reply.body
    (missing,) = (await proxy.status(url))["missing"]
    assert (missing["url"], missing["status"], missing["attempts"]) == (origin.url("/archive/2"), 404, 1)


async def test_a_feed_that_heals_is_complete_and_loses_its_warning(proxy: Proxy, origin: Origin) -> None:
    """R14, R16: at its time, and at once on /refresh."""
    expected = publish_chain(origin, archives=4)
    origin.remove("/archive/2")
    url = origin.url("/feed")
    first = await proxy.whole(url)
    proxy.clock.advance(1000)
    assert ids((await proxy.whole(url)).body) == ids(first.body)
    assert origin.counts()["/archive/2"] == 1

    publish_chain(origin, archives=4)
    reply = await proxy.refreshed(url)
    healed, *rest = ids(reply.body)

    assert (reply.state, rest) == ("complete", expected)
    assert reply.reconstruction.endswith(f";entries={len(expected)};missing=0")
    assert healed == ids(first.body)[0]
    assert b"missing any more" in reply.body
    assert b"complete/>" not in reply.body
    assert (await proxy.status(url))["missing"] == []


async def test_who_was_warned_is_told_for_a_fortnight_that_the_feed_has_healed(
    proxy: Proxy, origin: Origin
) -> None:
    """R16: the warning's id with a later date, in every view."""
    expected = publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    first = feedparser.parse((await proxy.whole(url)).body).entries[0]
    assert first.link == f"{proxy.client.make_url('/')}?url={quote(url, safe='')}"
    publish_chain(origin, archives=2)
    proxy.clock.advance(100)
    reply = await proxy.refreshed(url)
    healed = feedparser.parse(reply.body).entries[0]
    assert healed.id == first.id
    assert healed.updated > first.updated
    assert len(ids((await proxy.get(url, limit="1")).body)) == 2
    assert ids((await proxy.get(url, since="2100-01-01T00:00:00Z")).body) == [first.id.removeprefix("urn:")]
    proxy.clock.advance(10)
    validators = {"If-Modified-Since": (await proxy.get(url)).headers["Last-Modified"]}
    assert (await proxy.get(url, headers=validators)).status == 304

    proxy.clock.advance(14 * 86_400)
    later = await proxy.whole(url)
    assert ids(later.body) == expected
    assert b"complete/>" in later.body
    assert (await proxy.get(url, headers=validators)).status == 200


async def test_who_was_not_warned_is_told_nothing(proxy: Proxy, origin: Origin) -> None:
    """R16: a header alone, or a look at the status, is no warning."""
    expected = publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    await proxy.ask("HEAD", f"/feed?url={quote(url, safe='')}")
    await proxy.settled()
    await proxy.ask("POST", f"/refresh?url={quote(url, safe='')}")
    await proxy.settled()
    assert (await proxy.status(url))["state"] == "partial"
    publish_chain(origin, archives=2)
    assert ids((await proxy.refreshed(url)).body) == expected


async def test_what_was_never_had_is_not_said_to_be_there(proxy: Proxy, origin: Origin) -> None:
    """R16: a chain that no longer links the missing document has not healed."""
    publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).state == "partial"
    origin.publish("/archive/2", atom(an_item("e2", 2), archive=True))
    proxy.clock.advance(100_000)
    reply = await proxy.refreshed(url, full=True)
    assert reply.state == "complete"
    assert b"missing any more" not in reply.body


async def test_a_missing_document_is_tried_again_in_its_time(proxy: Proxy, origin: Origin) -> None:
    """R14; docs/faults.md row 54."""
    expected = publish_chain(origin, archives=2)
    origin.remove("/archive/1")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).state == "partial"
    publish_chain(origin, archives=2)
    proxy.clock.advance(3700)
    reply = await proxy.whole(url)
    assert (reply.state, ids(reply.body)[1:]) == ("complete", expected)


async def test_the_gzip_answer_is_the_same_document(proxy: Proxy, origin: Origin) -> None:
    """R20: it decodes to the plain answer, has its own ETag, and a true Content-Length."""
    publish_chain(origin, archives=30, entries=5)
    url = origin.url("/feed")
    plain = await proxy.whole(url)
    packed = await proxy.get(url, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert int(packed.headers["Content-Length"]) == len(packed.body)
    assert int(plain.headers["Content-Length"]) == len(plain.body)
    assert packed.headers["ETag"] != plain.headers["ETag"]
