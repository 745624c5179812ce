"""What is written to find out whether there is room again."""

from __future__ import annotations

from typing import Final

from wholefeed.store.database import Database
from wholefeed.store.statements import either, fetch_value, run

_READ: Final = "SELECT count(*) FROM probe"
_WRITE: Final = either(
    sqlite="REPLACE INTO probe (id, filler) VALUES (1, randomblob(16384))",
    # Random, since what repeats itself is stored in a few bytes.
    postgres="""
        INSERT INTO probe (id, filler)
        SELECT 1, decode(string_agg(md5(random()::text), ''), 'hex') FROM generate_series(1, 1024)
        ON CONFLICT (id) DO UPDATE SET filler = excluded.filler
    """,
)


def read(db: Database) -> None:
    """Ask the database something."""
    fetch_value(db, _READ)


def write(db: Database) -> None:
    """Write 16 KiB, in place of those before."""
    run(db, _WRITE)
