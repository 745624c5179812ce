from __future__ import annotations

from functools import partial

import pytest

from tests.named_store import NamedStore
from tests.store.makers import NOW, a_document, a_feed
from wholefeed.core.facts import CopyDates
from wholefeed.core.model import entry_id
from wholefeed.store.rows import NewEntry
from wholefeed.store.tables import documents


@pytest.mark.parametrize("count", [0, 1, 3, 100, 256, 700])
async def test_entries_come_back_as_they_were_put(store: NamedStore, count: int) -> None:
    """However many there are, in their order; what has no instant has none, and is no other number."""
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
        found = await store.read(partial(documents.dated_entries, document=number))
        assert found == [(each.identity, each.order_at) for each in put]
        copies = tuple(
            CopyDates(each.updated_at, each.document_updated_at, each.fullness, each.made_at) for each in put
        )
        assert await store.copy_dates(number) == copies
    rows = await store.documents(feed)
    assert [row.entries for row in rows] == [len(entries[rank:]) for rank in (0, 1)]
