"""wholefeed.service.showing: entries for people, in all formats, and their shared pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any

import pytest

from tests.feeds import BASE_AT, an_item, atom, json_feed, rdf, rss
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy
from wholefeed.core.compose.entries import Enclosure, PageEntry
from wholefeed.core.compose.reading import Article
from wholefeed.core.text.urls import UrlPlaces
from wholefeed.errors import OverloadedError, WorkError, WorkTooLongError
from wholefeed.service.results import Reconstruction
from wholefeed.service.showing import (
    LONGEST_BYTES,
    PageKey,
    RenderedPage,
    Showing,
    entries_in,
    read_entries,
)
from wholefeed.web.keys import STORE
from wholefeed.workers.pool import Workers

# Ranges of entries, in a feed of any size


def opened(proxy: Proxy, url: str) -> AbstractAsyncContextManager[Reconstruction]:
    return proxy.service.answer(url, wait_seconds=10.0)


async def read(proxy: Proxy, url: str, start: int = 0, count: int = 10) -> tuple[PageEntry, ...]:
    await proxy.whole(url)
    async with opened(proxy, url) as found:
        return await read_entries(found.snapshot, proxy.app[STORE], start, count)


def names(entries: tuple[PageEntry, ...]) -> list[str]:
    return [each.identity.removeprefix("urn:") for each in entries]


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed])
async def test_both_ends_and_any_range_are_read_in_output_order(
    proxy: Proxy, origin: Origin, make: Any
) -> None:
    """R20: newest first, across segments; a range beyond the end is shorter."""
    items = [an_item(f"e{number}", number) for number in range(30, 0, -1)]
    origin.publish("/feed", make(*items))
    url = origin.url("/feed")
    await proxy.whole(url)
    expected = [item.name for item in items]
    async with opened(proxy, url) as found:
        store = proxy.app[STORE]
        both = await proxy.service.titles.excerpt(found.snapshot, newest=3, oldest=2)
        assert (names(both.newest), names(both.oldest)) == (expected[:3], expected[-2:])
        assert entries_in(found.snapshot) == 30
        assert names(await read_entries(found.snapshot, store, 10, 7)) == expected[10:17]
        assert names(await read_entries(found.snapshot, store, 28, 7)) == expected[28:]
        assert await read_entries(found.snapshot, store, 30, 7) == ()


async def test_a_range_reaches_across_segments(proxy: Proxy, origin: Origin) -> None:
    """Documents lie in segments of their own; some have stored positions of their entries."""
    long_text = "long " * 5000
    origin.publish(
        "/feed",
        atom(*(an_item(f"n{n}", 50 - n, long_text) for n in range(8)), prev_archive="/1"),
    )
    origin.publish("/1", atom(*(an_item(f"o{n}", 20 - n) for n in range(8)), archive=True))
    entries = await read(proxy, origin.url("/feed"), 5, 6)
    assert names(entries) == ["n5", "n6", "n7", "o0", "o1", "o2"]
    assert [len(each.content) for each in entries[:3]] == [len(f"<p>{long_text.strip()}</p>")] * 3
    async with opened(proxy, origin.url("/feed")) as found:
        both = await proxy.service.titles.excerpt(found.snapshot, newest=13, oldest=5)
    assert names(both.oldest) == ["o5", "o6", "o7"]


ATOM_ENTRY = """<entry xml:base="http://site.test/blog/"><id>urn:a</id><title type="html">A &lt;b>bold&lt;/b>
 &amp;amp; new title</title><published>2023-11-14T22:13:20Z</published><updated>2023-11-15T00:00:00Z</updated>
<author><name>Ann</name></author><author><name>Bob</name></author><link href="a.html"/>
<link rel="enclosure" href="a.mp3" type="audio/mpeg" length="1234"/>
<link rel="enclosure" href="javascript:alert(1)"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Hello <em>there</em></p>
<svg xmlns="http://www.w3.org/2000/svg"><script>x</script></svg></div></content></entry>"""
RSS_ITEM = """<item xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><guid isPermaLink="false">urn:a</guid>
<title>A &lt;b&gt;bold&lt;/b&gt; &amp;amp; new title</title><link>http://site.test/blog/a.html</link>
<pubDate>Tue, 14 Nov 2023 22:13:20 GMT</pubDate><dc:creator>Ann</dc:creator><dc:creator>Bob</dc:creator>
<enclosure url="http://site.test/blog/a.mp3" type="audio/mpeg" length="1234"/>
<description>Short</description>
<content:encoded><![CDATA[<p>Hello <em>there</em></p>]]></content:encoded></item>"""
JSON_ITEM = {
    "id": "urn:a",
    "title": "A bold & new title",
    "url": "http://site.test/blog/a.html",
    "date_published": "2023-11-14T22:13:20Z",
    "authors": [{"name": "Ann"}, {"name": "Bob"}],
    "content_html": "<p>Hello <em>there</em></p>",
    "content_text": "Hello",
    "attachments": [{"url": "http://site.test/blog/a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 1234}],
}
DOCUMENTS = {
    "atom": atom().replace(b"</feed>", ATOM_ENTRY.encode() + b"</feed>"),
    "rss": rss().replace(b"</channel>", RSS_ITEM.encode() + b"</channel>"),
    "rdf": rdf().replace(
        b"</rdf:RDF>",
        RSS_ITEM.replace("<item", '<item rdf:about="urn:a"')
        .replace(
            "<pubDate>Tue, 14 Nov 2023 22:13:20 GMT</pubDate>", "<dc:date>2023-11-14T22:13:20Z</dc:date>"
        )
        .encode()
        + b"</rdf:RDF>",
    ),
    "json": json_feed().replace(b'"items": []', b'"items": [%s]' % json.dumps(JSON_ITEM).encode()),
}


@pytest.mark.parametrize("family", DOCUMENTS)
async def test_an_entry_says_the_same_in_each_format(proxy: Proxy, origin: Origin, family: str) -> None:
    """Title without markup, absolute link, dates, names, the fullest content, files by http alone."""
    origin.publish("/feed", DOCUMENTS[family])
    (entry,) = await read(proxy, origin.url("/feed"))
    assert (entry.identity, entry.title) == ("urn:a", "A bold & new title")
    assert (entry.link, entry.published.at) == ("http://site.test/blog/a.html", float(BASE_AT))
    assert entry.author == "Ann, Bob"
    assert entry.enclosures == (Enclosure("http://site.test/blog/a.mp3", "audio/mpeg", 1234),)
    assert "<p>Hello <em>there</em></p>" in entry.content
    assert "script" not in entry.content
    assert not entry.is_cut


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<content>1 &lt; 2\n\nnext</content>", "<p>1 &lt; 2</p><p>next</p>"),
        ('<content type="html">&lt;i>x&lt;/i></content>', "<i>x</i>"),
        ('<content type="text/html">&lt;i>x&lt;/i></content>', "<i>x</i>"),
        ('<content type="image/png">iVBORw0KGgo=</content><summary>in short</summary>', "<p>in short</p>"),
        ('<content src="http://site.test/video.mp4" type="video/mp4"/>', ""),
        (
            '<summary type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a<br/>b</div></summary>',
            "<div>a<br>b</div>",
        ),
        (
            '<group xmlns="http://search.yahoo.com/mrss/"><description>of a video</description></group>',
            "<p>of a video</p>",
        ),
    ],
)
async def test_content_of_atom_is_read_by_its_type(
    proxy: Proxy, origin: Origin, content: str, expected: str
) -> None:
    """RFC 4287, 4.1.3: text is escaped, HTML stays, other types are left out."""
    origin.publish(
        "/feed", atom().replace(b"</feed>", f"<entry><id>urn:a</id>{content}</entry></feed>".encode())
    )
    (entry,) = await read(proxy, origin.url("/feed"))
    assert entry.content == expected


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed])
async def test_an_entry_of_megabytes_is_cut_short_and_says_so(
    proxy: Proxy, origin: Origin, make: Any
) -> None:
    """The beginning is shown; the entries around it are whole."""
    huge = "word &quot;\\\n" * 300_000 if make is not json_feed else 'word "\\\n' * 300_000
    origin.publish("/feed", make(an_item("a", 3), an_item("b", 2, huge), an_item("c", 1)))
    before, entry, behind = await read(proxy, origin.url("/feed"))
    assert (before.is_cut, entry.is_cut, behind.is_cut) == (False, True, False)
    assert (entry.identity, entry.title) == ("urn:b", "b")
    assert LONGEST_BYTES / 3 < len(entry.content) <= LONGEST_BYTES * 2
    assert 'word "\\' in entry.content
    assert "</item>" not in entry.content
    assert "text of c" in behind.content


async def test_many_long_entries_share_the_room(proxy: Proxy, origin: Origin) -> None:
    """Entries behind the first few MB are cut sooner."""
    huge = "word " * 60_000
    origin.publish("/feed", atom(*(an_item(f"e{n}", 90 - n, huge) for n in range(40))))
    entries = await read(proxy, origin.url("/feed"), 0, 40)
    assert len(entries) == 40
    assert len(entries[0].content) > LONGEST_BYTES - 1000
    assert sum(len(each.content) for each in entries) < 5_000_000
    assert 10_000 < len(entries[-1].content) < 20_000


# Pages


LARGE = "word " * 4000
"""A few of these make a page for a worker."""
FIRST = PageKey(start=0, most=3, loads_all_but=None)


class Rendering:
    """A renderer of pages that counts its calls."""

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
    """docs/faults.md row 119: a refresh's news is shown."""
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
    """Row 119: entries, feed, permitted media and the proxy's name for the client."""
    url, rendered = publish(origin, "a", "b", "c", "d"), Rendering()
    other = origin.url("/other")
    origin.publish("/other", atom(an_item("o", 1, LARGE)))
    for each in (url, other):
        await proxy.whole(each)
    wanted = [
        FIRST,
        FIRST._replace(start=2),
        FIRST._replace(most=1),
        FIRST._replace(loads_all_but=UrlPlaces.of(["http://one.test"])),
        FIRST._replace(loads_all_but=UrlPlaces.of(["http://two.test"])),
    ]
    made = [await show(proxy, url, each, rendered) for each in wanted]
    assert made == [b"1: a b c", b"3: c d", b"1: a", b"1: a b c", b"1: a b c"]
    assert await show(proxy, other, rendered=rendered) == b"1: o"
    assert rendered.times == 6


@pytest.mark.fault("119")
async def test_many_who_ask_at_once_wait_for_few(proxy: Proxy, origin: Origin) -> None:
    """Row 119: for twenty requests, a page is made once or twice."""
    url, rendered = publish(origin, "a", "b"), Rendering()
    await proxy.whole(url)
    made = await asyncio.gather(*(show(proxy, url, rendered=rendered) for _ in range(20)))
    assert made == [b"1: a b"] * 20
    assert rendered.times <= 2


@pytest.mark.fault("119")
async def test_a_page_that_takes_too_long_is_given_up_once(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 119: 422 for this request, and for the next one without another try."""
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
    """docs/faults.md row 120: 503 with Retry-After, and no output of the process."""
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
    """Row 120: beyond the limit at once; in the queue, after some seconds."""
    url = publish(origin, "a", "b")
    await proxy.whole(url)
    set_constant(monkeypatch, "PAGE_WAIT_SECONDS", 0.2)

    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Workers, "run_briefly", never)
    others = [UrlPlaces.of([f"http://{number}.test"]) for number in range(40)]
    asked = [show(proxy, url, FIRST._replace(loads_all_but=each)) for each in others]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(each, OverloadedError) and each.retry_after_seconds > 0 for each in outcomes)
    monkeypatch.undo()
    assert await show(proxy, url) == b"1: a b"


@pytest.mark.fault("120")
async def test_of_pages_that_are_being_sent_as_many_are_in_memory_as_there_is_room_for(proxy: Proxy) -> None:
    """Row 120: a page already being sent costs nothing more."""
    making: Showing = proxy.service.showing
    pages = [RenderedPage(bytes(1 << 20)) for _ in range(33)]
    with ExitStack() as others, ExitStack() as first:
        for page in (*pages[1:32], pages[0]):
            others.enter_context(making.sending(page))
        first.enter_context(making.sending(pages[0]))
        with pytest.raises(OverloadedError), making.sending(pages[32]):
            pass
        first.close()
        with pytest.raises(OverloadedError), making.sending(pages[32]):
            pass
        others.close()
        with making.sending(pages[32]):
            pass
