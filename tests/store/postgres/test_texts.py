"""What PostgreSQL refuses in a text, written so that it takes it."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from wholefeed.store.postgres_connection import encode_text, escape_text, unescape_text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
ODD_TEXT = st.text(st.sampled_from("\0\x7f\ud800\udfff0d7faé\U0001f600"), max_size=20)


@given(ANY_TEXT | ODD_TEXT)
@example("\x7f0000")
@example("\x7f\x7f007f")
@example("\ud83d\ude00")
def test_every_text_comes_back_as_it_was(text: str) -> None:
    """NUL, lone surrogates, DEL, and what looks like an escape: nothing is lost and nothing is made up."""
    assert unescape_text(encode_text(text).decode()) == text


@given(ANY_TEXT | ODD_TEXT)
def test_what_is_written_is_utf_8_without_nul(text: str) -> None:
    """PostgreSQL takes no other text."""
    written = encode_text(text)
    assert b"\0" not in written
    assert written.decode() == escape_text(text)


@given(ANY_TEXT | ODD_TEXT, ANY_TEXT | ODD_TEXT)
def test_two_texts_are_never_written_alike(one: str, other: str) -> None:
    """A key that is unique in SQLite is unique in PostgreSQL."""
    assert (encode_text(one) == encode_text(other)) == (one == other)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x7f")))
def test_usual_texts_are_written_as_they_are(text: str) -> None:
    """Searching and ordering by PostgreSQL itself goes by the text."""
    assert encode_text(text) == text.encode()


@given(ODD_TEXT)
def test_json_stays_json(text: str) -> None:
    """Columns that hold JSON are checked by the database."""
    written = encode_text(json.dumps({"a": text}, ensure_ascii=False)).decode()
    assert unescape_text(json.loads(written)["a"]) == text


def test_what_no_escape_has_written_stays() -> None:
    """A text that another program put there is read, too."""
    assert unescape_text("a\x7fzz \x7f12") == "a\x7fzz \x7f12"
