"""What one fetch takes: counted for the log, and its share of the memory for bodies."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.room import Share


@dataclass(slots=True)
class Traffic:
    """What a fetch has cost so far, for the log; counts on when the fetch fails."""

    share: Share
    """The room for its body."""
    wire_bytes: int = 0
    """Of bodies, as they came."""
    body_bytes: int = 0
    """Decoded."""
    heads: int = 0
    """Answers that have begun."""
    status: int | None = None
    """The last one that came."""
