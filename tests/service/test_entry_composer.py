"""T4: answers with texts, as they are composed while texts change."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.feeds import an_item, json_feed
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from wholefeed.core.compose.as_atom import ConversionContext
from wholefeed.core.compose.views import WHOLE
from wholefeed.core.model import Family
from wholefeed.core.texts.plain import digest_text, squeeze
from wholefeed.core.texts.wanted import page_key
from wholefeed.errors import OverloadedError
from wholefeed.service.entry_composer import Composition
from wholefeed.store.tables import text_table
from wholefeed.store.tables.text_table import NewText
from wholefeed.web.answer import Representation, make_view
from wholefeed.web.keys import STORE


@pytest.mark.parametrize("posts", [3, 40])
async def test_an_answer_has_the_texts_that_its_tag_stands_for(
    start: StartProxy, origin: Origin, posts: int
) -> None:
    """T4: those stored while it is sent come with the next; a large one breaks off if one is replaced."""
    proxy = await start(history={"list": "off", "list_interval_seconds": 99.0})
    items = "".join(
        f"<item><link>{origin.url(f'/{n}')}</link><description>Words [...]</description></item>"
        for n in range(1, posts + 1)
    )
    feed = f'<rss version="2.0"><channel><title>B</title>{items}</channel></rss>'
    origin.publish("/feed", feed.encode(), content_type="application/xml")
    url = origin.url("/feed")
    await proxy.get(url)
    service, store = proxy.service, proxy.app[STORE]

    async def put(number: int, words: str) -> None:
        feed = await store.find(url)
        assert feed is not None
        html = f"<p>{words} {number} {'word ' * 99}</p>"
        page, digest = page_key(origin.url(f"/{number}")), digest_text(squeeze(html), html)
        text = NewText(page, url, None, "", 0, "named", html, 999, digest)
        await store.write(partial(text_table.put, feed=feed.id, text=text, now=2e9, most_bytes=1 << 20))

    async def send_while(number: int, words: str) -> bytes:
        view = WHOLE._replace(has_texts=True)
        wanted = Representation("http://proxy.test/feed", is_gzip=False, warns=False, view=view)
        async with service.answer(url, wait_seconds=9) as found:
            answer = await make_view(found, wanted, store, service.composer)
            pieces = answer.body.pieces(store)
            sent = await anext(pieces)
            await put(number, words)
            return sent + b"".join([piece async for piece in pieces])

    await put(2, "Old")
    sent = await send_while(1, "New")
    assert (b"New 1" in sent, b"Old 2" in sent) == (False, True)
    if posts == 3:
        assert b"Old 2" in await send_while(2, "Newer")
    else:
        with pytest.raises(OverloadedError):
            await send_while(2, "Newer")


async def test_a_long_feed_is_tagged_while_others_are_served(proxy: Proxy, origin: Origin) -> None:
    """The event loop gets its turn for each segment, even if nothing is to be read."""
    origin.publish("/feed", json_feed(an_item("a", 1)), content_type="application/feed+json")
    await proxy.get(origin.url("/feed"))
    composition = Composition(Family.ATOM, None, ConversionContext("http://a.test/", "", 0.0))
    async with proxy.service.answer(origin.url("/feed"), wait_seconds=9) as found:
        await proxy.service.composer.digest(found, [0], composition)
        others = list[str]()
        asyncio.get_running_loop().call_soon(others.append, "served")
        await proxy.service.composer.digest(found, [0], composition)
        assert others == ["served"]
