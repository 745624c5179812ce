"""Readings of feed readers' files that fail (I4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import StartProxy
from tests.saved_files import Post, newsboat
from wholefeed.errors import WorkError
from wholefeed.workers.pool import Workers


async def test_a_database_that_ends_its_reader_is_refused(
    start: StartProxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I4: it is the file's fault, and the feed is served as before."""
    proxy = await start()
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("b", 2)))
    before = await proxy.whole(url)

    async def crash(*_: Any) -> None:
        raise WorkError("expected a result from a worker, got its end by signal 11")

    monkeypatch.setattr(Workers, "run_briefly", crash)
    body = newsboat([Post("a", 1, url)])
    reply = await proxy.ask("POST", "/import", params={"url": url}, data=body)
    assert (reply.status, reply.slug) == (422, "unsupported-format")
    assert (await proxy.get(url)).body == before.body
