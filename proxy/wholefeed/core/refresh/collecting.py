"""Collect a history that the publisher has and does not link (rules R26 to R32).

An adapter (`wholefeed.core.adapters`) says what to ask for; here it is had, and what came is kept as pages.

    all pages   the first time, on a full refresh, and when nothing else tells what changed; of a walk that
                was cut off, what it had comes from the store, so it goes on where it was
    news        when the subscription document or its validators changed, and once a day

    403                         nothing is asked for a day
    429, or the host pauses     nothing is asked until it may be, an hour at least
    not honoured                the feed is a remembered one, tried again after a week
    not honoured any more       `partial`, tried again later and later
    all had                     `collected`;  some not: `partial`, each tried again in its time
    the publisher has more      `partial` until all is asked for again
    requests without an end     `partial`, tried again later and later (R17)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from wholefeed.core.adapters.base import (
    FORBIDDEN,
    GONE,
    Adapter,
    Answer,
    Ask,
    Asking,
    Collection,
    Job,
    Marks,
    Outcome,
    Page,
    Refused,
    There,
    bears,
)
from wholefeed.core.adapters.table import fitting
from wholefeed.core.model import EntryId, Family, Role, State
from wholefeed.core.notes import (
    DocumentUnavailable,
    End,
    Ending,
    HistoryNotOffered,
    HistoryShort,
    HistoryUnfinished,
    LimitReached,
    Note,
)
from wholefeed.core.refresh.port import Answer as Came
from wholefeed.core.refresh.port import (
    Basis,
    Failure,
    FreshDocument,
    LedBack,
    Placement,
    StoredDocument,
    StoredFeed,
    Unchanged,
    WalkResult,
    adds_to,
    subscription_of,
)
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.schedule import seconds_left
from wholefeed.core.text.dates import DAY_SECONDS, WEEK_SECONDS, parse_rfc822
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import NO_PROGRESS_DOCUMENTS


class Collecting:
    """The part of a decision that collects; made by `of`.

    `current` is the subscription document, `subscription` the same as it is stored, `adapter` the one whose
    pattern fits.
    """

    def __init__(
        self,
        basis: Basis,
        documents: Sequence[StoredDocument],
        current: Current,
        subscription: StoredDocument,
        adapter: Adapter,
    ) -> None:
        self._io = basis.io
        self._basis = basis
        self._current = current
        self._subscription = subscription
        self._adapter = adapter
        self._known = _known_of(basis.feed, adapter, subscription.family)
        self._asking = _PageAsking(basis, documents, subscription, self._known)

    @classmethod
    def of(cls, basis: Basis, documents: Sequence[StoredDocument], current: Current) -> Collecting | None:
        """Return what collects a feed; None where there is no evidence of an adapter, or it must not."""
        row = subscription_of(documents)
        if row is None or not row.marks or not row.entries or not basis.settings.may_collect(row.final_url):
            return None
        adapter = fitting(basis.feed.url, row.final_url, row.family, row.site_id, row.marks)
        return None if adapter is None else cls(basis, documents, current, row, adapter)

    @property
    def is_due(self) -> bool:
        basis, now = self._basis, self._basis.now()
        if self._is_resting:
            return False
        is_insisted = basis.request.is_forced or basis.request.is_full
        if is_insisted or self._current.has_changed or basis.feed.is_walking:
            return True
        if basis.missing:  # each is tried again in its time, and the rest with it
            return any(not attempt.waits(now) for attempt in basis.missing.values())
        was_off = basis.feed.state is State.REMEMBERED and self._known.is_ended
        return self.wants_all or self._has_moved or self._is_daily or was_off

    @property
    def wants_all(self) -> bool:
        """Whether every page is to be asked for: then the walk may add documents for long."""
        known = self._known
        return known.is_begun or not known.is_ended or self._basis.request.is_full

    def is_met(self, url: str) -> bool:
        """Whether a redirect leads to the subscription document: the publisher drops what was asked for."""
        return url in (self._subscription.url, self._subscription.final_url)

    @property
    def has_begun(self) -> bool:
        """Whether its walk has begun."""
        return self._asking.has_begun

    async def run(self) -> WalkResult:
        """Ask for what is due."""
        if not self.is_due:
            return self._as_before()
        self._io.start_timer()
        found = await (self._all() if self.wants_all else self._news())
        await self._io.stop_fetching()
        self._asking.drop_held()
        if self._asking.paused_url and self._asking.retry_at is not None:
            self._io.pause_host(self._asking.paused_url, self._asking.retry_at)
        return self._concluded(found)

    # When something is due

    @property
    def _is_resting(self) -> bool:
        """Whether nothing is to be asked yet."""
        basis, known = self._basis, self._known
        if basis.settings.is_collect_paused(self._subscription.final_url):
            return True
        if basis.request.is_full or basis.request.is_forced:
            return False
        now = basis.now()
        return seconds_left(known.noted_at, known.retry_at, now=now, longest_seconds=WEEK_SECONDS) > 0

    @property
    def _has_moved(self) -> bool:
        """Whether the subscription document or its validators are others than at the last look."""
        is_other = self._validators != (self._known.etag, self._known.last_modified)
        # Some sites make up validators for each answer.
        is_hourly = self._is_past(self._known.looked_at, _HOUR_SECONDS)
        return self._is_unread or (is_other and (is_hourly or not self._known.is_idle))

    @property
    def _is_unread(self) -> bool:
        return self._subscription.digest.hex() != self._known.digest

    @property
    def _validators(self) -> tuple[str, str]:
        row = self._subscription
        return self._current.validators or row.validators

    @property
    def _is_daily(self) -> bool:
        return self._is_past(self._known.daily_at, DAY_SECONDS)

    def _is_past(self, at: float | None, seconds: float) -> bool:
        """Whether an instant is so long ago; of another clock's, and of none, it is said too."""
        return at is None or not 0 <= self._basis.now() - at < seconds

    # What is asked for

    async def _all(self) -> Outcome | None:
        known, now = self._known, self._basis.now()
        is_recent = known.began_at is not None and 0 <= now - known.began_at <= WEEK_SECONDS
        if self._basis.request.is_full or not (known.is_begun and is_recent):
            start_id = known.start_id or Marks.read(self._subscription.marks or "{}").last_id
            began_date = parse_rfc822(self._validators[1]) or self._subscription.updated_at
            start_at = known.start_at
            if start_at is None and (entries := await self._io.entries(self._subscription.id)):
                start_at = entries[-1][1]
            self._known = replace(
                known,
                began_at=now,
                began_date=began_date,
                walk=known.walk + 1,
                start_id=start_id,
                start_at=start_at,
            )
        self._io.note_collection(self._known.written())
        self._asking.begin_all(self._known.walk)
        return await self._run(self._adapter.collect)

    async def _news(self) -> Outcome | None:
        found = await self._run(self._adapter.look)
        if found is None or not found.wants_all or self._asking.stop is not None:
            return found
        self._known = found.known
        return await self._all()

    async def _run(self, begin: Callable[[Job], Asking[Outcome]]) -> Outcome | None:
        """Let the adapter ask until it has come to something; None where it was stopped."""
        asking = begin(await self._job())
        try:
            asks = next(asking)
            while True:
                answers = await self._asking.answers(asks)
                if self._asking.stop is not None:
                    asking.close()
                    return None
                asks = asking.send(answers)
        except StopIteration as end:
            found: Outcome = end.value
            return found

    async def _job(self) -> Job:
        row = self._subscription
        page = replace(_page_stored(row, await self._io.entries(row.id)), validators=self._validators)
        self._asking.first = page.identities
        return Job(
            asked_url=self._basis.feed.url,
            url=row.final_url,
            page=page,
            now=self._basis.now(),
            site_id=row.site_id,
            has_news=self._has_news or self._is_interrupted,
            is_daily=self._is_daily,
            is_interrupted=self._is_interrupted,
            known=self._known,
        )

    @property
    def _has_news(self) -> bool:
        """Whether there is news: also where an earlier look for what it brought did not come to its end."""
        return self._current.has_news if self._current.has_changed else self._is_unread

    @property
    def _is_interrupted(self) -> bool:
        """Whether the subscription document was another since the last look that came to its end.

        One that failed, was cut off or was not made: what stood there since is stored as far as it was seen.
        """
        stored = self._current.stored_digest
        return self._known.is_ended and (stored is None or stored.hex() != self._known.digest)

    # What it comes to

    def _as_before(self) -> WalkResult:
        """Nothing is due: what was missing is missing still."""
        if not (self._known.is_ended or self._asking.has_kept):
            return self._refused(self._known.reason)
        notes = [
            HistoryUnfinished(url, adapter=self._adapter.name, reason="not tried again yet")
            if attempt.reason == HistoryUnfinished.slug
            else DocumentUnavailable(url, reason=attempt.reason)
            for url, attempt in self._basis.missing.items()
        ]
        return replace(self._walked(notes), has_tried=False)

    def _concluded(self, found: Outcome | None) -> WalkResult:
        asking, now, url = self._asking, self._basis.now(), self._subscription.final_url
        known = self._known if found is None else found.known
        known = replace(known, adapter=self._adapter.name, began_at=self._known.began_at, noted_at=now)
        reason = asking.stop or ("" if found is None else found.reason)
        is_cut_short = found is not None and self._is_cut_short(found)
        is_unsettled = found is not None and (found.wants_all or (is_cut_short and asking.is_all))
        is_unsettled = is_unsettled or asking.is_endless
        if is_unsettled or (found is not None and not (found.is_honoured or asking.has_failed)):
            known = replace(known, walk=known.walk + 1)  # it is over: the next takes nothing that it had
        is_denied = self._is_denied(found)
        was_honoured = found is not None and not (found.is_honoured or is_denied)
        known = replace(known, is_denied=is_denied)
        if is_denied or is_unsettled or is_cut_short or was_honoured:
            known = asking.later(known, may_be_chance=not is_denied or asking.has_failed)
        else:
            known = replace(known, retry_at=asking.retry_at, denials=0)
        if is_denied:
            known = replace(known, reason=reason)
            self._io.note_collection(known.written())
            return self._refused(reason)
        notes: list[Note] = list(asking.notes)
        is_whole = found is not None and found.is_honoured and found.is_whole
        is_all_there_is = self._is_all_there_is(found)
        if notes or not (is_whole or is_all_there_is):
            known = replace(known, reason=reason)
            if not any(note.partial for note in notes):
                notes.append(HistoryUnfinished(url, adapter=self._adapter.name, reason=reason))
        else:
            etag, last_modified = self._validators
            lack = reason if is_all_there_is else "" if asking.is_all else known.lack
            known = replace(
                known,
                retry_at=None,
                reason=lack,
                lack=lack,
                top=asking.first[0].hex() if asking.first else "",
                looked_at=now,
                is_idle=not (asking.is_all or asking.has_put),
                daily_at=now if asking.is_all or self._is_daily else known.daily_at,
                ended_at=now if asking.is_all else known.ended_at,
                etag=etag,
                last_modified=last_modified,
                digest=self._subscription.digest.hex(),
            )
        self._io.note_collection(known.written())
        self._known = known
        return self._walked(notes)

    def _is_denied(self, found: Outcome | None) -> bool:
        """Whether nothing of the pattern was ever to be had (R27)."""
        asking, known = self._asking, self._known
        if found is None:
            return not (asking.has_kept or known.is_ended)
        is_cut_off = asking.has_kept and asking.has_failed
        return not (found.is_honoured or known.is_ended or is_cut_off)

    def _is_cut_short(self, found: Outcome) -> bool:
        """Whether what was asked for did not come, though nothing failed and there may be more."""
        asking = self._asking
        is_short = found.is_honoured and not (found.is_whole or found.is_final)
        return is_short and not (asking.has_failed or asking.notes)

    def _is_all_there_is(self, found: Outcome | None) -> bool:
        """Whether the publisher gives no more, though there is: then nothing is gained by asking again."""
        if found is None or found.is_whole or found.wants_all or self._asking.has_failed:
            return False
        return found.is_honoured and found.is_final

    def _walked(self, notes: list[Note]) -> WalkResult:
        known, url = self._known, self._subscription.final_url
        if known.is_ended and known.reason and not any(note.partial for note in notes):
            notes.append(HistoryUnfinished(url, adapter=self._adapter.name, reason=known.reason))
        if known.total is not None and known.total > known.collected and known.is_ended:
            notes.append(HistoryShort(url, claimed=known.total, collected=known.collected))
        partial = tuple(note for note in notes if note.partial)
        ending = Ending(None, partial) if partial else Ending(End.READ)
        failures = dict(self._asking.failures)
        # What is looked for daily anyway, or not before a certain time, is not tried again every hour (R14).
        pause = DAY_SECONDS if known.lack else (known.retry_at or 0.0) - self._basis.now()
        if pause > 0:
            failures[url] = Failure(slug=HistoryUnfinished.slug, retry_after_seconds=pause)
        return WalkResult(state=State.COLLECTED, notes=notes, failures=failures, ending=ending)

    def _refused(self, reason: str) -> WalkResult:
        note = HistoryNotOffered(self._subscription.final_url, adapter=self._adapter.name, reason=reason)
        return WalkResult(state=State.REMEMBERED, notes=[note], ending=Ending(End.NOT_OFFERED))


# The pages that an adapter asks for: stored or fetched, and what becomes of them (R6, R27, R32)


def _known_of(feed: StoredFeed, adapter: Adapter, family: Family) -> Collection:
    """Return what is known of these pages: of another adapter or format (R23) nothing but a denial.

    Who made a feed is what the feed says: one that says something else each time is asked no more often.
    """
    known = Collection.read(feed.collection)
    is_same = known.adapter == adapter.name
    if is_same and known.family in ("", family):
        return replace(known, family=family)
    fresh = Collection(adapter=adapter.name, family=family, walk=known.walk)
    if is_same or not known.is_denied:
        return fresh
    return replace(
        fresh,
        is_denied=True,
        denials=known.denials,
        reason=known.reason,
        retry_at=known.retry_at,
        noted_at=known.noted_at,
    )


class _PageAsking:
    """Has the questions of an adapter answered, and knows what could not be had."""

    def __init__(
        self,
        basis: Basis,
        documents: Sequence[StoredDocument],
        subscription: StoredDocument,
        known: Collection,
    ) -> None:
        self._io = basis.io
        self._basis = basis
        self._subscription = subscription
        self.first: tuple[EntryId, ...] = ()
        """What stands in the subscription document, from the top; to be set before anything is asked."""
        self._adapter = known.adapter
        pages = [row for row in documents if row.role is Role.PAGE]
        self._stored = {document_key(row.url): row for row in pages}
        attached = [row for row in documents if row.rank is not None]
        self._documents = len(attached)
        self._bytes = sum(row.body_bytes for row in attached)
        self._entries = sum(row.entries for row in attached)
        self.is_all = False
        """Whether every page is asked for."""
        self._walk = 0
        self.has_begun = False
        """Whether a walk has begun."""
        self._renewed: set[str] = set()
        """Keys of pages that were put and are stored otherwise than `_stored` has them."""
        self.has_kept = any(
            row.found_by and row.rank is not None and (not known.is_denied or row.found_in == known.walk)
            for row in pages
        )
        """Whether a page of this pattern is part of the feed; what a denied walk had proves nothing."""
        self._held: dict[str, FreshDocument] = {}
        """What came and is not part of the feed unless it is asked for once more."""
        self.has_put = False
        """Whether one came that was worth keeping."""
        # what could not be had
        self._failures_in_a_row = 0
        self.notes: list[Note] = []
        self.failures: dict[str, Failure] = {}
        self.has_failed = False
        """Whether anything could not be had, though nobody says that it is not there."""
        self.stop: str | None = None
        """Why nothing more is asked, once that is so."""
        self._passes: dict[int, _Pass] = {}
        """By `Ask.reading`."""
        self.is_endless = False
        """Whether requests without a new entry were too many (R17)."""
        self.retry_at: float | None = None
        self.paused_url = ""
        """Where that holds for all feeds of a host: what was asked for there."""

    def begin_all(self, walk: int) -> None:
        """Ask for every page; what a walk of this number had comes from the store."""
        self.is_all, self._walk = True, walk

    async def answers(self, asks: Sequence[Ask]) -> list[Answer]:
        """Have the answers to some questions, in their order; fewer once `stop` is set."""
        found: dict[int, Answer] = {}
        running: dict[str, int] = {}
        place = 0
        while len(found) < len(asks):
            while place < len(asks) and len(running) < AT_ONCE and self.stop is None:
                answer = await self._without_network(asks[place])
                if answer is not None:
                    found[place] = answer
                elif self.stop is None:
                    await self._begin(asks[place])
                    running[asks[place].url] = place
                place += 1
            if not running:
                break
            ended = await self._io.wait()
            if ended is None:
                limit = self._basis.settings.walk_seconds
                url = next(iter(running))
                self._limit(LimitReached(url, limit="limits.walk_seconds", value=limit))
                break
            url, came = ended
            self._basis.progress.fetched += 1
            at = running.pop(url)
            found[at] = await self._taken(asks[at], came)
            self._count(asks[at], found[at])
        return [found[at] for at in sorted(found)]

    # From the store, or not at all

    async def _without_network(self, ask: Ask) -> Answer | None:
        held = self._held.pop(ask.url, None)
        if held is not None and not ask.is_again:
            return await self._arrived(ask, held)
        if held is not None:
            self._io.drop(ask.url)
        row = self._stored.get(document_key(ask.url))
        is_had = row is not None and row.rank is not None and self.is_all and row.found_in == self._walk
        if row is not None and is_had and not ask.is_head and not ask.is_again:
            page = _page_stored(row, await self._io.entries(row.id))
            self._pass_of(ask).meet(page)
            return page
        if self._basis.waits(ask.url):
            attempt = self._basis.missing[ask.url]
            self.notes.append(DocumentUnavailable(ask.url, reason=attempt.reason))
            return Refused(attempt.reason, attempt.status)
        settings = self._basis.settings  # a copy's source is at another host than the feed
        if not settings.may_collect(ask.url):
            return Refused("destination-forbidden")
        if settings.is_collect_paused(ask.url):
            self.stop, self.has_failed = "the publisher wants a pause", True
            return None
        if row is None and not ask.is_head:
            limits = settings.limits
            for note in limits.reached(self._documents, self._bytes, self._entries, ask.url):
                self._limit(note)
        return None

    async def _begin(self, ask: Ask) -> None:
        if self.is_all and not self.has_begun:
            self.has_begun = True
            await self._io.begin_walk()
        self._io.fetch_page(ask.url, is_head=ask.is_head, expected=ask.expected)

    def _pass_of(self, ask: Ask) -> _Pass:
        return self._passes.setdefault(ask.reading, _Pass(self.first))

    def _count(self, ask: Ask, answer: Answer) -> None:
        """Ask for nothing more once a pass has no end (R17)."""
        self.is_endless |= self._pass_of(ask).count(ask.url, answer)
        if self.is_endless and self.stop is None:
            self.stop = "request after request brought nothing new"

    # What came

    async def _taken(self, ask: Ask, came: Came) -> Answer:
        if isinstance(came, LedBack):
            return self._objected(ask, Refused("redirected"))
        if isinstance(came, Failure):
            return self._failed(ask, came)
        assert not isinstance(came, Unchanged), "no conditions were sent"
        self._failures_in_a_row = 0
        return came if isinstance(came, There) else await self._arrived(ask, came)

    async def _arrived(self, ask: Ask, fresh: FreshDocument) -> Answer:
        arrival, url = fresh.arrival, ask.url
        objection = self._objection_to(ask.url, fresh)
        if objection is not None:
            self._io.drop(url)
            return self._objected(ask, objection)
        now, identities = self._basis.now(), tuple(identity for identity, _ in arrival.keys or ())
        known = await self._io.known(url, arrival, with_copies=True)
        news = sum(identity not in known.updated_at for identity in identities)
        row = await self._row(url)
        if ask.is_needed and not identities:
            self.notes.append(DocumentUnavailable(url, reason="empty"))
        else:
            self._forget(url)
        if ask.is_probe:
            self._io.drop(url)
        elif ask.is_held:
            self._held[url] = fresh
        elif row is not None and row.rank is not None and row.digest == arrival.digest:
            self._io.drop(url)
            self._io.touch(row.id, found_in=self._walk or None)
        elif identities not in ((), self.first) and (  # R27: what repeats the subscription document is none
            news or self.is_all or adds_to(known, fresh, now, is_collected=True)
        ):
            await self._put(ask, fresh, row)
        else:
            self._io.drop(url)
        return _page_come(fresh, identities, news=news, now=now)

    def _objection_to(self, url: str, fresh: FreshDocument) -> Refused | None:
        """Return why a page does not belong here (R27); None when it does.

        It is of another format, or redirects made another question of it. Or it is of another site than the
        document and what the feed is asked for by: a blog may lead its feed alone elsewhere.
        """
        arrival, subscription, site_of = fresh.arrival, self._subscription, self._basis.site_of
        if arrival.family is not subscription.family:
            return Refused("format")
        sites = {site_of(subscription.final_url), site_of(self._basis.feed.url)}
        is_ours = site_of(arrival.final_url) in sites
        if not is_ours and (not arrival.site_id or arrival.site_id != subscription.site_id):
            return Refused("cross-origin-unconfirmed")
        return None if bears(arrival.final_url, url) else Refused("redirected")

    def drop_held(self) -> None:
        """Drop what came and did not prove to be part of the feed."""
        for url in self._held:
            self._io.drop(url)
        self._held.clear()

    async def _row(self, url: str) -> StoredDocument | None:
        """Return a page as it is stored now: it may have been put a moment ago."""
        if document_key(url) in self._renewed:
            pages = (row for row in await self._io.documents() if row.role is Role.PAGE)
            self._stored = {document_key(row.url): row for row in pages}
            self._renewed.clear()
        return self._stored.get(document_key(url))

    async def _put(self, ask: Ask, fresh: FreshDocument, row: StoredDocument | None) -> None:
        await self._io.put(
            ask.url,
            Placement(
                url=row.url if row is not None else ask.url,
                role=Role.PAGE,
                rank=ask.place,
                remembers=row,
                found_by=self._adapter,
                found_in=self._walk,
            ),
        )
        self.has_put = True
        self.has_kept = True
        self._renewed.add(document_key(ask.url))
        self._documents += row is None
        self._bytes += fresh.arrival.body_bytes
        self._entries += fresh.arrival.entries
        self._basis.progress.add(ask.url, fresh.arrival.entries)

    # What could not be had, and when that ends the questions (R18, R32)

    def _limit(self, note: Note) -> None:
        """Ask for nothing more: a limit is reached (R18)."""
        self.notes.append(note)
        self.stop = str(note)

    def _objected(self, ask: Ask, refused: Refused) -> Refused:
        """Take what came and is not what was asked for."""
        if ask.is_needed:
            self._forget(ask.url)
            self.notes.append(DocumentUnavailable(ask.url, reason=refused.slug))
        return refused

    def _failed(self, ask: Ask, failure: Failure) -> Refused:
        """Take what did not come."""
        now, status = self._basis.now(), failure.publisher_status
        is_refusal = (ask.is_head or ask.is_trial) and status in FORBIDDEN
        if status == _FORBIDDEN and not is_refusal:
            failure = self._paused("the publisher refuses its pages (403)", failure, DAY_SECONDS)
        elif status == _TOO_MANY or failure.slug == "host-backoff":
            reason = f"the publisher wants a pause ({failure.slug})"
            failure = self._paused(reason, failure, max(_HOUR_SECONDS, failure.retry_after_seconds or 0.0))
            self.paused_url = ask.url
        is_answer = status in GONE or is_refusal
        self._failures_in_a_row = 0 if is_answer else self._failures_in_a_row + 1
        self.has_failed |= not is_answer
        if self._failures_in_a_row >= _FAILURES_IN_A_ROW and self.stop is None:
            self.stop = f"{self._failures_in_a_row} pages in a row could not be had ({failure.slug})"
            self.retry_at = now + self._basis.settings.retry_missing_seconds
        if not ask.is_head and status not in ask.expected:
            self._forget(ask.url)
            self.notes.append(DocumentUnavailable(ask.url, reason=failure.slug))
            self.failures[ask.url] = failure
        return Refused(failure.slug, status)

    def _paused(self, reason: str, failure: Failure, seconds: float) -> Failure:
        """Ask for nothing more until then; return the failure, after which nothing is tried again sooner."""
        self.stop, self.retry_at = reason, self._basis.now() + seconds
        return replace(failure, retry_after_seconds=seconds)

    def _forget(self, url: str) -> None:
        """Drop what is noted of a page, which was asked for once more."""
        self.failures.pop(url, None)
        self.notes = [note for note in self.notes if note.url != url]

    def later(self, known: Collection, *, may_be_chance: bool) -> Collection:
        """Return when all pages are asked for again, of which not what is there was to be had (R27, R31).

        Args:
            known: What is known.
            may_be_chance: Something failed, or changed all the time: it is tried sooner than after a week at
                first, and each time after twice as long.
        """
        seconds, denials = float(WEEK_SECONDS), known.denials
        if may_be_chance:
            first_seconds = self._basis.settings.retry_missing_seconds
            seconds = min(seconds, first_seconds * 2.0 ** min(denials, _MAX_DOUBLINGS))
            denials += 1
        retry_at = max(self.retry_at or 0.0, self._basis.now() + seconds)
        return replace(known, retry_at=retry_at, denials=denials)


class _Pass:
    """The requests of one reading of the pages; `first` stands in the subscription document."""

    def __init__(self, first: Iterable[EntryId]) -> None:
        self._met = set(first)
        self._urls: set[str] = set()
        self._again = 0
        """Requests for a URL that was asked for before."""
        self._idle = 0
        """Requests in a row that brought no entry that is new to this pass."""

    def meet(self, page: Page) -> bool:
        """Take in a page; return whether it has an entry that is new to this pass."""
        before = len(self._met)
        self._met.update(page.identities)
        return len(self._met) > before

    def count(self, url: str, answer: Answer) -> bool:
        """Count a request; return whether there are too many (R17)."""
        is_new = isinstance(answer, Page) and self.meet(answer)
        self._idle = 0 if is_new else self._idle + 1
        self._again += url in self._urls
        self._urls.add(url)
        return self._idle >= NO_PROGRESS_DOCUMENTS or self._again >= len(self._urls) + NO_PROGRESS_DOCUMENTS


AT_ONCE: Final = 2
"""Requests under way (R32)."""
_FORBIDDEN, _TOO_MANY = 403, 429
_HOUR_SECONDS: Final = 3600.0
_FAILURES_IN_A_ROW: Final = 3
"""A publisher that fails as often is left in peace."""
_MAX_DOUBLINGS: Final = 20


def _page_stored(row: StoredDocument, entries: Sequence[tuple[EntryId, float | None]]) -> Page:
    order = [at for _, at in entries]
    return Page(
        url=row.final_url,
        family=row.family,
        identities=tuple(identity for identity, _ in entries),
        updated_at=row.updated_at,
        validators=row.validators,
        is_ascending=is_downward(order),
        dates=tuple(order),
        marks=Marks.read(row.marks or "{}"),
        had_at=row.checked_at,
        is_stored=True,
    )


def _page_come(fresh: FreshDocument, identities: tuple[EntryId, ...], *, news: int, now: float) -> Page:
    """Describe to its adapter a page that has just come.

    `identities` are those of its entries, from the top; `news` says how many of them were not stored.
    """
    return Page(
        url=fresh.arrival.final_url,
        family=fresh.arrival.family,
        identities=identities,
        updated_at=fresh.updated_at,
        validators=fresh.validators,
        is_ascending=is_downward(fresh.order),
        dates=tuple(fresh.order),
        has_updates=any(at is not None for _, at in fresh.arrival.keys or ()),
        marks=fresh.marks,
        news=news,
        had_at=now,
    )


def is_downward(order: Sequence[float | None]) -> bool | None:
    """Return whether entries get newer downwards; None where their dates do not tell."""
    dates = [at for at in order if at is not None]
    ups = sum(one < two for one, two in pairwise(dates))
    downs = sum(one > two for one, two in pairwise(dates))
    return None if ups == downs else ups > downs
