"""Missing documents of a feed, and requests to a web archive (R33)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from wholefeed.core.model import Kind, Role
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import failures
from wholefeed.store.tables.failures import MementoSearch

WEEK = 7 * 86_400
COPY = "http://archive.test/web/20190501120000id_/http://o.test/1"


def an_attempt(url: str, reason: str = "publisher-status") -> Attempt:
    return Attempt(
        url=url, reason=reason, status=404, attempts=2, first_at=NOW, last_at=NOW, next_at=NOW
    )  # fmt: skip


async def lacking(store: NamedStore, *attempts: Attempt, url: str = URL) -> FeedRow:
    feed = await a_feed(store, url)
    await store.write(lambda db: failures.replace_missing(db, feed.id, attempts))
    return feed


async def found(store: NamedStore, now: float = NOW, feed: int | None = None) -> list[MementoSearch]:
    return await store.read(partial(failures.list_open_searches, now=now, horizon=now + WEEK, feed=feed))


async def test_what_is_missing_is_to_be_looked_for(store: NamedStore) -> None:
    """R33: each document once, and the subscription document of an unavailable feed."""
    feed = await lacking(store, an_attempt("http://o.test/1"))
    gone = an_attempt(SUBSCRIPTION_ATTEMPT)
    await store.write(lambda db: failures.note_refetch(db, feed.id, gone, {}))
    subscription, document = await found(store)
    assert (subscription.target, subscription.is_subscription) == (URL, True)
    assert (document.target, document.is_subscription) == ("http://o.test/1", False)
    assert (document.feed, document.status, document.attempts, document.kind) == (
        feed.id, 404, 2, Kind.ARCHIVED,
    )  # fmt: skip
    assert (document.position, document.taken_at, document.is_begun) == ("", None, False)


async def test_what_a_copy_stands_in_for_is_not_looked_for_again(store: NamedStore) -> None:
    """R33."""
    feed = await lacking(store, an_attempt("http://o.test/1"), an_attempt(URL, "memento"))
    await store.put_documents(feed.id, [a_document("http://o.test/1", memento=COPY)], now=NOW)
    assert await found(store) == []


async def test_how_far_a_search_has_come_is_kept(store: NamedStore) -> None:
    """R33: a search resumes at its time, the longest waiting first."""
    await lacking(store, an_attempt("http://o.test/1"), an_attempt("http://o.test/2"))
    first, _ = await found(store)
    later = replace(first, position="resumeKey=k", taken_at=NOW - 5)
    await store.write(partial(failures.note_search, search=later, next_at=NOW + 60))
    assert [each.url for each in await found(store)] == ["http://o.test/2"]
    assert await store.read(partial(failures.next_search_at, now=NOW)) == NOW + 60
    assert [each.url for each in await found(store, NOW + 61)] == ["http://o.test/2", "http://o.test/1"]
    again = (await found(store, NOW + 61))[1]
    assert (again.position, again.taken_at) == ("resumeKey=k", NOW - 5)
    await store.write(partial(failures.postpone_search, search=first, next_at=NOW + 90))
    assert await store.read(partial(failures.next_search_at, now=NOW)) == NOW + 90
    again = (await found(store, NOW + 91))[1]
    assert (again.position, again.taken_at) == ("resumeKey=k", NOW - 5)


async def test_an_instant_that_a_wrong_clock_has_written_does_not_count(store: NamedStore) -> None:
    """docs/faults.md row 73."""
    await lacking(store, an_attempt("http://o.test/1"))
    (search,) = await found(store)
    await store.write(partial(failures.note_search, search=search, next_at=NOW + 100 * WEEK))
    assert len(await found(store)) == 1


async def test_a_feed_whose_subscription_document_is_a_copy_has_begun(store: NamedStore) -> None:
    """R33: its publisher was asked at the opening, and need not be silent for longer."""
    feed = await lacking(store)
    gone = an_attempt(SUBSCRIPTION_ATTEMPT)
    await store.write(lambda db: failures.note_refetch(db, feed.id, gone, {}))
    copy = a_document(URL, role=Role.SUBSCRIPTION, memento=COPY)
    await store.put_documents(feed.id, [copy], now=NOW)
    (search,) = await found(store)
    assert search.is_begun


async def test_nothing_is_kept_of_a_feed_that_was_forgotten(store: NamedStore) -> None:
    """R25."""
    feed = await lacking(store, an_attempt("http://o.test/1"))
    (search,) = await found(store)
    await store.write(partial(failures.note_search, search=search, next_at=NOW + 60))
    await store.forget(feed.id, now=NOW)
    await store.write(partial(failures.note_search, search=search, next_at=NOW + 60))
    await store.write(partial(failures.postpone_search, search=search, next_at=NOW + 60))
    assert await found(store, NOW + 61) == []
    assert await store.read(partial(failures.next_search_at, now=NOW)) is None


async def test_a_document_whose_url_has_any_length_is_looked_for(store: NamedStore) -> None:
    """R33: an unavailable document's URL may be longer than the limit for fetches."""
    long = "http://o.test/" + "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(200))
    await lacking(store, an_attempt(long))
    (search,) = await found(store)

    for next_at in (NOW + 60, NOW + 120):
        await store.write(partial(failures.note_search, search=search, next_at=next_at))

    assert search.url == long
    assert await store.read(partial(failures.next_search_at, now=NOW)) == NOW + 120


@pytest.mark.parametrize("rank", [0, None])
async def test_a_copy_settles_nothing(store: NamedStore, rank: int | None) -> None:
    """R33, R8: remembered entries stay, with the copy attached or not, and after its replacement."""
    feed = await a_feed(store)
    copy = a_document("http://o.test/1", an_entry("x"), rank=rank, memento=COPY)
    held = a_document("urn:wholefeed:memory:1", an_entry("x"), role=Role.MEMORY, rank=-1)
    await store.put_documents(feed.id, [copy], now=NOW)
    _, memory = await store.put_documents(feed.id, [a_document(role=Role.SUBSCRIPTION), held], now=NOW)
    await store.put_documents(feed.id, [a_document("http://o.test/1", rank=rank, memento=COPY)], now=NOW)
    if rank is None:
        await store.put_documents(feed.id, [copy], now=NOW)
    assert (await store.live_ordinals([memory]))[memory] == (0,)
