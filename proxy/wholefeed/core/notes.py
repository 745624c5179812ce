"""Typed remarks on the data: what made a feed partial or odd, and why a walk ended.

A note travels with the reconstruction and is logged, counted and shown. The class name is its public
code, so renaming one is a breaking change; `slug` is the reason as `/status` and rule texts write it.
Each class is raised by at least one test (`tests/end_to_end/test_notes.py`).

    Ending(End.OLDEST).as_dict()     # {"code": "oldest", "text": "the oldest document links to no older one"}
    Ending(None, (LimitReached(…),)) # something may be missing, and the note says what
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final


@dataclass(frozen=True, slots=True)
class Note:
    """Base class: something about a document that those who ask for its feed should be able to see."""

    reference: ClassVar[str]
    """The specification or rule it rests on."""
    partial: ClassVar[bool]
    """Whether entries may be missing because of it."""
    slug: ClassVar[str]
    url: str
    """The document concerned."""

    @property
    def code(self) -> str:
        return type(self).__name__

    def as_dict(self) -> dict[str, str]:
        """Return the note as it is shown."""
        return {"code": self.code, "url": self.url, "text": str(self)}


# The documents of a chain


@dataclass(frozen=True, slots=True)
class DocumentUnavailable(Note):
    """A document of the chain could not be had; what lies behind it is out of reach."""

    reference: ClassVar[str] = "RFC 5005, section 4.1"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "unavailable"

    reason: str
    """The slug of the error that the fetch ended with."""

    def __str__(self) -> str:
        return f"expected a document of this feed, got none ({self.reason}): {self.url}"


@dataclass(frozen=True, slots=True)
class ChainLoop(Note):
    """The chain leads back to a document that is already on the path (rule R17)."""

    reference: ClassVar[str] = "RFC 5005, section 6; rule R17"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "loop"

    def __str__(self) -> str:
        return f"going on would lead back to {self.url}"


@dataclass(frozen=True, slots=True)
class NoProgress(Note):
    """Too many archive documents in a row brought nothing new (rule R17)."""

    reference: ClassVar[str] = "RFC 5005, section 6; rule R17"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "no-progress"

    documents: int

    def __str__(self) -> str:
        return f"{self.documents} documents in a row brought no new entry, the last: {self.url}"


@dataclass(frozen=True, slots=True)
class LimitReached(Note):
    """A limit ended the walk; the chain goes on behind it (rule R18)."""

    reference: ClassVar[str] = "RFC 5005, section 6; rule R18"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "limit"

    limit: str
    """The configuration key: limits.documents_per_feed and the like."""
    value: float

    def __str__(self) -> str:
        return f"stopped at {self.limit} = {self.value:g}, before {self.url}"


@dataclass(frozen=True, slots=True)
class FormatMismatch(Note):
    """A document of the chain is of another family than the subscription document (rule R23)."""

    reference: ClassVar[str] = "rule R23"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "format"

    expected: str
    found: str

    def __str__(self) -> str:
        return f"expected {self.expected} like the subscription document, got {self.found}: {self.url}"


@dataclass(frozen=True, slots=True)
class CrossOriginUnconfirmed(Note):
    """A document at another site does not say that it belongs to this feed (rule R24)."""

    reference: ClassVar[str] = "RFC 5005, section 6; rule R24"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "cross-origin-unconfirmed"

    def __str__(self) -> str:
        return f"at another site, and does not say that it belongs to this feed: {self.url}"


@dataclass(frozen=True, slots=True)
class DeadChainLink(Note):
    """The only link to the next document cannot be followed; the walk ends there unfinished."""

    reference: ClassVar[str] = "RFC 5005, sections 3 and 4; rules R2, R6"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "bad-link"

    href: str

    def __str__(self) -> str:
        return f"the link to the next document is no http(s) URL: {self.href!r} in {self.url}"


@dataclass(frozen=True, slots=True)
class JumpedHole(Note):
    """The walk went on behind a document that is missing, at one that nothing links to (rule R34)."""

    reference: ClassVar[str] = "rule R34"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "jumped-hole"

    goes_on_at: str

    def __str__(self) -> str:
        return f"the chain is followed on at {self.goes_on_at}, behind the missing {self.url}"

    def as_dict(self) -> dict[str, str]:
        """Return the note with where the walk goes on, so that the account of the chain can tell (R16)."""
        return {"code": self.code, "url": self.url, "text": str(self), "goes_on_at": self.goes_on_at}


@dataclass(frozen=True, slots=True)
class ArchiveChanged(Note):
    """A document that was taken for an archive had another body when it was revalidated (rule R13)."""

    reference: ClassVar[str] = "RFC 5005, section 4; rule R13"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "archive-changed"

    def __str__(self) -> str:
        return f"an archive document changed: {self.url}"


# The subscription document


@dataclass(frozen=True, slots=True)
class NoSubscriptionDocument(Note):
    """The URL asked for is an archive and nothing leads to its subscription document (rule R3)."""

    reference: ClassVar[str] = "RFC 5005, section 4; rule R3"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "no-subscription-document"

    def __str__(self) -> str:
        return f"an archive that names no subscription document: {self.url}"


@dataclass(frozen=True, slots=True)
class CurrentUnavailable(Note):
    """The `current` link of the asked document failed; the asked document serves (rule R3)."""

    reference: ClassVar[str] = "draft-05, section 6.1; rule R3"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "current-unavailable"

    reason: str

    def __str__(self) -> str:
        return f"the subscription document could not be had ({self.reason}): {self.url}"


@dataclass(frozen=True, slots=True)
class FormatChanged(Note):
    """What was seen of the feed in another format stands apart, until that comes back (rule R23)."""

    reference: ClassVar[str] = "rule R23"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "format-changed"

    found: str
    other: str
    last_had: str
    """When it was of that format last."""

    def __str__(self) -> str:
        return (
            f"what was seen of it as {self.other} until {self.last_had} is no part of it while it is"
            f" {self.found}: {self.url}"
        )


@dataclass(frozen=True, slots=True)
class HeadCut(Note):
    """What the head says comes to more than an answer bears: what stands last is left out (rule R21)."""

    reference: ClassVar[str] = "rule R21"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "head-cut"

    left_out: int

    def __str__(self) -> str:
        return f"the head is too long for every answer, {self.left_out} parts of it are left out: {self.url}"


# Pages


@dataclass(frozen=True, slots=True)
class NewerNotOlder(Note):
    """A `prev` or `previous` link leads to newer entries: it is a page's, not a chain's (rule R4)."""

    reference: ClassVar[str] = "RFC 5005, section 3; rules R4, R6"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "newer-not-older"

    def __str__(self) -> str:
        return f"expected older entries, got newer ones; the feed is taken for a paged one: {self.url}"


@dataclass(frozen=True, slots=True)
class PagesAscend(Note):
    """The page behind a `next` link holds newer entries (rule R6); all are collected nevertheless."""

    reference: ClassVar[str] = "RFC 5005, section 3; rule R6"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "pages-ascend"

    def __str__(self) -> str:
        return f"the next page holds newer entries: {self.url}"


@dataclass(frozen=True, slots=True)
class PagesRepeat(Note):
    """Pages in a row brought no new entry: the paged feed ends there (rule R17)."""

    reference: ClassVar[str] = "RFC 5005, section 6; rule R17"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "pages-repeat"

    documents: int

    def __str__(self) -> str:
        return f"{self.documents} pages in a row brought no new entry, the last: {self.url}"


@dataclass(frozen=True, slots=True)
class PageGone(Note):
    """A page links to one that is not there, and nothing says that it should be: the end (rule R6)."""

    reference: ClassVar[str] = "RFC 5005, section 3; rule R6"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "page-gone"

    reason: str
    """The slug of the error that the fetch ended with."""

    def __str__(self) -> str:
        return f"the last page links to one that is not there: {self.url}"


# A history that the publisher does not link, and copies in a web archive


@dataclass(frozen=True, slots=True)
class HistoryNotOffered(Note):
    """The publisher is of a kind that has its history by pages, and did not give them (rule R27)."""

    reference: ClassVar[str] = "rule R27"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "history-not-offered"

    adapter: str
    reason: str
    """In words."""

    def __str__(self) -> str:
        return f"looks like {self.adapter}, which has its history by pages, but {self.reason}: {self.url}"


@dataclass(frozen=True, slots=True)
class HistoryUnfinished(Note):
    """Not every page of a history that the publisher does not link could be had (rule R31)."""

    reference: ClassVar[str] = "rule R31"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "history-unfinished"

    adapter: str
    reason: str
    """In words, or the slug of the error that the last question ended with."""

    def __str__(self) -> str:
        return f"the pages of {self.adapter} were not read to their end ({self.reason}): {self.url}"


@dataclass(frozen=True, slots=True)
class HistoryShort(Note):
    """The publisher claims more entries than its pages hold, which were asked for twice (rule R31)."""

    reference: ClassVar[str] = "rule R31"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "history-short"

    claimed: int
    collected: int

    def __str__(self) -> str:
        return f"the publisher claims {self.claimed} entries, its pages hold {self.collected}: {self.url}"


@dataclass(frozen=True, slots=True)
class MementoServed(Note):
    """A web archive's copy serves, because the publisher does not give the document (rule R33)."""

    reference: ClassVar[str] = "RFC 7089; rule R33"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "memento"

    copy_url: str
    captured: str
    """When the copy was made, or the first and the last of several."""
    copies: int = 1

    def __str__(self) -> str:
        what, verb = ("a copy", "stands") if self.copies == 1 else (f"{self.copies} copies", "stand")
        return f"{what} of {self.captured} in a web archive {verb} in for {self.url}: {self.copy_url}"


# How a document reads


@dataclass(frozen=True, slots=True)
class ReadingNote(Note):
    """Base class: how a document reads. True as long as the document is kept, and kept with it."""


@dataclass(frozen=True, slots=True)
class BadLink(ReadingNote):
    """A link of the head cannot be followed: empty, unresolvable or not http(s) (rules R11, R12)."""

    reference: ClassVar[str] = "RFC 3986, section 4.1; rules R11, R12"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "bad-link"

    relation: str
    href: str

    def __str__(self) -> str:
        return f"expected an http(s) URL as {self.relation} link, got {self.href!r}: {self.url}"


@dataclass(frozen=True, slots=True)
class ExtraLink(ReadingNote):
    """More than one link of one relation; the first usable one counts (rule R12)."""

    reference: ClassVar[str] = "rule R12"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "extra-link"

    relation: str
    href: str

    def __str__(self) -> str:
        return f"one {self.relation} link too many, not followed: {self.href!r} in {self.url}"


@dataclass(frozen=True, slots=True)
class EncodingRetried(ReadingNote):
    """The declared encoding did not fit the bytes; another one did (docs/faults.md row 46)."""

    reference: ClassVar[str] = "RFC 7303, section 3"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "encoding-retried"

    declared: str
    used: str

    def __str__(self) -> str:
        return f"declared {self.declared}, read as {self.used}: {self.url}"


@dataclass(frozen=True, slots=True)
class DocumentRepaired(ReadingNote):
    """The document was not well-formed and was made so before it was read (docs/faults.md row 45)."""

    reference: ClassVar[str] = "XML 1.0, section 2.1; RFC 4287, section 2"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "repaired"

    repairs: tuple[str, ...]
    """What was done, in the words of docs/repair.md."""

    def __str__(self) -> str:
        return f"not well-formed, repaired ({', '.join(self.repairs)}): {self.url}"


@dataclass(frozen=True, slots=True)
class DocumentTruncated(ReadingNote):
    """It breaks off, or has entries behind its end: its whole entries count (docs/faults.md row 49)."""

    reference: ClassVar[str] = "XML 1.0, section 2.1; RFC 5005, section 4.2"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "truncated"

    breaks_off: bool = True
    """Whether its end is missing, rather than that entries stand behind it."""

    def __str__(self) -> str:
        found = "breaks off before its end" if self.breaks_off else "goes on behind its end"
        return f"{found}, so only its whole entries count: {self.url}"


@dataclass(frozen=True, slots=True)
class IdentityRepeated(ReadingNote):
    """Entries of one document that say different things share an identity: only one counts (rule R9)."""

    reference: ClassVar[str] = "RFC 4287, section 4.2.6; RSS 2.0, guid; rule R9"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "identity-repeated"

    entries: int
    """How many share the identity of an earlier one."""

    def __str__(self) -> str:
        return f"{self.entries} entries share the identity of another one and say something else: {self.url}"


@dataclass(frozen=True, slots=True)
class TextsShortened(ReadingNote):
    """Where full texts stood, there are excerpts now, or none: the full ones are served (rule R10)."""

    reference: ClassVar[str] = "rule R10"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "texts-shortened"

    entries: int
    """How many give way to the fuller copy that was had before."""

    def __str__(self) -> str:
        return f"{self.entries} entries are shorter than they were, and served as they were: {self.url}"


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
    End.NOT_OFFERED: "the publisher links to no other documents of this feed",
    End.NOT_FOLLOWED: "this is a paged feed, and history.paged is off",
}
