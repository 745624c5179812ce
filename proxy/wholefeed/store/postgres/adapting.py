"""How values go to PostgreSQL and come back, so that they are what SQLite takes and gives.

Numbers are `bigint` and `double precision` whatever their size, so that a statement is prepared once; true
and false go as 1 and 0; sums of numbers come back as int; texts are escaped as they go (`.texts`;
`.rows` reads them).
"""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from psycopg.abc import AdaptContext, Buffer
from psycopg.types.numeric import FloatBinaryDumper, Int8BinaryDumper, NumericBinaryLoader, NumericLoader
from psycopg.types.string import StrDumperUnknown

from wholefeed.store.postgres import texts


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer:
        return texts.encode(obj)


class _NumericLoader(NumericLoader):
    def load(self, data: Buffer) -> Decimal:
        return _number(super().load(data))


class _NumericBinaryLoader(NumericBinaryLoader):
    def load(self, data: Buffer) -> Decimal:
        return _number(super().load(data))


def register(context: AdaptContext) -> None:
    """Let a connection take and give values so."""
    adapters = context.adapters
    if adapters is None:
        return
    adapters.register_dumper(str, _TextDumper)
    for number in (int, bool):
        adapters.register_dumper(number, Int8BinaryDumper)
    adapters.register_dumper(float, FloatBinaryDumper)
    adapters.register_loader("numeric", _NumericLoader)
    adapters.register_loader("numeric", _NumericBinaryLoader)


def _number(value: Decimal) -> Decimal:
    """Return a whole number as int, another one as float: what SQLite's arithmetic gives."""
    return cast("Decimal", int(value) if value == value.to_integral_value() else float(value))
