"""wholefeed.fetch.budget: the memory for large bodies at once."""

from __future__ import annotations

import asyncio
import gc
import random
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.feeds import ids, publish_chain
from tests.fetchers import a_fetcher
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import a_config, running
from wholefeed.errors import DocumentError, QueueFullError
from wholefeed.fetch.budget import LARGE_BYTES, TOTAL_BYTES, BudgetSizes, MemoryBudget, Share, budget_bytes
from wholefeed.fetch.fetcher import Fetcher

URL = "http://a.example/"


def a_share(budget: MemoryBudget, *, is_ahead: bool = False) -> Share:
    return Share(budget, URL, is_ahead=lambda: is_ahead, sizes=BudgetSizes())


@pytest.mark.parametrize(("free", "total"), [(240, 40), (600, 96), (24_000, 96)])
def test_bodies_may_have_a_part_of_the_memory_that_is_free(free: int, total: int) -> None:
    """Row 122: a smaller part in a small container, so that one body can be processed."""
    assert budget_bytes(free << 20) == total << 20


async def test_shares_wait_in_order_until_there_is_room() -> None:
    """A small body waits behind a large one."""
    budget = MemoryBudget(total_bytes=100)
    first = a_share(budget)
    await first.take(70)
    order: list[int] = []

    async def take(size: int) -> None:
        await a_share(budget).take(size)
        order.append(size)

    waiting = [asyncio.create_task(take(size)) for size in (80, 20)]
    await asyncio.sleep(0)
    assert order == []
    first.give_back()
    await asyncio.gather(*waiting)
    assert order == [80, 20]
    assert budget.free_bytes == 0


async def test_a_share_does_not_wait_for_ever() -> None:
    """Without room in time a body is refused with Retry-After; a smaller one that fits is accepted."""
    budget = MemoryBudget(total_bytes=100, wait_seconds=0.01)
    await a_share(budget).take(70)
    with pytest.raises(QueueFullError) as caught:
        await a_share(budget).take(40)
    assert caught.value.retry_after_seconds == 2
    await a_share(budget).take(30)


async def test_what_is_fetched_ahead_leaves_half_of_the_budget_and_does_not_wait_inside_a_body() -> None:
    """Look-ahead uses half of the memory for bodies at most, so that linked documents find room."""
    budget = MemoryBudget(total_bytes=100)
    await a_share(budget, is_ahead=True).take(50)
    with pytest.raises(QueueFullError):
        await a_share(budget, is_ahead=True).take(1)
    await a_share(budget).take(50)


@pytest.mark.fault("121")
async def test_what_is_fetched_ahead_waits_before_it_is_asked_for() -> None:
    """Row 121: for a quarter more than earlier documents took, behind all requests in turn, until its walk
    reaches it."""
    budget, sizes, order = MemoryBudget(), BudgetSizes(), list[str]()
    sizes.add(16 << 20)
    path_is_there = asyncio.Event()
    held = Share(budget, URL, is_ahead=lambda: True, sizes=sizes)
    await held.foresee()
    assert budget.free_bytes == TOTAL_BYTES - (20 << 20)
    whole = a_share(budget)
    await whole.take(budget.free_bytes)

    async def foresee() -> None:
        await Share(budget, URL, is_ahead=lambda: not path_is_there.is_set(), sizes=sizes).foresee()
        order.append("ahead")

    async def take() -> None:
        await a_share(budget).take(TOTAL_BYTES // 2)
        order.append("linked")

    waiting = [asyncio.create_task(each()) for each in (foresee, take)]
    await asyncio.sleep(0)
    whole.give_back()
    await waiting[1]
    assert order == ["linked"]
    path_is_there.set()
    await waiting[0]
    assert order == ["linked", "ahead"]


async def test_small_documents_need_no_share_before_they_are_asked_for() -> None:
    """Nor do those behind a large one, once two small ones have come."""
    budget, sizes = MemoryBudget(), BudgetSizes()
    for size, is_large in ((LARGE_BYTES, False), (3 * LARGE_BYTES, True), (10, True), (10, False)):
        sizes.add(size)
        share = Share(budget, URL, is_ahead=lambda: True, sizes=sizes)
        await share.foresee()
        assert (budget.free_bytes < TOTAL_BYTES) is is_large
        share.give_back()


@pytest.mark.fault("121")
async def test_what_has_come_of_a_body_does_not_make_the_next_one_smaller() -> None:
    """Row 121: the bytes received before a large body gets its share are not its size."""
    budget, sizes = MemoryBudget(), BudgetSizes()
    sizes.add(24 << 20)
    share = Share(budget, URL, is_ahead=lambda: False, sizes=sizes)
    await share.begin(6 << 20, is_coded=True, limit_bytes=32 << 20)
    await share.cover(LARGE_BYTES + 1, 0.1)
    assert sizes.expected_bytes == 30 << 20


@pytest.mark.fault("121")
async def test_a_body_of_an_unknown_length_may_be_as_long_as_any() -> None:
    """Row 121: so look-ahead waits for room for the longest body before its request."""
    sizes = BudgetSizes()
    share = Share(MemoryBudget(), URL, is_ahead=lambda: False, sizes=sizes)
    await share.begin(None, is_coded=True, limit_bytes=32 << 20)
    await share.cover(LARGE_BYTES + 1)
    assert sizes.expected_bytes == 40 << 20
    share.came(2 * LARGE_BYTES)
    assert sizes.expected_bytes == 20 << 20


@pytest.mark.fault("121")
@pytest.mark.parametrize("part", [0.05, 0.0], ids=["of a known length", "of an unknown one"])
async def test_a_body_that_is_fetched_ahead_takes_what_it_probably_comes_to(part: float) -> None:
    """Row 121: estimated from the bytes received, and before unsent requests. So one of 15 MiB fits beside
    one in its turn, which has 32, and is not fetched again."""
    budget = MemoryBudget()
    linked, ahead = a_share(budget), a_share(budget, is_ahead=True)
    for share in (linked, ahead):
        await share.begin(None, is_coded=True, limit_bytes=32 << 20)
        await share.cover(LARGE_BYTES + 1)
    sizes = BudgetSizes()
    sizes.add(16 << 20)
    waiting = asyncio.create_task(Share(budget, URL, is_ahead=lambda: True, sizes=sizes).foresee())
    for body_bytes in range(LARGE_BYTES, 15 << 20, LARGE_BYTES):
        await asyncio.sleep(0)
        await ahead.cover(body_bytes, part and body_bytes / (15 << 20))
    assert not waiting.done()
    for share in (linked, ahead):
        share.give_back()
    await waiting


@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "ahead", "back", "cancel"]), st.integers(1, 150)), max_size=40
    )
)
def test_no_more_is_taken_than_there_is_and_all_comes_back(events: list[tuple[str, int]]) -> None:
    """In any order of taking, cancelling and giving back."""

    async def play() -> None:
        budget = MemoryBudget(total_bytes=100)
        shares: list[tuple[Share, asyncio.Task[None]]] = []
        for event, size in events:
            if event in ("take", "ahead"):
                share = a_share(budget, is_ahead=event == "ahead")
                shares.append((share, asyncio.create_task(share.take(size))))
            elif shares:
                share, task = shares[size % len(shares)]
                task.cancel() if event == "cancel" else share.give_back()
            await asyncio.sleep(0)
            assert 0 <= budget.free_bytes <= 100
        while not all(task.done() for _, task in shares):
            for share, _ in shares:
                share.give_back()
            await asyncio.sleep(0)
        for share, task in shares:
            task.exception() if not task.cancelled() else None
            share.give_back()
        assert budget.free_bytes == 100

    asyncio.run(play())


async def test_the_memory_comes_back_when_a_document_is_garbage(origin: Origin) -> None:
    """Memory counts as used while a fetched body is in use, and is free when it is dropped."""
    origin.publish("/feed", b"<feed>" + bytes(3 << 20))
    origin.publish("/coded", random.Random(1).randbytes(3 << 20), coding="gzip")
    budget = MemoryBudget()
    async with a_fetcher(document_bytes=8 << 20, budget=budget) as fetcher:
        fetched = await fetcher.fetch(origin.url("/feed"))
        coded = await fetcher.fetch(origin.url("/coded"))
        assert budget.free_bytes == TOTAL_BYTES - len(fetched.body) - len(coded.body)
        del fetched, coded
        gc.collect()
        await asyncio.sleep(0)
        assert budget.free_bytes == TOTAL_BYTES


async def test_a_walk_along_large_documents_needs_no_more_memory_than_there_is(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two feeds, each with more look-ahead than there is room for: both come whole."""
    set_constant(monkeypatch, "LARGE_BYTES", 100)
    expected = publish_chain(origin, archives=12)
    budget = MemoryBudget(total_bytes=1500, retry_after_seconds=0.01)  # a document has about 900 bytes
    opening = partial(Fetcher.open, budget=budget)
    async with Origin("127.0.0.2") as other, running(a_config(tmp_path), open_fetcher=opening) as proxy:
        publish_chain(other, archives=12)
        replies = await asyncio.gather(*(proxy.whole(each.url("/feed")) for each in (origin, other)))
        assert [(reply.state, ids(reply.body)) for reply in replies] == [("complete", expected)] * 2
        await proxy.settled()
        gc.collect()
        await asyncio.sleep(0.01)
        assert budget.free_bytes == 1500


async def test_the_memory_comes_back_when_a_fetch_fails(origin: Origin) -> None:
    """Row 30: a body over the limit leaves nothing counted behind."""
    origin.publish("/feed", bytes(3 << 20))
    budget = MemoryBudget()
    async with a_fetcher(document_bytes=2 << 20, budget=budget) as fetcher:
        with pytest.raises(DocumentError):
            await fetcher.fetch(origin.url("/feed"))
        assert budget.free_bytes == TOTAL_BYTES
