"""Rows and values that the store returns and accepts. Times are epoch seconds.

Frequent rows are not frozen, since creation would take three times as long. Nobody sets their fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypedDict, TypeVar

from wholefeed.core.compose.segments import Sealed
from wholefeed.core.compose.views import ViewTurn, Warned
from wholefeed.core.facts import EntryFacts, PackedEntries, PackedKeys
from wholefeed.core.model import EntryId, Family, Kind, Role, State, Tombstone, Traits
from wholefeed.core.origins import Origin
from wholefeed.core.refresh.stored import Attempt, StoredDocument, StoredFeed
from wholefeed.store.base import Row

if TYPE_CHECKING:
    from wholefeed.core.jobs import DocumentInMemory

NoteDict = Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class FeedRow(StoredFeed):
    published_family: Family
    """Family of the publication; `family` is the stored subscription document's."""
    version: str
    """Format version of the publication; empty for the family's usual one."""
    via_url: str
    """URL of the publication's source; `fetch_url` is the current one."""
    is_stale: bool
    is_private: bool
    documents: int
    entries: int
    listed: int
    """Number of entries from the publisher's pages alone (H7)."""
    parser_version: int
    asked_at: float
    checked_at: float | None
    failed_at: float | None
    """Latest failure to reach the publisher. None: it has responded since."""
    fresh_until: float | None
    modified_at: float | None
    """None: never published."""
    ending: str
    """JSON from the service: the reason for the end of the last walk."""
    title: str | None
    """None: never published, or before titles were stored."""
    site: str
    """Empty if unknown."""
    head_prefixes: int
    head: bytes | None
    context: bytes | None
    warning: Warned
    warned_at: float | None
    lines_begun: int | None
    """Number of lines when numbering began (P1). None: nobody has requested a replay."""
    renamed_since: float | None
    """Time when a post with several ids was first seen (R36)."""
    renaming_looks: int
    """Successive looks that brought new ids for most known entries."""
    texts_wanted: int = 0
    """Number of entries that want the text of their page (T1), at the last look."""
    texts: int = 0
    """Number of pages that have given one."""
    texts_at: float | None = None
    """Time of the last change of these texts for readers, epoch seconds. None: there was none."""

    @property
    def since(self) -> float:
        """Time since which the feed has all entries seen at its publisher (R7)."""
        return self.first_seen_at if self.family_since is None else self.family_since

    @property
    def noted_at(self) -> float | None:
        """Time when `fresh_until` was set."""
        return self.checked_at if self.failed_at is None else self.failed_at

    @property
    def turn(self) -> ViewTurn:
        return ViewTurn(self.warning, self.warned_at)

    @property
    def is_untouched(self) -> bool:
        return not self.revision and self.checked_at is None and self.fresh_until is None


@dataclass(slots=True, kw_only=True)
class FeedSummary:
    """A feed in a list of feeds: the fields of `FeedRow` that stay short with any publisher."""

    id: int
    url: str
    fetch_url: str
    kind: Kind
    visible_state: State
    is_stale: bool
    published_family: Family
    documents: int
    entries: int
    since: float
    checked_at: float | None
    noted_at: float | None
    fresh_until: float | None
    digest: bytes | None
    title: str | None
    site: str


@dataclass(slots=True, kw_only=True)
class FeedLine(FeedSummary):
    oldest_at: float | None
    reason: str | None
    """Why its publisher did not send it at the last request; None: it did."""
    status: int | None


class FeedChanges(TypedDict, total=False):
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
    feed: int
    version: str
    media_type: str
    generated_at: float | None
    """Time when the publisher generated a page that an adapter requested."""
    live_bytes: int
    notes: tuple[NoteDict, ...]


class DocumentChanges(TypedDict, total=False):
    """Columns for `document_table.touch`: the choice of live entries does not depend on them."""

    final_url: str
    etag: str | None
    last_modified: str | None
    checked_at: float
    is_settled: bool
    is_uncacheable: bool
    brought_news: bool
    found_in: int


NewEntry = EntryFacts
"""An entry of a new document. Its place in the sequence is its ordinal."""
NewEntries = Sequence[NewEntry] | PackedEntries


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDocument:
    """A document to store. Fields with the name of a column are stored there, and copied by `of`."""

    url: str
    final_url: str
    role: Role
    rank: int | None
    """None: detached."""
    detached_at: float | None = None
    """Time from which a detached document is no part of the feed. None: the time of storing."""
    family: Family
    body: bytes
    digest: bytes
    media_type: str
    fetched_at: float
    parser_version: int
    entries: NewEntries
    is_doubtful: bool = False
    """Whether entries missing from a new archive version may have moved, and stay remembered (R35)."""
    in_memory: DocumentInMemory | None = field(default=None, compare=False)
    """Source for answers before the body is read again; unused by the store."""
    coded: bytes | None = None
    """The body as `store.tables.document_table` encodes it. None: small, and encoded when stored."""
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
    """Keys of entries without an id of their own. Storing settles which key identifies each (R9)."""
    ambiguous: Collection[EntryId] = ()
    own: Mapping[int, EntryId] = field(default_factory=dict)
    """See `DocumentFacts`."""
    traits: Mapping[int, Traits] = field(default_factory=dict)
    pairs: Mapping[EntryId, EntryId] = field(default_factory=dict)
    notes: Sequence[NoteDict] = ()
    marks: str | None = None
    found_by: str = ""
    found_in: int = 0
    generated_at: float | None = None

    @classmethod
    def of(cls, row: DocumentRow, body: bytes, entries: NewEntries) -> Self:
        """Return a stored document to be stored again unchanged, without its tombstones."""
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


@dataclass(slots=True, kw_only=True)
class SegmentRow:
    id: int
    length: int
    crc32: int
    crc_shift: int
    deflated_bytes: int
    digest: bytes
    prefixes: int
    newest_at: float | None
    oldest_at: float | None
    entries: int
    parser_version: int
    context: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """A segment of the live entries of `documents`, or of `members`, sealed."""

    documents: tuple[int, ...]
    sealed: Sealed
    prefixes: int
    newest_at: float | None
    oldest_at: float | None
    entries: int
    parser_version: int
    context: bytes | None = None
    outline: bytes = b""
    """Entry positions, packed by `wholefeed.core.compose.segments`; empty if nobody needs them."""
    members: bytes = b""
    """Entries in a collected feed, packed by `wholefeed.core.compose.weaving` (R20)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    segments: Sequence[int | NewSegment]
    """In output order; a number is a segment that stays."""
    state: State
    family: Family
    via_url: str
    is_walking: bool = False
    ending: str | None = None
    """None: leave the stored one."""
    missing: Sequence[Attempt] | None = None
    """None: leave the stored ones."""
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
    """Whether some segments consist of entries instead of whole documents."""
    is_alike: bool = False
    """Whether readers already have the same bytes, from a publication with another kind of digest."""
    dates: Mapping[int, Sequence[float | None]] = field(default_factory=dict)
    """Publication dates of entries, by document with entries without a line (P1)."""


class Failures(NamedTuple):
    missing: tuple[Attempt, ...]
    """The documents that make the feed partial, oldest failure first."""
    subscription: Attempt | None
    """The last attempt, which makes the feed stale."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A feed as published. Its segments stay readable within `Store.snapshot`."""

    feed: FeedRow
    segments: tuple[SegmentRow, ...]
    missing: tuple[Attempt, ...]


class TextRefusal(NamedTuple):
    """Pages that gave no text, for one reason (T3, T5)."""

    why: str
    pages: int
    url: str
    """One of them."""


@dataclass(frozen=True, slots=True)
class TextSummary:
    """Texts of a feed's entries from their pages, beside the counts of its row."""

    asked_at: float
    due_at: float | None
    learned: str
    """JSON from the service: the element that holds the texts."""
    refused: tuple[TextRefusal, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    feed: FeedRow
    failures: Failures
    stored_bytes: int
    """Total size of its documents' bodies, decoded."""
    imported: ImportSummary | None = None
    texts: TextSummary | None = None
    """None: nobody has asked for texts."""


def match_origins(origins: Iterable[Origin], column: str = "origin") -> str:
    """Return the SQL condition that a document has one of these origins."""
    wanted = list(origins)  # SQLite builds a table for more than two, so the condition names the fewer
    others = [each for each in Origin if each not in wanted]
    verb, few = ("IN", wanted) if len(wanted) <= len(others) else ("NOT IN", others)
    names = ", ".join(f"'{each}'" for each in few)
    return f"({column} {verb} ({names}))"


def match_urls(origins: Iterable[Origin], column: str = "url") -> str:
    """Return the same condition on the document's URL, for the index of URLs.

    Each origin needs a URL prefix of its own.
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


class ImportSummary(NamedTuple):
    """A summary of the documents that people imported into a feed (I1)."""

    documents: int
    entries: int
    """Number of imported entries that are, or would be, live."""
    are_served: bool


# Selected rows: columns by name, in the order of the fields


def _field_names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


FEED_COLUMNS: Final = ", ".join(_field_names(FeedRow))
VISIBLE_STATE: Final = "CASE WHEN is_walking <> 0 THEN 'loading' ELSE state END"
_LISTED: Final = {
    "visible_state": f"{VISIBLE_STATE} AS visible_state",
    "since": "coalesce(family_since, first_seen_at) AS since",
    "noted_at": "coalesce(failed_at, checked_at) AS noted_at",
}
SUMMARY_COLUMNS: Final = ", ".join(_LISTED.get(name, name) for name in _field_names(FeedSummary))
_OF_LINES: Final = {
    **_LISTED,
    "oldest_at": "(SELECT min(oldest_at) FROM segment WHERE segment.feed = feed.id AND position IS NOT NULL)",
    "reason": "(SELECT reason FROM attempt WHERE attempt.feed = feed.id AND attempt.url = '')",
    "status": "(SELECT status FROM attempt WHERE attempt.feed = feed.id AND attempt.url = '')",
}
LINE_COLUMNS: Final = ", ".join(_OF_LINES.get(name, name) for name in _field_names(FeedLine))
DOCUMENT_COLUMNS: Final = ", ".join(_field_names(DocumentRow))
SEGMENT_COLUMNS: Final = ", ".join(_field_names(SegmentRow))
_Reader = Callable[[Any], Any]
_T = TypeVar("_T")


def member(kind: type[StrEnum]) -> _Reader:
    """Return a lookup from value to member, six times as fast as the enumeration's own."""
    return {each.value: each for each in kind}.__getitem__


def _row_reader(kind: type[_T], readers: Mapping[str, _Reader]) -> Callable[[Row], _T]:
    names = _field_names(kind)

    def row_of(row: Row) -> _T:
        values = dict(zip(names, row, strict=True))
        for name, read in readers.items():
            values[name] = read(values[name])
        return kind(**values)

    return row_of


def _json(text: str) -> Any:
    if text == "[]":
        return []
    return {} if text == "{}" else json.loads(text)


segment_row: Final = _row_reader(SegmentRow, {})
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
_SUMMARY_READERS: Final = {
    "kind": member(Kind),
    "visible_state": member(State),
    "is_stale": bool,
    "published_family": member(Family),
}
listed_feed: Final = _row_reader(FeedSummary, _SUMMARY_READERS)
feed_line: Final = _row_reader(FeedLine, _SUMMARY_READERS)
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
