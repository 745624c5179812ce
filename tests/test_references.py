"""Targets of references in code, tests and pages exist: pages, headings, rows, tests, files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.repository import (
    DOCS,
    NAMED_TEST,
    PACKAGE,
    PAGES,
    ROOT,
    TESTS,
    Line,
    differing,
    functions,
    lines,
    matches,
    name,
    python_files,
    text,
    told,
)
from wholefeed.fetch.guard import GLOBAL_IPV6, REFUSED_NETWORKS

FOLDERS = ("proxy", "tests", "migrations", "benchmarks", "demo", "fuzz", "docs", "release", ".github")
SUFFIXES = {"", ".py", ".sql", ".md", ".toml", ".yml", ".yaml"}

ELSEWHERE = {
    "a section of a design": r"\b[Dd]esign(?: page)?,? sections? \d",
    "a finding": r"\b[Ff]indings? \d",
    "a row of another page": r"\bFAULTS[ ,]+(?:\d+|rows?|parts?|sections?|findings?|terms|limits)\b",
    "a page of style": r'\bStyle, "',
    "a page of readers": r"; READERS\b|\bREADERS: (?!Final\b)\w",
}
"""Names of pages outside this repository."""

FAULTS = DOCS / "faults.md"
ROW = r"docs/faults\.md rows? (?P<rows>\d+a?(?:(?:, | to | and )\d+a?\b)*)"
PART = r"docs/faults\.md parts? (?P<part>[A-Z])\b"
PAGE = r"\b(?P<page>docs/[\w-]+\.md|README\.md(?=#))(?:#(?P<heading>[a-z0-9-]+))?"
LINK = r"\]\((?!https://)(?P<target>[^)#]*)(?:#(?P<heading>[^)]*))?\)"
TREE_NAME = r"`(?P<path>[\w.-]+(?:/[\w.*-]+)*(?:\.(?:py|md|toml|sql|txt|yml|yaml)|/))`"


def files() -> list[Path]:
    """All files with references, except this one with its samples."""
    below = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = [*ROOT.glob("*.md"), ROOT / "pyproject.toml", ROOT / "Makefile", *below]
    return sorted(
        path for path in found if path.suffix in SUFFIXES and path.is_file() and path != Path(__file__)
    )


def headings(page: str) -> set[str]:
    return headings_of(ROOT / page)


@cache
def headings_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    found = [heading[1] for _, heading in matches(r"^#+ (.+)$", page)]
    return {
        re.sub(r"[^\w -]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")
        for heading in found
    }


def rows(said: str) -> set[str]:
    """The rows in a text like "1 to 3, 10 and 66a"."""
    found = set(re.findall(r"\d+a?", said))
    for first, last in re.findall(r"(\d+) to (\d+)", said):
        found |= {str(row) for row in range(int(first), int(last) + 1)}
    return found


@cache
def fault_rows() -> set[str]:
    return {row[1] for _, row in matches(r"^\| (\d+a?) \|", FAULTS)}


def astray(path: Path) -> Iterator[str]:
    """References to missing pages, headings and rows."""
    for what, pattern in ELSEWHERE.items():
        for where, found in matches(pattern, path):
            yield f"{where}: {found[0]!r} is {what}, expected a page of this repository"
    for where, found in matches(PAGE, path):
        page, heading = found["page"], found["heading"]
        if not (ROOT / page).exists():
            yield f"{where}: there is no {page}"
        elif heading and heading not in headings(page):
            yield f"{where}: {page} has no heading {heading}"
    for where, found in matches(ROW, path):
        yield from (f"{where}: docs/faults.md has no row {row}" for row in rows(found["rows"]) - fault_rows())
    parts = {heading[0].upper() for heading in headings("docs/faults.md") if heading[1:2] == "-"}
    for where, found in matches(PART, path):
        if found["part"] not in parts:
            yield f"{where}: docs/faults.md has no part {found['part']}"


def dead_links(page: Path) -> Iterator[str]:
    for where, link in matches(LINK, page):
        target = page.parent / link["target"] if link["target"] else page
        if not target.exists():
            yield f"{where}: a link to {link['target']}, which is not there"
        elif link["heading"] and link["heading"] not in headings_of(target):
            yield f"{where}: {name(target.resolve())} has no heading {link['heading']}"


def missing_tests(page: Path) -> Iterator[str]:
    """A page's tests, and cases of them, that do not exist."""
    for where, named in matches(NAMED_TEST, page):
        file, test, case = TESTS / named["file"], named["test"], named["case"]
        if not file.exists():
            yield f"{where}: there is no tests/{named['file']}"
        elif test not in {each.name for each in functions(file)}:
            yield f"{where}: tests/{named['file']} has no {test}"
        elif case and f'"{case}"' not in text(file):
            yield f'{where}: tests/{named["file"]} has no case "{case}"'


def missing_files(page: Path) -> Iterator[str]:
    """A page's files that do not exist; modules may be named below the package or below core/."""
    for where, named in matches(TREE_NAME, page):
        bases = (ROOT, PACKAGE, DOCS, TESTS)
        if not any(True for base in bases for _ in base.glob(named["path"].rstrip("/"))):
            yield f"{where}: there is no {named['path']}"


def test_every_reference_leads_to_a_page_of_this_repository() -> None:
    """A reader of the code has nothing else: a comment's source stands in place or on a page beside it."""
    told(each for path in files() for each in astray(path))


def test_links_lead_somewhere() -> None:
    """No relative link of the pages for people leads to a missing file."""
    told(each for page in PAGES for each in dead_links(page))


def test_the_tests_that_a_page_names_exist() -> None:
    """A page's evidence for a rule, a fault, a control or a publisher's habit can be run."""
    told(each for page in PAGES for each in missing_tests(page))


def test_the_files_that_a_page_names_exist() -> None:
    """A map with a missing place misleads."""
    told(
        each for page in (ROOT / "CONTRIBUTING.md", DOCS / "architecture.md") for each in missing_files(page)
    )


def misplaced_shapes(page: Path) -> Iterator[str]:
    """Classes in a table that are missing in their named module."""
    for where, row in matches(r"^\| `(?P<shape>\w+)` \| `(?P<module>[\w/]+\.py)` \|", page):
        module = PACKAGE / row["module"]
        if not module.exists() or not re.search(rf"^class {row['shape']}\b", text(module), re.MULTILINE):
            yield f"{where}: {row['module']} has no class {row['shape']}"


def test_the_shapes_of_a_document_stand_where_the_map_says() -> None:
    """A table's row gives each class a reason, and goes with it."""
    told(misplaced_shapes(DOCS / "architecture.md"))


BAD = """(design, section 6)
Design, sections 2 and 4
FAULTS 63.
FAULTS, finding 8
FAULTS part A
(finding 9)
Style, "Shape"
(design, section 2; READERS)
"""


def test_the_patterns_see_what_they_forbid(tmp_path: Path) -> None:
    """Each pattern finds its earlier cases in this repository."""
    bad = tmp_path / "bad.md"
    bad.write_text(BAD, "utf-8")
    told_of = {each.split(":")[1] for each in astray(bad)}
    assert told_of == {str(number) for number in range(1, 9)}


def test_what_is_not_there_is_seen(tmp_path: Path) -> None:
    """Pages, headings, rows, parts, links, tests, cases and files."""
    for written, rule, said in (
        ("see docs/nowhere.md", astray, "there is no docs/nowhere.md"),
        ("see docs/design.md#nowhere", astray, "docs/design.md has no heading nowhere"),
        ("README.md#nowhere", astray, "README.md has no heading nowhere"),
        ("docs/faults.md rows 1, 2 and 999", astray, "docs/faults.md has no row 999"),
        ("docs/faults.md part Z", astray, "docs/faults.md has no part Z"),
        ("[a](https://b.example) [b](c.md#d)", dead_links, "a link to c.md, which is not there"),
        ("[a](#nowhere)", dead_links, "6.md has no heading nowhere"),
        ("`no/test_a.py::test_b`", missing_tests, "there is no tests/no/test_a.py"),
        ("`test_docs.py::test_b`", missing_tests, "tests/test_docs.py has no test_b"),
        (
            "`core/test_links.py::test_the_first_dialect_that_fits_counts[no]`",
            missing_tests,
            'tests/core/test_links.py has no case "no"',
        ),
        ("`core/nothing.py`, `core/notes.py`", missing_files, "there is no core/nothing.py"),
        ("| `Kept` | `core/facts.py` | a |", misplaced_shapes, "core/facts.py has no class Kept"),
        ("| `A` | `core/nothing.py` | a |", misplaced_shapes, "core/nothing.py has no class A"),
    ):
        bad = tmp_path / f"{len([*tmp_path.iterdir()])}.md"
        bad.write_text(f"\n{written}\n", "utf-8")
        assert [*rule(bad)] == [f"{bad.name}:2: {said}"]


def test_rows_and_headings_are_read_as_they_are_written() -> None:
    """Spans count whole, and an anchor equals a forge's for the heading."""
    assert rows("1 to 3, 10 and 66a") == {"1", "2", "3", "10", "66a"}
    assert {"the-store", "readers-connections"} <= headings("docs/design.md")
    assert {"1", "66a", "82"} <= fault_rows()


# docs/faults.md and the tests that bear its numbers

FAULT_ROW = r"^\| (?P<number>\d+\w?) \| (?P<fault>[^|]+) \| (?P<outcome>[^|]+) \| (?P<tests>[^|]+) \|$"


def listed_tests(page: Path) -> dict[str, tuple[str, set[str]]]:
    """The place of each row of the page, and its tests."""
    return {
        row["number"]: (
            where,
            {f"{each['file']}::{each['test']}" for each in re.finditer(NAMED_TEST, row["tests"])},
        )
        for where, row in matches(FAULT_ROW, page)
    }


def marked(folder: Path) -> dict[str, tuple[str, set[str]]]:
    """The place of each test with row numbers, and the numbers."""
    found = {}
    for path in python_files(folder):
        for test in functions(path) if ".fault(" in text(path) else ():
            marks = [mark for mark in test.decorators if isinstance(mark, ast.Call)]
            numbers = {
                str(each.value)
                for mark in marks
                if ast.unparse(mark.func) == "pytest.mark.fault"
                for each in mark.args
                if isinstance(each, ast.Constant)
            }
            if numbers:
                found[f"{path.relative_to(folder).as_posix()}::{test.name}"] = test.place, numbers
    return found


def disagreeing(page: Path, folder: Path) -> Iterator[str]:
    """Rows without tests, and marks that the page misses."""
    listed, bearing = listed_tests(page), marked(folder)
    for number, (where, tests) in listed.items():
        if not tests:
            yield f"{where}: row {number} names no test"
        for test in sorted(tests):
            if number not in bearing.get(test, ("", set()))[1]:
                yield f"{where}: expected {test} to be marked fault({number!r})"
    for test, (where, numbers) in bearing.items():
        for number in sorted(numbers):
            if test not in listed.get(number, ("", set()))[1]:
                yield f"{where}: expected row {number} of {name(page)} to list {test}"


def test_the_page_has_every_row_in_its_order() -> None:
    """The catalogue has the rows 1 to 82 and 84 on; a letter marks a row between two of them."""
    numbers = list(listed_tests(FAULTS))
    assert numbers == sorted(numbers, key=lambda number: (int(number.rstrip("ab")), number))
    assert {str(number) for number in (*range(1, 83), *range(84, 94), *range(101, 106))} <= set(numbers)


def test_each_row_names_the_tests_that_bear_its_number_and_no_others() -> None:
    """No row of docs/faults.md is a mere claim, and no test that is marked with a row is missing there."""
    told(disagreeing(FAULTS, TESTS))


def test_what_disagrees_is_seen(tmp_path: Path) -> None:
    """If nothing were found in a sample, the check above would pass for anything."""
    page, folder = tmp_path / "page.md", tmp_path / "tests"
    folder.mkdir()
    page.write_text(
        "| 1 | x | y | `test_b.py::test_c` |\n| 2 | x | y | `test_b.py::test_d` |\n| 66a | x | y | none |\n"
    )
    module = '@pytest.mark.fault("1", "2")\nasync def test_c(): ...\ndef test_d(): ...\n'
    (folder / "test_b.py").write_text(module)
    assert [*disagreeing(page, folder)] == [
        "page.md:2: expected test_b.py::test_d to be marked fault('2')",
        "page.md:3: row 66a names no test",
        "test_b.py:2: expected row 2 of page.md to list test_b.py::test_c",
    ]


# docs/security.md

SECURITY = DOCS / "security.md"
HEAD = "| threat | control | test |"


def tables(page: Path) -> list[list[Line]]:
    """The rows of each table of threats."""
    found: list[list[Line]] = []
    is_within = False
    for line in lines(page):
        is_within = line.text.startswith("|") and (is_within or line.text == HEAD)
        if line.text == HEAD:
            found.append([])
        elif is_within and not line.text.startswith("|---"):
            found[-1].append(line)
    return found


def unfounded(page: Path) -> Iterator[str]:
    """Threats without a control or a test."""
    for line in (line for table in tables(page) for line in table):
        threat, control, test = (*line.text.strip("| ").split(" | "), "", "")[:3]
        if not threat or not control or not re.search(NAMED_TEST, test):
            yield f"{line.place}: expected a threat, its control and a test, got {line.text}"


def test_the_table_of_refused_networks_is_the_guard_s() -> None:
    """Rows 1 to 7: the refused networks in docs/security.md are those of the code."""
    found = [
        Line(where, f"{row[1]}: {row[2]}")
        for where, row in matches(r"^\| `([0-9a-f.:/]+)` \| ([^|]+) \|$", SECURITY)
    ]
    told(differing("docs/security.md", found, [f"{net}: {why}" for net, why in REFUSED_NETWORKS.items()]))
    assert f"`{GLOBAL_IPV6}`" in text(SECURITY)


def test_each_threat_names_its_control_and_its_test() -> None:
    """Each threat in docs/security.md has a control and a test; the page has seven tables of threats."""
    told(unfounded(SECURITY))
    assert len(tables(SECURITY)) == 7
    assert all(tables(SECURITY))


def test_a_threat_without_a_test_is_seen(tmp_path: Path) -> None:
    """A row without a cell, or with a test that does not exist."""
    page = tmp_path / "page.md"
    rows = "| a | b | `c.py::test_d` |\n| a | b | none |\n| a | b |\n\n| of another table |\n"
    page.write_text(f"{HEAD}\n|---|---|---|\n{rows}", "utf-8")
    assert [each.partition(": ")[0] for each in unfounded(page)] == ["page.md:4", "page.md:5"]
