"""Which entries a walk has met: a set that stays small, at the price of rarely claiming too much.

Exact up to a few thousand keys; from there a Bloom filter of a fixed 2 MiB that takes a new key for a known
one once in 500 at a million keys. Rule R17 asks whether fifty documents in a row brought nothing
new, so a single mistake changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from wholefeed.core.model import EntryId

EXACT_KEYS: Final = 4096
"""Keys that are kept as they are; most feeds never have more."""

FILTER_BITS: Final = 1 << 24

_PROBES: Final = 4
_MASK: Final = FILTER_BITS - 1
_WORD: Final = (1 << 64) - 1
_SPREAD: Final = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio
_HALVES: Final = struct.Struct("<QQ")
_INSTANT: Final = struct.Struct("<d")

_EVER: Final = float("-inf")

Key = tuple[EntryId, float | None]
"""Identity and update instant: an update is something new (rule R17)."""


def has_news(keys: Iterable[Key], known: Mapping[EntryId, float | None]) -> bool:
    """Return whether one of the keys is an entry, or an update of one, that is not known.

    Args:
        keys: Of a document's entries.
        known: The latest update instant of each known identity among them; None where it has none.
    """
    return any(
        identity not in known or (instant is not None and instant > (known[identity] or _EVER))
        for identity, instant in keys
    )


class SeenKeys:
    """The keys added so far."""

    def __init__(self) -> None:
        self._exact: set[Key] | None = set()
        self._bits = bytearray()

    def add(self, keys: Iterable[Key]) -> bool:
        """Add keys; return whether one of them was new."""
        has_new = False
        for key in keys:
            if self._exact is None:
                has_new |= self._mark(key)
            elif key not in self._exact:
                has_new = True
                self._exact.add(key)
                if len(self._exact) > EXACT_KEYS:
                    self._spill(self._exact)
        return has_new

    def _spill(self, exact: set[Key]) -> None:
        self._exact = None
        self._bits = bytearray(FILTER_BITS // 8)
        for key in exact:
            self._mark(key)

    def _mark(self, key: Key) -> bool:
        """Set the key's bits; return whether one of them was clear."""
        identity, instant = key
        low, high = _HALVES.unpack(identity)
        if instant is not None:
            low ^= int.from_bytes(_INSTANT.pack(instant), "little") * _SPREAD & _WORD
        is_new = False
        bits = self._bits
        step = (high ^ low >> 32) | 1
        place = low
        for _ in range(_PROBES):
            index, bit = (place & _MASK) >> 3, 1 << (place & 7)
            if not bits[index] & bit:
                bits[index] |= bit
                is_new = True
            place += step
        return is_new
