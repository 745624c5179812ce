"""`wholefeed fetch`: one feed, reconstructed without a server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from wholefeed.cli.command import (
    EXIT_DONE,
    EXIT_UNFINISHED,
    Command,
    add_url,
    load_for_result,
    run,
    seconds,
    some,
)


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    output, output_help = some("the name of a file, or -"), "write to FILE instead of standard output"
    parser.add_argument("-o", "--output", metavar="FILE", type=output, help=output_help)
    wait_help = "seconds to wait for the whole history (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=seconds, help=wait_help)


def _fetch(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.once import fetch_once
    from wholefeed.cli.sink import Termination, opened_output, watched
    from wholefeed.core.terms import State

    path = None if options.output in (None, "-") else Path(options.output)
    with watched() as progress, Termination() as termination, opened_output(path) as output:
        work = fetch_once(config, options.url, output, wait_seconds=options.wait, progress=progress)
        state = run(termination.ending(work, output))
    return EXIT_UNFINISHED if state in (State.PARTIAL, State.LOADING) else EXIT_DONE


FETCH: Final = Command(
    name="fetch",
    summary="reconstruct one feed and print it (exit 0 all of it, 3 partial or still loading)",
    examples="  wholefeed fetch https://example.org/feed.atom > whole.atom\n"
    "  wholefeed fetch --wait 60 -o whole.rss https://example.org/rss.xml",
    run=_fetch,
    add_arguments=_add_fetch,
)
