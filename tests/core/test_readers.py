"""Known readers, and the additions to their URLs."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from wholefeed.core.readers import READERS, ReaderLimits, reader_named
from wholefeed.web.request import VIEW_OPTIONS, read_query, read_view

NOW = 1_700_000_000.0


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_a_row_adds_is_taken_by_the_proxy_and_stays_below_the_reader_s_cap(reader: ReaderLimits) -> None:
    """Every parameter exists in the interface, and asks for less than the reader's cap."""
    added = reader.parameters(NOW)
    assert set(added) <= set(VIEW_OPTIONS)
    view = read_view(read_query(urlencode(added)).options, 0)
    assert (view.max_bytes is None) == (reader.max_bytes is None)
    if reader.max_bytes is not None:
        assert 0.9 * reader.max_bytes < (view.max_bytes or 0) < reader.max_bytes
    assert (view.limit is None) == (reader.max_entries is None)
    if reader.max_entries is not None:
        assert 0.8 * reader.max_entries < (view.limit or 0) < reader.max_entries
    assert view.since == (NOW if reader.starts_now else None)


def test_the_table_is_in_order_and_each_row_has_a_sentence() -> None:
    """The page lists the rows in this order."""
    names = [reader.name.casefold() for reader in READERS]
    assert names == sorted(set(names))
    assert all(reader.hint.endswith(".") for reader in READERS)


def test_a_reader_is_found_however_it_is_written() -> None:
    """A command accepts any capitals."""
    found = reader_named(" tiny  tiny RSS")
    assert found is not None
    assert found.name == "Tiny Tiny RSS"
    assert reader_named("no-such-reader") is None
