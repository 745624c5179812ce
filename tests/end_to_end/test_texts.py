"""Texts of entries from the entries' own pages (T1 to T6), as readers get them."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import feedparser
import pytest
from yarl import URL

from tests.answers import Document, Redirect, Status
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.archive_page import ArchivePage, Post
from tests.running import Proxy, Reply, StartProxy, a_config, running
from tests.sqlite_faults import rows
from wholefeed.web.keys import STORE

TEXTS = {**LISTS, "texts_per_day": 500}
ALONE = {"list": "off", "list_interval_seconds": 0.1}
MARK = "urn:wholefeed:"
DAY = 86400.0


def text_of(number: int, paragraphs: int = 6) -> str:
    """The text of a post, in its feed and on its page."""
    words = "It goes on for a while, so that it looks like the prose of a blog"
    return "".join(
        f"<p>Paragraph {n} of post {number}: {words}, {n * number} times.</p>" for n in range(paragraphs)
    )


def a_page(number: int, text: str, head: str = "") -> Document:
    body = (
        f"<!doctype html><html><head><title>Post {number}</title>{head}</head><body>"
        f'<nav><a href="/">Home</a></nav><article id="post-{number}"><h1>Post {number}</h1>'
        f'<div class="entry-content">{text}</div></article></body></html>'
    )
    return Document(body=body.encode(), headers=(("Content-Type", "text/html; charset=utf-8"),))


class Blog(ArchivePage):
    """A blog whose posts have pages of their own; its feed gives the newest ones whole."""

    def publish(self) -> None:
        super().publish()
        for post in self.newest_first:
            self.origin.answer(post.path, a_page(post.number, text_of(post.number)))

    def _feed(self, posts: Any) -> bytes:
        feed = super()._feed(posts)
        for post in posts:
            short, whole = f"Text {post.number}{self.filler}", text_of(post.number)
            escaped = whole.replace("<", "&lt;")
            if self.family == "rss":
                old = f"<description>{short}</description>"
                new = f"<description>{escaped}</description>"
            elif self.family == "atom":
                old, new = f"<content>{short}</content>", f'<content type="html">{escaped}</content>'
            else:
                old, new = f'"content_text": "{short}"', f'"content_html": {json.dumps(whole)}'
            feed = feed.replace(old.encode(), new.encode())
        return feed


def an_excerpt_feed(origin: Origin, numbers: list[int], *, text: str = "") -> bytes:
    """A feed of excerpts whose posts have pages."""
    items = "".join(
        f"<item><title>Post {n}</title><link>{origin.url(Post(n).path)}</link><guid>{n}</guid>"
        f"<pubDate>{Post(n).day:%a, %d %b %Y %H:%M:%S} GMT</pubDate>"
        f"<description>{text or f'Paragraph 0 of post {n}: It goes on [&#8230;]'}</description></item>"
        for n in numbers
    )
    head = f"<title>B</title><link>{origin.url('/')}</link>"
    return f'<rss version="2.0"><channel>{head}{items}</channel></rss>'.encode()


def publish_excerpts(origin: Origin, posts: int, **options: Any) -> str:
    numbers = list(range(posts, 0, -1))
    origin.publish("/feed", an_excerpt_feed(origin, numbers, **options), content_type="application/xml")
    origin.answer("/robots.txt", Status(404))
    for number in numbers:
        origin.answer(Post(number).path, a_page(number, text_of(number)))
    return origin.url("/feed")


async def with_texts(proxy: Proxy, url: str, count: str, **query: Any) -> Reply:
    """The answer once so many texts are in it."""
    async with asyncio.timeout(300):
        while True:
            reply = await proxy.get(url, text="full", **query)
            assert reply.status == 200, reply.body
            if f";texts={count}" in reply.reconstruction:
                return reply
            await asyncio.sleep(0.05)


def contents(reply: Reply) -> list[str]:
    """The texts of an answer's entries, from the top."""
    if reply.headers["Content-Type"].startswith("application/feed+json"):
        return [each.get("content_html", "") for each in json.loads(reply.body)["items"]]
    read = feedparser.parse(reply.body, sanitize_html=False)
    return [
        (each.get("content") or [{"value": each.get("summary", "")}])[0]["value"] for each in read.entries
    ]


@on_both
@pytest.mark.parametrize("family", ["rss", "atom", "json"])
async def test_a_listed_blog_has_its_texts(
    start: StartProxy, store_url: str, origin: Origin, family: str
) -> None:
    """T1 to T4: what its pages list comes with title, date and text; the element is learned from the feed."""
    proxy = await start(history=TEXTS, store={"url": store_url})
    blog = Blog(origin, posts=12, family=family)
    blog.publish()
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    before = await proxy.get(url)
    assert contents(before).count("") == 7
    assert ";texts" not in before.reconstruction
    assert not any(path.startswith("/20") for path in origin.counts())
    reply = await with_texts(proxy, url, "7/7")
    assert contents(reply) == [text_of(number) for number in range(12, 0, -1)]
    assert reply.body.count(MARK.encode() if family != "json" else b'"_wholefeed":{"text"') == 7
    assert (await proxy.get(url)).body == before.body, "without the parameter nothing changes by a byte"
    counts = origin.counts()
    assert all(counts[each.path] == 1 for each in blog.newest_first), "each page is fetched once"
    told = (await proxy.status(url))["texts"]
    assert (told["wanted"], told["taken"], told["element"]) == (7, 7, "div.entry-content")


async def test_an_excerpt_gives_way_to_the_text(start: StartProxy, origin: Origin) -> None:
    """T1, T3, T4: where the feed has excerpts alone, its element's name tells; the excerpt stays."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 4)
    reply = await with_texts(proxy, url, "4/4")
    assert contents(reply) == [text_of(n) for n in (4, 3, 2, 1)]
    entries = feedparser.parse(reply.body).entries
    assert [each.summary for each in entries] == [
        f"Paragraph 0 of post {n}: It goes on [\u2026]" for n in (4, 3, 2, 1)
    ]
    assert origin.counts()["/robots.txt"] == 1


async def test_a_theme_without_known_names_is_learned_from_its_pages(
    start: StartProxy, origin: Origin
) -> None:
    """T3, T4: the first pages teach its element, and what repeats in it, for good; each is fetched once."""
    proxy = await start(history=ALONE)
    box = '<div class="written-by"><p>Jane writes here on things and others.</p></div>'
    for posts in (12, 13):
        url = publish_excerpts(origin, posts)
        numbers = range(posts, 0, -1)
        for number in numbers:
            head = f"<!--{' ' * (1 << 20)}-->" if number == 12 else ""  # too large to learn from
            page = a_page(number, text_of(number) + box, head).body.replace(b"entry-content", b"words")
            origin.answer(Post(number).path, Document(body=page, headers=(("Content-Type", "text/html"),)))
        reply = await with_texts(proxy, url, f"{posts}/{posts}")
        assert contents(reply) == [text_of(number) for number in numbers]
        assert all(origin.counts()[Post(number).path] == 1 for number in numbers)
        assert (await proxy.status(url))["texts"]["element"] == "div.words"
        proxy.clock.ahead_seconds += 31 * DAY  # by then one new page alone is there to learn from


async def test_without_the_parameter_nothing_is_fetched(start: StartProxy, origin: Origin) -> None:
    """T1: nor when another reader asks for the feed as it is."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 4)
    await proxy.get(url)
    await asyncio.sleep(0.3)
    assert origin.counts() == {"/feed": 1}


async def test_texts_can_be_off(start: StartProxy, origin: Origin) -> None:
    """T1: the feed is answered as it is, and nothing is fetched."""
    proxy = await start(history={**ALONE, "texts": "off"})
    url = publish_excerpts(origin, 4)
    reply = await proxy.get(url, text="full")
    assert (reply.status, ";texts" in reply.reconstruction) == (200, False)
    await asyncio.sleep(0.3)
    assert origin.counts() == {"/feed": 1}


async def test_robots_txt_is_obeyed(start: StartProxy, origin: Origin) -> None:
    """T2: what it forbids stays as it is, noted."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 4)
    origin.publish("/robots.txt", b"User-agent: *\nDisallow: /\n", content_type="text/plain")
    await with_texts(proxy, url, "0/4")
    async with asyncio.timeout(300):
        while not (told := (await proxy.status(url))["texts"])["refused"]:
            await asyncio.sleep(0.05)
    assert origin.counts() == {"/feed": 1, "/robots.txt": 1}
    assert [each["reason"] for each in told["refused"]] == ["robots"]


async def test_pages_are_asked_for_one_at_a_time_and_so_many_a_day(start: StartProxy, origin: Origin) -> None:
    """T2: newest first; the rest on the next day, and nothing twice, also after a restart."""
    proxy = await start(history={**ALONE, "texts_per_day": 2})
    url = publish_excerpts(origin, 5)
    began = time.monotonic()
    reply = await with_texts(proxy, url, "2/5")
    assert time.monotonic() - began >= 0.2
    assert [each in map(text_of, (5, 4)) for each in contents(reply)] == [True, True, False, False, False]
    await asyncio.sleep(0.3)
    assert len(origin.counts()) == 4
    proxy.clock.ahead_seconds += DAY + 1
    proxy.service.texts.wake()
    await with_texts(proxy, url, "4/5")
    counts = origin.counts()
    assert all(counts[Post(number).path] == 1 for number in (5, 4, 3, 2))


async def test_a_publisher_that_refuses_is_left_in_peace(start: StartProxy, origin: Origin) -> None:
    """T2: 403 and 429 as R32; the feed is served meanwhile."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 4)
    origin.answer(Post(3).path, Status(429))
    await with_texts(proxy, url, "1/4")
    await asyncio.sleep(0.4)
    assert Post(2).path not in origin.counts()


async def test_a_forbidden_page_keeps_the_others_waiting_for_a_day(start: StartProxy, origin: Origin) -> None:
    """T2: 403 rests for a day, and may be said of one page alone."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 4)
    origin.answer(Post(3).path, Status(403))
    await with_texts(proxy, url, "1/4")
    await asyncio.sleep(0.4)
    assert Post(2).path not in origin.counts()
    proxy.clock.ahead_seconds += DAY + 1
    proxy.service.texts.wake()
    await with_texts(proxy, url, "3/4")


async def test_a_forbidden_page_is_not_needed_for_learning(start: StartProxy, origin: Origin) -> None:
    """T3: the element is learned from others, after the day of rest."""
    proxy = await start(history=TEXTS)
    blog = Blog(origin, posts=12, family="rss")
    blog.publish()
    origin.answer(blog.newest_first[0].path, Status(403))
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    await proxy.get(url, text="full")
    async with asyncio.timeout(300):
        while not ((await proxy.status(url))["texts"] or {}).get("refused"):
            await asyncio.sleep(0.05)
    proxy.clock.ahead_seconds += DAY + 1
    proxy.service.texts.wake()
    await with_texts(proxy, url, "7/7")


async def test_a_post_that_leads_to_another_has_no_text(start: StartProxy, origin: Origin) -> None:
    """T3: the text is the other one's."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3, text=" ")
    origin.answer(Post(3).path, Redirect(origin.url(Post(2).path)))
    reply = await with_texts(proxy, url, "2/3")
    assert contents(reply)[0].strip() == ""
    assert "post 2" in contents(reply)[1]


async def test_texts_that_go_again_are_a_change(start: StartProxy, origin: Origin) -> None:
    """T4: Last-Modified does not move back to the time before them."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 2, text=" ")
    origin.answer(Post(1).path, a_page(2, text_of(2)))
    before = await with_texts(proxy, url, "1/2")
    assert contents(before)[0].strip()
    await with_texts(proxy, url, "0/2")
    known = {"If-Modified-Since": before.headers["Last-Modified"]}
    after = await proxy.get(url, headers=known, text="full")
    assert after.status == 200
    assert [each.strip() for each in contents(after)] == ["", ""]


async def test_texts_of_whole_entries_do_not_count(start: StartProxy, origin: Origin) -> None:
    """T2: nor hide that others have none."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    origin.answer(Post(1).path, Status(404))
    await with_texts(proxy, url, "2/3")
    whole = text_of(3).replace("<", "&lt;")
    feed = an_excerpt_feed(origin, [3, 2, 1]).replace(
        b"<description>Paragraph 0 of post 3: It goes on [&#8230;]</description>",
        f'<content:encoded xmlns:content="http://purl.org/rss/1.0/modules/content/">{whole}'
        "</content:encoded>".encode(),
    )
    origin.publish("/feed", feed, content_type="application/xml")
    await proxy.refreshed(url)
    await with_texts(proxy, url, "1/2")


async def test_a_newer_update_or_a_hand_has_a_page_fetched_again(start: StartProxy, origin: Origin) -> None:
    """T2: `POST /refresh?texts=1`; else a page is fetched once."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    first = await with_texts(proxy, url, "3/3")
    origin.answer(Post(3).path, a_page(3, text_of(3) + "<p>One more paragraph, which is new.</p>"))
    reply = await proxy.ask("POST", "/refresh", params={"url": url, "texts": "1"})
    assert reply.status in (200, 202, 303), reply.body
    async with asyncio.timeout(300):
        while "One more" not in contents(await proxy.get(url, text="full"))[0]:
            await asyncio.sleep(0.05)
    again = await proxy.get(url, text="full")
    assert again.headers["ETag"] != first.headers["ETag"]
    assert contents(again)[1:] == contents(first)[1:]


async def test_a_page_behind_a_wall_gives_no_text(start: StartProxy, origin: Origin) -> None:
    """T5: noted with its reason; the others come."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 5)
    wall = '<script type="application/ld+json">{"isAccessibleForFree": false}</script>'
    origin.answer(Post(5).path, a_page(5, text_of(5), wall))
    origin.answer(Post(4).path, Status(404))
    origin.answer(Post(2).path, a_page(2, "<p>Alike on both, though nothing of the excerpt is in it.</p>"))
    await with_texts(proxy, url, "2/5")
    async with asyncio.timeout(300):
        while len(told := (await proxy.status(url))["texts"]["refused"]) < 3:
            await asyncio.sleep(0.05)
    assert {each["reason"] for each in told} >= {"paywalled", "lacks-excerpt"}


async def test_the_publisher_s_own_text_wins(start: StartProxy, origin: Origin) -> None:
    """T5: also when it comes later."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    await with_texts(proxy, url, "3/3")
    whole = text_of(3).replace("<", "&lt;")
    feed = an_excerpt_feed(origin, [3, 2, 1]).replace(
        b"<description>Paragraph 0 of post 3: It goes on [&#8230;]</description>",
        f'<content:encoded xmlns:content="http://purl.org/rss/1.0/modules/content/">{whole}'
        "</content:encoded>".encode(),
    )
    origin.publish("/feed", feed, content_type="application/xml")
    await proxy.refreshed(url)
    reply = await proxy.get(url, text="full")
    assert reply.body.count(MARK.encode()) == 2
    assert contents(reply)[0] == text_of(3)


async def test_it_goes_with_the_other_views(start: StartProxy, origin: Origin) -> None:
    """T6: limit, since, pages, listed, answer_bytes and replay."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 20)
    whole = await with_texts(proxy, url, "20/20")
    all_ = contents(whole)

    async def of(**query: Any) -> list[str]:
        reply = await proxy.get(url, text="full", **query)
        assert reply.status == 200, reply.body
        feedparser.parse(reply.body)
        return contents(reply)

    assert await of(limit="3") == all_[:3]
    assert await of(since=f"{Post(16).day:%Y-%m-%dT%H:%M:%SZ}") == all_[:5]
    assert await of(pages="10") == all_[:10]
    assert await of(pages="10", page="1") == all_[10:]
    assert await of(listed="off") == all_
    cut = await proxy.get(url, text="full", answer_bytes="8000")
    assert len(cut.body) <= 8000
    assert ";cut" in cut.reconstruction
    assert contents(cut) == all_[: len(contents(cut))] != []
    released = await of(replay="50/day", **{"from": "2019-01-01T00:00:00Z"})
    assert sorted(released) == sorted(all_)


async def test_an_answer_comes_from_memory(start: StartProxy, origin: Origin) -> None:
    """T6: the second one asks the store for nothing, and is the same, compressed or not."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 8)
    plain = await with_texts(proxy, url, "8/8")
    compressed = {"Accept-Encoding": "gzip"}
    first = await proxy.get(url, headers=compressed, text="full")
    reads = count_reads(proxy)
    second = await proxy.get(url, headers=compressed, text="full")
    assert reads == []
    assert gzip.decompress(first.body) == gzip.decompress(second.body) == plain.body
    assert first.headers["ETag"] == second.headers["ETag"]
    known = {"If-None-Match": second.headers["ETag"], **compressed}
    assert (await proxy.get(url, headers=known, text="full")).status == 304


def count_reads(proxy: Proxy) -> list[object]:
    """Note every read of the store from now on."""
    engine, reads = proxy.app[STORE].engine, list[object]()
    read = engine.read

    async def noted(work: Any, **options: Any) -> Any:
        reads.append(work)
        return await read(work, **options)

    setattr(engine, "read", noted)  # noqa: B010 - a method is not assigned to
    return reads


async def test_a_restart_goes_on_and_keeps_what_is_there(tmp_path: Path, origin: Origin) -> None:
    """T2: nothing is fetched twice."""
    url = publish_excerpts(origin, 6)
    config = a_config(tmp_path, history=ALONE)
    async with running(config) as proxy:
        await with_texts(proxy, url, "2/6")
    async with running(config) as proxy:
        reply = await with_texts(proxy, url, "6/6")
    assert len(contents(reply)) == 6
    assert max(origin.counts()[Post(number).path] for number in range(1, 7)) <= 2
    assert sum(origin.counts()[Post(number).path] for number in range(1, 7)) <= 7


async def test_the_page_of_entries_says_where_a_text_is_from(start: StartProxy, origin: Origin) -> None:
    """T4: in words."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    await with_texts(proxy, url, "3/3")
    shown = await proxy.ask("GET", "/view", params={"url": url, "text": "full"})
    plain = await proxy.ask("GET", "/view", params={"url": url})
    words = b"This text was taken from the entry"
    assert (shown.body.count(words), plain.body.count(words)) == (3, 0)
    assert b"Paragraph 5 of post 1" in shown.body


async def test_removing_an_entry_removes_its_text(start: StartProxy, origin: Origin) -> None:
    """I2, T4: at once, and no other."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    await with_texts(proxy, url, "3/3")
    reply = await proxy.ask("DELETE", "/feed", params={"url": url, "entry": "2"})
    assert reply.status == 204, reply.body
    stored = "SELECT (SELECT count(*) FROM page_text), (SELECT count(*) FROM page_text_body)"
    assert rows(proxy.database, stored) == [(2, 2)]
    left = await with_texts(proxy, url, "2/3")
    assert contents(left) == [text_of(3), text_of(1)]


async def test_forgetting_a_feed_forgets_its_texts(start: StartProxy, origin: Origin) -> None:
    """T4: they go with the feed."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    await with_texts(proxy, url, "3/3")
    await proxy.ask("DELETE", "/feed", params={"url": url})
    assert rows(
        proxy.database, "SELECT (SELECT count(*) FROM page_text), (SELECT count(*) FROM page_text_body)"
    ) == [(0, 0)]


async def test_another_value_is_refused(start: StartProxy, origin: Origin) -> None:
    """T1: as the other parameters are."""
    proxy = await start(history=ALONE)
    url = publish_excerpts(origin, 3)
    target = URL(f"/feed?url={quote(url, safe='')}&text=half", encoded=True)
    async with proxy.client.get(target) as response:
        said = await response.text()
    assert (response.status, "expected text=full" in said) == (400, True)
    reply = await proxy.get(url, text="half")
    assert reply.status == 404, "behind a URL that is not encoded it belongs to that (P7)"
