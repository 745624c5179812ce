"""Which document next, and when to stop: one walk from the subscription document to the oldest (rule R2).

The walk is told what arrived and says what to fetch. It does no I/O and knows no clock.

    walk = Walk(subscription, trail=Trail(relation="prev-archive"), limits=limits, site_of=site_of)
    while walk.ending is None:
        start fetching every want of walk.wanted that is not being fetched; wait for one to be answered
        walk.arrived(url, arrival)    or    walk.failed(url, note)

States: WALKING (`ending` is None, the first of `wanted` is the path's next document) -> ENDED (`ending` is
set, nothing is wanted). There is no way back. Transitions to ENDED:

    the oldest document has no older link                           true end
    its older link names itself, also through a redirect (R17)      true end
    its only older link cannot be followed                          DeadChainLink
    the link leads back to an earlier document of the path (R17)    ChainLoop
    `NO_PROGRESS_DOCUMENTS` in a row brought nothing new (R17)      NoProgress
    a limit is reached and the chain goes on (R18)                  LimitReached
    the document is of another family (R23)                         FormatMismatch
    the document is another site's and does not belong here (R24)   CrossOriginUnconfirmed
    the document could not be had                                   the note that `failed` was given
    `stop`                                                          the note that it was given

Among pages (R6, R17) these are true ends too: any link back; `NO_PROGRESS_PAGES` in a row; a page that is
not there, where no `last` link says that it should be; and, on a trail that closes, the first page that
brought nothing new.

Behind the path's next document, `wanted` lists what will probably be next: the early links of documents that
still arrive, then guesses. Their answers are kept by URL until the chain links to them, and play no part
in how the walk ends: path and ending are the same with look-ahead and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from wholefeed.core.notes import ChainLoop, DocumentUnavailable, LimitReached, Note, PageGone
from wholefeed.core.terms import Relation
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Chain, SameDocument
from wholefeed.core.walk.endings import End, Ending
from wholefeed.core.walk.limits import WalkLimits, exhaustion
from wholefeed.core.walk.lookahead import Guesses, is_counted
from wholefeed.core.walk.trails import Trail

MAX_WINDOW: Final = 8
"""Documents ahead of the path at most, unless the driver says otherwise."""


class Want(NamedTuple):
    """A document to fetch."""

    url: str
    is_guess: bool
    """Not on the path yet; no loss if it is never fetched."""


class Walk:
    """One walk; see the module's docstring.

    Args:
        subscription: The subscription document.
        trail: Which links are followed.
        limits: Where to stop.
        site_of: The site that a URL belongs to (rule R24).
        look_ahead: Whether to guess. Early links are used in any case.
        known: Whether a URL's document is stored already and so not worth guessing.
        max_window: Documents wanted ahead of the path at most.
        passed: Documents that another trail from the subscription document has collected: they are on the
            path from the start, behind it.
    """

    def __init__(
        self,
        subscription: Arrival,
        *,
        trail: Trail,
        limits: WalkLimits,
        site_of: Callable[[str], str],
        look_ahead: bool = True,
        known: Callable[[str], bool] = lambda _url: False,
        max_window: int = MAX_WINDOW,
        passed: Iterable[Arrival] = (),
    ) -> None:
        self._trail = trail
        self._limits = limits
        self._known = known
        self._max_window = max_window
        self._chain = Chain(subscription, trail=trail, site_of=site_of, passed=passed)
        self._guesses = Guesses(max_window=max_window if look_ahead else 0)
        self._steps: list[str] = []
        self._next: str | None = None
        self._wanted: tuple[Want, ...] = ()
        self._ending: Ending | None = None
        self._asked: dict[str, str] = {}
        self._early: dict[str, str] = {}
        self._answers: dict[str, Arrival | Note] = {}
        self._answered: set[str] = set()
        self._joined: dict[str, bool] = {}
        self._arrived_bytes = subscription.body_bytes
        self._aim()
        self._go_on()

    @property
    def path(self) -> tuple[Arrival, ...]:
        """What has joined so far, newest first, the subscription document first; without their keys."""
        return tuple(self._chain.path)

    @property
    def tip(self) -> Arrival:
        """The last document of the trail so far."""
        return self._chain.tip

    @property
    def wanted(self) -> tuple[Want, ...]:
        """What to fetch, the most urgent first; the first one is the path's, the others are ahead of it.

        A URL is never wanted again once it was answered. One that was ahead and is no longer listed is not
        worth an answer any more.
        """
        return self._wanted

    @property
    def ending(self) -> Ending | None:
        """How the walk ended; None while it goes on."""
        return self._ending

    def news(self, url: str) -> bool:
        """Return whether the document that joined by this URL brought an entry or an update not yet met."""
        return self._joined.get(document_key(url), False)

    def has_met(self, url: str) -> bool:
        """Return whether a document of the path bears a URL, as asked for or after redirects (R17)."""
        return self._chain.met(url) is not None

    def met(self, url: str, *, by: str) -> Arrival:
        """Return the document of the path that bears a URL, as one that came by another."""
        found = self._chain.met(url)
        assert found is not None, f"{url} is not on the path"
        return replace(found, url=by, final_url=url)

    def arrived(self, url: str, arrival: Arrival) -> None:
        """Take a document that was wanted, by the URL that `wanted` named."""
        self._answer(url, arrival)

    def failed(self, url: str, note: Note) -> None:
        """Take the reason why a document that was wanted cannot be had.

        On the path it ends the walk; ahead of it, it ends the guessing.
        """
        self._answer(url, note)

    def predicted(self, url: str, older_url: str) -> None:
        """Take the older link that stands in the head of a document that is still arriving (rule R0)."""
        if self._ending is None and document_key(url) not in self._answered:
            self._early[document_key(url)] = older_url
            self._choose_wanted()

    def stop(self, note: LimitReached) -> None:
        """End the walk where it is: the time is over (rule R18)."""
        if self._ending is None:
            self._end(note)

    def _answer(self, url: str, answer: Arrival | Note) -> None:
        key = document_key(url)
        assert key in self._asked, f"{url} was not wanted"
        if self._ending is not None or key in self._answered:
            return
        self._answered.add(key)
        self._early.pop(key, None)
        self._answers[key] = answer
        if isinstance(answer, Arrival):
            self._arrived_bytes += answer.body_bytes
        else:
            self._guesses.end()
        self._go_on()

    def _go_on(self) -> None:
        """Let join what has arrived, as far as the path reaches; then decide what is wanted."""
        while self._next is not None:
            answer = self._answers.pop(document_key(self._next), None)
            if answer is None:
                self._choose_wanted()
                return
            if isinstance(answer, PageGone) and self._is_needed(answer.url):
                self._end(DocumentUnavailable(answer.url, answer.reason))
            elif isinstance(answer, Note):
                self._end(answer)
            else:
                self._take(answer)

    def _take(self, arrival: Arrival) -> None:
        objection = self._chain.objection(arrival)
        if objection is None:
            self._joined[document_key(arrival.url)] = self._chain.join(arrival)
            if self._trail.is_closing and not arrival.news:
                self._end(End.COLLECTED)
            else:
                self._aim()
        else:
            self._end_at(objection)

    def _end_at(self, objection: SameDocument | Note) -> None:
        if isinstance(objection, SameDocument):
            self._end(End.ITSELF)
        elif isinstance(objection, ChainLoop) and self._trail.is_paged:
            self._end(End.CIRCLE)
        else:
            self._end(objection)

    def _is_needed(self, url: str) -> bool:
        """Return whether something lies behind a page that is not there, by what the page before it says."""
        is_start = self._chain.tip is self._chain.path[0] and bool(self._trail.first_relation)
        return is_start or self._chain.leads_past(url)

    def _aim(self) -> None:
        """Set the path's next document, or end the walk. Once for each document that joins."""
        tip, target = self._chain.tip, self._chain.target
        if target is None:
            self._end(self._chain.dead_end or End.OLDEST)
            return
        verdict = self._chain.repetition(target)
        if verdict is not None:
            self._end_at(verdict)
            return
        note = exhaustion(self._chain, self._limits, target)
        if note is not None:
            self._end(note)
            return
        self._guesses.check(tip.url, target)
        self._steps.append(target)
        self._next = target

    def _end(self, why: End | Note) -> None:
        self._ending = Ending(why) if isinstance(why, End) else Ending(None, (why,))
        self._next = None
        self._wanted = ()
        self._answers.clear()
        self._early.clear()

    def _choose_wanted(self) -> None:
        assert self._next is not None, "the walk goes on"
        wants = [Want(self._as_asked(self._next), is_guess=False)]
        listed = {document_key(self._next)}
        for url in self._ahead():
            key = document_key(url)
            if key in listed or key in self._answered or self._known(url):
                continue
            listed.add(key)
            wants.append(Want(self._as_asked(url), is_guess=True))
        self._wanted = tuple(wants)

    def _ahead(self) -> list[str]:
        """Return what probably follows the path's next document, the nearest first."""
        assert self._next is not None, "the walk goes on"
        room = min(self._max_window, self._limits.documents - len(self._chain.path) - 1)
        if self._arrived_bytes >= self._limits.bytes:
            return []
        line = [self._next]
        while len(line) <= room and (older := self._likely_older(line[-1])) is not None:
            if self._chain.repetition(older) or older in line:
                return line[1:]
            line.append(older)
        is_stored = self._known(line[-1])  # then the older link costs no wait
        for guess in () if is_stored else self._guesses.after([*self._steps[-3:-1], *line]):
            if len(line) > room or self._chain.repetition(guess) or not self._allows(line[-1]):
                break
            line.append(guess)
        return line[1:]

    def _allows(self, url: str) -> bool:
        """Return whether counting may go on behind a page: towards `last`, and no further."""
        last = self._chain.tip.links.get(Relation.LAST)
        return not self._trail.is_paged or (last is not None and is_counted(url, last))

    def _likely_older(self, url: str) -> str | None:
        """Return the older link of a document that was fetched ahead or is still arriving."""
        key = document_key(url)
        answer = self._answers.get(key)
        return self._trail.target(answer.links) if isinstance(answer, Arrival) else self._early.get(key)

    def _as_asked(self, url: str) -> str:
        """Return the spelling by which a document was first wanted, so that it is not fetched by two."""
        return self._asked.setdefault(document_key(url), url)
