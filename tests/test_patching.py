"""tests.patching: what tests change stands in its table and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

from tests.patching import CONSTANTS
from tests.repository import TESTS, matches, python_files, text, told

SOURCES = [path for path in python_files(TESTS) if path.name not in ("patching.py", "test_patching.py")]
QUOTING = r"""setattr\(\s*f?["']wholefeed\."""


def is_changed(name: str) -> bool:
    pattern = re.compile(rf'\b(set_constant|for name in)\b.*"{name}"')
    return any(name in text(path) and pattern.search(text(path)) for path in SOURCES)


def test_every_constant_in_the_table_is_one_that_a_test_changes() -> None:
    """The table does not outlive its uses: an entry that nobody needs any more fails here."""
    assert not is_changed("NO" + "BODY")
    told(f"tests/patching.py: no test changes {name}" for name in CONSTANTS if not is_changed(name))


def test_no_test_quotes_the_path_of_what_it_patches(tmp_path: Path) -> None:
    """A module that moves breaks no test but through the table."""
    quoted = "the path of what it patches, expected set_constant"
    told(f"{where}: {quoted}" for path in SOURCES for where, _ in matches(QUOTING, path))
    bad = tmp_path / "bad.py"
    bad.write_text('patch.setattr(\n    "wholefeed.core.notes.SLUGS", {})\n')
    assert [where for where, _ in matches(QUOTING, bad)] == ["bad.py:1"]
