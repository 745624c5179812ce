"""Checks for every fault at every place (docs/faults.md): one check a place.

    await strikes(proxy, origin, Answered(struck, Reset()), "connection-failed")

`origin` publishes sound documents, `struck` the faulty one: another host, so that a fault can take it down
whole.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from structlog.testing import capture_logs

from tests.answers import Answer
from tests.feeds import an_item, atom, ids, own_ids
from tests.origin import Origin
from tests.running import Proxy, Reply
from tests.sqlite_faults import rows

DAY_SECONDS = 86_400
REMEMBERED_SECONDS = 60
"""Maximum memory of an unknown URL's failure (row 21)."""

SECRET = "k3y"
"""Part of the requested query string; no log line may show it."""

STORED = """
    SELECT d.url, d.digest, b.coded FROM feed AS f
    JOIN document AS d ON d.feed = f.id JOIN body AS b ON b.document = d.id
    WHERE f.url = '{}' ORDER BY d.id
"""

Log = Sequence[MutableMapping[str, Any]]


class Fault(Protocol):
    """A fault of one document, with an end."""

    origin: Origin

    async def begin(self, path: str) -> None: ...
    async def end(self, path: str) -> None: ...


@dataclass
class Answered:
    origin: Origin
    answer: Answer

    async def begin(self, path: str) -> None:
        self.origin.fault(path, self.answer)

    async def end(self, path: str) -> None:
        self.origin.heal(path)


@dataclass
class Down:
    origin: Origin

    async def begin(self, path: str) -> None:
        await self.origin.stop()

    async def end(self, path: str) -> None:
        await self.origin.start()


def problem(reply: Reply, slug: str, status: int, name: str = "") -> dict[str, Any]:
    """Check and return a problem document (RFC 9457)."""
    found: dict[str, Any] = json.loads(reply.body)
    assert (reply.status, found["status"], found["type"]) == (status, status, f"urn:wholefeed:{slug}"), name
    assert reply.headers["Content-Type"].startswith("application/problem+json")
    assert reply.headers["Cache-Control"] == "no-store"
    assert found["request_id"] == reply.headers["X-Request-Id"] != ""
    assert found["title"]
    assert found["detail"]
    return found


def the_event(logs: Log, origin: Origin, path: str) -> MutableMapping[str, Any]:
    """Return the only event of a path's fetch; check its required and forbidden fields."""
    (event,) = [
        line
        for line in logs
        if line["event"].startswith("document.")
        and line["url"].removesuffix("?…") == origin.url(path).partition("?")[0]
    ]
    assert event["host"] == origin.host
    for name in ("hops", "wire_bytes", "body_bytes", "duration_s"):
        assert event[name] >= 0, name
    assert SECRET not in str(logs)
    return event


async def strikes(proxy: Proxy, origin: Origin, fault: Fault, slug: str, status: int = 502) -> None:
    origin.publish("/sound", atom(an_item("z"), complete=True))
    await strikes_what_is_unknown(proxy, fault, slug, status)
    await strikes_what_is_stored(proxy, fault, slug)
    await strikes_an_archive(proxy, origin, fault, slug)
    assert (await proxy.whole(origin.url("/sound"))).state == "complete"


async def each_strikes(
    proxy: Proxy, origin: Origin, struck: Origin, slug: str, status: int, answers: Mapping[str, Answer]
) -> None:
    """Check faults of one outcome: the first at every place, the others with nothing stored."""
    first, *others = answers
    await strikes(proxy, origin, Answered(struck, answers[first]), slug, status)
    for number, name in enumerate(others):
        fault = Answered(struck, answers[name])
        await strikes_what_is_unknown(proxy, fault, slug, status, path=f"/unknown/{number}", name=name)


async def strikes_what_is_unknown(
    proxy: Proxy, fault: Fault, slug: str, status: int, *, path: str = "/unknown", name: str = ""
) -> None:
    """SUB, nothing stored: the problem, and nothing is stored."""
    url = fault.origin.url(f"{path}?key={SECRET}")
    fault.origin.publish(path, atom(an_item("a"), complete=True))
    await fault.begin(path)
    with capture_logs() as logs:
        reply = await proxy.get(url)
    await fault.end(path)

    problem(reply, slug, status, name)
    event = the_event(logs, fault.origin, path)
    assert (event["event"], event["outcome"], event["slug"]) == ("document.failed", "failed", slug)
    problem(await proxy.ask("GET", "/status", params={"url": url}), "unknown-feed", 404)
    proxy.clock.advance(REMEMBERED_SECONDS)
    assert ids((await proxy.whole(url)).body) == ["a"], name


async def strikes_what_is_stored(proxy: Proxy, fault: Fault, slug: str) -> None:
    """SUB, stored: the stored feed, stale and unchanged, until the publisher is back."""
    publisher, url = fault.origin, fault.origin.url("/stored")
    publisher.publish("/stored", atom(an_item("b", 2), prev_archive="/stored/1"))
    publisher.publish("/stored/1", atom(an_item("a", 1), archive=True))
    fresh = await proxy.whole(url)
    assert (fresh.state, ids(fresh.body)) == ("complete", ["b", "a"])
    before = await stored(proxy, url)
    await fault.begin("/stored")
    proxy.clock.advance(DAY_SECONDS + 1)
    with capture_logs() as logs:
        stale = await proxy.get(url)
    await fault.end("/stored")

    assert (stale.status, stale.reconstruction) == (200, f"{fresh.reconstruction};stale")
    assert (stale.body, stale.headers["ETag"]) == (fresh.body, fresh.headers["ETag"])
    assert await stored(proxy, url) == before
    assert the_event(logs, publisher, "/stored")["slug"] == slug

    publisher.publish("/stored", atom(an_item("c", 3), an_item("b", 2), prev_archive="/stored/1"))
    proxy.clock.advance(DAY_SECONDS + 1)
    healed = await proxy.whole(url)
    assert healed.reconstruction == "complete;documents=2;entries=3;missing=0"


async def strikes_an_archive(proxy: Proxy, origin: Origin, fault: Fault, slug: str) -> None:
    """ARC: partial with every reachable entry, until it heals; then the stored copy outlasts the fault."""
    publisher, url = fault.origin, origin.url("/chain")
    origin.publish("/chain", atom(an_item("d", 4), prev_archive="/chain/3"))
    origin.publish("/chain/3", atom(an_item("c", 3), archive=True, prev_archive=publisher.url("/chain/2")))
    publisher.publish("/chain/2", atom(an_item("b", 2), archive=True, prev_archive="/chain/1"))
    publisher.publish("/chain/1", atom(an_item("a", 1), archive=True))
    await fault.begin("/chain/2")
    with capture_logs() as logs:
        reply = await proxy.whole(url)
    await fault.end("/chain/2")

    assert (reply.status, reply.reconstruction) == (200, "partial;documents=2;entries=2;missing=1")
    assert ids(reply.body)[1:] == ["d", "c"]
    assert b"complete/>" not in reply.body
    (missing,) = (await proxy.status(url))["missing"]
    assert (missing["url"], missing["reason"]) == (publisher.url("/chain/2"), slug)
    assert missing["next_attempt"]
    assert the_event(logs, publisher, "/chain/2")["slug"] == slug

    whole = await proxy.refreshed(url)
    assert (whole.state, own_ids(whole.body)) == ("complete", ["d", "c", "b", "a"])
    assert (await proxy.status(url))["missing"] == []
    before = await stored(proxy, url)
    await fault.begin("/chain/2")
    again = await proxy.refreshed(url, full=True)
    await fault.end("/chain/2")
    assert (again.state, again.body) == ("complete", whole.body)
    assert await stored(proxy, url) == before


async def stored(proxy: Proxy, url: str) -> list[tuple[str, bytes, bytes]]:
    found = await asyncio.to_thread(rows, proxy.database, STORED.format(url))
    assert found
    return found
