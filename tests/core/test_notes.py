"""wholefeed.core.notes: what every class of note says of itself."""

from __future__ import annotations

import re

import pytest

from tests.note_classes import NOTE_CLASSES
from wholefeed.core.notes import Note


@pytest.mark.parametrize("note", NOTE_CLASSES, ids=lambda note: note.__name__)
def test_a_note_names_what_it_rests_on_and_has_a_slug(note: type[Note]) -> None:
    """A specification or a rule of this project, and a word for logs and interfaces."""
    assert re.search(r"RFC \d+|rule R\d+", note.reference)
    assert re.fullmatch(r"[a-z-]+", note.slug)
