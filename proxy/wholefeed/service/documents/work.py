"""Where documents are worked on: small ones at once, larger ones beside the event loop.

facts = await work.run(work_bytes(body), read_again, stored)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Final, ParamSpec, TypeVar

from wholefeed.fetch.budget import LargeWork
from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import bodies
from wholefeed.workers.pool import INLINE_BYTES, START_BYTES, THREAD_BYTES, Workers

_P = ParamSpec("_P")
_T = TypeVar("_T")


HELD_BYTES: Final = 1 << 16
"""Up to here a document is held as it was parsed, to be rendered together with its neighbours; a larger one
as it was rendered when it came."""
CODED_BYTES: Final = 1 << 20
"""Up to here a body is encoded in the transaction that puts it, which takes a few milliseconds longer."""

_INLINE_MARKS: Final = 4096
"""Of tags and references, or values of JSON, in a document that is read where it is: feeds have half. In one
of twice the size, for which there is one thread, twice as many."""
_SNIFFED_BYTES: Final = 64
_THREAD_VALUES: Final = 50_000
"""Of JSON, in a document that a thread may read: it takes 10 ms for them. Text has a comma every 80 bytes."""


class Work:
    """All work on documents of one process; belongs to one event loop."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._large = LargeWork()
        self._spot = asyncio.Lock()

    @property
    def processes(self) -> tuple[int, int]:
        """How many there are, and how many of them are busy."""
        return len(self._workers.pids), self._workers.busy

    def turn(self, size_bytes: int) -> AbstractAsyncContextManager[None]:
        """Return what is held while documents of so many bytes are in memory to be worked on."""
        return self._large.turn(size_bytes)

    async def run(self, size_bytes: int, job: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do one of the jobs of `wholefeed.core.jobs` on documents of so many bytes, as `work_bytes` has it.

        Raises:
            ParseError: As the job does.
            WorkError: The process that did it has ended, or it has taken too long.
            OverloadedError: The program is being stopped.
        """
        if size_bytes <= INLINE_BYTES:
            await self.on_the_spot()
        return await self._workers.run(size_bytes, job, *args, **kwargs)

    async def on_the_spot(self) -> None:
        """Wait until nothing else has been worked on here in this turn of the loop: others want it, too.

        Documents come several at once, and all that is ready runs before the loop looks for more.
        """
        await self._spot.acquire()
        asyncio.get_running_loop().call_soon(self._spot.release)


def work_bytes(body: bytes) -> int:
    """Return the size of the body, or of a large one that takes as long to read.

    What costs is markup: a small document of nothing else keeps the event loop for half a second, to repair
    or to make its entries. JSON is read in one go, in which a thread holds everybody up (docs/faults.md
    row 87): a process reads much of it.
    """
    size_bytes = len(body)
    if size_bytes >= START_BYTES:
        return size_bytes
    is_xml = body[:_SNIFFED_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    values = 0 if is_xml else sum(map(body.count, (b",", b"[", b"{")))
    if values > _THREAD_VALUES:
        return START_BYTES
    if size_bytes >= THREAD_BYTES:
        return size_bytes
    marks = max(values, body.count(b"<") + body.count(b"&"))
    if marks > 2 * _INLINE_MARKS:
        return THREAD_BYTES
    return max(size_bytes, INLINE_BYTES + 1) if marks > _INLINE_MARKS else size_bytes


async def coded(new: Sequence[NewDocument]) -> list[NewDocument]:
    """Return documents with large bodies as they are stored: no transaction lasts for that."""
    return [
        each
        if len(each.body) <= CODED_BYTES or each.coded is not None
        else replace(each, coded=await asyncio.to_thread(bodies.encode, each.body))
        for each in new
    ]
