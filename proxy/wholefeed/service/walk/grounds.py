"""What a walk starts from, what it tells while it runs, and what it has found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from wholefeed.core.notes import Note
from wholefeed.core.reading_notes import DocumentTruncated
from wholefeed.core.refresh.stored import Attempt
from wholefeed.core.text.urls import document_key
from wholefeed.core.walk.endings import OLDEST, Ending
from wholefeed.errors import DocumentError
from wholefeed.store.rows import DocumentRow


@dataclass(slots=True)
class Progress:
    """What whoever waits can be told while the walk runs."""

    documents: int = 1
    entries: int = 0
    fetched: int = 0
    last_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a walk starts from, beside the subscription document."""

    feed_id: int
    stored: Mapping[str, DocumentRow]
    """The archive documents that are stored, attached or not, by `document_key` of their URL."""
    attempts: Mapping[str, Attempt]
    """What failed before; not tried again before its time."""
    is_due: Callable[[DocumentRow, int], bool]
    """Whether a stored document is to be revalidated; told its place on the path, 1 the newest archive."""
    is_forced: bool
    """Try again at once what failed before."""
    relation: str
    walk_seconds: float
    """How long the walk may use the network (R18)."""
    first_rank: int
    """Rank of the first new document; the others follow."""
    now: Callable[[], float]
    writing: asyncio.Lock
    """Held while documents change, and by whoever must not see them change."""

    def stored_as(self, url: str) -> DocumentRow | None:
        """Return the stored document of a URL, however it is spelled."""
        return self.stored.get(document_key(url))

    def is_truncated(self, url: str) -> bool:
        """Whether the stored document broke off when it was fetched last (docs/faults.md row 49)."""
        attempt = self.attempts.get(url)
        return attempt is not None and attempt.reason == DocumentTruncated.slug

    def waits(self, url: str) -> bool:
        """Whether a document that could not be had, whole, is not to be tried again yet (R14)."""
        attempt = self.attempts.get(url)
        return attempt is not None and not self.is_forced and attempt.waits(self.now())


@dataclass(slots=True)
class Walked:
    """What a walk found."""

    path: list[int] = field(default_factory=list)
    """Ids of the stored documents, newest first, the subscription document excluded."""
    notes: list[Note] = field(default_factory=list)
    failures: dict[str, DocumentError] = field(default_factory=dict)
    """Why the documents that the notes name could not be had, by URL."""
    ending: Ending = OLDEST

    @property
    def is_true_end(self) -> bool:
        """Whether nothing is missing behind the last document."""
        return self.ending.is_true_end
