"""What replicas tell each other: PostgreSQL's NOTIFY, on one connection that listens.

    async with Notices.open(url) as notices:
        notices.listen("drop", on_drop)                  # told "12 a" when a replica sends "drop 12 a"
        notices.on_lost(look_at_everything)              # notices may have been missed; they come again
        notices.on_replaced(forget_everything)           # from a database that may be another one

One is sent in the transaction that it is about, of at most 7,999 bytes:

    SELECT pg_notify('wholefeed', 'drop 12 a')

It comes when that has been committed, in the order of the commits, to all and to its sender too. It may come
after the change can be read: PostgreSQL lets others see a commit before it signals those that listen, and a
query on this connection that ends in between has nothing to deliver (seen 17 times in 6,400 looks at a server
process that was halted again and again). So notices make that a replica soon knows; what must be sure is read
from the rows, for which there is `query`.

A server that does not answer for some seconds is given up and looked for again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, Self

import psycopg

from wholefeed.errors import OverloadedError
from wholefeed.futures import retrieve_failure
from wholefeed.loggers import get_logger
from wholefeed.store.postgres.connection import HISTORY
from wholefeed.store.postgres.faults import on_one_line
from wholefeed.store.postgres.link import CONNECT_SECONDS, Link, Values
from wholefeed.store.traffic import Traffic

_log = get_logger()

CHANNEL: Final = "wholefeed"
BEAT_SECONDS: Final = 2.0
"""Between two looks whether the server is there."""
SILENT_SECONDS: Final = 4.0
"""A server that has not answered for so long is given up."""
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0
_BEAT: Final = "SELECT 1"
# A statement that waits for a lock would keep the beat waiting: the server would seem to be silent.
_SCRIPTS: Final = ("SET statement_timeout = '2s'", f"LISTEN {CHANNEL}")
_DATABASE: Final = "SELECT oid FROM pg_database WHERE datname = current_database()"
_IDENTITY: Final = f"SELECT ({HISTORY}) || '/' || ({_DATABASE})"
"""The same for as long as numbers mean the same: neither server nor database is another one."""


class Notices:
    """Belongs to one replica; made by `open`.

    Args:
        url: Of the database.
        traffic: Counts how often the connection broke off; None: nobody wants to know.
    """

    def __init__(self, url: str, traffic: Traffic | None = None) -> None:
        self._url = url
        self._traffic = traffic or Traffic()
        self._listeners: defaultdict[str, list[Callable[[str], None]]] = defaultdict(list)
        self._lost: list[Callable[[], None]] = []
        self._replaced: list[Callable[[], None]] = []
        self._identity = ""
        """Of the database; empty where that cannot be known."""
        self.on_silent: Callable[[], None] = lambda: None
        """Called when the server has not answered for so long that it is given up."""
        self._link: Link | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str, traffic: Traffic | None = None) -> AsyncIterator[Self]:
        """Listen until exit; args as for the class.

        Raises:
            psycopg.Error: The database cannot be asked now.
        """
        notices = cls(url, traffic)
        link = await notices._opened()
        task = asyncio.create_task(notices._run(link), name="store-notices")
        try:
            yield notices
        finally:
            task.cancel()
            await asyncio.wait({task})

    @property
    def is_listening(self) -> bool:
        """Whether the connection is there, as far as is known."""
        return self._link is not None and not self._link.ended.done()

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Have a function told what is said in each notice of a kind, on the event loop."""
        self._listeners[kind].append(callback)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have a function called when it listens again after a time in which notices may have been missed."""
        self._lost.append(callback)

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Have a function called, before those of `on_lost`, where the database may be another one now."""
        self._replaced.append(callback)

    async def query(self, sql: str, *parameters: bytes | None) -> list[Values]:
        """Return the rows of one small statement, whose parameters are `$1` and so on.

        Raises:
            OverloadedError: The database cannot be asked now.
            psycopg.Error: The statement failed.
        """
        if self._link is None or self._link.ended.done():
            raise OverloadedError("the connection to the database is lost")
        return await self._link.query(sql, *parameters)

    async def _run(self, link: Link) -> None:
        while True:
            try:
                await self._attend(link)
            finally:
                link.close()
            before = self._identity
            link = await self._found_again()
            if not before or before != self._identity:
                for each in self._replaced:
                    each()
            for each in self._lost:
                each()
            _log.info("notices.resumed")

    async def _attend(self, link: Link) -> None:
        """Return when the connection is lost, or the server has been silent for too long."""
        try:
            while True:
                await asyncio.wait({link.ended}, timeout=BEAT_SECONDS)
                if link.ended.done():
                    return link.ended.result()
                asking = asyncio.create_task(link.query(_BEAT))
                asking.add_done_callback(retrieve_failure)
                # Not a timeout: a process that was stopped would find it over, and the answer there.
                if asking not in (await asyncio.wait({asking}, timeout=SILENT_SECONDS))[0]:
                    raise TimeoutError
                asking.result()
        except (psycopg.Error, TimeoutError) as exc:
            self._traffic.notices_lost += 1
            _log.warning("notices.lost", reason=on_one_line(exc))
            if isinstance(exc, TimeoutError):
                self.on_silent()

    async def _found_again(self) -> Link:
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            with suppress(psycopg.Error, OSError, TimeoutError):
                async with asyncio.timeout(2 * CONNECT_SECONDS):
                    return await self._opened()
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)

    async def _opened(self) -> Link:
        link = await Link.open(self._url, self._take, scripts=_SCRIPTS)
        try:
            self._identity = await _identity(link)
        except BaseException:
            link.close()
            raise
        self._link = link
        return link

    def _take(self, payload: str) -> None:
        kind, _, words = payload.partition(" ")
        for each in self._listeners[kind]:
            each(words)


async def _identity(link: Link) -> str:
    try:
        [(identity,)] = await link.query(_IDENTITY)
    except psycopg.Error as exc:
        if exc.sqlstate is None:
            raise
        return ""  # a server that is like PostgreSQL may not tell
    return "" if identity is None else identity.decode()
