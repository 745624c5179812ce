"""What the store takes and gives. Times are seconds since the epoch, UTC.

Rows that are read by the thousand are not frozen, for to make one would take three times as long; nobody sets
a field of one all the same (`dataclasses.replace`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypedDict, TypeVar

from wholefeed.core.compose.segments import Sealed
from wholefeed.core.compose.views import Turn, Warned
from wholefeed.core.facts import EntryFacts, PackedEntries, PackedKeys
from wholefeed.core.model import EntryId, Family, Kind, Role, State, Tombstone, Traits
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.stored import Attempt, StoredDocument, StoredFeed
from wholefeed.store.base import Row

if TYPE_CHECKING:
    from wholefeed.core.jobs import DocumentInMemory

NoteDict = Mapping[str, str]
"""A note as it is shown: code, url, text."""


@dataclass(slots=True, kw_only=True)
class FeedRow(StoredFeed):
    """A feed: where it comes from, and what was published of it."""

    published_family: Family
    """As published; `family` is that of the subscription document as it is stored."""
    version: str
    """Of the format, as published; empty for the family's usual one."""
    via_url: str
    """Where the publication came from; `fetch_url` is where it is asked for now."""
    is_stale: bool
    is_private: bool
    documents: int
    entries: int
    listed: int
    """Of these, how many stand in the publisher's pages alone (H7)."""
    parser_version: int
    asked_at: float
    checked_at: float | None
    failed_at: float | None
    """When its publisher could not be asked, the last time; None: it has answered since."""
    fresh_until: float | None
    modified_at: float | None
    """None until it is published."""
    ending: str
    """Why the last walk ended: JSON, as the service wrote it."""
    title: str | None
    """What it calls itself, as published; None: it was published before that was kept, or never."""
    site: str
    """The page that it is about; empty where that is not known."""
    head_prefixes: int
    head: bytes | None
    context: bytes | None
    warning: Warned
    warned_at: float | None
    lines_begun: int | None
    """How many lines it had when they were begun (P1); None: nobody has asked for a replay of it."""
    renamed_since: float | None
    """When that was first seen, epoch seconds."""
    renaming_looks: int
    """How many looks in a row have brought new ids for most of what was known."""

    @property
    def since(self) -> float:
        """Since when it holds all that its publisher was seen to show (R7), epoch seconds."""
        return self.first_seen_at if self.family_since is None else self.family_since

    @property
    def noted_at(self) -> float | None:
        """When `fresh_until` was noted, epoch seconds."""
        return self.checked_at if self.failed_at is None else self.failed_at

    @property
    def turn(self) -> Turn:
        """What readers were told of what is missing."""
        return Turn(self.warning, self.warned_at)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing has been stored of the feed yet: no document, and no word of its publisher."""
        return not self.revision and self.checked_at is None and self.fresh_until is None


@dataclass(slots=True, kw_only=True)
class ListedFeed:
    """What lists tell of a feed. All of it is short, whatever its publisher writes."""

    id: int
    url: str
    fetch_url: str
    """As in `FeedRow`."""
    kind: Kind
    visible_state: State
    is_stale: bool
    published_family: Family
    documents: int
    entries: int
    since: float
    """As in `FeedRow`."""
    checked_at: float | None
    noted_at: float | None
    """As in `FeedRow`."""
    fresh_until: float | None
    digest: bytes | None
    """As in `StoredFeed`."""
    title: str | None
    """As in `FeedRow`."""
    site: str


class FeedChanges(TypedDict, total=False):
    """What `tables.feeds.update` may change."""

    fetch_url: str
    moved_to: str | None
    moved_since: float | None
    moved_times: int
    family: Family
    family_since: float
    had_at: float
    doubts: int
    kind: Kind
    is_stale: bool
    is_private: bool
    parser_version: int
    first_seen_at: float
    asked_at: float
    checked_at: float | None
    failed_at: float | None
    fresh_until: float | None
    cache_control: str
    expires: str
    context: bytes | None
    collection: str
    listing: str
    list_at: float | None
    shifts: str


@dataclass(slots=True, kw_only=True)
class DocumentRow(StoredDocument):
    """A stored document, without its body and entries."""

    feed: int
    version: str
    """Of its format, as it says; empty where that is not known yet."""
    media_type: str
    generated_at: float | None
    """Of a page that an adapter asked for: when its publisher made it."""
    live_bytes: int
    notes: tuple[NoteDict, ...]
    """What was remarked on it when it was read."""


class DocumentChanges(TypedDict, total=False):
    """What `tables.documents.touch` may change: nothing that the choice of live entries depends on."""

    final_url: str
    etag: str | None
    last_modified: str | None
    checked_at: float
    is_settled: bool
    is_uncacheable: bool
    brought_news: bool
    found_in: int


NewEntry = EntryFacts
"""An entry of a document that is put. Its place in the sequence is its ordinal."""
NewEntries = Sequence[NewEntry] | PackedEntries


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document to put, with its body and entries.

    What bears the name of a column is put into it, and carried over by `of`: a new column is named here and
    in `DocumentRow`, and given a value where a document is described to the store.
    """

    url: str
    final_url: str
    role: Role
    rank: int | None
    """None: detached."""
    detached_at: float | None = None
    """Since when a detached one is no part of the feed; None: since it is put."""
    family: Family
    body: bytes
    digest: bytes
    media_type: str
    fetched_at: float
    parser_version: int
    entries: NewEntries
    is_doubtful: bool = False
    """Whether what leaves an archive document by this may have moved: it stays as remembered (R35)."""
    in_memory: DocumentInMemory | None = field(default=None, compare=False)
    """What it can be sent from before its body is read again; the store does not look at that."""
    coded: bytes | None = None
    """The body as `store.tables.documents` encodes it; None: it is small, and encoded as it is put."""
    version: str = ""
    site_id: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    is_marked: bool = False
    is_settled: bool = False
    is_uncacheable: bool = False
    brought_news: bool = True
    etag: str | None = None
    last_modified: str | None = None
    updated_at: float | None = None
    origin: Origin = Origin.PUBLISHER
    memento: str = ""
    tombstones: Sequence[Tombstone] = ()
    keys: PackedKeys = field(default_factory=PackedKeys)
    """Of entries without an id of their own; what identifies them is settled as they are put (R9)."""
    ambiguous: Collection[EntryId] = ()
    """As `FeedDocument.ambiguous`."""
    own: Mapping[int, EntryId] = field(default_factory=dict)
    """As `DocumentFacts` has it, like the next two."""
    traits: Mapping[int, Traits] = field(default_factory=dict)
    pairs: Mapping[EntryId, EntryId] = field(default_factory=dict)
    notes: Sequence[NoteDict] = ()
    marks: str | None = None
    found_by: str = ""
    found_in: int = 0
    generated_at: float | None = None

    @classmethod
    def of(cls, row: DocumentRow, body: bytes, entries: NewEntries) -> Self:
        """Return a stored document to be put again as it is; its tombstones are not carried over."""
        carried = {name: getattr(row, name) for name in PUT_COLUMNS}
        return cls(body=body, entries=entries, **carried)


PUT_COLUMNS: Final = tuple(
    each.name
    for each in fields(NewDocument)
    if each.name
    not in (
        *("body", "coded", "entries", "tombstones", "keys", "ambiguous", "detached_at", "is_doubtful"),
        *("own", "traits", "pairs", "in_memory"),
    )
)
"""The columns that a document brings with it, by the names of `NewDocument`."""


@dataclass(slots=True, kw_only=True)
class SegmentRow:
    """A segment, without its block (see `wholefeed.core.compose.segments`)."""

    id: int
    length: int
    crc32: int
    crc_shift: int
    deflated_bytes: int
    """Of its block."""
    digest: bytes
    prefixes: int
    newest_at: float | None
    oldest_at: float | None
    entries: int
    parser_version: int
    context: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """A segment to publish: the live entries of `documents`, or `members`, sealed."""

    documents: tuple[int, ...]
    """That are in it as a whole."""
    sealed: Sealed
    prefixes: int
    newest_at: float | None
    oldest_at: float | None
    entries: int
    parser_version: int
    context: bytes | None = None
    outline: bytes = b""
    """As `wholefeed.core.compose.segments` packs it; empty where nobody needs it."""
    members: bytes = b""
    """Of a collected feed: its entries, as `wholefeed.core.compose.weaving` writes them (R20)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a feed's answer is made of, in the words of `FeedRow`."""

    segments: Sequence[int | NewSegment]
    """In output order; a number is a segment that stays."""
    state: State
    family: Family
    via_url: str
    """Where the subscription document is asked for."""
    is_walking: bool = False
    """Whether the walk goes on, and may still add documents."""
    ending: str | None = None
    """Why the walk ended; None leaves what is stored."""
    missing: Sequence[Attempt] | None = None
    """All that could not be had; None leaves what is stored."""
    title: str
    site: str
    head: bytes
    head_prefixes: int
    context: bytes | None
    digest: bytes
    documents: int
    entries: int
    text_bytes: int
    notes: str
    parser_version: int
    version: str = ""
    is_woven: bool = False
    """Whether segments hold entries, and not only whole documents."""
    is_alike: bool = False
    """Whether readers have the same bytes already, by a publication that was digested in another way."""
    dates: Mapping[int, Sequence[float | None]] = field(default_factory=dict)
    """Of a feed with lines (P1): of documents with entries that have none, when those were published."""


class Failures(NamedTuple):
    """What could not be had of a feed."""

    missing: tuple[Attempt, ...]
    """The documents that make it partial, since longest first."""
    subscription: Attempt | None
    """The subscription document itself, the last time it was asked for: the feed is stale."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A feed as it was published, whole. Its segments stay readable while it is held."""

    feed: FeedRow
    segments: tuple[SegmentRow, ...]
    missing: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What is known of a feed at one moment, beside its documents."""

    feed: FeedRow
    failures: Failures
    stored_bytes: int
    """What the bodies of its documents come to, decoded."""
    imported: Imported | None = None
    """None: nothing was imported."""


def match_origins(origins: Iterable[Origin], column: str = "origin") -> str:
    """Return the condition that a document has one of these origins.

    It names them, or all others if these are fewer: SQLite makes a table of more than two.
    """
    wanted = list(origins)
    others = [each for each in Origin if each not in wanted]
    verb, few = ("IN", wanted) if len(wanted) <= len(others) else ("NOT IN", others)
    names = ", ".join(f"'{each}'" for each in few)
    return f"({column} {verb} ({names}))"


def match_urls(origins: Iterable[Origin], column: str = "url") -> str:
    """Return the same condition by the URL of the document, so that the index of URLs serves it.

    Each of the origins has to have a prefix of its own.
    """
    prefixes = sorted(each.policy.url_prefix for each in origins)
    assert all(prefixes), "any document may have the URL of one of them"
    ranges = [f"{column} >= '{each}' AND {column} < '{each[:-1]};'" for each in prefixes]
    if len(ranges) == 1:
        return f"({ranges[0]})"
    span = (
        f"{column} >= '{prefixes[0]}' AND {column} < '{prefixes[-1][:-1]};'"  # else SQLite reads all of them
    )
    return f"({span} AND ({' OR '.join(ranges)}))"


class Imported(NamedTuple):
    """What people have kept of a feed and imported (I1)."""

    documents: int
    entries: int
    """That no other document of the feed has, or would have if they were served."""
    are_served: bool


# Rows as they are selected: by name, in the order of the fields that they become


def _named(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


FEED_COLUMNS: Final = ", ".join(_named(FeedRow))
VISIBLE_STATE: Final = "CASE WHEN is_walking <> 0 THEN 'loading' ELSE state END"
_LISTED: Final = {
    "visible_state": f"{VISIBLE_STATE} AS visible_state",
    "since": "coalesce(family_since, first_seen_at) AS since",
    "noted_at": "coalesce(failed_at, checked_at) AS noted_at",
}
LISTED_COLUMNS: Final = ", ".join(_LISTED.get(name, name) for name in _named(ListedFeed))
DOCUMENT_COLUMNS: Final = ", ".join(_named(DocumentRow))
SEGMENT_COLUMNS: Final = ", ".join(_named(SegmentRow))
_Reader = Callable[[Any], Any]
_T = TypeVar("_T")


def member(kind: type[StrEnum]) -> _Reader:
    """Return what gives the member of a value in a sixth of the time that the enumeration takes."""
    return {each.value: each for each in kind}.__getitem__


def _row_reader(kind: type[_T], readers: Mapping[str, _Reader]) -> Callable[[Row], _T]:
    """Return what makes a row of a query into what it is; some of its columns are read by functions."""
    names = _named(kind)

    def row_of(row: Row) -> _T:
        values = dict(zip(names, row, strict=True))
        for name, read in readers.items():
            values[name] = read(values[name])
        return kind(**values)

    return row_of


def _json(text: str) -> Any:
    """Return what a text says; most say nothing, and the parser is called for the others alone."""
    if text == "[]":
        return []
    return {} if text == "{}" else json.loads(text)


segment_row: Final = _row_reader(SegmentRow, {})
"""Returns the segment that a row of `SEGMENT_COLUMNS` is."""
feed_row: Final = _row_reader(
    FeedRow,
    {
        **dict.fromkeys(("is_walking", "is_stale", "is_private"), bool),
        **dict.fromkeys(("family", "published_family"), member(Family)),
        "kind": member(Kind),
        "state": member(State),
        "warning": member(Warned),
    },
)
"""Returns the feed that a row of `FEED_COLUMNS` is."""
listed_feed: Final = _row_reader(
    ListedFeed,
    {
        "kind": member(Kind),
        "visible_state": member(State),
        "is_stale": bool,
        "published_family": member(Family),
    },
)
"""Returns what a row of `LISTED_COLUMNS` tells."""
document_row: Final = _row_reader(
    DocumentRow,
    {
        **dict.fromkeys(("is_marked", "is_settled", "is_uncacheable", "brought_news"), bool),
        "role": member(Role),
        "origin": member(Origin),
        "family": member(Family),
        "links": _json,
        "notes": lambda text: tuple(_json(text)),
    },
)
"""Returns the document that a row of `DOCUMENT_COLUMNS` is."""
