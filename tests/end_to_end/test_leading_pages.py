"""Pages in place of feeds: refreshes to a feed, and announcements of several (rows 154 and 155)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.answers import Answer, CloseWithoutAnswer, Document, Status
from tests.feeds import an_item, atom, ids, json_feed, publish_chain, rss
from tests.origin import Origin
from tests.running import Proxy

# A page that refreshes


@pytest.mark.fault("154")
async def test_a_page_that_refreshes_leads_to_the_feed(proxy: Proxy, origin: Origin) -> None:
    """Row 154: like a temporary redirect: the feed keeps the requested URL."""
    expected = publish_chain(origin, archives=2)
    origin.redirect_by_page("/old.xml", "/feed")
    reply = await proxy.whole(origin.url("/old.xml"))
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert [each["url"] for each in await proxy.feeds()] == [origin.url("/old.xml")]
    assert (await proxy.status(origin.url("/old.xml")))["notes"] == []


@pytest.mark.fault("154")
@pytest.mark.parametrize("days", [1, 9])
async def test_a_known_feed_that_turns_into_such_a_page_goes_on(
    proxy: Proxy, origin: Origin, days: int
) -> None:
    """Row 154: known entries stay, news comes through the page, and nothing moves for good."""
    url = origin.url("/feed")
    origin.publish("/feed", rss(an_item("b", 2), an_item("a", 1)), etag='"1"')
    await proxy.whole(url)
    origin.publish("/rss.xml", rss(an_item("c", 3), an_item("b", 2)), etag='"1"')
    origin.redirect_by_page("/feed", "/rss.xml")
    for _ in range(days):
        proxy.clock.advance(90_000)
        reply = await proxy.whole(url)
        assert (reply.reconstruction.endswith(";stale"), ids(reply.body)) == (False, ["c", "b", "a"])
    looks = days + days // 7  # a week of 304 ends in one look without conditions
    assert origin.counts() == {"/feed": 1 + looks, "/rss.xml": looks}
    first, *rest = origin.requests_for("/rss.xml")
    assert first.headers.get("if-none-match") is None
    asked_whole = [request for request in rest if request.headers.get("if-none-match") != '"1"']
    assert len(asked_whole) == days // 7


@pytest.mark.fault("154")
async def test_documents_of_a_chain_may_have_moved_so(proxy: Proxy, origin: Origin) -> None:
    """Row 154: archive documents and pages, too."""
    expected = publish_chain(origin, archives=3)
    origin.publish(
        "/moved/2", atom(an_item("e4", 4), an_item("e3", 3), archive=True, prev_archive="/archive/1")
    )
    origin.redirect_by_page("/archive/2", "/moved/2")
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", expected)

    origin.publish("/pages", atom(an_item("b", 2), next="/pages/2"))
    origin.publish("/moved/page", atom(an_item("a", 1)))
    origin.redirect_by_page("/pages/2", "/moved/page")
    assert ids((await proxy.whole(origin.url("/pages"))).body) == ["b", "a"]


@pytest.mark.fault("154")
async def test_a_page_may_lead_to_one_that_announces_the_feed(proxy: Proxy, origin: Origin) -> None:
    """Row 154: the root of a multilingual site leads to a page of one language."""
    page = "<html><link rel=alternate type=application/atom+xml href=/en/feed></html>"
    origin.redirect_by_page("/", "/en/")
    origin.publish("/en/", page, content_type="text/html")
    origin.publish("/en/feed", atom(an_item("a")))
    assert ids((await proxy.whole(origin.url("/"))).body) == ["a"]


# A page that announces several feeds


def announce(origin: Origin, *links: tuple[str, str]) -> None:
    found = "".join(
        f'<link rel="alternate" type="application/rss+xml" title="{title}" href="{path}">'
        for title, path in links
    )
    origin.publish("/site", f"<html><head>{found}</head></html>", content_type="text/html")


DEAD: dict[str, Answer] = {
    "404": Status(404),
    "410": Status(410),
    "403": Status(403),
    "500": Status(500),
    "a page": Document(body=b"<html><h1>Not here</h1></html>", headers=(("Content-Type", "text/html"),)),
    "no body": Status(200),
    "no entries": Document(body=rss(), headers=(("Content-Type", "text/xml"),)),
    "broken": Document(body=b"<rss><channel><item", headers=(("Content-Type", "text/xml"),)),
}


@pytest.mark.fault("155")
@pytest.mark.parametrize("dead", DEAD)
async def test_where_the_first_announced_feed_is_dead_the_next_serves(
    proxy: Proxy, origin: Origin, dead: str
) -> None:
    """Row 155: missing, an error, no feed, or one without entries."""
    announce(origin, ("Diary", "/atom.xml"), ("Diary", "/feed/"))
    origin.answer("/atom.xml", DEAD[dead])
    origin.publish("/feed/", rss(an_item("a")))
    reply = await proxy.whole(origin.url("/site"))
    assert (reply.status, ids(reply.body)) == (200, ["a"])
    assert [each["url"] for each in await proxy.feeds()] == [origin.url("/feed/")]


@pytest.mark.fault("155")
@pytest.mark.parametrize("make", [rss, atom, json_feed])
async def test_posts_are_taken_before_comments(
    proxy: Proxy, origin: Origin, make: Callable[..., bytes]
) -> None:
    """Row 155: in any order; comments are not even fetched, though nothing is posted yet."""
    announce(origin, ("Diary \u00bb Comments Feed", "/comments/feed/"), ("Diary", "/feed/"))
    origin.publish("/comments/feed/", make(an_item("comment")))
    origin.publish("/feed/", make())
    assert (await proxy.whole(origin.url("/site"))).status == 200
    assert [each["url"] for each in await proxy.feeds()] == [origin.url("/feed/")]
    assert "/comments/feed/" not in origin.counts()


@pytest.mark.fault("155")
async def test_comments_serve_where_there_is_nothing_else(proxy: Proxy, origin: Origin) -> None:
    """Row 155: a page announces posts that are gone for good."""
    announce(origin, ("Diary Comments", "/comments/feed/"), ("Diary", "/feed/"))
    origin.publish("/comments/feed/", rss(an_item("comment")))
    assert ids((await proxy.whole(origin.url("/site"))).body) == ["comment"]


@pytest.mark.fault("155")
@pytest.mark.parametrize("failure", [Status(500), CloseWithoutAnswer()], ids=["500", "closed"])
async def test_comments_take_no_place_of_posts_that_may_be_back(
    proxy: Proxy, origin: Origin, failure: Answer
) -> None:
    """Row 155: the choice is permanent; a short failure must not decide it."""
    announce(origin, ("Diary", "/feed/"), ("Diary Comments", "/comments/feed/"))
    origin.answer("/feed/", failure)
    origin.publish("/comments/feed/", rss(an_item("comment")))
    assert (await proxy.whole(origin.url("/site"))).status == 502
    assert await proxy.feeds() == []
    assert "/comments/feed/" not in origin.counts()


@pytest.mark.fault("155")
async def test_few_of_many_announced_feeds_are_asked_for(proxy: Proxy, origin: Origin) -> None:
    """Row 155: a page can announce any number; the answer is the first one's."""
    announce(origin, *((f"Diary {number}", f"/{number}.xml") for number in range(50)))
    reply = await proxy.whole(origin.url("/site"))
    assert (reply.status, reply.slug) == (404, "publisher-status")
    assert origin.url("/0.xml").encode() in reply.body
    assert origin.counts() == {"/site": 1, **{f"/{number}.xml": 1 for number in range(4)}}


@pytest.mark.fault("155")
async def test_a_person_chooses_among_all_of_them(proxy: Proxy, origin: Origin) -> None:
    """Row 155: including dead ones and comments; none is fetched before."""
    announce(origin, ("Diary Comments", "/comments/feed/"), ("Diary", "/dead"), ("Diary", "/feed/"))
    reply = await proxy.ask(
        "GET",
        "/",
        params={"url": origin.url("/site")},
        headers={"Accept": "text/html", "Accept-Encoding": ""},
    )
    assert all(path in reply.body for path in (b"/comments/feed/", b"/dead", b"/feed/"))
    assert origin.counts() == {"/site": 1}
