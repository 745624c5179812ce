"""What the store takes and gives. Times are seconds since the epoch, UTC."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple, Self, TypedDict

from wholefeed.core.compose.deflate import Sealed
from wholefeed.core.model import EntryId, Tombstone
from wholefeed.core.terms import Family, Kind, Role, State
from wholefeed.core.text.dates import DAY_SECONDS

NoteDict = Mapping[str, str]
"""A note as whoever asks gets to see it: code, url, text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    """A feed: where it comes from, and what was published of it."""

    id: int
    url: str
    """The canonical key."""
    fetch_url: str
    moved_to: str | None
    """Where permanent redirects have led of late, `moved_times` in a row since `moved_since`."""
    moved_since: float | None
    moved_times: int
    family: Family
    version: str
    """Of the format, as published; empty for the family's usual one."""
    kind: Kind
    state: State
    is_walking: bool
    is_stale: bool
    is_private: bool
    revision: int
    """Counts the changes of documents and live entries; a plan names the one it was made from."""
    published_revision: int
    """The one that was published last; another than `revision`: something is not to be seen yet."""
    documents: int
    entries: int
    parser_version: int
    first_seen_at: float
    asked_at: float
    checked_at: float | None
    fresh_until: float | None
    modified_at: float | None
    """None until it is published."""
    notes: str
    """JSON, as the service wrote it."""
    ending: str
    """Why the last walk ended: JSON, as the service wrote it."""
    digest: bytes | None
    head_prefixes: int
    head: bytes | None
    context: bytes | None


class FeedChanges(TypedDict, total=False):
    """What `Store.update_feed` may change."""

    fetch_url: str
    moved_to: str | None
    moved_since: float | None
    moved_times: int
    family: Family
    kind: Kind
    state: State
    is_walking: bool
    is_stale: bool
    is_private: bool
    parser_version: int
    asked_at: float
    checked_at: float | None
    fresh_until: float | None
    ending: str
    context: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRow:
    """A stored document, without its body and entries."""

    id: int
    feed: int
    url: str
    final_url: str
    role: Role
    rank: int | None
    """Ascending in output order among the documents of its role; None: detached."""
    detached_at: float | None
    family: Family
    site_id: str
    links: Mapping[str, str]
    is_marked: bool
    is_settled: bool
    is_uncacheable: bool
    brought_news: bool
    digest: bytes
    etag: str | None
    last_modified: str | None
    media_type: str
    fetched_at: float
    checked_at: float
    updated_at: float | None
    parser_version: int
    body_bytes: int
    entries: int
    segment: int | None
    live_bytes: int
    notes: tuple[NoteDict, ...]
    """What was remarked on it when it was read."""


class DocumentChanges(TypedDict, total=False):
    """What `Store.touch_document` may change: nothing that the choice of live entries depends on."""

    final_url: str
    etag: str | None
    last_modified: str | None
    checked_at: float
    is_settled: bool
    is_uncacheable: bool
    brought_news: bool


class NewEntry(NamedTuple):
    """An entry of a document that is put. Its place in the sequence is its ordinal."""

    identity: EntryId
    updated_at: float | None
    order_at: float | None
    size: int
    """In bytes, as it will stand in a segment."""
    document_updated_at: float | None = None
    """Of a remembered copy: that of the subscription document it stood in."""


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
    family: Family
    body: bytes
    digest: bytes
    media_type: str
    fetched_at: float
    parser_version: int
    entries: Sequence[NewEntry]
    site_id: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    is_marked: bool = False
    is_settled: bool = False
    is_uncacheable: bool = False
    brought_news: bool = True
    etag: str | None = None
    last_modified: str | None = None
    updated_at: float | None = None
    tombstones: Sequence[Tombstone] = ()
    notes: Sequence[NoteDict] = ()

    @classmethod
    def of(cls, row: DocumentRow, body: bytes, entries: Sequence[NewEntry]) -> Self:
        """Return a stored document to be put again as it is; its tombstones are not carried over."""
        carried = {name: getattr(row, name) for name in PUT_COLUMNS}
        return cls(body=body, entries=entries, **carried)


PUT_COLUMNS: Final = tuple(
    each.name for each in fields(NewDocument) if each.name not in ("body", "entries", "tombstones")
)
"""The columns that a document brings with it, by the names of `NewDocument`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow:
    """A segment, without its block (see `wholefeed.core.compose.deflate`)."""

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
    """A segment to publish: the live entries of `documents`, sealed."""

    documents: tuple[int, ...]
    sealed: Sealed
    prefixes: int
    newest_at: float | None
    oldest_at: float | None
    entries: int
    parser_version: int
    context: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What a feed's answer is made of, in the words of `FeedRow`."""

    segments: Sequence[int | NewSegment]
    """In output order; a number is a segment that stays."""
    state: State
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A document that could not be had, and when to try again."""

    url: str
    reason: str
    status: int | None
    attempts: int
    first_at: float
    last_at: float
    next_at: float

    def waits(self, now: float) -> bool:
        """Whether its time has not come; more than a day ahead it comes from a clock that was wrong."""
        return 0 < self.next_at - now <= DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A feed as it was published, whole. Its segments stay readable while it is held."""

    feed: FeedRow
    segments: tuple[SegmentRow, ...]


def feed_row(row: sqlite3.Row) -> FeedRow:
    """Read a row of the feed table."""
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(FeedRow)}
    for name in ("is_walking", "is_stale", "is_private"):
        values[name] = bool(values[name])
    values["family"] = Family(values["family"])
    values["kind"] = Kind(values["kind"])
    values["state"] = State(values["state"])
    return FeedRow(**values)


def document_row(row: sqlite3.Row) -> DocumentRow:
    """Read a row of the document table."""
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(DocumentRow)}
    for name in ("is_marked", "is_settled", "is_uncacheable", "brought_news"):
        values[name] = bool(values[name])
    values["role"] = Role(values["role"])
    values["family"] = Family(values["family"])
    values["links"] = json.loads(values["links"])
    values["notes"] = tuple(json.loads(values["notes"]))
    return DocumentRow(**values)
