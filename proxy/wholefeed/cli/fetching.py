"""`wholefeed fetch`: one feed, from where it is known, else reconstructed without keeping it."""

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
from wholefeed.cli.output import tell
from wholefeed.errors import UnknownFeedError


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    output, output_help = some("the name of a file, or -"), "write to FILE instead of standard output"
    parser.add_argument("-o", "--output", metavar="FILE", type=output, help=output_help)
    wait_help = "seconds to wait for the whole history (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=seconds, help=wait_help)


def _fetch(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import Feeds, Server, StrangerError, reach
    from wholefeed.cli.database import Database
    from wholefeed.cli.once import fetch_once
    from wholefeed.cli.sink import Termination, opened_output, watched
    from wholefeed.core.terms import State
    from wholefeed.web.request_target import feed_url

    url = feed_url(options.url)
    wait_seconds = config.limits.walk_seconds if options.wait is None else options.wait
    places: list[Feeds] = [Database(config)]
    try:
        if isinstance(proxy := reach(config), Server):
            places.insert(0, proxy)
    except StrangerError as exc:
        tell(f"going on without a proxy: {exc}")

    async def work() -> State:
        for feeds in places:
            try:
                return await feeds.fetch(url, output, wait_seconds=wait_seconds, progress=progress)
            except StrangerError as exc:
                tell(f"going on without a proxy: {exc}")
            except UnknownFeedError:
                break
        return await fetch_once(config, url, output, wait_seconds=wait_seconds, progress=progress)

    path = None if options.output in (None, "-") else Path(options.output)
    with watched() as progress, Termination() as termination, opened_output(path) as output:
        state = run(termination.ending(work(), output))
    return EXIT_UNFINISHED if state in (State.PARTIAL, State.LOADING) else EXIT_DONE


FETCH: Final = Command(
    name="fetch",
    summary="reconstruct one feed and print it (exit 0 all of it, 3 partial or still loading)",
    examples="  wholefeed fetch https://example.org/feed.atom > whole.atom\n"
    "  wholefeed fetch --wait 60 -o whole.rss https://example.org/rss.xml",
    run=_fetch,
    add_arguments=_add_fetch,
)
