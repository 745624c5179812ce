"""Which of the copies of each identity wins, where they come from the store in chunks (R8, R10, R19)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from wholefeed.core.merge.merge import Copy, choose
from wholefeed.core.merge.tombstones import Burial
from wholefeed.core.terms import Role
from wholefeed.store.columns import member
from wholefeed.store.database import Row

_role: Final = member(Role)


@dataclass(slots=True)
class Contest:
    """Chooses among copies that arrive in chunks, sorted by identity."""

    subscription_updated_at: float | None
    burials: Mapping[bytes, Sequence[Burial]]
    identity: bytes | None = None
    best: Copy | None = None
    place: tuple[int, int] = (0, 0)
    """Document and ordinal of the best."""
    was_live: bool = False
    fallen: list[tuple[int, int]] = field(default_factory=list)
    """Copies that were live and lost."""

    def take(self, rows: Sequence[Row]) -> Iterator[tuple[int, int, int]]:
        """Yield (document, ordinal, is_live) for what changes, of each identity that is through."""
        for identity, group in groupby(rows, key=lambda row: row["identity"]):
            if identity != self.identity:
                yield from self.end()
                self.identity = identity
            self._compare(list(group))

    def end(self) -> Iterator[tuple[int, int, int]]:
        """Yield what changes of the last identity."""
        for place in self.fallen:
            yield (*place, 0)
        if self.best is not None and not self.was_live:
            yield (*self.place, 1)
        self.best = None
        self.fallen = []

    def _compare(self, rows: Sequence[Row]) -> None:
        copies = [copy_of(key, row) for key, row in enumerate(rows)]
        if self.best is not None:
            copies.insert(0, self.best._replace(key=-1))
        best = choose(
            copies,
            subscription_updated_at=self.subscription_updated_at,
            settled=bool(rows[0]["is_gone"]),
            burials=self.burials.get(rows[0]["identity"], ()),
        )
        key = -1 if best is None else best.key
        self.fallen.extend(
            (row["document"], row["ordinal"]) for at, row in enumerate(rows) if row["is_live"] and at != key
        )
        if key < 0:
            return
        if self.best is not None and self.was_live:
            self.fallen.append(self.place)
        self.best = best
        self.place = (rows[key]["document"], rows[key]["ordinal"])
        self.was_live = bool(rows[key]["is_live"])


def copy_of(key: int, row: Row) -> Copy:
    """Read a row of an entry and its document."""
    return Copy(
        key=key,
        updated_at=row["updated_at"],
        role=_role(row["role"]),
        position=row["rank"],
        ordinal=row["ordinal"],
        document_updated_at=row["document_updated_at"],
        fetched_at=row["fetched_at"],
        generated_at=row["made_at"],
        is_collected=bool(row["is_collected"]),
    )
