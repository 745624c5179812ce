from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from webencodings.labels import LABELS

from tests.core.parse.makers import URL, atom
from wholefeed.core.notes import EncodingRetried
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.encodings import CESU_NAME, MIXED_NAME, codec_of, html_to_utf8, is_utf8, to_utf8
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
    """docs/faults.md row 46; XML 1.0, appendix F: by byte order mark or declaration."""
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
    """docs/faults.md row 46: a note names the retry."""
    document = parse(a_document(declared=declared).encode("cp1252"), URL)

    assert document.head.title == TITLE
    assert document.notes == (EncodingRetried(URL, declared=declared or "nothing", used="windows-1252"),)


@pytest.mark.fault("46")
def test_every_label_of_the_encoding_standard_is_read() -> None:
    """Encoding Standard, 4.2; docs/faults.md row 46: except three that Python lacks."""
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
    """docs/faults.md row 46a: one odd byte does not change a document's encoding."""
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
    """docs/faults.md row 46a: no text is UTF-8 throughout by chance, under any label."""
    is_declared = where == "declaration"
    body = a_document(declared=declared if is_declared else "").encode()
    document = parse(body, URL, "" if is_declared else f"text/xml; charset={declared}")

    assert document.head.title == TITLE
    assert document.notes == (EncodingRetried(URL, declared=declared, used="utf-8"),)


@pytest.mark.fault("46a")
def test_one_decision_is_made_for_the_whole_document() -> None:
    """docs/faults.md row 46a: accidental UTF-8 among other bytes does not count."""
    western = parse(a_document("naïve “café” Ã© Â»").encode("cp1252"), URL)
    mixed = parse(a_document("é " * 9 + "X").encode().replace(b"X", b"\x93\xe9\x94"), URL)

    assert western.head.title == "naïve “café” Ã© Â»"
    assert western.notes == (EncodingRetried(URL, declared="nothing", used="windows-1252"),)
    assert mixed.head.title == "é " * 9 + "“é”"
    assert [note.facts["used"] for note in mixed.notes if note.kind is EncodingRetried] == [MIXED_NAME]


@pytest.mark.fault("46")
@pytest.mark.parametrize(
    "label",
    [
        *(
            "utf-7",
            "rot13",
            "hex",
            "idna",
            "unicode_escape",
            "utf-32",
            "cp037",
            "x-fake",
            "a\0b",
            "é",
            "UTF 8",
        ),
        *("iso-2022-cn", "iso-2022-cn-ext", "replacement", "utf-8;", "utf-8,", "ISO-8859-1,utf-8"),
        *("charset=utf-8", "“utf-8”", "utf-8 utf-8", ";", "undefined", "../utf-8"),
    ],
)
def test_a_label_that_makes_no_sense_is_passed_over_where_the_bytes_are_utf_8(label: str) -> None:
    """docs/faults.md row 46: in HTTP, bare and in quotes, and in the declaration."""
    assert title_of(a_document(declared="utf-8").encode(), f'text/xml; charset="{label}"') == TITLE
    assert title_of(a_document(declared="utf-8").encode(), f"text/xml;charset={label}") == TITLE
    assert title_of(a_document().encode(), f"text/xml; charset={label}") == TITLE
    if "\0" not in label:
        document = parse(a_document(declared=label).encode(), URL)
        assert document.head.title == TITLE
        assert bool(codec_of(label)) or "utf" in label.lower() or document.notes


@pytest.mark.parametrize("label", ['"windows-1251', "'windows-1251;'", "windows-1251,utf-8", "x-fake"])
def test_behind_a_label_that_makes_no_sense_the_next_one_counts(label: str) -> None:
    """docs/faults.md row 46: the label's first known name, else the declaration."""
    body = a_document(RUSSIAN, "windows-1251").encode("cp1251")
    assert title_of(body, f"text/xml; charset={label}") == RUSSIAN


def test_what_no_label_or_utf_32_makes_text_of_is_refused() -> None:
    """docs/faults.md row 47: its encoding cannot be known."""
    for body, label in (
        (a_document(declared="x-fake").encode("cp1252"), "x-fake"),
        (a_document(declared="utf-7").encode("cp1252"), "utf-7"),
        *((a_document().encode(codec), "UTF-32") for codec in ("utf-32", "utf-32-le", "utf-32-be")),
    ):
        with pytest.raises(ParseError, match=label) as caught:
            parse(body, URL)
        assert caught.value.slug == "unsupported-encoding"


RUSSIAN = "Канал реки поднялся"
LABELLED = {
    "windows-1251": ("cp1251", RUSSIAN),
    "koi8-r": ("koi8-r", RUSSIAN),
    "iso-8859-5": ("iso8859-5", RUSSIAN),
    "ibm866": ("cp866", RUSSIAN),
    "iso-8859-2": ("iso8859-2", "Żółw nad Łódką"),
    "windows-1250": ("cp1250", "Žluťoučký kůň „š“"),
    "iso-8859-7": ("iso8859-7", "Το ποτάμι"),  # noqa: RUF001
    "windows-1255": ("cp1255", "הנהר עלה"),
    "windows-1256": ("cp1256", "ارتفع النهر"),
    "windows-1254": ("cp1254", "Nehir yükseldi ğış"),
    "tis-620": ("cp874", "แม่น้ำขึ้น"),
    "shift_jis": ("cp932", "川の水位が上がった"),
    "euc-jp": ("euc_jp", "川の水位が上がった"),
    "iso-2022-jp": ("iso2022_jp", "川の水位が上がった"),
    "gbk": ("gbk", "河水上涨了"),
    "gb2312": ("gb2312", "你好"),
    "big5": ("big5", "河水上漲了"),
    "euc-kr": ("cp949", "강물이 불었다"),
}


@pytest.mark.fault("46a")
@pytest.mark.parametrize("before", ["", "\n \n", "<br>Warning<br>\n"], ids=["", "blanks", "markup"])
@pytest.mark.parametrize("http", ["utf-8", "utf-8,", "iso-8859-1", "utf-16", "hex"])
@pytest.mark.parametrize("label", LABELLED)
def test_what_http_calls_otherwise_is_read_as_the_declaration_says(
    label: str, http: str, before: str
) -> None:
    """docs/faults.md row 46a: a server's default is contradicted, or proves nothing."""
    codec, title = LABELLED[label]
    document = parse((before + a_document(title, label)).encode(codec), URL, f"text/xml; charset={http}")

    assert document.head.title == title
    notes = [note for note in document.notes if note.kind is EncodingRetried]
    expected = EncodingRetried(URL, declared=http, used=label)
    assert notes == ([] if http == "hex" else [expected])


@pytest.mark.fault("46a", "48")
@pytest.mark.parametrize("label", LABELLED)
def test_what_the_declaration_calls_utf_8_is_read_as_http_says(label: str) -> None:
    """docs/faults.md rows 46a and 48: HTTP's label comes first, and the bytes fit it."""
    codec, title = LABELLED[label]
    assert title_of(a_document(title, "utf-8").encode(codec), f"text/xml; charset={label}") == title


@pytest.mark.fault("46a")
@pytest.mark.parametrize("label", LABELLED)
@pytest.mark.parametrize("http", ["", "utf-8", "iso-8859-1"])
def test_utf_8_stays_utf_8_under_any_label_even_if_some_bytes_are_not(label: str, http: str) -> None:
    """docs/faults.md row 46a: a text cut within a character is still UTF-8."""
    media_type = f"text/xml; charset={http}" if http else "text/xml"
    body = a_document(RUSSIAN + "X", label).encode()
    document = parse(body.replace(b"X", b"\xf0\x9f"), URL, media_type)
    assert document.head.title == RUSSIAN + "ðŸ"
    assert [note.facts["used"] for note in document.notes] == [MIXED_NAME]
    assert title_of(body, media_type) == RUSSIAN + "X"


@pytest.mark.fault("46a")
@pytest.mark.parametrize("mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE])
@pytest.mark.parametrize(
    ("codec", "label"),
    [("utf-8", "utf-8"), ("cp1251", "windows-1251"), ("utf-16-le", "utf-8"), ("utf-16-be", "utf-16")],
)
def test_a_byte_order_mark_before_another_encoding_does_not_count(
    mark: bytes, codec: str, label: str
) -> None:
    """docs/faults.md row 46a: the bytes after it decide."""
    assert title_of(mark + a_document(RUSSIAN, label).encode(codec)) == RUSSIAN


@pytest.mark.parametrize("http", ["", "utf-8", "windows-1251"])
def test_utf_16_without_a_mark_is_told_by_its_form(http: str) -> None:
    """docs/faults.md row 46a: for any labels."""
    body = a_document(RUSSIAN, "utf-8").encode("utf-16-be")
    document = parse(body, URL, f"text/xml; charset={http}" if http else "")
    assert document.head.title == RUSSIAN
    expected = EncodingRetried(URL, declared=http, used="utf-16-be")
    assert document.notes == ((expected,) if http else ())


@pytest.mark.fault("46a")
@pytest.mark.parametrize("others", ["", "é" * 9, RUSSIAN * 9000])
def test_surrogates_in_utf_8_are_the_characters_meant(others: str) -> None:
    """docs/faults.md row 46a: CESU-8 writes two halves; a single half is U+FFFD."""
    halves = "\ud83d\ude00X\ud83d \ude00\ud83d\ud83d\ude00".encode("utf-8", "surrogatepass")
    body = a_document(f"HALVES{others}").encode().replace(b"HALVES", halves)
    document = parse(body, URL)
    assert document.head.title == ("😀X\ufffd \ufffd\ufffd😀" + others)[: len(document.head.title)]
    assert document.notes == (EncodingRetried(URL, declared="nothing", used=CESU_NAME),)
    mixed = parse(body.replace(b"X", "é".encode() + b"\xff"), URL)
    assert mixed.head.title.startswith("😀éÿ\ufffd")


def test_a_label_that_most_bytes_fit_is_taken_for_the_whole() -> None:
    """docs/repair.md, "Encodings": one unknown byte does not turn the text into windows-1252."""
    body = a_document(RUSSIAN + "X", "windows-1251").encode("cp1251").replace(b"X", b"\x98")
    assert title_of(body, "text/xml; charset=utf-8") == RUSSIAN + "\ufffd"
    assert title_of(body) == RUSSIAN + "\ufffd"


@pytest.mark.parametrize("page", ["<meta charset=koi8-r>", '<meta content="text/html; charset=KOI8-R">'])
@pytest.mark.parametrize("media_type", ["", "text/html", "text/html; charset=utf-8"])
def test_a_page_names_its_encoding_in_meta(page: str, media_type: str) -> None:
    """Rules of documents apply; a page that fits no label is read anyway."""
    assert html_to_utf8((page + RUSSIAN).encode("koi8-r"), media_type).decode() == page + RUSSIAN
    assert html_to_utf8((page + RUSSIAN).encode(), media_type).decode() == page + RUSSIAN
    assert html_to_utf8(b"\xe9", "text/html; charset=x-fake").decode() == "\ufffd"


@given(st.binary(max_size=60), st.sampled_from([*LABELLED, "utf-8", "utf-16", "hex", ""]), st.booleans())
def test_any_bytes_are_text_or_refused(body: bytes, label: str, is_declared: bool) -> None:
    """docs/design.md#parsing: no other exception, and the text is UTF-8."""
    declaration = f'<?xml version="1.0" encoding="{label}"?>'.encode()
    sent = declaration + body if is_declared else body
    try:
        assert is_utf8(to_utf8(sent, "" if is_declared else f"text/xml; charset={label}").text)
    except ParseError as error:
        assert error.slug == "unsupported-encoding"  # noqa: PT017


def test_a_utf_8_document_is_not_copied() -> None:
    """A feed of 25 MB does not take twice its memory."""
    body = a_document().encode()

    assert to_utf8(body, "").text is body
    assert parse(body, URL).text is body


@given(st.binary(max_size=400) | st.text().map(str.encode))
@example(b"x" * ((1 << 18) - 1) + "é".encode())
@example(b"x" * (1 << 18) + b"\xc3")
def test_utf_8_is_told_as_the_standard_library_does(text: bytes) -> None:
    """Any difference from Python's decoder would garble text."""
    try:
        text.decode()
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert is_utf8(text) is expected
