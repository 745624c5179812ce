"""Documents of a walk that have come one soon after the other, until they are stored in one transaction.

    number = gathered.add(intent, obtained)     # below 0: a stand-in
    puts = gathered.take()                      # to be stored now
    gathered.stored(numbers)                    # or `give_back`
    gathered.number(number)                     # what it has become

Identities are hashes: the entries of a document change as many pages of their index as there are entries, and
those of sixteen documents little more. Who walks alone waits for the disk once for all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from wholefeed.core.jobs.reading import DocumentFacts
from wholefeed.core.refresh import intents
from wholefeed.core.refresh.progress import Progress
from wholefeed.service.documents.shapes import Put, new_document
from wholefeed.service.documents.source import Obtained

MOST_TOGETHER: Final = 16
_MOST_BYTES: Final = 3 << 19
LONGEST_SECONDS: Final = 0.1
"""From the first of them on. A crash loses as much, and a publisher is asked for it again."""


class Gathered:
    """Belongs to one refresh."""

    def __init__(self) -> None:
        self._puts: list[_Waiting] = []
        self._leaving: list[_Waiting] = []
        self._since = 0.0
        self._given = 0
        self._numbers: dict[int, int] = {}

    def __len__(self) -> int:
        """How many documents are not known to be stored yet."""
        return len(self._leaving) + len(self._puts)

    @property
    def are_waiting(self) -> bool:
        """Whether there are any that nobody is storing."""
        return bool(self._puts)

    @property
    def facts(self) -> list[DocumentFacts]:
        """What was read of them."""
        return [each.facts for each in (*self._leaving, *self._puts)]

    def left_out_of(self, progress: Progress) -> Progress:
        """Return the progress of a walk without what is not known to be stored yet."""
        if not (entries := [len(each.entries) for each in self.facts]):
            return progress
        documents = progress.documents - len(entries)
        return replace(progress, documents=documents, entries=progress.entries - sum(entries))

    @property
    def left_seconds(self) -> float:
        """For how long they may wait for others."""
        size_bytes = sum(len(each.put.new.body) for each in self._puts)
        if len(self._puts) >= MOST_TOGETHER or size_bytes >= _MOST_BYTES:
            return 0.0
        return max(0.0, self._since + LONGEST_SECONDS - time.monotonic())

    def add(self, intent: intents.Put, obtained: Obtained) -> int:
        """Take in a document that nothing is stored of; return a stand-in for its number."""
        if not self._puts:
            self._since = time.monotonic()
        self._given -= 1
        self._puts.append(_Waiting(self._given, described(intent, obtained), obtained.read.facts))
        return self._given

    def take(self) -> list[Put]:
        """Hand over what waits, in the order in which it came; nobody else may before that is stored."""
        self._leaving, self._puts = self._puts, []
        return [each.put for each in self._leaving]

    def stored(self, numbers: Sequence[int]) -> None:
        """Take in what they are stored under."""
        given = [each.number for each in self._leaving]
        self._numbers.update(zip(given, numbers, strict=True))
        self._leaving = []

    def give_back(self) -> None:
        """Let them wait again: they could not be stored."""
        self._leaving, self._puts = [], [*self._leaving, *self._puts]

    def number(self, given: int) -> int:
        """Return what a document is stored under, whose number or stand-in that is."""
        return self._numbers.get(given, given)


class _Waiting(NamedTuple):
    number: int
    put: Put
    facts: DocumentFacts


def described(intent: intents.Put, obtained: Obtained) -> Put:
    """Return what a decision wants put, as it came."""
    return new_document(
        intent.stored_url,
        obtained,
        role=intent.role,
        rank=intent.rank,
        is_settled=intent.is_settled,
        brought_news=intent.brought_news,
        found_by=intent.found_by,
        found_in=intent.found_in,
    )
