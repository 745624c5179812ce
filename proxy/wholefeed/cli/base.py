"""Shared parts of the commands: description, configuration, event loop, arguments and messages.

`--help` imports it too, so functions import heavy modules themselves.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar

if TYPE_CHECKING:
    from wholefeed.config.tables import Config
    from wholefeed.errors import WholefeedError


EXIT_DONE: Final = 0
EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNFINISHED: Final = 3
EXIT_INTERRUPTED: Final = 130
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    summary: str
    examples: str
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def load(options: argparse.Namespace, **flags: object) -> Config:
    from wholefeed.config.tables import load_config

    overrides = {name.replace("_", ".", 1): value for name, value in flags.items() if value is not None}
    return load_config(options.config, os.environ, overrides)


def load_for_result(options: argparse.Namespace) -> Config:
    """Return the configuration of a command with a result; its log has warnings only, on standard error.

    The address in it is the running proxy's, if known.
    """
    from wholefeed.cli.address import answers, has_vanished, url_here, with_running
    from wholefeed.config.tables import ServerConfig
    from wholefeed.logs import configure_logging

    configured = load(options)
    config = with_running(configured)
    if config is not configured and configured.server.port != ServerConfig().port:
        running, set_port = config.server.port, configured.server.port
        tell(f"the proxy that runs here listens on port {running}, though server.port is {set_port}")
    elif has_vanished(configured) and answers(configured):
        other = f"{url_here(configured)} (server.host, server.port)"
        tell(f"the proxy of {configured.store.path} has ended; this command asks the one at {other}")
    level = "warning" if config.log.level == "info" else config.log.level
    configure_logging(replace(config.log, level=level), sys.stderr)
    return config


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end, on uvloop if installed."""
    import asyncio

    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop as loop_factory
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(work)


# What several commands take


def some(what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"expected {what}, got nothing")
        return text

    return read


def add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", type=some("the URL of a feed"), help="the feed's URL")


def seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"expected a number of seconds, 0 or more, got {text!r}")


# What commands say: results on standard output, everything else on standard error. Either may be full, closed
# or gone. A result that cannot be written is an error; a message that cannot is not. Strangers wrote much of
# both: what could take a terminal over, or turn a line around, is escaped as JSON has it.


def show(text: str) -> None:
    """Print a command's result.

    Raises:
        WholefeedError: Standard output is not writable.
        BrokenPipeError: Its reader has gone.
    """
    from wholefeed.core.words import escape_lines
    from wholefeed.errors import WholefeedError

    if sys.stdout is None:
        raise WholefeedError("cannot write standard output: it is closed")
    try:
        sys.stdout.write(escape_lines(text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        give_up(sys.stdout)
        raise WholefeedError(f"cannot write standard output: {exc.strerror}") from exc


def json_text(value: object) -> str:
    import json

    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def tell(message: str) -> None:
    """Print a message on standard error, or drop it if that fails."""
    from wholefeed.core.words import escape_lines

    try:
        if sys.stderr is not None:
            sys.stderr.write(escape_lines(f"wholefeed: {message}\n"))
            sys.stderr.flush()
    except (OSError, ValueError):
        give_up(sys.stderr)


def fail(message: str, code: int) -> int:
    tell(message)
    return code


_HINTS: Final = {
    "unknown-feed": "`wholefeed list` shows the feeds that are known, `wholefeed explain` their documents",
    "not-a-feed": "name the feed itself, or a page that announces it in a link",
    "dns-error": "is it spelt right, and is there a network?",
    "unauthorized": "is this command's configuration the proxy's (server.access_token, store.path)?",
}
"""By slug: advice that the message itself lacks."""


def with_hint(error: WholefeedError) -> str:
    hint = _HINTS.get(error.slug)
    return f"{error}; {hint}" if hint else str(error)


def give_up(stream: TextIO) -> None:
    # The interpreter would flush the buffer at exit, and complain.
    with suppress(OSError, ValueError):
        sink = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(sink, stream.fileno())
        finally:
            os.close(sink)
