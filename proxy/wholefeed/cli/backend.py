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
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any, BinaryIO, Final, Protocol
from urllib.parse import quote

from wholefeed.cli.access_token import known_token
from wholefeed.cli.command import server_address
from wholefeed.cli.database import LOOK_SECONDS, Database, JsonObject
from wholefeed.cli.once import ShowProgress
from wholefeed.cli.output import tell
from wholefeed.config.tables import Config
from wholefeed.core.terms import State
from wholefeed.errors import UnknownFeedError, WholefeedError

_ANSWER_SECONDS: Final = 30
_PIECE_BYTES: Final = 1 << 16
_NO_ENTRY: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class Feeds(Protocol):
    """What commands ask, by canonical URL; all raise `UnknownFeedError` where nothing is stored for it."""

    def listed(self) -> list[JsonObject]:
        """Return the known feeds."""

    def exported(self) -> bytes:
        """Return the known feeds as a subscription list, through the proxy as this machine reaches it."""

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


class GoneError(StrangerError):
    """Nothing listens at the configured address, or what did has ended."""


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
            time.sleep(LOOK_SECONDS)
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
            await asyncio.sleep(min(LOOK_SECONDS, max(deadline - time.monotonic(), 0.0)))

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
            with self._heeding():
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
        with self._heeding():
            return response.read()

    @contextmanager
    def _asked(self, method: str, path: str) -> Iterator[http.client.HTTPResponse]:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_ANSWER_SECONDS)
        try:
            with self._heeding():
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
    def _heeding(self) -> Iterator[None]:
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


def _with_url(path: str, url: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}url={quote(url, safe='')}"


def _json(body: bytes) -> Any:
    """Return what an answer says; None where it is no JSON."""
    with suppress(ValueError):
        return json.loads(body)
    return None
