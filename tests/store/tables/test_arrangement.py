from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.named_store import NamedStore
from tests.store.makers import NOW, URL, a_document, a_feed, an_entry
from wholefeed.errors import StoreError
from wholefeed.store.tables.documents import moved_documents


async def ranks(store: NamedStore, feed: int) -> dict[int, int | None]:
    return {row.id: row.rank for row in await store.documents(feed)}


async def three(store: NamedStore, feed: int) -> list[int]:
    new = [a_document(f"{URL}/{n}", an_entry(f"{n}"), rank=n) for n in range(3)]
    return await store.put_documents(feed, new, now=NOW)


async def test_a_chain_is_arranged_in_one_step(store: NamedStore) -> None:
    """R15: rank the path, keep documents behind it, detach what was replaced in front of the joint."""
    feed = (await a_feed(store)).id
    first, second, third = await three(store, feed)
    await store.detach(feed, [first], now=NOW)
    revision, _ = await store.placed(feed)

    await store.arrange(feed, ranks={first: 7, third: 8}, detached=[second], now=NOW + 1)

    assert await ranks(store, feed) == {first: 7, third: 8, second: None}
    assert (await store.placed(feed))[0] == revision + 1
    assert await store.live_ordinals([first, second, third]) == {first: (0,), second: (), third: (0,)}


async def test_what_changes_nothing_counts_as_no_change(store: NamedStore) -> None:
    """An arrangement equal to the stored one keeps the revision, so that no segment is built again."""
    feed = (await a_feed(store)).id
    first, second, _ = await three(store, feed)
    await store.detach(feed, [second], now=NOW)
    revision, _ = await store.placed(feed)

    await store.arrange(feed, ranks={first: 0}, detached=[second], now=NOW)

    assert (await store.placed(feed))[0] == revision


async def test_documents_of_another_feed_are_refused(store: NamedStore) -> None:
    """A document can be detached or ranked by its own feed alone, and not both at once."""
    feed, other = (await a_feed(store)).id, (await a_feed(store, "http://o.test/other")).id
    first, *_ = await three(store, feed)

    with pytest.raises(StoreError, match="expected documents of feed"):
        await store.detach(other, [first], now=NOW)
    with pytest.raises(StoreError, match="ranked or detached"):
        await store.arrange(feed, ranks={first: 1}, detached=[first], now=NOW)


PLACES = st.dictionaries(
    st.integers(0, 9), st.tuples(st.tuples(st.integers(0, 1), st.integers(0, 4)), st.integers(0, 4))
)


@given(PLACES)
def test_pairs_that_compare_differently_have_moved(places: dict[int, tuple[tuple[int, int], int]]) -> None:
    """The choice of R10 looks at ranks only to compare them, ties included."""
    before = {document: place for document, (place, _) in places.items()}
    after = {document: (place[0], rank) for document, (place, rank) in places.items()}

    moved = set(moved_documents(before, after))

    for a, b in combinations(places, 2):
        if before[a][0] == before[b][0] and _order(before, a, b) != _order(after, a, b):
            assert {a, b} <= moved


def _order(places: dict[int, tuple[int, int]], a: int, b: int) -> int:
    return (places[a] > places[b]) - (places[a] < places[b])


def test_a_shift_that_keeps_the_order_moves_nothing() -> None:
    """New ranks in the same order cost no judging of entries; two that trade places are both judged again."""
    before = {number: (2, number) for number in range(10)}

    assert moved_documents(before, {number: (2, rank + 5) for number, (_, rank) in before.items()}) == []
    swapped = before | {4: (2, 5), 5: (2, 4)}
    assert set(moved_documents(before, swapped)) == {5, 4}
