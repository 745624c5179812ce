"""Where commands about feeds get their answers: the running proxy, else the database itself.

    feeds = reach(config)
    feeds.account(url)          # the status object with its chain, as GET /status gives it

A running proxy holds the database's lock, so it is asked over HTTP at the configured address; where nothing
listens there, the database is opened.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar
from urllib.parse import quote

from wholefeed.app import open_service
from wholefeed.cli.access_token import known_token
from wholefeed.cli.command import run, server_address
from wholefeed.cli.once import ShowProgress, fetch_stored
from wholefeed.config.tables import Config
from wholefeed.core.terms import State
from wholefeed.errors import UnknownFeedError, WholefeedError
from wholefeed.service.service import FeedService
from wholefeed.web.status import account_object, status_object, summary_object

_T = TypeVar("_T")

_ANSWER_SECONDS: Final = 30
_LOOK_SECONDS: Final = 0.5
"""Between two looks at a refresh that is under way."""
_PIECE_BYTES: Final = 1 << 16
_NO_ENTRY: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

JsonObject = dict[str, Any]
"""A JSON object of the HTTP interface (docs/design.md#the-interface)."""


class Feeds(Protocol):
    """What commands ask, by canonical URL; all raise `UnknownFeedError` where nothing is stored for it."""

    def listed(self) -> list[JsonObject]:
        """Return the known feeds."""

    def account(self, url: str) -> JsonObject:
        """Return the status object with the chain."""

    def refresh(self, url: str, *, is_full: bool, progress: ShowProgress | None) -> JsonObject:
        """Refetch now, retry what is missing, wait for the end, and return the status object."""

    def forget(self, url: str) -> None:
        """Delete the feed."""

    async def fetch(
        self, url: str, output: BinaryIO, *, wait_seconds: float, progress: ShowProgress | None
    ) -> State:
        """Write the feed, refreshed when its time has come, and return its state.

        Args:
            url: Of the feed.
            output: Where the document goes, uncompressed.
            wait_seconds: When to take what is there of a feed that is being refreshed.
            progress: Told the status object about twice a second.
        """


class StrangerError(WholefeedError):
    """What listens at the configured address is no wholefeed, or one that does not let this command in."""


def reach(config: Config) -> Feeds:
    """Return the running proxy, or the database where none listens.

    Raises:
        StrangerError: Something else listens at the configured address.
    """
    server = Server(config)
    return server if server.is_there() else Database(config)


class Server:
    """The proxy at the configured address."""

    def __init__(self, config: Config) -> None:
        self._host, self._port = server_address(config)
        self._token = known_token(config)

    def is_there(self) -> bool:
        """Whether a proxy listens.

        Raises:
            StrangerError: Something else does.
        """
        try:
            status, told = self._ask("GET", "/healthz")
        except OSError:
            return False
        if status != HTTPStatus.OK or told != {"status": "ok"}:
            raise StrangerError(f"what listens on {self._where} is not wholefeed: see server.port")
        return True

    def listed(self) -> list[JsonObject]:
        found: list[JsonObject] = self._answer("GET", "/feeds")
        return found

    def account(self, url: str) -> JsonObject:
        found: JsonObject = self._answer("GET", "/status", url)
        return found

    def refresh(self, url: str, *, is_full: bool, progress: ShowProgress | None) -> JsonObject:
        status: JsonObject = self._answer("POST", "/refresh?full=1" if is_full else "/refresh", url)
        while status["refreshing"]:
            if progress is not None:
                progress(status)
            time.sleep(_LOOK_SECONDS)
            status = self._answer("GET", "/status", url)
        return status

    def forget(self, url: str) -> None:
        self._answer("DELETE", "/feed", url)

    @property
    def _where(self) -> str:
        return f"{self._host}, port {self._port}"

    async def fetch(
        self, url: str, output: BinaryIO, *, wait_seconds: float, progress: ShowProgress | None
    ) -> State:
        deadline = time.monotonic() + wait_seconds
        status: JsonObject = await asyncio.to_thread(self._answer, "GET", "/status", url)
        # Asked as a reader asks, the proxy refreshes what is due; one entry is enough until that has ended.
        await asyncio.to_thread(self._ask, "GET", _with_url("/feed?limit=1&wait=0", url))
        while True:
            status = await asyncio.to_thread(self._answer, "GET", "/status", url)
            if progress is not None:
                progress(status)
            if not status["refreshing"] or time.monotonic() >= deadline:
                return await asyncio.to_thread(self._download, url, output)
            await asyncio.sleep(min(_LOOK_SECONDS, max(deadline - time.monotonic(), 0.0)))

    def _download(self, url: str, output: BinaryIO) -> State:
        with ExitStack() as stack:
            try:
                response = stack.enter_context(self._asked("GET", _with_url("/feed?wait=0", url)))
            except OSError as exc:
                raise self._gone(exc) from exc
            if response.status != HTTPStatus.OK:
                raise self._refusal(response.status, _json(response.read()))
            left = int(response.headers["Content-Length"])
            while left:
                try:
                    piece = response.read(min(left, _PIECE_BYTES))
                except OSError as exc:
                    raise self._gone(exc) from exc
                if not piece:
                    raise self._gone("the answer breaks off")
                output.write(piece)
                left -= len(piece)
            return State(response.headers["Feed-Reconstruction"].partition(";")[0])

    def _answer(self, method: str, path: str, url: str = "") -> Any:
        try:
            status, told = self._ask(method, _with_url(path, url) if url else path)
        except OSError as exc:
            raise self._gone(exc) from exc
        if status < HTTPStatus.BAD_REQUEST:
            return told
        raise self._refusal(status, told)

    def _ask(self, method: str, path: str) -> tuple[int, Any]:
        with self._asked(method, path) as response:
            return response.status, _json(response.read())

    @contextmanager
    def _asked(self, method: str, path: str) -> Iterator[http.client.HTTPResponse]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path, headers=headers)
            yield connection.getresponse()
        except TimeoutError as exc:
            raise StrangerError(f"no answer from {self._where} in {_ANSWER_SECONDS} s") from exc
        except http.client.HTTPException as exc:
            raise StrangerError(f"what listens on {self._where} does not speak HTTP: {exc!r}") from exc
        finally:
            connection.close()

    def _refusal(self, status: int, told: Any) -> WholefeedError:
        detail = told.get("detail", "") if isinstance(told, dict) else ""
        if status == HTTPStatus.NOT_FOUND:
            return UnknownFeedError(detail)
        kind = StrangerError if status in _NO_ENTRY else WholefeedError
        return kind(f"the proxy on {self._where} answered {status}: {detail}")

    def _gone(self, why: object) -> WholefeedError:
        return WholefeedError(f"the proxy on {self._where} has gone: {why}")


def _with_url(path: str, url: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}url={quote(url, safe='')}"


def _json(body: bytes) -> Any:
    """Return what an answer says; None where it is no JSON."""
    with suppress(ValueError):
        return json.loads(body)
    return None


class Database:
    """The database, opened for each question."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._is_there = Path(config.store.path).exists()

    def listed(self) -> list[JsonObject]:
        async def ask(service: FeedService) -> list[JsonObject]:
            return [summary_object(feed) for feed in await service.feeds()]

        return self._answer(ask) if self._is_there else []

    def account(self, url: str) -> JsonObject:
        async def ask(service: FeedService) -> JsonObject:
            return account_object(*await service.account(url))

        return self._answer(ask)

    def refresh(self, url: str, *, is_full: bool, progress: ShowProgress | None) -> JsonObject:
        async def ask(service: FeedService) -> JsonObject:
            status = await service.refresh(url, is_full=is_full)
            while status.is_refreshing:
                if progress is not None:
                    progress(status_object(status))
                await asyncio.sleep(_LOOK_SECONDS)
                status = await service.status(url)
            return status_object(status)

        return self._answer(ask)

    def forget(self, url: str) -> None:
        self._answer(lambda service: service.forget(url))

    async def fetch(
        self, url: str, output: BinaryIO, *, wait_seconds: float, progress: ShowProgress | None
    ) -> State:
        self._require()
        return await fetch_stored(self._config, url, output, wait_seconds=wait_seconds, progress=progress)

    def _require(self) -> None:
        if not self._is_there:
            raise UnknownFeedError(f"nothing is stored: there is no database {self._config.store.path}")

    def _answer(self, ask: Callable[[FeedService], Awaitable[_T]]) -> _T:
        self._require()

        async def work() -> _T:
            async with open_service(self._config) as (_, service):
                return await ask(service)

        return run(work())
