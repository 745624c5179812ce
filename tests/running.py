"""A running proxy on loopback, and a clock that a test can put forward."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from multidict import CIMultiDictProxy
from pytest_aiohttp import AiohttpClient

from tests import empty_store
from tests.named_store import NamedStore
from wholefeed.app import make_app
from wholefeed.config.tables import (
    Config,
    FetchConfig,
    FreshnessConfig,
    HistoryConfig,
    LimitsConfig,
    StoreConfig,
)
from wholefeed.service.service import FeedService
from wholefeed.web.keys import CONFIG, LISTENERS, SERVICE, STORE

LOOPBACK = ("127.0.0.0/8", "::1/128")


class Clock:
    """The wall clock plus a test's offset."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead_seconds

    def advance(self, seconds: float) -> None:
        self.ahead_seconds += seconds


class StandingClock(Clock):
    """A clock that moves only when a test puts it forward."""

    def __init__(self) -> None:
        super().__init__()
        self.began_at = time.time()

    def __call__(self) -> float:
        return self.began_at + self.ahead_seconds


@dataclass(frozen=True)
class Reply:
    """An answer of the proxy, read to its end."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def state(self) -> str:
        return self.headers["Feed-Reconstruction"].partition(";")[0]

    @property
    def reconstruction(self) -> str:
        return self.headers["Feed-Reconstruction"]

    @property
    def slug(self) -> str:
        """Slug of a problem."""
        return str(json.loads(self.body)["type"]).removeprefix("urn:wholefeed:")


class Proxy:
    """The proxy as a reader sees it."""

    def __init__(self, client: TestClient[web.Request, web.Application], clock: Clock) -> None:
        self.client = client
        self.clock = clock

    @property
    def app(self) -> web.Application:
        assert self.client.app is not None
        return self.client.app

    @property
    def service(self) -> FeedService:
        return self.app[SERVICE]

    @property
    def database(self) -> Path:
        return Path(self.app[CONFIG].store.path)

    @property
    def store(self) -> NamedStore:
        return NamedStore(self.app[STORE])

    async def ask(self, method: str, target: str, **options: Any) -> Reply:
        async with self.client.request(method, target, auto_decompress=False, **options) as response:
            return Reply(response.status, response.headers, await response.read())

    async def raw(self, request: bytes) -> bytes:
        """Send bytes, perhaps invalid HTTP; return the reply up to the end of the connection."""
        reader, writer = await asyncio.open_connection(self.client.host, self.client.port)
        writer.write(request)
        async with asyncio.timeout(300):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    async def get(self, url: str, *, headers: dict[str, str] | None = None, **query: str) -> Reply:
        """GET /feed?url=…, uncompressed unless the headers say otherwise."""
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        return await self.ask("GET", "/feed", params={"url": url, **query}, headers=sent)

    async def whole(self, url: str) -> Reply:
        """GET the feed when nothing is loading any more."""
        async with asyncio.timeout(300):
            reply = await self.get(url)
            while reply.status == 200 and reply.state == "loading":
                await asyncio.sleep(0.02)
                reply = await self.get(url)
            return reply

    async def begun(self, url: str) -> Reply:
        """GET the present part of a feed whose walk is blocked."""
        async with asyncio.timeout(300):
            while (reply := await self.get(url, wait="0.1")).status == 504:
                pass
            return reply

    async def status(self, url: str) -> dict[str, Any]:
        async with self.client.get("/status", params={"url": url}) as response:
            found: dict[str, Any] = await response.json()
            return found

    async def refreshed(self, url: str, *, full: bool = False) -> Reply:
        """POST /refresh, wait until it is done, and GET the feed."""
        query = {"url": url, **({"full": "1"} if full else {})}
        reply = await self.ask("POST", "/refresh", params=query)
        assert reply.status == 202, reply.body
        await self.settled()
        return await self.get(url)

    async def looked(self, url: str) -> Reply:
        """Let the feed be stale, and GET it: the proxy asks its publisher with conditions."""
        feed = await self.store.feed_by_url(url)
        assert feed is not None, "it is known"
        await self.store.update_feed(feed.id, fresh_until=0.0)
        return await self.later(url, 0)

    async def later(self, url: str, seconds: float = 90_000) -> Reply:
        """GET the feed this many seconds later, and wait for the refresh that follows."""
        self.clock.advance(seconds)
        reply = await self.whole(url)
        await self.settled()
        return reply

    async def feeds(self) -> list[dict[str, Any]]:
        """GET /feeds as a list of feeds."""
        async with self.client.get("/feeds") as response:
            found: list[dict[str, Any]] = await response.json()
            return found

    async def metric(self, name: str) -> float:
        """The sum of a metric over its labels, from GET /metrics."""
        shown = (await self.ask("GET", "/metrics")).body.decode()
        found = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", shown, re.MULTILINE)
        assert found, f"there is no metric {name}"
        return sum(map(float, found))

    async def until(self, name: str, value: float) -> None:
        """Wait until a metric has a value."""
        async with asyncio.timeout(300):
            while await self.metric(name) != value:
                await asyncio.sleep(0.01)

    @property
    def is_busy(self) -> bool:
        """Whether a refresh is under way."""
        return self.service.is_busy

    async def settled(self) -> None:
        """Wait until no refresh is under way."""
        async with asyncio.timeout(300):
            while self.is_busy:
                await asyncio.sleep(0.005)

    async def interrupted(self) -> None:
        """Cut off work under way, as the end of the program does; stored feeds are still answered."""
        await self.service.close()

    async def swept(self) -> None:
        """Run the periodic removal of unused data."""
        await self.store.upkeep.purge(now=self.clock())


def a_config(path: Path, **sections: Any) -> Config:
    """A configuration for tests: loopback may be fetched, background requests are off."""
    config = Config(
        store=StoreConfig(path=str(path / "wholefeed.db")),
        history=HistoryConfig(list="off"),
        fetch=FetchConfig(allow_networks=LOOPBACK, retries=0),
        limits=LimitsConfig(),
        freshness=FreshnessConfig(),
    )
    for name, changes in sections.items():
        config = replace(config, **{name: replace(getattr(config, name), **changes)})
    return config


@asynccontextmanager
async def running(config: Config, clock: Clock | None = None, **parts: Any) -> AsyncIterator[Proxy]:
    """Start the proxy and stop it at the end; `parts` are those that `open_service` takes."""
    clock = clock or Clock()
    async with TestClient(TestServer(_made(config, clock, **parts))) as client:
        yield _told(client, clock)


async def started(start: AiohttpClient, config: Config) -> Proxy:
    """Start the proxy; it stops at the test's end."""
    clock = Clock()
    return _told(await start(_made(config, clock)), clock)


def _made(config: Config, clock: Clock, **parts: Any) -> web.Application:
    if not config.store.url:
        empty_store.put_at(Path(config.store.path))
    return make_app(config, now=clock, **parts)


def _told(client: TestClient[web.Request, web.Application], clock: Clock) -> Proxy:
    """Return a proxy with its address."""
    proxy = Proxy(client, clock)
    proxy.app[LISTENERS].add([(client.host, client.port)])
    return proxy


StartProxy = Callable[..., Awaitable[Proxy]]
"""Takes the sections of a configuration, as `a_config` does."""
