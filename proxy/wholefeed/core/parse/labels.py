"""Labels of encodings, and the codecs that read what bears them (WHATWG Encoding, 4.2).

The labels are the standard's. Some that it does not know are read as well where Python has a codec for them;
what is no encoding of documents (UTF-7, UTF-32, rot13) is refused.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache
from typing import Final

import webencodings

from wholefeed.core.parse.errors import ParseError

UTF8: Final = "utf-8"
WINDOWS_1252: Final = "cp1252"
WIDE: Final = frozenset({"utf-16", "utf-16-le", "utf-16-be"})

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}")
_WITHOUT_ONE: Final = "replacement"
"""What the standard calls encodings that browsers do not read, for what scripts could be hidden in them. Here
text comes out as UTF-8, so those are read that Python can read."""
_WIDER: Final = {
    "iso8859-1": WINDOWS_1252,
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
"""By Python's names: the encodings that documents with these labels are really in, as in the standard."""
_MANY_BYTES: Final = frozenset(
    {
        *("big5hkscs", "gb18030", "hz", "johab", "euc_jp", "euc_jis_2004", "shift_jis_2004"),
        *("cp932", "cp949", "cp950"),
        *("iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3", "iso2022_jp_ext"),
        "iso2022_kr",
    }
)
_SINGLE_BYTES: Final = frozenset(
    {
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (874, *range(1250, 1259))),
        *(f"cp{page}" for page in (437, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866)),
        *("koi8-r", "koi8-u", "koi8-t", "ptcp154", "kz1048", "mac-roman", "mac-cyrillic", "mac-greek"),
        "x-user-defined",
    }
)
_READ: Final = _MANY_BYTES | _SINGLE_BYTES | WIDE | {UTF8}
_LABELS: Final = 256
"""That are looked up once; publishers write few different ones."""
_SHIFTED: Final = ("iso2022", "hz")
"""Encodings that write other characters than ASCII in its bytes."""


@lru_cache(maxsize=_LABELS)
def codec_of(label: str) -> str:
    """Return the codec that reads what is labelled so.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    name = _standard(label) or _python(label)
    name = _WIDER.get(name, name)
    if name not in _READ:
        raise unsupported(label[:40])
    return name


@lru_cache(maxsize=_LABELS)
def is_unheard_of(label: str) -> bool:
    """Whether a label could be one but is nobody's: then the bytes say what they are, if they can.

    One that names what is no text encoding for documents (UTF-7, rot13) is another matter: it is refused.
    """
    if not _LABEL.fullmatch(label) or webencodings.lookup(label) is not None:
        return False
    try:
        codecs.lookup(label)
    except LookupError:
        return True
    return False


def is_single_byte(codec: str) -> bool:
    """Whether each byte is a character."""
    return codec in _SINGLE_BYTES


def has_ascii(codec: str) -> bool:
    """Whether a document all of whose bytes are ASCII means that."""
    return codec not in WIDE and not codec.startswith(_SHIFTED)


def unsupported(label: str) -> ParseError:
    """Return the error that a document is in an encoding that is not read."""
    return ParseError(f"expected a known text encoding, got {label!r}", slug="unsupported-encoding")


def _standard(label: str) -> str:
    found = webencodings.lookup(label) if _LABEL.fullmatch(label) else None
    return "" if found is None or found.name == _WITHOUT_ONE else found.codec_info.name


def _python(label: str) -> str:
    try:
        name = codecs.lookup(label).name if _LABEL.fullmatch(label) else ""
    except (LookupError, ValueError):
        return ""
    return UTF8 if name == "ascii" else name


def _user_defined(name: str) -> codecs.CodecInfo | None:
    """Find the one encoding of the standard that Python has no codec for."""
    found = webencodings.lookup("x-user-defined") if name == "x_user_defined" else None
    return found.codec_info if found is not None else None


codecs.register(_user_defined)
