"""The ways in which an attempt to collect can end, and their consequences (rules R17, R27, R31, R32).

If the publisher has never shown anything of the pattern, the pattern is *denied*: the feed is `remembered`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wholefeed.core.adapters.base import AdapterOutcome, Collection
from wholefeed.core.model import State
from wholefeed.core.notes import (
    DocumentUnavailable,
    End,
    Ending,
    HistoryNotOffered,
    HistoryShort,
    HistoryUnfinished,
    Note,
)
from wholefeed.core.refresh.arrivals import Failure
from wholefeed.core.refresh.basis import WalkResult
from wholefeed.core.refresh.collected_feed import CollectedFeed
from wholefeed.core.refresh.collecting_failures import CollectingFailures
from wholefeed.core.refresh.collecting_pages import CollectedPages
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    starts_anew: bool = False
    """Whether the next walk uses no page of this one."""
    is_put_off: bool = False
    """Whether all pages are asked for again, after growing intervals."""
    is_done: bool = False
    """Whether the walk has read every page that the publisher gives."""


# The requests had no end (R17).
ENDLESS: Final = Case("endless", starts_anew=True, is_put_off=True)
# A pause, failures or a limit ended the requests; the next walk comes after that.
STOPPED: Final = Case("stopped")
# The pages do not fit each other.
UNSETTLED: Final = Case("unsettled", starts_anew=True, is_put_off=True)
# The publisher ignores the pattern.
NOT_HONOURED: Final = Case("not honoured", starts_anew=True, is_put_off=True)
# The same, but there were failures.
NOT_ANSWERED: Final = Case("not answered", is_put_off=True)
# A look did not reach known entries.
CUT_SHORT: Final = Case("cut short", is_put_off=True)
# Pages are missing; each is tried again in its own time.
INCOMPLETE: Final = Case("incomplete")
# The publisher has more and gives none of it; a full refresh asks again.
ALL_GIVEN: Final = Case("all given", is_done=True)
# All pages were fetched: the feed is `collected`. After another case it is `partial`, unless the pattern is
# denied.
ALL_READ: Final = Case("all read", is_done=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectingResult:
    feed: CollectedFeed
    found: AdapterOutcome | None
    """The adapter's own result; None if it was stopped."""
    pages: CollectedPages
    failures: CollectingFailures
    is_endless: bool
    """Whether too many requests brought no new entry (R17)."""

    @property
    def case(self) -> Case:
        if self.found is None:
            return ENDLESS if self.is_endless else STOPPED
        if self.found.wants_all:
            return UNSETTLED
        if not self.found.is_honoured:
            return NOT_ANSWERED if self.failures.has_failed else NOT_HONOURED
        return self._case_of_pages(self.found)

    def _case_of_pages(self, found: AdapterOutcome) -> Case:
        if self.failures.notes or (self.failures.has_failed and not found.is_whole):
            return INCOMPLETE
        if found.is_whole:
            return ALL_READ
        if found.is_final:
            return ALL_GIVEN
        return UNSETTLED if self.pages.is_all else CUT_SHORT

    @property
    def is_denied(self) -> bool:
        """Whether the publisher never gave a page of the pattern (R27)."""
        has_kept, is_ended = self.pages.has_kept, self.feed.known.is_ended
        if self.found is None:
            return not (has_kept or is_ended)
        is_cut_off = has_kept and self.failures.has_failed
        return not (self.found.is_honoured or is_ended or is_cut_off)

    @property
    def reason(self) -> str:
        return self.found.reason if self.found is not None else self.failures.stop or ""

    def knowledge(self) -> Collection:
        case, feed = self.case, self.feed
        known = feed.known if self.found is None else self.found.known
        known = replace(
            known,
            adapter=feed.adapter.name,
            began_at=feed.known.began_at,
            noted_at=feed.basis.now(),
            is_denied=self.is_denied,
            walk=known.walk + case.starts_anew,
        )
        if case.is_done:
            return self._done(known)
        known = replace(known, reason=self.reason)
        if self.is_denied or case.is_put_off:
            return self._put_off(known)
        return replace(known, retry_at=self.failures.retry_at, denials=0)

    def _done(self, known: Collection) -> Collection:
        feed, now, is_all, first = self.feed, self.feed.basis.now(), self.pages.is_all, self.pages.first
        lack = self.reason if self.case == ALL_GIVEN else "" if is_all else known.lack
        etag, last_modified = feed.validators
        return replace(
            known,
            retry_at=None,
            denials=0,
            reason=lack,
            lack=lack,
            top=first[0].hex() if first else "",
            looked_at=now,
            is_idle=not (is_all or self.pages.has_put),
            daily_at=now if is_all or feed.is_daily else known.daily_at,
            ended_at=now if is_all else known.ended_at,
            etag=etag,
            last_modified=last_modified,
            digest=feed.subscription.digest.hex(),
        )

    def _put_off(self, known: Collection) -> Collection:
        """Return the state with the time of the next walk through all pages (R27, R31)."""
        # A denial without failures waits for a week. Otherwise chance may be the cause: the first interval is
        # that of missing documents, and each further one doubles, up to a week.
        seconds, denials = float(WEEK_SECONDS), known.denials
        if self.failures.has_failed or not self.is_denied:
            first_seconds = self.feed.basis.settings.retry_missing_seconds
            seconds = min(seconds, first_seconds * 2.0 ** min(denials, _MAX_DOUBLINGS))
            denials += 1
        retry_at = max(self.failures.retry_at or 0.0, self.feed.basis.now() + seconds)
        return replace(known, retry_at=retry_at, denials=denials)

    def describe(self, known: Collection) -> WalkResult:
        feed = replace(self.feed, known=known)
        if self.is_denied:
            return describe_denied(feed)
        notes = list(self.failures.notes)
        if not (self.case.is_done or any(note.partial for note in notes)):
            notes.append(_note_unfinished(feed, self.reason))
        return describe_collected(feed, notes, self.failures.by_url)


_MAX_DOUBLINGS: Final = 20


# The result for the feed


def describe_unasked(feed: CollectedFeed, *, has_kept: bool) -> WalkResult:
    """Return the result for a feed with nothing due: missing pages stay missing."""
    if not (feed.known.is_ended or has_kept):
        return describe_denied(feed)
    notes = [
        HistoryUnfinished(url, adapter=feed.adapter.name, reason="not tried again yet")
        if attempt.reason == HistoryUnfinished.slug
        else DocumentUnavailable(url, reason=attempt.reason)
        for url, attempt in feed.basis.missing.items()
    ]
    return replace(describe_collected(feed, notes, {}), has_tried=False)


def describe_denied(feed: CollectedFeed) -> WalkResult:
    url, known = feed.subscription.final_url, feed.known
    note = HistoryNotOffered(url, adapter=feed.adapter.name, reason=known.reason)
    return WalkResult(state=State.REMEMBERED, notes=[note], ending=Ending(End.NOT_OFFERED))


def describe_collected(
    feed: CollectedFeed, notes: Sequence[Note], failed_by_url: Mapping[str, Failure]
) -> WalkResult:
    known, url, notes = feed.known, feed.subscription.final_url, list(notes)
    if known.is_ended and known.reason and not any(note.partial for note in notes):
        notes.append(_note_unfinished(feed, known.reason))
    if known.is_ended and known.total is not None and known.total > known.collected:
        notes.append(HistoryShort(url, claimed=known.total, collected=known.collected))
    partial = tuple(note for note in notes if note.partial)
    ending = Ending(None, partial) if partial else Ending(End.READ)
    failures = dict(failed_by_url)
    # A daily look, or one with a time of its own, replaces the hourly attempts (R14).
    pause = DAY_SECONDS if known.lack else (known.retry_at or 0.0) - feed.basis.now()
    if pause > 0:
        failures[url] = Failure(slug=HistoryUnfinished.slug, retry_after_seconds=pause)
    return WalkResult(state=State.COLLECTED, notes=notes, failures=failures, ending=ending)


def _note_unfinished(feed: CollectedFeed, reason: str) -> Note:
    return HistoryUnfinished(feed.subscription.final_url, adapter=feed.adapter.name, reason=reason)
