"""docs/readers.md says what the tests of this folder have tried, and names settings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.readers.conftest import READERS
from tests.readers.harness import Reader
from tests.readers.test_history import LATER_POLLS
from tests.readers.test_states import WARNING_AFTER_HEALING
from wholefeed.config.tables import Config
from wholefeed.core import readers

PAGE = (Path(__file__).parents[2] / "docs" / "readers.md").read_text("utf-8")


def rows_of(reader: type[Reader]) -> list[str]:
    """The rows of the page's tables that are about a reader."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    named = [[name.split()[0].casefold() for name in row.split("|")[1].split(",")] for row in rows]
    return [row for row, names in zip(rows, named, strict=True) if reader.name in names]


@pytest.mark.parametrize("reader", READERS, ids=[each.name for each in READERS])
def test_each_reader_that_is_tried_has_its_row_in_both_tables(reader: type[Reader]) -> None:
    """What is tried stands there, marked so."""
    rows = rows_of(reader)
    assert len(rows) == 2
    assert all("T)" in row or "(T" in row for row in rows)


@pytest.mark.parametrize("reader", READERS, ids=[each.name for each in READERS])
def test_the_page_says_what_a_poll_is_answered_with_and_what_becomes_of_the_warning(
    reader: type[Reader],
) -> None:
    """The rows of the second table agree with what the tests expect."""
    cells = [cell.strip() for cell in rows_of(reader)[1].split("|")]
    assert str(LATER_POLLS[reader.name]) in cells[2] or "fetches nothing" in cells[2]
    says = {
        ("No",): ("replaces", "as sent"),
        ("Older",): ("the notice is not",),
        ("Older", "No"): ("both stay",),
    }
    kept = tuple(title.split()[0] for title in WARNING_AFTER_HEALING[reader.name])
    assert any(word in cells[5] for word in says[kept])


@pytest.mark.parametrize("known", readers.READERS, ids=lambda known: known.name)
def test_the_page_agrees_with_what_urls_are_made_from(known: readers.Reader) -> None:
    """Each reader of `wholefeed url --for` has its row, with its patience and its cap."""
    row = next(line for line in PAGE.splitlines() if line.casefold().startswith(f"| {known.name.casefold()}"))
    assert known.patience_seconds is None or f"| {known.patience_seconds} s" in row
    assert known.answer_bytes is None or f"`&answer_bytes={known.answer_bytes}`" in row
    assert (known.max_bytes is None) == ("none" in row.split("|")[3])


def test_the_settings_of_the_proxy_that_the_page_names_exist() -> None:
    """`section.key` in back quotes, where the section is one of ours."""
    config = Config()
    named = re.findall(r"`(server|store|fetch|limits|freshness|history|log)\.([a-z_]+)[ `]", PAGE)
    assert len(named) >= 4
    assert all(hasattr(getattr(config, section), key) for section, key in named)
