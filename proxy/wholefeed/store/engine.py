"""What the store stands on: SQLite in a file of this process, or PostgreSQL that replicas share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from wholefeed.store.base import Condition, Database, Traffic

if TYPE_CHECKING:  # a file can be copied, or looked at, without the rows and what they are made of
    from wholefeed.store.tables.feeds import Version

_T = TypeVar("_T")


class Sizes(NamedTuple):
    """How large a store is."""

    used_bytes: int
    """What is stored, without what waits to be deleted."""
    file_bytes: int
    """With what is not yet in the file, and with what is free in it."""
    free_bytes: int | None
    """On the volume; None: nobody knows here."""


class Engine(Protocol):
    """A database that is open. Work is a function over a connection; it runs in that connection's thread.

    What reads and writes raises `StoreError`, `StorageFullError` when nothing can be written,
    `StoreDamagedError`, and `OverloadedError` when the database cannot be asked now or the store is being
    closed.
    """

    on_change: Callable[[int], None]
    """Told the number of each feed that a commit has changed, on the event loop, before whoever asked for it
    is answered; also where a COMMIT is said to have failed, which may be done. Nothing is told of what failed
    before: the feed is what it was."""

    @property
    def condition(self) -> Condition:
        """What is known of how the database fares."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes change what is stored."""

    @property
    def traffic(self) -> Traffic:
        """What goes on between it and the database."""

    @property
    def measure(self) -> Callable[[Database], Sizes]:
        """What finds out how large the store is: a function to be read with."""

    @property
    def measure_feed(self) -> Callable[[Database, int], int] | None:
        """What finds out how much less is stored without a feed; None where all is measured in no time."""

    def read(
        self,
        work: Callable[[Database], _T],
        *,
        is_first: bool = False,
        is_long: bool = False,
        is_single: bool = False,
    ) -> Coroutine[Any, Any, _T]:
        """Return what a function finds; all of it is of one moment.

        Args:
            work: It changes nothing.
            is_first: Whether whoever asks has only come, and may wait until others are further.
            is_long: Whether it looks at all that is stored, which may take minutes; no reader waits for it.
            is_single: Whether it is one SELECT, which needs no transaction.
        """

    def write(
        self,
        work: Callable[[Database], _T],
        *,
        feed: int | None = None,
        is_alone: bool = False,
        is_lasting: bool = True,
        tell: Callable[[_T], None] | None = None,
    ) -> Coroutine[Any, Any, _T]:
        """Let a function change what is stored, all of it or nothing, and return its result.

        Args:
            work: It may run twice, so it does nothing but SQL.
            feed: The feed that it changes; None where it changes none that is known yet.
            is_alone: Whether its transaction is not to be shared.
            is_lasting: Whether a crash of the machine that the database is on may not undo it; else nothing
                waits for its disk. What lasts takes with it all that was written before.
            tell: Told the result, instead of `on_change` that the feed has changed.
        """

    def write_in_thread(self, work: Callable[[Database], _T]) -> _T:
        """As `write_at_once`, in a thread that waits for it; of a shared database."""

    def write_at_once(self, work: Callable[[Database], _T]) -> Coroutine[Any, Any, _T]:
        """As `write`, whatever else waits for the database: for what is worth nothing when it comes late."""

    def listen(self, kind: str, callback: Callable[[str], None]) -> None:
        """Have a function told, on the event loop, the words of each notice of a kind (pg_notify)."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Have a function called when notices come again after a time in which some may have been missed."""

    def on_replaced(self, callback: Callable[[], None]) -> None:
        """Have a function called before those, where the database may be another one than before."""

    def versions(self, feeds: Collection[int]) -> Coroutine[Any, Any, Mapping[int, Version]]:
        """Return what feeds are now, those that there are: a read as cheap as there is one."""
