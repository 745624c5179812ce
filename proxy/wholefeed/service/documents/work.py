"""Where documents are worked on: small ones at once, larger ones beside the event loop.

rendered = await work.run(size_bytes, render, parts, style)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import ParamSpec, TypeVar

from wholefeed.fetch.budget import LargeWork
from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import bodies
from wholefeed.workers.pool import INLINE_BYTES, Workers

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Work:
    """All work on documents of one process; belongs to one event loop."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._large = LargeWork()

    def turn(self, size_bytes: int) -> AbstractAsyncContextManager[None]:
        """Return what is held while documents of so many bytes are in memory to be worked on."""
        return self._large.turn(size_bytes)

    async def run(self, size_bytes: int, job: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do one of the jobs of `wholefeed.core.jobs` on documents of so many bytes.

        Raises:
            ParseError: As the job does.
            WorkError: The process that did it has ended, or it has taken too long.
            OverloadedError: The program is being stopped.
        """
        return await self._workers.run(size_bytes, job, *args, **kwargs)


async def coded(new: Sequence[NewDocument]) -> list[NewDocument]:
    """Return documents with large bodies as they are stored: no transaction lasts for that."""
    return [
        each
        if len(each.body) <= INLINE_BYTES or each.coded is not None
        else replace(each, coded=await asyncio.to_thread(bodies.encode, each.body))
        for each in new
    ]
