"""A feed that continues another one (I3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.feeds import an_item, atom, json_feed, own_ids, rdf, rss
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy, Reply, StartProxy


async def continued(proxy: Proxy, old: str, new: str) -> Reply:
    reply = await proxy.ask("POST", "/continue", params={"url": new, "old": old})
    await proxy.settled()
    return reply


def names(reply: Reply) -> list[str]:
    if reply.headers["Content-Type"].startswith("application/feed+json"):
        return [each["id"].removeprefix("urn:") for each in json.loads(reply.body)["items"]]
    return own_ids(reply.body)


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed], ids=["atom", "rss", "rdf", "json"])
async def test_the_entries_of_the_old_feed_join_behind_and_stay(
    proxy: Proxy, origin: Origin, make: Any
) -> None:
    """I3, I1: including remembered ones, even after the old feed is forgotten, and without a request."""
    old, new = origin.url("/old"), origin.url("/new")
    origin.publish("/old", make(an_item("b", 2), an_item("a", 1)))
    await proxy.whole(old)
    origin.publish("/old", make(an_item("c", 3), an_item("b", 2)))
    await proxy.refreshed(old)
    origin.publish("/new", make(an_item("e", 5), an_item("d", 4)))
    await proxy.whole(new)
    origin.forget_requests()
    reply = await continued(proxy, old, new)
    assert reply.status == 200
    assert json.loads(reply.body) == {"entries": 3, "new": 3, "served": True, "state": "remembered"}
    assert origin.counts() == {}
    assert names(await proxy.get(new)) == ["e", "d", "c", "b", "a"]
    assert json.loads((await continued(proxy, old, new)).body)["new"] == 0
    assert (await proxy.ask("DELETE", "/feed", params={"url": old})).status == 204
    origin.publish("/new", make(an_item("f", 6), an_item("e", 5)))
    assert names(await proxy.refreshed(new)) == ["f", "e", "d", "c", "b", "a"]
    removed = await proxy.ask("DELETE", "/import", params={"url": new, "name": old})
    assert removed.status == 200
    await proxy.settled()
    assert names(await proxy.get(new)) == ["f", "e", "d"]


@on_both
async def test_what_the_old_feed_does_not_serve_does_not_come(proxy: Proxy, origin: Origin) -> None:
    """I3, R19, I2: neither deleted nor removed entries; relative URLs are the old feed's; the new publisher's
    own entry wins."""
    old, new = origin.url("/old"), origin.url("/new")
    space, when = "http://purl.org/atompub/tombstones/1.0", "2030-01-01T00:00:00Z"
    deleted = f'<at:deleted-entry xmlns:at="{space}" ref="urn:b" when="{when}"/>'
    items = [an_item(name, at) for name, at in (("d", 4), ("c", 3), ("a", 1))]
    origin.publish("/old", atom(*items, extra=deleted, prev_archive="/old/1"))
    origin.publish("/old/1", atom(an_item("b", 2), archive=True))
    origin.publish("/new", atom(an_item("d", 4, "the new one's own"), complete=False))
    for url in (old, new):
        await proxy.whole(url)
    assert (await proxy.ask("DELETE", "/feed", params={"url": old, "entry": "urn:c"})).status == 204
    await proxy.settled()
    assert own_ids((await proxy.get(old)).body) == ["d", "a"]
    assert (await continued(proxy, old, new)).status == 200
    answer = await proxy.get(new)
    assert own_ids(answer.body) == ["d", "a"]
    assert b"the new one's own" in answer.body


async def test_what_cannot_be_continued_is_refused_and_leaves_nothing(proxy: Proxy, origin: Origin) -> None:
    """I3: an unknown feed, none, the feed itself, a circle of two and of three, another format."""
    urls = {name: origin.url(f"/{name}") for name in ("a", "b", "c", "rss", "none")}
    for at, name in enumerate(("a", "b", "c")):
        origin.publish(f"/{name}", atom(an_item(name, at)))
    origin.publish("/rss", rss(an_item("r", 9)))
    for name in ("a", "b", "c", "rss"):
        await proxy.whole(urls[name])
    assert (await continued(proxy, urls["a"], urls["b"])).status == 200
    assert (await continued(proxy, urls["b"], urls["c"])).status == 200
    before = {name: (await proxy.get(urls[name])).body for name in ("a", "b", "c", "rss")}
    for old, new, status, slug in [
        ("none", "a", 404, "unknown-feed"),
        ("a", "none", 404, "unknown-feed"),
        ("a", "a", 400, "bad-request"),
        ("b", "a", 400, "bad-request"),
        ("c", "a", 400, "bad-request"),
        ("rss", "a", 422, "format"),
    ]:
        reply = await continued(proxy, urls[old], urls[new])
        assert (reply.status, reply.slug) == (status, slug), (old, new)
    for old, new, named in [
        ("a", "a", f"expected two feeds, got one: {urls['a']}"),
        ("b", "a", f"expected a feed that does not continue {urls['a']}, got a circle: {urls['b']}"),
        ("rss", "a", f"{urls['rss']}: expected a document in the feed's format, atom, got rss"),
    ]:
        assert json.loads((await continued(proxy, urls[old], urls[new])).body)["detail"] == named
    without = await proxy.ask("POST", "/continue", params={"url": urls["a"]})
    assert (without.status, without.slug) == (400, "bad-request")
    assert {name: (await proxy.get(urls[name])).body for name in before} == before


async def test_a_long_url_is_a_name_like_any_other(proxy: Proxy, origin: Origin) -> None:
    """I3: the proxy finds a circle through it, and undoes a continuation by it."""
    paths = [f"/{number}/{'long' * 60}" for number in range(3)]
    urls = [origin.url(path) for path in paths]
    for number, path in enumerate(paths):
        origin.publish(path, atom(an_item(f"e{number}", number)))
        await proxy.whole(urls[number])
    assert (await continued(proxy, urls[0], urls[1])).status == 200
    assert (await continued(proxy, urls[1], urls[2])).status == 200
    assert (await continued(proxy, urls[2], urls[0])).slug == "bad-request"
    other = urls[1].replace("http://", "HTTP://")
    taken = await proxy.ask("DELETE", "/import", params={"url": urls[2], "name": other})
    assert taken.status == 200
    await proxy.settled()
    assert names(await proxy.get(urls[2])) == ["e2"]


async def test_a_feed_that_is_being_fetched_is_waited_for(start: StartProxy, origin: Origin) -> None:
    """I3: otherwise a part of its entries would count as all."""
    old, new = origin.url("/old"), origin.url("/new")
    origin.publish("/old", atom(an_item("b", 2), prev_archive="/old/1"))
    origin.publish("/old/1", atom(an_item("a", 1), archive=True))
    origin.publish("/new", atom(an_item("c", 3)))
    proxy = await start(limits={"respond_within_seconds": 1})
    await proxy.whole(new)
    with origin.held("/old/1") as gate:
        assert (await proxy.get(old, wait="0.2")).state == "loading"
        await gate.reached()
        early = await proxy.ask("POST", "/continue", params={"url": new, "old": old})
        assert (early.status, early.slug) == (503, "overloaded")
        assert f"{old} is being fetched" in json.loads(early.body)["detail"]
        gate.release()
    assert json.loads((await continued(proxy, old, new)).body)["entries"] == 2
    assert names(await proxy.get(new)) == ["c", "b", "a"]


async def test_a_complete_feed_keeps_and_does_not_serve_it(proxy: Proxy, origin: Origin) -> None:
    """I3, I1: otherwise fh:complete would be wrong."""
    origin.publish("/old", atom(an_item("a", 1)))
    origin.publish("/new", atom(an_item("b", 2), complete=True))
    for path in ("/old", "/new"):
        await proxy.whole(origin.url(path))
    reply = await continued(proxy, origin.url("/old"), origin.url("/new"))
    assert json.loads(reply.body) == {"entries": 1, "new": 1, "served": False, "state": "complete"}
    assert own_ids((await proxy.get(origin.url("/new"))).body) == ["b"]


async def test_who_may_only_read_may_not_continue_a_feed(start: StartProxy, origin: Origin) -> None:
    """I3: it needs the token, like an import."""
    proxy = await start(server={"access_token": "a-token-of-the-test"})
    assert (await continued(proxy, origin.url("/old"), origin.url("/new"))).status == 401
