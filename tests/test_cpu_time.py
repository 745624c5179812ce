"""tests.cpu_time: what counts as computing, and what does not."""

from __future__ import annotations

import gc
import threading
import time

import pytest

from tests.cpu_time import SLOW_MACHINE, cpu_limit


def compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_computing_beyond_the_limit_fails() -> None:
    """Twice what a slow machine may take; the collector is on again afterwards."""
    with pytest.raises(AssertionError, match="s of computing"), cpu_limit(0.01):
        compute(0.02 * SLOW_MACHINE)
    assert gc.isenabled()


def test_other_threads_do_not_count() -> None:
    """A server of an earlier test may still be ending."""
    other = threading.Thread(target=compute, args=(0.02 * SLOW_MACHINE,))
    with cpu_limit(0.01):
        other.start()
        other.join()
