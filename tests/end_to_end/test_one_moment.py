"""What is told of a feed is told the same everywhere, and is always of one moment."""

from __future__ import annotations

from pathlib import Path

from tests.feeds import an_item, atom, publish_chain, rss
from tests.origin import Origin
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import PUBLISHING, SqliteFaults, rows


async def states(proxy: Proxy, url: str) -> tuple[str, str, str]:
    """Ask for the state by each way there is: /feed, /status and /feeds."""
    reply = await proxy.get(url, wait="0.1")
    status = await proxy.status(url)
    async with proxy.client.get("/feeds") as response:
        (listed,) = await response.json()
    return reply.state, status["state"], listed["state"]


def add_archive(origin: Origin, number: int) -> None:
    """Let the subscription document of `publish_chain` link to one more archive document."""
    link = f"/archive/{number}"
    origin.publish("/feed", atom(an_item("newest", 900), prev_archive=link))
    older = f"/archive/{number - 1}"
    origin.publish(link, atom(an_item(f"new-{number}", 800), archive=True, prev_archive=older))


async def test_a_walk_that_was_cut_off_is_loading_wherever_one_asks(tmp_path: Path, origin: Origin) -> None:
    """R16: after a restart in the middle of a walk, while the publisher hangs: it may still add documents."""
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
    """R16: that the subscription document is being asked for adds no documents."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await proxy.whole(url)
    proxy.clock.advance(4000)
    with origin.held("/feed"):
        assert await states(proxy, url) == ("complete",) * 3


async def test_what_is_missing_is_told_with_its_publication_or_not_at_all(
    faults: SqliteFaults, tmp_path: Path, origin: Origin
) -> None:
    """R16: a refresh that cannot publish leaves nothing of what it found missing to be told."""
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


async def test_last_modified_moves_when_a_walk_begins_and_when_it_ends(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.2: a body that no longer says `complete` is another one, and so is the one after it."""
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
    await proxy.settled()
    since = {"If-Modified-Since": loading.headers["Last-Modified"]}
    last = await proxy.get(url, headers=since)
    assert (last.status, last.state) == (200, "complete")


async def test_last_modified_moves_when_the_feed_is_asked_for_elsewhere(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 8.8.2: the answer tells the publisher's address (`via`), so a move makes it another one."""
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
    """The body of a feed and what its head says of it."""
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
