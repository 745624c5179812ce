"""Every kind of note, one of each, for tests outside of the package's inside."""

from __future__ import annotations

import string
import typing
from collections.abc import Mapping
from typing import Any

from wholefeed.core.notes import KINDS, Note, NoteKind

NOTE_KINDS: list[NoteKind] = [kind for _, kind in sorted(KINDS.items())]
STORED_WITH_DOCUMENTS = {kind.code for kind in NOTE_KINDS if kind.is_of_reading}
SAMPLES: Mapping[object, Any] = {str: "x", int: 1, float: 1.0, bool: True, tuple[str, ...]: ("x",)}


def a_note(kind: NoteKind) -> Note:
    """A note with the facts of its text."""
    if isinstance(kind.text, str):
        names = {name for _, name, _, _ in string.Formatter().parse(kind.text) if name}
        facts = dict.fromkeys(names, 1.0)
    else:
        types = typing.get_type_hints(kind.text)
        facts = {name: SAMPLES[types[name]] for name in types if name != "return"}
    return kind("x", **{name: value for name, value in facts.items() if name != "url"})
