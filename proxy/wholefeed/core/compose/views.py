"""What one reader is given: the entries that a view takes, and word of a feed that is partial (R16).

A view (limit, since, a page, at most so many bytes) is cut from segments in output order, newest first
(docs/design.md#segments). What it leaves out whole is never looked at; a segment that it takes in part is
given to `kept` as the slices that its entries are:

    cut = Cut(view, total, room=1_000_000)
    for segment in segments:
        match cut.take(segment):
            case Take.WHOLE: ...
            case Take.PART: ...             # cut.kept(slices from cut.skipped on, number): entries to send
            case Take.NONE: ...
    cut.is_cut                              # whether anything was left out

An entry without a date goes with the one before it in its segment; in a segment without dates all are kept.

Of a partial feed a pseudo-entry says in plain words what is missing and why, in the feed's own format (R16;
RFC 5005, 4.2; PaceFeedState): URLs and reasons only, with a stable id, so that it does not churn. It promises
nothing. Readers keep it once they have seen it. So when every document that was missing has been had, an
entry of the same id and a later date takes its word back, for `HEALED_SECONDS`; `ViewTurn` knows where a feed
stands.
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
    """What a reader wants of a feed."""

    limit: int | None = None
    """So many entries, the first in output order."""
    since: float | None = None
    """Only entries dated at or after this instant, epoch seconds."""
    max_bytes: int | None = None
    """An answer of at most so many bytes, without content coding."""
    page: FeedPage | None = None
    """The entries of one page."""
    has_listed: bool = True
    """Whether with those that stand in the publisher's pages alone (H7)."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is ever left out."""
        return self == WHOLE

    @property
    def may_be_whole(self) -> bool:
        """Whether nothing is left out of a feed that is short enough, and has nothing listed."""
        return self.limit is None and self.since is None and self.page is None

    def places(self, total: int) -> range:
        """Return which entries a feed of so many shows by their places in output order, the newest at 0."""
        if self.page is not None:
            return self.page.places(total)
        return range(_UNLIMITED if self.limit is None else self.limit)


class FeedPage(NamedTuple):
    """A page of a feed that is asked for in pages (G1; RFC 5005, 3).

    They are counted from the oldest entry on, so that a new one moves nothing: each has as many entries as
    the next, but for the first one to read, which has the newest and bears the highest number.
    """

    size: int
    number: int | None = None
    """None: the first one to read."""

    def count(self, total: int) -> int:
        """Return how many pages a feed of so many entries has."""
        return max(1, total // self.size)

    def places(self, total: int) -> range:
        """Return where its entries stand in output order; the page must be there."""
        count = self.count(total)
        number = self.number or count
        assert number <= count, "a page that is there"
        return range(0 if number == count else total - number * self.size, total - (number - 1) * self.size)

    def links(self, total: int, first_url: str) -> tuple[tuple[str, str], ...]:
        """Return the links of the page by their relations; `first_url` is where the first one to read is.

        No page but that one changes when it grows into two: `previous` is a number also where the first one
        to read bears that, which has none, and answers under its number too.
        """
        count = self.count(total)
        number = self.number or count
        found = [("first", first_url), ("last", f"{first_url}&page=1")]
        if number > 1:
            found.append(("next", f"{first_url}&page={number - 1}"))
        if number < count:
            found.append(("previous", f"{first_url}&page={number + 1}"))
        return tuple(found)


WHOLE: Final = View()
_UNLIMITED: Final = 1 << 62


class Cut:
    """One view on its way through a feed's segments, which hold `total` entries.

    Its entries may come to `room` bytes (None: any number); the answer puts `joint` bytes between two
    segments.
    """

    def __init__(self, view: View, total: int, *, room: int | None = None, joint: int = 0) -> None:
        places = view.places(total)
        self._since = view.since
        self.skipped = places.start
        """Entries before the view, in the segments that are to come."""
        self._entries = len(places)
        self._room = _UNLIMITED if room is None else max(0, room)
        self._most = self._room - joint
        """Bytes that no entry may be longer than."""
        self._joint = joint
        self._is_full = False
        self._has_skipped = False
        self.is_cut = False
        """Whether anything was left out so far."""
        self.newest_at: float | None = None
        """The latest date of what was taken so far, epoch seconds; None: nothing that is dated was."""

    def take(self, segment: _ViewSpan, own: int | None = None) -> Take:
        """Return how much of the next segment the view takes, of so many of its `own` entries; None: all."""
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
        if not fits and self._has_skipped:  # one segment was read for the sake of the room: no more
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
        """Return which of a number of entries the view takes of a segment that it takes in part.

        `slices` are theirs but for those that are `skipped`; no more of them are looked at than it takes to
        fill the view. One that is longer than all the room is passed over: it would hide everything behind it
        for ever.
        """
        wanted = self._find_dated(slices)
        self.skipped = 0
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
    """How much of a segment a view takes."""

    WHOLE = auto()
    PART = auto()
    NONE = auto()


class _ViewSpan(Protocol):
    """What a segment's row tells without its text."""

    @property
    def entries(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def newest_at(self) -> float | None: ...
    @property
    def oldest_at(self) -> float | None: ...


def entries_of(family: Family, text: bytes, version: str = "") -> list[Slice]:
    """Return the entries of a segment's text, in order; `version` is what the segment was made for."""
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


# What is said of a partial feed


class _PageMessage(NamedTuple):
    title: str
    text: str


def told_missing(missing: Sequence[MissingRange]) -> _PageMessage:
    """Return what a reader of a partial feed is told, of at least one document."""
    said = "; ".join(f"{document.url}: {slug_in_words(document.reason)}" for document in missing)
    if all(document.reason == DocumentTruncated.slug for document in missing):  # row 49
        return _PageMessage(
            "This feed broke off",
            "Nothing says that older entries are missing, but a document of this feed broke off before its"
            f" end, or went on behind it. The entries that were whole in it are shown. {said}.",
        )
    return _PageMessage(
        "Older entries of this feed are missing",
        "This feed's history is kept in several documents, and not all of them could be read. Entries that"
        f" stand in them, or behind them, are not shown. {said}.",
    )


class MissingRange(NamedTuple):
    """A document that is not in the reconstruction, as the reader is told of it."""

    url: str
    reason: str


HEALED: Final = _PageMessage(
    "No entries of this feed are missing any more",
    "Documents of this feed that could not be read before have been read. The entries in them are shown now.",
)


def compose_warning(
    family: Family, told: _PageMessage, *, identifier: str, url: str, dated_at: float, version: str = ""
) -> bytes:
    """Return the pseudo-entry.

    The identifier is its atom:id, guid, rdf:about or JSON id, the URL the
    proxy's page of the feed, the version the subscription document's (empty: the family's usual one).
    """
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
    """Atom 0.3 asks for issued and modified, and for the type of the link."""
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
"""Of what it links to."""


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
    """How far readers know that a feed is partial."""

    NONE = ""
    UNSENT = "unsent"
    SENT = "sent"
    LOST = "lost"
    """It was sent, and part of what was missing will never be had: nothing takes it back."""
    HEALED = "healed"


class ViewTurn(NamedTuple):
    """Where a feed stands.

    The turns of one feed, each dated later than the one before:

        NONE -- partial --> UNSENT -- a reader gets it --> SENT -- all was had --> HEALED
        SENT -- unlinked, never had --> LOST
        HEALED -- partial --> UNSENT
        UNSENT and LOST -- no longer partial --> NONE
    """

    warned: Warned
    dated_at: float | None
    """What the entry is dated, or the last one was; None: there was none yet."""

    def next(self, first_failed_at: float | None, *, is_lost: bool, now: float) -> ViewTurn:
        """Return where it stands once it is published.

        What is missing now failed first at `first_failed_at` (None: nothing is missing). `is_lost`: something
        that was missing is neither missing any more nor was it had.
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
            case _:
                return ViewTurn(Warned.NONE, self.dated_at)

    def is_healed_at(self, now: float) -> bool:
        """Whether it is said now that the feed has healed."""
        ends_at = self.healed_until
        return ends_at is not None and now < ends_at

    @property
    def healed_until(self) -> float | None:
        """When it is said no longer that the feed has healed; None where it is not said at all."""
        if self.warned is not Warned.HEALED or self.dated_at is None:
            return None
        return self.dated_at + HEALED_SECONDS

    def _later(self, instant: float) -> float:
        """Instants are written in whole seconds."""
        return instant if self.dated_at is None else max(instant, self.dated_at + 1)


HEALED_SECONDS: Final = 14 * DAY_SECONDS
"""How long it is said that a feed has healed."""
