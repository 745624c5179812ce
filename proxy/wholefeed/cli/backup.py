"""`wholefeed backup`: a copy of the database, also while the server runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from wholefeed.cli.command import EXIT_DONE, Command, load_for_result, some
from wholefeed.cli.output import show
from wholefeed.errors import StoreError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=some("the path of a file"), help="where the copy goes")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def _backup(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.sink import Termination
    from wholefeed.store.sqlite.backup import back_up

    if options.file == "-":
        raise StoreError("expected the path of a file: a database cannot be written to standard output")
    with Termination():  # so that no draft stays
        made = back_up(Path(config.store.path), Path(options.file), replace=options.force)
    show(f"{options.file}: {made.bytes:,} bytes, {made.feeds:,} feeds\n")
    return EXIT_DONE


BACKUP: Final = Command(
    name="backup",
    summary="copy the database to a file, also while the server runs; checked before it counts",
    examples='  wholefeed backup /backup/wholefeed.db\n  wholefeed backup --force "/backup/$(date +%u).db"',
    run=_backup,
    add_arguments=_add_arguments,
)
