"""The history of a real WordPress, where one is installed (rules R26 to R32)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.answers import Request
from tests.feeds import own_ids
from tests.origin import Origin
from tests.publishers.front import Through
from tests.publishers.real_wordpress import RealWordPress
from tests.running import Proxy

PAGES = 30
PATHS = {"rss2": "/feed/", "atom": "/feed/atom/", "rdf": "/feed/rdf/"}


@pytest.mark.parametrize(
    ("form", "rest_status", "beside"),
    [("rss2", None, 4), ("atom", None, 4), ("rdf", None, 4), ("rss2", 401, 12)],
)
async def test_all_posts_come(
    form: str,
    rest_status: int | None,
    beside: int,
    real_wordpress: RealWordPress,
    origin: Origin,
    proxy: Proxy,
) -> None:
    """R28: 300 of 300, in few requests more than there are pages: fewer where REST counts them."""
    front = Through(origin, real_wordpress.url, rest_status=rest_status)
    reply = await proxy.whole(front.url + PATHS[form])
    assert reply.state == "collected"
    assert set(own_ids(reply.body)) == real_wordpress.identities(form, url=front.url)
    assert len(origin.requests) <= PAGES + beside


CHANGES: dict[str, Callable[[RealWordPress], object]] = {
    "a post added": lambda real: real.add("Another"),
    "a post deleted": lambda real: real.delete(real.ids()[150]),
    "a post edited": lambda real: real.edit(real.ids()[150]),
    "a back-dated post": lambda real: real.add("Old", date="2020-02-02 20:02:00"),
    "a scheduled post going live": lambda real: real.go_live(real.ids_of("future")[0]),
    "two posts of three edited at once": lambda real: real.bulk_edit(
        [each for each in real.ids() if each % 3]
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_no_live_post_is_missing_after_a_change(
    name: str, real_wordpress: RealWordPress, origin: Origin, proxy: Proxy
) -> None:
    """R28: whatever happens in the middle of the walk."""
    if "scheduled" in name:
        real_wordpress.schedule()
    front = Through(origin, real_wordpress.url)

    def change(number: int, request: Request) -> None:
        if number == PAGES // 2:
            CHANGES[name](real_wordpress)

    front.on_request = change
    reply = await proxy.whole(front.url + "/feed/")
    assert reply.state == "collected"
    assert not real_wordpress.identities() - set(own_ids(reply.body))
