"""A document that may be anything, cut into markup and text. Every byte belongs to exactly one token.

The cost is linear whatever comes: no pattern looks past the next "<", and where a search for an end fails,
the document ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

_LESS_THAN: Final = ord("<")
_NCNAME: Final = rb"[A-Za-z_\x80-\xff][A-Za-z0-9._\x80-\xff-]*+"
_QNAME: Final = _NCNAME + rb"(?::" + _NCNAME + rb")?+"
_TAG: Final = re.compile(
    rb"<(?:/(?P<end>" + _QNAME + rb")\s*+>"
    rb"|(?P<start>" + _QNAME + rb")(?P<attributes>(?:\s++" + _QNAME + rb"\s*+="
    rb"\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+)\s*+(?P<empty>/?+)>)"
)
_ODD_ATTRIBUTE: Final = (
    rb"\s*+(?P<name>" + _QNAME + rb")(?:\s*+=\s*+(?P<value>\"[^\"<]*+\"|'[^'<]*+'|[^\s\"'<>]++))?+"
)
_ODD_TAG: Final = re.compile(
    rb"<(?P<start>" + _QNAME + rb")(?P<attributes>\s"
    rb"(?:" + re.sub(rb"\?P<\w+>", b"?:", _ODD_ATTRIBUTE) + rb")++)\s*+(?P<empty>/?+)>"
)
_ODD: Final = re.compile(_ODD_ATTRIBUTE)
_DOCTYPE: Final = re.compile(rb"<!DOCTYPE(?P<subset>[^<>\[]*+\[)?+", re.IGNORECASE)


class Mark(Enum):
    """What a token is."""

    TEXT = auto()
    START = auto()
    EMPTY = auto()
    """An empty-element tag."""
    END = auto()
    CDATA = auto()
    COMMENT = auto()
    INSTRUCTION = auto()
    """A processing instruction, or the XML declaration."""
    DOCTYPE = auto()
    SUBSET = auto()
    """A DOCTYPE with an internal subset."""
    STRAY = auto()
    """A "<" that begins nothing."""
    CUT = auto()
    """From here on the document breaks off within markup."""


class Token(NamedTuple):
    """A piece of the document."""

    mark: Mark
    start: int
    end: int
    name: bytes = b""
    """Of a tag."""
    attributes: bytes = b""
    """Of a start tag: white space, names and values, as written."""
    is_odd: bool = False
    """Whether the attributes are none of XML's: without quotes, without values, or repeated."""


def tokens(text: bytes, start: int = 0) -> Iterator[Token]:
    """Yield the tokens of a document, in order, from an offset on."""
    position, size = start, len(text)
    last_end = text.rfind(b">")
    while position < size:
        if text[position] != _LESS_THAN:
            end = text.find(b"<", position)
            end = size if end < 0 else end
            yield Token(Mark.TEXT, position, end)
        elif (tag := _TAG.match(text, position)) is not None:
            end = tag.end()
            yield _tag(tag, is_odd=_repeats(tag["attributes"]))
        else:
            token = _other(text, position, last_end)
            end = token.end
            yield token
        position = end


def odd_attributes(attributes: bytes) -> dict[bytes, bytes]:
    """Return name and value of attributes as HTML has them; of repeated ones the first."""
    found: dict[bytes, bytes] = {}
    for match in _ODD.finditer(attributes):
        value = match["value"]
        if value is None:
            value = match["name"]
        elif value[:1] in (b'"', b"'"):
            value = value[1:-1]
        found.setdefault(match["name"], value)
    return found


def _repeats(attributes: bytes | None) -> bool:
    """Whether one of well-written attributes stands there twice (XML 1.0, section 3.1)."""
    if not attributes or attributes.count(b"=") == 1:
        return False
    names = [match["name"] for match in _ODD.finditer(attributes)]
    return len(set(names)) < len(names)


def _tag(match: re.Match[bytes], *, is_odd: bool) -> Token:
    start, end = match.span()
    name = match["start"]
    if name is None:
        return Token(Mark.END, start, end, match["end"])
    return Token(Mark.EMPTY if match["empty"] else Mark.START, start, end, name, match["attributes"], is_odd)


def _other(text: bytes, start: int, last_end: int) -> Token:
    """Return the token at a "<" that begins no tag of XML's."""
    if start > last_end:
        return Token(Mark.CUT, start, len(text))
    if text.startswith(b"<!--", start):
        return _delimited(text, Mark.COMMENT, start, text.find(b"-->", start + 4), 3)
    if text.startswith(b"<![CDATA[", start):
        return _delimited(text, Mark.CDATA, start, text.find(b"]]>", start + 9), 3)
    return _short(text, start) or Token(Mark.STRAY, start, start + 1)


def _short(text: bytes, start: int) -> Token | None:
    """Return the token at a "<" if it is one that ends before the next "<"; None when it begins nothing."""
    following = text.find(b"<", start + 1)
    limit = len(text) if following < 0 else following
    if text.startswith(b"<?", start):
        end = text.find(b"?>", start + 2, limit)
        return Token(Mark.INSTRUCTION, start, end + 2) if end >= 0 else None
    if (doctype := _DOCTYPE.match(text, start)) is not None:
        end = text.find(b">", start, limit)
        mark = Mark.SUBSET if doctype["subset"] else Mark.DOCTYPE
        return Token(mark, start, end + 1 if end >= 0 else limit)
    if (tag := _ODD_TAG.match(text, start)) is not None and b"=" in tag["attributes"]:
        return _tag(tag, is_odd=True)
    return None


def _delimited(text: bytes, mark: Mark, start: int, end: int, length: int) -> Token:
    return Token(Mark.CUT, start, len(text)) if end < 0 else Token(mark, start, end + length)
