"""Storing the documents on the path of a walk, in the order of the path."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from wholefeed.core.model import Relation
from wholefeed.core.notes import DocumentTruncated, Ending, Note
from wholefeed.core.refresh.arrivals import FreshDocument, Placement
from wholefeed.core.refresh.asking import Attach, Drop, KeepDocument, Talk, ask
from wholefeed.core.refresh.responses import FoundDocument, Joined, Responses, WalkContext
from wholefeed.core.refresh.stored import StoredDocument


class Keeper:
    def __init__(self, context: WalkContext) -> None:
        self.context = context
        self.basis = context.basis
        self.responses = context.responses
        self.path: list[int] = []
        self.notes: list[Note] = []
        self.pending: list[Joined] = []
        """Documents on the path not stored yet, newest first."""
        ranks = [row.rank for row in context.stored.values() if row.rank is not None]
        self._first_rank = min(ranks, default=0) - _RANKS_PER_WALK

    def begin(self) -> Talk[None]:
        yield from ()

    def is_needed_before(self, url: str) -> bool:
        """Return whether the next document depends on news in pending ones."""
        raise NotImplementedError

    def keep_joined(self) -> Talk[None]:
        while self.pending:
            joined = self.pending[0]
            yield from self._keep(joined)
            self.pending.pop(0)
            last_url = self.context.chain.path[0].links.get(Relation.LAST, "")
            self.basis.progress.add(joined.url, joined.found.arrival.entries, last_url)

    def end(self, ending: Ending | None, missing_url: str) -> Talk[None]:
        """Finish the path at its end; with None, at a hole (R34) at `missing_url`."""
        yield from ()

    def _keep(self, joined: Joined) -> Talk[None]:
        found = joined.found
        self._remark(found)
        if found.fresh is not None:
            yield from self._keep_fresh(joined, found.fresh)
        else:
            assert found.row is not None, "what joins without a fetch is stored"
            self.path.append((yield from self._reattach(found.row, self._rank_of(joined))))

    def _keep_fresh(self, joined: Joined, fresh: FreshDocument) -> Talk[None]:
        raise NotImplementedError

    def _put(self, url: str, placement: Placement) -> Talk[int]:
        number = yield from ask(KeepDocument(url, placement))
        self.responses.remove(url)
        return number

    def _reattach(self, row: StoredDocument, rank: int) -> Talk[int]:
        if row.rank is None:
            yield Attach({row.id: rank})
        return row.id

    def _rank_of(self, joined: Joined) -> int:
        """Return a document's rank: its own if attached, else one before all stored ones."""
        row = joined.found.row
        return row.rank if row is not None and row.rank is not None else self._first_rank + joined.place

    def _remark(self, found: FoundDocument) -> None:
        """Note defects of a document that has joined: truncated, or only a memento (R33)."""
        url, row = found.arrival.url, found.row
        if found.fresh is not None:
            self.notes += [replace(note, url=url) for note in found.fresh.reading_notes]
        elif row is not None and row.is_stand_in:
            self.notes.append(row.as_memento())
        elif self.basis.is_truncated(url):
            self.notes.append(DocumentTruncated(url, breaks_off=True))


# Distance between the ranks of walks: new archives rank before all stored ones.
_RANKS_PER_WALK: Final = 1 << 20


def drop(responses: Responses, fresh: FreshDocument) -> Talk[None]:
    responses.remove(fresh.arrival.url)
    yield Drop(fresh.arrival.url)
