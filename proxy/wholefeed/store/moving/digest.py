"""What a table holds, in a number that two databases of different kinds agree on. Pure.

    digest = Digest()
    digest.add((1, "https://example.org/feed", None))
    digest == other                 # the same rows, in whatever order they came

It is the sum of the rows' SHA-256 (modulo 2**256), because the two sort texts each in their own way. That
finds every accident; it is no proof against somebody who chooses rows to deceive it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import Any, Final

_MODULUS: Final = 1 << 256
_DOUBLE: Final = struct.Struct(">d")
_LENGTH: Final = struct.Struct(">Q")


class Digest:
    """Of rows that are added one by one."""

    def __init__(self) -> None:
        self.rows = 0
        self._sum = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and (self.rows, self._sum) == (other.rows, other._sum)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def add(self, row: Iterable[Any]) -> None:
        """Add a row of None, int, float, str and bytes."""
        packed = b"".join(map(_packed, row))
        self._sum = (self._sum + int.from_bytes(hashlib.sha256(packed).digest())) % _MODULUS
        self.rows += 1

    @property
    def hex(self) -> str:
        """The sum, for people."""
        return f"{self._sum:064x}"


def _packed(value: Any) -> bytes:
    """Return a value so that no two different rows come to the same bytes."""
    match value:
        case None:
            return b"N"
        case int():
            return b"I%d;" % value
        case float():
            return b"F" + _DOUBLE.pack(value)
        case str():
            text = value.encode("utf-8", "surrogatepass")
            return b"T" + _LENGTH.pack(len(text)) + text
        case bytes():
            return b"B" + _LENGTH.pack(len(value)) + value
        case _:
            raise TypeError(f"expected what a database holds, got {type(value).__name__}")
