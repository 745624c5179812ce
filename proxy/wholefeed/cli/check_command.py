"""Two readings of a feed for `wholefeed check`, in a temporary store.

A special fetcher keeps header fields and line numbers, which rules need and the store lacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from wholefeed.app import open_service
from wholefeed.cli.backend import JsonObject, ShowProgress, following
from wholefeed.config.tables import Config, FetchConfig, LimitsConfig
from wholefeed.core.jobs import Sender
from wholefeed.core.model import Kind, Role
from wholefeed.core.parse.limits import ParseError
from wholefeed.core.publisher_check import (
    UNFINISHED,
    CheckLook,
    ExaminedDocument,
    Finding,
    check,
    examine,
    finding,
    foreign_currents,
    in_line,
    line_in,
)
from wholefeed.core.slugs import slug_in_words
from wholefeed.core.text.urls import document_key
from wholefeed.errors import DocumentError, QueueFullError, UnreadableError, WholefeedError
from wholefeed.fetch.base import Fetched, Manner
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.hosts import BACKOFF
from wholefeed.library import stored
from wholefeed.service.account import DocumentStanding
from wholefeed.web.api import account_object

PAUSE_SECONDS: Final = 1.0
"""Long enough that a timestamp in a document changes between the readings."""
_LOOK_SECONDS: Final = 0.05
_MOST_CURRENTS: Final = 5


async def check_once(
    config: Config, url: str, progress: ShowProgress | None
) -> tuple[CheckLook, list[Finding]]:
    """Read a feed twice and judge it; return the first reading and the findings.

    Raises:
        DocumentError: There is no feed.
    """
    # Nobody but the publisher is asked, and for nothing but what is linked.
    history = replace(config.history, collect="off", memento=False, look_ahead=False, paged=True)
    heard = _Heard()
    async with (
        stored(replace(config, history=history)) as own,
        open_service(own, open_fetcher=heard.open) as (_, service),
        following(service, url, progress),
    ):
        async with service.answer(url, wait_seconds=config.limits.walk_seconds):
            first = heard.look(account_object(*await service.account(url)))
        heard.failures.clear()
        await asyncio.sleep(PAUSE_SECONDS)
        status = await service.refresh(url, is_full=True)
        while status.is_refreshing:
            await asyncio.sleep(_LOOK_SECONDS)
            status = await service.status(url)
        second = heard.look(account_object(*await service.account(url)))
        leads = {
            target: await heard.lead(target, feed_url=url)
            for target in foreign_currents(first)[:_MOST_CURRENTS]
        }
        return first, check(first, second, leads=leads, now=service.now())


class _Heard:
    """Fetched documents and failures, by the requested URLs' keys."""

    def __init__(self) -> None:
        self.read: dict[str, ExaminedDocument] = {}
        self.failures: dict[str, DocumentError] = {}
        self._fetcher: Fetcher | None = None

    @asynccontextmanager
    async def open(self, fetch: FetchConfig, limits: LimitsConfig, **parts: Any) -> AsyncIterator[Fetcher]:
        async with _Listening.open(fetch, limits, **parts) as fetcher:
            assert isinstance(fetcher, _Listening), "it makes one of its own kind"
            fetcher.heard, fetcher.max_depth, self._fetcher = self, limits.xml_depth, fetcher
            yield fetcher

    def look(self, account: JsonObject) -> CheckLook:
        chain = [each for each in account["chain"] if each["role"] != Role.MEMORY]
        attached = [
            each
            for each in chain
            if each["standing"] not in (DocumentStanding.MISSING, DocumentStanding.DETACHED)
        ]
        by_key = {key: each for each in self.read.values() for key in each.keys} | self.read
        documents = [by_key[key] for each in attached if (key := document_key(each["url"])) in by_key]
        if not documents:
            raise WholefeedError(
                f"expected a document of the feed that can be read, got none: {account['url']}"
            )
        gaps = [
            self._gap(each)
            for each in chain
            if each["standing"] == DocumentStanding.MISSING or document_key(each["url"]) in self.failures
        ]
        remarks = {each["code"]: each["text"] for each in account["notes"]}
        if account["walking"]:
            remarks[UNFINISHED] = "the feed has more documents than could be read in limits.walk_seconds"
        return CheckLook(Kind(account["kind"]), documents, gaps, remarks)

    def _gap(self, document: JsonObject) -> Finding:
        error = self.failures.get(document_key(document["url"]))
        reason = "" if document["failure"] is None else document["failure"]["reason"]
        why, line = slug_in_words(reason), None
        is_unreadable = isinstance(error, UnreadableError) or reason == "format"
        if error is not None:
            why, line = error.args[0], line_in(error.args[0]) if is_unreadable else None
        if document["from"] and (source := self.read.get(document_key(document["from"]))):
            relation = document["relation"]
            why += f"; the {relation} link of {source.url}{in_line(source.lines.get(relation))} leads there"
        name = "document-unreadable" if is_unreadable else "document-unavailable"
        return finding(name, document["url"], line, why=why)

    async def lead(self, target: str, *, feed_url: str) -> str | None:
        """Return a URL with the content of a feed's link, another one if possible; None: no document."""
        assert self._fetcher is not None, "it was opened"
        try:
            fetched = await self._fetcher.fetch(target, manner=Manner(feed_url=feed_url))
        except DocumentError:
            return None
        found = self.read.get(document_key(target))
        same = (each.url for each in self.read.values() if found is not None and each.digest == found.digest)
        return next(same, fetched.final_url)


class _Listening(Fetcher):
    heard: _Heard
    max_depth: int

    @asynccontextmanager
    async def fetching(self, url: str, **options: Any) -> AsyncIterator[Fetched]:
        key = document_key(url)
        try:
            async with super().fetching(url, **options) as fetched:
                if fetched.body and not fetched.not_modified:
                    sender = Sender(
                        url=fetched.final_url,
                        media_type=fetched.media_type,
                        links=fetched.links,
                        fetched_at=fetched.fetched_at,
                        repairs=fetched.repairs,
                    )
                    urls, depth = (url, *fetched.hops), self.max_depth
                    look = partial(examine, headers=fetched.headers, urls=urls, max_depth=depth)
                    with suppress(ParseError):  # who fetches it reads it too, and says so
                        self.heard.read[key] = await asyncio.to_thread(look, fetched.body, sender)
                yield fetched
        except DocumentError as exc:
            is_asked = exc.slug != BACKOFF and not isinstance(exc, QueueFullError)
            if is_asked:
                self.heard.failures[key] = exc.fresh_copy()
            raise
