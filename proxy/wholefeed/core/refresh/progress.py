"""What a walk has found so far, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field

from wholefeed.core.memento.notes import MementoServed
from wholefeed.core.notes import Note
from wholefeed.core.refresh.events import Failure, FreshDocument
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.endings import OLDEST, Ending
from wholefeed.core.walk.lookahead import count_left


@dataclass(slots=True)
class Progress:
    """What whoever waits can be told while the walk runs."""

    documents: int = 1
    entries: int = 0
    fetched: int = 0
    told_left: int | None = None
    """What another replica says that is left."""
    urls: list[str] = field(default_factory=list)
    """Of the last three."""
    last_url: str = ""
    """Of the last document that will join, where it is known."""

    @property
    def left(self) -> int | None:
        """Documents that probably follow, where their URLs count; None: nobody knows."""
        return count_left(self.urls, self.last_url) if self.urls else self.told_left

    def add(self, url: str, entries: int, last_url: str = "") -> None:
        """Count a document that has joined the feed.

        Args:
            url: What it was asked for by.
            entries: How many it has.
            last_url: Of the last document that will, where it is known.
        """
        self.documents += 1
        self.entries += entries
        self.urls = [*self.urls[-2:], url]
        self.last_url = last_url


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


@dataclass(slots=True)
class Walked:
    """What a walk found."""

    path: list[int] = field(default_factory=list)
    """Ids of the stored documents, newest first, the subscription document excluded."""
    notes: list[Note] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    """Why the documents that the notes name could not be had, by URL."""
    ending: Ending = OLDEST

    @property
    def has_copies(self) -> bool:
        """Whether a web archive's copy stands on the path: then it takes nothing away (R33)."""
        return any(isinstance(note, MementoServed) for note in self.notes)

    @property
    def is_true_end(self) -> bool:
        """Whether nothing is missing behind the last document."""
        return self.ending.is_true_end
