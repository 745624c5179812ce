"""Typed remarks on the data: what made a feed partial or odd, and why a walk ended.

A note travels with the reconstruction and is logged, counted and shown. Each kind is a row here. Its code
stands in databases, so changing one is a breaking change; `slug` is the reason as `/status` and rule texts
write it. Each kind is raised by at least one test (`tests/end_to_end/test_notes.py`).

    note = LimitReached(url, limit="limits.feed_bytes", value=1000)
    note.kind is LimitReached, note.facts["limit"], str(note)
    note.kind.made_from is MadeFrom.FEED

    Ending(End.OLDEST).as_dict()     # {"code": "oldest", "text": "the oldest document links to no older one"}
    Ending(None, (note,))            # something may be missing, and the note says what
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a document that those who ask for its feed should be able to see."""

    code: str
    url: str
    """The document concerned."""
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
        """Return the note as it is shown."""
        shown = {"code": self.code, "url": self.url, "text": str(self)}
        return shown | {name: self.facts[name] for name in self.kind.shown}


class MadeFrom(Enum):
    """What a note is made from, which decides where it is stored and how long it stays."""

    FEED = auto()
    """What is known of the feed: the note is stored with the feed, and made anew at each publication."""
    BODY = auto()
    """The body of a document: a newer parser makes the note anew when it reads the body again."""
    LINKS = auto()
    """The links of a document, which are stored as they were read: the note stays as long as they do."""
    RESPONSE = auto()
    """The publisher's response, which is not stored: the note stays as long as the document."""
    EARLIER_TEXTS = auto()
    """The texts that a document has replaced: the note stays as long as the document."""


@dataclass(frozen=True, slots=True)
class NoteKind:
    """What is fixed about the notes of one kind. To call it makes a note of a document, with its facts."""

    code: str
    slug: str
    reference: str
    """The specification or rule it rests on."""
    text: str | Callable[..., str]
    """A format of the URL and the facts, or what makes the text of them."""
    made_from: MadeFrom = field(kw_only=True)
    partial: bool = False
    """Whether entries may be missing because of it."""
    shown: tuple[str, ...] = ()
    """Facts that are shown beside the text."""

    def __post_init__(self) -> None:
        KINDS[self.code] = self

    def __call__(self, url: str, **facts: Any) -> Note:
        return Note(self.code, url, facts)

    @property
    def is_of_reading(self) -> bool:
        """Whether the note belongs to a document, and is stored with it."""
        return self.made_from is not MadeFrom.FEED

    @property
    def outlasts_reading(self) -> bool:
        """Whether the note stays when the body of its document is read again, which cannot make it anew."""
        return self.made_from not in (MadeFrom.FEED, MadeFrom.BODY)


KINDS: Final[dict[str, NoteKind]] = {}
"""By code."""


# fmt: off
# The documents of a chain


DocumentUnavailable: Final = NoteKind(
    "DocumentUnavailable", "unavailable", "RFC 5005, section 4.1", partial=True,
    made_from=MadeFrom.FEED,
    text="expected a document of this feed, got none ({reason}): {url}",
)
"""A document of the chain could not be had; what lies behind it is out of reach. The reason is the slug of
the error that the fetch ended with."""

ChainLoop: Final = NoteKind(
    "ChainLoop", "loop", "RFC 5005, section 6; rule R17", partial=True,
    made_from=MadeFrom.FEED,
    text="going on would lead back to {url}",
)

NoProgress: Final = NoteKind(
    "NoProgress", "no-progress", "RFC 5005, section 6; rule R17", partial=True,
    made_from=MadeFrom.FEED,
    text="{documents} documents in a row brought no new entry, the last: {url}",
)

LimitReached: Final = NoteKind(
    "LimitReached", "limit", "RFC 5005, section 6; rule R18", partial=True,
    made_from=MadeFrom.FEED,
    text="stopped at {limit} = {value:g}, before {url}",
)
"""A limit ended the walk; the chain goes on behind it. The limit is named by its configuration key:
limits.documents_per_feed and the like."""

FormatMismatch: Final = NoteKind(
    "FormatMismatch", "format", "rule R23", partial=True,
    made_from=MadeFrom.FEED,
    text="expected {expected} like the subscription document, got {found}: {url}",
)

CrossOriginUnconfirmed: Final = NoteKind(
    "CrossOriginUnconfirmed", "cross-origin-unconfirmed", "RFC 5005, section 6; rule R24", partial=True,
    made_from=MadeFrom.FEED,
    text="at another site, and does not say that it belongs to this feed: {url}",
)

DeadChainLink: Final = NoteKind(
    "DeadChainLink", "bad-link", "RFC 5005, sections 3 and 4; rules R2, R6", partial=True,
    made_from=MadeFrom.FEED,
    text="the link to the next document is no http(s) URL: {href!r} in {url}",
)
"""The only link to the next document cannot be followed; the walk ends there unfinished."""

JumpedHole: Final = NoteKind(
    "JumpedHole", "jumped-hole", "rule R34",
    made_from=MadeFrom.FEED,
    text="the chain is followed on at {goes_on_at}, behind the missing {url}",
    shown=("goes_on_at",),
)
"""The walk went on behind a document that is missing, at one that nothing links to, which the account of the
chain tells (R16)."""

ArchiveChanged: Final = NoteKind(
    "ArchiveChanged", "archive-changed", "RFC 5005, section 4; rule R13",
    made_from=MadeFrom.FEED,
    text="an archive document changed: {url}",
)
"""A document that was taken for an archive had another body when it was revalidated."""

ArchivesShift: Final = NoteKind(
    "ArchivesShift", "archives-shift", "RFC 5005, section 4; rule R35",
    made_from=MadeFrom.FEED,
    text="new entries push older ones from one archive document into the next: {url}",
)
"""The publisher numbers its archives from the newest entry, so each new one changes all of them. They are all
read once a week. What leaves one of them in between is remembered."""


# The subscription document


NoSubscriptionDocument: Final = NoteKind(
    "NoSubscriptionDocument", "no-subscription-document", "RFC 5005, section 4; rule R3", partial=True,
    made_from=MadeFrom.FEED,
    text="an archive that names no subscription document: {url}",
)
"""The URL asked for is an archive and nothing leads to its subscription document."""

CurrentUnavailable: Final = NoteKind(
    "CurrentUnavailable", "current-unavailable", "draft-05, section 6.1; rule R3", partial=True,
    made_from=MadeFrom.FEED,
    text="the subscription document could not be had ({reason}): {url}",
)
"""The `current` link of the asked document failed; the asked document serves."""

FormatChanged: Final = NoteKind(
    "FormatChanged", "format-changed", "rule R23",
    made_from=MadeFrom.FEED,
    text="what was seen of it as {other} until {last_had} is no part of it while it is {found}: {url}",
)
"""What was seen of the feed in another format stands apart, until that comes back."""

ValidatorsDoubted: Final = NoteKind(
    "ValidatorsDoubted", "validators-doubted", "RFC 9110, section 8.8; rule R14",
    made_from=MadeFrom.FEED,
    text="its ETag and Last-Modified do not tell when it changes, so it is asked for without them: {url}",
)
"""Its publisher said that nothing had changed though something had, or sent news under the validators of what
was there before (docs/faults.md row 157)."""


def _renamed(url: str, *, posts: str, since: str) -> str:
    one = posts == "1"
    return f"{posts} {'post has' if one else 'posts have'} come under other ids since {since}: {url}"


IdsChanged: Final = NoteKind(
    "IdsChanged", "ids-changed", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R36",
    made_from=MadeFrom.FEED,
    text=_renamed,
    shown=("posts", "since"),
)
"""Posts that are known have come under other ids; each is served once."""

IdsUnstable: Final = NoteKind(
    "IdsUnstable", "ids-unstable", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R36",
    made_from=MadeFrom.FEED,
    text="every look brings new ids for posts that are known: {url}",
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
    text="expected older entries, got newer ones; the feed is taken for a paged one: {url}",
)
"""A `prev` or `previous` link leads to newer entries: it is a page's, not a chain's."""

PagesAscend: Final = NoteKind(
    "PagesAscend", "pages-ascend", "RFC 5005, section 3; rule R6",
    made_from=MadeFrom.FEED,
    text="the next page holds newer entries: {url}",
)
"""The page behind a `next` link holds newer entries; all are collected nevertheless."""

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
"""A page links to one that is not there, and nothing says that it should be: the end. The reason is the slug
of the error that the fetch ended with."""


LastNotReached: Final = NoteKind(
    "LastNotReached", "last-not-reached", "RFC 5005, section 3; rule R6", partial=True,
    made_from=MadeFrom.FEED,
    text="the feed says that this is its last page, and its links end before it: {url}",
)
"""The pages that `next` leads through are not all: the `last` link names one that is not among them."""

PageStale: Final = NoteKind(
    "PageStale", "page-stale", "RFC 5005, section 3; rule R6", partial=True,
    made_from=MadeFrom.FEED,
    text="expected the entries behind those of the page before it, got an older copy: {url}",
)
"""A page does not join the one before it, which is new throughout: caches give such copies."""


# A history that the publisher does not link, and copies in a web archive


HistoryNotOffered: Final = NoteKind(
    "HistoryNotOffered", "history-not-offered", "rule R27",
    made_from=MadeFrom.FEED,
    text="looks like {adapter}, which has its history by pages, but {reason}: {url}",
)
"""The publisher is of a kind that has its history by pages, and did not give them; the reason is in words."""

HistoryUnfinished: Final = NoteKind(
    "HistoryUnfinished", "history-unfinished", "rule R31", partial=True,
    made_from=MadeFrom.FEED,
    text="the pages of {adapter} were not read to their end ({reason}): {url}",
)
"""Not every page of a history that the publisher does not link could be had. The reason is in words, or the
slug of the error that the last question ended with."""

HistoryShort: Final = NoteKind(
    "HistoryShort", "history-short", "rule R31",
    made_from=MadeFrom.FEED,
    text="the publisher claims {claimed} entries, its pages hold {collected}: {url}",
)


DatesGuessed: Final = NoteKind(
    "DatesGuessed", "dates-guessed", "rule H5",
    made_from=MadeFrom.FEED,
    text="{entries} of the listed entries bear the first day of a month or year, or a newer one's day: {url}",
)
"""Of entries that the publisher's pages list: what these say of their dates is not exact, or nothing."""


def _served_by_copies(url: str, copy_url: str, captured: str, copies: int) -> str:
    what, verb = ("a copy", "stands") if copies == 1 else (f"{copies} copies", "stand")
    return f"{what} of {captured} in a web archive {verb} in for {url}: {copy_url}"


MementoServed: Final = NoteKind(
    "MementoServed", "memento", "RFC 7089; rule R33", partial=True,
    made_from=MadeFrom.FEED,
    text=_served_by_copies,
)
"""A web archive's copy serves, because the publisher does not give the document. It says when the copy was
made, or the first and the last of several."""


# How a document reads


BadLink: Final = NoteKind(
    "BadLink", "bad-link", "RFC 3986, section 4.1; rules R11, R12",
    made_from=MadeFrom.LINKS,
    text="expected an http(s) URL as {relation} link, got {href!r}: {url}",
)
"""A link of the head cannot be followed: empty, unresolvable or not http(s)."""

ExtraLink: Final = NoteKind(
    "ExtraLink", "extra-link", "rule R12",
    made_from=MadeFrom.LINKS,
    text="one {relation} link too many, not followed: {href!r} in {url}",
)
"""More than one link of one relation; the first usable one counts."""

NewAddress: Final = NoteKind(
    "NewAddress", "new-address", "iTunes, itunes:new-feed-url; rule R25",
    made_from=MadeFrom.LINKS,
    text="it names {href!r} as the feed's new address: {url}",
)
"""The publisher would have podcast apps subscribe elsewhere, which only a redirect does here."""

EncodingRetried: Final = NoteKind(
    "EncodingRetried", "encoding-retried", "RFC 7303, section 3",
    made_from=MadeFrom.BODY,
    text="declared {declared}, read as {used}: {url}",
)
"""The declared encoding did not fit the bytes; another one did (docs/faults.md row 46)."""


def _repaired(url: str, repairs: tuple[str, ...]) -> str:
    return f"not well-formed, repaired ({', '.join(repairs)}): {url}"


DocumentRepaired: Final = NoteKind(
    "DocumentRepaired", "repaired", "XML 1.0, section 2.1; RFC 4287, section 2",
    made_from=MadeFrom.BODY,
    text=_repaired,
)
"""The document was made well-formed, or its names were spelt right, before it was read (docs/faults.md rows
45 and 148), in the words of docs/repair.md."""


def _mended(url: str, repairs: tuple[str, ...]) -> str:
    return f"not sent as HTTP has it, read as it was meant ({', '.join(repairs)}): {url}"


ResponseRepaired: Final = NoteKind(
    "ResponseRepaired", "response-repaired", "RFC 9110, section 8.4; RFC 9112, sections 5 and 6",
    text=_mended,
    made_from=MadeFrom.RESPONSE,
)
"""The response was not valid HTTP, or not coded as it said, and was read nevertheless (docs/faults.md row
152), in the words of docs/repair.md."""


def _truncated(url: str, *, breaks_off: bool) -> str:
    found = "breaks off before its end" if breaks_off else "goes on behind its end"
    return f"{found}, so only its whole entries count: {url}"


DocumentTruncated: Final = NoteKind(
    "DocumentTruncated", "truncated", "XML 1.0, section 2.1; RFC 5005, section 4.2",
    text=_truncated,
    partial=True,
    made_from=MadeFrom.BODY,
)
"""It breaks off, or has entries behind its end: its whole entries count (docs/faults.md row 49)."""

IdentityRepeated: Final = NoteKind(
    "IdentityRepeated", "identity-repeated", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R9",
    text="{entries} entries share the identity of another one and say something else: {url}",
    made_from=MadeFrom.BODY,
)

IdentityUnusable: Final = NoteKind(
    "IdentityUnusable", "identity-unusable", "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R9",
    text="{entries} entries have ids that unlike ones have, too, or will, so these identify none: {url}",
    made_from=MadeFrom.BODY,
)

TextsShortened: Final = NoteKind(
    "TextsShortened", "texts-shortened", "rule R10",
    made_from=MadeFrom.EARLIER_TEXTS,
    text="{entries} entries are shorter than they were, and served as they were: {url}",
)
# fmt: on


# Why a walk ended


@dataclass(frozen=True, slots=True)
class Ending:
    """How a walk ended: what stands behind the last document."""

    end: End | None
    """None: the notes say why the walk could not go on, or that what it met counts as the end."""
    notes: tuple[Note, ...] = ()

    @property
    def is_true_end(self) -> bool:
        """Whether the oldest document of the chain is on the path; then nothing is missing."""
        return not any(note.partial for note in self.notes)

    def as_dict(self) -> dict[str, str]:
        """Return the reason as it is shown."""
        if self.end is None:
            return {"code": self.notes[0].slug, "text": str(self.notes[0])}
        return {"code": self.end.value, "text": _TEXTS[self.end]}


class End(StrEnum):
    """Nothing is missing behind the last document, and why."""

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
    End.CIRCLE: "the last page links back to one that was collected",
    End.COLLECTED: "this page brought nothing new; what lies behind it was collected before",
    End.READ: "every page that the publisher answers was read",
    End.WHOLE: "the publisher says that this document is the whole feed",
    End.LISTED: "the publisher's pages list these entries; nobody promises that they are all",
    End.NOT_OFFERED: "the publisher links to no other documents of this feed",
    End.NOT_FOLLOWED: "this is a paged feed, and history.paged is off",
}
