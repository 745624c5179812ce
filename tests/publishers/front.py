"""Between a publisher and the network: firewall, cache, distance, and a test's hook.

`Front` is the common part of the simulators. `Through` puts the same before a publisher that runs elsewhere,
such as a real WordPress: the origin records the requests, and the hook may change the site between them.

    front = Through(origin, real.url)
    front.on_request = lambda number, request: real.add("New") if number == 15 else None
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Literal

import aiohttp

from tests.answers import Answer, Document, Redirect, Request, Status, Wire
from tests.origin import Origin

_HOP_BY_HOP: Final = {"connection", "content-length", "date", "host", "transfer-encoding", "keep-alive"}


class Front(ABC):
    """A publisher below a folder of an origin.

    Args:
        origin: The owner of its address.
        prefix: The folder, as "/blog".
    """

    def __init__(self, origin: Origin, prefix: str = "") -> None:
        self.origin = origin
        self.prefix = prefix
        self.url = origin.url(prefix)
        """Without a slash at its end."""
        self.on_request: Callable[[int, Request], object] | None = None
        """Called with each request and its number, counted from 1, before the answer. May be a coroutine."""
        self.count = 0
        """Requests so far."""
        self.queries: Literal["honoured", "ignored", "redirected"] = "honoured"
        """A cache's treatment of query strings."""
        self.copies = 0
        """Servers in front that answer in turn, each by its first answer for a path, ignoring the query; 0:
        none."""
        self._kept: dict[tuple[int, str, str], Answer] = {}
        self.refusal: int | None = None
        """The answer to every request: 403, 429, 503."""
        self.retry_after_seconds: int | None = None
        """Sent with a refusal."""
        self.latency_seconds = 0.0
        """Before each answer."""
        origin.answer_below(prefix + "/", self)

    async def send(self, request: Request, wire: Wire) -> None:
        self.count += 1
        if self.on_request is not None:
            changing = self.on_request(self.count, request)
            if inspect.isawaitable(changing):
                await changing
        if self.latency_seconds:
            await asyncio.sleep(self.latency_seconds)
        answer = await self._answer(request)
        await answer.send(request, wire)

    async def _answer(self, request: Request) -> Answer:
        if self.refusal is not None:
            wait = self.retry_after_seconds
            return Status(self.refusal, (("Retry-After", str(wait)),) if wait is not None else ())
        target = request.target.removeprefix(self.prefix)
        path, _, query = target.partition("?")
        if query and self.queries == "redirected":
            return Redirect(self.url + path, 301)
        if self.copies:
            key = (self.count % self.copies, request.method, path)
            if key not in self._kept:
                self._kept[key] = await self.behind(path, request)
            return self._kept[key]
        return await self.behind(path if self.queries == "ignored" else target, request)

    @abstractmethod
    async def behind(self, target: str, request: Request) -> Answer:
        """Answer a request from the gateway, with the target below the folder."""


class Through(Front):
    """A publisher that runs elsewhere, as if it were here: it is told this host's name.

    Args:
        origin: The owner of its address here.
        url: Where it runs, without a slash at its end.
        rest_status: As with the simulator of WordPress.
    """

    def __init__(self, origin: Origin, url: str, *, rest_status: int | None = None) -> None:
        super().__init__(origin)
        self.elsewhere = url
        self.rest_status = rest_status

    async def behind(self, target: str, request: Request) -> Answer:
        if self.rest_status is not None and ("/wp-json/" in target or "rest_route=" in target):
            return Status(self.rest_status)
        headers = {name: value for name, value in request.headers.items() if name not in _HOP_BY_HOP}
        headers["Host"] = request.headers["host"]
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.request(
                request.method, self.elsewhere + target, headers=headers, allow_redirects=False
            ) as reply,
        ):
            fields = ((name.decode(), value.decode("latin-1")) for name, value in reply.raw_headers)
            return Document(
                body=await reply.read(),
                status=reply.status,
                headers=tuple((name, value) for name, value in fields if name.lower() not in _HOP_BY_HOP),
            )
