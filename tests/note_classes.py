"""Every class of note, wherever it is defined."""

from __future__ import annotations

from tests.subclasses import subclasses
from wholefeed.core.notes import Note

NOTE_CLASSES: list[type[Note]] = sorted(
    (kind for kind in subclasses(Note) if hasattr(kind, "slug")), key=lambda kind: kind.__name__
)
