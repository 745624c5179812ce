"""Read the XML of a sitemap or search index within limits (H10, H11)."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.limits import ParseError

MOST_FILE_BYTES: Final = 20 << 20
"""Unpacked. Such a file costs less memory than HTML."""
_FREE_ELEMENTS: Final = 20_000
_BYTES_PER_ELEMENT: Final = 16
_MOST_TAG_BYTES: Final = 1 << 16


def local_name(name: str) -> str:
    return name.rpartition("}")[2]


class SiteXml:
    """A document, read as far as well-formed and within limits.

    Args:
        roots: Local names that its first element may have.
        is_full: Returns whether the rest may be left out.
    """

    def __init__(
        self, *, roots: Container[str], max_depth: int, is_full: Callable[[], bool] = lambda: False
    ) -> None:
        self._roots = roots
        self._max_depth = max_depth
        self._is_full = is_full
        self.path: list[str] = []
        """Names of the open elements, with namespaces."""

    def read(
        self,
        text: bytes,
        *,
        begin: Callable[[list[str]], object],
        end: Callable[[str], object],
        hear: Callable[[str], object],
    ) -> bool:
        """Call `begin` with the attributes of each opened element; return whether all was read.

        `end` gets the name of the element that is closed by then.
        """
        guard = Guard(max_depth=self._max_depth, max_tag_bytes=_MOST_TAG_BYTES)
        most, elements = _FREE_ELEMENTS + len(text) // _BYTES_PER_ELEMENT, 0

        def open_element(name: str, attributes: list[str]) -> None:
            nonlocal elements
            guard.check_element(name, attributes)
            elements += 1
            if elements > most or len(self.path) >= self._max_depth or self._is_full():
                guard.stop("xml-limit", "a file within limits", "a larger one")
            if not self.path and local_name(name) not in self._roots:
                guard.stop("unsupported-format", "the file that was asked for", "another document")
            self.path.append(name)
            begin(attributes)

        parser = guard.parser
        parser.StartElementHandler = open_element
        parser.EndElementHandler = lambda _: end(self.path.pop())
        parser.CharacterDataHandler = hear
        try:
            guard.read(text)
        except ParseError:
            return False
        finally:
            guard.close()
        return True
