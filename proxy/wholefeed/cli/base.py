"""Where readers reach the proxy, for the commands that print its URLs, and who is let in there."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wholefeed.cli.command import server_address
from wholefeed.core.readers import READERS, Reader, reader_named
from wholefeed.errors import ConfigError

if TYPE_CHECKING:
    from wholefeed.config.tables import Config, ServerConfig

_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104


def add_base(parser: argparse.ArgumentParser, *, is_repeatable: bool = False) -> None:
    """Take the URL that readers reach the proxy by; where there may be several, the first is written."""
    base_help = (
        "the URL that readers reach the proxy by (server.public_url, else server.host and server.port)"
    )
    if is_repeatable:
        base_help += "; once more for each other address that is the proxy's"
    action = "append" if is_repeatable else "store"
    parser.add_argument("--base", metavar="URL", type=_base, action=action, help=base_help)


def add_reader(parser: argparse.ArgumentParser) -> None:
    """Take the name of a reader, for what it wants in its URLs."""
    names = ", ".join(reader.name for reader in READERS)
    reader_help = f"add what that reader wants: {names}"
    parser.add_argument("--for", dest="reader", metavar="READER", type=_reader, help=reader_help)


def _reader(text: str) -> Reader:
    if (found := reader_named(text)) is not None:
        return found
    names = ", ".join(reader.name for reader in READERS)
    raise argparse.ArgumentTypeError(f"expected one of {names}, got {text!r}; others need no --for")


def _base(text: str) -> str:
    from wholefeed.config.rules import web_url

    with suppress(ValueError):
        if base := str(web_url("").check(text)):
            return base
    raise argparse.ArgumentTypeError(
        f"expected an http or https URL without a query, such as http://192.168.1.5:8080, got {text!r}"
    )


def base_of(options: argparse.Namespace, server: ServerConfig) -> str:
    """Return the URL that readers reach the proxy by, without a final slash.

    Raises:
        ConfigError: Nothing says which it is.
    """
    given = options.base[0] if isinstance(options.base, list) else options.base
    return str(given or server.public_url.rstrip("/") or listening_at(server))


def listening_at(server: ServerConfig) -> str:
    """Return the URL of a proxy that listens on one address.

    Raises:
        ConfigError: It listens on all of them, or on a port that is not known beforehand.
    """
    if server.host in _EVERYWHERE or not server.port:
        raise ConfigError(
            "expected --base URL, or server.public_url to be set, got neither: where do readers find it?"
            f" For example --base http://192.168.1.5:{server.port or 8080}"
        )
    return http_url(server.host, server.port)


def url_here(config: Config) -> str:
    """Return the URL by which this machine reaches the proxy."""
    return http_url(*server_address(config))


def http_url(host: str, port: int) -> str:
    """Return the URL of a server by plain http, without a final slash."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_with_token(config: Config) -> ServerConfig:
    """Return what the running proxy has under [server]: with the token, if it made one at its first start.

    Raises:
        ConfigError: Readers will need a token, and none is made yet.
        StoreError: The token's file cannot be read.
    """
    from wholefeed.cli.access_token import known_token, needs_token

    token = known_token(config)
    if not token and needs_token(config.server):
        raise ConfigError(
            f"others can reach {config.server.host}, so readers need a token, and none is kept beside"
            f" {config.store.path}: run `wholefeed serve` once, which makes one, or set server.access_token"
        )
    return replace(config.server, access_token=token)
