"""The elements that are open while a document is repaired: whatever begins here also ends here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wholefeed.core.parse.repair.edits import Edits
from wholefeed.core.parse.repair.prefixes import Prefixes
from wholefeed.core.parse.repair.tokens import Token

_VOID: Final = frozenset({b"br", b"hr", b"img", b"input", b"wbr"})
"""Elements of HTML without content (WHATWG HTML, 13.1.2) that no feed format has."""


@dataclass(slots=True)
class Open:
    """An element that has begun."""

    tag: Token
    name: bytes
    """As in its tag, with its prefix."""
    declared: tuple[bytes, ...]
    edits_before: int
    """How many there were when it began."""
    edit: int | None
    """The edit of its start tag."""
    has_children: bool = False


class Elements:
    """A stack of open elements."""

    def __init__(self, edits: Edits) -> None:
        self.prefixes = Prefixes()
        self.open: list[Open] = []
        self._edits = edits
        self._count: dict[bytes, int] = {}
        """How many are open, by name in small letters."""

    def is_open(self, name: bytes) -> bool:
        """Whether an element of that name, in small letters, is open."""
        return self._count.get(name, 0) > 0

    def meant_by(self, name: bytes) -> bytes | None:
        """Return the name of the open element that an end tag is of: the innermost, whatever its case.

        Whoever asks closes that element: what is looked at here leaves.
        """
        if self.open[-1].name == name:
            return name
        folded = name.lower()
        if not self._count.get(folded):
            return None
        return next(each.name for each in reversed(self.open) if each.name.lower() == folded)

    def begin(self, tag: Token, made: bytes | None) -> Open:
        """Go into the element of a start tag.

        Args:
            tag: The tag.
            made: What it becomes; None: it stays as it is.
        """
        before = len(self._edits)
        edit = self.write(tag, made)
        element = Open(tag, tag.name, self._declare(tag, made), before, edit)
        self.open.append(element)
        folded = tag.name.lower()
        self._count[folded] = self._count.get(folded, 0) + 1
        return element

    def empty(self, tag: Token, made: bytes | None) -> None:
        """Take an empty-element tag."""
        self.write(tag, made)
        self.prefixes.end(self._declare(tag, made))

    def write(self, tag: Token, made: bytes | None) -> int | None:
        """Note what a token becomes, if it does not stay."""
        return None if made is None else self._edits.replace(tag.start, tag.end, made)

    def end(self) -> Open:
        """Take the end tag of the innermost element."""
        element = self.open.pop()
        self._count[element.name.lower()] -= 1
        if element.declared:
            self.prefixes.end(element.declared)
        return element

    def close(self, at: int) -> None:
        """End the innermost element where no end tag of its own stands."""
        element = self.end()
        if element.name not in _VOID:
            self._edits.replace(at, at, b"</%s>" % element.name)
        elif element.edit is None:
            self._edits.replace(element.tag.end - 1, element.tag.end - 1, b"/")
        else:
            self._edits.change(element.edit, self._edits.made(element.edit)[:-1] + b"/>")

    def close_to(self, depth: int, at: int) -> None:
        """End all but so many elements."""
        while len(self.open) > depth:
            self.close(at)

    def close_inside(self, name: bytes, at: int) -> bool:
        """End what is open inside of the innermost element of that name; return whether anything was."""
        depth = len(self.open)
        while self.open[-1].name != name:
            self.close(at)
        return len(self.open) < depth

    def forget_inside(self, depth: int) -> None:
        """Drop what has begun since so many elements were open, and what was edited in the last of them."""
        while len(self.open) > depth:
            self.end()
        element = self.open[-1]
        self._edits.forget(element.edits_before + (element.edit is not None))

    def forget_from(self, place: int) -> int:
        """Drop the element at that place of the stack and all in it; return where it began."""
        element = self.open[place]
        while len(self.open) > place:
            self.end()
        self._edits.forget(element.edits_before)
        return element.tag.start

    def _declare(self, tag: Token, made: bytes | None) -> tuple[bytes, ...]:
        if self.open:
            self.open[-1].has_children = True
        attributes = tag.attributes if made is None else made[1 + len(tag.name) :]
        is_plain = b":" not in tag.name and b":" not in attributes
        return () if is_plain else self.prefixes.begin(tag.name, attributes)
