"""How readers show the access token: in the URL, or as the password of Basic (docs/readers.md)."""

from __future__ import annotations

import pytest

from tests.feeds import publish_chain
from tests.origin import Origin
from tests.readers.harness import TOKEN, Reader, Server, with_password

pytestmark = pytest.mark.asyncio(loop_scope="session")
"""The event loop that the proxy's process is read in."""

NO_PASSWORD_IN_A_URL = {"podcastparser"}
"""Those that make no `Authorization` of what stands in the URL."""


async def test_a_token_in_the_url_opens_the_feed(
    closed_proxy: Server, origin: Origin, reader: Reader
) -> None:
    """`&token=…` is a part of the URL as any other, and stays out of the log."""
    expected = publish_chain(origin, archives=2)
    url = origin.url("/feed")
    async with closed_proxy.asked(url) as statuses:
        await reader.subscribe(closed_proxy.feed(url, token=TOKEN))
    assert statuses == [200] * len(statuses) != []
    assert sorted(await reader.titles()) == sorted(expected)
    assert TOKEN not in str(closed_proxy.served.lines)


async def test_a_token_as_password_opens_the_feed(
    closed_proxy: Server, origin: Origin, reader: Reader
) -> None:
    """`http://anything:TOKEN@host/feed?url=…`, which readers send as Basic, some once they got 401."""
    if reader.name in NO_PASSWORD_IN_A_URL:
        pytest.skip(f"{reader.name} fetches nothing itself")
    expected = publish_chain(origin, archives=2)
    url = origin.url("/feed")
    await reader.subscribe(with_password(closed_proxy.feed(url), TOKEN))
    assert sorted(await reader.titles()) == sorted(expected)
