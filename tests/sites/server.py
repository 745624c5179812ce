"""Serves a site on loopback as servers of files do, and counts what is asked for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.answers import Answer, Computed, Document, Redirect, Request, Status
from tests.origin import Origin
from tests.sites.site import Site


@dataclass(frozen=True)
class Server:
    """A site that is served."""

    site: Site
    origin: Origin
    """For faults, latency, and all that was asked."""

    @property
    def url(self) -> str:
        """Without a slash at its end."""
        return self.origin.url("")

    @property
    def feed_url(self) -> str:
        return self.origin.url(self.site.feed_path)

    @property
    def requests(self) -> Counter[str]:
        """How often each path with its query was asked for."""
        return self.origin.counts()


@asynccontextmanager
async def serving(site: Site) -> AsyncIterator[Server]:
    """Serve a site until the end of the block."""
    async with Origin() as origin:
        origin.answer_below("/", Computed(lambda request: _answer(site, request, origin.url(""))))
        yield Server(site, origin)


def _answer(site: Site, request: Request, url: str) -> Answer:
    match site.get(request.target, url):
        case None:
            return Status(404)
        case str(path):
            return Redirect(path, 301)
        case content_type, body:
            etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            return Document(body=body, headers=(("Content-Type", content_type),), etag=etag)
