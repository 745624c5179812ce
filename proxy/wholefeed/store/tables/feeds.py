"""Feeds and their other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wholefeed.core.terms import Family, Kind, State
from wholefeed.errors import UnknownFeedError
from wholefeed.store.columns import FEED_COLUMNS, feed_row
from wholefeed.store.database import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.statements import CLOCK, either, fetch_all, fetch_one, fetch_value, run

_IS_KNOWN: Final = "SELECT 1 FROM feed WHERE id = :feed"
_BY_ID: Final = f"SELECT {FEED_COLUMNS} FROM feed WHERE id = :feed"  # noqa: S608 - names of columns
_BY_URL: Final = f"""
    SELECT {FEED_COLUMNS} FROM feed WHERE id = coalesce(
        (SELECT id FROM feed WHERE url = :url), (SELECT feed FROM alias WHERE url = :url)
    )
"""  # noqa: S608 - names of columns
_LIST: Final = f"SELECT {FEED_COLUMNS} FROM feed ORDER BY url LIMIT :limit OFFSET :offset"  # noqa: S608
_STATES: Final = """
    SELECT CASE WHEN is_walking <> 0 THEN 'loading' ELSE state END AS state,
        count(*) AS feeds, sum(is_stale) AS stale
    FROM feed GROUP BY 1
"""
_MATCHING: Final = "FROM feed WHERE :words = '' OR instr(lower(url), lower(:words)) > 0"
# Like SQLite's lower(), that of COLLATE "C" knows ASCII alone.
_MATCHING_TOO: Final = "FROM feed WHERE :words = '' OR strpos(lower(url), lower(:words COLLATE \"C\")) > 0"
_SEARCH_BY_URL: Final = either(
    sqlite=f"SELECT {FEED_COLUMNS} {_MATCHING} ORDER BY url LIMIT :limit OFFSET :offset",
    postgres=f"SELECT {FEED_COLUMNS} {_MATCHING_TOO} ORDER BY url LIMIT :limit OFFSET :offset",
)
_SEARCH_BY_ASKED: Final = either(
    sqlite=f"SELECT {FEED_COLUMNS} {_MATCHING} ORDER BY asked_at DESC, id LIMIT :limit OFFSET :offset",
    postgres=f"SELECT {FEED_COLUMNS} {_MATCHING_TOO} ORDER BY asked_at DESC, id LIMIT :limit OFFSET :offset",
)
_COUNT_MATCHING: Final = either(
    sqlite=f"SELECT count(*) {_MATCHING}", postgres=f"SELECT count(*) {_MATCHING_TOO}"
)
_UNFINISHED: Final = f"""
    SELECT {FEED_COLUMNS} FROM feed
    WHERE is_walking <> 0 OR (digest IS NOT NULL AND revision <> published_revision) ORDER BY id
"""  # noqa: S608 - names of columns
_CREATE: Final = f"""
    INSERT INTO feed (url, fetch_url, via_url, family, published_family, kind, state, first_seen_at, asked_at)
    VALUES (:url, :fetch_url, :fetch_url, :family, :family, :kind, :state, :now, :now)
    ON CONFLICT (url) DO NOTHING RETURNING {FEED_COLUMNS}
"""  # noqa: S608 - names of columns
_ADD_ALIAS: Final = """
    INSERT INTO alias (url, feed) VALUES (:url, :feed)
    ON CONFLICT (url) DO UPDATE SET feed = excluded.feed
"""
_BYTES: Final = "SELECT coalesce(sum(body_bytes), 0) FROM document WHERE feed = :feed"
_RETIRING: Final = """
    segment SET position = NULL, retired_at = {now} WHERE feed = :feed AND position IS NOT NULL
"""
_RETIRE_ALL: Final = either(
    sqlite="UPDATE" + _RETIRING.format(now=":now"), postgres="UPDATE" + _RETIRING.format(now=CLOCK)
)
_NOTE_FORGOTTEN: Final = """
    UPDATE forgotten SET modified_at = (SELECT modified_at FROM feed WHERE id = :feed)
    WHERE id = 1 AND modified_at < (SELECT modified_at FROM feed WHERE id = :feed)
"""
_FORGET: Final = "DELETE FROM feed WHERE id = :feed"
_NOTE_ASKED: Final = "UPDATE feed SET asked_at = ? WHERE id = ?"
_NOTE_WARNED: Final = """
    UPDATE feed SET warning = 'sent' WHERE id = :feed AND warning = 'unsent' AND warned_at = :warned_at
"""
_BEGIN_WALK: Final = """
    UPDATE feed SET
        is_walking = 1,
        modified_at = CASE  -- the body no longer says that it is complete, nor what is missing
            WHEN is_walking <> 0 OR state = 'loading' THEN modified_at
            WHEN modified_at + 1 < :now THEN :now
            ELSE modified_at + 1
        END
    WHERE id = :feed
"""


def find_by_url(db: Database, url: str) -> FeedRow | None:
    """Return the feed of this key or alias; the key wins."""
    row = fetch_one(db, _BY_URL, {"url": url})
    return None if row is None else feed_row(row)


def find(db: Database, feed: int) -> FeedRow | None:
    """Return the feed, or None when it was forgotten."""
    row = fetch_one(db, _BY_ID, {"feed": feed})
    return None if row is None else feed_row(row)


def require(db: Database, feed: int) -> FeedRow:
    """Return the feed.

    Raises:
        UnknownFeedError: It was forgotten.
    """
    found = find(db, feed)
    if found is None:
        raise unknown(feed)
    return found


def require_known(db: Database, feed: int) -> None:
    """Make sure that the feed is there.

    Raises:
        UnknownFeedError: It was forgotten.
    """
    if fetch_value(db, _IS_KNOWN, {"feed": feed}) is None:
        raise unknown(feed)


def list_feeds(db: Database, limit: int, offset: int) -> list[FeedRow]:
    """Return feeds by URL."""
    return [feed_row(row) for row in fetch_all(db, _LIST, {"limit": limit, "offset": offset})]


def count_states(db: Database) -> dict[str, tuple[int, int]]:
    """Return how many feeds there are in each visible state, and how many of them are stale."""
    return {row["state"]: (row["feeds"], row["stale"]) for row in fetch_all(db, _STATES)}


def search(db: Database, words: str, *, by_url: bool, limit: int, offset: int) -> tuple[list[FeedRow], int]:
    """Return feeds whose URL holds the words, by URL or the last asked for first; and how many."""
    statement = _SEARCH_BY_URL if by_url else _SEARCH_BY_ASKED
    rows = fetch_all(db, statement, {"words": words, "limit": limit, "offset": offset})
    return [feed_row(row) for row in rows], int(fetch_value(db, _COUNT_MATCHING, {"words": words}))


def list_unfinished(db: Database) -> list[FeedRow]:
    """Return the feeds whose walk has not ended, oldest first."""
    return [feed_row(row) for row in fetch_all(db, _UNFINISHED)]


def create(db: Database, *, url: str, fetch_url: str, family: Family, kind: Kind, now: float) -> FeedRow:
    """Return the feed of that key or alias, made if it was not there."""
    found = find_by_url(db, url)
    if found is None:
        values = {"url": url, "fetch_url": fetch_url, "family": family, "kind": kind}
        row = fetch_one(db, _CREATE, {**values, "state": State.LOADING, "now": now})
        found = find_by_url(db, url) if row is None else feed_row(row)
    assert found is not None, "it was there, or was made"
    return found


def add_alias(db: Database, url: str, feed: int) -> None:
    """Let the URL lead to the feed, whatever it led to before."""
    require_known(db, feed)
    run(db, _ADD_ALIAS, {"url": url, "feed": feed})


def update(db: Database, feed: int, changes: Mapping[str, Any]) -> None:
    """Set columns of a feed. The names are the program's own, never input.

    Raises:
        UnknownFeedError: It was forgotten.
    """
    columns = ", ".join(f"{name} = :{name}" for name in changes) or "id = id"
    if not run(db, f"UPDATE feed SET {columns} WHERE id = :feed", {**changes, "feed": feed}):  # noqa: S608
        raise unknown(feed)


def note_asked(db: Database, asked: Mapping[int, float]) -> None:
    """Note when feeds were asked for, those that are still there."""
    db.executemany(_NOTE_ASKED, [(asked_at, feed) for feed, asked_at in sorted(asked.items())])


def note_warned(db: Database, feed: FeedRow) -> None:
    """Note that a reader was sent the warning of a feed as it was read (R16)."""
    run(db, _NOTE_WARNED, {"feed": feed.id, "warned_at": feed.warned_at})


def begin_walk(db: Database, feed: int, now: float) -> None:
    """Note that a walk may add documents from now on."""
    require_known(db, feed)
    run(db, _BEGIN_WALK, {"feed": feed, "now": now})


def body_bytes(db: Database, feed: int) -> int:
    """Return what the bodies of a feed's documents come to, decoded."""
    return int(fetch_value(db, _BYTES, {"feed": feed}))


def forget(db: Database, feed: int, now: float) -> bool:
    """Delete a feed and all that is its own. Its segments retire: an answer may still be using them."""
    run(db, _RETIRE_ALL, {"feed": feed, "now": now})
    run(db, _NOTE_FORGOTTEN, {"feed": feed})
    return run(db, _FORGET, {"feed": feed}) > 0


def unknown(feed: int) -> UnknownFeedError:
    """Return what is raised where a feed was forgotten."""
    return UnknownFeedError(f"no feed is stored under the number {feed}")
