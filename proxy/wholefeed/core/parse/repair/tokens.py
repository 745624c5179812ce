"""A document that may be anything, cut into markup and text. Every byte belongs to exactly one token.

The cost is linear whatever comes: no pattern looks past the next "<", and where a search for an end fails,
the document ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from wholefeed.core.parse.limits import MAX_ELEMENTS

_LESS_THAN: Final = ord("<")
_SLASH: Final = ord("/")
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


MAX_TOKENS: Final = MAX_ELEMENTS // 2
"""Pieces of markup and text that are looked at: a document of 32 MiB has about that many, and more would keep
the proxy busy for minutes."""
FREE_TOKENS: Final = 20_000
BYTES_PER_TOKEN: Final = 10
"""Beyond so many pieces they must be so long on average: 11 bytes is the least that was seen of a real feed.
What is denser would cost more than a second for each megabyte."""


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
    tag_at, text_mark, end_mark = _TAG.match, Mark.TEXT, Mark.END  # every element comes by here
    while position < size:
        if text[position] != _LESS_THAN:
            end = text.find(b"<", position)
            end = size if end < 0 else end
            yield Token(text_mark, position, end)
        elif (tag := tag_at(text, position)) is not None:
            end = tag.end()
            name, attributes = tag.group(2, 3)
            if name is None:
                yield Token(end_mark, position, end, tag[1])
            else:
                mark = Mark.EMPTY if text[end - 2] == _SLASH and tag[4] else Mark.START
                yield Token(mark, position, end, name, attributes, bool(attributes) and _repeats(attributes))
        else:
            token = _other(text, position, last_end)
            end = token.end
            yield token
        position = end


def most_tokens(size_bytes: int) -> int:
    """Return how many tokens of a document of that size are looked at."""
    return min(MAX_TOKENS, FREE_TOKENS + size_bytes // BYTES_PER_TOKEN)


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


def _repeats(attributes: bytes) -> bool:
    """Whether one of well-written attributes stands there twice (XML 1.0, section 3.1)."""
    if attributes.count(b"=") == 1:
        return False
    names = [match["name"] for match in _ODD.finditer(attributes)]
    return len(set(names)) < len(names)


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
        mark = Mark.EMPTY if tag["empty"] else Mark.START
        return Token(mark, start, tag.end(), tag["start"], tag["attributes"], is_odd=True)
    return None


def _delimited(text: bytes, mark: Mark, start: int, end: int, length: int) -> Token:
    return Token(Mark.CUT, start, len(text)) if end < 0 else Token(mark, start, end + length)
