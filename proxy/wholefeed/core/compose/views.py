"""Views for readers with a cap: which entries a reader wants, newest first (docs/design.md#segments).

A view is cut from segments in output order. What it leaves out whole is never looked at; a segment that it
takes in part is given to `kept` as the slices that its entries are:

    cut = Cut(view, room=1_000_000)
    for segment in segments:
        match cut.take(segment):
            case Take.WHOLE: ...
            case Take.PART: ...             # cut.kept(slices, number) are the entries to send
            case Take.NONE: ...
    cut.is_cut                              # whether anything was left out

An entry without a date goes with the one before it in its segment; in a segment without dates all are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol

from wholefeed.core.compose.outline import Slice
from wholefeed.core.compose.synthesize import synthesize
from wholefeed.core.formats import default_namespace
from wholefeed.core.parse.documents import parse
from wholefeed.core.terms import Family

UNLIMITED: Final = 1 << 62


class View(NamedTuple):
    """What a reader wants of a feed."""

    limit: int | None = None
    """So many entries, the first in output order."""
    since: float | None = None
    """Only entries dated at or after this instant, epoch seconds."""
    max_bytes: int | None = None
    """An answer of at most so many bytes, without content coding."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is ever left out."""
        return self == WHOLE

    @property
    def may_be_whole(self) -> bool:
        """Whether nothing is left out of a feed that is short enough."""
        return self.limit is None and self.since is None


WHOLE: Final = View()


class Span(Protocol):
    """What is known of a segment without its text."""

    @property
    def entries(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def newest_at(self) -> float | None: ...
    @property
    def oldest_at(self) -> float | None: ...


class Take(Enum):
    """How much of a segment a view takes."""

    WHOLE = auto()
    PART = auto()
    NONE = auto()


class Cut:
    """One view on its way through a feed's segments.

    Args:
        view: What is wanted.
        room: Bytes that the entries may come to; None: any number.
        joint: Bytes that the answer puts between two segments.
    """

    def __init__(self, view: View, *, room: int | None = None, joint: int = 0) -> None:
        self._since = view.since
        self._entries = UNLIMITED if view.limit is None else view.limit
        self._room = UNLIMITED if room is None else max(0, room)
        self._most = self._room - joint
        """Bytes that no entry may be longer than."""
        self._joint = joint
        self._is_full = False
        self._has_skipped = False
        self.is_cut = False
        """Whether anything was left out so far."""

    def take(self, segment: Span) -> Take:
        """Return how much of the next segment the view takes."""
        if not segment.entries:
            return Take.WHOLE
        is_before = (
            self._since is not None and segment.newest_at is not None and segment.newest_at < self._since
        )
        if self._is_full or self._entries == 0 or is_before:
            self.is_cut = True
            return Take.NONE
        is_after = self._since is None or segment.oldest_at is None or segment.oldest_at >= self._since
        fits = segment.length + self._joint <= self._room
        if not fits and self._has_skipped:  # one segment was read for the sake of the room: no more
            self._is_full = self.is_cut = True
            return Take.NONE
        if not is_after or segment.entries > self._entries or not fits:
            return Take.PART
        self._entries -= segment.entries
        self._room -= segment.length + self._joint
        return Take.WHOLE

    def kept(self, slices: Iterable[Slice], number: int) -> list[Slice]:
        """Return which of a number of entries the view takes of a segment that it takes in part.

        No more of them are looked at than it takes to fill the view.
        One that is longer than all the room is passed over: it would hide everything behind it for ever.
        """
        wanted = self._dated(slices)
        self._room -= self._joint
        taken: list[Slice] = []
        for each in wanted:
            size = each.end - each.start
            if size > self._most:
                self._has_skipped = True
                continue
            if len(taken) == self._entries or size > self._room:
                self._is_full = True
                break
            self._room -= size
            taken.append(each)
        self._entries -= len(taken)
        self.is_cut = self.is_cut or len(taken) < number
        return taken

    def _dated(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        since, is_wanted = self._since, True
        for each in slices:
            if since is not None and each.order_at is not None:
                is_wanted = each.order_at >= since
            if is_wanted:
                yield each


def entries_of(family: Family, text: bytes, version: str = "") -> list[Slice]:
    """Return the entries of a segment's text, in order.

    Args:
        family: Of the feed.
        text: Of the segment.
        version: Of the subscription document, which the segment was made for; empty for the usual one.
    """
    made = synthesize(family, "2.0", [text], namespace=default_namespace(family, version))
    document = parse(made, "http://segment.invalid/", max_depth=UNLIMITED)
    if not document.entries:
        return []
    begins = document.entries[0].start
    starts = [entry.start - begins for entry in document.entries]
    ends = [*starts[1:], len(text)]
    return [
        Slice(start, end, entry.order_at)
        for start, end, entry in zip(starts, ends, document.entries, strict=True)
    ]
