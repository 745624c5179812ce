"""wholefeed.service.site_rounds: which due feeds are worked on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from wholefeed.service.sharing import Sharing
from wholefeed.service.site_rounds import SiteRounds


async def test_work_that_ends_while_due_feeds_are_read_is_not_begun_again() -> None:
    """H1, T2: the store may give rows from before its end."""
    feed, is_due, worked = SimpleNamespace(id=1), True, 0
    is_looking, may_end, has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def list_due(*_: object, **__: object) -> list[Any]:
        return [feed] if is_due else []

    async def read(work: Any) -> Any:
        found = work(None)
        if worked == 1 and not has_ended.is_set():  # the read began before the end of the work
            is_looking.set()
            await has_ended.wait()
        return found

    async def work(_: object) -> None:
        nonlocal is_due, worked
        worked += 1
        await may_end.wait()
        is_due = False

    store = SimpleNamespace(read=read)
    context: Any = SimpleNamespace(store=store, sharing=Sharing(), now=lambda: 0.0, site_of=lambda url: url)
    rounds = SiteRounds(
        context,
        "lists",
        list_due=list_due,
        next_due_at=lambda *_, **__: None,
        url_of=lambda _: "a",
        work=work,
    )
    async with asyncio.timeout(60):
        running = asyncio.create_task(rounds.run())
        while not worked:
            await asyncio.sleep(0)
        rounds.wake()
        await is_looking.wait()
        may_end.set()
        await rounds.finish(feed)  # type: ignore[arg-type]
        has_ended.set()
        for _ in range(20):
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, rounds.close(), return_exceptions=True)
    assert worked == 1
