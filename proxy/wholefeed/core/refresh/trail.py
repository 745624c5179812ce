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

A chain is one such walk (`TrailSteps`). A paged feed takes one for each of its trails (`PageTrailSteps`):
pages are not immutable, so other ones are asked for again, and other ones kept.

`wholefeed.core.walk.ahead` says which URLs are looked at behind a document that is missing; here is decided
which of them may cost a request, and whether what stands there is new. A hole whose time has not come (R14)
is passed by what is stored alone: a refresh in between asks for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from wholefeed.core.adapters.base import GONE
from wholefeed.core.model import Relation, Role
from wholefeed.core.notes import (
    ArchiveChanged,
    DocumentUnavailable,
    FormatMismatch,
    LimitReached,
    Note,
    PageGone,
)
from wholefeed.core.refresh.port import (
    Arrived,
    Attach,
    BeginWalk,
    Confirmed,
    Drop,
    Failed,
    Failure,
    Fetch,
    FreshDocument,
    Given,
    KnownRead,
    LedBack,
    Progress,
    Put,
    ReadKnown,
    Rest,
    StartTimer,
    Steps,
    Stored,
    StoredDocument,
    TimeOver,
    Touch,
    Wait,
    Walked,
    adds_to,
    carry_out,
    outcome,
)
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Trail, has_news
from wholefeed.core.walk.walk import Walk


class TrailSteps:
    """A walk along archive documents. `steps` is taken once."""

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
                yield from self._judge()
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
        """Whether the path has yet to come to a document."""
        return any(want.url != url for want in self._walk.wanted[:1])

    # What is next

    def _catch_up(self) -> Steps[None]:
        """Have stored what the choice of the next document depends on."""
        yield from ()

    def _answer_again(self) -> Steps[bool]:
        """Give the walk its next document, or why it has none, when another trail asked for it before."""
        url = self._walk.wanted[0].url
        failure = self._answers.failures.get(document_key(url))
        fresh = self._answers.fresh.get(document_key(url))
        if failure is not None:
            yield from self._take(Failed(url, failure))
        elif fresh is not None:
            yield from self._take(Arrived(fresh.arrival.url, fresh))
        return failure is not None or fresh is not None

    def _answer_from_store(self) -> bool:
        """Give the walk its next document, or why it has none, without network. False: it must be fetched."""
        wanted = [want.url for want in self._walk.wanted if not want.is_guess]
        if not wanted or self._answers.knows(wanted[0]):
            return False
        url = wanted[0]
        row = self._start.stored_as(url)
        if self._is_left_alone(url):
            self._walk.failed(url, DocumentUnavailable(url, reason=DocumentUnavailable.slug))
            return True
        if row is not None and (url in self._revalidated or row.memento or not self._is_gap(url)):
            if url in self._revalidated or not self._is_asked_again(url, row):
                self._walk.arrived(url, row.as_arrival())
                return True
            return False
        if not self._given.waits(url):
            return False
        self._walk.failed(url, DocumentUnavailable(url, reason=self._given.missing[url].reason))
        return True

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.memento or self._is_unfit(row, url) or self._given.is_truncated(url):
            return not self._given.waits(url)
        return self._given.request.is_full or self._is_due(url, row)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        changed_at, is_newest = self._start.subscription_changed_at, len(self._walk.path) == 1
        return row.is_due(changed_at, is_newest=is_newest, now=self._given.clock.now)

    def _is_gap(self, url: str) -> bool:
        """Return whether a stored document counts as missing: until it comes in the feed's format (R23)."""
        return self._given.is_of_other_format(url, self._walk.path[0].family)

    # Behind a document that is missing (R34)

    def _is_left_alone(self, url: str) -> bool:
        """Return whether one behind a hole is not looked at: the hole waits (R14), or it was replaced."""
        if self._walk.hole_url is None:
            return False
        row = self._start.stored_as(url)
        return self._given.waits(self._walk.hole_url) if row is None else not self._is_part(row)

    def _judge(self) -> Steps[None]:
        """Let join what stands behind a hole if it is part of the feed, or brings an entry not stored.

        An update of what is stored does not count: a publisher that answers every URL with its newest entries
        would lead the walk on and on. What has joined before has to be stored already.
        """
        candidate = self._walk.candidate
        assert candidate is not None, "something waits to be judged"
        row = self._start.stored_as(candidate.url)
        is_new = row is not None and self._is_part(row)
        if row is None:
            wanted = tuple(identity for identity, _ in candidate.keys or ())
            read = yield from outcome(ReadKnown(wanted, url=candidate.url), KnownRead)
            is_new = any(identity not in read.known for identity in wanted)
        fresh = self._answers.fresh
        if not self._walk.judge(is_new=is_new) and fresh.pop(document_key(candidate.url), None) is not None:
            yield from carry_out(Drop(candidate.url))

    def _is_part(self, row: StoredDocument) -> bool:
        """Return whether a stored document is part of the feed, or comes back with the one before the hole.

        One that is detached was mostly replaced (R15): a link brings it back, a guess does not. But what left
        together with a whole feed, or with its format (R1, R23), left at one instant, and belongs together.
        """
        tip = self._start.stored_as(self._walk.tip.url)
        is_back = tip is not None and tip.rank is None and tip.detached_at == row.detached_at
        return row.rank is not None or is_back

    # What is fetched

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
            self._walk.stop(LimitReached(self._walk.wanted[0].url, limit="limits.walk_seconds", value=limit))
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
                yield from carry_out(replace(self._touch(row), is_uncacheable=event.is_uncacheable))
            elif isinstance(event, Failed) and event.failure.publisher_status in GONE and not row.memento:
                yield from carry_out(Touch(document=row.id, is_settled=None))
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
        return DocumentUnavailable(url, reason=failure.slug)

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


_Answer = Arrived | Confirmed | Failed | LedBack
_STEPS_WITHOUT_REST: Final = 64
"""Stored documents walked through before other tasks get a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailStart:
    """What a walk along a trail starts from, beside what all walks of a refresh share."""

    stored: Mapping[str, StoredDocument]
    """The documents that may stand on it, attached or not, by `document_key` of their URL."""
    relation: str
    first_rank: int
    """Rank of the first new document; the others follow."""
    subscription_changed_at: float
    """When the subscription document was last had with a change, epoch seconds."""

    def stored_as(self, url: str) -> StoredDocument | None:
        """Return the stored document of a URL, however the URL is spelled."""
        return self.stored.get(document_key(url))

    def rank(self, row: StoredDocument | None, place: int) -> int:
        """Return the rank of the document at a place of the path: one that is attached keeps its own."""
        return row.rank if row is not None and row.rank is not None else self.first_rank + place


@dataclass(slots=True)
class Answers:
    """What came of the documents that the walks of a refresh asked for, by `document_key`.

    Several trails may lead to one document: it is asked for once, be it that a trail only guessed it.
    """

    fetching: set[str] = field(default_factory=set)
    fresh: dict[str, FreshDocument] = field(default_factory=dict)
    """Arrived, and not put."""
    failures: dict[str, Failure] = field(default_factory=dict)

    def knows(self, url: str) -> bool:
        """Whether there is nothing to be asked for under a URL any more."""
        key = document_key(url)
        return key in self.fetching or key in self.fresh or key in self.failures


class PageTrailSteps(TrailSteps):
    """A walk along one trail of a paged feed (R6): what is asked for again, and what is kept.

    all was collected before (a closing trail)    every page is revalidated, up to the first that brought
                                                  nothing new: a normal poll costs one page
    it was not, or something is missing           a page behind one that brought something new, or behind
                                                  a gap; the others come from the store
    nobody has looked at the pages for a while    every page is revalidated

    A page is not stored where each of its entries is served from another document and none of its copies is
    the better one. What leaves a page is remembered, unless another document holds it.

    Args:
        given: What the refresh starts from.
        walk: Says which page is next.
        start: What is stored.
        answers: What came of the documents that were asked for.
        progress: Kept up to date.
        trail: The one that is followed.
        has_news: Whether the subscription document brought anything that was not stored.
        ascends: Whether pages are known to get newer along `next`: then the last one is asked for again.
        is_unwatched: Whether nobody has looked at the pages for a while: then every page is.
    """

    def __init__(
        self,
        given: Given,
        walk: Walk,
        start: TrailStart,
        answers: Answers,
        progress: Progress,
        *,
        trail: Trail,
        has_news: bool,
        ascends: bool,
        is_unwatched: bool,
    ) -> None:
        super().__init__(given, walk, start, answers, progress)
        self._trail = trail
        self._ascends = ascends
        self._is_unwatched = is_unwatched
        self._news = {walk.tip.url: has_news}
        """Of the subscription document and each page fetched: whether it brought anything not stored."""
        self._is_past_gap = False

    def _is_asked_again(self, url: str, row: StoredDocument) -> bool:
        if row.memento:
            return super()._is_asked_again(url, row)
        brought_news = self._news.get(self._walk.tip.url, False)
        is_open = self._trail.is_closing or self._is_past_gap or brought_news
        return is_open or self._leads_to_gone(row) or super()._is_asked_again(url, row)

    def _leads_to_gone(self, row: StoredDocument) -> bool:
        """Return whether a page links to one that was gone and is tried again: does it link there still?"""
        behind = self._trail.target(row.links) or ""
        attempt = self._given.missing.get(behind)
        return attempt is not None and attempt.status in GONE and not self._given.waits(behind)

    def _is_due(self, _url: str, row: StoredDocument) -> bool:
        behind = document_key(self._trail.target(row.links) or "")
        is_unwatched = self._is_unwatched or row.rank is None
        return is_unwatched or (self._ascends and behind not in self._start.stored)

    def _is_gap(self, url: str) -> bool:
        """Return whether the page could not be had the last time: its stored copy may be outdated."""
        return url in self._given.missing and not self._given.is_truncated(url)

    def _may_replace(self, _row: StoredDocument, _fresh: FreshDocument) -> bool:
        """Always: what leaves a page is remembered, so one that broke off takes nothing away."""
        return True

    def _serves(self, row: StoredDocument, event: Confirmed | Failed | Arrived) -> bool:
        return isinstance(event, Confirmed) or bool(row.memento)

    def _arrival(self, url: str, fresh: FreshDocument) -> Steps[Arrival]:
        if self._trail.is_closing:  # then one page is asked for at a time
            yield from self._compare(url, fresh)
            return replace(fresh.arrival, news=self._news[url])
        return fresh.arrival

    def _compare(self, url: str, fresh: FreshDocument) -> Steps[None]:
        """Find out whether a page brought anything that is not stored.

        That is asked when the pages before it are stored, so the order in which they come decides nothing.
        """
        keys = list(fresh.arrival.keys or ())
        read = yield from outcome(ReadKnown(tuple(identity for identity, _ in keys), url=url), KnownRead)
        self._news[url] = has_news(keys, read.known)

    def _adds(self, url: str, fresh: FreshDocument) -> Steps[bool]:
        """R6: whether a page holds an entry that no other document does, memory excepted, or a better copy.

        What is remembered is not counted: such a copy leaves when its identity is settled (R8).
        """
        if self._news[url]:
            return True
        keys = list(fresh.arrival.keys or ())
        read = yield from outcome(
            ReadKnown(tuple(identity for identity, _ in keys), with_copies=True, url=url), KnownRead
        )
        return adds_to(read, fresh, self._given.clock.now)

    def _catch_up(self) -> Steps[None]:
        """Whether a stored page is asked for again depends on what the pages before it brought."""
        if self._start.stored_as(self._walk.wanted[0].url) is not None:
            yield from self._keep_joined()

    def _confirmed(self, row: StoredDocument) -> Arrival:
        self._is_past_gap |= self._is_gap(row.url)
        self._news[row.url] = row.rank is None  # while it was no part of the feed, nobody saw what changed
        return replace(row.as_arrival(), news=not self._trail.is_closing)

    def _touch(self, row: StoredDocument) -> Touch:
        return Touch(document=row.id, is_settled=None)

    def _objection(self, url: str, failure: Failure) -> Note:
        """R6: a page that was never seen and is not there is the end; one that was collected is missing."""
        if failure.publisher_status in GONE and self._start.stored_as(url) is None:
            return PageGone(url, reason=failure.slug)
        return DocumentUnavailable(url, reason=failure.slug)

    def _keep(self, arrival: Arrival, place: int) -> Steps[int | None]:
        row, fresh = self._start.stored_as(arrival.url), self._answers.fresh.get(document_key(arrival.url))
        self._walked.notes += self._given.remarks(arrival.url, fresh, row)
        if fresh is not None:
            self._is_past_gap |= row is None or self._is_gap(arrival.url)
            if arrival.url not in self._news:
                yield from self._compare(arrival.url, fresh)
        if row is None and fresh is not None and not (yield from self._adds(arrival.url, fresh)):
            yield from self._drop(arrival.url)
            return None
        rank = self._start.rank(row, place)
        if row is not None and (fresh is None or (_is_same(row, fresh) and not row.memento)):
            if fresh is not None:
                yield from self._drop(arrival.url)
                yield from carry_out(self._touch(row))
            yield from self._reattach(row, rank)
            return row.id
        assert fresh is not None, "what joins without a fetch is stored"
        put = Put(url=arrival.url, stored_url=arrival.url, role=Role.PAGE, rank=rank, remembers=row)
        stored = yield from outcome(put, Stored)
        del self._answers.fresh[document_key(arrival.url)]
        return stored.document


def _is_same(row: StoredDocument, fresh: FreshDocument) -> bool:
    return row.digest == fresh.arrival.digest and row.links == fresh.arrival.links
