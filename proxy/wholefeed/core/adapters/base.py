"""The interface of adapters: questions, responses and results (rules R26 to R31).

An adapter is a generator without I/O and clock. It yields a few questions at a time and receives the
responses in the same order.

    steps = adapter.collect(job)
    asks = next(steps)                      # [PageQuestion("https://example.org/feed/?paged=2")]
    asks = steps.send([AdapterPage(…)])     # StopIteration holds the AdapterOutcome

Instants are epoch seconds. A *date* is an instant by the publisher's own clock.
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

# Adapters


class Adapter(Protocol):
    @property
    def name(self) -> str:
        """The adapter's name in `/status`."""

    def fits(self, sight: Sight) -> bool:
        """Return whether a subscription document shows this kind of publisher (R26)."""

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        """Ask for all pages (R28)."""

    def look(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        """Ask for new entries since the last look (R30)."""


class Sight(NamedTuple):
    asked_url: str
    url: str
    """The document's URL after redirects."""
    family: Family
    site_id: str
    """`Head.site_id`."""
    marks: Marks


# Evidence about the software behind a document


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Evidence in a document about its software; all values are bounded."""

    generator: str = ""
    """Address and name in the generator element, with one blank between: uri and text for Atom."""
    api_url: str = ""
    """Target of the HTTP link of relation `https://api.w.org/` (WordPress REST API handbook, "Discovery")."""
    route: str = ""
    """The header field X-Discourse-Route."""
    last_id: str = ""
    """The last entry's atom:id, guid or rdf:about, as written."""
    has_comments: bool = False
    is_burned: bool = False
    """Whether the head has an element of FeedBurner."""
    total: int | None = None

    @staticmethod
    def read(text: str) -> Marks:
        return Marks(**json.loads(text))

    def written(self) -> str:
        return json.dumps({name: value for name in _MARK_NAMES if (value := getattr(self, name))})


_MARK_NAMES: Final = tuple(each.name for each in fields(Marks))


def marks_of(document: FeedDocument, *, api_url: str = "", route: str = "") -> Marks:
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
_TAG: Final = re.compile(r"<[^>]*>")
_ADDRESS: Final = re.compile(r"""\b(?:uri|url|rdf:resource|resource)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_BLANKS: Final = re.compile(r"\s+")


def _total(document: FeedDocument) -> int | None:
    """Return openSearch:totalResults of the head (OpenSearch 1.0, "Response elements")."""
    for child in document.head.children:
        if child.name == "totalResults" and child.end - child.start <= _MAX_FRAGMENT_BYTES:
            found = _TOTAL.search(document.text[child.start : child.end])
            return int(found[1]) if found else None
    return None


_TOTAL: Final = re.compile(rb">\s*(\d{1,9})\s*<")


def _identity(fragment: bytes) -> str:
    ends = fragment[:_LOOKED_AT_BYTES], fragment[_LOOKED_AT_BYTES:][-_LOOKED_AT_BYTES:]
    found = _ABOUT.search(fragment) or _ID.search(ends[0]) or _ID.search(ends[1])
    if found is None:
        return ""
    return found.group(1).decode("utf-8", "replace").strip()[:_MAX_CHARACTERS]


# Bytes searched at each end of an entry: identities stand there.
_LOOKED_AT_BYTES: Final = 16_384

# Bounded, since an entry may be as long as a document, and hold anything.
_ID: Final = re.compile(
    rb"<(?:\w{1,40}:)?(?:guid|id)\b[^>]{0,200}>\s{0,200}(?:<!\[CDATA\[)?\s{0,200}([^<\]]{1,1000})"
)
_ABOUT: Final = re.compile(rb"""\A<[^>]{0,2000}?\babout\s{0,20}=\s{0,20}["']([^"']{0,1000})["']""")


# The state of collecting a feed's history, from one refresh to the next (rules R28 to R31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    adapter: str = ""
    """Empty if no adapter fits."""
    family: str = ""
    """The feed's family for these pages; empty for the present one."""
    way: str = ""
    """The way to ask for pages, in the adapter's own words."""
    pages: int = 0
    page_entries: int = 0
    total: int | None = None
    collected: int = 0
    """Count of entries met on a walk through all pages."""
    start_id: str = ""
    """Identity of the subscription document's last entry before the first full walk. Keyset pages always
    start there."""
    start_at: float | None = None
    """Date of the entry in `start_id`, for pages that start at an instant."""
    top: str = ""
    """Identity of the subscription document's first entry at the last finished look, in hexadecimal."""
    top_at: float | None = None
    """Date of the entry in `top`, if the adapter's pages are in the order of dates."""
    walk: int = 0
    """Number of the last walk through all pages. Its pages serve after a restart."""
    began_at: float | None = None
    began_date: float | None = None
    """The publisher's last change before that walk, by its own clock."""
    ended_at: float | None = None
    is_idle: bool = False
    """Whether the last look brought no page worth storing."""
    looked_at: float | None = None
    daily_at: float | None = None
    etag: str = ""
    last_modified: str = ""
    """Last-Modified, like `etag`, of the subscription document at the last look."""
    digest: str = ""
    """Digest of the subscription document's body, in hexadecimal."""
    scanned_date: float | None = None
    """The latest date among pages in order of change."""
    is_tied: bool = False
    """Whether all pages are needed again (R30), after a tie of dates or ignored numbers."""
    is_flat: bool = False
    """Whether all pages bore one date."""
    retry_at: float | None = None
    """Earliest next question, after a denial (R27) or a refusal (R32)."""
    noted_at: float | None = None
    is_denied: bool = False
    """Whether the publisher has shown nothing of the pattern: the feed is `remembered`."""
    denials: int = 0
    """Attempts in a row without a result; the pauses between them grow."""
    reason: str = ""
    """Why the last attempt was incomplete; for people."""
    lack: str = ""
    """Why all available pages together are incomplete; for people. A look for news leaves it alone."""

    @property
    def is_begun(self) -> bool:
        return self.began_at is not None and (self.ended_at is None or self.ended_at < self.began_at)

    @property
    def is_ended(self) -> bool:
        """Whether a walk has read every page at least once."""
        return self.ended_at is not None

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse the output of `written`; ignore fields of other versions."""
        values = json.loads(text)
        return cls(**{name: values[name] for name in _DEFAULTS if name in values})

    def written(self) -> str:
        return json.dumps({name: value for name, value in asdict(self).items() if value != _DEFAULTS[name]})


NOTHING_COLLECTED: Final = "{}"
_DEFAULTS: Final = asdict(Collection())


# Questions and answers


class PageQuestion(NamedTuple):
    url: str
    place: int = 0
    """Position among the feed's pages: lower is nearer the subscription document."""
    is_head: bool = False
    """Whether to use HEAD (RFC 9110, 9.3.2)."""
    is_again: bool = False
    """Whether an earlier response for this URL does not serve."""
    is_needed: bool = False
    """Whether a page that does not exist counts as missing (R6)."""
    is_probe: bool = False
    """Whether the page is a test, and not stored."""
    is_held: bool = False
    """Whether to judge the page before it is stored; `kept` stores it then, without a request."""
    is_trial: bool = False
    """Whether a refusal concerns only this question, so that the adapter asks another one."""
    reading: int = 0
    """The reading of the pages that the question belongs to: each has its own bounds (R17)."""

    @property
    def expected(self) -> frozenset[int]:
        """Error statuses that count as a response: no such page, or this question alone is refused."""
        gone = frozenset[int]() if self.is_needed else GONE
        return gone | FORBIDDEN if self.is_head or self.is_trial else gone


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterPage:
    url: str
    """The URL after redirects."""
    family: Family
    identities: tuple[EntryId, ...]
    """From the top."""
    updated_at: float | None
    """The document's update time, at most the time of its receipt."""
    validators: tuple[str, str]
    """ETag and Last-Modified; empty strings if absent."""
    is_ascending: bool | None
    """Whether entries get newer downwards; None if unknown."""
    dates: tuple[float | None, ...] = ()
    """In the order of `identities`."""
    has_updates: bool = False
    """Whether an entry's date is its update time. Unknown for stored pages."""
    marks: Marks = field(default_factory=Marks)
    news: int = 0
    """Count of identities not stored before the fetch."""
    had_at: float = 0.0
    """Time of the fetch. After an interrupted walk some pages are older."""
    is_stored: bool = False
    """Whether the page comes from the store, after an interrupted walk."""

    @property
    def oldest_at(self) -> float | None:
        return min((at for at in self.dates if at is not None), default=None)

    @property
    def newest_at(self) -> float | None:
        return max((at for at in self.dates if at is not None), default=None)


@dataclass(frozen=True, slots=True)
class There:
    headers: Mapping[str, str]
    """Header fields with lower-case names."""


@dataclass(frozen=True, slots=True)
class Refused:
    slug: str
    status: int | None = None

    @property
    def is_gone(self) -> bool:
        return self.status in GONE

    @property
    def is_forbidden(self) -> bool:
        """Whether the publisher responds, but forbids this request."""
        return self.status in FORBIDDEN

    @property
    def is_objection(self) -> bool:
        """Whether the response was not the page asked for."""
        return self.slug in _OBJECTIONS


# Statuses for a page that does not exist (RFC 9110, 15.5.5 and 15.5.11).
GONE: Final = frozenset({404, 410})
# Statuses of a forbidden method, or of a parameter that a firewall blocks.
FORBIDDEN: Final = frozenset({400, 401, 403, 405, 406, 501})
# Slugs for responses other than the page asked for (R27).
_OBJECTIONS: Final = frozenset({"redirected", "format", "cross-origin-unconfirmed"})

PageResponse = AdapterPage | There | Refused
T = TypeVar("T")
Asking = Generator[Sequence[PageQuestion], Sequence[PageResponse], T]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterJob:
    asked_url: str
    url: str
    """The subscription document's URL after redirects."""
    page: AdapterPage
    now: float
    site_id: str = ""
    has_news: bool = False
    """Whether the subscription document brought an identity not stored before."""
    is_daily: bool = False
    """For a look for news: whether the last daily questions were a day ago."""
    is_interrupted: bool = False
    """For a look for news: whether the subscription document has changed since the last finished look.
    Then pages stored meanwhile may have gaps behind them, and a page without news is no end before known
    entries."""
    known: Collection = field(default_factory=Collection)

    @property
    def top(self) -> str:
        return self.page.identities[0].hex() if self.page.identities else ""

    @property
    def top_at(self) -> float | None:
        return self.page.dates[0] if self.page.dates else None

    @property
    def is_linked(self) -> bool:
        """Whether the subscription document reaches back to the last look."""
        return self.is_back(self.page)

    def is_back(self, page: AdapterPage) -> bool:
        """Return whether a page has the first entry of the last look, or an older one."""
        return self.reach(page) < len(page.identities)

    def reach(self, page: AdapterPage) -> int:
        """Return how many entries of a page stand before those known at the last look; all if it has none."""
        top, top_at = self.known.top, self.known.top_at
        entries = zip_longest(page.identities, page.dates)
        known = (
            place
            for place, (identity, at) in enumerate(entries)
            if identity.hex() == top or (at is not None and top_at is not None and at < top_at)
        )
        return next(known, len(page.identities))

    def report_unproven(self, reason: str) -> AdapterOutcome:
        return AdapterOutcome(is_honoured=False, known=self.known, reason=reason)

    def update_collection(self, **found: Any) -> Collection:
        return replace(self.known, top=self.top, retry_at=None, reason="", **found)

    def report_look(self, reason: str = "") -> AdapterOutcome:
        """Return the outcome of a look for news; `reason` says why it is incomplete."""
        known = self.known if reason else replace(self.known, top=self.top)
        return AdapterOutcome(is_honoured=True, is_whole=not reason, known=known, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterOutcome:
    is_honoured: bool
    """Whether the responses prove that there is more than the subscription document (R27)."""
    is_whole: bool = True
    """Whether the adapter asked for every page; the driver knows the failures."""
    known: Collection = field(default_factory=Collection)
    is_final: bool = False
    """Whether the publisher gives no more, although the result is incomplete."""
    reason: str = ""
    """Why the result is incomplete, for people."""
    wants_all: bool = False
    """Whether all pages are needed again, and none fetched before serves. After a look for news that happens
    at once, else later."""


def one(ask: PageQuestion) -> Asking[PageResponse]:
    (answer,) = yield [ask]
    return answer


def kept(ask: PageQuestion) -> Asking[PageResponse]:
    """Have a page with `is_held` stored."""
    return (yield from one(ask._replace(is_held=False, is_again=False)))


# Parameters of URLs: added to questions, and compared after redirects


def page_url(url: str, **parameters: str | int) -> str:
    """Return a URL with these parameters in place of those with the same names."""
    parts = urlsplit(url)
    own = (each for each in parts.query.split("&") if each and each.partition("=")[0] not in parameters)
    query = "&".join([*own, *(f"{name}={value}" for name, value in parameters.items())])
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def bears(url: str, asked_url: str) -> bool:
    """Return whether a redirect kept every parameter."""
    query = set(parse_qsl(urlsplit(url).query, keep_blank_values=True))
    return set(parse_qsl(urlsplit(asked_url).query, keep_blank_values=True)) <= query


def has_parameter(name: str, *urls: str, without: str = "") -> bool:
    """Return whether a URL has a parameter, neither empty nor `without`."""
    return any(dict(parse_qsl(urlsplit(url).query)).get(name, without) != without for url in urls)


# How many pages there are: doubling, then bisection, with HEAD where the publisher answers it (rule R28)

# A publisher that answers for a higher page number ignores the number.
MOST_PAGES: Final = 65_536


def last_page(
    ask: Callable[[int], PageQuestion], *, low: int, high: int | None = None, uses_head: bool = True
) -> Asking[int]:
    """Return the number of the last page; `MOST_PAGES` if every number brings a page.

    `low` is an existing page, `high` a missing one; None if none is known. With `uses_head`, HEAD is trusted.

    Raises:
        SearchError: A question failed.
    """
    search = _LastPageSearch(ask, low, uses_head=uses_head)
    while high is None:
        if low >= MOST_PAGES:
            return MOST_PAGES
        probe = min(2 * low, MOST_PAGES)
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
            low = low if search.uses_head else search.proven
    search.is_head_proven = True  # HEAD has reported a missing page, or is not in use
    while high - low > 1:
        probe = (low + high) // 2
        if (yield from search.is_there(probe)):
            low = probe
        else:
            high = probe
    return low


class SearchError(Exception):
    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.slug)
        self.refused = refused


class _LastPageSearch:
    def __init__(self, ask: Callable[[int], PageQuestion], low: int, *, uses_head: bool) -> None:
        self._ask = ask
        self.uses_head = uses_head
        self.proven = low
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
        if isinstance(answer, AdapterPage) and answer.identities:
            self.proven = number
            return True
        self.uses_head = False
        if isinstance(answer, Refused) and not answer.is_gone:
            raise SearchError(answer)
        return False


# Statuses of HEAD without meaning for GET.
_NO_HEAD: Final = frozenset({400, 403, 405, 406, 500, 501})
# Factor beyond the last proven page at which GET must confirm HEAD, which some publishers always accept.
_PROVEN_BEHIND: Final = 8
