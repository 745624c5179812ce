"""Small documents as they were parsed, for the refresh that replaces them: none is parsed twice for that.

    parsed = ParsedDocuments(max_bytes)
    parsed.keep(put)                # once it is stored
    document = parsed.find(row)     # None: its body is to be read and parsed

What is here depends on nothing but the bytes, where they came from and what they were said to be, and is
found by these. So nothing has to drop it: what no document is stored as any more goes with time.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from wholefeed.core.model import FeedDocument
from wholefeed.core.terms import Role
from wholefeed.service.documents.shapes import Put
from wholefeed.store.rows import DocumentRow, NewDocument

_ENTRY_BYTES: Final = 512
"""Of an entry: its numbers, its identity, their places in tuples."""
_KEYS_BYTES: Final = 320
_CHILD_BYTES: Final = 400
_OVERHEAD_BYTES: Final = 4096


class _Key(NamedTuple):
    digest: bytes
    final_url: str
    media_type: str


class ParsedDocuments:
    """Belongs to one service.

    Args:
        max_bytes: What it may come to; 0: nothing is kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[_Key, tuple[FeedDocument, int]] = OrderedDict()
        """Those asked for last at the end."""
        self.bytes = 0

    def keep(self, put: Put) -> None:
        """Hold a document that has been stored, if it is of those that are replaced: as feeds grow.

        Those not asked for longest go for it.
        """
        new, document = put.new, put.fresh.document
        is_replaced = new.role is Role.SUBSCRIPTION or (new.role is Role.MEMORY and not new.is_settled)
        if document is None or not is_replaced:
            return
        key, size = _key(new), _size(document)
        self._remove(key)
        self._held[key] = document, size
        self.bytes += size
        while self.bytes > self._max_bytes:
            self._remove(next(iter(self._held)))

    def find(self, row: DocumentRow) -> FeedDocument | None:
        """Return a stored document as it was parsed, if it is here."""
        key = _key(row)
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def drop(self, rows: Iterable[DocumentRow]) -> None:
        """Let go of documents that are being replaced."""
        for row in rows:
            self._remove(_key(row))

    def _remove(self, key: _Key) -> None:
        if key in self._held:
            self.bytes -= self._held.pop(key)[1]


def _key(document: DocumentRow | NewDocument) -> _Key:
    return _Key(document.digest, document.final_url, document.media_type)


def _size(document: FeedDocument) -> int:
    each = _ENTRY_BYTES + (_KEYS_BYTES if any(entry.keys for entry in document.entries) else 0)
    children = len(document.head.children) + len(document.head.links)
    return (
        sys.getsizeof(document.text)
        + each * len(document.entries)
        + _CHILD_BYTES * children
        + _OVERHEAD_BYTES
    )
