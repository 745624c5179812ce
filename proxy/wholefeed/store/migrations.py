"""The migrations of each engine: numbered SQL files, in the wheel or the source tree.

SQLite's begin with 0001, PostgreSQL's later. From there on a number names the same schema in both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

from wholefeed.errors import StoreUnusableError

EngineName = Literal["sqlite", "postgres"]

_NAME: Final = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_FIRST: Final[dict[EngineName, int]] = {"sqlite": 1, "postgres": 13}
_FOLDER: Final[dict[EngineName, str]] = {"sqlite": "", "postgres": "postgres"}


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str


def read_migrations(engine: EngineName = "sqlite") -> tuple[Migration, ...]:
    """Read an engine's NNNN_name.sql. Blocks.

    Raises:
        StoreUnusableError: Broken installation: a gap, a number used twice, or no file.
    """
    packed = files("wholefeed") / "_migrations"
    source = Path(__file__).resolve().parents[3] / "migrations"
    directory = (packed if packed.is_dir() else source) / _FOLDER[engine]
    if not directory.is_dir():
        raise StoreUnusableError(f"expected migrations in {directory}, got no such directory")
    names = [(match, item) for item in directory.iterdir() if (match := _NAME.fullmatch(item.name))]
    found = [
        Migration(int(match[1]), item.name.removesuffix(".sql"), item.read_text("utf-8"))
        for match, item in names
    ]
    found.sort(key=lambda migration: migration.version)
    first = _FIRST[engine]
    if not found or [migration.version for migration in found] != list(range(first, first + len(found))):
        raise StoreUnusableError(
            f"expected migrations {first:04}, {first + 1:04}, ... without a gap in {directory}"
        )
    return tuple(found)
