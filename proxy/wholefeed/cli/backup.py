"""`wholefeed backup`: a copy of the database, also while the server runs."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wholefeed.cli.command import EXIT_DONE, Command, load_for_result, some
from wholefeed.cli.output import show
from wholefeed.errors import StoreError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=some("the path of a file"), help="where the copy goes")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there already")


def _backup(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    if config.store.url:
        file = shlex.quote(options.file)
        raise StoreError(
            "store.url names a PostgreSQL database, which its own programs copy while it runs:"
            f" pg_dump --format=custom --file={file} {_without_password(config.store.url)}"
        )
    from wholefeed.cli.sink import Termination
    from wholefeed.store.sqlite.backup import back_up

    if options.file == "-":
        raise StoreError("expected the path of a file: a database cannot be written to standard output")
    with Termination():  # so that no draft stays
        made = back_up(Path(config.store.path), Path(options.file), replace=options.force)
    show(f"{options.file}: {made.bytes:,} bytes, {made.feeds:,} feeds\n")
    return EXIT_DONE


def _without_password(url: str) -> str:
    """Return a URL as a shell takes it; pg_dump finds the password in PGPASSWORD or ~/.pgpass, or asks."""
    parts = urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    netloc = "@".join([user.partition(":")[0], hosts]) if user else hosts
    query = "&".join(each for each in parts.query.split("&") if each and not each.startswith("password="))
    return shlex.quote(parts._replace(netloc=netloc, query=query).geturl())


BACKUP: Final = Command(
    name="backup",
    summary="copy the database to a file, also while the server runs; checked before it counts",
    examples='  wholefeed backup /backup/wholefeed.db\n  wholefeed backup --force "/backup/$(date +%u).db"',
    run=_backup,
    add_arguments=_add_arguments,
)
