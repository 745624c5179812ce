"""Statements treat documents by origin as the table of `wholefeed.core.origins` says."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, a_publication, a_segment, an_entry
from wholefeed.core.compose.weaving import Members, WovenMember
from wholefeed.core.model import Role, entry_id
from wholefeed.core.origins import Origin, find_origins
from wholefeed.store.base import Database, fetch_value
from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import document_table, live, segment_table
from wholefeed.store.tables.document_table import KEEP_DETACHED_SECONDS

ENTRY = entry_id("a")


def a_document_of(origin: Origin, entry: str = "a", rank: int = 0) -> NewDocument:
    role = Role.MEMORY if origin is Origin.MEMORY else Role.ARCHIVE
    url = f"{origin.policy.url_prefix or 'http://o.test/'}{rank + 1}"
    return a_document(url, an_entry(entry), role=role, origin=origin, rank=rank)


async def a_feed_with(store: NamedStore, origin: Origin) -> tuple[int, int]:
    """A feed with a subscription document, and one of that origin with an entry of its own."""
    feed = (await a_feed(store)).id
    own = a_document(URL, an_entry("b"), role=Role.SUBSCRIPTION)
    _, number = await store.put_documents(feed, [own, a_document_of(origin)], now=NOW)
    return feed, number


def count_settled(db: Database, feed: int) -> int:
    return int(fetch_value(db, "SELECT count(*) FROM settled WHERE feed = :feed", {"feed": feed}))


@pytest.mark.parametrize("origin", Origin)
async def test_its_entries_count_as_its_row_says(store: NamedStore, origin: Origin) -> None:
    """R8, R10, I1, H7: whether its entries are known, present, and how they are compared."""
    policy = origin.policy
    feed, number = await a_feed_with(store, origin)
    (row,) = [each for each in await store.documents(feed) if each.id == number]
    assert row.origin is origin
    assert bool(await store.known(feed, [ENTRY])) is policy.makes_known
    served = await store.read(partial(live.find_served_copies, feed=feed, identities=[ENTRY]))
    assert [copy.standing for copy in served.values()] == [policy.standing] * policy.holds


@pytest.mark.parametrize("origin", find_origins(lambda policy: policy.holds))
async def test_it_settles_what_its_row_says(store: NamedStore, origin: Origin) -> None:
    """R8: entries that leave with a document are gone only if it was the publisher's."""
    feed, number = await a_feed_with(store, origin)
    await store.detach(feed, [number], now=NOW, is_withdrawn=True)
    assert await store.read(partial(count_settled, feed=feed)) == origin.policy.settles


@pytest.mark.parametrize("origin", Origin)
async def test_it_takes_a_mark_away_as_its_row_says(store: NamedStore, origin: Origin) -> None:
    """R8: a removed entry returns with its publisher's document, not with another's."""
    feed, number = await a_feed_with(store, Origin.PUBLISHER)
    await store.detach(feed, [number], now=NOW, is_withdrawn=True)
    await store.put_documents(feed, [a_document_of(origin)], now=NOW)
    assert await store.read(partial(count_settled, feed=feed)) == (not origin.policy.settles)


@pytest.mark.parametrize("origin", Origin)
async def test_it_expires_as_its_row_says(store: NamedStore, origin: Origin) -> None:
    """I1: imported documents stay until the import is withdrawn."""
    feed, number = await a_feed_with(store, origin)
    await store.detach(feed, [number], now=NOW)
    later = NOW + KEEP_DETACHED_SECONDS + 1
    await store.write(lambda db: document_table.purge(db, later), feed=feed)
    assert (number not in {row.id for row in await store.documents(feed)}) is origin.policy.expires


@pytest.mark.parametrize("is_woven", [False, True])
async def test_entries_of_a_segment_have_the_origins_of_their_documents(
    store: NamedStore, is_woven: bool
) -> None:
    """In output order, whether the segment has whole documents or single entries."""
    feed = (await a_feed(store)).id
    own = a_document(URL, an_entry("s"), an_entry("t"), role=Role.SUBSCRIPTION)
    others = [a_document_of(origin, origin, rank) for rank, origin in enumerate(Origin)]
    numbers = await store.put_documents(feed, [own, *others], now=NOW)
    revision, placed = await store.placed(feed)
    first, *rest = [each.document for each in placed]
    origins = dict(zip(numbers, (Origin.PUBLISHER, *Origin), strict=True))
    segments = [replace(a_segment(first), entries=2), replace(a_segment(*rest), entries=len(rest))]
    if is_woven:
        two = Members.of([WovenMember(first, n, 1, NOW) for n in range(2)], {first: bytes(16)})
        many = Members.of([WovenMember(each, 0, 1, NOW) for each in rest], dict.fromkeys(rest, bytes(16)))
        members = (two.written(), many.written())
        segments = [replace(each, members=own) for each, own in zip(segments, members, strict=True)]
    publication = a_publication(segments, is_woven=is_woven, entries=2 + len(rest))
    assert await store.publish(feed, publication, revision=revision, now=NOW) is not None
    shown = await store.read(partial(segment_table.snapshot, feed=feed))
    wanted = [each.id for each in shown.segments]
    found = await store.read(partial(segment_table.list_origins, feed=feed, segments=wanted))
    assert [found[each] for each in wanted] == [[Origin.PUBLISHER] * 2, [origins[each] for each in rest]]
    assert {*found[wanted[1]]} == {*Origin}
