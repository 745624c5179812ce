"""Write, find and edit text, attributes and start tags of XML, in slices of well-formed documents.

`xml.sax.saxutils` would load an HTTP client and TLS.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def escape(text: str, further: Mapping[str, str] = _NOTHING) -> str:
    escaped = text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")
    for character, reference in further.items():
        escaped = escaped.replace(character, reference)
    return escaped


def quoteattr(text: str) -> str:
    escaped = escape(text, _BLANKS)
    if '"' not in escaped:
        return f'"{escaped}"'
    if "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', "&quot;") + '"'


_BLANKS: Final = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def without_invalid(text: str) -> str:
    """Return the text without the characters that XML 1.0, section 2.2, forbids."""
    return _INVALID.sub("", text)


_INVALID: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def attribute_of(attributes: Sequence[str], name: str) -> str | None:
    """Return a value from expat's flat list of names and values."""
    for place in range(0, len(attributes), 2):
        if attributes[place] == name:
            return attributes[place + 1]
    return None


ATTRIBUTE_VALUE: Final = rb"(?:\"[^<\"]*+\"|'[^<']*+')"
"""A well-formed value in its quotes."""


# Start tags


class Attribute(NamedTuple):
    name: bytes
    written: bytes
    """With a blank in front."""


def attribute(name: str, value: str) -> Attribute:
    return Attribute(name.encode(), f' {name}="{escape(value, _QUOTED)}"'.encode())


def unescape(text: str) -> str:
    """Return HTML text without references; Python refuses to read very long numbers."""
    return html.unescape(LONG_REFERENCE.sub("\ufffd", text))


LONG_REFERENCE: Final = re.compile("&#[0-9]{1000,};?")

_QUOTED: Final = {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def extend_tag(slice_: bytes, wanted: Iterable[Attribute], rebase: Callable[[str], str]) -> bytes:
    """Return an element with the wanted attributes, in order, that its start tag lacks.

    `rebase` makes the element's own relative xml:base absolute.
    """
    name = _NAME.match(slice_)
    assert name is not None, "a slice begins with a start tag"
    names, rest = set(), slice_[name.end() :]
    position = name.end()
    while match := _ATTRIBUTE.match(slice_, position):
        position = match.end()
        names.add(match[1])
        if match[1] == b"xml:base":
            value = unescape((match[2] if match[2] is not None else match[3]).decode())
            if not _ABSOLUTE.match(value):
                own = attribute("xml:base", rebase(value)).written
                rest = b"".join((slice_[name.end() : match.start()], own, slice_[match.end() :]))
    return b"".join((name[0], *(each.written for each in wanted if each.name not in names), rest))


_NAME: Final = re.compile(rb"<([^\s/>]+)")
_ATTRIBUTE: Final = re.compile(rb"\s+([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ABSOLUTE: Final = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.\-]*:")


def with_children(slice_: bytes, children: bytes) -> bytes:
    """Add children before the end tag; an empty-element tag gains one."""
    if not slice_.endswith(b"/>"):
        place = slice_.rindex(b"</")
        return slice_[:place] + children + slice_[place:]
    name = _NAME.match(slice_)
    assert name is not None, "a slice begins with a start tag"
    return b"%s>%s</%s>" % (slice_[:-2].rstrip(), children, name[1])


def is_simple(slice_: bytes) -> bool:
    """Return whether an element has neither children nor attributes, except namespaces (RFC 4287, 6.4.1)."""
    return _SIMPLE.fullmatch(slice_) is not None


_SIMPLE: Final = re.compile(
    rb"<[^\s/>]+(?:\s+xmlns(?::[^\s=]+)?\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*"
    rb"(?:/>|>(?:[^<]++|<!\[CDATA\[.*?\]\]>|<!--.*?-->|<\?.*?\?>)*+</[^<>]*>)",
    re.DOTALL,
)


class _AttributePlaces(NamedTuple):
    quoted: list[tuple[bytes, int, int]]
    """Names, with the spans of the values in their quotes."""
    end: int
    """Offset behind the tag."""

    def values(self, text: bytes) -> dict[bytes, bytes]:
        return {name: text[start + 1 : end - 1] for name, start, end in self.quoted}


def attribute_places(text: bytes, start: int) -> _AttributePlaces:
    name = _NAME.match(text, start)
    assert name is not None, "a start tag begins there"
    quoted, position = [], name.end()
    while match := _ATTRIBUTE.match(text, position):
        position = match.end()
        value = 2 if match[2] is not None else 3
        quoted.append((match[1], match.start(value) - 1, match.end(value) + 1))
    return _AttributePlaces(quoted, text.index(b">", position) + 1)
