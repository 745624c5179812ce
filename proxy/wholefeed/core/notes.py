"""Typed remarks on the data: what made a feed partial or odd.

A note travels with the reconstruction and is logged, counted and shown. The class name is its public
code, so renaming one is a breaking change; `slug` is the reason as `/status` and rule texts write it.
Each class is raised by at least one test (`tests/end_to_end/test_notes.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Note:
    """Base class: something about a document that whoever asks should be able to see."""

    reference: ClassVar[str]
    """The specification or rule it rests on."""
    partial: ClassVar[bool]
    """Whether entries may be missing because of it."""
    slug: ClassVar[str]
    url: str
    """The document concerned."""

    @property
    def code(self) -> str:
        """The note's public name."""
        return type(self).__name__

    def as_dict(self) -> dict[str, str]:
        """Return the note as whoever asks gets to see it."""
        return {"code": self.code, "url": self.url, "text": str(self)}


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
class NoSubscriptionDocument(Note):
    """The URL asked for is an archive and nothing leads to its subscription document (rule R3)."""

    reference: ClassVar[str] = "RFC 5005, section 4; rule R3"
    partial: ClassVar[bool] = True
    slug: ClassVar[str] = "no-subscription-document"

    def __str__(self) -> str:
        return f"an archive that names no subscription document: {self.url}"


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
class ArchiveChanged(Note):
    """A document that was taken for an archive had another body when it was revalidated (rule R13)."""

    reference: ClassVar[str] = "RFC 5005, section 4; rule R13"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "archive-changed"

    def __str__(self) -> str:
        return f"an archive document changed: {self.url}"


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
class PageGone(Note):
    """A page links to one that is not there, and nothing says that it should be: the end (rule R6)."""

    reference: ClassVar[str] = "RFC 5005, section 3; rule R6"
    partial: ClassVar[bool] = False
    slug: ClassVar[str] = "page-gone"

    reason: str
    """The slug of the error that the fetch ended with."""

    def __str__(self) -> str:
        return f"the last page links to one that is not there: {self.url}"


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
        """Return it with where the walk goes on, so that the account of the chain can tell (R16)."""
        return {"code": self.code, "url": self.url, "text": str(self), "goes_on_at": self.goes_on_at}
