from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from tests.store.places import Place
from wholefeed.core.model import Family, Role
from wholefeed.errors import StoreError
from wholefeed.store.rows import DocumentRow, NewDocument

DAY = 86400.0

NO_COLUMNS = {"body", "coded", "entries", "tombstones", "keys", "ambiguous", "detached_at"}
"""What a document brings that goes into other tables, or follows from its rank where it is not given."""


async def test_a_document_comes_back_as_it_was_put(store: NamedStore) -> None:
    """Every column of a document, non-ASCII text included, reads back as it was written."""
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


async def test_a_document_that_is_put_detached_may_have_left_before(store: NamedStore) -> None:
    """R25: else it leaves as it is put."""
    feed = (await a_feed(store)).id
    left = [a_document(url=f"/{at}", rank=None, detached_at=at) for at in (None, NOW - 9.0)]
    await store.put_documents(feed, left, now=NOW)
    assert {row.url: row.detached_at for row in await store.documents(feed)} == {
        "/None": NOW,
        f"/{NOW - 9.0}": NOW - 9.0,
    }


def test_every_column_that_a_document_brings_is_one_that_comes_back() -> None:
    """A new column is named in the two rows; putting it and carrying it over follow from them."""
    came_back = {each.name for each in fields(DocumentRow)}
    brought = {each.name for each in fields(NewDocument)} - NO_COLUMNS
    assert brought <= came_back
    own = {"id", "feed", "detached_at", "checked_at", "body_bytes", "entries", "live_bytes"}
    assert came_back - brought == own


@pytest.mark.parametrize("length", [0, 10, 64 * 1024, 3_000_000])
async def test_bodies_of_any_size_come_back(store: NamedStore, length: int) -> None:
    """R22: an empty body, and one of several megabytes, come back byte for byte."""
    feed = (await a_feed(store)).id
    body = (b"0123456789abcdef" * (length // 16 + 1))[:length]
    (number,) = await store.put_documents(feed, [a_document(body=body)], now=NOW)

    assert await store.body(number) == body


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


async def test_a_replaced_document_keeps_its_number(store: NamedStore) -> None:
    """docs/faults.md row 52: the new body replaces the old one."""
    feed = (await a_feed(store)).id
    (first,) = await store.put_documents(feed, [a_document(URL, an_entry("a"), body=b"old")], now=NOW)

    (second,) = await store.put_documents(
        feed, [a_document(URL, an_entry("b"), an_entry("c"), body=b"new", rank=5)], now=NOW
    )

    assert second == first
    assert await store.body(first) == b"new"
    (row,) = await store.documents(feed)
    assert (row.rank, row.entries, row.live_bytes) == (5, 2, 200)


async def test_one_url_can_have_several_roles(store: NamedStore) -> None:
    """R3: the URL asked for may be an archive, and the subscription document too."""
    feed = (await a_feed(store)).id
    archive, subscription = await store.put_documents(
        feed, [a_document(URL), a_document(URL, role=Role.SUBSCRIPTION)], now=NOW
    )

    assert archive != subscription
    assert [(row.id, row.role) for row in await store.documents(feed)] == [
        (subscription, Role.SUBSCRIPTION),
        (archive, Role.ARCHIVE),
    ]


async def test_all_documents_are_put_or_none(store: NamedStore) -> None:
    """Row 67: when one of several documents cannot be stored, none of them is."""
    feed = (await a_feed(store)).id
    bad = a_document("http://o.test/bad", rank=0)
    object.__setattr__(bad, "media_type", None)

    with pytest.raises(StoreError, match=r"(?i)constraint"):
        await store.put_documents(feed, [a_document(URL, an_entry("a")), bad], now=NOW)

    assert await store.documents(feed) == []
    assert (await store.placed(feed)) == (0, [])


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


async def test_a_document_detached_twice_keeps_its_first_date(store: NamedStore) -> None:
    """R25: the 90 days for which a detached document is kept begin when it was first detached."""
    feed = (await a_feed(store)).id
    (number,) = await store.put_documents(feed, [a_document(rank=None)], now=NOW)

    await store.put_documents(feed, [a_document(rank=None)], now=NOW + DAY)
    await store.detach(feed, [number], now=NOW + 2 * DAY)

    assert [row.detached_at for row in await store.documents(feed)] == [NOW]
