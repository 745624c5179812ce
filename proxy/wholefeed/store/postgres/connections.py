"""The connections of a pool: each is lent to one thread at a time, and made when it is needed.

    db = connections.borrow(until)
    connections.give_back(db)

Where none can be made, whoever asks waits for one of those that are lent, as long as the server answers on
them. Once it is silent nobody waits: one thread at a time tries to connect, and the others are told at once.
"""

from __future__ import annotations

import threading
import time
from typing import Final

import psycopg
from psycopg import errors

from wholefeed.store.postgres.connection import CONNECT_SECONDS, PostgresDatabase, Scripts, connect
from wholefeed.store.postgres.faults import overloaded
from wholefeed.store.traffic import Traffic

_AGAIN_SECONDS: Final = 1.0
"""For so long nobody tries to connect again, where that has failed."""
_IN_DOUBT_SECONDS: Final = 3
"""For so long a server that has not answered lately is waited for, also at the end of the program."""
_SILENT: Final = "the database does not answer"


class Connections:
    """Called from any thread; `close` it.

    Args:
        url: Of the database, as libpq takes it.
        size: How many, at the most.
        scripts: What one needs when it writes.
        traffic: Counts them.
    """

    def __init__(self, url: str, *, size: int, scripts: Scripts, traffic: Traffic) -> None:
        self._url = url
        self._size = size
        self._scripts = scripts
        self._traffic = traffic
        self._changed = threading.Condition()
        self._idle: list[PostgresDatabase] = []
        self._lent: set[PostgresDatabase] = set()
        self._making = 0
        self._failure = ""
        """Why the last one could not be made; empty where it could."""
        self._again_at = 0.0
        self._is_closed = False
        self.is_silent = False
        """Whether nothing has come from the server for longer than it may take."""

    def borrow(self, until: float) -> PostgresDatabase:
        """Return a connection for the caller alone; `give_back` it.

        Args:
            until: How long to wait for one that is lent, by the monotonic clock.

        Raises:
            psycopg.OperationalError: There is none to be had, and it is no use to wait.
            OverloadedError: None was given back in time.
        """
        while True:
            found = self._taken(until)
            if found is not None:
                return found
            try:
                return self._made()
            except psycopg.OperationalError:
                if not self._is_served:
                    raise

    def _taken(self, until: float) -> PostgresDatabase | None:
        """Return one that is idle, once there is one; None: one is to be made."""
        with self._changed:
            while not self._idle:
                if self._may_make():
                    self._making += 1
                    return None
                if not self._is_served:
                    raise psycopg.OperationalError(self._failure or _SILENT)
                now = time.monotonic()
                if now >= until:
                    raise overloaded("too many wait for the database")
                _ = self._changed.wait(min(until, max(self._again_at, now + _AGAIN_SECONDS)) - now)
            db = self._idle.pop()
            self._lent.add(db)
            return db

    @property
    def _is_served(self) -> bool:
        """Whether others have a connection on which the server answers, as far as is known."""
        return not (self._is_closed or self.is_silent) and bool(self._lent or self._idle)

    def _may_make(self) -> bool:
        if self._is_closed or len(self._lent) + self._making >= self._size:
            return False
        return not self._is_in_doubt or (not self._making and time.monotonic() >= self._again_at)

    @property
    def _is_in_doubt(self) -> bool:
        return bool(self._failure) or self.is_silent

    def _made(self) -> PostgresDatabase:
        try:
            seconds = _IN_DOUBT_SECONDS if self._is_in_doubt else CONNECT_SECONDS
            db = connect(self._url, self._scripts, within_seconds=seconds)
        except BaseException as exc:
            with self._changed:
                self._making -= 1
                self._failure = str(exc) or type(exc).__name__
                self._again_at = time.monotonic() + _AGAIN_SECONDS
                self.is_silent = self.is_silent or isinstance(exc, errors.ConnectionTimeout)
                self._changed.notify_all()
            self._traffic.disconnected(was_open=False)
            raise
        self._traffic.connected()
        with self._changed:
            self._making -= 1
            self._lent.add(db)
            self._is_there()
        if self._is_closed:
            self.give_back(db)
            raise psycopg.OperationalError("the connections are closed")
        return db

    def give_back(self, db: PostgresDatabase) -> None:
        """Take a connection back. Where it is lost, those that were idle meanwhile are not trusted either."""
        lost: list[PostgresDatabase] = []
        with self._changed:
            self._lent.discard(db)
            if db.is_lost or self._is_closed:
                lost = [db, *self._idle]
                self._idle.clear()
                self._changed.notify_all()
            else:
                self._idle.append(db)
                self.is_silent = False
                self._changed.notify()
        self._lose(lost)

    def distrust(self) -> None:
        """Take note that the server has been silent for too long; what is lent stays so."""
        with self._changed:
            self.is_silent = True
            lost, self._idle = self._idle, []
            self._changed.notify_all()
        self._lose(lost)

    def try_again(self) -> None:
        """Take note that the server has answered somebody."""
        with self._changed:
            self._again_at = 0.0
            self._is_there()

    def close(self) -> None:
        """Close those that are idle now, and the others when they are given back."""
        with self._changed:
            self._is_closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for each in idle:
            each.close()

    def _is_there(self) -> None:
        """Take note, under the lock, that the server answers."""
        self._failure, self.is_silent = "", False
        self._changed.notify_all()

    def _lose(self, lost: list[PostgresDatabase]) -> None:
        for each in lost:
            each.close()
            self._traffic.disconnected(was_open=True)
