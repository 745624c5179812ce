"""What many exports of subscription lists get wrong, put right.

That is: bare ampersands, entities of HTML, character references to nothing, control characters, and blanks
before the XML declaration. Tags are left alone: which feeds and folders there are is not for guessing.
"""

from __future__ import annotations

from typing import Final

from wholefeed.core.parse.errors import ParseError
from wholefeed.core.parse.repair import references
from wholefeed.core.parse.repair.edits import TooManyError
from wholefeed.core.parse.repair.tokens import Mark, tokens

ENCODING: Final = "encoding"
"""A text that is not in UTF-8 as it should be; where the text is read that is seen to."""
DECLARATION: Final = "declaration"

_WITHOUT_REFERENCES: Final = (Mark.CDATA, Mark.COMMENT, Mark.INSTRUCTION, Mark.DOCTYPE, Mark.SUBSET)


def repaired(text: bytes, repairs: set[str], most: int) -> bytes:
    """Return the text with those faults put right.

    Args:
        text: In UTF-8.
        repairs: Gains the names of what was done.
        most: Pieces of markup and texts that are looked at.

    Raises:
        ParseError: `xml-limit`: there are more faults, or more pieces of markup, than a list can have.
    """
    cleaned = references.without_controls(text)
    if len(cleaned) != len(text):
        repairs.add(references.CONTROL_CHARACTERS)
    begun = cleaned.lstrip()
    if len(begun) != len(cleaned) and begun.startswith(b"<?xml"):
        repairs.add(DECLARATION)
        cleaned = begun
    pieces = []
    try:
        for number, token in enumerate(tokens(cleaned)):
            if number > most:
                raise TooManyError
            piece = cleaned[token.start : token.end]
            pieces.append(piece if token.mark in _WITHOUT_REFERENCES else references.mended(piece, repairs))
    except TooManyError as exc:
        raise ParseError(
            "expected a list that can be repaired, got too much markup", slug="xml-limit"
        ) from exc
    return b"".join(pieces)
