"""`wholefeed sign`: a URL that lets whoever has it read one feed through the proxy."""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from wholefeed.cli.command import EXIT_DONE, Command, load, some
from wholefeed.cli.output import show
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.errors import ConfigError

if TYPE_CHECKING:
    from wholefeed.config.tables import ServerConfig

_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104
_LONGEST_DAYS: Final = 36_500


def _add_sign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", type=some("the URL of a feed"), help="the feed's URL")
    base_help = (
        "the URL that readers reach the proxy by (server.public_url, else server.host and server.port)"
    )
    parser.add_argument("--base", metavar="URL", type=_base, help=base_help)
    parser.add_argument("--days", metavar="N", type=_days, help="days that it is good for (for ever)")


def _base(text: str) -> str:
    from wholefeed.config.rules import web_url

    with suppress(ValueError):
        if base := str(web_url("").check(text)):
            return base
    raise argparse.ArgumentTypeError(f"expected an http or https URL without a query, got {text!r}")


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
    base = options.base or server.public_url or _listening_at(server)
    expires_at = None if options.days is None else int(time.time()) + options.days * DAY_SECONDS
    url = feed_url(options.url)
    show(own_url(base, url, sign(url, server.signing_keys, expires_at=expires_at)) + "\n")
    return EXIT_DONE


def _listening_at(server: ServerConfig) -> str:
    if server.host in _EVERYWHERE or not server.port:
        raise ConfigError("expected --base URL, or server.public_url to be set, got neither")
    return (
        f"http://[{server.host}]:{server.port}"
        if ":" in server.host
        else f"http://{server.host}:{server.port}"
    )


SIGN: Final = Command(
    name="sign",
    summary="print a URL that lets whoever has it read one feed, and no other (needs server.signing_keys)",
    examples="  wholefeed sign https://example.org/feed.atom\n"
    "  wholefeed sign --days 365 --base https://feeds.example.net https://example.org/feed.atom",
    run=_sign,
    add_arguments=_add_sign,
)
