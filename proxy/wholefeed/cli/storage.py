"""The commands for the whole store: `wholefeed backup` and `wholefeed migrate`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wholefeed.cli.base import EXIT_DONE, Command, load, load_for_result, run, show, some, tell

if TYPE_CHECKING:
    from wholefeed.config.tables import Config


def _add_backup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=some("the path of a file"), help="where the copy goes")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def _backup(options: argparse.Namespace) -> int:
    from wholefeed.errors import StoreError

    config = load_for_result(options)
    if config.store.url:
        from wholefeed.config.rules import typed_url

        file = shlex.quote(options.file)
        raise StoreError(
            "store.url names a PostgreSQL database, which its own programs copy while it runs:"
            f" pg_dump --format=custom --file={file} {typed_url(config.store.url)}"
        )
    from wholefeed.cli.output import Termination
    from wholefeed.store.sqlite_upkeep import back_up

    if options.file == "-":
        raise StoreError("expected the path of a file: a database cannot be written to standard output")
    with Termination():  # so that no draft stays
        made = back_up(Path(config.store.path), Path(options.file), replace=options.force)
    show(f"{options.file}: {made.bytes:,} bytes, {made.feeds:,} feeds\n")
    return EXIT_DONE


BACKUP: Final = Command(
    name="backup",
    summary="copy the database to a file, also while the server runs, and check the copy",
    examples='  wholefeed backup /backup/wholefeed.db\n  wholefeed backup --force "/backup/$(date +%u).db"',
    run=_backup,
    add_arguments=_add_backup_arguments,
)


def _add_migrate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        metavar="URL",
        type=some("the URL of a PostgreSQL database"),
        help="copy the SQLite database (store.path) to this PostgreSQL database, which must be empty"
        " or have an unfinished copy; a second run completes the copy; URL is as for store.url,"
        " but give the password in PGPASSWORD",
    )


def _migrate(options: argparse.Namespace) -> int:
    config = load(options)
    return _bring_up_to_date(config) if options.to is None else _move(config, _check_url(options.to))


def _bring_up_to_date(config: Config) -> int:
    from wholefeed.config.rules import without_password
    from wholefeed.store.engine_choice import migrate_store

    applied = run(migrate_store(config.store))
    where = without_password(config.store.url) or config.store.path
    show("".join(f"applied {name}\n" for name in applied) or f"{where} is up to date\n")
    return EXIT_DONE


def _move(config: Config, url: str) -> int:
    from wholefeed.store.engine_choice import needs_psycopg

    try:
        from wholefeed.store.database_transfer import open_source, open_target, transfer_rows
        from wholefeed.store.postgres_migrate import migrate_database, place_of
    except ImportError as exc:
        raise needs_psycopg() from exc
    with open_source(Path(config.store.path)) as read:  # before anything is made there
        for name in run(migrate_database(url, is_moving=True)):
            tell(f"applied {name}")
        with open_target(url) as written:
            moved = transfer_rows(read, written, say=tell)
    show(
        f"{moved.rows:,} rows of {moved.tables} tables are copied and compared;"
        f" set store.url to serve them from {place_of(url)}; {config.store.path} is unchanged\n"
    )
    return EXIT_DONE


def _check_url(url: str) -> str:
    from wholefeed.config.rules import DATABASE_URL
    from wholefeed.errors import ConfigError

    try:
        return str(DATABASE_URL.check(url))
    except ValueError as exc:
        raise ConfigError(f"--to: expected {DATABASE_URL.allowed}, got {exc}") from None


MIGRATE: Final = Command(
    name="migrate",
    summary="bring the database to this version's schema, as serve does at its start; --to copies it to"
    " PostgreSQL",
    examples="  wholefeed migrate\n"
    "  WHOLEFEED_STORE_PATH=/data/wholefeed.db wholefeed migrate\n"
    "  PGPASSWORD=… wholefeed migrate --to postgresql://wholefeed_owner@db.example.org/wholefeed",
    run=_migrate,
    add_arguments=_add_migrate_arguments,
)
