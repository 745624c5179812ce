"""Reads a feed twice for `wholefeed check`, as the proxy does, and keeps nothing.

    read, findings = await check_once(config, url, progress)

The documents are fetched and the chain is walked by the service, over a store that is removed at the end; a
fetcher that is listened to gives what rules are about and the store does not keep: header fields, and lines.
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
"""Between the two looks: what writes the time into a document writes another one then."""
_LOOK_SECONDS: Final = 0.05
_MOST_CURRENTS: Final = 5
"""Targets of `current` that are looked up."""


async def check_once(
    config: Config, url: str, progress: ShowProgress | None
) -> tuple[CheckLook, list[Finding]]:
    """Read a feed twice, and judge it; return what was read, too.

    Raises:
        DocumentError: There is no feed to be had.
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
    """What was fetched, by the keys of the URLs that were asked for."""

    def __init__(self) -> None:
        self.read: dict[str, ExaminedDocument] = {}
        """Documents as they came last."""
        self.failures: dict[str, DocumentError] = {}
        self._fetcher: Fetcher | None = None

    @asynccontextmanager
    async def open(self, fetch: FetchConfig, limits: LimitsConfig, **parts: Any) -> AsyncIterator[Fetcher]:
        """Open a fetcher that is listened to."""
        async with _Listening.open(fetch, limits, **parts) as fetcher:
            assert isinstance(fetcher, _Listening), "it makes one of its own kind"
            fetcher.heard, fetcher.max_depth, self._fetcher = self, limits.xml_depth, fetcher
            yield fetcher

    def look(self, account: JsonObject) -> CheckLook:
        """Return the feed as it was read, by the account of its documents."""
        chain = [each for each in account["chain"] if each["role"] != Role.MEMORY]
        attached = [
            each
            for each in chain
            if each["standing"] not in (DocumentStanding.MISSING, DocumentStanding.DETACHED)
        ]
        by_key = {key: each for each in self.read.values() for key in each.keys} | self.read
        documents = [by_key[key] for each in attached if (key := document_key(each["url"])) in by_key]
        if not documents:
            raise WholefeedError(f"expected a feed that can be read again: {account['url']}")
        gaps = [
            self._gap(each)
            for each in chain
            if each["standing"] == DocumentStanding.MISSING or document_key(each["url"]) in self.failures
        ]
        remarks = {each["code"]: each["text"] for each in account["notes"]}
        if account["walking"]:
            remarks[UNFINISHED] = "the documents are more than could be read in limits.walk_seconds"
        return CheckLook(Kind(account["kind"]), documents, gaps, remarks)

    def _gap(self, document: JsonObject) -> Finding:
        """Describe a document that is missing: in the words of the error, else of the walk's own reason."""
        error = self.failures.get(document_key(document["url"]))
        reason = "" if document["failure"] is None else document["failure"]["reason"]
        why, line = slug_in_words(reason), None
        is_unreadable = isinstance(error, UnreadableError) or reason == "format"
        if error is not None:
            why, line = error.args[0], line_in(error.args[0]) if is_unreadable else None
        if document["from"] and (source := self.read.get(document_key(document["from"]))):
            relation = document["relation"]
            why += f"; {relation} of {source.url}{in_line(source.lines.get(relation))} leads there"
        name = "document-unreadable" if is_unreadable else "document-unavailable"
        return finding(name, document["url"], line, why=why)

    async def lead(self, target: str, *, feed_url: str) -> str | None:
        """Return where a feed's link leads, which is to another URL where the same stands; None: nowhere."""
        assert self._fetcher is not None, "it was opened"
        try:
            fetched = await self._fetcher.fetch(target, manner=Manner(feed_url=feed_url))
        except DocumentError:
            return None
        found = self.read.get(document_key(target))
        same = (each.url for each in self.read.values() if found is not None and each.digest == found.digest)
        return next(same, fetched.final_url)


class _Listening(Fetcher):
    """Has heard what it has fetched, and what it could not."""

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
