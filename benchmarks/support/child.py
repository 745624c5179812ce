"""A publisher in its own process: prints its port on standard output, and ends with its input."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

STOP_SECONDS: Final = 10
_ROOT: Final = Path(__file__).parent.parent.parent


@contextlib.contextmanager
def running_child(module: str, argument: str) -> Iterator[int]:
    """Start a module of this folder, yield its port, and stop it at the end.

    Raises RuntimeError if it does not start.
    """
    with started_child(module, argument) as (port, _):
        yield port


@contextlib.contextmanager
def started_child(
    module: str, argument: str, *, python: str = sys.executable, import_path: str = ""
) -> Iterator[tuple[int, int]]:
    """Start a module with a chosen interpreter and PYTHONPATH; yield port and process number."""
    process = subprocess.Popen(
        [python, "-m", module, argument],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": import_path} if import_path else None,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().decode().strip()
        if not port:
            raise RuntimeError(f"{module} did not start: exit code {process.wait(STOP_SECONDS)}")
        yield int(port), process.pid
    finally:
        process.stdin.close()  # what it ends by
        process.stdout.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
