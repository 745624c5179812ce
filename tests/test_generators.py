"""Missing generators do not count as installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.generators import HUGO, NONE_HERE

ABSENT = replace(HUGO, lacks=lambda: "a program")


def test_its_tests_are_skipped_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a test run counts by the reason."""
    monkeypatch.delenv("TEST_GENERATORS", raising=False)
    with pytest.raises(pytest.skip.Exception, match=f"{NONE_HERE} hugo, for want of a program"):
        ABSENT.require()


def test_its_tests_fail_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continuous integration requires it."""
    monkeypatch.setenv("TEST_GENERATORS", "required")
    with pytest.raises(pytest.fail.Exception, match="for want of a program"):
        ABSENT.require()


def test_what_a_generator_says_of_its_failure_is_shown(tmp_path: Path) -> None:
    """Not its exit code alone."""
    broken = replace(HUGO, command=lambda _output, _url: ["sh", "-c", "echo no such theme; exit 1"])
    with pytest.raises(AssertionError, match="no such theme"):
        broken.build(tmp_path, tmp_path / "output", "http://site.invalid")
