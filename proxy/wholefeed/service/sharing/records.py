"""What this replica knows of what replicas share of hosts: its last look, the clock, who is dead.

Everything goes through `swap`, one exchange at a time. An exchange that fails, or takes longer than a request
can wait for it, puts the replica on its own, and the next one that does neither ends that.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from wholefeed.errors import OverloadedError, StoreError
from wholefeed.futures import retrieve_failure
from wholefeed.loggers import get_logger
from wholefeed.store.postgres.hosts import SPARED_SECONDS, HostAnswer, HostChange, HostRow

log = get_logger()

LATE_SECONDS: Final = 0.5
"""An exchange that takes longer is not waited for."""
RETRY_SECONDS: Final = 1.0
"""Between two tries while the replica is on its own."""

_SEEN: Final = 4096
_SEEN_SECONDS: Final = SPARED_SECONDS / 2
_CLOCK_SECONDS: Final = 10.0
"""So long a look at the database's clock, and at who is dead, is good for."""
_SET_SECONDS: Final = 1.0
"""A clock that is so far back was set."""
_NOTHING: Final = HostRow("", "")


Swap = Callable[[Sequence[HostChange]], Awaitable[HostAnswer]]
"""`HostRows.swap`."""


class SharedRecords:
    """Belongs to one event loop.

    Args:
        name: Gives the name of this replica; another one when it was taken for dead.
        swap: Asks the database.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self, name: Callable[[], str], swap: Swap, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.clock = clock
        self.is_alone = False
        """Whether what is shared cannot be reached."""
        self.on_alone: Callable[[], None] = lambda: None
        """Called when that begins."""
        self.exchanges = 0
        """How often the database was asked."""
        self.conflicts = 0
        """How many changes were refused, since others had been faster."""
        self._name = name
        self._swap = swap
        self._lock = asyncio.Lock()
        self._seen: OrderedDict[str, tuple[HostRow, float]] = OrderedDict()
        self._stamps = 0
        self._ahead_seconds = 0.0
        self._ahead_at = -math.inf
        self._looked_at = -math.inf
        self.lost: frozenset[str] = frozenset()
        """Replicas that were dead at the last look."""

    @property
    def replica(self) -> str:
        """The name of this replica."""
        return self._name()

    @property
    def is_current(self) -> bool:
        """Whether the clock and the dead were looked at lately."""
        return self.clock() - self._looked_at < _CLOCK_SECONDS

    def now(self) -> float:
        """Return the database's time, or a little less."""
        return self.clock() + self._ahead_seconds

    def row(self, name: str) -> HostRow:
        """Return what is known of a host as of the last look."""
        row, at = self._seen.get(name, (_NOTHING, 0.0))
        return row if self.clock() - at < _SEEN_SECONDS else _NOTHING

    def change(self, name: str, state: str, kept_until: float, notices: Sequence[str] = ()) -> HostChange:
        """Return a change of what `row` returns; one that changes nothing is in nobody's way."""
        row = self.row(name)
        self._stamps += 1
        stamp = row.stamp if state == row.state and row.stamp else f"{self.replica}/{self._stamps}"
        return HostChange(name, row.stamp, stamp, state, kept_until, tuple(notices))

    async def look(self) -> bool:
        """Look at the clock and at who is dead; return whether that could be done."""
        return await self.exchange(lambda: ()) is not None

    async def exchange(self, make: Callable[[], Sequence[HostChange]]) -> dict[str, bool] | None:
        """Put changes in the place of what they were made from; return which ones are there now.

        One that is late is told to `on_alone`, and its result comes all the same.

        Args:
            make: Returns the changes.

        Returns:
            By host; None where it failed: nobody knows then what has become of them.
        """
        async with self._lock:
            changes = make()
            self.exchanges += 1
            begun_at = self.clock()
            asking = asyncio.ensure_future(self._swap(changes))
            asking.add_done_callback(retrieve_failure)
            done, _ = await asyncio.wait({asking}, timeout=LATE_SECONDS)
            if not done:
                self.go_alone("the database does not answer in time")
            try:
                answer = await asyncio.shield(asking)
            except (StoreError, OverloadedError) as exc:
                self.go_alone(str(exc))
                return None
            self._look(answer)
            if done and self.is_alone:
                self.is_alone = False
                log.info("hosts.shared", seconds=round(self.clock() - begun_at, 3))
            results = {each.name: answer.rows[each.name].stamp == each.stamp for each in changes}
            self.conflicts += sum(not is_there for is_there in results.values())
            return results

    def _look(self, answer: HostAnswer) -> None:
        """Keep what was answered."""
        at = self._looked_at = self.clock()
        ahead_seconds = answer.now - at
        # What is answered is as old as its way: of the looks of some seconds the one that took least time is
        # the best, unless the database's clock was set.
        gain_seconds = ahead_seconds - self._ahead_seconds
        if not -_SET_SECONDS < gain_seconds < 0 or at - self._ahead_at > _CLOCK_SECONDS:
            self._ahead_seconds, self._ahead_at = ahead_seconds, at
        self.lost = answer.lost - {self.replica}
        for name, row in answer.rows.items():
            self._seen.pop(name, None)
            self._seen[name] = (row, at)
        while len(self._seen) > _SEEN:
            self._seen.popitem(last=False)

    def go_alone(self, reason: str) -> None:
        """Go by this replica's own rules until an exchange is made in time."""
        if not self.is_alone:
            self.is_alone = True
            log.warning("hosts.unshared", reason=reason)
        self.on_alone()
