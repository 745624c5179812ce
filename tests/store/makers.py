"""Makers for the store's tests. Each argument has a default: name only those that matter."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tests.makers import origin_of
from tests.named_store import NamedStore
from wholefeed.core.compose.segments import Build, Keep, Sealed, plan, seal
from wholefeed.core.merge import Fullness
from wholefeed.core.model import Family, Kind, Role, State, entry_id
from wholefeed.store.rows import FeedRow, NewDocument, NewEntry, NewSegment, Publication

NOW = 1_700_000_000.0
URL = "http://o.test/feed"


def an_entry(
    name: str,
    updated_at: float | None = None,
    *,
    document_updated_at: float | None = None,
    size: int = 100,
    fullness: int = Fullness.UNKNOWN,
) -> NewEntry:
    return NewEntry(entry_id(name), updated_at, updated_at, size, document_updated_at, fullness)


def a_document(
    url: str = URL,
    *entries: NewEntry,
    role: Role = Role.ARCHIVE,
    rank: int | None = 0,
    body: bytes | None = None,
    **changes: Any,
) -> NewDocument:
    text = body if body is not None else f"<feed>{url}{len(entries)}</feed>".encode()
    values: dict[str, Any] = {
        "final_url": url,
        "family": Family.ATOM,
        "digest": hashlib.sha256(text).digest(),
        "media_type": "application/atom+xml",
        "fetched_at": NOW,
        "parser_version": 1,
    }
    values |= {"origin": origin_of(url, role, memento=changes.get("memento", "")), **changes}
    return NewDocument(url=url, role=role, rank=rank, body=text, entries=entries, **values)


async def a_feed(store: NamedStore, url: str = URL) -> FeedRow:
    return await store.create_feed(url, fetch_url=url, family=Family.ATOM, kind=Kind.ARCHIVED, now=NOW)


def a_publication(segments: Sequence[int | NewSegment], **changes: Any) -> Publication:
    values: dict[str, Any] = {
        "state": State.COMPLETE,
        "family": Family.ATOM,
        "via_url": URL,
        "title": "A feed",
        "site": "http://o.test/",
        "head": b"<feed>",
        "head_prefixes": 1,
        "context": None,
        "digest": b"d" * 16,
        "documents": 1,
        "entries": 1,
        "text_bytes": 10,
        "notes": "[]",
        "parser_version": 1,
    }
    return Publication(segments=segments, **(values | changes))


def a_segment(*documents: int, text: bytes = b"<entry/>") -> NewSegment:
    sealed: Sealed = seal(text)
    return NewSegment(
        documents=documents,
        sealed=sealed,
        prefixes=0,
        newest_at=None,
        oldest_at=None,
        entries=1,
        parser_version=1,
    )


async def text_of(store: NamedStore, documents: Sequence[int]) -> bytes:
    """The text of a segment of these documents: each document's number and live ordinals."""
    live = await store.live_ordinals(documents)
    return b"".join(f"{d}:{live[d]};".encode() for d in documents)


async def publish(store: NamedStore, feed: int, *, now: float = NOW, **changes: Any) -> FeedRow | None:
    """Plan, build and publish as the service does."""
    revision, placed = await store.placed(feed)
    segments: list[int | NewSegment] = []
    for step in plan(placed):
        match step:
            case Keep(segment):
                segments.append(segment)
            case Build(documents):
                segments.append(a_segment(*documents, text=await text_of(store, documents)))
    return await store.publish(feed, a_publication(segments, **changes), revision=revision, now=now)
