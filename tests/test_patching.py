"""tests.patching: what tests change stands in its table and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.patching import CONSTANTS

TESTS = Path(__file__).parent
SOURCES = {
    path.relative_to(TESTS).as_posix(): path.read_text("utf-8")
    for path in TESTS.rglob("*.py")
    if path.name not in ("patching.py", "test_patching.py")
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_every_constant_in_the_table_is_one_that_a_test_changes(name: str) -> None:
    """The table does not outlive its uses: an entry that nobody needs any more fails here."""
    assert any(re.search(rf'\b(set_constant|for name in)\b.*"{name}"', text) for text in SOURCES.values())


def test_no_test_quotes_the_path_of_what_it_patches() -> None:
    """A module that moves breaks no test but through the table."""
    quoting = re.compile(r"""setattr\(\s*f?["']wholefeed\.""")
    assert [path for path, text in SOURCES.items() if quoting.search(text)] == []
