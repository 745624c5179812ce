"""Which copy of an entry stays, and in which order the copies of a document stand (R10, R19, R20)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.model.said import DAY, Copy, Doc


@dataclass
class Held:
    """A document as it was had last."""

    doc: Doc
    fetched_at: float
    checked_at: float
    is_settled: bool = False
    """Of an archive: whether it was looked at when it was no longer the newest."""

    @property
    def is_final(self) -> bool:
        """R13."""
        return self.is_settled and ("archive" in self.doc.flags or not self.doc.is_uncacheable)


class Placed(NamedTuple):
    """A copy in an attached document."""

    copy: Copy
    role: str
    document: str
    """Path; empty for what is remembered."""
    position: int
    """Of its document in the output."""
    ordinal: int
    instant: float | None
    document_updated: float | None


NEARNESS: Final = {"subscription": 0, "memory": 1, "archive": 2, "page": 2}
NEVER: Final = float("-inf")


def or_never(instant: float | None) -> float:
    return NEVER if instant is None else instant


def counted(copy: Copy, held: Held) -> float | None:
    """R10: an instant more than a day after the fetch counts as none."""
    return None if copy.updated is None or copy.updated > held.fetched_at + DAY else copy.updated


def precedence(placed: Placed) -> tuple[float, float, int, int, int]:
    """R10."""
    return (
        or_never(placed.instant), or_never(placed.document_updated),
        -NEARNESS[placed.role], -placed.position, -placed.ordinal,
    )  # fmt: skip


def is_buried(placed: Placed, burials: Iterable[tuple[str, float, tuple[int, int]]]) -> bool:
    """R19: not updated after its deletion; undated in the tombstone's own document or an older one."""
    place = (NEARNESS[placed.role], placed.position)
    return any(
        name == placed.copy.name and (place >= where if placed.instant is None else placed.instant <= when)
        for name, when, where in burials
    )


def newest_first(group: Sequence[Placed]) -> list[Placed]:
    """R20: by date; undated entries where they stand."""
    dated = [each for each in group if each.copy.order is not None]
    dated.sort(key=lambda each: -(each.copy.order or 0.0))
    rest = iter(dated)
    return [each if each.copy.order is None else next(rest) for each in group]
