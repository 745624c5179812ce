"""docs/faults.md and the tests that bear its numbers say the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "faults.md").read_text("utf-8")
ROW = re.compile(r"^\| (?P<number>\d+\w?) \| (?P<fault>[^|]+) \| (?P<outcome>[^|]+) \| (?P<tests>[^|]+) \|$")
NAMED = re.compile(r"`(?P<file>[\w/]+\.py)::(?P<test>test_\w+)`")


def rows(page: str) -> dict[str, set[tuple[str, str]]]:
    """The tests that each row of the page names, as (file, function)."""
    found = [match for line in page.splitlines() if (match := ROW.match(line))]
    return {row["number"]: set(NAMED.findall(row["tests"])) for row in found}


def marked(source: str) -> dict[str, set[str]]:
    """The rows that the test functions of a module bear, by the function's name."""
    found: dict[str, set[str]] = {}
    if ".fault(" not in source:  # each process of a test run reads all modules to collect its tests
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
                    rows = {str(each.value) for each in mark.args if isinstance(each, ast.Constant)}
                    found.setdefault(node.name, set()).update(rows)
    return found


MARKED = {
    (str(path.relative_to(TESTS)), test): rows
    for path in sorted(TESTS.rglob("test_*.py"))
    for test, rows in marked(path.read_text("utf-8")).items()
}
LISTED = rows(PAGE)


def test_the_page_has_every_row_in_its_order() -> None:
    """The catalogue has the rows 1 to 82 and 84 on; a letter marks what came between two of them."""
    numbers = list(LISTED)
    assert numbers == sorted(numbers, key=lambda number: (int(number.rstrip("ab")), number))
    assert {str(number) for number in (*range(1, 83), *range(84, 94), *range(101, 106))} <= set(numbers)


@pytest.mark.parametrize("number", sorted(LISTED))
def test_each_row_names_tests_that_bear_its_number(number: str) -> None:
    """No row of docs/faults.md is a mere claim: each names a test that is marked with its number."""
    assert LISTED[number], f"row {number} names no test"
    for test in LISTED[number]:
        assert number in MARKED.get(test, set()), f"{test} does not bear row {number}"


@pytest.mark.parametrize("test", sorted(MARKED), ids="::".join)
def test_each_marked_test_is_listed_in_its_rows(test: tuple[str, str]) -> None:
    """A test that is marked with a row is listed there, so that the page misses none."""
    for number in MARKED[test]:
        assert test in LISTED.get(number, set()), f"docs/faults.md, row {number}: does not list {test}"


def test_what_this_file_looks_for_can_be_found() -> None:
    """Rows and marks are found in samples; if nothing were found, the checks above would hold of anything."""
    page = "| 1 | x | y | `a/test_b.py::test_c` |\n| 66a | x | y | none |\n"
    assert rows(page) == {"1": {("a/test_b.py", "test_c")}, "66a": set()}
    assert marked('@pytest.mark.fault("1", "2")\nasync def test_c(): ...\n') == {"test_c": {"1", "2"}}
