"""`wholefeed sign`: a URL that lets whoever has it read one feed through the proxy."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from typing import Final

from wholefeed.cli.base import add_base, base_of
from wholefeed.cli.command import EXIT_DONE, Command, load, some
from wholefeed.cli.output import show
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import ConfigError

_LONGEST_DAYS: Final = 36_500


def _add_sign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", type=some("the URL of a feed"), help="the feed's URL")
    add_base(parser)
    parser.add_argument("--days", metavar="N", type=_days, help="days that it is good for (for ever)")


def _days(text: str) -> int:
    with suppress(ValueError):
        if 1 <= (value := int(text)) <= _LONGEST_DAYS:
            return value
    raise argparse.ArgumentTypeError(f"expected whole days from 1 to {_LONGEST_DAYS}, got {text!r}")


def _sign(options: argparse.Namespace) -> int:
    server = load(options).server
    from wholefeed.server.signing import sign
    from wholefeed.web.request_target import feed_url, own_url

    if not server.signing_keys:
        raise ConfigError("expected a key in server.signing_keys, got none: nothing to sign with")
    base = base_of(options, server)
    expires_at = None if options.days is None else int(time.time()) + options.days * DAY_SECONDS
    url = feed_url(options.url)
    show(own_url(base, url, sign(url, server.signing_keys, expires_at=expires_at)) + "\n")
    return EXIT_DONE


SIGN: Final = Command(
    name="sign",
    summary="print a URL that lets whoever has it read one feed, and no other (needs server.signing_keys)",
    examples="  wholefeed sign https://example.org/feed.atom\n"
    "  wholefeed sign --days 365 --base https://feeds.example.net https://example.org/feed.atom",
    run=_sign,
    add_arguments=_add_sign,
)
