"""The state of the listings in a publisher's pages, and their effect on the feed (rules H1, H7, H8)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Protocol, Self, TypeVar

from wholefeed.core.listing.finding import FoundLists, LookMemory, LookOutcome, MissingPage
from wholefeed.core.listing.joined_sources import SourceOutcome
from wholefeed.core.model import Family, State
from wholefeed.core.notes import DatesGuessed, DocumentUnavailable, LimitReached, Note
from wholefeed.core.text.dates import DAY_SECONDS

# Time until the next look at the pages (H8).
LOOK_AGAIN_SECONDS: Final = 30 * DAY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingState:
    looked_at: float | None = None
    """End of the last look, epoch seconds; None if nobody has looked."""
    family: str = ""
    """The feed's format then, used for the listed entries (R23)."""
    known: LookMemory = field(default_factory=LookMemory)
    pages: int = 0
    missing: tuple[MissingPage, ...] = ()
    looked: tuple[LookOutcome, ...] = ()
    """Rejected pages, with reasons."""
    limit: int = 0
    """The limit of pages, if the list has more; else 0."""
    guessed: int = 0
    """Entries dated by a month or year alone, or by a newer entry (H5)."""
    retry_at: float | None = None
    """Earliest next request: the publisher refuses (R32)."""
    again_at: float | None = None
    """Time of an early next look: the last one found no list, and a request failed."""
    failed: int = 0
    """Such looks in a row; the pauses between them grow."""
    sources: tuple[SourceOutcome, ...] = ()
    """The sources at the last look for all of them; the one that counts stands first (H10)."""

    @classmethod
    def of(cls, found: FoundLists, *, before: ListingState, family: Family, now: float, limit: int) -> Self:
        guessed = sum(each.dated_by in _GUESSED for page in found.pages for each in page.entries)
        is_same = bool(before.known.first_url) and before.known.first_url == found.known.first_url
        return cls(
            looked_at=now,
            family=family,
            known=found.known,
            pages=max(len(found.pages), before.pages if is_same else 0),
            missing=found.missing,
            looked=found.looked[:_MOST_LOOKED],
            limit=limit if found.is_cut else 0,
            guessed=guessed + (before.guessed if is_same else 0),
            sources=before.sources if is_same and len(found.sources) < len(before.sources) else found.sources,
        )

    @classmethod
    def read(cls, text: str) -> Self:
        if text == NOTHING_LISTED:
            return cls()
        values: dict[str, Any] = {k: v for k, v in json.loads(text).items() if k in _DEFAULTS}
        if "known" in values:
            values["known"] = LookMemory.of(values["known"])
        if "missing" in values:
            values["missing"] = tuple(MissingPage(**each) for each in values["missing"])
        if "looked" in values:
            values["looked"] = tuple(LookOutcome(**each) for each in values["looked"])
        if "sources" in values:
            values["sources"] = tuple(SourceOutcome(**each) for each in values["sources"])
        return cls(**values)

    def written(self) -> str:
        return json.dumps({k: v for k, v in asdict(self).items() if v != _DEFAULTS[k]})

    def postpone(self, before: ListingState, paused_until: float | None, *, now: float) -> ListingState:
        """Return this result after failures. The publisher refuses requests until `paused_until` (R32)."""
        if self.known.first_url:
            return replace(self, retry_at=paused_until)
        doubled: int = 1 << min(before.failed, 8)
        pause = min(DAY_SECONDS * doubled, LOOK_AGAIN_SECONDS)
        return replace(self, retry_at=paused_until, again_at=now + pause, failed=before.failed + 1)

    def next_at(self, attempts: Iterable[float], *, now: float) -> float:
        """Return the time of the next look: in a month, or when a page is due (R14)."""
        found = [now + LOOK_AGAIN_SECONDS, *attempts]
        at: float = min(found if self.again_at is None else [*found, self.again_at])
        return at if self.retry_at is None else max(at, self.retry_at)

    def notes(self) -> Iterator[Note]:
        for each in self.missing:
            yield DocumentUnavailable(each.url, reason=each.slug)
        if self.limit:
            yield LimitReached(self.known.first_url, limit="history.list_pages", value=self.limit)
        if self.guessed:
            yield DatesGuessed(self.known.first_url, entries=self.guessed)

    def without_lists(self, state: State, missing: Sequence[_M]) -> tuple[State, tuple[_M, ...]]:
        """Return the state of the feed without its listings, and the documents missing then (H1)."""
        # The state for `listed=off`: a feed that lacks only pages of a listing is `remembered`.
        pages = {note.url for note in self.notes() if note.partial}
        left = tuple(each for each in missing if each.url not in pages)
        lacks_pages_alone = state is State.PARTIAL and bool(missing) and not left
        return (State.REMEMBERED if state is State.LISTED or lacks_pages_alone else state), left


class _MissingDocument(Protocol):
    @property
    def url(self) -> str: ...


_M = TypeVar("_M", bound=_MissingDocument)


NOTHING_LISTED: Final = "{}"
_DEFAULTS: Final = asdict(ListingState())
_GUESSED: Final = frozenset({"month", "year", "neighbour"})
_MOST_LOOKED: Final = 32
