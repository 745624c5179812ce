"""`wholefeed url`: the URL to subscribe to."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Final

from wholefeed.cli.base import add_base, add_reader, base_of, server_with_token, url_here
from wholefeed.cli.command import EXIT_DONE, Command, load, some
from wholefeed.cli.output import show, tell
from wholefeed.errors import RequestError


def _add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "feed",
        metavar="FEED",
        type=some("the URL of a feed or of a site"),
        help="the URL of a feed or a site",
    )
    add_base(parser)
    add_reader(parser)
    parser.add_argument("--limit", metavar="N", type=_option("limit"), help="only the first N entries")
    since_help = "only entries from then on, e.g. 2026-01-31T00:00:00Z"
    parser.add_argument("--since", metavar="TIME", type=_option("since"), help=since_help)
    parser.add_argument(
        "--answer-bytes",
        metavar="N",
        type=_option("answer_bytes"),
        help="at most N bytes, newest entries first",
    )


def _option(name: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        from wholefeed.web.request_target import read_view

        try:
            read_view({name: text}, 0)
        except RequestError as exc:
            raise argparse.ArgumentTypeError(str(exc)) from exc
        return text

    return read


def _url(options: argparse.Namespace) -> int:
    config = load(options)
    from wholefeed.web.moving import OwnAddresses
    from wholefeed.web.proxied import proxied_url
    from wholefeed.web.request_target import VIEW_OPTIONS, completed, feed_url

    reader = options.reader
    wanted: dict[str, str] = {} if reader is None else reader.parameters(time.time())
    wanted |= {name: value for name in VIEW_OPTIONS if (value := getattr(options, name)) is not None}
    base = base_of(options, config.server)
    own = OwnAddresses([base, config.server.public_url, url_here(config)])
    # Whoever asks for the URL of one that goes through the proxy wants it made anew, not led through twice.
    behind = filter(None, map(own.feed_behind, completed(options.feed)))
    feed = feed_url(next(behind, options.feed))
    url = proxied_url(base, feed, server_with_token(config), wanted)
    show(f"{url}\n")
    if reader is not None:
        tell(f"{reader.name}: {reader.hint}")
    return EXIT_DONE


URL: Final = Command(
    name="url",
    summary="print the URL to subscribe to, with the token or a signature where readers need one",
    examples="  wholefeed url example.org/feed.atom\n"
    "  wholefeed url --base http://192.168.1.5:8080 --for Miniflux https://example.org/feed.atom",
    run=_url,
    add_arguments=_add_url,
)
