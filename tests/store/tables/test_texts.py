"""T2, T3, T6: what is stored of the texts of pages, on both engines."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.named_store import NamedStore
from tests.store.makers import a_feed
from wholefeed.core.texts.plain import digest_text, squeeze, strip
from wholefeed.store.rows import FeedRow
from wholefeed.store.tables import feed_table, text_table
from wholefeed.store.tables.text_table import NewText

NOW = 1_800_000_000.0
DAY = 86400.0
ROOM = 1 << 20


def page(number: int) -> bytes:
    return number.to_bytes(16)


def a_text(number: int, html: str = "", *, why: str = "", attempts: int = 0) -> NewText:
    html = "" if why else html or f"<p>Text {number}</p>"
    digest = digest_text(squeeze(strip(html)), html) if html else b""
    url = f"https://blog.example/{number}"
    return NewText(page(number), url, NOW, why, attempts, "learned", html, len(html), digest)


async def put(store: NamedStore, feed: int, text: NewText, *, room: int = ROOM, at: float = NOW) -> FeedRow:
    work = partial(text_table.put, feed=feed, text=text, now=at, most_bytes=room)
    return await store.write(work, feed=feed)


async def texts(store: NamedStore, feed: int, *numbers: int) -> dict[bytes, str]:
    found = await store.read(partial(text_table.read_texts, feed=feed, pages=map(page, numbers)))
    return {key: each.body.decode().decode() for key, each in found.items()}


async def test_a_text_is_found_by_its_page(store: NamedStore) -> None:
    """T4: beside the entries, with a count and an instant that move with it."""
    feed = (await a_feed(store)).id
    row = await put(store, feed, a_text(1))
    assert (row.texts, row.texts_at) == (1, NOW)
    row = await put(store, feed, a_text(2))
    assert (row.texts, row.texts_at) == (2, NOW + 1), "each change has an instant of its own"
    row = await put(store, feed, a_text(3, why="no-text"))
    assert (row.texts, row.texts_at) == (2, NOW + 1), "readers see no change"
    many = range(1, 200)
    assert await texts(store, feed, *many) == {page(1): "<p>Text 1</p>", page(2): "<p>Text 2</p>"}
    assert await texts(store, feed) == {}
    (refusal,) = await store.read(partial(text_table.count_refusals, feed=feed))
    assert refusal == ("no-text", 1, "https://blog.example/3")


async def test_a_text_of_two_pages_is_neither_s(store: NamedStore) -> None:
    """T3: nor a third one's."""
    feed = (await a_feed(store)).id
    await put(store, feed, a_text(1, "<p>Alike</p>"))
    for number in (2, 3):
        row = await put(store, feed, a_text(number, "<p>Alike</p>"))
        assert row.texts == 0
    pages = await store.read(partial(text_table.list_pages, feed=feed))
    assert [each.why for each in pages.values()] == ["repeated"] * 3


async def test_another_markup_of_the_same_letters_is_a_change(store: NamedStore) -> None:
    """T4: the text's digest moves with a picture; as the text of another page it is the same (T3)."""
    feed = (await a_feed(store)).id
    await put(store, feed, a_text(1, "<p>Alike</p>"))
    (before,) = (await store.read(partial(text_table.read_digests, feed=feed))).values()
    row = await put(store, feed, a_text(1, "<p>Alike</p><img>"), at=NOW + 9)
    (after,) = (await store.read(partial(text_table.read_digests, feed=feed))).values()
    assert (row.texts_at, before == after) == (NOW + 9, False)
    assert (await put(store, feed, a_text(2, "<b>Alike</b>"))).texts == 0


async def test_a_feed_has_a_bound(store: NamedStore) -> None:
    """T4: what has no room in limits.feed_bytes is not kept."""
    feed = (await a_feed(store)).id
    await put(store, feed, a_text(1, "<p>12345</p>"), room=20)
    row = await put(store, feed, a_text(2, "<p>67890</p>"), room=20)
    assert row.texts == 1
    pages = await store.read(partial(text_table.list_pages, feed=feed))
    assert pages[page(2)].why == "no-room"


async def test_a_failure_that_may_pass_takes_no_text_away(store: NamedStore) -> None:
    """T2: the earlier text stays; a lasting refusal replaces it."""
    feed = (await a_feed(store)).id
    await put(store, feed, a_text(1))
    assert (await put(store, feed, a_text(1, why="timeout", attempts=1))).texts == 1
    assert (await put(store, feed, a_text(1, why="paywalled"))).texts == 0
    assert await texts(store, feed, 1) == {}


async def test_a_plan_is_due_when_texts_are_asked_for(store: NamedStore) -> None:
    """T2: and again once the feed has changed; not when nobody has asked for a month."""
    feed = (await a_feed(store)).id
    await store.write(
        lambda db: db.execute("UPDATE feed SET digest = :digest, is_walking = 0", {"digest": b"d"})
    )
    await store.write(partial(text_table.ask, feed=feed, now=NOW))

    async def due(at: float) -> list[int]:
        return [each.id for each in await store.read(partial(text_table.list_due, now=at, limit=9))]

    assert await due(NOW) == [feed]
    assert await due(NOW + 31 * DAY) == []
    plan = await store.read(partial(text_table.find_plan, feed=feed))
    assert plan is not None
    await store.write(partial(text_table.put_off, feed=feed, plan=plan, due_at=None))
    await store.write(partial(text_table.ask, feed=feed, now=NOW + DAY))
    assert await due(NOW + DAY) == [], "nothing has changed"
    await store.write(
        lambda db: db.execute("UPDATE feed SET published_revision = published_revision + 1", {})
    )
    await store.write(partial(text_table.ask, feed=feed, now=NOW + DAY))
    assert await due(NOW + DAY) == [feed]
    await store.write(partial(text_table.put_off, feed=feed, plan=plan, due_at=None))
    assert await due(NOW + DAY) == [feed], "what was asked for meanwhile stays due"


@pytest.mark.parametrize("table", [feed_table, text_table], ids=["lists", "texts"])
async def test_one_feed_of_each_host_is_due(store: NamedStore, table: Any) -> None:
    """H1, T2: the first one of each, so a site of many feeds keeps no other waiting."""
    urls = [*(f"https://a.test/{number}" for number in range(9)), "http://a.test/", "https://b.test/x/y"]
    feeds = [(await a_feed(store, url)).id for url in urls]
    sql = "UPDATE feed SET digest = :digest, is_walking = 0, list_at = id"
    await store.write(lambda db: db.execute(sql, {"digest": b"d"}))
    for feed in feeds:
        await store.write(partial(text_table.ask, feed=feed, now=NOW))

    async def due(offset: int) -> list[int]:
        rows = await store.read(partial(table.list_due, now=NOW, limit=2, offset=offset))
        return [each.id for each in rows]

    assert await due(0) == [feeds[0], feeds[9]]
    assert await due(2) == [feeds[10]]
    assert await due(4) == []


async def test_pages_without_an_entry_go(store: NamedStore) -> None:
    """T4: with their texts, and all with the feed."""
    feed = (await a_feed(store)).id
    for number in (1, 2):
        await put(store, feed, a_text(number))
    settle = partial(text_table.settle, feed=feed, wanted=1, dropped=[page(1)], now=NOW + 9)
    row = await store.write(settle, feed=feed)
    assert (row.texts, row.texts_wanted, row.texts_at) == (1, 1, NOW + 9)
    await store.forget(feed, now=NOW)
    assert await store.read(partial(text_table.list_pages, feed=feed)) == {}
    assert await texts(store, feed, 1, 2) == {}


@pytest.mark.parametrize("at", [None, NOW + 5])
async def test_the_next_plan_is_known(store: NamedStore, at: float | None) -> None:
    """T2: it is waited for."""
    feed = (await a_feed(store)).id
    await store.write(partial(text_table.ask, feed=feed, now=NOW))
    plan = await store.read(partial(text_table.find_plan, feed=feed))
    assert plan is not None
    await store.write(partial(text_table.put_off, feed=feed, plan=plan, due_at=at))
    assert await store.read(partial(text_table.next_due_at, now=NOW)) == at
