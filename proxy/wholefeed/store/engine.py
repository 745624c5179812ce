"""What the store stands on: SQLite in a file of this process, or PostgreSQL that replicas share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from wholefeed.store.base import Condition, Database, Sizes, Traffic
from wholefeed.store.tables.feeds import Version, read_versions

_T = TypeVar("_T")


class Engine:
    """A database that is open. Work is a function over a connection; it runs in that connection's thread.

    What reads and writes raises `StoreError`, `StorageFullError` when nothing can be written,
    `StoreDamagedError`, and `OverloadedError` when the database cannot be asked now or the store is being
    closed. What only a shared database can tell is never told here.
    """

    is_shared = False
    """Whether other processes change what is stored."""
    measure: Callable[[Database], Sizes]
    """What finds out how large the store is: a function to be read with."""
    measure_feed: Callable[[Database, int], int] | None = None
    """What finds out how much less is stored without a feed; None where all is measured in no time."""

    def __init__(self) -> None:
        self.condition = Condition()
        """What is known of how the database fares."""
        self.on_change: Callable[[int], None] = lambda _: None
        """Told the number of each feed that a commit has changed, on the event loop, before whoever asked for
        it is answered; also where a COMMIT is said to have failed, which may be done. Nothing is told of what
        failed before: the feed is what it was."""

    @property
    def traffic(self) -> Traffic:
        """What goes on between it and the database."""
        return Traffic()

    async def read(
        self,
        work: Callable[[Database], _T],
        *,
        is_first: bool = False,
        is_long: bool = False,
        is_single: bool = False,
    ) -> _T:
        """Return what a function finds; all of it is of one moment.

        Args:
            work: It changes nothing.
            is_first: Whether whoever asks has only come, and may wait until others are further.
            is_long: Whether it looks at all that is stored, which may take minutes; no reader waits for it.
            is_single: Whether it is one SELECT, which needs no transaction.
        """
        raise NotImplementedError

    async def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        is_lasting: bool = True,
        tell: Callable[[_T], None] | None = None,
    ) -> _T:
        """Let a function change what is stored, all of it or nothing, and return its result.

        Args:
            work: It may run twice, so it does nothing but SQL.
            feed: The feed that it changes; None where it changes none that is known yet.
            is_alone: Whether its transaction is not to be shared.
            is_lasting: Whether a crash of the machine that the database is on may not undo it; else nothing
                waits for its disk. What lasts takes with it all that was written before.
            tell: Told the result, instead of `on_change` that the feed has changed.
        """
        raise NotImplementedError

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """As `write_at_once`, in a thread that waits for it; of a shared database."""
        raise NotImplementedError

    async def write_at_once(self, work: Callable[[Database], _T]) -> _T:
        """As `write`, whatever else waits, for what is worth nothing when it comes late; of a shared one."""
        raise NotImplementedError

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Have a function told, on the event loop, the words of each notice of a kind (pg_notify)."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have a function called when notices come again after a time in which some may have been missed."""

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Have a function called before those, where the database may be another one than before."""

    async def versions(self, feeds: Collection[int]) -> Mapping[int, Version]:
        """Return what feeds are now, those that there are: a read as cheap as there is one."""
        return await self.read(lambda db: read_versions(db, feeds), is_single=True)
