"""A store that is there already, as an earlier version would have left it.

async with running(aged.config, clock) as proxy: ...
aged.age(15)
async with running(aged.config, clock) as proxy: ...
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from tests.postgres import Cluster
from tests.running import a_config
from tests.sqlite_faults import rows

UNDOING = {
    15: ("DELETE FROM settled", "DROP INDEX settled_unknown", "ALTER TABLE settled DROP COLUMN is_withdrawn"),
    16: (
        "ALTER TABLE entry DROP COLUMN fullness",
        "ALTER TABLE entry DROP COLUMN made_at",
        "UPDATE document SET parser_version = 7",
    ),
    17: (
        "DROP INDEX feed_failed",
        *(
            f"ALTER TABLE feed DROP COLUMN {column}"
            for column in ("family_since", "failed_at", "cache_control", "expires")
        ),
    ),
    18: ("DROP TABLE member",),
    19: ("ALTER TABLE feed DROP COLUMN title", "ALTER TABLE feed DROP COLUMN site"),
    21: ("ALTER TABLE feed DROP COLUMN lines_begun", "DROP TABLE line", "DROP TABLE lined"),
    22: (
        "DROP INDEX feed_list_at",
        *(f"ALTER TABLE feed DROP COLUMN {column}" for column in ("listing", "listed", "list_at")),
    ),
    24: (
        "DROP INDEX settled_doubtful",
        "ALTER TABLE settled DROP COLUMN is_doubtful",
        "ALTER TABLE feed DROP COLUMN shifts",
    ),
    23: ("ALTER TABLE feed DROP COLUMN had_at", "ALTER TABLE feed DROP COLUMN doubts"),
    25: (
        *(
            "DROP TABLE trait",
            "DROP TABLE other_id",
            "DROP INDEX entry_own",
            "ALTER TABLE entry DROP COLUMN own",
        ),
        *(
            f"ALTER TABLE feed DROP COLUMN {each}"
            for each in ("renamed", "renamed_since", "renaming_at", "renaming_looks")
        ),
    ),
    26: ("ALTER TABLE document DROP COLUMN origin",),
    27: (
        *(f"DROP TABLE {each}" for each in ("page_text_body", "page_text", "text_plan")),
        *(f"ALTER TABLE feed DROP COLUMN {each}" for each in ("texts_wanted", "texts", "texts_at")),
    ),
    28: tuple(f"DROP TABLE {each}" for each in ("intake_feed", "intake_list", "intake")),
}
"""Statements that remove each schema version's additions."""


class Aged:
    """A store in a folder, or in a PostgreSQL."""

    def __init__(self, folder: Path, url: str, cluster: Cluster | None) -> None:
        self.config = a_config(folder, store={"url": url})
        self._cluster = cluster

    def run(self, *statements: str) -> None:
        url, path = self.config.store.url, Path(self.config.store.path)
        for sql in statements:
            if self._cluster is not None:
                self._cluster.run(sql, url)
            else:
                rows(path, sql)

    def age(self, version: int) -> None:
        """Take it back to a version of the schema."""
        for number in sorted(UNDOING, reverse=True):
            if number > version:
                self.run(*UNDOING[number])
        is_shared = self._cluster is not None
        to = "UPDATE wholefeed_schema SET version =" if is_shared else "PRAGMA user_version ="
        self.run(f"{to} {version}")


async def copied(folder: Path, copy: Path, to: str) -> None:
    """Move a folder's SQLite store to a PostgreSQL with `migrate --to`; without one, back it up."""
    copy.mkdir()
    command = ["migrate", "--to", to] if to else ["backup", str(copy / "wholefeed.db")]
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "wholefeed", *command],
        env={**os.environ, "WHOLEFEED_STORE_PATH": str(folder / "wholefeed.db")},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
