"""Pending documents of a walk."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final, NamedTuple

from wholefeed.core.facts import DocumentFacts
from wholefeed.core.refresh.basis import RefreshProgress
from wholefeed.errors import OverloadedError, StoreError
from wholefeed.service.storing import FeedStorage
from wholefeed.store.rows import NewDocument

MOST_TOGETHER: Final = 16
_MOST_BYTES: Final = 3 << 19
LONGEST_SECONDS: Final = 0.1
"""Longest wait of the first document. A crash loses as much, which is fetched again."""


class PendingDocuments:
    """Documents of a walk, stored in one transaction.

    Sixteen documents change hardly more pages of the index than one, and wait for the disk once.
    """

    def __init__(self) -> None:
        self._waiting: list[_WaitingDocument] = []
        self._leaving: list[_WaitingDocument] = []
        """Being stored now."""
        self._since = 0.0
        self._stand_in = 0
        self._numbers: dict[int, int] = {}
        """By stand-in."""

    def __len__(self) -> int:
        """Return the count, including documents being stored."""
        return len(self._leaving) + len(self._waiting)

    @property
    def are_waiting(self) -> bool:
        """Whether any are not being stored."""
        return bool(self._waiting)

    @property
    def facts(self) -> list[DocumentFacts]:
        return [each.facts for each in (*self._leaving, *self._waiting)]

    def left_out_of(self, progress: RefreshProgress) -> RefreshProgress:
        """Return the progress without unstored documents."""
        if not (entries := [len(each.entries) for each in self.facts]):
            return progress
        documents = progress.documents - len(entries)
        return replace(progress, documents=documents, entries=progress.entries - sum(entries))

    @property
    def left_seconds(self) -> float:
        size_bytes = sum(len(each.new.body) for each in self._waiting)
        if len(self._waiting) >= MOST_TOGETHER or size_bytes >= _MOST_BYTES:
            return 0.0
        return max(0.0, self._since + LONGEST_SECONDS - time.monotonic())

    def add(self, new: NewDocument, facts: DocumentFacts) -> int:
        """Add a document without a stored version; return a negative stand-in for its number."""
        if not self._waiting:
            self._since = time.monotonic()
        self._stand_in -= 1
        self._waiting.append(_WaitingDocument(self._stand_in, new, facts))
        return self._stand_in

    async def put(self, storage: FeedStorage) -> None:
        """Store waiting documents in order; after an error they wait on."""
        if not self._waiting:
            return
        self._leaving, self._waiting = self._waiting, []
        try:
            numbers = await storage.put([each.new for each in self._leaving])
        except (StoreError, OverloadedError):  # a concurrent publication goes on all the same
            self._leaving, self._waiting = [], [*self._leaving, *self._waiting]
            raise
        stand_ins = [each.number for each in self._leaving]
        self._numbers.update(zip(stand_ins, numbers, strict=True))
        self._leaving = []

    def number(self, document: int) -> int:
        return self._numbers.get(document, document)


class _WaitingDocument(NamedTuple):
    number: int
    new: NewDocument
    facts: DocumentFacts
