from __future__ import annotations

from itertools import product

from tests.named_store import NamedStore
from tests.store.makers import NOW, a_feed
from wholefeed.core.schedule import Times, poll_due_at

DAY = 86_400.0
OFFSETS = (-4 * DAY, -7200.0, -3600.0, -10.0, 0.0, 10.0, 61.0, 3600.0, 2 * DAY)
FAILED = (None, -2 * DAY, -10.0, 61.0, 3600.0)
TIMES = Times(NOW, 3600.0, DAY)


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


async def test_the_time_of_the_next_one_is_told(store: NamedStore) -> None:
    """R7: polling sleeps until the earliest feed is due, by its freshness and by its last check."""
    assert (await store.outlook(TIMES)).next_at is None
    for name, checked, fresh in (("a", -3000, -2100), ("b", -100, 800), ("c", -4000, 700)):
        feed = await a_feed(store, f"http://o.test/{name}")
        await store.update_feed(feed.id, checked_at=NOW + checked, fresh_until=NOW + fresh)

    outlook = await store.outlook(TIMES)

    assert (outlook.due, outlook.next_at) == ((), NOW + 600)


async def test_a_feed_that_was_never_heard_of_is_its_readers_business(store: NamedStore) -> None:
    """R7: a feed whose first fetch has not ended is not polled."""
    await a_feed(store)
    outlook = await store.outlook(TIMES)
    assert (outlook.feeds, outlook.due, outlook.next_at) == (1, (), None)
