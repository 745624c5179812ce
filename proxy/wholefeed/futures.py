"""What becomes of futures that whoever waited for them has left."""

from __future__ import annotations

import asyncio
from typing import Any


def retrieve_exception(done: asyncio.Future[Any]) -> None:
    """Take note of a future's failure, as its done callback: nobody waiting is no reason for a warning."""
    if not done.cancelled():
        done.exception()
