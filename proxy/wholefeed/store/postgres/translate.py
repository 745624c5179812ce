r"""Statements as they stand in the tables' functions, made into what psycopg takes. Pure.

translate("SELECT 1 FROM feed WHERE id = :feed").text      # SELECT 1 FROM feed WHERE id = %(feed)s

What is rewritten is what a dialect spells differently and means the same:

    :name, ?                        %(name)s, %s; every other % is doubled
    CROSS JOIN t ON ...             JOIN t ON ...   (in SQLite it also settles the order of the loops)
    IS :x, IS NOT :x                IS NOT DISTINCT FROM :x, IS DISTINCT FROM :x
    IN (SELECT value FROM json_each(:x))        = ANY (an array of the numbers), NOT IN: <> ALL
    x'00'                           '\x00'::bytea

Whatever else differs stands beside its twin (`wholefeed.store.statements.either`), and of a twin only the
parameters are rewritten.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from wholefeed.store.statements import Sql

_CACHED: Final = 2048
"""More than the program has, those it builds included."""

_KEPT: Final = re.compile(
    r"""
    (?P<blob> \b[xX]'[0-9A-Fa-f]*' )
    | '(?:[^']|'')*' | "(?:[^"]|"")*"       # a text, a name
    | --[^\n]* | /\*.*?\*/                  # comments
    """,
    re.VERBOSE | re.DOTALL,
)
_PARAMETER: Final = re.compile(r"(?P<cast>::)|:(?P<name>[A-Za-z_]\w*)|(?P<mark>\?)")
_NUMBERS: Final = (
    r"ARRAY(SELECT CAST(numbers.value AS bigint) "
    r"FROM json_array_elements_text(CAST(\1 AS json)) AS numbers (value))"
)
_REWRITTEN: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\bCROSS\s+JOIN(\s+\w+(?:\s+AS\s+\w+)?\s+ON)\b", r"JOIN\1"),
        (r"\bIS\s+NOT(\s+(?::\w+|\?))", r"IS DISTINCT FROM\1"),
        (r"\bIS(\s+(?::\w+|\?))", r"IS NOT DISTINCT FROM\1"),
        (r"\bNOT\s+IN\s*\(\s*SELECT\s+value\s+FROM\s+json_each\((:\w+|\?)\)\s*\)", rf"<> ALL ({_NUMBERS})"),
        (r"\bIN\s*\(\s*SELECT\s+value\s+FROM\s+json_each\((:\w+|\?)\)\s*\)", rf"= ANY ({_NUMBERS})"),
    )
)


class Statement(NamedTuple):
    """A statement for PostgreSQL."""

    plain: str
    """For a statement without parameters, or for several at once."""
    text: str
    """With psycopg's placeholders."""


@lru_cache(_CACHED)
def _of_sqlite(sql: str) -> Statement:
    return _made(sql, is_sqlite=True)


@lru_cache(_CACHED)
def _of_postgres(sql: str) -> Statement:
    return _made(sql, is_sqlite=False)


def translate(sql: str) -> Statement:
    """Return the statement for PostgreSQL: its twin where it has one."""
    return _of_postgres(sql.postgres) if isinstance(sql, Sql) else _of_sqlite(sql)


def _made(sql: str, *, is_sqlite: bool) -> Statement:
    plain, text = list[str](), list[str]()
    at = 0
    for kept in _KEPT.finditer(sql):
        _add(sql[at : kept.start()], plain, text, is_sqlite=is_sqlite)
        literal = f"'\\x{kept[0][2:-1]}'::bytea" if kept["blob"] is not None else kept[0]
        plain.append(literal)
        text.append(literal.replace("%", "%%"))
        at = kept.end()
    _add(sql[at:], plain, text, is_sqlite=is_sqlite)
    return Statement("".join(plain), "".join(text))


def _add(code: str, plain: list[str], text: list[str], *, is_sqlite: bool) -> None:
    if is_sqlite:
        for pattern, replacement in _REWRITTEN:
            code = pattern.sub(replacement, code)
    plain.append(code)
    text.append(_PARAMETER.sub(_placeholder, code.replace("%", "%%")))


def _placeholder(found: re.Match[str]) -> str:
    if found["cast"]:
        return found[0]
    return "%s" if found["mark"] else f"%({found['name']})s"
