"""What could not be opened a moment ago, so that not every request for it asks its publisher again.

    unopened = Unopened(now=time.time)
    unopened.remember(url, error)
    unopened.check(url)             # raises it for a minute at most (docs/faults.md row 21)

What the publisher asked for beyond that (Retry-After) is the host's and kept there (`wholefeed.fetch.hosts`).
Memory is bounded: of more than `MAX_UNOPENED` the oldest is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wholefeed.errors import DocumentError, QueueFullError

REMEMBERED_SECONDS: Final = 60.0
MAX_UNOPENED: Final = 4096


class Unopened:
    """URLs that nothing is stored of, and why.

    Args:
        now: Epoch seconds; a clock that jumps makes it forget.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._errors: dict[str, tuple[float, float, DocumentError]] = {}
        """When it failed, for how many seconds that is remembered, and how it failed."""

    def __len__(self) -> int:
        return len(self._errors)

    def check(self, url: str) -> None:
        """Do nothing when the publisher may be asked.

        Raises:
            DocumentError: It was a moment ago, and this came of it; with the seconds until it may be again.
        """
        failed_at, rest_seconds, error = self._errors.get(url, (0.0, 0.0, None))
        if error is None:
            return
        passed_seconds = self._now() - failed_at
        if not 0 <= passed_seconds < rest_seconds:
            del self._errors[url]
            return
        raise error.fresh_copy(retry_after_seconds=rest_seconds - passed_seconds)

    def remember(self, url: str, error: DocumentError) -> None:
        """Keep why a URL could not be opened, unless it was not tried at all.

        No longer than the error says: a host that is left alone for a second more is asked after that second.
        """
        if isinstance(error, QueueFullError):
            return
        self._errors.pop(url, None)
        if len(self._errors) >= MAX_UNOPENED:
            del self._errors[next(iter(self._errors))]
        seconds = remembered_seconds(error.retry_after_seconds)
        self._errors[url] = (self._now(), seconds, error.fresh_copy())


def remembered_seconds(retry_after_seconds: float | None) -> float:
    """Return for how long a failure counts, by what it said of when to ask again."""
    return min(retry_after_seconds or REMEMBERED_SECONDS, REMEMBERED_SECONDS)
