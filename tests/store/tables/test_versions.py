"""wholefeed.store.tables.feeds: what tells whether a feed is still what was read of it."""

from __future__ import annotations

from functools import partial

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, a_publication, a_segment, an_entry, publish
from wholefeed.core.model import State
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feeds
from wholefeed.store.tables.feeds import version_of


async def a_row(store: NamedStore, feed: int) -> FeedRow:
    row = await store.read(partial(feeds.find, feed=feed))
    assert row is not None
    return row


async def test_they_are_those_of_the_rows(store: NamedStore) -> None:
    """By the cheapest way of the engine as by the row: instants, bytes, truth values, nothing, odd texts."""
    new, other = (await a_feed(store)).id, (await a_feed(store, "http://o.test/other")).id
    (document,) = await store.put_documents(other, [a_document(URL, an_entry("a"))], now=NOW)
    publication = a_publication([a_segment(document)], state=State.PARTIAL, via_url="http://o.test/é,{}")
    revision, _ = await store.placed(other)
    await store.publish(other, publication, revision=revision, now=NOW + 0.123456)
    changes = {"is_stale": True, "fresh_until": NOW + 0.1, "checked_at": 1763770000.12}
    await store.write(partial(feeds.update, feed=other, changes=changes), feed=other)

    found = await store.versions([new, other, 77])
    assert found == {each: version_of(await a_row(store, each)) for each in (new, other)}
    assert found[other].ages["checked_at"] == 1763770000.12
    assert found[new] != found[other]


@pytest.mark.parametrize(
    ("changes", "is_another"),
    [
        ({"is_stale": True}, True),
        ({"is_private": True}, True),
        ({"checked_at": NOW}, False),
        ({"failed_at": NOW}, False),
        ({"fresh_until": NOW}, False),
        ({"cache_control": "max-age=60"}, False),
        ({"expires": "0"}, False),
        ({"asked_at": NOW}, False),
    ],
)
async def test_times_alone_make_no_other_one(
    store: NamedStore, changes: dict[str, object], is_another: bool
) -> None:
    """What nothing depends on that is made of a feed is told beside its version."""
    feed = (await a_feed(store)).id
    before = (await store.versions([feed]))[feed]
    await store.write(partial(feeds.update, feed=feed, changes=changes), feed=feed)
    after = (await store.versions([feed]))[feed]
    assert (after.published != before.published) is is_another


async def test_a_publication_and_a_document_make_another_one(store: NamedStore) -> None:
    """What is published is sent; a document that is not yet makes that the feed is due."""
    feed = (await a_feed(store)).id
    seen = [(await store.versions([feed]))[feed]]
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    seen.append((await store.versions([feed]))[feed])
    await publish(store, feed)
    seen.append((await store.versions([feed]))[feed])
    assert len({each.published for each in seen}) == 3
