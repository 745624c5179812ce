"""The documents of a feed: stored, arranged, detached, purged; their bodies and entries."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from tests.store.places import Place
from wholefeed.core.facts import CopyDates
from wholefeed.core.model import Family, Role, Tombstone, entry_id
from wholefeed.errors import StoreError
from wholefeed.store.rows import NewDocument, NewEntry
from wholefeed.store.tables import document_table
from wholefeed.store.tables.document_table import encode_body, moved_documents

DAY = 86400.0

NO_COLUMNS = {
    *("body", "coded", "entries", "tombstones", "keys", "ambiguous", "detached_at", "is_doubtful"),
    *("own", "traits", "pairs", "in_memory"),
}
"""Fields of a document for other tables, or derived from its rank by default."""


async def test_a_document_comes_back_as_it_was_put(store: NamedStore) -> None:
    """Every column reads back as written, non-ASCII text included."""
    feed = (await a_feed(store)).id
    document = a_document(
        URL,
        an_entry("a"),
        an_entry("b"),
        rank=-3,
        body="<feed>ü</feed>".encode(),
        final_url="http://o.test/final",
        family=Family.RSS,
        site_id="urn:x",
        links={"older": "http://o.test/2"},
        is_marked=True,
        is_settled=True,
        is_uncacheable=True,
        brought_news=False,
        etag='W/"é"',
        last_modified="Sat, 01 Jan 2000 00:00:00 GMT",
        updated_at=7.25,
        parser_version=3,
    )

    (number,) = await store.put_documents(feed, [document], now=NOW)

    (row,) = await store.documents(feed)
    names = [name for name in document.__slots__ if name not in NO_COLUMNS]
    assert {name: getattr(row, name) for name in names} == {name: getattr(document, name) for name in names}
    assert (row.id, row.feed, row.entries, row.body_bytes, row.live_bytes) == (number, feed, 2, 15, 200)
    assert (row.checked_at, row.detached_at) == (NOW, None)
    assert await store.body(number) == document.body
    assert (await store.overview(feed)).stored_bytes == 15

    again = NewDocument.of(row, document.body, document.entries)
    assert again == replace(document, links=again.links, notes=again.notes)
    await store.put_documents(feed, [again], now=NOW)
    assert await store.documents(feed) == [row]


async def test_a_damaged_body_is_told(store: NamedStore, place: Place) -> None:
    """Row 70: a stored body that is cut, or not of its length, is an error instead of a shorter document."""
    feed = (await a_feed(store)).id
    (number,) = await store.put_documents(feed, [a_document(body=b"x" * 1000)], now=NOW)
    for damage in ("coded = substr(coded, 1, CAST(length(coded) - 1 AS integer))", "length = 7"):
        place.rows(f"UPDATE body SET {damage}")

        with pytest.raises(StoreError, match="damaged"):
            await store.body(number)
    with pytest.raises(StoreError, match="no body"):
        await store.body(number + 1)


async def test_touching_leaves_the_live_entries_alone(store: NamedStore) -> None:
    """R13: a 304 updates validators and times of a document without rebuilding anything."""
    feed = (await a_feed(store)).id
    (number,) = await store.put_documents(feed, [a_document(URL, an_entry("a"))], now=NOW)
    revision, _ = await store.placed(feed)

    await store.touch_document(number, checked_at=NOW + 5, etag='"2"', is_settled=True)

    (row,) = await store.documents(feed)
    assert (row.checked_at, row.etag, row.is_settled) == (NOW + 5, '"2"', True)
    assert (await store.placed(feed))[0] == revision
    with pytest.raises(StoreError, match="no document"):
        await store.touch_document(number + 1, etag=None)


async def test_detached_documents_are_kept_for_ninety_days(store: NamedStore) -> None:
    """docs/design.md#the-store; R25: removing means detaching."""
    feed = (await a_feed(store)).id
    numbers = await store.put_documents(
        feed, [a_document(f"{URL}/{n}", an_entry(f"{n}"), rank=n) for n in range(3)], now=NOW
    )
    await store.detach(feed, numbers[:1], now=NOW)
    await store.detach(feed, numbers[1:2], now=NOW + DAY)
    first = a_document(f"{URL}/0", an_entry("0"), rank=None)
    await store.put_documents(feed, [first], now=NOW + 2 * DAY)  # it has left already
    rows = await store.documents(feed)
    assert [(row.id, row.rank, row.detached_at) for row in rows] == [
        (numbers[2], 2, None),
        (numbers[0], None, NOW),
        (numbers[1], None, NOW + DAY),
    ]

    assert await store.upkeep.purge(now=NOW + 90 * DAY) == 0
    assert await store.upkeep.purge(now=NOW + 90 * DAY + 1) == 1

    assert [row.id for row in await store.documents(feed)] == [numbers[2], numbers[1]]
    with pytest.raises(StoreError):
        await store.body(numbers[0])


async def test_what_changes_nothing_counts_as_no_change(store: NamedStore) -> None:
    """An arrangement equal to the stored one keeps the revision, so that no segment is built again."""
    feed = (await a_feed(store)).id
    new = [a_document(f"{URL}/{n}", an_entry(f"{n}"), rank=n) for n in range(2)]
    first, second = await store.put_documents(feed, new, now=NOW)
    await store.detach(feed, [second], now=NOW)
    revision, _ = await store.placed(feed)

    await store.arrange(feed, ranks={first: 0}, detached=[second], now=NOW)

    assert (await store.placed(feed))[0] == revision


async def test_documents_of_another_feed_are_refused(store: NamedStore) -> None:
    """A feed can detach or rank only its own documents, and not do both to one."""
    feed, other = (await a_feed(store)).id, (await a_feed(store, "http://o.test/other")).id
    (first,) = await store.put_documents(feed, [a_document()], now=NOW)

    with pytest.raises(StoreError, match="expected documents of feed"):
        await store.detach(other, [first], now=NOW)
    with pytest.raises(StoreError, match="ranked or detached"):
        await store.arrange(feed, ranks={first: 1}, detached=[first], now=NOW)


PLACES = st.dictionaries(
    st.integers(0, 9), st.tuples(st.tuples(st.integers(0, 1), st.integers(0, 4)), st.integers(0, 4))
)


@given(PLACES)
def test_pairs_that_compare_differently_have_moved(places: dict[int, tuple[tuple[int, int], int]]) -> None:
    """R10 only compares ranks, so only a changed comparison counts, ties included."""
    before = {document: place for document, (place, _) in places.items()}
    after = {document: (place[0], rank) for document, (place, rank) in places.items()}

    moved = set(moved_documents(before, after))

    for a, b in combinations(places, 2):
        if before[a][0] == before[b][0] and _order(before, a, b) != _order(after, a, b):
            assert {a, b} <= moved


def _order(places: dict[int, tuple[int, int]], a: int, b: int) -> int:
    return (places[a] > places[b]) - (places[a] < places[b])


def test_a_shift_that_keeps_the_order_moves_nothing() -> None:
    """New ranks in the same order judge no entries; two that trade places are both judged again."""
    before = {number: (2, number) for number in range(10)}

    assert moved_documents(before, {number: (2, rank + 5) for number, (_, rank) in before.items()}) == []
    swapped = before | {4: (2, 5), 5: (2, 4)}
    assert set(moved_documents(before, swapped)) == {5, 4}


SUBSCRIPTION = a_document(URL, an_entry("a", 3.0), an_entry("new"), role=Role.SUBSCRIPTION)
BURYING = a_document(
    URL,
    an_entry("new"),
    role=Role.SUBSCRIPTION,
    tombstones=(Tombstone(entry_id("a"), 9.0, "a"),),
)


def archive(number: int, *names: str, updated_at: float | None = 1.0, **changes: Any) -> NewDocument:
    entries = [an_entry(name, updated_at) for name in names]
    return a_document(f"http://o.test/{number}", *entries, rank=number, **changes)


GATHERED = {
    "nothing twice": [archive(1, "a", "b"), archive(2, "c"), archive(3, "d")],
    "copies among them": [archive(1, "a", "b"), archive(2, "b", "a", updated_at=2.0), archive(3, "a")],
    "copies of what is there": [archive(1, "x", "old"), archive(2, "old", updated_at=9.0), archive(3, "y")],
    "one within a document": [archive(1, "a", "a"), archive(2, "b")],
    "the subscription document among them": [archive(1, "a"), SUBSCRIPTION, archive(2, "a", "b")],
    "tombstones among them": [archive(1, "a", "b"), BURYING, archive(2, "a", "c")],
    "one that is replaced": [archive(1, "a"), archive(0, "b", body=b"other"), archive(2, "b")],
    "one that comes twice": [archive(1, "a"), archive(1, "b", body=b"other"), archive(2, "a")],
    "a detached one": [archive(1, "a"), a_document("/", an_entry("a", 8.0), rank=None), archive(2, "a")],
    "a page": [archive(1, "a"), archive(2, "a", role=Role.PAGE), archive(2, "b")],
    "more than one statement takes": [archive(n, f"{n}", f"{n // 3}") for n in range(1, 20)],
    "none of which anything stands": [archive(1), archive(2), archive(3)],
}


async def stored(store: NamedStore, feed: int) -> list[Any]:
    """The stored documents, without numbers."""
    rows = await store.documents(feed)
    live = await store.live_ordinals([row.id for row in rows])
    return [
        (row.url, row.role, row.rank, row.digest, row.entries, row.live_bytes, live[row.id])
        for row in sorted(rows, key=lambda row: (row.role, row.rank is None, row.rank, row.url))
    ]


@pytest.mark.parametrize("gathered", GATHERED.values(), ids=GATHERED)
async def test_put_together_or_one_by_one_is_the_same(store: NamedStore, gathered: list[NewDocument]) -> None:
    """R10, R19: live copies do not depend on how documents are grouped into transactions or statements."""
    before = archive(0, "old", "other", updated_at=5.0)
    together, apart = [(await a_feed(store, url)).id for url in (f"{URL}/1", f"{URL}/2")]
    for feed in (together, apart):
        await store.put_documents(feed, [before], now=NOW)

    numbers = await store.put_documents(together, gathered, now=NOW)
    for document in gathered:
        await store.put_documents(apart, [document], now=NOW)

    assert await stored(store, together) == await stored(store, apart)
    urls = {row.id: row.url for row in await store.documents(together)}
    assert [urls[number] for number in numbers] == [document.url for document in gathered]
    for number, document in dict(zip(numbers, gathered, strict=True)).items():
        assert await store.body(number) == document.body


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SMALL = b"<entry><title>a</title></entry>" * 100
LARGE = bytes(range(256)) * 2048


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_each_body_is_a_frame_of_its_own(texts: list[bytes]) -> None:
    """A reused compressor makes the same frame of a body, without a trace of others."""
    alone = [encode_body(text) for text in texts]
    assert [zstd.decompress(each) for each in alone] == texts
    assert [encode_body(text) for text in reversed(texts)] == alone[::-1]


@pytest.mark.parametrize("body", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_a_body_tells_its_length_and_is_checked(body: bytes) -> None:
    """The frame states the text's length, for decompression at once, and ends with a checksum."""
    coded = encode_body(body)
    assert zstd.get_frame_info(coded).decompressed_size == len(body)
    assert zstd.decompress(coded) == body
    assert coded[4] & 0b100, "RFC 8878, section 3.1.1.1.1: Content_Checksum_flag"


def test_threads_do_not_share_a_compressor() -> None:
    """Bodies compressed at the same moment do not mix."""
    texts = [bytes([number]) * (1000 + number) for number in range(200)]
    with ThreadPoolExecutor(8) as threads:
        coded = list(threads.map(encode_body, texts * 10))
    assert [zstd.decompress(each) for each in coded] == texts * 10


@pytest.mark.parametrize("count", [0, 1, 3, 100, 256, 700])
async def test_entries_come_back_as_they_were_put(store: NamedStore, count: int) -> None:
    """Any number of entries reads back in order; an entry without instant has none, not another number."""
    feed = (await a_feed(store)).id
    dates = [(None, None, None), (1.5, 2.5, 3.5), (None, 0.0, -1.0), (1e300, None, 5e-324)]
    entries = [
        NewEntry(entry_id(f"{at}"), updated_at, order_at, at, of_document, at % 3, order_at)
        for at in range(count)
        for updated_at, order_at, of_document in [dates[at % len(dates)]]
    ]
    both = [a_document(f"/{rank}", *entries[rank:], rank=rank) for rank in (0, 1)]

    numbers = await store.put_documents(feed, both, now=NOW)

    for rank, number in enumerate(numbers):
        put = entries[rank:]
        found = await store.read(partial(document_table.dated_entries, document=number))
        assert found == [(each.identity, each.order_at) for each in put]
        copies = tuple(
            CopyDates(each.updated_at, each.document_updated_at, each.fullness, each.made_at, each.identity)
            for each in put
        )
        assert await store.copy_dates(number) == copies
    rows = await store.documents(feed)
    assert [row.entries for row in rows] == [len(entries[rank:]) for rank in (0, 1)]
