"""Collect a history that the publisher has and does not link (rules R26 to R32).

An adapter (`wholefeed.core.adapters`) says what to ask for; here it is had, and what came is kept as pages.

    all pages   the first time, on a full refresh, and when nothing else tells what changed; of a walk that
                was cut off, what it had comes from the store, so it goes on where it was
    news        when the subscription document or its validators changed, and once a day

    403                         nothing is asked for a day
    429, or the host pauses     nothing is asked until it may be, an hour at least
    not honoured                the feed is a remembered one, tried again after a week
    all had                     `collected`;  some not: `partial`, each tried again in its time
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from wholefeed.core.adapters.asking import Adapter, Asking, Job, Outcome
from wholefeed.core.adapters.collection import Collection
from wholefeed.core.adapters.marks import Marks
from wholefeed.core.adapters.table import fitting
from wholefeed.core.notes import HistoryNotOffered, HistoryShort, HistoryUnfinished, Note
from wholefeed.core.refresh.events import EntriesRead
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import (
    NoteCollection,
    PauseHost,
    ReadEntries,
    StartTimer,
    Steps,
    StopFetching,
    carry_out,
    outcome,
)
from wholefeed.core.refresh.page_asking import PageAsking
from wholefeed.core.refresh.page_judging import page_stored
from wholefeed.core.refresh.page_trouble import HOUR_SECONDS
from wholefeed.core.refresh.progress import Progress, Walked
from wholefeed.core.refresh.stored import StoredDocument, subscription_of
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.terms import State
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS, parse_rfc822
from wholefeed.core.walk.endings import End, Ending


class Collecting:
    """The part of a decision that collects; made by `of`.

    Args:
        given: What the refresh starts from.
        documents: As they are stored now.
        current: The subscription document.
        subscription: The same, as it is stored.
        adapter: Whose pattern it is.
        progress: Kept up to date.
    """

    def __init__(
        self,
        given: Given,
        documents: Sequence[StoredDocument],
        current: Current,
        subscription: StoredDocument,
        adapter: Adapter,
        progress: Progress,
    ) -> None:
        self._given = given
        self._current = current
        self._subscription = subscription
        self._adapter = adapter
        known = Collection.read(given.feed.collection)
        self._known = known if known.adapter == adapter.name else Collection(adapter=adapter.name)
        self._asking = PageAsking(given, documents, subscription, adapter.name, progress)

    @classmethod
    def of(
        cls, given: Given, documents: Sequence[StoredDocument], current: Current, progress: Progress
    ) -> Collecting | None:
        """Return what collects a feed; None where there is no evidence of an adapter, or it must not."""
        row = subscription_of(documents)
        if row is None or not row.marks or not row.entries or not given.settings.may_collect(row.final_url):
            return None
        adapter = fitting(given.feed.url, row.final_url, row.family, row.site_id, row.marks)
        return None if adapter is None else cls(given, documents, current, row, adapter, progress)

    @property
    def is_due(self) -> bool:
        """Whether anything is to be asked for."""
        given, now = self._given, self._given.clock.now
        if self._is_resting:
            return False
        is_insisted = given.request.is_forced or given.request.is_full
        if is_insisted or self._current.has_changed or given.feed.is_walking:
            return True
        if given.missing:  # each is tried again in its time, and the rest with it
            return any(not attempt.waits(now) for attempt in given.missing.values())
        was_off = given.feed.state is State.REMEMBERED and self._known.is_ended
        return self.wants_all or self._has_moved or self._is_daily or was_off

    @property
    def _has_moved(self) -> bool:
        """Whether the subscription document, or what comes with it, is another than at the last look."""
        is_other = self._validators != (self._known.etag, self._known.last_modified)
        return self._is_unread or (is_other and (self._is_hourly or not self._known.is_idle))

    @property
    def _is_hourly(self) -> bool:
        """Some sites make validators up for each answer: such are worth a look an hour."""
        looked_at = self._known.looked_at
        return looked_at is None or not 0 <= self._given.clock.now - looked_at < HOUR_SECONDS

    @property
    def _is_unread(self) -> bool:
        return self._subscription.digest.hex() != self._known.digest

    @property
    def _validators(self) -> tuple[str, str]:
        row = self._subscription
        return self._current.validators or (row.etag or "", row.last_modified or "")

    @property
    def _is_daily(self) -> bool:
        daily_at = self._known.daily_at
        return daily_at is None or not 0 <= self._given.clock.now - daily_at < DAY_SECONDS

    @property
    def wants_all(self) -> bool:
        """Whether that is every page: then the walk may add documents for long."""
        known = self._known
        return known.is_begun or not known.is_ended or self._given.request.is_full

    @property
    def _is_resting(self) -> bool:
        """Whether nothing is to be asked yet; further ahead than a week comes from a clock that was wrong."""
        now, request = self._given.clock.now, self._given.request
        paused_until = self._given.settings.collect_paused_until(self._subscription.final_url)
        if paused_until is not None and now < paused_until:
            return True
        retry_at = self._known.retry_at
        if retry_at is None or request.is_full or request.is_forced:
            return False
        return 0 < retry_at - now <= WEEK_SECONDS

    def is_met(self, url: str) -> bool:
        """Whether a redirect leads to the subscription document: the publisher drops what was asked for."""
        return url in (self._subscription.url, self._subscription.final_url)

    def steps(self) -> Steps[tuple[Walked, State]]:
        """Ask for what is due; come to what the feed is."""
        if not self.is_due:
            return self._as_before()
        yield from carry_out(StartTimer(self._given.settings.walk_seconds))
        found = yield from (self._all() if self.wants_all else self._news())
        yield from carry_out(StopFetching())
        if self._asking.trouble.is_host_paused and self._asking.trouble.retry_at is not None:
            yield from carry_out(PauseHost(self._subscription.final_url, self._asking.trouble.retry_at))
        return (yield from self._concluded(found))

    # What is asked for

    def _all(self) -> Steps[Outcome | None]:
        known, now = self._known, self._given.clock.now
        is_recent = known.began_at is not None and 0 <= now - known.began_at <= WEEK_SECONDS
        if self._given.request.is_full or not (known.is_begun and is_recent):
            start_id = known.start_id or Marks.read(self._subscription.marks or "{}").last_id
            began_date = parse_rfc822(self._validators[1]) or self._subscription.updated_at
            self._known = replace(
                known, began_at=now, began_date=began_date, walk=known.walk + 1, start_id=start_id
            )
        yield from carry_out(NoteCollection(self._known.written()))
        self._asking.begin_all(self._known.walk)
        return (yield from self._run(self._adapter.collect))

    def _news(self) -> Steps[Outcome | None]:
        found = yield from self._run(self._adapter.look)
        if found is None or not found.wants_all or self._asking.trouble.stop is not None:
            return found
        self._known = found.known
        return (yield from self._all())

    def _run(self, begin: Callable[[Job], Asking[Outcome]]) -> Steps[Outcome | None]:
        """Let the adapter ask until it has come to something; None where it was stopped."""
        asking = begin((yield from self._job()))
        try:
            asks = next(asking)
            while True:
                answers = yield from self._asking.answers(asks)
                if self._asking.trouble.stop is not None:
                    asking.close()
                    return None
                asks = asking.send(answers)
        except StopIteration as end:
            found: Outcome = end.value
            return found

    def _job(self) -> Steps[Job]:
        row = self._subscription
        read = yield from outcome(ReadEntries(row.id), EntriesRead)
        page = replace(page_stored(row, read), validators=self._validators)
        self._asking.first = page.identities
        return Job(
            asked_url=self._given.feed.url,
            url=row.final_url,
            page=page,
            now=self._given.clock.now,
            has_news=self._has_news,
            is_daily=self._is_daily,
            known=self._known,
        )

    @property
    def _has_news(self) -> bool:
        """Also where the look for what a subscription document brought did not come to its end."""
        return self._current.has_news if self._current.has_changed else self._is_unread

    # What it comes to

    def _concluded(self, found: Outcome | None) -> Steps[tuple[Walked, State]]:
        asking, trouble = self._asking, self._asking.trouble
        now, url = self._given.clock.now, self._subscription.final_url
        known = self._known if found is None else found.known
        known = replace(known, adapter=self._adapter.name, began_at=self._known.began_at)
        reason = trouble.stop or ("" if found is None else found.reason)
        if self._is_denied(found):
            retry_at = max(trouble.retry_at or 0.0, now + trouble.denied_seconds(known.denials))
            denials = known.denials + trouble.has_failed
            known = replace(known, retry_at=retry_at, reason=reason, is_denied=True, denials=denials)
            yield from carry_out(NoteCollection(known.written()))
            return self._refused(reason)
        known = replace(known, is_denied=False, denials=0)
        notes: list[Note] = list(trouble.notes)
        is_whole = found is not None and found.is_honoured and found.is_whole
        if notes or not (is_whole or self._is_all_there_is(found)):
            known = replace(known, retry_at=trouble.retry_at, reason=reason)
            if not notes:
                notes.append(HistoryUnfinished(url, self._adapter.name, reason))
        else:
            etag, last_modified = self._validators
            known = replace(
                known,
                retry_at=None,
                reason="" if is_whole else reason,
                looked_at=now,
                is_idle=not (asking.is_all or asking.has_put),
                daily_at=now if asking.is_all or self._is_daily else known.daily_at,
                ended_at=now if asking.is_all else known.ended_at,
                etag=etag,
                last_modified=last_modified,
                digest=self._subscription.digest.hex(),
            )
        yield from carry_out(NoteCollection(known.written()))
        self._known = known
        return self._walked(notes)

    def _is_denied(self, found: Outcome | None) -> bool:
        """Whether nothing of the pattern was ever to be had (R27)."""
        asking, known = self._asking, self._known
        if found is None:
            return not (asking.has_kept or known.is_ended)
        is_cut_off = asking.has_kept and asking.trouble.has_failed
        return not (found.is_honoured or known.is_ended or is_cut_off)

    def _is_all_there_is(self, found: Outcome | None) -> bool:
        """Whether the publisher gives no more, though there is: then nothing is gained by asking again."""
        return found is not None and found.is_honoured and not self._asking.trouble.has_failed

    def _walked(self, notes: list[Note]) -> tuple[Walked, State]:
        known, url = self._known, self._subscription.final_url
        if known.is_ended and known.reason and not any(note.partial for note in notes):
            notes.append(HistoryUnfinished(url, self._adapter.name, known.reason))
        if known.total is not None and known.total > known.collected and known.is_ended:
            notes.append(HistoryShort(url, known.total, known.collected))
        partial = tuple(note for note in notes if note.partial)
        ending = Ending(None, partial) if partial else Ending(End.READ)
        failures = dict(self._asking.trouble.failures)
        return Walked(notes=notes, failures=failures, ending=ending), State.COLLECTED

    def _refused(self, reason: str) -> tuple[Walked, State]:
        note = HistoryNotOffered(self._subscription.final_url, self._adapter.name, reason)
        return Walked(notes=[note], ending=Ending(End.NOT_OFFERED)), State.REMEMBERED

    def _as_before(self) -> tuple[Walked, State]:
        """Nothing is due: what was missing is missing still."""
        if self._known.is_denied or not (self._known.is_ended or self._asking.has_pages):
            return self._refused(self._known.reason)
        missing = self._given.missing.values()
        return self._walked([note for each in missing if (note := self._asking.still(each)) is not None])
