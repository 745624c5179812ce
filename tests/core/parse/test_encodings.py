from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from tests.core.parse.makers import URL, atom
from wholefeed.core.notes import EncodingRetried
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.encodings import MIXED_NAME, codec_of, is_utf8, to_utf8
from wholefeed.core.parse.limits import ParseError

TITLE = "Ünïcode — naïve café"


def a_document(title: str = TITLE, declared: str = "") -> str:
    prolog = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""
    return atom(f"<title>{title}</title><entry><id>{title}</id></entry>", prolog=prolog).decode()


def title_of(body: bytes, media_type: str = "") -> str:
    document = parse(body, URL, media_type)
    entry = document.entries[0]
    assert document.text[entry.start : entry.end].decode() == f"<entry><id>{document.head.title}</id></entry>"
    return document.head.title


@pytest.mark.parametrize(
    ("declared", "codec"),
    [
        ("", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("UTF-16", "utf-16"),
        ("UTF-16", "utf-16-le"),
        ("UTF-16", "utf-16-be"),
        ("", "utf-16-le"),
        ("", "utf-16-be"),
        ("windows-1252", "cp1252"),
        ("iso-8859-1", "cp1252"),
        ("ISO-8859-15", "cp1252"),
        ("us-ascii", "utf-8"),
    ],
)
def test_a_western_document_is_read_right(declared: str, codec: str) -> None:
    """docs/faults.md row 46; XML 1.0, appendix F: the byte order mark or the declaration says it."""
    title = "naïve café" if declared == "ISO-8859-15" else TITLE
    document = a_document(title, declared)
    if codec == "utf-8-sig":
        assert parse(document.encode(codec), URL).text == document.encode()
    assert title_of(document.encode(codec)) == title


def test_the_byte_order_mark_goes_before_the_http_charset() -> None:
    """docs/faults.md row 48; RFC 7303, 3."""
    body = codecs.BOM_UTF8 + a_document(declared="iso-8859-1").encode()

    assert title_of(body, "application/xml; charset=windows-1252") == TITLE


@pytest.mark.parametrize(
    "media_type", ["text/xml; charset=utf-8", 'text/xml; a=b; Charset="UTF-8"', "x;charset='utf-8'"]
)
def test_the_http_charset_goes_before_the_declaration(media_type: str) -> None:
    """docs/faults.md row 48; RFC 7303, 3."""
    assert title_of(a_document(declared="iso-8859-1").encode(), media_type) == TITLE


@pytest.mark.parametrize(
    "media_type", ["text/xml", "text/xml; charset=", "text/xml; version=charset", "text/xml; charset=x-fake"]
)
def test_without_an_http_charset_the_declaration_counts(media_type: str) -> None:
    """RFC 7303, 3.1: text/xml no longer means US-ASCII."""
    assert title_of(a_document(declared="windows-1252").encode("cp1252"), media_type) == TITLE


@pytest.mark.parametrize("declared", ["", "utf-8"])
def test_windows_1252_under_a_utf_8_label_is_read_and_noted(declared: str) -> None:
    """docs/faults.md row 46: the retry is noted."""
    document = parse(a_document(declared=declared).encode("cp1252"), URL)

    assert document.head.title == TITLE
    assert document.notes == (EncodingRetried(URL, declared=declared or "nothing", used="windows-1252"),)


@pytest.mark.fault("46")
def test_every_label_of_the_encoding_standard_is_read() -> None:
    """Encoding Standard, 4.2; docs/faults.md row 46: all but three that Python cannot read."""
    for label in LABELS.keys() - {"iso-2022-cn", "iso-2022-cn-ext", "replacement"}:
        codec = codec_of(label)
        high = bytes(range(0xA1, 0xF0)).decode(codec, "ignore")
        is_single_byte = len("é日".encode(codec, "replace")) == len("é日")
        title = high if is_single_byte else "日本" * (codec != "iso2022_kr")
        title = title.replace("\x85", "").replace("&", "") or "x"
        body = a_document(title, label).encode(codec, "ignore" if codec == "mac-roman" else "strict")
        media_type = "" if "<".encode(codec) == b"<" else f"text/xml;charset={label}"
        assert title_of(body, media_type) == title.strip("\xa0 "), label


def test_bytes_that_an_encoding_lacks_do_not_change_what_it_is() -> None:
    """docs/faults.md row 46a: one odd byte makes no other encoding of a document."""
    korean = parse(a_document("東京 " * 20 + "X", "euc-kr").encode("cp949").replace(b"X", b"\xff"), URL)
    western = parse(a_document("caf\xe9 X", "iso-8859-1").encode("cp1252").replace(b"X", b"\x81"), URL)

    assert korean.head.title == "東京 " * 20 + "\ufffd"
    assert (western.head.title, western.notes) == ("café \x81", ())


def test_rows_of_euc_jp_that_python_does_not_know_are_read() -> None:
    """docs/faults.md row 46: the standard's EUC-JP has the characters of NEC and IBM."""
    body = a_document("X東京Y", "euc-jp").encode("euc_jp")

    assert title_of(body.replace(b"X", b"\xad\xa1").replace(b"Y", b"\xad\xf0")) == "①東京≒"
    assert title_of(body.replace(b"X", b"\xf9\xa1").replace(b"Y", b"")) == "纊東京"


@pytest.mark.parametrize("where", ["declaration", "Content-Type"])
@pytest.mark.fault("46a")
@pytest.mark.parametrize(
    "declared", ["iso-8859-1", "windows-1251", "us-ascii", "x-user-defined", "euc-jp", "utf-16", "x-fake"]
)
def test_utf_8_under_the_label_of_single_bytes_is_utf_8_and_noted(declared: str, where: str) -> None:
    """docs/faults.md row 46a: what is valid from end to end is so by no chance, whatever the label."""
    is_declared = where == "declaration"
    body = a_document(declared=declared if is_declared else "").encode()
    document = parse(body, URL, "" if is_declared else f"text/xml; charset={declared}")

    assert document.head.title == TITLE
    assert document.notes == (EncodingRetried(URL, declared=declared, used="utf-8"),)


@pytest.mark.fault("46a")
def test_one_decision_is_made_for_the_whole_document() -> None:
    """docs/faults.md row 46a: what looks like UTF-8 by chance does not, between more that is none."""
    western = parse(a_document("naïve “café” Ã© Â»").encode("cp1252"), URL)
    mixed = parse(a_document("é " * 9 + "X").encode().replace(b"X", b"\x93\xe9\x94"), URL)

    assert western.head.title == "naïve “café” Ã© Â»"
    assert western.notes == (EncodingRetried(URL, declared="nothing", used="windows-1252"),)
    assert mixed.head.title == "é " * 9 + "“é”"
    assert [note.facts["used"] for note in mixed.notes if note.kind is EncodingRetried] == [MIXED_NAME]


@pytest.mark.parametrize(
    "label",
    [
        *("utf-7", "rot13", "hex", "idna", "unicode_escape", "utf-32", "a\0b", "é"),
        *("iso-2022-cn", "iso-2022-cn-ext", "replacement"),
    ],
)
def test_what_is_no_text_encoding_is_refused(label: str) -> None:
    """docs/faults.md row 47: 422, never 500."""
    for body, media_type in (
        (a_document(declared=label).encode(), ""),
        (a_document().encode(), f"text/xml; charset={label}"),
    ):
        with pytest.raises(ParseError) as caught:
            parse(body, URL, media_type)
        assert caught.value.slug in ("unsupported-encoding", "malformed-xml")
        if label.isascii() and label.isprintable():
            assert caught.value.slug == "unsupported-encoding"


def test_what_no_label_or_utf_32_makes_text_of_is_refused() -> None:
    """docs/faults.md row 47: nothing says what it is."""
    for body, label in (
        (a_document(declared="x-fake").encode("cp1252"), "x-fake"),
        *((a_document().encode(codec), "UTF-32") for codec in ("utf-32", "utf-32-le", "utf-32-be")),
    ):
        with pytest.raises(ParseError, match=label) as caught:
            parse(body, URL)
        assert caught.value.slug == "unsupported-encoding"


def test_a_utf_8_document_is_not_copied() -> None:
    """A document that is UTF-8 already is used as it is: a feed of 25 MB does not take twice its memory."""
    body = a_document().encode()

    assert to_utf8(body, "").text is body
    assert parse(body, URL).text is body


@given(st.binary(max_size=400) | st.text().map(str.encode))
@example(b"x" * ((1 << 18) - 1) + "é".encode())
@example(b"x" * (1 << 18) + b"\xc3")
def test_utf_8_is_told_as_the_standard_library_does(text: bytes) -> None:
    """The quick test for UTF-8 agrees with Python's decoder on any bytes, so no text is garbled."""
    try:
        text.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert is_utf8(text) is expected
