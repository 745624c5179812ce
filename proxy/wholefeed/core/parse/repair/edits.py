"""What is to be changed of a document. All that no edit names stays, byte for byte."""

from __future__ import annotations

from operator import itemgetter
from typing import Final

MAX_EDITS: Final = 200_000
"""A document with more defects is none that was meant to be XML."""
FREE_EDITS: Final = 10_000
BYTES_PER_EDIT: Final = 32
"""Nor is one that has more than the first of them so densely."""


def most_edits(size_bytes: int) -> int:
    """Return how many edits a document of that size may need."""
    return min(MAX_EDITS, FREE_EDITS + size_bytes // BYTES_PER_EDIT)


class TooManyError(Exception):
    """There is no end of defects. Never leaves this package."""


class Edits:
    """Replacements of spans of one text, noted in any order; no two of them overlap.

    Args:
        most: How many may be noted, those that are taken back included.
    """

    def __init__(self, most: int = MAX_EDITS) -> None:
        self._edits: list[tuple[int, int, bytes]] = []
        self._left = most

    def __len__(self) -> int:
        return len(self._edits)

    def replace(self, start: int, end: int, made: bytes) -> int:
        """Let a span become something else; return the number of the edit.

        Raises:
            TooManyError: There were too many already.
        """
        self._left -= 1
        if self._left < 0:
            raise TooManyError
        self._edits.append((start, end, made))
        return len(self._edits) - 1

    def made(self, number: int) -> bytes:
        """Return what the span of an edit becomes."""
        return self._edits[number][2]

    def change(self, number: int, made: bytes) -> None:
        """Let the span of an edit become something else again."""
        start, end, _ = self._edits[number]
        self._edits[number] = (start, end, made)

    def forget(self, since: int) -> None:
        """Take back the edits from that number on."""
        del self._edits[since:]

    def applied(self, text: bytes) -> bytes:
        """Return the text with all edits made."""
        pieces, position = [], 0
        for start, end, made in sorted(self._edits, key=itemgetter(0)):
            assert start >= position, "edits do not overlap"
            pieces += [text[position:start], made]
            position = end
        pieces.append(text[position:])
        return b"".join(pieces)
