"""One post under several ids is one entry (rule R36)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.feeds import BASE_AT, ids, stamp
from tests.nameless import titles
from tests.origin import Origin
from tests.patching import set_constant
from tests.postgres import on_both
from tests.publishers.wordpress import WordPress
from tests.running import Clock, Proxy, a_config, running
from tests.sqlite_faults import rows

ATOM_NS = "http://www.w3.org/2005/Atom"
HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True)
class Post:
    """A post; one is published every hour."""

    number: int
    id: str
    link: str = ""
    title: str = ""
    text: str = ""

    @property
    def name(self) -> str:
        return self.title or f"Post {self.number}"


def rss(posts: Iterable[Post], *, older: str = "", relation: str = "prev-archive", flags: str = "") -> bytes:
    items = "".join(
        f"<item><title>{each.name}</title>"
        + (f"<guid isPermaLink='false'>{escape(each.id)}</guid>" if each.id else "")
        + (f"<link>{escape(each.link)}</link>" if each.link else "")
        + f"<pubDate>{formatdate(BASE_AT + HOUR * each.number)}</pubDate>"
        f"<description>{each.text or each.name}</description></item>"
        for each in posts
    )
    link = f"<a:link rel='{relation}' href='{older}'/>" if older else ""
    return (
        f"<rss version='2.0' xmlns:a='{ATOM_NS}' xmlns:fh='http://purl.org/syndication/history/1.0'><channel>"
        f"<title>F</title><link>http://site.test/</link><description>D</description>{flags}{link}{items}"
        "</channel></rss>"
    ).encode()


def atom(posts: Iterable[Post], *, older: str = "", relation: str = "prev-archive", flags: str = "") -> bytes:
    entries = "".join(
        f"<entry><id>{escape(each.id)}</id><title>{each.name}</title>"
        + (f"<link href='{escape(each.link)}'/>" if each.link else "")
        + f"<published>{stamp(each.number)}</published><updated>{stamp(each.number)}</updated>"
        f"<content>{each.text or each.name}</content></entry>"
        for each in posts
    )
    link = f"<link rel='{relation}' href='{older}'/>" if older else ""
    return (
        f"<feed xmlns='{ATOM_NS}' xmlns:fh='http://purl.org/syndication/history/1.0'><title>F</title>"
        f"<id>urn:f</id><updated>{stamp(0)}</updated><author><name>A</name></author>{flags}{link}{entries}</feed>"
    ).encode()


Rename = Callable[[Post], Post]


def posts_of(numbers: Iterable[int]) -> list[Post]:
    return [Post(n, f"http://site.test/p/{n}", f"http://site.test/p/{n}") for n in numbers]


def newest(posts: Sequence[Post], count: int) -> list[Post]:
    return sorted(posts, key=lambda each: -each.number)[:count]


RENAMED: dict[str, Rename] = {
    "http becomes https": lambda each: replace(
        each, id=each.id.replace("http:", "https:"), link=each.link.replace("http:", "https:")
    ),
    "a permalink instead of ?p=": lambda each: replace(each, id=f"http://site.test/?p={each.number}"),
    "another host": lambda each: replace(
        each, id=f"new:{each.number}", link=f"http://new.test/{each.number}"
    ),
    "a slash, www and a campaign": lambda each: replace(
        each, id=f"http://www.site.test/p/{each.number}/?utm_source=x"
    ),
    "a session": lambda each: replace(
        each, id=f"http://site.test/p/{each.number};jsessionid=AB{each.number}"
    ),
    "a number behind it": lambda each: replace(each, id=f"{each.id}#3"),
}


@pytest.mark.fault("57a")
@pytest.mark.parametrize("make", [rss, atom])
@pytest.mark.parametrize("how", RENAMED)
async def test_a_post_whose_id_changes_stays_one(
    make: Callable[..., bytes], how: str, proxy: Proxy, origin: Origin
) -> None:
    """R36: once and in order; readers see the old ids until the new ones are a day in use."""
    url, all_posts = origin.url("/feed"), posts_of(range(15))
    for count in (10, 15):
        origin.publish("/feed", make(newest(all_posts[:count], 10)))
        await (proxy.whole(url) if count == 10 else proxy.refreshed(url))
    before = await proxy.get(url)
    expected = [each.name for each in newest(all_posts, 15)]
    assert titles(before.body) == expected
    renamed = [RENAMED[how](each) for each in all_posts]
    origin.publish("/feed", make(newest(renamed, 10)))
    after = await proxy.refreshed(url)
    assert (titles(after.body), ids(after.body)) == (expected, ids(before.body))
    assert make is atom or after.headers["ETag"] == before.headers["ETag"]  # which gives them their author
    proxy.clock.advance(DAY + HOUR)
    origin.publish("/feed", make(newest([*renamed, *map(RENAMED[how], posts_of([15]))], 10)))
    later = await proxy.refreshed(url)
    assert titles(later.body) == ["Post 15", *expected]
    assert ids(later.body)[1:] == [each.id for each in newest(renamed, 9)] + ids(before.body)[9:]
    (note,) = [each for each in (await proxy.status(url))["notes"] if each["code"] == "IdsChanged"]
    assert note["text"].startswith("10 posts have ")


@on_both
@pytest.mark.fault("57a")
async def test_ids_that_go_to_and_fro_show_nothing_new(
    tmp_path: Path, origin: Origin, store_url: str
) -> None:
    """R36: two servers behind one name write different hosts."""
    url, clock, seen = origin.url("/feed"), Clock(), set()
    posts = posts_of(range(10))
    other = [RENAMED["another host"](each) for each in posts]
    async with running(a_config(tmp_path, store={"url": store_url}), clock) as proxy:
        for look in range(8):
            origin.publish("/feed", rss(newest((posts, other)[look % 2], 10)))
            clock.advance(9 * HOUR)
            reply = await (proxy.refreshed(url) if look else proxy.whole(url))
            seen.add((reply.headers["ETag"], reply.body))
            assert len(titles(reply.body)) == 10
    assert len(seen) == 1


@pytest.mark.fault("57a")
async def test_random_ids_do_not_grow_and_are_told_of(proxy: Proxy, origin: Origin) -> None:
    """R36: every look brings new ids; a note says so."""
    url, chance = origin.url("/feed"), random.Random(36)
    for look in range(12):
        posts = [replace(each, id=f"{chance.random()}") for each in posts_of(range(look, look + 10))]
        origin.publish("/feed", rss(newest(posts, 10)))
        await (proxy.refreshed(url) if look else proxy.whole(url))
    assert titles((await proxy.get(url)).body) == [f"Post {n}" for n in range(20, -1, -1)]
    codes = [each["code"] for each in (await proxy.status(url))["notes"]]
    assert codes.count("IdsChanged") == codes.count("IdsUnstable") == 1


async def test_an_archived_feed_has_no_ghosts(proxy: Proxy, origin: Origin) -> None:
    """R36, R13: its archives keep the old ids, or get the new ones; it is `complete` either way."""
    url, posts = origin.url("/feed"), posts_of(range(30))
    renamed = [RENAMED["http becomes https"](each) for each in posts]
    archive = {"flags": "<fh:archive/>"}
    origin.publish("/feed", atom(newest(posts, 10), older="/1"))
    origin.publish("/1", atom(newest(posts[:20], 20), **archive))
    first = await proxy.whole(url)
    assert (first.state, len(titles(first.body))) == ("complete", 30)
    origin.publish("/feed", atom(newest(renamed, 10), older="/1"))
    for body in (atom(newest(posts[:20], 20), **archive), atom(newest(renamed[:20], 20), **archive)):
        origin.publish("/1", body)
        for full in (False, True):
            proxy.clock.advance(2 * DAY)
            reply = await proxy.refreshed(url, full=full)
            assert (reply.state, titles(reply.body)) == ("complete", titles(first.body))


async def test_pages_of_a_feed_whose_ids_change(proxy: Proxy, origin: Origin) -> None:
    """R36, R6: a podcast changes its host; 60 episodes stay 60."""
    url, posts = origin.url("/feed"), posts_of(range(60))

    def publish(all_posts: list[Post]) -> None:
        pages = [newest(all_posts, 100)[n : n + 10] for n in range(0, len(all_posts), 10)]
        for n, page in enumerate(pages):
            older = f"/{n + 1}" if n + 1 < len(pages) else ""
            origin.publish(f"/{n}" if n else "/feed", rss(page, older=older, relation="next"))

    publish(posts)
    assert len(titles((await proxy.whole(url)).body)) == 60
    moved = [RENAMED["another host"](each) for each in posts]
    for more in (0, 1, 2):
        publish([*moved, *map(RENAMED["another host"], posts_of(range(60, 60 + more)))])
        proxy.clock.advance(2 * DAY)
        reply = await proxy.refreshed(url, full=more == 2)
        assert sorted(titles(reply.body)) == sorted(f"Post {n}" for n in range(60 + more))


async def test_two_ids_that_stand_together_are_two_posts(proxy: Proxy, origin: Origin) -> None:
    """R36: even if that shows later; joined posts separate."""
    url = origin.url("/feed")
    one = Post(1, "a", "http://site.test/a", title="Untitled")
    two = replace(one, id="b", link="http://site.test/b", text="another")
    origin.publish("/feed", rss([one]))
    await proxy.whole(url)
    origin.publish("/feed", rss([two]))
    assert len(titles((await proxy.refreshed(url)).body)) == 1
    origin.publish("/feed", rss([two, one]))
    assert len(titles((await proxy.refreshed(url)).body)) == 2
    origin.publish("/feed", rss([Post(2, "c", "http://site.test/c")]))
    assert len(titles((await proxy.refreshed(url)).body)) == 3


@pytest.mark.fault("57a")
@pytest.mark.parametrize(
    "posts",
    [
        [Post(n, f"urn:{n}", "http://site.test/one-page") for n in range(12)],
        [Post(n, f"urn:{n}", f"http://site.test/{n}", title="Untitled") for n in range(12)],
        [Post(n, f"http://site.test/day#{n}", f"http://site.test/day#{n}") for n in range(12)],
        [Post(n, f"http://site.test/?p={n}") for n in range(12)],
        [Post(n, f"urn:{n}", title="Open thread") for n in range(12)],
        [Post(n % 2, f"urn:{n}", f"http://site.test/{n}") for n in range(12)],
    ],
    ids=["one page", "untitled", "anchors", "only ids", "titles alone", "two titles in all"],
)
async def test_different_posts_stay_different(posts: list[Post], proxy: Proxy, origin: Origin) -> None:
    """R36: shared features of several make none of them one."""
    url = origin.url("/feed")
    for end in range(4, 13):
        origin.publish("/feed", rss([*reversed(posts[end - 4 : end])]))
        await (proxy.refreshed(url) if end > 4 else proxy.whole(url))
    assert len(titles((await proxy.get(url)).body)) == 12


async def test_new_ids_stand_after_a_day_also_without_news(proxy: Proxy, origin: Origin) -> None:
    """R36: readers then get the ids used at every look."""
    url, posts = origin.url("/feed"), posts_of(range(3))
    renamed = [RENAMED["another host"](each) for each in posts]
    origin.publish("/feed", rss(newest(posts, 3)))
    await proxy.whole(url)
    origin.publish("/feed", rss(newest(renamed, 3)))
    assert ids((await proxy.refreshed(url)).body) == [each.id for each in newest(posts, 3)]
    proxy.clock.advance(DAY + HOUR)
    assert ids((await proxy.refreshed(url)).body) == [each.id for each in newest(renamed, 3)]


@pytest.mark.parametrize("how", ["http becomes https", "another host"])
async def test_a_full_refresh_joins_what_was_doubled_before(
    how: str, proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R36: by an earlier version without records of ids."""
    url, posts = origin.url("/feed"), posts_of(range(12))
    renamed = [RENAMED[how](each) for each in posts]
    for some in (posts[:8], renamed[:8], renamed[2:10], renamed[4:12]):
        origin.publish("/feed", rss(newest(some, 8)))
        await (proxy.whole(url) if some[0] is posts[0] else proxy.refreshed(url))
        rows(proxy.database, "DELETE FROM trait")
    assert len(titles((await proxy.get(url)).body)) == 20
    set_constant(monkeypatch, "PARSER_VERSION", 10_000)
    assert len(titles((await proxy.refreshed(url)).body)) == 20
    for _ in range(2):
        reply = await proxy.refreshed(url, full=True)
        assert ids(reply.body)[:8] == [each.id for each in newest(renamed, 8)]
        assert titles(reply.body) == [f"Post {n}" for n in range(11, -1, -1)]


@pytest.mark.parametrize("guids", ["https://secure.test/?p={id}", "{url}/posts/{slug}"])
async def test_a_collected_blog_whose_guids_are_replaced(guids: str, proxy: Proxy, origin: Origin) -> None:
    """R36, R28: 145 posts stay 145."""
    blog = WordPress(origin, posts=145)
    url = blog.feed_url("rss2")
    before = await proxy.whole(url)
    assert (before.state, len(set(titles(before.body)))) == ("collected", 145)
    blog.guids = guids
    blog.bulk_edit()
    for full in (False, False, True):
        proxy.clock.advance(2 * DAY)
        reply = await proxy.refreshed(url, full=full)
        assert (reply.state, sorted(titles(reply.body))) == ("collected", sorted(titles(before.body)))


@pytest.mark.parametrize("seed", range(12))
async def test_each_post_is_there_once_whatever_becomes_of_its_id(
    seed: int, proxy: Proxy, origin: Origin
) -> None:
    """R36: ids change, go back and change again."""
    chance, url = random.Random(seed), origin.url("/feed")
    first, last = 0, chance.randint(3, 8)
    make, rename = chance.choice([rss, atom]), list[Rename]()
    for look in range(10):
        if chance.random() < 0.5:
            rename = chance.sample([*RENAMED.values()], chance.randint(0, 2))
        last += chance.randint(0, 2)
        shown = posts_of(range(max(first, last - chance.randint(4, 8)), last))
        for change in rename:
            shown = [change(each) for each in shown]
        origin.publish("/feed", make(newest(shown, 10)))
        proxy.clock.advance(chance.choice([HOUR, DAY, 3 * DAY]))
        await (proxy.refreshed(url, full=chance.random() < 0.2) if look else proxy.whole(url))
        if not look:
            first = shown[0].number
        assert sorted(titles((await proxy.get(url)).body)) == sorted(f"Post {n}" for n in range(first, last))


async def test_messages_of_one_page_that_are_called_the_same_stay(proxy: Proxy, origin: Origin) -> None:
    """R36: their ids differ in a number, and their dates do: each look brings another post."""
    url = origin.url("/feed")
    for number in range(1, 5):
        message = Post(number, f"http://site.test/status#{number}", "http://site.test/status", "All is well")
        origin.publish("/feed", rss([message]))
        await proxy.whole(url)
        proxy.clock.advance(DAY)
    assert titles((await proxy.refreshed(url)).body) == ["All is well"] * 4
