"""docs/readers.md says what the tests of this folder have tried, and names settings that exist."""

from __future__ import annotations

from collections.abc import Iterator

from tests.readers.conftest import READERS
from tests.readers.harness import Reader
from tests.readers.test_history import LATER_POLLS
from tests.readers.test_states import WARNING_AFTER_HEALING
from tests.repository import DOCS, Line, lines, matches, told
from wholefeed.config.tables import Config
from wholefeed.core import readers

PAGE = DOCS / "readers.md"
SETTING = r"`(server|store|fetch|limits|freshness|history|log)\.([a-z_]+)[ `]"
SAID_OF_WARNINGS = {
    ("No",): ("replaces", "as sent"),
    ("Older",): ("the notice is not",),
    ("Older", "No"): ("both stay",),
}
"""What the page says, by the titles that are left."""


def rows() -> list[Line]:
    return [line for line in lines(PAGE) if line.text.startswith("| ")]


def rows_of(reader: type[Reader]) -> list[Line]:
    """The rows of the page's tables that are about a reader."""
    named = [[name.split()[0].casefold() for name in row.text.split("|")[1].split(",")] for row in rows()]
    return [row for row, names in zip(rows(), named, strict=True) if reader.name in names]


def test_each_reader_that_is_tried_has_its_row_in_both_tables() -> None:
    """What is tried stands there, marked so."""

    def wrong() -> Iterator[str]:
        for reader in READERS:
            found = rows_of(reader)
            if len(found) != 2:
                yield f"docs/readers.md: expected two rows of {reader.name}, got {len(found)}"
            yield from (f"{row.place}: expected the mark T" for row in found
                        if "T)" not in row.text and "(T" not in row.text)  # fmt: skip

    told(wrong())


def test_the_page_says_what_a_poll_is_answered_with_and_what_becomes_of_the_warning() -> None:
    """The rows of the second table agree with what the tests expect."""

    def wrong() -> Iterator[str]:
        for reader, (where, row) in ((each, row) for each in READERS for row in rows_of(each)[1:]):
            cells = row.split("|")
            status = str(LATER_POLLS[reader.name])
            if status not in cells[2] and "fetches nothing" not in cells[2]:
                yield f"{where}: expected {status} for an unchanged feed, got {cells[2]}"
            said = SAID_OF_WARNINGS[tuple(title.split()[0] for title in WARNING_AFTER_HEALING[reader.name])]
            if not any(word in cells[5] for word in said):
                yield f"{where}: expected {' or '.join(said)} of the warning, got {cells[5]}"

    told(wrong())


def test_the_page_agrees_with_what_urls_are_made_from() -> None:
    """Each reader of `wholefeed url --for` has its row, with its patience and its cap."""

    def wrong() -> Iterator[str]:
        for known in readers.READERS:
            begin = f"| {known.name.casefold()}"
            where, row = next(row for row in rows() if row.text.casefold().startswith(begin))
            if known.patience_seconds is not None and f"| {known.patience_seconds} s" not in row:
                yield f"{where}: expected {known.patience_seconds} s"
            for name, value in known.parameters(0).items():
                if name != "since" and f"`&{name}={value}`" not in row:
                    yield f"{where}: expected `&{name}={value}`"
            largest = known.max_bytes or known.max_entries or "none"
            if (largest == "none") != ("none" in row.split("|")[3]):
                yield f"{where}: expected {largest} for the largest feed"

    told(wrong())


def test_the_settings_of_the_proxy_that_the_page_names_exist() -> None:
    """`section.key` in back quotes, where the section is one of ours."""
    named = [(where, *found.groups()) for where, found in matches(SETTING, PAGE)]
    assert len(named) >= 4
    told(
        f"{where}: there is no {section}.{key}"
        for where, section, key in named
        if not hasattr(getattr(Config(), section), key)
    )
