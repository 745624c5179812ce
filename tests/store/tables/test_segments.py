"""Segments and publications: sealed, stored, retired, and held during sending."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, a_publication, a_segment, an_entry, publish
from tests.store.places import Place
from wholefeed.core.chart import month_in_words
from wholefeed.core.compose.segments import Placed, inflate
from wholefeed.core.model import State
from wholefeed.errors import StoreError, UnknownFeedError
from wholefeed.store.base import Database
from wholefeed.store.tables import segment_table
from wholefeed.store.tables.segment_table import Pins, months, spread

OTHER = "http://o.test/other"


def stored_segments(place: Place) -> int:
    ((count,),) = place.rows("SELECT count(*) FROM block")
    return int(count)


def an_hour_passes(place: Place) -> None:
    """PostgreSQL keeps retired segments for an hour, for other processes."""
    if place.url:
        place.rows("UPDATE segment SET retired_at = retired_at - 3601")


async def a_published_feed(store: NamedStore, documents: int = 3) -> int:
    """A feed of unsettled archives, each in a segment of its own."""
    feed = (await a_feed(store)).id
    new = [a_document(f"{URL}/{n}", an_entry(f"e{n}"), rank=n) for n in range(documents)]
    await store.put_documents(feed, new, now=NOW)
    assert await publish(store, feed) is not None
    return feed


async def segment_ids(store: NamedStore, feed: int) -> list[int]:
    async with store.snapshot(feed) as snapshot:
        return [segment.id for segment in snapshot.segments]


async def test_what_was_published_is_read_back(store: NamedStore) -> None:
    """Segments, head, state and notes come back in one snapshot, and the block decodes."""
    feed = (await a_feed(store)).id
    (document,) = await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    revision, placed = await store.placed(feed)
    assert placed == [Placed(document, None, False, False, 100)]
    segment = a_segment(document, text=b"<entry>a</entry>")

    row = await store.publish(
        feed,
        a_publication([segment], state=State.PARTIAL, entries=7, notes='["x"]', context=b"c"),
        revision=revision,
        now=NOW,
    )

    assert row is not None
    assert (row.state, row.entries, row.notes, row.title, row.site, row.head, row.context) == (
        State.PARTIAL,
        7,
        '["x"]',
        "A feed",
        "http://o.test/",
        b"<feed>",
        b"c",
    )
    async with store.snapshot(feed) as snapshot:
        assert snapshot.feed == row
        (stored,) = snapshot.segments
        block = await store.block(stored.id)
    assert block == segment.sealed.block
    assert inflate(block, stored.length, stored.crc32) == b"<entry>a</entry>"
    assert (stored.digest, stored.crc_shift) == (segment.sealed.digest, segment.sealed.crc_shift)
    assert (await store.placed(feed))[1] == [Placed(document, stored.id, True, False, 100)]


async def test_a_refresh_keeps_the_segments_that_did_not_change(store: NamedStore) -> None:
    """docs/design.md#segments: a superseded entry rebuilds only its own segment."""
    feed = await a_published_feed(store)
    before = await segment_ids(store, feed)

    new = a_document("http://o.test/new", an_entry("e1", 5.0), rank=-1)
    await store.put_documents(feed, [new], now=NOW)
    await store.put_documents(feed, [a_document(OTHER, an_entry("x"), rank=9)], now=NOW)
    await publish(store, feed)

    after = await segment_ids(store, feed)
    assert after[1:3] == [before[0], before[2]]
    assert len(after) == 4
    assert not set(after) & {before[1]}


async def test_a_plan_made_before_a_change_is_refused(store: NamedStore) -> None:
    """A document that arrived after the plan would be missing."""
    feed = await a_published_feed(store)
    revision, _ = await store.placed(feed)
    await store.put_documents(feed, [a_document(OTHER, an_entry("new"), rank=9)], now=NOW)
    before = await segment_ids(store, feed)

    assert await store.publish(feed, a_publication(before), revision=revision, now=NOW) is None
    assert await segment_ids(store, feed) == before


async def test_a_plan_that_keeps_a_retired_segment_is_refused(store: NamedStore) -> None:
    """A replaced segment would bring back old entries."""
    feed = await a_published_feed(store)
    revision, placed = await store.placed(feed)
    old = await segment_ids(store, feed)
    renewed = [a_segment(one.document) for one in placed]
    assert await store.publish(feed, a_publication(renewed), revision=revision, now=NOW)

    assert await store.publish(feed, a_publication(old), revision=revision, now=NOW) is None


async def test_a_publication_that_leaves_entries_out_is_an_error(store: NamedStore) -> None:
    """A publication needs all documents with live entries, and only its own feed's."""
    feed = await a_published_feed(store)
    revision, _ = await store.placed(feed)
    before = await segment_ids(store, feed)

    with pytest.raises(StoreError, match="1 documents in none"):
        await store.publish(feed, a_publication(before[:-1]), revision=revision, now=NOW)
    with pytest.raises(StoreError, match="expected attached documents"):
        await store.publish(feed, a_publication([*before, a_segment(999)]), revision=revision, now=NOW)
    assert await segment_ids(store, feed) == before


async def test_segments_of_entries_say_which_they_are(store: NamedStore) -> None:
    """R20: segments of a collected feed belong to no document; their count shows that every live entry is in
    one."""
    feed = (await a_feed(store)).id
    page = a_document(URL, an_entry("a"), an_entry("b"))
    await store.put_documents(feed, [page], now=NOW)
    revision, _ = await store.placed(feed)
    segment = replace(a_segment(text=b"<entry>a</entry>"), members=b"which", entries=2)
    woven = partial(a_publication, [segment], is_woven=True)
    with pytest.raises(StoreError, match="expected 2 live entries in segments, got 1"):
        await store.publish(feed, woven(entries=1), revision=revision, now=NOW)
    assert await store.publish(feed, woven(entries=2), revision=revision, now=NOW) is not None
    ((number, members),) = (await store.read(partial(segment_table.members, feed=feed))).items()
    assert members == b"which"
    _, (placed,) = await store.placed(feed)
    assert (placed.segment, placed.is_clean) == (None, True)
    await publish(store, feed)  # it is no collected feed any more
    assert number not in await store.read(partial(segment_table.members, feed=feed))


async def test_last_modified_moves_forward_only_with_the_digest(store: NamedStore) -> None:
    """docs/design.md#segments: and by a whole second, HTTP's resolution (RFC 9110, section 8.8.2)."""
    feed = (await a_feed(store)).id

    instants = []
    for now, digest in ((10.5, b"1"), (11.0, b"1"), (11.1, b"2"), (5.0, b"3"), (99.0, b"3"), (99.0, b"4")):
        row = await publish(store, feed, now=now, digest=digest)
        assert row is not None
        instants.append(row.modified_at)

    assert instants == [9.5, 9.5, 11.1, 12.1, 12.1, 99.0]


@pytest.mark.fault("66a")
async def test_a_retired_segment_stays_readable_while_it_is_held(store: NamedStore, place: Place) -> None:
    """docs/faults.md row 66a: the answer matches its ETag and Content-Length."""
    feed = await a_published_feed(store, 1)
    async with store.snapshot(feed) as snapshot:
        (held,) = snapshot.segments
        before = await store.block(held.id)
        for n in range(3):
            await store.put_documents(feed, [a_document(f"{URL}/0", an_entry(f"n{n}"))], now=NOW)
            assert await publish(store, feed) is not None
            an_hour_passes(place)
            await store.upkeep.purge(now=NOW)
        assert await store.block(held.id) == before
        assert stored_segments(place) == 2

    await store.upkeep.purge(now=NOW)
    assert stored_segments(place) == 1
    with pytest.raises(StoreError, match="no segment"):
        await store.block(held.id)


async def test_a_forgotten_feeds_segments_stay_readable_while_they_are_held(
    store: NamedStore, place: Place
) -> None:
    """Row 66a: an answer in transmission ends whole though its feed is deleted; then the segments go."""
    feed = await a_published_feed(store, 2)
    async with store.snapshot(feed) as snapshot:
        blocks = [await store.block(segment.id) for segment in snapshot.segments]

        assert await store.forget(feed, now=NOW)

        assert [await store.block(segment.id) for segment in snapshot.segments] == blocks
        with pytest.raises(UnknownFeedError):
            async with store.snapshot(feed):
                pass
    an_hour_passes(place)
    await store.upkeep.purge(now=NOW)
    assert stored_segments(place) == 0


class Overtaking(Pins):
    """A reader that holds its segments as soon as any statement runs."""

    def __init__(self, feed: int, segment: int) -> None:
        super().__init__()
        self._reads, self._holds = ExitStack(), ExitStack()
        self._reads.enter_context(self.reading(feed))
        self._found = (feed, [segment])

    def _go_on(self) -> None:
        found, self._found = self._found, (0, [])
        if found[0]:
            self._holds.enter_context(self.hold(*found))
            self._reads.close()

    @property
    def segments(self) -> frozenset[int]:
        segments = super().segments
        self._go_on()
        return segments

    @property
    def feeds(self) -> frozenset[int]:
        feeds = super().feeds
        self._go_on()
        return feeds


@pytest.mark.fault("66a")
async def test_a_reader_that_goes_on_during_a_removal_keeps_its_segments(store: NamedStore) -> None:
    """A removal runs in its own thread: meanwhile a reader may hold the segments it found."""
    feed = await a_published_feed(store, 1)
    (old,) = await segment_ids(store, feed)
    await store.put_documents(feed, [a_document(f"{URL}/0", an_entry("n"))], now=NOW)
    await publish(store, feed)

    await store.write(partial(segment_table.sweep_retired, pins=Overtaking(feed, old)))

    assert await store.block(old)


@pytest.mark.fault("66a")
async def test_two_publications_of_a_feed_that_wait_share_no_commit(store: NamedStore) -> None:
    """The second removes segments retired by the first, which readers see until both are committed."""
    feed = (await a_feed(store)).id
    (document,) = await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    await publish(store, feed)
    revision, _ = await store.placed(feed)
    has_published, may_end, may_begin = threading.Event(), threading.Event(), threading.Event()

    def published(text: bytes) -> asyncio.Task[object]:
        publication = a_publication([a_segment(document, text=text)])
        work = partial(
            segment_table.publish,
            feed=feed,
            publication=publication,
            revision=revision,
            pins=store.pins,
            now=NOW,
        )
        return asyncio.create_task(store.write(work, feed=feed))

    def hold_up(_: Database) -> None:
        has_published.set()
        may_end.wait(10)

    busy = asyncio.create_task(store.write(lambda _: may_begin.wait(10)))
    first, second = published(b"<entry>1</entry>"), published(b"<entry>2</entry>")
    last = asyncio.create_task(store.write(hold_up))
    await asyncio.sleep(0)
    may_begin.set()
    await asyncio.to_thread(has_published.wait, 10)
    async with store.snapshot(feed) as snapshot:
        may_end.set()
        await asyncio.gather(busy, first, second, last)
        assert [await store.block(segment.id) for segment in snapshot.segments]


async def test_retired_segments_are_removed_at_start(place: Place) -> None:
    """Segments replaced but not removed by an earlier run go at the next start."""
    async with place.opened() as store:
        feed = await a_published_feed(store, 1)
        await store.put_documents(feed, [a_document(f"{URL}/0", an_entry("n"))], now=NOW)
        await publish(store, feed)
        assert stored_segments(place) == 2
        an_hour_passes(place)

    async with place.opened() as store:
        assert stored_segments(place) == 1


async def test_documents_that_trade_places_within_a_segment_taint_it(store: NamedStore) -> None:
    """R20: documents in a new order rebuild their segment; the same order does not."""
    feed = (await a_feed(store)).id
    new = [a_document(f"{URL}/{n}", an_entry(f"e{n}"), rank=n, is_settled=True) for n in range(3)]
    first, second, third = await store.put_documents(feed, new, now=NOW)
    await publish(store, feed)

    await store.reorder(feed, {first: 10, second: 11, third: 12}, now=NOW)
    assert all(one.is_clean for one in (await store.placed(feed))[1])

    await store.reorder(feed, {first: 11, second: 10}, now=NOW)
    assert not any(one.is_clean for one in (await store.placed(feed))[1])


async def test_segments_are_held_from_the_moment_they_are_looked_for(store: NamedStore, place: Place) -> None:
    """A removal does not overtake a reader of the feed's segments."""
    feed = await a_published_feed(store, 1)
    (old,) = await segment_ids(store, feed)
    with store.upkeep.pins.reading(feed):
        await store.put_documents(feed, [a_document(f"{URL}/0", an_entry("n"))], now=NOW)
        await publish(store, feed)
        await store.upkeep.purge(now=NOW)
        await store.block(old)
        await store.forget(feed, now=NOW)
        await store.block(old)

    an_hour_passes(place)
    await store.upkeep.purge(now=NOW)
    assert stored_segments(place) == 0


async def test_retired_segments_are_removed_by_the_next_publication(store: NamedStore, place: Place) -> None:
    """A feed with daily changes keeps its size in the database."""
    feed = await a_published_feed(store, 1)
    for n in range(4):
        await store.put_documents(feed, [a_document(f"{URL}/0", an_entry(f"n{n}"))], now=NOW)
        await publish(store, feed)

        assert stored_segments(place) == 2
        an_hour_passes(place)


async def test_a_document_without_live_entries_is_clean_and_in_no_segment(store: NamedStore) -> None:
    """A document without live entries causes no rebuild at each refresh."""
    feed = await a_published_feed(store, 2)
    new = [a_document(f"{URL}/new", an_entry("e1", 9.0), rank=-1)]
    await store.put_documents(feed, new, now=NOW)
    await publish(store, feed)

    loser = (await store.placed(feed))[1][2]
    assert (loser.segment, loser.is_clean, loser.live_bytes) == (None, True, 0)


async def test_readers_see_only_whole_publications(store: NamedStore) -> None:
    """Each publication has as many segments as its `documents` says, all of one generation."""
    feed = (await a_feed(store)).id
    is_done = asyncio.Event()
    seen: set[int] = set()

    async def read() -> None:
        while not is_done.is_set():
            async with store.snapshot(feed) as snapshot:
                texts = {inflate(await store.block(s.id), s.length, s.crc32) for s in snapshot.segments}
                assert len(snapshot.segments) == snapshot.feed.documents
                assert texts <= {str(snapshot.feed.entries).encode()}
                seen.add(snapshot.feed.entries)

    async with asyncio.TaskGroup() as group:
        readers = [group.create_task(read()) for _ in range(3)]
        for generation in range(1, 60):
            new = [a_document(f"{URL}/{n}", an_entry(f"{n}"), rank=n) for n in range(generation % 5)]
            leaving = {row.id for row in await store.documents(feed)}
            numbers = await store.put_documents(feed, new, now=NOW)
            await store.detach(feed, leaving - set(numbers), now=NOW)
            revision, placed = await store.placed(feed)
            text = str(generation).encode()
            publication = a_publication(
                [a_segment(one.document, text=text) for one in placed],
                documents=len(placed),
                entries=generation,
            )
            assert await store.publish(feed, publication, revision=revision, now=NOW) is not None
        is_done.set()
    assert all(reader.exception() is None for reader in readers)
    assert len(seen) > 5


@pytest.mark.parametrize("by_putting", [True, False])
async def test_a_document_that_leaves_taints_who_shared_its_segment(
    store: NamedStore, by_putting: bool
) -> None:
    """The segment of a departed document is rebuilt without its entries."""
    feed = (await a_feed(store)).id
    new = [a_document(f"{URL}/{n}", an_entry(f"e{n}"), rank=n, is_settled=True) for n in range(3)]
    numbers = await store.put_documents(feed, new, now=NOW)
    await publish(store, feed)
    assert len(await segment_ids(store, feed)) == 1

    if by_putting:
        await store.put_documents(feed, [a_document(f"{URL}/1", an_entry("e1"), rank=None)], now=NOW)
    else:
        await store.detach(feed, numbers[1:2], now=NOW)

    assert [(one.document, one.is_clean) for one in (await store.placed(feed))[1]] == [
        (numbers[0], False),
        (numbers[2], False),
    ]


@given(st.lists(st.none() | st.integers(-50, 50), max_size=30))
def test_positions_ascend(positions: list[int | None]) -> None:
    """R20: new positions follow the order of the answer, whichever are stored or missing."""
    found = spread(positions)

    assert len(found) == len(positions)
    assert all(a < b for a, b in pairwise(found))


@given(st.lists(st.integers(-1000, 1000), unique=True, min_size=1), st.data())
def test_positions_stay_where_there_is_room(given_positions: list[int], data: st.DataObject) -> None:
    """Work is proportional to the change: a segment put in front, behind or between moves no other."""
    positions: list[int | None] = [p * (1 << 20) for p in sorted(given_positions)]
    for _ in range(data.draw(st.integers(0, 10))):
        positions.insert(data.draw(st.integers(0, len(positions))), None)

    found = spread(positions)

    assert all(old in (None, new) for old, new in zip(positions, found, strict=True))


def test_positions_are_given_anew_where_there_is_no_room() -> None:
    """R20: without room between two positions, all segments are numbered anew."""
    assert spread([1, None, 2]) == [0, 1 << 20, 2 << 20]
    assert spread([5, 4]) == [0, 1 << 20]
    assert spread([]) == []


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


async def told(store: NamedStore, feed: int) -> list[dict[str | None, int]]:
    found = await store.read(lambda db: months(db, feed))
    return [
        {
            None if month is None else month_in_words(month): entries
            for month, entries in sorted(each.items(), key=str)
        }
        for each in found.values()
    ]


async def test_live_entries_are_counted_by_month_and_document(store: NamedStore) -> None:
    """Only live copies count; undated entries count apart."""
    feed = (await a_feed(store)).id
    newer = a_document(
        "http://o.test/2",
        an_entry("a", at("2012-03-31T23:59:59")),
        an_entry("b", at("2012-04-01")),
        an_entry("c"),
    )
    older = a_document(
        "http://o.test/1", an_entry("a", at("2012-03-01")), an_entry("d", at("2012-03-01")), rank=1
    )
    await store.put_documents(feed, [newer, older], now=NOW)
    assert await told(store, feed) == [{"March 2012": 1, "April 2012": 1, None: 1}, {"March 2012": 1}]


async def test_any_date_has_its_month(store: NamedStore) -> None:
    """Before the epoch, and at both ends of dates; a day begins at midnight on either side."""
    feed = (await a_feed(store)).id
    days = ("0001-01-01", "1969-12-31T23:59:59", "1970-01-01", "9999-12-31T23:59:59")
    document = a_document("http://o.test/1", *(an_entry(day, at(day)) for day in days))
    await store.put_documents(feed, [document], now=NOW)
    expected = {"January 1": 1, "December 1969": 1, "January 1970": 1, "December 9999": 1}
    assert await told(store, feed) == [expected]
