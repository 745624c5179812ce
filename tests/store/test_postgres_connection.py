"""SQLite's statements and texts, translated for PostgreSQL."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wholefeed.store.base import either
from wholefeed.store.postgres_connection import encode_text, escape_text, translate, unescape_text


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT 1 WHERE a = :a AND b = :b_2", "SELECT 1 WHERE a = %(a)s AND b = %(b_2)s"),
        ("VALUES (?, ?)", "VALUES (%s, %s)"),
        ("SELECT a::text, :a::bigint", "SELECT a::text, %(a)s::bigint"),
        ("SELECT 5 % 2", "SELECT 5 %% 2"),
        (
            "SELECT ':no', 'it''s ?', \"a:b\" -- :c ?\n, :d",
            "SELECT ':no', 'it''s ?', \"a:b\" -- :c ?\n, %(d)s",
        ),
        ("SELECT '%' /* :x ? % */, ?", "SELECT '%%' /* :x ? %% */, %s"),
        ("FROM a CROSS JOIN b AS c ON c.a = a.b", "FROM a JOIN b AS c ON c.a = a.b"),
        ("FROM a\n    CROSS JOIN b ON true", "FROM a\n    JOIN b ON true"),
        ("FROM a CROSS JOIN b WHERE a.c", "FROM a CROSS JOIN b WHERE a.c"),
        ("a IS NOT NULL OR b IS NULL", "a IS NOT NULL OR b IS NULL"),
        ("SELECT 'CROSS JOIN a ON x = :y'", "SELECT 'CROSS JOIN a ON x = :y'"),
    ],
)
def test_spells_a_statement_as_psycopg_takes_it(sql: str, text: str) -> None:
    """Parameters, percent signs, joins; literals stay unchanged."""
    assert translate(sql) == text


def test_a_list_of_numbers_becomes_an_array() -> None:
    """An array is looked up by an index, a set of rows would be joined."""
    array = (
        "ARRAY(SELECT CAST(numbers.value AS bigint)"
        " FROM json_array_elements_text(CAST(%(ids)s AS json)) AS numbers (value))"
    )
    assert translate("id IN (SELECT value FROM json_each(:ids))") == f"id = ANY ({array})"
    assert translate("id NOT IN (SELECT value FROM json_each(:ids))") == f"id <> ALL ({array})"


def test_a_twin_is_taken_in_place_of_the_statement() -> None:
    """PostgreSQL's own text replaces the statement; its parameters are rewritten, too."""
    both = either(sqlite="SELECT 'whole'", postgres="SELECT :a FROM b WHERE ? = '%'")
    assert both == "SELECT 'whole'"
    assert translate(both) == "SELECT %(a)s FROM b WHERE %s = '%%'"


def test_a_twin_is_no_part_of_another_statement() -> None:
    """A statement around it would be SQLite's on both engines."""
    both = either(sqlite="SELECT 'a part'", postgres="SELECT 'of PostgreSQL'")
    with pytest.raises(TypeError, match="expected a whole statement, got a part: \"SELECT 'a part'\""):
        translate(f"{both} LIMIT 1")


@given(st.lists(st.sampled_from(["'", '"', "--", "/*", "*/", "\n", ":a", "?", "%", "::", "x'", "a", " "])))
def test_placeholders_and_percent_signs_never_mix(parts: list[str]) -> None:
    """In any statement psycopg finds the intended placeholders, and no others."""
    sql = "".join(parts)
    found = translate(sql)
    filled = re.sub(r"%\((\w+)\)s", r":\1", found.replace("%%", "\0")).replace("%s", "?")
    assert "%" not in filled
    assert filled.replace("\0", "%") == sql


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
ODD_TEXT = st.text(st.sampled_from("\0\x7f\ud800\udfff0d7faé\U0001f600"), max_size=20)


@given(ANY_TEXT | ODD_TEXT)
@example("\x7f0000")
@example("\x7f\x7f007f")
@example("\ud83d\ude00")
def test_every_text_comes_back_as_it_was(text: str) -> None:
    """NUL, lone surrogates, DEL, and escape-like text survive unchanged."""
    assert unescape_text(encode_text(text).decode()) == text


@given(ANY_TEXT | ODD_TEXT)
def test_what_is_written_is_utf_8_without_nul(text: str) -> None:
    """PostgreSQL takes no other text."""
    written = encode_text(text)
    assert b"\0" not in written
    assert written.decode() == escape_text(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x7f")))
def test_usual_texts_are_written_as_they_are(text: str) -> None:
    """PostgreSQL itself searches and sorts by the text."""
    assert encode_text(text) == text.encode()


@given(ODD_TEXT)
def test_json_stays_json(text: str) -> None:
    """The database checks JSON columns."""
    written = encode_text(json.dumps({"a": text}, ensure_ascii=False)).decode()
    assert unescape_text(json.loads(written)["a"]) == text


def test_what_no_escape_has_written_stays() -> None:
    """Another program's text is read, too."""
    assert unescape_text("a\x7fzz \x7f12") == "a\x7fzz \x7f12"
