"""wholefeed.service.showing: pages are made once, are nobody else's, and make room for others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.feeds import an_item, atom, rss
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy
from wholefeed.core.compose.reading import Article
from wholefeed.core.text.urls import Places
from wholefeed.errors import OverloadedError, WorkError, WorkTooLongError
from wholefeed.service.showing import Page, PageKey, Showing
from wholefeed.workers.pool import Workers

LARGE = "word " * 4000
"""Of few of these a page is made in a worker."""
FIRST = PageKey(start=0, most=3, loads_all_but=None)


class Rendering:
    """Makes a page, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, articles: Sequence[Article], first: int) -> bytes:
        self.times += 1
        return f"{first}: {' '.join(each.title for each in articles)}".encode()


async def show(proxy: Proxy, url: str, wanted: PageKey = FIRST, rendered: Rendering | None = None) -> bytes:
    async with proxy.service.answer(url, wait_seconds=10.0) as found:
        page = await proxy.service.showing.page(found, wanted, rendered or Rendering())
    assert page.body is not None
    return page.body


def publish(origin: Origin, *names: str, text: str = LARGE) -> str:
    origin.publish("/feed", atom(*(an_item(name, 50 - n, text) for n, name in enumerate(names))))
    return origin.url("/feed")


@pytest.mark.fault("119")
async def test_a_page_is_kept_while_its_feed_is_what_it_was(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 119: by who asks next, a page is not made again; what a refresh brings is shown."""
    url, rendered = publish(origin, "a", "b", "c", "d"), Rendering()
    await proxy.whole(url)
    held = proxy.service.load.memory.bytes
    for _ in range(3):
        assert await show(proxy, url, rendered=rendered) == b"1: a b c"
    assert rendered.times == 1
    assert proxy.service.load.memory.bytes > held
    publish(origin, "e", "a", "b", "c", "d")
    await proxy.refreshed(url)
    assert await show(proxy, url, rendered=rendered) == b"1: e a b"
    assert rendered.times == 2


@pytest.mark.fault("119")
async def test_a_page_is_no_other_s_answer(proxy: Proxy, origin: Origin) -> None:
    """Row 119: which entries, of which feed, and what may be loaded, by the names that the proxy has for who
    asks: each has a page of its own."""
    url, rendered = publish(origin, "a", "b", "c", "d"), Rendering()
    other = origin.url("/other")
    origin.publish("/other", atom(an_item("o", 1, LARGE)))
    for each in (url, other):
        await proxy.whole(each)
    wanted = [
        FIRST,
        FIRST._replace(start=2),
        FIRST._replace(most=1),
        FIRST._replace(loads_all_but=Places.of(["http://one.test"])),
        FIRST._replace(loads_all_but=Places.of(["http://two.test"])),
    ]
    made = [await show(proxy, url, each, rendered) for each in wanted]
    assert made == [b"1: a b c", b"3: c d", b"1: a", b"1: a b c", b"1: a b c"]
    assert await show(proxy, other, rendered=rendered) == b"1: o"
    assert rendered.times == 6


@pytest.mark.fault("119")
async def test_many_who_ask_at_once_wait_for_few(proxy: Proxy, origin: Origin) -> None:
    """Row 119: twenty who ask for one page have it made once or twice."""
    url, rendered = publish(origin, "a", "b"), Rendering()
    await proxy.whole(url)
    made = await asyncio.gather(*(show(proxy, url, rendered=rendered) for _ in range(20)))
    assert made == [b"1: a b"] * 20
    assert rendered.times <= 2


@pytest.mark.fault("119")
async def test_a_page_that_takes_too_long_is_given_up_once(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 119: 422 for who asks, and for who asks next without another try."""
    costly = "&lt;p>&lt;a href='x'>x&lt;/a>" * 1900
    origin.publish("/feed", rss(*(an_item(name, 1, costly) for name in "abc")))
    url = origin.url("/feed")
    await proxy.whole(url)
    set_constant(monkeypatch, "PAGE_SECONDS", 0.01)
    with pytest.raises(WorkTooLongError) as caught:
        await show(proxy, url)
    assert caught.value.answer_status == 422
    monkeypatch.undo()
    with pytest.raises(WorkTooLongError):
        await show(proxy, url)
    assert await show(proxy, url, FIRST._replace(start=1)) == b"2: b c"


@pytest.mark.fault("120")
async def test_a_process_that_ends_in_the_middle_is_told_and_nothing_kept(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/faults.md row 120: 503 with Retry-After, and nothing of what the process wrote."""
    url = publish(origin, "a", "b")
    await proxy.whole(url)

    async def ended(*_: object, **__: object) -> None:
        raise WorkError("expected a result from a worker process, got its end (signal 9)\na traceback")

    monkeypatch.setattr(Workers, "run_briefly", ended)
    with pytest.raises(OverloadedError, match="has ended") as caught:
        await show(proxy, url)
    assert (caught.value.answer_status, caught.value.retry_after_seconds > 0) == (503, True)
    assert "traceback" not in str(caught.value)
    monkeypatch.undo()
    assert await show(proxy, url) == b"1: a b"


@pytest.mark.fault("120")
async def test_who_is_one_too_many_is_told_so(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 120: beyond those who wait already, at once; who waits, after some seconds."""
    url = publish(origin, "a", "b")
    await proxy.whole(url)
    set_constant(monkeypatch, "PAGE_WAIT_SECONDS", 0.2)

    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Workers, "run_briefly", never)
    others = [Places.of([f"http://{number}.test"]) for number in range(40)]
    asked = [show(proxy, url, FIRST._replace(loads_all_but=each)) for each in others]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(each, OverloadedError) and each.retry_after_seconds > 0 for each in outcomes)
    monkeypatch.undo()
    assert await show(proxy, url) == b"1: a b"


@pytest.mark.fault("120")
async def test_of_pages_that_are_being_sent_as_many_are_in_memory_as_there_is_room_for(proxy: Proxy) -> None:
    """Row 120: one that is being sent already costs nothing more."""
    making: Showing = proxy.service.showing
    pages = [Page(bytes(1 << 20)) for _ in range(33)]
    entered = [making.sending(page) for page in (*pages[:32], pages[0])]
    for each in entered:
        each.__enter__()
    with pytest.raises(OverloadedError), making.sending(pages[32]):
        pass
    entered.pop(0).__exit__(None, None, None)
    with pytest.raises(OverloadedError), making.sending(pages[32]):
        pass
    entered.pop().__exit__(None, None, None)
    with making.sending(pages[32]):
        pass
    for each in entered:
        each.__exit__(None, None, None)
