"""wholefeed.service.replaying: which feeds have lines, and since when."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy

REPLAY: Any = {"replay": "1/day", "from": "2023-11-01T06:00:00Z"}


def lines(folder: Path) -> list[tuple[int, int | None]]:
    """Each line in the database: the number, and how many its feed was begun with."""
    with closing(sqlite3.connect(folder / "wholefeed.db")) as db:
        query = "SELECT number, lines_begun FROM line JOIN feed ON feed.id = feed ORDER BY feed, number"
        return db.execute(query).fetchall()


async def test_a_feed_has_lines_from_its_first_replay_on(
    tmp_path: Path, proxy: Proxy, origin: Origin
) -> None:
    """P1: while nobody asks for one it has none, whatever is published; then each entry has one, once."""
    items = [an_item(f"e{n}", n) for n in range(6)]
    for path in ("/read", "/replayed"):
        origin.publish(path, atom(*items[2::-1], feed_id=f"urn:{path[1:]}"))
        await proxy.whole(origin.url(path))
    proxy.clock.advance(100_000)
    await proxy.whole(origin.url("/replayed"))
    assert lines(tmp_path) == []
    with capture_logs() as logged:
        await proxy.get(origin.url("/replayed"), **REPLAY)
        await proxy.get(origin.url("/replayed"), **REPLAY)
    assert [each["event"] for each in logged].count("replay.begun") == 1
    assert lines(tmp_path) == [(1, 3), (2, 3), (3, 3)]
    origin.publish("/replayed", atom(*items[5:0:-1], feed_id="urn:replayed"))
    proxy.clock.advance(100_000)
    await proxy.whole(origin.url("/replayed"))
    assert lines(tmp_path) == [(number, 3) for number in range(1, 7)]
