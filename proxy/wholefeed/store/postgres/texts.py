r"""Texts that PostgreSQL refuses, written so that it takes them, and read back as they were.

A text of PostgreSQL is valid UTF-8 without NUL. What publishers send may hold NUL and lone surrogates, and
SQLite keeps both. Each such character is written as DEL and its number in four hexadecimal digits; so is DEL
itself. JSON may hold DEL as it is, so what was written by `json.dumps` is still JSON.

encode("a\0b")           # b"a\x7f0000b"
unescape("a\x7f0000b")   # "a\0b"
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "\x7f"
"""What stands in each text that was changed."""
_REFUSED: Final = re.compile("[\0\x7f\ud800-\udfff]")
_WRITTEN: Final = re.compile("\x7f([0-9a-f]{4})")


def encode(text: str) -> bytes:
    """Return the text as PostgreSQL takes it, in UTF-8."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return escape(text).encode()
    return escape(text).encode() if b"\0" in data or b"\x7f" in data else data


def escape(text: str) -> str:
    """Return the text without what PostgreSQL refuses."""
    return _REFUSED.sub(lambda found: f"{MARK}{ord(found[0]):04x}", text)


def unescape(text: str) -> str:
    """Return what was escaped. What no `escape` has written stays as it is."""
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)
