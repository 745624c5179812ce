"""A private publisher, another one that is out for its secrets, and a proxy that knows them.

async with a_world(tmp_path) as world:
    world.private.publish("/feed", ...)
    reply = await world.proxy.ask("GET", "/feed", params={"url": world.url("/feed")}, headers=world.token)
    assert world.bears_secrets(world.private.requests[0])

Names resolve to public addresses, which sockets of a test's own lead to loopback: so no network that is
allowed hides what would go out to the internet.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import trustme

from tests.answers import Request
from tests.fetchers import Names, opening
from tests.origin import Origin
from tests.running import Proxy, Reply, a_config, running
from wholefeed.config.tables import config_of

TOKEN: Final = "the-token-of-the-readers"
KEY: Final = "the-key-that-signs-urls"
PASSWORD: Final = "canary-in-a-file"
API_KEY: Final = "canary-in-a-header"
CREDENTIALS: Final = f"reader:{PASSWORD}"
BASIC: Final = base64.b64encode(CREDENTIALS.encode()).decode()
PLAIN: Final = {"Accept-Encoding": "identity"}
SECRETS: Final = (PASSWORD, API_KEY, BASIC)

_ADDRESSES: Final = {"93.184.216.34": "127.0.0.2", "93.184.216.35": "127.0.0.3"}
NAMES: Final = {"private.example": ("93.184.216.34",), "other.example": ("93.184.216.35",)}


class Diverted(socket.socket):
    """Leads connections for public addresses to loopback."""

    def connect(self, address: Any, /) -> None:
        super().connect((_ADDRESSES.get(address[0], address[0]), address[1]))


def publisher(folder: Path, **changes: object) -> dict[str, object]:
    """A table of [[publisher]] that has both kinds of secrets."""
    file = folder / "credentials"
    file.write_text(CREDENTIALS + "\n")
    return {
        "host": "private.example",
        "headers": {"X-Api-Key": API_KEY},
        "credentials_file": str(file),
        **changes,
    }


@dataclass
class World:
    """The publishers and the proxy."""

    private: Origin
    """https://private.example"""
    plain: Origin
    """http://private.example, at another port."""
    other: Origin
    """https://other.example"""
    proxy: Proxy
    token: Mapping[str, str] = field(default_factory=lambda: {**PLAIN, "Authorization": f"Bearer {TOKEN}"})

    def url(self, path: str) -> str:
        return f"https://private.example:{self.private.port}{path}"

    def plain_url(self, path: str) -> str:
        return f"http://private.example:{self.plain.port}{path}"

    def other_url(self, path: str) -> str:
        return f"https://other.example:{self.other.port}{path}"

    async def whole(self, url: str) -> Reply:
        """The feed when nothing is loading any more, asked for with the token."""
        while True:
            reply = await self.proxy.ask("GET", "/feed", params={"url": url, "wait": "5"}, headers=self.token)
            if reply.status != 200 or reply.state != "loading":
                return reply

    async def told(self, url: str) -> list[bytes]:
        """All answers about a feed, and about all feeds, to a client with the token."""
        named = f"?url={quote(url, safe='')}"
        targets = [f"{path}{named}" for path in ("/feed", "/view", "/status", "/events", "/")]
        found = [
            await self.proxy.ask("GET", target, headers={**self.token, "Accept": accept})
            for target in (*targets, "/", "/feeds", "/opml", "/metrics", "/openapi.json")
            for accept in ("*/*", "text/html")
        ]
        return [repr(sorted(each.headers.items())).encode() + each.body for each in found]


def bears_secrets(request: Request) -> bool:
    return request.headers.get("authorization") == f"Basic {BASIC}" and (
        request.headers.get("x-api-key") == API_KEY
    )


def bears_none(request: Request) -> bool:
    return not any(secret.encode() in request.head for secret in SECRETS)


@asynccontextmanager
async def a_world(
    path: Path,
    *,
    publishers: list[dict[str, object]] | None = None,
    server: Mapping[str, object] | None = None,
    parts: Mapping[str, Any] | None = None,
    **sections: Any,
) -> AsyncIterator[World]:
    """Start the publishers and the proxy; `parts` as for `running`."""
    authority, trust = trustme.CA(), ssl.create_default_context()
    authority.configure_trust(trust)

    def shown(name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        return context

    sections.setdefault("fetch", {})
    sections["fetch"] = {"allow_networks": (), **sections["fetch"]}
    config = a_config(path, server=server or {"access_token": TOKEN}, **sections)
    if publishers is None:
        publishers = [await asyncio.to_thread(publisher, path)]
    own = await asyncio.to_thread(config_of, {"publisher": publishers})
    config = replace(config, publisher=own.publisher)
    opened = opening(resolver=Names(NAMES), make_socket=Diverted, ssl_context=trust)
    async with AsyncExitStack() as stack:
        private = await stack.enter_async_context(Origin("127.0.0.2", tls=shown("private.example")))
        plain = await stack.enter_async_context(Origin("127.0.0.2"))
        other = await stack.enter_async_context(Origin("127.0.0.3", tls=shown("other.example")))
        proxy = await stack.enter_async_context(running(config, open_fetcher=opened, **(parts or {})))
        yield World(private, plain, other, proxy)
