"""wholefeed.service.replays: which feeds have lines, and since when."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy, StandingClock, a_config, running

REPLAY: Any = {"replay": "1/day", "from": "2023-11-01T06:00:00Z"}


def lines(folder: Path) -> list[tuple[int, int | None]]:
    """Return each line in the database: its number, and its feed's first number of lines."""
    with closing(sqlite3.connect(folder / "wholefeed.db")) as db:
        query = "SELECT number, lines_begun FROM line JOIN feed ON feed.id = feed ORDER BY feed, number"
        return db.execute(query).fetchall()


async def test_a_feed_has_lines_from_its_first_replay_on(
    tmp_path: Path, proxy: Proxy, origin: Origin
) -> None:
    """P1: before its first replay it has none; then each entry has one, once."""
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


async def test_a_line_comes_in_the_next_second_and_never_before_another(
    tmp_path: Path, origin: Origin
) -> None:
    """P1: a clock set back changes no order."""
    origin.publish("/feed", atom(an_item("a", 1)))
    url = origin.url("/feed")
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        await proxy.whole(url)
        now = int(proxy.clock())
        await proxy.get(url, **REPLAY)
        proxy.clock.advance(-500)
        origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
        await proxy.refreshed(url)
        proxy.clock.advance(1000)
        origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2), an_item("a", 1)))
        await proxy.refreshed(url)
    with closing(sqlite3.connect(tmp_path / "wholefeed.db")) as db:
        came = [at - now for (at,) in db.execute("SELECT arrived_at FROM line ORDER BY number")]
    assert came == [1, 1, 501]
