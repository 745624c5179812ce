"""Migrations of a PostgreSQL database.

Replicas may start together: each migration takes the same lock and then looks again which one is due. A
database with another program's tables, or with a newer schema, is refused and stays unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from wholefeed.config.rules import typed_url
from wholefeed.errors import StoreUnusableError
from wholefeed.futures import in_daemon
from wholefeed.store.migrations import Migration, read_migrations
from wholefeed.store.postgres_connection import on_one_line

_Connection = psycopg.Connection[Any]


async def migrate_database(
    url: str, migrations: Sequence[Migration] | None = None, *, is_moving: bool = False
) -> list[str]:
    """Migrate to the newest schema, in one transaction a migration; return the names, oldest first.

    `is_moving` accepts the unfinished copy of a SQLite database, which no server opens.

    Raises:
        StoreUnusableError: A migration was not applied; earlier ones stay.
    """
    # Cancelling the caller leaves a thread behind, since the server may be silent.
    return await in_daemon(lambda: _migrate(url, migrations, is_moving))


def check_current(url: str) -> None:
    """Raise `StoreUnusableError` unless the database has the newest schema. Blocks."""
    newest = read_migrations("postgres")[-1].version
    with connect_for_command(url) as db:
        version = read_version(db, newest)
    if version < newest:
        raise StoreUnusableError(
            f"expected schema {newest} in {place_of(url)}, got {version or 'none'}:"
            " `wholefeed migrate` brings it up to date"
        )


def place_of(url: str) -> str:
    """Return a database's name for display, without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "a URL that PostgreSQL does not take"
    return f"the database {parts.get('dbname') or '(the default one)'} at {parts.get('host') or 'the socket'}"


def read_version(db: _Connection, newest: int) -> int:
    """Return the schema version of a database; 0: no tables yet.

    Raises:
        StoreUnusableError: The database is another program's, or newer than `newest`.
    """
    name = db.info.dbname
    found = [row[0] for row in db.execute(_TABLES)]  # fetched at once: another process may add tables
    if not found:
        return 0
    if found[0] != _OURS:
        raise StoreUnusableError(
            f"the database {name} holds tables of another program ({', '.join(found)}):"
            " give wholefeed a database or a schema of its own"
        )
    version = first_value(db, _VERSION)
    if version is None:
        raise StoreUnusableError(f"the database {name} does not say which schema it has")
    if version > newest:
        raise StoreUnusableError(
            f"the database {name} has schema {version}, newer than this program's {newest}: update wholefeed"
        )
    return int(version)


_OURS: Final = "wholefeed_schema"
# Tables of extensions such as PostGIS need no protection.
_TABLES: Final = f"""
    SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p')
        AND NOT EXISTS (
            SELECT 1 FROM pg_depend AS d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
        )
    ORDER BY c.relname <> '{_OURS}', c.relname LIMIT 3
"""  # noqa: S608 - a constant
_VERSION: Final = "SELECT version FROM wholefeed_schema"
_UNFINISHED: Final = "SELECT to_regclass('moving') IS NOT NULL"


def _migrate(url: str, migrations: Sequence[Migration] | None, is_moving: bool) -> list[str]:
    wanted = read_migrations("postgres") if migrations is None else migrations
    applied: list[str] = []
    with connect_for_command(url) as db:
        _check_server(db)
        if not is_moving and first_value(db, _UNFINISHED):
            raise StoreUnusableError(
                f"the database {db.info.dbname} holds the unfinished copy of a SQLite database:"
                " `wholefeed migrate --to` goes on with it"
            )
        while (migration := _apply_next(db, wanted, url)) is not None:
            applied.append(migration.name)
    return applied


# Key for pg_advisory_lock(), unique to the program within the database.
_LOCK: Final = int.from_bytes(b"whfd")
# Longest wait for another process to migrate.
_WAIT_MINUTES: Final = 10
_BEGIN: Final = f"""
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL statement_timeout = 0;
    SET LOCAL lock_timeout = '{_WAIT_MINUTES}min';
    SELECT pg_advisory_xact_lock({_LOCK})
"""
_CREATE: Final = """
    CREATE TABLE wholefeed_schema (
        id      smallint PRIMARY KEY CHECK (id = 1),
        version integer  NOT NULL
    );
    INSERT INTO wholefeed_schema (id, version) VALUES (1, 0)
"""
# The owner of the tables, or else of the schema; the schema `public` may belong to the database's owner.
_OWNER: Final = """
    SELECT pg_get_userbyid(coalesce(
        (SELECT relowner FROM pg_class WHERE oid = to_regclass('wholefeed_schema')),
        (SELECT nullif(nspowner, 'pg_database_owner'::regrole)
         FROM pg_namespace WHERE nspname = current_schema()),
        (SELECT datdba FROM pg_database WHERE datname = current_database())
    ))
"""
_SET_VERSION: Final = "UPDATE wholefeed_schema SET version = %s"


def _apply_next(db: _Connection, wanted: Sequence[Migration], url: str) -> Migration | None:
    newest = wanted[-1].version
    if read_version(db, newest) == newest:  # before the lock, which a standby or a read-only user cannot take
        return None
    db.execute(_BEGIN)
    version = read_version(db, newest)
    migration = next((each for each in wanted if each.version > version), None)
    if migration is None:
        db.execute("ROLLBACK")
        return None
    try:
        if not version:
            db.execute(_CREATE)
        db.execute(migration.sql)
        db.execute(_SET_VERSION, (migration.version,))
        db.execute("COMMIT")
    except psycopg.errors.InsufficientPrivilege as exc:
        db.execute("ROLLBACK")
        raise StoreUnusableError(
            f"expected schema {newest} in {place_of(url)}, got {version or 'none'},"
            f" and the role {db.info.user} may not change its tables; their owner brings it up to date:"
            f" WHOLEFEED_STORE_URL={typed_url(url, first_value(db, _OWNER))} wholefeed migrate"
        ) from exc
    except psycopg.Error as exc:  # closing the connection rolls back
        raise StoreUnusableError(
            f"migration {migration.name} failed and left the database {db.info.dbname} unchanged: {exc}"
        ) from exc
    return migration


# Oldest version in the tests.
_OLDEST_SERVER: Final = 15
_ENCODING: Final = "SELECT current_setting('server_encoding')"


def _check_server(db: _Connection) -> None:
    if (version := db.info.server_version) < _OLDEST_SERVER * 10_000:
        raise StoreUnusableError(f"expected PostgreSQL {_OLDEST_SERVER} or newer, got {version // 10_000}")
    if (encoding := first_value(db, _ENCODING)) != "UTF8":
        raise StoreUnusableError(
            f"expected the database {db.info.dbname} in UTF8, got {encoding}:"
            " CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )


_CONNECT_SECONDS: Final = 10


@contextmanager
def connect_for_command(
    url: str, *, name: str = "wholefeed", within_seconds: int = _CONNECT_SECONDS
) -> Iterator[_Connection]:
    """Connect for a command; until exit, convert psycopg's errors to `StoreUnusableError`."""
    try:
        db = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=within_seconds,
            prepare_threshold=None,  # a pooler may give each transaction another connection
            application_name=name,
        )
    except psycopg.OperationalError as exc:
        raise StoreUnusableError(f"cannot reach {place_of(url)}: {on_one_line(exc)}") from exc
    except psycopg.ProgrammingError:  # the error's text may contain the password
        raise StoreUnusableError("expected a URL of PostgreSQL, got one that it does not take") from None
    try:
        yield db
    except psycopg.Error as exc:
        raise StoreUnusableError(f"cannot use {place_of(url)}: {on_one_line(exc)}") from exc
    finally:
        db.close()


def first_value(db: _Connection, sql: str) -> Any:
    row = db.execute(sql).fetchone()
    return None if row is None else row[0]
