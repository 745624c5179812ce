"""One walk along one trail: what is fetched, what comes from the store, what is kept.

`wholefeed.core.walk.walk` says which document is next and when to stop; here is decided how it is had, and
what becomes of it (rules R2, R6, R13, R14, R34). Documents that are stored and not due cost no network; those
that are due are revalidated; a document fetched ahead waits until the trail links to it.

    NEXT    the next document is stored and need not be asked for -> it joins -> NEXT
            it failed before and its time has not come            -> what is stored behind (R34), or the end
            what stands behind a missing one has come             -> it joins, or is dropped -> NEXT
            else begin to fetch what the walk wants, store what has joined -> WAIT
    WAIT    a document arrived, was confirmed or failed: the walk is told -> NEXT
            time is over: the walk ends
    ENDED   store what has joined

A chain is one such walk (`TrailWalk`). A paged feed takes one for each of its trails (`PageTrailWalk`):
pages are not immutable, so other ones are asked for again, and other ones kept.

`wholefeed.core.refresh.accounting` says which entries have left an archive for nobody knows where, and which
document is asked for next to learn it (R35). What has changed waits meanwhile, and is stored all at once.

`wholefeed.core.walk.ahead` says which URLs are looked at behind a document that is missing; here is decided
which of them may cost a request, and whether what stands there is new. A hole whose time has not come (R14)
is passed by what is stored alone: a refresh in between asks for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from wholefeed.core.adapters.base import GONE
from wholefeed.core.model import Relation, Role
from wholefeed.core.notes import (
    ArchiveChanged,
    ArchivesShift,
    DocumentTruncated,
    DocumentUnavailable,
    FormatMismatch,
    LimitReached,
    Note,
    PageGone,
    PageStale,
)
from wholefeed.core.refresh.accounting import Accounting, Departure, Shifts, Verdict
from wholefeed.core.refresh.port import (
    Answer,
    Basis,
    Failure,
    FreshDocument,
    LedBack,
    Placement,
    StoredDocument,
    Unchanged,
    WalkResult,
    adds_to,
)
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.schedule import next_attempt_at
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Trail, has_news, is_new_throughout
from wholefeed.core.walk.walk import Walk


class TrailWalk:
    """A walk along archive documents; `run` is called once.

    Args:
        basis: What all parts of a decision work with.
        current: The subscription document.
        stored: The documents that may stand on the trail, attached or not, by `document_key` of their URL.
        trail: The one that is followed.
        answers: Of all walks of this refresh.
        passed: Documents of earlier trails, which are not part of this one.
    """

    def __init__(
        self,
        basis: Basis,
        current: Current,
        stored: Mapping[str, StoredDocument],
        trail: Trail,
        answers: Answers,
        passed: Iterable[Arrival] = (),
    ) -> None:
        settings = basis.settings
        attached = {row.url: row.rank for row in stored.values() if row.rank is not None}
        self._io = basis.io
        self._basis = basis
        self._stored = stored
        self._trail = trail
        self._answers = answers
        self._subscription_changed_at = current.changed_at
        self._family = current.arrival.family
        self._first_rank = min(attached.values(), default=0) - _RANKS_PER_WALK
        self._walk = Walk(
            current.arrival,
            trail=trail,
            limits=settings.limits,
            site_of=basis.site_of,
            look_ahead=settings.looks_ahead,
            known=lambda url: document_key(url) in stored,
            max_window=0 if trail.is_closing else settings.window,
            passed=passed,
            attached=sorted(attached, key=attached.__getitem__),
        )
        self._wanted: set[str] = set()
        """What this walk has wanted, by `document_key`; fetches that other trails began may end meanwhile."""
        self._revalidated: set[str] = set()
        """What serves as it is stored, by `document_key`: its publisher has confirmed it, or could not."""
        self._joined = len(self._walk.path)
        self._accounting = Accounting(Shifts.read(basis.feed.shifts), now=basis.now())
        self._waiting: dict[str, _Waiting] = {}
        """What has come and is not stored before it is known what has left others (R35), newest first."""
        self._verdict = Verdict.IDLE
        self._noted_shifts = basis.feed.shifts
        self._refused: set[str] = set()
        """What came and did not replace what is stored, by `document_key`."""
        self._has_begun = False
        self._result = WalkResult()

    async def run(self) -> WalkResult:
        """Walk to the end; the notes say how it ended."""
        self._io.start_timer()
        await self._begin_accounting()
        taken = 0
        while self._walk.ending is None:
            taken += 1
            if taken % _STEPS_WITHOUT_REST == 0:
                await self._io.rest()
            await self._catch_up()
            if self._walk.candidate is not None:
                await self._keep_joined()
                await self._end_accounting()
                await self._judge(self._walk.candidate)
            elif not (await self._answer_again() or self._answer_from_store()):
                await self._begin_fetching()
                await self._keep_joined()
                await self._wait()
        await self._keep_joined()
        await self._end_accounting()
        self._result.ending = self._walk.ending
        self._result.notes += self._walk.ending.notes
        return self._result

    def predicted(self, url: str, older: str) -> None:
        """Take the older link of a document that still arrives: what can be fetched because of it is."""
        self._walk.predicted(url, older)
        is_known = self._answers.knows(older) or self._stored_as(older) is not None
        if (
            not is_known
            and not self._basis.waits(older)
            and any(want.url == older for want in self._walk.wanted)
        ):
            self._fetch(older, None)

    def is_ahead(self, url: str) -> bool:
        """Whether the path has yet to come to a document."""
        return any(want.url != url for want in self._walk.wanted[:1])

    def has_met(self, url: str) -> bool:
        """Whether the document of a URL is on the path: a redirect to it need not be followed."""
        return self._walk.has_met(url)

    @property
    def path(self) -> Sequence[Arrival]:
        """The documents that have joined, those included that earlier trails had passed."""
        return self._walk.path

    def _stored_as(self, url: str) -> StoredDocument | None:
        """Return the stored document of a URL, however the URL is spelled."""
        return self._stored.get(document_key(url))

    # What is next

    async def _catch_up(self) -> None:
        """Have stored what the choice of the next document depends on: what an archive has lost (R35)."""
        if self._joined == len(self._walk.path):
            return
        has_lost = bool(self._answers.fresh) and self._replaced(self._walk.tip.url) is not None
        if has_lost or self._accounting.is_open:
            await self._keep_joined()

    async def _answer_again(self) -> bool:
        """Give the walk its next document, or why it has none, when another trail asked for it before."""
        url = self._walk.wanted[0].url
        failure = self._answers.failures.get(document_key(url))
        fresh = self._answers.fresh.get(document_key(url))
        if failure is not None:
            await self._take(url, failure)
        elif fresh is not None:
            await self._take(fresh.arrival.url, fresh)
        return failure is not None or fresh is not None

    def _answer_from_store(self) -> bool:
        """Give the walk its next document, or why it has none, without network. False: it must be fetched."""
        wanted = [want.url for want in self._walk.wanted if not want.is_guess]
        if not wanted or self._answers.knows(wanted[0]):
            return False
        url = wanted[0]
        row = self._stored_as(url)
        if self._is_left_alone(url):
            self._walk.failed(url, DocumentUnavailable(url, reason=DocumentUnavailable.slug))
            return True
        is_revalidated = document_key(url) in self._revalidated
        if row is not None and (is_revalidated or row.memento or not self._is_gap(url)):
            if is_revalidated or not self._is_asked_again(url, row):
                self._walk.arrived(url, row.as_arrival())
                return True
            return False
        if not self._basis.waits(url):
            return False
        self._walk.failed(url, DocumentUnavailable(url, reason=self._basis.missing[url].reason))
        return True

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.memento or self._is_unfit(row, url) or self._basis.is_truncated(url):
            return not self._basis.waits(url)
        is_asked = self._accounting.asks(url, row.checked_at)
        return self._basis.request.is_full or is_asked or self._is_due(url, row)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        changed_at, is_newest = self._subscription_changed_at, len(self._walk.path) == 1
        return row.is_due(changed_at, is_newest=is_newest, now=self._basis.now())

    def _is_gap(self, url: str) -> bool:
        """Return whether a stored document counts as missing: until it comes in the feed's format (R23)."""
        return self._came_otherwise(url)

    # Behind a document that is missing (R34)

    def _is_left_alone(self, url: str) -> bool:
        """Return whether one behind a hole is not looked at: the hole waits (R14), or it was replaced."""
        if self._walk.hole_url is None:
            return False
        row = self._stored_as(url)
        return self._basis.waits(self._walk.hole_url) if row is None else not self._is_part(row)

    async def _judge(self, candidate: Arrival) -> None:
        """Let join what stands behind a hole if it is part of the feed, or brings an entry not stored.

        An update of what is stored does not count: a publisher that answers every URL with its newest entries
        would lead the walk on and on. What has joined before has to be stored already.
        """
        row = self._stored_as(candidate.url)
        is_new = row is not None and self._is_part(row)
        if row is None:
            known = await self._io.known(candidate.url, candidate)
            is_new = any(identity not in known.updated_at for identity, _ in candidate.keys or ())
        if not self._walk.judge(is_new=is_new) and document_key(candidate.url) in self._answers.fresh:
            self._drop(candidate.url)

    def _is_part(self, row: StoredDocument) -> bool:
        """Return whether a stored document is part of the feed, or comes back with the one before the hole.

        One that is detached was mostly replaced (R15): a link brings it back, a guess does not. But what left
        together with a whole feed, or with its format (R1, R23), left at one instant, and belongs together.
        """
        tip = self._stored_as(self._walk.tip.url)
        is_back = tip is not None and tip.rank is None and tip.detached_at == row.detached_at
        return row.rank is not None or is_back

    # What is fetched

    async def _begin_fetching(self) -> None:
        wants = self._walk.wanted
        for want in (each for each in wants if not (each.is_guess and self._basis.waits(each.url))):
            self._wanted.add(document_key(want.url))
            row = self._stored_as(want.url)
            if row is None and not self._has_begun and not self._answers.knows(want.url):
                self._has_begun = True
                await self._io.begin_walk()
                self._io.start_timer()
            if not self._answers.knows(want.url):  # maybe the head of another has named it meanwhile
                self._fetch(want.url, row)

    def _fetch(self, url: str, row: StoredDocument | None) -> None:
        self._wanted.add(document_key(url))
        self._answers.fetching.add(document_key(url))
        self._io.fetch(url, None if self._basis.request.is_full else row, self._trail.relation)

    # What came

    async def _wait(self) -> None:
        ended = await self._io.wait()
        if ended is None:
            limit = self._basis.settings.walk_seconds
            self._walk.stop(LimitReached(self._walk.wanted[0].url, limit="limits.walk_seconds", value=limit))
            return
        url, answer = ended
        key = document_key(url)
        self._answers.take(url, answer)
        self._basis.progress.fetched += 1
        if key in self._wanted:
            await self._take(url, answer)

    async def _take(self, url: str, answer: Answer) -> None:
        row = self._stored_as(url)
        if isinstance(answer, LedBack):
            self._walk.arrived(url, self._walk.met(answer.met_url, by=url))
            return
        if isinstance(answer, FreshDocument):
            if row is None or self._may_replace(row, answer):
                self._walk.arrived(url, await self._arrival(url, answer))
                return
            self._drop(url)
            self._refused.add(document_key(url))
        if isinstance(answer, Failure):
            self._result.failures[url] = answer
        if row is not None and self._serves(row, url, answer):
            self._revalidated.add(document_key(url))
            if isinstance(answer, Unchanged):
                self._io.touch(row.id, is_settled=self._is_settled(), is_uncacheable=answer.is_uncacheable)
            elif isinstance(answer, Failure) and answer.publisher_status in GONE and not row.memento:
                self._io.touch(row.id)
            self._walk.arrived(url, self._confirmed(row))
            return
        assert isinstance(answer, Failure), "a document without a stored copy is fetched whole"
        if row is not None and self._is_unfit(row, url):  # an error at the retry changes nothing (R23)
            answer = replace(answer, slug=FormatMismatch.slug)
        self._walk.failed(url, self._objection(url, answer))

    async def _arrival(self, _url: str, fresh: FreshDocument) -> Arrival:
        return fresh.arrival

    def _serves(self, row: StoredDocument, url: str, answer: Answer) -> bool:
        """Return whether a stored copy serves, as that of an archive mostly does (docs/faults.md row 53)."""
        return not isinstance(answer, Failure) or bool(row.memento) or not self._is_unfit(row, url)

    def _is_unfit(self, row: StoredDocument, url: str) -> bool:
        """Whether a stored copy does not stand for the document, which came last in another format (R23)."""
        return row.family is not self._family or self._came_otherwise(url)

    def _came_otherwise(self, url: str) -> bool:
        """Whether it was in another family than the feed's the last time, whatever is stored (R23)."""
        attempt = self._basis.missing.get(url)
        is_other = attempt is not None and attempt.reason == FormatMismatch.slug
        return is_other and self._family is self._basis.feed.family

    def _confirmed(self, row: StoredDocument) -> Arrival:
        return row.as_arrival()

    def _objection(self, url: str, failure: Failure) -> Note:
        return DocumentUnavailable(url, reason=failure.slug)

    def _may_replace(self, row: StoredDocument, fresh: FreshDocument) -> bool:
        return fresh.may_replace(row, self._family) or self._basis.is_truncated(fresh.arrival.url)

    def _is_settled(self) -> bool | None:
        """Whether an archive document that has not changed is final: behind the newest one it is (R13)."""
        return len(self._walk.path) > 1

    # What is kept

    async def _keep_joined(self) -> None:
        """Store what has joined the path, in the order of the path."""
        path = self._walk.path
        while self._joined < len(path):
            arrival = path[self._joined]
            await self._account(arrival.url)
            kept = await self._keep(arrival.url)
            if kept is not None:
                self._result.path.append(kept)
            await self._keep_accounted()
            self._joined += 1
            self._basis.progress.add(arrival.url, arrival.entries, path[0].links.get(Relation.LAST, ""))

    async def _keep(self, url: str) -> int | None:
        """Store a document that has joined; return its id, None when it is not worth keeping."""
        row, fresh = self._stored_as(url), self._answers.fresh.get(document_key(url))
        # One that is attached keeps its rank.
        rank = row.rank if row is not None and row.rank is not None else self._first_rank + self._joined
        self._result.notes += self._remarks(url, fresh, row)
        if fresh is not None:
            return await self._keep_fresh(url, fresh, row, rank)
        assert row is not None, "what joins without a fetch is stored"
        return await self._reattach(row, rank)

    def _remarks(self, url: str, fresh: FreshDocument | None, row: StoredDocument | None) -> list[Note]:
        """Return what is wrong with a document that has joined.

        Of one that is stored: that it broke off, or is no more than a web archive's copy (R33).
        """
        if fresh is not None:
            return [replace(note, url=url) for note in fresh.reading_notes]
        if row is not None and row.memento:
            return [row.as_memento()]
        return [DocumentTruncated(url, breaks_off=True)] if self._basis.is_truncated(url) else []

    async def _keep_fresh(
        self, url: str, fresh: FreshDocument, row: StoredDocument | None, rank: int
    ) -> int | None:
        if row is not None and not row.memento and row.digest != fresh.arrival.digest:
            self._result.notes.append(ArchiveChanged(url))
        placement = Placement(
            url=row.url if row is not None else url,
            role=Role.ARCHIVE,
            rank=rank,
            is_settled=self._joined > 1,
            brought_news=self._walk.news(url),
            may_wait=row is None,
        )
        if self._verdict is Verdict.IDLE:
            return await self._put(url, placement)
        self._waiting[url] = _Waiting(placement, len(self._result.path))
        return _UNKNOWN if row is None else row.id

    async def _put(self, url: str, placement: Placement) -> int:
        number = await self._io.put(url, placement)
        del self._answers.fresh[document_key(url)]
        return number

    def _drop(self, url: str) -> None:
        del self._answers.fresh[document_key(url)]
        self._io.drop(url)

    # Where the entries are that have left an archive (R35)

    async def _begin_accounting(self) -> None:
        """Find out what an earlier refresh could not account for."""
        basis, shifts = self._basis, Shifts.read(self._basis.feed.shifts)
        self._accounting = Accounting(
            shifts,
            await self._io.doubtful() if shifts.left else (),
            now=basis.now(),
            is_full=basis.request.is_full,
            is_forced=basis.request.is_forced,
        )

    def _replaced(self, url: str) -> StoredDocument | None:
        """Return the archive document that what has come takes the place of, with other entries perhaps."""
        row, fresh = self._stored_as(url), self._answers.fresh.get(document_key(url))
        if row is None or fresh is None or row.rank is None or row.memento:
            return None
        is_same = row.digest == fresh.arrival.digest or row.family is not fresh.arrival.family
        return None if is_same else row

    async def _account(self, url: str) -> None:
        """Take a document that has joined into the account."""
        accounting, key, row = self._accounting, document_key(url), self._stored_as(url)
        fresh, failure = self._answers.fresh.get(key), self._answers.failures.get(key)
        if fresh is None and accounting.is_idle and key not in self._revalidated:
            accounting.skip()
            return
        if fresh is not None:
            held = [identity for identity, _ in fresh.arrival.keys or ()]
            if (old := self._replaced(url)) is not None:
                self._verdict = accounting.changed(url, await self._departure(old, fresh), held)
            elif row is not None and row.digest == fresh.arrival.digest:
                self._verdict = accounting.unchanged(url, row.fetched_at)
            else:
                self._verdict = accounting.added(url, held)
            return
        assert row is not None, "what joins without a fetch is stored"
        is_refused = key in self._refused or (accounting.is_open and bool(row.memento))
        if failure is not None or is_refused:
            self._verdict = accounting.missed(url, self._tried_again_at(url, failure))
        elif key in self._revalidated:
            self._verdict = accounting.unchanged(url, row.fetched_at)
        elif accounting.asks(url, row.checked_at):  # it was not asked for: its time has not come (R14)
            self._verdict = accounting.missed(url, self._tried_again_at(url, None))
        else:
            self._verdict = accounting.passed(url, row.checked_at, row.fetched_at)

    async def _departure(self, old: StoredDocument, fresh: FreshDocument) -> Departure:
        waiting = [row.id for url in self._waiting if (row := self._stored_as(url)) is not None]
        return await self._io.departure(old.id, fresh.arrival.url, fresh.arrival, [*waiting, old.id])

    def _tried_again_at(self, url: str, failure: Failure | None) -> float:
        """Return when a document that a pass could not have is asked for again (R14)."""
        attempt, basis = self._basis.missing.get(url), self._basis
        if failure is None and attempt is not None:
            return attempt.next_at
        if failure is None:
            return basis.now() + basis.settings.retry_missing_seconds
        return next_attempt_at(
            reason=failure.slug,
            status=failure.publisher_status,
            attempts=self._accounting.attempts(url),
            now=basis.now(),
            retry_after_seconds=failure.retry_after_seconds,
            retry_missing_seconds=basis.settings.retry_missing_seconds,
        )

    async def _keep_accounted(self) -> None:
        """Store what has waited, once it is known what has left it, or that nobody can tell."""
        if self._verdict is Verdict.CLOSED:
            await self._keep_waiting()
            if self._accounting.settles:
                await self._io.settle_doubtful()
        elif self._verdict is Verdict.BROKEN:
            await self._keep_doubtful()
        elif self._accounting.is_passing and self._has_much_waiting():
            self._accounting.doubt()
            await self._keep_doubtful()
        self._note_shifts()
        self._verdict = Verdict.IDLE

    def _has_much_waiting(self) -> bool:
        fresh = [self._answers.fresh[document_key(url)] for url in self._waiting]
        return len(fresh) >= MOST_WAITING or sum(each.arrival.body_bytes for each in fresh) > _MOST_BYTES

    async def _keep_waiting(self) -> None:
        """Store what has waited in one transaction: what has moved stands in one of them at every moment."""
        if not self._waiting:
            return
        waiting, self._waiting = dict(reversed(self._waiting.items())), {}
        numbers = await self._io.put_together({url: each.placement for url, each in waiting.items()})
        for (url, each), number in zip(waiting.items(), numbers, strict=True):
            self._result.path[each.place] = number
            del self._answers.fresh[document_key(url)]

    async def _keep_doubtful(self) -> None:
        """Store what has waited, the oldest first, and what leaves it as remembered.

        What is new to the feed comes last: before that nothing that is stored leads to it.
        """
        self._note_shifts()
        waiting, self._waiting = self._waiting, {}
        for url, each in reversed(waiting.items()):
            if (old := self._replaced(url)) is not None:
                await self._put(url, replace(each.placement, remembers=old, is_doubtful=True))
        for url, each in waiting.items():
            if document_key(url) in self._answers.fresh:
                self._result.path[each.place] = await self._put(url, each.placement)

    async def _end_accounting(self) -> None:
        """Take it that the path has come to its end, or to a hole (R34): there nobody can tell."""
        ending, accounting = self._walk.ending, self._accounting
        if ending is not None and ending.is_true_end:
            self._verdict = accounting.end(is_true_end=True)
        elif accounting.is_open:
            url = self._walk.hole_url if ending is None else ending.notes[0].url
            assert url is not None, "a walk goes on, has met a hole, or says why it has ended"
            failure = self._answers.failures.get(document_key(url))
            self._verdict = accounting.missed(url, self._tried_again_at(url, failure))
        await self._keep_accounted()
        if ending is not None and accounting.shifts.is_known(self._basis.now()):
            notes = [note for note in self._result.notes if note.kind is not ArchiveChanged]
            self._result.notes = [*notes, ArchivesShift(self._walk.path[0].url)]

    def _note_shifts(self) -> None:
        written = self._accounting.shifts.written()
        if written != self._noted_shifts:
            self._noted_shifts = written
            self._io.note_shifts(written)

    async def _reattach(self, row: StoredDocument, rank: int) -> int:
        if row.rank is None:
            await self._io.attach({row.id: rank})
        return row.id


class _Waiting(NamedTuple):
    """A document that has come, and is not stored yet."""

    placement: Placement
    place: int
    """In the path of the result."""


_UNKNOWN: Final = 0
"""In place of the number of a document that is not stored yet."""
MOST_WAITING: Final = 64
_MOST_BYTES: Final = 8 << 20
"""Of documents that wait for it to be known what has left them (R35), and of their bodies."""


_STEPS_WITHOUT_REST: Final = 64
"""Stored documents walked through before other tasks get a turn."""


_RANKS_PER_WALK: Final = 1 << 20
"""New archives stand in front of the stored ones: each walk gets ranks of its own below theirs."""


@dataclass(slots=True)
class Answers:
    """What came of the documents that the walks of a refresh asked for, by `document_key`.

    Several trails may lead to one document: it is asked for once, be it that a trail only guessed it.
    """

    fetching: set[str] = field(default_factory=set)
    fresh: dict[str, FreshDocument] = field(default_factory=dict)
    """Arrived, and not put."""
    failures: dict[str, Failure] = field(default_factory=dict)

    def take(self, url: str, answer: Answer) -> None:
        """Take in what has come."""
        key = document_key(url)
        self.fetching.discard(key)
        if isinstance(answer, FreshDocument):
            self.fresh[key] = answer
        elif isinstance(answer, Failure):
            self.failures[key] = answer

    def knows(self, url: str) -> bool:
        """Whether there is nothing to be asked for under a URL any more."""
        key = document_key(url)
        return key in self.fetching or key in self.fresh or key in self.failures


class PageTrailWalk(TrailWalk):
    """A walk along one trail of a paged feed (R6): what is asked for again, and what is kept.

    all was collected before (a closing trail)    every page is revalidated, up to the first that brought
                                                  nothing new: a normal poll costs one page
    it was not, or something is missing           a page behind one that brought something new, or behind
                                                  a gap; the others come from the store
    nobody has looked at the pages for a while    every page is revalidated

    A page is not stored where each of its entries is served from another document and none of its copies is
    the better one. What leaves a page is remembered, unless another document holds it.

    Args:
        ascends: Whether pages are known to get newer along `next`: then the last one is asked for again.
        is_unwatched: Whether nobody has looked at the pages for a while: then every page is.
    """

    def __init__(
        self,
        basis: Basis,
        current: Current,
        stored: Mapping[str, StoredDocument],
        trail: Trail,
        answers: Answers,
        passed: Iterable[Arrival],
        *,
        ascends: bool,
        is_unwatched: bool,
    ) -> None:
        super().__init__(basis, current, stored, trail, answers, passed)
        self._ascends = ascends
        self._is_unwatched = is_unwatched
        self._news = {self._walk.tip.url: current.has_news}
        """Of the subscription document and each page fetched: whether it brought anything not stored."""
        self._is_past_gap = False
        self._new_throughout = {self._walk.tip.url} if current.is_new_throughout else set[str]()
        """Those of them of which no entry was stored."""

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.memento:
            return super()._is_asked_again(url, row)
        brought_news = self._news.get(self._walk.tip.url, False)
        is_open = self._trail.is_closing or self._is_past_gap or brought_news
        return is_open or self._leads_to_gone(row) or super()._is_asked_again(url, row)

    def _leads_to_gone(self, row: StoredDocument) -> bool:
        """Return whether a page links to one that was gone and is tried again: does it link there still?"""
        behind = self._trail.target(row.links) or ""
        attempt = self._basis.missing.get(behind)
        return attempt is not None and attempt.status in GONE and not self._basis.waits(behind)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        behind = document_key(self._trail.target(row.links) or "")
        is_unwatched = self._is_unwatched or row.rank is None
        return is_unwatched or (self._ascends and behind not in self._stored)

    def _is_gap(self, url: str) -> bool:
        """Return whether the page could not be had the last time: its stored copy may be outdated."""
        return url in self._basis.missing and not self._basis.is_truncated(url)

    def _may_replace(self, _row: StoredDocument, _fresh: FreshDocument) -> bool:
        """Always: what leaves a page is remembered, so one that broke off takes nothing away."""
        return True

    def _serves(self, row: StoredDocument, _url: str, answer: Answer) -> bool:
        return isinstance(answer, Unchanged) or bool(row.memento)

    async def _take(self, url: str, answer: Answer) -> None:
        """Take a page, unless it is an older copy that leaves a gap behind the page before it."""
        if isinstance(answer, FreshDocument | Unchanged) and await self._is_stale(url, answer):
            if isinstance(answer, FreshDocument):
                self._drop(url)
            self._walk.failed(url, PageStale(url))
            return
        await super()._take(url, answer)

    async def _is_stale(self, url: str, answer: FreshDocument | Unchanged) -> bool:
        """R6: whether entries are missing between a page and the one before it, which is new throughout.

        Then all have moved: it brings some that were not stored, or those that only the page before had, or
        its dates reach up to that. Where it does none of this for a day, its publisher has put as many others
        in their place.
        """
        attempt = self._basis.missing.get(url)
        if attempt is None or attempt.reason != PageStale.slug:
            is_start = self._walk.tip is self._walk.path[0] and bool(self._trail.first_relation)
            is_new_before = self._walk.tip.url in self._new_throughout
            if not (self._trail.is_closing and is_new_before) or is_start or self._trail.is_backward:
                return False
        elif self._basis.now() > attempt.first_at + DAY_SECONDS:
            return False
        if isinstance(answer, Unchanged):
            return True
        span, before = answer.arrival.span, self._walk.tip.span
        if span is not None and before is not None and span.newest_at >= before.oldest_at:
            return False
        known = await self._io.known(url, answer.arrival, with_pages=True)
        keys = list(answer.arrival.keys or ())
        is_elsewhere = bool(keys) and all(identity in known.on_pages for identity, _ in keys)
        return is_elsewhere and not has_news(keys, known.updated_at)

    async def _arrival(self, url: str, fresh: FreshDocument) -> Arrival:
        if self._trail.is_closing:  # then one page is asked for at a time
            await self._compare(url, fresh)
            return replace(fresh.arrival, news=self._news[url])
        return fresh.arrival

    async def _compare(self, url: str, fresh: FreshDocument) -> None:
        """Find out whether a page brought anything that is not stored.

        That is asked when the pages before it are stored, so the order in which they come decides nothing.
        """
        known = await self._io.known(url, fresh.arrival)
        keys = list(fresh.arrival.keys or ())
        self._news[url] = has_news(keys, known.updated_at)
        if is_new_throughout(keys, known.updated_at):
            self._new_throughout.add(url)

    async def _adds(self, url: str, fresh: FreshDocument) -> bool:
        """R6: whether a page holds an entry that no other document does, memory excepted, or a better copy.

        What is remembered is not counted: such a copy leaves when its identity is settled (R8).
        """
        if self._news[url]:
            return True
        known = await self._io.known(url, fresh.arrival, with_copies=True)
        return adds_to(known, fresh, self._basis.now())

    async def _begin_accounting(self) -> None:
        """What leaves a page is remembered."""

    async def _account(self, _url: str) -> None:
        """The same."""

    async def _end_accounting(self) -> None:
        """The same."""

    async def _catch_up(self) -> None:
        """Whether a stored page is asked for again depends on what the pages before it brought."""
        if self._stored_as(self._walk.wanted[0].url) is not None:
            await self._keep_joined()

    def _confirmed(self, row: StoredDocument) -> Arrival:
        self._is_past_gap |= self._is_gap(row.url)
        self._news[row.url] = row.rank is None  # while it was no part of the feed, nobody saw what changed
        return replace(row.as_arrival(), news=not self._trail.is_closing)

    def _is_settled(self) -> bool | None:
        return None

    def _objection(self, url: str, failure: Failure) -> Note:
        """R6: a page that was never seen and is not there is the end; one that was collected is missing."""
        if failure.publisher_status in GONE and self._stored_as(url) is None:
            return PageGone(url, reason=failure.slug)
        return DocumentUnavailable(url, reason=failure.slug)

    async def _keep_fresh(
        self, url: str, fresh: FreshDocument, row: StoredDocument | None, rank: int
    ) -> int | None:
        self._is_past_gap |= row is None or self._is_gap(url)
        if url not in self._news:
            await self._compare(url, fresh)
        if row is None and not await self._adds(url, fresh):
            self._drop(url)
            return None
        is_same = row is not None and (row.digest, row.links) == (fresh.arrival.digest, fresh.arrival.links)
        if row is not None and is_same and not row.memento:
            self._drop(url)
            self._io.touch(row.id)
            return await self._reattach(row, rank)
        # What a complete feed took away stays away (R1, R25), but not what another format took (R23).
        is_part = row is not None and (row.rank is not None or row.family is not self._family)
        remembers = row if is_part else None
        return await self._put(url, Placement(url=url, role=Role.PAGE, rank=rank, remembers=remembers))
