"""JSON Feed 1.0 and 1.1."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.parse.makers import URL, slices
from tests.cpu_time import cpu_limit
from tests.patching import set_constant
from wholefeed.core.model import Family, FeedDocument, entry_id
from wholefeed.core.notes import DocumentRepaired, EncodingRetried
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED, ParseError
from wholefeed.core.text.dates import parse_rfc3339

VERSION = "https://jsonfeed.org/version/1.1"


def feed(*items: object, **head: object) -> bytes:
    return json.dumps({"version": VERSION, "title": "T", **head, "items": items}).encode()


def read(body: bytes, url: str = URL) -> FeedDocument:
    return parse(body, url, "application/feed+json")


def refused(body: bytes, **options: Any) -> ParseError:
    with pytest.raises(ParseError) as caught:
        parse(body, URL, **options)
    return caught.value


@given(
    st.lists(
        st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.booleans()), max_size=4),
        max_size=5,
    ),
    st.booleans(),
    st.sampled_from([None, 1]),
)
def test_every_slice_is_its_item(items: list[dict[str, object]], is_ascii: bool, indent: int | None) -> None:
    """R22: for any characters and white space."""
    whole = {"version": VERSION, "\u00fc": "\U0001f600", "items": items, "z": [1, {"items": [2]}]}
    document = read(json.dumps(whole, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "replace"))
    assert len(document.entries) == len(items)
    written = [json.loads(slice_) for slice_ in slices(document)]
    assert written == [json.loads(json.dumps(item).encode("utf-8", "replace")) for item in items]
    members = [document.text[child.start : child.end] for child in document.head.children]
    assert [json.loads(b"{%s}" % member) for member in members] == [
        {name: value} for name, value in whole.items() if name != "items"
    ]


def test_an_id_that_is_a_number_is_taken_for_its_digits() -> None:
    """R9; JSON Feed 1.1, "Items": other types become strings. Among equal names the last counts."""
    items = b'[{"id":1},{"id":"1"},{"id":12345678901234567890123},{"id":1.0},"b",null]'
    body = b'{"version":1,"items":[7],"version":"%s","items":%s}'
    identities = [entry.identity for entry in read(body % (VERSION.encode(), items)).entries]
    assert identities == [entry_id(text) for text in ("1", "1", "12345678901234567890123", "1.0")]


def test_without_an_id_the_url_identifies_an_item_of_its_own() -> None:
    """R9; also for an id with half a character, which is valid JSON but not UTF-8."""
    items = [{"url": "http://o.test/a"}, {"url": "u", "title": "1"}, {"id": "", "url": "u", "title": "2"}]
    halves = [{"id": "\ud800"}, {"id": "\ud801"}]
    identities = [entry.identity for entry in read(feed(*items, *halves)).entries]
    assert identities[0] == entry_id("http://o.test/a")
    assert len({*identities, entry_id("u")}) == 6


def test_the_instants_are_date_modified_and_for_the_order_date_published() -> None:
    """R10, R20."""
    published, both, none = read(
        feed(
            {"id": "1", "date_published": "2020-01-01T00:00:00Z"},
            {"id": "2", "date_published": "2020-01-01T00:00:00Z", "date_modified": "2021-01-01T00:00:00Z"},
            {"id": "3", "date_modified": 5},
        )
    ).entries
    assert (published.updated_at, published.order_at) == (None, parse_rfc3339("2020-01-01T00:00:00Z"))
    assert both.updated_at == both.order_at == parse_rfc3339("2021-01-01T00:00:00Z")
    assert (none.updated_at, none.order_at) == (None, None)


def test_the_head_names_its_links_and_its_site() -> None:
    """R6, R11, R24."""
    entries = [{"id": "a", "authors": [{"name": "x"}]}, {"id": "b", "author": {}}]
    urls = {"next_url": "?page=2", "feed_url": "http://o.test/f", "home_page_url": "http://o.test/"}
    document = read(feed(*entries, **urls, language="de"))
    head = document.head
    assert [entry.has_author for entry in document.entries] == [True, False]
    assert head.scope.lang == "de"
    assert {link.relation: link.target for link in head.links} == {
        "next": f"{URL}?page=2", "self": "http://o.test/f"
    }  # fmt: skip
    assert head.site_id == "http://o.test/"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_tells_the_encoding(encoding: str) -> None:
    """RFC 8259, 8.1 has UTF-8 alone; a mark must not lose the feed."""
    body = f'{{"version": "{VERSION}", "items": [{{"id": "\u00e9"}}]}}'
    assert read(body.encode(encoding)).entries[0].identity == entry_id("\u00e9")


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        (b'{"version":"%s","items":[{"id":NaN}]}', "malformed-json"),
        (b'{"version":"%s","items":[{"id":"a"}]', "malformed-json"),
        (b'{"version":"%s","items":[{"id":"a\nb', "malformed-json"),
        (b'{"version":"%s","items":[{"id":"a"},', "malformed-json"),
        (b'{"version":"%s",/* a */"items":[]}', "malformed-json"),
        (b'{"version":"%s"}}', "malformed-json"),
        (b'{"version":"%s"},', "malformed-json"),
        (b")]}'\n" + b'{"version":"%s"}', "not-a-feed"),
        (b'{"version":"%s" "title":1}', "malformed-json"),
        (b'{"version":"%s",5:1}', "malformed-json"),
        (b'{"items":[{"id":"a"}]}', "not-a-feed"),
        (b'{"version":1.1,"items":[]}', "not-a-feed"),
    ],
)
def test_what_is_malformed_or_no_feed_is_refused(body: bytes, slug: str) -> None:
    """RFC 8259; no other exception (docs/design.md#parsing)."""
    assert refused(body.replace(b"%s", VERSION.encode())).slug == slug


@pytest.mark.fault("151")
@pytest.mark.parametrize(
    ("written", "made", "repair"),
    [
        (
            r'{"id":"a","title":"b' + "\n\tc\r\n\x01" + r'\u00e9\n"}',
            r'{"id":"a","title":"b\n\tc\r\n\u0001\u00e9\n"}',
            "escapes",
        ),
        (
            r"""{"id":"a","title":"it\'s \d \\d \u12 C:\"}""" + '"}',
            r"""{"id":"a","title":"it's \\d \\d \\u12 C:\"}""" + '"}',
            "escapes",
        ),
        ('{"id":"a", "tags":["b", ], }', '{"id":"a", "tags":["b" ] }', "commas"),
        ('{,"id":"a", "tags":[,"b",,"c,]" , , "d"]}', '{"id":"a", "tags":["b","c,]" , "d"]}', "commas"),
        ('{"id":\ufeff"a",\xa0"title":"\xa0\ufeff"\0}', '{"id":"a","title":"\xa0\ufeff"}', "blanks"),
    ],
)
def test_what_is_almost_json_is_mended(written: str, made: str, repair: str) -> None:
    """docs/repair.md: in items and in the head; other items stay unchanged."""
    other = '{ "id" : "\\u0062" }'
    body = f'{{"version":"{VERSION}","_a":{written},"items":[{other},{written}]}}'
    document = read(body.encode())
    assert [slice_.decode() for slice_ in slices(document)] == [other, made]
    assert document.notes == (DocumentRepaired(URL, repairs=(repair,)),)


@pytest.mark.fault("151")
@pytest.mark.parametrize("end", ["]}", ",]}", ",],}", ",]\n}\n\0"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("media_type", ["application/feed+json", "text/html; charset=utf-8", "text/plain"])
def test_it_is_json_in_any_form_of_unicode_and_under_any_media_type(
    end: str, codec: str, media_type: str
) -> None:
    """docs/formats.md: the bytes decide; blanks or a mark before them change nothing."""
    body = f'\n{{"version":"{VERSION}","items":[{{"id":"é"}}{end}'
    document = parse(body.encode(codec), URL, media_type)
    assert slices(document) == ['{"id":"é"}'.encode()]


@pytest.mark.fault("46a")
def test_json_that_is_no_utf_8_is_read_as_other_documents_are() -> None:
    """docs/formats.md: RFC 8259, 8.1 has UTF-8 alone, but a cut text loses no feed."""
    body = f'{{"version":"{VERSION}","title":"река","items":[]}}'
    document = parse(body.encode("cp1251"), URL, "application/json; charset=windows-1251")
    assert (document.head.title, document.notes) == ("река", ())
    document = parse(body.encode().replace(b'","items', b'\xd0","items'), URL, "application/json")
    assert document.head.title == "рекаÐ"
    assert [note.kind for note in document.notes] == [EncodingRetried]


@pytest.mark.fault("151")
@pytest.mark.parametrize(
    "unit", ['\\"', "\n", ", ", "[,", "{", "\\d", "\ufeff", '"', '"",', " ", "\\", "\n\\n", '\\"\n']
)
@pytest.mark.parametrize("before", ["", '"', "[" * 300, "[" * 300 + '"'])
def test_the_cost_of_mending_grows_with_the_length(unit: str, before: str) -> None:
    """docs/repair.md: one pass for any text. A quadratic search for a string's end would take minutes."""
    body = f'{{"version":"{VERSION}","a":{before}' + unit * (300_000 // len(unit))
    assert refused(body.encode()).slug in ("malformed-json", "xml-limit")


@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_depth_is_limited_before_anything_recurses(bracket: str) -> None:
    """docs/faults.md row 43."""
    body = (f'{{"version":"{VERSION}","a":' + bracket * 1_000_000).encode()
    assert refused(body).slug == "xml-limit"
    nested = ('{{"version":"{}","a":{}1{}}}'.format(VERSION, "[" * 9, "]" * 9)).encode()
    assert refused(nested, max_depth=9).slug == "xml-limit"
    assert read(nested).version == "1.1"


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists), st.integers(0, 60))
def test_no_cut_or_odd_document_escapes_the_error_tree(value: object, cut: int) -> None:
    """docs/design.md#parsing."""
    body = json.dumps({"version": VERSION, "items": [value], "a": value}).encode()
    for candidate in (body, body[:-cut] if cut else body):
        try:
            read(candidate)
        except ParseError as error:
            assert error.slug in {"malformed-json", "not-a-feed"}  # noqa: PT017


@pytest.mark.parametrize("values", ["0," * 9, "{}," * 9, '"",' * 25, "[" * 6 + "]" * 6 + ","])
def test_values_are_counted_before_they_are_read(values: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/design.md#parsing: a digit and a comma become a hundred bytes in any case."""
    set_constant(monkeypatch, "MAX_VALUES", 8)
    set_constant(monkeypatch, "_MAX_QUOTES", 40)
    assert refused(f'{{"x":[{values}'.encode()).slug == "xml-limit"


def test_what_stands_in_strings_is_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 43: braces and commas in content do not count."""
    set_constant(monkeypatch, "MAX_VALUES", 12)
    document = read(feed({"id": "a", "content_text": "[{,\\" * 9}))
    assert len(document.entries) == 1


def test_no_more_items_are_read_than_a_document_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 43: one more is refused with slug `xml-limit`, not cut silently."""
    set_constant(monkeypatch, "MAX_ENTRIES", 2)
    assert len(read(feed({"id": "a"}, {"id": "b"})).entries) == 2
    assert refused(feed({"id": "a"}, {"id": "b"}, {"id": "c"})).slug == "xml-limit"


@pytest.mark.parametrize(
    "body",
    [
        feed(*({"id": n} for n in range(20_000)), authors=[{"name": "x" * 4000}]),
        feed(*({"id": n} for n in range(90_000)), language="x" * 60),
        feed(description="x" * (2 << 20)),
    ],
)
@pytest.mark.sample("body0")
def test_what_goes_out_again_and_again_is_bounded_as_in_xml(body: bytes) -> None:
    """docs/faults.md part D: inherited values and the head; stored documents stay readable."""
    error = refused(body)
    assert error.slug == "xml-limit"
    assert parse(body, URL, max_depth=UNLIMITED).family is Family.JSON


@pytest.mark.fault("87")
def test_one_item_of_very_many_values_is_read_in_one_go() -> None:
    """Row 87: at most a second for a megabyte."""
    values = b",".join([b"1"] * 490_000)
    body = b'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": 1, "x": [%s]}]}' % values
    with cpu_limit(1):
        assert len(parse(body, URL).entries) == 1
