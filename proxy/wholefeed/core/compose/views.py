"""Cut a reader's view from segments, and warn of a partial feed (R16).

An undated entry follows the one before it in its segment; a segment without dates stays whole.

The warning is a pseudo-entry in the feed's format (RFC 5005, 4.2; PaceFeedState); its stable id avoids churn.
It has URLs and reasons only. Readers keep it, so after recovery a later entry of the same id takes it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple, Protocol, assert_never

from wholefeed.core.compose.compose import synthesize
from wholefeed.core.compose.segments import Slice
from wholefeed.core.model import ATOM_03, Family, default_namespace, segment_end
from wholefeed.core.notes import DocumentTruncated
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.slugs import slug_in_words
from wholefeed.core.text.dates import DAY_SECONDS, format_rfc822, format_rfc3339
from wholefeed.core.text.markup import escape, quoteattr

# Views


class View(NamedTuple):
    limit: int | None = None
    """Number of entries, from the newest."""
    since: float | None = None
    """Epoch seconds; older entries are left out."""
    max_bytes: int | None = None
    """Size of the answer without content coding."""
    page: FeedPage | None = None
    has_listed: bool = True
    """Whether entries found only in the publisher's pages count (H7)."""
    has_texts: bool = False
    """Whether entries have the texts of their pages (T1)."""
    as_atom: bool = False
    """Whether a JSON Feed is sent as Atom (F1)."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is ever left out."""
        return self == WHOLE

    @property
    def may_be_whole(self) -> bool:
        return self.limit is None and self.since is None and self.page is None

    def places(self, total: int) -> range:
        """Return the output places shown of `total` entries; 0 is the newest."""
        if self.page is not None:
            return self.page.places(total)
        return range(_UNLIMITED if self.limit is None else self.limit)


class FeedPage(NamedTuple):
    """A page of a feed (G1; RFC 5005, 3).

    Pages count from the oldest entry, so a new one moves nothing. The first to read has the highest number,
    and less than twice the size.
    """

    size: int
    number: int | None = None
    """None: the first to read."""

    def count(self, total: int) -> int:
        return max(1, total // self.size)

    def places(self, total: int) -> range:
        """Return the entries' output places; the page must exist."""
        count = self.count(total)
        number = self.number or count
        assert number <= count, "a page that is there"
        return range(0 if number == count else total - number * self.size, total - (number - 1) * self.size)

    def links(self, total: int, first_url: str) -> tuple[tuple[str, str], ...]:
        """Return relations and URLs; `first_url` is the first page to read."""
        count = self.count(total)
        number = self.number or count
        found = [("first", first_url), ("last", f"{first_url}&page=1")]
        if number > 1:
            found.append(("next", f"{first_url}&page={number - 1}"))
        # a number even for the first page, which answers to it too: no other page changes when that one
        # grows into two
        if number < count:
            found.append(("previous", f"{first_url}&page={number + 1}"))
        return tuple(found)


WHOLE: Final = View()
_UNLIMITED: Final = 1 << 62


class Cut:
    """One view on its way through segments.

    `room` limits bytes of entries (None: no limit); `joint` bytes separate segments.
    """

    def __init__(self, view: View, total: int, *, room: int | None = None, joint: int = 0) -> None:
        places = view.places(total)
        self._since = view.since
        self.skipped = places.start
        """Entries to skip in coming segments."""
        self._entries = len(places)
        self._room = _UNLIMITED if room is None else max(0, room)
        self._most = self._room - joint
        """Bytes; longer entries are passed over."""
        self._joint = joint
        self._is_full = False
        self._has_skipped = False
        self.is_cut = False
        """Whether anything was left out so far."""
        self.newest_at: float | None = None
        """Latest date taken, epoch seconds; None: none dated."""

    def take(self, segment: _ViewSpan, own: int | None = None) -> Take:
        """Return how much of the next segment to take, of its `own` entries (None: all)."""
        if not segment.entries:
            return Take.WHOLE
        entries = segment.entries if own is None else own
        is_before = (
            self._since is not None and segment.newest_at is not None and segment.newest_at < self._since
        )
        if self._is_full or self._entries == 0 or is_before or self.skipped >= entries:
            self.skipped = max(0, self.skipped - entries)
            self.is_cut = self.is_cut or entries > 0
            return Take.NONE
        is_after = self._since is None or segment.oldest_at is None or segment.oldest_at >= self._since
        fits = segment.length + self._joint <= self._room
        if not fits and self._has_skipped:  # a long entry was passed over: read no further part
            self._is_full = self.is_cut = True
            return Take.NONE
        is_all = not self.skipped and is_after and entries <= self._entries and fits
        if not is_all or entries < segment.entries:
            return Take.PART
        self._entries -= entries
        self._room -= segment.length + self._joint
        self._note_dates([segment.newest_at])
        return Take.WHOLE

    def kept(self, slices: Iterable[Slice], number: int) -> list[Slice]:
        """Return the entries that the view takes of `number` in a segment of `Take.PART`.

        `slices` start behind the `skipped` ones; only those needed are read.
        """
        wanted = self._find_dated(slices)
        self.skipped = 0
        self._room -= self._joint
        taken: list[Slice] = []
        for each in wanted:
            size = each.end - each.start
            if size > self._most:  # it would hide everything behind it for ever
                self._has_skipped = True
                continue
            if len(taken) == self._entries or size > self._room:
                self._is_full = True
                break
            self._room -= size
            taken.append(each)
        self._entries -= len(taken)
        self.is_cut = self.is_cut or len(taken) < number
        self._note_dates(each.order_at for each in taken)
        return taken

    def _note_dates(self, dates: Iterable[float | None]) -> None:
        found = [at for at in (self.newest_at, *dates) if at is not None]
        self.newest_at = max(found, default=None)

    def _find_dated(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        since, is_wanted = self._since, True
        for each in slices:
            if since is not None and each.order_at is not None:
                is_wanted = each.order_at >= since
            if is_wanted:
                yield each


class Take(Enum):
    WHOLE = auto()
    PART = auto()
    NONE = auto()  # the segment is not read


class _ViewSpan(Protocol):
    @property
    def entries(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def newest_at(self) -> float | None: ...
    @property
    def oldest_at(self) -> float | None: ...


def entries_of(family: Family, text: bytes, version: str = "") -> list[Slice]:
    """Return the entries of a segment's text; `version` is the segment's."""
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


# The warning of a partial feed


class _PageMessage(NamedTuple):
    title: str
    text: str


def told_missing(missing: Sequence[MissingRange]) -> _PageMessage:
    """Return the warning's words; `missing` must not be empty."""
    said = "; ".join(f"{document.url}: {slug_in_words(document.reason)}" for document in missing)
    if all(document.reason == DocumentTruncated.slug for document in missing):  # row 49
        return _PageMessage(
            "A document of this feed is cut off",
            "Nothing says that older entries are missing, but a document of this feed broke off before its"
            f" end, or went on behind it. Only entries that are whole in it can be shown. {said}.",
        )
    return _PageMessage(
        "Older entries of this feed are missing",
        "This feed's history is kept in several documents, and not all of them could be read. Entries that"
        f" stand in them, or behind them, are not shown. {said}.",
    )


class MissingRange(NamedTuple):
    url: str
    reason: str


HEALED: Final = _PageMessage(
    "No entries of this feed are missing any more",
    "Documents of this feed that could not be read before have been read. The entries in them are shown now.",
)


def compose_warning(
    family: Family, told: _PageMessage, *, identifier: str, url: str, dated_at: float, version: str = ""
) -> bytes:
    """Return the pseudo-entry; `url` is the proxy's page of the feed, an empty `version` the usual one."""
    instant = format_rfc3339(dated_at)
    match family:
        case Family.ATOM:
            entry = _atom(told, identifier, url, instant, is_old=version == ATOM_03)
        case Family.RSS:
            entry = _rss(told, identifier, url, format_rfc822(dated_at))
        case Family.RDF:
            entry = _rdf(told, identifier, url, instant)
        case Family.JSON:
            entry = _json(told, identifier, url, instant)
        case unreachable:
            assert_never(unreachable)
    return entry.encode() + segment_end(family)


def _atom(told: _PageMessage, identifier: str, url: str, instant: str, *, is_old: bool) -> str:
    """Write an entry; Atom 0.3 requires issued, modified and the link's type."""
    dates = f"<updated>{escape(instant)}</updated>"
    media_type = ""
    if is_old:
        dates = f"<issued>{escape(instant)}</issued><modified>{escape(instant)}</modified>"
        media_type = f' rel="alternate" type="{_PAGE_TYPE}"'
    return (
        f"<entry><title>{escape(told.title)}</title><id>{escape(identifier)}</id>{dates}"
        f"<author><name>{_AUTHOR}</name></author>"
        f"<link{media_type} href={quoteattr(url)}/><summary>{escape(told.text)}</summary></entry>"
    )


_AUTHOR: Final = "wholefeed"
_PAGE_TYPE: Final = "text/html"


def _rss(told: _PageMessage, identifier: str, url: str, instant: str) -> str:
    return (
        f"<item><title>{escape(told.title)}</title><link>{escape(url)}</link>"
        f'<guid isPermaLink="false">{escape(identifier)}</guid><pubDate>{escape(instant)}</pubDate>'
        f"<description>{escape(escape(told.text))}</description></item>"
    )


def _rdf(told: _PageMessage, identifier: str, url: str, instant: str) -> str:
    return (
        f"<item rdf:about={quoteattr(identifier)}><title>{escape(told.title)}</title>"
        f"<link>{escape(url)}</link><dc:date>{escape(instant)}</dc:date><dc:creator>{_AUTHOR}</dc:creator>"
        f"<description>{escape(escape(told.text))}</description></item>"
    )


def _json(told: _PageMessage, identifier: str, url: str, instant: str) -> str:
    item = {
        "id": identifier,
        "url": url,
        "title": told.title,
        "content_text": told.text,
        "date_published": instant,
        "author": {"name": _AUTHOR},
        "authors": [{"name": _AUTHOR}],
    }
    return json.dumps(item, ensure_ascii=False)


# How far readers know


class Warned(StrEnum):
    """Readers' knowledge of a partial feed."""

    NONE = ""
    UNSENT = "unsent"
    SENT = "sent"
    LOST = "lost"
    """Sent, but something missing will never come: nothing takes it back."""
    HEALED = "healed"


class ViewTurn(NamedTuple):
    """A feed's state of warning.

    Each turn is dated later than the one before:

        NONE -- partial --> UNSENT -- a reader gets it --> SENT -- all obtained --> HEALED
        SENT -- unlinked, never obtained --> LOST
        HEALED -- partial --> UNSENT
        UNSENT and LOST -- no longer partial --> NONE
        NONE -- a reader gets it only now --> HEALED
    """

    warned: Warned
    dated_at: float | None
    """Date of the last entry; None: none yet."""

    def next(self, first_failed_at: float | None, *, is_lost: bool, now: float) -> ViewTurn:
        """Return the state after a publication.

        `first_failed_at` is the instant of the first failure among missing documents (None: none). `is_lost`:
        one is no longer missing, yet was never obtained.
        """
        warned = Warned.LOST if is_lost and self.warned is Warned.SENT else self.warned
        if first_failed_at is not None:
            if warned in (Warned.NONE, Warned.HEALED):
                return ViewTurn(Warned.UNSENT, self._later(first_failed_at))
            return ViewTurn(warned, self.dated_at)
        match warned:
            case Warned.SENT:
                return ViewTurn(Warned.HEALED, self._later(now))
            case Warned.HEALED:
                return self
            case _ if is_lost or warned is Warned.LOST:
                # another date: whoever gets the warning only now must not hear that it has healed
                return ViewTurn(Warned.NONE, None if self.dated_at is None else self.dated_at + 1)
            case _:
                return ViewTurn(Warned.NONE, self.dated_at)

    def is_healed_at(self, now: float) -> bool:
        ends_at = self.healed_until
        return ends_at is not None and now < ends_at

    @property
    def healed_until(self) -> float | None:
        """Epoch seconds until which the healed entry is sent; None: never."""
        if self.warned is not Warned.HEALED or self.dated_at is None:
            return None
        return self.dated_at + HEALED_SECONDS

    def _later(self, instant: float) -> float:
        """Return a later date; dates have whole seconds."""
        return instant if self.dated_at is None else max(instant, self.dated_at + 1)


HEALED_SECONDS: Final = 14 * DAY_SECONDS
