"""Why a walk ended: what stands behind the last document, in words that whoever asks can read.

Ending(End.OLDEST).as_dict()  # {"code": "oldest", "text": "the oldest document links to no older one"}
Ending(None, (LimitReached(…),))  # something may be missing, and the note says what
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from wholefeed.core.notes import Note


class End(StrEnum):
    """Nothing is missing behind the last document, and why."""

    OLDEST = "oldest"
    ITSELF = "itself"
    CIRCLE = "circle"
    COLLECTED = "collected"
    READ = "read"
    WHOLE = "whole"
    NOT_OFFERED = "not-offered"
    NOT_FOLLOWED = "not-followed"


_TEXTS: Final = {
    End.OLDEST: "the oldest document links to no older one",
    End.ITSELF: "the oldest document links to itself",
    End.CIRCLE: "the last page links back to one that was collected",
    End.COLLECTED: "this page brought nothing new; what lies behind it was collected before",
    End.READ: "every page that the publisher answers was read",
    End.WHOLE: "the publisher says that this document is the whole feed",
    End.NOT_OFFERED: "the publisher links to no other documents of this feed",
    End.NOT_FOLLOWED: "this is a paged feed, and history.paged is off",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a walk ended."""

    end: End | None
    """None: the notes say why the walk could not go on, or that what it met counts as the end."""
    notes: tuple[Note, ...] = ()

    @property
    def is_true_end(self) -> bool:
        """Whether the oldest document of the chain is on the path; then nothing is missing."""
        return not any(note.partial for note in self.notes)

    def as_dict(self) -> dict[str, str]:
        """Return the reason as whoever asks gets to see it."""
        if self.end is None:
            return {"code": self.notes[0].slug, "text": str(self.notes[0])}
        return {"code": self.end.value, "text": _TEXTS[self.end]}


OLDEST: Final = Ending(End.OLDEST)
