"""Which entries have left a revalidated archive for nobody knows where, and which document tells (rule R35).

Many publishers number their archive documents from the newest entry: each new entry pushes one across every
boundary, under URLs that stay. RFC 5005 (section 4) forbids it. So an entry that leaves an archive has moved
to the next older one, or was deleted, and only that document can say which.

    accounting = Accounting(Shifts.read(feed.shifts), doubtful, now=now)
    while documents join the path, newest first:
        if accounting.asks(row): ask whether the stored document has changed
        accounting.changed(url, departure, held)    # or added, unchanged, passed, missed; and at last `end`
    accounting.shifts.written()

Each of these returns a `Verdict`:

    IDLE     no entry is unaccounted for: the document replaces its stored copy at once
    OPEN     entries are unaccounted for: a document that has changed waits, and the next older one is read
    CLOSED   each of them stands in an older document, or was deleted: what waits is stored, all at once
    BROKEN   nobody can tell: what waits is stored, and the entries that leave stay as remembered

    IDLE -> OPEN             an entry has left a document, and nothing that is attached or was read holds it
    OPEN -> CLOSED           the documents read have all of them, or one is as it was, or the chain ends
    OPEN -> BROKEN           the next document cannot be had, or must not be asked for today
    CLOSED, BROKEN -> IDLE   with the next document

From the first request that is made for this until CLOSED or BROKEN is a *pass*. A pass that ended BROKEN is
taken up where it broke off: what was looked at since it began is not asked for again.
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

_RUNS_UNTIL_KNOWN: Final = 2
"""Passes through three or more archives after which a feed is known to shift."""
_KNOWN_SECONDS: Final = 30 * DAY_SECONDS
"""How long it is known after the last such pass: a publisher may mend its archives."""
_MOVES_OF_RUN: Final = 2
"""Archives that took over entries of a newer one, in a pass through three."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    """What a feed has shown of archives that shift; instants in epoch seconds, URLs as `document_key`."""

    passed_at: float | None = None
    """When the last pass began."""
    runs: int = 0
    """Passes in a row in which entries moved through three or more archives."""
    ran_at: float | None = None
    """When the last of those began."""
    left: str = ""
    """The oldest archive that has lost entries which are stored as doubtful; empty: there are none."""
    since: float = 0.0
    """When the first of them left."""
    broken_at: float | None = None
    """When the pass began that could not be finished; None: none waits to be taken up."""
    missed: str = ""
    """The document that it could not have."""
    attempts: int = 0
    """How often in a row it could not."""
    next_at: float = 0.0
    """When it is tried again (R14)."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what `written` gave; what another version knew more is left out."""
        if text == NO_SHIFTS:
            return cls()
        return cls(**{name: value for name, value in json.loads(text).items() if name in _DEFAULTS})

    def written(self) -> str:
        """Return it as JSON, without what is as it was in the beginning."""
        values: dict[str, Any] = asdict(self)
        return json.dumps({name: value for name, value in values.items() if value != _DEFAULTS[name]})

    def count_attempts(self, url: str) -> int:
        """Return how often in a row a pass could not have a document, this time included."""
        return 1 + (self.attempts if document_key(url) == self.missed else 0)

    def is_known(self, now: float) -> bool:
        """Return whether the feed is known to shift: then a pass is made once a week."""
        return self.runs >= _RUNS_UNTIL_KNOWN and not _is_over(self.ran_at, _KNOWN_SECONDS, now)

    def is_due(self, now: float) -> bool:
        """Return whether a pass is to be made for entries that are doubtful, though nothing is new."""
        return bool(self.left) and self.may_pass(now)

    def may_pass(self, now: float, *, has_gap: bool = False) -> bool:
        """Return whether a pass may begin, or be taken up.

        `has_gap`: an archive has none of its entries any more, so there may be new ones behind it that nobody
        has seen. Then the week is not waited for.
        """
        if self.broken_at is not None:
            return self.next_at <= now or is_ahead(self.broken_at, now=now)
        interval = WEEK_SECONDS if self.is_known(now) and not has_gap else DAY_SECONDS
        return _is_over(self.passed_at, interval, now)


def _is_over(at: float | None, seconds: float, now: float) -> bool:
    """Return whether so many seconds have passed since an instant, or a wrong clock has noted it."""
    return at is None or at <= now - seconds or is_ahead(at, now=now)


_DEFAULTS: Final = asdict(Shifts())
NO_SHIFTS: Final = "{}"
"""`Shifts().written()`."""


class Departure(NamedTuple):
    """What becomes of the entries of a stored archive document when another version takes its place."""

    left: frozenset[EntryId]
    """Those that neither that version nor any other attached document of the publisher's holds."""
    has_gap: bool = False
    """Whether none of its entries stays, though it has some."""


class Verdict(Enum):
    """What is to be done with documents that have changed; see the module's docstring."""

    IDLE = 0
    OPEN = 1
    CLOSED = 2
    BROKEN = 3


class Accounting:
    """The account of one walk along a chain; see the module's docstring.

    Args:
        shifts: What is known of the feed.
        doubtful: The entries that are stored as doubtful.
        now: When the walk begins, epoch seconds.
        is_full: Whether every document is asked for anyway (R14), which is no pass.
        is_forced: Whether a person asks: what failed before is tried at once (R14).
    """

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
        self._has_met_left = not doubtful  # whether the path has come past what lost them
        self._open = set(doubtful) if self._may_pass else set[EntryId]()
        self._is_doubt_open = bool(self._open)
        self._held = set[EntryId]()  # by documents that wait
        self._has_departures = False  # whether anything has left a document that was read in this walk
        self._has_skipped = False
        self._asked = self._moves = 0
        self._is_over = False
        self._left = ""  # the oldest document that has lost anything, where this walk knows
        self.settles = False
        """Whether the entries that are stored as doubtful have been deleted: to be looked at when CLOSED."""

    @property
    def is_open(self) -> bool:
        """Whether entries are unaccounted for."""
        return bool(self._open)

    @property
    def is_passing(self) -> bool:
        """Whether older documents are asked for to find entries."""
        return bool(self._open) and self._may_pass

    def asks(self, url: str, checked_at: float) -> bool:
        """Return whether the next document is to be asked whether it has changed.

        `checked_at`: when it was looked at last.
        """
        if not self.is_passing:
            return False
        is_missed = document_key(url) == self.shifts.missed
        return self._has_departures or is_missed or checked_at < self._began_at

    def changed(self, url: str, departure: Departure, held: Iterable[EntryId]) -> Verdict:
        """Take a document that has come in the place of a stored one; `held`: its entries."""
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
            return Verdict.OPEN
        return self._close() if was_open else Verdict.IDLE

    def added(self, url: str, held: Iterable[EntryId]) -> Verdict:
        """Take a document that is new to the feed: it may hold what left others."""
        was_open = self.is_open
        self._read(set(held))
        self._meet(url)
        if was_open and not self._open:
            return self._close()
        return Verdict.OPEN if self._open else Verdict.IDLE

    def unchanged(self, url: str, fetched_at: float) -> Verdict:
        """Take a document whose publisher says that it is as it is stored, since `fetched_at`.

        Nothing has moved into it, so nothing has moved past it either, since then. What left before that may
        have; and what was doubtful before this walk may have left an older document.
        """
        if self._open:
            self._asked += 1
        is_behind = not self._is_doubt_open or self._has_met_left
        self._meet(url)
        since = min(self._now, self.shifts.since) if self._is_doubt_open else self._now
        if self._open and is_behind and fetched_at < since:
            return self._close()
        return Verdict.OPEN if self._open else Verdict.IDLE

    def passed(self, url: str, checked_at: float, fetched_at: float) -> Verdict:
        """Take a document that is stored, and was not asked for."""
        self._has_skipped = True
        if not self._open:
            self._meet(url)
            return Verdict.IDLE
        if self._may_pass and not self.asks(url, checked_at):  # the pass that broke off has asked for it
            return self.unchanged(url, fetched_at)
        self._meet(url)
        return self._break()

    def missed(self, url: str, next_at: float) -> Verdict:
        """Take it that a document cannot be had; `next_at`: when it may be tried again (R14)."""
        self._has_skipped = True
        if not self._open:
            self._meet(url)
            return Verdict.IDLE
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

    def doubt(self) -> None:
        """Take it that what waits is stored before it is known where its entries are: it is too much."""
        assert self.is_passing, "else at most a few documents wait"
        self._note_left()
        self.shifts = replace(self.shifts, broken_at=self._began_at, next_at=self._now)
        self._held.clear()
        self._doubtful |= self._open
        self._is_doubt_open = True

    def end(self, *, is_true_end: bool) -> Verdict:
        """Take it that the chain ends; `is_true_end`: whether nothing is missing behind the last document."""
        if not self._open:
            if not self._doubtful and self.shifts.left:
                self._forget_doubts()
            return Verdict.IDLE
        return self._close() if is_true_end else self._break()

    # What becomes of it

    def _read(self, held: set[EntryId]) -> None:
        """Account for the entries that a document holds."""
        if self._open:
            self._asked += 1
        if held & self._open:
            self._moves += 1
        self._open -= held
        self._doubtful -= held

    def _meet(self, url: str) -> None:
        self._has_met_left |= document_key(url) == self.shifts.left

    def _reach_over_gap(self) -> None:
        """Let a pass be made before its week is over: entries may stand behind that nobody has seen."""
        if not self._may_pass and self.shifts.may_pass(self._now, has_gap=True):
            self._may_pass = True
            self._open |= self._doubtful
            self._is_doubt_open = bool(self._doubtful)

    def _close(self) -> Verdict:
        """Every entry is accounted for: it stands in a document that was read, or was deleted.

        After a deletion entries move to newer documents: one that was not read in this walk may have them.
        """
        if self._open and self._has_skipped:
            self.shifts = replace(self.shifts, broken_at=None, missed="", attempts=0, next_at=0.0)
            return self._break()
        self.settles = bool(self._doubtful & self._open)
        if self._is_doubt_open or not self._doubtful:
            self._forget_doubts()
        self._note_pass(is_finished=True)
        self._reset()
        return Verdict.CLOSED

    def _forget_doubts(self) -> None:
        self._doubtful.clear()
        self.shifts = replace(
            self.shifts, left="", since=0.0, broken_at=None, missed="", attempts=0, next_at=0.0
        )

    def _break(self) -> Verdict:
        """Nobody can tell where the entries are: they stay, and no more is asked for in this walk."""
        self._note_left()
        if not self._may_pass and self.shifts.broken_at is not None:  # its documents say nothing of these
            self.shifts = replace(self.shifts, broken_at=self._now)
        self._note_pass(is_finished=False)
        self._doubtful |= self._open
        self._reset()
        self._may_pass, self._is_doubt_open, self._is_over = False, False, True
        return Verdict.BROKEN

    def _reset(self) -> None:
        self._open.clear()
        self._held.clear()
        self._has_departures = False

    def _note_left(self) -> None:
        """Note the oldest document that has lost what is doubtful."""
        since = self.shifts.since if self.shifts.left else self._now
        self.shifts = replace(self.shifts, left=self._left or self.shifts.left, since=since)

    def _note_pass(self, *, is_finished: bool) -> None:
        """Note a pass, if anything was asked for in it that would not have been otherwise."""
        if not self._asked or self._is_full or not self._may_pass:
            return
        is_run = self._moves >= _MOVES_OF_RUN
        shifts = replace(self.shifts, passed_at=self._began_at)
        if is_run and self._before.ran_at != self._began_at:
            shifts = replace(shifts, runs=self._before.runs + 1, ran_at=self._began_at)
        elif is_finished and not is_run:
            shifts = replace(shifts, runs=0, ran_at=None)
        self.shifts = shifts
