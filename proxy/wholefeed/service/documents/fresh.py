"""What was read a moment ago, until it has been rendered: no document is read twice for that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from wholefeed.core.jobs.rendering import Composed, Rendered, Style
from wholefeed.core.model import FeedDocument
from wholefeed.store.rows import DocumentRow

MAX_BYTES: Final = 12 << 20
"""Of all together. What does not fit is read from the store again."""

ANY: Final = -1
"""Whichever entries are live: the document itself is there."""


class Fresh(NamedTuple):
    """A document that has been put, in the shapes that are at hand: parsed where it is small."""

    digest: bytes
    document: FeedDocument | None = None
    composed: Composed | None = None
    """Of a subscription document."""
    rendered: Rendered | None = None
    style: Style | None = None
    """It was rendered for this."""

    @property
    def size_bytes(self) -> int:
        """What it takes, about."""
        held = 0 if self.document is None else 2 * len(self.document.text)
        return held + (0 if self.rendered is None else len(self.rendered.sealed.block))

    @property
    def at_hand(self) -> int | None:
        """How many entries have to be live for the body not to be needed, or `ANY`; None: it is needed."""
        if self.document is not None:
            return ANY
        return None if self.rendered is None else self.rendered.entries

    def fits(self, style: Style) -> bool:
        """Whether it can be sent as it was rendered."""
        if self.rendered is None or self.style is None:
            return False
        is_alike = self.style.namespace == style.namespace and self.style.family is style.family
        return is_alike and self.rendered.context in (None, style.digest)


def at_hand(documents: Mapping[int, Fresh]) -> dict[int, int]:
    """Return how many entries have to be live for a document's body not to be needed, or `ANY`."""
    entries = {number: fresh.at_hand for number, fresh in documents.items()}
    return {number: count for number, count in entries.items() if count is not None}


class FreshDocuments:
    """Belongs to one refresh, which is the only one that puts documents of its feed."""

    def __init__(self) -> None:
        self._documents: dict[int, Fresh] = {}
        self._held_bytes = 0
        self._new_bytes = 0
        self._is_much: asyncio.Event | None = None
        """Whoever waits until it is much makes it; few refreshes have any who does."""

    def keep(self, number: int, fresh: Fresh) -> None:
        """Take in what was put under a number; the oldest go when it becomes too much."""
        self._drop(number)
        self._documents[number] = fresh
        self._held_bytes += fresh.size_bytes
        self._new_bytes += fresh.size_bytes
        if self._is_much is not None and self._has_much:
            self._is_much.set()
        while self._held_bytes > MAX_BYTES:
            self._drop(next(iter(self._documents)))

    async def grown(self, within_seconds: float) -> None:
        """Wait until so much has come since that some would go before it is rendered, or for so long."""
        self._is_much = asyncio.Event()
        if not self._has_much:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_seconds):
                    await self._is_much.wait()
        self._new_bytes = 0

    @property
    def _has_much(self) -> bool:
        return self._new_bytes > MAX_BYTES * 3 // 4

    def drop(self, numbers: Iterable[int]) -> None:
        """Let go of documents that will hardly be rendered again."""
        for number in numbers:
            self._drop(number)

    def get(self, row: DocumentRow) -> Fresh | None:
        """Return what is here of a document as it is stored."""
        fresh = self._documents.get(row.id)
        return fresh if fresh is not None and fresh.digest == row.digest else None

    def at_hand(self) -> Mapping[int, int]:
        """Return how many entries have to be live for a document's body not to be needed, or `ANY`."""
        return at_hand(self._documents)

    def _drop(self, number: int) -> None:
        if number in self._documents:
            self._held_bytes -= self._documents.pop(number).size_bytes
