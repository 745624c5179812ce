"""Text and attributes of XML, written and found.

To write them is what `xml.sax.saxutils` does; that loads an HTTP client and TLS for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_BLANKS: Final = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
ATTRIBUTE_VALUE: Final = rb"(?:\"[^<\"]*+\"|'[^<']*+')"
"""The pattern of one in its quotes, in what is well-formed."""


def escape(text: str, further: Mapping[str, str] = _NOTHING) -> str:
    """Return the text as character data; `further` says what else is written otherwise."""
    escaped = text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")
    for character, reference in further.items():
        escaped = escaped.replace(character, reference)
    return escaped


def quoteattr(text: str) -> str:
    """Return the text as an attribute value, in quotes."""
    escaped = escape(text, _BLANKS)
    if '"' not in escaped:
        return f'"{escaped}"'
    if "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', "&quot;") + '"'


def attribute_of(attributes: Sequence[str], name: str) -> str | None:
    """Return an attribute's value from expat's flat list of names and values."""
    for place in range(0, len(attributes), 2):
        if attributes[place] == name:
            return attributes[place + 1]
    return None
