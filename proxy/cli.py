"""The command line: `wholefeed COMMAND`, the same as `python -m proxy COMMAND`.

Only what every command needs is imported here; the server and its libraries come in when a command runs, so
that `--help` and `--version` answer at once. The only module that configures logging.

Exit codes: 0 done; 1 an error, told in one line on standard error; 2 the command line or the configuration is
wrong; 3 (`fetch`) the feed is partial or still loading; 130 and 143 (`fetch`) ended by Ctrl-C and by SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from proxy import __version__
from proxy.cli_output import fail, give_up, show, tell
from proxy.errors import ConfigError, InvalidUrlError, WholefeedError

if TYPE_CHECKING:
    from proxy.config import Config

EXIT_DONE: Final = 0
EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_UNFINISHED: Final = 3
EXIT_INTERRUPTED: Final = 130

_HEALTHCHECK_SECONDS: Final = 4
_OK: Final = 200
_T = TypeVar("_T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; `arguments` are those of the process unless given. Returns the exit code."""
    options = make_parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (ConfigError, InvalidUrlError) as exc:
        return fail(str(exc), EXIT_USAGE)
    except WholefeedError as exc:
        return fail(str(exc), EXIT_ERROR)
    except BrokenPipeError:  # whoever reads has seen enough
        give_up(sys.stdout)
        return EXIT_ERROR
    except OSError as exc:  # of the machine: no folder for temporary files, no memory
        return fail(str(exc), EXIT_ERROR)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    name: str
    summary: str
    examples: str
    run: Callable[[argparse.Namespace], int]
    add_arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line; the function of the chosen command stands in `run`."""
    parser = argparse.ArgumentParser(
        prog="wholefeed",
        description="An HTTP proxy that gives any feed reader a feed's whole history (RFC 5005).",
        epilog="examples:\n"
        "  wholefeed serve\n"
        "  wholefeed fetch https://example.org/feed.atom -o whole.atom\n"
        "  wholefeed serve --help\n\n"
        "configuration: a TOML file, WHOLEFEED_<SECTION>_<KEY> over it, flags over both;\n"
        "  wholefeed config --example lists every key\n"
        "exit codes: 0 done, 1 error, 2 usage or configuration, 3 (fetch) partial or still loading",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wholefeed {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=command.summary[0].upper() + command.summary[1:] + ".",
            epilog=f"examples:\n{command.examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        config_help = "TOML file to read (default: $WHOLEFEED_CONFIG, else ./config.toml if there)"
        sub.add_argument("--config", metavar="FILE", type=Path, help=config_help)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def _load(options: argparse.Namespace, **flags: object) -> Config:
    """The configuration; a flag that was not given is None and sets nothing."""
    from proxy.config import load_config

    overrides = {name.replace("_", ".", 1): value for name, value in flags.items() if value is not None}
    return load_config(options.config, os.environ, overrides)


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """Run to the end on uvloop where it is installed, else on asyncio's own loop."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", help="address to listen on (server.host)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 takes a free one (server.port)")


def _serve(options: argparse.Namespace) -> int:
    config = _load(options, server_host=options.host, server_port=options.port)
    from dataclasses import replace

    import structlog

    from proxy.access_token import ensure_token, forget_unseen, notice
    from proxy.app import serve
    from proxy.config import unused_keys
    from proxy.logs import configure_logging

    configure_logging(config.log)
    log = structlog.get_logger()
    for key in unused_keys(config):
        log.warning("config.unused", key=key)
    token = ensure_token(config)
    if token.was_exposed:
        log.warning("token.tightened", path=str(token.path))
    config = replace(config, server=replace(config.server, access_token=token.token))
    has_started = False

    def on_started(_host: str, port: int) -> None:
        nonlocal has_started
        has_started = True
        if token.is_new:
            log.info("token.created", path=str(token.path))
            tell(notice(token, config.server.public_url or f"http://YOUR-HOST:{port}"))

    try:
        _run(serve(config, on_started=on_started))
    except OSError as exc:
        problem = f"the server ended: {exc}" if has_started else _start_problem(config, exc)
        return fail(problem, EXIT_ERROR)
    except KeyboardInterrupt:  # before the server listens for it
        return EXIT_DONE
    finally:
        if not has_started:
            forget_unseen(token)
    return EXIT_DONE


def _start_problem(config: Config, exc: OSError) -> str:
    import errno

    address = f"{config.server.host}, port {config.server.port}"
    if exc.errno == errno.EADDRINUSE:
        return f"cannot listen on {address}: something else does already (see --port)"
    if exc.errno in (errno.EACCES, errno.EPERM) and exc.filename is None:
        return f"cannot listen on {address}: not permitted (see --port)"
    return f"cannot start on {address}: {exc.strerror or exc}"


def _add_fetch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", type=_some("the URL of a feed"), help="the feed's URL")
    output, output_help = _some("the name of a file, or -"), "write to FILE instead of standard output"
    parser.add_argument("-o", "--output", metavar="FILE", type=output, help=output_help)
    wait_help = "seconds to wait for the whole history (limits.walk_seconds)"
    parser.add_argument("--wait", metavar="S", type=_seconds, help=wait_help)


def _some(what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not text:
            raise argparse.ArgumentTypeError(f"expected {what}, got nothing")
        return text

    return read


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) < float("inf"):
            return value
    raise argparse.ArgumentTypeError(f"expected a number of seconds, 0 or more, got {text!r}")


def _fetch(options: argparse.Namespace) -> int:
    config = _load(options)
    from dataclasses import replace

    from proxy.app import fetch_once
    from proxy.cli_fetch import Progress, Termination, opened_output
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
            state = _run(termination.ending(work, output))
    finally:
        if progress is not None:
            progress.close()
    return EXIT_UNFINISHED if state in (State.PARTIAL, State.LOADING) else EXIT_DONE


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--example", action="store_true", help="print every key with its default and why")


def _config(options: argparse.Namespace) -> int:
    from proxy.config_text import example, masked

    show(example() if options.example else masked(_load(options)))
    return EXIT_DONE


def _migrate(options: argparse.Namespace) -> int:
    config = _load(options)
    from proxy.migrate import migrate_file

    applied = _run(migrate_file(config.store.path))
    show("".join(f"applied {name}\n" for name in applied) or f"{config.store.path} is up to date\n")
    return EXIT_DONE


def _healthcheck(options: argparse.Namespace) -> int:
    config = _load(options)
    import http.client

    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.server.host, config.server.host)  # noqa: S104
    connection = http.client.HTTPConnection(host, config.server.port, timeout=_HEALTHCHECK_SECONDS)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as exc:
        return fail(f"no answer from {host}, port {config.server.port}: {exc}", EXIT_ERROR)
    finally:
        connection.close()
    if status != _OK:
        return fail(f"expected status 200 of /healthz, got {status}", EXIT_ERROR)
    show("healthy\n")
    return EXIT_DONE


COMMANDS: Final = (
    _Command(
        name="serve",
        summary="run the proxy until SIGTERM or Ctrl-C",
        examples="  wholefeed serve --port 9000\n"
        "  WHOLEFEED_STORE_PATH=/var/lib/wholefeed/feeds.db wholefeed serve --config /etc/wholefeed.toml",
        run=_serve,
        add_arguments=_add_serve,
    ),
    _Command(
        name="fetch",
        summary="reconstruct one feed and print it (exit 0 all of it, 3 partial or still loading)",
        examples="  wholefeed fetch https://example.org/feed.atom > whole.atom\n"
        "  wholefeed fetch --wait 60 -o whole.rss https://example.org/rss.xml",
        run=_fetch,
        add_arguments=_add_fetch,
    ),
    _Command(
        name="config",
        summary="print the effective configuration as TOML, secrets masked",
        examples="  wholefeed config\n  wholefeed config --example > config.toml",
        run=_config,
        add_arguments=_add_config,
    ),
    _Command(
        name="migrate",
        summary="bring the database to this version's schema, as serve does at its start",
        examples="  wholefeed migrate\n  WHOLEFEED_STORE_PATH=/data/wholefeed.db wholefeed migrate",
        run=_migrate,
    ),
    _Command(
        name="healthcheck",
        summary="ask the running proxy for /healthz (exit 0 or 1); for containers",
        examples="  wholefeed healthcheck\n  WHOLEFEED_SERVER_PORT=9000 wholefeed healthcheck",
        run=_healthcheck,
    ),
)
