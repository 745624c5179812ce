"""What replicas know together of publishers' hosts: the table `host`, changed by comparing and swapping.

    answer = await rows.swap([HostChange("example.org", before=seen.stamp, stamp="a/7", state="{}", ...)])
    answer.rows["example.org"].stamp == "a/7"       # else somebody else was faster: this is what stands there

One statement, and so one round trip, whatever number of hosts it is about, and no lock that outlasts it: a
replica that stops in the middle keeps nobody waiting. What a state says is `wholefeed.fetch.hosts.places`'.

The connection is one of its own, so that politeness waits for no transaction of a feed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import psycopg

from wholefeed.store.database import Database
from wholefeed.store.postgres.connection import PostgresDatabase, connect
from wholefeed.store.postgres.faults import translated
from wholefeed.store.statements import run
from wholefeed.store.tables.replicas import DEAD_SECONDS

_T = TypeVar("_T")

SPARED_SECONDS: Final = 60.0
"""A row stays for so long after there is nothing more to remember: others may still go by what they have read
of it."""
MAX_ROWS: Final = 100_000
"""Those that are to be remembered longest stay."""

_SILENT_SECONDS: Final = 5.0
"""More than a statement may take: a server that has not answered by then is not waited for."""
_CLOSE_SECONDS: Final = 1.0

# Nothing is lost that would not be learnt again: a commit does not wait for the disk.
_SETTINGS: Final = """
    SET synchronous_commit = off;
    SET statement_timeout = '2s';
    SET default_transaction_isolation = 'read committed'
"""

# ON CONFLICT waits for whoever changes the row, and sees then what has become of it; a SELECT beside it would
# see the row as it was when the statement began. Rows are taken in the order of their names, so that two
# statements never wait for each other. `before` is a column because nothing else of a given row is seen
# there.
_SWAP: Final = """
WITH given AS (
    SELECT * FROM json_to_recordset(CAST(:changes AS json)) AS each
        (name text, before text, stamp text, state text, kept_until double precision, notices json)
), put AS (
    INSERT INTO host (name, before, stamp, state, kept_until)
    SELECT name, before, stamp, state, kept_until FROM given ORDER BY name
    ON CONFLICT (name) DO UPDATE SET
        stamp = CASE WHEN host.stamp = excluded.before THEN excluded.stamp ELSE host.stamp END,
        state = CASE WHEN host.stamp = excluded.before THEN excluded.state ELSE host.state END,
        kept_until = CASE WHEN host.stamp = excluded.before THEN excluded.kept_until ELSE host.kept_until END
    RETURNING name, stamp, state
), told AS (
    SELECT pg_notify('wholefeed', notice.value)
    FROM put JOIN given USING (name, stamp), json_array_elements_text(given.notices) AS notice
)
SELECT
    clock_seconds() AS now,
    (SELECT json_agg(name) FROM replica WHERE beat_at <= clock_seconds() - :dead_seconds) AS lost,
    (SELECT json_agg(put) FROM put) AS rows,
    (SELECT count(*) FROM told) AS told
"""

_SWEEP: Final = """
DELETE FROM host WHERE kept_until < clock_seconds() - :spared
    OR name IN (SELECT name FROM host ORDER BY kept_until DESC OFFSET :most)
"""


class HostChange(NamedTuple):
    """What is to be known of a host, if what was known of it has still this stamp."""

    name: str
    before: str
    """The stamp of what it was made from; empty: of nothing."""
    stamp: str
    """Never given to anything else."""
    state: str
    kept_until: float
    """The row may be deleted after that."""
    notices: tuple[str, ...] = ()
    """Sent if it is changed."""


@dataclass(frozen=True, slots=True)
class HostRow:
    """What is known of a host."""

    stamp: str
    state: str


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """What stands in the database now."""

    now: float
    """Its clock, epoch seconds, not later than when this was answered."""
    lost: frozenset[str]
    """Names of replicas that have given no sign of life for long."""
    rows: Mapping[str, HostRow]
    """Those that were to be changed, changed or not, by name."""


def swap(db: Database, changes: Sequence[HostChange]) -> HostAnswer:
    """Change what can be changed, and send the notices that go with it."""
    given = {"changes": json.dumps([each._asdict() for each in changes]), "dead_seconds": DEAD_SECONDS}
    (row,) = db.execute(_SWAP, given).fetchall()
    return HostAnswer(
        row["now"],
        frozenset(row["lost"] or ()),
        {each["name"]: HostRow(each["stamp"], each["state"]) for each in row["rows"] or ()},
    )


class HostRows:
    """Owns a connection and its thread; `close` it.

    Args:
        url: Of the database, as libpq takes it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._thread = ThreadPoolExecutor(1, "hosts")
        self._db: PostgresDatabase | None = None

    async def swap(self, changes: Sequence[HostChange]) -> HostAnswer:
        """Change what can be changed, and send the notices that go with it.

        Raises:
            OverloadedError: The database cannot be asked now.
            StorageFullError: It cannot be written.
            StoreError: It failed otherwise.
        """
        return await self._in_thread(lambda db: swap(db, changes))

    async def sweep(self) -> int:
        """Delete what there is nothing to remember of; return how many rows. Raises as `swap`."""
        return await self._in_thread(lambda db: run(db, _SWEEP, {"spared": SPARED_SECONDS, "most": MAX_ROWS}))

    async def close(self) -> None:
        """Close the connection, after what has begun, if that is soon."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        last = self._thread.submit(lambda: None)
        self._thread.shutdown(wait=False)
        if wait({last}, _CLOSE_SECONDS).not_done:
            self._cut()
            wait({last}, _CLOSE_SECONDS)
        if self._db is not None:
            self._db.close()

    def _cut(self) -> None:
        db = self._db
        if db is not None:
            db.cut()

    async def _in_thread(self, work: Callable[[Database], _T]) -> _T:
        loop = asyncio.get_running_loop()
        late = loop.call_later(_SILENT_SECONDS, self._cut)
        try:
            return await loop.run_in_executor(self._thread, self._run, work)
        finally:
            late.cancel()

    def _run(self, work: Callable[[Database], Any]) -> Any:
        try:
            if self._db is None or self._db.is_lost:
                self._db = connect(self._url)
                self._db.executescript(_SETTINGS)
            return work(self._db)
        except psycopg.Error as exc:
            if self._db is not None:  # it may lead to a server that is a standby now
                self._db.close()
                self._db = None
            raise translated(exc) from exc
