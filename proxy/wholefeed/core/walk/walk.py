"""Which document next, and when to stop: one walk from the subscription document to the oldest (rule R2).

The walk is told what arrived and says what to fetch. It does no I/O and knows no clock.

    walk = Walk(subscription, trail=Trail(relation="prev-archive"), limits=limits, site_of=site_of)
    while walk.ending is None:
        start fetching every want of walk.wanted that is not being fetched; wait for one to be answered
        walk.arrived(url, arrival)    or    walk.failed(url, note)
        if walk.candidate is not None:
            walk.judge(whether it holds an entry that is not known)

States: WALKING (the first of `wanted` is the path's next document), AT_HOLE (`hole_url` is set, the
only one of `wanted` may stand behind it), JUDGING (`candidate` is set, nothing is wanted), ENDED (`ending` is
set, nothing is wanted), from which there is no way back. Transitions:

    WALKING -> AT_HOLE   a document of a chain is missing, its URL is numbered or dated (R34)
    AT_HOLE -> AT_HOLE   nothing is there, and another guess is left
    AT_HOLE -> JUDGING   a document is there
    JUDGING -> WALKING   it belongs here and brings something new: the walk goes on at it
    JUDGING -> AT_HOLE   it does not, and another guess is left

Transitions to ENDED:

    the oldest document has no older link                           true end
    its older link names itself, also through a redirect (R17)      true end
    its only older link cannot be followed                          DeadChainLink
    the link leads back to an earlier document of the path (R17)    ChainLoop
    `NO_PROGRESS_DOCUMENTS` in a row brought nothing new (R17)      NoProgress
    a limit is reached and the chain goes on (R18)                  LimitReached
    the document is of another family (R23)                         FormatMismatch
    the document is another site's and does not belong here (R24)   CrossOriginUnconfirmed
    the document could not be had, nor any guess behind it          the note that `failed` was given
    `stop`                                                          the note that it was given

Among pages (R6, R17) these are true ends too: any link back; `NO_PROGRESS_PAGES` in a row; a page that is
not there, where no `last` link says that it should be; and, on a trail that closes, the first page that
brought nothing new.

Behind the path's next document, `wanted` lists what will probably be next: the early links of documents that
still arrive, then guesses. Their answers are kept by URL until the chain links to them, and play no part
in how the walk ends: path and ending are the same with look-ahead and without.

`settle_path` says what becomes of the stored chain when a walk took another path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wholefeed.core.notes import ChainLoop, DocumentUnavailable, End, Ending, Note, PageGone
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.ahead import Ahead, Holes, Want
from wholefeed.core.walk.chain import Arrival, Chain, SameDocument, Trail, WalkLimits, exhaustion

_MAX_WINDOW: Final = 8
"""Documents ahead of the path at most, unless the driver says otherwise."""


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
        attached: URLs of the archive documents of the feed that are stored, newest first.
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
        max_window: int = _MAX_WINDOW,
        passed: Iterable[Arrival] = (),
        attached: Sequence[str] = (),
    ) -> None:
        self._trail = trail
        self._limits = limits
        self._chain = Chain(subscription, trail=trail, site_of=site_of, passed=passed)
        self._ahead = Ahead(
            self._chain, limits=limits, known=known, max_window=max_window, look_ahead=look_ahead
        )
        self._holes = Holes(self._chain, limits=limits, attached=attached)
        self._steps: list[str] = []
        self._next: str | None = None
        self._joined: dict[str, bool] = {}
        self.path: Sequence[Arrival] = self._chain.path
        """What has joined so far, newest first, the subscription document first; without their keys."""
        self.wanted: tuple[Want, ...] = ()
        """What to fetch, the most urgent first; the first one is the path's, the others are ahead of it.

        A URL is never wanted again once it was answered. One that was ahead and is no longer listed is not
        worth an answer any more.
        """
        self.candidate: Arrival | None = None
        """What stands behind a missing document; `judge` decides whether it joins."""
        self.ending: Ending | None = None
        """How the walk ended; None while it goes on."""
        self._aim()
        self._go_on()

    @property
    def tip(self) -> Arrival:
        """The last document of the trail so far."""
        return self._chain.tip

    @property
    def hole_url(self) -> str | None:
        """The missing document behind which the walk looks for others (R34); None where it does not."""
        return self._holes.note.url if self._holes.note is not None else None

    def judge(self, *, is_new: bool) -> bool:
        """Let the candidate join, or not; return whether it did.

        One that did not may be wanted again, should the chain link to it: the driver need not keep it.

        Args:
            is_new: Whether it is part of the feed already, or holds an entry that no document of it does.
        """
        candidate, self.candidate = self.candidate, None
        assert candidate is not None, "nothing waits to be judged"
        joins = is_new and self._holes.admits(candidate)
        if joins:
            self._steps += self._holes.looked_at
            self._holes.jump(candidate.url)
            self._join(candidate)
        else:
            self._ahead.refuse(candidate.url)
            self._holes.refuse(candidate)
            self._guess()
        self._go_on()
        return joins

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
        is_open = self.ending is None and self.candidate is None
        if is_open and not self._ahead.is_answered(url):
            self._ahead.foretell(url, older_url)
            self._choose_wanted()

    def stop(self, note: Note) -> None:
        """End the walk where it is: the time is over (rule R18)."""
        if self.ending is None:  # what is guessed behind a hole is not missing
            self._end(self._holes.note or note)

    def _answer(self, url: str, answer: Arrival | Note) -> None:
        if self.ending is None:
            self._ahead.answer(url, answer)
            self._go_on()

    def _go_on(self) -> None:
        """Let join what has arrived, as far as the path reaches; then decide what is wanted."""
        while self._next is not None and self.candidate is None:
            answer = self._ahead.answer_to(self._next)
            if answer is None:
                self._choose_wanted()
                return
            if self._holes.note is not None:
                self._look(answer)
            elif isinstance(answer, Arrival):
                self._take(answer)
            elif answer.kind is PageGone and self._is_needed(answer.url):
                self._end(DocumentUnavailable(answer.url, reason=answer.facts["reason"]))
            else:
                self._miss(answer)

    def _look(self, answer: Arrival | Note) -> None:
        """Take what has come of a guess behind a hole."""
        if isinstance(answer, Arrival):
            self.candidate, self.wanted = answer, ()
        else:
            self._holes.lacks(answer.url)
            self._guess()

    def _miss(self, note: Note) -> None:
        """R34: look behind a document of a chain that is missing; end the walk where there is no way."""
        self._holes.open(note, self._steps)
        self._guess()

    def _guess(self) -> None:
        """Set what is looked at next behind a hole; end the walk when nothing is left."""
        self._next = self._holes.next_guess()
        if self._next is None and self._holes.note is not None:
            self._end(self._holes.note)

    def _take(self, arrival: Arrival) -> None:
        objection = self._chain.objection(arrival)
        if objection is None:
            self._join(arrival)
        else:
            if isinstance(objection, Note):
                self._ahead.spoil(arrival.url, objection)
            self._end_at(objection)

    def _join(self, arrival: Arrival) -> None:
        self._joined[document_key(arrival.url)] = self._chain.join(arrival)
        if self._trail.is_closing and not arrival.news:
            self._end(End.COLLECTED)
        else:
            self._aim()

    def _end_at(self, objection: SameDocument | Note) -> None:
        if isinstance(objection, SameDocument):
            self._end(End.ITSELF)
        elif objection.kind is ChainLoop and self._trail.is_paged:
            self._end(End.CIRCLE)
        else:
            self._miss(objection)

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
        verdict = self._chain.repetition(target) or self._holes.return_to(target)
        if verdict is not None:
            self._end_at(verdict)
            return
        note = exhaustion(self._chain, self._limits, target)
        if note is not None:
            self._end(note)
            return
        self._ahead.check(tip.url, target)
        self._steps.append(target)
        self._next = target

    def _end(self, why: End | Note) -> None:
        jumps = tuple(self._holes.jumps)
        self.ending = Ending(why, jumps) if isinstance(why, End) else Ending(None, (why, *jumps))
        self._next, self._holes.note = None, None
        self.wanted = ()
        self._ahead.clear()

    def _choose_wanted(self) -> None:
        assert self._next is not None, "the walk goes on"
        is_at_hole = self._holes.note is not None  # one guess is looked at after the other
        self.wanted = self._ahead.wanted(self._next, steps=self._steps, is_alone=is_at_hole)


# What becomes of the stored chain when a walk took another path (R14, R15, R25)


def settle_path(
    stored: Sequence[int], path: Sequence[int], *, is_true_end: bool, is_full: bool = False
) -> Drift:
    """Compare the path of a walk with the chain that is stored (rule R15).

    When the path came to the true end of the chain and rejoined the stored one on its way, the stored
    documents in front of the joint that are not on the path were replaced; the joint is the last document
    of the path that was stored. Whatever lies behind it stays: a shorter chain is no deletion. A path
    without a joint, or one that ended early, takes nothing away.

    Args:
        stored: The attached archive documents, newest first.
        path: The archive documents of the walk, newest first, the subscription document excluded.
        is_true_end: Whether the walk ended with the oldest document of the chain.
        is_full: Whether every document was revalidated, so that a whole path is the truth (R14): then
            what is not on it was replaced, wherever it stood.
    """
    places = {document: place for place, document in enumerate(stored)}
    on_path = set(path)
    joints = [places[document] for document in path if document in places]
    doubtful: Sequence[int] = ()
    if is_true_end:
        doubtful = stored if is_full else stored[: joints[-1] if joints else 0]
    replaced = {document for document in doubtful if document not in on_path}
    kept = [document for document in stored if document not in replaced]
    order = _interleaved(kept, path)
    simple_order = [document for document in path if document not in places] + kept
    detached = tuple(document for document in stored if document in replaced)
    return Drift(detached, order, is_reordered=list(order) != simple_order)


@dataclass(frozen=True, slots=True)
class Drift:
    """What to do with the archive documents of a feed after a walk. They go by the caller's ids."""

    detached: tuple[int, ...]
    """Replaced by the publisher: no longer part of the feed."""
    order: tuple[int, ...]
    """The chain from now on, newest first: the path, and the stored documents that it did not touch."""
    is_reordered: bool
    """Whether that order is any other than: what is new on the path, then the stored ones as they stood."""


def _interleaved(kept: Sequence[int], path: Sequence[int]) -> tuple[int, ...]:
    """Put the path in order, and each other document behind the neighbour that it stood behind.

    So what is new goes in front of the document that it leads to, and what the path did not reach, behind
    it; documents in the middle that an unfinished path has passed by keep their place.
    """
    on_path = set(path)
    places = {document: place for place, document in enumerate(kept)}
    order: list[int] = []
    taken = 0
    for document in path:
        place = places.get(document, -1)
        if place >= taken:
            order += [each for each in kept[taken:place] if each not in on_path]
            taken = place + 1
        order.append(document)
    order += [each for each in kept[taken:] if each not in on_path]
    return tuple(order)
