"""A network in which each document comes at an instant of its own, as if from afar.

    network = Network(seed, publisher, clock)
    network.begin(3)                    # the third refresh
    async with network.fetching("http://blog.test/feed") as fetched: ...
    network.requests                    # what was asked for, in order

A URL can be had at certain instants alone, which the seed, the URL, the number of the refresh and how often
it was asked for in it decide: whoever asks a moment later has the same answer at the same time.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from tests.simulated.clock import Clock
from tests.simulated.places import (
    DOCUMENT_STATUSES,
    KEPT_HEADERS,
    USUAL,
    DocumentError,
    Fetched,
    Manner,
    PublisherError,
    PublisherTimeoutError,
    QueueFullError,
    Validators,
    parse_target,
    redirect_target,
    status_failure,
)

MOST_REDIRECTS: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


def chance(*parts: object) -> float:
    """Return a number from 0 to 1, a hash of these parts."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) / 2**64


class Question(NamedTuple):
    """A request to a publisher."""

    url: str
    is_head: bool = False
    fields: Mapping[str, str] = {}
    """The conditional fields."""


@dataclass(frozen=True)
class Response:
    """A publisher's response: a status, or a failure."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    links: tuple[str, ...] = ()
    """Values of the field Link."""
    fails: str = ""
    """A slug; without a response only."""
    repairs: tuple[str, ...] = ()


class Server(Protocol):
    def answer(self, question: Question) -> Response:
        """Return the answer at this instant."""


@dataclass
class Asked:
    """A request of the program."""

    url: str
    is_conditional: bool
    is_head: bool
    number: int
    """Number of earlier requests for the URL in this refresh."""
    end: str = "under way"

    def __str__(self) -> str:
        method = "HEAD" if self.is_head else "GET"
        return f"{method} {self.url}{' if changed' if self.is_conditional else ''} -> {self.end}"


class Network:
    """Replaces the fetcher and its gate."""

    def __init__(self, seed: str, server: Server, clock: Clock, *, slowness: float = 1.0) -> None:
        self._seed = seed
        self._server = server
        self._clock = clock
        self._slowness = slowness
        self._refresh = 0
        self._began_at = clock.seconds
        self._counts: Counter[str] = Counter()
        self.requests: list[Asked] = []
        """Requests of the refresh under way."""
        self.gate = self
        self.blocked_until: dict[str, float] = {}
        """End of each host's pause, by the monotonic clock."""

    def begin(self, refresh: int) -> None:
        """Begin the count of another refresh."""
        self._refresh = refresh
        self._began_at = self._clock.seconds
        self._counts.clear()
        self.requests = []

    def blocked_seconds(self, host: str, port: int = 0) -> float:
        return max(0.0, self.blocked_until.get(host, 0.0) - self._clock.seconds)

    async def fetch(self, url: str, **options: Any) -> Fetched:
        async with self.fetching(url, **options) as fetched:
            return fetched

    @asynccontextmanager
    async def fetching(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        on_chunk: Callable[[str, bytes], None] | None = None,
        is_ahead: Callable[[], bool] = lambda: False,
        sizes: object = None,
        is_met: Callable[[str], bool] | None = None,
        manner: Manner = USUAL,
    ) -> AsyncIterator[Fetched]:
        is_ahead()
        self._counts[url] += 1
        fields = {} if validators is None else validators.header_fields(url)
        asked = Asked(url, bool(fields), manner.is_head, self._counts[url])
        self.requests.append(asked)
        try:
            fetched = await self._travel(asked, validators or Validators(), on_chunk, is_met, manner)
        except DocumentError as exc:
            asked.end = f"{exc.slug} {exc.publisher_status or ''}".strip()
            raise
        except asyncio.CancelledError:
            asked.end = "cancelled"
            raise
        hops = f" by {fetched.final_url}" if fetched.final_url != url else ""
        asked.end = f"{'met' if fetched.is_met else fetched.status}{hops}"
        yield fetched

    async def _travel(
        self,
        asked: Asked,
        validators: Validators,
        on_chunk: Callable[[str, bytes], None] | None,
        is_met: Callable[[str], bool] | None,
        manner: Manner,
    ) -> Fetched:
        target, seen, is_permanent = parse_target(asked.url), [], True
        while True:
            if manner.turn is not None:
                await manner.turn()
            seen.append(target.url)
            conditions = validators.header_fields(target.url)
            response = await self._ask(asked, target.url, conditions, on_chunk, manner)
            if response.status not in REDIRECTS:
                if response.status == 304 and not conditions:
                    raise status_failure(304, target.url)
                if response.status != 304 and not (response.body or manner.is_head):
                    raise PublisherError(
                        "expected a document", url=target.url, slug="empty", publisher_status=200
                    )
                return self._fetched(asked.url, seen, response, is_permanent=is_permanent)
            is_permanent = is_permanent and response.status in (301, 308)
            target = redirect_target(target, response.headers.get("location", ""))
            if target.url in seen or len(seen) > MOST_REDIRECTS:
                raise PublisherError("expected no circle", url=target.url, slug="redirect-loop")
            if is_met is not None and is_met(target.url):
                seen.append(target.url)
                return self._fetched(asked.url, seen, response, is_permanent=is_permanent, is_met=True)

    async def _ask(
        self,
        asked: Asked,
        url: str,
        conditions: Mapping[str, str],
        on_chunk: Callable[[str, bytes], None] | None,
        manner: Manner,
    ) -> Response:
        """Ask for one hop, and wait for its response."""
        dice = (self._seed, url, self._refresh, asked.number)
        arrives_at = self._next_instant(*dice)
        begins_at = self._clock.seconds + (0.1 + 0.8 * chance("head", *dice)) * (
            arrives_at - self._clock.seconds
        )
        if chance("queue", *dice) < 0.01:
            raise QueueFullError("too much waits", url=url, retry_after_seconds=0.5 + chance("room", *dice))
        await asyncio.sleep(begins_at - self._clock.seconds)
        response = self._server.answer(Question(url, manner.is_head, conditions))
        if response.fails:
            await asyncio.sleep(
                arrives_at - self._clock.seconds + (20.0 if response.fails == "timeout" else 0.0)
            )
            kind = PublisherTimeoutError if response.fails == "timeout" else PublisherError
            raise kind("nothing came", url=url, slug=response.fails)
        if response.status == 200 and on_chunk is not None and not manner.is_head:
            begun = int(len(response.body) * chance("begun", *dice))
            on_chunk(url, response.body[:begun])
            await asyncio.sleep(arrives_at - self._clock.seconds)
            on_chunk(url, response.body[begun:])
        else:
            await asyncio.sleep(arrives_at - self._clock.seconds)
        if response.status not in DOCUMENT_STATUSES | REDIRECTS | {304}:
            wait = response.headers.get("retry-after")
            raise status_failure(response.status, url, None if wait is None else float(wait))
        return response

    def _next_instant(self, *dice: object) -> float:
        """Return the first of a URL's own instants from now on."""
        period = self._slowness * (0.05 + 2.0 * chance("period", *dice) ** 2)
        first_at = self._began_at + period * chance("phase", *dice)
        return first_at + period * math.ceil((self._clock.seconds + 0.001 - first_at) / period)

    def _fetched(
        self, url: str, seen: list[str], response: Response, *, is_permanent: bool, is_met: bool = False
    ) -> Fetched:
        final_url = seen[-1]
        not_modified = is_met or response.status == 304
        return Fetched(
            url=url,
            final_url=final_url,
            hops=tuple(seen[1:-1]),
            permanent_url=final_url if is_permanent and final_url != seen[0] else None,
            not_modified=not_modified,
            body=b"" if not_modified else response.body,
            media_type=response.headers.get("content-type", ""),
            headers={name: value for name, value in response.headers.items() if name in KEPT_HEADERS},
            links=response.links,
            wire_bytes=len(response.body),
            fetched_at=self._clock.time(),
            is_met=is_met,
            status=response.status,
            repairs=response.repairs,
        )
