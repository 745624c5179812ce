"""What goes on between the store and its database, in numbers for `/metrics`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Traffic:
    """Belongs to one engine. Threads count; SQLite has nothing to count, for its file is never away."""

    __slots__ = ("_changing", "busy", "connections", "lost", "notices_lost", "repeated", "waiting")

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self.connections = 0
        """That are open."""
        self.busy = 0
        """Of them, those that do something."""
        self.waiting = 0
        """What waits for one of them."""
        self.repeated = 0
        """Transactions that were begun again."""
        self.lost = 0
        """Connections that broke off, or could not be made."""
        self.notices_lost = 0
        """How often the connection that listens broke off."""

    def asked(self) -> None:
        """Count what waits from now on."""
        with self._changing:
            self.waiting += 1

    def left(self) -> None:
        """Count what has waited, and does so no more, as never begun."""
        with self._changing:
            self.waiting -= 1

    @contextmanager
    def work(self) -> Iterator[None]:
        """Count what has waited as under way, until exit."""
        with self._changing:
            self.waiting -= 1
            self.busy += 1
        try:
            yield
        finally:
            with self._changing:
                self.busy -= 1

    def again(self) -> None:
        """Count a repetition."""
        with self._changing:
            self.repeated += 1

    def connected(self) -> None:
        """Count a connection that was made."""
        with self._changing:
            self.connections += 1

    def disconnected(self, *, was_open: bool) -> None:
        """Count a connection that is gone, or one that could not be made."""
        with self._changing:
            self.connections -= was_open
            self.lost += 1
