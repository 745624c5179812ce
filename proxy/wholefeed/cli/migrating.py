"""`wholefeed migrate`: the schema of the configured store; with `--to`, SQLite's content into PostgreSQL."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wholefeed.cli.command import EXIT_DONE, Command, load, run, some
from wholefeed.cli.output import show, tell
from wholefeed.errors import ConfigError

if TYPE_CHECKING:
    from wholefeed.config.tables import Config


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        metavar="URL",
        type=some("the URL of a PostgreSQL database"),
        help="copy what store.path holds to this PostgreSQL database, which is empty or has an unfinished"
        " copy; run again, it goes on; URL is as for store.url, the password better in PGPASSWORD",
    )


def _migrate(options: argparse.Namespace) -> int:
    config = load(options)
    return _bring_up_to_date(config) if options.to is None else _move(config, _checked(options.to))


def _bring_up_to_date(config: Config) -> int:
    from wholefeed.config.places import without_password
    from wholefeed.store.opening import migrate_store

    applied = run(migrate_store(config.store))
    where = without_password(config.store.url) or config.store.path
    show("".join(f"applied {name}\n" for name in applied) or f"{where} is up to date\n")
    return EXIT_DONE


def _move(config: Config, url: str) -> int:
    from wholefeed.store.moving import source
    from wholefeed.store.moving.move import move
    from wholefeed.store.opening import needs_psycopg

    try:
        from wholefeed.store.moving import target
        from wholefeed.store.postgres.migrate import migrate_database, place_of
    except ImportError as exc:
        raise needs_psycopg() from exc
    with source.opened(Path(config.store.path)) as read:  # before anything is made there
        for name in run(migrate_database(url, is_moving=True)):
            tell(f"applied {name}")
        with target.opened(url) as written:
            moved = move(read, written, say=tell)
    show(
        f"{moved.rows:,} rows of {moved.tables} tables are copied and compared;"
        f" set store.url to serve them from {place_of(url)}; {config.store.path} is what it was\n"
    )
    return EXIT_DONE


def _checked(url: str) -> str:
    from wholefeed.config.places import database_url

    rule = database_url()
    try:
        return str(rule.check(url))
    except ValueError as exc:
        raise ConfigError(f"--to: expected {rule.allowed}, got {exc}") from None


MIGRATE: Final = Command(
    name="migrate",
    summary="bring the database to this version's schema, as serve does at its start; --to moves it",
    examples="  wholefeed migrate\n"
    "  WHOLEFEED_STORE_PATH=/data/wholefeed.db wholefeed migrate\n"
    "  PGPASSWORD=… wholefeed migrate --to postgresql://wholefeed_owner@db.example.org/wholefeed",
    run=_migrate,
    add_arguments=_add_arguments,
)
