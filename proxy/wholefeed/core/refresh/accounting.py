"""The account of entries that leave an archive document when it is revalidated (rule R35).

If a publisher numbers archives from the newest entry, each new entry pushes one across every boundary. An
entry that leaves an archive has moved to the next older one, or was deleted: only that can tell. A *pass*
lasts from the first request for this purpose until `CLOSED` or `BROKEN`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Final, NamedTuple, Self

from wholefeed.core.model import EntryId
from wholefeed.core.schedule import is_ahead
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS
from wholefeed.core.text.urls import document_key

# Passes through three or more archives before a feed is known to shift.
_RUNS_UNTIL_KNOWN: Final = 2
# Lifetime of that knowledge after the last such pass: a publisher may mend its archives.
_KNOWN_SECONDS: Final = 30 * DAY_SECONDS
# Archives that took over entries of a newer one, in a pass through three archives.
_MOVES_OF_RUN: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """A feed's evidence of shifting archives. Instants are epoch seconds; URLs are `document_key` values."""

    passed_at: float | None = None
    runs: int = 0
    """Passes in a row in which entries moved through three or more archives."""
    ran_at: float | None = None
    left: str = ""
    """The oldest archive that has lost doubtful entries; empty if there are none."""
    since: float = 0.0
    """Instant when the first doubtful entry left."""
    broken_at: float | None = None
    """Start of the unfinished pass; None if no pass waits."""
    missed: str = ""
    """The document that the unfinished pass could not fetch."""
    attempts: int = 0
    """Failures in a row to fetch `missed`."""
    next_at: float = 0.0
    """Earliest time of the next attempt (R14)."""

    @classmethod
    def read(cls, text: str) -> Self:
        if text == NO_SHIFTS:
            return cls()
        return cls(**{name: value for name, value in json.loads(text).items() if name in _DEFAULTS})

    def written(self) -> str:
        values: dict[str, Any] = asdict(self)
        return json.dumps({name: value for name, value in values.items() if value != _DEFAULTS[name]})

    def count_attempts(self, url: str) -> int:
        return 1 + (self.attempts if document_key(url) == self.missed else 0)

    def is_known(self, now: float) -> bool:
        """Return whether the feed is known to shift: then a pass is due once a week, not once a day."""
        return self.runs >= _RUNS_UNTIL_KNOWN and not _is_over(self.ran_at, _KNOWN_SECONDS, now)

    def is_due(self, now: float) -> bool:
        return bool(self.left) and self.may_pass(now)

    def may_pass(self, now: float, *, has_gap: bool = False) -> bool:
        """Return whether a pass may begin or resume.

        With `has_gap`, an archive has lost all its entries, so unseen entries may stand behind it. Then a
        pass need not wait for a week.
        """
        if self.broken_at is not None:
            return self.next_at <= now or is_ahead(self.broken_at, now=now)
        interval = WEEK_SECONDS if self.is_known(now) and not has_gap else DAY_SECONDS
        return _is_over(self.passed_at, interval, now)


def _is_over(at: float | None, seconds: float, now: float) -> bool:
    return at is None or at <= now - seconds or is_ahead(at, now=now)


_DEFAULTS: Final = asdict(Shifts())
NO_SHIFTS: Final = "{}"


class Departure(NamedTuple):
    left: frozenset[EntryId]
    """Entries in neither the new version nor any other attached document of the publisher."""
    has_gap: bool = False
    """Whether the document had entries, and none of them stays."""


class AccountVerdict(Enum):
    # No entry is unaccounted for: the document replaces its stored copy at once.
    IDLE = 0
    # Entries are unaccounted for: changed documents wait, and the next older one is read.
    OPEN = 1
    # Each entry stands in an older document, or was deleted: store all waiting documents at once.
    CLOSED = 2
    # Nobody can tell: store the waiting documents, and remember the entries that leave.
    BROKEN = 3


class Accounting:
    """The account of one walk along a chain, from its start `now` (epoch seconds).

    With `is_full`, the refresh asks for every document anyway (R14): that is no pass. With `is_forced`,
    earlier failures do not delay an attempt (R14).
    """

    # After `BROKEN`, a later refresh resumes the pass. The resumed pass does not ask again for documents
    # checked since it began. RFC 5005 (section 4) forbids that archives change.

    def __init__(
        self,
        shifts: Shifts,
        doubtful: Collection[EntryId] = (),
        *,
        now: float,
        is_full: bool = False,
        is_forced: bool = False,
    ) -> None:
        if is_forced and shifts.broken_at is not None:
            shifts = replace(shifts, next_at=now)
        self._before = self.shifts = shifts
        self._now = now
        self._is_full = is_full
        self._may_pass = is_full or shifts.may_pass(now)
        self._began_at = now if shifts.broken_at is None or is_full else shifts.broken_at
        self._doubtful = set(doubtful)
        self._has_met_left = not doubtful  # whether the path has passed the document in `shifts.left`
        self._open = set(doubtful) if self._may_pass else set[EntryId]()
        self._is_doubt_open = bool(self._open)
        self._held = set[EntryId]()  # entries of waiting documents
        self._has_departures = False  # whether a document of this walk lost entries
        self._has_skipped = False
        self._asked = self._moves = 0
        self._is_over = False
        self._left = ""  # the oldest document that lost entries in this walk
        # Whether the doubtful entries were deleted. The caller reads this after `CLOSED`.
        self.settles = False

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    @property
    def is_passing(self) -> bool:
        return bool(self._open) and self._may_pass

    def asks(self, url: str, checked_at: float) -> bool:
        if not self.is_passing:
            return False
        is_missed = document_key(url) == self.shifts.missed
        return self._has_departures or is_missed or checked_at < self._began_at

    def account_changed(self, url: str, departure: Departure, held: Iterable[EntryId]) -> AccountVerdict:
        present, was_open = set(held), self.is_open
        self._read(present)
        self._meet(url)
        left = departure.left - self._held - present
        if left:
            self._open |= left
            self._left = document_key(url) if self._has_met_left else self.shifts.left
            self._has_departures = True
            if departure.has_gap and not self._is_over:
                self._reach_over_gap()
        if self._open:
            self._held |= present
            return AccountVerdict.OPEN
        return self._close() if was_open else AccountVerdict.IDLE

    def account_added(self, url: str, held: Iterable[EntryId]) -> AccountVerdict:
        """Account for a new document, which may hold entries that left others."""
        was_open = self.is_open
        self._read(set(held))
        self._meet(url)
        if was_open and not self._open:
            return self._close()
        return AccountVerdict.OPEN if self._open else AccountVerdict.IDLE

    def account_unchanged(self, url: str, fetched_at: float) -> AccountVerdict:
        """Account for a document unchanged since `fetched_at`: since then no entry has moved past it."""
        # No entry has moved into the document, so none has moved past it. Earlier departures may have done
        # so, and entries doubtful before this walk may have left an older document.
        if self._open:
            self._asked += 1
        is_behind = not self._is_doubt_open or self._has_met_left
        self._meet(url)
        since = min(self._now, self.shifts.since) if self._is_doubt_open else self._now
        if self._open and is_behind and fetched_at < since:
            return self._close()
        return AccountVerdict.OPEN if self._open else AccountVerdict.IDLE

    def account_skipped(self, url: str, checked_at: float, fetched_at: float) -> AccountVerdict:
        """Account for a stored document that nobody asked for."""
        self._has_skipped = True
        if not self._open:
            self._meet(url)
            return AccountVerdict.IDLE
        if self._may_pass and not self.asks(url, checked_at):  # the interrupted pass has asked for it
            return self.account_unchanged(url, fetched_at)
        self._meet(url)
        return self._break()

    def account_missing(self, url: str, next_at: float) -> AccountVerdict:
        """Account for a document that could not be fetched or used; `next_at` is its next attempt (R14)."""
        self._has_skipped = True
        if not self._open:
            self._meet(url)
            return AccountVerdict.IDLE
        self._asked += 1
        if self._may_pass:
            self.shifts = replace(
                self.shifts,
                missed=document_key(url),
                attempts=self.shifts.count_attempts(url),
                next_at=next_at,
                broken_at=self._began_at,
            )
        verdict = self._break()
        self._meet(url)
        return verdict

    def mark_doubtful(self) -> None:
        """Mark the open entries as doubtful: too many documents wait, so the caller stores them."""
        assert self.is_passing, "else at most a few documents wait"
        self._note_left()
        self.shifts = replace(self.shifts, broken_at=self._began_at, next_at=self._now)
        self._held.clear()
        self._doubtful |= self._open
        self._is_doubt_open = True

    def end(self, *, is_true_end: bool) -> AccountVerdict:
        """Account for the end of the chain; `is_true_end` says that nothing is missing behind it."""
        if not self._open:
            if not self._doubtful and self.shifts.left:
                self._forget_doubts()
            return AccountVerdict.IDLE
        return self._close() if is_true_end else self._break()

    # The end of a pass

    def _read(self, held: set[EntryId]) -> None:
        if self._open:
            self._asked += 1
        if held & self._open:
            self._moves += 1
        self._open -= held
        self._doubtful -= held

    def _meet(self, url: str) -> None:
        self._has_met_left |= document_key(url) == self.shifts.left

    def _reach_over_gap(self) -> None:
        # Unseen entries may exist.
        if not self._may_pass and self.shifts.may_pass(self._now, has_gap=True):
            self._may_pass = True
            self._open |= self._doubtful
            self._is_doubt_open = bool(self._doubtful)

    def _close(self) -> AccountVerdict:
        """End the pass with every entry accounted for, if no document was skipped."""
        # After a deletion entries move to newer documents, so a skipped document may hold them.
        if self._open and self._has_skipped:
            self.shifts = replace(self.shifts, broken_at=None, missed="", attempts=0, next_at=0.0)
            return self._break()
        self.settles = bool(self._doubtful & self._open)
        if self._is_doubt_open or not self._doubtful:
            self._forget_doubts()
        self._note_pass(is_finished=True)
        self._reset()
        return AccountVerdict.CLOSED

    def _forget_doubts(self) -> None:
        self._doubtful.clear()
        self.shifts = replace(
            self.shifts, left="", since=0.0, broken_at=None, missed="", attempts=0, next_at=0.0
        )

    def _break(self) -> AccountVerdict:
        """End the pass without a result: the entries stay, and this walk asks for no more documents."""
        self._note_left()
        if not self._may_pass and self.shifts.broken_at is not None:  # the old pass tells nothing
            self.shifts = replace(self.shifts, broken_at=self._now)
        self._note_pass(is_finished=False)
        self._doubtful |= self._open
        self._reset()
        self._may_pass, self._is_doubt_open, self._is_over = False, False, True
        return AccountVerdict.BROKEN

    def _reset(self) -> None:
        self._open.clear()
        self._held.clear()
        self._has_departures = False

    def _note_left(self) -> None:
        since = self.shifts.since if self.shifts.left else self._now
        self.shifts = replace(self.shifts, left=self._left or self.shifts.left, since=since)

    def _note_pass(self, *, is_finished: bool) -> None:
        """Note a pass, if this walk made requests for it."""
        if not self._asked or self._is_full or not self._may_pass:
            return
        is_run = self._moves >= _MOVES_OF_RUN
        shifts = replace(self.shifts, passed_at=self._began_at)
        if is_run and self._before.ran_at != self._began_at:
            shifts = replace(shifts, runs=self._before.runs + 1, ran_at=self._began_at)
        elif is_finished and not is_run:
            shifts = replace(shifts, runs=0, ran_at=None)
        self.shifts = shifts
