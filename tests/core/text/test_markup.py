"""wholefeed.core.text.markup: the same as the standard library's."""

from __future__ import annotations

from xml.sax import saxutils

from hypothesis import given
from hypothesis import strategies as st

from wholefeed.core.text.markup import escape, quoteattr

TEXTS = st.text(st.sampled_from("&<>\"'\n\r\ta;é")) | st.text()


@given(TEXTS)
def test_texts_are_written_as_the_standard_library_does(text: str) -> None:
    """In elements and in attributes."""
    assert escape(text) == saxutils.escape(text)
    assert escape(text, {'"': "&quot;"}) == saxutils.escape(text, {'"': "&quot;"})
    assert quoteattr(text) == saxutils.quoteattr(text)
