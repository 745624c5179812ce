"""How large the database file is."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from wholefeed.store.database import Database
from wholefeed.store.engine import Sizes
from wholefeed.store.statements import fetch_value

_RETIRED_BYTES: Final = "SELECT coalesce(sum(deflated_bytes), 0) FROM segment WHERE retired_at IS NOT NULL"
_DATABASE: Final = "SELECT file FROM pragma_database_list WHERE name = 'main'"
_FILES: Final = ("", "-wal")


def measure(db: Database) -> Sizes:
    """Return what the pages in use come to, without segments that wait to be deleted, and how large it is."""
    pages = fetch_value(db, "PRAGMA page_count")
    free = fetch_value(db, "PRAGMA freelist_count")
    page_bytes = fetch_value(db, "PRAGMA page_size")
    path = Path(fetch_value(db, _DATABASE))
    files = [path.with_name(path.name + end) for end in _FILES]
    return Sizes(
        used_bytes=int((pages - free) * page_bytes - fetch_value(db, _RETIRED_BYTES)),
        file_bytes=sum(file.stat().st_size for file in files if file.exists()),
        free_bytes=shutil.disk_usage(path.parent).free,
    )
