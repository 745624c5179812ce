"""A publisher without a network: a generated feed at no cost beside the service."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from benchmarks.support.feeds import Chain
from wholefeed.config.tables import LimitsConfig
from wholefeed.core.jobs import Style
from wholefeed.errors import PublisherError
from wholefeed.fetch.base import USUAL, Fetched, Manner, Validators
from wholefeed.fetch.budget import BudgetSizes
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.service.sources import Obtained, Source
from wholefeed.workers.pool import Workers

BASE: Final = "http://generated.test"
URL: Final = f"{BASE}/feed"


class InMemoryFetcher(Fetcher):
    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._added = 0
        self._bodies = {
            f"{BASE}/archive/{number}": chain.archive(BASE, number) for number in range(1, chain.archives + 1)
        }
        self._bodies[URL] = chain.subscription(BASE)

    def add_entry(self) -> None:
        """Add an entry to the subscription document; its oldest one falls out."""
        self._added += 1
        self._bodies[URL] = self._chain.subscription(BASE, added=self._added)

    @asynccontextmanager
    async def fetching(
        self,
        url: str,
        *,
        validators: Validators | None = None,
        on_chunk: Callable[[str, bytes], None] | None = None,
        is_ahead: Callable[[], bool] = lambda: False,
        sizes: BudgetSizes | None = None,
        is_met: Callable[[str], bool] | None = None,
        manner: Manner = USUAL,
    ) -> AsyncIterator[Fetched]:
        """Return a document of the chain; a guess beyond its end finds none."""
        body = self._bodies.get(url)
        if body is None:
            raise PublisherError("expected a document, got status 404", url=url, publisher_status=404)
        if on_chunk is not None:
            on_chunk(url, body)
        yield Fetched(
            url=url,
            final_url=url,
            hops=(),
            permanent_url=None,
            not_modified=False,
            body=body,
            media_type="application/atom+xml",
            headers={},
            links=(),
            wire_bytes=len(body),
            fetched_at=time.time(),
            status=200,
        )


def source_of(fetcher: Fetcher) -> Source:
    """Return the parser of the fetcher's documents."""
    return Source(fetcher, Workers(0), xml_depth=LimitsConfig().xml_depth)


async def obtain(source: Source, url: str, style: Style | None = None) -> Obtained:
    """Fetch and parse a document; older documents are rendered in the subscription document's style."""
    obtained = await source.obtain(url, style=style)
    assert isinstance(obtained, Obtained), "nothing is conditional here"
    return obtained
