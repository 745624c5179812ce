"""Row 171 of docs/faults.md: a list that is brought in, half of it from hostile and dead publishers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from benchmarks.support.usage import peak_bytes
from tests.answers import Answer, CloseWithoutAnswer, Document, Redirect, Reset, Silence, Status
from tests.bringing import an_opml
from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.processes import Served, serving

FEEDS = 60
"""Half of them come."""
MOST_BYTES = 64 << 20
"""Beyond what one of these feeds takes alone."""
BOMB = b'<!DOCTYPE f [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><feed>&b;</feed>'
LONG = atom(an_item("a")).replace(b"A feed", b"A &lt;b&gt;feed " + b"x" * (4 << 20))
HOSTILE: tuple[Answer, ...] = (
    Status(404),
    Status(500),
    Reset(),
    CloseWithoutAnswer(),
    Silence(),
    Redirect("/loop"),
    Redirect("javascript:alert(1)"),
    Document(body=BOMB),
    Document(body=b"<html><title>No feed</title></html>", headers=(("Content-Type", "text/html"),)),
    Document(body=b""),
)


async def ask(served: Served, path: str, *, method: str = "GET", data: bytes | None = None) -> Any:
    target = f"http://127.0.0.1:{served.port}{path}"
    async with aiohttp.ClientSession() as session, session.request(method, target, data=data) as response:
        return json.loads(await response.read())


async def over(served: Served, intake: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while not (found := await ask(served, f"/intake?id={intake}"))["over"]:
            await asyncio.sleep(0.1)
    return dict(found)


@pytest.mark.timeout(120)
@pytest.mark.fault("171")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
async def test_row_171_dead_and_hostile_feeds_hold_up_nobody(tmp_path: Path, origin: Origin) -> None:
    """Row 171, B2: all lines end, the others come, readers are answered, and memory stays bounded."""
    urls = [origin.url(f"/{number}") for number in range(FEEDS)]
    for number in range(0, FEEDS, 2):
        origin.publish(f"/{number}", atom(an_item(f"{number}"), feed_id=f"urn:{number}"))
        origin.answer(f"/{number + 1}", HOSTILE[number // 2 % len(HOSTILE)])
    origin.redirect("/loop", "/loop")
    origin.publish("/long", LONG)
    origin.publish("/reader", atom(an_item("r"), feed_id="urn:reader"))
    titles = ("<script>alert(1)</script>" + "y" * 100_000,)
    limits: dict[str, Any] = {
        "fetch_document_timeout_seconds": 2,
        "fetch_read_timeout_seconds": 1,
        "fetch_retries": 0,
    }
    async with serving(tmp_path, **limits) as served:
        alone = await ask(served, "/opml?ask=1", method="POST", data=an_opml(origin.url("/long")))
        await over(served, alone["id"])
        before = peak_bytes(served.process.pid)
        sent = an_opml(*urls, "javascript:alert(1)", "urn:x", titles=titles)
        begun = await ask(served, "/opml?ask=1", method="POST", data=sent)
        assert (begun["feeds"], begun["left_out"]) == (FEEDS, 2)
        assert (await served.get(origin.url("/reader"))).status == 200
        done = await over(served, begun["id"])
        assert done["states"] == {"remembered": FEEDS // 2}
        assert done["failed"] == FEEDS // 2
        assert {each["reason"] for each in done["failures"]} >= {"publisher-status", "dtd-forbidden", "empty"}
        assert peak_bytes(served.process.pid) - before < MOST_BYTES
        assert not [line for line in served.lines if line["level"] == "error"]
