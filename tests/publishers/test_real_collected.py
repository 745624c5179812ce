"""The histories of a real WordPress, collected through the proxy; skipped where none is installed.

The scenarios are those of `tests/end_to_end/test_collected*.py`; a change runs in PHP between two requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from tests.answers import Request
from tests.feeds import own_ids, texts
from tests.origin import Origin
from tests.publishers.collected import DAY, FORMATS
from tests.publishers.feedburner import FeedBurner
from tests.publishers.front import Through
from tests.publishers.real_wordpress import RealWordPress
from tests.running import Proxy, Reply

PATHS = {"rss2": "/feed/", "atom": "/feed/atom/", "rdf": "/feed/rdf/"}

CHANGES: dict[str, Callable[[RealWordPress], object]] = {
    "added": lambda site: site.add("Added"),
    "deleted": lambda site: site.delete(site.ids()[7]),
    "edited": lambda site: site.edit(site.ids()[5]),
    "back-dated": lambda site: site.add("Back-dated", date="2020-02-02 10:00:00"),
    "gone live with a low ID": lambda site: site.go_live(site.schedule(post_id=2)),
    "bulk edit": lambda site: site.bulk_edit([each for each in site.ids() if each % 3]),
}


class Reader:
    """Reads one feed of the site through the proxy."""

    def __init__(self, proxy: Proxy, site: RealWordPress, front: Through, form: str = "rss2") -> None:
        self.proxy, self.site, self.front, self.form = proxy, site, front, form
        self.url = front.url + PATHS[form]

    def at(self, number: int, change: Callable[[RealWordPress], object]) -> None:
        """Change the site before the answer to a request."""

        async def hook(count: int, _request: Request) -> None:
            if count == number:
                await asyncio.to_thread(change, self.site)

        self.front.on_request = hook

    async def changed(self, change: Callable[[RealWordPress], object]) -> None:
        await asyncio.to_thread(change, self.site)

    async def later(self, seconds: float = DAY + 1) -> Reply:
        self.proxy.clock.advance(seconds)
        await self.proxy.get(self.url)
        await self.proxy.settled()
        return await self.proxy.whole(self.url)

    async def lacks(self, reply: Reply) -> set[str]:
        live = await asyncio.to_thread(self.site.identities, self.form, url=self.front.url)
        return {_path(each) for each in live} - {_path(each) for each in own_ids(reply.body)}


def _path(identity: str) -> str:
    """A guid names the host at its post's writing."""
    return identity.partition("://")[2].partition("/")[2]


def few_posts(site: RealWordPress, keep: int) -> None:
    """Leave the newest posts published; at one blow, since WordPress takes long over each."""
    first = site.ids()[-keep]
    query = f"UPDATE $wpdb->posts SET post_status = 'draft' WHERE post_type = 'post' AND ID < {first}"
    site.php(f'global $wpdb; $wpdb->query("{query}");')


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("rss2")
async def test_300_posts_come_in_few_requests(
    proxy: Proxy,
    origin: Origin,
    real_wordpress: RealWordPress,
    form: str,
    request: pytest.FixtureRequest,
) -> None:
    """R28: 300 of 300, at most pages + 4 requests, two at once."""
    reader = Reader(proxy, real_wordpress, Through(origin, real_wordpress.url), form)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with capture_logs() as logs:
        reply = await proxy.whole(reader.url)
    seconds = loop.time() - began
    assert [line for line in logs if line["log_level"] != "info"] == []
    assert (reply.state, await reader.lacks(reply)) == ("collected", set())
    assert len(origin.requests) <= 30 + 4
    assert origin.peak_requests <= 2
    line = f" {form}: 300 posts, {len(origin.requests)} requests, {seconds:.1f} s"
    request.config.get_terminal_writer().line(line)


@pytest.mark.parametrize(("change", "form"), list(zip(CHANGES, FORMATS * 2, strict=True)))
@pytest.mark.sample("added-*", "bulk edit-*")
async def test_no_live_post_is_missing_when_the_site_changes(
    proxy: Proxy,
    origin: Origin,
    real_wordpress: RealWordPress,
    change: str,
    form: str,
) -> None:
    """R28: in the middle of the walk."""
    await asyncio.to_thread(few_posts, real_wordpress, 48)
    reader = Reader(proxy, real_wordpress, Through(origin, real_wordpress.url), form)
    reader.at(6, CHANGES[change])
    reply = await proxy.whole(reader.url)
    assert (reply.state, await reader.lacks(reply)) == ("collected", set())


async def test_pages_are_counted_where_rest_is_blocked_and_pages_are_larger(
    proxy: Proxy, origin: Origin, real_wordpress: RealWordPress
) -> None:
    """R28: `posts_per_rss` of 15, and two thirds of the posts with one instant of change."""
    await asyncio.to_thread(few_posts, real_wordpress, 70)
    await asyncio.to_thread(real_wordpress.php, "update_option('posts_per_rss', 15);")
    await asyncio.to_thread(CHANGES["bulk edit"], real_wordpress)
    front = Through(origin, real_wordpress.url, rest_status=403)
    reader = Reader(proxy, real_wordpress, front, "atom")
    reply = await proxy.whole(reader.url)
    assert (reply.state, await reader.lacks(reply)) == ("collected", set())
    assert len(origin.requests) <= 5 + 12


async def test_behind_a_cache_that_drops_queries(
    proxy: Proxy, origin: Origin, real_wordpress: RealWordPress
) -> None:
    """R28: the archives by date."""
    await asyncio.to_thread(few_posts, real_wordpress, 48)
    front = Through(origin, real_wordpress.url)
    front.queries = "ignored"
    reader = Reader(proxy, real_wordpress, front)
    reply = await proxy.whole(reader.url)
    assert (reply.state, await reader.lacks(reply)) == ("collected", set())


@pytest.mark.parametrize("path", ["/category/news/feed/", "/author/guest/feed/atom/", "/search/lorem/feed/"])
@pytest.mark.sample("/category/news/feed/")
async def test_feeds_of_a_part_of_the_site(
    proxy: Proxy, origin: Origin, real_wordpress: RealWordPress, path: str
) -> None:
    """R28: every post in the site's own pages."""
    await asyncio.to_thread(few_posts, real_wordpress, 60)
    front = Through(origin, real_wordpress.url)
    reply = await proxy.whole(front.url + path)
    wanted = {"category": 20, "author": 12, "search": 60}[path.split("/")[1]]
    assert (reply.state, len(own_ids(reply.body))) == ("collected", wanted)


async def test_behind_a_copy_at_another_site(
    proxy: Proxy, origin: Origin, real_wordpress: RealWordPress
) -> None:
    """R24, R28: the copy is a stand-in for FeedBurner's; the proxy finds its source, this site."""
    await asyncio.to_thread(few_posts, real_wordpress, 48)
    reader = Reader(proxy, real_wordpress, Through(origin, real_wordpress.url))
    async with Origin("127.0.0.2") as elsewhere:
        reader.url = FeedBurner(elsewhere, reader.front, "/feed/").url
        reply = await proxy.whole(reader.url)
    assert (reply.state, await reader.lacks(reply)) == ("collected", set())
    assert len(origin.requests) <= 2 + 5 + 4


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.sample("atom")
async def test_afterwards(
    proxy: Proxy,
    origin: Origin,
    real_wordpress: RealWordPress,
    form: str,
) -> None:
    """R29, R30: no news are one request; a new, an edited and a back-dated post come; a deleted one stays."""
    await asyncio.to_thread(few_posts, real_wordpress, 30)
    reader = Reader(proxy, real_wordpress, Through(origin, real_wordpress.url), form)
    first = set(own_ids((await proxy.whole(reader.url)).body))
    origin.forget_requests()
    await reader.later(3600)
    assert len(origin.requests) == 1

    def change(site: RealWordPress) -> None:
        site.add("New")
        site.edit(site.ids()[2], "Written anew.")
        site.add("Back-dated", date="2020-02-02 10:00:00")
        site.delete(site.ids()[8])

    await reader.changed(change)
    reply = await reader.later()
    assert (reply.state, await reader.lacks(reply)) == ("collected", set())
    assert first <= set(own_ids(reply.body))
    assert sum("Written anew." in text for text in texts(reply.body).values()) == 1


async def test_a_bulk_edit_appears_within_a_day(
    proxy: Proxy, origin: Origin, real_wordpress: RealWordPress
) -> None:
    """R30: the order of equal instants shows no change: all pages are read by ID."""
    await asyncio.to_thread(few_posts, real_wordpress, 48)
    reader = Reader(proxy, real_wordpress, Through(origin, real_wordpress.url))
    await proxy.whole(reader.url)
    await reader.changed(CHANGES["bulk edit"])
    edited = sum(each % 3 > 0 for each in await asyncio.to_thread(real_wordpress.ids))
    reply = await reader.later()
    assert sum("Edited." in text for text in texts(reply.body).values()) == edited
