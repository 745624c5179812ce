"""What one thread of a pool does for one who asked: a function, within one transaction on one connection.

job = Job(work, write, latest_at=time.monotonic() + 10)
job.run(db, reads)          # in the thread
job.end()                   # from another one: nobody wants it any more
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import psycopg

from wholefeed.store.database import Database
from wholefeed.store.postgres.connection import PostgresDatabase
from wholefeed.store.postgres.faults import is_unusable, overloaded
from wholefeed.store.postgres.transactions import Reads, Write

_T = TypeVar("_T")

END_SECONDS: Final = 2.0
"""For so long a server may take to end a statement that it was told to end."""
LATE: Final = "the database does not answer in time"
_LOOK_SECONDS: Final = 0.01


class Job(Generic[_T]):
    """What one thread does for one who asked."""

    def __init__(self, work: Callable[[Database], _T], write: Write[_T] | None, *, latest_at: float) -> None:
        self.work = work
        self.write = write
        """None: it only reads."""
        self.latest_at = latest_at
        """When it is not begun any more."""
        self.is_ended = False
        """Whether nobody wants it any more."""
        self._changing = threading.Lock()
        self._db: PostgresDatabase | None = None

    def run(self, db: PostgresDatabase, reads: Reads) -> _T:
        """Do it on a connection."""
        with self._changing:
            self._db = db
        try:
            if self.is_ended:
                raise overloaded(LATE)
            if self.write is not None and self.write.is_open:
                found = self.write.settle(db, until=self.latest_at)
                if found is not None:
                    return found[0]
            return reads.run(db, self.work) if self.write is None else self.write.run(db)
        except psycopg.Error as exc:
            if is_unusable(exc):
                db.close()
            raise
        finally:
            with self._changing:  # a cancellation that is under way is for this job, not for the next one
                self._db = None

    def end(self) -> bool:
        """End the statement that it runs, from another thread; return whether that took a cut."""
        self.is_ended = True
        with self._changing:
            if self._db is not None:
                self._db.cancel()
        until = time.monotonic() + END_SECONDS
        while self._db is not None and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return self.cut()

    def cut(self) -> bool:
        """Break the connection that it is on, from another thread; return whether there was one."""
        with self._changing:
            if self._db is not None:
                self._db.cut()
            return self._db is not None
