"""wholefeed.web.home: the table of feeds, and the acts on several of them."""

from __future__ import annotations

import io
import re
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest

from tests.answers import Status
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, Reply, StartProxy
from tests.web.browsing import browse, read, submit, text
from wholefeed.core.model import Family, Kind, State
from wholefeed.core.text.dates import DAY_SECONDS
from wholefeed.core.words import STATES
from wholefeed.store.tables.feed_table import ORDERS, FeedSearch
from wholefeed.web import home

TOKEN = "a token for readers"


async def add_feeds(proxy: Proxy, *urls: str) -> None:
    """Store feeds, each asked for a second after the one before."""
    for number, url in enumerate(urls):
        now = 1_700_000_000.0 + number
        await proxy.store.create_feed(url, fetch_url=url, family=Family.ATOM, kind=Kind.PLAIN, now=now)


def find_links(page: bytes, *urls: str) -> list[str]:
    """Return those of the URLs that a page links, in its order."""
    links = {url: page.find(f'href="./?url={quote(url, safe="/")}"'.encode()) for url in urls}
    return sorted((url for url in urls if links[url] >= 0), key=lambda url: links[url])


async def number_of(proxy: Proxy, url: str) -> int:
    """The number that a form names a feed by."""
    feed = await proxy.store.feed_by_url(url)
    assert feed is not None
    return feed.id


async def act(proxy: Proxy, *feeds: int, **fields: str) -> Reply:
    """Send the table's form with these boxes checked."""
    checked = [("feed", str(each)) for each in feeds]
    return await browse(proxy, "/feeds", method="POST", data=[*checked, *fields.items()])


def line_of(reply: Reply, feed: int) -> str:
    """The words of a feed's line in the table."""
    found = re.search(rf'<tr role="row" id="feed-{feed}">.*?</tr>', reply.body.decode(), re.DOTALL)
    assert found is not None
    return " ".join(re.sub("<[^>]*>", " ", found[0]).split())


async def test_known_feeds_are_listed_with_what_each_is(proxy: Proxy, origin: Origin) -> None:
    """Each feed has a link to its page and a button; publishers are asked by one rule, told once."""
    publish_chain(origin, archives=1, entries=2)
    url = origin.url("/feed?a=1&b=2")
    titled = atom(an_item("a")).replace(b"A feed", b"On &lt;script&gt;\n and on")
    origin.publish("/feed?a=1&b=2", titled)
    await proxy.whole(url)
    reply = await browse(proxy)
    assert read(reply).actions[1:] == ["./opml", "./feeds"]
    assert f"./?url={quote(url)}" in read(reply).links
    shown = text(reply)
    assert shown.count("Each publisher is asked") == 1
    assert "Remembered" in shown
    assert "remembered" not in shown
    assert STATES[State.REMEMBERED].meaning in shown
    assert STATES[State.PARTIAL].meaning not in shown
    assert "On <script> and on" in shown
    assert "<script>" not in reply.body.decode()


async def test_feeds_are_listed_in_the_order_that_is_chosen(proxy: Proxy) -> None:
    """The last asked for come first; another order stays chosen."""
    first, second, third = "https://c.test/", "https://a.test/", "https://b.test/"
    await add_feeds(proxy, first, second, third)
    assert find_links((await browse(proxy)).body, first, second, third) == [third, second, first]
    by_url = await browse(proxy, "/?q=&state=&sort=url")
    assert find_links(by_url.body, first, second, third) == [second, third, first]
    assert b'<option value="url" selected>' in by_url.body


async def test_the_list_is_filtered_by_words_and_state(proxy: Proxy, origin: Origin) -> None:
    """Words match literally, in any case; both stay in the form."""
    one, other = "https://Example.org/100%25_feed".lower(), "https://other.test/100xfeed"
    await add_feeds(proxy, one, other)
    origin.publish("/complete", atom(an_item("a"), complete=True))
    titled = origin.url("/complete")
    await proxy.whole(titled)
    found = await browse(proxy, "/?q=EXAMPLE")
    assert find_links(found.body, one, other, titled) == [one]
    assert b'value="EXAMPLE"' in found.body
    assert "All 1 Loading 1 Checked feeds" in text(found)
    assert find_links((await browse(proxy, "/?q=100%2525_")).body, one, other) == [one]
    assert find_links((await browse(proxy, "/?q=a+FEED")).body, one, other, titled) == [titled]
    loading = await browse(proxy, "/?state=loading")
    assert sorted(find_links(loading.body, one, other, titled)) == [one, other]
    assert "All 3 Complete 1 Loading 2 " in text(loading)
    assert b'aria-current="true">Loading' in loading.body
    assert b'<input type="hidden" name="state" value="loading">' in loading.body
    assert find_links((await browse(proxy, "/?state=complete&sort=entries")).body, one, titled) == [titled]
    none = await browse(proxy, '/?q="><b>')
    assert find_links(none.body, one, other) == []
    assert "No feed was found. Show all" in text(none)
    assert b"<b>" not in none.body


@pytest.mark.parametrize(
    ("query", "search", "number"),
    [
        ({}, FeedSearch(), 1),
        (
            {"q": " a b ", "state": "stale", "sort": "title", "page": "7"},
            FeedSearch("a b", "stale", "title"),
            7,
        ),
        ({"q": "x" * 300, "state": "any", "sort": "; DROP", "page": "-1"}, FeedSearch("x" * 200), 1),
        ({"page": "00"}, FeedSearch(), 1),
        ({"page": "\u0663"}, FeedSearch(), 1),
    ],
)
def test_what_is_looked_for_is_read_from_a_query(
    query: dict[str, str], search: FeedSearch, number: int
) -> None:
    """Nonsense counts as nothing."""
    assert home.read_search(query) == (search, number)
    link = home.search_query(search, number)
    assert home.read_search(dict(parse_qsl(link[1:]))) == (search, number)


def test_each_order_and_each_state_can_be_chosen() -> None:
    """The form offers every order and state of the store."""
    for sort in ORDERS:
        assert home.read_search({"sort": sort})[0].sort == sort
    for state in (*State, "stale", "attention"):
        assert home.read_search({"state": str(state)})[0].state == state


async def test_more_than_a_hundred_feeds_are_listed_in_parts(proxy: Proxy) -> None:
    """Each feed appears once; beyond the last page is the last, nonsense the first."""
    urls = [f"https://example.org/{number:03}" for number in range(205)]
    await add_feeds(proxy, *urls)
    first = await browse(proxy, "/?sort=url&q=example")
    assert find_links(first.body, *urls) == urls[:100]
    assert "./?q=example&sort=url&page=2#known" in read(first).links
    second = await browse(proxy, "/?sort=url&page=2")
    assert find_links(second.body, *urls) == urls[100:200]
    assert {"./?sort=url#known", "./?sort=url&page=3#known"} <= set(read(second).links)
    for number in ("3", "4", "9999999"):
        assert find_links((await browse(proxy, f"/?sort=url&page={number}")).body, *urls) == urls[200:]
    for nonsense in ("0", "-1", "x", "9" * 400, "\u0663"):
        page = await browse(proxy, f"/?sort=url&page={quote(nonsense)}")
        assert find_links(page.body, *urls) == urls[:100]


async def test_a_line_says_since_when_a_feed_reaches(proxy: Proxy, origin: Origin) -> None:
    """The month of the oldest entry; the whole address stands in a title."""
    origin.publish("/feed", atom(an_item("a", 1), an_item("b", 40)))
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await browse(proxy)
    assert f'title="{url}"' in reply.body.decode()
    oldest = re.search(r"2 entries since (\w{3} \d{4}) just now Refresh", line_of(reply, 1))
    assert oldest is not None


async def test_a_refresh_in_a_line_stays_in_the_part_and_tells_its_outcome(
    proxy: Proxy, origin: Origin
) -> None:
    """Once and in that line, and again for one that fails."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    await proxy.whole(url)
    feed = await number_of(proxy, url)
    origin.publish("/feed", atom(an_item("a"), an_item("b")))
    done = await act(proxy, refresh=str(feed), q="feed", state="remembered", sort="title", page="1")
    place = f"./?q=feed&state=remembered&sort=title&asked={feed}-1#feed-{feed}"
    assert (done.status, done.headers["Location"]) == (303, place)
    await proxy.settled()
    shown = await browse(proxy, place[1:])
    assert "1 entry more Refresh" in line_of(shown, feed)
    assert 'data-said="?q=feed&amp;state=remembered&amp;sort=title"' in shown.body.decode()
    origin.fault("/feed", Status(404))
    done = await act(proxy, refresh=str(feed))
    await proxy.settled()
    shown = await browse(proxy, done.headers["Location"][1:])
    assert "failed: the publisher responded with status 404 Refresh" in line_of(shown, feed)
    assert "1 feed asked; it did not respond." in text(shown)


async def test_a_refresh_under_way_is_told_and_begins_once(proxy: Proxy, origin: Origin) -> None:
    """A double click asks the publisher once; a page without scripts reloads."""
    origin.publish("/feed", atom(an_item("a")))
    url = origin.url("/feed")
    await proxy.whole(url)
    feed = await number_of(proxy, url)
    origin.forget_requests()
    with origin.held("/feed") as gate:
        for _ in range(2):
            await act(proxy, refresh=str(feed))
        done = await act(proxy, refresh=str(feed))
        shown = await browse(proxy, done.headers["Location"][1:])
        assert "being asked now Refresh" in line_of(shown, feed)
        assert "1 feed is being asked now." in text(shown)
        assert b'<noscript><meta http-equiv="refresh"' in shown.body
        assert b"data-said" not in shown.body
        gate.release()
    await proxy.settled()
    assert origin.counts() == {"/feed": 1}


async def fill(proxy: Proxy, origin: Origin, count: int) -> list[int]:
    """Publish and read feeds; return their numbers."""
    numbers = []
    for each in range(count):
        origin.publish(f"/{each}", atom(an_item(f"a{each}"), feed_id=f"urn:{each}"))
        await proxy.whole(origin.url(f"/{each}"))
        numbers.append(await number_of(proxy, origin.url(f"/{each}")))
    origin.forget_requests()
    return numbers


async def test_checked_feeds_are_refreshed_together(proxy: Proxy, origin: Origin) -> None:
    """Each once; the sum is told, with those that did not respond."""
    first, second, third = await fill(proxy, origin, 3)
    origin.publish("/0", atom(an_item("a0"), an_item("b0"), feed_id="urn:0"))
    origin.fault("/1", Status(410))
    done = await act(proxy, first, second, second, act="refresh", page="3")
    assert done.headers["Location"] == f"./?page=3&asked={first}-1.{second}-1#known"
    await proxy.settled()
    assert origin.counts() == {"/0": 1, "/1": 1}
    shown = await browse(proxy, done.headers["Location"][1:])
    assert "2 feeds asked: 1 entry more; 1 did not respond." in text(shown)
    assert "just now Refresh" in line_of(shown, third)


async def test_checked_feeds_are_forgotten_after_one_question(proxy: Proxy, origin: Origin) -> None:
    """It can be reloaded and gone back to. Sent twice it says the same; another feed forgotten meanwhile
    disturbs nothing."""
    first, second, third = await fill(proxy, origin, 3)
    question = f"/forget?q=&state=remembered&page=1&feed={first}&feed={second}"
    asked = await browse(proxy, question)
    assert "Forget 2 feeds?" in text(asked)
    assert "2 entries out of 2 documents" in text(asked)
    assert len(await proxy.service.feeds()) == 3
    await proxy.service.forget(origin.url("/1"))
    for _ in range(2):
        again = await act(proxy, act="forget", feed=f"{first},{second}", state="remembered")
        assert (again.status, again.headers["Location"]) == (303, "./?state=remembered&gone=2#known")
    shown = await browse(proxy, "/?state=remembered&gone=2")
    assert "2 feeds are forgotten, and nothing of them is stored any more." in text(shown)
    assert [each.id for each in await proxy.service.feeds()] == [third]
    again = await browse(proxy, question)
    assert (again.status, again.headers["Location"]) == (303, "./?state=remembered&gone=2#known")


async def test_checked_feeds_are_exported(proxy: Proxy, origin: Origin) -> None:
    """As OPML, with the addresses of this proxy."""
    first, second, _ = await fill(proxy, origin, 3)
    list_of_two = await act(proxy, second, first, act="export")
    assert list_of_two.headers["Content-Disposition"] == 'attachment; filename="wholefeed.opml"'
    found = re.findall(rb'xmlUrl="[^"]*url=([^"]*)"', list_of_two.body)
    assert found == [quote(origin.url(path), safe="").encode() for path in ("/1", "/0")]


async def test_all_that_a_search_finds_can_be_checked(proxy: Proxy, origin: Origin) -> None:
    """Also those on other parts; the question names some of them."""
    await fill(proxy, origin, 1)
    await add_feeds(proxy, *[f"https://example.org/{number:03}" for number in range(130)])
    asked = await browse(proxy, "/forget?all=1&q=example.org")
    assert "Forget 130 feeds?" in text(asked)
    assert "110 more" in text(asked)
    ids = re.findall(r'name="feed" value="([\d,]+)"', asked.body.decode())[0]
    assert (await act(proxy, act="forget", feed=ids)).headers["Location"] == "./?gone=130#known"
    assert [each.url for each in await proxy.service.feeds()] == [origin.url("/0")]


@pytest.mark.parametrize(
    ("fields", "location"),
    [
        ({"act": "refresh"}, "./?none=1#known"),
        ({"act": "forget", "feed": "x,-1,0"}, "./?none=1#known"),
        ({"act": "refresh", "feed": "77"}, "./?gone=1#known"),
        ({"refresh": "77", "page": "2"}, "./?page=2&gone=1#feed-77"),
        ({"refresh": "'><b>"}, "./?none=1#known"),
        ({"act": "export", "all": "1", "state": "attention"}, "./?state=attention&none=1#known"),
    ],
)
async def test_acts_on_no_feed_do_nothing(proxy: Proxy, fields: dict[str, str], location: str) -> None:
    """Nothing checked, nonsense, and feeds forgotten meanwhile."""
    done = await browse(proxy, "/feeds", method="POST", data=fields)
    assert (done.status, done.headers["Location"]) == (303, location)
    assert (await browse(proxy, location[1:])).status == 200


async def test_a_malformed_form_is_refused(proxy: Proxy) -> None:
    """Another act, too many fields, and a body that is too long."""
    assert (await submit(proxy, "/feeds", act="drop", feed="1")).status == 400
    many: Any = "&".join(["feed=1"] * 40_000)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await browse(proxy, "/feeds", method="POST", data=many, headers=headers)).status == 400
    long = io.BytesIO(b"feed=" + b"1," * (1 << 20))
    assert (await browse(proxy, "/feeds", method="POST", data=long, headers=headers)).status == 413


async def test_acts_need_the_token_and_a_form_of_this_proxy(start: StartProxy) -> None:
    """Forms of other origins are refused, with a token and without."""
    evil = {"Origin": "https://evil.test", "Sec-Fetch-Site": "cross-site"}
    proxy, closed = await start(), await start(server={"access_token": TOKEN})
    for each in (proxy, closed):
        reply = await submit(each, "/feeds", headers=evil, act="forget", feed="1")
        assert (reply.status, b"cross-origin" in reply.body) == (403, True)
    assert (await submit(closed, "/feeds", act="forget", feed="1")).status == 401
    for path in ("/forget?feed=1", "/forget?all=1"):
        assert (await browse(closed, path)).status == 401


async def test_a_browser_that_does_not_say_where_the_form_stands_proves_it(
    start: StartProxy, origin: Origin
) -> None:
    """Text browsers send neither Sec-Fetch-Site nor Origin: the table's forms bear a secret."""
    proxy = await start(server={"access_token": TOKEN})
    await submit(proxy, "/login", token=TOKEN)
    await add_feeds(proxy, "https://example.org/1", "https://example.org/2")
    (action,) = [each for each in read(await browse(proxy)).actions if "/feeds" in each]
    options: Any = {"headers": {"Accept": "text/html"}, "data": {"act": "forget", "feed": "1"}}
    options["allow_redirects"] = False
    assert (await proxy.ask("POST", "/feeds", **options)).status == 403
    assert (await proxy.ask("POST", action[1:], **options)).status == 303
    assert [each.id for each in await proxy.service.feeds()] == [2]


async def test_feeds_that_need_a_person_stand_on_top(proxy: Proxy, origin: Origin) -> None:
    """Each with a sentence and the button that helps, which leads back there."""
    gone, moved = await fill(proxy, origin, 2)
    origin.fault("/0", Status(410))
    named = b'<itunes:new-feed-url xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">'
    named += b"https://new.test/feed</itunes:new-feed-url></feed>"
    origin.publish("/1", atom(an_item("a1"), feed_id="urn:1").replace(b"</feed>", named))
    await act(proxy, gone, moved, act="refresh")
    await proxy.settled()
    top = await browse(proxy)
    assert "2 feeds need attention A feed The publisher says that this feed is gone for good" in text(top)
    site = quote(origin.url("/"), safe="")
    assert {f"./?url={site}", "./?url=https%3A%2F%2Fnew.test%2Ffeed"} <= set(read(top).links)
    chosen = await browse(proxy, "/?state=attention")
    assert "2 feeds need attention" not in text(chosen)
    assert "gone for good" in line_of(chosen, gone)
    assert "Need attention 2" in text(chosen)
    assert "All 0 Need attention 0" in text(await browse(proxy, "/?state=attention&q=nothing"))
    await add_feeds(proxy, "https://new.test/feed")
    continues = f"./continue?url=https%3A%2F%2Fnew.test%2Ffeed&old={quote(origin.url('/1'), safe='')}"
    assert continues in read(await browse(proxy)).links


async def test_a_refresh_among_feeds_that_need_a_person_leads_back_to_them(
    proxy: Proxy, origin: Origin
) -> None:
    """A feed that responds again leaves the part, and what came of it is told."""
    (feed,) = await fill(proxy, origin, 1)
    origin.fault("/0", Status(503))
    for _ in range(2):
        await act(proxy, refresh=str(feed))
        await proxy.settled()
        proxy.clock.advance(8 * DAY_SECONDS)
    assert "1 feed needs attention" in text(await browse(proxy))
    assert "Not sent since" in text(await browse(proxy))
    origin.publish("/0", atom(an_item("a0"), feed_id="urn:0"))
    done = await act(proxy, refresh=str(feed), attention="1")
    assert done.headers["Location"] == f"./?asked={feed}-1#attention"
    await proxy.settled()
    shown = text(await browse(proxy, done.headers["Location"][1:]))
    assert "need attention" not in shown
    assert "1 feed asked: no new entries." in shown


@pytest.mark.fault("110")
async def test_a_publisher_s_title_and_address_break_no_line(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 110: markup, marks that turn text, ten thousand characters, no title."""
    titles = ["&lt;b>\u202e&lt;script>", "W" * 10_000, "\u2067\u2066 ", ""]
    path = "/" + "x" * 1900
    for each, title in enumerate(titles):
        feed = atom(an_item("a"), feed_id=f"urn:{each}").replace(b"A feed", title.encode())
        origin.publish(f"{path}{each}", feed)
        await proxy.whole(origin.url(f"{path}{each}"))
    reply = await browse(proxy)
    page = reply.body.decode()
    assert not set("\u202e\u2066\u2067") & set(page)
    assert "<script>" not in page
    assert "W" * 200 + "\u2026" in page
    assert "W" * 201 not in page
    shown = re.findall(r'<span class="title" dir="auto">(.*?)</span>', page, re.DOTALL)
    assert len(shown) == 4
    assert [each for each in shown if not each.strip()] == []
