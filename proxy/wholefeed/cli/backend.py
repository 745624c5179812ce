"""Where commands about feeds get their answers: the running proxy, else the database itself.

    feeds = reach(config)
    feeds.account(url)          # the status object with its chain, as GET /status gives it

A running proxy holds the database's lock, so it is asked over HTTP at the configured address; where nothing
listens there, the database is opened. What is stored nowhere is reconstructed in a store of its own, which is
then removed: `fetch_once`, `explain_once`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar
from urllib.parse import quote

from wholefeed.app import open_service
from wholefeed.cli.access_token import known_token
from wholefeed.cli.base import run, server_address, tell, url_here
from wholefeed.config.tables import Config
from wholefeed.core.model import State
from wholefeed.core.opml import compose_opml
from wholefeed.errors import UnknownFeedError, WholefeedError
from wholefeed.library import database, search_archive
from wholefeed.service.service import FeedService
from wholefeed.web.answer import Representation, prepare, slices
from wholefeed.web.api import account_object, status_object, summary_object
from wholefeed.web.opml import exported
from wholefeed.web.request import feed_url

_T = TypeVar("_T")
JsonObject = dict[str, Any]
"""A JSON object of the HTTP interface (docs/design.md#the-interface)."""
ShowProgress = Callable[[Mapping[str, Any]], None]
"""Is told the status object about twice a second."""
_LOOK_SECONDS: Final = 0.5
"""Between two looks at a refresh that is under way."""


def reach(config: Config) -> Feeds:
    """Return the running proxy, or the database where none listens.

    Raises:
        StrangerError: Something else listens at the configured address.
    """
    server = Server(config)
    return server if server.is_there() else Database(config)


class Feeds(Protocol):
    """What commands ask, by canonical URL; all raise `UnknownFeedError` where nothing is stored for it."""

    def listed(self) -> list[JsonObject]:
        """The known feeds, as GET /feeds answers."""

    def exported(self) -> bytes:
        """Return the known feeds as a subscription list, through the proxy as this machine reaches it."""

    def account(self, url: str) -> JsonObject:
        """Return the status object with the chain."""

    def refresh(self, url: str, *, is_full: bool, progress: ShowProgress | None) -> JsonObject:
        """Refetch now, retry what is missing, wait for the end, and return the status object."""

    def forget(self, url: str) -> None:
        """Delete the feed and everything that is stored of it."""

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


class GoneError(StrangerError):
    """Nothing listens at the configured address, or what did has ended."""


_ANSWER_SECONDS: Final = 30
_PIECE_BYTES: Final = 1 << 16
_NO_ENTRY: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Server:
    """The proxy at the configured address."""

    def __init__(self, config: Config) -> None:
        self._host, self._port = server_address(config)
        self._token = known_token(config)
        self._socket: socket.socket | None = None
        """That of the last connection."""
        self._has_hung_up = False

    def is_there(self) -> bool:
        """Whether a proxy listens.

        Raises:
            StrangerError: Something else does.
        """
        try:
            status, told = self._ask("GET", "/healthz")
        except GoneError:
            return False
        if status != HTTPStatus.OK or told != {"status": "ok"}:
            raise StrangerError(
                f"what listens on {self._where} is not wholefeed; where that is say server.port"
                " and WHOLEFEED_SERVER_PORT"
            )
        return True

    def listed(self) -> list[JsonObject]:
        found: list[JsonObject] = self._answer("GET", "/feeds")
        return found

    def exported(self) -> bytes:
        with self._asked("GET", "/opml") as response:
            body = self._rest(response)
        if response.status != HTTPStatus.OK:
            raise self._refusal(response.status, _json(body))
        return body

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

    async def fetch(
        self, url: str, output: BinaryIO, *, wait_seconds: float, progress: ShowProgress | None
    ) -> State:
        try:
            return await self._fetch(url, output, wait_seconds, progress)
        except asyncio.CancelledError:
            self._hang_up()
            raise

    async def _fetch(
        self, url: str, output: BinaryIO, wait_seconds: float, progress: ShowProgress | None
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
        # Not straight to the output: the proxy lets a reader that pauses go, and may break off half-way.
        with tempfile.TemporaryFile(prefix="wholefeed-") as spool:
            with self._asked("GET", _with_url("/feed?wait=0", url)) as response:
                if response.status != HTTPStatus.OK:
                    raise self._refusal(response.status, _json(self._rest(response)))
                for piece in self._pieces(response):
                    spool.write(piece)
                state = self._state(response)
            spool.seek(0)
            while piece := spool.read(_PIECE_BYTES):
                output.write(piece)
        return state

    def _state(self, response: http.client.HTTPResponse) -> State:
        """Return what the answer says that it is; of a feed that is cut, partial."""
        told, *parameters = response.headers.get("Feed-Reconstruction", "").split(";")
        try:
            state = State(told)
        except ValueError as exc:
            raise StrangerError(f"the answer of {self._where} has no Feed-Reconstruction") from exc
        if "cut" not in parameters:
            return state
        tell(f"limits.answer_bytes of the proxy on {self._where} cuts the feed: older entries are left out")
        return State.PARTIAL

    def _pieces(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Give the body, and fail where it breaks off."""
        if response.length is None and not response.chunked:
            raise StrangerError(f"the answer of {self._where} does not say how long it is")
        while True:
            with self._failing_alike():
                piece = response.read(_PIECE_BYTES)
            if not piece:
                break
            yield piece
        if response.length:
            raise self._gone("the answer breaks off")

    def _answer(self, method: str, path: str, url: str = "") -> Any:
        status, told = self._ask(method, _with_url(path, url) if url else path)
        if status < HTTPStatus.BAD_REQUEST:
            return told
        raise self._refusal(status, told)

    def _ask(self, method: str, path: str) -> tuple[int, Any]:
        with self._asked(method, path) as response:
            return response.status, _json(self._rest(response))

    def _rest(self, response: http.client.HTTPResponse) -> bytes:
        with self._failing_alike():
            return response.read()

    @contextmanager
    def _asked(self, method: str, path: str) -> Iterator[http.client.HTTPResponse]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_SECONDS)
        try:
            with self._failing_alike():
                connection.connect()
                self._socket = connection.sock
                if self._has_hung_up:
                    raise self._gone("it is not asked any more")
                connection.request(method, path, headers=headers)
                response = connection.getresponse()
            yield response
        finally:
            connection.close()

    def _hang_up(self) -> None:
        """End what a thread waits for: a thread cannot be cancelled."""
        self._has_hung_up = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _failing_alike(self) -> Iterator[None]:
        """Say in the same way whatever a connection fails with."""
        try:
            yield
        except TimeoutError as exc:
            raise StrangerError(f"no answer from {self._where} in {_ANSWER_SECONDS} s") from exc
        except (ConnectionError, http.client.IncompleteRead) as exc:
            raise self._gone(exc) from exc
        except http.client.HTTPException as exc:
            raise StrangerError(f"what listens on {self._where} does not speak HTTP: {exc!r}") from exc
        except OSError as exc:
            raise self._gone(exc) from exc

    def _refusal(self, status: int, told: Any) -> WholefeedError:
        detail = told.get("detail", "") if isinstance(told, dict) else ""
        if status == HTTPStatus.NOT_FOUND:
            return UnknownFeedError(detail)
        kind = StrangerError if status in _NO_ENTRY else WholefeedError
        return kind(f"the proxy on {self._where} answered {status}: {detail}")

    def _gone(self, why: object) -> GoneError:
        return GoneError(f"the proxy on {self._where} has gone: {why}")

    @property
    def _where(self) -> str:
        return f"{self._host}, port {self._port}"


def _with_url(path: str, url: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}url={quote(url, safe='')}"


def _json(body: bytes) -> Any:
    """Return what an answer says; None where it is no JSON."""
    with suppress(ValueError):
        return json.loads(body)
    return None


class Database:
    """The configured database, opened for each question."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._is_there = bool(config.store.url) or Path(config.store.path).exists()

    def listed(self) -> list[JsonObject]:
        async def ask(service: FeedService) -> list[JsonObject]:
            return [summary_object(feed) for feed in await service.feeds()]

        return self._answer(ask) if self._is_there else []

    def exported(self) -> bytes:
        async def work() -> bytes:
            async with open_service(self._patient) as (_, service):
                return await exported(service, url_here(self._config), self._config)

        return run(work()) if self._is_there else compose_opml("wholefeed", [])

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
        return await _written(
            self._config,
            feed_url(url),
            output,
            wait_seconds=wait_seconds,
            progress=progress,
            must_be_known=True,
        )

    @property
    def _patient(self) -> Config:
        """The configuration for whoever waits as long as the database takes: no reader gives up meanwhile."""
        limits = replace(self._config.limits, respond_within_seconds=self._config.limits.walk_seconds)
        return replace(self._config, limits=limits)

    def _require(self) -> None:
        if not self._is_there:
            raise UnknownFeedError(
                f"nothing is stored: there is no database {self._config.store.path}"
                " (store.path, WHOLEFEED_STORE_PATH)"
            )

    def _answer(self, ask: Callable[[FeedService], Awaitable[_T]]) -> _T:
        self._require()

        async def work() -> _T:
            async with open_service(self._patient) as (_, service):
                return await ask(service)

        return run(work())


async def fetch_once(
    config: Config,
    url: str,
    output: BinaryIO,
    *,
    wait_seconds: float,
    progress: ShowProgress | None,
) -> State:
    """Reconstruct one feed with a store of its own, write it, and return its state.

    Args:
        config: Its store is left alone.
        url: As a reader would give it.
        output: Where the document goes, uncompressed.
        wait_seconds: When to take what is there.
        progress: Told the status object about twice a second.

    Raises:
        WholefeedError: There is no feed to be had.
    """
    async with database() as path:
        own = replace(config, store=replace(config.store, path=path, url=""))
        return await _written(own, feed_url(url), output, wait_seconds=wait_seconds, progress=progress)


async def explain_once(
    config: Config, url: str, *, wait_seconds: float | None, progress: ShowProgress | None
) -> JsonObject:
    """Reconstruct one feed with a store of its own, and return the status object with its chain.

    Args and errors as in `fetch_once`; `wait_seconds` None waits for the end of the walk.
    """
    canonical = feed_url(url)
    async with database() as path:
        own = replace(config, store=replace(config.store, path=path, url=""))
        async with open_service(own) as (_, service):
            wait = own.limits.walk_seconds if wait_seconds is None else wait_seconds
            async with _watched(service, canonical, progress):
                await search_archive(own, service, canonical, wait_seconds=wait)
                async with service.answer(canonical, wait_seconds=wait):
                    return account_object(*await service.account(canonical))


async def _written(
    config: Config,
    url: str,
    output: BinaryIO,
    *,
    wait_seconds: float,
    progress: ShowProgress | None,
    must_be_known: bool = False,
) -> State:
    """Write one feed of the configured store, refreshed when its time has come, and return its state.

    Raises:
        UnknownFeedError: It must be known, and nothing is stored for the URL.
        StoreError: The store cannot be used.
    """
    async with open_service(config) as (store, service), _watched(service, url, progress):
        if must_be_known:
            await service.status(url)
        await search_archive(config, service, url, wait_seconds=wait_seconds)
        async with service.answer(url, wait_seconds=wait_seconds) as reconstruction:
            asked = Representation(self_url=url, is_gzip=False, warns=config.history.warn_entry)
            async for piece in slices(prepare(reconstruction, asked), store):
                await asyncio.to_thread(output.write, piece)
            if progress is not None:
                progress(status_object(await service.status(url)))
            return reconstruction.state


@asynccontextmanager
async def _watched(service: FeedService, url: str, progress: ShowProgress | None) -> AsyncIterator[None]:
    watching = None if progress is None else asyncio.create_task(_watch(service, url, progress))
    try:
        yield
    finally:
        if watching is not None:
            watching.cancel()


async def _watch(service: FeedService, url: str, progress: ShowProgress) -> None:
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if await service.is_known(url):
            progress(status_object(await service.status(url)))
