"""Rules of the layout that no single file shows."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.patching import CONSTANTS
from tests.repository import (
    PACKAGE,
    ROOT,
    TESTS,
    functions,
    imports,
    matches,
    nodes,
    place,
    python_files,
    text,
    told,
)

CONTRACTS = tomllib.loads(text(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
(PURE_MODULES,) = (contract["source_modules"] for contract in CONTRACTS if contract["type"] == "forbidden")
LONGEST_MODULE_LINES = 1300
OUTSIDE = sorted(path for folder in ("end_to_end", "faults") for path in (TESTS / folder).rglob("*.py"))
"""Tests of the whole program."""
INSIDE = {path.stem for path in PACKAGE.iterdir()} - {"__init__"}
PUBLIC = re.compile(r"wholefeed\.(app|config|web\.keys|core\.model\.[A-Z0-9_]+_NS|cli\.main)(\.|$)")
"""Inner names that they may use, beside the package's own public names."""

PURE = {
    "__future__", "abc", "base64", "bisect", "calendar", "codecs", "collections", "contextlib",
    "dataclasses", "datetime",
    "defusedxml", "email.utils", "encodings", "enum", "functools", "hashlib", "heapq", "hmac", "html",
    "html.parser", "idna", "ipaddress", "isal", "itertools", "json", "lxml", "math", "nh3", "operator",
    "posixpath", "re", "readability", "string", "struct", "types", "typing", "unicodedata", "urllib.parse",
    "wholefeed.core", "webencodings", "xml", "zlib",
}  # fmt: skip
"""Allowed imports of pure modules: nothing that reads a clock, makes random numbers, logs, or does I/O."""

SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA\s+\w)",
    re.DOTALL,
)


SECONDS_OF_A_DAY = 86_400


def modules(*, without: tuple[str, ...] = ()) -> list[Path]:
    """The package's modules, except those under these paths."""
    return [
        path for path in python_files(PACKAGE) if not path.relative_to(PACKAGE).as_posix().startswith(without)
    ]


def names(path: Path) -> Iterator[tuple[str, str]]:
    """Place and dotted name of a module's imports, attributes, and names in texts."""
    for node in nodes(path):
        match node:
            case ast.Import():
                yield from ((place(path, node.lineno), alias.name) for alias in node.names)
            case ast.ImportFrom():
                yield from ((place(path, node.lineno), f"{node.module}.{alias.name}") for alias in node.names)
            case ast.Attribute():
                yield place(path, node.lineno), ast.unparse(node)
            case ast.Constant(value=str(said)):
                yield place(path, node.lineno), said


def inner_names(path: Path) -> Iterator[str]:
    """Names of the package's inside in a test."""
    for where, name in names(path):
        if is_inner(name):
            yield f"{where}: {name}, expected nothing of the package but what is public"


def is_inner(name: str) -> bool:
    """Whether a dotted name leads into the package, to no public name."""
    package, _, rest = name.partition(".")
    return package == "wholefeed" and rest.partition(".")[0] in INSIDE and PUBLIC.match(name) is None


def sources(module: str) -> list[Path]:
    """The files of a module or of a package, by its dotted name."""
    folder = PACKAGE.parent.joinpath(*module.split("."))
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def imported_beside(path: Path, allowed: Collection[str]) -> Iterator[str]:
    """Imports outside the allowed modules and packages."""
    for where, module in imports(path):
        if not any(module == one or module.startswith(f"{one}.") for one in allowed):
            yield f"{where}: imports {module}, which is not in the list of what it may import"


def strings(path: Path) -> Iterator[tuple[str, str]]:
    """The texts of a module except docstrings, with their places."""
    alone = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield place(path, node.lineno), node.value


def sql(path: Path) -> Iterator[str]:
    yield from (
        f"{where}: SQL, expected in store/ alone" for where, said in strings(path) if SQL.search(said)
    )


def too_long(path: Path) -> Iterator[str]:
    found = len(text(path).splitlines())
    if found > LONGEST_MODULE_LINES:
        yield f"{place(path, found)}: expected at most {LONGEST_MODULE_LINES} lines: it has two subjects"


def saying(path: Path, word: str, expected: str) -> Iterator[str]:
    for where, _ in matches(re.escape(word), path):
        yield f"{where}: {word}, expected in {expected}"


def reading_the_environment(path: Path) -> Iterator[str]:
    for node in nodes(path):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "getenv"):
                yield f"{place(path, node.lineno)}: os.{node.attr}, expected in cli/ alone"


def days(path: Path) -> Iterator[str]:
    for node in nodes(path):
        if isinstance(node, ast.Constant) and node.value == SECONDS_OF_A_DAY:
            yield f"{place(path, node.lineno)}: the seconds of a day, expected in core/text/dates.py alone"


def unexplained(path: Path) -> Iterator[str]:
    """The tests without a docstring."""
    for test in functions(path):
        if not test.docstring.strip():
            yield f"{test.place}: {test.name} has no docstring"


def test_pure_modules_import_nothing_that_does_io() -> None:
    """Decisions are pure code, the core above all; time comes in as an argument."""
    pure = [path for module in PURE_MODULES for path in sources(module)]
    told(each for path in pure for each in imported_beside(path, {*PURE, *PURE_MODULES}))


def test_no_module_outgrows_its_subject() -> None:
    """A long module may hide a second subject. A shorter one may too, and one subject alone may be long."""
    told(each for path in modules() for each in too_long(path))


def test_packages_re_export_nothing() -> None:
    """Re-exports cause import circles; the package itself imports its public names on use."""
    late = {PACKAGE / "__init__.py": ("importlib",)}
    packages = [path for path in modules() if path.name == "__init__.py"]
    told(each for path in packages for each in imported_beside(path, ("__future__", *late.get(path, ()))))


def test_sql_stands_in_the_store_alone() -> None:
    """docs/design.md#the-shape-of-the-code: the store holds ALL SQL."""
    told(each for path in modules(without=("store/",)) for each in sql(path))


def test_only_the_command_line_configures_logging_and_reads_the_environment() -> None:
    """docs/design.md#the-shape-of-the-code; the environment reaches other modules as a Config. The starter of
    workers only names the variables they get."""
    expected = "cli/ and logs.py alone"
    others = modules(without=("cli/", "logs.py"))
    told(
        each
        for path in others
        for each in (
            *saying(path, "configure_logging", expected),
            *saying(path, "structlog.configure", expected),
        )
    )
    told(
        each
        for path in modules(without=("cli/", "logs.py", "workers/pool.py"))
        for each in reading_the_environment(path)
    )


def test_loggers_come_from_one_place() -> None:
    """A logger of structlog's own would print into the output of the library's user."""
    others = modules(without=("cli/", "logs.py"))
    told(each for path in others for each in saying(path, "structlog.get_logger", "logs.py alone"))


def test_the_seconds_of_a_day_stand_in_one_place() -> None:
    """A repeated number can differ."""
    told(each for path in modules(without=("core/text/dates.py",)) for each in days(path))


def test_every_test_says_what_it_shows() -> None:
    """The docstring of a broken test tells what would be wrong for a reader."""
    told(each for path in python_files(TESTS) for each in unexplained(path))


BAD = '''"""SELECT x FROM docstring"""
import time
from .. import near
from wholefeed.core import notes
Q = """SELECT a
  FROM b"""
log = structlog.get_logger(os.environ["A"], 86400)
class TestA:
  async def test_b(self): ...
def test_c(): "Said."
def test_d(): " "
'''


KNOWING = """import wholefeed, wholefeed.errors
from wholefeed import State, app, errors
from wholefeed.web import keys, routes
from wholefeed.config.tables import Config
from wholefeed.core.model import ATOM_NS
find("wholefeed.store.store.Store")
wholefeed.core.model.Entry
wholefeed.reconstruct("wholefeed.db")
"""


def test_tests_of_the_whole_program_know_nothing_inside_of_it() -> None:
    """They check the visible behaviour, and so survive a rewrite of the inside."""
    assert len(OUTSIDE) > 30
    told(each for path in OUTSIDE for each in inner_names(path))


def test_the_rules_of_this_file_see_what_they_forbid(tmp_path: Path) -> None:
    """A rule that finds nothing in a bad file would find nothing in a good one either."""
    bad = tmp_path / "bad.py"
    bad.write_text(BAD + "\n" * LONGEST_MODULE_LINES, "utf-8")
    may_not = "which is not in the list of what it may import"
    assert [*imported_beside(bad, PURE)] == [
        f"bad.py:2: imports time, {may_not}",
        f"bad.py:3: imports .., {may_not}",
    ]
    assert [*sql(bad)] == ["bad.py:5: SQL, expected in store/ alone"]
    assert [*saying(bad, "structlog.get_logger", "x")] == ["bad.py:7: structlog.get_logger, expected in x"]
    assert [*reading_the_environment(bad)] == ["bad.py:7: os.environ, expected in cli/ alone"]
    assert [*days(bad)] == ["bad.py:7: the seconds of a day, expected in core/text/dates.py alone"]
    assert [*unexplained(bad)] == [
        "bad.py:9: test_b has no docstring",
        "bad.py:11: test_d has no docstring",
    ]
    knowing = tmp_path / "knowing.py"
    knowing.write_text(KNOWING, "utf-8")
    assert {each.partition(", ")[0] for each in inner_names(knowing)} == {
        "knowing.py:1: wholefeed.errors",
        "knowing.py:2: wholefeed.errors",
        "knowing.py:3: wholefeed.web.routes",
        "knowing.py:6: wholefeed.store.store.Store",
        "knowing.py:7: wholefeed.core",
        "knowing.py:7: wholefeed.core.model",
        "knowing.py:7: wholefeed.core.model.Entry",
    }
    assert [*too_long(bad)] == ["bad.py:1311: expected at most 1300 lines: it has two subjects"]


def linted(folder: Path) -> tuple[int, str]:
    """The exit code and output of import-linter there."""
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [linter, "--no-cache"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_refuse_what_they_are_for(tmp_path: Path) -> None:
    """A module in no layer, a clock in a pure one, an upward import; else all is well."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = shutil.copytree(PACKAGE, tmp_path / "wholefeed", ignore=shutil.ignore_patterns("__pycache__"))
    code, said = linted(tmp_path)
    assert code == 0, said
    for changed, line in (
        ("stray.py", ""),
        ("server/clients.py", "import time"),
        ("service/service.py", "import wholefeed.web.routes"),
    ):
        with (package / changed).open("a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")
    code, said = linted(tmp_path)
    assert code == 1, said
    for refused in ("stray", "server.clients -> time", "service.service -> wholefeed.web.routes"):
        assert refused in said


# What tests change stands in the table of tests/patching.py and nowhere else

SOURCES = [path for path in python_files(TESTS) if path.name not in ("patching.py", "test_architecture.py")]
QUOTING = r"""setattr\(\s*f?["']wholefeed\."""


def is_changed(name: str) -> bool:
    pattern = re.compile(rf'\b(set_constant|for name in)\b.*"{name}"')
    return any(name in text(path) and pattern.search(text(path)) for path in SOURCES)


def test_every_constant_in_the_table_is_one_that_a_test_changes() -> None:
    """An unused entry of the table fails here."""
    assert not is_changed("NO" + "BODY")
    told(f"tests/patching.py: no test changes {name}" for name in CONSTANTS if not is_changed(name))


def test_no_test_quotes_the_path_of_what_it_patches(tmp_path: Path) -> None:
    """A moved module breaks tests only through the table."""
    quoted = "the path of what it patches, expected set_constant"
    told(f"{where}: {quoted}" for path in SOURCES for where, _ in matches(QUOTING, path))
    bad = tmp_path / "bad.py"
    bad.write_text('patch.setattr(\n    "wholefeed.core.notes.SLUGS", {})\n')
    assert [where for where, _ in matches(QUOTING, bad)] == ["bad.py:1"]
