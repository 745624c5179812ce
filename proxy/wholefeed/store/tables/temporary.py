"""The tables in which a change collects what it concerns (`wholefeed.store.tables.live`)."""

from __future__ import annotations

from typing import Final

from wholefeed.store.statements import either

TEMPORARY_TABLES: Final = either(
    sqlite="""
        CREATE TEMP TABLE concerned (
            identity BLOB NOT NULL PRIMARY KEY, is_full INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TEMP TABLE changed (document INTEGER NOT NULL PRIMARY KEY) STRICT;
        CREATE TEMP TABLE contested (
            identity BLOB NOT NULL PRIMARY KEY, is_full INTEGER NOT NULL, is_gone INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TEMP TABLE decided (
            document INTEGER NOT NULL, ordinal INTEGER NOT NULL, is_live INTEGER NOT NULL,
            PRIMARY KEY (document, ordinal)
        ) STRICT, WITHOUT ROWID;
    """,
    # One that was never analysed is taken for thousands of rows, and walked through for those of others.
    # Not ON COMMIT DELETE ROWS: it cuts the files at each COMMIT, and their plans are made again.
    # That took 8 of the 27 ms of a document.
    postgres="""
        CREATE TEMP TABLE concerned (
            identity bytea PRIMARY KEY, is_full smallint NOT NULL
        );
        CREATE TEMP TABLE changed (document bigint PRIMARY KEY);
        CREATE TEMP TABLE contested (
            identity bytea PRIMARY KEY, is_full smallint NOT NULL, is_gone smallint NOT NULL
        );
        CREATE TEMP TABLE decided (
            document bigint NOT NULL, ordinal integer NOT NULL, is_live smallint NOT NULL,
            PRIMARY KEY (document, ordinal)
        );
        ANALYZE concerned, changed, contested, decided;
    """,
)
"""What a connection that writes needs; created once, emptied at the end of each change."""

EMPTY_TEMPORARY_TABLES: Final = """
    TRUNCATE concerned, changed, contested, decided;
    ANALYZE concerned, changed, contested, decided
"""
"""For PostgreSQL, now and then: no vacuum comes to a temporary table, and deleted rows stay in it."""
