"""docs/security.md says of networks and controls what the code and the tests say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.repository import DOCS, NAMED_TEST, Line, differing, lines, matches, text, told
from wholefeed.fetch.guard import GLOBAL_IPV6, REFUSED_NETWORKS

PAGE = DOCS / "security.md"
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
    """Threats that go without a control or a test."""
    for line in (line for table in tables(page) for line in table):
        threat, control, test = (*line.text.strip("| ").split(" | "), "", "")[:3]
        if not threat or not control or not re.search(NAMED_TEST, test):
            yield f"{line.place}: expected a threat, its control and a test, got {line.text}"


def test_the_table_of_refused_networks_is_the_guard_s() -> None:
    """Rows 1 to 7: the networks that docs/security.md says are refused are those that the code refuses."""
    found = [
        Line(where, f"{row[1]}: {row[2]}")
        for where, row in matches(r"^\| `([0-9a-f.:/]+)` \| ([^|]+) \|$", PAGE)
    ]
    told(differing("docs/security.md", found, [f"{net}: {why}" for net, why in REFUSED_NETWORKS.items()]))
    assert f"`{GLOBAL_IPV6}`" in text(PAGE)


def test_each_threat_names_its_control_and_its_test() -> None:
    """No threat in docs/security.md goes without a control and a test that shows it; the page has six
    tables of threats."""
    told(unfounded(PAGE))
    assert len(tables(PAGE)) == 6
    assert all(tables(PAGE))


def test_a_threat_without_a_test_is_seen(tmp_path: Path) -> None:
    """A row that lacks a cell, or whose test is none."""
    page = tmp_path / "page.md"
    rows = "| a | b | `c.py::test_d` |\n| a | b | none |\n| a | b |\n\n| of another table |\n"
    page.write_text(f"{HEAD}\n|---|---|---|\n{rows}", "utf-8")
    assert [each.partition(": ")[0] for each in unfounded(page)] == ["page.md:4", "page.md:5"]
