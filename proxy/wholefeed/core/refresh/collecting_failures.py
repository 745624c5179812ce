"""Missing pages of an adapter, and the failures and limits that end the requests (R18, R32)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wholefeed.core.adapters.base import FORBIDDEN, GONE, PageQuestion, Refused
from wholefeed.core.notes import DocumentUnavailable, Note
from wholefeed.core.refresh.arrivals import Failure
from wholefeed.core.refresh.basis import Basis
from wholefeed.core.text.dates import DAY_SECONDS, HOUR_SECONDS


class CollectingFailures:
    # A 403 ends requests for a day. A 429, or a pause of the host, ends them for an hour at least, as long as
    # the publisher says. After three failures in a row, requests end until missing documents are due again. A
    # 404 and the refusal of a trial are responses, not failures. Running requests are finished, and their
    # pages count.
    def __init__(self, basis: Basis) -> None:
        self._basis = basis
        self._in_a_row = 0
        self.notes: list[Note] = []
        self.by_url: dict[str, Failure] = {}
        self.has_failed = False
        """Whether a page could not be fetched, for another reason than that it does not exist."""
        self.stop: str | None = None
        """Why to ask no more, for people; None while the adapter may ask."""
        self.retry_at: float | None = None
        """Earliest next question, epoch seconds."""
        self.paused_url = ""
        """A URL at the host that wants a pause from all feeds."""

    def pause_before(self, question: PageQuestion) -> None:
        if self._basis.settings.is_collect_paused(question.url):
            self.stop, self.has_failed = "the publisher wants a pause", True

    def reach_limit(self, note: Note) -> None:
        self.notes.append(note)
        self.stop = str(note)

    def refuse(self, question: PageQuestion) -> Refused | None:
        """Return why not to fetch a page: it is not due (R14), or its host is forbidden."""
        if self._basis.waits(question.url):
            attempt = self._basis.missing[question.url]
            self.note_unavailable(question.url, attempt.reason)
            return Refused(attempt.reason, attempt.status)
        if not self._basis.settings.may_collect(question.url):  # a copy's source may be elsewhere
            return Refused("destination-forbidden")
        return None

    def reset(self) -> None:
        self._in_a_row = 0

    def note_unavailable(self, url: str, reason: str) -> None:
        self.notes.append(DocumentUnavailable(url, reason=reason))

    def note_objection(self, question: PageQuestion, refused: Refused) -> Refused:
        """Note a response with another document, if the page is needed."""
        if question.is_needed:
            self.forget(question.url)
            self.note_unavailable(question.url, refused.slug)
        return refused

    def note_failure(self, question: PageQuestion, failure: Failure) -> Refused:
        status = failure.publisher_status
        is_refusal = (question.is_head or question.is_trial) and status in FORBIDDEN
        if status == _FORBIDDEN and not is_refusal:
            failure = self._pause("the publisher refuses its pages (403)", failure, DAY_SECONDS)
        elif status == _TOO_MANY or failure.slug == "host-backoff":
            seconds = max(HOUR_SECONDS, failure.retry_after_seconds or 0.0)
            failure = self._pause(f"the publisher wants a pause ({failure.slug})", failure, seconds)
            self.paused_url = question.url
        if status not in GONE and not is_refusal:
            self.has_failed = True
            self._in_a_row += 1
        else:
            self._in_a_row = 0
        if self._in_a_row >= _FAILURES_IN_A_ROW and self.stop is None:
            self.stop = f"{self._in_a_row} pages in a row could not be fetched ({failure.slug})"
            self.retry_at = self._basis.now() + self._basis.settings.retry_missing_seconds
        if not question.is_head and status not in question.expected:
            self.forget(question.url)
            self.note_unavailable(question.url, failure.slug)
            self.by_url[question.url] = failure
        return Refused(failure.slug, status)

    def _pause(self, reason: str, failure: Failure, seconds: float) -> Failure:
        self.stop, self.retry_at = reason, self._basis.now() + seconds
        return replace(failure, retry_after_seconds=seconds)

    def forget(self, url: str) -> None:
        self.by_url.pop(url, None)
        self.notes = [note for note in self.notes if note.url != url]


_FORBIDDEN: Final = 403
_TOO_MANY: Final = 429
_FAILURES_IN_A_ROW: Final = 3
