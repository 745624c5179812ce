"""docs/security.md says of networks and tests what the code and the tests say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from wholefeed.fetch.guard.networks import GLOBAL_IPV6, REFUSED_NETWORKS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
TABLES = re.findall(r"^## (.+)\n(?:(?!^## ).*\n)*?\| threat ", PAGE, re.MULTILINE)


def test_the_tables_of_threats_are_found() -> None:
    """docs/security.md has its five tables of threats; if none were found, the checks below would hold of
    anything."""
    assert len(TABLES) == 5


def test_the_table_of_refused_networks_is_the_guard_s() -> None:
    """Rows 1 to 7: the networks that docs/security.md says are refused are those that the code refuses."""
    rows = re.findall(r"^\| `([0-9a-f.:/]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert rows == list(REFUSED_NETWORKS.items())
    assert f"`{GLOBAL_IPV6}`" in PAGE


@pytest.mark.parametrize("test", sorted(set(NAMED.findall(PAGE))), ids="::".join)
def test_each_test_that_is_named_exists(test: tuple[str, str]) -> None:
    """Every test that docs/security.md cites as evidence exists."""
    path, function = test
    tree = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
    functions = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert function in functions


@pytest.mark.parametrize("section", TABLES)
def test_each_threat_names_its_control_and_its_test(section: str) -> None:
    """No threat in docs/security.md goes without a control and a test that shows it."""
    text = re.split(r"^## ", PAGE.partition(f"\n## {section}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    table = text.partition("| threat | control | test |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert rows
    for threat, control, *tests in rows:
        assert threat
        assert control
        assert NAMED.search(" ".join(tests)), threat


@pytest.mark.parametrize("page", ["docs/security.md", "SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    """No relative link of the security pages leads to a file that is not there."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)", path.read_text("utf-8")):
        assert (path.parent / target).exists(), target
