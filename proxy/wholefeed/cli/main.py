"""The command line: `wholefeed COMMAND`, the same as `python -m wholefeed COMMAND`.

Only what every command needs is imported here; the server and its libraries come in when a command runs, so
that `--help` and `--version` answer at once. The only module that configures logging.

Exit codes: 0 done; 1 an error, told in one line on standard error; 2 the command line or the configuration is
wrong; 3 (`fetch`, `explain`, `refresh`) the feed is partial or still loading; 130 and 143 (`fetch`) ended by
Ctrl-C and by SIGTERM.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from wholefeed import __version__
from wholefeed.cli.backup import BACKUP
from wholefeed.cli.command import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE
from wholefeed.cli.completion import add_completion
from wholefeed.cli.doctor import DOCTOR
from wholefeed.cli.explaining import EXPLAIN
from wholefeed.cli.feeds import FORGET, LIST, REFRESH
from wholefeed.cli.fetching import FETCH
from wholefeed.cli.hints import with_hint
from wholefeed.cli.migrating import MIGRATE
from wholefeed.cli.opml import OPML
from wholefeed.cli.output import fail, give_up
from wholefeed.cli.serving import CONFIG, HEALTHCHECK, SERVE
from wholefeed.cli.signing import SIGN
from wholefeed.cli.url import URL
from wholefeed.errors import ConfigError, InvalidUrlError, WholefeedError

COMMANDS: Final = (
    SERVE,
    URL,
    OPML,
    FETCH,
    EXPLAIN,
    LIST,
    REFRESH,
    FORGET,
    SIGN,
    CONFIG,
    MIGRATE,
    DOCTOR,
    BACKUP,
    HEALTHCHECK,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; `arguments` are those of the process unless given. Returns the exit code."""
    options = make_parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except (ConfigError, InvalidUrlError) as exc:
        return fail(str(exc), EXIT_USAGE)
    except WholefeedError as exc:
        return fail(with_hint(exc), EXIT_ERROR)
    except BrokenPipeError:  # whoever reads has seen enough
        give_up(sys.stdout)
        return EXIT_ERROR
    except OSError as exc:  # of the machine: no folder for temporary files, no memory
        return fail(str(exc), EXIT_ERROR)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


class _Parser(argparse.ArgumentParser):
    """Says where help is; to whoever gives no command at all, all of it."""

    def error(self, message: str) -> NoReturn:
        if message.endswith("COMMAND"):
            self.print_help(sys.stderr)
            self.exit(EXIT_USAGE, f"\n{self.prog}: error: {message}; to begin with: {self.prog} serve\n")
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line; the function of the chosen command stands in `run`."""
    parser = _Parser(
        prog="wholefeed",
        description="An HTTP proxy that gives any feed reader a feed's whole history (RFC 5005).",
        epilog="examples:\n"
        "  wholefeed serve\n"
        "  wholefeed fetch https://example.org/feed.atom -o whole.atom\n"
        "  wholefeed serve --help\n\n"
        "configuration: a TOML file, WHOLEFEED_<SECTION>_<KEY> over it, flags over both;\n"
        "  wholefeed config --example lists every key\n"
        "exit codes: 0 done, 1 error, 2 usage or configuration, 3 partial or still loading",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wholefeed {__version__}")
    add_completion(parser)
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
