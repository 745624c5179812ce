"""A connection to PostgreSQL on which tables see SQLite's statements, texts, values, rows and errors."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, SupportsIndex, cast

import psycopg
from psycopg import errors
from psycopg.abc import AdaptContext, Buffer
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper, NumericBinaryLoader, NumericLoader
from psycopg.types.string import StrDumperUnknown

from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError, WholefeedError
from wholefeed.store.base import TWINS

CONNECT_SECONDS: Final = 5
# Keepalives detect a lost machine within ten seconds. If only its processes are halted, its kernel still
# answers: then the waiting caller must `cut`.
PARAMETERS: Final[dict[str, Any]] = {
    "autocommit": True,
    "prepare_threshold": 2,
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "wholefeed",
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class PostgresConnection(psycopg.Connection["PostgresRow"]):
    history: str = ""
    """The history of transaction numbers; empty if unknown."""
    writes: int = 0
    _pipe: psycopg.Pipeline | None = None

    @contextmanager
    def pipeline_statements(self) -> Iterator[None]:
        """Send statements at once inside the block, and wait only when a result is read.

        Statements after a failed one are skipped; its error comes with the next result, or at the end.
        """
        with self.pipeline() as pipe:
            self._pipe = pipe
            try:
                yield
            finally:
                self._pipe = None

    @property
    def is_pipelined(self) -> bool:
        return self._pipe is not None

    def wait_for_results(self) -> None:
        if self._pipe is not None and self._pipe.result_queue:
            self._pipe.sync()


# No statement and no lock may block a thread forever. Transactions of lost replicas, and statements with a
# cut connection, end by themselves.
_SETTINGS: Final = """
    SET statement_timeout = '120s';
    SET lock_timeout = '30s';
    SET idle_in_transaction_session_timeout = '8s';
    SET client_connection_check_interval = '1s';
    SET TimeZone = 'UTC'
"""
# The history of transaction numbers: a promoted standby begins another one.
HISTORY: Final = """
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN
        (SELECT system_identifier FROM pg_control_system()) || '/'
            || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    END
"""
# More statements than the program has.
_PREPARED: Final = 512
_SET_UP_SECONDS: Final = 3.0


def configure(raw: PostgresConnection) -> None:
    raw.prepared_max = _PREPARED
    raw.row_factory = row_maker
    raw.cursor_factory = PostgresCursor
    _register_adapters(raw)
    with end_after(_SET_UP_SECONDS, lambda: cut(raw)):
        raw.execute(_SETTINGS)
        with suppress(psycopg.DatabaseError):  # a server similar to PostgreSQL may lack it
            row = raw.execute(HISTORY).fetchone()
            raw.history = (row[0] if row is not None else "") or ""
    if raw.closed:
        raise psycopg.OperationalError("the connection was lost while it was set up")


@contextmanager
def end_after(seconds: float, end: Callable[[], object]) -> Iterator[None]:
    """Call a function from another thread if the block takes longer than `seconds`."""
    late = threading.Timer(seconds, end)
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def cut(raw: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Break a connection, from any thread. Waits for the server fail at once."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as its:
        its.shutdown(socket.SHUT_RDWR)


class PostgresCursor(psycopg.Cursor["PostgresRow"]):
    """A cursor with a row count that waits for its result."""

    @property
    def rowcount(self) -> int:
        if self.statusmessage is None and isinstance(self.connection, PostgresConnection):
            self.connection.wait_for_results()
        return super().rowcount


class PostgresDatabase:
    __slots__ = ("raw",)

    def __init__(self, raw: PostgresConnection) -> None:
        self.raw = raw

    def execute(self, sql: str, parameters: Any = (), /) -> psycopg.Cursor[PostgresRow]:
        return self.raw.execute(translate(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> None:
        cursor, translated_sql = self.raw.cursor(binary=True), translate(sql)
        if not self.raw.is_pipelined:
            cursor.executemany(translated_sql, parameters)
            return
        for each in parameters:  # psycopg's own way waits for earlier and own results
            cursor.execute(translated_sql, each)

    def executescript(self, script: str) -> None:
        self.raw.execute(TWINS.get(script, script))

    def close(self) -> None:
        self.raw.close()


# Translation of the tables' statements for psycopg


# More statements than the program has, including those it builds.
_CACHED: Final = 2048


@lru_cache(_CACHED)
def translate(sql: str) -> str:
    """Return the statement for PostgreSQL, or its twin, with psycopg's placeholders.

        :name, ?                        %(name)s, %s; every other % is doubled
        CROSS JOIN t ON ...             JOIN t ON ...   (in SQLite it also settles the order of the loops)
        IN (SELECT value FROM json_each(:x))        = ANY (an array of the numbers), NOT IN: <> ALL

    All other differences need a twin (`wholefeed.store.base.either`).
    """
    if sql in TWINS:
        sql = TWINS[sql]
    elif part := next((each for each in TWINS if each in sql), ""):
        raise TypeError(f"expected a whole statement, got a part: {part[:40]!r}")
    found, at = list[str](), 0
    for kept in _KEPT.finditer(sql):
        found += _translate_code(sql[at : kept.start()]), kept[0].replace("%", "%%")
        at = kept.end()
    return "".join([*found, _translate_code(sql[at:])])


_KEPT: Final = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*"         # a text, a name
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
        (r"\bNOT\s+IN\s*\(\s*SELECT\s+value\s+FROM\s+json_each\((:\w+|\?)\)\s*\)", rf"<> ALL ({_NUMBERS})"),
        (r"\bIN\s*\(\s*SELECT\s+value\s+FROM\s+json_each\((:\w+|\?)\)\s*\)", rf"= ANY ({_NUMBERS})"),
    )
)


def _translate_code(code: str) -> str:
    for pattern, replacement in _REWRITTEN:
        code = pattern.sub(replacement, code)
    return _PARAMETER.sub(_placeholder, code.replace("%", "%%"))


def _placeholder(found: re.Match[str]) -> str:
    if found["cast"]:
        return found[0]
    return "%s" if found["mark"] else f"%({found['name']})s"


# Escaping of texts that PostgreSQL refuses


_MARK: Final = "\x7f"
_REFUSED: Final = re.compile("[\0\x7f\ud800-\udfff]")
_WRITTEN: Final = re.compile("\x7f([0-9a-f]{4})")


def encode_text(text: str) -> bytes:
    """Return the text in UTF-8, escaped for PostgreSQL, which refuses NUL and lone surrogates."""
    # Each such character, and DEL itself, becomes DEL and four hexadecimal digits. JSON stays JSON, since it
    # permits DEL.
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return escape_text(text).encode()
    return escape_text(text).encode() if b"\0" in data or b"\x7f" in data else data


def escape_text(text: str) -> str:
    return _REFUSED.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def unescape_text(text: str) -> str:
    """Return the original of an escaped text. Text not written by `escape_text` stays unchanged."""
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)


# Conversion of values


def _register_adapters(context: AdaptContext) -> None:
    # Numbers go as `bigint` and `double precision` of any size, so that a statement is prepared once.
    adapters = context.adapters
    if adapters is None:
        return
    adapters.register_dumper(str, _TextDumper)
    for number in (int, bool):
        adapters.register_dumper(number, Int8BinaryDumper)
    adapters.register_dumper(float, FloatBinaryDumper)
    adapters.register_loader("numeric", _NumericLoader)
    adapters.register_loader("numeric", _NumericBinaryLoader)


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer:
        return encode_text(obj)


class _NumericLoader(NumericLoader):
    def load(self, data: Buffer) -> Decimal:
        return _number(super().load(data))


class _NumericBinaryLoader(NumericBinaryLoader):
    def load(self, data: Buffer) -> Decimal:
        return _number(super().load(data))


def _number(value: Decimal) -> Decimal:
    """Return a whole number as int and another one as float, like SQLite's arithmetic."""
    return cast("Decimal", int(value) if value == value.to_integral_value() else float(value))


# Rows like `sqlite3.Row`: values by position, by name, in order


class PostgresRow(tuple[Any, ...]):
    """A row. Each list of columns has its own class with their names."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[dict[str, int]] = {}

    def keys(self) -> list[str]:
        return list(self.names)

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self.places[key])
            except KeyError:
                raise IndexError(f"no column {key}") from None
        return tuple.__getitem__(self, key)


# name, text, unknown, bpchar, varchar.
_TEXT_OIDS: Final = frozenset({19, 25, 705, 1042, 1043})


def row_maker(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> Callable[[Any], PostgresRow]:
    columns = cursor.description or ()
    shape = _shape(tuple(column.name for column in columns))
    with_text = tuple(at for at, column in enumerate(columns) if column.type_code in _TEXT_OIDS)
    return partial(_make_row, shape, with_text) if with_text else shape


def _make_row(shape: type[PostgresRow], with_text: tuple[int, ...], values: tuple[Any, ...]) -> PostgresRow:
    for at in with_text:
        text = values[at]
        if text is not None and _MARK in text:
            return shape(unescape_text(each) if isinstance(each, str) else each for each in values)
    return shape(values)


# More than the program's queries need, so that each gets one class.
_SHAPES: Final = 1024


@lru_cache(_SHAPES)
def _shape(names: tuple[str, ...]) -> type[PostgresRow]:
    places = {name: at for at, name in reversed(list(enumerate(names)))}
    made = type("PostgresRow", (PostgresRow,), {"__slots__": (), "names": names, "places": places})
    return cast("type[PostgresRow]", made)


# The meaning of PostgreSQL's errors (docs/faults.md)


# Serialization, deadlock; and a row inserted by another replica meanwhile, visible in the next run.
_REPEATED: Final = frozenset({"40001", "40P01", "23505"})


def is_repeated(error: psycopg.Error) -> bool:
    return error.sqlstate in _REPEATED


# A standby not yet promoted, a former primary, or an administrator's setting.
_READ_ONLY: Final = "25006"
# Another replica's migration changed a table after a statement was prepared.
_CHANGED: Final = "0A000"
# A statement before it in the pipeline failed, so the server never prepared it; psycopg believes that it did.
_UNPREPARED: Final = "26000"


def is_stale(error: psycopg.Error) -> bool:
    """Return whether a new connection to the same healthy server may succeed."""
    return error.sqlstate in (_READ_ONLY, _CHANGED, _UNPREPARED)


def is_unusable(error: psycopg.Error) -> bool:
    return is_stale(error) or _is_lost(error)


_FULL: Final = frozenset({"53100", _READ_ONLY})
_DAMAGED: Final = frozenset({"XX001", "XX002"})
# Connection errors, resources, operator intervention including statement timeouts.
_BUSY_CLASSES: Final = ("08", "53", "57")
_BUSY: Final = frozenset({"55P03", "25P03", "40001", "40P01", "40003"})


def translate_error(error: psycopg.Error) -> WholefeedError:
    state = error.sqlstate or ""
    if state in _FULL:
        return StorageFullError(f"the database cannot be written: {_message(error)}")
    if state in _DAMAGED:
        return StoreDamagedError(f"the database is damaged: {_message(error)}")
    if state in _BUSY or state.startswith(_BUSY_CLASSES) or _is_lost(error):
        return overload_error(f"the database cannot be asked now: {_message(error)}")
    return StoreError(f"the database failed ({state or 'no code'}): {_message(error)}")


# Time for a restarted server or a promoted standby to be back.
_RETRY_AFTER_SECONDS: Final = 10


def overload_error(message: str) -> OverloadedError:
    return OverloadedError(message, retry_after_seconds=_RETRY_AFTER_SECONDS)


def _is_lost(error: psycopg.Error) -> bool:
    # libpq has no code for a missing connection.
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError | errors.InterfaceError)


def on_one_line(error: Exception) -> str:
    return _join_lines(str(error)) or type(error).__name__


def _message(error: psycopg.Error) -> str:
    """Return the error on one line, without its detail, since that quotes values."""
    return _join_lines(error.diag.message_primary or "") or on_one_line(error)


def _join_lines(text: str) -> str:
    return " ".join(text.split())
