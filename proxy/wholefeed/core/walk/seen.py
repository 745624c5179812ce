"""Which entries a walk has met: a set that stays small, at the price of rarely claiming too much.

Exact up to some thousands of keys, of which hashes of 64 bits are kept: Python's own, which nobody foresees.
From there a Bloom filter of a fixed 2 MiB that takes a new key for a known one once in 500 at a million keys.
Rule R17 asks whether fifty documents in a row brought nothing new, so a single mistake changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from wholefeed.core.model import EntryId

EXACT_KEYS: Final = 1 << 14
"""Keys that are kept each by itself, in 1 MiB; most feeds never have more."""

FILTER_BITS: Final = 1 << 24

_PROBES: Final = 4
_MASK: Final = FILTER_BITS - 1
_AT_ONCE: Final = 1024
"""Keys that are added before it is seen how many there are."""

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
        self._exact: set[int] | None = set()
        self._bits = bytearray()

    def add(self, keys: Iterable[Key]) -> bool:
        """Add keys; return whether one of them was new."""
        hashes = map(hash, keys)
        has_new = False
        while self._exact is not None:
            before = len(self._exact)
            taken = list(islice(hashes, _AT_ONCE))
            self._exact.update(taken)
            has_new = has_new or len(self._exact) > before
            if len(self._exact) > EXACT_KEYS:
                self._spill(self._exact)
            if len(taken) < _AT_ONCE:
                return has_new
        for each in hashes:
            has_new |= self._mark(each)
        return has_new

    def _spill(self, exact: set[int]) -> None:
        self._exact = None
        self._bits = bytearray(FILTER_BITS // 8)
        for each in exact:
            self._mark(each)

    def _mark(self, key: int) -> bool:
        """Set the bits of a key's hash; return whether one of them was clear."""
        is_new = False
        bits, place, step = self._bits, key, key >> 24 | 1
        for _ in range(_PROBES):
            index, bit = (place & _MASK) >> 3, 1 << (place & 7)
            if not bits[index] & bit:
                bits[index] |= bit
                is_new = True
            place += step
        return is_new
