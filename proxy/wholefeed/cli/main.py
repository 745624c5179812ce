"""The command line: `wholefeed COMMAND`, also `python -m wholefeed COMMAND`.

Command modules import late, so `--help` answers at once.

Exit codes: 0 done; 1 error, one line on standard error (`check`: also a faulty feed); 2 wrong command line
or configuration; 3 (`fetch`, `explain`, `refresh`) partial or still loading; 130 Ctrl-C; 143 SIGTERM
(`fetch`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from wholefeed import __version__
from wholefeed.cli.base import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_USAGE, fail, give_up, show, with_hint
from wholefeed.cli.feeds import CHECK, EXPLAIN, FETCH, FORGET, LIST, REFRESH
from wholefeed.cli.import_command import CONTINUE, IMPORT
from wholefeed.cli.serving import CONFIG, DOCTOR, HEALTHCHECK, SERVE
from wholefeed.cli.storage import BACKUP, MIGRATE
from wholefeed.cli.url_command import OPML, SIGN, URL

COMMANDS: Final = (
    SERVE,
    URL,
    OPML,
    FETCH,
    EXPLAIN,
    CHECK,
    LIST,
    REFRESH,
    FORGET,
    IMPORT,
    CONTINUE,
    SIGN,
    CONFIG,
    MIGRATE,
    DOCTOR,
    BACKUP,
    HEALTHCHECK,
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    from wholefeed.errors import ConfigError, InvalidUrlError, WholefeedError

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
    def error(self, message: str) -> NoReturn:
        if message.endswith("COMMAND"):
            self.print_help(sys.stderr)
            self.exit(EXIT_USAGE, f"\n{self.prog}: error: {message}; to begin with: {self.prog} serve\n")
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
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
    _add_completion(parser)
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


_SHELLS: Final = ("bash", "zsh", "tcsh")
_FILE: Final = "FILE"


def _add_completion(parser: argparse.ArgumentParser) -> None:
    shown_help = "print the completion of a shell, to be sourced: bash, zsh or tcsh"
    parser.add_argument(
        "--print-completion", choices=_SHELLS, metavar="SHELL", action=_Print, help=shown_help
    )


class _Print(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        _namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        _option_string: str | None = None,
    ) -> None:
        import shtab

        _complete_files(parser, shtab.FILE)
        show(shtab.complete(parser, str(values)))
        parser.exit()


def _complete_files(parser: argparse.ArgumentParser, how: object) -> None:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to go through them
        if action.metavar == _FILE:
            action.complete = how  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                _complete_files(command, how)
