"""`wholefeed list`, `refresh` and `forget`: the feeds that the proxy knows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any, Final

from wholefeed.cli.command import EXIT_DONE, EXIT_UNFINISHED, Command, add_url, load_for_result
from wholefeed.cli.output import show, tell
from wholefeed.core.slugs import in_words
from wholefeed.core.text.spans import counted

_UNFINISHED: Final = frozenset({"partial", "loading"})


def unfinished(status: Mapping[str, Any]) -> int:
    """Return the exit code that a feed's state stands for."""
    return EXIT_UNFINISHED if status["state"] in _UNFINISHED else EXIT_DONE


def summary(status: Mapping[str, Any]) -> str:
    """Return in a line what a feed is."""
    stale = ", stale" if status["stale"] else ""
    return (
        f"{status['state']}{stale}: {counted(status['entries'], 'entry', 'entries')}"
        f" out of {counted(status['documents'], 'document', 'documents')}"
        f" ({status['kind']}, {status['format']})"
    )


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print what GET /feeds answers")


def _list(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import reach

    found = reach(config).listed()
    if options.json:
        show(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        return EXIT_DONE
    for status in found:
        show(f"{status['url']}\n  {summary(status)}\n")
    if not found:
        tell("no feed is known yet: one becomes so when a reader asks for it (see `wholefeed url --help`)")
    return EXIT_DONE


def _add_refresh(parser: argparse.ArgumentParser) -> None:
    add_url(parser)
    full_help = "ask for every document again, and take the publisher's chain for the truth"
    parser.add_argument("--full", action="store_true", help=full_help)


def _refresh(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import reach
    from wholefeed.cli.sink import watched
    from wholefeed.web.request_target import feed_url

    url = feed_url(options.url)
    with watched() as progress:
        status = reach(config).refresh(url, is_full=options.full, progress=progress)
    show(f"{summary(status)}\n")
    if status["failure"] is not None:
        tell(f"stale: {in_words(status['failure']['reason'])}")
    return unfinished(status)


def _forget(options: argparse.Namespace) -> int:
    config = load_for_result(options)
    from wholefeed.cli.backend import reach
    from wholefeed.web.request_target import feed_url

    reach(config).forget(feed_url(options.url))
    return EXIT_DONE


LIST: Final = Command(
    name="list",
    summary="list the feeds that the proxy knows, with what each is",
    examples="  wholefeed list\n  wholefeed list --json",
    run=_list,
    add_arguments=_add_list,
)

REFRESH: Final = Command(
    name="refresh",
    summary="ask a feed's publisher now and try again what is missing (exit 0 all of it, 3 partial)",
    examples="  wholefeed refresh https://example.org/feed.atom\n"
    "  wholefeed refresh --full https://example.org/feed.atom",
    run=_refresh,
    add_arguments=_add_refresh,
)

FORGET: Final = Command(
    name="forget",
    summary="delete a feed and everything that is stored of it",
    examples="  wholefeed forget https://example.org/feed.atom",
    run=_forget,
    add_arguments=add_url,
)
