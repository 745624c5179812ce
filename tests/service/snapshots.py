"""Feeds as memory holds them, made without a store."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from wholefeed.core.model import Family, Kind, State
from wholefeed.service.memory import CachedFeed, Memory
from wholefeed.store.rows import FeedRow, SegmentRow, Snapshot


def url_of(feed: int) -> str:
    return f"http://o.test/{feed}"


def a_segment(number: int) -> SegmentRow:
    values: dict[str, Any] = {each.name: 0 for each in fields(SegmentRow)}
    return SegmentRow(**{**values, "id": number, "digest": b"d" * 16})


def a_snapshot(feed: int, *, head: bytes = b"<feed>", segments: int = 1, revision: int = 1) -> Snapshot:
    values: dict[str, Any] = {each.name: 0 for each in fields(FeedRow)}
    row = {"id": feed, "url": url_of(feed), "head": head, "revision": revision, "asked_at": 7.0}
    said = {"family": Family.ATOM, "kind": Kind.ARCHIVED, "state": State.COMPLETE}
    return Snapshot(FeedRow(**{**values, **row, **said}), tuple(map(a_segment, range(segments))), ())


def hold(memory: Memory, snapshot: Snapshot, url: str | None = None) -> CachedFeed | None:
    return memory.put(snapshot, url or url_of(snapshot.feed.id), memory.generation)
