"""The table of feeds and their aliases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from wholefeed.core.compose.compose import Heading
from wholefeed.core.model import Family, Kind, State
from wholefeed.core.notes import NewAddress
from wholefeed.core.schedule import APART_SECONDS, Times, is_ahead
from wholefeed.errors import UnknownFeedError
from wholefeed.store.base import (
    NOW,
    Database,
    Row,
    ask,
    fetch_all,
    fetch_one,
    fetch_value,
    json_ids,
    run,
    run_counting,
    vary_by_engine,
)
from wholefeed.store.rows import (
    FEED_COLUMNS,
    LINE_COLUMNS,
    SUMMARY_COLUMNS,
    VISIBLE_STATE,
    FeedChanges,
    FeedLine,
    FeedRow,
    FeedSummary,
    feed_line,
    feed_row,
    listed_feed,
)

_BY_URL: Final = f"""
    SELECT {FEED_COLUMNS} FROM feed WHERE id = coalesce(
        (SELECT id FROM feed WHERE url = :url), (SELECT feed FROM alias WHERE url = :url)
    )
"""  # noqa: S608 - names of columns


def find_by_url(db: Database, url: str) -> FeedRow | None:
    """Return the feed with this URL as key or alias; the key wins."""
    row = fetch_one(db, _BY_URL, {"url": url})
    return None if row is None else feed_row(row)


_BY_ID: Final = f"SELECT {FEED_COLUMNS} FROM feed WHERE id = :feed"  # noqa: S608 - names of columns


def find(db: Database, feed: int) -> FeedRow | None:
    return ask_for(db, feed)()


def ask_for(db: Database, feed: int) -> Callable[[], FeedRow | None]:
    return ask(db, _BY_ID, {"feed": feed}, lambda rows: next(map(feed_row, rows), None))


def require(db: Database, feed: int) -> FeedRow:
    found = find(db, feed)
    if found is None:
        raise unknown_feed_error(feed)
    return found


_IS_KNOWN: Final = "SELECT 1 FROM feed WHERE id = :feed"


def require_known(db: Database, feed: int) -> None:
    if fetch_value(db, _IS_KNOWN, {"feed": feed}) is None:
        raise unknown_feed_error(feed)


def unknown_feed_error(feed: int) -> UnknownFeedError:
    return UnknownFeedError(f"no feed is stored under the number {feed}")


_LIST: Final = f"SELECT {SUMMARY_COLUMNS} FROM feed ORDER BY url LIMIT :limit OFFSET :offset"  # noqa: S608


def list_feeds(db: Database, limit: int, offset: int) -> list[FeedSummary]:
    return [listed_feed(row) for row in fetch_all(db, _LIST, {"limit": limit, "offset": offset})]


class FeedSearch(NamedTuple):
    words: str = ""
    """Part of the URL or title, in upper or lower case of ASCII; empty: any."""
    state: str = ""
    """The visible state, or `stale`, or `attention`; empty: any."""
    sort: str = "asked"
    """One of `ORDERS`."""


ATTENTION: Final = "attention"
"""The state of a search for feeds that need a person (`wholefeed.core.attention`)."""
# Most recently asked for; title, or URL without one; URL; state; most entries.
ORDERS: Final = ("asked", "title", "url", "state", "entries")
_NAMED: Final = f'"{NewAddress.code}"'
_HAS_WORDS: Final = "(:words = '' OR {found} > 0)"
_MATCHING: Final = f"""
    FROM feed WHERE {_HAS_WORDS}
        AND (:state = '' OR {{visible}} = :state OR (:state = 'stale' AND is_stale <> 0))
"""
_AMONG: Final = f"FROM feed WHERE {_HAS_WORDS} AND id IN (SELECT value FROM json_each(:feeds))"  # noqa: S608
_ORDERED: Final = """
    ORDER BY
        CASE WHEN :sort = 'title' THEN {named} END,
        CASE WHEN :sort = 'url' THEN url END,
        CASE WHEN :sort = 'state' THEN {visible} END,
        CASE WHEN :sort = 'entries' THEN -entries END,
        asked_at DESC, id
"""
_VARIED: Final = {
    # Like SQLite's lower(), that of COLLATE "C" knows ASCII alone.
    "found": (
        "instr(lower(url || ' ' || coalesce(title, '')), lower(:words))",
        """strpos(lower((url || ' ' || coalesce(title, '')) COLLATE "C"), lower(:words COLLATE "C"))""",
    ),
    "named": (
        "lower(coalesce(nullif(title, ''), url))",
        """lower(coalesce(nullif(title, ''), url) COLLATE "C")""",
    ),
    "visible": (VISIBLE_STATE, VISIBLE_STATE),
    "joined": ("group_concat", "string_agg"),
    "names_address": (f"instr(notes, '{_NAMED}') > 0", f"strpos(notes, '{_NAMED}') > 0"),
}
_PART: Final = "LIMIT :limit OFFSET :offset"
# Only the numbers are sorted: the other columns of all feeds would be read, too.
_SEARCH: Final = vary_by_engine(f"SELECT id {_MATCHING} {_ORDERED} {_PART}", **_VARIED)
_SEARCH_AMONG: Final = vary_by_engine(f"SELECT id {_AMONG} {_ORDERED} {_PART}", **_VARIED)


def search(
    db: Database, search: FeedSearch, *, limit: int, offset: int, among: Iterable[int] | None = None
) -> list[int]:
    """Return the numbers of the feeds found, in order.

    `among` has the feeds that need a person, and takes the place of the state.
    """
    if among is None:
        rows = fetch_all(db, _SEARCH, {**search._asdict(), "limit": limit, "offset": offset})
    else:
        values = {"words": search.words, "sort": search.sort, "feeds": json_ids(among)}
        rows = fetch_all(db, _SEARCH_AMONG, {**values, "limit": limit, "offset": offset})
    return [row[0] for row in rows]


_COUNT_AMONG: Final = vary_by_engine(f"SELECT count(*) {_AMONG}", **_VARIED)


def count_among(db: Database, words: str, feeds: Iterable[int]) -> int:
    return int(fetch_value(db, _COUNT_AMONG, {"words": words, "feeds": json_ids(feeds)}))


class FeedCounts(NamedTuple):
    by_state: Mapping[str, int]
    """Feeds with these words by visible state; `stale` ones count under their state, too."""
    found: int
    feeds: int
    readdressed: Sequence[int]
    """All feeds with the note `NewAddress`."""


# One look at each feed answers all this: with 20,000 feeds another one takes 60 ms.
_COUNT: Final = vary_by_engine(
    f"""
    SELECT {{visible}} AS state, count(*) AS feeds,
        sum(CASE WHEN {_HAS_WORDS} THEN 1 ELSE 0 END) AS found,
        sum(CASE WHEN {_HAS_WORDS} THEN is_stale ELSE 0 END) AS stale,
        {{joined}}(CASE WHEN {{names_address}} THEN CAST(id AS text) END, ',') AS readdressed
    FROM feed GROUP BY 1
    """,  # noqa: S608 - constants
    **_VARIED,
)


def count_found(db: Database, words: str) -> FeedCounts:
    rows = fetch_all(db, _COUNT, {"words": words})
    by_state = {row["state"]: row["found"] for row in rows}
    return FeedCounts(
        {**by_state, "stale": sum(row["stale"] for row in rows)},
        sum(by_state.values()),
        sum(row["feeds"] for row in rows),
        [int(each) for row in rows for each in (row["readdressed"] or "").split(",") if each],
    )


_LINES: Final = f"SELECT {LINE_COLUMNS} FROM feed WHERE id IN (SELECT value FROM json_each(:feeds))"  # noqa: S608


def read_lines(db: Database, feeds: Sequence[int]) -> list[FeedLine]:
    """Return these feeds in this order, without unknown ones."""
    found = {row[0]: feed_line(row) for row in fetch_all(db, _LINES, {"feeds": json_ids(feeds)})}
    return [found[feed] for feed in feeds if feed in found]


_KNOWN_URLS: Final = vary_by_engine(
    """
    SELECT url FROM feed WHERE url IN ({urls}) UNION ALL SELECT url FROM alias WHERE url IN ({urls})
    """,
    urls=("SELECT value FROM json_each(:urls)", "SELECT json_array_elements_text(CAST(:urls AS json))"),
)


def find_known_urls(db: Database, urls: Iterable[str]) -> set[str]:
    written = json.dumps(sorted(set(urls)))
    return set() if written == "[]" else {url for (url,) in fetch_all(db, _KNOWN_URLS, {"urls": written})}


# Titles of feeds published before titles were stored

_HEADED: Final = f"SELECT {FEED_COLUMNS} FROM feed WHERE id = :feed AND title IS NULL"  # noqa: S608
_KEEP_HEADING: Final = "UPDATE feed SET title = ?, site = ? WHERE id = ? AND title IS NULL"


def find_unnamed(db: Database, feed: int) -> FeedRow | None:
    row = fetch_one(db, _HEADED, {"feed": feed})
    return None if row is None else feed_row(row)


def keep_headings(db: Database, headings: Mapping[int, Heading]) -> None:
    """Store titles and sites of feeds not published again meanwhile."""
    db.executemany(
        _KEEP_HEADING, [(found.title, found.site, feed) for feed, found in sorted(headings.items())]
    )


_STATES: Final = f"""
    SELECT {VISIBLE_STATE} AS state, count(*) AS feeds, sum(is_stale) AS stale FROM feed GROUP BY 1
"""  # noqa: S608 - names of columns


def count_states(db: Database) -> dict[str, tuple[int, int]]:
    return {row["state"]: (row["feeds"], row["stale"]) for row in fetch_all(db, _STATES)}


_UNFINISHED: Final = f"""
    SELECT {FEED_COLUMNS} FROM feed
    WHERE is_walking <> 0 OR (digest IS NOT NULL AND revision <> published_revision) ORDER BY id
"""  # noqa: S608 - names of columns


def list_unfinished(db: Database) -> list[FeedRow]:
    return [feed_row(row) for row in fetch_all(db, _UNFINISHED)]


def host_of(column: str) -> dict[str, tuple[str, str]]:
    """Return the expression, by engine, for scheme and host of a URL in its canonical form."""
    return {
        "host": (
            f"substr({column}, 1, instr(substr({column}, 9), '/') + 8)",
            f"substr({column}, 1, strpos(substr({column}, 9), '/') + 8)",
        )
    }


_LIST_DUE: Final = vary_by_engine(
    f"""
    SELECT {FEED_COLUMNS} FROM (
        SELECT {FEED_COLUMNS}, row_number() OVER (PARTITION BY {{host}} ORDER BY list_at, id) AS place
        FROM feed WHERE list_at <= :now AND is_walking = 0
    ) AS due
    WHERE place = 1 ORDER BY list_at, id LIMIT :limit OFFSET :offset
    """,  # noqa: S608 - names of columns
    **host_of("fetch_url"),
)


def list_due(db: Database, now: float, limit: int, offset: int = 0) -> list[FeedRow]:
    """Return feeds with due pages (H8), those due longest first, one of each host."""
    rows = fetch_all(db, _LIST_DUE, {"now": now, "limit": limit, "offset": offset})
    return [feed_row(row) for row in rows]


_NEXT_LIST: Final = "SELECT min(list_at) FROM feed WHERE list_at > :now"


def next_list_at(db: Database, now: float) -> float | None:
    found = fetch_value(db, _NEXT_LIST, {"now": now})
    return None if found is None else float(found)


_BODY_BYTES: Final = "SELECT coalesce(sum(body_bytes), 0) FROM document WHERE feed = :feed"


def body_bytes(db: Database, feed: int) -> int:
    return int(fetch_value(db, _BODY_BYTES, {"feed": feed}))


_CREATE: Final = f"""
    INSERT INTO feed (url, fetch_url, via_url, family, published_family, kind, state, first_seen_at, asked_at)
    VALUES (:url, :fetch_url, :fetch_url, :family, :family, :kind, :state, :now, :now)
    ON CONFLICT (url) DO NOTHING RETURNING {FEED_COLUMNS}
"""  # noqa: S608 - names of columns


def create(db: Database, *, url: str, fetch_url: str, family: Family, kind: Kind, now: float) -> FeedRow:
    """Return the feed with this URL as key or alias, or else create it."""
    found = find_by_url(db, url)
    if found is None:
        values = {"url": url, "fetch_url": fetch_url, "family": family, "kind": kind}
        row = fetch_one(db, _CREATE, {**values, "state": State.LOADING, "now": now})
        found = find_by_url(db, url) if row is None else feed_row(row)
    assert found is not None, "it was there, or was made"
    return found


_ADD_ALIAS: Final = """
    INSERT INTO alias (url, feed) VALUES (:url, :feed)
    ON CONFLICT (url) DO UPDATE SET feed = excluded.feed
"""


def add_alias(db: Database, url: str, feed: int) -> None:
    """Direct the URL to the feed, in place of any other."""
    require_known(db, feed)
    run(db, _ADD_ALIAS, {"url": url, "feed": feed})


_ALIASES: Final = "SELECT url FROM alias WHERE feed = :feed ORDER BY url LIMIT 1000"


def list_aliases(db: Database, feed: int) -> list[str]:
    """Return other URLs that lead to a feed."""
    return [url for (url,) in fetch_all(db, _ALIASES, {"feed": feed})]


def update(db: Database, feed: int, changes: FeedChanges, *, is_known: bool = False) -> None:
    """Set columns of a feed, or raise `UnknownFeedError`.

    With `is_known`, the same transaction checks the feed anyway, so this statement need not wait.
    """
    # The program, not a publisher, names the columns.
    columns = ", ".join(f"{name} = :{name}" for name in changes) or "id = id"
    updated = db.execute(f"UPDATE feed SET {columns} WHERE id = :feed", {**changes, "feed": feed})  # noqa: S608
    if not is_known and not updated.rowcount:
        raise unknown_feed_error(feed)


_NOTE_ASKED: Final = "UPDATE feed SET asked_at = ? WHERE id = ?"


def note_asked(db: Database, asked: Mapping[int, float]) -> None:
    db.executemany(_NOTE_ASKED, [(asked_at, feed) for feed, asked_at in sorted(asked.items())])


_NOTE_WARNED: Final = """
    UPDATE feed SET
        modified_at = CASE
            WHEN warning = 'unsent' THEN modified_at
            WHEN modified_at + 1 < :now THEN :now
            ELSE modified_at + 1
        END,
        warned_at = CASE
            WHEN warning = 'unsent' THEN warned_at
            WHEN warned_at + 1 < :now THEN :now
            ELSE warned_at + 1
        END,
        warning = CASE WHEN warning = 'unsent' THEN 'sent' ELSE 'healed' END
    WHERE id = :feed AND warning IN ('unsent', '') AND warned_at = :warned_at
"""


def note_warned(db: Database, feed: FeedRow, now: float) -> None:
    """Note that a reader gets a warning, perhaps healed meanwhile (R16)."""
    run(db, _NOTE_WARNED, {"feed": feed.id, "warned_at": feed.warned_at, "now": now})


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


def begin_walk(db: Database, feed: int, now: float) -> None:
    require_known(db, feed)
    run(db, _BEGIN_WALK, {"feed": feed, "now": now})


_RETIRE_ALL: Final = vary_by_engine(
    """
    UPDATE segment SET position = NULL, retired_at = {now} WHERE feed = :feed AND position IS NOT NULL
    """,
    now=NOW,
)
_NOTE_FORGOTTEN: Final = """
    UPDATE forgotten SET modified_at = (SELECT modified_at FROM feed WHERE id = :feed)
    WHERE id = 1 AND modified_at < (SELECT modified_at FROM feed WHERE id = :feed)
"""
_FORGET: Final = "DELETE FROM feed WHERE id = :feed"


def forget(db: Database, feed: int, now: float) -> bool:
    """Delete a feed with all its data. Its segments retire, since answers may use them."""
    run(db, _RETIRE_ALL, {"feed": feed, "now": now})
    run(db, _NOTE_FORGOTTEN, {"feed": feed})
    return run_counting(db, _FORGET, {"feed": feed}) > 0


# Versions of feeds


class Version(NamedTuple):
    """The part of a feed's row that answers or decisions depend on."""

    published: tuple[object, ...]
    ages: Ages


class Ages(NamedTuple):
    checked_at: float | None
    failed_at: float | None
    fresh_until: float | None
    cache_control: str
    expires: str
    had_at: float | None
    doubts: int


AGES: Final = Ages._fields
_VERSION_COLUMNS: Final = (
    "digest",
    "modified_at",
    "revision",
    "published_revision",
    "state",
    "kind",
    "is_walking",
    "is_stale",
    "is_private",
    "documents",
    "entries",
    "parser_version",
    "warning",
    "warned_at",
    "published_family",
    "via_url",
    "texts_wanted",
    "texts_at",
    *AGES,
)
_version_values = attrgetter(*_VERSION_COLUMNS)
VERSIONS: Final = f"""
    SELECT id, {", ".join(_VERSION_COLUMNS)} FROM feed WHERE id IN (SELECT value FROM json_each(:feeds))
"""  # noqa: S608 - names


def version_of(feed: FeedRow) -> Version:
    return _version(_version_values(feed))


def read_versions(db: Database, ids: Iterable[int]) -> dict[int, Version]:
    return versions_in(db.execute(VERSIONS, {"feeds": json_ids(ids)}))


def versions_in(rows: Iterable[Row]) -> dict[int, Version]:
    return {number: _version(tuple(values)) for number, *values in rows}


def _version(values: tuple[Any, ...]) -> Version:
    return Version(values[: -len(AGES)], Ages(*values[-len(AGES) :]))


# Feeds to poll


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    feeds: int
    due: tuple[tuple[int, str], ...]
    """Number and `fetch_url` of feeds to poll, least recently checked first."""
    next_at: float | None
    """Earliest time for another feed. None: no other one."""


_DUE: Final = """
    SELECT id, fetch_url, checked_at FROM feed
    WHERE checked_at <= :before AND (fresh_until <= :now OR fresh_until > :horizon)
    UNION ALL
    SELECT id, fetch_url, checked_at FROM feed
    WHERE checked_at > :ahead AND (failed_at IS NULL OR fresh_until <= :now OR fresh_until > :horizon)
    UNION ALL
    SELECT id, fetch_url, checked_at FROM feed
    WHERE failed_at > :ahead AND checked_at IS NOT NULL AND (
        (checked_at > :before AND checked_at <= :ahead) OR (fresh_until > :now AND fresh_until <= :horizon)
    )
    ORDER BY checked_at
"""
_NEXT_DUE_AT: Final = """
    SELECT min(due_at) FROM (
        SELECT min(fresh_until) AS due_at FROM feed WHERE checked_at <= :before AND fresh_until > :now
        UNION ALL
        SELECT min(fresh_until) FROM feed WHERE checked_at > :ahead AND fresh_until > :now
        UNION ALL
        SELECT min(checked_at) + :interval FROM feed WHERE checked_at > :before
    ) AS found
"""
_COUNT_FEEDS: Final = "SELECT count(*) FROM feed"


def outlook(db: Database, times: Times) -> Outlook:
    """Return the feeds due by `core.schedule.poll_due_at`, without feeds that never had a response."""
    now, before = times.now, times.now - times.interval_seconds
    ahead, horizon = now + APART_SECONDS, now + times.longest_seconds
    due = fetch_all(db, _DUE, {"now": now, "before": before, "ahead": ahead, "horizon": horizon})
    instants = {"now": now, "before": before, "ahead": ahead, "interval": times.interval_seconds}
    return Outlook(
        feeds=int(fetch_value(db, _COUNT_FEEDS)),
        due=tuple((row["id"], row["fetch_url"]) for row in due),
        next_at=fetch_value(db, _NEXT_DUE_AT, instants),
    )


# Publishers' reports that nothing changed, for many feeds at once


class Validation(NamedTuple):
    feed: int
    document: int
    checked_at: float
    fresh_until: float
    cache_control: str
    expires: str

    def apply_to(self, row: FeedRow) -> FeedRow:
        """Return the feed's row with the check applied, unless the row has a later one of a correct clock."""
        at = row.checked_at
        if at is not None and at >= self.checked_at and not is_ahead(at, now=self.checked_at):
            return row
        return replace(
            row,
            checked_at=self.checked_at,
            fresh_until=self.fresh_until,
            cache_control=self.cache_control,
            expires=self.expires,
        )


_NOTE_FEED: Final = """
    UPDATE feed SET checked_at = ?, fresh_until = ?, cache_control = ?, expires = ? WHERE id = ?
"""
_NOTE_DOCUMENT: Final = "UPDATE document SET checked_at = ? WHERE id = ?"


def note_validations(db: Database, checks: Sequence[Validation]) -> None:
    db.executemany(
        _NOTE_FEED,
        [(each.checked_at, each.fresh_until, each.cache_control, each.expires, each.feed) for each in checks],
    )
    db.executemany(_NOTE_DOCUMENT, [(each.checked_at, each.document) for each in checks])


# Probes: does the database work, and has it room again


_READ_PROBE: Final = "SELECT count(*) FROM probe"


def read_probe(db: Database) -> None:
    fetch_value(db, _READ_PROBE)


_WRITE_PROBE: Final = """
    INSERT INTO probe (id, filler) VALUES (1, :filler)
    ON CONFLICT (id) DO UPDATE SET filler = excluded.filler
"""
_PROBE_BYTES: Final = 16384


def write_probe(db: Database) -> None:
    """Overwrite a probe, random because repeating data would be stored in a few bytes."""
    run(db, _WRITE_PROBE, {"filler": os.urandom(_PROBE_BYTES)})
