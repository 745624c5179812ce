from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from wholefeed.store.sqlite.migrate import migrate_file, read_migrations

FEED = """
    INSERT INTO feed (url, fetch_url, family, kind, state, first_seen_at, asked_at)
    VALUES (?, ?, 'atom', 'plain', 'remembered', 0, 0) RETURNING id
"""


async def test_a_feed_that_has_moved_loses_the_names_that_it_took(tmp_path: Path) -> None:
    """R25: those of earlier versions led from the address that it moved to; what led to others stays."""
    path = tmp_path / "feeds.db"
    every = await asyncio.to_thread(read_migrations)
    number = next(at for at, migration in enumerate(every) if migration.name.endswith("own_keys"))
    await migrate_file(path, every[:number])
    with closing(sqlite3.connect(path)) as db:
        (moved,) = db.execute(FEED, ("http://o.test/old", "http://o.test/new")).fetchone()
        (other,) = db.execute(FEED, ("http://o.test/feed", "http://o.test/feed")).fetchone()
        db.executemany(
            "INSERT INTO alias (url, feed) VALUES (?, ?)",
            [("http://o.test/new", moved), ("http://o.test/between", moved), ("http://o.test/", other)],
        )
        db.commit()
    await migrate_file(path, every[: number + 1])
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT url, feed FROM alias").fetchall() == [("http://o.test/", other)]
        assert db.execute("SELECT count(*) FROM feed").fetchone() == (2,)
