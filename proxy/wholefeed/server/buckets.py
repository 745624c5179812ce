"""How much each client may ask: a token bucket a client, for as many clients as are worth remembering.

buckets = Buckets(per_minute=60)
wait_seconds = buckets.take("192.0.2.7", now)       # 0.0: let it in
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MAX_CLIENTS: Final = 10_000
_MINUTE_SECONDS: Final = 60.0
_ROUNDING_SECONDS: Final = 1e-6
"""What sums of fractions may be off by."""


class Buckets:
    """A bucket holds what a client may ask in a minute, and fills evenly.

    A client that has asked nothing for a minute has a full bucket, and so has one that is not remembered;
    beyond `max_clients` those who asked longest ago are forgotten.

    Args:
        per_minute: Requests; at least 1.
        max_clients: How many are remembered.
    """

    def __init__(self, per_minute: int, max_clients: int = MAX_CLIENTS) -> None:
        self._per_minute = per_minute
        self._max_clients = max_clients
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        """Return how many clients are remembered."""
        return len(self._full_at)

    def take(self, client: str, now: float) -> float:
        """Take one request out of a client's bucket; return 0, or the seconds until there is one.

        A request that is refused takes nothing.

        Args:
            client: Whose.
            now: Monotonic seconds.
        """
        step_seconds = _MINUTE_SECONDS / self._per_minute
        full_at = max(self._full_at.get(client, now), now) + step_seconds
        wait_seconds = full_at - _MINUTE_SECONDS - now
        if wait_seconds > _ROUNDING_SECONDS:
            return wait_seconds
        self._full_at[client] = full_at
        self._full_at.move_to_end(client)
        if len(self._full_at) > self._max_clients:
            self._full_at.popitem(last=False)
        return 0.0
