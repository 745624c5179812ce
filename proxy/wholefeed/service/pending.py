"""Documents of a walk that wait to be stored together: `PendingDocuments`."""

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
"""So long the first of them waits. A crash loses as much, and a publisher is asked for it again."""


class PendingDocuments:
    """Documents of a walk that have come one soon after the other, until they are stored in one transaction.

        number = pending.add(new, facts)           # below 0: a stand-in
        await pending.put(storage)                 # they are stored now
        pending.number(number)                     # what it has become

    Identities are hashes: the entries of a document change as many pages of their index as there are entries,
    and those of sixteen documents little more. Who walks alone waits for the disk once for all of them.
    """

    def __init__(self) -> None:
        self._waiting: list[_WaitingDocument] = []
        self._leaving: list[_WaitingDocument] = []
        """Those that are being stored."""
        self._since = 0.0
        self._stand_in = 0
        self._numbers: dict[int, int] = {}
        """What stand-ins have become."""

    def __len__(self) -> int:
        """How many documents are not known to be stored yet."""
        return len(self._leaving) + len(self._waiting)

    @property
    def are_waiting(self) -> bool:
        """Whether there are any that nobody is storing."""
        return bool(self._waiting)

    @property
    def facts(self) -> list[DocumentFacts]:
        return [each.facts for each in (*self._leaving, *self._waiting)]

    def left_out_of(self, progress: RefreshProgress) -> RefreshProgress:
        """Return the progress of a walk without what is not known to be stored yet."""
        if not (entries := [len(each.entries) for each in self.facts]):
            return progress
        documents = progress.documents - len(entries)
        return replace(progress, documents=documents, entries=progress.entries - sum(entries))

    @property
    def left_seconds(self) -> float:
        """For how long they may wait for others."""
        size_bytes = sum(len(each.new.body) for each in self._waiting)
        if len(self._waiting) >= MOST_TOGETHER or size_bytes >= _MOST_BYTES:
            return 0.0
        return max(0.0, self._since + LONGEST_SECONDS - time.monotonic())

    def add(self, new: NewDocument, facts: DocumentFacts) -> int:
        """Take in a document that nothing is stored of; return a stand-in for its number."""
        if not self._waiting:
            self._since = time.monotonic()
        self._stand_in -= 1
        self._waiting.append(_WaitingDocument(self._stand_in, new, facts))
        return self._stand_in

    async def put(self, storage: FeedStorage) -> None:
        """Put what waits, in the order in which it came; what cannot be put waits on."""
        if not self._waiting:
            return
        self._leaving, self._waiting = self._waiting, []
        try:
            numbers = await storage.put([each.new for each in self._leaving])
        except (StoreError, OverloadedError):  # who publishes meanwhile goes on all the same
            self._leaving, self._waiting = [], [*self._leaving, *self._waiting]
            raise
        stand_ins = [each.number for each in self._leaving]
        self._numbers.update(zip(stand_ins, numbers, strict=True))
        self._leaving = []

    def number(self, document: int) -> int:
        """Return what a document is stored under, whose number or stand-in that is."""
        return self._numbers.get(document, document)


class _WaitingDocument(NamedTuple):
    number: int
    new: NewDocument
    facts: DocumentFacts
