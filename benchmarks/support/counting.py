"""The server, with a count of calls to SQLite's threads: `python counting.py wholefeed serve`.

aiosqlite passes each call to a connection's thread through a queue. Here the queue counts the calls into a
file, named in the environment. The measured checkout may have its own benchmarks: this file runs alone and
imports nothing beside it.
"""

from __future__ import annotations

import mmap
import os
import queue
import runpy
import struct
import sys
from pathlib import Path
from typing import Any, Final

FILE: Final = "BENCHMARK_HOPS"
"""The environment variable with the file's path."""
_COUNT: Final = struct.Struct("<Q")


def read_hops(path: Path) -> int:
    return int(_COUNT.unpack_from(path.read_bytes())[0])


def write_zero(path: Path) -> None:
    path.write_bytes(_COUNT.pack(0))


def _main() -> None:
    sys.path[0] = ""
    import aiosqlite.core  # noqa: PLC0415 - of the checkout that is measured

    with Path(os.environ[FILE]).open("r+b") as file:
        count = mmap.mmap(file.fileno(), _COUNT.size)

    class Counting(queue.SimpleQueue[Any]):
        """A queue with a counter, used on the loop's thread alone."""

        def put_nowait(self, item: Any) -> None:
            count[:] = _COUNT.pack(_COUNT.unpack(count[:])[0] + 1)
            super().put_nowait(item)

    aiosqlite.core.SimpleQueue = Counting  # type: ignore[attr-defined]
    module = sys.argv.pop(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
