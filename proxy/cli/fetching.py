"""`wholefeed fetch`: one feed, reconstructed without a server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from proxy.cli.command import EXIT_DONE, EXIT_UNFINISHED, Command, load, run, seconds, some


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", type=some("the URL of a feed"), help="the feed's URL")
    output, output_help = some("the name of a file, or -"), "write to FILE instead of standard output"
    parser.add_argument("-o", "--output", metavar="FILE", type=output, help=output_help)
    wait_help = "seconds to wait for the whole history (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=seconds, help=wait_help)


def _fetch(options: argparse.Namespace) -> int:
    config = load(options)
    from dataclasses import replace

    from proxy.app import fetch_once
    from proxy.cli.sink import Progress, Termination, opened_output
    from proxy.core.terms import State
    from proxy.logs import configure_logging

    progress = Progress(sys.stderr) if sys.stderr is not None and sys.stderr.isatty() else None
    # the feed is the result, not the log
    level = "warning" if config.log.level == "info" else config.log.level
    configure_logging(replace(config.log, level=level), sys.stderr)
    path = None if options.output in (None, "-") else Path(options.output)
    try:
        with Termination() as termination, opened_output(path) as output:
            work = fetch_once(config, options.url, output, wait_seconds=options.wait, progress=progress)
            state = run(termination.ending(work, output))
    finally:
        if progress is not None:
            progress.close()
    return EXIT_UNFINISHED if state in (State.PARTIAL, State.LOADING) else EXIT_DONE


FETCH: Final = Command(
    name="fetch",
    summary="reconstruct one feed and print it (exit 0 all of it, 3 partial or still loading)",
    examples="  wholefeed fetch https://example.org/feed.atom > whole.atom\n"
    "  wholefeed fetch --wait 60 -o whole.rss https://example.org/rss.xml",
    run=_fetch,
    add_arguments=_add_fetch,
)
