"""The bodies of documents, as fetched, compressed: the source of truth.

zstd level 3 keeps Atom text at 28.7 % where isal's level 2 keeps 34.9 %, at 251 MB/s; bodies are read
seldom and kept for good, so size counts (`benchmarks/deflate.py`).
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import aiosqlite

from wholefeed.errors import StoreError
from wholefeed.store.sqlite.connection import fetch_one

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL: Final = 3
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_IN_THREAD_BYTES: Final = 64 * 1024
"""From here on coding takes longer than handing it to a thread."""

_GET: Final = "SELECT length, coded FROM body WHERE document = :document"


async def encode(body: bytes) -> bytes:
    """Return the body as it is stored."""
    if len(body) < _IN_THREAD_BYTES:
        return zstd.compress(body, options=_OPTIONS)
    return await asyncio.to_thread(zstd.compress, body, options=_OPTIONS)


async def decode(coded: bytes, length: int) -> bytes:
    """Return a stored body.

    Raises:
        StoreError: It is damaged.
    """
    try:
        if length < _IN_THREAD_BYTES:
            body = zstd.decompress(coded)
        else:
            body = await asyncio.to_thread(zstd.decompress, coded)
    except zstd.ZstdError as exc:
        raise StoreError(f"a stored body is damaged: {exc}") from exc
    if len(body) != length:
        raise StoreError(f"a stored body is damaged: expected {length} bytes, got {len(body)}")
    return body


async def find(db: aiosqlite.Connection, document: int) -> tuple[int, bytes]:
    """Return length and coded form of a document's body.

    Raises:
        StoreError: There is no such document.
    """
    row = await fetch_one(db, _GET, {"document": document})
    if row is None:
        raise StoreError(f"no body is stored for document {document}")
    return row["length"], row["coded"]
