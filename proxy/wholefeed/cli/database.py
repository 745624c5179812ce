"""What commands about feeds ask the configured database, where no proxy runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from wholefeed.app import open_service
from wholefeed.cli.base import url_here
from wholefeed.cli.command import run
from wholefeed.cli.once import ShowProgress, fetch_stored
from wholefeed.config.tables import Config
from wholefeed.core.opml.export import compose_opml
from wholefeed.core.terms import State
from wholefeed.errors import UnknownFeedError
from wholefeed.service.service import FeedService
from wholefeed.web.opml import exported
from wholefeed.web.status import account_object, status_object, summary_object

_T = TypeVar("_T")

LOOK_SECONDS: Final = 0.5
"""Between two looks at a refresh that is under way."""

JsonObject = dict[str, Any]
"""A JSON object of the HTTP interface (docs/design.md#the-interface)."""


class Database:
    """The database, opened for each question."""

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
                await asyncio.sleep(LOOK_SECONDS)
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
