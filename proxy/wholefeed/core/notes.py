"""Notes: typed remarks on documents, such as why a feed is partial or a walk ended.

Codes are stored in databases, so they never change. `slug` is the reason in `/status`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Note:
    code: str
    url: str
    facts: Mapping[str, Any]

    @property
    def kind(self) -> NoteKind:
        return KINDS[self.code]

    @property
    def slug(self) -> str:
        return self.kind.slug

    @property
    def partial(self) -> bool:
        return self.kind.partial

    def __str__(self) -> str:
        text = self.kind.text
        said = text.format if isinstance(text, str) else text
        return said(url=self.url, **self.facts)

    def as_dict(self) -> dict[str, str]:
        shown = {"code": self.code, "url": self.url, "text": str(self)}
        return shown | {name: self.facts[name] for name in self.kind.shown}


class MadeFrom(Enum):
    """The input of a note, which decides where and how long it is stored."""

    FEED = auto()
    """The feed: notes are stored with it, and renewed at each publication."""
    BODY = auto()
    """A document's body: a newer parser renews notes."""
    LINKS = auto()
    """A document's links, stored as read: notes stay with them."""
    RESPONSE = auto()
    """The response, not stored: notes stay with the document."""
    EARLIER_TEXTS = auto()
    """Replaced texts: notes stay with the document."""


@dataclass(frozen=True, slots=True)
class NoteKind:
    code: str
    slug: str
    reference: str
    text: str | Callable[..., str]
    """A format of URL and facts, or a function of them."""
    made_from: MadeFrom = field(kw_only=True)
    partial: bool = False
    """Whether entries may be missing because of it."""
    shown: tuple[str, ...] = ()
    """Facts shown beside the text."""

    def __post_init__(self) -> None:
        KINDS[self.code] = self

    def __call__(self, url: str, **facts: Any) -> Note:
        return Note(self.code, url, facts)

    @property
    def is_of_reading(self) -> bool:
        """Whether the note is stored with a document."""
        return self.made_from is not MadeFrom.FEED

    @property
    def outlasts_reading(self) -> bool:
        """Whether the note survives a second reading of the body."""
        return self.made_from not in (MadeFrom.FEED, MadeFrom.BODY)


KINDS: Final[dict[str, NoteKind]] = {}


# fmt: off
# The documents of a chain


DocumentUnavailable: Final = NoteKind(
    "DocumentUnavailable", "unavailable", "RFC 5005, section 4.1", partial=True,
    made_from=MadeFrom.FEED,
    text="expected a document of this feed, got none ({reason}): {url}",
)
"""Older documents are out of reach. `reason` is an error's slug."""

ChainLoop: Final = NoteKind(
    "ChainLoop", "loop", "RFC 5005, section 6; rule R17", partial=True,
    made_from=MadeFrom.FEED,
    text="the next link leads back to {url}",
)

NoProgress: Final = NoteKind(
    "NoProgress", "no-progress", "RFC 5005, section 6; rule R17", partial=True,
    made_from=MadeFrom.FEED,
    text="{documents} documents in a row brought no new entry, the last: {url}",
)

LimitReached: Final = NoteKind(
    "LimitReached", "limit", "RFC 5005, section 6; rule R18", partial=True,
    made_from=MadeFrom.FEED,
    text="the walk stopped at {limit} = {value:g}, before {url}",
)
"""`limit` is a key, such as limits.documents_per_feed."""

FormatMismatch: Final = NoteKind(
    "FormatMismatch", "format", "rule R23", partial=True,
    made_from=MadeFrom.FEED,
    text="expected {expected} like the subscription document, got {found}: {url}",
)

CrossOriginUnconfirmed: Final = NoteKind(
    "CrossOriginUnconfirmed", "cross-origin-unconfirmed", "RFC 5005, section 6; rule R24", partial=True,
    made_from=MadeFrom.FEED,
    text="a document at another site, which does not say that it belongs to this feed: {url}",
)

DeadChainLink: Final = NoteKind(
    "DeadChainLink", "bad-link", "RFC 5005, sections 3 and 4; rules R2, R6", partial=True,
    made_from=MadeFrom.FEED,
    text="the link to the next document is no http(s) URL: {href!r} in {url}",
)
"""The walk ends here unfinished."""

JumpedHole: Final = NoteKind(
    "JumpedHole", "jumped-hole", "rule R34",
    made_from=MadeFrom.FEED,
    text="the walk goes on at {goes_on_at}, behind the missing document {url}",
    shown=("goes_on_at",),
)
"""The walk resumed behind a missing document, at one without links to it (R16)."""

ArchiveChanged: Final = NoteKind(
    "ArchiveChanged", "archive-changed", "RFC 5005, section 4; rule R13",
    made_from=MadeFrom.FEED,
    text="an archive document changed: {url}",
)

ArchivesShift: Final = NoteKind(
    "ArchivesShift", "archives-shift", "RFC 5005, section 4; rule R35",
    made_from=MadeFrom.FEED,
    text="new entries push older ones from one archive document into the next: {url}",
)
"""The publisher numbers archives from the newest entry, so all are read once a week. Entries that leave in
between are remembered."""


# The subscription document


NoSubscriptionDocument: Final = NoteKind(
    "NoSubscriptionDocument", "no-subscription-document", "RFC 5005, section 4; rule R3", partial=True,
    made_from=MadeFrom.FEED,
    text="an archive document that names no subscription document: {url}",
)

CurrentUnavailable: Final = NoteKind(
    "CurrentUnavailable", "current-unavailable", "draft-05, section 6.1; rule R3", partial=True,
    made_from=MadeFrom.FEED,
    text="the subscription document could not be fetched ({reason}): {url}",
)
"""The asked document serves instead."""

FormatChanged: Final = NoteKind(
    "FormatChanged", "format-changed", "rule R23",
    made_from=MadeFrom.FEED,
    text="the feed is in the format {found} now; its entries in the format {other}, seen until"
    " {last_had}, are left out: {url}",
)
"""Entries in the other format stay apart until that format returns."""

ValidatorsDoubted: Final = NoteKind(
    "ValidatorsDoubted", "validators-doubted", "RFC 9110, section 8.8; rule R14",
    made_from=MadeFrom.FEED,
    text="the feed's ETag and Last-Modified do not tell when it changes, so it is fetched without"
    " them: {url}",
)
"""The publisher sent a 304 despite a change, or news under old validators (docs/faults.md row 157)."""


def _renamed(url: str, *, posts: str, since: str) -> str:
    one = posts == "1"
    return f"{posts} {'post has' if one else 'posts have'} come again under other ids since {since}: {url}"


IdsChanged: Final = NoteKind(
    "IdsChanged", "ids-changed", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R36",
    made_from=MadeFrom.FEED,
    text=_renamed,
    shown=("posts", "since"),
)
"""Each post is served once."""

IdsUnstable: Final = NoteKind(
    "IdsUnstable", "ids-unstable", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R36",
    made_from=MadeFrom.FEED,
    text="every refresh brings new ids for known posts: {url}",
)

HeadCut: Final = NoteKind(
    "HeadCut", "head-cut", "rule R21",
    made_from=MadeFrom.FEED,
    text="the head is too long for every answer, {left_out} parts of it are left out: {url}",
)


# Pages


NewerNotOlder: Final = NoteKind(
    "NewerNotOlder", "newer-not-older", "RFC 5005, section 3; rules R4, R6",
    made_from=MadeFrom.FEED,
    text="expected older entries, got newer ones; so this counts as a paged feed: {url}",
)
"""The link belongs to a page, not to a chain."""

PagesAscend: Final = NoteKind(
    "PagesAscend", "pages-ascend", "RFC 5005, section 3; rule R6",
    made_from=MadeFrom.FEED,
    text="the next page holds newer entries: {url}",
)
"""All pages are collected nevertheless."""

PagesRepeat: Final = NoteKind(
    "PagesRepeat", "pages-repeat", "RFC 5005, section 6; rule R17",
    made_from=MadeFrom.FEED,
    text="{documents} pages in a row brought no new entry, the last: {url}",
)

PageGone: Final = NoteKind(
    "PageGone", "page-gone", "RFC 5005, section 3; rule R6",
    made_from=MadeFrom.FEED,
    text="the last page links to one that is not there: {url}",
)
"""The end: nothing says that the page should exist. `reason` is an error's slug."""


LastNotReached: Final = NoteKind(
    "LastNotReached", "last-not-reached", "RFC 5005, section 3; rule R6", partial=True,
    made_from=MadeFrom.FEED,
    text="the feed names this page as its last one, but its links end before it: {url}",
)
"""The `last` link names a page that `next` does not reach."""

PageStale: Final = NoteKind(
    "PageStale", "page-stale", "RFC 5005, section 3; rule R6", partial=True,
    made_from=MadeFrom.FEED,
    text="expected a page that joins the page before it, got an older copy of it: {url}",
)
"""Caches send such copies."""


# Histories that the publisher does not link, and mementos


HistoryNotOffered: Final = NoteKind(
    "HistoryNotOffered", "history-not-offered", "rule R27",
    made_from=MadeFrom.FEED,
    text="looks like {adapter}, which offers its history in pages, but {reason}: {url}",
)
"""`reason` is in words."""

HistoryUnfinished: Final = NoteKind(
    "HistoryUnfinished", "history-unfinished", "rule R31", partial=True,
    made_from=MadeFrom.FEED,
    text="the pages of {adapter} were not read to their end ({reason}): {url}",
)
"""`reason` is in words, or the last error's slug."""

HistoryShort: Final = NoteKind(
    "HistoryShort", "history-short", "rule R31",
    made_from=MadeFrom.FEED,
    text="the publisher claims {claimed} entries, its pages hold {collected}: {url}",
)


DatesGuessed: Final = NoteKind(
    "DatesGuessed", "dates-guessed", "rule H5",
    made_from=MadeFrom.FEED,
    text="{entries} of the listed entries have no exact date, so they got the first day of a month or year,"
    " or the day of a newer entry: {url}",
)
"""The pages give inexact dates, or none."""


def _served_by_copies(url: str, copy_url: str, captured: str, copies: int) -> str:
    what, verb = ("a copy", "stands") if copies == 1 else (f"{copies} copies", "stand")
    return f"{what} of {captured} in a web archive {verb} in for {url}: {copy_url}"


MementoServed: Final = NoteKind(
    "MementoServed", "memento", "RFC 7089; rule R33", partial=True,
    made_from=MadeFrom.FEED,
    text=_served_by_copies,
)
"""`captured` is one date, or the first and the last of several."""


# Reading a document


BadLink: Final = NoteKind(
    "BadLink", "bad-link", "RFC 3986, section 4.1; rules R11, R12",
    made_from=MadeFrom.LINKS,
    text="expected an http(s) URL as {relation} link, got {href!r}: {url}",
)

ExtraLink: Final = NoteKind(
    "ExtraLink", "extra-link", "rule R12",
    made_from=MadeFrom.LINKS,
    text="one {relation} link too many, not followed: {href!r} in {url}",
)
"""The first usable link counts."""

NewAddress: Final = NoteKind(
    "NewAddress", "new-address", "iTunes, itunes:new-feed-url; rule R25",
    made_from=MadeFrom.LINKS,
    text="the document names {href!r} as the feed's new address: {url}",
    shown=("href",),
)
"""Only a redirect moves a feed here."""

# See docs/faults.md row 46.
EncodingRetried: Final = NoteKind(
    "EncodingRetried", "encoding-retried", "RFC 7303, section 3",
    made_from=MadeFrom.BODY,
    text="declared {declared}, read as {used}: {url}",
)


def _repaired(url: str, repairs: tuple[str, ...]) -> str:
    return f"not well-formed, repaired ({', '.join(repairs)}): {url}"


# See docs/faults.md rows 45 and 148, and docs/repair.md.
DocumentRepaired: Final = NoteKind(
    "DocumentRepaired", "repaired", "XML 1.0, section 2.1; RFC 4287, section 2",
    made_from=MadeFrom.BODY,
    text=_repaired,
)


def _mended(url: str, repairs: tuple[str, ...]) -> str:
    return f"a response against the rules of HTTP, read as it was meant ({', '.join(repairs)}): {url}"


# See docs/faults.md row 152, and docs/repair.md.
ResponseRepaired: Final = NoteKind(
    "ResponseRepaired", "response-repaired", "RFC 9110, section 8.4; RFC 9112, sections 5 and 6",
    text=_mended,
    made_from=MadeFrom.RESPONSE,
)


def _truncated(url: str, *, breaks_off: bool) -> str:
    found = "breaks off before its end" if breaks_off else "goes on behind its end"
    return f"{found}, so only its whole entries count: {url}"


# See docs/faults.md row 49.
DocumentTruncated: Final = NoteKind(
    "DocumentTruncated", "truncated", "XML 1.0, section 2.1; RFC 5005, section 4.2",
    text=_truncated,
    partial=True,
    made_from=MadeFrom.BODY,
)

IdentityRepeated: Final = NoteKind(
    "IdentityRepeated", "identity-repeated", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R9",
    text="{entries} entries share the identity of another one and say something else: {url}",
    made_from=MadeFrom.BODY,
)

IdentityUnusable: Final = NoteKind(
    "IdentityUnusable", "identity-unusable", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R9",
    text="{entries} entries have ids that different entries share, or will, so these ids identify no"
    " entry: {url}",
    made_from=MadeFrom.BODY,
)

TextsShortened: Final = NoteKind(
    "TextsShortened", "texts-shortened", "rule R10",
    made_from=MadeFrom.EARLIER_TEXTS,
    text="{entries} entries are shorter than before, and served with their earlier texts: {url}",
)
# fmt: on


# Endings of walks


@dataclass(frozen=True, slots=True)
class Ending:
    end: End | None
    """None: the notes say why the walk stopped, or why its stop counts as the end."""
    notes: tuple[Note, ...] = ()

    @property
    def is_true_end(self) -> bool:
        """Whether the walk reached the oldest document, so that nothing is missing."""
        return not any(note.partial for note in self.notes)

    def as_dict(self) -> dict[str, str]:
        if self.end is None:
            return {"code": self.notes[0].slug, "text": str(self.notes[0])}
        return {"code": self.end.value, "text": _TEXTS[self.end]}


class End(StrEnum):
    OLDEST = "oldest"
    ITSELF = "itself"
    CIRCLE = "circle"
    COLLECTED = "collected"
    READ = "read"
    WHOLE = "whole"
    LISTED = "listed"
    NOT_OFFERED = "not-offered"
    NOT_FOLLOWED = "not-followed"


OLDEST: Final = Ending(End.OLDEST)

_TEXTS: Final = {
    End.OLDEST: "the oldest document links to no older one",
    End.ITSELF: "the oldest document links to itself",
    End.CIRCLE: "the last page links back to a page that was collected already",
    End.COLLECTED: "this page brought nothing new; the pages behind it were collected before",
    End.READ: "every page that the publisher offers was read",
    End.WHOLE: "the publisher says that this document is the whole feed",
    End.LISTED: "the publisher's pages list these entries; there may be others",
    End.NOT_OFFERED: "the publisher links to no other documents of this feed",
    End.NOT_FOLLOWED: "this is a paged feed, and history.paged is off",
}
