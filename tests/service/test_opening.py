"""wholefeed.service.opening: how long, and for how many URLs, failures are remembered."""

from __future__ import annotations

import pytest

from tests.running import Clock
from wholefeed.errors import PublisherTimeoutError
from wholefeed.service.opening import MAX_UNOPENED, Unopened


def test_what_could_not_be_opened_is_remembered_in_bounds() -> None:
    """Rows 21 and 55: a minute, in bounded number, and no longer than their host's pause."""
    clock = Clock()
    unopened = Unopened(clock)
    error = PublisherTimeoutError("expected a feed in time", url="http://a.example/")
    short = PublisherTimeoutError("left alone", url="http://b.example/", retry_after_seconds=5)
    keys = [(f"http://{number}.example/", False) for number in range(MAX_UNOPENED + 10)]
    for key in keys:
        unopened.remember(key, short if key == keys[-2] else error)
    assert len(unopened) == MAX_UNOPENED
    unopened.check(keys[0])
    clock.advance(3)
    with pytest.raises(PublisherTimeoutError):
        unopened.check(keys[-2])
    with pytest.raises(PublisherTimeoutError) as caught:
        unopened.check(keys[-1])
    assert caught.value is not error
    assert caught.value.retry_after_seconds == pytest.approx(57, abs=1)
    clock.advance(3)
    unopened.check(keys[-2])
    clock.advance(-10)
    unopened.check(keys[-1])
    assert len(unopened) == MAX_UNOPENED - 2
