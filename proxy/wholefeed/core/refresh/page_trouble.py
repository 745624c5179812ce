"""What of an adapter's pages could not be had, and when that ends the questions (rules R18, R32)."""

from __future__ import annotations

from typing import Final

from wholefeed.core.adapters.asking import GONE, Ask, Refused
from wholefeed.core.notes import DocumentUnavailable, LimitReached, Note
from wholefeed.core.refresh.events import Failure
from wholefeed.core.refresh.given import Given
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS

_FORBIDDEN, _TOO_MANY = 403, 429
_REFUSED: Final = frozenset({400, 401, 403, 405, 406, 501})
"""Of HEAD: the publisher answers, but not this."""
HOUR_SECONDS: Final = 3600.0
_MAX_DOUBLINGS: Final = 20
_FAILURES_IN_A_ROW: Final = 3
"""A publisher that fails as often is left in peace."""


class Trouble:
    """Of one refresh."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._in_a_row = 0
        self.notes: list[Note] = []
        self.failures: dict[str, Failure] = {}
        self.has_failed = False
        """Whether anything could not be had, though nobody says that it is not there."""
        self.stop: str | None = None
        """Why nothing more is asked, once that is so."""
        self.retry_at: float | None = None
        self.is_host_paused = False
        """Whether that holds for all feeds of the host."""

    def answered(self) -> None:
        """The publisher has answered well."""
        self._in_a_row = 0

    def limit(self, note: LimitReached) -> None:
        """Nothing more may be had (R18)."""
        self.notes.append(note)
        self.stop = str(note)

    def objected(self, ask: Ask, refused: Refused) -> Refused:
        """Take what came and is not what was asked for."""
        if ask.is_needed:
            self.forget(ask.url)
            self.notes.append(DocumentUnavailable(ask.url, refused.slug))
        return refused

    def failed(self, ask: Ask, failure: Failure) -> Refused:
        """Take what did not come."""
        now, status = self._given.clock.now, failure.publisher_status
        if status == _FORBIDDEN and not ask.is_head:
            self.stop, self.retry_at = "the publisher refuses its pages (403)", now + DAY_SECONDS
        elif status == _TOO_MANY or failure.slug == "host-backoff":
            pause = max(HOUR_SECONDS, failure.retry_after_seconds or 0.0)
            self.stop, self.retry_at = f"the publisher wants a pause ({failure.slug})", now + pause
            self.is_host_paused = True
        is_gone = status in GONE
        is_answer = is_gone or (ask.is_head and status is not None and status in _REFUSED)
        self._in_a_row = 0 if is_answer else self._in_a_row + 1
        self.has_failed |= not is_answer
        if self._in_a_row >= _FAILURES_IN_A_ROW and self.stop is None:
            self.stop = f"{self._in_a_row} pages in a row could not be had ({failure.slug})"
            self.retry_at = now + self._given.settings.retry_missing_seconds
        if not ask.is_head and (ask.is_needed or not is_gone):
            self.forget(ask.url)
            self.notes.append(DocumentUnavailable(ask.url, failure.slug))
            self.failures[ask.url] = failure
        return Refused(failure.slug, status)

    def forget(self, url: str) -> None:
        """A page was asked for once more."""
        self.failures.pop(url, None)
        self.notes = [note for note in self.notes if note.url != url]

    def denied_seconds(self, denials: int) -> float:
        """Return when the pattern is tried again that nothing was to be had of (R27).

        Args:
            denials: How often in a row that was so before because something could not be had. That may have
                been chance, so it is less than a week at first.
        """
        if not self.has_failed:
            return WEEK_SECONDS
        first_seconds = self._given.settings.retry_missing_seconds
        return min(WEEK_SECONDS, first_seconds * 2.0 ** min(denials, _MAX_DOUBLINGS))
