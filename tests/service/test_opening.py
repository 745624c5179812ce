"""wholefeed.service.opening: for how long, and of how many URLs, it is remembered that they failed."""

from __future__ import annotations

import pytest

from tests.running import Clock
from wholefeed.errors import PublisherTimeoutError
from wholefeed.service.opening import MAX_UNOPENED, Unopened


def test_what_could_not_be_opened_is_remembered_in_bounds() -> None:
    """Row 21: failures of unknown URLs are kept for a minute, in bounded number, and not across a clock set
    back."""
    clock = Clock()
    unopened = Unopened(clock)
    error = PublisherTimeoutError("expected a feed in time", url="http://a.example/")
    for number in range(MAX_UNOPENED + 10):
        unopened.remember((f"http://{number}.example/", False), error)
    assert len(unopened) == MAX_UNOPENED
    unopened.check(("http://0.example/", False))
    last = (f"http://{MAX_UNOPENED}.example/", False)
    with pytest.raises(PublisherTimeoutError) as caught:
        unopened.check(last)
    assert caught.value is not error
    assert caught.value.retry_after_seconds == pytest.approx(60, abs=1)
    clock.advance(-1)
    unopened.check(last)
    assert len(unopened) == MAX_UNOPENED - 1


def test_what_could_not_be_opened_is_remembered_no_longer_than_its_host_is_left_alone() -> None:
    """Row 55: a failure with a Retry-After of 5 s is told again for these 5 s only."""
    clock = Clock()
    unopened = Unopened(clock)
    url = "http://a.example/"
    unopened.remember((url, False), PublisherTimeoutError("left alone", url=url, retry_after_seconds=5))
    clock.advance(3)
    with pytest.raises(PublisherTimeoutError):
        unopened.check((url, False))
    clock.advance(3)
    unopened.check((url, False))
