"""The whole proxy with an endless adapter: its requests are bounded (rule R17)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.answers import Document, Request, Wire
from tests.feeds import an_item, rss
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.core.adapters import table
from wholefeed.core.adapters.base import (
    AdapterJob,
    AdapterOutcome,
    Asking,
    PageQuestion,
    Sight,
    one,
    page_url,
)

BOUND = 50
"""Requests in a row without a new entry."""


class Endless:
    """An adapter that asks for ever; `number_of` maps a question's number to a page."""

    name = "endless"

    def __init__(self, number_of: Callable[[int], int]) -> None:
        self._number_of = number_of

    def fits(self, sight: Sight) -> bool:
        return True

    def collect(self, job: AdapterJob) -> Asking[AdapterOutcome]:
        for number in count(1):
            yield from one(
                PageQuestion(page_url(job.url, page=self._number_of(number)), place=number, is_again=True)
            )
        raise AssertionError("it goes on")

    look = collect


class Pages:
    """A publisher with `most` pages of two entries each; further ones repeat the last."""

    def __init__(self, most: int) -> None:
        self._most = most

    async def send(self, request: Request, wire: Wire) -> None:
        number = min(int(request.target.partition("page=")[2] or 0), self._most)
        body = rss(an_item(f"{number}-a"), an_item(f"{number}-b"))
        await Document(body=body, headers=(("Content-Type", "application/rss+xml"),)).send(request, wire)


@pytest.mark.parametrize(
    ("number_of", "most", "requests"),
    [
        (lambda number: number, 0, BOUND),
        (lambda number: number, 5, 5 + BOUND),
        (lambda number: number % 7, 100, 7 + BOUND),
        (lambda number: min(number, 100 - number % 30), 100, 190),
    ],
    ids=["nothing but the feed", "the last page for ever", "in a circle", "back and forth"],
)
async def test_an_adapter_that_asks_for_ever_is_stopped(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch,
    number_of: Callable[[int], int], most: int, requests: int,
) -> None:  # fmt: skip
    """R17: and the next refresh asks for the feed alone."""
    monkeypatch.setattr(table, "ADAPTERS", (Endless(number_of),))
    origin.answer("/feed", Pages(most))
    url = origin.url("/feed")
    reply = await proxy.whole(url)
    assert reply.state == ("partial" if most else "remembered")
    assert len(origin.requests) <= 1 + requests
    origin.forget_requests()
    proxy.clock.advance(1200)
    await proxy.get(url)
    await proxy.settled()
    assert [request.target for request in origin.requests] == ["/feed"]
