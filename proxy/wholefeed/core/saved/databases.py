"""The table of SQLite databases that feed readers keep (I4)."""

from __future__ import annotations

from typing import Final

from wholefeed.core.saved.lemon24 import LEMON24
from wholefeed.core.saved.liferea import LIFEREA
from wholefeed.core.saved.netnewswire import NETNEWSWIRE
from wholefeed.core.saved.newsboat import NEWSBOAT
from wholefeed.core.saved.reader_tables import ReaderDatabase

DATABASES: Final[tuple[ReaderDatabase, ...]] = (NEWSBOAT, NETNEWSWIRE, LEMON24, LIFEREA)
