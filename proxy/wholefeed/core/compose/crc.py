"""The CRC-32 of texts that follow one another, from those of the texts (zlib's crc32_combine).

    crc = combine(crc_a, crc_b, crc_shift(len(b)))

A CRC is a polynomial over GF(2), bits reflected as in CRC-32 (RFC 1952, section 8).
"""

from __future__ import annotations

from functools import cache
from typing import Final

from isal import isal_zlib

ONE: Final = 1 << 31
"""`crc_shift(0)`."""

_X: Final = 1 << 30
_POLYNOMIAL: Final = 0xEDB88320
_MASK32: Final = 0xFFFFFFFF
_ZEROS_BITS: Final = 17
_ZEROS: Final = memoryview(bytes(1 << _ZEROS_BITS))


def crc_shift(length: int) -> int:
    """Return x^(8 * length) modulo the CRC's polynomial (zlib's crc32_combine_gen).

    For few bytes that is what as many zeros do to a CRC, which costs less than a multiplication; of more, the
    rest is multiplied.
    """
    zeros = _ZEROS[: length % len(_ZEROS)]
    operator = isal_zlib.crc32(zeros, ONE) ^ isal_zlib.crc32(zeros)
    for place in range(_ZEROS_BITS, length.bit_length()):
        if length >> place & 1:
            operator = _multiply(_square(place), operator)
    return operator


@cache
def _square(place: int) -> int:
    """Return x^(8 * 2^place) modulo the CRC's polynomial."""
    if place == 0:
        return _X_TO_8
    root = _square(place - 1)
    return _multiply(root, root)


def combine(crc_a: int, crc_b: int, shift_b: int) -> int:
    """Return the CRC-32 of a text A followed by a text B (zlib's crc32_combine_op).

    Args:
        crc_a: CRC of A; 0 when A is empty.
        crc_b: CRC of B.
        shift_b: `crc_shift` of B's length.
    """
    return _multiply(shift_b, crc_a) ^ crc_b


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials over GF(2) modulo the CRC's, bits reflected as in CRC-32."""
    product = 0
    while a:
        if a & ONE:
            product ^= b
        a = (a << 1) & _MASK32
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


def _x_to_8() -> int:
    operator = _X
    for _ in range(3):
        operator = _multiply(operator, operator)
    return operator


_X_TO_8: Final = _x_to_8()
