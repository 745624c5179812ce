"""What encoding a document is in, and its text in UTF-8 (RFC 7303, section 3; XML 1.0, appendix F).

The order is: byte order mark, charset of the Content-Type, XML declaration, UTF-8. Where the bytes contradict
that, one decision is made for the whole document (docs/faults.md row 46a).
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from functools import lru_cache
from typing import Final, NamedTuple

import webencodings

from wholefeed.core.parse.limits import ParseError

UTF8: Final = "utf-8"
SNIFF_BYTES: Final = 1024
"""The encoding of a document is known from so much of its beginning."""
FALLBACK_NAME: Final = "windows-1252"
MIXED_NAME: Final = "utf-8 with windows-1252 in it"


def to_utf8(body: bytes, media_type: str) -> Decoded:
    """Return the text of a document in UTF-8. A UTF-8 one comes back as it is, not validated.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    encoding = encoding_of(body[:SNIFF_BYTES], media_type)
    raw = body[encoding.mark_bytes :] if encoding.mark_bytes else body
    if encoding.codec == UTF8:
        codec = codec_of(encoding.declared) if encoding.declared else UTF8
        if not codec and not is_utf8(raw):
            raise _unsupported(encoding.declared)
        return Decoded(raw, encoding, UTF8 if not codec or codec in _WIDE else "")
    if raw.isascii() and encoding.codec not in _WIDE and not encoding.codec.startswith(_SHIFTED):
        return Decoded(raw, encoding)
    if encoding.codec in _SINGLE_BYTES:
        if is_utf8(raw):  # that a text of another encoding is so by chance, from end to end, does not happen
            return Decoded(raw, encoding, UTF8)
        return Decoded(_single_bytes(raw, encoding.codec), encoding)
    return _many_bytes(raw, encoding)


class Decoded(NamedTuple):
    """A document in UTF-8, without a byte order mark."""

    text: bytes
    encoding: Encoding
    used: str = ""
    """What it was read as in the end, where that is not what it declares."""


class Encoding(NamedTuple):
    """What a document's bytes are to be read as."""

    codec: str
    declared: str
    """As the publisher wrote it; empty when it did not."""
    mark_bytes: int = 0
    """Length of the byte order mark."""


def is_utf8(text: bytes) -> bool:
    """Whether every byte is UTF-8, found out without a copy of the text."""
    if text.isascii():
        return True
    decoder = codecs.getincrementaldecoder(UTF8)()
    view = memoryview(text)
    step = 1 << 18
    try:
        for position in range(0, len(view), step):
            decoder.decode(view[position : position + step])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def from_utf8(text: bytes, codec: str) -> bytes:
    """Return a text in another encoding, what it cannot write as references to characters (XML 1.0, 4.1)."""
    if codec == UTF8:
        return text
    decoded = text.decode(UTF8)
    if codec == _WINDOWS_1252:
        return codecs.charmap_encode(decoded, "xmlcharrefreplace", _WINDOWS_1252_BYTES)[0]
    return decoded.encode(codec, "xmlcharrefreplace")


_UTF8_MARK: Final = b"\xef\xbb\xbf"
_MARKS: Final = re.compile(rb"\A(?:%s)+" % _UTF8_MARK)


def encoding_of(beginning: bytes, media_type: str) -> Encoding:
    """Return what a document is encoded in, from its first `SNIFF_BYTES`.

    Raises:
        ParseError: `unsupported-encoding`: UTF-7, UTF-32, a label that is unknown or names no text encoding.
    """
    if beginning.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"<\0\0\0", b"\0\0\0<")):
        raise _unsupported("UTF-32")
    if beginning.startswith(_UTF8_MARK):
        marks = len(beginning) - len(_MARKS.sub(b"", beginning, count=1))
        return Encoding(UTF8, UTF8, marks)
    for mark, codec in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if beginning.startswith(mark):
            return Encoding(codec, codec, len(mark))
    by_form = _wide_form(beginning)
    label = _http_charset(media_type)
    if not (label and codec_of(label)):
        label = ("" if by_form else _declared(beginning)) or label
    codec = (codec_of(label) if label else "") or by_form or UTF8
    if codec in _WIDE:
        # What is written in ASCII is no UTF-16. Which end comes first shows where the text begins with ASCII.
        codec = by_form or (UTF8 if beginning.lstrip()[:1] == b"<" else _wide(beginning, codec))
    return Encoding(codec, label)


def _wide_form(beginning: bytes) -> str:
    """UTF-16 shows without a byte order mark: a document begins with "<" and an ASCII character."""
    if beginning[:2] == b"<\0" and beginning[3:4] == b"\0":
        return "utf-16-le"
    if beginning[:2] == b"\0<" and beginning[2:3] == b"\0":
        return "utf-16-be"
    return ""


def _wide(beginning: bytes, codec: str) -> str:
    return "utf-16-be" if beginning[:1] == b"\0" else "utf-16-le" if beginning[1:2] == b"\0" else codec


_CHARSET: Final = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^;\s]*))", re.IGNORECASE)


def _http_charset(media_type: str) -> str:
    match = _CHARSET.search(media_type)
    return next((group.strip() for group in match.groups() if group), "") if match else ""


_DECLARATION: Final = re.compile(
    rb"\s*<\?xml\s[^>]*?encoding\s*=\s*(?:\"([^\">]{1,80})\"|'([^'>]{1,80})')", re.ASCII
)


def _declared(beginning: bytes) -> str:
    match = _DECLARATION.match(beginning)
    return (match[1] or match[2]).decode("latin-1").strip() if match else ""


# Bytes that are not what they should be

_HIGH: Final = bytes(range(0x80, 0x100))


def mended(body: bytes, encoding: Encoding) -> Decoded:
    """Read a document that should be UTF-8 and is not (docs/faults.md row 46a).

    Where more of its bytes are invalid than there are valid sequences, it is windows-1252 throughout. Else it
    is UTF-8; the few bytes that are not (texts that were cut off, or came from elsewhere) are windows-1252.
    """
    raw = body[encoding.mark_bytes :]
    valid = raw.decode(UTF8, "ignore")
    kept = valid.encode()
    sequences = len(valid) - len(kept.translate(None, _HIGH))
    if len(raw) - len(kept) > sequences:
        return Decoded(_single_bytes(raw, _WINDOWS_1252), encoding, FALLBACK_NAME)
    return Decoded(raw.decode(UTF8, _MEND).encode(), encoding, MIXED_NAME)


def _many_bytes(raw: bytes, encoding: Encoding) -> Decoded:
    """Read what should be in one of the encodings of East Asia, or in UTF-16."""
    codec = encoding.codec
    try:
        return Decoded(raw.decode(codec, _ROWS if codec == "euc_jp" else "strict").encode(), encoding)
    except UnicodeDecodeError:
        pass
    if codec in _WIDE:
        return Decoded(raw.decode(codec, "replace").encode(), encoding, codec)
    if is_utf8(raw):
        return Decoded(raw, encoding, UTF8)
    text = raw.decode(codec, "replace")
    replaced = text.count("\ufffd")
    if replaced > len(text) - len(text.encode().translate(None, _HIGH)) - replaced:
        return Decoded(_single_bytes(raw, _WINDOWS_1252), encoding, FALLBACK_NAME)
    return Decoded(text.encode(), encoding, codec)


def _single_bytes(raw: bytes, codec: str) -> bytes:
    if codec == _WINDOWS_1252:
        return codecs.charmap_decode(raw, "strict", _WINDOWS_1252_TABLE)[0].encode()
    return raw.decode(codec, "replace").encode()


_WINDOWS_1252: Final = "cp1252"
_WINDOWS_1252_TABLE: Final = "".join(
    bytes([byte]).decode(_WINDOWS_1252, "ignore") or chr(byte) for byte in range(0x100)
)
"""As the Encoding Standard has it: five bytes that Python's codec does not know are control characters."""
_WINDOWS_1252_BYTES: Final = codecs.charmap_build(_WINDOWS_1252_TABLE)
_MEND: Final = "wholefeed.windows-1252"


def _mend(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(_WINDOWS_1252_TABLE[byte] for byte in error.object[error.start : error.end]), error.end


_ROWS: Final = "wholefeed.euc-jp"


def _row(error: UnicodeError) -> tuple[str, int]:
    """Read the rows of EUC-JP that Python's codec lacks (circled digits, say) as Shift_JIS has them."""
    assert isinstance(error, UnicodeDecodeError)
    row, cell = (*error.object[error.start : error.start + 2], 0, 0)[:2]
    if min(row, cell) < 0xA1:  # noqa: PLR2004 - the least byte of a character of two
        raise error
    lead = ((row - 0xA1) >> 1) + 0x81
    trail = cell - 0x61 + (cell >= 0xE0) if row % 2 else cell - 2  # noqa: PLR2004 - 0x7F is left out
    pair = bytes([lead if lead <= 0x9F else lead + 0x40, trail])  # noqa: PLR2004 - so Shift_JIS is laid out
    return pair.decode("cp932"), error.start + 2


codecs.register_error(_MEND, _mend)
codecs.register_error(_ROWS, _row)


# Labels of encodings, and the codecs that read what bears them (WHATWG Encoding, 4.2). The labels are the
# standard's. Some that it does not know are read as well where Python has a codec for them; what is no
# encoding of documents (UTF-7, UTF-32, rot13) is refused.

_WIDE: Final = frozenset({"utf-16", "utf-16-le", "utf-16-be"})
_WIDER: Final = {
    "ascii": UTF8,
    "iso8859-1": _WINDOWS_1252,
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
_READ: Final = _MANY_BYTES | _SINGLE_BYTES | _WIDE | {UTF8}
_LABELS: Final = 256
"""That are looked up once; publishers write few different ones."""


@lru_cache(maxsize=_LABELS)
def codec_of(label: str) -> str:
    """Return the codec that reads what is labelled so; empty where a label is nobody's: the bytes may tell.

    One that names what is no text encoding for documents (UTF-7, rot13) is another matter: it is refused.

    Raises:
        ParseError: `unsupported-encoding`.
    """
    name = ""
    if _LABEL.fullmatch(label):
        standard = webencodings.lookup(label)
        if standard is not None and standard.name != _WITHOUT_ONE:
            name = standard.codec_info.name
        else:
            with suppress(LookupError):
                name = codecs.lookup(label).name
            if not name and standard is None:
                return ""
    name = _WIDER.get(name, name)
    if name not in _READ:
        raise _unsupported(label[:40])
    return name


_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}")
_WITHOUT_ONE: Final = "replacement"
"""What the standard calls encodings that browsers do not read, for what scripts could be hidden in them. Here
text comes out as UTF-8, so those are read that Python can read."""
_SHIFTED: Final = ("iso2022", "hz")
"""Encodings that write other characters than ASCII in its bytes."""


def _unsupported(label: str) -> ParseError:
    return ParseError(f"expected a known text encoding, got {label!r}", slug="unsupported-encoding")


def _user_defined(name: str) -> codecs.CodecInfo | None:
    """Find the one encoding of the standard that Python has no codec for."""
    found = webencodings.lookup("x-user-defined") if name == "x_user_defined" else None
    return found.codec_info if found is not None else None


codecs.register(_user_defined)
