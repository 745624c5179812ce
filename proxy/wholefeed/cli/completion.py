"""`wholefeed --print-completion SHELL`: what a shell needs to complete commands, flags and file names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from wholefeed.cli.output import show

_SHELLS: Final = ("bash", "zsh", "tcsh")
_FILE: Final = "FILE"
"""What arguments are called whose values are names of files."""


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Take `--print-completion`; everything is made from the parser itself, when it is asked for."""
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
    """Mark the arguments that are files, of this parser and of its commands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to go through them
        if action.metavar == _FILE:
            action.complete = how  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                _complete_files(command, how)
