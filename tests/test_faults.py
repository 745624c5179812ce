"""docs/faults.md and the tests that bear its numbers say the same."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.repository import (
    DOCS,
    NAMED_TEST,
    TESTS,
    functions,
    matches,
    name,
    python_files,
    text,
    told,
)

PAGE = DOCS / "faults.md"
ROW = r"^\| (?P<number>\d+\w?) \| (?P<fault>[^|]+) \| (?P<outcome>[^|]+) \| (?P<tests>[^|]+) \|$"


def rows(page: Path) -> dict[str, tuple[str, set[str]]]:
    """Where each row of the page stands, and the tests that it names."""
    return {
        row["number"]: (
            where,
            {f"{each['file']}::{each['test']}" for each in re.finditer(NAMED_TEST, row["tests"])},
        )
        for where, row in matches(ROW, page)
    }


def marked(folder: Path) -> dict[str, tuple[str, set[str]]]:
    """Where each test stands that bears numbers of rows, and which."""
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
    """Rows that are mere claims, and marks that the page misses."""
    listed, bearing = rows(page), marked(folder)
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
    """The catalogue has the rows 1 to 82 and 84 on; a letter marks what came between two of them."""
    numbers = list(rows(PAGE))
    assert numbers == sorted(numbers, key=lambda number: (int(number.rstrip("ab")), number))
    assert {str(number) for number in (*range(1, 83), *range(84, 94), *range(101, 106))} <= set(numbers)


def test_each_row_names_the_tests_that_bear_its_number_and_no_others() -> None:
    """No row of docs/faults.md is a mere claim, and no test that is marked with a row is missing there."""
    told(disagreeing(PAGE, TESTS))


def test_what_disagrees_is_seen(tmp_path: Path) -> None:
    """If nothing were found in a sample, the check above would hold of anything."""
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
