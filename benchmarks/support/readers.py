"""Readers of many feeds over several replicas, who check the answers.

    readers = Readers(servers, bases, due_every=100)
    phase = asyncio.run(readers.at_pace(200.0, seconds=60.0))
    phase.latency(0.99), readers.wrong

Latency counts from the moment at which a request was due, so that servers that fall behind show it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import re
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.serve import Connection, Reply, request_for
from benchmarks.support.server import Server

_SEED: Final = 13
_DUE_SHARE: Final = 0.1
"""Share of requests for feeds that become due soon."""
_CHECKED: Final = 10
"""One answer in this many is decoded and checked."""
_ENTRY: Final = b"<entry xml:base="
_FEED: Final = re.compile(rb"/f(\d{6})/feed")
_BROKEN: Final = (OSError, EOFError)
_GONE_SECONDS: Final = 1.0
"""Pause before a replica with broken connections is asked again."""


@dataclass
class Phase:
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    durations: list[float] = field(default_factory=list)
    again: int = 0
    """Requests repeated at another replica after a broken connection."""

    def latency(self, share: float) -> float:
        """Return the latency in seconds at this quantile."""
        ordered = sorted(self.durations) or [0.0]
        return ordered[int(share * (len(ordered) - 1))]


@dataclass
class Seen:
    """Versions of a feed seen by readers, the newest last."""

    etags: list[str] = field(default_factory=list)
    at: float = 0.0
    """When the newest version was first seen."""
    entries: int = 0


class Readers:
    """All readers, with their memory.

    Args:
        servers: The replicas; an item may be replaced by a new one.
        bases: What the URLs of the feeds begin with.
        due_every: One in so many feeds is due again soon; 0: none.
    """

    def __init__(self, servers: list[Server], bases: Sequence[str], *, due_every: int) -> None:
        self._servers = servers
        self._bases = bases
        self._due_every = due_every
        self._chance = random.Random(_SEED)
        self._seen: dict[int, Seen] = {}
        self._answered: Counter[int] = Counter()
        self._idle: dict[int, deque[Connection]] = {}
        self._shunned: dict[int, float] = {}
        self._turn = 0
        self.wrong: list[str] = []

    def by_replica(self) -> list[int]:
        """Return the number of answers of each replica."""
        return [self._answered[place] for place in range(len(self._servers))]

    async def ask_all_once(self) -> None:
        """Ask each replica for each feed, to load it into memory."""
        phase, work = Phase(), iter([(place, number) for place in range(len(self._servers))
                                     for number in range(len(self._bases))])  # fmt: skip

        async def ask() -> None:
            for place, number in work:
                await self._ask(number, phase, time.perf_counter(), place)

        await asyncio.gather(*(ask() for _ in range(8)))
        await self._hang_up()

    async def flat_out(self, connections: int, seconds: float) -> Phase:
        """Ask over this many connections, each right after its last answer."""
        phase, began = Phase(), time.perf_counter()

        async def ask() -> None:
            while (now := time.perf_counter()) < began + seconds:
                await self._ask(self._choose(), phase, now)

        await asyncio.gather(*(ask() for _ in range(connections)))
        phase.seconds = time.perf_counter() - began
        await self._hang_up()
        return phase

    async def at_pace(self, per_second: float, seconds: float) -> Phase:
        """Ask at this rate, without waiting for answers."""
        phase, began = Phase(), time.perf_counter()
        async with asyncio.TaskGroup() as asking:
            for place in range(int(per_second * seconds)):
                due_at = began + place / per_second
                await asyncio.sleep(due_at - time.perf_counter())
                asking.create_task(self._ask(self._choose(), phase, due_at))
        phase.seconds = time.perf_counter() - began
        await self._hang_up()
        return phase

    def _choose(self) -> int:
        if self._due_every and self._chance.random() < _DUE_SHARE:
            return self._chance.randrange(0, len(self._bases), self._due_every)
        return self._chance.randrange(len(self._bases))

    async def _ask(self, number: int, phase: Phase, due_at: float, at: int | None = None) -> None:
        """Ask one replica after the other until one answers."""
        seen = self._seen.setdefault(number, Seen())
        fields = {"Accept_Encoding": "gzip"}
        if seen.etags and self._chance.random() < 0.5:
            fields["If_None_Match"] = seen.etags[-1]
        sent_at = time.perf_counter()
        for _ in range(2 * len(self._servers) + 1):
            place = self._next() if at is None else at
            server = self._servers[place]
            try:
                connection = await self._connection(server)
                target = server.feed_target(f"{self._bases[number]}/feed")
                reply = await connection.ask(request_for(target, server.port, **fields))
            except _BROKEN:
                phase.again += 1
                self._shunned[server.port] = time.perf_counter() + _GONE_SECONDS
                self._idle.pop(server.port, None)
                continue
            self._idle.setdefault(server.port, deque()).append(connection)
            self._answered[place] += 1
            phase.durations.append(time.perf_counter() - due_at)
            phase.statuses[reply.status] += 1
            self._check(number, seen, reply, sent_at)
            return
        phase.statuses[0] += 1

    def _next(self) -> int:
        now = time.perf_counter()
        for _ in self._servers:
            self._turn = (self._turn + 1) % len(self._servers)
            if self._shunned.get(self._servers[self._turn].port, 0.0) < now:
                break
        return self._turn

    async def _connection(self, server: Server) -> Connection:
        idle = self._idle.get(server.port)
        return idle.pop() if idle else await Connection.open(server.port)

    async def _hang_up(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                with contextlib.suppress(*_BROKEN):
                    await connection.close()

    def _check(self, number: int, seen: Seen, reply: Reply, sent_at: float) -> None:
        """Note a wrong answer: another feed's, or one already replaced."""
        if reply.status not in (200, 304):
            return
        if not seen.etags or reply.etag != seen.etags[-1]:
            if reply.etag in seen.etags:
                if sent_at > seen.at:
                    self.wrong.append(f"feed {number} went back to {reply.etag}")
                return
            seen.etags.append(reply.etag)
            seen.at = time.perf_counter()
        if reply.status == 304 or self._chance.random() > 1 / _CHECKED:
            return
        body = gzip.decompress(reply.body)
        if {int(each) for each in _FEED.findall(body)} != {number}:
            self.wrong.append(f"feed {number} has the content of another")
        entries = body.count(_ENTRY)
        if entries < seen.entries and sent_at > seen.at:
            self.wrong.append(f"feed {number} had {seen.entries} entries and has {entries}")
        seen.entries = max(entries, seen.entries)
