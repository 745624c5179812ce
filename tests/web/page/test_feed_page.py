"""The page of one feed: what a person is told of it."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.answers import Status
from tests.feeds import Item, an_item, atom, publish_chain, rss
from tests.origin import Origin
from tests.publishers.wordpress import WordPress
from tests.running import Proxy, Reply, StartProxy
from tests.web.page.browsing import browse, read, submit, text
from wholefeed.core.model import State
from wholefeed.core.readers import READERS
from wholefeed.core.words import STALE, STATES
from wholefeed.web import pages

MONTH = 24 * 30
ENTRY = "<entry><author><name>Ann \u202e A</name></author>"
TOKEN = "a token for readers"


def target(url: str) -> str:
    return f"/?url={quote(url, safe='')}"


async def shown(proxy: Proxy, url: str) -> Reply:
    """The page of a feed that is not loading any more."""
    await proxy.whole(url)
    reply = await browse(proxy, target(url))
    assert reply.status == 200
    return reply


async def test_what_turns_the_text_around_it_is_on_no_page(proxy: Proxy, origin: Origin) -> None:
    """Titles of strangers: what overrides the direction, and the names of authors and choices alike."""
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
    """Title, state in words, counts, the address for readers, the newest and the oldest entries."""
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


async def test_links_and_forms_lead_to_all_that_can_be_done(proxy: Proxy, origin: Origin) -> None:
    """Refresh, full refresh and forget do what they say, from the page as it is."""
    publish_chain(origin, archives=1)
    url = origin.url("/feed")
    reply = await shown(proxy, url)
    links, actions = read(reply).links, read(reply).actions
    for path in ("feed", "status", "view"):
        assert f"./{path}?url={quote(url)}" in links
    refresh, full, forget = (each.removeprefix(".") for each in actions)
    before = len(origin.requests)
    for action in (refresh, full):
        assert (await submit(proxy, action)).status == 303
        await proxy.settled()
    assert origin.counts()["/archive/1"] >= 2
    assert len(origin.requests) >= before + 3
    assert (await submit(proxy, forget)).status == 303
    assert not await proxy.service.is_known(url)


async def test_what_is_missing_is_told_with_its_reason_and_its_place_in_time(
    proxy: Proxy, origin: Origin
) -> None:
    """R16: which document, why, of when its entries are, how often it was tried, and when again."""
    origin.publish("/feed", atom(an_item("new", 21 * MONTH), prev_archive="/archive/3"))
    third = atom(an_item("newer", 20 * MONTH), archive=True, prev_archive="/archive/2")
    origin.publish("/archive/3", third)
    origin.publish("/archive/1", atom(an_item("old", 0), archive=True, next_archive="/archive/2"))
    said = text(await shown(proxy, origin.url("/feed")))
    assert STATES[State.PARTIAL].meaning in said
    assert origin.url("/archive/2") in said
    assert "answered with an error instead of the document (status 404)" in said
    assert "Its entries are from between November 2023 and July 2025." in said
    assert "Tried once, again in 59 minutes." in said
    assert "Months without entries: December 2023 to June 2025 (19 months)." in said


async def test_where_nothing_older_is_known_it_says_so(proxy: Proxy, origin: Origin) -> None:
    """The end of what is known is where the missing document's entries begin."""
    origin.publish("/feed", atom(an_item("new", 0), prev_archive="/gone"))
    said = text(await shown(proxy, origin.url("/feed")))
    assert "Documents are missing here: before November 2023." in said
    assert "one document could not be had, and what is older can only be found through it" in said


async def test_a_remembered_feed_says_what_that_means(proxy: Proxy, origin: Origin) -> None:
    """R7: only the publisher has more; what is stored is told since when."""
    origin.publish("/feed", rss(an_item("a", 1)))
    said = text(await shown(proxy, origin.url("/feed")))
    assert STATES[State.REMEMBERED].meaning in said
    assert STATES[State.REMEMBERED].advice in said
    assert "Seen by this proxy, in this format, since" in said


async def test_a_collected_feed_says_how_it_was_found(proxy: Proxy, origin: Origin) -> None:
    """R31: nobody promises that it is all; whose pages they are, and how many."""
    blog = WordPress(origin, posts=60)
    said = text(await shown(proxy, blog.url))
    assert STATES[State.COLLECTED].meaning in said
    assert "Found as pages of WordPress" in said
    assert "60 entries of 60 that the site claims to have" in said


async def test_a_stale_feed_says_why(proxy: Proxy, origin: Origin) -> None:
    """Row 75: beside what it is, that its publisher does not answer, why, and when it is asked again."""
    publish_chain(origin, archives=1)
    await proxy.whole(origin.url("/feed"))
    origin.fault("/feed", Status(503))
    proxy.clock.advance(86_400)
    said = text(await browse(proxy, target(origin.url("/feed"))))
    assert STATES[State.COMPLETE].meaning in said
    assert STALE.meaning in said
    assert "(publisher-status, status 503); tried once" in said


async def test_a_feed_of_one_entry_and_one_without_dates_have_pages(proxy: Proxy, origin: Origin) -> None:
    """One bar and no oldest; no chart, and why there is none."""
    origin.publish("/one", atom(an_item("only"), complete=True))
    origin.publish("/undated", rss(an_item("a", None), an_item("b", None)))
    origin.publish("/none", atom(complete=True))
    one = await shown(proxy, origin.url("/one"))
    assert "All dated entries are of November 2023." in text(one)
    assert "The oldest" not in text(one)
    undated = await shown(proxy, origin.url("/undated"))
    assert "None of its 2 entries bears a date" in text(undated)
    assert b"<figure" not in undated.body
    assert "It has no entries." in text(await shown(proxy, origin.url("/none")))


async def test_the_chart_and_its_table_say_the_same(proxy: Proxy, origin: Origin) -> None:
    """Each bar has a row; months without entries are told in words, and undated entries apart."""
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
    """Nobody waits for 8 s: the page says that it is being asked, and looks again with script and without."""
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
    """What has come can be seen already; the page follows the rest, with script and without."""
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
    """Titles, authors, links and URLs cannot add markup; long ones are cut; nothing stands in line."""
    hostile = "<script>alert(1)</script>"
    body = rss(Item("&lt;script&gt;" + "W" * 3000, 5, "x")).replace(
        b"<title>A channel</title>",
        f"<title><![CDATA[{hostile}&lt;img src=x&gt;{'Q' * 3000}]]></title>".encode(),
    )
    path = f"/feed?q=%22%3E%3Cscript%3E{'a' * 1900}"
    origin.publish(path, body)
    reply = await shown(proxy, origin.url(path))
    found = inputs(reply)
    assert found.tags.count("script") == 2
    assert "img" not in found.tags or found.tags.count("img") == 1  # the proxy's own icon
    assert not {"style", "onerror", "onclick", "onload"} & found.attributes
    assert "Q" * 300 not in reply.body.decode()
    assert "W" * 300 not in reply.body.decode()
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]


async def test_links_of_other_schemes_are_no_links(proxy: Proxy, origin: Origin) -> None:
    """A javascript: URL of an entry cannot be clicked."""
    body = atom(an_item("a")).replace(b'href="http://site.test/a"', b'href="javascript:alert(1)"')
    origin.publish("/feed", body)
    reply = await shown(proxy, origin.url("/feed"))
    assert [link for link in read(reply).links if link.startswith("javascript")] == []


async def test_readers_with_needs_of_their_own_get_addresses_of_their_own(
    proxy: Proxy, origin: Origin
) -> None:
    """Each row of the table is there; what is added to the URL of one that has a cap is its cap."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    reply = await shown(proxy, origin.url("/feed"))
    said = text(reply)
    addresses = [value for name, value in inputs(reply).values.items() if name.startswith("for-")]
    queries = [parse_qs(urlsplit(each).query) for each in addresses]
    capped = [str(each.answer_bytes) for each in READERS if each.answer_bytes is not None]
    assert [query["answer_bytes"][0] for query in queries if "answer_bytes" in query] == capped
    assert sum("since" in query for query in queries) == sum(each.starts_now for each in READERS)
    for each in READERS:
        assert each.name in said


async def test_the_address_holds_the_token_for_who_knows_it(start: StartProxy, origin: Origin) -> None:
    """What is copied works in a reader; without the token there is no page."""
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


async def test_an_error_is_told_with_what_to_type(proxy: Proxy, origin: Origin) -> None:
    """What cannot be had has the status of the error, its words, and the form to try again."""
    reply = await browse(proxy, target(origin.url("/nothing")))
    assert reply.status == 404
    assert "Check the spelling of the address" in text(reply)
    assert 'name="url"' in reply.body.decode()


async def test_of_many_missing_documents_the_page_lists_some(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of five thousand lines helps nobody; how many more there are is told, and where."""
    monkeypatch.setattr(pages, "MOST_MISSING", 0)
    origin.publish("/feed", atom(an_item("a"), prev_archive="/gone"))
    said = text(await shown(proxy, origin.url("/feed")))
    assert "/gone" not in said
    assert "1 more: see everything that is known" in said


async def test_a_publisher_that_takes_too_long_is_not_waited_for_any_more(
    start: StartProxy, origin: Origin
) -> None:
    """Once the publisher was given up it is an error with advice, and no page that looks again for ever."""
    publish_chain(origin, archives=1)
    proxy = await start(fetch={"read_timeout_seconds": 0.1})
    with origin.held("/feed"):
        reply = await browse(proxy, target(origin.url("/feed")))
        while reply.status == 200:
            assert "Asking the publisher" in text(reply)
            reply = await browse(proxy, target(origin.url("/feed")))
    assert reply.status == 504
    assert b'role="alert"' in reply.body
