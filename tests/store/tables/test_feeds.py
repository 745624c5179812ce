from __future__ import annotations

from pathlib import Path

import pytest

from tests.sqlite_faults import rows
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry, publish
from wholefeed.core.terms import Family, Kind, State
from wholefeed.errors import UnknownFeedError
from wholefeed.store.rows import Attempt
from wholefeed.store.store import Store

ALIAS = "http://o.test/alias"


async def test_a_feed_is_made_once(store: Store) -> None:
    """Row 27: making a feed that is there gives the stored one, unchanged; unknown ones are None."""
    feed = await a_feed(store)

    assert (feed.url, feed.family, feed.kind, feed.state) == (URL, Family.ATOM, Kind.ARCHIVED, State.LOADING)
    assert (feed.first_seen_at, feed.asked_at, feed.modified_at, feed.digest) == (NOW, NOW, None, None)
    again = await store.create_feed(
        URL, fetch_url="http://x/", family=Family.RSS, kind=Kind.PLAIN, now=NOW + 1
    )
    assert again == feed
    assert await store.feed(feed.id) == await store.feed_by_url(URL) == feed
    assert await store.feed(99) is None
    assert await store.feed_by_url("http://o.test/none") is None


async def test_an_alias_leads_to_its_feed_and_the_key_wins(store: Store) -> None:
    """Rule R3; a permanent move keeps the history and the old key."""
    feed = await a_feed(store)
    other = await a_feed(store, "http://o.test/other")
    await store.add_alias(ALIAS, other.id)
    await store.add_alias(ALIAS, feed.id)
    await store.add_alias(other.url, feed.id)

    assert await store.feed_by_url(ALIAS) == feed
    assert await a_feed(store, ALIAS) == feed
    assert await store.feed_by_url(other.url) == other


async def test_columns_of_a_feed_are_changed(store: Store) -> None:
    """R14: only the columns named are changed, and a feed whose walk is under way is listed for the next
    start."""
    feed = await a_feed(store)

    changed = await store.update_feed(
        feed.id, is_walking=True, is_stale=True, state=State.PARTIAL, kind=Kind.COMPLETE, fresh_until=5.5
    )

    assert (changed.is_walking, changed.is_stale, changed.is_private) == (True, True, False)
    assert (changed.state, changed.kind, changed.fresh_until) == (State.PARTIAL, Kind.COMPLETE, 5.5)
    assert await store.update_feed(feed.id) == changed
    assert [row.id for row in await store.unfinished_feeds()] == [feed.id]
    await store.update_feed(feed.id, is_walking=False)
    assert await store.unfinished_feeds() == []


async def test_feeds_are_listed_by_url(store: Store) -> None:
    """/feeds lists by URL, and can be read in parts."""
    for name in "cab":
        await a_feed(store, f"http://o.test/{name}")

    assert [row.url[-1] for row in await store.feeds()] == ["a", "b", "c"]
    assert [row.url[-1] for row in await store.feeds(limit=1, offset=1)] == ["b"]


async def test_a_forgotten_feed_leaves_nothing_behind(store: Store, database: Path) -> None:
    """R25: forgetting a feed deletes its rows in every table, aliases, bodies and attempts included."""
    feed = (await a_feed(store)).id
    await store.add_alias(ALIAS, feed)
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    await store.put_documents(feed, [a_document(URL, an_entry("b"))], now=NOW)
    await publish(store, feed)
    await store.put_attempt(feed, URL, reason="timeout", status=None, next_at=NOW, now=NOW)

    assert await store.forget(feed, now=NOW)

    assert not await store.forget(feed, now=NOW)
    assert await store.feed_by_url(ALIAS) is None
    for table in ("feed", "alias", "document", "body", "entry", "settled", "segment", "block", "attempt"):
        assert rows(database, f"SELECT * FROM {table}") == [], table


async def test_a_walk_that_outlives_its_feed_is_told(store: Store) -> None:
    """R25: a walk that goes on after DELETE gets UnknownFeedError and writes nothing into a new feed."""
    feed = (await a_feed(store)).id
    await store.forget(feed, now=NOW)
    assert (await a_feed(store, "http://o.test/next")).id != feed

    with pytest.raises(UnknownFeedError):
        await store.put_documents(feed, [a_document()], now=NOW)
    with pytest.raises(UnknownFeedError):
        await store.update_feed(feed, is_walking=True)
    with pytest.raises(UnknownFeedError):
        await store.put_attempt(feed, URL, reason="x", status=None, next_at=NOW, now=NOW)
    with pytest.raises(UnknownFeedError):
        await store.add_alias(ALIAS, feed)
    with pytest.raises(UnknownFeedError):
        await store.placed(feed)
    with pytest.raises(UnknownFeedError):
        await store.detach_all_but(feed, [], now=NOW)


async def test_attempts_count_up_and_keep_the_time_of_the_first(store: Store) -> None:
    """R14, R16: a gap stays visible, and its pseudo-entry is dated at the first failure."""
    feed = (await a_feed(store)).id
    other = (await a_feed(store, "http://o.test/other")).id
    await store.put_attempt(feed, URL, reason="timeout", status=None, next_at=NOW + 60, now=NOW)
    await store.put_attempt(other, URL, reason="timeout", status=None, next_at=NOW + 60, now=NOW)

    attempt = await store.put_attempt(
        feed, URL, reason="publisher-status", status=503, next_at=NOW + 120, now=NOW + 60
    )

    assert attempt == Attempt(
        url=URL,
        reason="publisher-status",
        status=503,
        attempts=2,
        first_at=NOW,
        last_at=NOW + 60,
        next_at=NOW + 120,
    )
    assert await store.attempts(feed) == [attempt]


async def test_attempts_are_cleared_one_or_all(store: Store) -> None:
    """R14: the record of a failed document goes when that one heals; the others stay."""
    feed = (await a_feed(store)).id
    for n in range(3):
        await store.put_attempt(feed, f"{URL}/{n}", reason="x", status=None, next_at=NOW, now=NOW + n)

    await store.clear_attempt(feed, f"{URL}/1")
    assert [attempt.url for attempt in await store.attempts(feed)] == [f"{URL}/0", f"{URL}/2"]
    for url in {each.url for each in await store.attempts(feed)}:
        await store.clear_attempt(feed, url)
    assert await store.attempts(feed) == []
