"""A feed from its beginning, at a pace (P1 to P9)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import feedparser
import pytest

from tests.feeds import an_item, atom, ids, json_feed, publish_chain, rdf, rss
from tests.origin import Origin
from tests.running import Proxy, StandingClock, a_config, running

DAY = 86_400


def instant(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_one_entry_comes_a_day(tmp_path: Path, origin: Origin) -> None:
    """P2, P5: the oldest first, the newest release in front, and each stays where it is."""
    expected = publish_chain(origin, archives=4)[::-1]
    url, clock = origin.url("/feed"), StandingClock()
    async with running(a_config(tmp_path), clock) as proxy:
        await proxy.whole(url)
        asked = {"replay": "1/day", "from": instant(clock() - 2)}
        first = await proxy.get(url, **asked)
        print(first.headers, first.body.decode())
        assert ids(first.body) == expected[1::-1]
        for day in range(1, 5):
            clock.advance(DAY)
            reply = await proxy.get(url, **asked)
            assert ids(reply.body) == expected[1 + day :: -1], day
            assert reply.reconstruction.endswith(f";released={2 + day}")
