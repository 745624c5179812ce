"""An empty SQLite store, made once a process: applying the migrations takes longer than many a test."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from wholefeed.store.sqlite_file import migrate_file


@cache
def image() -> bytes:
    """The content of a new file of `wholefeed migrate`."""
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside_the_loop:
        path = Path(folder) / "store.db"
        beside_the_loop.submit(lambda: asyncio.run(migrate_file(path))).result()
        return path.read_bytes()


def put_at(path: Path) -> None:
    """Write such a file if missing, readable by its owner alone."""
    if not path.exists():
        path.touch(0o600)
        path.write_bytes(image())
