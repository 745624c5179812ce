"""The files that real readers keep are put back into a feed that has lost its entries (I4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from tests.feeds import an_item, atom, own_ids, rss
from tests.origin import Origin
from tests.readers.conftest import installed
from tests.readers.harness import Server
from tests.readers.programs import Lemon24, Newsboat

pytestmark = pytest.mark.asyncio(loop_scope="session")

FILES = {Newsboat: "cache.db", Lemon24: "reader.sqlite"}


@pytest.mark.parametrize("make", [atom, rss], ids=["atom", "rss"])
@pytest.mark.parametrize("kind", FILES, ids=lambda kind: kind.name)
async def test_the_entries_that_a_reader_keeps_join_the_feed(
    proxy_of_readers: Server,
    origin: Origin,
    tmp_path: Path,
    kind: type[Newsboat | Lemon24],
    make: Callable[..., bytes],
) -> None:
    """I4: a reader polls three posts; two of them have gone when the proxy meets the feed."""
    url, reader = origin.url("/feed"), installed(kind, tmp_path)
    origin.publish("/feed", make(an_item("c", 3), an_item("b", 2), an_item("a", 1)))
    await reader.subscribe(url)
    origin.publish("/feed", make(an_item("d", 4), an_item("c", 3)))
    body = (reader.folder / FILES[kind]).read_bytes()
    place = f"http://127.0.0.1:{proxy_of_readers.served.port}/import"
    async with (
        aiohttp.ClientSession() as session,
        session.post(place, params={"url": url, "name": FILES[kind]}, data=body) as response,
    ):
        said = json.loads(await response.read())
    assert (response.status, said["entries"], said["new"]) == (200, 3, 2), said
    reply = await proxy_of_readers.served.get(url)
    assert own_ids(reply.body) == ["d", "c", "b", "a"]
    assert reply.body.count(b"text of ") == 4
