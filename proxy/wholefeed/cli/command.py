"""What the commands share: how one is described, its configuration, its event loop, its arguments."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from wholefeed.config.tables import Config

EXIT_DONE: Final = 0
EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNFINISHED: Final = 3
EXIT_INTERRUPTED: Final = 130

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of the command line."""

    name: str
    summary: str
    examples: str
    run: Callable[[argparse.Namespace], int]
    """Returns the exit code."""
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def load(options: argparse.Namespace, **flags: object) -> Config:
    """The configuration; a flag that was not given is None and sets nothing."""
    from wholefeed.config.loading import load_config

    overrides = {name.replace("_", ".", 1): value for name, value in flags.items() if value is not None}
    return load_config(options.config, os.environ, overrides)


def load_for_result(options: argparse.Namespace) -> Config:
    """The configuration of a command that prints a result: its log goes to standard error, warnings only."""
    from dataclasses import replace

    from wholefeed.logs import configure_logging

    config = load(options)
    level = "warning" if config.log.level == "info" else config.log.level
    configure_logging(replace(config.log, level=level), sys.stderr)
    return config


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end on uvloop where it is installed, else on asyncio's own loop."""
    import asyncio

    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop as loop_factory
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(work)


def server_address(config: Config) -> tuple[str, int]:
    """Where a proxy of this configuration is reached from the same machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.server.host, config.server.host)  # noqa: S104
    return host, config.server.port


def some(what: str) -> Callable[[str], str]:
    """Return a reader of an argument that must not be empty."""

    def read(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"expected {what}, got nothing")
        return text

    return read


def add_url(parser: argparse.ArgumentParser) -> None:
    """Take the URL of a feed."""
    parser.add_argument("url", metavar="URL", type=some("the URL of a feed"), help="the feed's URL")


def seconds(text: str) -> float:
    """Read a duration in seconds.

    Raises:
        argparse.ArgumentTypeError: It is no number, or below zero.
    """
    with suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"expected a number of seconds, 0 or more, got {text!r}")
