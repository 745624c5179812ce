"""The simulation's only knowledge of the program's inside: another inside needs another version of this file.

Nothing else in `tests.simulated` imports from `wholefeed`, or names a column.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from wholefeed.config.tables import Config, FetchConfig, FreshnessConfig, HistoryConfig, LimitsConfig
from wholefeed.core.model import EntryId
from wholefeed.core.refresh.arrivals import FoundSubscription
from wholefeed.errors import (
    DocumentError,
    OverloadedError,
    PublisherError,
    PublisherTimeoutError,
    QueueFullError,
    WholefeedError,
)
from wholefeed.fetch.base import (
    KEPT_HEADERS,
    USUAL,
    Fetched,
    Manner,
    Validators,
    parse_target,
    redirect_target,
    site_of,
)
from wholefeed.fetch.exchange import DOCUMENT_STATUSES, status_failure
from wholefeed.fetch.robots import Robots
from wholefeed.fetch.web_archive import Archive, Turns
from wholefeed.service.context import RefreshContext, WalkTurns
from wholefeed.service.imports import Imports, SuppliedDocument
from wholefeed.service.listing import Lists
from wholefeed.service.mementos import Mementos
from wholefeed.service.page_fetches import SitePace
from wholefeed.service.running import RefreshRequest, Running  # type: ignore[attr-defined]
from wholefeed.service.sources import Obtained, Source, find_subscription
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow
from wholefeed.store.sqlite import SqliteEngine
from wholefeed.store.store import Store
from wholefeed.store.tables import feed_table
from wholefeed.store.tables.live import TEMPORARY_TABLES
from wholefeed.workers.pool import Workers

__all__ = [
    "DOCUMENT_STATUSES",
    "KEPT_HEADERS",
    "TEMPORARY_TABLES",
    "USUAL",
    "DocumentError",
    "FeedRow",
    "Fetched",
    "FoundSubscription",
    "Manner",
    "Obtained",
    "PublisherError",
    "PublisherTimeoutError",
    "QueueFullError",
    "RefreshRequest",
    "SqliteEngine",
    "Store",
    "SuppliedDocument",
    "Validators",
    "WholefeedError",
    "find_subscription",
    "parse_target",
    "redirect_target",
    "status_failure",
]

# What is run


def a_context(
    store: Store,
    fetcher: Any,
    *,
    now: Callable[[], float],
    turns: int,
    limits: Mapping[str, Any],
    history: Mapping[str, Any],
    monotonic: Callable[[], float],
) -> RefreshContext:
    """Return the context of refreshes, over a fetcher of the simulation."""
    config = Config(
        fetch=FetchConfig(retries=0),
        limits=LimitsConfig(**limits),
        freshness=FreshnessConfig(),
        history=HistoryConfig(**history),
    )
    return RefreshContext(
        store=store,
        source=Source(fetcher, Workers(0), xml_depth=config.limits.xml_depth),
        config=config,
        site_of=site_of,
        now=now,
        walks=WalkTurns(in_all=turns, per_site=turns),
        archive=Archive(fetcher, config.history.memento_url, turns=Turns(10**6, clock=monotonic))
        if config.history.memento
        else None,
    )


class Program:
    """The program from its refreshes down, with its background tasks, from start to end."""

    def __init__(self, context: RefreshContext) -> None:
        self.context = context
        self.running = Running(context)
        robots = Robots(
            context.source.fetcher, context.config.fetch.user_agent, publishers=context.publishers
        )
        self.lists = Lists(context, self.running, robots, SitePace())
        self.mementos = Mementos(context, self.running)
        self.imports = Imports(context, self.running, self._ready)

    async def close(self) -> None:
        await self.lists.close()
        await self.running.close()

    async def _ready(self, url: str, _: float) -> tuple[FeedRow, bool]:
        raise OverloadedError("there is no feed yet")


async def find(store: Store, url: str) -> FeedRow | None:
    """Return the stored feed of a URL."""
    return await store.find(url)


async def create(store: Store, found: FoundSubscription[Obtained], now: float) -> FeedRow:
    """Return the feed of a discovered subscription document; make it if missing."""
    family, kind = found.document.family, found.document.navigation.kind
    make = partial(feed_table.create, url=found.url, fetch_url=found.url, family=family, kind=kind, now=now)
    return await store.write(make, comes_more=True)


# What is stored


_DOCUMENTS: Final = """
    SELECT id, role, url, final_url, rank, detached_at, family, site_id, links, is_marked, is_settled,
           is_uncacheable, brought_news, digest, etag, last_modified, fetched_at, checked_at, updated_at,
           body_bytes, entries, live_bytes, notes, marks, found_by, found_in, memento
    FROM document ORDER BY role, rank IS NULL, rank, url
"""
_ENTRIES: Final = """
    SELECT ordinal, identity, own, updated_at, order_at, size, is_live, fullness, made_at, document_updated_at
    FROM entry WHERE document = ? ORDER BY ordinal
"""
_FEED: Final = """
    SELECT url, fetch_url, moved_to, moved_since, moved_times, family, kind, state, is_walking, is_stale,
           revision = published_revision AS is_published, documents, entries, checked_at, fresh_until, notes,
           ending, digest IS NOT NULL AS has_digest, published_family, via_url, warning, warned_at, version,
           collection,
           listing, list_at, listed, shifts, family_since, failed_at, had_at, doubts, cache_control, expires,
           renamed, renamed_since, renaming_at, renaming_looks, title, site
    FROM feed
"""
_ATTEMPTS: Final = (
    "SELECT url, reason, status, attempts, first_at, last_at, next_at FROM attempt ORDER BY url"
)
_TOMBSTONES: Final = """
    SELECT identity, when_at, (SELECT url FROM document WHERE document.id = tombstone.document) AS document
    FROM tombstone ORDER BY identity, when_at, document
"""
_SETTLED: Final = "SELECT identity, is_withdrawn, is_doubtful FROM settled ORDER BY identity"
_OTHER_IDS: Final = "SELECT own, identity, since, is_usual FROM other_id ORDER BY own"
_AMBIGUOUS: Final = "SELECT key FROM ambiguous_key ORDER BY key"


def rows(db: Database) -> dict[str, Any]:
    """Return the stored rows of the only feed, except its publication."""
    documents = []
    for row in map(dict, db.execute(_DOCUMENTS)):
        number = row.pop("id")
        documents.append(
            _plain(row) | {"held": [_plain(dict(each)) for each in db.execute(_ENTRIES, (number,))]}
        )
    return {
        "feed": [_plain(dict(each)) for each in db.execute(_FEED)],
        "documents": documents,
        "attempts": [_plain(dict(each)) for each in db.execute(_ATTEMPTS)],
        "tombstones": [_plain(dict(each)) for each in db.execute(_TOMBSTONES)],
        "settled": [_plain(dict(each)) for each in db.execute(_SETTLED)],
        "other ids": [_plain(dict(each)) for each in db.execute(_OTHER_IDS)],
        "ambiguous": [_plain(dict(each)) for each in db.execute(_AMBIGUOUS)],
    }


_IN_JSON: Final = ("links", "notes", "marks", "ending", "collection", "listing", "shifts")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    for name, value in row.items():
        if isinstance(value, bytes):
            row[name] = value.hex()
        elif name in _IN_JSON and isinstance(value, str):
            row[name] = _rough(json.loads(value))
        else:
            row[name] = _rough(value)
    return row


def _rough(value: Any) -> Any:
    """Return a value with instants cut to minutes: some take a little longer elsewhere."""
    if isinstance(value, float) and value > _INSTANT:
        return 60 * int(value // 60)
    if isinstance(value, dict):
        return {name: _rough(each) for name, each in value.items()}
    return [_rough(each) for each in value] if isinstance(value, list) else value


_INSTANT: Final = 1e9


def outcomes(rows: Mapping[str, Any], log: Sequence[str]) -> list[str]:
    """Return a refresh's outcome, for a table."""
    found = [f"state {feed['state']}{' walking' if feed['is_walking'] else ''}" for feed in rows["feed"]]
    found += [f"kind {feed['kind']}" for feed in rows["feed"]]
    found += [f"ending {feed['ending'].get('code', 'none')}" for feed in rows["feed"]]
    noted = [*rows["feed"], *rows["documents"]]
    found += {f"note {note['code']}" for each in noted for note in each["notes"]}
    found += {
        f"role {each['role']}{'' if each['rank'] is not None else ' detached'}" for each in rows["documents"]
    }
    found += {f"found by {each['found_by']}" for each in rows["documents"] if each["found_by"]}
    found += {f"missing {each['reason']}" for each in rows["attempts"]}
    found += [f"log {line.split(' ')[0]}" for line in log]
    return found


def told(under_way: Any) -> str:
    """Return the progress told to waiting readers, without durations."""
    return repr(replace(under_way, seconds=0.0))


_HEAD: Final = "SELECT head FROM feed WHERE digest IS NOT NULL"
_SEGMENTS: Final = """
    SELECT segment.id, block.deflated FROM segment JOIN block ON block.segment = segment.id
    WHERE position IS NOT NULL ORDER BY position
"""
_REST: Final = "SELECT deflated FROM block_rest WHERE segment = ? ORDER BY number"


def published(db: Database) -> str:
    """Return a digest of the publication: its head, and all entries, independent of segments."""
    heads = db.execute(_HEAD).fetchall()
    if not heads:
        return ""
    digest = hashlib.sha256(heads[0]["head"] or b"")
    for number, deflated in db.execute(_SEGMENTS).fetchall():
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        digest.update(inflater.decompress(deflated))
        for (rest,) in db.execute(_REST, (number,)):
            digest.update(inflater.decompress(rest))
    return digest.hexdigest()[:16]


def identities(db: Database) -> list[EntryId]:
    """Return the identities of the readers' entries."""
    found = db.execute("SELECT DISTINCT identity FROM entry WHERE is_live = 1 ORDER BY identity")
    return [EntryId(each) for (each,) in found]


def imported(db: Database) -> list[str]:
    """Return the URLs of the imported documents."""
    found = db.execute("SELECT url FROM document WHERE url LIKE 'urn:wholefeed:import:%' ORDER BY url")
    return [url for (url,) in found]


# What is logged

LOGGED: Final = frozenset(
    {
        "walk.started", "walk.ended", "feed.published", "feed.stale", "feed.unkept", "feed.unpublished",
        "refresh.failed",
    }
)  # fmt: skip
UNTOLD: Final = frozenset({"event", "feed", "duration_s"})
"""Facts of an event that reveal no decision."""
