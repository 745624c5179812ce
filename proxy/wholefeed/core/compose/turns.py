"""What readers were told of a feed that is partial, and are told when it has healed (R16).

Readers keep the warning once they have seen it. When every document that was missing has been had, an entry
of the same id and a later date takes its word back, for `HEALED_SECONDS`. The turns of one feed:

    NONE -- partial --> UNSENT -- a reader gets it --> SENT -- all was had --> HEALED -- partial --> UNSENT
                                                       SENT -- unlinked, never had --> LOST
    UNSENT and LOST -- no longer partial --> NONE

Each turn is dated later than the one before.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from wholefeed.core.text.dates import DAY_SECONDS

HEALED_SECONDS: Final = 14 * DAY_SECONDS
"""How long it is said that a feed has healed."""


class Warned(StrEnum):
    """How far readers know that a feed is partial."""

    NONE = ""
    UNSENT = "unsent"
    SENT = "sent"
    LOST = "lost"
    """It was sent, and part of what was missing will never be had: nothing takes it back."""
    HEALED = "healed"


class Turn(NamedTuple):
    """Where a feed stands."""

    warned: Warned
    dated_at: float | None
    """What the entry is dated, or the last one was; None: there was none yet."""

    def next(self, first_failed_at: float | None, *, is_lost: bool, now: float) -> Turn:
        """Return where it stands once it is published.

        Args:
            first_failed_at: When what is missing now failed first; None: nothing is missing.
            is_lost: Whether something that was missing is neither missing any more nor was it had.
            now: Epoch seconds.
        """
        warned = Warned.LOST if is_lost and self.warned is Warned.SENT else self.warned
        if first_failed_at is not None:
            if warned in (Warned.NONE, Warned.HEALED):
                return Turn(Warned.UNSENT, self._later(first_failed_at))
            return Turn(warned, self.dated_at)
        match warned:
            case Warned.SENT:
                return Turn(Warned.HEALED, self._later(now))
            case Warned.HEALED:
                return self
            case _:
                return Turn(Warned.NONE, self.dated_at)

    def is_healed_at(self, now: float) -> bool:
        """Whether it is said now that the feed has healed."""
        ends_at = self.healed_until
        return ends_at is not None and now < ends_at

    @property
    def healed_until(self) -> float | None:
        """When it is said no longer that the feed has healed; None where it is not said at all."""
        if self.warned is not Warned.HEALED or self.dated_at is None:
            return None
        return self.dated_at + HEALED_SECONDS

    def _later(self, instant: float) -> float:
        """Instants are written in whole seconds."""
        return instant if self.dated_at is None else max(instant, self.dated_at + 1)
