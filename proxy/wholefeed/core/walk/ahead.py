"""What a walk wants, and what has come of it before the path did (docs/design.md#look-ahead).

Answers are kept by URL until the path comes to them; no URL is wanted again that was answered. Behind the
path's next document is wanted what will probably follow: the early links of documents that still arrive, then
guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from wholefeed.core.notes import Note
from wholefeed.core.terms import Relation
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.chain import Arrival, Chain
from wholefeed.core.walk.limits import WalkLimits
from wholefeed.core.walk.lookahead import Guesses, is_counted


class Want(NamedTuple):
    """A document to fetch."""

    url: str
    is_guess: bool
    """Not on the path yet; no loss if it is never fetched."""


class Ahead:
    """Of one walk.

    Args:
        chain: The path so far.
        limits: Where the walk stops.
        known: Whether a URL's document is stored already and so not worth guessing.
        max_window: Documents wanted ahead of the path at most.
        look_ahead: Whether to guess.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        limits: WalkLimits,
        known: Callable[[str], bool],
        max_window: int,
        look_ahead: bool,
    ) -> None:
        self._chain = chain
        self._limits = limits
        self._known = known
        self._max_window = max_window
        self._guesses = Guesses(max_window=max_window if look_ahead else 0)
        self._asked: dict[str, str] = {}
        self._early: dict[str, str] = {}
        self._answers: dict[str, Arrival | Note] = {}
        self._answered: set[str] = set()
        self._arrived_bytes = chain.path[0].body_bytes

    def is_answered(self, url: str) -> bool:
        """Whether something has come of a URL."""
        return document_key(url) in self._answered

    def foretell(self, url: str, older_url: str) -> None:
        """Take the older link of a document that is still arriving."""
        self._early[document_key(url)] = older_url

    def answer(self, url: str, answer: Arrival | Note) -> None:
        """Keep what has come until the path comes to it."""
        key = document_key(url)
        assert key in self._asked, f"{url} was not wanted"
        if key in self._answered:
            return
        self._answered.add(key)
        self._early.pop(key, None)
        self._answers[key] = answer
        if isinstance(answer, Arrival):
            self._arrived_bytes += answer.body_bytes
        else:
            self._guesses.end()

    def answer_to(self, url: str) -> Arrival | Note | None:
        """Return what has come, once a document; None: nothing has."""
        key = document_key(url)
        answer = self._answers.get(key)
        if isinstance(answer, Arrival):
            del self._answers[key]
        return answer

    def spoil(self, url: str, note: Note) -> None:
        """Take that a document has come which is not the one that the chain links to."""
        self._answers[document_key(url)] = note

    def refuse(self, url: str) -> None:
        """Forget a document that does not join: should the chain link to it, it is wanted again."""
        self._answered.discard(document_key(url))

    def check(self, url: str, older_url: str) -> None:
        """Compare with what was guessed the link that a document of the chain turned out to bear."""
        self._guesses.check(url, older_url)

    def wanted(self, target: str, *, steps: Sequence[str], is_alone: bool) -> tuple[Want, ...]:
        """Return what to fetch, the most urgent first.

        Args:
            target: The path's next document.
            steps: The URLs that the chain linked to so far, that one the last.
            is_alone: Whether nothing behind it is wanted.
        """
        wants = [Want(self._as_asked(target), is_guess=False)]
        listed = {document_key(target)}
        for url in () if is_alone else self._behind(target, steps):
            key = document_key(url)
            if key in listed or key in self._answered or self._known(url):
                continue
            listed.add(key)
            wants.append(Want(self._as_asked(url), is_guess=True))
        return tuple(wants)

    def clear(self) -> None:
        """Let go of what has come: the walk has ended."""
        self._answers.clear()
        self._early.clear()

    def _behind(self, target: str, steps: Sequence[str]) -> list[str]:
        """Return what probably follows the path's next document, the nearest first."""
        room = min(self._max_window, self._limits.documents - len(self._chain.path) - 1)
        if self._arrived_bytes >= self._limits.bytes:
            return []
        line = [target]
        while len(line) <= room and (older := self._likely_older(line[-1])) is not None:
            if self._chain.repetition(older) or older in line:
                return line[1:]
            line.append(older)
        is_stored = self._known(line[-1])  # then the older link costs no wait
        for guess in () if is_stored else self._guesses.after([*steps[-3:-1], *line]):
            if len(line) > room or self._chain.repetition(guess) or not self._allows(line[-1]):
                break
            line.append(guess)
        return line[1:]

    def _allows(self, url: str) -> bool:
        """Return whether counting may go on behind a page: towards `last`, and no further."""
        last = self._chain.tip.links.get(Relation.LAST)
        return not self._chain.trail.is_paged or (last is not None and is_counted(url, last))

    def _likely_older(self, url: str) -> str | None:
        """Return the older link of a document that was fetched ahead or is still arriving."""
        key = document_key(url)
        answer = self._answers.get(key)
        return self._chain.trail.target(answer.links) if isinstance(answer, Arrival) else self._early.get(key)

    def _as_asked(self, url: str) -> str:
        """Return the spelling by which a document was first wanted, so that it is not fetched by two."""
        return self._asked.setdefault(document_key(url), url)
