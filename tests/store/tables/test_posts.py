"""Posts with several ids over time (R36), on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from wholefeed.core.model import EntryId, Role, Tombstone, Traits, entry_id
from wholefeed.store.base import fetch_all
from wholefeed.store.rows import NewDocument
from wholefeed.store.tables import document_table, posts

DAY = 86_400.0


def id_of(name: str) -> EntryId:
    return entry_id(name)


def traits(*titles: int, ids: Sequence[int] = ()) -> Traits:
    return Traits(tuple(ids), (), titles, None, has_id=True)


def under(posts_by_id: dict[str, str], *, new: Sequence[str] = (), **changes: Any) -> NewDocument:
    """The subscription document, with entries under these ids and their posts' ids."""
    own = {at: id_of(each) for at, (each, post) in enumerate(posts_by_id.items()) if each != post}
    pairs = {id_of(each): id_of(posts_by_id[each]) for each in new}
    entries = [an_entry(post) for post in posts_by_id.values()]
    return a_document(URL, *entries, role=Role.SUBSCRIPTION, own=own, pairs=pairs, **changes)


async def ids_in(store: NamedStore, sql: str) -> list[tuple[Any, ...]]:
    rows = await store.read(lambda db: fetch_all(db, sql))
    return [tuple(row) for row in rows]


async def put(store: NamedStore, feed: int, document: NewDocument, *, at: float = NOW) -> int:
    return (await store.put_documents(feed, [document], now=at))[0]


async def live_id(store: NamedStore) -> EntryId:
    """The identity of the served copy."""
    ((own,),) = await ids_in(store, "SELECT coalesce(own, identity) FROM entry WHERE is_live = 1")
    return EntryId(own)


async def test_an_id_that_is_used_for_a_day_is_served(store: NamedStore) -> None:
    """R36, R10: until then the first known id counts; another id starts the day anew."""
    feed = (await a_feed(store)).id
    first = a_document("urn:first", an_entry("a"), role=Role.MEMORY, rank=-1)
    await put(store, feed, under({"a": "a"}))
    await store.put_documents(feed, [first, under({"b": "a"}, new=["b"])], now=NOW)
    assert await live_id(store) == id_of("a")
    known = await store.read(partial(posts.find, feed=feed, ids=[id_of("a"), id_of("b"), id_of("c")]))
    assert known.known == {id_of("a"), id_of("b")}
    assert (known.posts[id_of("b")], known.has_renamed) == (id_of("a"), True)
    for hours, own, served in (
        (20, "b", "a"),
        (22, "a", "a"),
        (23, "b", "a"),
        (46, "b", "a"),
        (48, "b", "b"),
    ):
        await put(store, feed, under({own: "a"}), at=NOW + 3600 * hours)
        assert await live_id(store) == id_of(served), hours
    row = await store.feed(feed)
    assert row is not None
    assert (row.renamed, row.renamed_since, row.renaming_looks) == (1, NOW, 0)


async def test_an_archive_can_bring_other_ids(store: NamedStore) -> None:
    """R36: the feed marks such posts as having several ids, also after another reading."""
    feed = (await a_feed(store)).id
    await put(store, feed, under({"a": "a"}))
    other: dict[str, Any] = {"own": {0: id_of("b")}, "pairs": {id_of("b"): id_of("a")}}
    number = await put(store, feed, a_document("http://o.test/1", an_entry("a"), rank=1, **other))
    row = await store.feed(feed)
    assert row is not None
    assert (row.renamed, row.renaming_at) == (1, NOW + DAY)
    again = a_document("http://o.test/1", an_entry("b"), rank=1)
    await store.write(lambda db: document_table.put_again(db, feed, [again], NOW), feed=feed)
    found = await ids_in(store, f"SELECT identity, own FROM entry WHERE document = {number}")
    assert found == [(id_of("a"), id_of("b"))]


async def test_ids_that_stand_together_are_parted(store: NamedStore) -> None:
    """R36: in any kind of document."""
    feed = (await a_feed(store)).id
    await put(store, feed, under({"a": "a"}))
    await put(store, feed, under({"b": "a"}, new=["b"]))
    archive = a_document("http://o.test/1", an_entry("b"), an_entry("a"), rank=1)
    await put(store, feed, archive)
    found = await ids_in(store, "SELECT identity, own FROM entry ORDER BY document, ordinal")
    assert found == [(id_of("b"), None), (id_of("b"), None), (id_of("a"), None)]
    assert await ids_in(store, "SELECT own FROM other_id WHERE own <> identity") == []


async def test_a_post_has_no_more_than_some_ids(store: NamedStore) -> None:
    """R36: unseen ids go, except the served one."""
    feed = (await a_feed(store)).id
    await put(store, feed, under({"a": "a"}))
    for look in range(20):
        await put(store, feed, under({f"n{look}": "a"}, new=[f"n{look}"]), at=NOW + look)
    kept = {row[0] for row in await ids_in(store, "SELECT own FROM other_id")}
    assert {id_of("a"), id_of("n19")} <= kept
    assert len(kept) <= 8
    row = await store.feed(feed)
    assert row is not None
    assert row.renaming_looks == 20


async def test_owners_of_traits_are_posts_that_are_there(store: NamedStore) -> None:
    """R36, R19: not deleted or departed posts; a trait of all posts has no owner."""
    feed = (await a_feed(store)).id
    names = [f"e{n}" for n in range(12)]
    document = a_document(
        URL,
        *(an_entry(name) for name in names),
        traits={at: traits(at, 99, ids=[100 + at]) for at in range(12)},
        tombstones=[Tombstone(id_of("e1"), NOW, "e1")],
    )
    number = await put(store, feed, document)

    async def owners(*asked: Traits) -> dict[int, set[EntryId]]:
        return await store.read(partial(posts.find_owners, feed=feed, traits=asked))

    assert await owners(traits(0, ids=[103])) == {0: {id_of("e0")}, 103: {id_of("e3")}}
    assert await owners(traits(1, ids=[101])) == {}
    assert await owners(traits(99)) == {99: {id_of("e0")}}  # two keep it, and one of these is deleted
    assert await owners(traits(-(2**63), 2**63 - 1)) == {}
    await store.write(lambda db: db.execute("DELETE FROM document WHERE id = ?", (number,)))
    assert await owners(traits(0)) == {}


@pytest.mark.parametrize("spelt_otherwise", [True, False])
@pytest.mark.parametrize("count", [1, 3])
async def test_doubled_posts_are_found(store: NamedStore, spelt_otherwise: bool, count: int) -> None:
    """R36: one by its id, or three published alike; none with both in one document."""
    feed = (await a_feed(store)).id
    shared = [traits(ids=[2 * n + 1]) if spelt_otherwise else traits(2 * n) for n in range(count)]
    old = a_document(
        "http://o.test/1", *(an_entry(f"a{n}") for n in range(count)), rank=1, traits=dict(enumerate(shared))
    )
    new = a_document(
        URL,
        *(an_entry(f"b{n}") for n in range(count)),
        role=Role.SUBSCRIPTION,
        traits=dict(enumerate(shared)),
    )
    await store.put_documents(feed, [old, new], now=NOW)
    is_due = await store.read(partial(posts.is_due, feed=feed, now=NOW, joins=True))
    assert is_due is (spelt_otherwise or count == 3)
    await store.write(lambda db: posts.settle_due(db, feed, NOW, joins=True), feed=feed)
    live = await ids_in(store, "SELECT count(*) FROM entry WHERE is_live = 1")
    assert live == [(count if is_due else 2 * count,)]
    served = await ids_in(
        store, "SELECT d.role FROM entry AS e JOIN document AS d ON d.id = document WHERE is_live = 1"
    )
    assert {row[0] for row in served} == ({"subscription"} if is_due else {"subscription", "archive"})


async def test_what_many_have_in_common_is_not_compared_pair_by_pair(store: NamedStore) -> None:
    """R36: one row is read for each entry of one title and instant."""
    feed = (await a_feed(store)).id
    for number in range(300):
        names = [f"{number} {at}" for at in range(2)]
        alike = {at: traits(2) for at in range(2)}
        archive = a_document(f"http://o.test/{number}", *map(an_entry, names), rank=number, traits=alike)
        await put(store, feed, archive)
    assert await store.read(partial(posts.is_due, feed=feed, now=NOW, joins=True)) is False
    looked_at = await store.read(lambda db: fetch_all(db, posts.SHARED, {"feed": feed}))
    assert len(looked_at) == 600
