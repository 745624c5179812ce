"""The source of answers for commands about feeds: the running proxy, else the database.

A running proxy holds the database's lock, so commands ask it over HTTP. Both backends take canonical URLs
and raise `UnknownFeedError`. Functions with `_once` use a temporary store.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from wholefeed.app import open_service
from wholefeed.cli.access_token import known_token
from wholefeed.cli.address import server_address, url_here, where_looked
from wholefeed.cli.base import run, tell
from wholefeed.config.tables import Config
from wholefeed.core.compose.entries import sent_name
from wholefeed.core.model import State
from wholefeed.core.opml import compose_opml
from wholefeed.core.text.dates import format_rfc822, format_rfc3339
from wholefeed.errors import (
    ImportRefusedError,
    NoSuchEntryError,
    OverloadedError,
    UnknownFeedError,
    WholefeedError,
)
from wholefeed.futures import in_daemon
from wholefeed.library import search_further, stored
from wholefeed.service.imports import SuppliedDocument
from wholefeed.service.service import FeedService
from wholefeed.web.answer import Representation, prepare
from wholefeed.web.api import account_object, status_object, summary_object
from wholefeed.web.import_routes import continued_object, taken_object
from wholefeed.web.intake_routes import intake_object
from wholefeed.web.opml_routes import bring_in, export, read_targets

_T = TypeVar("_T")
JsonObject = dict[str, Any]
"""An object of the HTTP interface (docs/design.md#the-interface)."""
ShowProgress = Callable[[Mapping[str, Any]], None]
"""Called with the status object about twice a second."""
_LOOK_SECONDS: Final = 0.5
_RESTART_SECONDS: Final = 30.0
"""The longest absence of the proxy."""


def ask(
    config: Config,
    question: Callable[[ServerBackend | DatabaseBackend], Awaitable[_T]],
    progress: ShowProgress | None = None,
) -> _T:
    """Run a question on the running proxy, or on the database.

    Raises:
        StrangerError: Another program listens at the configured address.
    """
    server, database = ServerBackend(config, progress), DatabaseBackend(config, progress)

    async def answer() -> _T:
        return await question(server if await server.is_there() else database)

    return run(answer())


class StrangerError(WholefeedError):
    """Another program at the configured address, or a proxy that refuses this command."""


class GoneError(StrangerError):
    """No program at the configured address any more."""


_ANSWER_SECONDS: Final = 30
_PIECE_BYTES: Final = 1 << 20
_LONGEST_HEADER_BYTES: Final = 1 << 16
_REFUSED: Final = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
_NO_ENTRY: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_KEPT_OUT: Final = (
    "this command needs the proxy's access token: run it in the folder of the proxy's database, or set"
    " WHOLEFEED_SERVER_ACCESS_TOKEN or WHOLEFEED_SERVER_ACCESS_TOKEN_FILE"
)


class ServerBackend:
    def __init__(self, config: Config, progress: ShowProgress | None) -> None:
        self._progress = progress
        self._walk_seconds = config.limits.walk_seconds
        host, port = server_address(config)
        self._where = f"{host}, port {port}"
        self._base = url_here(config)
        token = known_token(config)
        self._headers = {"Accept-Encoding": "identity"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def is_there(self) -> bool:
        """Return whether a proxy listens.

        Raises:
            StrangerError: Another program listens.
        """
        try:
            async with self._ask("GET", "/healthz") as response:
                told = _json(await response.read())
        except GoneError:
            return False
        if response.status != HTTPStatus.OK or told != {"status": "ok"}:
            raise StrangerError(
                f"the server on {self._where} is not wholefeed; set server.port or"
                " WHOLEFEED_SERVER_PORT to the port of wholefeed"
            )
        return True

    async def list_feeds(self) -> list[JsonObject]:
        found: list[JsonObject] = _json(await self._answer("GET", "/feeds"))
        return found

    async def export(self) -> bytes:
        return await self._answer("GET", "/opml")

    async def bring_in(self, document: bytes, options: Mapping[str, str]) -> JsonObject:
        """Ask for each feed of a list (B1), and return the object of `/intake` at its end.

        The proxy may end and start again meanwhile.
        """
        path = "/opml?" + urlencode({"ask": "1", **options})
        told: JsonObject = _json(await self._answer("POST", path, data=document))
        gone_at: float | None = None
        while not told["over"]:
            if self._progress is not None:
                self._progress(told)
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                told, gone_at = _json(await self._answer("GET", f"/intake?id={told['id']}")), None
            except GoneError:
                gone_at = time.monotonic() if gone_at is None else gone_at
                if time.monotonic() - gone_at > _RESTART_SECONDS:
                    raise
        return told

    async def account(self, url: str) -> JsonObject:
        found: JsonObject = _json(await self._answer("GET", "/status", url))
        return found

    async def refresh(self, url: str, *, is_full: bool, has_texts: bool = False) -> JsonObject:
        wanted = [name for name, is_set in (("full=1", is_full), ("texts=1", has_texts)) if is_set]
        query = f"?{'&'.join(wanted)}" if wanted else ""
        status: JsonObject = _json(await self._answer("POST", f"/refresh{query}", url))
        while status["refreshing"]:
            if self._progress is not None:
                self._progress(status)
            await asyncio.sleep(_LOOK_SECONDS)
            status = await self.account(url)
        return status

    async def forget(self, url: str) -> None:
        await self._answer("DELETE", "/feed", url)

    async def forget_entry(self, url: str, entry: str) -> None:
        """Remove one entry of a feed (I2), after a refresh under way.

        Raises:
            NoSuchEntryError: Unknown entry.
        """
        name, deadline = sent_name(entry), time.monotonic() + self._walk_seconds
        path = "/feed?" + urlencode({"entry": name})
        while await self._sent("DELETE", path, url, deadline) is None:
            await self._wait_for_refresh(url)

    async def continue_feed(self, old_url: str, new_url: str) -> JsonObject:
        """Let a feed continue another one (I3).

        Raises:
            ImportRefusedError: Impossible for these feeds.
        """
        path, deadline = "/continue?" + urlencode({"old": old_url}), time.monotonic() + self._walk_seconds
        while (answer := await self._sent("POST", path, new_url, deadline)) is None:
            await self._wait_for_refresh(new_url)
        said: JsonObject = _json(answer)
        return said

    async def put_in(self, url: str, kept: SuppliedDocument) -> JsonObject:
        """Import a document into a feed (I1).

        Raises:
            ImportRefusedError: Refused document.
        """
        query = {"name": kept.name, "at": _instant(kept.at), "force": "1" if kept.is_forced else ""}
        path = "/import?" + urlencode({name: value for name, value in query.items() if value})
        headers = {"Last-Modified": format_rfc822(kept.file_at)} if kept.file_at else {}
        deadline = time.monotonic() + self._walk_seconds
        while (
            answer := await self._sent("POST", path, url, deadline, data=kept.body, headers=headers)
        ) is None:
            await self._wait_for_refresh(url)
        said: JsonObject = _json(answer)
        return said

    async def _sent(self, method: str, path: str, url: str, deadline: float, **options: Any) -> bytes | None:
        """Send a request that no refresh may overlap; return the answer.

        None: a refresh is under way. After `deadline` by the monotonic clock, it is an error.
        """
        async with self._ask(method, path, url, **options) as response:
            answered = await response.read()
            if response.status in _REFUSED:
                slug = _said(answered, "type").rpartition(":")[2]
                raise ImportRefusedError(_said(answered, "detail"), slug=slug)
            is_busy = _said(answered, "type") == f"urn:wholefeed:{OverloadedError.default_slug}"
            if is_busy and time.monotonic() < deadline:
                return None
            await self._check(response)
            return answered

    async def _wait_for_refresh(self, url: str) -> None:
        await asyncio.sleep(_LOOK_SECONDS)
        status = await self.account(url)
        if self._progress is not None:
            self._progress(status)

    async def take_out(self, url: str, name: str) -> int:
        path = "/import?" + urlencode({"name": name})
        return int(_json(await self._answer("DELETE", path, url))["removed"])

    async def fetch(self, url: str, output: BinaryIO, *, wait_seconds: float) -> State:
        """Write the feed, refreshed if due, and return its state.

        After `wait_seconds`, write the stored feed even during a refresh.
        """
        deadline = time.monotonic() + wait_seconds
        await self.account(url)
        # Asked as a reader asks, the proxy refreshes what is due; one entry is enough until that has ended.
        async with self._ask("GET", "/feed?limit=1&wait=0", url) as response:
            await response.read()
        while True:
            status = await self.account(url)
            if self._progress is not None:
                self._progress(status)
            if not status["refreshing"] or time.monotonic() >= deadline:
                return await self._download(url, output)
            await asyncio.sleep(min(_LOOK_SECONDS, max(deadline - time.monotonic(), 0.0)))

    async def _download(self, url: str, output: BinaryIO) -> State:
        # Not straight to the output: the proxy lets a reader that pauses go, and may break off half-way.
        with await asyncio.to_thread(lambda: tempfile.TemporaryFile(prefix="wholefeed-")) as spool:
            async with self._ask("GET", "/feed?wait=0", url) as response:
                await self._check(response)
                if response.content_length is None and "Transfer-Encoding" not in response.headers:
                    raise StrangerError(f"the answer of {self._where} has no length")
                async for piece in response.content.iter_chunked(_PIECE_BYTES):
                    await asyncio.to_thread(spool.write, piece)
                state = self._state(response)
            await asyncio.to_thread(spool.seek, 0)
            await in_daemon(lambda: shutil.copyfileobj(spool, output, _PIECE_BYTES))
        return state

    def _state(self, response: aiohttp.ClientResponse) -> State:
        told, *parameters = response.headers.get("Feed-Reconstruction", "").split(";")
        try:
            state = State(told)
        except ValueError as exc:
            raise StrangerError(f"the answer of {self._where} has no Feed-Reconstruction") from exc
        # A feed that `limits.answer_bytes` cuts is partial.
        if "cut" not in parameters:
            return state
        tell(f"limits.answer_bytes of the proxy on {self._where} cuts the feed: older entries are left out")
        return State.PARTIAL

    async def _answer(self, method: str, path: str, url: str = "", **options: Any) -> bytes:
        async with self._ask(method, path, url, **options) as response:
            await self._check(response)
            return await response.read()

    async def _check(self, response: aiohttp.ClientResponse) -> None:
        if response.status < HTTPStatus.BAD_REQUEST:
            return
        answered = await response.read()
        detail, slug = _said(answered, "detail"), _said(answered, "type")
        if response.status == HTTPStatus.NOT_FOUND:
            is_entry = slug == f"urn:wholefeed:{NoSuchEntryError.default_slug}"
            raise NoSuchEntryError(detail) if is_entry else UnknownFeedError(detail)
        if response.status == HTTPStatus.UNAUTHORIZED:
            raise StrangerError(f"the proxy on {self._where} answered 401: {_KEPT_OUT}")
        kind = StrangerError if response.status in _NO_ENTRY else WholefeedError
        raise kind(f"the proxy on {self._where} answered {response.status}: {detail}")

    @asynccontextmanager
    async def _ask(
        self, method: str, path: str, url: str = "", **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if url:
            path = f"{path}{'&' if '?' in path else '?'}url={quote(url, safe='')}"
        opening = aiohttp.ClientSession(
            headers=self._headers,
            skip_auto_headers=("Accept", "Content-Type", "User-Agent"),
            timeout=aiohttp.ClientTimeout(sock_connect=_ANSWER_SECONDS, sock_read=_ANSWER_SECONDS),
            connector=aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver()),
            read_bufsize=_PIECE_BYTES,
            max_line_size=_LONGEST_HEADER_BYTES,
            max_field_size=_LONGEST_HEADER_BYTES,
        )
        target = URL(self._base + path, encoded=True)
        try:
            async with (
                opening as session,
                session.request(method, target, allow_redirects=False, **options) as response,
            ):
                yield response
        except aiohttp.ServerTimeoutError as exc:
            raise StrangerError(f"no answer from {self._where} in {_ANSWER_SECONDS} s") from exc
        except aiohttp.ClientPayloadError as exc:
            raise self._gone("the answer breaks off") from exc
        except aiohttp.ClientConnectionError as exc:
            raise self._gone(exc) from exc
        except aiohttp.ClientResponseError as exc:
            text = f"the server on {self._where} does not speak HTTP: {exc.message!r}"
            raise StrangerError(text) from exc

    def _gone(self, why: object) -> GoneError:
        return GoneError(f"the connection to the proxy on {self._where} was lost: {why}")


def _json(body: bytes) -> Any:
    with suppress(ValueError):
        return json.loads(body)
    return None


def _said(body: bytes, name: str) -> str:
    told = _json(body)
    return str(told.get(name, "")) if isinstance(told, dict) else ""


def _instant(at: float | None) -> str:
    return "" if at is None else format_rfc3339(at)


class DatabaseBackend:
    """The configured database, opened for each question, with the methods of `ServerBackend`."""

    def __init__(self, config: Config, progress: ShowProgress | None) -> None:
        self._config = config
        self._progress = progress
        self._is_there = bool(config.store.url) or Path(config.store.path).exists()

    async def list_feeds(self) -> list[JsonObject]:
        if not self._is_there:
            return []
        async with self._open() as service:
            return [summary_object(feed) for feed in await service.feeds()]

    async def export(self) -> bytes:
        if not self._is_there:
            return compose_opml("wholefeed", [])
        async with self._open() as service:
            return await export(service.every_feed(), url_here(self._config), self._config)

    async def bring_in(self, document: bytes, options: Mapping[str, str]) -> JsonObject:
        where = await asyncio.to_thread(where_looked, self._config)
        tell(f"no proxy runs, so this command asks for the feeds: {where}")
        config = self._patient()
        async with open_service(config) as (_, service):  # of a database that does not exist it is made
            listed = await asyncio.to_thread(read_targets, document, url_here(config), config)
            intake = await bring_in(service, listed, document, options)
            asking = asyncio.create_task(service.intakes.run())
            try:
                while not (report := await service.intakes.report(intake)).tally.is_over:
                    if self._progress is not None:
                        self._progress(intake_object(report))
                    await asyncio.wait({asking}, timeout=_LOOK_SECONDS)
                    if asking.done():
                        asking.result()
            finally:
                asking.cancel()
            return intake_object(report)

    async def account(self, url: str) -> JsonObject:
        async with self._open() as service:
            tell("no proxy runs: this is the stored state, which stays as it is until a proxy runs")
            return account_object(*await service.account(url))

    async def refresh(self, url: str, *, is_full: bool, has_texts: bool = False) -> JsonObject:
        async with self._open() as service:
            status = await service.refresh(url, is_full=is_full, has_texts=has_texts)
            while status.is_refreshing:
                if self._progress is not None:
                    self._progress(status_object(status))
                await asyncio.sleep(_LOOK_SECONDS)
                status = await service.status(url)
            return status_object(status)

    async def forget(self, url: str) -> None:
        async with self._open() as service:
            await service.forget(url)

    async def forget_entry(self, url: str, entry: str) -> None:
        async with self._open() as service:
            await service.forget_entry(url, entry)

    async def continue_feed(self, old_url: str, new_url: str) -> JsonObject:
        async with self._open() as service:
            return continued_object(await service.imports.continue_feed(old_url, new_url))

    async def put_in(self, url: str, kept: SuppliedDocument) -> JsonObject:
        async with open_service(self._patient()) as (_, service):  # of a feed that is not known it is made
            return taken_object(await service.imports.take(url, kept))

    async def take_out(self, url: str, name: str) -> int:
        async with self._open() as service:
            return await service.imports.remove(url, name)

    async def fetch(
        self, url: str, output: BinaryIO, *, wait_seconds: float, must_be_known: bool = True
    ) -> State:
        if must_be_known:
            self._require()
        config, progress = self._config, self._progress
        async with open_service(config) as (store, service), following(service, url, progress):
            if must_be_known:
                await service.status(url)
            await search_further(config, service, url, wait_seconds=wait_seconds)
            async with service.answer(url, wait_seconds=wait_seconds) as reconstruction:
                asked = Representation(self_url=url, is_gzip=False, warns=config.history.warn_entry)
                async for piece in prepare(reconstruction, asked).body.pieces(store):
                    await in_daemon(partial(output.write, piece))
                if progress is not None:
                    progress(status_object(await service.status(url)))
                return reconstruction.state

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[FeedService]:
        self._require()
        async with open_service(self._patient()) as (_, service):
            yield service

    def _patient(self) -> Config:
        limits = self._config.limits  # who asks here waits as long as it takes
        return replace(self._config, limits=replace(limits, respond_within_seconds=limits.walk_seconds))

    def _require(self) -> None:
        if not self._is_there:
            raise UnknownFeedError(f"nothing is stored, and no proxy runs: {where_looked(self._config)}")


async def fetch_once(
    config: Config, url: str, output: BinaryIO, *, wait_seconds: float, progress: ShowProgress | None
) -> State:
    async with stored(config) as own:
        database = DatabaseBackend(own, progress)
        return await database.fetch(url, output, wait_seconds=wait_seconds, must_be_known=False)


async def explain_once(
    config: Config, url: str, *, wait_seconds: float, progress: ShowProgress | None
) -> JsonObject:
    async with stored(config) as own, open_service(own) as (_, service), following(service, url, progress):
        await search_further(own, service, url, wait_seconds=wait_seconds)
        async with service.answer(url, wait_seconds=wait_seconds):
            return account_object(*await service.account(url))


@asynccontextmanager
async def following(service: FeedService, url: str, progress: ShowProgress | None) -> AsyncIterator[None]:
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
