"""Find a document's encoding, and convert its text to UTF-8 (RFC 7303, section 3; XML 1.0, appendix F).

The bytes decide: the first encoding of `_readings` that fits serves for the whole document (docs/repair.md,
"Encodings"; docs/faults.md row 46a).
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
"""Enough of a document to contain all labels, if nothing stands before it."""
# As many as `late_declaration` searches, for documents with text before them.
_PROLOG_BYTES: Final = 4096
FALLBACK_NAME: Final = "windows-1252"
MIXED_NAME: Final = "utf-8 with windows-1252 in it"
CESU_NAME: Final = "cesu-8"


def to_utf8(body: bytes, media_type: str, *, label: str | None = None, is_validated: bool = True) -> Decoded:
    """Return a document (without content coding) in UTF-8; text in UTF-8 is not copied.

    `media_type` is the whole Content-Type value; `label` replaces that of the XML declaration.
    Without `is_validated`, text labelled UTF-8, or not labelled, is not checked.

    Raises:
        ParseError: `unsupported-encoding`: UTF-32, or not UTF-8 and all labels unknown.
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
    """Return an HTML page in UTF-8, with broken bytes replaced; `<meta>` names its encoding."""
    meta = _META.search(page, 0, SNIFF_BYTES)
    try:
        return to_utf8(page, media_type, label=meta[1].decode("ascii") if meta else None).text
    except ParseError:
        return page.decode(UTF8, "replace").encode()


_META: Final = re.compile(rb"<meta\s[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([\w.:-]{1,40})", re.IGNORECASE)


class Decoded(NamedTuple):
    text: bytes
    encoding: Encoding
    used: str = ""
    """The encoding that fits; empty if it is the declared one."""


class Encoding(NamedTuple):
    codec: str
    """Codec of the first label that the document's form allows; UTF-8 without one."""
    declared: str
    """The first known label as written, else an unknown one, else empty."""
    mark_bytes: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    """Codec and label of every known label, in order."""

    @property
    def stated(self) -> str:
        """Codec of the first known label; UTF-8 without labels, empty if all are unknown."""
        if self.labels:
            return self.labels[0][0]
        return "" if self.declared else UTF8


def is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    # Decoding in steps saves a copy of the text.
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
    """Return a text in another encoding; characters missing there become references (XML 1.0, 4.1)."""
    if codec == UTF8:
        return text
    decoded = text.decode(UTF8)
    if codec == _WINDOWS_1252:
        return codecs.charmap_encode(decoded, "xmlcharrefreplace", _WINDOWS_1252_BYTES)[0]
    return decoded.encode(codec, "xmlcharrefreplace")


# Labels


def encoding_of(beginning: bytes, media_type: str, label: str | None = None) -> Encoding:
    """Return the encoding that a document's labels name; arguments as in `to_utf8`.

    `beginning` has `SNIFF_BYTES` or more, if the document does.

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
        # Byte order mark, Content-Type, XML declaration: the first known label counts.
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
# Labels by the first two bytes of a byte order mark.
_MARKED: Final = {b"\xef\xbb": UTF8, b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def _wide_form(beginning: bytes) -> str:
    # Two characters of ASCII at the beginning show UTF-16.
    return _WIDE_FORMS.get(bytes(byte != 0 for byte in beginning[:4]), "")


# Keys: which of the first four bytes are not zero.
_WIDE_FORMS: Final = {b"\1\0\1\0": "utf-16-le", b"\0\1\0\1": "utf-16-be"}


def _usable(codec: str, beginning: bytes) -> str:
    # Text in ASCII is not UTF-16, in spite of its label.
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
    # Some labels are lists, or contain quotes.
    return next(filter(None, map(codec_of, _NAMES.findall(label))), "")


_NAMES: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*+")


# Which encodings the bytes fit

_HIGH: Final = bytes(range(0x80, 0x100))
_FOLLOWING: Final = bytes(range(0x80, 0xC0))
_C1: Final = bytes(range(0x80, 0xA0))


def _readings(raw: bytes, encoding: Encoding) -> Iterator[tuple[str, str, bytes | None]]:
    """Yield codec, name and text of each possible encoding; the text is None if the bytes do not fit."""
    # The first fit counts. Text of another encoding is never UTF-8 throughout by chance. The more a fit
    # proves, the sooner it is tried.
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
    labels.sort(key=lambda each: each[0] == _WINDOWS_1252)  # windows-1252 fits nearly all bytes
    for codec, label in labels:
        if codec in _SINGLE_BYTES:
            yield codec, label, _exact(raw, codec)
    for codec, label in labels:
        yield codec, label, _nearly(raw, codec)
    if encoding.stated:
        yield "", FALLBACK_NAME, _nearly(raw, _WINDOWS_1252)


# So many sequences of UTF-8 per broken one outweigh any label.
_CLEARLY: Final = 4


def _exact(raw: bytes, codec: str) -> bytes | None:
    """Return the text, or None if a byte has no character; ISO 8859 has none for C1 controls."""
    if codec.startswith("iso8859") and len(raw.translate(None, _C1)) != len(raw):
        return None
    try:
        return raw.decode(codec, _ROWS if codec == "euc_jp" else "strict").encode()
    except UnicodeDecodeError:
        return None


def _nearly(raw: bytes, codec: str) -> bytes | None:
    """Return the text, or None if less than half of the non-ASCII characters can be read."""
    if codec == _WINDOWS_1252:
        return codecs.charmap_decode(raw, "strict", _WINDOWS_1252_TABLE)[0].encode()
    text = raw.decode(codec, "replace")
    replaced = text.count("\ufffd")
    encoded = text.encode()
    others = len(text) - len(encoded.translate(None, _HIGH)) - replaced
    return encoded if replaced <= others else None


def _decode_mixed(raw: bytes, factor: int) -> bytes | None:
    """Return the text if UTF-8 prevails; other bytes (of truncated texts) are read as windows-1252.

    It prevails if `factor` times the broken sequences are not more than the intact ones.
    """
    ascii_bytes = len(raw.translate(None, _HIGH))
    following = len(raw) - len(raw.translate(None, _FOLLOWING))
    # Ten times as fast as decoding: too few bytes can follow the first of a sequence.
    if factor * (len(raw) - ascii_bytes - 2 * following) > following:
        return None
    text = raw.decode(UTF8, "replace")
    # A truncated sequence is one broken place: its bytes speak for UTF-8 as well.
    broken = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
    sequences = len(text) - ascii_bytes - broken
    return raw.decode(UTF8, _MEND).encode() if factor * broken <= sequences else None


_SURROGATES: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf](?:\xed[\xa0-\xbf][\x80-\xbf])*+")


def _join_surrogates(match: re.Match[bytes]) -> bytes:
    # A single surrogate becomes U+FFFD.
    halves = match[0].decode(UTF8, "surrogatepass")
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_WINDOWS_1252: Final = "cp1252"
# The Encoding Standard's table: five bytes, unknown to Python's codec, are control characters.
_WINDOWS_1252_TABLE: Final = "".join(
    bytes([byte]).decode(_WINDOWS_1252, "ignore") or chr(byte) for byte in range(0x100)
)
_WINDOWS_1252_BYTES: Final = codecs.charmap_build(_WINDOWS_1252_TABLE)
_MEND: Final = "wholefeed.windows-1252"


def _mend(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "".join(_WINDOWS_1252_TABLE[byte] for byte in error.object[error.start : error.end]), error.end


_ROWS: Final = "wholefeed.euc-jp"


def _row(error: UnicodeError) -> tuple[str, int]:
    # Rows that Python's codec lacks (such as circled digits) are read as Shift_JIS has them.
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


# Names of encodings, as in the standard (WHATWG Encoding, 4.2), and the codecs that read them. Python's
# codecs read some further ones. Names that no document may use (UTF-7, UTF-32, rot13) are unknown.

_WIDE: Final = frozenset({"utf-16", "utf-16-le", "utf-16-be"})
# The encodings that documents with these labels really use, by Python's names, as in the standard.
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
# Labels in the cache; publishers use few different ones.
_LABELS: Final = 256


@lru_cache(maxsize=_LABELS)
def codec_of(label: str) -> str:
    """Return the codec for documents with this label; empty if it names none."""
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
# The standard's name for encodings that browsers refuse, since scripts can hide in them. Text here becomes
# UTF-8, so encodings that Python can read are accepted.
_WITHOUT_ONE: Final = "replacement"
# Encodings that write other characters in bytes of ASCII.
_SHIFTED: Final = ("iso2022", "hz")
# The beginnings of such characters.
_SHIFTS: Final = re.compile(rb"[\x0e\x1b]|~\{")
# Encodings that write other texts in ASCII as ASCII does.
_LIKE_ASCII: Final = _READ - _WIDE


def _unsupported_error(label: str) -> ParseError:
    return ParseError(f"expected a known text encoding, got {label!r}", slug="unsupported-encoding")


def _user_defined(name: str) -> codecs.CodecInfo | None:
    # The one encoding of the standard that Python lacks.
    found = webencodings.lookup("x-user-defined") if name == "x_user_defined" else None
    return found.codec_info if found is not None else None


codecs.register(_user_defined)
