"""A connection to PostgreSQL that takes the tables' statements, for functions that run in its thread.

    db = connect("postgresql://…")
    db.execute("SELECT url FROM feed WHERE id = :feed", {"feed": 1}).fetchall()[0]["url"]

It begins and ends no transaction of its own. Results are whole when `execute` returns.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import capabilities
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from wholefeed.store.postgres import adapting
from wholefeed.store.postgres.rows import MakeRow, PostgresRow, row_maker
from wholefeed.store.postgres.translate import translate
from wholefeed.store.statements import fetch_value

CONNECT_SECONDS: Final = 5
_SET_UP_SECONDS: Final = 3.0
"""For so long a server that has taken a connection may leave what sets it up unanswered."""
_PREPARE_AT: Final = 2
"""How often a statement is seen before it is prepared."""
_PREPARED: Final = 512
"""At the most; more than the program has."""
# A machine that is gone is found out within ten seconds. Of one whose processes are halted the kernel goes on
# to answer: that is up to whoever waits (`PostgresDatabase.cut`).
_KEEPALIVE: Final[dict[str, Any]] = {
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# What a connection is set to: no statement and no lock may hold a thread for good, and what a replica that is
# gone has left open ends by itself.
_SETTINGS: Final = """
    SET statement_timeout = '120s';
    SET lock_timeout = '30s';
    SET idle_in_transaction_session_timeout = '8s';
    SET TimeZone = 'UTC'
"""
# What numbers of transactions belong to: a standby that was promoted begins another history.
HISTORY: Final = """
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN
        (SELECT system_identifier FROM pg_control_system()) || '/'
            || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    END
"""
_CANCEL_SECONDS: Final = 2.0
_WRITES_BETWEEN: Final = 64


class Scripts(NamedTuple):
    """SQL that a connection needs which writes; outside of transactions."""

    first: str = ""
    """Before the first transaction: its temporary tables."""
    again: str = ""
    """Now and then: empties them, which takes ten times as long as a COMMIT, so not at each one."""


class Result:
    """What a statement gave."""

    __slots__ = ("_at", "_rows", "rowcount")

    def __init__(self, rows: list[PostgresRow], rowcount: int) -> None:
        self._rows = rows
        self._at = 0
        self.rowcount = rowcount
        """How many rows were changed."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""
        rows = self._rows[self._at :] if self._at else self._rows
        self._at = len(self._rows)
        return rows

    def fetchmany(self, size: int = 1, /) -> list[Any]:
        """Return so many rows at the most."""
        rows = self._rows[self._at : self._at + size]
        self._at += len(rows)
        return rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


NO_SCRIPTS: Final = Scripts()


class PostgresDatabase:
    """A connection as `wholefeed.store.database.Database` has it."""

    def __init__(self, raw: psycopg.Connection[Any], scripts: Scripts) -> None:
        self.raw = raw
        self._scripts = scripts
        self._writes = 0
        self.history = ""
        """What numbers of transactions mean something in; empty where that is not known."""
        self._cursor = raw.cursor(binary=True)
        self._makers = dict[str, tuple[int, MakeRow]]()
        """By statement: how many columns its rows have, and what makes them."""
        self._is_leaving = False

    def prepare_to_write(self) -> None:
        """Run what the connection needs. Not before: on a server that takes no writes it fails."""
        if not self._writes:
            self.executescript(self._scripts.first)
        elif self._writes % _WRITES_BETWEEN == 0:
            self.executescript(self._scripts.again)
        self._writes += 1

    def ask(self, sql: str) -> str:
        """Run statements as they stand, which takes one trip; return the first value of the last one, or "".

        For what begins and ends transactions: it costs a third of what a cursor does.
        """
        self._arrive()
        result = self.raw.pgconn.exec_(sql.encode())
        self._require(result)
        return (result.get_value(0, 0) or b"").decode() if result.ntuples else ""

    def leave(self) -> None:
        """End a transaction that has only read, without waiting for the answer."""
        self.raw.pgconn.send_query(b"COMMIT")
        self._is_leaving = True

    def commit(self) -> None:
        """End a transaction.

        Raises:
            psycopg.Error: It is not committed, or it cannot be known.
        """
        self._arrive()
        result = self.raw.pgconn.exec_(b"COMMIT")
        self._require(result)
        if result.command_status != b"COMMIT":  # a statement had failed, and the work went on
            raise psycopg.errors.InFailedSqlTransaction("expected a transaction that can be committed")

    def execute(self, sql: str, parameters: Any = (), /) -> Result:
        """Run one statement."""
        if self._is_leaving:
            self._arrive()
        statement, cursor = translate(sql), self._cursor
        if parameters:
            cursor.execute(statement.text, parameters)
        else:
            cursor.execute(statement.plain)
        result = cursor.pgresult
        if result is None or result.status != ExecStatus.TUPLES_OK:
            return Result([], cursor.rowcount)
        columns, make = self._makers.get(sql, (-1, PostgresRow))
        if columns != result.nfields:
            make = row_maker(result)
            self._makers[sql] = result.nfields, make
        return Result([make(values) for values in cursor.fetchall()], cursor.rowcount)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Result:
        """Run one statement for each of these, sent together."""
        rows = list(parameters)
        if not rows:
            return Result([], 0)
        self._arrive()
        self._cursor.executemany(translate(sql).text, rows)
        return Result([], self._cursor.rowcount)

    def executescript(self, script: str) -> None:
        """Run any number of statements, without parameters and results."""
        self._arrive()
        if script:
            self.raw.execute(translate(script).plain)

    def _arrive(self) -> None:
        """Take the answer to what `leave` has sent."""
        if self._is_leaving:
            self._is_leaving = False
            while (result := self._next_result()) is not None:
                self._require(result)

    def _next_result(self) -> PGresult | None:
        """Wait for a result here: where libpq waits for one, psycopg keeps all other threads from running."""
        connection = self.raw.pgconn
        connection.consume_input()
        while connection.is_busy():
            waiting = select.poll()
            waiting.register(connection.socket, select.POLLIN)
            waiting.poll()
            connection.consume_input()
        return connection.get_result()

    def _require(self, result: PGresult) -> None:
        """Raise what a result says that it failed with."""
        if result.status != ExecStatus.FATAL_ERROR:
            return
        error = psycopg.errors.error_from_result(result)
        if self.is_lost and error.sqlstate is None:
            raise psycopg.OperationalError(str(error)) from error
        raise error

    def rollback(self) -> None:
        """Leave the transaction, if there is one. A connection that cannot do it is closed."""
        try:
            self._arrive()
            self.raw.rollback()
        except psycopg.Error:
            self.raw.close()

    def cancel(self) -> None:
        """Ask the server to end the statement that runs; from another thread."""
        if not capabilities.has_cancel_safe():  # an old libpq waits for a silent server for good
            self.cut()
            return
        with suppress(psycopg.Error):
            self.raw.cancel_safe(timeout=_CANCEL_SECONDS)

    def cut(self) -> None:
        """Break the connection, from another thread: whatever waits for the server fails at once."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.raw.fileno())) as its:
            its.shutdown(socket.SHUT_RDWR)

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self.raw.closed

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


def connect(
    url: str, scripts: Scripts = NO_SCRIPTS, *, within_seconds: int = CONNECT_SECONDS
) -> PostgresDatabase:
    """Open a connection.

    Args:
        url: As libpq takes it.
        scripts: What it needs when it writes.
        within_seconds: How long to wait for each address of the server.

    Raises:
        psycopg.Error: There is no such connection to be had.
    """
    raw: psycopg.Connection[Any] = psycopg.connect(
        url,
        autocommit=True,
        prepare_threshold=_PREPARE_AT,
        connect_timeout=within_seconds,
        application_name="wholefeed",
        **_KEEPALIVE,
    )
    try:
        raw.prepared_max = _PREPARED
        adapting.register(raw)
        db = PostgresDatabase(raw, scripts)
        late = threading.Timer(_SET_UP_SECONDS, db.cut)
        late.daemon = True
        late.start()
        try:
            _set_up(db)
        finally:
            late.cancel()
    except BaseException:
        raw.close()
        raise
    return db


def _set_up(db: PostgresDatabase) -> None:
    db.executescript(_SETTINGS)
    with suppress(psycopg.DatabaseError):  # a server that is like PostgreSQL may not have that
        db.history = fetch_value(db, HISTORY) or ""
    if db.is_lost:
        raise psycopg.OperationalError("the connection was lost while it was set up")
