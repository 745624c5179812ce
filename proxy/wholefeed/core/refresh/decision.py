"""What a refresh does next: one object, told what is stored and what came. It does no I/O and has no clock.

    decision = Decision(given, documents)
    while not isinstance(decision.intent, Done | GiveUp):
        event = carry out decision.intent
        decision.advance(event, now=...)

States, each a run of intents, and what leads on:

    SUBSCRIPTION   asked for, stored, its reply noted   failed                            -> GiveUp
    REREAD         bodies that an older parser read     nothing new, nothing unfinished   -> Done
                                                        else, by the kind of the feed:
    WHOLE          everything else leaves (R1, R5)                                        -> SETTLE
    COLLECT        no links, but an adapter fits        (`wholefeed.core.refresh.collecting`) -> SETTLE
    ALONE          no links, or none that are followed (R7)                               -> SETTLE
    UNWALKED       the request may not walk             published as `loading`            -> Done
    WALK           the chain, or all pages              (`wholefeed.core.refresh.following`) -> SETTLE
    SETTLE         drift, what is missing, published    (`wholefeed.core.refresh.settlement`) -> Done

Each part is a generator: it yields intents one after the other and is sent what came of each. Beside that
line four questions may be asked at any time of a walk: `predicted`, what can be fetched because of the head
of a document that still arrives; `is_ahead`, whether a fetch may still give way to others; `is_met`,
whether a redirect leads to what is there already; and `meanwhile`, what can be published for whoever does not
wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from wholefeed.core.notes import Note
from wholefeed.core.parse.version import PARSER_VERSION
from wholefeed.core.refresh.collecting import Collecting
from wholefeed.core.refresh.events import DocumentsRead, Event, ReadAgain
from wholefeed.core.refresh.following import Following, is_archive_due
from wholefeed.core.refresh.given import Given
from wholefeed.core.refresh.intents import (
    BeginWalk,
    Detach,
    Done,
    EndWalk,
    Fetch,
    GiveUp,
    Intent,
    Publish,
    ReadBodiesAgain,
    ReadDocuments,
    Steps,
    carry_out,
    outcome,
)
from wholefeed.core.refresh.mementos import copy_steps
from wholefeed.core.refresh.pages import known_ascent
from wholefeed.core.refresh.progress import Progress, Walked
from wholefeed.core.refresh.settlement import settle_steps
from wholefeed.core.refresh.stored import StoredDocument, subscription_of
from wholefeed.core.refresh.subscription import Current, Subscription
from wholefeed.core.terms import Kind, Role, State
from wholefeed.core.walk.endings import End, Ending


class Decision:
    """The decision of one refresh; see the module's docstring.

    Args:
        given: The feed, what is missing of it, the settings and the request.
        documents: As they are stored.
    """

    def __init__(self, given: Given, documents: Sequence[StoredDocument]) -> None:
        self._given = given
        self._feed = given.feed
        self._documents = documents
        self._following: Following | None = None
        self._collecting: Collecting | None = None
        self._notes: tuple[Note, ...] = ()
        self.progress = Progress()
        self.is_confirmed = False
        """Whether the publisher has been heard of the subscription document."""
        self.is_walking = False
        """Whether the walk may still add documents: the state is `loading`."""
        self._steps = self._run()
        self.intent: Intent = next(self._steps)
        """What to do next."""

    def advance(self, event: Event, *, now: float) -> Intent:
        """Take what came of the intent; return the next one.

        Args:
            event: As the intent's docstring names it; `CarriedOut` where it names none.
            now: Epoch seconds.
        """
        assert not isinstance(self.intent, Done | GiveUp), "it has come to its end"
        self._given.clock.now = now
        self.is_walking = self.is_walking or isinstance(self.intent, BeginWalk)
        self.intent = self._steps.send(event)
        return self.intent

    def close(self) -> None:
        """Go no further; without that its generator and itself would keep one another."""
        self._steps.close()

    def predicted(self, url: str, older: str) -> list[Fetch]:
        """Take the older link that stands in the head of a document that still arrives (R0).

        Returns:
            What can be begun because of it, without anything to be told of that it was.
        """
        return self._following.predicted(url, older) if self._following is not None else []

    def is_ahead(self, url: str) -> bool:
        """Whether the path of the walk has to come to a document yet: then it gives way to others."""
        return self._following is None or self._following.is_ahead(url)

    def is_met(self, url: str) -> bool:
        """Whether the document of a URL is on the path of the walk: a redirect to it need not be followed."""
        if self._collecting is not None and self._collecting.is_met(url):
            return True
        return self._following is not None and self._following.is_met(url)

    def meanwhile(self) -> Publish | None:
        """Return the publication of what has arrived so far; None when no walk has begun, or it has ended."""
        if not self.is_walking:
            return None
        return Publish(state=State.LOADING, notes=self._notes, is_walking=True)

    def _run(self) -> Steps[None]:
        subscription = Subscription(self._given, self._documents)
        current = yield from subscription.steps()
        if current is None:
            yield GiveUp()
            return
        self.is_confirmed = subscription.is_heard
        self._notes = current.notes
        is_read_again = yield from self._read_again()
        has_copies = False
        if self._given.copies:
            has_copies = yield from copy_steps(self._given, self._documents, current)
        if current.has_changed or is_read_again or has_copies:
            self._documents = (yield from outcome(ReadDocuments(), DocumentsRead)).documents
        is_new = current.has_changed or current.has_moved or is_read_again or has_copies
        self._collecting = self._collector(current)
        is_due = is_archive_due(self._given, self._documents, current) or self._is_collecting_due
        if is_new or (not self._given.copies and (is_due or self._is_unfinished())):
            yield from self._reconstruct(current)
        yield Done()

    def _read_again(self) -> Steps[bool]:
        """Have the bodies read that an older parser has read; return whether there were any."""
        for row in self._documents:
            if row.parser_version != PARSER_VERSION:
                return (yield from outcome(ReadBodiesAgain(), ReadAgain)).has_changed
        return False

    def _is_unfinished(self) -> bool:
        feed, given = self._feed, self._given
        if given.request.is_forced or given.request.is_full or feed.is_walking or not feed.digest:
            return True
        if feed.revision != feed.published_revision:  # an earlier refresh did not come to its end
            return True
        if known_ascent(feed) is not None:  # what is new is not in the subscription document
            return True
        if feed.state is State.REMEMBERED and given.is_followed(feed.kind):  # it was switched on
            return True
        if feed.state is State.COLLECTED and feed.kind is Kind.PLAIN and self._collecting is None:  # off
            return True
        now = given.clock.now
        return feed.state is State.LOADING or any(not each.waits(now) for each in given.missing.values())

    def _reconstruct(self, current: Current) -> Steps[None]:
        first = subscription_of(self._documents)
        self.progress.entries = 0 if first is None else first.entries
        if current.kind is Kind.COMPLETE:
            yield from self._leave_alone()
            walked, state = Walked(ending=Ending(End.WHOLE)), State.COMPLETE
        elif self._collecting is not None and not self._given.request.may_walk and self._collecting.wants_all:
            yield from carry_out(Publish(state=State.LOADING, notes=current.notes))
            return
        elif self._collecting is not None:
            walked, state = yield from self._collect(current, self._collecting)
        elif not self._given.is_followed(current.kind):
            end = End.NOT_OFFERED if current.kind is Kind.PLAIN else End.NOT_FOLLOWED
            walked, state = Walked(ending=Ending(end)), State.REMEMBERED
        elif not self._given.request.may_walk:
            yield from carry_out(Publish(state=State.LOADING, notes=current.notes))
            return
        else:
            if not self._feed.digest:
                yield from carry_out(Publish(state=State.LOADING, notes=current.notes))
            walked, state = yield from self._walk(current)
        yield from settle_steps(self._given, self._documents, current, walked, state)
        self.is_walking = False

    def _collector(self, current: Current) -> Collecting | None:
        """R26: only where nothing is linked, and of a publisher that is there."""
        if current.kind is not Kind.PLAIN or not self.is_confirmed:
            return None
        return Collecting.of(self._given, self._documents, current, self.progress)

    @property
    def _is_collecting_due(self) -> bool:
        return self._collecting is not None and self._collecting.is_due

    def _collect(self, current: Current, collecting: Collecting) -> Steps[tuple[Walked, State]]:
        if not self._feed.digest and collecting.is_due:
            yield from carry_out(Publish(state=State.LOADING, notes=current.notes))
        walked, state = yield from collecting.steps()
        if self.is_walking:
            yield from self._end_walk(walked)
        return walked, state

    def _end_walk(self, walked: Walked) -> Steps[None]:
        reason = next((note.slug for note in walked.notes if note.partial), "end")
        yield from carry_out(EndWalk(ending=reason, documents=1 + len(walked.path)))

    def _instead_of_pages(self, current: Current) -> Steps[tuple[Walked, State] | None]:
        """R26: what `next` led to failed at once; the publisher may have its pages elsewhere."""
        self._collecting = Collecting.of(self._given, self._documents, current, self.progress)
        if self._collecting is None:
            return None
        walked, state = yield from self._collecting.steps()
        return (walked, state) if state is State.COLLECTED else None

    def _leave_alone(self) -> Steps[None]:
        """R1, R5: the subscription document is the whole feed."""
        attached = (row for row in self._documents if row.rank is not None)
        leaving = tuple(row.id for row in attached if row.role is not Role.SUBSCRIPTION)
        if leaving:
            yield from carry_out(Detach(leaving))

    def _walk(self, current: Current) -> Steps[tuple[Walked, State]]:
        self._following = Following(self._given, self._documents, current, self.progress)
        walked, state = yield from self._following.steps()
        if current.kind is Kind.PAGED and not walked.path:
            instead = yield from self._instead_of_pages(current)
            walked, state = instead or (walked, state)
        yield from self._end_walk(walked)
        return walked, state
