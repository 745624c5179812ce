"""The rules of the layout that nobody sees who reads one file."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
PACKAGE = ROOT / "proxy" / "wholefeed"
MODULES = sorted(PACKAGE.rglob("*.py"))
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
(PURE_MODULES,) = (contract["source_modules"] for contract in CONTRACTS if contract["type"] == "forbidden")
LONGEST_MODULE_LINES = 300
OUTSIDE = sorted(path for folder in ("end_to_end", "faults") for path in (TESTS / folder).rglob("*.py"))
"""Tests of the whole program."""
INSIDE = {path.stem for path in PACKAGE.iterdir()} - {"__init__"}
PUBLIC = re.compile(r"wholefeed\.(app|config|web\.keys|core\.terms|cli\.main)(\.|$)")
"""What they may know of the inside, beside the names that the package itself has."""

PURE = {
    "__future__", "abc", "base64", "bisect", "calendar", "codecs", "collections", "contextlib",
    "dataclasses", "datetime",
    "defusedxml", "email.utils", "encodings", "enum", "functools", "hashlib", "heapq", "hmac", "html",
    "html.parser", "idna", "ipaddress", "isal", "itertools", "json", "math", "operator", "posixpath",
    "re", "string", "struct", "types", "typing", "unicodedata", "urllib.parse", "wholefeed.core", "xml",
    "webencodings", "zlib",
}  # fmt: skip
"""What pure modules may import: nothing that reads a clock, makes random numbers, logs, or does I/O."""

HOLDS_SQL = ("store/", "store/sqlite/migrate.py")
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA\s+\w)",
    re.DOTALL,
)


def name(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and module of every import, wherever it stands."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}:{node.lineno}: a relative import"
            yield node.lineno, node.module or ""


def docstrings(module: ast.Module) -> set[int]:
    """The ids of the string nodes that stand alone as statements: docstrings."""
    return {
        id(node.value)
        for node in ast.walk(module)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def unexplained(module: ast.Module) -> list[str]:
    """The tests of a module, methods too, that have no docstring."""
    return [
        node.name
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not (ast.get_docstring(node) or "").strip()
    ]


def inner_names(module: ast.Module) -> list[tuple[int, str]]:
    """Line and name of what a test knows of the inside of the package, imported or written down as text."""
    told: list[tuple[int, str]] = []
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            told += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            told += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.Attribute):
            told.append((node.lineno, ast.unparse(node)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            told.append((node.lineno, node.value))
    return [(line, name) for line, name in told if is_inner(name)]


def is_inner(name: str) -> bool:
    """Whether a dotted name leads into the package, and to nothing that is public."""
    package, _, rest = name.partition(".")
    return package == "wholefeed" and rest.partition(".")[0] in INSIDE and PUBLIC.match(name) is None


def sources(module: str) -> list[Path]:
    """The files of a module or of a package, by its dotted name."""
    place = PACKAGE.parent.joinpath(*module.split("."))
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


@pytest.mark.parametrize("path", [path for module in PURE_MODULES for path in sources(module)], ids=name)
def test_pure_modules_import_nothing_that_does_io(path: Path) -> None:
    """What decides is pure wherever it lies, the core above all; time comes in as an argument."""
    for line, module in imports(path):
        allowed = any(module == one or module.startswith(f"{one}.") for one in (*PURE, *PURE_MODULES))
        assert allowed, f"{name(path)}:{line}: a pure module must not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_module_outgrows_its_subject(path: Path) -> None:
    """A module of more than 300 lines has two subjects, and nobody finds the second one."""
    lines = len(path.read_text("utf-8").splitlines())
    assert lines <= LONGEST_MODULE_LINES, f"{name(path)} has {lines} lines: it has two subjects"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_imports_are_absolute(path: Path) -> None:
    """Relative imports would hide which layer a module reaches into."""
    assert all(module for _, module in imports(path))


@pytest.mark.parametrize("path", [path for path in MODULES if path.name == "__init__.py"], ids=name)
def test_packages_re_export_nothing(path: Path) -> None:
    """Re-exports are how circles start; the package itself imports its public names when they are used."""
    late = {"importlib"} if path.parent == PACKAGE else set()
    assert {module for _, module in imports(path)} <= {"__future__", *late}


@pytest.mark.parametrize("path", [path for path in MODULES if not name(path).startswith(HOLDS_SQL)], ids=name)
def test_sql_stands_in_the_store_alone(path: Path) -> None:
    """docs/design.md#the-shape-of-the-code: the store holds ALL SQL."""
    module = tree(path)
    texts = docstrings(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            assert not SQL.search(node.value), f"{name(path)}:{node.lineno}: SQL outside the store"


def test_only_the_command_line_configures_logging_and_reads_the_environment() -> None:
    """docs/design.md#the-shape-of-the-code; the environment reaches everything else as a Config."""
    for path in MODULES:
        text = path.read_text("utf-8")
        if not name(path).startswith("cli/") and name(path) != "logs.py":
            assert "configure_logging" not in text, name(path)
            assert "structlog.configure" not in text, name(path)
            read = {ast.unparse(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
            assert not read & {"os.environ", "os.getenv"}, name(path)


def test_every_test_says_what_it_shows() -> None:
    """Whoever breaks a test reads in its docstring what would be wrong for a reader, and need not guess."""
    sample = "class TestA:\n  async def test_b(self): ...\ndef test_c(): 'Said.'\ndef test_d(): ' '"
    assert sorted(unexplained(ast.parse(sample))) == ["test_b", "test_d"]
    found = {str(path.relative_to(TESTS)): unexplained(tree(path)) for path in sorted(TESTS.rglob("*.py"))}
    assert len(found) > 100
    assert {path: names for path, names in found.items() if names} == {}


def test_tests_of_the_whole_program_know_nothing_inside_of_it() -> None:
    """They hold what others see, and so they stay as they are when the inside is written anew."""
    assert len(OUTSIDE) > 30
    found = {str(path.relative_to(TESTS)): inner_names(tree(path)) for path in OUTSIDE}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_rules_of_this_file_see_what_they_forbid(tmp_path: Path) -> None:
    """A rule that finds nothing in a bad file would find nothing in a good one either."""
    bad = tmp_path / "bad.py"
    bad.write_text('"""SELECT x FROM docstring"""\nimport time\nQ = """SELECT a\n  FROM b"""\n', "utf-8")
    module = tree(bad)
    found = [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant)
        and id(node) not in docstrings(module)
        and SQL.search(str(node.value))
    ]
    assert found == ["SELECT a\n  FROM b"]
    assert list(imports(bad)) == [(2, "time")]
    assert "time" not in PURE

    sample = """
import wholefeed, wholefeed.errors
from wholefeed import State, app, errors
from wholefeed.web import keys, routes
from wholefeed.config.tables import Config
from wholefeed.core.terms import Family
find("wholefeed.store.store.Store")
wholefeed.core.model.Entry
wholefeed.reconstruct("wholefeed.db")
"""
    seen = {line for line, _ in inner_names(ast.parse(sample))}
    assert seen == {2, 3, 4, 7, 8}
    assert {"wholefeed.errors", "wholefeed.web.routes"} < {name for _, name in inner_names(ast.parse(sample))}


def test_the_seconds_of_a_day_stand_in_one_place() -> None:
    """A number that is written down again is one that can differ."""
    found = [
        name(path)
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value == 86_400
    ]
    assert found == ["core/text/dates.py"]


def test_loggers_come_from_one_place() -> None:
    """One of structlog's own would print into the output of whoever uses the library."""
    for path in MODULES:
        if name(path) not in ("loggers.py", "logs.py") and not name(path).startswith("cli/"):
            assert "structlog.get_logger" not in path.read_text("utf-8"), name(path)


@pytest.mark.parametrize(
    ("changed", "line", "told"),
    [
        ("stray.py", "", "stray"),
        ("server/buckets.py", "import time", "wholefeed.server.buckets -> time"),
        ("service/service.py", "import wholefeed.web.routes", "service.service -> wholefeed.web.routes"),
        ("errors.py", "", ""),
    ],
)  # fmt: skip
def test_the_contracts_refuse_what_they_are_for(tmp_path: Path, changed: str, line: str, told: str) -> None:
    """A module that is in no layer, a clock in a pure one, an import that goes up; else all is well."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "wholefeed", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "wholefeed" / changed).open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [linter, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert bool(done.returncode) is bool(told), done.stdout + done.stderr
    assert told in done.stdout
