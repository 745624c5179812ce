r"""The text of this repository, for the rules about it: each file is read and parsed once.

def tabs(path: Path) -> Iterator[str]:
    yield from (f"{line.place}: a tab, expected spaces" for line in lines(path) if "\t" in line.text)

told(each for path in python_files(PACKAGE) for each in tabs(path))
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = ROOT / "tests"
PACKAGE: Final = ROOT / "proxy" / "wholefeed"
README: Final = ROOT / "README.md"
DOCS: Final = ROOT / "docs"
PAGES: Final = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
"""Pages for people."""

NAMED_TEST: Final = r"(?<!\w)(?:tests/)?(?P<file>[\w/]+\.py)::(?P<test>test_\w+)(?:\[(?P<case>[^\]]+)\])?"
"""A test, and perhaps a case of it, in the pages' notation."""


class Line(NamedTuple):
    """One line of a file, with its place."""

    place: str
    text: str


class Function(NamedTuple):
    """A test, with its place."""

    place: str
    name: str
    docstring: str
    decorators: tuple[ast.expr, ...]


def told(violations: Iterable[str]) -> None:
    """Fail with all findings of a rule: "file:line: what is wrong, what was expected"."""
    if found := list(violations):
        pytest.fail("\n".join([f"{len(found)} against this rule:", *found]), pytrace=False)


def differing(where: str, found: Sequence[Line], expected: Sequence[str]) -> Iterator[str]:
    """A list's missing, surplus or misplaced items."""
    texts = [line.text for line in found]
    yield from (f"{where}: lacks {each!r}" for each in expected if each not in texts)
    yield from (f"{line.place}: has {line.text!r}, which is not expected" for line in found
                if line.text not in expected)  # fmt: skip
    if texts != list(expected) and sorted(texts) == sorted(expected):
        yield f"{where}: expected the order {', '.join(expected)}"
    yield from (f"{where}: has {each!r} twice" for each in sorted(set(texts)) if texts.count(each) > 1)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def place(path: Path, line: int) -> str:
    return f"{name(path)}:{line}"


@cache
def text(path: Path) -> str:
    return path.read_text("utf-8")


def lines(path: Path) -> list[Line]:
    return [Line(place(path, number), line) for number, line in enumerate(text(path).splitlines(), 1)]


def part(page: Path, heading: str) -> list[Line]:
    """The lines between a heading and the next one of its level, or of one above."""
    level = heading.partition(" ")[0]
    found = lines(page)
    begun = [number for number, line in enumerate(found, 1) if line.text == heading]
    assert len(begun) == 1, f"{name(page)}: expected one heading {heading!r}, got {len(begun)}"
    (start,) = begun
    ends = (n for n, line in enumerate(found) if n >= start and re.match(rf"#{{2,{len(level)}}} ", line.text))
    return found[start : next(ends, None)]


def matches(pattern: str, path: Path) -> Iterator[tuple[str, re.Match[str]]]:
    """A pattern's matches in a file, with their places; ^ and $ are ends of lines."""
    for found in re.finditer(pattern, text(path), re.MULTILINE):
        yield place(path, text(path).count("\n", 0, found.start()) + 1), found


@cache
def python_files(folder: Path) -> tuple[Path, ...]:
    found = tuple(sorted(folder.rglob("*.py")))
    assert found, f"no modules in {folder}"
    return found


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a module."""
    return tuple(ast.walk(ast.parse(text(path))))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Place and module of every import, at any depth."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((place(path, node.lineno), alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield place(path, node.lineno), "." * node.level + (node.module or "")


@cache
def functions(path: Path) -> tuple[Function, ...]:
    """The tests of a module, methods too. Only the needed facts stay in memory."""
    found = [
        Function(
            place(path, node.lineno), node.name, ast.get_docstring(node) or "", tuple(node.decorator_list)
        )
        for node in ast.walk(ast.parse(text(path)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    return tuple(sorted(found, key=lambda each: int(each.place.rpartition(":")[2])))
