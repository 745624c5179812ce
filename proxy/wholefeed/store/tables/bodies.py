"""The bodies of documents, as fetched, compressed: the source of truth.

zstd level 3 keeps Atom text at 28.7 % where isal's level 2 keeps 34.9 %, at 251 MB/s; bodies are read
seldom and kept for good, so size counts (`benchmarks/deflate.py`).
"""

from __future__ import annotations

import sys
from typing import Final

from wholefeed.errors import StoreError
from wholefeed.store.database import Database
from wholefeed.store.statements import fetch_one

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL: Final = 3
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_SMALL_BYTES: Final = 1 << 18
"""Up to here zstd is set up once. That clears 110 to 180 pages, which for a body of 12 KB takes twice as long
as to compress it; what larger ones need comes to megabytes."""
_idle: Final[list[zstd.ZstdCompressor]] = []
"""As many as were at work at once; each frame is one's own."""
_GET: Final = "SELECT length, coded FROM body WHERE document = :document"


def encode(body: bytes) -> bytes:
    """Return the body as it is stored."""
    if len(body) > _SMALL_BYTES:
        return zstd.compress(body, options=_OPTIONS)
    try:
        compressor = _idle.pop()
    except IndexError:
        compressor = zstd.ZstdCompressor(options=_OPTIONS)
    coded = compressor.compress(body, zstd.ZstdCompressor.FLUSH_FRAME)
    _idle.append(compressor)
    return coded


def read(db: Database, document: int) -> bytes:
    """Return a document's body as it was fetched, decoded.

    Raises:
        StoreError: There is no such document, or its body is damaged.
    """
    row = fetch_one(db, _GET, {"document": document})
    if row is None:
        raise StoreError(f"no body is stored for document {document}")
    return _decoded(row["coded"], row["length"])


def _decoded(coded: bytes, length: int) -> bytes:
    try:
        body = zstd.decompress(coded)
    except zstd.ZstdError as exc:
        raise StoreError(f"a stored body is damaged: {exc}") from exc
    if len(body) != length:
        raise StoreError(f"a stored body is damaged: expected {length} bytes, got {len(body)}")
    return body
