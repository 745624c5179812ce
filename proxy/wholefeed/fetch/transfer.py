"""What one fetch takes: its time, its share of the memory for bodies, and what is counted for the log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from wholefeed.core.text.redact import safe_url
from wholefeed.counts import Counts
from wholefeed.fetch.budget import Share

Turn = Callable[[], Awaitable[None]]
"""Waits until one more request may be made."""


@dataclass(slots=True)
class Traffic:
    """What a fetch has cost so far, for the log; counts on when the fetch fails."""

    share: Share
    """What its body may take of the memory for all."""
    wire_bytes: int = 0
    """Of bodies, as they came."""
    body_bytes: int = 0
    """Decoded."""
    heads: int = 0
    """Answers that have begun."""
    status: int | None = None
    """The last one that came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What a fetch asks for, and how."""

    is_new: bool = False
    """Whether it is for a subscription document that was never seen: as in `Waiter`."""
    is_head: bool = False
    """Whether the head of the answer is all that is wanted (RFC 9110, section 9.3.2)."""
    at_most: int | None = None
    """Requests at once that the host may get from now on, where that is less than usual (R32)."""
    turn: Turn | None = None
    """Awaited before each request, redirects and further tries included; takes none of the time."""


USUAL: Final = Manner()


@dataclass(slots=True)
class Transfer:
    """One fetch under way."""

    url: str
    limit_seconds: float
    traffic: Traffic
    manner: Manner = USUAL
    spent_seconds: float = 0.0
    """On requests and pauses; never more than the limit."""
    seen: list[str] = field(default_factory=list)
    """Each URL that was asked, in order."""
    is_permanent: bool = True

    @property
    def left_seconds(self) -> float:
        """What is left of the time for the document."""
        return self.limit_seconds - self.spent_seconds

    def spend(self, seconds: float) -> None:
        """Count time that was spent."""
        self.spent_seconds = min(self.spent_seconds + seconds, self.limit_seconds)

    def count(self, counts: Counts) -> None:
        """Count what it has taken."""
        counts.transferred(self.traffic.wire_bytes, self.traffic.body_bytes, self.spent_seconds)

    def facts(self) -> dict[str, object]:
        """What every event of a fetch tells: never credentials, never a query string."""
        return {
            "url": _shown(self.url),
            "host": _host(self.seen[-1]) if self.seen else None,
            "hops": max(0, len(self.seen) - 1),
            "status": self.traffic.status,
            "wire_bytes": self.traffic.wire_bytes,
            "body_bytes": self.traffic.body_bytes,
            "duration_s": round(self.spent_seconds, 6),
        }


@lru_cache(maxsize=1024)  # each refresh tells of the same
def _shown(url: str) -> str:
    return safe_url(url)


@lru_cache(maxsize=1024)
def _host(url: str) -> str | None:
    return urlsplit(url).hostname
