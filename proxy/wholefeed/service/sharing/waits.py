"""Waiting for what another replica does, and following how far it is.

    with waits.waiting(name, heard) as wait:
        await wait.woken()

A notice of the database wakes whoever waits. One may be lost, and who dies sends none: so what is waited for
is looked at each second, all of it in one query.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.service.sharing.leases import Leases

LOOK_SECONDS: Final = 1.0

Heard = Callable[[str], None]
"""Told the progress in a lease."""


class Wait:
    """One that waits.

    Args:
        heard: As `Heard`.
    """

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self._event = asyncio.Event()

    def wake(self) -> None:
        """Let it look again."""
        self._event.set()

    async def woken(self) -> None:
        """Wait until what is waited for may have ended."""
        await self._event.wait()
        self._event.clear()


class Waits:
    """All that wait in one process.

    Args:
        leases: Where they look.
    """

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._waits: dict[str, list[Wait]] = {}
        self._has_any = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waits)

    @contextmanager
    def waiting(self, name: str, heard: Heard) -> Iterator[Wait]:
        """Be woken for a lease; from before it is looked at, so that no notice is missed."""
        wait = Wait(heard)
        self._waits.setdefault(name, []).append(wait)
        try:
            yield wait
        finally:
            self._waits[name].remove(wait)
            if not self._waits[name]:
                del self._waits[name]

    def is_awaited(self, name: str) -> bool:
        """Whether anybody here waits for a lease."""
        return name in self._waits

    def follow(self) -> None:
        """Have leases looked at: somebody waits now."""
        self._has_any.set()

    def wake(self, name: str) -> None:
        """Wake whoever waits for a lease."""
        for wait in self._waits.get(name, ()):
            wait.wake()

    def wake_all(self) -> None:
        """Wake everybody: notices may have been lost."""
        for name in list(self._waits):
            self.wake(name)

    async def run(self) -> None:
        """Look from time to time at what is waited for, until cancelled."""
        while True:
            await self._has_any.wait()
            await asyncio.sleep(LOOK_SECONDS)
            if not self._waits:
                self._has_any.clear()
                continue
            try:
                found = await self._leases.look(list(self._waits))
            except (StoreError, OverloadedError):
                continue
            for name, waits in list(self._waits.items()):
                lease = found.get(name)
                for wait in waits:
                    if lease is None or not lease.is_live:
                        wait.wake()
                    else:
                        wait.heard(lease.progress)
