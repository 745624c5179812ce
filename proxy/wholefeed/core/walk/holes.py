"""Where a chain may go on behind a document that is missing (rule R34).

Archives are mostly numbered or dated, so a document that cannot be had hides only the link to the next one,
and not where that one stands. It joins if it says itself that it belongs here, and is no repetition.

    holes.open(DocumentUnavailable(".../39", …), steps=[".../41", ".../40", ".../39"])
    holes.next_guess()       # ".../38"; None when none is left, and the walk ends with `holes.note`

What is guessed here is no look-ahead (`wholefeed.core.walk.lookahead`): it is asked for without a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wholefeed.core.notes import (
    ChainLoop,
    CrossOriginUnconfirmed,
    DocumentUnavailable,
    FormatMismatch,
    JumpedHole,
    Note,
)
from wholefeed.core.terms import Relation
from wholefeed.core.text.urls import same_document
from wholefeed.core.walk.chain import Arrival, Chain
from wholefeed.core.walk.limits import WalkLimits
from wholefeed.core.walk.lookahead import next_urls

MAX_GUESSES: Final = 3
"""Documents asked for behind one that is missing."""

_MISSING: Final = (DocumentUnavailable, FormatMismatch, CrossOriginUnconfirmed)
"""What a walk is stopped by that says nothing of the documents behind."""


def guesses_behind(steps: Sequence[str], attached: Sequence[str]) -> tuple[str, ...]:
    """Return what may stand behind a missing document, the nearest first.

    Args:
        steps: The URLs that the chain linked to, in order, the missing one the last.
        attached: The archive documents of the feed that are stored, newest first. Where the newest one is
            missing, they are what tells how the chain counts.
    """
    if len(steps) > 1:
        return next_urls(steps, MAX_GUESSES)
    missing = steps[-1]
    older = attached[_place(missing, attached) + 1 :]
    newest = tuple(older[:1])
    newer = next_urls(older[2::-1], MAX_GUESSES)  # counted from the stored ones towards the missing
    place = _place(missing, newer)
    if place >= 0:
        return (*newer[:place][::-1], *newest)
    return newest if newest and next_urls([missing, *newest], 1) else ()


def _place(url: str, urls: Sequence[str]) -> int:
    """Return where a document stands among others; -1 where it does not."""
    return next((place for place, other in enumerate(urls) if same_document(url, other)), -1)


class Holes:
    """The documents that a walk misses on its way, one after the other.

    Args:
        chain: The path so far.
        limits: Where the walk stops.
        attached: As `guesses_behind` takes it.
    """

    def __init__(self, chain: Chain, *, limits: WalkLimits, attached: Sequence[str]) -> None:
        self._chain = chain
        self._limits = limits
        self._attached = attached
        self._refused_bytes = 0
        self._left: list[str] = []
        self._lacking: list[str] = []
        self.note: Note | None = None
        """Why the document is missing behind which the walk looks for others; None where it does not."""
        self.looked_at: list[str] = []
        """The guesses behind it so far."""
        self.jumps: list[Note] = []
        """What is told of those that the walk has got past."""

    def open(self, note: Note, steps: Sequence[str]) -> None:
        """Begin to look behind a document that is missing; `steps` as `guesses_behind` takes them."""
        is_passable = isinstance(note, _MISSING) and not self._chain.trail.is_paged
        self._left = list(guesses_behind(steps, self._attached)) if is_passable else []
        self.note, self._lacking, self.looked_at = note, [note.url], []

    def return_to(self, url: str) -> ChainLoop | None:
        """Return what it means to go to this URL: a circle, where the walk has got past it before (R17)."""
        return ChainLoop(url) if any(same_document(url, note.url) for note in self.jumps) else None

    def next_guess(self) -> str | None:
        """Return what to look at next; None when nothing is left, or R18's limit of bytes is reached."""
        if self._chain.body_bytes + self._refused_bytes >= self._limits.bytes:
            return None
        while self._left:
            guess = self._left.pop(0)
            self.looked_at.append(guess)
            if self._chain.repetition(guess) is None:
                return guess
        return None

    def lacks(self, url: str) -> None:
        """Take that a guess is not there either: what stands behind that one may name it."""
        self._lacking.append(url)

    def admits(self, arrival: Arrival) -> bool:
        """Return whether a document behind it says that it belongs to the feed.

        Nothing leads there, so more is asked for than of one that the chain links to (R24): its own words,
        also at the same site. One that was stored before has said them.
        """
        if self._chain.objection(arrival) is not None:
            return False
        newer = arrival.links.get(Relation.NEXT_ARCHIVE)
        is_neighbour = newer is not None and any(same_document(newer, url) for url in self._lacking)
        return arrival.keys is None or is_neighbour or self._chain.is_named_by(arrival)

    def refuse(self, arrival: Arrival) -> None:
        """Take that a document behind it does not join."""
        self._refused_bytes += arrival.body_bytes

    def jump(self, url: str) -> None:
        """Take that the walk goes on at a URL behind it."""
        assert self.note is not None, "there is a hole"
        self.jumps += (self.note, JumpedHole(self.note.url, url))
        self.note = None
