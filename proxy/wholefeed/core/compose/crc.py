"""The CRC-32 of texts that follow one another, from those of the texts.

    crc = combine(crc_a, crc_b, len(b))

A CRC is a polynomial over GF(2), bits reflected as in CRC-32 (RFC 1952, section 8).
"""

from __future__ import annotations

from typing import Final

from isal import isal_zlib

_ONE: Final = 1 << 31


def combine(crc_a: int, crc_b: int, length_b: int) -> int:
    """Return the CRC-32 of a text A followed by a text B (zlib's crc32_combine).

    Args:
        crc_a: CRC of A; 0 when A is empty.
        crc_b: CRC of B.
        length_b: Of B, in bytes; it may be beyond 32 bits.
    """
    return isal_zlib.crc32_combine(crc_a, crc_b, length_b)


def crc_shift(length: int) -> int:
    """Return x^(8 * length) modulo the CRC's polynomial (zlib's crc32_combine_gen).

    It stands beside each text that is stored: earlier versions, which may run on the same store, go by it.
    """
    return isal_zlib.crc32_combine(_ONE, 0, length)
