"""One connection on the event loop: what the server sends unasked, and small queries in between.

    link = await Link.open(url, on_notice, scripts=["LISTEN wholefeed"])
    [row] = await link.query("SELECT 1")
    await link.ended            # the connection is lost, or was closed
    link.close()

psycopg opens it; from then on libpq is driven here. Through psycopg's own waiting a query of one row takes
250 us of the processor's time, here 80. A statement is prepared when it comes for the first time. Who leaves
a query does not disturb the ones behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from wholefeed.futures import retrieve_failure

CONNECT_SECONDS: Final = 5
_SETTINGS: Final[dict[str, Any]] = {
    "application_name": "wholefeed notices",
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}
_FINE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY})

Values = tuple[bytes | None, ...]
"""A row of a result: each value as PostgreSQL writes it as text."""


class _Query(NamedTuple):
    sql: bytes
    parameters: Sequence[bytes | None]
    done: asyncio.Future[list[Values]]


class Link:
    """Belongs to one event loop; `close` it.

    Args:
        db: An open connection, of which nothing but this makes use.
        on_notice: Told the payload of each notice, before the query behind which it came is answered.
    """

    def __init__(self, db: psycopg.AsyncConnection[Any], on_notice: Callable[[str], None]) -> None:
        self._pg = db.pgconn
        self._db = db
        self._on_notice = on_notice
        self._loop = asyncio.get_running_loop()
        self._queries: deque[_Query] = deque()
        """The first one is under way."""
        self._result: PGresult | None = None
        self._prepared: dict[bytes, bytes] = {}
        """Names of statements."""
        self._is_preparing = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when it can be used no more; its error says why, where nobody has closed it."""
        self.ended.add_done_callback(retrieve_failure)
        self._socket = self._pg.socket
        self._loop.add_reader(self._socket, self._guarded, self._receive)

    @classmethod
    async def open(cls, url: str, on_notice: Callable[[str], None], *, scripts: Sequence[str] = ()) -> Link:
        """Connect, and run statements.

        Raises:
            psycopg.Error: There is no such connection to be had.
        """
        link = cls(await psycopg.AsyncConnection.connect(url, autocommit=True, **_SETTINGS), on_notice)
        try:
            for each in scripts:  # not by psycopg, which waits for ten seconds where it is cancelled
                await link.query(each)
        except BaseException:
            link.close()
            raise
        return link

    async def query(self, sql: str, *parameters: bytes | None) -> list[Values]:
        """Return the rows of one statement, whose parameters are `$1` and so on.

        Raises:
            psycopg.Error: It failed, or the connection is lost.
        """
        if self.ended.done():
            raise psycopg.OperationalError("the connection is closed")
        done: asyncio.Future[list[Values]] = self._loop.create_future()
        done.add_done_callback(retrieve_failure)
        self._queries.append(_Query(sql.encode(), parameters, done))
        if len(self._queries) == 1:
            self._guarded(self._send)
        return await done

    def close(self) -> None:
        """Close the connection; what is asked of it fails."""
        self._end(None)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Take a step; a connection that is lost in it has ended."""
        if self.ended.done():
            return
        try:
            step()
        except psycopg.Error as exc:
            self._end(exc)

    def _send(self) -> None:
        query = self._queries[0]
        self._result = None
        name = self._prepared.get(query.sql)
        if name is None:
            self._is_preparing = True
            self._pg.send_prepare(b"w%d" % len(self._prepared), query.sql)
        else:
            self._pg.send_query_prepared(name, query.parameters)
        self._flush()

    def _flush(self) -> None:
        if self._pg.flush():
            self._loop.add_writer(self._socket, self._guarded, self._flush)
        else:
            self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        self._pg.consume_input()
        while self._queries and not self._pg.is_busy():
            result = self._pg.get_result()
            if result is not None:
                self._result = result
                continue
            self._notices()
            if not self._has_prepared():
                self._answer()
            if self._queries:
                self._send()
        self._notices()
        if self._pg.transaction_status == TransactionStatus.UNKNOWN:
            raise psycopg.OperationalError("the connection is lost")

    def _has_prepared(self) -> bool:
        """Whether it was a preparation that has ended, so that the query itself is next."""
        is_so = self._is_preparing and self._result is not None and self._result.status in _FINE
        self._is_preparing = False
        if is_so:
            self._prepared[self._queries[0].sql] = b"w%d" % len(self._prepared)
        return is_so

    def _notices(self) -> None:
        while (found := self._pg.notifies()) is not None:
            self._on_notice(found.extra.decode())

    def _answer(self) -> None:
        done, result = self._queries.popleft().done, self._result
        if done.done():  # whoever asked has left
            return
        if result is None or result.status not in _FINE:
            done.set_exception(
                psycopg.OperationalError("no answer") if result is None else error_from_result(result)
            )
            return
        columns = range(result.nfields)
        done.set_result(
            [tuple(result.get_value(row, each) for each in columns) for row in range(result.ntuples)]
        )

    def _end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._pg.finish()
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
        while self._queries:
            done = self._queries.popleft().done
            if not done.done():
                done.set_exception(psycopg.OperationalError(f"the connection is lost: {error or 'closed'}"))
