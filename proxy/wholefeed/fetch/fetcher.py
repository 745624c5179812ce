"""One document from its publisher by a bounded GET (docs/design.md#fetching; docs/faults.md parts A and C).

The fetcher follows redirects itself, so that each hop passes all checks.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from aiohttp.abc import AbstractResolver

from wholefeed.config.tables import FetchConfig, LimitsConfig
from wholefeed.core.parse.discovery import refresh_target
from wholefeed.core.schedule import backoff_seconds, retry_after_seconds
from wholefeed.core.text.urls import UrlError, without_credentials
from wholefeed.counts import Counts
from wholefeed.errors import (
    DocumentError,
    ForbiddenTargetError,
    PublisherError,
    PublisherTimeoutError,
    QueueFullError,
)
from wholefeed.fetch.base import (
    USUAL,
    Fetched,
    Manner,
    Target,
    Transfer,
    Validators,
    parse_target,
    redirect_target,
)
from wholefeed.fetch.budget import BudgetSizes, MemoryBudget, Share, budget_bytes
from wholefeed.fetch.exchange import (
    DOCUMENT_STATUSES,
    Exchange,
    Response,
    failure_of,
    is_transient,
    open_session,
    status_failure,
)
from wholefeed.fetch.guard import AddressPolicy, OwnAddresses
from wholefeed.fetch.hosts import BACKOFF_STATUSES
from wholefeed.fetch.politeness import HostGate, Slot
from wholefeed.fetch.publishers import NO_PUBLISHERS, Publishers
from wholefeed.logs import get_logger
from wholefeed.workers.machine import free_memory_bytes

log = get_logger()

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PERMANENT: Final = frozenset({301, 308})
_NOT_MODIFIED: Final = HTTPStatus.NOT_MODIFIED
_USABLE: Final = DOCUMENT_STATUSES | _REDIRECTS | {_NOT_MODIFIED}

_IsMet = Callable[[str], bool]


@dataclass(kw_only=True, eq=False)
class Fetcher:
    """A fetcher of many documents at once; belongs to one event loop."""

    config: FetchConfig
    exchange: Exchange
    policy: AddressPolicy
    gate: HostGate
    budget: MemoryBudget
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    counts: Counts

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        fetch: FetchConfig,
        limits: LimitsConfig,
        *,
        publishers: Publishers = NO_PUBLISHERS,
        resolver: AbstractResolver | None = None,
        own_addresses: OwnAddresses | None = None,
        ssl_context: ssl.SSLContext | None = None,
        make_socket: Callable[[int, int, int], socket.socket] = socket.socket,
        gate: HostGate | None = None,
        budget: MemoryBudget | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        counts: Counts | None = None,
    ) -> AsyncIterator[Fetcher]:
        """Open the HTTP client, and close it at the end.

        `own_addresses` recognises the proxy itself (docs/faults.md row 19). The default `budget` is a part of
        the free memory. `jitter` returns 0 to 1.
        """
        policy = AddressPolicy.from_config(fetch, own_addresses)
        if budget is None:
            budget = MemoryBudget(total_bytes=budget_bytes(await asyncio.to_thread(free_memory_bytes)))
        opened = partial(
            open_session, fetch, resolver=resolver, ssl_context=ssl_context, make_socket=make_socket
        )
        has_proxy = bool(fetch.proxy) or any(each.proxy for each in publishers)
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(opened(policy))
            proxied = await stack.enter_async_context(opened(policy.behind_proxy())) if has_proxy else None
            yield cls(
                config=fetch,
                exchange=Exchange(
                    session,
                    body_limit_bytes=limits.document_bytes,
                    proxied=proxied,
                    proxy=fetch.proxy,
                    publishers=publishers,
                    is_exempt=policy.is_exempt,
                ),
                policy=policy,
                gate=HostGate.from_config(fetch, publishers) if gate is None else gate,
                budget=budget,
                sleep=sleep,
                jitter=jitter,
                counts=Counts() if counts is None else counts,
            )

    async def fetch(self, url: str, **options: Any) -> Fetched:
        async with self.fetching(url, **options) as fetched:
            return fetched

    @contextlib.asynccontextmanager
    async def fetching(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        on_chunk: Callable[[str, bytes], None] | None = None,
        is_ahead: Callable[[], bool] = lambda: False,
        sizes: BudgetSizes | None = None,
        is_met: _IsMet | None = None,
        manner: Manner = USUAL,
    ) -> AsyncIterator[Fetched]:
        """Yield the document at a URL, after redirects; log the fetch at the end of the block.

        A DocumentError raised in the block (such as: no feed) is the outcome of the fetch.

        `on_chunk` gets the final URL and each decoded piece of a 200 body. `is_ahead` says whether the
        document still waits for its walk. The fetch follows no redirect to a URL with `is_met`.
        """
        plain_url, was_ahead = without_credentials(url), is_ahead()
        share = Share(self.budget, plain_url, is_ahead=is_ahead, sizes=sizes)
        limit_seconds = self.config.document_timeout_seconds
        transfer = Transfer(plain_url, limit_seconds, share, manner, validators or Validators(), on_chunk)
        try:
            try:
                await share.foresee()
                fetched = await self._travel(transfer, url, is_met)
            except BaseException:
                share.give_back()
                raise
            share.keep_for(fetched)
            yield fetched
        except ForbiddenTargetError as exc:
            self.counts.count_failure(exc.slug)
            log.warning("target.refused", outcome="refused", slug=exc.slug, **transfer.facts())
            raise
        except DocumentError as exc:
            is_guess = was_ahead or exc.publisher_status in manner.expected
            self.counts.count_failure(exc.slug, is_guess=is_guess)
            if is_guess:  # that it leads nowhere is no loss
                log.info("document.failed", outcome="failed", slug=exc.slug, **transfer.facts())
            else:
                log.warning("document.failed", outcome="failed", slug=exc.slug, **transfer.facts())
            raise
        finally:
            self.counts.count_transfer(transfer.wire_bytes, transfer.body_bytes, transfer.spent_seconds)
        outcome = "not-modified" if fetched.not_modified else "fetched"
        self.counts.documents[outcome] += 1
        log.info("document.fetched", outcome=outcome, **transfer.facts())

    async def _travel(self, transfer: Transfer, url: str, is_met: _IsMet | None) -> Fetched:
        try:
            target = parse_target(url)
        except UrlError as exc:
            raise PublisherError(str(exc), url=transfer.url, slug="bad-link") from exc
        while True:
            transfer.seen.append(target.url)
            transfer.asked.add((target.url, transfer.cookies.find_field(target.url)))
            try:
                self.policy.check_target(target.host, target.port)
            except OSError as exc:
                raise failure_of(exc, target.url) from exc
            response = await self._ask(transfer, target)
            location = _location_of(transfer, response)
            if location is None:
                return _conclude(transfer, response)
            transfer.is_permanent = transfer.is_permanent and response.status in _PERMANENT
            target = self._redirect(transfer, response, location)
            if is_met is not None and target.url not in transfer.seen and is_met(target.url):
                transfer.seen.append(target.url)
                response = replace(response, target=target, body=b"")
                return replace(_make_fetched(transfer, response, not_modified=True), is_met=True)

    async def _ask(self, transfer: Transfer, target: Target) -> Response:
        attempt = 0
        while True:
            if transfer.manner.turn is not None:
                await transfer.manner.turn()
            try:
                place = self.gate.slot(
                    target.host,
                    target.port,
                    url=target.url,
                    is_new=transfer.manner.is_new,
                    is_polled=transfer.manner.is_polled,
                    at_most=transfer.manner.at_most,
                )
                async with place as slot:
                    return await self._ask_once(transfer, slot, target)
            except DocumentError as exc:
                pause_seconds = backoff_seconds(attempt, self.jitter())
                attempt += 1
                if (
                    attempt > self.config.retries
                    or not is_transient(exc)
                    or pause_seconds >= transfer.left_seconds
                ):
                    raise
            transfer.spend(pause_seconds)
            await self.sleep(pause_seconds)

    async def _ask_once(self, transfer: Transfer, slot: Slot, target: Target) -> Response:
        heads = transfer.heads
        try:
            response = await self._get(transfer, target)
        except DocumentError as exc:
            is_heard = transfer.heads > heads
            if is_heard or not isinstance(exc, QueueFullError):  # else the publisher was not asked
                slot.note_failure(exc.slug, is_heard=is_heard)
            raise
        is_strained = response.status in BACKOFF_STATUSES
        asks = response.kept_headers().get("retry-after") if is_strained else None
        wait_seconds = retry_after_seconds(asks, now=time.time()) if asks else None
        slot.note_answer(is_strained=is_strained, rest_seconds=wait_seconds)
        if response.status not in _USABLE:
            raise status_failure(response.status, target.url, wait_seconds)
        return response

    async def _get(self, transfer: Transfer, target: Target) -> Response:
        started = time.monotonic()
        try:
            async with asyncio.timeout(transfer.left_seconds):
                return await self.exchange.ask(transfer, target)
        except TimeoutError as exc:
            raise PublisherTimeoutError("no whole response in the time allowed", url=target.url) from exc
        finally:
            transfer.spend(time.monotonic() - started)

    def _redirect(self, transfer: Transfer, response: Response, location: str) -> Target:
        """Return the redirect's target (RFC 9110, section 15.4; docs/faults.md rows 13, 14, 35, 153, 154).

        After a new cookie, the same URL may return another document.
        """
        base = response.target
        target = redirect_target(base, location, allow_downgrade=self.config.allow_downgrade)
        transfer.cookies.store(base.url, response.fields("set-cookie"), now=time.time())
        next_request = (target.url, transfer.cookies.find_field(target.url))
        is_circle = next_request in transfer.asked
        if is_circle or len(transfer.seen) > self.config.max_redirects:
            most, got = self.config.max_redirects, "a circle" if is_circle else "more"
            message = f"expected at most {most} redirects, each to another URL, got {got}"
            raise PublisherError(message, url=base.url, slug="redirect-loop")
        return target


def _location_of(transfer: Transfer, response: Response) -> str | None:
    if response.status in _REDIRECTS:
        return response.headers.get("Location", "")
    if (
        response.status not in DOCUMENT_STATUSES
        or not transfer.manner.follows_refresh
        or transfer.manner.is_head
    ):
        return None
    field = next(iter(response.fields("refresh")), "")
    media_type = response.headers.get("Content-Type", "")
    url = refresh_target(response.body, response.target.url, media_type, field)
    if not url:
        return None
    # A page that leads on has taken its memory for nothing.
    transfer.share.give_back()
    return url


def _conclude(transfer: Transfer, response: Response) -> Fetched:
    not_modified, url = response.status == _NOT_MODIFIED, response.target.url
    if not_modified and not transfer.validators.header_fields(url):  # it was not asked whether it is
        raise status_failure(response.status, url, None)
    if not (not_modified or response.body or transfer.manner.is_head):
        message = "expected a document, got an empty body"
        raise PublisherError(message, url=url, slug="empty", publisher_status=response.status)
    return _make_fetched(transfer, response, not_modified=not_modified)


def _make_fetched(transfer: Transfer, response: Response, *, not_modified: bool) -> Fetched:
    url, headers = response.target.url, response.kept_headers()
    is_of_session = any(cookies for _, cookies in transfer.asked)
    has_moved = transfer.is_permanent and url != transfer.seen[0] and not is_of_session
    return Fetched(
        url=transfer.url,
        final_url=url,
        hops=tuple(transfer.seen[1:-1]),
        permanent_url=url if has_moved else None,
        not_modified=not_modified,
        body=response.body,
        media_type=headers.get("content-type", ""),
        headers=headers,
        links=response.fields("link"),
        wire_bytes=transfer.wire_bytes,
        fetched_at=time.time(),
        status=response.status,
        repairs=tuple(sorted(response.repairs)),
    )
