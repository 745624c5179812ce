"""What could not be had of a feed, and what a web archive is asked for instead.

An `Attempt` stands for the subscription document (its URL is empty, and the feed is stale) or for an archive
document or page (and the feed is partial). A `Search` is one of them as a web archive is asked for it: how
far that has come, and when it goes on (R33).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from wholefeed.core.model import Kind
from wholefeed.core.notes import MementoServed
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.store.base import Database, Row, ask, fetch_all, fetch_one, fetch_value, run, varied
from wholefeed.store.rows import Failures, FeedChanges, Overview, match_origins
from wholefeed.store.tables import documents, feeds

_LIST: Final = """
    SELECT url, reason, status, attempts, first_at, last_at, next_at
    FROM attempt WHERE feed = :feed ORDER BY first_at, url
"""


def read(db: Database, feed: int) -> Failures:
    return ask_for(db, feed)()


def ask_for(db: Database, feed: int) -> Callable[[], Failures]:
    """Ask for what `read` returns."""
    return ask(db, _LIST, {"feed": feed}, _failures_in)


def _failures_in(rows: Iterable[Row]) -> Failures:
    attempts = [Attempt(**dict(row)) for row in rows]
    return Failures(
        missing=tuple(each for each in attempts if not each.is_subscription),
        subscription=next((each for each in attempts if each.is_subscription), None),
    )


_FIRST_FAILED: Final = "SELECT min(first_at) FROM attempt WHERE feed = :feed AND url <> :subscription"


def first_failed_at(db: Database, feed: int) -> float | None:
    """Return when what is missing of a feed failed first; None: nothing is missing."""
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
    """Let these be all that is missing of a feed.

    Returns:
        Whether anything is missing no longer without having been had.
    """
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
    """Note that the subscription document could not be had, None: that it could; and update the feed.

    `is_known` as for `feeds.update`.
    """
    feeds.update(db, feed, changes, is_known=is_known)  # first: it tells whether the feed is there
    run(db, _CLEAR_SUBSCRIPTION, {"feed": feed, "subscription": SUBSCRIPTION_ATTEMPT})
    if failure is not None:
        assert failure.is_subscription, "a part that is missing is published"
        run(db, _PUT_ATTEMPT, {"feed": feed, **asdict(failure)})


def overview(db: Database, feed: int) -> Overview:
    """Return what is known of a feed beside its documents."""
    row = feeds.require(db, feed)
    return Overview(row, read(db, feed), feeds.body_bytes(db, feed), documents.imports(db, feed))


# What a web archive is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A document that is missing, and how far a web archive has been asked for it."""

    feed: int
    url: str
    """As in `Attempt`: empty for the subscription document."""
    reason: str
    status: int | None
    attempts: int
    fetch_url: str
    """Of the feed."""
    kind: Kind
    """Of the feed."""
    is_begun: bool = False
    """Whether an archive's copy stands in for the subscription document already."""
    position: str = ""
    """Where the next page of the index begins."""
    taken_at: float | None = None
    """When the newest copy that was taken was made."""

    @property
    def is_subscription(self) -> bool:
        return not self.url

    @property
    def target(self) -> str:
        """The URL that is looked for."""
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


def list_open_searches(db: Database, *, now: float, horizon: float, feed: int | None = None) -> list[Search]:
    """Return the searches whose time has come, longest due first; of one feed, or of all.

    An instant behind `horizon` comes from a clock that was wrong.
    """
    values = {"now": now, "horizon": horizon, "feed": feed, "served": MementoServed.slug}
    return [_search(row) for row in fetch_all(db, _OPEN_SEARCHES, values)]


def _search(row: Row) -> Search:
    changed = {"kind": Kind(row["kind"]), "is_begun": bool(row["is_begun"])}
    return Search(**{**dict(row), **changed})


_KEY: Final = ("feed, url", "feed, md5(url)")
_PUT_SEARCH: Final = varied(
    """
    INSERT INTO memento_search (feed, url, position, taken_at, next_at)
    SELECT :feed, :url, :position, CAST(:taken_at AS double precision), :next_at
    WHERE EXISTS (SELECT 1 FROM feed WHERE id = :feed)
    ON CONFLICT ({key}) DO UPDATE SET
        position = excluded.position, taken_at = excluded.taken_at, next_at = excluded.next_at
    """,
    key=_KEY,
)


def note_search(db: Database, search: Search, *, next_at: float) -> None:
    """Keep how far a search has come, and when it goes on; of a feed that was forgotten nothing is kept."""
    values = {"feed": search.feed, "url": search.url, "position": search.position}
    run(db, _PUT_SEARCH, {**values, "taken_at": search.taken_at, "next_at": next_at})


_POSTPONE: Final = varied(
    """
    INSERT INTO memento_search (feed, url, next_at)
    SELECT :feed, :url, :next_at WHERE EXISTS (SELECT 1 FROM feed WHERE id = :feed)
    ON CONFLICT ({key}) DO UPDATE SET next_at = excluded.next_at
    """,
    key=_KEY,
)


def postpone_search(db: Database, search: Search, *, next_at: float) -> None:
    """Let a search go on later from where it is."""
    run(db, _POSTPONE, {"feed": search.feed, "url": search.url, "next_at": next_at})


_NEXT_SEARCH_AT: Final = "SELECT min(next_at) AS at FROM memento_search WHERE next_at > :now"


def next_search_at(db: Database, now: float) -> float | None:
    """Return when the next search goes on; None when none waits."""
    row = fetch_one(db, _NEXT_SEARCH_AT, {"now": now})
    return None if row is None else row["at"]
