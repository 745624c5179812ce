"""What an adapter asks for, what it is told, and what it comes to (rules R26 to R31).

An adapter decides without I/O and without a clock. It is a generator: it yields questions, at most a few at
once, and is sent as many answers in their order.

    steps = adapter.collect(job)
    asks = next(steps)                          # [Ask("https://example.org/feed/?paged=2")]
    asks = steps.send([Page(…)])                # StopIteration holds the Outcome
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeVar

from wholefeed.core.adapters.collection import Collection
from wholefeed.core.adapters.marks import Marks
from wholefeed.core.model import EntryId
from wholefeed.core.terms import Family

GONE: Final = frozenset({404, 410})
"""What a publisher says of a page that is not there (RFC 9110, 15.5.5 and 15.5.11)."""
OBJECTIONS: Final = frozenset({"redirected", "format", "cross-origin-unconfirmed"})
"""Slugs of what came, but is not what was asked for (R27)."""

T = TypeVar("T")


class Ask(NamedTuple):
    """One question."""

    url: str
    place: int = 0
    """Of the page among the feed's, where it is kept: lower is nearer the subscription document."""
    is_head: bool = False
    """Ask whether it is there, with HEAD (RFC 9110, 9.3.2)."""
    is_again: bool = False
    """Whether what came before under this URL does not serve."""
    is_needed: bool = False
    """Whether it has to be there: it is missing where it is not (R6)."""
    is_probe: bool = False
    """Whether it only shows what the publisher does: what comes is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A feed document came."""

    url: str
    """After redirects."""
    family: Family
    identities: tuple[EntryId, ...]
    """From the top."""
    updated_at: float | None
    """Of the document, at most the instant of its receipt."""
    validators: tuple[str, str]
    """ETag and Last-Modified; empty where there is none."""
    is_ascending: bool | None
    """Whether its entries get newer downwards; None where their dates do not tell."""
    oldest_at: float | None = None
    """Of its entries."""
    marks: Marks = field(default_factory=Marks)
    news: int = 0
    """How many of its identities were not stored before it came."""
    had_at: float = 0.0
    """When it came, epoch seconds; of a walk that was cut off some pages are from before."""


@dataclass(frozen=True, slots=True)
class There:
    """HEAD was answered well."""

    headers: Mapping[str, str]
    """Lower-case names."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It could not be had."""

    slug: str
    status: int | None = None

    @property
    def is_gone(self) -> bool:
        """Whether the publisher says that there is nothing."""
        return self.status in GONE

    @property
    def is_objection(self) -> bool:
        """Whether something came that was not asked for."""
        return self.slug in OBJECTIONS


Answer = Page | There | Refused
Asking = Generator[Sequence[Ask], Sequence[Answer], T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an adapter starts from."""

    asked_url: str
    """What the feed is asked for by."""
    url: str
    """Of the subscription document, after redirects."""
    page: Page
    """The subscription document."""
    now: float
    has_news: bool = False
    """Whether the subscription document brought an identity that was not stored."""
    is_daily: bool = False
    """Of a look for news: whether the last one that asked for everything was a day ago."""
    known: Collection = field(default_factory=Collection)
    """What is known from earlier collections."""

    @property
    def top(self) -> str:
        """The identity of the subscription document's first entry, as `Collection.top`."""
        return self.page.identities[0].hex() if self.page.identities else ""

    @property
    def is_linked(self) -> bool:
        """Whether the subscription document reaches back to what it began with at the last look."""
        return any(identity.hex() == self.known.top for identity in self.page.identities)

    def unproven(self, reason: str) -> Outcome:
        """Return that the publisher has shown nothing more than the subscription document."""
        return Outcome(is_honoured=False, known=self.known, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an adapter came to."""

    is_honoured: bool
    """Whether what it asked for has shown that there is more than the subscription document (R27)."""
    is_whole: bool = True
    """Whether every page that the pattern reaches was asked for; which of them failed, the driver knows."""
    known: Collection = field(default_factory=Collection)
    reason: str = ""
    """Where it is not honoured, or not whole: why, for people."""
    wants_all: bool = False
    """Of a look for news: whether all pages have to be asked for again."""


class Sight(NamedTuple):
    """What is seen of a subscription document before anything is asked."""

    asked_url: str
    """What the feed is asked for by."""
    url: str
    """Of the document, after redirects."""
    family: Family
    site_id: str
    """As `Head.site_id`."""
    marks: Marks


class Adapter(Protocol):
    """A kind of publisher."""

    @property
    def name(self) -> str:
        """As `/status` names it."""

    def fits(self, sight: Sight) -> bool:
        """Return whether a subscription document gives evidence of this kind (R26)."""

    def collect(self, job: Job) -> Asking[Outcome]:
        """Ask for all pages (R28)."""

    def look(self, job: Job) -> Asking[Outcome]:
        """Ask for what is new since the last time (R30)."""


def one(ask: Ask) -> Asking[Answer]:
    """Ask one question."""
    (answer,) = yield [ask]
    return answer
