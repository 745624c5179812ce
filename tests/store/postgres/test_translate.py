"""SQLite's statements, made into PostgreSQL's."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholefeed.store.base import either
from wholefeed.store.postgres_connection import translate


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
        ("a IS NOT :a", "a IS DISTINCT FROM %(a)s"),
        ("a IS ?", "a IS NOT DISTINCT FROM %s"),
        ("a IS NOT NULL OR b IS NULL", "a IS NOT NULL OR b IS NULL"),
        ("a <> x'' OR a = X'00ff'", r"a <> '\x'::bytea OR a = '\x00ff'::bytea"),
        ("SELECT ax'b'", "SELECT ax'b'"),
        ("SELECT 'CROSS JOIN a ON x IS :y'", "SELECT 'CROSS JOIN a ON x IS :y'"),
    ],
)
def test_spells_a_statement_as_psycopg_takes_it(sql: str, text: str) -> None:
    """Parameters, percent signs, joins, comparisons with NULL, binary texts; literals stay as they are."""
    assert translate(sql).text == text


def test_a_list_of_numbers_becomes_an_array() -> None:
    """An array is looked up by an index where a set of rows would be joined."""
    array = (
        "ARRAY(SELECT CAST(numbers.value AS bigint)"
        " FROM json_array_elements_text(CAST(%(ids)s AS json)) AS numbers (value))"
    )
    assert translate("id IN (SELECT value FROM json_each(:ids))").text == f"id = ANY ({array})"
    assert translate("id NOT IN (SELECT value FROM json_each(:ids))").text == f"id <> ALL ({array})"


def test_a_statement_without_parameters_is_plain() -> None:
    """psycopg looks for placeholders only where parameters are given, so a percent sign stands for itself."""
    assert translate("SELECT 5 % 2, x'00'").plain == r"SELECT 5 % 2, '\x00'::bytea"


def test_a_twin_is_taken_as_it_stands() -> None:
    """Of the text that is PostgreSQL's own only the parameters are rewritten."""
    both = either(sqlite="SELECT 'whole'", postgres="SELECT a IS NOT :a FROM b CROSS JOIN c ON ? = '%'")
    assert both == "SELECT 'whole'"
    assert translate(both).text == "SELECT a IS NOT %(a)s FROM b CROSS JOIN c ON %s = '%%'"


def test_a_twin_is_no_part_of_another_statement() -> None:
    """What it was put into would be SQLite's on both engines."""
    both = either(sqlite="SELECT 'a part'", postgres="SELECT 'of PostgreSQL'")
    with pytest.raises(TypeError, match="expected a whole statement, got a part: \"SELECT 'a part'\""):
        translate(f"{both} LIMIT 1")


@given(st.lists(st.sampled_from(["'", '"', "--", "/*", "*/", "\n", ":a", "?", "%", "::", "x'", "a", " "])))
def test_placeholders_and_percent_signs_never_mix(parts: list[str]) -> None:
    """Whatever a statement is made of, psycopg finds the placeholders that were meant, and no others."""
    sql = "".join(parts)
    found = translate(sql)
    filled = re.sub(r"%\((\w+)\)s", r":\1", found.text.replace("%%", "\0")).replace("%s", "?")
    assert "%" not in filled
    assert filled.replace("\0", "%") == found.plain
