"""How far another replica is with the refresh of a feed, as it tells that in its lease."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from wholefeed.core.refresh.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A refresh that another replica does, as it was at its last sign of life."""

    is_confirmed: bool = False
    """Whether the publisher has been heard of the subscription document."""
    is_walking: bool = False
    """Whether a walk runs; else the counts mean nothing."""
    documents: int = 0
    entries: int = 0
    fetched: int = 0
    left: int | None = None
    seconds: float | None = None
    """Since the walk began to use the network."""

    @property
    def progress(self) -> Progress | None:
        """How far the walk is; None where none runs."""
        if not self.is_walking:
            return None
        return Progress(
            documents=self.documents, entries=self.entries, fetched=self.fetched, told_left=self.left
        )

    @property
    def walked_seconds(self) -> float | None:
        """Since the walk began to use the network; None: it does not."""
        return self.seconds

    @classmethod
    def at(cls, progress: Progress | None, seconds: float | None, *, is_confirmed: bool) -> Self:
        """Return what is told of a refresh."""
        if progress is None:
            return cls(is_confirmed=is_confirmed)
        return cls(
            is_confirmed=is_confirmed,
            is_walking=True,
            documents=progress.documents,
            entries=progress.entries,
            fetched=progress.fetched,
            left=progress.left,
            seconds=seconds,
        )

    def as_text(self) -> str:
        """Return what is kept in the lease."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what a lease tells: nothing yet, or from a replica of another version what is understood."""
        found = json.loads(text) if text else {}
        return cls(**{name: found[name] for name in cls.__dataclass_fields__ if name in found})
