"""Feeds and their other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import aiosqlite

from wholefeed.core.terms import Family, Kind, State
from wholefeed.errors import UnknownFeedError
from wholefeed.store.rows import FeedRow, feed_row
from wholefeed.store.sqlite.connection import fetch_all, fetch_one, fetch_value, run

_BY_ID: Final = "SELECT * FROM feed WHERE id = :feed"
_BY_URL: Final = """
    SELECT feed.* FROM feed WHERE url = :url
    UNION ALL
    SELECT feed.* FROM alias JOIN feed ON feed.id = alias.feed WHERE alias.url = :url
    LIMIT 1
"""
_LIST: Final = "SELECT * FROM feed ORDER BY url LIMIT :limit OFFSET :offset"
_UNFINISHED: Final = """
    SELECT * FROM feed
    WHERE is_walking OR (digest IS NOT NULL AND revision <> published_revision) ORDER BY id
"""
_CREATE: Final = """
    INSERT INTO feed (url, fetch_url, via_url, family, published_family, kind, state, first_seen_at, asked_at)
    VALUES (:url, :fetch_url, :fetch_url, :family, :family, :kind, :state, :now, :now)
"""
_ADD_ALIAS: Final = """
    INSERT INTO alias (url, feed) VALUES (:url, :feed)
    ON CONFLICT (url) DO UPDATE SET feed = excluded.feed
"""
_BYTES: Final = "SELECT coalesce(sum(body_bytes), 0) FROM document WHERE feed = :feed"
_RETIRE_ALL: Final = """
    UPDATE segment SET position = NULL, retired_at = :now WHERE feed = :feed AND position IS NOT NULL
"""
_FORGET: Final = "DELETE FROM feed WHERE id = :feed"
_NOTE_ASKED: Final = "UPDATE feed SET asked_at = ? WHERE id = ?"
_BEGIN_WALK: Final = """
    UPDATE feed SET
        is_walking = 1,
        modified_at = CASE  -- the body no longer says that it is complete, nor what is missing
            WHEN NOT is_walking AND state <> 'loading' THEN max(:now, modified_at + 1)
            ELSE modified_at
        END
    WHERE id = :feed
"""


async def find_by_url(db: aiosqlite.Connection, url: str) -> FeedRow | None:
    """Return the feed of this key or alias; the key wins."""
    row = await fetch_one(db, _BY_URL, {"url": url})
    return None if row is None else feed_row(row)


async def find(db: aiosqlite.Connection, feed: int) -> FeedRow | None:
    """Return the feed, or None when it was forgotten."""
    row = await fetch_one(db, _BY_ID, {"feed": feed})
    return None if row is None else feed_row(row)


async def require(db: aiosqlite.Connection, feed: int) -> FeedRow:
    """Return the feed.

    Raises:
        UnknownFeedError: It was forgotten.
    """
    found = await find(db, feed)
    if found is None:
        raise UnknownFeedError(f"no feed is stored under the number {feed}")
    return found


async def list_feeds(db: aiosqlite.Connection, limit: int, offset: int) -> list[FeedRow]:
    """Return feeds by URL."""
    return [feed_row(row) for row in await fetch_all(db, _LIST, {"limit": limit, "offset": offset})]


async def list_unfinished(db: aiosqlite.Connection) -> list[FeedRow]:
    """Return the feeds whose walk has not ended, oldest first."""
    return [feed_row(row) for row in await fetch_all(db, _UNFINISHED)]


async def create(
    db: aiosqlite.Connection, *, url: str, fetch_url: str, family: Family, kind: Kind, now: float
) -> FeedRow:
    """Return the feed of that key or alias, made if it was not there."""
    found = await find_by_url(db, url)
    if found is None:
        values = {"url": url, "fetch_url": fetch_url, "family": family, "kind": kind}
        await run(db, _CREATE, {**values, "state": State.LOADING, "now": now})
        found = await find_by_url(db, url)
    assert found is not None
    return found


async def add_alias(db: aiosqlite.Connection, url: str, feed: int) -> int | None:
    """Let the URL lead to the feed, and return the one that it led to before."""
    await require(db, feed)
    before = await find_by_url(db, url)
    await run(db, _ADD_ALIAS, {"url": url, "feed": feed})
    return None if before is None else before.id


async def update(db: aiosqlite.Connection, feed: int, changes: Mapping[str, Any]) -> FeedRow:
    """Set columns of a feed. The names are the program's own, never input."""
    if changes:
        columns = ", ".join(f"{name} = :{name}" for name in changes)
        await run(db, f"UPDATE feed SET {columns} WHERE id = :feed", {**changes, "feed": feed})  # noqa: S608
    return await require(db, feed)


async def note_asked(db: aiosqlite.Connection, asked: Mapping[int, float]) -> None:
    """Note when feeds were asked for."""
    await db.executemany(_NOTE_ASKED, [(asked_at, feed) for feed, asked_at in asked.items()])


async def begin_walk(db: aiosqlite.Connection, feed: int, now: float) -> None:
    """Note that a walk may add documents from now on."""
    await require(db, feed)
    await run(db, _BEGIN_WALK, {"feed": feed, "now": now})


async def body_bytes(db: aiosqlite.Connection, feed: int) -> int:
    """Return what the bodies of a feed's documents come to, decoded."""
    return int(await fetch_value(db, _BYTES, {"feed": feed}))


async def forget(db: aiosqlite.Connection, feed: int, now: float) -> bool:
    """Delete a feed and all that is its own. Its segments retire: an answer may still be using them."""
    await run(db, _RETIRE_ALL, {"feed": feed, "now": now})
    return await run(db, _FORGET, {"feed": feed}) > 0
