"""Subscription lists that are brought in, as a program does it.

begun = await bring_in(proxy, an_opml(origin.url("/a"), origin.url("/b")))
done = await brought_in(proxy, begun["id"])
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import quoteattr

from tests.running import Proxy

Intake = dict[str, Any]
"""An object of `/intake`."""


def an_opml(*urls: str, titles: tuple[str, ...] = ()) -> bytes:
    """A list with a line for each URL, the first in line 2."""
    named = [*titles, *["A feed of the list"] * (len(urls) - len(titles))]
    lines = [
        f"<outline text={quoteattr(title)} xmlUrl={quoteattr(url)}/>"
        for url, title in zip(urls, named, strict=True)
    ]
    return ("<opml version='2.0'><body>\n" + "\n".join(lines) + "\n</body></opml>").encode()


async def bring_in(proxy: Proxy, document: bytes, **query: str) -> Intake:
    reply = await proxy.ask("POST", "/opml", params={"ask": "1", **query}, data=document)
    assert reply.status == 202, reply.body
    begun: Intake = json.loads(reply.body)
    assert reply.headers["Location"] == f"./intake?id={begun['id']}"
    return begun


async def look(proxy: Proxy, intake: str) -> Intake:
    reply = await proxy.ask("GET", "/intake", params={"id": intake})
    assert reply.status == 200, reply.body
    found: Intake = json.loads(reply.body)
    return found


async def until(proxy: Proxy, intake: str, is_so: Callable[[Intake], bool]) -> Intake:
    async with asyncio.timeout(40):
        while not is_so(found := await look(proxy, intake)):
            await asyncio.sleep(0.02)
        return found


async def brought_in(proxy: Proxy, intake: str) -> Intake:
    """Wait until no feed of the list waits."""
    return await until(proxy, intake, lambda found: bool(found["over"]))
