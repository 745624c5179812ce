"""What a walk along a trail starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wholefeed.core.refresh.stored import StoredDocument
from wholefeed.core.text.urls import document_key


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailStart:
    """What a walk along a trail starts from, beside what all walks of a refresh do."""

    stored: Mapping[str, StoredDocument]
    """The documents that may stand on it, attached or not, by `document_key` of their URL."""
    relation: str
    first_rank: int
    """Rank of the first new document; the others follow."""
    subscription_changed_at: float
    """When the subscription document was last had with a change, epoch seconds."""

    def stored_as(self, url: str) -> StoredDocument | None:
        """Return the stored document of a URL, however it is spelled."""
        return self.stored.get(document_key(url))

    def rank(self, row: StoredDocument | None, place: int) -> int:
        """Return the rank of the document at a place of the path: one that is attached keeps its own."""
        return row.rank if row is not None and row.rank is not None else self.first_rank + place
