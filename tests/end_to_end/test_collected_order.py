"""The order of collected entries (rule R20)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import wholefeed
from tests.feeds import own_ids
from tests.origin import Origin
from tests.postgres import on_both
from tests.publishers.collected import FORMATS, Feed
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, a_config, running

LONG = "words " * 8000
"""About twenty-one fill a segment."""


@pytest.mark.parametrize("form", FORMATS)
async def test_collected_entries_stand_newest_first_across_their_pages(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """R20: by publication, even if back-dated or edited."""
    feed = Feed(proxy, WordPress(origin, posts=35), form)
    await feed.whole()
    feed.blog.back_date()
    feed.blog.edit(feed.blog.posts[3])
    reply = await feed.later()
    newest_first = sorted(feed.blog.posts, key=lambda post: -post.published)
    assert own_ids(reply.body) == [feed.blog.identity(post, form) for post in newest_first]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rdf")
async def test_the_newest_entry_stands_first_also_where_it_is_a_page_s(
    proxy: Proxy, origin: Origin, form: str
) -> None:
    """R20: the last page by ID repeats half of the subscription document."""
    feed = Feed(proxy, WordPress(origin, posts=45), form)
    reply = await feed.whole()
    newest_first = [feed.blog.identity(post, form) for post in reversed(feed.blog.posts)]
    assert own_ids(reply.body) == newest_first
    assert own_ids((await proxy.get(feed.url, limit="3")).body) == newest_first[:3]
    for _ in range(12):  # two of them leave the subscription document's own place
        feed.blog.add()
    reply = await feed.later()
    assert own_ids(reply.body) == [feed.blog.identity(post, form) for post in reversed(feed.blog.posts)]


async def test_the_newest_entry_stands_first_in_a_feed_of_many_segments(proxy: Proxy, origin: Origin) -> None:
    """R20: for pages of any total size."""
    feed = Feed(proxy, WordPress(origin, posts=65))
    for post in feed.blog.posts:
        post.content = "words " * 8000
    reply = await feed.whole()
    assert own_ids(reply.body) == [feed.blog.identity(post) for post in reversed(feed.blog.posts)]


async def test_the_library_has_the_newest_entry_first_too(proxy: Proxy, origin: Origin) -> None:
    """R20: by publication across the pages, in every view of the library."""
    feed = Feed(proxy, WordPress(origin, posts=45))
    config = {"fetch": {"allow_networks": ["127.0.0.0/8"]}}
    entries = (await wholefeed.areconstruct(feed.url, config=config)).entries
    newest_first = [feed.blog.identity(post) for post in reversed(feed.blog.posts)]
    assert [entry.identity for entry in entries] == newest_first
    assert [entries[at].identity for at in (0, 44, 20, -1)] == [newest_first[at] for at in (0, 44, 20, -1)]


def a_long_feed(proxy: Proxy, origin: Origin, posts: int, form: str = "rss2") -> Feed:
    feed = Feed(proxy, WordPress(origin, posts=posts, per_feed=10), form)
    for post in feed.blog.posts:
        post.content = LONG
    return feed


def newest_first(feed: Feed) -> list[str]:
    posts = sorted(feed.blog.posts, key=lambda post: -post.published)
    return [feed.blog.identity(post, feed.form) for post in posts]


def import_posts(feed: Feed, number: int, *, first_days: float, every: float) -> None:
    """Publish posts `every` days apart, the newest `first_days` old; their IDs are the highest."""
    for place in range(number):
        feed.blog.back_date(days=first_days + place * every, content=LONG)


@on_both
async def test_what_was_imported_stands_by_its_dates(proxy: Proxy, origin: Origin) -> None:
    """R20: `limit` and `answer_bytes` give the newest."""
    feed = a_long_feed(proxy, origin, 25)
    import_posts(feed, 50, first_days=500.5, every=20.2)
    reply = await feed.whole()
    expected = newest_first(feed)
    assert own_ids(reply.body) == expected
    assert own_ids((await proxy.get(feed.url, limit="15")).body) == expected[:15]
    few = own_ids((await proxy.get(feed.url, answer_bytes="300000")).body)
    assert few == expected[: len(few)]
    assert len(few) >= 5


@pytest.mark.parametrize(
    ("first_days", "every"), [(1750.3, 2.1), (2500.0, 1.0), (10.0, 0.01)], ids=["between", "older", "newer"]
)
async def test_an_import_into_what_is_there_stands_by_its_dates(
    proxy: Proxy, origin: Origin, first_days: float, every: float
) -> None:
    """R20: so do later posts, and edits move nothing."""
    feed = a_long_feed(proxy, origin, 60)
    feed.blog.blog.now += 20 * 86_400
    assert own_ids((await feed.whole()).body) == newest_first(feed)
    import_posts(feed, 30, first_days=first_days, every=every)
    reply = await feed.later()
    assert own_ids(reply.body) == newest_first(feed)
    for place in (3, 40, 80):
        feed.blog.edit(feed.blog.posts[place])
    edited = await feed.later()
    assert own_ids(edited.body) == newest_first(feed)
    assert edited.body.count(b"Edited.") >= 3
    assert edited.headers["ETag"] != reply.headers["ETag"]


@on_both
async def test_a_post_under_an_old_date_stands_in_its_place_also_after_a_restart(
    tmp_path: Path, origin: Origin, store_url: str
) -> None:
    """R20: so do newer and edited posts."""
    store = {"url": store_url}
    async with running(a_config(tmp_path, store=store)) as proxy:
        feed = a_long_feed(proxy, origin, 70)
        import_posts(feed, 15, first_days=300.5, every=20.2)
        assert own_ids((await feed.whole()).body) == newest_first(feed)
        clock = proxy.clock
    for change in (
        lambda: feed.blog.add(content=LONG),
        lambda: feed.blog.back_date(days=777.7, content=LONG),
        lambda: feed.blog.edit(feed.blog.posts[50]),
    ):
        change()
        async with running(a_config(tmp_path, store=store), clock) as proxy:
            feed.proxy = proxy
            assert own_ids((await feed.later()).body) == newest_first(feed)


DAMAGE = {
    "text": "UPDATE block SET deflated = zeroblob(length(deflated))",
    "entries, gone": "DELETE FROM member",
    "entries of one, gone": "DELETE FROM member WHERE segment = (SELECT min(segment) FROM member)",
    "entries, zeros": "UPDATE member SET packed = zeroblob(length(packed))",
    "entries, one short": "UPDATE member SET packed = substr(packed, 1, length(packed) - 20)",
    "entries, a byte": "UPDATE member SET packed = x'00'",
}


async def test_a_segment_that_is_damaged_is_made_of_its_documents_again(
    tmp_path: Path, origin: Origin
) -> None:
    """R20; docs/design.md#the-store: bodies are the source of truth for every entry."""
    async with running(a_config(tmp_path)) as proxy:
        feed = a_long_feed(proxy, origin, 45)
        await feed.whole()
        clock = proxy.clock
    for what, damage in DAMAGE.items():
        with closing(sqlite3.connect(tmp_path / "wholefeed.db")) as db:
            db.execute(damage)
            db.commit()
        feed.blog.add()
        feed.blog.edit(feed.blog.posts[7])
        async with running(a_config(tmp_path), clock) as proxy:
            feed.proxy = proxy
            assert own_ids((await feed.later()).body) == newest_first(feed), what


async def test_a_post_is_written_with_its_segment_alone(proxy: Proxy, origin: Origin, tmp_path: Path) -> None:
    """R20: an older post costs the MiB around its place."""
    feed = a_long_feed(proxy, origin, 150)
    await feed.whole()

    def written(before: dict[int, int]) -> int:
        return sum(size for number, size in lengths(tmp_path).items() if number not in before)

    before = lengths(tmp_path)
    assert len(before) >= 7
    feed.blog.add(content=LONG)
    await feed.later()
    newest, before = written(before), lengths(tmp_path)
    feed.blog.back_date(days=1700.5, content=LONG)
    await feed.later()
    between = written(before)
    assert newest < 1.6e6, "the subscription document, and what its pages and that of the last IDs repeat"
    assert between < newest + 1.2e6
    assert own_ids((await feed.whole()).body) == newest_first(feed)


def lengths(folder: Path) -> dict[int, int]:
    with closing(sqlite3.connect(folder / "wholefeed.db")) as db:
        return dict(db.execute("SELECT id, length FROM segment WHERE position IS NOT NULL"))
