"""One walk along one trail: what is fetched, what comes from the store, what is kept (rules R2, R13, R14).

Documents that are stored and not due cost no network; those that are due are revalidated; a document fetched
ahead waits until the trail links to it. `wholefeed.core.walk.walk` says which document is next and when to
stop; here is decided how it is had, and what becomes of it.

    NEXT    the next document is stored and need not be asked for -> it joins -> NEXT
            it failed before and its time has not come            -> what is stored behind (R34), or the end
            what stands behind a missing one has come             -> it joins, or is dropped -> NEXT
            else begin to fetch what the walk wants, store what has joined -> WAIT
    WAIT    a document arrived, was confirmed or failed: the walk is told -> NEXT
            time is over: the walk ends
    ENDED   store what has joined
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from wholefeed.core.notes import ArchiveChanged, DocumentUnavailable, FormatMismatch, LimitReached, Note
from wholefeed.core.refresh.events import (
    Arrived,
    Confirmed,
    Failed,
    Failure,
    FreshDocument,
    LedBack,
    Stored,
    TimeOver,
)
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.holes import is_left_alone, judge_steps
from wholefeed.core.refresh.intents import (
    Attach,
    BeginWalk,
    Drop,
    Fetch,
    Put,
    Rest,
    StartTimer,
    Steps,
    Touch,
    Wait,
    carry_out,
    outcome,
)
from wholefeed.core.refresh.progress import Answers, Progress, Walked
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.trail_start import TrailStart
from wholefeed.core.terms import Relation, Role
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.walk import Walk

_Answer = Arrived | Confirmed | Failed | LedBack
_STEPS_WITHOUT_REST: Final = 64
"""Stored documents walked through before other tasks get a turn."""


class TrailSteps:
    """The part of a decision that walks along archive documents. `steps` is taken once."""

    def __init__(
        self, given: Given, walk: Walk, start: TrailStart, answers: Answers, progress: Progress
    ) -> None:
        self._given = given
        self._walk = walk
        self._start = start
        self._answers = answers
        self._progress = progress
        self._wanted: set[str] = set()
        """What this walk has wanted, by `document_key`; fetches that other trails began may end meanwhile."""
        self._revalidated: set[str] = set()
        self._joined = len(walk.path)
        self._has_begun = False
        self._walked = Walked()

    def steps(self) -> Steps[Walked]:
        """Walk to the end; the notes say how it ended."""
        yield from carry_out(StartTimer(self._given.settings.walk_seconds))
        taken = 0
        while self._walk.ending is None:
            taken += 1
            if taken % _STEPS_WITHOUT_REST == 0:
                yield from carry_out(Rest())
            yield from self._catch_up()
            if self._walk.candidate is not None:
                yield from self._keep_joined()
                yield from judge_steps(self._walk, self._start, self._answers)
                continue
            if (yield from self._answer_again()) or self._answer_from_store():
                continue
            yield from self._begin_fetching()
            yield from self._keep_joined()
            yield from self._wait()
        yield from self._keep_joined()
        self._walked.ending = self._walk.ending
        self._walked.notes += self._walk.ending.notes
        return self._walked

    def predicted(self, url: str, older: str) -> list[Fetch]:
        """Take the older link of a document that still arrives; return what can be begun because of it."""
        self._walk.predicted(url, older)
        is_known = self._answers.knows(older) or self._start.stored_as(older) is not None
        if is_known or self._given.waits(older) or not any(want.url == older for want in self._walk.wanted):
            return []
        return [self._fetch(older, None)]

    def is_ahead(self, url: str) -> bool:
        """Whether the path has to come to a document yet."""
        return any(want.url != url for want in self._walk.wanted[:1])

    # What is next

    def _catch_up(self) -> Steps[None]:
        """Have stored what the choice of the next document depends on."""
        yield from ()

    def _answer_again(self) -> Steps[bool]:
        """Give the walk its next document, or why not, when another trail has asked for it before."""
        url = self._walk.wanted[0].url
        failure = self._answers.failures.get(document_key(url))
        fresh = self._answers.fresh.get(document_key(url))
        if failure is not None:
            yield from self._take(Failed(url, failure))
        elif fresh is not None:
            yield from self._take(Arrived(fresh.arrival.url, fresh))
        return failure is not None or fresh is not None

    def _answer_from_store(self) -> bool:
        """Give the walk its next document, or why not, without network. False: it must be fetched."""
        wanted = [want.url for want in self._walk.wanted if not want.is_guess]
        if not wanted or self._answers.knows(wanted[0]):
            return False
        url = wanted[0]
        row = self._start.stored_as(url)
        if is_left_alone(self._given, self._walk, self._start, url):
            self._walk.failed(url, DocumentUnavailable(url, DocumentUnavailable.slug))
            return True
        if row is not None and (url in self._revalidated or row.memento or not self._is_gap(url)):
            if url in self._revalidated or not self._is_asked_again(url, row):
                self._walk.arrived(url, row.as_arrival())
                return True
            return False
        if not self._given.waits(url):
            return False
        self._walk.failed(url, DocumentUnavailable(url, self._given.missing[url].reason))
        return True

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        """Return whether a stored document is to be revalidated."""
        if row.memento or self._is_unfit(row, url) or self._given.is_truncated(url):
            return not self._given.waits(url)
        return self._given.request.is_full or self._is_due(url, row)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        changed_at, is_newest = self._start.subscription_changed_at, len(self._walk.path) == 1
        return row.is_due(changed_at, is_newest=is_newest, now=self._given.clock.now)

    def _is_gap(self, url: str) -> bool:
        """Return whether a stored document counts as missing: until it comes in the feed's format (R23)."""
        return self._given.is_of_other_format(url, self._walk.path[0].family)

    def _begin_fetching(self) -> Steps[None]:
        wants = self._walk.wanted
        for want in (each for each in wants if not (each.is_guess and self._given.waits(each.url))):
            self._wanted.add(document_key(want.url))
            row = self._start.stored_as(want.url)
            if row is None and not self._has_begun and not self._answers.knows(want.url):
                self._has_begun = True
                yield from carry_out(BeginWalk())
                yield from carry_out(StartTimer(self._given.settings.walk_seconds))
            if self._answers.knows(want.url):  # maybe the head of another has named it meanwhile
                continue
            yield from carry_out(self._fetch(want.url, row))

    def _fetch(self, url: str, row: StoredDocument | None) -> Fetch:
        self._wanted.add(document_key(url))
        self._answers.fetching.add(document_key(url))
        return Fetch(url=url, stored=row, relation=self._start.relation)

    # What came

    def _wait(self) -> Steps[None]:
        event = yield Wait()
        if isinstance(event, TimeOver):
            limit = self._given.settings.walk_seconds
            self._walk.stop(LimitReached(self._walk.wanted[0].url, "limits.walk_seconds", limit))
            return
        assert isinstance(event, _Answer), f"waited, was told {event}"
        key = document_key(event.url)
        self._answers.fetching.discard(key)
        self._progress.fetched += 1
        if isinstance(event, Arrived):
            self._answers.fresh[key] = event.fresh
        elif isinstance(event, Failed):
            self._answers.failures[key] = event.failure
        if key in self._wanted:
            yield from self._take(event)

    def _take(self, event: _Answer) -> Steps[None]:
        row = self._start.stored_as(event.url)
        if isinstance(event, Failed):
            self._walked.failures[event.url] = event.failure
        if isinstance(event, LedBack):
            self._walk.arrived(event.url, self._walk.met(event.met_url, by=event.url))
            return
        if isinstance(event, Arrived):
            if row is None or self._may_replace(row, event.fresh):
                self._walk.arrived(event.url, (yield from self._arrival(event.url, event.fresh)))
                return
            yield from self._drop(event.url)
        if row is not None and self._serves(row, event):
            self._revalidated.add(event.url)
            if isinstance(event, Confirmed):
                yield from carry_out(self._touch(row))
            self._walk.arrived(event.url, self._confirmed(row))
            return
        assert isinstance(event, Failed), "a document without a stored copy is fetched whole"
        failure = event.failure
        if row is not None and self._is_unfit(row, event.url):  # an error at the retry changes nothing (R23)
            failure = replace(failure, slug=FormatMismatch.slug)
        self._walk.failed(event.url, self._objection(event.url, failure))

    def _arrival(self, _url: str, fresh: FreshDocument) -> Steps[Arrival]:
        yield from ()
        return fresh.arrival

    def _serves(self, row: StoredDocument, event: Confirmed | Failed | Arrived) -> bool:
        """Return whether a stored copy serves, as that of an archive mostly does (docs/faults.md row 53)."""
        return not isinstance(event, Failed) or bool(row.memento) or not self._is_unfit(row, event.url)

    def _is_unfit(self, row: StoredDocument, url: str) -> bool:
        """Whether a stored copy does not stand for the document, which came last in another format (R23)."""
        family = self._walk.path[0].family
        return row.family is not family or self._given.is_of_other_format(url, family)

    def _confirmed(self, row: StoredDocument) -> Arrival:
        return row.as_arrival()

    def _objection(self, url: str, failure: Failure) -> Note:
        return DocumentUnavailable(url, failure.slug)

    def _may_replace(self, row: StoredDocument, fresh: FreshDocument) -> bool:
        family = self._walk.path[0].family
        return fresh.may_replace(row, family) or self._given.is_truncated(fresh.arrival.url)

    def _touch(self, row: StoredDocument) -> Touch:
        """An archive document has not changed; behind the newest one it is final now (R13)."""
        is_newest = len(self._walk.path) == 1
        return Touch(document=row.id, is_settled=not is_newest)

    # What is kept

    def _keep_joined(self) -> Steps[None]:
        """Store what has joined the path, in the order of the path."""
        path: Sequence[Arrival] = self._walk.path
        while self._joined < len(path):
            arrival = path[self._joined]
            kept = yield from self._keep(arrival, self._joined)
            if kept is not None:
                self._walked.path.append(kept)
            self._joined += 1
            self._progress.add(arrival.url, arrival.entries, path[0].links.get(Relation.LAST, ""))

    def _keep(self, arrival: Arrival, place: int) -> Steps[int | None]:
        """Store a document that has joined; return its id, None when it is not worth keeping."""
        row, fresh = self._start.stored_as(arrival.url), self._answers.fresh.get(document_key(arrival.url))
        rank = self._start.rank(row, place)
        self._walked.notes += self._given.remarks(arrival.url, fresh, row)
        if fresh is None:
            assert row is not None, "what joins without a fetch is stored"
            yield from self._reattach(row, rank)
            return row.id
        if row is not None and not row.memento and row.digest != fresh.arrival.digest:
            self._walked.notes.append(ArchiveChanged(arrival.url))
        stored = yield from outcome(
            Put(
                url=arrival.url,
                stored_url=row.url if row is not None else arrival.url,
                role=Role.ARCHIVE,
                rank=rank,
                is_settled=place > 1,
                brought_news=self._walk.news(arrival.url),
                may_wait=row is None,
            ),
            Stored,
        )
        del self._answers.fresh[document_key(arrival.url)]
        return stored.document

    def _drop(self, url: str) -> Steps[None]:
        del self._answers.fresh[document_key(url)]
        yield from carry_out(Drop(url))

    def _reattach(self, row: StoredDocument, rank: int) -> Steps[None]:
        if row.rank is None:
            yield from carry_out(Attach(row.id, rank))
