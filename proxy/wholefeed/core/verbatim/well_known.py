"""Which of the prefixes that everybody knows a text uses: the output's root declares them."""

from __future__ import annotations

from typing import Final

from wholefeed.core.terms import WELL_KNOWN_PREFIXES

ALL_PREFIXES: Final = (1 << len(WELL_KNOWN_PREFIXES)) - 1

_BITS: Final = tuple((b"%s:" % prefix.encode(), 1 << bit) for bit, prefix in enumerate(WELL_KNOWN_PREFIXES))


def prefixes_in(text: bytes, among: int = ALL_PREFIXES) -> int:
    """Return the mask of the well-known prefixes that occur as `prefix:` in the text.

    Args:
        text: Fragments, or any text with names in it.
        among: The prefixes to look for. `Fragments.prefixes` saves looking for what cannot be there.
    """
    mask = 0
    for needle, bit in _BITS:
        if among & bit and text.rfind(needle) >= 0:  # where there is none, in two thirds of the time of `in`
            mask |= bit
    return mask
