"""Pages for people agree with the code: README, CHANGELOG, docs/, --help."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.repository import (
    DOCS,
    NAMED_TEST,
    PACKAGE,
    PAGES,
    README,
    ROOT,
    TESTS,
    Line,
    differing,
    functions,
    imports,
    lines,
    matches,
    name,
    part,
    python_files,
    text,
    told,
)
from wholefeed import __version__
from wholefeed.cli.main import COMMANDS, make_parser
from wholefeed.core.model import State

PROJECT = tomllib.loads(text(ROOT / "pyproject.toml"))
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9._-]+")
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN_TIME = PROJECT["project"]["dependencies"] + [each for extra in EXTRAS.values() for each in extra]
DEVELOPMENT = [each for group in PROJECT["dependency-groups"].values() for each in group]
RULES = DOCS / "rules.md"
COMMAND_LINE = DOCS / "command-line.md"
RULE_HEADING = r"^### (?P<title>[^(\n]+) \((?P<rule>[RPGIHFA]\d+)\)\n\n(?P<text>[^#|\n].*)$"
RULE_ROW = r"^\|(?P<rule>[RPGIHFA]\d+)\|(?P<modules>[^|\n]*)\|(?P<tests>[^|\n]*)\|$"
RULES_IN_ORDER = [
    f"{kind}{number}"
    for kind, numbers in {
        "R": range(37),
        "G": range(1, 4),
        "P": range(1, 10),
        "I": range(1, 5),
        "H": range(1, 12),
        "F": range(1, 4),
        "A": range(1, 7),
    }.items()
    for number in numbers
]
"""R0 to R36, of pages, replays, imports, lists, conversions and publishers."""


def names(requirements: list[str]) -> list[str]:
    return [found[0] for requirement in requirements if (found := REQUIREMENT_NAME.match(requirement))]


def rows(found: list[Line], pattern: str) -> list[Line]:
    """The table's rows of rules, as their groups joined by " | "."""
    matching = [(line.place, match) for line in found if (match := re.match(pattern, line.text))]
    return [Line(where, " | ".join(match.groups())) for where, match in matching]


def test_every_command_is_listed_as_help_does() -> None:
    """docs/command-line.md names every command, in order, with the same summary as --help."""
    found = rows(lines(COMMAND_LINE), r"\| `([\w-]+).*\| (.+) \|$")
    expected = [f"{command.name} | {command.summary}" for command in COMMANDS]
    told(differing(name(COMMAND_LINE), found, expected))


def test_only_flags_that_exist_are_named() -> None:
    """Every flag that README, docs/command-line.md and docs/configuration.md name is one of a command's."""
    helped = make_parser().format_help() + "".join(command_help(command.name) for command in COMMANDS)
    named = [
        (line.place, flag)
        for page in (README, COMMAND_LINE, DOCS / "configuration.md")
        for line in lines(page)
        for flag in re.findall(r"(?<!ARGS=)--[a-z]+", line.text)
    ]
    assert named
    told(f"{where}: {flag}, which no --help shows" for where, flag in named if flag not in helped)


def command_help(command: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        shown: list[str] = []
        patch.setattr(
            "argparse.ArgumentParser._print_message", lambda _self, text, _file=None: shown.append(text)
        )
        with pytest.raises(SystemExit):
            make_parser().parse_args([command, "--help"])
    return "".join(shown)


def test_readme_explains_every_state() -> None:
    """R16: README explains every state that Feed-Reconstruction can have."""
    found = rows(part(README, "## What a reader sees"), r"\| `([^`]+)` \|")
    told(differing("README.md, What a reader sees", found, [str(state) for state in State]))


def test_readme_is_read_in_five_minutes() -> None:
    """README has 1,200 words at most, not counting the lines of its tables and its drawing."""
    words = [each for each in text(README).split() if re.search(r"\w", each)]
    assert len(words) <= 1200


def test_readme_leads_to_every_page() -> None:
    """A reader of README finds each page of docs/."""
    linked = {found["page"] for _, found in matches(r"\]\(docs/(?P<page>[\w-]+\.md)", README)}
    told(f"{name(page)}: README does not link it" for page in DOCS.glob("*.md") if page.name not in linked)


def test_the_site_has_every_page() -> None:
    """mkdocs.yml names each page for people once, and no other."""
    nav = matches(r"^ +- [^:]+: (\S+\.md)$", ROOT / "mkdocs.yml")
    found = sorted((Line(where, row[1]) for where, row in nav), key=lambda line: line.text)
    told(differing("mkdocs.yml", found, sorted(map(name, PAGES))))


def test_readme_s_make_targets_exist() -> None:
    """Every `make` target that README mentions is in the Makefile."""
    targets = {target[1] for _, target in matches(r"^([a-z]+):", ROOT / "Makefile")}
    wanted = [(where, found[1]) for where, found in matches(r"\bmake ([a-z]+)", README)]
    told(
        f"{where}: make {target}, which the Makefile lacks"
        for where, target in wanted
        if target not in targets
    )
    assert {"serve", "demo", "test", "check", "bench", "help", "setup"} <= {target for _, target in wanted}


def cited(docstring: str) -> set[str]:
    """The rules in a docstring, alone or as "R4 to R6"."""
    spans = re.findall(r"\b([RPGIHFA])(\d+) to \1(\d+)\b", docstring)
    spans += [(kind, rule, rule) for kind, rule in re.findall(r"\b([RPGIHFA])(\d+)\b", docstring)]
    return {f"{kind}{rule}" for kind, first, last in spans for rule in range(int(first), int(last) + 1)}


def test_every_rule_has_its_row() -> None:
    """docs/rules.md has a text under a heading, and one row of its table, for each rule, in order."""
    headings = [heading["rule"] for _, heading in matches(RULE_HEADING, RULES)]
    twice = ("R14", "R20")
    assert headings == [rule for rule in RULES_IN_ORDER for _ in range(1 + (rule in twice))]
    assert [row["rule"] for _, row in matches(RULE_ROW, RULES)] == RULES_IN_ORDER


def unknown(files: Iterable[Path]) -> Iterator[str]:
    """Yield the tests with docstrings that name a rule missing in docs/rules.md."""
    for path in files:
        for test in functions(path):
            for rule in sorted(cited(test.docstring) - {*RULES_IN_ORDER}):
                yield f"{test.place}: there is no rule {rule}"


def test_no_test_names_a_rule_that_is_not_there() -> None:
    """Each rule in a test's docstring stands in docs/rules.md."""
    told(unknown(python_files(TESTS)))


def uncited(page: Path) -> Iterator[str]:
    """Tests in a rule's row with docstrings that do not name the rule."""
    for where, row in matches(RULE_ROW, page):
        named = re.findall(NAMED_TEST, row["tests"])
        if not named:
            yield f"{where}: {row['rule']} names no test"
        for file, test, _ in named:
            said = [each.docstring for each in functions(TESTS / file) if each.name == test]
            if not any(row["rule"] in cited(each) for each in said):
                yield f"{where}: expected {file}::{test} to cite {row['rule']} in its docstring"


def misplaced(page: Path) -> Iterator[str]:
    """Modules and packages in a rule's row that do not exist."""
    for where, row in matches(RULE_ROW, page):
        places = re.findall(r"`([\w/]+(?:\.py|/))`", row["modules"])
        if not places:
            yield f"{where}: {row['rule']} names no place"
        yield from (f"{where}: there is no {each}" for each in places if not (PACKAGE / each).exists())


def test_the_tests_that_a_rule_names_cite_it() -> None:
    """Each test in a row of docs/rules.md exists, and its docstring names that rule."""
    told(uncited(RULES))


def test_the_places_that_a_rule_names_exist() -> None:
    """Each module that docs/rules.md names for a rule exists."""
    told(misplaced(RULES))


def test_a_row_that_is_wrong_is_seen(tmp_path: Path) -> None:
    """A rule without a test or a place, with another rule's test, a missing place, or an unknown rule."""
    page = tmp_path / "rules.md"
    page.write_text(
        "|R5|somewhere|sometime|\n|R99|`core/nothing.py`|`test_docs.py::test_readme_explains_every_state`|\n",
        "utf-8",
    )
    assert [*uncited(page)] == [
        "rules.md:1: R5 names no test",
        "rules.md:2: expected test_docs.py::test_readme_explains_every_state to cite R99 in its docstring",
    ]
    assert [*misplaced(page)] == ["rules.md:1: R5 names no place", "rules.md:2: there is no core/nothing.py"]
    module = tmp_path / "test_b.py"
    module.write_text('def test_c():\n    """R98 to R99, H9."""\n', "utf-8")
    assert [*unknown([module])] == ["test_b.py:1: there is no rule R98", "test_b.py:1: there is no rule R99"]
    assert cited("R4 to R6, R8") == {"R4", "R5", "R6", "R8"}


def test_a_list_that_differs_is_seen() -> None:
    """The error names each item that is missing, surplus, doubled or out of order."""
    found = [Line("a.md:1", "b"), Line("a.md:2", "a"), Line("a.md:3", "x"), Line("a.md:4", "x")]
    assert [*differing("a.md", found, ["a", "b", "c"])] == [
        "a.md: lacks 'c'",
        "a.md:3: has 'x', which is not expected",
        "a.md:4: has 'x', which is not expected",
        "a.md: has 'x' twice",
    ]
    assert [*differing("a.md", found[:2], ["a", "b"])] == ["a.md: expected the order a, b"]
    assert [*differing("a.md", found[:2], ["b", "a"])] == []


def test_the_changelog_tells_of_this_version() -> None:
    """An operator finds the running version in CHANGELOG.md, with its date."""
    changelog = text(ROOT / "CHANGELOG.md")
    assert "\n## [Unreleased]\n" in changelog
    assert re.search(rf"^## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


def test_every_package_that_is_imported_is_declared() -> None:
    """A package that comes in through another may leave with it."""
    known = {each.lower().partition(".")[0].replace("-", "_") for each in names(RUN_TIME)}
    known |= sys.stdlib_module_names | {"wholefeed", "compression"}
    known |= {"readability"}  # of readability-lxml
    told(
        f"{where}: imports {module}, which pyproject.toml does not declare"
        for path in python_files(PACKAGE)
        for where, module in imports(path)
        if module.partition(".")[0] not in known
    )


def unexplained(required: list[str], page: Path) -> Iterator[str]:
    for each in required:
        if not re.search(rf"\*\*{re.escape(each)}\*\*\s+\([^()]*[^()\s],\s+20\d\d\)", text(page)):
            yield f"{name(page)}: expected **{each}** (who keeps it, year of its last release) and its reason"


def unpinned(required: list[str], page: Path) -> Iterator[str]:
    for each in required:
        if not re.search(rf"^{re.escape(each)}==[0-9.]+$", text(page), re.MULTILINE | re.IGNORECASE):
            yield f"{name(page)}: expected {each}==VERSION"


def test_every_dependency_is_justified() -> None:
    """docs/dependencies.md gives each a reason and its upkeep, so that none is added without."""
    told(unexplained(names(RUN_TIME + DEVELOPMENT), DOCS / "dependencies.md"))
    assert len([*unexplained(["nothing"], DOCS / "dependencies.md")]) == 1


def test_every_dependency_has_an_exact_version() -> None:
    """constraints.txt pins each dependency: two installations have the same code."""
    told(unpinned([*names(RUN_TIME + DEVELOPMENT), "pip"], ROOT / "constraints.txt"))
    assert len([*unpinned(["nothing"], ROOT / "constraints.txt")]) == 1


def test_constraints_name_no_registry() -> None:
    """constraints.txt has names and versions alone, and works with any package index."""
    told(
        f"{line.place}: {line.text!r}, expected NAME==VERSION"
        for line in lines(ROOT / "constraints.txt")
        if not re.fullmatch(r"#.*|[A-Za-z0-9._-]+==[0-9a-z.]+", line.text)
    )


def test_the_container_runs_as_nobody_special_and_keeps_its_data_apart() -> None:
    """The image runs without root and keeps the database on a volume."""
    expected = ("USER 10001:10001", "VOLUME /data", 'ENTRYPOINT ["wholefeed"]', 'CMD ["serve"]')
    found = text(ROOT / "Dockerfile").splitlines()
    told(f"Dockerfile: lacks {each}" for each in expected if each not in found)
