"""wholefeed.web.pages: home, the choice of a feed, a feed's page, and their forms."""

from __future__ import annotations

import asyncio
import json
import re
import time
from datetime import datetime
from html import unescape
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import pytest

from tests.answers import Status
from tests.feeds import Item, an_item, atom, json_feed, own_ids, publish_chain, rss
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, Reply, StartProxy
from tests.web.browsing import BROWSER, browse, read, submit, text
from tests.web.test_feed import plain_publisher
from tests.web.test_home import add_feeds
from wholefeed.core.model import State
from wholefeed.core.readers import READERS
from wholefeed.core.words import STATES
from wholefeed.web import pages
from wholefeed.web.reader_links import draw_code

TOKEN = "a token for readers"


async def test_a_program_is_told_how_to_subscribe(proxy: Proxy) -> None:
    """`curl localhost:8080`: a few lines of plain text with the proxy's own address."""
    reply = await proxy.ask("GET", "/", headers={"Host": "localhost:8080"})
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["Vary"] == "Accept"
    lines = reply.body.decode().splitlines()
    assert len(lines) == 5
    assert "http://localhost:8080/feed?url=FEED-URL" in reply.body.decode()


async def test_a_program_is_told_what_each_url_needs(start: StartProxy) -> None:
    """The text tells how to get a signature, and never tells the token."""
    proxy = await start(server={"signing_keys": ("a key that signs",)})
    reply = await proxy.ask("GET", "/")
    assert b"wholefeed sign URL" in reply.body
    proxy = await start(server={"access_token": TOKEN})
    reply = await proxy.ask("GET", "/")
    assert b"/feed?token=TOKEN&url=" in reply.body
    assert TOKEN.encode() not in reply.body


async def test_a_browser_gets_a_page_that_says_how_to_begin(proxy: Proxy) -> None:
    """The page has relative links and its own policy."""
    reply = await browse(proxy)
    assert reply.status == 200
    assert "script-src 'self'" in reply.headers["Content-Security-Policy"]
    # with `no-referrer` a browser sends `Origin: null` with the page's own forms, and they are refused
    assert reply.headers["Referrer-Policy"] == "same-origin"
    assert reply.headers["Cache-Control"] == "no-store"
    assert "Accept" in reply.headers["Vary"]
    page = read(reply)
    assert page.actions == ["./", "./opml"]
    assert "None yet." in text(reply)
    assert "./opml" in page.links


async def test_what_stands_in_a_url_is_never_markup(proxy: Proxy) -> None:
    """A feed's URL is a stranger's text."""
    url = "https://example.org/?a='%3Cscript%3E&b=%22onload=1"
    await add_feeds(proxy, url)
    page = (await browse(proxy)).body.decode()
    assert "<script>" not in page.replace("<script src", "")
    assert "'%3Cscript" not in page


SEVERAL = """<html><head><link rel=alternate type="application/rss+xml" title="All &amp; <i>" href="/rss">
<link rel=alternate type="application/atom+xml" href="/feed">
<link rel=alternate type="application/rss+xml" title="again" href="/rss"></head>"""
ONE = '<html><head><link rel=alternate type="application/atom+xml" href="/feed"></head>'


def target(url: str) -> str:
    return f"/?url={quote(url, safe='')}"


async def test_a_page_with_several_feeds_lets_a_person_choose(proxy: Proxy, origin: Origin) -> None:
    """Nothing is stored until one is chosen."""
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
    """docs/faults.md row 110: a URL with U+202E looks like another; the page shows octets."""
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


async def test_a_person_and_a_reader_who_ask_at_once_each_get_theirs(proxy: Proxy, origin: Origin) -> None:
    """The person chooses a feed, the reader does not."""
    origin.publish("/site", SEVERAL, content_type="text/html")
    publish_chain(origin, archives=1)
    url = origin.url("/site")
    with origin.held("/site") as gate:  # a second request with the feed stored is redirected
        async with asyncio.timeout(300), asyncio.TaskGroup() as both:
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


async def test_a_url_without_its_scheme_is_taken_by_http_where_https_is_refused(proxy: Proxy) -> None:
    """The answering URL is the feed's; the typed one finds its page."""
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
    """People copy addresses from their readers; the proxy does not ask itself."""
    reply = await browse(proxy, target(written), headers={"Host": "localhost:8080"})
    assert (reply.status, reply.headers["Location"]) == (303, f".{target('https://example.org/?a=1')}")


@pytest.mark.parametrize("written", ["http://localhost:8080/", "localhost:8080/feed?url=", "localhost:8080/"])
async def test_an_address_of_the_proxy_without_a_feed_behind_it_is_told_to_be_one(
    proxy: Proxy, written: str
) -> None:
    """The page does not say that nothing was typed."""
    reply = await browse(proxy, target(written), headers={"Host": "localhost:8080"})
    assert reply.status == 400
    assert "That is an address of this proxy itself." in text(reply)
    assert f'value="{written}"'.encode() in reply.body


@pytest.mark.parametrize("is_encoded", [True, False])
async def test_the_address_of_a_replay_leads_to_what_was_chosen(proxy: Proxy, is_encoded: bool) -> None:
    """The token of a pasted address is left out (P8)."""
    written = (
        "http://localhost:8080/feed?url=https%3A%2F%2Fexample.org%2F&token=secret-of-the-proxy"
        "&replay=1%2Fday&from=2026-11-24T06%3A00%3A00%2B01%3A00&on=mon&original=off"
    )
    target = f"/?url={quote(written, safe='') if is_encoded else written}"
    reply = await browse(proxy, target, headers={"Host": "localhost:8080"})
    chosen = "&replay=1%2Fday&from=2026-11-24T06%3A00%3A00%2B01%3A00&on=mon&original=off"
    expected = f"./?url=https%3A%2F%2Fexample.org%2F{chosen}#replay"
    assert (reply.status, reply.headers["Location"]) == (303, expected)


@pytest.mark.parametrize(
    ("written", "status", "said"),
    [
        ("", 400, "Nothing was typed."),
        ("ftp://example.org/feed", 400, "That is no web address."),
        ("https://user:secret@example.org/", 400, "Leave the user name and the password out"),
        ("/nothing", 422, "link called RSS, Atom or Feed"),
        ("/gone", 404, "Check the spelling"),
        ("/broken", 502, "The publisher sent an error"),
        ("http://10.0.0.1/", 403, "Private addresses"),
    ],
)
async def test_what_leads_to_no_feed_is_told_beside_the_form(
    proxy: Proxy, origin: Origin, written: str, status: int, said: str
) -> None:
    """The page shows the error, advice, the right status, and the typed text."""
    origin.publish("/nothing", "<html><body>no feed", content_type="text/html")
    origin.fault("/broken", Status(500))
    url = origin.url(written) if written.startswith("/") else written
    reply = await browse(proxy, target(url))
    assert reply.status == status
    assert said in text(reply)
    assert b'role="alert"' in reply.body
    assert b'aria-invalid="true"' in reply.body
    assert f'value="{url}"'.encode() in reply.body


MONTH = 24 * 30
ENTRY = "<entry><author><name>Ann \u202e A</name></author>"


async def shown(proxy: Proxy, url: str) -> Reply:
    """Return a feed's page after loading."""
    await proxy.whole(url)
    reply = await browse(proxy, target(url))
    assert reply.status == 200
    return reply


async def test_what_turns_the_text_around_it_is_on_no_page(proxy: Proxy, origin: Origin) -> None:
    """Overrides of direction never reach a page, also in names of authors."""
    turned = "All \u202e of it"
    feed = atom(an_item("a")).replace(b"A feed", turned.encode()).replace(b"<entry>", ENTRY.encode(), 1)
    origin.publish("/feed", feed)
    both = "".join(
        f'<link rel="alternate" type="application/rss+xml" href="/{name}" title="{turned}">' for name in "ab"
    )
    origin.publish("/site", f"<html><head>{both}</head></html>".encode(), content_type="text/html")
    pages = [
        await shown(proxy, origin.url("/feed")),
        await browse(proxy),
        await browse(proxy, target(origin.url("/site"))),
    ]
    for page in pages:
        assert "All of it" in text(page)
        assert "\u202e" not in page.body.decode()
    assert "Ann A" in text(pages[0])


class _Inputs(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.attributes: set[str] = set()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.attributes |= given.keys()
        if tag == "input" and given.get("id"):
            self.values[given["id"] or ""] = given.get("value") or ""


def inputs(reply: Reply) -> _Inputs:
    found = _Inputs()
    found.feed(reply.body.decode())
    return found


async def test_a_complete_feed_is_told_with_its_address_and_its_two_ends(
    proxy: Proxy, origin: Origin
) -> None:
    """State in words, counts, newest and oldest entries."""
    names = publish_chain(origin, archives=6)
    url = origin.url("/feed")
    reply = await shown(proxy, url)
    said = text(reply)
    assert "A feed" in said
    assert STATES[State.COMPLETE].meaning in said
    assert "14 entries out of 7 documents" in said
    assert "the oldest document links to no older one" in said
    assert [name for name in names if f" {name} " in said] == [*names[:5], *names[-3:]]
    address = inputs(reply).values["proxied"]
    assert address.startswith("http://127.0.0.1:")
    assert parse_qs(urlsplit(address).query) == {"url": [url]}
    assert f"feed:{address}" in read(reply).links
    assert (await proxy.ask("GET", address.partition(str(proxy.client.port))[2])).state == "complete"


async def test_what_is_missing_is_told_with_its_reason_and_its_place_in_time(
    proxy: Proxy, origin: Origin
) -> None:
    """The page tells the reason, the dates, the tries, and the next one (R16)."""
    origin.publish("/feed", atom(an_item("new", 21 * MONTH), prev_archive="/archive/3"))
    third = atom(an_item("newer", 20 * MONTH), archive=True, prev_archive="/archive/2")
    origin.publish("/archive/3", third)
    origin.publish("/archive/1", atom(an_item("old", 0), archive=True, next_archive="/archive/2"))
    said = text(await shown(proxy, origin.url("/feed")))
    assert STATES[State.PARTIAL].meaning in said
    assert origin.url("/archive/2") in said
    assert "The publisher responded with status 404." in said
    assert "Its entries are from between November 2023 and July 2025." in said
    assert re.search(r"Tried .+; again with the next refresh, in 59 minutes or later\.", said)
    assert "Months without entries: December 2023 to June 2025 (19 months)." in said


async def test_a_collected_feed_says_how_it_was_found(proxy: Proxy, origin: Origin) -> None:
    """The page promises no completeness; it names the publisher's pages and their number (R31)."""
    blog = WordPress(origin, posts=60)
    said = text(await shown(proxy, blog.url))
    assert STATES[State.COLLECTED].meaning in said
    assert "Found as pages of WordPress" in said
    assert "60 entries of 60 that the site claims to have" in said


async def test_a_listed_feed_says_where_its_entries_stand(start: StartProxy, origin: Origin) -> None:
    """The publisher's pages are links with their numbers of entries (H7)."""
    proxy = await start(history=LISTS)
    ArchivePage(origin, posts=40, per_page=15).publish()
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    reply = await shown(proxy, url)
    said = text(reply)
    assert STATES[State.LISTED].meaning in said
    assert "35 older entries stand in a list on 3 pages of the site" in said
    assert "The pages that list them" in said
    for path, entries in (("/archive/", 10), ("/archive/page/2/", 15), ("/archive/page/3/", 10)):
        assert origin.url(path) in read(reply).links
        assert f"{origin.url(path)} {entries} entries" in said
    home = text(await browse(proxy, "/"))
    assert f" {STATES[State.LISTED].title} " in home


async def test_where_no_list_was_found_the_page_says_where_it_was_looked_for(
    start: StartProxy, origin: Origin
) -> None:
    """Each page has the reason why it did not count (H7)."""
    proxy = await start(history=LISTS)
    ArchivePage(origin, posts=30).publish()
    origin.fault("/archive/", Status(404))
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    said = text(await shown(proxy, url))
    assert STATES[State.REMEMBERED].meaning in said
    assert "and none lists the feed's entries" in said
    assert "Where a list was looked for" in said
    assert f"{origin.url('/archive/')} there is no such page (status 404)" in said


async def test_a_feed_of_one_entry_and_one_without_dates_have_pages(proxy: Proxy, origin: Origin) -> None:
    """Without dates there is no chart, but a reason."""
    origin.publish("/one", atom(an_item("only"), complete=True))
    origin.publish("/undated", rss(an_item("a", None), an_item("b", None)))
    origin.publish("/none", atom(complete=True))
    one = await shown(proxy, origin.url("/one"))
    assert "All dated entries are of November 2023." in text(one)
    assert "The oldest" not in text(one)
    undated = await shown(proxy, origin.url("/undated"))
    assert "None of its 2 entries bears a date" in text(undated)
    assert b"<figure" not in undated.body
    assert "No entry of it is here." in text(await shown(proxy, origin.url("/none")))


async def test_the_chart_and_its_table_say_the_same(proxy: Proxy, origin: Origin) -> None:
    """Months without entries are told in words, and undated entries apart."""
    items = [an_item("a", 0), an_item("b", 1), an_item("c", 3 * MONTH), an_item("d", None)]
    origin.publish("/feed", rss(*items))
    reply = await shown(proxy, origin.url("/feed"))
    body = reply.body.decode()
    # the first hour is "undated" to the maker of RSS
    bars = re.findall(r"<title>(\w+ \d{4}): ([\d,]+) entr", body)
    rows = re.findall(r'<th scope="row">([^<]+)</th><td class="number">([\w,]+)<', body)
    assert bars == [each for each in rows if each[1] != "none" and each[0] != "Without a date"]
    assert sum(int(number) for _, number in bars) == 2
    assert ("Without a date", "2") in rows
    assert "Months without entries: December 2023 to January 2024 (2 months)." in text(reply)


async def test_the_page_of_an_unknown_feed_appears_while_its_publisher_is_asked(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for 8 s: the page reloads with script and without."""
    monkeypatch.setattr(pages, "WAIT_SECONDS", 0.2)
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    with origin.held("/feed") as gate:
        began = time.monotonic()
        reply = await browse(proxy, target(url))
        assert time.monotonic() - began < 5
        assert (reply.status, "Asking the publisher" in text(reply)) == (200, True)
        assert '<noscript><meta http-equiv="refresh" content="4"></noscript>' in reply.body.decode()
        assert b'data-reload="4"' in reply.body
        assert inputs(reply).values["proxied"].endswith(quote(url, safe=""))
        gate.release()
    await proxy.settled()
    assert STATES[State.COMPLETE].meaning in text(await browse(proxy, target(url)))
    assert origin.counts()["/feed"] == 1


async def test_progress_is_on_the_page_while_a_walk_goes_on(proxy: Proxy, origin: Origin) -> None:
    """Arrived entries are visible already; the page follows the rest, with script and without."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    with origin.held("/archive/1"):
        await proxy.begun(url)
        while (await proxy.status(url))["progress"]["documents"] < 4:
            pass
        reply = await browse(proxy, target(url))
        said = text(reply)
        assert STATES[State.LOADING].meaning in said
        assert "Read so far: 8 entries out of 4 documents" in said
        assert re.search(r'<progress[^>]* max="5" value="4"', reply.body.decode())
        assert f'data-events="./events?url={quote(url)}"' in reply.body.decode()
        assert b'http-equiv="refresh"' in reply.body
    reply = await shown(proxy, url)
    assert b"data-events" not in reply.body
    assert b'http-equiv="refresh"' not in reply.body


async def test_what_a_publisher_writes_stays_text(proxy: Proxy, origin: Origin) -> None:
    """Nothing adds markup; long texts are cut; nothing is inline."""
    hostile = "<script>alert(1)</script>"
    body = rss(Item("&lt;script&gt;" + "W" * 3000, 5, "x")).replace(
        b"<title>A channel</title>",
        f"<title><![CDATA[{hostile}&lt;img src=x&gt;{'Q' * 3000}]]></title>".encode(),
    )
    path = f"/feed?q=%22%3E%3Cscript%3E{'a' * 1900}"
    origin.publish(path, body)
    reply = await shown(proxy, origin.url(path))
    found = inputs(reply)
    assert found.tags.count("script") == 4
    assert "img" not in found.tags or found.tags.count("img") == 1  # the proxy's own icon
    assert not {"style", "onerror", "onclick", "onload"} & found.attributes
    assert "Q" * 300 not in reply.body.decode()
    assert "W" * 300 not in reply.body.decode()
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]


async def test_readers_with_needs_of_their_own_get_addresses_of_their_own(
    proxy: Proxy, origin: Origin
) -> None:
    """The URL for a reader with a cap bears this cap."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    reply = await shown(proxy, origin.url("/feed"))
    said = text(reply)
    addresses = [value for name, value in inputs(reply).values.items() if name.startswith("for-")]
    assert parse_qs(urlsplit(inputs(reply).values["paged"]).query)["pages"] == ["100"]
    queries = [parse_qs(urlsplit(each).query) for each in addresses]
    capped = [str(each.answer_bytes) for each in READERS if each.answer_bytes is not None]
    assert [query["answer_bytes"][0] for query in queries if "answer_bytes" in query] == capped
    assert sum("since" in query for query in queries) == sum(each.starts_now for each in READERS)
    for each in READERS:
        assert each.name in said


async def test_the_address_holds_the_token_for_who_knows_it(start: StartProxy, origin: Origin) -> None:
    """A copied address works in a reader; without the token there is no page."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    proxy = await start(server={"access_token": TOKEN})
    assert (await browse(proxy, target(url))).status in (303, 401)
    known = {"Authorization": f"Bearer {TOKEN}"}
    reply = await browse(proxy, target(url), headers=known)
    address = inputs(reply).values["proxied"]
    assert parse_qs(urlsplit(address).query) == {"url": [url], "token": [TOKEN]}
    assert "keep it to yourself" in text(reply)
    fetched = await proxy.ask("GET", address.partition(str(proxy.client.port))[2])
    assert fetched.status == 200


async def test_of_many_missing_documents_the_page_lists_some(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page tells how many more there are, and where."""
    monkeypatch.setattr(pages, "MOST_MISSING", 0)
    origin.publish("/feed", atom(an_item("a"), prev_archive="/gone"))
    said = text(await shown(proxy, origin.url("/feed")))
    assert "/gone" not in said
    assert "1 more: see everything that is known" in said


async def test_a_publisher_that_takes_too_long_is_not_waited_for_any_more(
    start: StartProxy, origin: Origin
) -> None:
    """After the timeout the page is an error with advice, and no longer reloads."""
    publish_chain(origin, archives=1)
    proxy = await start(fetch={"read_timeout_seconds": 0.1})
    with origin.held("/feed"):
        reply = await browse(proxy, target(origin.url("/feed")))
        while reply.status == 200:
            assert "Asking the publisher" in text(reply)
            reply = await browse(proxy, target(origin.url("/feed")))
    assert reply.status == 504
    assert b'role="alert"' in reply.body
    assert "did not respond in time" in text(reply)
    assert "still being looked for" not in text(reply), "nobody does any more"


async def test_a_stale_feed_says_what_was_tried_and_promises_nothing(proxy: Proxy, origin: Origin) -> None:
    """Row 75: the page promises no refresh that nobody plans."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    proxy.clock.advance(37 * 60)
    origin.fault("/feed", Status(503))
    await proxy.get(url)
    await proxy.settled()
    said = text(await browse(proxy, target(url)))
    assert (
        "just now, the publisher responded with status 503; this is the feed as the publisher"
        " sent it 37 minutes" in said
    )
    assert "The publisher is asked next when a reader asks, in 59 seconds or later; a refresh by hand" in said
    home = text(await browse(proxy))
    assert "Not refreshed 37 minutes ago Refresh" in home
    for each in (said, home):
        assert "Nothing needs to be done" not in each.partition("What the words under History mean")[0]
        assert "could not be reached" not in each


async def test_a_page_knows_that_a_site_is_left_alone(proxy: Proxy, origin: Origin) -> None:
    """A due feed waits while its host pauses because of any feed there."""
    for path in ("/feed", "/other"):
        origin.publish(path, atom(an_item("a"), complete=True))
        await proxy.whole(origin.url(path))
    proxy.clock.advance(37 * 60)
    origin.fault("/other", Status(503, (("Retry-After", "1800"),)))
    await proxy.get(origin.url("/other"))
    await proxy.settled()
    said = text(await browse(proxy, target(origin.url("/feed"))))
    assert "asked next when a reader asks, in 29 minutes or later" in said


async def test_a_browser_is_led_on_and_a_program_gets_what_it_always_got(
    proxy: Proxy, origin: Origin
) -> None:
    """The page reports the result; programs get the status object and 204."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    quoted = quote(url, safe="")
    await proxy.whole(url)
    origin.forget_requests()
    reply = await submit(proxy, f"/refresh?url={quoted}")
    assert (reply.status, reply.headers["Location"]) == (303, f"./?refreshed=4&url={quoted}")
    await proxy.settled()
    assert origin.counts()["/feed"] == 1
    assert "The publisher was asked: no new entries." in text(
        await browse(proxy, reply.headers["Location"][1:])
    )
    program = await proxy.ask("POST", "/refresh", params={"url": url})
    assert (program.status, json.loads(program.body)["url"]) == (202, url)
    await proxy.settled()
    reply = await submit(proxy, f"/forget?url={quoted}")
    assert (reply.status, reply.headers["Location"]) == (303, f"./?forgotten={quoted}")
    assert await proxy.service.feeds() == []
    said = f"This feed is forgotten, and nothing of it is stored any more: {url}"
    assert said in text(await browse(proxy, reply.headers["Location"][1:]))
    await proxy.whole(url)
    assert said not in text(await browse(proxy, reply.headers["Location"][1:]))  # it is known again
    assert (await proxy.ask("POST", "/forget", params={"url": url})).status == 204
    assert (await proxy.ask("POST", "/forget", params={"url": url})).status == 404
    assert await proxy.service.feeds() == []


async def test_a_feed_continues_another_from_its_page(proxy: Proxy, origin: Origin) -> None:
    """The page links the question, and the form acts (I3)."""
    old, new = origin.url("/old"), origin.url("/new")
    origin.publish("/old", atom(an_item("a", 1)))
    origin.publish("/new", atom(an_item("b", 2)))
    await proxy.whole(old)
    await proxy.whole(new)
    (link,) = [each for each in read(await browse(proxy, target(new))).links if "continue?" in each]
    assert read(await browse(proxy, link[1:])).actions == ["./continue"]
    asked = await browse(proxy, f"{link[1:]}&old={quote(old, safe='')}")
    assert old in text(asked)
    (action,) = read(asked).actions
    done = await submit(proxy, action[1:])
    assert (done.status, done.headers["Location"]) == (303, f"./?continued=1&url={quote(new, safe='')}")
    assert "has 1 entry more from it" in text(await browse(proxy, done.headers["Location"][1:]))
    assert own_ids((await proxy.get(new)).body) == ["b", "a"]


async def test_one_entry_is_removed_from_its_page(proxy: Proxy, origin: Origin) -> None:
    """The page links the question, and the form acts (I2)."""
    origin.publish("/feed", atom(an_item("a", 2), an_item("b", 1)))
    url = origin.url("/feed")
    await proxy.whole(url)
    (link,) = [each for each in read(await browse(proxy, target(url))).links if each.endswith("urn%3Aa")]
    asked = await browse(proxy, link[1:])
    assert "Remove this entry?" in text(asked)
    assert len(own_ids((await proxy.get(url)).body)) == 2
    (action,) = read(asked).actions
    done = await submit(proxy, action[1:])
    assert (done.status, done.headers["Location"]) == (303, f"./?removed=1&url={quote(url, safe='')}")
    assert "The entry is removed." in text(await browse(proxy, done.headers["Location"][1:]))
    assert own_ids((await proxy.get(url)).body) == ["b"]


async def test_entries_are_removed_by_what_identifies_them(proxy: Proxy, origin: Origin) -> None:
    """An id shared by unlike entries removes none (I2, R9)."""
    shared, url = "<guid isPermaLink='false'>N/A</guid>", origin.url("/feed")
    long = f"<guid isPermaLink='false'>{'x' * 9000}</guid>"
    items = [f"<item>{shared}<title>{n}</title><link>https://o.test/{n}</link></item>" for n in "ab"]
    items += [f"<item><title>long</title>{long}</item>", "<item><title>nothing</title></item>"]
    channel = f"<channel><title>F</title>{''.join(items)}</channel>"
    origin.publish("/feed", f"<rss version='2.0'>{channel}</rss>".encode())
    await proxy.whole(url)
    links = [each for each in read(await browse(proxy, target(url))).links if "&entry=" in each]
    assert len(links) == 3
    for link in links:
        (action,) = read(await browse(proxy, link[1:])).actions
        assert (await submit(proxy, action[1:])).status == 303
        await proxy.settled()
    assert "<title>nothing</title>" in (answer := (await proxy.get(url)).body.decode())
    assert answer.count("<item") == 1


async def test_a_question_about_an_entry_needs_its_name(proxy: Proxy, origin: Origin) -> None:
    """A blank name never becomes the question whether to forget the feed (I2)."""
    origin.publish("/feed", atom(an_item("a", 1)))
    url = quote(origin.url("/feed"), safe="")
    await proxy.whole(origin.url("/feed"))
    assert (await browse(proxy, f"/forget?url={url}&entry=+")).status == 400


async def test_of_two_urls_the_one_that_was_typed_can_be_mended(proxy: Proxy, origin: Origin) -> None:
    """The old feed may be the unknown one (I3)."""
    origin.publish("/new", atom(an_item("a", 1)))
    old, new = origin.url("/old"), origin.url("/new")
    await proxy.whole(new)
    reply = await submit(proxy, f"/continue?url={quote(new, safe='')}&old={quote(old, safe='')}")
    assert reply.status == 404
    assert f'value="{old}"' in reply.body.decode()


@pytest.mark.parametrize(
    ("site", "accept", "is_page"),
    [("same-origin", "text/html", True), ("same-origin", "*/*", False), ("cross-site", "text/html", False)],
)
async def test_a_script_of_a_page_of_ours_gets_the_page(
    proxy: Proxy, site: str, accept: str, is_page: bool
) -> None:
    """A script that does not name HTML, or of another site, is a program."""
    headers = {"Accept": accept, "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": site}
    reply = await proxy.ask("GET", "/", headers=headers)
    assert reply.headers["Content-Type"].startswith("text/html" if is_page else "text/plain")


@pytest.mark.parametrize(
    ("before", "changes", "said"),
    [
        ("", {}, ""),
        ("x", {}, ""),
        ("4", {}, "The publisher was asked: no new entries."),
        ("3", {}, "The publisher was asked: 1 entry more than before."),
        ("1006", {}, "The publisher was asked: 1,002 entries fewer than before."),
        ("4", {"refreshing": True}, "The publisher is being asked now; this page will show the outcome."),
        ("4", {"failure": {"reason": "timeout"}}, "The publisher was asked, and did not send the feed"),
        ("4", {"failure": {"reason": "host-backoff"}}, "The publisher was not asked: its site gets no"),
    ],
)
def test_what_came_of_a_refresh_is_told(before: str, changes: dict[str, object], said: str) -> None:
    """The page compares the number of entries before; without a refresh it says nothing."""
    status = {"entries": 4, "refreshing": False, "failure": None, **changes}
    told = pages.describe_refresh(before, status)
    assert told.startswith(said)
    assert bool(told) is bool(said)


async def test_before_a_feed_is_forgotten_a_page_says_what_is_lost(proxy: Proxy, origin: Origin) -> None:
    """Looking forgets nothing; an unknown feed cannot be forgotten."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await browse(proxy, f"/forget?url={quote(url, safe='')}")
    assert reply.status == 200
    assert "A feed" in text(reply)
    assert "Everything stored of this feed is deleted: 4 entries out of 2 documents." in text(reply)
    assert read(reply).actions == [f"./forget?url={quote(url, safe='')}", "./forget"]
    assert f"./?url={quote(url)}" in read(reply).links
    assert len(await proxy.service.feeds()) == 1
    assert (await browse(proxy, f"/forget?url={quote(origin.url('/none'), safe='')}")).status == 404


@pytest.mark.parametrize(
    ("fields", "is_refused"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:1"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({}, True),
        ({"Referer": "http://localhost:8080/"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Origin": "http://localhost:8080"}, False),
    ],
)
async def test_a_form_of_another_site_does_nothing_for_who_is_logged_in(
    start: StartProxy, origin: Origin, fields: dict[str, str], is_refused: bool
) -> None:
    """The browser may send the cookie along."""
    publish_chain(origin, archives=1)
    headers = {"Host": "localhost:8080", "Accept": BROWSER["Accept"], **fields}
    target = f"?url={quote(origin.url('/feed'), safe='')}"
    proxy = await start(server={"access_token": TOKEN})
    options = {"headers": headers, "allow_redirects": False}
    assert (await proxy.ask("POST", f"/forget{target}", **options)).status == (
        403 if is_refused and fields and "Referer" not in fields else 401
    )
    await submit(proxy, "/login", token=TOKEN)
    await proxy.whole(origin.url("/feed"))
    origin.forget_requests()
    refreshed = await proxy.ask("POST", f"/refresh{target}", **options)
    await proxy.settled()
    assert len(origin.requests) == (0 if is_refused else 1)
    forgotten = await proxy.ask("POST", f"/forget{target}", **options)
    assert len(await proxy.service.feeds()) == is_refused
    assert {refreshed.status, forgotten.status} == ({403} if is_refused else {303})


async def test_a_browser_that_does_not_say_where_a_form_stands_proves_it(
    start: StartProxy, origin: Origin
) -> None:
    """Text browsers send neither Sec-Fetch-Site nor Origin: their forms bear a secret."""
    publish_chain(origin, archives=1)
    proxy = await start(server={"access_token": TOKEN})
    await submit(proxy, "/login", token=TOKEN)
    await proxy.whole(origin.url("/feed"))
    asked = await browse(proxy, f"/forget?url={quote(origin.url('/feed'), safe='')}")
    (action,) = [each for each in read(asked).actions if "forget?" in each]
    options = {"headers": {"Accept": "text/html, text/plain"}, "allow_redirects": False}
    assert (await proxy.ask("POST", action[1:].replace("proof=", "proof=A"), **options)).status == 403
    assert (await proxy.ask("POST", action[1:], **options)).status == 303
    assert await proxy.service.feeds() == []


async def test_links_of_other_schemes_are_no_links(proxy: Proxy, origin: Origin) -> None:
    """A javascript: URL of an entry cannot be clicked."""
    body = atom(an_item("a")).replace(b'href="http://site.test/a"', b'href="javascript:alert(1)"')
    origin.publish("/feed", body)
    reply = await shown(proxy, origin.url("/feed"))
    assert [link for link in read(reply).links if link.startswith("javascript")] == []


REPLAYED = re.compile(r'id="replayed"[^>]* value="([^"]*)"')


def replayed(reply: Reply) -> dict[str, list[str]]:
    """Return the parameters of the replay address on a feed's page."""
    (address,) = REPLAYED.findall(reply.body.decode())
    return parse_qs(urlsplit(unescape(address)).query)


@pytest.mark.parametrize(
    ("chosen", "expected", "words"),
    [
        (
            {"replay": "2/day", "start": "2026-11-24T06:00", "offset": "+01:00", "mon": "1", "thu": "1"},
            {"replay": "2/day", "from": "2026-11-24T06:00:00+01:00", "on": "mon,thu"},
            "20 entries, 2 each Monday and Thursday: until 28 December 2026",
        ),
        (
            {"replay": "1/week", "start": "2026-11-24T06:00:30", "offset": "-05:30", "original": "off"},
            {"replay": "1/week", "from": "2026-11-24T06:00:30-05:30", "original": "off"},
            "20 entries, one a week: until March 2027",
        ),
        (
            {"replay": "7/day", "from": "2026-11-24T06:00:00Z", "on": "sun"},
            {"replay": "7/day", "from": "2026-11-24T06:00:00Z", "on": "sun"},
            "20 entries, 7 each Sunday: until 13 December 2026",
        ),
    ],
)
async def test_the_form_of_a_replay_makes_its_address(
    proxy: Proxy, origin: Origin, chosen: dict[str, str], expected: dict[str, str], words: str
) -> None:
    """The form's fields, or those of an opened address, make the new one (P8)."""
    origin.publish("/feed", atom(*(an_item(f"e{n}", n) for n in range(20, 0, -1)), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await browse(proxy, f"/?{urlencode({**chosen, 'url': url})}")
    assert reply.status == 200
    found = replayed(reply)
    assert found == {"url": [url], **{name: [value] for name, value in expected.items()}}
    assert words in text(reply)
    page = reply.body.decode()
    assert '<details class="feed-more" id="replay" open>' in page
    assert f'<option value="{chosen["replay"]}" selected>' in page
    on = expected.get("on", "").split(",") if "on" in expected else []
    assert re.findall(r'name="(\w{3})" value="1" checked', page) == on
    assert ('value="off" checked' in page) is ("original" in expected)
    answer = await proxy.get(url, **{name: value for name, value in expected.items() if name != "url"})  # type: ignore[arg-type]
    assert answer.status == 200
    assert ";released=" in answer.reconstruction


async def test_a_replay_that_nobody_chose_begins_at_the_last_six(start: StartProxy, origin: Origin) -> None:
    """The pace is one entry a day; the address bears the token (P8)."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    proxy = await start(server={"access_token": TOKEN})
    login = {"Authorization": f"Bearer {TOKEN}"}
    await proxy.get(url, headers=login)
    reply = await browse(proxy, f"/?url={quote(url, safe='')}", headers=login)
    found = replayed(reply)
    assert found["replay"] == ["1/day"]
    assert found["token"] == [TOKEN]
    begins = datetime.fromisoformat(found["from"][0])
    assert (begins.hour, begins.minute) == (6, 0)
    assert 0 <= proxy.clock() - begins.timestamp() <= 25 * 3600
    assert 'id="replay">' in reply.body.decode()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"replay": "3/week", "mon": "1"}, "Days of the week need a pace"),
        ({"replay": "0/day"}, "Expected replay as N/day or N/week, N from 1 to 50"),
        ({"replay": "1/day", "start": "2026-11-24T06:00", "offset": "CET"}, "Expected from as an RFC 3339"),
        ({"replay": "1/week", "from": "9999-12-30T00:00:00Z"}, "Expected a pace that ends before the year"),
        ({"replay": "1/day", "original": "1"}, "Expected original as on or off"),
        ({"replay": '"><script>'}, "Expected replay as"),
    ],
)
async def test_a_replay_that_cannot_be_is_told_on_the_page(
    proxy: Proxy, origin: Origin, chosen: dict[str, str], expected: str
) -> None:
    """The rest of the page is there, without an address that would fail."""
    origin.publish("/feed", atom(*(an_item(f"e{n}", n) for n in range(20, 0, -1)), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await browse(proxy, f"/?{urlencode({**chosen, 'url': url})}")
    assert reply.status == 400
    assert expected in text(reply)
    assert not REPLAYED.search(reply.body.decode())
    assert "Refresh" in text(reply)
    assert b'"><script>' not in reply.body


@pytest.mark.parametrize(
    ("public_url", "has_services", "has_code", "why"),
    [
        ("", False, False, "this machine's own address"),
        ("http://192.168.1.5:8080", False, True, "an address in your network"),
        ("https://feeds.example.org", True, True, ""),
    ],
)
async def test_a_feed_is_added_where_its_reader_reaches_the_proxy(
    start: StartProxy, origin: Origin, public_url: str, has_services: bool, has_code: bool, why: str
) -> None:
    """Services and phones get a link or code only for an address that they reach; else the page says why."""
    proxy = await start(server={"public_url": public_url})
    origin.publish("/feed", atom(an_item("a", 1)))
    await proxy.get(origin.url("/feed"))
    reply = await browse(proxy, f"/?url={quote(origin.url('/feed'), safe='')}")
    base = public_url or str(proxy.client.make_url("/")).rstrip("/")
    address = f"{base}/feed?url={quote(origin.url('/feed'), safe='')}"
    links = read(reply).links
    for reader, limit in (
        ("feedly.com/i/subscription/feed%2F", "&limit=5000"),
        ("www.newsblur.com/?url=", ""),
    ):
        url = f"https://{reader}{quote(address + limit, safe='')}"
        assert (url in links) is has_services
    assert (str(draw_code(address)) in reply.body.decode()) is has_code
    assert b"data-adds=" in reply.body
    assert why in text(reply)
    assert "Take it as Atom" not in text(reply)


async def test_a_json_feed_can_be_had_as_atom(proxy: Proxy, origin: Origin) -> None:
    """F1: the switch of the page changes every address on it, and leads back."""
    origin.publish("/feed", json_feed(an_item("a", 1)), content_type="application/feed+json")
    url = quote(origin.url("/feed"), safe="")
    await proxy.get(origin.url("/feed"))
    plain = await browse(proxy, f"/?url={url}")
    (switch,) = [each for each in read(plain).links if "as=atom&url=" in each]
    shown = re.findall(r'<input [^>]*value="([^"]*/feed\?url=[^"]*)"', plain.body.decode())
    assert not any("as=atom" in each for each in shown[:1])
    reply = await browse(proxy, "/" + switch.removeprefix("./").partition("#")[0])
    shown = re.findall(r'<input [^>]*value="([^"]*/feed\?url=[^"]*)"', reply.body.decode())
    assert len(shown) > 5
    assert all("as=atom" in each for each in shown)
    assert "Take it as JSON Feed" in text(reply)
    assert b'<input type="hidden" name="as" value="atom">' in reply.body
