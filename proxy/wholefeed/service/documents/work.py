"""Where documents are worked on: small ones at once, larger ones beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, ParamSpec, TypeVar

from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import bodies

_P = ParamSpec("_P")
_T = TypeVar("_T")

INLINE_BYTES: Final = 64 * 1024
"""Up to here the work takes less than what it would take to hand it over, or a millisecond."""


async def worked(size_bytes: int, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return what a function makes of documents that come to so many bytes."""
    if size_bytes <= INLINE_BYTES:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


async def coded(new: Sequence[NewDocument]) -> list[NewDocument]:
    """Return documents with large bodies as they are stored: no transaction lasts for that."""
    return [
        each
        if len(each.body) <= INLINE_BYTES or each.coded is not None
        else replace(each, coded=await asyncio.to_thread(bodies.encode, each.body))
        for each in new
    ]
