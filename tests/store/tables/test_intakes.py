"""B1 to B4: lists that somebody brought in, on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from tests.named_store import NamedStore
from tests.store.makers import a_document, a_feed, an_entry, publish
from wholefeed.core.intake import MOST_FEEDS, MOST_KEPT, MOST_UNFINISHED, Tally
from wholefeed.core.model import Role, State
from wholefeed.errors import REMEMBERED_SECONDS, NoSuchIntakeError, OverloadedError
from wholefeed.store.tables import intake_table
from wholefeed.store.tables.document_table import EncodedBody, encode_body
from wholefeed.store.tables.intake_table import DueFeed, ListedFeed, NewIntake

NOW = 1_800_000_000.0
HOUR = 3600.0
LIST = b"<opml/>"


def urls(count: int) -> list[str]:
    return [f"http://h{number}.test/feed" for number in range(count)]


async def begin(store: NamedStore, name: str, *feeds: str, digest: str = "", now: float = NOW) -> str:
    listed = [ListedFeed(url, f"Feed {number}", number + 2) for number, url in enumerate(feeds)]
    new = NewIntake(
        id=name,
        digest=(digest or name).encode(),
        options="{}",
        left_out=1,
        unchanged="[]",
        feeds=listed,
        document=EncodedBody(encode_body(LIST), len(LIST)),
    )
    return await store.write(partial(intake_table.begin, new=new, now=now))


async def due(store: NamedStore, now: float = NOW) -> Sequence[DueFeed]:
    return await store.read(partial(intake_table.list_due, now=now, limit=MOST_FEEDS))


async def fail(store: NamedStore, feed: DueFeed, now: float = NOW) -> None:
    await store.write(partial(intake_table.keep_failure, due=feed, reason="not-a-feed", status=None, now=now))


async def tally(store: NamedStore, name: str) -> Tally:
    return await store.read(partial(intake_table.count_stages, intake=name, now=NOW))


async def a_published_feed(store: NamedStore, url: str, *, before: int, now: int) -> int:
    feed = await a_feed(store, url)
    entries = [an_entry(f"{url} {number}") for number in range(before)]
    await store.put_documents(feed.id, [a_document(url, *entries, role=Role.SUBSCRIPTION)], now=NOW)
    await publish(store, feed.id, entries=now, title=f"Title of {url}")
    return feed.id


async def test_hosts_take_turns_over_all_lists(store: NamedStore) -> None:
    """B2: also when failed feeds are asked for again, and where a later list has other hosts."""
    await begin(store, "a", *(f"http://one.test/{number}" for number in range(3)))
    for feed in await due(store):
        await fail(store, feed)
    await store.write(partial(intake_table.ask_again, intake="a", now=NOW))
    assert not await due(store, NOW + REMEMBERED_SECONDS - 1)  # the failure would come again, unasked
    later = NOW + REMEMBERED_SECONDS
    await begin(store, "b", "http://one.test/9", "http://two.test/1", now=later)
    assert [(each.intake, each.place) for each in await due(store, later)] == [
        *[("a", 1), ("b", 2)],
        *[("a", 2), ("a", 3), ("b", 1)],
    ]


async def test_a_list_is_asked_for_in_turns_of_its_hosts(store: NamedStore) -> None:
    """B2: in the order of the list otherwise; what is put off comes later."""
    await begin(store, "a", "http://one.test/1", "http://one.test/2", "http://two.test/1")
    found = await due(store)
    assert [each.place for each in found] == [1, 3, 2]
    await store.write(partial(intake_table.put_off, due=found[0], tries=1, until=NOW + 60))
    assert [each.place for each in await due(store)] == [2, 3]
    assert [(each.place, each.tries) for each in await due(store, NOW + 60)][-1] == (1, 1)
    assert await store.read(intake_table.next_due_at) is not None
    row = await store.read(partial(intake_table.require, intake="a"))
    assert (row.began_at, row.left_out) == (NOW, 1)
    assert (await store.read(partial(intake_table.read_list, intake="a"))).decode() == LIST


async def test_what_each_feed_gained_is_counted(store: NamedStore) -> None:
    """B4: entries of the subscription document, each once, and those of today."""
    await begin(store, "a", *urls(4))
    first, second, third, _ = await due(store)
    grown = await a_published_feed(store, "http://h0.test/feed", before=2, now=9)
    twice = await a_published_feed(store, "http://h1.test/feed", before=3, now=2)
    for feed, number, is_counted in ((first, grown, False), (second, twice, True)):
        keep = partial(intake_table.keep_feed, due=feed, feed=number, is_counted=is_counted, now=NOW)
        await store.write(keep)
        await store.write(keep)
    await fail(store, third)
    found = await tally(store, "a")
    assert (found.waiting, found.failed, found.states) == (1, 1, {State.COMPLETE: 2})
    assert (found.before, found.now, found.counted, found.searching) == (4, 11, 1, 0)
    (largest,) = await store.read(partial(intake_table.list_largest, intake="a", limit=5))
    assert largest == ("http://h0.test/feed", "Title of http://h0.test/feed", State.COMPLETE, 2, 9)
    latest = await store.read(partial(intake_table.list_latest, intake="a", limit=1))
    assert [each.url for each in latest] == ["http://h1.test/feed"]
    (failed,) = await store.read(partial(intake_table.list_failures, intake="a", limit=5))
    assert (failed.title, failed.line, failed.slug) == ("Feed 2", 4, "not-a-feed")


async def test_a_feed_that_is_forgotten_is_counted_as_such(store: NamedStore) -> None:
    """B5: also if it is forgotten just before its result is noted."""
    await begin(store, "a", *urls(2))
    first, second = await due(store)
    feed = await a_published_feed(store, "http://h0.test/feed", before=2, now=9)
    keep = partial(intake_table.keep_feed, feed=feed, is_counted=False, now=NOW)
    await store.write(partial(keep, due=first))
    await store.forget(feed, now=NOW)
    await store.write(partial(keep, due=second))
    found = await tally(store, "a")
    assert (found.forgotten, found.before, found.now, found.is_over) == (2, 0, 0, True)


async def test_the_same_list_is_the_same_intake_until_it_is_over(store: NamedStore) -> None:
    """B1: who sends a list twice does not have it asked for twice."""
    assert await begin(store, "a", *urls(1), digest="same") == "a"
    assert await begin(store, "b", *urls(1), digest="same") == "a"
    (feed,) = await due(store)
    await fail(store, feed)
    assert await begin(store, "c", *urls(1), digest="same") == "c"


async def test_a_feed_that_failed_within_the_hour_is_not_asked_again(store: NamedStore) -> None:
    """B3: its failure counts again, until a person wants to know."""
    await begin(store, "a", *urls(1))
    await fail(store, (await due(store))[0])
    await begin(store, "b", *urls(2), now=NOW + HOUR - 1)
    assert [(each.intake, each.place) for each in await due(store, NOW + HOUR)] == [("b", 2)]
    await begin(store, "c", *urls(1), now=NOW + HOUR + 1)
    assert ("c", 1) in [(each.intake, each.place) for each in await due(store, NOW + 2 * HOUR)]
    assert await store.write(partial(intake_table.ask_again, intake="b", now=NOW)) == 1
    assert (await tally(store, "b")).waiting == 2


async def test_lists_are_bounded(store: NamedStore) -> None:
    """B1: so many unfinished ones; of the finished ones the newest stay."""
    for number in range(MOST_UNFINISHED):
        await begin(store, f"unfinished {number}", *urls(1), now=NOW - 1)
    with pytest.raises(OverloadedError, match="lists that are being brought in"):
        await begin(store, "too many", *urls(1))
    for feed in await due(store):
        await store.write(partial(intake_table.delete, intake=feed.intake))
        assert not await store.read(partial(intake_table.is_waiting, due=feed))
    for number in range(MOST_KEPT + 2):
        await begin(store, f"{number}", now=NOW + number)
    kept = await store.read(partial(intake_table.list_newest, limit=100))
    assert [each.id for each in kept] == [str(number) for number in range(MOST_KEPT + 1, 1, -1)]
    for read in (intake_table.require, intake_table.read_list):
        with pytest.raises(NoSuchIntakeError):
            await store.read(partial(read, intake="0"))
