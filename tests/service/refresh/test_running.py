"""wholefeed.service.running: what is wished for while a refresh is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.running import Proxy
from wholefeed.web.keys import STORE


async def test_a_wish_that_comes_while_a_refresh_ends_is_fulfilled(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: whenever the refresh looks at its feed, last for what to do next, and one is wished for then."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.whole(url)
    looks = wished_at = 0
    store = proxy.app[STORE]
    names = ("read", "write")
    real: dict[str, Callable[..., Any]] = {name: getattr(store, name) for name in names}

    def looking(work: Callable[..., Any]) -> Callable[..., Any]:
        async def look(*arguments: Any, **options: Any) -> Any:
            nonlocal looks
            found = await work(*arguments, **options)
            with monkeypatch.context() as unheard:  # what is asked here is no look of the refresh
                for name, method in real.items():
                    unheard.setattr(store, name, method)
                if (await proxy.service.status(url)).is_refreshing:
                    looks += 1
                    if looks == wished_at:
                        await proxy.service.refresh(url)
            return found

        return look

    for name, method in real.items():
        monkeypatch.setattr(store, name, looking(method))
    wishes = 0
    for attempt in range(20):  # how often it looks depends on what it finds at hand
        looks, wished_at = 0, attempt % 4 + 1
        origin.publish("/feed", atom(an_item("a", 1), an_item(f"b{attempt}", 2)))
        origin.forget_requests()
        await proxy.service.refresh(url)
        await proxy.settled()
        if looks >= wished_at:
            wishes += 1
            assert len(origin.requests_for("/feed")) == 2, wished_at
    assert wishes
