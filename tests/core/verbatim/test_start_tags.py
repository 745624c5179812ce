from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.text.markup import attribute, extended, is_simple, with_children

BASE = "{http://www.w3.org/XML/1998/namespace}base"


def unused(reference: str) -> str:
    raise AssertionError(reference)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\t\n\r\"'&<>")))
def test_an_attribute_keeps_its_value(value: str) -> None:
    """XML 1.0, 3.3.3: white space is escaped, so that it is not normalised."""
    try:
        element = ET.fromstring(b"<x%s/>" % attribute("a", value).written)
    except ET.ParseError:
        assert any(char in value for char in "\ufffe\uffff")  # not characters of XML
    else:
        assert element.get("a") == value


@pytest.mark.parametrize(
    "slice_", [b"<x/>", b"<x />", b"<x></x>", b"<x\n>a</x>", b"<p:x b = '>'/>", b"<x b='a=\"'/>"]
)
def test_attributes_are_put_behind_the_name(slice_: bytes) -> None:
    """R22: added attributes follow the element's name, however the tag is written, and nothing else
    changes."""
    name = b"<p:x" if b"p:x" in slice_ else b"<x"

    assert extended(slice_, [attribute("a", "1"), attribute("c", "2")], unused) == slice_.replace(
        name, name + b' a="1" c="2"', 1
    )


@pytest.mark.parametrize("own", [b"a='2'", b'a = "2"', b"b='x a=' a\n=\n'2'", b"a=''"])
def test_an_attribute_that_is_there_is_not_added(own: bytes) -> None:
    """R22: an attribute that the publisher wrote is neither doubled, which breaks the XML, nor replaced."""
    slice_ = b"<x " + own + b"><y/></x>"

    assert extended(slice_, [attribute("a", "1")], unused) == slice_
    assert extended(slice_, [attribute("aa", "1")], unused) != slice_


def test_attributes_of_what_is_inside_do_not_count() -> None:
    """R22: an attribute on a child does not keep the entry itself from gaining it."""
    assert extended(b"<x><y a='1'/></x>", [attribute("a", "1")], unused) == b"<x a=\"1\"><y a='1'/></x>"


@pytest.mark.parametrize("value", ["http://a/", "urn:a", " x+y-z.1:", "HTTP://A"])
def test_an_absolute_base_stays(value: str) -> None:
    """R22: an entry's own absolute xml:base is left byte for byte."""
    slice_ = f"<x xml:base='{value}'/>".encode()

    assert extended(slice_, [attribute("xml:base", "no")], unused) == slice_


@pytest.mark.parametrize(("value", "read"), [("", ""), ("a/", "a/"), ("&amp;&#47;", "&/"), ("1:a", "1:a")])
def test_a_relative_base_is_replaced_where_it_stands(value: str, read: str) -> None:
    """R22: a relative xml:base becomes the absolute one, escaped, and its links keep their targets."""
    slice_ = f"<x a='1' xml:base='{value}' b='2'/>".encode()
    asked: list[str] = []

    def rebase(reference: str) -> str:
        asked.append(reference)
        return 'http://a/"'

    assert extended(slice_, [], rebase) == b"<x a='1' xml:base=\"http://a/&quot;\" b='2'/>"
    assert asked == [read]


@pytest.mark.parametrize(
    ("slice_", "expected"),
    [
        (b"<x><y/></x>", b"<x><y/><z/></x>"),
        (b"<x></x\n>", b"<x><z/></x\n>"),
        (b"<x/>", b"<x><z/></x>"),
        (b"<p:x a='/' />", b"<p:x a='/'><z/></p:x>"),
        (b"<x><![CDATA[</x>]]></x>", b"<x><![CDATA[</x>]]><z/></x>"),
    ],
)
def test_children_are_put_before_the_end_tag(slice_: bytes, expected: bytes) -> None:
    """R22: an added author goes before the entry's real end, also of a self-closing one or behind CDATA."""
    assert with_children(slice_, b"<z/>") == expected


@pytest.mark.parametrize(
    "slice_",
    [
        b"<x/>",
        b"<p:x></p:x>",
        b"<x >a &amp; b</x\n>",
        b"<x><![CDATA[<b/>]]><!-- <b/> --><?b <b/>?></x>",
        b"<p:x xmlns:p = 'urn:p' xmlns=\"urn:q\" />",
    ],
)
def test_an_element_of_text_alone_is_simple(slice_: bytes) -> None:
    """RFC 4287, 6.4.1."""
    assert is_simple(slice_)


@pytest.mark.parametrize(
    "slice_",
    [
        b"<x a='b'/>",
        b"<x xmlns='urn:x' xml:lang=''>a</x>",
        b"<x><b/></x>",
        b"<x>a<b>c</b></x>",
        b"<x><b/>a</x>",
    ],
)
def test_an_element_with_attributes_or_children_is_not_simple(slice_: bytes) -> None:
    """RFC 4287, 6.4.2."""
    assert not is_simple(slice_)
