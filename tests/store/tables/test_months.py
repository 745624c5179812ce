"""Of which months a feed's entries are: for the chart on its page."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.named_store import NamedStore
from tests.store.makers import NOW, a_document, a_feed, an_entry
from wholefeed.core.chart import month_in_words
from wholefeed.store.tables.segments import months


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
    """What another copy stands for is not counted twice, and the undated are told apart."""
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
    """Before the epoch, and at both ends of what a date can be; a day begins at midnight on either side."""
    feed = (await a_feed(store)).id
    days = ("0001-01-01", "1969-12-31T23:59:59", "1970-01-01", "9999-12-31T23:59:59")
    document = a_document("http://o.test/1", *(an_entry(day, at(day)) for day in days))
    await store.put_documents(feed, [document], now=NOW)
    expected = {"January 1": 1, "December 1969": 1, "January 1970": 1, "December 9999": 1}
    assert await told(store, feed) == [expected]


async def test_what_is_detached_or_of_another_feed_is_not_counted(store: NamedStore) -> None:
    """The chart is of what readers are sent; a document without entries has no month."""
    feed = (await a_feed(store)).id
    other = (await a_feed(store, "http://o.test/other")).id
    gone = a_document("http://o.test/0", an_entry("x", 7.0), rank=None)
    await store.put_documents(feed, [a_document("http://o.test/1"), gone], now=NOW)
    await store.put_documents(other, [a_document("http://o.test/1", an_entry("y", 7.0))], now=NOW)
    assert await told(store, feed) == [{}]
