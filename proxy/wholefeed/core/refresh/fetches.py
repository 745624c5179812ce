"""The fetches of one walk: the path's next document, and others ahead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from wholefeed.core.notes import Note
from wholefeed.core.refresh.arrivals import Failure, FreshDocument, LedBack
from wholefeed.core.refresh.asking import EarlyLink, Fetch, FetchEnded, NextEvent, TakeTurn, Talk, ask
from wholefeed.core.refresh.responses import Responses, WalkContext
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.ahead import Ahead, WantedFetch
from wholefeed.core.walk.chain import Arrival


class TimeOverError(Exception):
    """The time of the walk is over (R18)."""


class WalkFetches:
    def __init__(self, context: WalkContext) -> None:
        settings, trail = context.basis.settings, context.chain.trail
        self._context = context
        self._basis = context.basis
        self._responses = context.responses
        self.steps: list[str] = []
        # Notes on fetched documents other than those linked, by `document_key`.
        self.spoilt: dict[str, Note] = {}
        self.ahead = Ahead(
            context.chain,
            limits=settings.limits,
            known=lambda url: document_key(url) in context.stored,
            arrival_of=partial(_find_arrival, context.responses, self.spoilt),
            max_window=0 if trail.is_closing else settings.window,
            look_ahead=settings.looks_ahead,
        )
        # Keys of this walk's fetches; earlier walks may have begun others.
        self._wanted: set[str] = set()
        self._has_turn = False

    def begin(self, url: str, *, is_alone: bool) -> Talk[None]:
        """Fetch the path's next document, and others ahead unless `is_alone`."""
        for want in self._choose_wanted(url, is_alone=is_alone):
            if want.is_guess and self._basis.waits(want.url):
                continue
            self._wanted.add(document_key(want.url))
            if not self._responses.has_asked(want.url):
                yield from self._fetch(want.url, is_ahead=want.url != url)

    def hear(self, url: str, *, is_alone: bool) -> Talk[None]:
        """Wait for the next finished fetch, and follow early links meanwhile (R0).

        Raises:
            TimeOverError: The time of the walk is over (R18).
        """
        while isinstance(event := (yield from ask(NextEvent(url))), EarlyLink):
            yield from self._follow_early(url, event, is_alone=is_alone)
        if event is None:
            raise TimeOverError
        self._responses.take(event.url, event.response)
        self._basis.progress.fetched += 1
        self._note_ahead(event)

    def _choose_wanted(self, url: str, *, is_alone: bool) -> tuple[WantedFetch, ...]:
        return self.ahead.choose_fetches(url, steps=self.steps, is_alone=is_alone)

    def _fetch(self, url: str, *, is_ahead: bool) -> Talk[None]:
        row = self._context.find_stored(url)
        if row is None and not self._has_turn:
            self._has_turn = True
            yield TakeTurn()
        key, relation = document_key(url), self._context.chain.trail.relation
        self._wanted.add(key)
        self._responses.flying.add(key)
        yield Fetch(
            url, None if self._basis.request.is_full else row, relation, self._context.chain.has_met, is_ahead
        )

    def _follow_early(self, url: str, early: EarlyLink, *, is_alone: bool) -> Talk[None]:
        """Fetch the target of an early link, if it is probably on the path and the walk has a turn."""
        if self.ahead.is_answered(early.url):
            return
        older = early.older
        self.ahead.foretell(early.url, older)
        is_known = self._responses.has_asked(older) or self._context.find_stored(older) is not None
        if is_known or not self._has_turn or self._basis.waits(older):
            return
        if any(want.url == older for want in self._choose_wanted(url, is_alone=is_alone)):
            yield from self._fetch(older, is_ahead=True)

    def _note_ahead(self, came: FetchEnded) -> None:
        key = document_key(came.url)
        if key not in self._wanted or key in self._context.stored:
            return
        if isinstance(came.response, FreshDocument):
            self.ahead.note_response(came.url, came.response.arrival.body_bytes)
        elif isinstance(came.response, Failure | LedBack):
            self.ahead.note_response(came.url, None)


def _find_arrival(responses: Responses, spoilt: Mapping[str, Note], url: str) -> Arrival | None:
    fresh = responses.find_fresh(url)
    return None if fresh is None or document_key(url) in spoilt else fresh.arrival
