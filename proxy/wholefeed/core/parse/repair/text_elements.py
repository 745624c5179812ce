"""Elements that hold text, and the HTML in them that should have been escaped (docs/design.md#repair).

One of them is open at a time. While all in it nests, it is XML and stays as it is; when something does not,
the whole of its content is taken for the HTML that was meant, and escaped when the element ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from wholefeed.core.parse.repair.edits import Edits
from wholefeed.core.parse.repair.elements import Elements, Open
from wholefeed.core.parse.repair.references import escaped, mended
from wholefeed.core.parse.repair.tokens import Token

UNESCAPED_HTML: Final = "unescaped-html"

_RSS: Final = frozenset(
    {b"title", b"description", b"content:encoded", b"itunes:summary", b"itunes:subtitle"}
    | {b"media:title", b"media:description", b"googleplay:description", b"excerpt:encoded"}
)
_ATOM: Final = frozenset({b"title", b"subtitle", b"summary", b"content", b"rights", b"tagline"})
_MARKUP_TYPE: Final = re.compile(rb"\stype\s*+=\s*+[\"']\s*+(?:xhtml|[^\"']*[/+]xml)\s*+[\"']", re.IGNORECASE)
_HTML_TYPE: Final = re.compile(rb"\stype\s*+=\s*+[\"']\s*+(?:text/)?html\s*+[\"']", re.IGNORECASE)
_ESCAPED_MARKUP: Final = re.compile(rb"&lt;(?:/?[A-Za-z]|!--)")


@dataclass(slots=True)
class _Box:
    element: Open
    is_html: bool
    """Whether it is HTML, rather than plain text, that stands in it escaped."""
    depth: int
    """How many elements were open when it had begun."""
    repairs: frozenset[str]
    """What had been done until then."""
    undeclared: dict[bytes, None]
    """The prefixes that were known to be undeclared."""


class TextElements:
    """The text element that is open, if one is.

    Args:
        text: The document.
        elements: What is open in it.
        edits: What is to be changed of it.
        repairs: What was done, by name.
    """

    def __init__(self, text: bytes, elements: Elements, edits: Edits, repairs: set[str]) -> None:
        self.is_raw = False
        """Whether one is open that holds HTML which is not escaped, and no XML."""
        self._text = text
        self._elements = elements
        self._edits = edits
        self._repairs = repairs
        self._box: _Box | None = None
        self._names: frozenset[bytes] = frozenset()
        self._around: tuple[bytes, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether one is open."""
        return self._box is not None

    def begin_feed(self, root: bytes, entry: bytes) -> None:
        """Learn what the root and its entries are called."""
        self._names = _ATOM if entry == b"entry" else _RSS
        self._around = (entry, b"channel", root)

    def note(self, element: Open) -> None:
        """An element has begun: it may be one that holds text (RSS 2.0; RFC 4287, section 3.1.1)."""
        attributes = element.tag.attributes
        if self._box is None and element.name in self._names and not _MARKUP_TYPE.search(attributes):
            self._box = _Box(
                element,
                self._names is _RSS or _HTML_TYPE.search(attributes) is not None,
                len(self._elements.open),
                frozenset(self._repairs),
                dict(self._elements.prefixes.undeclared),
            )

    def takes_tag(self, token: Token) -> bool:
        """Whether a start tag is part of its text."""
        if self._box is not None and token.is_odd:
            self.turn_raw()
        return self.is_raw

    def takes_end(self, token: Token) -> bool:
        """Whether an end tag is part of its text. If not, the text element is left."""
        box = self._box
        if box is None:
            return False
        is_inside = len(self._elements.open) > box.depth
        if token.name == box.element.name:
            if is_inside:
                self.turn_raw()
            self.leave(token.start)
            return False
        if token.name in self._around and self._elements.is_open(token.name):
            self.leave(token.start)
            return False
        if is_inside and self._elements.open[-1].name == token.name:
            self._elements.end()
        else:
            self.turn_raw()
        return True

    def turn_raw(self) -> None:
        """What stands in it is no XML: it is HTML that should have been escaped."""
        assert self._box is not None, "one is open"
        if not self.is_raw:
            self.is_raw = True
            self._elements.forget_inside(self._box.depth)

    def leave(self, at: int) -> None:
        """It ends here, if one is open."""
        box, is_raw = self._box, self.is_raw
        self._box, self.is_raw = None, False
        if box is not None and is_raw:
            self._repairs.clear()
            self._repairs.update(box.repairs, {UNESCAPED_HTML})
            self._elements.prefixes.undeclared = box.undeclared
            start = box.element.tag.end
            self._edits.replace(start, at, _as_text(self._text[start:at], is_html=box.is_html))


def _as_text(source: bytes, *, is_html: bool) -> bytes:
    """Return markup as it should have stood there. What is escaped in part is not escaped twice."""
    source = source.replace(b"<![CDATA[", b"").replace(b"]]>", b"")
    if is_html and not _ESCAPED_MARKUP.search(source):
        return escaped(source)
    return mended(source, set()).replace(b"<", b"&lt;").replace(b">", b"&gt;")
