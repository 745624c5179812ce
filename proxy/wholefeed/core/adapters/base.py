"""What an adapter asks for, what it is told, and what it comes to (rules R26 to R31).

An adapter decides without I/O and without a clock. It is a generator: it yields questions, at most a few at
once, and is sent as many answers in their order.

    steps = adapter.collect(job)
    asks = next(steps)                          # [Ask("https://example.org/feed/?paged=2")]
    asks = steps.send([Page(…)])                # StopIteration holds the Outcome

Instants are epoch seconds; those of the publisher's own clock are called dates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import zip_longest
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from wholefeed.core.model import WELL_KNOWN_PREFIXES, EntryId, Family, FeedDocument

# What an adapter is


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


# What a document says of the software that made it


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What adapters look for in a document; all of it bounded."""

    generator: str = ""
    """Address and name that the generator element gives, with one blank between: `https://wordpress.org/?v=6.6`
    of RSS, uri and text of Atom's element."""
    api_url: str = ""
    """Target of the HTTP link of relation `https://api.w.org/` (WordPress REST API handbook, "Discovery")."""
    route: str = ""
    """The field X-Discourse-Route of the answer."""
    last_id: str = ""
    """What identifies the last entry, as written: atom:id, guid or rdf:about."""
    has_comments: bool = False
    """Whether the first entry's identity is that of a comment on a post."""
    is_burned: bool = False
    """Whether an element of FeedBurner's stands in the head."""
    total: int | None = None
    """How many entries openSearch:totalResults claims."""

    @staticmethod
    def read(text: str) -> Marks:
        """Return what `written` gave."""
        return Marks(**json.loads(text))

    def written(self) -> str:
        """Return it as JSON, without what is empty."""
        return json.dumps({name: value for name in _MARK_NAMES if (value := getattr(self, name))})


_MARK_NAMES: Final = tuple(each.name for each in fields(Marks))


def marks_of(document: FeedDocument, *, api_url: str = "", route: str = "") -> Marks:
    """Return the marks of a document that has been parsed; `api_url` and `route` are as in `Marks`."""
    last_id, has_comments = "", False
    if document.entries:
        first, last = document.entries[0], document.entries[-1]
        last_id = _identity(document.text[last.start : last.end])
        has_comments = _COMMENT in _identity(document.text[first.start : first.end])
    return Marks(
        generator=_generator(document),
        api_url=api_url[:_MAX_CHARACTERS],
        route=route[:_MAX_CHARACTERS],
        last_id=last_id,
        has_comments=has_comments,
        is_burned=any(child.namespace == _FEEDBURNER for child in document.head.children),
        total=_total(document),
    )


_FEEDBURNER: Final = WELL_KNOWN_PREFIXES["feedburner"]
_MAX_CHARACTERS: Final = 300
_COMMENT: Final = "#comment-"


def _generator(document: FeedDocument) -> str:
    for child in document.head.children:
        if child.name in ("generator", "generatorAgent") and child.end - child.start <= _MAX_FRAGMENT_BYTES:
            fragment = document.text[child.start : child.end].decode("utf-8", "replace")
            found = _ADDRESS.search(fragment)
            address = (found.group(1) or found.group(2) or "") if found else ""
            name = _TAG.sub(" ", fragment.replace("<![CDATA[", "").replace("]]>", ""))
            return _BLANKS.sub(" ", f"{address} {name}").strip()[:_MAX_CHARACTERS]
    return ""


_MAX_FRAGMENT_BYTES: Final = 2000
"""Of a generator element; more than a name and an address is none."""
_TAG: Final = re.compile(r"<[^>]*>")
_ADDRESS: Final = re.compile(r"""\b(?:uri|url|rdf:resource|resource)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_BLANKS: Final = re.compile(r"\s+")


def _total(document: FeedDocument) -> int | None:
    """Return what openSearch:totalResults in the head says (OpenSearch 1.0, "Response elements")."""
    for child in document.head.children:
        if child.name == "totalResults" and child.end - child.start <= _MAX_FRAGMENT_BYTES:
            found = _TOTAL.search(document.text[child.start : child.end])
            return int(found[1]) if found else None
    return None


_TOTAL: Final = re.compile(rb">\s*(\d{1,9})\s*<")


def _identity(fragment: bytes) -> str:
    """Return the identity of an entry as written; empty where it has none of the usual form."""
    ends = fragment[:_LOOKED_AT_BYTES], fragment[_LOOKED_AT_BYTES:][-_LOOKED_AT_BYTES:]
    found = _ABOUT.search(fragment) or _ID.search(ends[0]) or _ID.search(ends[1])
    if found is None:
        return ""
    return found.group(1).decode("utf-8", "replace").strip()[:_MAX_CHARACTERS]


_LOOKED_AT_BYTES: Final = 16_384
"""Of an entry, at each end: where identities stand."""

# Bounded, since an entry may be as long as a document, and hold anything.
_ID: Final = re.compile(
    rb"<(?:\w{1,40}:)?(?:guid|id)\b[^>]{0,200}>\s{0,200}(?:<!\[CDATA\[)?\s{0,200}([^<\]]{1,1000})"
)
_ABOUT: Final = re.compile(rb"""\A<[^>]{0,2000}?\babout\s{0,20}=\s{0,20}["']([^"']{0,1000})["']""")


# What is kept of the collecting of a feed's history from one refresh to the next (rules R28 to R31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Of one feed; by default as it is before anything was collected."""

    adapter: str = ""
    """Whose pattern it is; empty where none fits."""
    family: str = ""
    """Of the feed whose pages they are: those of another format are others. Empty: as the feed's is now."""
    way: str = ""
    """How its pages are asked for, in the adapter's own words."""
    pages: int = 0
    """How many there are."""
    page_entries: int = 0
    """How many entries a full one has."""
    total: int | None = None
    """Entries that the publisher claims to have."""
    collected: int = 0
    """Entries that were met when all pages were asked for."""
    start_id: str = ""
    """What identified the last entry of the subscription document when all pages were asked for first: where
    pages are asked for by an entry, they are the same ones ever after."""
    start_at: float | None = None
    """Its date, for pages that are asked for by an instant."""
    top: str = ""
    """Identity of the first entry of the subscription document at the last look that came to its end, in
    hexadecimal digits."""
    top_at: float | None = None
    """Its date, where it bears one and the adapter's pages are in that order."""
    walk: int = 0
    """How often all pages were begun to be asked for; what the last such walk had serves after a restart."""
    began_at: float | None = None
    """When that was."""
    began_date: float | None = None
    """When the publisher had changed something last by then, by its own clock."""
    ended_at: float | None = None
    """When the last page of them was had, the last time that it came to that."""
    is_idle: bool = False
    """Whether the last look has brought nothing that was worth keeping."""
    looked_at: float | None = None
    """When it was looked for news last."""
    daily_at: float | None = None
    """When it was last asked for what is asked for once a day."""
    etag: str = ""
    last_modified: str = ""
    """Of the subscription document, at that time."""
    digest: str = ""
    """Of its body, in hexadecimal digits."""
    scanned_date: float | None = None
    """The latest date of the pages that were asked for by date of change."""
    is_tied: bool = False
    """Whether all pages have to be asked for again (R30): two pages by date of change bore one date, or
    numbers are not honoured any more."""
    is_flat: bool = False
    """Whether all pages bore one date."""
    retry_at: float | None = None
    """Nothing is asked before: the pattern is not honoured (R27), or not any more, or the publisher refused
    (R32)."""
    noted_at: float | None = None
    """When that was noted."""
    is_denied: bool = False
    """Whether the publisher has shown nothing of the pattern: the feed is a remembered one."""
    denials: int = 0
    """How often in a row that could not even be found out, or what was asked for did not come: the pauses
    between the tries grow."""
    reason: str = ""
    """Why; for people."""
    lack: str = ""
    """Why what all pages had is not all there is, though the publisher gives no more; for people. A look for
    news changes nothing of that."""

    @property
    def is_begun(self) -> bool:
        """Whether all pages are being asked for, and some have not been had."""
        return self.began_at is not None and (self.ended_at is None or self.ended_at < self.began_at)

    @property
    def is_ended(self) -> bool:
        """Whether every page that the pattern reaches was read, once at least."""
        return self.ended_at is not None

    @classmethod
    def read(cls, text: str) -> Self:
        """Return what `written` gave; what another version knew more is left out."""
        values = json.loads(text)
        return cls(**{name: values[name] for name in _DEFAULTS if name in values})

    def written(self) -> str:
        """Return it as JSON, without what is as it was in the beginning."""
        return json.dumps({name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]})


NOTHING_COLLECTED: Final = "{}"
"""`Collection().written()`."""
_DEFAULTS: Final = asdict(Collection())


# Questions and answers


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
    is_held: bool = False
    """Whether what comes has to be judged first: it is kept if the same is asked for without this, which
    costs no request (`kept`)."""
    is_trial: bool = False
    """Whether a refusal says something of this question alone, as of HEAD: another one is asked then."""
    reading: int = 0
    """Which reading of the pages it belongs to: each is a pass with bounds of its own (R17)."""

    @property
    def expected(self) -> frozenset[int]:
        """Statuses that are an answer: they say that nothing is there, or that this question is refused."""
        gone = frozenset[int]() if self.is_needed else GONE
        return gone | FORBIDDEN if self.is_head or self.is_trial else gone


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
    dates: tuple[float | None, ...] = ()
    """Of its entries, in the order of `identities`."""
    has_updates: bool = False
    """Whether an entry says when it was updated, which is its date then; of a stored page it is not known."""
    marks: Marks = field(default_factory=Marks)
    news: int = 0
    """How many of its identities were not stored before it came."""
    had_at: float = 0.0
    """When it came, epoch seconds; of a walk that was cut off some pages are from before."""
    is_stored: bool = False
    """Whether it is one of those."""

    @property
    def oldest_at(self) -> float | None:
        """Of its entries."""
        return min((at for at in self.dates if at is not None), default=None)

    @property
    def newest_at(self) -> float | None:
        """Of its entries."""
        return max((at for at in self.dates if at is not None), default=None)


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
    def is_forbidden(self) -> bool:
        """Whether the publisher answers, but not this."""
        return self.status in FORBIDDEN

    @property
    def is_objection(self) -> bool:
        """Whether something came that was not asked for."""
        return self.slug in _OBJECTIONS


GONE: Final = frozenset({404, 410})
"""What a publisher says of a page that is not there (RFC 9110, 15.5.5 and 15.5.11)."""
FORBIDDEN: Final = frozenset({400, 401, 403, 405, 406, 501})
"""What a publisher says of a method, or a firewall of a parameter, that it does not let pass."""
_OBJECTIONS: Final = frozenset({"redirected", "format", "cross-origin-unconfirmed"})
"""Slugs of what came, but is not what was asked for (R27)."""

Answer = Page | There | Refused
T = TypeVar("T")
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
    site_id: str = ""
    """As `Head.site_id`."""
    has_news: bool = False
    """Whether the subscription document brought an identity that was not stored."""
    is_daily: bool = False
    """Of a look for news: whether the last one that asked for everything was a day ago."""
    is_interrupted: bool = False
    """Of a look for news: whether the subscription document has been another since the last look that came to
    its end. What is stored of that time may have gaps behind it, so a page without news ends nothing before
    what was known at that look (`is_back`)."""
    known: Collection = field(default_factory=Collection)
    """What is known from earlier collections."""

    @property
    def top(self) -> str:
        """The identity of the subscription document's first entry, as `Collection.top`."""
        return self.page.identities[0].hex() if self.page.identities else ""

    @property
    def top_at(self) -> float | None:
        """The date of that entry, as `Collection.top_at`."""
        return self.page.dates[0] if self.page.dates else None

    @property
    def is_linked(self) -> bool:
        """Whether the subscription document reaches back to what it began with at the last look."""
        return self.is_back(self.page)

    def is_back(self, page: Page) -> bool:
        """Whether a page has what the subscription document began with at the last look, or is older."""
        return self.reach(page) < len(page.identities)

    def reach(self, page: Page) -> int:
        """Return how many entries of a page stand before those of the last look; all, where it has none.

        Of these is what the subscription document began with, and what is older.
        """
        top, top_at = self.known.top, self.known.top_at
        entries = zip_longest(page.identities, page.dates)
        known = (
            place
            for place, (identity, at) in enumerate(entries)
            if identity.hex() == top or (at is not None and top_at is not None and at < top_at)
        )
        return next(known, len(page.identities))

    def unproven(self, reason: str) -> Outcome:
        """Return that the publisher has shown nothing more than the subscription document."""
        return Outcome(is_honoured=False, known=self.known, reason=reason)

    def collected(self, **found: Any) -> Collection:
        """Return what is known when all pages were asked for; `found` are fields of it."""
        return replace(self.known, top=self.top, retry_at=None, reason="", **found)

    def looked(self, reason: str = "") -> Outcome:
        """Return what a look for news came to; `reason` says why not to everything."""
        known = self.known if reason else replace(self.known, top=self.top)
        return Outcome(is_honoured=True, is_whole=not reason, known=known, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an adapter came to."""

    is_honoured: bool
    """Whether what it asked for has shown that there is more than the subscription document (R27)."""
    is_whole: bool = True
    """Whether every page that the pattern reaches was asked for; which of them failed, the driver knows."""
    known: Collection = field(default_factory=Collection)
    is_final: bool = False
    """Of what is not whole: whether the publisher gives no more, so that asking again brings nothing."""
    reason: str = ""
    """Where it is not honoured, or not whole: why, for people."""
    wants_all: bool = False
    """Whether all pages have to be asked for again, and none that was had serves: after a look for news at
    once, after all pages later."""


def one(ask: Ask) -> Asking[Answer]:
    (answer,) = yield [ask]
    return answer


def kept(ask: Ask) -> Asking[Answer]:
    """Have what was held kept: it belongs to this feed."""
    return (yield from one(ask._replace(is_held=False, is_again=False)))


# Parameters of URLs: added to what is asked for, and looked for in what redirects led to


def page_url(url: str, **parameters: str | int) -> str:
    """Return the URL of a feed with these parameters behind its own, in place of those of the same names."""
    parts = urlsplit(url)
    own = (each for each in parts.query.split("&") if each and each.partition("=")[0] not in parameters)
    query = "&".join([*own, *(f"{name}={value}" for name, value in parameters.items())])
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def bears(url: str, asked_url: str) -> bool:
    """Return whether a URL that redirects led to has every parameter of the one that was asked for."""
    query = set(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    return set(parse_qsl(urlsplit(asked_url).query, keep_blank_values=True)) <= query


def has_parameter(name: str, *urls: str, without: str = "") -> bool:
    """Return whether one of the URLs has a parameter of that name, not empty and not `without`."""
    return any(dict(parse_qsl(urlsplit(url).query)).get(name, without) != without for url in urls)


# How many pages there are: doubling, then bisection, with HEAD where the publisher answers it (rule R28)

MOST_PAGES: Final = 65_536
"""A publisher that answers a page of a higher number answers any."""


def last_page(
    ask: Callable[[int], Ask], *, low: int, high: int | None = None, uses_head: bool = True
) -> Asking[int]:
    """Return the number of the last page; `MOST_PAGES`: whatever the number, something comes.

    Args:
        ask: The question for a page, by its number.
        low: A page that is there.
        high: One that is not; None: none is known.
        uses_head: Whether HEAD is to be believed.

    Raises:
        SearchError: A page could not be asked for.
    """
    search = _Search(ask, low, uses_head=uses_head)
    while high is None:
        if low >= MOST_PAGES:
            return MOST_PAGES
        probe = min(2 * low, MOST_PAGES)
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
            low = low if search.uses_head else search.proven
    search.is_head_proven = True  # it has said of a page that it is not there, or is not used
    while high - low > 1:
        probe = (low + high) // 2
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
    return low


class SearchError(Exception):
    """A page could not be asked for; `refused` says why."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.slug)
        self.refused = refused


class _Search:
    def __init__(self, ask: Callable[[int], Ask], low: int, *, uses_head: bool) -> None:
        self._ask = ask
        self.uses_head = uses_head
        self.proven = low
        """The last page that came."""
        self.is_head_proven = False

    def is_there(self, number: int) -> Asking[bool]:
        ask = self._ask(number)
        if self.uses_head:
            answer = yield from one(ask._replace(is_head=True))
            is_there = isinstance(answer, There)
            if is_there and (self.is_head_proven or number < self.proven * _PROVEN_BEHIND):
                return True
            if isinstance(answer, Refused) and answer.is_gone:
                return False
            if isinstance(answer, Refused) and answer.status not in _NO_HEAD:
                raise SearchError(answer)
            self.uses_head = is_there
        answer = yield from one(ask)
        if isinstance(answer, Page) and answer.identities:
            self.proven = number
            return True
        self.uses_head = False
        if isinstance(answer, Refused) and not answer.is_gone:
            raise SearchError(answer)
        return False


_NO_HEAD: Final = frozenset({400, 403, 405, 406, 500, 501})
"""Statuses of HEAD that say nothing of GET."""
_PROVEN_BEHIND: Final = 8
"""So many times as far as a page that came, GET has to bear HEAD out: some publishers answer it always."""
