"""Where the replicas keep who does what: what `Shared` asks of it, and the tables of the shared database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from wholefeed.store.database import Database
from wholefeed.store.store import Store
from wholefeed.store.tables import leases, replicas
from wholefeed.store.tables.leases import Beat, End, LeaseRow, Looked, Taking


class Leases(Protocol):
    """Each coroutine is one transaction, and raises `StoreError` or `OverloadedError`.

    The other methods are called within a transaction of the store, in its thread.
    """

    async def take(self, taking: Taking) -> Looked:
        """Take a lease if its judge says so."""

    async def end(self, ends: Sequence[End]) -> None:
        """Give leases back, and wake who waits for them."""

    async def look(self, names: Sequence[str]) -> Mapping[str, LeaseRow]:
        """Return leases by name, those that there are."""

    async def beat(self, replica: str, progress: Sequence[tuple[str, str, str]]) -> Beat:
        """Give a sign of life, and tell how far things are: text, lease and token."""

    async def leave(self, replica: str) -> None:
        """Take a replica off at once."""

    async def orphans(self, limit: int) -> Sequence[int]:
        """Return feeds whose refresh has ended with its replica."""

    async def unfinished(self) -> Sequence[int]:
        """Return the feeds whose walk has not ended and that nobody is at."""

    async def forget_old(self) -> None:
        """Delete what nobody asks for any more."""

    def beat_in_thread(self, replica: str) -> bool:
        """Give a sign of life of a replica that is known, in a thread which waits; say whether it is known.

        Raises as the coroutines do.
        """

    def is_held(self, db: Database, name: str, token: str) -> bool:
        """Whether that taking of a lease is the one that counts."""

    def find(self, db: Database, name: str) -> LeaseRow | None:
        """Return a lease."""

    def take_new(self, db: Database, taking: Taking) -> Looked:
        """Take a lease on a feed in the transaction that makes it."""


class StoredLeases:
    """The tables `lease` and `replica` of the database that the replicas share.

    Args:
        store: On it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_held = leases.is_held
        self.find = leases.look
        self.take_new = leases.take

    async def take(self, taking: Taking) -> Looked:
        """Take a lease if its judge says so."""
        return await self._store.write_loosely(partial(leases.take, taking=taking))

    async def end(self, ends: Sequence[End]) -> None:
        """Give leases back, and wake who waits for them."""
        await self._store.write_loosely(partial(leases.end, ends=ends))

    async def look(self, names: Sequence[str]) -> Mapping[str, LeaseRow]:
        """Return leases by name, those that there are."""
        return await self._store.read(partial(leases.look_all, names=names))

    async def beat(self, replica: str, progress: Sequence[tuple[str, str, str]]) -> Beat:
        """Give a sign of life, and tell how far things are."""
        return await self._store.write_at_once(partial(leases.beat, replica=replica, progress=progress))

    def beat_in_thread(self, replica: str) -> bool:
        """Give a sign of life of a replica that is known, in a thread which waits; say whether it is."""
        return self._store.write_in_thread(partial(replicas.beat_again, name=replica))

    async def leave(self, replica: str) -> None:
        """Take a replica off at once."""
        # As `beat` does: a sign of life that is under way still would bring it back.
        await self._store.write_at_once(partial(replicas.leave, name=replica))

    async def orphans(self, limit: int) -> Sequence[int]:
        """Return feeds whose refresh has ended with its replica."""
        return await self._store.read(partial(leases.orphans, limit=limit))

    async def unfinished(self) -> Sequence[int]:
        """Return the feeds whose walk has not ended and that nobody is at."""
        return await self._store.read(leases.unfinished)

    async def forget_old(self) -> None:
        """Delete what nobody asks for any more."""
        await self._store.write_loosely(leases.forget_old)
