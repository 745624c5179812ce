"""wholefeed.store.base: a copy of a row, made in less time."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from wholefeed.store.base import changed
from wholefeed.store.rows import DocumentRow, FeedRow


@pytest.mark.parametrize("kind", [FeedRow, DocumentRow])
def test_it_is_what_replace_makes(kind: type[Any]) -> None:
    """All columns are there, those of a parent class too, and the row itself stays as it is."""
    row = kind(**{each.name: number for number, each in enumerate(fields(kind))})
    made = changed(row, checked_at=7.5)

    assert made == replace(row, checked_at=7.5)
    assert type(made) is kind
    assert row.checked_at != 7.5
    with pytest.raises(KeyError):
        changed(row, no_column=1)
