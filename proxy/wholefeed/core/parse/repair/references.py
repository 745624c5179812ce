"""References and characters that XML does not know, in text and in attribute values (docs/faults.md row 45).

Whatever XML reads as it stands comes back as the same bytes.
"""

from __future__ import annotations

import re
from html.entities import html5
from typing import Final

from wholefeed.core.parse.repair.edits import TooManyError

AMPERSANDS: Final = "ampersands"
CHARACTER_REFERENCES: Final = "character-references"
CONTROL_CHARACTERS: Final = "control-characters"
ENTITIES: Final = "entities"

MAX_REFERENCES: Final = 1_000_000
"""In one text or attribute value."""

_CONTROLS: Final = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0D})
_NONCHARACTERS: Final = re.compile(rb"\xef\xbf[\xbe\xbf]")
_REFERENCE: Final = re.compile(
    rb"&(?:#(?:([0-9]{1,10}+)|[xX]([0-9a-fA-F]{1,8}+))|([A-Za-z][A-Za-z0-9]{0,31}+));|&"
)
_PREDEFINED: Final = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_ENTITIES: Final = {name.removesuffix(";").encode(): text for name, text in html5.items() if name[-1:] == ";"}
_ALLOWED: Final = (
    *(range(code, code + 1) for code in (0x09, 0x0A, 0x0D)),
    *(range(0x20, 0xD800), range(0xE000, 0xFFFE), range(0x10000, 0x110000)),
)
"""XML 1.0, production 2."""
_REPLACEMENT: Final = b"&#65533;"


def without_controls(text: bytes) -> bytes:
    """Return the text without the characters that XML 1.0, section 2.2, does not allow in any form."""
    cleaned = text.translate(None, _CONTROLS)
    return _NONCHARACTERS.sub(b"", cleaned) if b"\xef\xbf" in cleaned else cleaned


def mended(text: bytes, repairs: set[str]) -> bytes:
    """Return character data or an attribute's value whose references XML knows.

    An entity of HTML becomes the characters that it stands for, as numbers; an ampersand that begins no
    reference, or one that nobody knows, becomes an escaped one.

    Args:
        text: Between markup.
        repairs: Gains the names of what was done.

    Raises:
        TooManyError: There is no end of ampersands.
    """
    if text.count(b"&") > MAX_REFERENCES:  # each costs a hundred bytes while they are looked at
        raise TooManyError

    def replaced(match: re.Match[bytes]) -> bytes:
        number, hexadecimal, name = match.groups()
        if name is not None:
            if name in _PREDEFINED:
                return match[0]
            if name in _ENTITIES:
                repairs.add(ENTITIES)
                return "".join(f"&#{ord(each)};" for each in _ENTITIES[name]).encode()
        elif number is not None or hexadecimal is not None:
            made = _character(number, hexadecimal)
            is_upper = match[0][2:3] == b"X"
            if made is None and not is_upper:
                return match[0]
            repairs.add(CHARACTER_REFERENCES)
            return made or match[0].replace(b"X", b"x", 1)
        repairs.add(AMPERSANDS)
        return b"&amp;" + match[0][1:]

    return _REFERENCE.sub(replaced, text) if b"&" in text else text


def escaped(source: bytes) -> bytes:
    """Return what stands for these very bytes in character data."""
    return source.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _character(number: bytes | None, hexadecimal: bytes | None) -> bytes | None:
    """Return what a reference to a character that XML does not allow becomes; None where it allows it."""
    code = int(number) if number is not None else int(hexadecimal or b"0", 16)
    return None if any(code in allowed for allowed in _ALLOWED) else _REPLACEMENT
