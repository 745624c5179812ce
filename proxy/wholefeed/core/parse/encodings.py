"""What encoding a document is in, and its text in UTF-8 (RFC 7303, section 3; XML 1.0, appendix F).

The order is: byte order mark, charset of the Content-Type, XML declaration, UTF-8. Only text encodings that
documents on the Web use are read; the Encoding Standard's supersets stand in for what they are mislabelled
as (gb18030 for gb2312, windows-1252 for iso-8859-1).
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

from wholefeed.core.parse.errors import ParseError

SNIFF_BYTES: Final = 1024
"""The encoding of a document is known from so much of its beginning."""

FALLBACK: Final = "cp1252"
FALLBACK_NAME: Final = "windows-1252"

_MAX_MENDED: Final = 1000
_UTF8: Final = "utf-8"
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^;\s]*))", re.IGNORECASE)
_DECLARATION: Final = re.compile(
    rb"\s*<\?xml\s[^>]*?encoding\s*=\s*(?:\"([^\">]{1,80})\"|'([^'>]{1,80})')", re.ASCII
)
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}")

_SUPERSETS: Final = {
    "ascii": _UTF8,
    "iso8859-1": FALLBACK,
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_SAME: Final = frozenset(
    {
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (874, 932, 949, 950, *range(1250, 1259))),
        *(f"cp{page}" for page in (437, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866)),
        *("koi8-r", "koi8-u", "koi8-t", "ptcp154", "kz1048", "mac-roman", "mac-cyrillic", "mac-greek"),
        *("big5", "big5hkscs", "gb18030", "hz", "johab", "euc_jp", "euc_jis_2004", "shift_jis_2004"),
        *("iso2022_jp", "iso2022_jp_1", "iso2022_jp_2", "iso2022_jp_2004", "iso2022_jp_3", "iso2022_jp_ext"),
        *("iso2022_kr", _UTF8, "utf-16", "utf-16-le", "utf-16-be"),
    }
)
_WIDE: Final = frozenset({"utf-16", "utf-16-le", "utf-16-be"})


class Encoding(NamedTuple):
    """What a document's bytes are to be read as."""

    codec: str
    declared: str
    """As the publisher wrote it; empty when it did not."""
    mark_bytes: int = 0
    """Length of the byte order mark."""


class Decoded(NamedTuple):
    """A document in UTF-8, without a byte order mark."""

    text: bytes
    encoding: Encoding
    used: str = ""
    """What it was read as in the end, where that is not what it declares."""


def to_utf8(body: bytes, media_type: str) -> Decoded:
    """Return the text of a document in UTF-8. A UTF-8 one comes back as it is, not validated.

    Args:
        body: The document.
        media_type: The whole Content-Type value; may be empty.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    encoding = encoding_of(body[:SNIFF_BYTES], media_type)
    if encoding.codec == _UTF8:
        text = body[encoding.mark_bytes :] if encoding.mark_bytes else body
        if is_unheard_of(encoding.declared):
            if not is_utf8(text):
                raise _unsupported(encoding.declared)
            return Decoded(text, encoding, _UTF8)
        contradicted = codec_of(encoding.declared) in _WIDE if encoding.declared else False
        return Decoded(text, encoding, _UTF8 if contradicted else "")
    try:
        decoded = body[encoding.mark_bytes :].decode(encoding.codec)
    except UnicodeDecodeError:
        return mended(body, encoding)
    return Decoded(decoded.encode(), encoding)


def encoding_of(beginning: bytes, media_type: str) -> Encoding:
    """Return what a document is encoded in, from its first `SNIFF_BYTES`.

    Raises:
        ParseError: `unsupported-encoding`: UTF-7, UTF-32, a label that is unknown or names no text encoding.
    """
    if beginning.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"<\0\0\0", b"\0\0\0<")):
        raise _unsupported("UTF-32")
    if beginning.startswith(_UTF8_MARK):
        return Encoding(_UTF8, _UTF8, len(_UTF8_MARK))
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if beginning.startswith(mark):
            return Encoding(codec, codec, len(mark))
    by_form = _wide_form(beginning)
    label = _http_charset(media_type)
    if not label or is_unheard_of(label):
        label = ("" if by_form else _declared(beginning)) or label
    codec = codec_of(label) if label and not is_unheard_of(label) else by_form or _UTF8
    if codec in _WIDE:
        # RFC 2781 has no byte order mark mean big-endian; what is written in ASCII is no UTF-16 at all.
        codec = by_form or (_UTF8 if beginning[:1] == b"<" else "utf-16-be" if codec == "utf-16" else codec)
    return Encoding(codec, label)


def codec_of(label: str) -> str:
    """Return the codec that reads what is labelled so.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    try:
        name = codecs.lookup(label).name if _LABEL.fullmatch(label) else ""
    except (LookupError, ValueError):
        name = _ALIASES.get(label.lower(), "")
    if name in _SUPERSETS:
        return _SUPERSETS[name]
    if name not in _SAME:
        raise _unsupported(label[:40])
    return name


def is_unheard_of(label: str) -> bool:
    """Whether a label could be one but is nobody's: then the bytes say what they are, if they can.

    One that names what is no text encoding for documents (UTF-7, rot13) is another matter: it is refused.
    """
    if not _LABEL.fullmatch(label) or label.lower() in _ALIASES:
        return False
    try:
        codecs.lookup(label)
    except LookupError:
        return True
    return False


_ALIASES: Final = {
    "x-sjis": "shift_jis",
    "x-gbk": "gbk",
    "unicode-1-1-utf-8": _UTF8,
    "x-mac-roman": "mac-roman",
}


def is_utf8(text: bytes) -> bool:
    """Whether every byte is UTF-8, found out without a copy of the text."""
    if text.isascii():
        return True
    decoder = codecs.getincrementaldecoder(_UTF8)()
    view = memoryview(text)
    step = 1 << 18
    try:
        for position in range(0, len(view), step):
            decoder.decode(view[position : position + step])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def mended(body: bytes, encoding: Encoding) -> Decoded:
    """Read a document whose bytes are not what it says (docs/faults.md row 46).

    A document that is UTF-8 but for a few bytes (texts cut off within a character) keeps its UTF-8; those
    bytes, or in another document all, are windows-1252.
    """
    raw = body[encoding.mark_bytes :]
    if encoding.codec in _WIDE:
        return Decoded(raw.decode(encoding.codec, "replace").encode(), encoding, encoding.codec)
    if encoding.codec != _UTF8 and is_utf8(raw):
        return Decoded(raw, encoding, _UTF8)
    replaced = raw.decode(_UTF8, "replace").count("\ufffd") - raw.count("\ufffd".encode())
    text = raw.decode(_UTF8, _MEND) if replaced <= _MAX_MENDED else raw.decode(FALLBACK, "replace")
    return Decoded(text.encode(), encoding, FALLBACK_NAME)


_MEND: Final = "wholefeed.windows-1252"


def _mend(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode(FALLBACK, "replace"), error.end


codecs.register_error(_MEND, _mend)


def _unsupported(label: str) -> ParseError:
    return ParseError(f"expected a known text encoding, got {label!r}", slug="unsupported-encoding")


def _wide_form(beginning: bytes) -> str:
    """UTF-16 shows without a byte order mark: a document begins with "<" and an ASCII character."""
    if beginning[:2] == b"<\0" and beginning[3:4] == b"\0":
        return "utf-16-le"
    if beginning[:2] == b"\0<" and beginning[2:3] == b"\0":
        return "utf-16-be"
    return ""


def _http_charset(media_type: str) -> str:
    match = _CHARSET.search(media_type)
    return next((group.strip() for group in match.groups() if group), "") if match else ""


def _declared(beginning: bytes) -> str:
    match = _DECLARATION.match(beginning)
    return (match[1] or match[2]).decode("latin-1").strip() if match else ""
