"""An entry removed from a feed (I2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.feeds import an_item, atom, json_feed, own_ids, rdf, rss
from tests.nameless import titles
from tests.origin import Origin
from tests.postgres import on_both
from tests.running import Proxy, Reply, StartProxy


async def removed(proxy: Proxy, url: str, entry: str) -> Reply:
    reply = await proxy.ask("DELETE", "/feed", params={"url": url, "entry": entry})
    await proxy.settled()
    return reply


@on_both
async def test_an_entry_that_was_removed_is_in_no_answer(proxy: Proxy, origin: Origin) -> None:
    """I2: in no view and no document, despite fetches and imports; no reader learns of it, and another feed
    keeps its entry of that id."""
    url, other = origin.url("/feed"), origin.url("/other")
    for path in ("/feed", "/other"):
        origin.publish(path, atom(an_item("c", 3), an_item("b", 2), prev_archive=f"{path}/1"))
        origin.publish(f"{path}/1", atom(an_item("b", 2), an_item("a", 1), archive=True))
        await proxy.whole(origin.url(path))
    origin.forget_requests()
    before = await proxy.get(url)
    assert (await removed(proxy, url, "urn:b")).status == 204
    assert origin.counts() == {}
    after = await proxy.get(url)
    assert own_ids(after.body) == ["c", "a"]
    assert b"deleted-entry" not in after.body
    assert (before.state, after.state) == ("complete", "complete")
    assert before.headers["ETag"] != after.headers["ETag"]
    assert "entries=2" in after.headers["Feed-Reconstruction"]
    assert own_ids((await proxy.get(url, limit="2")).body) == ["c", "a"]
    assert own_ids((await proxy.refreshed(url, full=True)).body) == ["c", "a"]
    kept = atom(an_item("b", 2), an_item("0", 0))
    assert (await proxy.ask("POST", "/import", params={"url": url, "force": "1"}, data=kept)).status == 200
    await proxy.settled()
    assert "b" not in own_ids((await proxy.get(url)).body)
    assert own_ids((await proxy.get(other)).body) == ["c", "b", "a"]


async def test_it_comes_back_with_a_newer_update_alone(
    start: StartProxy, origin: Origin, tmp_path: Any
) -> None:
    """I2: neither another text of the same date nor a restart brings it back."""
    url, place = origin.url("/feed"), {"path": str(tmp_path / "one.db")}
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
    first = await start(store=place)
    await first.whole(url)
    assert (await removed(first, url, "urn:b")).status == 204
    origin.publish("/feed", atom(an_item("b", 2, "another text"), an_item("a", 1)))
    assert own_ids((await first.refreshed(url)).body) == ["a"]
    origin.publish("/feed", atom(an_item("a", 1)))
    assert own_ids((await first.refreshed(url)).body) == ["a"]
    await first.client.close()
    again = await start(store=place)
    assert own_ids((await again.get(url)).body) == ["a"]
    origin.publish("/feed", atom(an_item("b", 3), an_item("a", 1)))
    assert own_ids((await again.refreshed(url)).body) == ["b", "a"]


def with_urls(scheme: str, *names: str) -> bytes:
    return rss(*(an_item(each) for each in names)).replace(b"urn:", f"{scheme}://o.test/".encode())


async def test_it_stays_away_whichever_of_its_ids_is_named(proxy: Proxy, origin: Origin) -> None:
    """I2, R36: the post was removed, not the id."""
    url = origin.url("/feed")
    origin.publish("/feed", with_urls("http", "b", "a"))
    await proxy.whole(url)
    origin.publish("/feed", with_urls("https", "b", "a"))
    await proxy.refreshed(url)
    assert (await removed(proxy, url, "https://o.test/b")).status == 204
    assert titles((await proxy.get(url)).body) == ["a"]
    assert (await removed(proxy, url, "http://o.test/b")).status == 404
    assert (await removed(proxy, url, "http://o.test/a")).status == 204
    for scheme in ("https", "http"):
        origin.publish("/feed", with_urls(scheme, "c", "b", "a"))
        assert titles((await proxy.refreshed(url)).body) == ["c"]


async def test_it_stays_away_when_it_comes_under_an_id_that_is_new(proxy: Proxy, origin: Origin) -> None:
    """I2, R36."""
    url = origin.url("/feed")
    origin.publish("/feed", with_urls("http", "b", "a"))
    await proxy.whole(url)
    assert (await removed(proxy, url, "http://o.test/b")).status == 204
    origin.publish("/feed", with_urls("https", "b", "a"))
    assert titles((await proxy.refreshed(url)).body) == ["a"]


@pytest.mark.parametrize("make", [rss, rdf, json_feed], ids=["rss", "rdf", "json"])
async def test_an_item_without_dates_stays_away(proxy: Proxy, origin: Origin, make: Any) -> None:
    """I2: most feeds have no update dates. It stays away in the subscription document and after it left."""
    url = origin.url("/feed")
    origin.publish("/feed", make(an_item("b"), an_item("a")))
    await proxy.whole(url)
    assert (await removed(proxy, url, "urn:b")).status == 204
    for items in ([an_item("c"), an_item("b"), an_item("a")], [an_item("d"), an_item("c")]):
        origin.publish("/feed", make(*items))
        body = (await proxy.refreshed(url)).body
        assert b"urn:b" not in body
        assert b"urn:c" in body
        assert b"urn:a" in body


@pytest.mark.parametrize(
    ("entry", "status", "slug"),
    [
        ("urn:none", 404, "no-such-entry"),
        ("", 400, "bad-request"),
        (" ", 400, "bad-request"),
        ("urn:wholefeed:entry:" + 32 * "0", 404, "no-such-entry"),
    ],
    ids=["unknown", "empty", "blank", "unknown by its digest"],
)
async def test_what_names_no_entry_removes_nothing(
    proxy: Proxy, origin: Origin, entry: str, status: int, slug: str
) -> None:
    """I2: above all, the feed itself is not forgotten."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    assert (await removed(proxy, url, entry)).status == (404 if entry.strip() else 400)
    await proxy.whole(url)
    reply = await removed(proxy, url, entry)
    assert (reply.status, json.loads(reply.body)["type"]) == (status, f"urn:wholefeed:{slug}")
    assert own_ids((await proxy.get(url)).body) == ["a"]


async def test_an_id_may_hold_blanks_and_plus_signs(proxy: Proxy, origin: Origin) -> None:
    """Forms encode them."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a 1+1", 1), an_item("b", 1)))
    await proxy.whole(url)
    assert (await removed(proxy, url, "urn:a 1+1")).status == 204
    assert own_ids((await proxy.get(url)).body) == ["b"]


async def test_who_may_not_forget_a_feed_may_not_remove_an_entry(start: StartProxy, origin: Origin) -> None:
    """A signed URL lets its holder read one feed; the token is needed for more."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    proxy = await start(server={"access_token": "a-token-of-the-test"})
    assert (await removed(proxy, url, "urn:a")).status == 401


async def test_an_item_without_an_id_goes_by_its_link(proxy: Proxy, origin: Origin) -> None:
    """R9: its identity is its name."""
    url = origin.url("/feed")
    item = "<item><title>{0}</title><link>https://example.org/{0}</link></item>"
    body = f"<rss version='2.0'><channel><title>F</title>{item.format('a')}{item.format('b')}</channel></rss>"
    origin.publish("/feed", body.encode())
    await proxy.whole(url)
    assert (await removed(proxy, url, "https://example.org/a")).status == 204
    answer = (await proxy.get(url)).body
    assert (b"example.org/a" in answer, b"example.org/b" in answer) == (False, True)
