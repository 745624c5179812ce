"""A connection to PostgreSQL that takes the tables' statements, for functions that run in its thread.

    db = connect("postgresql://…")
    db.execute("SELECT url FROM feed WHERE id = :feed", {"feed": 1}).fetchall()[0]["url"]

It begins and ends no transaction of its own. Results are whole when `execute` returns. Statements, texts,
values and rows are translated so that the tables see what SQLite takes and gives; so are the errors.
"""

from __future__ import annotations

import os
import re
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, NamedTuple, SupportsIndex, cast

import psycopg
from psycopg import capabilities, errors
from psycopg.abc import AdaptContext, Buffer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper, NumericBinaryLoader, NumericLoader
from psycopg.types.string import StrDumperUnknown

from wholefeed.errors import OverloadedError, StorageFullError, StoreDamagedError, StoreError, WholefeedError
from wholefeed.store.base import Sql, fetch_value

CONNECT_SECONDS: Final = 5
_PREPARE_AT: Final = 2
"""How often a statement is seen before it is prepared."""
_PREPARED: Final = 512
"""At the most; more than the program has."""
# A machine that is gone is found out within ten seconds. Of one whose processes are halted the kernel goes on
# to answer: that is up to whoever waits (`PostgresDatabase.cut`).
_KEEPALIVE: Final[dict[str, Any]] = {
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
_SET_UP_SECONDS: Final = 3.0
"""For so long a server that has taken a connection may leave what sets it up unanswered."""


class Scripts(NamedTuple):
    """SQL that a connection needs which writes; outside of transactions."""

    first: str = ""
    """Before the first transaction: its temporary tables."""
    again: str = ""
    """Now and then: empties them, which takes ten times as long as a COMMIT, so not at each one."""


NO_SCRIPTS: Final = Scripts()


def connect(
    url: str, scripts: Scripts = NO_SCRIPTS, *, within_seconds: int = CONNECT_SECONDS
) -> PostgresDatabase:
    """Open a connection.

    Args:
        url: As libpq takes it.
        scripts: What it needs when it writes.
        within_seconds: How long to wait for each address of the server.

    Raises:
        psycopg.Error: There is no such connection to be had.
    """
    raw: psycopg.Connection[Any] = psycopg.connect(
        url,
        autocommit=True,
        prepare_threshold=_PREPARE_AT,
        connect_timeout=within_seconds,
        application_name="wholefeed",
        **_KEEPALIVE,
    )
    try:
        raw.prepared_max = _PREPARED
        _register_adapters(raw)
        db = PostgresDatabase(raw, scripts)
        late = threading.Timer(_SET_UP_SECONDS, db.cut)
        late.daemon = True
        late.start()
        try:
            _set_up(db)
        finally:
            late.cancel()
    except BaseException:
        raw.close()
        raise
    return db


# What a connection is set to: no statement and no lock may hold a thread for good, and what a replica that is
# gone has left open ends by itself.
_SETTINGS: Final = """
    SET statement_timeout = '120s';
    SET lock_timeout = '30s';
    SET idle_in_transaction_session_timeout = '8s';
    SET TimeZone = 'UTC'
"""
# What numbers of transactions belong to: a standby that was promoted begins another history.
HISTORY: Final = """
    SELECT CASE WHEN NOT pg_is_in_recovery() THEN
        (SELECT system_identifier FROM pg_control_system()) || '/'
            || left(pg_walfile_name(pg_current_wal_lsn()), 8)
    END
"""


def _set_up(db: PostgresDatabase) -> None:
    db.executescript(_SETTINGS)
    with suppress(psycopg.DatabaseError):  # a server that is like PostgreSQL may not have that
        db.history = fetch_value(db, HISTORY) or ""
    if db.is_lost:
        raise psycopg.OperationalError("the connection was lost while it was set up")


_CANCEL_SECONDS: Final = 2.0
_WRITES_BETWEEN: Final = 64


class PostgresDatabase:
    """A connection as `wholefeed.store.base.Database` has it."""

    def __init__(self, raw: psycopg.Connection[Any], scripts: Scripts) -> None:
        self.raw = raw
        self._scripts = scripts
        self._writes = 0
        self.history = ""
        """What numbers of transactions mean something in; empty where that is not known."""
        self._cursor = raw.cursor(binary=True)
        self._makers = dict[str, tuple[int, _MakeRow]]()
        """By statement: how many columns its rows have, and what makes them."""
        self._is_leaving = False

    def prepare_to_write(self) -> None:
        """Run what the connection needs. Not before: on a server that takes no writes it fails."""
        if not self._writes:
            self.executescript(self._scripts.first)
        elif self._writes % _WRITES_BETWEEN == 0:
            self.executescript(self._scripts.again)
        self._writes += 1

    def ask(self, sql: str) -> str:
        """Run statements as they stand, which takes one trip; return the first value of the last one, or "".

        For what begins and ends transactions: it costs a third of what a cursor does.
        """
        self._arrive()
        result = self.raw.pgconn.exec_(sql.encode())
        self._require(result)
        return (result.get_value(0, 0) or b"").decode() if result.ntuples else ""

    def leave(self) -> None:
        """End a transaction that has only read, without waiting for the answer."""
        self.raw.pgconn.send_query(b"COMMIT")
        self._is_leaving = True

    def commit(self) -> None:
        """End a transaction.

        Raises:
            psycopg.Error: It is not committed, or it cannot be known.
        """
        self._arrive()
        result = self.raw.pgconn.exec_(b"COMMIT")
        self._require(result)
        if result.command_status != b"COMMIT":  # a statement had failed, and the work went on
            raise psycopg.errors.InFailedSqlTransaction("expected a transaction that can be committed")

    def execute(self, sql: str, parameters: Any = (), /) -> Result:
        if self._is_leaving:
            self._arrive()
        statement, cursor = translate(sql), self._cursor
        if parameters:
            cursor.execute(statement.text, parameters)
        else:
            cursor.execute(statement.plain)
        result = cursor.pgresult
        if result is None or result.status != ExecStatus.TUPLES_OK:
            return Result([], cursor.rowcount)
        columns, make = self._makers.get(sql, (-1, PostgresRow))
        if columns != result.nfields:
            make = _row_maker(result)
            self._makers[sql] = result.nfields, make
        return Result([make(values) for values in cursor.fetchall()], cursor.rowcount)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Result:
        """Run one statement for each of these, sent together."""
        rows = list(parameters)
        if not rows:
            return Result([], 0)
        self._arrive()
        self._cursor.executemany(translate(sql).text, rows)
        return Result([], self._cursor.rowcount)

    def executescript(self, script: str) -> None:
        """Run any number of statements, without parameters and results."""
        self._arrive()
        if script:
            self.raw.execute(translate(script).plain)

    def _arrive(self) -> None:
        """Take the answer to what `leave` has sent."""
        if self._is_leaving:
            self._is_leaving = False
            while (result := self._next_result()) is not None:
                self._require(result)

    def _next_result(self) -> PGresult | None:
        """Wait for a result here: where libpq waits for one, psycopg keeps all other threads from running."""
        connection = self.raw.pgconn
        connection.consume_input()
        while connection.is_busy():
            waiting = select.poll()
            waiting.register(connection.socket, select.POLLIN)
            waiting.poll()
            connection.consume_input()
        return connection.get_result()

    def _require(self, result: PGresult) -> None:
        """Raise what a result says that it failed with."""
        if result.status != ExecStatus.FATAL_ERROR:
            return
        error = psycopg.errors.error_from_result(result)
        if self.is_lost and error.sqlstate is None:
            raise psycopg.OperationalError(str(error)) from error
        raise error

    def rollback(self) -> None:
        """Leave the transaction, if there is one. A connection that cannot do it is closed."""
        try:
            self._arrive()
            self.raw.rollback()
        except psycopg.Error:
            self.raw.close()

    def cancel(self) -> None:
        """Ask the server to end the statement that runs; from another thread."""
        if not capabilities.has_cancel_safe():  # an old libpq waits for a silent server for good
            self.cut()
            return
        with suppress(psycopg.Error):
            self.raw.cancel_safe(timeout=_CANCEL_SECONDS)

    def cut(self) -> None:
        """Break the connection, from another thread: whatever waits for the server fails at once."""
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.raw.fileno())) as its:
            its.shutdown(socket.SHUT_RDWR)

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self.raw.closed

    def close(self) -> None:
        self.raw.close()


class Result:
    __slots__ = ("_at", "_rows", "rowcount")

    def __init__(self, rows: list[PostgresRow], rowcount: int) -> None:
        self._rows = rows
        self._at = 0
        self.rowcount = rowcount
        """How many rows were changed."""

    def fetchall(self) -> list[Any]:
        rows = self._rows[self._at :] if self._at else self._rows
        self._at = len(self._rows)
        return rows

    def fetchmany(self, size: int = 1, /) -> list[Any]:
        rows = self._rows[self._at : self._at + size]
        self._at += len(rows)
        return rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


# Statements as they stand in the tables' functions, made into what psycopg takes


class Statement(NamedTuple):
    plain: str
    """For a statement without parameters, or for several at once."""
    text: str
    """With psycopg's placeholders."""


def translate(sql: str) -> Statement:
    r"""Return the statement for PostgreSQL: its twin where it has one.

        translate("SELECT 1 FROM feed WHERE id = :feed").text      # SELECT 1 FROM feed WHERE id = %(feed)s

    What is rewritten is what a dialect spells differently and means the same:

        :name, ?                        %(name)s, %s; every other % is doubled
        CROSS JOIN t ON ...             JOIN t ON ...   (in SQLite it also settles the order of the loops)
        IS :x, IS NOT :x                IS NOT DISTINCT FROM :x, IS DISTINCT FROM :x
        IN (SELECT value FROM json_each(:x))        = ANY (an array of the numbers), NOT IN: <> ALL
        x'00'                           '\x00'::bytea

    Whatever else differs stands beside its twin (`wholefeed.store.base.either`), and of a twin only the
    parameters are rewritten.
    """
    return _of_postgres(sql.postgres) if isinstance(sql, Sql) else _of_sqlite(sql)


_CACHED: Final = 2048
"""More than the program has, those it builds included."""


@lru_cache(_CACHED)
def _of_sqlite(sql: str) -> Statement:
    return _translated(sql, is_sqlite=True)


@lru_cache(_CACHED)
def _of_postgres(sql: str) -> Statement:
    return _translated(sql, is_sqlite=False)


_KEPT: Final = re.compile(
    r"""
    (?P<blob> \b[xX]'[0-9A-Fa-f]*' )
    | '(?:[^']|'')*' | "(?:[^"]|"")*"       # a text, a name
    | --[^\n]* | /\*.*?\*/                  # comments
    """,
    re.VERBOSE | re.DOTALL,
)


def _translated(sql: str, *, is_sqlite: bool) -> Statement:
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


# Texts that PostgreSQL refuses, written so that it takes them, and read back as they were


_MARK: Final = "\x7f"
"""What stands in each text that was changed."""
_REFUSED: Final = re.compile("[\0\x7f\ud800-\udfff]")
_WRITTEN: Final = re.compile("\x7f([0-9a-f]{4})")


def encode_text(text: str) -> bytes:
    r"""Return the text as PostgreSQL takes it, in UTF-8.

        encode_text("a\0b")                 # b"a\x7f0000b"
        unescape_text("a\x7f0000b")         # "a\0b"

    A text of PostgreSQL is valid UTF-8 without NUL. What publishers send may hold NUL and lone surrogates,
    and SQLite keeps both. Each such character is written as DEL and its number in four hexadecimal digits; so
    is DEL itself. JSON may hold DEL as it is, so what was written by `json.dumps` is still JSON.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return escape_text(text).encode()
    return escape_text(text).encode() if b"\0" in data or b"\x7f" in data else data


def escape_text(text: str) -> str:
    """Return the text without what PostgreSQL refuses."""
    return _REFUSED.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def unescape_text(text: str) -> str:
    """Return what was escaped. What `escape_text` has not written stays as it is."""
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), text)


# Values as they go to PostgreSQL and come back


def _register_adapters(context: AdaptContext) -> None:
    """Let a connection take and give values as SQLite does.

    Numbers are `bigint` and `double precision` whatever their size, so that a statement is prepared once;
    true and false go as 1 and 0; sums of numbers come back as int; texts are escaped as they go, and
    unescaped as rows are made (`_row_maker`).
    """
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
    """Return a whole number as int, another one as float: what SQLite's arithmetic gives."""
    return cast("Decimal", int(value) if value == value.to_integral_value() else float(value))


# Rows of a query as `sqlite3.Row` has them: by place, by name, in order


class PostgresRow(tuple[Any, ...]):
    """A row; each list of columns has a class of its own, which knows their names."""

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()
    places: ClassVar[dict[str, int]] = {}

    def keys(self) -> list[str]:
        return list(self.names)

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        """Return a value by its place or its column's name."""
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self.places[key])
            except KeyError:
                raise IndexError(f"no column {key}") from None
        return tuple.__getitem__(self, key)


_MakeRow = Callable[[tuple[Any, ...]], PostgresRow]
_TEXT_OIDS: Final = frozenset({19, 25, 705, 1042, 1043})
"""name, text, unknown, bpchar, varchar."""


def _row_maker(result: PGresult) -> _MakeRow:
    """Return what makes a row of the values of a result, whose texts are as they were stored."""
    columns = range(result.nfields)
    shape = _shape(tuple((result.fname(at) or b"").decode() for at in columns))
    with_text = tuple(at for at in columns if result.ftype(at) in _TEXT_OIDS)
    return partial(_row_made, shape, with_text) if with_text else shape


def _row_made(shape: type[PostgresRow], with_text: tuple[int, ...], values: tuple[Any, ...]) -> PostgresRow:
    for at in with_text:
        text = values[at]
        if text is not None and _MARK in text:
            return shape(unescape_text(each) if isinstance(each, str) else each for each in values)
    return shape(values)


_SHAPES: Final = 1024
"""More than the program's queries have, so that one class is made for each."""


@lru_cache(_SHAPES)
def _shape(names: tuple[str, ...]) -> type[PostgresRow]:
    places = {name: at for at, name in reversed(list(enumerate(names)))}
    made = type("PostgresRow", (PostgresRow,), {"__slots__": (), "names": names, "places": places})
    return cast("type[PostgresRow]", made)


# What PostgreSQL's errors mean to the service (docs/faults.md)


_REPEATED: Final = frozenset({"40001", "40P01", "23505"})
"""Serialization, deadlock; and a row that another replica made meanwhile, which is found the next time."""


def is_repeated(error: psycopg.Error) -> bool:
    """Whether the transaction may succeed when it is run again."""
    return error.sqlstate in _REPEATED


_READ_ONLY: Final = "25006"
"""A standby that is not promoted yet, a server that is one now, or an administrator's will."""
_CHANGED: Final = "0A000"
"""A statement was prepared before another replica's migration had changed a table."""


def is_stale(error: psycopg.Error) -> bool:
    """Whether a new connection may do what this one cannot, on a server that is well."""
    return error.sqlstate in (_READ_ONLY, _CHANGED)


def is_unusable(error: psycopg.Error) -> bool:
    """Whether another connection may do what this one cannot."""
    return is_stale(error) or _is_lost(error)


_FULL: Final = frozenset({"53100", _READ_ONLY})
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_BUSY_CLASSES: Final = ("08", "53", "57")
"""Connections, resources, an operator's intervention: statement timeouts, too."""
_BUSY: Final = frozenset({"55P03", "25P03", "40001", "40P01", "40003"})


def translated(error: psycopg.Error) -> WholefeedError:
    """Return what the service raises for an error."""
    state = error.sqlstate or ""
    if state in _FULL:
        return StorageFullError(f"the database cannot be written: {_message(error)}")
    if state in _DAMAGED:
        return StoreDamagedError(f"the database is damaged: {_message(error)}")
    if state in _BUSY or state.startswith(_BUSY_CLASSES) or _is_lost(error):
        return overloaded(f"the database cannot be asked now: {_message(error)}")
    return StoreError(f"the database failed ({state or 'no code'}): {_message(error)}")


_RETRY_AFTER_SECONDS: Final = 10
"""A server that was restarted, and a standby that was promoted, are there again by then."""


def overloaded(message: str) -> OverloadedError:
    """Return the error of a database that cannot be asked now."""
    return OverloadedError(message, retry_after_seconds=_RETRY_AFTER_SECONDS)


def _is_lost(error: psycopg.Error) -> bool:
    """Whether there is no connection, or none any more: libpq gives no code for that."""
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError | errors.InterfaceError)


def on_one_line(error: Exception) -> str:
    """Return what an error says; that of libpq has several lines."""
    return _joined(str(error)) or type(error).__name__


def _message(error: psycopg.Error) -> str:
    """Return the error on one line, without its detail, which quotes what was to be stored."""
    return _joined(error.diag.message_primary or "") or on_one_line(error)


def _joined(text: str) -> str:
    return " ".join(text.split())
