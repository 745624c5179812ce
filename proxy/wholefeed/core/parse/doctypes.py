"""Cut document types with an internal subset (XML 1.0, section 2.8; docs/faults.md rows 40, 41 and 150).

No declaration takes effect: no entity is expanded, no attribute gets a default, nothing external is fetched.
Only HTML's own entities may be declared: they are known anyway.
"""

from __future__ import annotations

import re
from html.entities import html5, name2codepoint
from typing import Final

from wholefeed.core.parse.limits import ParseError


def without_subset(text: bytes, start: int = 0) -> bytes:
    """Remove a DOCTYPE with an internal subset from a document in UTF-8, which begins at `start`.

    Raises:
        ParseError: `dtd-forbidden`: the subset has no end, or an entity other than HTML's own.
    """
    prolog = _PROLOG.match(text, start)
    assert prolog is not None, "it may be empty"
    doctype = _DOCTYPE_BEGINS.match(text, prolog.end())
    if doctype is None:
        return text
    return text[: prolog.end()] + text[_end_of_doctype(text, doctype.end()) :]


_PROLOG: Final = re.compile(rb"(?:[^<]++|<\?(?:[^?]|\?(?!>))*+\?>|<!--(?:[^-]|-(?!->))*+-->)*+")
_DOCTYPE_BEGINS: Final = re.compile(rb"<!DOCTYPE\s(?:[^\"'<>\[]++|\"[^\"]*+\"|'[^']*+')*+\[", re.IGNORECASE)
_DOCTYPE_ENDS: Final = re.compile(rb"\]\s*+>")


def _end_of_doctype(text: bytes, position: int) -> int:
    sets: set[bytes] = set()
    while (end := _DOCTYPE_ENDS.match(text, position)) is None:
        piece = _PIECE.match(text, position)
        if piece is None:
            raise _forbidden(
                text, position, text[position : position + _SHOWN_BYTES] or b"the end of the document"
            )
        if piece["name"] is not None:
            if _HTML_SET.fullmatch(piece["value"]) is None:
                raise _forbidden(text, position, b"<!ENTITY % " + piece["name"])
            sets.add(piece["name"])
        elif piece["entity"] is not None and not _is_html_entity(piece["entity"], piece["text"]):
            raise _forbidden(text, position, b"<!ENTITY " + piece["entity"])
        elif piece["used"] is not None and piece["used"] not in sets:
            raise _forbidden(text, position, piece[0])
        position = piece.end()
    return end.end()


_NAME: Final = rb"[^\s\"'<>%&;\[\]]++"
_LITERAL: Final = rb"(?:\"[^\"]*+\"|'[^']*+')"
# Text to skip, a parameter entity, an entity with a value, or a reference.
_PIECE: Final = re.compile(
    rb"(?:\s++|<!--(?:[^-]|-(?!->))*+-->|<\?(?:[^?]|\?(?!>))*+\?>"
    rb"|<!(?:ELEMENT|ATTLIST|NOTATION)\s(?:[^\"'<>]++|" + _LITERAL + rb")*+>)++"
    rb"|<!ENTITY\s++%\s++(?P<name>" + _NAME + rb")\s++(?P<value>(?:[^\"'<>]++|" + _LITERAL + rb")*+)>"
    rb"|<!ENTITY\s++(?P<entity>" + _NAME + rb")\s*+(?P<text>" + _LITERAL + rb")\s*+>"
    rb"|%(?P<used>" + _NAME + rb");"
)
_SPACE_OR_LITERALS: Final = rb"\s*+(?:" + _LITERAL + rb"\s*+)?+"
# W3C's sets of HTML's entities, which RSS 1.0 recommends; they are never fetched.
_HTML_SET: Final = re.compile(
    rb"PUBLIC\s*+[\"']-//W3C//ENTITIES[^\"']*+[\"']"
    + _SPACE_OR_LITERALS
    + rb"|SYSTEM\s*+[\"']https?://www\.w3\.org/[^\"']*\.ent[\"']\s*+"
)


def _is_html_entity(name: bytes, literal: bytes) -> bool:
    known = name.decode("utf-8", "replace")
    text = literal[1:-1].decode("utf-8", "replace")
    for _ in range(2):  # XML 1.0, section 4.6: `&#38;#60;` is how "<" has to be declared
        text = _NUMBER.sub(_character, text[:_MAX_VALUE_CHARACTERS])
    return text != "" and text in (html5.get(f"{known};"), _HTML_4.get(known))


# No character of HTML is declared longer.
_MAX_VALUE_CHARACTERS: Final = 40
# Two entities have become other characters since HTML 4.
_HTML_4: Final = {name: chr(code) for name, code in name2codepoint.items()}
_NUMBER: Final = re.compile(r"&#(?:([0-9]{1,7})|x([0-9a-fA-F]{1,6}));")


def _character(match: re.Match[str]) -> str:
    code = int(match[1]) if match[1] else int(match[2], 16)
    return chr(code) if code <= _LAST_CHARACTER else ""


_LAST_CHARACTER: Final = 0x10FFFF
_SHOWN_BYTES: Final = 40


def _forbidden(text: bytes, position: int, found: bytes) -> ParseError:
    line = text.count(b"\n", 0, position) + 1
    shown = found[:_SHOWN_BYTES].decode("utf-8", "replace").strip()
    message = f"expected a DOCTYPE that declares no entities but HTML's, got {shown} (line {line})"
    return ParseError(message, slug="dtd-forbidden")
