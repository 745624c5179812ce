from __future__ import annotations

from typing import Any

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from wholefeed.core.model import Role, Tombstone, entry_id
from wholefeed.store.rows import NewDocument

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
    """What is known of each document, without numbers."""
    rows = await store.documents(feed)
    live = await store.live_ordinals([row.id for row in rows])
    return [
        (row.url, row.role, row.rank, row.digest, row.entries, row.live_bytes, live[row.id])
        for row in sorted(rows, key=lambda row: (row.role, row.rank is None, row.rank, row.url))
    ]


@pytest.mark.parametrize("gathered", GATHERED.values(), ids=GATHERED)
async def test_put_together_or_one_by_one_is_the_same(store: NamedStore, gathered: list[NewDocument]) -> None:
    """R10, R19: what is live does not depend on how many documents share a transaction, nor on statements."""
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
