"""Output of benchmarks: command, machine, table; a wrong result ends the program."""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import Sequence


def begin() -> None:
    """Print command and machine; let SIGTERM end the program in order, as Ctrl-C does."""
    signal.signal(signal.SIGTERM, _end)
    name = getattr(sys.modules["__main__"].__spec__, "name", sys.argv[0])
    print("command: python -m", " ".join([name, *sys.argv[1:]]))
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"Python {platform.python_version()}, {machine}", flush=True)


def _end(_number: int, _frame: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


class Table:
    """Rows that are shown as they come.

    Args:
        first: The heading of the first column, which is wide.
        others: Those of the other columns, set to the right.
        first_width: Characters of the first column.
    """

    def __init__(self, first: str, *others: str, first_width: int = 46) -> None:
        self._first_width = first_width
        self._widths = [max(13, len(other) + 2) for other in others]
        self.row(first, *others)

    def row(self, first: str, *others: str) -> None:
        """Print a row; missing cells at its end stay empty."""
        assert len(others) <= len(self._widths), "a cell for each column at most"
        cells = [f" {other:>{width - 1}}" for other, width in zip(others, self._widths, strict=False)]
        print(f"{first:<{self._first_width}}{''.join(cells)}", flush=True)


def expect(what: str, found: object, expected: object) -> None:
    """End the program when a result is wrong: then no figure counts.

    Raises:
        SystemExit: It is wrong.
    """
    if found != expected:
        sys.exit(f"WRONG {what}: expected {expected}, got {found}")


def seconds(values: Sequence[float]) -> str:
    """Return the shortest and longest duration for a table: `1.23-1.31`."""
    return f"{min(values):.2f}-{max(values):.2f}"
