from __future__ import annotations

import codecs
import contextlib

import pytest
from hypothesis import given
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


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("gb2312", "你好世界"),
        ("GBK", "你好世界"),
        ("big5", "你好世界"),
        ("shift_jis", "こんにちは①"),
        ("x-sjis", "こんにちは"),
        ("euc-jp", "こんにちは"),
        ("iso-2022-jp", "こんにちは"),
        ("euc-kr", "안녕하세요"),
        ("koi8-r", "Привет"),
        ("windows-1251", "Привет"),
        ("iso-8859-2", "Zażółć gęślą"),
        ("tis-620", "สวัสดี"),
    ],
)
def test_other_scripts_are_read_right(label: str, title: str) -> None:
    """docs/faults.md row 46."""
    codec = {"x-sjis": "cp932", "shift_jis": "cp932"}.get(label, label)
    assert title_of(a_document(title, label).encode(codec)) == title


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


@pytest.mark.parametrize("media_type", ["text/xml", "text/xml; charset=", "text/xml; version=charset", ";;;"])
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
@pytest.mark.parametrize("label", sorted(LABELS))
def test_every_label_of_the_encoding_standard_is_read(label: str) -> None:
    """Encoding Standard, 4.2; docs/faults.md row 46: all but three that Python cannot read."""
    if label in ("iso-2022-cn", "iso-2022-cn-ext", "replacement"):
        with pytest.raises(ParseError, match=label) as caught:
            parse(a_document("x", label).encode(), URL)
        assert caught.value.slug == "unsupported-encoding"
        return
    codec = codec_of(label)
    high = bytes(range(0xA1, 0xF0)).decode(codec, "ignore")
    is_single_byte = len("é日".encode(codec, "replace")) == len("é日")
    title = high if is_single_byte else "日本" * (codec != "iso2022_kr")
    title = title.replace("\x85", "").replace("&", "") or "x"
    body = a_document(title, label).encode(codec, "ignore" if codec == "mac-roman" else "strict")
    media_type = "" if "<".encode(codec) == b"<" else f"text/xml;charset={label}"
    assert title_of(body, media_type) == title.strip("\xa0 ")


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


@pytest.mark.fault("46a")
@pytest.mark.parametrize(
    "declared", ["iso-8859-1", "windows-1251", "macintosh", "us-ascii", "x-user-defined"]
)
def test_utf_8_under_the_label_of_single_bytes_is_utf_8_and_noted(declared: str) -> None:
    """docs/faults.md row 46a: what is valid from end to end is so by no chance."""
    document = parse(a_document(declared=declared).encode(), URL)

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


def test_one_text_cut_off_in_a_character_does_not_garble_the_others() -> None:
    """docs/faults.md row 46: most of the document is UTF-8 and stays so."""
    body = a_document().encode().replace(b"<title>", b"<title>caf\xc3 ")

    document = parse(body, URL)

    assert document.head.title == "caf\u00c3 " + TITLE
    assert len(document.notes) == 1


def test_a_document_full_of_invalid_bytes_is_windows_1252_throughout() -> None:
    """What looks like UTF-8 by chance in it is none."""
    body = a_document("é " * 3000 + "Ã©").encode("cp1252")

    assert ("é " * 3000 + "Ã©").encode() in parse(body, URL).text


def test_utf_16_that_its_declaration_claims_falsely_is_utf_8_and_noted() -> None:
    """A declaration that can be read as ASCII is not in UTF-16."""
    document = parse(a_document(declared="utf-16").encode(), URL)

    assert document.head.title == TITLE
    assert [note.code for note in document.notes] == ["EncodingRetried"]


def test_utf_8_under_the_label_of_another_encoding_is_noticed_where_that_one_fails() -> None:
    """Row 46: UTF-8 labelled euc-jp comes out readable, and the note EncodingRetried says so."""
    document = parse(a_document("日本語 é", declared="euc-jp").encode(), URL)

    assert document.head.title == "日本語 é"
    assert document.notes == (EncodingRetried(URL, declared="euc-jp", used="utf-8"),)


@pytest.mark.parametrize(
    "label",
    ["utf-7", "rot13", "zlib", "hex", "idna", "punycode", "unicode_escape", "utf-32", "a\0b", "é"],
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


@pytest.mark.parametrize("where", ["declaration", "Content-Type"])
def test_under_a_label_that_is_nobody_s_what_is_utf_8_is_read_and_noted(where: str) -> None:
    """docs/design.md#parsing: a wrong encoding label is common."""
    is_declared = where == "declaration"
    body = a_document(declared="x-fake" if is_declared else "").encode()
    document = parse(body, URL, "" if is_declared else "text/xml; charset=x-fake")

    assert document.head.title == TITLE
    assert document.notes == (EncodingRetried(URL, declared="x-fake", used="utf-8"),)


def test_under_a_charset_that_is_nobody_s_the_declaration_counts() -> None:
    """docs/faults.md row 48."""
    body = a_document(declared="windows-1252").encode("cp1252")

    assert title_of(body, "text/xml; charset=x-fake") == TITLE


def test_under_a_label_that_is_nobody_s_what_is_not_utf_8_is_refused() -> None:
    """docs/faults.md row 47: nothing says what it is."""
    with pytest.raises(ParseError, match="x-fake") as caught:
        parse(a_document(declared="x-fake").encode("cp1252"), URL)
    assert caught.value.slug == "unsupported-encoding"


@pytest.mark.parametrize("codec", ["utf-32", "utf-32-le", "utf-32-be"])
def test_utf_32_is_refused(codec: str) -> None:
    """docs/faults.md row 47."""
    with pytest.raises(ParseError, match="UTF-32") as caught:
        parse(a_document().encode(codec), URL)
    assert caught.value.slug == "unsupported-encoding"


def test_a_utf_8_document_is_not_copied() -> None:
    """A document that is UTF-8 already is used as it is: a feed of 25 MB does not take twice its memory."""
    body = a_document().encode()

    assert to_utf8(body, "").text is body
    assert parse(body, URL).text is body


@given(st.binary(max_size=400) | st.text().map(str.encode))
def test_utf_8_is_told_as_the_standard_library_does(text: bytes) -> None:
    """The quick test for UTF-8 agrees with Python's decoder on any bytes, so no text is garbled."""
    try:
        text.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert is_utf8(text) is expected


def test_a_character_across_two_steps_is_utf_8() -> None:
    """A character that lies across two blocks of the test counts as whole; a cut one at the end does not."""
    assert is_utf8(b"x" * ((1 << 18) - 1) + "é".encode())
    assert not is_utf8(b"x" * (1 << 18) + b"\xc3")


@given(st.binary(max_size=300), st.text(max_size=40))
def test_no_bytes_and_no_content_type_raise_anything_else(body: bytes, media_type: str) -> None:
    """docs/design.md#parsing."""
    for candidate in (body, b"<?xml version='1.0' encoding='" + body + b"'?><rss/>"):
        with contextlib.suppress(ParseError):
            parse(candidate, URL, f"text/xml; charset={media_type}")
