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

END_TAGS: Final = "end-tags"
UNESCAPED_HTML: Final = "unescaped-html"

_RSS: Final = frozenset(
    {b"title", b"description", b"content:encoded", b"itunes:summary", b"itunes:subtitle"}
    | {b"media:title", b"media:description", b"googleplay:description", b"excerpt:encoded"}
)
_ATOM: Final = frozenset({b"title", b"subtitle", b"summary", b"content", b"rights", b"tagline"})
LEAVES: Final = (
    _RSS
    | _ATOM
    | {
        b"link",
        b"guid",
        b"pubDate",
        b"category",
        b"comments",
        b"enclosure",
        b"language",
        b"generator",
        b"docs",
    }
    | {b"ttl", b"copyright", b"lastBuildDate", b"managingEditor", b"webMaster", b"dc:creator", b"dc:date"}
    | {
        b"id",
        b"updated",
        b"published",
        b"modified",
        b"issued",
        b"created",
        b"icon",
        b"logo",
        b"uri",
        b"email",
    }
)
"""Elements that hold text or nothing."""
_BESIDE: Final = LEAVES | {b"item", b"entry", b"author", b"contributor", b"image", b"textInput", b"atom:link"}
"""Elements that a text element without an end tag ends before. Some are HTML's too: they count only there."""
_ENDS: Final = re.compile(
    rb"</(%s)\s*>|<(?:item|entry)(?=[\s/>])" % b"|".join(sorted(map(re.escape, _RSS | _ATOM))), re.IGNORECASE
)
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
    undeclared: int
    """How many prefixes were known to be undeclared."""
    is_closed: bool
    """Whether an end tag of its own stands before the next entry."""


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
        self._ends = _Ends(text)

    @property
    def is_open(self) -> bool:
        """Whether one is open."""
        return self._box is not None

    def begin_feed(self, root: bytes, entry: bytes) -> None:
        """Learn what the root and its entries are called."""
        self._names = _ATOM if entry == b"entry" else _RSS
        self._around = (entry, b"channel", root.lower())

    def note(self, element: Open) -> None:
        """An element has begun: it may be one that holds text (RSS 2.0; RFC 4287, section 3.1.1)."""
        attributes = element.tag.attributes
        if self._box is None and element.name in self._names and not _MARKUP_TYPE.search(attributes):
            self._box = _Box(
                element,
                self._names is _RSS or _HTML_TYPE.search(attributes) is not None,
                len(self._elements.open),
                frozenset(self._repairs),
                len(self._elements.prefixes.undeclared),
                self._ends.has(element.name, element.tag.end),
            )

    def takes_tag(self, token: Token) -> bool:
        """Whether a start tag is part of its text. If not, a text element without an end tag is left."""
        box = self._box
        if box is None:
            return False
        if not box.is_closed and token.name in _BESIDE:
            self.end_unclosed(token.start)
        elif token.is_odd:
            self.turn_raw()
        return self.is_raw

    def end_unclosed(self, at: int) -> bool:
        """If a text element is open, end it where no end tag of its own stands; return whether one was."""
        box = self._box
        if box is None:
            return False
        if len(self._elements.open) > box.depth:
            self.turn_raw()
        self.leave(at)
        self._elements.close_to(box.depth - 1, at)
        self._repairs.add(END_TAGS)
        return True

    def takes_end(self, token: Token) -> bool:
        """Whether an end tag is part of its text. If not, the text element is left."""
        box = self._box
        if box is None:
            return False
        is_inside = len(self._elements.open) > box.depth
        folded = token.name.lower()
        if folded == box.element.name.lower():
            if is_inside:
                self.turn_raw()
            self.leave(token.start)
            return False
        if folded in self._around and self._elements.meant_by(token.name) is not None:
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
            self._elements.prefixes.forget(box.undeclared)
            start = box.element.tag.end
            self._edits.replace(start, at, _as_text(self._text[start:at], is_html=box.is_html))


class _Ends:
    """Where the end tags of text elements stand in a document, found when the first of them is asked for."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._before = 0
        """All up to here have been found."""
        self._closed: dict[bytes, int] = {}
        """The last place of an end tag, by name in small letters, before the next entry."""
        self._entry_at = -1

    def has(self, name: bytes, at: int) -> bool:
        """Whether an end tag of that name stands behind a place and before the next entry; places ascend."""
        if at > self._entry_at:
            self._find(at)
        return self._closed.get(name.lower(), -1) >= at

    def _find(self, at: int) -> None:
        """Go on to the next entry behind a place."""
        self._closed.clear()
        for match in _ENDS.finditer(self._text, max(at, self._before)):
            if match[1] is None:
                self._before, self._entry_at = match.end(), match.start()
                return
            self._closed[match[1].lower()] = match.start()
        self._before = self._entry_at = len(self._text)


def _as_text(source: bytes, *, is_html: bool) -> bytes:
    """Return markup as it should have stood there. What is escaped in part is not escaped twice."""
    source = source.replace(b"<![CDATA[", b"").replace(b"]]>", b"")
    if is_html and not _ESCAPED_MARKUP.search(source):
        return escaped(source)
    return mended(source, set()).replace(b"<", b"&lt;").replace(b">", b"&gt;")
