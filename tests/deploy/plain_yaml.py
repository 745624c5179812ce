"""Reads the part of YAML used in deploy/compose.yaml, and refuses the rest.

Mappings and lists in blocks of two blanks, lists in one line, plain and double-quoted scalars, comments.
Text that other programs read differently (an unquoted `yes`, `8080:80`, a tab, a repeated key) is an
error.
"""

from __future__ import annotations

import json
import re
from typing import Any

_KEY = re.compile(r"([A-Za-z_][\w.-]*):(?: +(.*))?")
_PLAIN = re.compile(r"[A-Za-z./][\w./:+-]*|\d+[smh]")
_AMBIGUOUS = re.compile(r"(?i)y|n|yes|no|on|off|null")


def load(text: str) -> Any:
    """Return mappings, lists, texts and truth values.

    Raises: ValueError: Not YAML of this kind; the message names the line.
    """
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        content = re.sub(r"(^| +)#.*", "", line).rstrip()
        if content:
            indent = len(content) - len(content.lstrip(" "))
            if "\t" in line or indent % 2:
                raise ValueError(f"line {number}: a tab, or an odd indent")
            lines.append((number, indent, content.strip()))
    value, rest = _block(lines, 0)
    if rest:
        raise ValueError(f"line {rest[0][0]}: an indent that fits nothing")
    return value


_Lines = list[tuple[int, int, str]]


def _block(lines: _Lines, indent: int) -> tuple[Any, _Lines]:
    made: Any = [] if lines[0][2].startswith("- ") else {}
    while lines and lines[0][1] == indent:
        (number, _, content), lines = lines[0], lines[1:]
        if isinstance(made, list):
            if not content.startswith("- "):
                raise ValueError(f"line {number}: expected an item")
            made.append(_scalar(content[2:], number))
            continue
        found = _KEY.fullmatch(content)
        if found is None or found[1] in made:
            raise ValueError(f"line {number}: expected a key of its own")
        if found[2]:
            made[found[1]] = _scalar(found[2], number)
        elif lines and lines[0][1] == indent + 2:
            made[found[1]], lines = _block(lines, indent + 2)
        else:
            made[found[1]] = None
    return made, lines


def _scalar(text: str, number: int) -> Any:
    if text.startswith("["):
        return [_scalar(item.strip(), number) for item in text.removeprefix("[").removesuffix("]").split(",")]
    if text.startswith('"'):
        return json.loads(text)
    if text in ("true", "false"):
        return text == "true"
    if text.isdecimal():
        return int(text)
    if not _PLAIN.fullmatch(text) or (_AMBIGUOUS.fullmatch(text)):
        raise ValueError(f"line {number}: {text!r} needs quotes")
    return text
