"""What is written for people must agree with the code: README, CHANGELOG, docs/dependencies.md, --help."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from wholefeed import __version__
from wholefeed.cli.main import COMMANDS, make_parser
from wholefeed.config.tables import KEYS
from wholefeed.config.text import toml_value
from wholefeed.core.terms import State

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9._-]+")

EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN_TIME = PROJECT["project"]["dependencies"] + [each for extra in EXTRAS.values() for each in extra]
DEVELOPMENT = PROJECT["dependency-groups"]["dev"]


def part(heading: str, text: str = README) -> str:
    """The text between a heading and the next one of its level."""
    level = heading.partition(" ")[0]
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, f"no heading {heading!r}"
    return re.split(rf"^{level} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(table: str) -> list[str]:
    """The first column of the tables in a text, without their heads."""
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return [cell for cell in rows if cell.startswith("`")]


def names(requirements: list[str]) -> list[str]:
    return [found[0] for requirement in requirements if (found := REQUIREMENT_NAME.match(requirement))]


@pytest.mark.parametrize("section", [section for section, _ in groupby(KEYS, key=lambda key: key.section)])
def test_readme_lists_every_key_of_the_section_with_its_default_and_why(section: str) -> None:
    """README's tables of the configuration show each key, default and reason that the code has."""
    expected = [
        f"| `{key.key}` | `{toml_value(key.default)}` | {key.why} |" for key in KEYS if key.section == section
    ]
    text = part(f"### [{section}]", part("## Configuration"))
    assert [line for line in text.splitlines() if line.startswith("| `")] == expected


def test_readme_lists_every_command_as_help_does() -> None:
    """README names every command, in order, with the same summary as --help."""
    rows = part("## Command line")
    for command in COMMANDS:
        assert re.search(rf"^\| `{command.name}\b.*\| {re.escape(command.summary)} \|$", rows, re.MULTILINE)
    assert [cell.strip("`").split()[0] for cell in first_cells(rows)] == [
        command.name for command in COMMANDS
    ]


def test_readme_names_only_flags_that_exist() -> None:
    """Every flag that README names is one that some command takes."""
    help_texts = make_parser().format_help() + "".join(command_help(command.name) for command in COMMANDS)
    for flag in set(re.findall(r"--[a-z]+", part("## Command line") + part("## Configuration"))):
        assert flag in help_texts, flag


def command_help(name: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        shown: list[str] = []
        patch.setattr(
            "argparse.ArgumentParser._print_message", lambda _self, text, _file=None: shown.append(text)
        )
        with pytest.raises(SystemExit):
            make_parser().parse_args([name, "--help"])
    return "".join(shown)


def test_readme_explains_every_state() -> None:
    """R16: README explains every state that Feed-Reconstruction can have."""
    assert first_cells(part("## What a reader sees")) == [f"`{state}`" for state in State]


def test_readme_s_make_targets_exist() -> None:
    """Every `make` target that README mentions is in the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    wanted = set(re.findall(r"\bmake ([a-z]+)", README))
    assert {"serve", "demo", "test", "check", "bench", "help", "setup"} <= wanted
    for target in wanted:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize(
    "document",
    sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]),
)
def test_links_lead_somewhere(document: str) -> None:
    """No relative link of the pages for people leads to a file that is not in the repository."""
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


NAMED_TEST = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<test>test_\w+)(?:\[(?P<case>[^\]]+)\])?`")
RULES = (ROOT / "docs/rules.md").read_text("utf-8")
RULE_ROWS = re.findall(r"^\| R(\d+) \|.*$", RULES, re.MULTILINE)


@cache
def docstrings(file: str) -> dict[str, str]:
    """The docstrings of a file's test functions, by their names."""
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: ast.get_docstring(node) or "" for node in tests if node.name.startswith("test_")}


def cited(docstring: str) -> set[int]:
    """The rules that a docstring names, alone or as "R4 to R6"."""
    spans = [(int(first), int(last)) for first, last in re.findall(r"\bR(\d+) to R(\d+)\b", docstring)]
    spans += [(int(rule), int(rule)) for rule in re.findall(r"\bR(\d+)\b", docstring)]
    return {rule for first, last in spans for rule in range(first, last + 1)}


def test_every_rule_has_its_row() -> None:
    """docs/rules.md has one row for each rule, in order: R0 to R32, and R34."""
    numbers = [int(rule) for rule in RULE_ROWS]
    assert numbers == sorted(set(numbers))
    assert {*range(33), 34} <= set(numbers)


@pytest.mark.parametrize("rule", RULE_ROWS)
def test_the_tests_that_a_rule_names_cite_it(rule: str) -> None:
    """Each test that a row of docs/rules.md names exists, and says in its docstring that it shows that
    rule."""
    (row,) = re.findall(rf"^\| R{rule} \|.*$", RULES, re.MULTILINE)
    named = NAMED_TEST.findall(row)
    assert named
    for file, test, _ in named:
        assert int(rule) in cited(docstrings(file)[test]), f"{file}::{test} does not cite R{rule}"


@pytest.mark.parametrize("rule", RULE_ROWS)
def test_the_places_that_a_rule_names_exist(rule: str) -> None:
    """Where docs/rules.md says that a rule is decided, there is such a module."""
    (row,) = re.findall(rf"^\| R{rule} \|.*$", RULES, re.MULTILINE)
    places = re.findall(r"`([\w/]+(?:\.py|/))`", row.split(" | ")[3])
    assert places
    for place in places:
        assert (ROOT / "proxy" / "wholefeed" / place).exists(), place


def test_the_tests_that_compatibility_names_exist() -> None:
    """The tests and cases that docs/compatibility.md cites for a publisher's habits exist."""
    page = (ROOT / "docs/compatibility.md").read_text("utf-8")
    named = NAMED_TEST.findall(page)
    assert len(named) > 20
    for file, test, case in named:
        assert test in docstrings(file), f"{file}::{test}"
        assert not case or f'"{case}"' in (ROOT / "tests" / file).read_text("utf-8"), f"{file}: {case}"


def test_the_changelog_tells_of_this_version() -> None:
    """An operator finds the version that runs in CHANGELOG.md, with its date."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "\n## [Unreleased]\n" in changelog
    assert re.search(rf"^## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


def test_every_package_that_is_imported_is_declared() -> None:
    """What comes in through another package may leave with it."""
    roots = {
        module.partition(".")[0]
        for path in (ROOT / "proxy").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for module in imported(node)
    }
    known = {name.lower().partition(".")[0].replace("-", "_") for name in names(RUN_TIME)}
    assert roots - sys.stdlib_module_names - {"wholefeed", "compression"} <= known


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


@pytest.mark.parametrize("name", names(RUN_TIME + DEVELOPMENT))
def test_every_dependency_is_justified(name: str) -> None:
    """Each dependency has its reason in docs/dependencies.md, so that none is added without one."""
    text = (ROOT / "docs/dependencies.md").read_text("utf-8")
    assert re.search(rf"(^\| (.*, )?{re.escape(name)}( \||,)|\*\*{re.escape(name)}\*\*)", text, re.MULTILINE)


@pytest.mark.parametrize("name", [*names(RUN_TIME + DEVELOPMENT), "pip"])
def test_every_dependency_has_an_exact_version(name: str) -> None:
    """constraints.txt pins each dependency: two installations have the same code."""
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    assert re.search(rf"^{re.escape(name)}==[0-9.]+$", constraints, re.MULTILINE | re.IGNORECASE)


def test_constraints_name_no_registry() -> None:
    """constraints.txt has names and versions alone, and works with any package index."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert all(re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[0-9a-z.]+", line) for line in lines)


def test_the_container_runs_as_nobody_special_and_keeps_its_data_apart() -> None:
    """The image runs without root and keeps the database on a volume."""
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert "USER 10001:10001" in lines
    assert "VOLUME /data" in lines
    assert 'ENTRYPOINT ["wholefeed"]' in lines
    assert 'CMD ["serve"]' in lines
