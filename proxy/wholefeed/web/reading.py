"""Everything that `/metrics` shows, as it is at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from wholefeed.counts import Counts
from wholefeed.service.published import Usage
from wholefeed.store.traffic import Traffic
from wholefeed.store.upkeep import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Belongs to one answer; nobody changes it any more."""

    counts: Counts
    memory: Usage
    memory_limit_bytes: int
    summary: Summary | None
    """None: the database could not say, or not in time."""
    is_readable: bool
    """Whether it could say anything."""
    store_limit_bytes: int
    """0: there is no limit."""
    is_writable: bool
    busy_connections: int
    requests: int
    """To publishers, under way."""
    waiting_requests: int
    refreshes: int
    openings: int
    walks: int
    waiting_walks: int
    traffic: Traffic
    """Between the store and its database."""
    workers: tuple[int, int]
    """How many there are, and how many of them are busy."""
