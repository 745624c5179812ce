"""What is on disk when a reader is answered (docs/design.md#the-store)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from wholefeed.store import store
from wholefeed.store.base import fetch_value
from wholefeed.store.sqlite import Writer
from wholefeed.web.keys import STORE


async def test_nobody_is_answered_with_what_a_power_cut_undoes(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written before a publication waits for the disk with it, and who asked for it with that."""
    monkeypatch.setattr(store, "WRITE_SECONDS", 0.01)
    lasting: list[bool] = []
    run = Writer.run

    async def noted(writer: Writer, work: Any, *, is_lasting: bool = True, **options: Any) -> Any:
        result = await run(writer, work, is_lasting=is_lasting, **options)
        lasting.append(is_lasting)
        return result

    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)), etag='"1"')
    async with running(a_config(tmp_path)) as proxy:
        await proxy.whole(origin.url("/feed?other"))
        monkeypatch.setattr(Writer, "run", noted)
        await proxy.whole(url)
        assert lasting == [False, False, True], "it is made, its document put, and both published"
        lasting.clear()
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)), etag='"2"')
        await proxy.refreshed(url)
        assert lasting == [False, True]
        lasting.clear()
        proxy.clock.advance(100_000)
        await proxy.get(url)
        assert await proxy.store.feed_by_url(url)
        assert lasting == [False], "that nothing has changed can be asked again"


async def test_what_is_written_lasts_unless_more_comes(proxy: Proxy) -> None:
    """A change by itself is on disk when it is told; what another one follows is with that one."""
    store = proxy.app[STORE]
    levels = [
        await store.write(lambda db: fetch_value(db, "PRAGMA synchronous"), comes_more=comes_more)
        for comes_more in (False, True, False)
    ]
    assert levels == [2, 1, 2]
