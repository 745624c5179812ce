"""The URL to subscribe to, as the proxy itself takes it."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from yarl import URL

from tests.feeds import ids, publish_chain
from tests.origin import Origin
from tests.running import StartProxy
from wholefeed.config.tables import ServerConfig
from wholefeed.web.moving import proxied_url

FEED = "https://example.org/feed?a=1&b=2"
TOKEN = "a-token&more=100%+#"
KEY = "a-key-that-nobody-guesses"


def test_without_secrets_it_is_the_feed_s_own() -> None:
    """Where nothing is set, the URL holds the feed's and the view that is asked for, percent-encoded."""
    options = {"since": "2026-01-31T00:00:00+01:00", "wait": "1"}
    assert proxied_url("http://p.test/x", FEED, ServerConfig(), options) == (
        "http://p.test/x/feed?url=https%3A%2F%2Fexample.org%2Ffeed%3Fa%3D1%26b%3D2"
        "&since=2026-01-31T00%3A00%3A00%2B01%3A00"
    )


@pytest.mark.parametrize(
    ("server", "secrets"),
    [
        ({"access_token": TOKEN}, {"token"}),
        ({"signing_keys": [KEY]}, {"signed"}),
        ({"access_token": TOKEN, "signing_keys": [KEY]}, {"token"}),
    ],
)
async def test_it_opens_the_feed(
    start: StartProxy, origin: Origin, server: dict[str, Any], secrets: set[str]
) -> None:
    """With a token, with signing keys and with both, the URL alone is enough; without what it adds it is
    not."""
    publish_chain(origin, archives=1)
    proxy = await start(server=server)
    subscribed = proxied_url("http://p.test", origin.url("/feed"), ServerConfig(**server), {"limit": "2"})
    parts = urlsplit(subscribed)
    async with proxy.client.get(URL(f"{parts.path}?{parts.query}", encoded=True)) as response:
        assert response.status == 200
        assert len(ids(await response.read())) == 2
    assert (await proxy.get(origin.url("/feed"))).status in (401, 403)
    assert {name for name, _ in parse_qsl(parts.query)} == secrets | {"url", "limit"}
