"""Part B of the faults: one publisher against the feeds of another; storage of private feeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.feeds import an_item, atom, ids, publish_chain, stamp, texts
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from tests.sqlite_faults import rows

MINE = "urn:feed:mine"


@pytest.mark.fault("22", "154")
@pytest.mark.parametrize("leads_by", ["link", "redirect", "page"])
@pytest.mark.parametrize("belongs_by", ["id", "current", "nothing", "foreign current"])
async def test_an_archive_at_another_site_has_to_say_that_it_belongs_here(
    proxy: Proxy, origin: Origin, leads_by: str, belongs_by: str
) -> None:
    """docs/faults.md rows 22 and 154; R24: the same feed id, or a `current` that leads back."""
    async with Origin("127.0.0.2") as other:
        current = {"current": origin.url("/feed"), "foreign current": other.url("/feed")}.get(belongs_by)
        feed_id = MINE if belongs_by == "id" else "urn:feed:theirs"
        other.publish("/1", atom(an_item("a", 1), archive=True, feed_id=feed_id, current=current))
        lead = origin.redirect_by_page if leads_by == "page" else origin.redirect
        lead("/1", other.url("/1"))
        older = other.url("/1") if leads_by == "link" else "/1"
        origin.publish("/feed", atom(an_item("b", 2), feed_id=MINE, prev_archive=older))
        reply = await proxy.whole(origin.url("/feed"))
        missing = (await proxy.status(origin.url("/feed")))["missing"]
    if belongs_by in ("id", "current"):
        assert (reply.status, reply.state, ids(reply.body), missing) == (200, "complete", ["b", "a"], [])
    else:
        assert (reply.status, reply.state) == (200, "partial")
        assert "a" not in ids(reply.body)
        assert [each["reason"] for each in missing] == ["cross-origin-unconfirmed"]


@pytest.mark.fault("23")
async def test_a_feed_cannot_change_the_entries_of_another(proxy: Proxy, origin: Origin) -> None:
    """R9; docs/faults.md row 23: identity is scoped to the feed, for any ids and archives of another."""
    names = publish_chain(origin, archives=2)
    before = await proxy.whole(origin.url("/feed"))
    async with Origin("127.0.0.2") as hostile:
        forged = [an_item(name, 9_000, "forged") for name in names]
        hostile.publish("/feed", atom(*forged, updated=9_000, prev_archive=origin.url("/archive/2")))
        hostile.publish("/other", atom(*forged, updated=9_000, feed_id="urn:x", current=origin.url("/feed")))
        taken = await proxy.whole(hostile.url("/feed"))
        sent_on = await proxy.whole(hostile.url("/other"))
        after = await proxy.refreshed(origin.url("/feed"))
    assert set(texts(taken.body).values()) == {"forged"}
    assert texts(sent_on.body) == texts(before.body)
    assert (after.body, after.headers["ETag"]) == (before.body, before.headers["ETag"])
    assert after.reconstruction == "complete;documents=3;entries=6;missing=0"


@pytest.mark.fault("23")
async def test_a_feed_that_moves_to_another_site_does_not_become_the_feed_there(
    proxy: Proxy, origin: Origin
) -> None:
    """docs/faults.md row 23: remembered entries of a hostile feed are not served under its victim's URL."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("spam")))
    await proxy.whole(url)
    async with Origin("127.0.0.2") as victim:
        victim.publish("/feed", atom(an_item("theirs")))
        origin.redirect("/feed", victim.url("/feed"), status=301)
        for _ in range(4):
            proxy.clock.advance(40_000)
            await proxy.whole(url)
        assert rows(proxy.database, "SELECT fetch_url FROM feed") == [(victim.url("/feed"),)]
        assert ids((await proxy.whole(victim.url("/feed"))).body) == ["theirs"]
        assert set(ids((await proxy.whole(url)).body)) == {"spam", "theirs"}


@pytest.mark.fault("91")
async def test_row_91_a_feed_that_moves_to_anothers_on_its_site_has_nothing_served_there(
    proxy: Proxy, origin: Origin
) -> None:
    """Row 91, R25: neither its entries with the other's ids nor its tombstones; it keeps its own key only."""
    url, victim = origin.url("/~eve/feed"), origin.url("/~ann/feed")
    gone = '<at:deleted-entry xmlns:at="http://purl.org/atompub/tombstones/1.0" ref="urn:a" when="{}"/>'
    origin.publish("/~ann/feed", atom(an_item("a"), an_item("b", text="as Ann wrote it")))
    origin.publish(
        "/~eve/feed", atom(an_item("b", 9, "forged"), an_item("spam"), extra=gone.format(stamp(90)))
    )
    await proxy.whole(url)
    origin.redirect("/~eve/feed", "/~ann/feed", status=301)
    for _ in range(4):
        proxy.clock.advance(40_000)
        await proxy.whole(url)
    assert rows(proxy.database, "SELECT url, fetch_url FROM feed") == [(url, victim)]

    reply = await proxy.whole(victim)
    assert ids(reply.body) == ["a", "b"]
    assert b"forged" not in reply.body
    assert b"deleted-entry" not in reply.body
    assert {feed["url"] for feed in await proxy.feeds()} == {url, victim}


@pytest.mark.fault("26")
@pytest.mark.parametrize("sent", ["private", "no-store", "private, max-age=60", 'private="x", no-cache'])
async def test_what_is_private_is_kept_and_answered_as_private(
    tmp_path: Path, origin: Origin, sent: str
) -> None:
    """docs/faults.md row 26: stored, because storage is the job; no shared cache behind the proxy may keep
    it."""
    config = a_config(tmp_path)
    origin.publish("/feed", atom(an_item("a", 1)), headers=[("Cache-Control", sent)])
    async with running(config) as proxy:
        assert (await proxy.get(origin.url("/feed"))).headers["Cache-Control"].startswith("private, max-age=")
    await origin.stop()
    async with running(config) as proxy:
        proxy.clock.advance(90_000)
        stale = await proxy.get(origin.url("/feed"))
    assert (stale.status, ids(stale.body)) == (200, ["a"])
    assert stale.reconstruction.endswith(";stale")
    assert stale.headers["Cache-Control"].startswith("private, max-age=")


@pytest.mark.fault("26")
async def test_a_304_that_says_nothing_of_it_leaves_private_what_is(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 26; RFC 9111, 3.2: fields absent from a 304 are unchanged."""
    body, url = atom(an_item("a", 1)), origin.url("/feed")
    origin.publish("/feed", body, etag='"1"', headers=[("Cache-Control", "private")])
    await proxy.get(url)
    for said, is_private in ([], True), ([("Cache-Control", "max-age=60")], False), ([], False):
        origin.publish("/feed", body, etag='"1"', headers=said)
        reply = await proxy.looked(url)
        assert reply.headers["Cache-Control"].startswith("private, ") == is_private
    assert [request.headers.get("if-none-match") for request in origin.requests] == [None, *['"1"'] * 3]


@pytest.mark.fault("26")
async def test_what_is_not_private_any_more_is_answered_so(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 26."""
    origin.publish("/feed", atom(an_item("a", 1)), headers=[("Cache-Control", "private")])
    await proxy.get(origin.url("/feed"))
    origin.publish("/feed", atom(an_item("a", 1)))
    reply = await proxy.refreshed(origin.url("/feed"))
    assert reply.headers["Cache-Control"].startswith("max-age=")
