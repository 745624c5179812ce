"""Documents that were parsed a moment ago, until they have been rendered: none is read twice for that."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from wholefeed.core.model import FeedDocument
from wholefeed.store.rows import DocumentRow

MAX_BYTES: Final = 16 << 20
"""Of all together. What does not fit is read from the store again."""


class FreshDocuments:
    """Belongs to one refresh, which is the only one that puts documents of its feed."""

    def __init__(self) -> None:
        self._documents: dict[int, tuple[bytes, FeedDocument]] = {}
        self._held_bytes = 0

    @property
    def numbers(self) -> Set[int]:
        """Of the documents that are here."""
        return self._documents.keys()

    def keep(self, number: int, digest: bytes, document: FeedDocument) -> None:
        """Take in what was put under a number; the oldest go when it becomes too much."""
        self._drop(number)
        self._documents[number] = (digest, document)
        self._held_bytes += len(document.text)
        while self._held_bytes > MAX_BYTES:
            self._drop(next(iter(self._documents)))

    def get(self, row: DocumentRow) -> FeedDocument | None:
        """Return a document as it is stored, if it is here."""
        digest, document = self._documents.get(row.id, (b"", None))
        return document if digest == row.digest else None

    def _drop(self, number: int) -> None:
        if number in self._documents:
            _, document = self._documents.pop(number)
            self._held_bytes -= len(document.text)
