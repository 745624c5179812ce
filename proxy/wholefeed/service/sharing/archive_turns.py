"""The turns at a web archive that all replicas have together (R33).

A replica that takes one when all of a minute are taken reserves the first that there will be: one exchange a
turn, and nobody is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from wholefeed.service.sharing.records import SharedRecords
from wholefeed.store.postgres.hosts import HostChange

_MINUTE_SECONDS: Final = 60.0
_MAX_TRIES: Final = 8
"""Of one turn, where others are faster."""


def next_turn(taken: Sequence[float], per_minute: int, *, now: float) -> float:
    """Return when there is one more turn, those that were taken or reserved being these, in order."""
    if len(taken) < per_minute:
        return now
    return max(now, taken[-per_minute] + _MINUTE_SECONDS)


class ReplicaTurns:
    """The turns at one archive.

    Args:
        records: What is known of hosts, and of this.
        archive: Its URL.
        per_minute: How many turns any minute has.
    """

    def __init__(self, records: SharedRecords, archive: str, *, per_minute: int) -> None:
        self._records = records
        self._name = f"turns at {archive}"  # no host has a name with spaces
        self._per_minute = per_minute

    async def reserve(self) -> float:
        """Take the next turn, and return in how many seconds it is; 0 where nobody can say."""
        records = self._records
        turn_at = 0.0

        def make() -> list[HostChange]:
            nonlocal turn_at
            now = records.now()
            taken = json.loads(records.row(self._name).state or "[]")
            turn_at = next_turn(taken, self._per_minute, now=now)
            state = json.dumps([*taken, turn_at][-self._per_minute :])
            return [records.change(self._name, state, turn_at + _MINUTE_SECONDS)]

        for _ in range(_MAX_TRIES):
            if records.is_alone:
                break
            if not records.is_current:
                await records.look()
                continue
            results = await records.exchange(make)
            if results and results[self._name]:
                return max(0.0, turn_at - records.now())
        return 0.0
