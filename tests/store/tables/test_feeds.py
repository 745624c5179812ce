"""Feeds: found, made, changed, forgotten; their versions, and the due ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, cast

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, a_publication, a_segment, an_entry, publish
from tests.store.places import Place
from wholefeed.core.attention import FeedTroubles
from wholefeed.core.compose.compose import Heading
from wholefeed.core.compose.views import Warned
from wholefeed.core.model import Family, Kind, State
from wholefeed.core.refresh.stored import SUBSCRIPTION_ATTEMPT, Attempt
from wholefeed.core.schedule import Times, poll_due_at
from wholefeed.errors import UnknownFeedError
from wholefeed.store.rows import FeedChanges, FeedLine, FeedRow
from wholefeed.store.tables import failures, feed_table
from wholefeed.store.tables.feed_table import version_of

ALIAS = "http://o.test/alias"


def an_attempt(url: str, *, first_at: float = NOW, attempts: int = 1) -> Attempt:
    """A failure of the document of a URL."""
    return Attempt(
        url=url,
        reason="timeout",
        status=None,
        attempts=attempts,
        first_at=first_at,
        last_at=NOW,
        next_at=NOW + 60,
    )


async def test_a_feed_is_made_once(store: NamedStore) -> None:
    """Row 27: making a feed that exists returns it unchanged; unknown feeds are None."""
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


async def test_an_alias_leads_to_its_feed_and_the_key_wins(store: NamedStore) -> None:
    """Rule R3: a permanent move keeps the history and the old key."""
    feed = await a_feed(store)
    other = await a_feed(store, "http://o.test/other")
    await store.add_alias(ALIAS, other.id)
    await store.add_alias(ALIAS, feed.id)
    await store.add_alias(other.url, feed.id)

    assert await store.feed_by_url(ALIAS) == feed
    assert await a_feed(store, ALIAS) == feed
    assert await store.feed_by_url(other.url) == other


async def test_a_walk_is_unfinished_until_its_last_publication(store: NamedStore) -> None:
    """R16: the state is `loading` from a walk's beginning to its last publication, even after an
    interruption."""
    feed = (await a_feed(store)).id
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    first = await publish(store, feed, ending='{"code": "oldest"}')
    assert first is not None
    assert (first.visible_state, first.is_walking) == (State.COMPLETE, False)

    await store.begin_walk(feed, now=NOW + 5)
    await store.begin_walk(feed, now=NOW + 6)

    (begun,) = await store.unfinished_feeds()
    assert (begun.visible_state, begun.state, begun.is_walking) == (State.LOADING, State.COMPLETE, True)
    assert begun.modified_at == NOW + 5
    meanwhile = await publish(store, feed, now=NOW + 7, is_walking=True)
    assert meanwhile is not None
    assert (meanwhile.visible_state, meanwhile.modified_at) == (State.LOADING, NOW + 5)
    last = await publish(store, feed, now=NOW + 8, ending='{"code": "itself"}')
    assert last is not None
    assert (last.visible_state, last.modified_at, last.ending) == (
        State.COMPLETE,
        NOW + 8,
        '{"code": "itself"}',
    )
    assert await store.unfinished_feeds() == []


@pytest.mark.fault("117")
async def test_titles_that_were_not_kept_are_kept_later(store: NamedStore) -> None:
    """Row 117: feeds published by an earlier version get titles; newer publications stay."""
    ids = [(await a_feed(store, f"http://o.test/{name}")).id for name in "ab"]
    for feed in ids:
        await publish(store, feed, now=NOW)
    assert [(row.title, row.site) for row in await store.feeds()] == [("A feed", "http://o.test/")] * 2
    unkept: Any = {"title": None, "site": ""}
    await store.write(partial(feed_table.update, feed=ids[0], changes=unkept))
    unnamed = [await store.read(partial(feed_table.find_unnamed, feed=feed)) for feed in (*ids, 99)]
    assert [row and row.head for row in unnamed] == [b"<feed>", None, None]
    headings = {feed: Heading("Kept later", "http://site.test/") for feed in (*ids, 99)}
    await store.write(partial(feed_table.keep_headings, headings=headings))
    assert [row.title for row in await store.feeds()] == ["Kept later", "A feed"]
    assert [row.site for row in await store.feeds()] == ["http://site.test/", "http://o.test/"]


async def test_a_forgotten_feed_leaves_nothing_behind(store: NamedStore, place: Place) -> None:
    """R25: forgetting a feed deletes its rows in every table, aliases, bodies and attempts included.

    Segments shared by replicas are retired, and deleted after an hour.
    """
    feed = (await a_feed(store)).id
    await store.add_alias(ALIAS, feed)
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    await store.put_documents(feed, [a_document(URL, an_entry("b"))], now=NOW)
    await publish(store, feed)
    await store.note_refetch(feed, an_attempt(SUBSCRIPTION_ATTEMPT))

    assert await store.forget(feed, now=NOW)

    assert not await store.forget(feed, now=NOW)
    assert await store.feed_by_url(ALIAS) is None
    for table in ("feed", "alias", "document", "body", "entry", "settled", "attempt"):
        assert place.rows(f"SELECT * FROM {table}") == [], table
    if place.url:  # another replica may be sending them, for an hour at the most
        assert place.rows("SELECT * FROM segment WHERE retired_at IS NULL OR feed IS NOT NULL") == []
    else:
        assert place.rows("SELECT * FROM segment") == place.rows("SELECT * FROM block") == []


async def test_a_walk_that_outlives_its_feed_is_told(store: NamedStore) -> None:
    """R25: a walk that goes on after DELETE gets UnknownFeedError and writes nothing into a new feed."""
    feed = (await a_feed(store)).id
    await store.forget(feed, now=NOW)
    assert (await a_feed(store, "http://o.test/next")).id != feed

    with pytest.raises(UnknownFeedError):
        await store.put_documents(feed, [a_document()], now=NOW)
    with pytest.raises(UnknownFeedError):
        await store.begin_walk(feed, now=NOW)
    with pytest.raises(UnknownFeedError):
        await store.note_refetch(feed, None, is_stale=True)
    with pytest.raises(UnknownFeedError):
        await store.add_alias(ALIAS, feed)
    with pytest.raises(UnknownFeedError):
        await store.placed(feed)
    with pytest.raises(UnknownFeedError):
        await store.detach(feed, [1], now=NOW)


async def test_what_is_missing_is_part_of_a_publication_and_of_its_snapshot(store: NamedStore) -> None:
    """R14, R16: gaps are published with the rest, oldest first; None leaves them unchanged."""
    feed = (await a_feed(store)).id
    other = (await a_feed(store, "http://o.test/other")).id
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    await store.put_documents(other, [a_document(URL, an_entry("a"))], now=NOW)
    late, early = an_attempt(f"{URL}/1", first_at=NOW + 1), an_attempt(f"{URL}/2")
    await publish(store, other, missing=[late])

    await publish(store, feed, missing=[late, early])
    await publish(store, feed)

    async with store.snapshot(feed) as snapshot:
        assert snapshot.missing == (early, late)
        await publish(store, feed, missing=[late])
        assert snapshot.missing == (early, late)
    assert (await store.failures(feed)).missing == (late,)
    await publish(store, feed, missing=[])
    assert (await store.failures(feed)).missing == ()
    assert (await store.failures(other)).missing == (late,)


async def test_the_failure_of_the_subscription_document_is_no_missing_document(store: NamedStore) -> None:
    """R14: the feed is stale; publications do not change that."""
    feed = (await a_feed(store)).id
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    failure = an_attempt(SUBSCRIPTION_ATTEMPT, attempts=3)

    await store.note_refetch(feed, failure, is_stale=True, fresh_until=NOW + 60)
    await publish(store, feed, missing=[an_attempt(URL)])

    overview = await store.overview(feed)
    assert overview.failures == ((an_attempt(URL),), failure)
    assert (overview.feed.is_stale, overview.feed.fresh_until) == (True, NOW + 60)
    await store.note_refetch(feed, None, is_stale=False)
    assert await store.failures(feed) == ((an_attempt(URL),), None)


async def listed(store: NamedStore, name: str, **changes: Any) -> None:
    """Add a feed with these columns, asked for after the earlier ones."""
    before = await store.read(partial(feed_table.list_feeds, limit=9, offset=0))
    url, now = f"http://o.test/{name}", NOW + len(before)
    feed = await store.create_feed(url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=now)
    await store.write(partial(feed_table.update, feed=feed.id, changes=cast("Any", changes)), feed=feed.id)


async def found(store: NamedStore, *search: str, limit: int = 9, offset: int = 0) -> str:
    """The last words of the found feeds' URLs."""
    wanted = feed_table.FeedSearch(*search)
    ids = await store.read(partial(feed_table.search, search=wanted, limit=limit, offset=offset))
    return names(await store.read(partial(feed_table.read_lines, feeds=ids)))


def names(rows: Sequence[FeedLine]) -> str:
    return " ".join(row.url.rpartition("/")[2] for row in rows)


async def test_a_warning_that_leaves_after_the_healing_is_taken_back(store: NamedStore) -> None:
    """R16: the answer began before; one that nothing can take back is none."""
    feed = (await a_feed(store)).id
    lacking = await publish(store, feed, state=State.PARTIAL, missing=(an_attempt(f"{URL}/1"),))
    assert lacking is not None
    assert lacking.warning is Warned.UNSENT
    await store.put_documents(feed, [a_document(f"{URL}/1", an_entry("a"))], now=NOW)
    await publish(store, feed, now=NOW + 5, state=State.COMPLETE, missing=())
    await store.write(partial(feed_table.note_warned, feed=lacking, now=NOW + 6))
    row = await store.read(partial(feed_table.require, feed=feed))
    assert (row.warning, row.warned_at, row.turn.is_healed_at(NOW + 7)) == (Warned.HEALED, NOW + 6, True)
    await store.write(partial(feed_table.note_warned, feed=lacking, now=NOW + 9))
    assert await store.read(partial(feed_table.require, feed=feed)) == row, "another note changes nothing"


async def test_feeds_are_searched_by_what_their_url_or_title_holds(store: NamedStore) -> None:
    """Search ignores the case of ASCII letters and takes the text literally. Counts cover all parts."""
    for name, title in (("b", "Été"), ("A%", None), ("c", "A Walk"), ("a_", "")):
        await listed(store, name, title=title)

    for words, expected in (
        ("", "a_ c A% b"),
        ("/A", "a_ A%"),
        ("a%", "A%"),
        ("a WALK", "c"),
        ("Été", "b"),
        ("nothing", ""),
    ):
        assert await found(store, words) == expected
        counts = await store.read(partial(feed_table.count_found, words=words))
        assert (counts.found, counts.feeds) == (len(expected.split()), 4)
        assert (
            await store.read(partial(feed_table.count_among, words=words, feeds=[1, 2, 3, 4])) == counts.found
        )
    assert await found(store, "O.TEST", "", "url", limit=2, offset=1) == "a_ b"


async def test_feeds_are_sorted_and_chosen_by_what_is_shown_of_them(store: NamedStore) -> None:
    """Feeds sort by title, or URL without a title; by size; by state, the last asked for first. A feed with a
    walk counts as loading in any state; a stale one is found as stale, too."""
    await listed(store, "1", title="beta", state=State.COMPLETE, entries=5)
    await listed(store, "2", title="Alpha", state=State.PARTIAL, entries=50, is_stale=True)
    await listed(store, "3", state=State.COMPLETE, entries=7, is_walking=1)
    await listed(store, "4", title="alpha", state=State.PARTIAL)

    orders = {
        "asked": "4 3 2 1",
        "title": "4 2 1 3",
        "url": "1 2 3 4",
        "state": "1 3 4 2",
        "entries": "2 3 1 4",
    }
    assert tuple(orders) == feed_table.ORDERS
    for sort, expected in orders.items():
        assert await found(store, "", "", sort) == expected, sort
        look = partial(
            feed_table.search, search=feed_table.FeedSearch("", "attention", sort), limit=9, offset=0
        )
        among = await store.read(partial(look, among=[1, 2, 3, 4]))
        assert names(await store.read(partial(feed_table.read_lines, feeds=among))) == expected
    assert await found(store, "", "partial", "title") == "4 2"
    assert await found(store, "alpha", "partial") == "4 2"
    assert await found(store, "", "complete") == "1"
    assert await found(store, "", "loading") == "3"
    assert await found(store, "", "stale") == "2"
    assert await found(store, "beta", "stale") == ""
    counts = await store.read(partial(feed_table.count_found, words=""))
    assert counts.by_state == {"complete": 1, "partial": 2, "loading": 1, "stale": 1}
    counts = await store.read(partial(feed_table.count_found, words="alpha"))
    assert counts.by_state == {"complete": 0, "partial": 2, "loading": 0, "stale": 1}


async def test_a_line_has_the_last_failure(store: NamedStore) -> None:
    """A forgotten feed has no line; the others come in the order asked for."""
    feed, other = await a_feed(store), await a_feed(store, "http://o.test/other")
    await store.note_refetch(feed.id, an_attempt(SUBSCRIPTION_ATTEMPT), is_stale=True)
    first, second = await store.read(partial(feed_table.read_lines, feeds=[other.id, 99, feed.id]))
    assert (first.url, first.oldest_at, first.reason, first.status) == (other.url, None, None, None)
    assert (second.url, second.reason, second.status) == (URL, "timeout", None)


async def test_troubles_are_read_for_all_feeds_at_once(store: NamedStore) -> None:
    """Reasons of missing documents count if all are the same; a feed may have a new address alone."""
    first, second, third = [(await a_feed(store, f"http://o.test/{each}")).id for each in range(3)]
    missing = [an_attempt("http://o.test/a"), an_attempt("http://o.test/b", first_at=NOW - 9)]
    await publish(store, first, state=State.PARTIAL, missing=missing)
    await store.note_refetch(first, an_attempt(SUBSCRIPTION_ATTEMPT, first_at=NOW - 7))
    odd = replace(missing[0], reason="publisher-status", status=404)
    await publish(store, second, state=State.PARTIAL, missing=[missing[1], odd])
    named = json.dumps([{"code": "NewAddress", "href": "http://n.test/"}])
    await publish(store, third, notes=named)
    counts = await store.read(partial(feed_table.count_found, words="nothing"))
    assert counts.readdressed == [third]
    found = await store.read(partial(failures.list_troubles, readdressed=[third]))
    assert found[first] == FeedTroubles(
        feed=first, state=State.PARTIAL, failing_since=NOW - 7, reason="timeout",
        missing=2, missing_since=NOW - 9, missing_reason="timeout",
    )  # fmt: skip
    assert found[second][:8] == (second, State.PARTIAL, None, None, None, 2, NOW - 9, None)
    assert found[third] == FeedTroubles(third, State.COMPLETE, new_address="http://n.test/")


async def test_known_urls_are_keys_and_aliases(store: NamedStore) -> None:
    """In one question for many URLs."""
    feed = await a_feed(store)
    await store.write(partial(feed_table.add_alias, url="http://o.test/'\"alias", feed=feed.id))
    urls = [URL, "http://o.test/'\"alias", "http://o.test/unknown", ""]
    assert await store.read(partial(feed_table.find_known_urls, urls=urls)) == set(urls[:2])
    assert await store.read(partial(feed_table.find_known_urls, urls=[])) == set()


async def a_row(store: NamedStore, feed: int) -> FeedRow:
    row = await store.read(partial(feed_table.find, feed=feed))
    assert row is not None
    return row


async def test_they_are_those_of_the_rows(store: NamedStore) -> None:
    """The engine's cheapest digest equals the row's: instants, bytes, truth values, NULL, odd texts."""
    new, other = (await a_feed(store)).id, (await a_feed(store, "http://o.test/other")).id
    (document,) = await store.put_documents(other, [a_document(URL, an_entry("a"))], now=NOW)
    publication = a_publication([a_segment(document)], state=State.PARTIAL, via_url="http://o.test/é,{}")
    revision, _ = await store.placed(other)
    await store.publish(other, publication, revision=revision, now=NOW + 0.123456)
    changes: FeedChanges = {"is_stale": True, "fresh_until": NOW + 0.1, "checked_at": 1763770000.12}
    await store.write(partial(feed_table.update, feed=other, changes=changes), feed=other)

    found = await store.versions([new, other, 77])
    assert found == {each: version_of(await a_row(store, each)) for each in (new, other)}
    assert found[other].ages.checked_at == 1763770000.12
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
    store: NamedStore, changes: FeedChanges, is_another: bool
) -> None:
    """Changed times alone keep the version; values independent of it are told beside it."""
    feed = (await a_feed(store)).id
    before = (await store.versions([feed]))[feed]
    await store.write(partial(feed_table.update, feed=feed, changes=changes), feed=feed)
    after = (await store.versions([feed]))[feed]
    assert (after.published != before.published) is is_another


DAY = 86_400.0
OFFSETS = (-4 * DAY, -7200.0, -3600.0, -10.0, 0.0, 10.0, 61.0, 3600.0, 2 * DAY)
FAILED = (None, -2 * DAY, -10.0, 61.0, 3600.0)
TIMES = Times(NOW, 3600.0, DAY)


async def test_a_publication_and_a_document_make_another_one(store: NamedStore) -> None:
    """A publication changes the answer; an unpublished document makes the feed due."""
    feed = (await a_feed(store)).id
    seen = [(await store.versions([feed]))[feed]]
    await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    seen.append((await store.versions([feed]))[feed])
    await publish(store, feed)
    seen.append((await store.versions([feed]))[feed])
    assert len({each.published for each in seen}) == 3


async def test_the_time_of_the_next_one_is_told(store: NamedStore) -> None:
    """R7: polling sleeps until the earliest feed is due, by its freshness and by its last check."""
    assert (await store.outlook(TIMES)).next_at is None
    for name, checked, fresh in (("a", -3000, -2100), ("b", -100, 800), ("c", -4000, 700)):
        feed = await a_feed(store, f"http://o.test/{name}")
        await store.update_feed(feed.id, checked_at=NOW + checked, fresh_until=NOW + fresh)

    outlook = await store.outlook(TIMES)

    assert (outlook.due, outlook.next_at) == ((), NOW + 600)


async def test_the_feeds_that_are_due_are_those_that_the_rule_names(store: NamedStore) -> None:
    """`wholefeed.core.schedule.poll_due_at`, for every order of the instants."""
    due: list[tuple[float, int]] = []
    later: list[float] = []
    for number, (checked, failed, fresh) in enumerate(product(OFFSETS, FAILED, OFFSETS)):
        feed = await a_feed(store, f"http://o.test/{number}")
        failed_at = None if failed is None else NOW + failed
        await store.update_feed(
            feed.id, checked_at=NOW + checked, failed_at=failed_at, fresh_until=NOW + fresh
        )
        due_at = poll_due_at(NOW + checked, NOW + (checked if failed is None else failed), NOW + fresh, TIMES)
        due.append((NOW + checked, feed.id)) if due_at <= NOW else later.append(due_at)

    outlook = await store.outlook(TIMES)

    assert outlook.feeds == len(OFFSETS) ** 2 * len(FAILED)
    assert len(outlook.due) == len(due)
    assert {feed for feed, _ in outlook.due} == {feed for _, feed in due}
    checked_at = {feed: at for at, feed in due}
    assert [checked_at[feed] for feed, _ in outlook.due] == sorted(checked_at.values())
    assert outlook.next_at is not None
    assert NOW < outlook.next_at <= min(later)
