"""What runs for every element of a document: a comparison or two, and the limits on all of them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wholefeed.core.parse.limits import (
    FREE_NAME_CHARACTERS,
    MAX_ELEMENTS,
    MAX_FLAT_ATTRIBUTES,
    NAME_CHARACTERS_PER_BYTE,
)
from wholefeed.core.parse.xml.frames import Frame, ignore, nothing
from wholefeed.core.parse.xml.guard import Guard

_SHORT_NAMES: Final = "short names, their namespaces included"


class Waiting:
    """Waits for elements that begin at one depth, and for the end of one at another.

    Args:
        guard: Of the document.
    """

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.parser = guard.parser
        self.wait(Frame(0, ignore, 0, nothing))

    def close(self) -> None:
        """Let go of all of it: handlers and frames form cycles, which only the collector would find."""
        vars(self).clear()

    def look(self) -> None:
        """Be told of the elements behind the root's start tag, which expat reports now."""
        self._handlers = self._made_handlers()
        self.look_again()

    def look_away(self) -> None:
        """Be told nothing by expat until `look_again`."""
        self.parser.StartElementHandler = self.parser.EndElementHandler = None

    def look_again(self) -> None:
        """Go on where `look_away` was called, behind whole elements."""
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._handlers

    def _made_handlers(self) -> tuple[Callable[[str, list[str]], None], Callable[[str], None]]:
        """Make what runs for every element: closures, because they are the fastest."""
        guard, measured = self.guard, self.guard.must_measure
        depth, max_depth, left = 1, self.guard.max_depth, MAX_ELEMENTS
        characters = FREE_NAME_CHARACTERS + NAME_CHARACTERS_PER_BYTE * len(guard.text)

        def start(name: str, attributes: list[str]) -> None:
            nonlocal depth, left, characters
            depth += 1
            left -= 1
            characters -= len(name)
            if attributes:
                characters -= sum(map(len, attributes))
            if measured or len(attributes) > MAX_FLAT_ATTRIBUTES:
                guard.check_element(name, attributes)
            if depth == self.watch:
                self.on_child(name, attributes)
            elif depth > max_depth:
                guard.limit(f"at most {max_depth} levels of elements", "more")
            if left < 0 or characters < 0:
                guard.limit(f"at most {MAX_ELEMENTS} elements" if left < 0 else _SHORT_NAMES, "more")

        def end(_name: str) -> None:
            nonlocal depth
            if depth == self.until:
                self.on_end()
            depth -= 1

        return start, end

    def wait(self, frame: Frame) -> None:
        """Wait for something else from now on."""
        self.watch, self.on_child, self.until, self.on_end = frame
