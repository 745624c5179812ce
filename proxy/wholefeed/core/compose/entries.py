"""The entries of a reconstruction as objects, read from their documents where they are looked at.

entries = Entries([held(document, live) for document, live in ...])      # newest documents first
entries[0].title

What is held is the documents' bodies, deflated; the entries of one document at a time are objects.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Self, overload

from wholefeed.core.compose.compose import newest_first
from wholefeed.core.compose.deflate import Sealed, inflate, seal
from wholefeed.core.compose.fields import read_fields
from wholefeed.core.model import EntryId
from wholefeed.core.parse.documents import parse

_ANY_DEPTH: Final = 1 << 62
"""The documents were within the limits when they were fetched, whatever those are now."""
_OPENED: Final = 8
"""Documents that are kept open where entries are sorted across them."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a feed."""

    identity: str
    """What identifies it in its feed: atom:id, guid, rdf:about or JSON id as written; of an entry without one
    its link, else a URN that is made from its content. Two entries of a feed never have the same."""
    updated: datetime | None
    """When it was last updated, as far as its publisher says so by atom:updated, dcterms:modified or
    date_modified; aware, in UTC. RSS items mostly say nothing of it."""
    published: datetime | None
    """When it was published (atom:published, pubDate, dc:date, date_published); aware, in UTC."""
    title: str
    """As text in one line, without the markup of XHTML; HTML stays as written. Empty when there is none."""
    link: str
    """The page it stands for, absolute; empty when there is none."""
    source: bytes = field(repr=False)
    """The element or JSON object as its publisher wrote it, in UTF-8. Prefixes, language and base that it
    takes from its document are not repeated in it (`Feed.document` has it self-contained). Of a document
    that had to be repaired it is as repaired; of a remembered copy as it was kept: self-contained."""


class Held(NamedTuple):
    """One document of a feed, kept for its entries."""

    body: Sealed
    url: str
    media_type: str
    live: tuple[int, ...]
    """The entries that are the feed's, from the top."""


def held(body: bytes, url: str, media_type: str, live: Sequence[int], *, is_current: bool) -> Held:
    """Return a document as it is kept.

    Args:
        body: As fetched.
        url: After redirects.
        media_type: The whole Content-Type value.
        live: Which of its entries are the feed's.
        is_current: Whether this program's parser has counted them; else it is asked once more.

    Raises:
        ParseError: Another parser could read it, this one cannot.
    """
    if not is_current:
        known = len(parse(body, url, media_type, max_depth=_ANY_DEPTH).entries)
        live = [ordinal for ordinal in live if ordinal < known]
    return Held(seal(body), url, media_type, tuple(live))


class Entries(Sequence[Entry]):
    """The entries of a feed in output order (R20): documents newest first, in each the newest entry first.

    One document at a time is read and kept, so going through them in order reads each once, whereas jumping
    to and fro reads one for each jump; `list(feed.entries)` keeps them all, uncompressed. Of collected pages
    (R26), whose entries are sorted across them, some more are kept.

    Args:
        documents: In output order.
        ambiguous: Keys that identify no entry of the feed (R9).
        order: How the entries stand, as their places in the documents one after the other; None: as there.
    """

    def __init__(
        self,
        documents: Sequence[Held],
        ambiguous: Collection[EntryId] = (),
        order: Sequence[int] | None = None,
    ) -> None:
        self._documents = [each for each in documents if each.live]
        self._ends = list(itertools.accumulate(len(each.live) for each in self._documents))
        self._ambiguous = ambiguous
        self._order = order
        self._opened: tuple[tuple[int, list[Entry]], ...] = ()

    @classmethod
    def by_publication(cls, documents: Sequence[Held], ambiguous: Collection[EntryId] = ()) -> Self:
        """Return entries sorted by publication across their documents, each of which is read for it once."""
        dates = [each.published or each.updated for each in cls(documents, ambiguous)]
        order = newest_first([None if date is None else date.timestamp() for date in dates])
        return cls(documents, ambiguous, order)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Entry]:
        if self._order is None:
            for place in range(len(self._documents)):
                yield from self._open(place)
        else:
            yield from (self[place] for place in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Entry: ...

    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        wanted = index + len(self) if index < 0 else index
        if not 0 <= wanted < len(self):
            raise IndexError(f"expected an entry from 0 to {len(self) - 1}, got {index}")
        if self._order is not None:
            wanted = self._order[wanted]
        place = bisect_right(self._ends, wanted)
        return self._open(place)[wanted - self._ends[place]]  # counted from the end of its document

    def __repr__(self) -> str:
        return f"<{len(self)} entries>"

    def _open(self, place: int) -> list[Entry]:
        for opened, entries in self._opened:
            if opened == place:
                return entries
        entries = _read(self._documents[place], self._ambiguous)
        kept = self._opened[: _OPENED - 1] if self._order is not None else ()
        self._opened = ((place, entries), *kept)  # at once, for threads that share the feed
        return entries


def _read(kept: Held, ambiguous: Collection[EntryId]) -> list[Entry]:
    body = inflate(kept.body.block, kept.body.length, kept.body.crc32)
    document = parse(body, kept.url, kept.media_type, max_depth=_ANY_DEPTH)
    document = document.identified({*ambiguous, *document.ambiguous})
    order = newest_first([document.entries[ordinal].order_at for ordinal in kept.live])
    ordinals = [kept.live[place] for place in order]
    made = []
    for ordinal, fields in zip(ordinals, read_fields(document, ordinals), strict=True):
        entry = document.entries[ordinal]
        made.append(
            Entry(
                identity=fields.identity,
                updated=None if entry.updated_at is None else instant(entry.updated_at),
                published=None if fields.published_at is None else instant(fields.published_at),
                title=fields.title,
                link=fields.link,
                source=document.text[entry.start : entry.end],
            )
        )
    return made


def instant(at: float) -> datetime:
    """Return seconds since the epoch as an aware datetime in UTC."""
    return _EPOCH + timedelta(seconds=at)
