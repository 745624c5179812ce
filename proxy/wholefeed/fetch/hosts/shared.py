"""What several processes that ask the same hosts share of it, as the gate of each of them sees it.

Who has a place in its own process takes one of all processes then; the rules are the same ones
(`wholefeed.fetch.hosts.places`), and so is what a request that has ended tells. Where what is shared cannot
be reached, the rules of the process alone go on.
"""

from __future__ import annotations

from typing import Protocol

from wholefeed.fetch.hosts.host import Outcome, Rest


class Entry(Protocol):
    """A request that goes on, with a place among all processes or, where none could be asked for, without."""

    @property
    def allowed(self) -> int | None:
        """How many requests its host gets at once; None where nobody could say."""


class SharedHosts(Protocol):
    """Hands out the places that all processes have together."""

    async def enter(self, host: str, port: int, *, is_new: bool, at_most: int | None) -> Entry | Rest:
        """Wait for a place at a host, or learn why there is none; `is_new`, `at_most` as in the gate's."""

    def leave(self, entry: Entry, outcome: Outcome | None) -> None:
        """A request is over; what it has found out, if anything. Takes no time."""
