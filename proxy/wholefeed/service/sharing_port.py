"""How a service shares its work with others on the same store; `Sharing` itself is of one that is alone.

    await sharing.refresh(wanted, work)         # at most one a feed, wherever it runs
    opened = await sharing.open(url, work)      # the same for a URL that leads to no known feed

What is shared takes part at the places where a flight begins; whoever waits for a flight need not know.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from wholefeed.service.results import UnderWay
from wholefeed.store.base import Database
from wholefeed.store.rows import FeedRow

T = TypeVar("T")


class Sharing:
    """What a service asks of whatever shares its work; `wholefeed.service.sharing.Shared` is of replicas.

    One process on a store of its own does everything itself, and asks nobody first.
    """

    is_shared = False
    """Whether there may be others."""

    @property
    def replicas(self) -> int:
        """How many share the work, as far as is known."""
        return 1

    async def refresh(self, wanted: Wanted, work: RefreshWork) -> bool:
        """Have a feed refreshed; return whether that was done here. Of a shared store.

        Raises:
            DocumentError: As the refresh did, wherever it ran.
            UnknownFeedError: The feed was forgotten.
            LeaseLostError: The others may take this replica for dead.
        """
        raise NotImplementedError

    async def open(
        self, url: str, work: Callable[[], Coroutine[Any, Any, T]], *, is_choosing: bool = False
    ) -> T:
        """Open a URL, when no other replica does; what another one could not open, fails in the same way."""
        return await work()

    def require(self) -> None:
        """Make sure that the others take this replica for alive.

        Raises:
            LeaseLostError: They may not.
        """

    def fence(self, feed: int) -> Fence | None:
        """Return what each transaction of the refresh under way begins with; None: nothing."""
        return None

    def claim_new(self, db: Database, feed: int) -> Callable[[], None]:
        """Take a feed for its first refresh in the transaction that makes it; call the result after that."""
        return lambda: None

    async def claim(self, feed: int, is_wanted: Callable[[FeedRow], bool]) -> FeedRow | None:
        """Take a feed for a refresh that is begun next; None: another has it, or it is not wanted now.

        Of a shared store.
        """
        raise NotImplementedError

    def release(self, feed: int) -> None:
        """Give back what was claimed, or what a refresh that was cancelled leaves."""

    @asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[bool]:
        """Do something that one replica does at a time; yields whether this is the one."""
        yield True

    def elsewhere(self, db: Database, feed: int) -> UnderWay | None:
        """Return how far another replica is with the refresh of a feed; None: none is at it."""
        return None

    async def adopt(self, is_wanted: Callable[[FeedRow], bool], begin: Callable[[FeedRow], object]) -> None:
        """Take up what replicas that died have left, until cancelled; return where there are none."""


RefreshWork = Callable[[FeedRow], Coroutine[Any, Any, None]]
"""Refreshes a feed, as it is stored now."""
Fence = Callable[[Database], None]
"""Makes sure, in a transaction, that a refresh is still this replica's; raises `LeaseLostError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A refresh that is wanted."""

    feed: FeedRow
    """As it was known."""
    insists: Callable[[bool], bool]
    """Whether it is to be done whatever is stored; given whether another replica has been waited for."""
    is_due: Callable[[FeedRow], bool]
    """Whether the feed, as it is stored now, has anything to be done; called in a connection's thread."""
    tell: Callable[[], UnderWay]
    """How far it is, for the others."""
    heard: Callable[[UnderWay | None], None]
    """Told how far another one is with it; None: it has ended."""
