"""wholefeed.service.sharing_hosts: how often several replicas together ask a web archive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patching import set_constant
from tests.service.sharing.shared_hosts import replicas
from tests.service.sharing.shared_store import SharedStore
from wholefeed.errors import StoreError
from wholefeed.fetch.memento import Turns
from wholefeed.service.sharing_hosts import ReplicaTurns, next_turn

ARCHIVE = "https://web.archive.org"


@given(st.lists(st.floats(0, 40), min_size=1, max_size=60), st.integers(1, 6))
def test_no_minute_has_more_turns_than_it_may(pauses: list[float], per_minute: int) -> None:
    """R33, whatever the order of the replicas: turns are reserved one after the other, none in the past."""
    now, taken = 1000.0, list[float]()
    for pause in pauses:
        now += pause
        turn = next_turn(taken[-per_minute:], per_minute, now=now)
        assert turn >= now
        taken.append(turn)
    assert taken == sorted(taken)
    for earlier, later in zip(taken, taken[per_minute:], strict=False):
        assert later - earlier >= 60 - 1e-6


async def test_replicas_share_the_turns_at_an_archive(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R33: five requests a minute by all of them; the sixth waits for the first one's minute to end."""
    set_constant(monkeypatch, "LATE_SECONDS", 30.0)
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with SharedStore.open(postgres_url) as store, replicas(store, names="ab") as made:
        one, other = (
            Turns(reserve=ReplicaTurns(each.shared, ARCHIVE, per_minute=5).reserve, sleep=sleep)
            for each in made
        )
        for _ in range(2):
            await one.take()
            await other.take()
        await one.take()
        assert waited == []
        await other.take()
        assert waited == [pytest.approx(60, abs=1)]
        await other.take()
        assert len(waited) == 2


async def test_where_the_database_is_away_a_replica_keeps_to_its_own_turns(postgres_url: str) -> None:
    """What cannot be shared does not stop the search."""
    async with SharedStore.open(postgres_url) as store, replicas(store, names="a") as (one,):
        store.error = StoreError("the database is down")
        turns = ReplicaTurns(one.shared, ARCHIVE, per_minute=5)
        assert [await turns.reserve() for _ in range(7)] == [0.0] * 7
