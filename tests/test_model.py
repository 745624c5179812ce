"""The proxy compared with the model of docs/rules.md in tests/model, and its known defects.

The stories expected to fail are the smallest ones of each defect. A reason names the rule, and the point of
the list of repairs that mends it ("Right").
"""

from __future__ import annotations

import itertools
import random

import pytest

from tests.answers import Status
from tests.model.archived import an_archived_story
from tests.model.blogs import a_blog_story
from tests.model.documents import MEDIA_TYPES, plain, read, written
from tests.model.replayed import a_replay_story
from tests.model.said import DAY, HOUR, Copy, Doc
from tests.model.short import told
from tests.model.stories import a_shifting_story, a_story
from tests.origin import Origin
from tests.running import Proxy, Reply

BASE_AT = 1_700_000_000.0


@pytest.mark.parametrize("seed", range(1, 17))
async def test_every_answer_is_as_the_rules_say(seed: int) -> None:
    """R0 to R20, R23, R25: one made-up story of a publisher and a reader (`make stories` plays thousands)."""
    story = a_story(seed)
    assert await story.play() == [], told(story)


@pytest.mark.parametrize("seed", range(1, 9))
async def test_every_answer_of_archives_that_shift_is_as_the_rules_say(seed: int) -> None:
    """R35: one made-up story of a publisher whose entries move from each archive to the next."""
    story = a_shifting_story(seed)
    assert await story.play() == [], told(story)


@pytest.mark.parametrize("seed", range(1, 11))
async def test_every_answer_of_a_blog_is_true(seed: int) -> None:
    """R26 to R32: one made-up story of a WordPress, and its author's knowledge of it."""
    story = a_blog_story(seed)
    assert await story.play() == [], told(story)


@pytest.mark.parametrize("seed", range(1, 13))
async def test_every_copy_of_a_web_archive_is_where_it_belongs(seed: int) -> None:
    """R33: one made-up story of a publisher that loses documents."""
    story = an_archived_story(seed)
    assert await story.play() == [], told(story)


@pytest.mark.parametrize("seed", range(1, 21))
async def test_every_release_is_where_it_belongs(seed: int) -> None:
    """P1 to P6: one made-up story of a feed replayed at two paces while its publisher goes on."""
    story = a_replay_story(seed)
    assert await story.play() == [], told(story)


@pytest.mark.parametrize("seed", range(1, 5))
async def test_every_release_is_so_on_postgresql(seed: int, postgres_url: str) -> None:
    """P6: a reader cannot see which engine stores the lines."""
    story = a_replay_story(seed)
    assert await story.play(postgres_url) == [], told(story)


@pytest.mark.parametrize("seed", range(1, 5))
async def test_every_answer_is_so_on_postgresql(seed: int, postgres_url: str) -> None:
    """R0 to R20, R23, R25: a reader cannot see the store's engine."""
    story = a_story(seed)
    assert await story.play(postgres_url) == [], told(story)


# ---- What is known to be wrong


def entries(names: str, *, updated: int | None = None) -> tuple[Copy, ...]:
    """Entries named by digits, each updated at its number of hours, or all at one."""
    return tuple(
        plain(f"e{name}", f"text of {name}", BASE_AT + HOUR * (int(name) if updated is None else updated))
        for name in names
    )


def publish(
    origin: Origin, path: str, copies: tuple[Copy, ...] = (), *, version: str = "atom",
    updated: float = 50, is_archive: bool = False, is_uncacheable: bool = False, **links: str | None,
) -> None:  # fmt: skip
    """Publish a document; keyword arguments name link relations."""
    doc = Doc(
        family=version, copies=copies, updated=BASE_AT + HOUR * updated,
        links={name.replace("_", "-"): target for name, target in links.items() if target is not None},
        flags=frozenset({"archive"}) if is_archive else frozenset(), is_uncacheable=is_uncacheable,
    )  # fmt: skip
    body, headers = written(doc, version)
    origin.publish(path, body, content_type=MEDIA_TYPES[version], headers=headers[1:])


def names(reply: Reply) -> str:
    """The served entries, oldest first."""
    found = read(reply.body, reply.headers["Content-Type"]).entries
    return "".join(sorted(name.removeprefix("e") for name, _ in found))


async def polled(proxy: Proxy, origin: Origin, *, after: float = HOUR + 10) -> Reply:
    """Ask when the feed is no longer fresh."""
    proxy.clock.advance(after)
    return await proxy.whole(origin.url("/feed"))


async def test_what_stands_on_a_page_is_served(proxy: Proxy, origin: Origin) -> None:
    """R6, R8: a page is no memory, and its entries are not new only because a detached document had them."""
    publish(origin, "/a", entries("1"), is_archive=True)
    publish(origin, "/b", entries("3"), is_archive=True, prev_archive="/a")
    publish(origin, "/feed", entries("543"), prev_archive="/a")
    await polled(proxy, origin)
    publish(origin, "/feed", entries("54"), prev_archive="/b")
    assert names(await polled(proxy, origin)) == "1345"
    publish(origin, "/feed", entries("54"), updated=51, prev_archive="/a")
    await polled(proxy, origin)
    publish(origin, "/feed", entries("54"), updated=52, next="/2")
    publish(origin, "/2", entries("3"))
    reply = await polled(proxy, origin)
    assert "3" in names(reply)


async def test_a_page_that_was_collected_and_is_gone_is_missing(proxy: Proxy, origin: Origin) -> None:
    """R6, R14: new entries may stand on it, so it is asked for again."""
    publish(origin, "/feed", entries("43"), next="/2")
    publish(origin, "/2", entries("21"))
    assert names(await polled(proxy, origin)) == "1234"
    publish(origin, "/feed", entries("87"), next="/2")
    origin.fault("/2", Status(404), times=1)
    await polled(proxy, origin)
    publish(origin, "/2", entries("65"), next="/3")
    publish(origin, "/3", entries("4321"))
    reply = await proxy.refreshed(origin.url("/feed"))
    assert names(reply) == "12345678"


async def test_an_archive_that_is_not_cached_is_looked_at_once_more(proxy: Proxy, origin: Origin) -> None:
    """R13: when it is no longer the newest, whatever its cache fields say."""
    publish(origin, "/a", entries("21"), is_uncacheable=True)
    publish(origin, "/feed", entries("43"), prev_archive="/a")
    await polled(proxy, origin)
    publish(origin, "/a", entries("54321"), is_uncacheable=True)
    publish(origin, "/b", entries("6"), is_uncacheable=True, prev_archive="/a")
    publish(origin, "/feed", entries("87"), prev_archive="/b")
    reply = await polled(proxy, origin)
    assert (reply.state, names(reply)) == ("complete", "12345678")


async def test_a_remembered_copy_gives_way_to_a_later_one_alone(proxy: Proxy, origin: Origin) -> None:
    """R8, R10: the copy with the latest update instant stays, wherever it stood."""
    older, newer = plain("e1", "older", BASE_AT + HOUR), plain("e1", "newer", BASE_AT + 9 * HOUR)
    for copies in ((older,), (newer,), entries("2"), (older,), entries("2")):
        publish(origin, "/feed", copies)
        await polled(proxy, origin)
    reply = await proxy.get(origin.url("/feed"))
    found = dict(read(reply.body, reply.headers["Content-Type"]).entries)
    assert found["e1"] == "newer"


async def test_a_copy_that_leaves_a_page_gives_way_to_a_later_one_alone(proxy: Proxy, origin: Origin) -> None:
    """R6, R8, R10: an older remembered copy is no reason to forget it."""
    older, newer = plain("e1", "older", BASE_AT + HOUR), plain("e1", "newer", BASE_AT + 9 * HOUR)
    publish(origin, "/feed", entries("4"), version="rss", next="/2")
    publish(origin, "/2", (older,), version="rss")
    await polled(proxy, origin)
    publish(origin, "/feed", entries("5"), version="rss", next="/2")
    publish(origin, "/2", entries("4"), version="rss", next="/3")
    publish(origin, "/3", (newer,), version="rss")
    await proxy.refreshed(origin.url("/feed"), full=True)  # the older one is remembered, the newer one had
    for publishes in ("76", "98"):
        publish(origin, "/feed", entries(publishes[0]), version="rss", next="/2")
        publish(origin, "/2", entries(publishes[1]), version="rss", next="/3")
        publish(origin, "/3", entries("4"), version="rss")
        await polled(proxy, origin)
    reply = await proxy.get(origin.url("/feed"))
    assert dict(read(reply.body, reply.headers["Content-Type"]).entries)["e1"] == "newer"


@pytest.mark.parametrize("seed", range(6))
async def test_of_all_copies_that_were_had_the_latest_is_served(
    proxy: Proxy, origin: Origin, seed: int
) -> None:
    """R6, R8, R10: for any page edited, failed or passed over, in any order."""
    chance, hours = random.Random(seed), itertools.count(1)
    had, stock = dict[str, Copy](), list[Copy]()
    for _ in range(14):
        for _ in range(chance.randint(0, 3)):
            at = BASE_AT + HOUR * next(hours)
            stock.insert(0, plain(f"e{at:.0f}", f"text of {at:.0f}", at))
        for place in chance.sample(range(len(stock)), min(len(stock), chance.randint(0, 2))):
            at = BASE_AT + HOUR * next(hours)
            stock[place] = plain(stock[place].name, f"text of {at:.0f}", at)
        pages, failing = dict[str, tuple[Copy, ...]](), set[str]()
        for at in range(0, max(1, len(stock)), 2):
            path = f"/{at}" if at else "/feed"
            pages[path] = tuple(stock[at : at + 2])
            behind = f"/{at + 2}" if at + 2 < len(stock) else None
            publish(origin, path, pages[path], version="rss", updated=next(hours), next=behind)
            if at and chance.random() < 0.2:
                origin.fault(path, Status(500))
                failing.add(path)
        origin.forget_requests()
        reply = await polled(proxy, origin)
        for path in {request.path for request in origin.requests} - failing:
            for copy in pages.get(path, ()):
                had[copy.name] = max(copy, had.get(copy.name, copy), key=lambda each: each.updated or 0.0)
        served = dict(read(reply.body, reply.headers["Content-Type"]).entries)
        assert served == {name: copy.text for name, copy in had.items()}


async def test_a_document_of_another_format_is_missing_until_a_good_one_comes(
    proxy: Proxy, origin: Origin
) -> None:
    """R23: an error at the retry changes nothing."""
    publish(origin, "/a", entries("1"), is_archive=True)
    publish(origin, "/feed", entries("2"), prev_archive="/a")
    await polled(proxy, origin)
    publish(origin, "/a", entries("1"), version="rss", is_archive=True)
    assert (await proxy.refreshed(origin.url("/feed"), full=True)).state == "partial"
    origin.fault("/a", Status(500), times=1)
    assert (await proxy.refreshed(origin.url("/feed"))).state == "partial"


async def test_a_date_of_before_a_feed_was_forgotten_counts_for_nothing(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 13.1.3: 304 says that the reader has this very body."""
    url = origin.url("/feed")
    publish(origin, "/feed", entries("1"))
    await proxy.whole(url)
    publish(origin, "/feed", entries("2"))
    before = await proxy.refreshed(url)
    proxy.clock.advance(-5)  # however long the rest takes here, it happens within the second
    await proxy.ask("DELETE", "/feed", params={"url": url})
    publish(origin, "/feed", entries("5"))
    await proxy.whole(url)
    again = await proxy.get(url, headers={"If-Modified-Since": before.headers["Last-Modified"]})
    assert again.status == 200


async def test_a_document_that_a_redirect_leads_to_is_asked_for_once(proxy: Proxy, origin: Origin) -> None:
    """R17: a URL already on the path, also after redirects, is not asked for again."""
    publish(origin, "/feed", entries("2"), prev_archive="/a")
    publish(origin, "/a", entries("1"), is_archive=True, prev_archive="/latest")
    origin.redirect("/latest", "/a")
    await polled(proxy, origin)
    assert origin.counts()["/a"] == 1


async def test_equal_bytes_have_equal_etags(proxy: Proxy, origin: Origin) -> None:
    """When an entry leaves for memory (R8), a reader gets the same body again."""
    publish(origin, "/feed", entries("21"), version="rss")
    await proxy.whole(origin.url("/feed"))
    one = await polled(proxy, origin)
    publish(origin, "/feed", entries("2"), version="rss")
    other = await polled(proxy, origin)
    assert one.body == other.body
    assert one.headers["ETag"] == other.headers["ETag"]


async def test_a_change_within_a_day_is_remembered_until_the_newest_archive_is_due(
    proxy: Proxy, origin: Origin
) -> None:
    """R13: the newest archive is fetched daily if the subscription document has changed since."""
    publish(origin, "/a", entries("21"), is_archive=True)
    publish(origin, "/feed", entries("43"), prev_archive="/a")
    await polled(proxy, origin)
    publish(origin, "/a", entries("5432"), is_archive=True)
    publish(origin, "/feed", entries("6"), prev_archive="/a")
    await polled(proxy, origin)
    assert "5" in names(await polled(proxy, origin, after=2 * DAY))


async def test_what_a_doubtful_link_leads_to_is_asked_for_once(proxy: Proxy, origin: Origin) -> None:
    """R4: the document that proves to be no archive is then collected as a page."""
    publish(origin, "/feed", entries("1"), prev="/new")
    publish(origin, "/new", entries("2"))
    assert names(await polled(proxy, origin)) == "12"
    assert origin.counts()["/new"] == 1
