"""A web archive on loopback that answers as the Wayback Machine does: an index with resume keys, and copies.

async with WebArchive() as archive:
    archive.save("http://127.0.0.1:8000/feed", 2019, atom(an_item("a")))
    async with searching(archive, tmp_path) as proxy:
        ...
    assert archive.searches == 1
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

from tests.answers import Answer, Computed, Document, Request, Status
from tests.origin import ATOM, Origin
from tests.running import Clock, Proxy, Reply, a_config, running
from wholefeed.fetch.fetcher import Fetcher
from wholefeed.fetch.web_archive import Turns
from wholefeed.store.tables import failures
from wholefeed.web.keys import STORE

INDEX = "/cdx/search/cdx"
NAMES = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]


HASTY: Final = partial(Turns, 10**6)
"""Lets a proxy ask an archive without pauses: `running(config, archive_turns=HASTY())`."""


@dataclass
class WebArchive:
    is_keyless: bool = False
    """Whether it knows no resume keys, and cuts the index off in silence."""
    rows: dict[str, list[list[str]]] = field(default_factory=dict)
    """By URL."""
    origin: Origin = field(default_factory=lambda: Origin("127.0.0.2"))

    async def __aenter__(self) -> Self:
        await self.origin.start()
        self.origin.answer(INDEX, Computed(self._index))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.origin.stop()

    @property
    def searches(self) -> int:
        """Number of requests for the index."""
        return len(self.origin.requests_for(INDEX))

    @property
    def copies(self) -> list[str]:
        """The requested copies, by year and URL, in order."""
        targets = [each.target.removeprefix("/web/") for each in self.origin.requests]
        return [target for target in targets if not target.startswith(INDEX)]

    def save(
        self,
        url: str,
        year: int | str,
        body: bytes | None,
        *,
        content_type: str = ATOM,
        original: str = "",
        answer: Answer | None = None,
    ) -> str:
        """Archive a body as it stood on the first of May of a year, or at 14 digits; return the copy's URL.

        Args:
            url: Of the document.
            year: When.
            body: None: listed, and not there.
            content_type: As its publisher sent it.
            original: As what the index lists it, where that is another URL.
            answer: The copy's answer instead.
        """
        timestamp = year if isinstance(year, str) else f"{year}0501120000"
        digest = hashlib.sha1(body or timestamp.encode()).hexdigest()
        row = ["key", timestamp, original or url, content_type, "200", digest, str(len(body or b""))]
        self.rows.setdefault(url, []).append(row)
        path = f"/web/{timestamp}id_/{original or url}"
        if answer is not None:
            self.origin.answer(path, answer)
        elif body is not None:
            memento = ("Link", f'<{url}>; rel="original", <http://archive.test/x>; rel="first prev memento"')
            headers = (("Content-Type", content_type), memento, ("Cache-Control", "max-age=1800"))
            self.origin.answer(path, Document(body=body, headers=headers, etag='"archive"'))
        return self.origin.url(path)

    def _index(self, request: Request) -> Answer:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.target).query).items()}
        if (query["output"], query["filter"], query["collapse"]) != ("json", "statuscode:200", "digest"):
            return Status(400)
        found = sorted(self.rows.get(query["url"], []), key=lambda row: row[1])
        found = [row for row in found if row[1] >= query.get("from", "")]
        limit, start = int(query["limit"]), int(query.get("resumeKey", "k0")[1:])
        tail: list[list[str]] = []
        if limit < 0:
            found = found[limit:]
        else:
            if start + limit < len(found) and query.get("showResumeKey") and not self.is_keyless:
                tail = [[], [f"k{start + limit}"]]
            found = found[start : start + limit]
        body = json.dumps([NAMES, *found, *tail] if found else []).encode()
        return Document(body=body, headers=(("Content-Type", "application/json"),))


@asynccontextmanager
async def searching(
    archive: WebArchive,
    path: Path,
    *,
    clock: Clock | None = None,
    is_hasty: bool = True,
    history: dict[str, Any] | None = None,
    open_fetcher: Any = Fetcher.open,
    **sections: Any,
) -> AsyncIterator[Proxy]:
    """Start a proxy that asks the archive without pauses, or at its usual pace."""
    wanted = {
        "memento": True,
        "memento_url": archive.origin.url("").rstrip("/"),
        "memento_query_hosts": ("127.0.0.1",),
        **(history or {}),
    }
    config = a_config(path, history=wanted, **sections)
    parts = {"archive_turns": HASTY() if is_hasty else None, "open_fetcher": open_fetcher}
    async with running(config, clock, **parts) as proxy:
        yield proxy


async def open_searches(proxy: Proxy) -> int:
    """Number of documents still to be searched in the archive, without postponed ones."""
    now = proxy.clock() + 1  # one that goes on at once may have been noted just now
    look = partial(failures.list_open_searches, now=now, horizon=now + 10**9)
    return len(await proxy.app[STORE].read(look))


async def searched(proxy: Proxy, url: str) -> Reply:
    """GET the feed when the search for all missing documents has ended."""
    reply = await proxy.whole(url)
    async with asyncio.timeout(300):
        while await open_searches(proxy) or proxy.is_busy:
            await asyncio.sleep(0.01)
    return await proxy.get(url) if reply.status == 200 else reply
