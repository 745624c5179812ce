"""One transaction on a connection, for functions that run in its thread.

Reads().run(db, work)                # of one moment: REPEATABLE READ READ ONLY
Write(work, feed=1).run(db)          # begins with the lock on the feed's row
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from wholefeed.errors import OverloadedError
from wholefeed.store.database import Database
from wholefeed.store.postgres.connection import PostgresDatabase, Result
from wholefeed.store.statements import fetch_value

_T = TypeVar("_T")

_BEGIN_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Not READ WRITE, which a standby refuses with another error than what is written later.
_BEGIN_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED{}; SELECT pg_current_xact_id()"
_LOOSELY: Final = "; SET LOCAL synchronous_commit = off"
_LOCK: Final = ", (SELECT id FROM feed WHERE id = {:d} FOR UPDATE)"
_STATUS: Final = "SELECT pg_xact_status(CAST(CAST(:number AS text) AS xid8))"

_ASK_AGAIN_SECONDS: Final = 0.2


class Reads:
    """Runs functions that read, each in a transaction; a single statement is one by itself.

    Most functions run one statement, and BEGIN and COMMIT would be two more trips. So each function runs
    without them first; at its second statement it is begun again, in a transaction, and from then on so are
    those that the same place in the program makes.
    """

    def __init__(self) -> None:
        self._longer = set[object]()

    def run(self, db: PostgresDatabase, work: Callable[[Database], _T]) -> _T:
        """Return what a function finds; all of it is of one moment."""
        place = _place(work)
        if place not in self._longer:
            try:
                return work(_Single(db))
            except _SecondStatementError:
                self._longer.add(place)
        try:
            _ = db.ask(_BEGIN_READ)
            result = work(db)
            db.leave()
        except BaseException:
            db.rollback()
            raise
        return result


class _SecondStatementError(BaseException):
    """A function runs more than one statement. No function handles it."""


class _Single:
    """A connection for one statement."""

    def __init__(self, db: PostgresDatabase) -> None:
        self._db: PostgresDatabase | None = db

    def execute(self, sql: str, parameters: Any = (), /) -> Result:
        db, self._db = self._db, None
        if db is None or not sql.lstrip().startswith("SELECT"):  # only the transaction would refuse to write
            raise _SecondStatementError
        return db.execute(sql, parameters)

    def executemany(self, _sql: str, _parameters: Iterable[Any], /) -> Result:
        raise _SecondStatementError


def _place(work: Callable[..., object]) -> object:
    """Return what is the same for functions that the same line makes."""
    while isinstance(work, partial):
        work = work.func
    return getattr(work, "__code__", work)


class Write(Generic[_T]):
    """A transaction that writes, and how far it has come.

    Args:
        work: What it does.
        feed: The feed that it changes, whose row it locks first; None: none that is known.
        is_lasting: Whether COMMIT waits until what was changed is on the server's disk.
    """

    def __init__(self, work: Callable[[Database], _T], feed: int | None, *, is_lasting: bool = True) -> None:
        self.work = work
        self.is_ending = False
        """Whether COMMIT has been sent the last time it was run: if it has failed since, it may be done."""
        self._begin = _BEGIN_WRITE.format("" if is_lasting else _LOOSELY)
        if feed is not None:
            self._begin += _LOCK.format(feed)
        self._ending: tuple[str, str, _T] | None = None
        """From when COMMIT is sent: the history its number there, and what the work returned."""

    def run(self, db: PostgresDatabase) -> _T:
        """Run it, all of it or nothing."""
        self._ending, self.is_ending = None, False
        try:
            db.prepare_to_write()
            number = db.ask(self._begin)
            result = self.work(db)
            self._ending, self.is_ending = (db.history, number, result), True
            db.commit()
        except BaseException:
            if not db.is_lost:  # the server has said so itself
                self._ending = None
            db.rollback()
            raise
        return result

    @property
    def is_open(self) -> bool:
        """Whether what became of it is not known: its connection was lost after COMMIT was sent."""
        return self._ending is not None

    def settle(self, db: PostgresDatabase, *, until: float) -> tuple[_T] | None:
        """Find out on another connection what has become of it, where that is open.

        Args:
            db: The other connection.
            until: When to give up, by the monotonic clock.

        Returns:
            What the work returned, where it was committed; None: it was undone.

        Raises:
            OverloadedError: That cannot be known: the server was replaced by a standby, does not know it any
                more, or has not come to an end with it.
        """
        assert self._ending is not None
        history, number, result = self._ending
        while history and db.history == history:
            status = fetch_value(db, _STATUS, {"number": number})
            if status == "committed":
                return (result,)
            if status == "aborted":
                self._ending, self.is_ending = None, False
                return None
            if status is None or time.monotonic() > until:
                break
            time.sleep(_ASK_AGAIN_SECONDS)  # the server has not found out yet that the connection is gone
        raise OverloadedError(
            "the connection to the database was lost, and what became of a COMMIT is not known"
        )
