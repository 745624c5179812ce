"""What encoding a document is in, and its text in UTF-8 (RFC 7303, section 3; XML 1.0, appendix F).

The bytes decide. Labels are, in this order, the byte order mark, the charset of the Content-Type and the XML
declaration. `_readings` lists what a document may be: the first encoding that its bytes fit is used for the
whole of it (docs/repair.md, "Encodings"; docs/faults.md row 46a).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final, NamedTuple

import webencodings

from wholefeed.core.parse.limits import ParseError
from wholefeed.core.parse.repair import late_declaration

UTF8: Final = "utf-8"
SNIFF_BYTES: Final = 1024
"""From so many bytes of a document's beginning its labels are known, if nothing stands before it."""
_PROLOG_BYTES: Final = 4096
"""Where something does, as many are looked at as by `late_declaration`."""
FALLBACK_NAME: Final = "windows-1252"
MIXED_NAME: Final = "utf-8 with windows-1252 in it"
CESU_NAME: Final = "cesu-8"


def to_utf8(body: bytes, media_type: str, *, label: str | None = None, is_validated: bool = True) -> Decoded:
    """Return the text of a document in UTF-8. A document in UTF-8 is not copied.

    Args:
        body: Without content coding.
        media_type: The whole Content-Type value; may be empty.
        label: The encoding that the document names for itself. None: its XML declaration does.
        is_validated: Whether a document that is labelled UTF-8, or not at all, has to be looked through too.

    Raises:
        ParseError: `unsupported-encoding`: UTF-32, or no UTF-8 and all labels are unknown.
    """
    encoding = encoding_of(body[:_PROLOG_BYTES], media_type, label)
    raw = body[encoding.mark_bytes :] if encoding.mark_bytes else body
    stated = encoding.stated
    if encoding.codec in _WIDE:
        text = raw.decode(encoding.codec, "replace").encode()
        return Decoded(text, encoding, encoding.codec if encoding.labels and stated not in _WIDE else "")
    if not is_validated and encoding.codec == stated == UTF8:
        return Decoded(raw, encoding)
    for codec, name, text_or_none in _readings(raw, encoding):
        if text_or_none is not None:
            is_as_stated = codec == stated or (
                text_or_none is raw and stated in _LIKE_ASCII and raw.isascii()
            )
            return Decoded(text_or_none, encoding, "" if is_as_stated else name)
    raise _unsupported_error(encoding.declared)


def html_to_utf8(page: bytes, media_type: str) -> bytes:
    """Return the text of an HTML page in UTF-8, whatever its bytes are; `<meta>` names its encoding."""
    meta = _META.search(page, 0, SNIFF_BYTES)
    try:
        return to_utf8(page, media_type, label=meta[1].decode("ascii") if meta else None).text
    except ParseError:
        return page.decode(UTF8, "replace").encode()


_META: Final = re.compile(rb"<meta\s[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


class Decoded(NamedTuple):
    """A document in UTF-8, without a byte order mark."""

    text: bytes
    encoding: Encoding
    used: str = ""
    """The name of the encoding that it was read in, where that is not the declared one."""


class Encoding(NamedTuple):
    """The encoding that a document's labels name."""

    codec: str
    """The codec of the first label that the document's form allows; UTF-8 if none is known."""
    declared: str
    """The first known label as the publisher wrote it, else an unknown one; empty without any."""
    mark_bytes: int = 0
    """Length of the byte order mark."""
    labels: tuple[tuple[str, str], ...] = ()
    """Codec and label of every known label, in their order."""

    @property
    def stated(self) -> str:
        """The codec of the first known label; UTF-8 without a label, empty if all are unknown."""
        if self.labels:
            return self.labels[0][0]
        return "" if self.declared else UTF8


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


# Labels


def encoding_of(beginning: bytes, media_type: str, label: str | None = None) -> Encoding:
    """Return the encoding that a document's labels name, from its first bytes.

    Args:
        beginning: At least `SNIFF_BYTES` of the document, if it has so many.
        media_type: As for `to_utf8`.
        label: As for `to_utf8`.

    Raises:
        ParseError: `unsupported-encoding`: UTF-32.
    """
    if beginning.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff", b"<\0\0\0", b"\0\0\0<")):
        raise _unsupported_error("UTF-32")
    marks = _MARKS.match(beginning)
    mark_bytes = 0 if marks is None else marks.end()
    rest = beginning[mark_bytes:]
    form = _wide_form(rest)
    written = [
        "" if marks is None else _MARKED[beginning[:2]],
        _http_charset(media_type),
        "" if form else _find_declared(rest) if label is None else label,
    ]
    written = [each for each in written if each]
    labels = tuple((codec, each) for each in written if (codec := _first_codec(each)))
    declared = labels[0][1] if labels else written[0] if written else ""
    codec = form or next(filter(None, (_usable(codec, rest) for codec, _ in labels)), UTF8)
    return Encoding(codec, declared, mark_bytes, labels)


_MARKS: Final = re.compile(rb"(?:\xef\xbb\xbf)++|(?:\xff\xfe)++|(?:\xfe\xff)++")
_MARKED: Final = {b"\xef\xbb": UTF8, b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Labels by the first two bytes of a byte order mark."""


def _wide_form(beginning: bytes) -> str:
    """Return which UTF-16 it is that begins with two characters of ASCII; empty if it begins otherwise."""
    return _WIDE_FORMS.get(bytes(byte != 0 for byte in beginning[:4]), "")


_WIDE_FORMS: Final = {b"\1\0\1\0": "utf-16-le", b"\0\1\0\1": "utf-16-be"}
"""By where the first bytes are zero."""


def _usable(codec: str, beginning: bytes) -> str:
    """Return the codec, or no name for UTF-16 before what is written in ASCII."""
    return "" if codec in _WIDE and beginning.lstrip()[:1] in (b"<", b"{") else codec


_CHARSET: Final = re.compile(r"[;,\s]charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^;\s]*))", re.IGNORECASE)


_MAX_LABEL_CHARACTERS: Final = 80


def _http_charset(media_type: str) -> str:
    match = _CHARSET.search(media_type)
    label = next(filter(None, match.groups()), "") if match else ""
    return label.strip()[:_MAX_LABEL_CHARACTERS]


_DECLARATION: Final = re.compile(
    rb"\s*<\?xml\s[^>]*?encoding\s*=\s*(?:\"([^\">]{1,80})\"|'([^'>]{1,80})'|([^\s\"'>?]{1,80}))", re.ASCII
)


def _find_declared(beginning: bytes) -> str:
    match = _DECLARATION.match(beginning, late_declaration(beginning))
    return next(filter(None, match.groups())).decode("latin-1").strip() if match else ""


def _first_codec(label: str) -> str:
    """Return the codec of the first name in a label that is known: some are lists, or have quotes in them."""
    return next(filter(None, map(codec_of, _NAMES.findall(label))), "")


_NAMES: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*+")


# What the bytes fit

_HIGH: Final = bytes(range(0x80, 0x100))
_FOLLOWING: Final = bytes(range(0x80, 0xC0))
_C1: Final = bytes(range(0x80, 0xA0))


def _readings(raw: bytes, encoding: Encoding) -> Iterator[tuple[str, str, bytes | None]]:
    """Yield codec and name of every encoding that a document may be in, with its text if the bytes fit.

    The first that fits counts. That a text of another encoding is UTF-8 from end to end does not happen by
    chance; the more a fit proves, the sooner it is tried.
    """
    labels = [(codec, label) for codec, label in encoding.labels if codec not in _WIDE and codec != UTF8]
    says_utf8 = encoding.stated == UTF8 or UTF8 in dict(encoding.labels)
    for codec, label in labels:
        if codec.startswith(_SHIFTED) and _SHIFTS.search(raw):
            yield codec, label, _exact(raw, codec)
    yield UTF8, UTF8, raw if is_utf8(raw) else None
    joined = _SURROGATES.sub(_join_surrogates, raw)
    yield "", CESU_NAME, joined if joined != raw and is_utf8(joined) else None
    yield "", MIXED_NAME, _decode_mixed(joined, _CLEARLY)
    for codec, label in labels:
        if codec in _MANY_BYTES:
            yield codec, label, _exact(raw, codec)
    if says_utf8:
        yield "", MIXED_NAME, _decode_mixed(joined, 1)
    labels.sort(key=lambda each: each[0] == _WINDOWS_1252)  # what fits nearly all bytes proves nothing
    for codec, label in labels:
        if codec in _SINGLE_BYTES:
            yield codec, label, _exact(raw, codec)
    for codec, label in labels:
        yield codec, label, _nearly(raw, codec)
    if encoding.stated:
        yield "", FALLBACK_NAME, _nearly(raw, _WINDOWS_1252)


_CLEARLY: Final = 4
"""Sequences of UTF-8 for each place that is none, where a document is UTF-8 whatever its labels say."""


def _exact(raw: bytes, codec: str) -> bytes | None:
    """Return the text if the encoding has a character for every byte; ISO 8859 has none for C1 controls."""
    if codec.startswith("iso8859") and len(raw.translate(None, _C1)) != len(raw):
        return None
    try:
        return raw.decode(codec, _ROWS if codec == "euc_jp" else "strict").encode()
    except UnicodeDecodeError:
        return None


def _nearly(raw: bytes, codec: str) -> bytes | None:
    """Return the text if the encoding has characters for most of what is not ASCII."""
    if codec == _WINDOWS_1252:
        return codecs.charmap_decode(raw, "strict", _WINDOWS_1252_TABLE)[0].encode()
    text = raw.decode(codec, "replace")
    replaced = text.count("\ufffd")
    encoded = text.encode()
    others = len(text) - len(encoded.translate(None, _HIGH)) - replaced
    return encoded if replaced <= others else None


def _decode_mixed(raw: bytes, factor: int) -> bytes | None:
    """Return the text if it is mostly UTF-8; other bytes (texts that were cut off) are read as windows-1252.

    Args:
        raw: The document.
        factor: How many sequences of UTF-8 there must be for each place that is none. One that was cut off is
            one such place: its bytes speak for UTF-8 as well.
    """
    ascii_bytes = len(raw.translate(None, _HIGH))
    following = len(raw) - len(raw.translate(None, _FOLLOWING))
    if factor * (len(raw) - ascii_bytes - 2 * following) > following:
        return None  # too few bytes that can follow the first of a sequence: told ten times as fast
    text = raw.decode(UTF8, "replace")
    broken = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
    sequences = len(text) - ascii_bytes - broken
    return raw.decode(UTF8, _MEND).encode() if factor * broken <= sequences else None


_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf](?:\xed[\xa0-\xbf][\x80-\xbf])*+")


def _join_surrogates(match: re.Match[bytes]) -> bytes:
    """Return the characters that pairs of surrogates in CESU-8 stand for, and U+FFFD for single ones."""
    halves = match[0].decode(UTF8, "surrogatepass")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


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
    if not _ROW_AND_CELL.match(error.object, error.start):
        raise error
    return _character_of(error.object[error.start : error.start + 2]), error.start + 2


_ROW_AND_CELL: Final = re.compile(rb"[\xa1-\xfe]{2}")


@cache  # at most 94 rows of 94 cells
def _character_of(row_and_cell: bytes) -> str:
    row, cell = row_and_cell
    lead = ((row - 0xA1) >> 1) + 0x81
    trail = cell - 0x61 + (cell >= 0xE0) if row % 2 else cell - 2  # noqa: PLR2004 - 0x7F is left out
    pair = bytes([lead if lead <= 0x9F else lead + 0x40, trail])  # noqa: PLR2004 - so Shift_JIS is laid out
    return pair.decode("cp932")


codecs.register_error(_MEND, _mend)
codecs.register_error(_ROWS, _row)


# Names of encodings, and the codecs that read them (WHATWG Encoding, 4.2). The names are the standard's. Some
# that it does not know are read as well where Python has a codec for them; a name of no encoding of documents
# (UTF-7, UTF-32, rot13) is none.

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
    """Return the codec that reads documents with this label; empty where it names no such encoding."""
    name = ""
    if _LABEL.fullmatch(label):
        standard = webencodings.lookup(label)
        if standard is not None and standard.name != _WITHOUT_ONE:
            name = standard.codec_info.name
        else:
            with suppress(LookupError):
                name = codecs.lookup(label).name
    name = _WIDER.get(name, name)
    return name if name in _READ else ""


_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,39}")
_WITHOUT_ONE: Final = "replacement"
"""What the standard calls encodings that browsers do not read, for what scripts could be hidden in them. Here
text comes out as UTF-8, so those are read that Python can read."""
_SHIFTED: Final = ("iso2022", "hz")
"""Encodings that write other characters than ASCII in its bytes."""
_SHIFTS: Final = re.compile(rb"[\x0e\x1b]|~\{")
"""What such characters begin with."""
_LIKE_ASCII: Final = _READ - _WIDE
"""Encodings that write all other texts in ASCII as ASCII does."""


def _unsupported_error(label: str) -> ParseError:
    return ParseError(f"expected a known text encoding, got {label!r}", slug="unsupported-encoding")


def _user_defined(name: str) -> codecs.CodecInfo | None:
    """Find the one encoding of the standard that Python has no codec for."""
    found = webencodings.lookup("x-user-defined") if name == "x_user_defined" else None
    return found.codec_info if found is not None else None


codecs.register(_user_defined)
