"""Duration of /healthz during other work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.support.client import get, open_client
from benchmarks.support.report import expect
from benchmarks.support.server import Server

_PAUSE_SECONDS: Final = 0.005


@contextmanager
def asking_health(server: Server) -> Iterator[list[float]]:
    """Ask for /healthz repeatedly; yield the seconds of each answer, sorted at the end."""
    is_over, durations = threading.Event(), list[float]()
    asking = threading.Thread(target=_ask, args=(server, is_over, durations))
    asking.start()
    try:
        yield durations
    finally:
        is_over.set()
        asking.join()
        durations.sort()


def _ask(server: Server, is_over: threading.Event, durations: list[float]) -> None:
    request = get("/healthz", server.port)
    with open_client(server.port) as client:
        while not is_over.is_set():
            began = time.perf_counter()
            expect("status", client.ask(request).status, 200)
            durations.append(time.perf_counter() - began)
            time.sleep(_PAUSE_SECONDS)
