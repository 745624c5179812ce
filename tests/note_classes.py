"""Every class of note, wherever it is defined."""

from __future__ import annotations

from wholefeed.core import notes, reading_notes
from wholefeed.core.memento import notes as memento_notes
from wholefeed.core.notes import Note

NOTE_CLASSES: list[type[Note]] = sorted(
    {
        value
        for value in {**vars(notes), **vars(reading_notes), **vars(memento_notes)}.values()
        if isinstance(value, type) and issubclass(value, Note) and hasattr(value, "slug")
    },
    key=lambda note: note.__name__,
)
