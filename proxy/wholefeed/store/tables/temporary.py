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
    # No vacuum comes to a temporary table: rows that are deleted would stay in it as long as its connection.
    # And one that was never analysed is taken for thousands of rows, and walked through for those of others.
    postgres="""
        CREATE TEMP TABLE concerned (
            identity bytea PRIMARY KEY, is_full smallint NOT NULL
        ) ON COMMIT DELETE ROWS;
        CREATE TEMP TABLE changed (document bigint PRIMARY KEY) ON COMMIT DELETE ROWS;
        CREATE TEMP TABLE contested (
            identity bytea PRIMARY KEY, is_full smallint NOT NULL, is_gone smallint NOT NULL
        ) ON COMMIT DELETE ROWS;
        CREATE TEMP TABLE decided (
            document bigint NOT NULL, ordinal integer NOT NULL, is_live smallint NOT NULL,
            PRIMARY KEY (document, ordinal)
        ) ON COMMIT DELETE ROWS;
        ANALYZE concerned, changed, contested, decided;
    """,
)
"""What a connection that writes needs; created once, empty between transactions."""
