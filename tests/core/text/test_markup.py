"""wholefeed.core.text.markup: texts and attributes of XML."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.sax import saxutils

from hypothesis import example, given
from hypothesis import strategies as st

from wholefeed.core.text.markup import attribute, escape, quoteattr

TEXTS = st.text(st.sampled_from("&<>\"'\n\r\ta;é")) | st.text()


@given(TEXTS)
def test_texts_are_written_as_the_standard_library_does(text: str) -> None:
    """In elements and in attributes."""
    assert escape(text) == saxutils.escape(text)
    assert escape(text, {'"': "&quot;"}) == saxutils.escape(text, {'"': "&quot;"})
    assert quoteattr(text) == saxutils.quoteattr(text)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\t\n\r\"'&<>")))
@example("\t\n\r\"'&<>")
def test_an_attribute_keeps_its_value(value: str) -> None:
    """XML 1.0, 3.3.3: white space is escaped to survive normalisation."""
    try:
        element = ElementTree.fromstring(b"<x%s/>" % attribute("a", value).written)
    except ElementTree.ParseError:
        assert any(char in value for char in "\ufffe\uffff")  # not characters of XML
    else:
        assert element.get("a") == value
