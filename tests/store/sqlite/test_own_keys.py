from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from wholefeed.store.migrations import read_migrations
from wholefeed.store.sqlite_file import migrate_file

FEED = """
    INSERT INTO feed (url, fetch_url, family, kind, state, first_seen_at, asked_at)
    VALUES (?, ?, 'atom', 'plain', 'remembered', 0, 0) RETURNING id
"""


async def test_feeds_lose_the_names_that_they_took_by_moving(tmp_path: Path) -> None:
    """R25: in earlier versions where a feed moved to led to it, also when it had come back since."""
    path = tmp_path / "feeds.db"
    every = await asyncio.to_thread(read_migrations)
    number = next(at for at, migration in enumerate(every) if migration.name.endswith("own_keys"))
    await migrate_file(path, every[:number])
    with closing(sqlite3.connect(path)) as db:
        (moved,) = db.execute(FEED, ("http://o.test/old", "http://o.test/new")).fetchone()
        (returned,) = db.execute(FEED, ("http://o.test/a", "http://o.test/a")).fetchone()
        db.executemany(
            "INSERT INTO alias (url, feed) VALUES (?, ?)",
            [("http://o.test/new", moved), ("http://o.test/between", moved), ("http://o.test/b", returned)],
        )
        db.commit()
    await migrate_file(path, every[: number + 1])
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT url, feed FROM alias").fetchall() == []
        assert db.execute("SELECT count(*) FROM feed").fetchone() == (2,)
