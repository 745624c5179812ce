"""The simulator of Mastodon."""

from __future__ import annotations

import pytest

from tests.origin import Origin
from tests.publishers.mastodon import Mastodon
from tests.publishers.reading import read


@pytest.mark.parametrize(
    ("query", "count"),
    [("", 20), ("?limit=50", 50), ("?limit=200", 200), ("?limit=1000", 200), ("?max_id=3", 20)],
)
async def test_at_most_two_hundred(query: str, count: int, origin: Origin) -> None:
    """Twenty if nothing is asked for, never more than two hundred, always the newest."""
    mastodon = Mastodon(origin, statuses=300)
    page = await read(mastodon.feed_url() + query)
    assert page.identities == [*map(mastodon.identity, mastodon.statuses[:count])]
