"""What a person has typed, and the feed that it leads to."""

from __future__ import annotations

import asyncio
from html import unescape
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.answers import Status
from tests.feeds import atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, StartProxy
from tests.web.page.browsing import browse, read, text
from tests.web.test_feed import plain_publisher

SEVERAL = """<html><head><link rel=alternate type="application/rss+xml" title="All &amp; <i>" href="/rss">
<link rel=alternate type="application/atom+xml" href="/feed">
<link rel=alternate type="application/rss+xml" title="again" href="/rss"></head>"""
ONE = '<html><head><link rel=alternate type="application/atom+xml" href="/feed"></head>'


def target(url: str) -> str:
    return f"/?url={quote(url, safe='')}"


async def test_a_page_with_several_feeds_lets_a_person_choose(proxy: Proxy, origin: Origin) -> None:
    """Title, format and URL of each, once; nothing is stored until one is chosen."""
    origin.publish("/site", SEVERAL, content_type="text/html")
    reply = await browse(proxy, target(origin.url("/site")))
    assert reply.status == 200
    links = [link for link in read(reply).links if "?url=" in link]
    assert links == [f".{target(origin.url(path)).replace('%2F', '/')}" for path in ("/rss", "/feed")]
    assert "All & <i> RSS" in text(reply)
    assert "Without a title Atom" in text(reply)
    assert b"<i>" not in reply.body
    assert await proxy.service.feeds() == []


TURNING = "\u202e\u2067"


@pytest.mark.fault("110")
async def test_no_page_shows_what_turns_the_words_around_a_url(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 110: a URL with U+202E looks like another; its octets are shown instead."""
    announced = SEVERAL.replace('="/rss', f'="/f{TURNING}eed')
    origin.publish("/site", announced, content_type="text/html; charset=utf-8")
    choosing = await browse(proxy, target(origin.url("/site")))
    site = f"<link rel='alternate' href='http://s{TURNING}.test/{TURNING}'/>"
    file = f"<link rel='enclosure' href='http://e{TURNING}.test/' type='image/png'/>"
    entry = f"<entry><id>urn:a</id><link href='/{TURNING}'/>{file}</entry>"
    feed = atom(prev_archive=f"/archive/{TURNING}").replace(b"</feed>", f"{site}{entry}</feed>".encode())
    origin.publish("/feed", feed)
    await proxy.whole(origin.url("/feed"))
    view = f"/view?url={quote(origin.url('/feed'), safe='')}"
    others = (target(origin.url("/feed")), view, f"{view}&media=1", target(f"h{TURNING}"))
    for reply in (choosing, *[await browse(proxy, each) for each in others]):
        assert not set(TURNING) & set(unescape(reply.body.decode()))
        assert b"%E2%80%AE" in reply.body
    (link,) = [link for link in read(choosing).links if "eed" in link and "%25E2" in link]
    shown = origin.url("/f%E2%80%AE%E2%81%A7eed")
    assert shown in text(choosing)
    assert parse_qs(urlsplit(link).query)["url"] == [shown]


async def test_the_page_is_asked_for_once(proxy: Proxy, origin: Origin) -> None:
    """Going back to the choice asks the site nothing; neither does the choice itself but for the feed."""
    origin.publish("/site", SEVERAL, content_type="text/html")
    publish_chain(origin, archives=1)
    for _ in range(3):
        await browse(proxy, target(origin.url("/site")))
    assert (await browse(proxy, target(origin.url("/feed")))).status == 200
    await proxy.settled()
    assert origin.counts() == {"/site": 1, "/feed": 1, "/archive/1": 1}


async def test_a_reader_still_gets_the_preferred_feed_of_such_a_page(proxy: Proxy, origin: Origin) -> None:
    """A reader cannot choose; that a person was asked a moment ago changes nothing for it."""
    origin.publish("/site", SEVERAL, content_type="text/html")
    publish_chain(origin, archives=1)
    await browse(proxy, target(origin.url("/site")))
    assert (await proxy.whole(origin.url("/site"))).status == 200
    (feed,) = await proxy.service.feeds()
    assert feed.url == origin.url("/feed")


async def test_a_person_and_a_reader_who_ask_at_once_each_get_theirs(proxy: Proxy, origin: Origin) -> None:
    """They do not share what comes of looking at the page: one chooses, the other does not."""
    origin.publish("/site", SEVERAL, content_type="text/html")
    publish_chain(origin, archives=1)
    url = origin.url("/site")
    with origin.held("/site") as gate:  # whoever comes when the other has its feed is led there
        async with asyncio.timeout(10), asyncio.TaskGroup() as both:
            person, reader = both.create_task(browse(proxy, target(url))), both.create_task(proxy.get(url))
            while len(origin.requests_for("/site")) < 2:
                await asyncio.sleep(0.001)
            gate.release()
    assert "Which feed?" in text(person.result())
    assert reader.result().status == 200


async def test_a_page_with_one_feed_leads_straight_to_it(proxy: Proxy, origin: Origin) -> None:
    """There is nothing to choose."""
    origin.publish("/site", ONE, content_type="text/html")
    publish_chain(origin, archives=1)
    reply = await browse(proxy, target(origin.url("/site")))
    assert reply.status == 200
    assert origin.url("/feed") in text(reply)
    await proxy.settled()
    assert origin.counts() == {"/site": 1, "/feed": 1, "/archive/1": 1}


async def test_a_feed_s_own_url_needs_no_choice(proxy: Proxy, origin: Origin) -> None:
    """Its page comes, its walk begins, and the document is fetched once."""
    publish_chain(origin, archives=2)
    assert (await browse(proxy, target(origin.url("/feed")))).status == 200
    await proxy.settled()
    assert origin.counts()["/feed"] == 1
    assert (await proxy.get(origin.url("/feed"))).state == "complete"


async def test_a_url_without_its_scheme_is_taken_by_http_where_https_is_refused(proxy: Proxy) -> None:
    """As people write URLs; the feed is known by what answered, and its page is found by what was written."""
    async with plain_publisher() as bare:
        for _ in range(2):
            reply = await browse(proxy, target(f"  {bare} "))
            assert reply.status == 200
            assert f"http://{bare}" in text(reply)
        assert (await browse(proxy, target(f"https://{bare}/other"))).status == 502


@pytest.mark.parametrize(
    "written",
    [
        "http://localhost:8080/feed?url=https%3A%2F%2Fexample.org%2F%3Fa%3D1&token=secret-of-the-proxy",
        "http://localhost:8080/https://example.org/?a=1",
        "feed://localhost:8080/feed?url=https://example.org/?a=1",
        "localhost:8080/feed/?limit=3&url=https%3A%2F%2Fexample.org%2F%3Fa%3D1",
    ],
)
async def test_an_address_that_the_proxy_made_leads_to_the_feed_behind_it(proxy: Proxy, written: str) -> None:
    """What stands in one's reader is what one copies from there; the proxy is not asked for itself."""
    reply = await browse(proxy, target(written), headers={"Host": "localhost:8080"})
    assert (reply.status, reply.headers["Location"]) == (303, f".{target('https://example.org/?a=1')}")


@pytest.mark.parametrize(
    ("written", "status", "said"),
    [
        ("", 400, "Nothing was typed."),
        ("ftp://example.org/feed", 400, "That is no web address."),
        ("https://user:secret@example.org/", 400, "Leave the user name and the password out"),
        ("/nothing", 422, "link called RSS, Atom or Feed"),
        ("/gone", 404, "Check the spelling"),
        ("/broken", 502, "The publisher answered with an error"),
        ("http://10.0.0.1/", 403, "Private addresses"),
    ],
)
async def test_what_leads_to_no_feed_is_told_beside_the_form(
    proxy: Proxy, origin: Origin, written: str, status: int, said: str
) -> None:
    """What was wrong and what to type, with the right status, and what was typed is still there."""
    origin.publish("/nothing", "<html><body>no feed", content_type="text/html")
    origin.fault("/broken", Status(500))
    url = origin.url(written) if written.startswith("/") else written
    reply = await browse(proxy, target(url))
    assert reply.status == status
    assert said in text(reply)
    assert b'role="alert"' in reply.body
    assert b'aria-invalid="true"' in reply.body
    assert f'value="{url}"'.encode() in reply.body


async def test_a_program_gets_the_problem_itself(proxy: Proxy, origin: Origin) -> None:
    """The page of a feed is for people; what asks for it without reading HTML is told in JSON."""
    reply = await proxy.ask("GET", target(origin.url("/gone")))
    assert reply.status == 404
    assert reply.headers["Content-Type"].startswith("application/problem+json")


async def test_a_slow_site_is_waited_for_no_longer_than_configured(start: StartProxy, origin: Origin) -> None:
    """The page says that it is still looked for; once it has come, the choice is there at once."""
    origin.publish("/site", SEVERAL, content_type="text/html")
    proxy = await start(limits={"respond_within_seconds": 0.2})
    with origin.held("/site") as gate:
        reply = await browse(proxy, target(origin.url("/site")))
        assert reply.status == 200
        assert "Asking the publisher" in text(reply)
        del gate
    await proxy.settled()
    assert "Which feed?" in text(await browse(proxy, target(origin.url("/site"))))
    assert origin.counts() == {"/site": 1}
