"""Follow the links of a subscription document, by what kind of feed it is (rules R2, R4, R6).

CHAIN   no doubt about it        -> its documents, state `complete`
it leads to newer ones   -> the feed is a paged one from now on: PAGES, if those are followed
PAGES                            -> all pages, state `paged`
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from wholefeed.core.notes import NewerNotOlder, Note
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import Drop, Fetch, SetKind, Steps, StopFetching, carry_out
from wholefeed.core.refresh.page_trail import PageTrailSteps
from wholefeed.core.refresh.pages import known_ascent, page_steps
from wholefeed.core.refresh.progress import Answers, Progress, Walked
from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.refresh.subscription import Current
from wholefeed.core.refresh.trail import TrailSteps
from wholefeed.core.refresh.trail_start import TrailStart
from wholefeed.core.terms import Kind, Role, State
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival
from wholefeed.core.walk.trails import Trail
from wholefeed.core.walk.walk import Walk

_RANKS_PER_WALK: Final = 1 << 20
"""New archives stand in front of the stored ones: each walk gets ranks of its own below theirs."""


def is_archive_due(given: Given, documents: Sequence[StoredDocument], current: Current) -> bool:
    """Return whether an archive on the stored path is to be looked at though nothing is new now (R13).

    The subscription document may have changed within a day of the last look, and not since.
    """
    if current.kind not in (Kind.ARCHIVED, Kind.LEGACY):
        return False
    stored = {document_key(row.url): row for row in documents if row.role is Role.ARCHIVE}
    if all(row.is_final for row in stored.values()):
        return False
    trail, here, is_newest = Trail(relation=current.relation), current.arrival, True
    while (row := stored.pop(document_key(trail.target(here.links) or ""), None)) is not None:
        if row.is_due(current.changed_at, is_newest=is_newest, now=given.clock.now):
            return True
        here, is_newest = row.as_arrival(), False
    return False


def _place(row: StoredDocument) -> int:
    return row.rank or 0


class Following:
    """The part of a decision that goes through the other documents of a feed.

    Args:
        given: What the refresh starts from.
        documents: As they are stored now.
        current: The subscription document.
        progress: Kept up to date.
    """

    def __init__(
        self, given: Given, documents: Sequence[StoredDocument], current: Current, progress: Progress
    ) -> None:
        self._given = given
        self._feed = given.feed
        self._documents = documents
        self._current = current
        self._progress = progress
        self._answers = Answers()
        self._walking: TrailSteps | None = None
        self._walk: Walk | None = None

    def steps(self) -> Steps[tuple[Walked, State]]:
        """Walk along the chain, or through the pages; what looked like a chain can turn out as pages (R4)."""
        result = yield from self._follow()
        yield from carry_out(StopFetching())
        for fresh in self._answers.fresh.values():
            yield from carry_out(Drop(fresh.arrival.url))
        return result

    def _follow(self) -> Steps[tuple[Walked, State]]:
        doubts: list[Note] = []
        if self._current.kind is not Kind.PAGED:
            walked = yield from self._chain()
            doubts = [note for note in walked.notes if isinstance(note, NewerNotOlder)]
            if not doubts:
                return walked, State.COMPLETE
            yield from carry_out(SetKind(Kind.PAGED))
            if not self._given.is_followed(Kind.PAGED):
                return walked, State.REMEMBERED
        walked = yield from self._pages()
        return replace(walked, notes=[*doubts, *walked.notes]), State.PAGED

    def predicted(self, url: str, older: str) -> list[Fetch]:
        """Take the older link of a document that still arrives; return what can be begun because of it."""
        return self._walking.predicted(url, older) if self._walking is not None else []

    def is_ahead(self, url: str) -> bool:
        """Whether the path has to come to a document yet."""
        return self._walking is None or self._walking.is_ahead(url)

    def is_met(self, url: str) -> bool:
        """Whether the document of a URL is on the path already."""
        return self._walk is not None and self._walk.has_met(url)

    def _chain(self) -> Steps[Walked]:
        stored = self._stored(Role.ARCHIVE)
        current = self._current
        trail = Trail(relation=current.relation, is_tentative=current.is_tentative)
        walk = self._new_walk(stored, trail)
        walking = TrailSteps(self._given, walk, self._start(stored, trail), self._answers, self._progress)
        self._walking = walking
        return (yield from walking.steps())

    def _pages(self) -> Steps[Walked]:
        stored = self._stored(Role.PAGE)
        ascent = known_ascent(self._feed)

        def walk_trail(trail: Trail, passed: Iterable[Arrival]) -> tuple[Walk, Steps[Walked]]:
            walk = self._new_walk(stored, trail, passed)
            walking = PageTrailSteps(
                self._given,
                walk,
                self._start(stored, trail),
                self._answers,
                self._progress,
                trail=trail,
                has_news=self._current.has_news,
                ascends=ascent is not None,
                is_interrupted=self._is_interrupted,
            )
            self._walking = walking
            return walk, walking.steps()

        return (
            yield from page_steps(
                self._current,
                walk_trail,
                is_whole=self._is_collected and not self._given.missing and ascent is None,
                ascent=ascent,
                is_known=lambda url: document_key(url) in stored,
            )
        )

    @property
    def _is_collected(self) -> bool:
        """Return whether all pages were collected before, in the family of today (R23)."""
        feed = self._feed
        is_ended = feed.state is State.PAGED and not feed.is_walking and not self._is_interrupted
        is_same_family = feed.family is self._current.arrival.family
        return is_ended and is_same_family and not self._given.request.is_full

    @property
    def _is_interrupted(self) -> bool:
        """Whether an earlier refresh of what was collected did not come to its end.

        What it brought is stored, and says no longer that there may be more of it on the pages behind.
        """
        feed = self._feed
        was_collected = feed.state in (State.PAGED, State.PARTIAL) and not feed.is_walking
        return was_collected and feed.revision != feed.published_revision

    def _stored(self, role: Role) -> dict[str, StoredDocument]:
        return {document_key(row.url): row for row in self._documents if row.role is role}

    def _new_walk(
        self, stored: dict[str, StoredDocument], trail: Trail, passed: Iterable[Arrival] = ()
    ) -> Walk:
        settings = self._given.settings
        self._walk = Walk(
            self._current.arrival,
            trail=trail,
            limits=settings.limits,
            site_of=self._given.site_of,
            look_ahead=settings.looks_ahead,
            known=lambda url: document_key(url) in stored,
            max_window=0 if trail.is_closing else settings.window,
            passed=passed,
            attached=[row.url for row in sorted(stored.values(), key=_place) if row.rank is not None],
        )
        return self._walk

    def _start(self, stored: dict[str, StoredDocument], trail: Trail) -> TrailStart:
        ranks = [row.rank for row in stored.values() if row.rank is not None]
        return TrailStart(
            stored=stored,
            relation=trail.relation,
            first_rank=min(ranks, default=0) - _RANKS_PER_WALK,
            subscription_changed_at=self._current.changed_at,
        )
