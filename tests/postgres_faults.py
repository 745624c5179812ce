"""PostgreSQL that fails when a test says so: each statement is counted on its way to the server.

    async with a_faulty(url) as faults:
        ...                                      # what connects to faults.url
        faults.arm(17, "disk-full", every=1)     # the 17th from now on, and all that follow
        ...
        faults.heal()

Driver, protocol and server are the real ones. In place of a statement the server is sent one that fails as is
wanted, so that it is in the state that it would be in; or the connection is cut.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final, NamedTuple

from tests.store.relay import Relay, serving

CODES: Final = {"disk-full": "53100", "serialization": "40001", "input-output": "58030"}
"""The server's error codes for a statement."""
CUT: Final = "cut"
"""The connection is lost, and the statement does not arrive."""
ENDED: Final = "ended"
"""The server ends the connection, as an administrator would."""
LATE: Final = "late"
"""The statement is done, and the connection lost before the reply."""

_RAISE: Final = "DO $$ BEGIN RAISE EXCEPTION 'as armed' USING ERRCODE = '{}'; END $$"
_END: Final = "SELECT pg_terminate_backend(pg_backend_pid())"
_COMMIT: Final = "COMMIT"


class _Batch(NamedTuple):
    """Messages with one reply: a simple query, or statements up to a Sync or Flush message."""

    data: bytes
    sql: str


class PostgresFaults(Relay):
    """Counts statements, and fails the armed ones; made by `a_faulty`."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.statements = 0
        """Since the last `arm`, of those that can be hit."""
        self.failed = 0
        self._at = 0
        self._how = ""
        self._every = 0
        self._only_commits = False

    def arm(self, at: int, how: str, *, every: int = 0, only_commits: bool = False) -> None:
        """Fail the statement with that number, counted from now from 1.

        Args:
            at: The number.
            how: One of `CODES`, `CUT`, `ENDED` or `LATE`.
            every: Of those behind it, one in so many fails, too, until `heal`.
            only_commits: Nothing but COMMITs is counted.
        """
        self.statements = self.failed = 0
        self._at, self._how, self._every, self._only_commits = at, how, every, only_commits

    def heal(self) -> None:
        """Fail nothing any more."""
        self.arm(0, "")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection(*self._target)
        self._writers |= {writer, out}
        answers = asyncio.create_task(self._answer(there, writer))
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            out.write(await _first_message(reader))
            async for batch in _batches(reader):
                how = self._count(batch.sql)
                if how == LATE:
                    answers.cancel()
                    await asyncio.wait({answers})
                    out.write(batch.data)
                    await there.read(1 << 16)  # it is done by now
                if how in (CUT, LATE):
                    break
                out.write(_instead(how) if how else batch.data)
                await out.drain()
        answers.cancel()
        for each in (writer, out):
            self._writers.discard(each)
            each.transport.abort()

    def _count(self, sql: str) -> str:
        """Count a statement; return its fault, or an empty text."""
        if not sql or (self._only_commits and sql != _COMMIT):
            return ""
        self.statements += 1
        behind = self.statements - self._at
        if not self._at or behind < 0 or (behind and (not self._every or behind % self._every)):
            return ""
        self.failed += 1
        return self._how


def a_faulty(url: str) -> AbstractAsyncContextManager[PostgresFaults]:
    """Relay between clients of its URL and a database."""
    return serving(PostgresFaults(url))


def _instead(how: str) -> bytes:
    sql = _END if how == ENDED else _RAISE.format(CODES[how])
    return b"Q" + (len(sql) + 5).to_bytes(4) + sql.encode() + b"\0"


async def _first_message(reader: asyncio.StreamReader) -> bytes:
    """Read a connection's first message, the only one without a kind."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length) - 4)


async def _batches(reader: asyncio.StreamReader) -> AsyncIterator[_Batch]:
    """Read a client's messages, with prepared statements' texts by name."""
    names: dict[bytes, bytes] = {}
    data, texts = b"", list[bytes]()
    while True:
        head = await reader.readexactly(5)
        body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
        data += head + body
        kind, words = head[:1], body.split(b"\0", 2)
        if kind == b"Q":
            texts.append(words[0])
        elif kind == b"P":
            names[words[0]] = words[1]
        elif kind == b"B":
            texts.append(names[words[1]])
        if kind in b"QSHX":
            yield _Batch(data, b"; ".join(dict.fromkeys(texts)).decode())
            data, texts = b"", []
