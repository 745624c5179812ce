"""wholefeed.core.notes: facts about every kind of note."""

from __future__ import annotations

import re

import pytest

from tests.note_kinds import NOTE_KINDS
from wholefeed.core.notes import NoteKind


@pytest.mark.parametrize("note", NOTE_KINDS, ids=lambda note: note.code)
def test_a_note_names_what_it_rests_on_and_has_a_slug(note: NoteKind) -> None:
    """A specification or a rule of this project, and a word for logs and interfaces."""
    assert re.search(r"RFC \d+|rule [RH]\d+", note.reference)
    assert re.fullmatch(r"[a-z-]+", note.slug)
