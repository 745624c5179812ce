"""When a permanent redirect of a subscription document is believed (docs/faults.md row 35; RFC 9110, 15.4.2).

One hijacked or misconfigured answer must not move a feed for good, so a move counts when it was seen
three times in a row over more than a day.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wholefeed.core.text.dates import DAY_SECONDS

BELIEVED_TIMES: Final = 3
BELIEVED_SECONDS: Final = DAY_SECONDS


class Move(NamedTuple):
    """Where permanent redirects have led of late."""

    target: str | None = None
    since: float | None = None
    """When they were first seen to, epoch seconds."""
    times: int = 0


def note_move(known: Move, target: str | None, *, now: float) -> Move:
    """Return what is known of a move after another answer.

    Args:
        known: What was known before.
        target: Where the answer's redirects led that were all permanent; None: it did not move.
        now: Epoch seconds.
    """
    if target is None:
        return Move()
    if target == known.target and known.since is not None and known.since <= now:
        return Move(target, known.since, known.times + 1)
    return Move(target, now, 1)


def is_believed(move: Move, *, now: float) -> bool:
    """Return whether the document is to be asked for at the move's target from now on."""
    return move.times >= BELIEVED_TIMES and move.since is not None and now - move.since > BELIEVED_SECONDS
