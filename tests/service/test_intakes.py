"""wholefeed.service.intakes: how many feeds of a list are asked for at once (B2)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.bringing import an_opml, bring_in, brought_in, look, until
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import a_config, running
from wholefeed.service.context import WalkTurns


async def test_a_list_has_half_of_the_requests_and_a_host_its_own_limit(tmp_path: Path) -> None:
    """B2: half of `fetch.concurrency` in all, `fetch.concurrency_per_host` of one host."""
    fetch = {"concurrency": 8, "concurrency_per_host": 3}
    config = a_config(tmp_path, fetch=fetch)
    async with Origin("127.0.0.2") as one, Origin("127.0.0.3") as other, running(config) as proxy:
        for origin in (one, other):
            origin.latency_seconds = 0.02
            for number in range(12):
                origin.publish(f"/{number}", atom(an_item("a"), feed_id=f"urn:{origin.host}:{number}"))
        urls = [origin.url(f"/{number}") for origin in (one, other) for number in range(12)]
        begun = await bring_in(proxy, an_opml(*urls))
        await until(proxy, begun["id"], lambda found: found["asked"] > 4)
        done = await brought_in(proxy, begun["id"])
    assert done["states"] == {"remembered": 24}
    assert one.peak_requests <= 3
    assert other.peak_requests <= 3
    assert one.peak_requests + other.peak_requests >= 2


async def test_a_list_of_one_slow_host_holds_up_no_other_list(tmp_path: Path, origin: Origin) -> None:
    """B2: hosts of all lists take turns."""
    origin.publish("/0", atom(an_item("a")))
    async with Origin("127.0.0.2") as slow, running(a_config(tmp_path)) as proxy:
        slow.latency_seconds = 0.5
        for number in range(300):
            slow.publish(f"/{number}", atom(an_item("a"), feed_id=f"urn:{number}"))
        long = await bring_in(proxy, an_opml(*(slow.url(f"/{number}") for number in range(300))))
        await until(proxy, long["id"], lambda found: found["asked"] > 0)
        begun = await bring_in(proxy, an_opml(origin.url("/0")))
        assert (await brought_in(proxy, begun["id"]))["states"] == {"remembered": 1}
        assert (await look(proxy, long["id"]))["waiting"] > 250


async def test_walks_that_nobody_waits_for_leave_half_of_the_turns() -> None:
    """B2: a reader's walk begins at once, however many feeds of lists are walked."""
    walks = WalkTurns(in_all=4, per_site=4)
    began: list[str] = []

    async def walk(name: str, *, is_polled: bool) -> None:
        async with walks.turn(name, is_polled=is_polled):
            began.append(name)
            await asyncio.Event().wait()

    tasks = [asyncio.create_task(walk(f"listed {number}", is_polled=True)) for number in range(4)]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(walk(f"asked {number}", is_polled=False)) for number in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert began == ["listed 0", "listed 1", "asked 0", "asked 1"]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_nothing_is_begun_while_a_reader_s_walk_waits(tmp_path: Path, origin: Origin) -> None:
    """B2: requests of readers come first."""
    publish_chain(origin, archives=1)
    async with Origin("127.0.0.2") as other:
        other.publish("/0", atom(an_item("a")))
        walks = WalkTurns(in_all=1, per_site=1)
        async with running(a_config(tmp_path), walks=walks) as proxy:
            async with walks.turn("elsewhere"):
                await proxy.begun(origin.url("/feed"))
                assert proxy.service.load.waiting_walks == 1
                begun = await bring_in(proxy, an_opml(other.url("/0")))
                await asyncio.sleep(0.1)
                assert not other.requests
                assert (await look(proxy, begun["id"]))["waiting"] == 1
            await proxy.whole(origin.url("/feed"))
            await brought_in(proxy, begun["id"])


async def test_a_feed_at_fault_does_not_stop_the_others(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2: an error of the proxy itself fails one feed."""
    for number in range(2):
        origin.publish(f"/{number}", atom(an_item("a"), feed_id=f"urn:{number}"))
    async with running(a_config(tmp_path)) as proxy:
        find = proxy.service.openings.join

        def broken(url: str, **options: object) -> object:
            if url.endswith("/0"):
                raise RuntimeError("made up")
            return find(url, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(proxy.service.openings, "join", broken)
        done = await brought_in(
            proxy, (await bring_in(proxy, an_opml(origin.url("/0"), origin.url("/1"))))["id"]
        )
        assert [each["reason"] for each in done["failures"]] == ["internal"]
        assert done["states"] == {"remembered": 1}
        assert await proxy.metric("wholefeed_background_failures_total") == 1
