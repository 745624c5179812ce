"""What blocks, done in a thread that nobody waits for when the command ends.

The event loop's own threads are waited for at its end, and a dead disk may keep one for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from wholefeed.futures import in_daemon

_T = TypeVar("_T")


async def beside(work: Callable[[], _T]) -> _T:
    """Do what blocks in a thread that nobody waits for at the end: a dead disk may keep it for ever."""
    return await in_daemon(work, name="doctor")
