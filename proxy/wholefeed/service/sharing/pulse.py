"""The signs of life of a replica, and a thread that gives them while the event loop is late.

    pulse = Pulse(leases.beat_in_thread)
    with pulse.beating():
        pulse.given("a replica's name", at=time.monotonic())    # the loop has given one itself
        pulse.silent_seconds

An event loop with thousands of requests before it comes round after seconds only. Its replica is alive all
the same: taken for dead, what it has just fetched would be fetched again by another (94 of 381 documents,
three replicas that were asked three times as much as two cores could answer).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from wholefeed.errors import OverloadedError, StoreError

BEAT_SECONDS: Final = 2.0
"""Between two signs of life."""
CUT_OFF_SECONDS: Final = 5.0
"""Less than `replicas.DEAD_SECONDS`."""
STUCK_SECONDS: Final = 30.0
"""A loop that has not come round for so long is not alive."""
_LOOK_SECONDS: Final = 0.25
_LATE_SECONDS: Final = BEAT_SECONDS + 0.5


class Pulse:
    """Belongs to one process.

    Args:
        beat: Gives a sign of life under a name that the others know, and says whether they still know it.
            Called in the thread; it raises `StoreError` or `OverloadedError`.
        clock: Monotonic seconds.
    """

    def __init__(self, beat: Callable[[str], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._beat = beat
        self._clock = clock
        self._changing = threading.Lock()
        self._name = ""
        """Empty: the others know none."""
        self._given_at = -math.inf
        self._seen_at = clock()
        """When the loop was seen to come round."""

    @property
    def silent_seconds(self) -> float:
        """Since the last sign of life; endless where the others know of none."""
        return self._clock() - self._given_at

    def seen(self) -> None:
        """Note that the loop has come round."""
        self._seen_at = self._clock()

    def given(self, name: str, *, at: float, by_loop: bool = True) -> None:
        """Note that a sign of life was given.

        Args:
            name: Under which.
            at: When it was sent.
            by_loop: Whether the loop has given it, under another name perhaps; of the thread's one counts
                only if the name is the same still.
        """
        with self._changing:
            if name == self._name:
                self._given_at = max(self._given_at, at)
            elif by_loop:
                self._name, self._given_at = name, at

    def stop(self) -> None:
        """Give none any more until the loop has given another one."""
        with self._changing:
            self._name, self._given_at = "", -math.inf

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Stand in for the loop until exit."""
        is_over = threading.Event()
        threading.Thread(target=self._run, args=(is_over,), name="pulse", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()  # one that is being given revives nobody: see `beat`

    def _run(self, is_over: threading.Event) -> None:
        while not is_over.wait(_LOOK_SECONDS):
            sent_at, name, silent_seconds = self._clock(), self._name, self.silent_seconds
            is_stuck = sent_at - self._seen_at > STUCK_SECONDS
            if not name or is_stuck or not _LATE_SECONDS <= silent_seconds < CUT_OFF_SECONDS:
                continue
            try:
                is_known = self._beat(name)
            except (StoreError, OverloadedError):
                continue
            if is_known:
                self.given(name, at=sent_at, by_loop=False)
