"""All reports about a feed agree, and describe one moment."""

from __future__ import annotations

from pathlib import Path

from tests.feeds import an_item, atom, publish_chain, rss
from tests.origin import Origin
from tests.running import Clock, Proxy, StandingClock, a_config, running
from tests.sqlite_faults import PUBLISHING, SqliteFaults, rows


async def states(proxy: Proxy, url: str) -> tuple[str, str, str]:
    reply = await proxy.get(url, wait="0.1")
    status = await proxy.status(url)
    async with proxy.client.get("/feeds") as response:
        (listed,) = await response.json()
    return reply.state, status["state"], listed["state"]


def add_archive(origin: Origin, number: int) -> None:
    link = f"/archive/{number}"
    origin.publish("/feed", atom(an_item("newest", 900), prev_archive=link))
    older = f"/archive/{number - 1}"
    origin.publish(link, atom(an_item(f"new-{number}", 800), archive=True, prev_archive=older))


async def test_a_walk_that_was_cut_off_is_loading_wherever_one_asks(tmp_path: Path, origin: Origin) -> None:
    """R16: after a restart, while the publisher hangs: the walk may still add documents."""
    publish_chain(origin, archives=2)
    url, clock = origin.url("/feed"), Clock()
    async with running(a_config(tmp_path), clock) as proxy:
        assert (await proxy.whole(url)).state == "complete"
        add_archive(origin, 3)
        clock.advance(4000)
        with origin.held("/archive/3") as gate:
            await proxy.get(url, wait="0.1")
            await gate.reached()
            assert await states(proxy, url) == ("loading",) * 3
            await proxy.interrupted()

    with origin.held("/feed") as gate:
        async with running(a_config(tmp_path), clock) as proxy:
            await gate.reached()
            assert await states(proxy, url) == ("loading",) * 3
            gate.release()
            await proxy.settled()
            assert await states(proxy, url) == ("complete",) * 3


async def test_a_mere_refetch_keeps_the_state_wherever_one_asks(proxy: Proxy, origin: Origin) -> None:
    """R16: a fetch of the subscription document alone adds no documents."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await proxy.whole(url)
    proxy.clock.advance(4000)
    with origin.held("/feed"):
        assert await states(proxy, url) == ("complete",) * 3


async def test_what_is_missing_is_told_with_its_publication_or_not_at_all(
    faults: SqliteFaults, tmp_path: Path, origin: Origin
) -> None:
    """R16: a refresh that cannot publish reports no gaps."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        before = await proxy.whole(url)
        add_archive(origin, 4)  # 4 links to 3, which is not there
        proxy.clock.advance(4000)
        with origin.held("/archive/3") as gate:
            await proxy.get(url, wait="0.1")
            await gate.reached()
            assert await states(proxy, url) == ("loading",) * 3
            faults.arm(1, "SQLITE_IOERR", for_good=True, only=PUBLISHING)
            gate.release()
            await proxy.settled()
        assert faults.failed
        status = await proxy.status(url)
        assert (status["state"], status["missing"]) == ("loading", [])
        assert status["entries"] == int(before.reconstruction.split(";")[2].removeprefix("entries="))

        faults.heal()
        reply = await proxy.refreshed(url)
        assert reply.reconstruction.startswith("partial;documents=4;")
        assert [each["attempts"] for each in (await proxy.status(url))["missing"]] == [1]


async def test_last_modified_moves_with_a_walk_and_is_none_while_it_lasts(
    proxy: Proxy, origin: Origin
) -> None:
    """RFC 9110, 8.8.2 and 13.1.3: a body without `complete` is another one, and so is the next; no date
    stands for a body that may change at any moment."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    first = await proxy.whole(url)
    add_archive(origin, 3)
    proxy.clock.advance(4000)
    since = {"If-Modified-Since": first.headers["Last-Modified"]}
    with origin.held("/archive/3") as gate:
        await proxy.get(url, wait="0.1")
        await gate.reached()
        loading = await proxy.get(url, wait="0.1", headers=since)
        assert (loading.status, loading.state) == (200, "loading")
        assert "Last-Modified" not in loading.headers
        late = {"If-Modified-Since": "Fri, 31 Dec 2100 23:59:59 GMT"}
        assert (await proxy.get(url, wait="0.1", headers=late)).status == 200
        same = await proxy.get(url, wait="0.1", headers={"If-None-Match": loading.headers["ETag"]})
        assert (same.status, "Last-Modified" in same.headers) == (304, False)
    await proxy.settled()
    proxy.clock.advance(2)
    last = await proxy.get(url, headers=since)
    assert (last.status, last.state) == (200, "complete")
    assert last.headers["Last-Modified"] != first.headers["Last-Modified"]


async def test_what_is_published_twice_in_a_second_has_no_last_modified_until_that_is_over(
    tmp_path: Path, origin: Origin
) -> None:
    """RFC 9110, 8.8.2.1: it must not be later than Date, and must be later than the one before."""
    url = origin.url("/feed")
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        bodies: dict[str, bytes] = {}
        for number in range(4):
            origin.publish("/feed", atom(an_item(f"e{number}"), complete=True))
            reply = await proxy.refreshed(url) if number else await proxy.whole(url)
            date = reply.headers.get("Last-Modified")
            assert (date is None) == (number > 1)
            if date is not None:
                assert bodies.setdefault(date, reply.body) == reply.body
        since = {"If-Modified-Since": "Fri, 31 Dec 2100 23:59:59 GMT"}
        assert (await proxy.get(url, headers=since)).status == 200
        proxy.clock.advance(2)
        last = await proxy.get(url)
        assert last.headers["Last-Modified"] not in bodies
        since = {"If-Modified-Since": last.headers["Last-Modified"]}
        assert (await proxy.get(url, headers=since)).status == 304


async def test_last_modified_moves_when_the_root_gains_a_prefix(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.2: it moves with the ETag, even if head and entries are unchanged."""
    item = an_item("a", 1, "as dc:creator says")
    url = origin.url("/feed")
    origin.publish("/feed", rss(item))
    before = await proxy.whole(url)
    proxy.clock.advance(10)
    declared = rss(item).replace(b"<rss ", b'<rss xmlns:dc="http://purl.org/dc/elements/1.1/" ', 1)
    origin.publish("/feed", declared)
    after = await proxy.refreshed(url)
    assert b"xmlns:dc=" in after.body
    assert b"xmlns:dc=" not in before.body
    assert after.headers["ETag"] != before.headers["ETag"]
    assert after.headers["Last-Modified"] != before.headers["Last-Modified"]


async def test_a_strong_etag_is_of_one_sequence_of_bytes(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.1: gzip bodies differ with the segments of one text, so their tags are weak, and still
    give a 304."""
    url, bodies = origin.url("/feed"), dict[str, set[bytes]]()
    items = [an_item(f"e{number}", number, "text " * 20_000) for number in (3, 2, 1)]
    tags: list[str] = []
    for archived in (2, 1):  # entries move to the archive, and the feed is unchanged
        origin.publish("/feed", rss(*items[:archived], prev_archive="/archive"))
        origin.publish("/archive", rss(*items[archived:], archive=True))
        await (proxy.refreshed(url, full=True) if tags else proxy.whole(url))
        for coding in ("gzip", "identity"):
            reply = await proxy.get(url, headers={"Accept-Encoding": coding})
            bodies.setdefault(reply.headers["ETag"], set()).add(reply.body)
            tags.append(reply.headers["ETag"])
    zipped, plain, zipped_later, plain_later = tags
    assert (zipped, plain) == (zipped_later, plain_later), "the text is the same"
    assert len(bodies[zipped]) > 1, "and cut otherwise"
    assert all(len(found) == 1 for tag, found in bodies.items() if not tag.startswith("W/"))
    for tag in (zipped, zipped.removeprefix("W/")):
        known = {"Accept-Encoding": "gzip", "If-None-Match": tag}
        assert (await proxy.get(url, headers=known)).status == 304


async def test_last_modified_moves_when_the_feed_is_asked_for_elsewhere(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.2: the answer has the publisher's address (`via`), so a move changes it."""
    origin.publish("/moved", atom(an_item("a", 1)))
    origin.redirect("/feed", "/moved", status=301)
    url = origin.url("/feed")
    before = after = await proxy.whole(url)
    for _ in range(4):
        proxy.clock.advance(40_000)
        after = await proxy.whole(url)
        if before.headers["Link"] != after.headers["Link"]:
            break
        assert before.headers["Last-Modified"] == after.headers["Last-Modified"]
    assert origin.url("/moved") in after.headers["Link"]
    assert before.headers["Last-Modified"] != after.headers["Last-Modified"]


async def told(proxy: Proxy, url: str) -> tuple[bytes, dict[str, str]]:
    reply = await proxy.get(url, wait="0")
    names = ("Content-Type", "ETag", "Last-Modified", "Link", "Feed-Reconstruction")
    return reply.body, {name: reply.headers[name] for name in names}


async def test_a_feed_whose_format_changes_is_the_old_one_until_the_new_one_is_published(
    faults: SqliteFaults, tmp_path: Path, origin: Origin
) -> None:
    """R16, R23: body and Content-Type are of one publication, however long the next one takes."""
    publish_chain(origin, archives=2, make=rss)
    url = origin.url("/feed")
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(url)
        before = await told(proxy, url)
        assert before[1]["Content-Type"].startswith("application/rss+xml")
        publish_chain(origin, archives=2)
        proxy.clock.advance(60)
        with faults.held(PUBLISHING) as publishing:
            assert (await proxy.ask("POST", "/refresh", params={"url": url})).status == 202
            await publishing.reached()
            stored = rows(proxy.database, "SELECT family FROM document WHERE role = 'subscription'")
            assert stored == [("atom",)]
            assert (await told(proxy, url))[0] == before[0]
            assert (await told(proxy, url))[1]["Content-Type"] == before[1]["Content-Type"]
            assert (await proxy.status(url))["format"] == "rss"
        await proxy.settled()
        after = await told(proxy, url)
        assert after[1]["Content-Type"].startswith("application/atom+xml")
        assert after[1]["Last-Modified"] > before[1]["Last-Modified"]
        assert (await proxy.status(url))["format"] == "atom"
