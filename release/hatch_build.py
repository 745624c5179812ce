"""The manual page of `wholefeed`, made from the parser of its command line when an sdist or a wheel is built.

`pyproject.toml` names this file as hatchling's build hook. The page has the date of $SOURCE_DATE_EPOCH, else
today's. argparse has no other way to go through a parser than by its private names.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE: Final = "share/man/man1/wholefeed.1"
"""Below the prefix that a wheel is installed to, and in the sdist."""
_USAGE_COLUMNS: Final = 72
_ESCAPES: Final = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}
)


class ManualPage(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the page and have it put where `man` finds it, but for an editable installation."""
        self._folder = tempfile.TemporaryDirectory()
        if version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "proxy")))  # what is built, not what is installed
        from wholefeed import __version__
        from wholefeed.cli.main import make_parser

        made = Path(self._folder.name, "wholefeed.1")
        at = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
        made.write_text(page(make_parser(), __version__, at), "utf-8")
        made.chmod(0o644)
        build_data["shared_data" if self.target_name == "wheel" else "force_include"][str(made)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made on the way."""
        self._folder.cleanup()


def page(parser: argparse.ArgumentParser, version: str, at: float) -> str:
    """Return the page in the language of man(7), dated by `at` (epoch seconds)."""
    return "\n".join(_lines(parser, version, at)) + "\n"


def _lines(parser: argparse.ArgumentParser, version: str, at: float) -> Iterator[str]:
    about = parser.description or ""
    date = time.strftime("%Y-%m-%d", time.gmtime(at))
    yield f'.TH {parser.prog.upper()} 1 {date} "{parser.prog} {version}"'
    yield ".SH NAME"
    yield f"{parser.prog} \\- {_text(about[:1].lower() + about[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield from _verbatim(_usage(parser))
    yield ".SH DESCRIPTION"
    yield _text(about)
    yield ".SH OPTIONS"
    yield from _arguments(parser)
    yield ".SH COMMANDS"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield f".SS {_text(command.prog)}"
                yield _text(command.description or "")
                yield from (".PP", *_verbatim(_usage(command)))
                yield from _arguments(command)
                yield from _epilog(command, ".PP\n{}:")
    yield from _epilog(parser, ".SH {}")


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """What a parser takes, in the groups of its help; --help stands under the options of the whole."""
    for group in parser._action_groups:
        actions = [
            action
            for action in group._group_actions
            if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        ]
        if actions and group.title not in ("options", "positional arguments"):
            yield f".PP\n{_text(group.title or '')}:"
        for action in actions:
            yield ".TP"
            yield _invocation(parser, action)
            yield _text(parser._get_formatter()._expand_help(action))


def _invocation(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """An argument as it is typed: what is literal in bold, what it stands for in italics."""
    if not action.option_strings:
        return f"\\fI{_text(str(action.metavar or action.dest))}\\fR"
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in action.option_strings)
    if action.nargs == 0:
        return names
    value = parser._get_formatter()._format_args(action, action.dest.upper())
    return f"{names} \\fI{_text(value)}\\fR"


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.RawDescriptionHelpFormatter(parser.prog, width=_USAGE_COLUMNS)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return re.sub(r"\x1b\[[\d;]*m", "", formatter.format_help())  # Python 3.14 colours it on a terminal


def _epilog(parser: argparse.ArgumentParser, heading: str) -> Iterator[str]:
    """The blocks below a help: "examples:" with what follows, or notes."""
    for block in (parser.epilog or "").split("\n\n"):
        title, _, text = block.partition(":\n")
        if text:
            yield heading.format(title.upper() if heading.startswith(".SH") else title)
        else:
            yield heading.format("NOTES")
        yield from _verbatim(text or title)


def _verbatim(text: str) -> Iterator[str]:
    yield ".nf"
    yield from (_text(line) for line in text.strip("\n").splitlines())
    yield ".fi"


def _text(text: str) -> str:
    """Text as roff takes it: nothing in it is a request, and what is typed can be copied from the page."""
    return re.sub(r"(?m)^(?=\.)", r"\\&", text.translate(_ESCAPES))
