"""A real Redmine: parameters of its feeds, equal answers of the simulator, and its history through the proxy.

Skipped where none is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest
from defusedxml.ElementTree import fromstring

from tests.feeds import own_ids
from tests.origin import Origin
from tests.publishers.front import Through
from tests.publishers.numbered import Redmine
from tests.publishers.reading import read
from tests.publishers.real_redmine import RealRedmine, running_redmine, what_lacks
from tests.running import Proxy

NEWS = Redmine.path
POSTS = 37


@pytest.fixture(scope="module")
def installed_redmine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRedmine]:
    """One site for all tests."""
    if lack := what_lacks():
        pytest.skip(lack)
    with running_redmine(tmp_path_factory.mktemp("redmine")) as site:
        yield site


@pytest.fixture
def simulated(origin: Origin) -> Redmine:
    return Redmine(origin, POSTS)


@pytest.fixture
def real_redmine(installed_redmine: RealRedmine, simulated: Redmine) -> RealRedmine:
    """A site with the simulator's news."""
    installed_redmine.publish(simulated.posts)
    installed_redmine.show(15)
    return installed_redmine


async def facts(url: str, site: str) -> tuple[int, str, list[tuple[str, dict[str, str], str]]]:
    """Return status, type and elements of an answer, independent of the site's address."""
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        elements = fromstring((await reply.text()).replace(site, "http://site.test"))
        told = [
            (each.tag, dict(each.attrib), (each.text or "").strip())
            for each in elements.iter()
            if not each.tag.endswith("}icon")  # its address has the age of a file
        ]
        return reply.status, reply.headers["Content-Type"], told


@pytest.mark.parametrize(
    "query", ["", "?page=2", "?page=4", "?page=0", "?page=x", "?offset=10", "?from=2019-06-01"]
)
async def test_both_answer_alike(simulated: Redmine, real_redmine: RealRedmine, query: str) -> None:
    """Pages of ten by number; anything else is page 1, and other parameters are ignored."""
    theirs = await facts(real_redmine.url + NEWS + query, real_redmine.url)
    assert await facts(simulated.feed_url() + query, simulated.url) == theirs


async def test_behind_the_last_page_there_is_a_feed_without_entries(
    simulated: Redmine, real_redmine: RealRedmine
) -> None:
    """Both answer 200 instead of 404."""
    for url in (real_redmine.url + NEWS, simulated.feed_url()):
        page = await read(f"{url}?page=5")
        assert (page.status, page.identities) == (200, [])


@pytest.mark.parametrize("shown", [5, 12])
async def test_what_feeds_do_not_show_is_left_out_of_each_page(
    simulated: Redmine, real_redmine: RealRedmine, shown: int
) -> None:
    """A site may show fewer entries in its feeds than a page of news has."""
    real_redmine.show(shown)
    simulated.shown = shown
    for query in ("", "?page=2"):
        theirs = await facts(real_redmine.url + NEWS + query, real_redmine.url)
        assert await facts(simulated.feed_url() + query, simulated.url) == theirs


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/projects/some/activity.atom?show_news=1", "from=2019-03-01"),
        ("/projects/some/activity.atom?show_news=1", "page=2"),
        ("/projects/some/activity.atom?show_changesets=1", "from=2020-02-01"),
    ],
)
async def test_activities_know_no_earlier_ones(real_redmine: RealRedmine, path: str, query: str) -> None:
    """The feed has the newest fifteen, and ignores its HTML page's parameter."""
    newest = (await read(real_redmine.url + path)).identities
    assert len(newest) == 15
    assert (await read(f"{real_redmine.url}{path}&{query}")).identities == newest


async def test_pages_of_revisions_have_holes(real_redmine: RealRedmine) -> None:
    """A page has twenty-five, the feed shows fifteen of them: so the proxy collects none."""
    url = f"{real_redmine.url}/projects/some/repository/code/revisions.atom"
    pages = [(await read(f"{url}?page={number}")).identities for number in (1, 2, 3)]
    assert [len(page) for page in pages] == [15, 15, 10]
    assert len({each for page in pages for each in page}) == 40


async def test_all_news_come(proxy: Proxy, origin: Origin, real_redmine: RealRedmine) -> None:
    """R28: also if some are deleted during the walk."""
    front = Through(origin, real_redmine.url)

    async def on_request(number: int, _request: object) -> None:
        if number == 4:
            await asyncio.to_thread(real_redmine.delete, 45, 44)

    front.on_request = on_request
    reply = await proxy.whole(front.url + NEWS)
    live = {f"{front.url}/news/{number}" for number in range(11, 48) if number not in (44, 45)}
    assert (reply.state, live - set(own_ids(reply.body))) == ("collected", set())
    assert len(origin.requests) == 1 + 4 + 3


async def test_fewer_than_a_page_has_are_partial(
    proxy: Proxy, origin: Origin, real_redmine: RealRedmine
) -> None:
    """R31: entries beyond the feed's limit are nowhere available."""
    real_redmine.show(5)
    reply = await proxy.whole(Through(origin, real_redmine.url).url + NEWS)
    assert (reply.state, len(own_ids(reply.body))) == ("partial", 20)
