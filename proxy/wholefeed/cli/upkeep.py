"""`wholefeed config` and `wholefeed migrate`."""

from __future__ import annotations

import argparse
from typing import Final

from wholefeed.cli.command import EXIT_DONE, Command, load, run
from wholefeed.cli.output import show


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--example", action="store_true", help="print every key with its default and why")


def _config(options: argparse.Namespace) -> int:
    from wholefeed.config.text import example, masked

    show(example() if options.example else masked(load(options)))
    return EXIT_DONE


def _migrate(options: argparse.Namespace) -> int:
    config = load(options)
    from wholefeed.store.sqlite.migrate import migrate_file

    applied = run(migrate_file(config.store.path))
    show("".join(f"applied {name}\n" for name in applied) or f"{config.store.path} is up to date\n")
    return EXIT_DONE


CONFIG: Final = Command(
    name="config",
    summary="print the effective configuration as TOML, secrets masked",
    examples="  wholefeed config\n  wholefeed config --example > config.toml",
    run=_config,
    add_arguments=_add_config,
)

MIGRATE: Final = Command(
    name="migrate",
    summary="bring the database to this version's schema, as serve does at its start",
    examples="  wholefeed migrate\n  WHOLEFEED_STORE_PATH=/data/wholefeed.db wholefeed migrate",
    run=_migrate,
)
