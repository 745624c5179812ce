"""Failed attempts of a feed, and searches in a web archive for the missing documents (R33).

An `Attempt` is for the subscription document (empty URL; the feed is stale), or for an archive document or
page (the feed is partial).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from wholefeed.core.attention import FeedTroubles, read_new_address
from wholefeed.core.model import Kind
from wholefeed.core.notes import MementoServed
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.store.base import (
    Database,
    Row,
    ask,
    fetch_all,
    fetch_one,
    fetch_value,
    json_ids,
    run,
    vary_by_engine,
)
from wholefeed.store.rows import VISIBLE_STATE, Failures, FeedChanges, Overview, match_origins
from wholefeed.store.tables import document_table, feed_table, text_table

_LIST: Final = """
    SELECT url, reason, status, attempts, first_at, last_at, next_at
    FROM attempt WHERE feed = :feed ORDER BY first_at, url
"""


def read(db: Database, feed: int) -> Failures:
    return ask_for(db, feed)()


def ask_for(db: Database, feed: int) -> Callable[[], Failures]:
    return ask(db, _LIST, {"feed": feed}, _failures_in)


def _failures_in(rows: Iterable[Row]) -> Failures:
    attempts = [Attempt(**dict(row)) for row in rows]
    return Failures(
        missing=tuple(each for each in attempts if not each.is_subscription),
        subscription=next((each for each in attempts if each.is_subscription), None),
    )


_FIRST_FAILED: Final = "SELECT min(first_at) FROM attempt WHERE feed = :feed AND url <> :subscription"


def first_failed_at(db: Database, feed: int) -> float | None:
    """Return the time of the oldest failure among the missing documents. None: nothing is missing."""
    found: float | None = fetch_value(db, _FIRST_FAILED, {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT})
    return found


_PUT_ATTEMPT: Final = """
    INSERT INTO attempt (feed, url, reason, status, attempts, first_at, last_at, next_at)
    VALUES (:feed, :url, :reason, :status, :attempts, :first_at, :last_at, :next_at)
"""
_WAS_MISSING: Final = """
    SELECT a.url, EXISTS (
        SELECT 1 FROM document AS d
        WHERE d.feed = :feed AND d.rank IS NOT NULL AND a.url IN (d.url, d.final_url)
    ) AS is_had
    FROM attempt AS a
    WHERE a.feed = :feed AND a.url <> :subscription
"""
_CLEAR_MISSING: Final = "DELETE FROM attempt WHERE feed = :feed AND url <> :subscription"


def replace_missing(db: Database, feed: int, missing: Sequence[Attempt]) -> bool:
    """Replace the missing documents of a feed; return whether one left the list without being stored."""
    values = {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT}
    before = fetch_all(db, _WAS_MISSING, values)
    lost = {row["url"] for row in before if not row["is_had"]} - {each.url for each in missing}
    if before:
        run(db, _CLEAR_MISSING, values)
    for attempt in missing:
        assert not attempt.is_subscription, "that is no part of a publication"
        run(db, _PUT_ATTEMPT, {"feed": feed, **asdict(attempt)})
    return bool(lost)


_CLEAR_SUBSCRIPTION: Final = "DELETE FROM attempt WHERE feed = :feed AND url = :subscription"


def note_refetch(
    db: Database, feed: int, failure: Attempt | None, changes: FeedChanges, *, is_known: bool = False
) -> None:
    """Record a failure to fetch the subscription document (None: success), and update the feed."""
    feed_table.update(db, feed, changes, is_known=is_known)  # first: it raises if the feed was forgotten
    run(db, _CLEAR_SUBSCRIPTION, {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT})
    if failure is not None:
        assert failure.is_subscription, "a part that is missing is published"
        run(db, _PUT_ATTEMPT, {"feed": feed, **asdict(failure)})


def overview(db: Database, feed: int) -> Overview:
    row = feed_table.require(db, feed)
    return Overview(
        row,
        read(db, feed),
        feed_table.body_bytes(db, feed),
        document_table.summarise_imports(db, feed),
        text_table.summarise(db, feed),
    )


# Feeds that need a person

# In the order of `FeedTroubles`: half of 20,000 feeds may be dead.
_TROUBLES: Final = f"""
    SELECT a.of_feed, {VISIBLE_STATE} AS state,
        a.failing_since, a.reason, a.status, a.missing, a.missing_since,
        CASE WHEN first_reason = last_reason AND alike THEN first_reason END AS missing_reason,
        CASE WHEN first_reason = last_reason AND alike THEN first_status END AS missing_status
    FROM (
        SELECT attempt.feed AS of_feed,
            max(CASE WHEN url = '' THEN first_at END) AS failing_since,
            max(CASE WHEN url = '' THEN reason END) AS reason,
            max(CASE WHEN url = '' THEN status END) AS status,
            sum(CASE WHEN url = '' THEN 0 ELSE 1 END) AS missing,
            min(CASE WHEN url <> '' THEN first_at END) AS missing_since,
            min(CASE WHEN url <> '' THEN reason END) AS first_reason,
            max(CASE WHEN url <> '' THEN reason END) AS last_reason,
            min(CASE WHEN url <> '' THEN status END) AS first_status,
            min(CASE WHEN url <> '' THEN coalesce(status, 0) END)
                = max(CASE WHEN url <> '' THEN coalesce(status, 0) END) AS alike
        FROM attempt GROUP BY attempt.feed
    ) AS a
    CROSS JOIN feed ON feed.id = a.of_feed
"""  # noqa: S608 - names of columns
_READDRESSED: Final = f"""
    SELECT id, url, fetch_url, {VISIBLE_STATE} AS state, notes
    FROM feed WHERE id IN (SELECT value FROM json_each(:feeds))
"""  # noqa: S608 - names of columns


def list_troubles(db: Database, readdressed: Iterable[int]) -> dict[int, FeedTroubles]:
    """Return all feeds with failures, and those with a new address, by number."""
    found = {row[0]: FeedTroubles(*row) for row in fetch_all(db, _TROUBLES)}
    for row in fetch_all(db, _READDRESSED, {"feeds": json_ids(readdressed)}):
        known = found.get(row["id"]) or FeedTroubles(row["id"], row["state"])
        address = read_new_address(row["notes"], row["url"], row["fetch_url"])
        found[row["id"]] = known._replace(new_address=address)
    return found


# Searches in web archives


@dataclass(frozen=True, slots=True, kw_only=True)
class MementoSearch:
    feed: int
    url: str
    """Empty for the subscription document."""
    reason: str
    status: int | None
    attempts: int
    fetch_url: str
    kind: Kind
    is_begun: bool = False
    """Whether a memento already replaces the subscription document."""
    position: str = ""
    """Start of the next page of the archive's index."""
    taken_at: float | None = None
    """Capture time of the newest stored memento."""

    @property
    def is_subscription(self) -> bool:
        return not self.url

    @property
    def target(self) -> str:
        return self.url or self.fetch_url


_IS_MEMENTO: Final = match_origins([Origin.MEMENTO], "d.origin")
_OPEN_SEARCHES: Final = f"""
    SELECT a.feed, a.url, a.reason, a.status, a.attempts, f.fetch_url, f.kind,
        coalesce(s.position, '') AS position, s.taken_at, EXISTS (
            SELECT 1 FROM document AS d
            WHERE d.feed = a.feed AND d.role = 'subscription' AND d.rank IS NOT NULL AND {_IS_MEMENTO}
        ) AS is_begun
    FROM attempt AS a
    CROSS JOIN feed AS f ON f.id = a.feed
    LEFT JOIN memento_search AS s ON s.feed = a.feed AND s.url = a.url
    WHERE (s.next_at IS NULL OR s.next_at <= :now OR s.next_at > :horizon)
        AND (a.feed = :feed OR :feed IS NULL)
        AND a.reason <> :served
        AND (a.url = '' OR NOT EXISTS (
            SELECT 1 FROM document AS d WHERE d.feed = a.feed AND d.url = a.url AND {_IS_MEMENTO}
        ))
    ORDER BY coalesce(s.next_at, 0), a.feed, a.url
"""  # noqa: S608 - a constant


def list_open_searches(
    db: Database, *, now: float, horizon: float, feed: int | None = None
) -> list[MementoSearch]:
    """Return the searches that are due, longest due first.

    An instant after `horizon` comes from a wrong clock.
    """
    values = {"now": now, "horizon": horizon, "feed": feed, "served": MementoServed.slug}
    return [_search(row) for row in fetch_all(db, _OPEN_SEARCHES, values)]


def _search(row: Row) -> MementoSearch:
    changed = {"kind": Kind(row["kind"]), "is_begun": bool(row["is_begun"])}
    return MementoSearch(**{**dict(row), **changed})


_KEY: Final = ("feed, url", "feed, md5(url)")
_PUT_SEARCH: Final = vary_by_engine(
    """
    INSERT INTO memento_search (feed, url, position, taken_at, next_at)
    SELECT :feed, :url, :position, CAST(:taken_at AS double precision), :next_at
    WHERE EXISTS (SELECT 1 FROM feed WHERE id = :feed)
    ON CONFLICT ({key}) DO UPDATE SET
        position = excluded.position, taken_at = excluded.taken_at, next_at = excluded.next_at
    """,
    key=_KEY,
)


def note_search(db: Database, search: MementoSearch, *, next_at: float) -> None:
    """Store a search's progress and its next time, unless the feed was forgotten."""
    values = {"feed": search.feed, "url": search.url, "position": search.position}
    run(db, _PUT_SEARCH, {**values, "taken_at": search.taken_at, "next_at": next_at})


_POSTPONE: Final = vary_by_engine(
    """
    INSERT INTO memento_search (feed, url, next_at)
    SELECT :feed, :url, :next_at WHERE EXISTS (SELECT 1 FROM feed WHERE id = :feed)
    ON CONFLICT ({key}) DO UPDATE SET next_at = excluded.next_at
    """,
    key=_KEY,
)


def postpone_search(db: Database, search: MementoSearch, *, next_at: float) -> None:
    run(db, _POSTPONE, {"feed": search.feed, "url": search.url, "next_at": next_at})


_NEXT_SEARCH_AT: Final = "SELECT min(next_at) AS at FROM memento_search WHERE next_at > :now"


def next_search_at(db: Database, now: float) -> float | None:
    """Return the time of the next search. None: no search waits."""
    row = fetch_one(db, _NEXT_SEARCH_AT, {"now": now})
    return None if row is None else row["at"]
