"""GET /view: a feed for people, page by page, in all formats."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any
from urllib.parse import quote, urljoin

import pytest

from tests.answers import Silence, Status
from tests.feeds import an_item, atom, json_feed, publish_chain, rdf, rss
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.patching import set_constant
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, Reply, StartProxy
from tests.web.browsing import browse, text
from wholefeed.core.model import State
from wholefeed.core.words import STATES
from wholefeed.server.clients import sign
from wholefeed.web.view import length_in_words


def quoted(text: str) -> str:
    return quote(text, safe="")


MAKERS = [atom, rss, rdf, json_feed]


async def view(proxy: Proxy, url: str, *, query: str = "") -> Reply:
    """Return the page of a known feed, after loading."""
    await proxy.whole(url)
    return await browse(proxy, f"/view?url={quoted(url)}{query}")


def titles(reply: Reply) -> list[str]:
    return re.findall(r'<h2 id="t-[-\w]+" dir="auto">(?:<a [^>]*>)?(.*?)(?:</a>)?</h2>', reply.body.decode())


def page_links(reply: Reply) -> dict[str, str]:
    """Return the targets of the page's own links, by text."""
    found = re.findall(
        r'<a(?: rel="\w+")? href="([^"]*)"(?: [a-z-]+="[a-z.]+")?>([\w ,]+)</a>', reply.body.decode()
    )
    return {words: target.replace("&amp;", "&") for target, words in found}


@pytest.mark.parametrize("make", MAKERS)
async def test_a_feed_is_shown_with_what_it_says(proxy: Proxy, origin: Origin, make: Any) -> None:
    """State in words, entries newest first, and links to its other forms."""
    origin.publish("/feed", make(an_item("a", 2, "one &amp; two"), an_item("b", 1)))
    url = origin.url("/feed")
    reply = await view(proxy, url)
    assert reply.status == 200
    assert titles(reply) == ["a", "b"]
    said = text(reply)
    assert f"Remembered 2 entries {STATES[State.REMEMBERED].meaning} More about" in said
    assert "one & two" in said or "one &amp; two" in said  # JSON has no references
    links = page_links(reply)
    assert links["More about this feed"] == f"./?url={quoted(url)}"
    assert links["Download the feed"] == f"./feed?url={quoted(url)}"
    assert f'download="feed.{"json" if make is json_feed else "xml"}"' in reply.body.decode()
    as_atom = await browse(proxy, f"/view?as=atom&url={quoted(url)}")
    assert '&amp;as=atom" download="feed.xml"' in as_atom.body.decode()


async def test_listed_entries_are_shown_among_all(start: StartProxy, origin: Origin) -> None:
    """People see them under any URL, and get the feed that it names (H7)."""
    proxy = await start(history=LISTS)
    blog = ArchivePage(origin, posts=30)
    blog.publish()
    url = origin.url("/feed")
    await proxy.get(url)
    await looked(proxy)
    reply = await view(proxy, url, query="&listed=off")
    assert titles(reply) == [escape(each.title) for each in blog.newest_first]
    assert page_links(reply)["Download the feed"] == f"./feed?url={quoted(url)}&listed=off"
    articles = reply.body.decode().split("<article")
    listed = [each for each in articles if "listed on the publisher&#39;s pages" in each]
    assert 10 <= len(listed) < 30, "the feed's own entries are not"
    assert not [each for each in listed if "UTC" in each], "a list has days"


async def test_an_entry_says_where_it_comes_from(proxy: Proxy, origin: Origin) -> None:
    """Where that is not the publisher's feed itself (R7, I1)."""
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1)))
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2)))
    await proxy.refreshed(url)
    await proxy.ask("POST", "/import", params={"url": url}, data=atom(an_item("0", 0), an_item("b", 2)))
    await proxy.settled()
    reply = await browse(proxy, f"/view?url={quoted(url)}")
    found = re.findall(
        r'dir="auto">(\w+)</h2>.*?(?:<span class="source">([\w ]+)</span>)?</span></summary>',
        reply.body.decode(),
    )
    assert found == [("c", ""), ("b", ""), ("a", "remembered by this proxy"), ("0", "imported")]


DATED = {
    "2019-03-03": "3 March 2019",
    "2019-03": "March 2019",
    "2019": "2019",
    "2019-03-03T00:00:00+09:00": "3 March 2019",
    "2019-03-03T09:30:10+09:00": "3 March 2019, 00:30 UTC",
}


@pytest.mark.parametrize("make", [atom, rss, json_feed])
async def test_a_date_has_no_time_that_nobody_wrote(proxy: Proxy, origin: Origin, make: Any) -> None:
    """A day, a month or a year stays one; the browser's script gets instants alone for its time zone."""
    if make is json_feed:
        items = [{"id": f"urn:{n}", "date_published": at} for n, at in enumerate(DATED)]
        body = json.dumps(
            {"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": items}
        ).encode()
    else:
        name, head, id_name, date = (
            ("entry", "feed", "id", "published") if make is atom else ("item", "channel", "guid", "pubDate")
        )
        entries = [
            f"<{name}><{id_name}>urn:{n}</{id_name}><{date}>{at}</{date}></{name}>"
            for n, at in enumerate(DATED)
        ]
        body = make().replace(f"</{head}>".encode(), f"{''.join(entries)}</{head}>".encode())
    origin.publish("/feed", body)
    reply = await view(proxy, origin.url("/feed"))
    times = re.findall(r'<time datetime="([^"]+)"( data-shown="minute")?>([^<]+)</time>', reply.body.decode())
    assert sorted(said for _, _, said in times) == sorted(DATED.values())
    assert [machine for machine, is_shown, _ in times if is_shown] == ["2019-03-03T00:30:10Z"]
    page = await browse(proxy, f"/?url={quoted(origin.url('/feed'))}")
    assert '<time datetime="2019-03">March 2019</time>' in page.body.decode()


async def test_entries_unfold_or_are_whole(proxy: Proxy, origin: Origin) -> None:
    """Without a script, too. An entry without a text is a link, and there is nothing to unfold."""
    bare = "<entry><id>urn:l</id><title>l</title><link href='http://s.test/l'/></entry>"
    origin.publish("/feed", atom(an_item("a", 1), an_item("b"), extra=bare))
    url = origin.url("/feed")
    folded = await view(proxy, url)
    assert folded.body.count(b'<details class="fold">') == 2
    assert b'<a href="http://s.test/l" rel="noopener noreferrer nofollow">l</a></h2>' in folded.body
    whole = await browse(proxy, urljoin("/view", page_links(folded)["Whole entries"]))
    assert whole.body.count(b'<details class="fold" open>') == 2
    assert page_links(whole)["Titles only"] == f"./view?url={quoted(url)}"


async def test_each_entry_has_a_name_of_its_own(proxy: Proxy, origin: Origin) -> None:
    """It stays as others come; entries that nothing tells apart are numbered."""
    nameless = "".join(f"<entry><title>n</title><content>{n}</content></entry>" for n in range(2))
    origin.publish("/feed", atom(an_item("a", 1), extra=nameless))
    before = re.findall(
        '<article class="entry" id="([^"]+)"', (await view(proxy, origin.url("/feed"))).body.decode()
    )
    assert len(set(before)) == 3
    assert len({each.partition("-")[0] for each in before}) == 2
    origin.publish("/feed", atom(an_item("b", 2), an_item("a", 1), extra=nameless))
    await proxy.refreshed(origin.url("/feed"))
    reply = await browse(proxy, f"/view?url={quoted(origin.url('/feed'))}")
    assert set(before) < set(re.findall('<article class="entry" id="([^"]+)"', reply.body.decode()))


async def test_an_entry_without_a_title_shows_how_it_begins(proxy: Proxy, origin: Origin) -> None:
    """A list of a microblog's posts says something."""
    post = (
        "<entry><id>urn:p</id><content type='html'>&lt;p>Fog over&lt;/p>&lt;p>the &lt;b>sea&lt;/b> "
        + "x" * 300
        + "</content></entry><entry/>"
    )
    origin.publish("/feed", atom(extra=post))
    found = titles(await view(proxy, origin.url("/feed")))
    assert found[0].startswith("Fog over the sea xxx")
    assert (len(found[0]), found[1]) == (101, "(untitled)")


async def test_dates_authors_links_and_files_are_told(proxy: Proxy, origin: Origin) -> None:
    """Each is as published; links and files tell their target nothing of this page."""
    entry = (
        "<entry><id>urn:a</id><title>A</title><published>2023-11-14T22:13:20Z</published>"
        "<updated>2023-11-20T00:00:00Z</updated><author><name>Ann</name></author><link href='http://s.test/a'/>"
        "<link rel='enclosure' href='http://s.test/a%20b.mp3' type='audio/mpeg' length='12345678'/></entry>"
        "</feed>"
    )
    origin.publish("/feed", atom().replace(b"</feed>", entry.encode()))
    reply = await view(proxy, origin.url("/feed"))
    said = text(reply)
    assert "14 November 2023, 22:13 UTC , updated 20 November 2023 · Ann" in said
    assert "a b.mp3 (audio/mpeg, 12 MB)" in said
    body = reply.body.decode()
    for target in ("http://s.test/a", "http://s.test/a%20b.mp3"):
        assert f'<a href="{target}" rel="noopener noreferrer nofollow">' in body


@pytest.mark.parametrize("is_json", [False, True])
async def test_an_episode_has_its_artwork_and_its_length(proxy: Proxy, origin: Origin, is_json: bool) -> None:
    """The artwork is a picture only where pictures are asked for."""
    art, sound = "http://s.test/cover.jpg", "http://s.test/a.mp3"
    if is_json:
        file = {"url": sound, "mime_type": "audio/mpeg", "duration_in_seconds": 3795}
        item = {"id": "a", "image": art, "attachments": [file], "date_published": "2024-06-10T06:00:00Z"}
        head = {"version": "https://jsonfeed.org/version/1.1", "title": "t"}
        body = json.dumps({**head, "items": [item]}).encode()
    else:
        item_text = (
            "<item><guid>a</guid><pubDate>Mon, 10 Jun 2024 06:00:00 GMT</pubDate>"
            f"<enclosure url='{sound}' type='audio/mpeg' length='1'/><itunes:image href='{art}'/>"
            "<itunes:duration>1:03:15</itunes:duration></item></channel>"
        )
        space = b'<rss xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
        body = rss().replace(b"<rss", space).replace(b"</channel>", item_text.encode())
    origin.publish("/feed", body)
    reply = await view(proxy, origin.url("/feed"))
    assert "10 June 2024, 06:00 UTC · 1 h 3 min" in text(reply)
    assert (
        f'<a href="{art}" rel="noopener noreferrer nofollow"><bdi>cover.jpg</bdi></a>' in reply.body.decode()
    )
    assert b'<img src="http' not in reply.body
    with_media = await view(proxy, origin.url("/feed"), query="&media=1")
    assert f'<img src="{art}" alt="cover.jpg"' in with_media.body.decode()
    assert f'<audio src="{sound}"' in with_media.body.decode()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(None, ""), (0.4, "1 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (3795, "1 h 3 min")],
)
def test_a_length_is_told_in_its_two_largest_units(seconds: float | None, said: str) -> None:
    """People speak so of episodes."""
    assert length_in_words(seconds) == said


async def test_a_long_feed_has_pages(proxy: Proxy, origin: Origin) -> None:
    """A page has fifty entries; newest, oldest and adjacent pages are one step away."""
    names = [f"e{number}" for number in range(120, 0, -1)]
    origin.publish(
        "/feed", atom(*(an_item(name, number) for number, name in zip(range(120, 0, -1), names, strict=True)))
    )
    url = origin.url("/feed")
    first = await view(proxy, url)
    assert titles(first) == names[:50]
    assert {"Older", "Oldest"} <= page_links(first).keys()
    assert not {"Newer", "Newest"} & page_links(first).keys()
    second = await browse(proxy, urljoin("/view", page_links(first)["Older"]))
    assert titles(second) == names[50:100]
    assert page_links(second)["Newest"] == f"./view?url={quoted(url)}"
    last = await view(proxy, url, query="&page=3")
    assert titles(last) == names[100:]
    assert not {"Older", "Oldest"} & page_links(last).keys()
    assert page_links(last)["Newer"] == f"./view?url={quoted(url)}&page=2"


@pytest.mark.parametrize("number", ["0", "x", "4", "9" * 30])
async def test_a_page_that_is_none_is_told_in_words(proxy: Proxy, origin: Origin, number: str) -> None:
    """404, with the requested number and the number of pages."""
    origin.publish("/feed", atom(an_item("a")))
    reply = await view(proxy, origin.url("/feed"), query=f"&page={number}")
    assert reply.status == 404
    said = text(reply)
    assert "This feed has no such page." in said
    assert f"expected page 1, which is all, got '{number}'" in said
    assert "web address" not in said


async def test_a_page_can_be_typed(proxy: Proxy, origin: Origin) -> None:
    """docs/design.md#the-interface: text behind an unencoded URL belongs to it, options apart."""
    origin.publish("/feed?a=1&b=2", atom(an_item("a")))
    reply = await proxy.raw(
        f"GET /view?url={origin.url('/feed')}?a=1&b=2&media=1&wait=8 HTTP/1.1\r\nHost: localhost\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    assert reply.startswith(b"HTTP/1.1 200 ")
    assert b"media-src https: http:" in reply
    assert b">a</h2>" in reply


async def test_nothing_is_loaded_from_elsewhere_unless_it_is_asked_for(proxy: Proxy, origin: Origin) -> None:
    """The page's policy forbids it too, for anything the sanitiser leaves."""
    content = "&lt;img src='i.png' alt='A cat'>&lt;script>alert(1)&lt;/script>"
    entry = (
        f"<entry><id>urn:a</id><link rel='enclosure' type='audio/mpeg' href='a.mp3'/>"
        f"<content type='html' xml:base='http://s.test/x/'>{content}</content></entry></feed>"
    )
    origin.publish("/feed", atom().replace(b"</feed>", entry.encode()))
    url = origin.url("/feed")
    without = await view(proxy, url)
    policy = without.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http:" not in policy
    assert (
        b'<a href="http://s.test/x/i.png" rel="noopener noreferrer nofollow">[Image: A cat]</a>'
        in without.body
    )
    assert not re.search(rb"<(img|audio|video)\b", without.body.partition(b"<article")[2])
    with_media = await browse(proxy, urljoin("/view", page_links(without)["With pictures and sound"]))
    assert (
        "img-src 'self' data: https: http:; media-src https: http:"
        in with_media.headers["Content-Security-Policy"]
    )
    assert b'<img src="http://s.test/x/i.png" alt="A cat"' in with_media.body
    assert f'<audio src="{origin.url("/a.mp3")}" controls preload="none"'.encode() in with_media.body
    for reply in (without, with_media):
        assert b"alert(1)" not in reply.body
        assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.fault("97")
@pytest.mark.parametrize(
    "own",
    [
        "http://localhost:8080",
        "https://LOCALHOST:8080",
        "http://feeds.test/below",
        "http://%66eeds.test/./below",
    ],
)
async def test_media_at_the_proxy_s_own_urls_are_left_out(
    start: StartProxy, origin: Origin, own: str
) -> None:
    """docs/faults.md row 97: a picture there would add a feed in the reader's session."""
    target = f"{own}/view?url=http%3A%2F%2Fs.test%2F"
    content = (
        f"<img src='{target}' alt='A cat'><audio src='{target}'></audio>"
        f"<video><source src='{target}'></video>"
        "<img src='http://s.test/i.png'>"
    )
    entry = (
        f"<entry><id>urn:a</id><link rel='enclosure' type='image/png' href='{target}'/>"
        f"<content type='html'>{content.replace('<', '&lt;')}</content></entry></feed>"
    )
    origin.publish("/feed", atom().replace(b"</feed>", entry.encode()))
    proxy = await start(server={"public_url": "https://feeds.test/below"})
    await proxy.whole(origin.url("/feed"))
    asked = f"/below/view?url={quoted(origin.url('/feed'))}&media=1"
    reply = await browse(proxy, asked, headers={"Host": "localhost:8080"})
    shown = reply.body.decode().partition("<article")[2]
    assert re.findall(r' src="([^"]*)"', shown) == ["http://s.test/i.png"]
    assert "[Image: A cat]" in shown


HOSTILE_TITLES = [
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raise %}",
    "\u202etxet",
]


@pytest.mark.parametrize("make", [atom, rss, json_feed])
@pytest.mark.parametrize("title", HOSTILE_TITLES)
async def test_titles_names_and_files_are_text(proxy: Proxy, origin: Origin, make: Any, title: str) -> None:
    """Markup in them is shown or left out, and never becomes the page's own."""
    if make is json_feed:
        item = {"id": "a", "title": title, "url": "javascript:alert(1)", "authors": [{"name": title}]}
        item["attachments"] = [{"url": f"http://s.test/{title}", "mime_type": title}]
        body = json.dumps(
            {"version": "https://jsonfeed.org/version/1.1", "title": title, "items": [item]}
        ).encode()
    else:
        name, head = ("entry", "feed") if make is atom else ("item", "channel")
        escaped = title.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
        entry = f"<{name}><title>{escaped}</title><author><name>{escaped}</name></author></{name}></{head}>"
        body = make(an_item("b")).replace(f"</{head}>".encode(), entry.encode())
    origin.publish("/feed", body)
    reply = await view(proxy, origin.url("/feed"))
    assert reply.status == 200
    found = reply.body.decode()
    assert not re.search("<script>|<img src=x|\u202e", found)
    assert "javascript:" not in found
    assert found.count("<script") == 2  # the page's own
    assert found.count("</main>") == 1


async def test_huge_entries_make_no_huge_page(proxy: Proxy, origin: Origin) -> None:
    """Megabytes are cut with a mark; the next entry is whole."""
    origin.publish("/feed", atom(an_item("a", 2, "word " * 400_000), an_item("b", 1, "short")))
    reply = await view(proxy, origin.url("/feed"))
    assert len(reply.body) < 400_000
    assert text(reply).count("too long to be shown whole") == 1
    assert titles(reply) == ["a", "b"]


@pytest.mark.fault("119")
async def test_what_is_cut_says_so_with_a_way_to_the_rest(proxy: Proxy, origin: Origin) -> None:
    """docs/faults.md row 119: an entry's own page, or the feed, and some files."""
    link = '<link href="http://s.test/a"/>'
    files = "".join(f'<link rel="enclosure" href="http://s.test/{"f" * 1900}{n}"/>' for n in range(9))
    much = "&lt;b>x&lt;/b>" * 4000
    entries = [
        f"<entry><id>urn:{number}</id><updated>2024-01-0{9 - number}T00:00:00Z</updated>{inside}</entry>"
        for number, inside in enumerate(
            (
                f'{link}<content type="html">{much}</content>',
                f'<content type="html">{much}</content>',
                f"{link}<content>{'word ' * 60_000}</content>",
                f"{link}{files}<content>short</content>",
            )
        )
    ]
    origin.publish("/feed", atom().replace(b"</feed>", f"{''.join(entries)}</feed>".encode()))
    reply = await view(proxy, origin.url("/feed"))
    articles = reply.body.decode().split("<article")[1:]
    said = [" ".join(re.sub("<[^>]*>", " ", each).split()) for each in articles]
    too_much = "This entry has too much markup to be shown as it is: this is its text. "
    assert f"x {too_much}Its page, linked above, may have the rest." in said[0]
    assert f"x {too_much}The feed itself, which can be downloaded above, has the rest." in said[1]
    assert "This entry is too long to be shown whole. Its page, linked above, may have the rest." in said[2]
    left = re.search("short .* ([0-9]) more, which the feed itself has", said[3])
    assert left is not None
    assert articles[3].count("<li>") == 9 - int(left[1]) + 1


@pytest.mark.fault("119")
async def test_a_page_that_is_too_costly_is_told_in_words(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 119: 422, with advice."""
    costly = "&lt;p>&lt;a href='x'>x&lt;/a>" * 1900
    origin.publish("/feed", rss(*(an_item(f"e{number}", number, costly) for number in range(3))))
    set_constant(monkeypatch, "PAGE_SECONDS", 0.01)
    reply = await view(proxy, origin.url("/feed"))
    assert reply.status == 422
    assert "Read the feed at its publisher" in text(reply)


async def test_head_says_what_get_would(proxy: Proxy, origin: Origin) -> None:
    """RFC 9110, 9.3.2: the same fields, without a body."""
    origin.publish("/feed", atom(an_item("a", 1, "word " * 9000)))
    whole = await view(proxy, origin.url("/feed"))
    head = await browse(proxy, f"/view?url={quoted(origin.url('/feed'))}", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["Content-Length"]) == len(whole.body) > 40_000


async def test_a_feed_that_is_not_there_yet_is_being_read(proxy: Proxy, origin: Origin) -> None:
    """After about a second the page says so and reloads; the walk has begun."""
    origin.fault("/feed", Silence())
    url = origin.url("/feed")
    reply = await browse(proxy, f"/view?url={quoted(url)}")
    assert reply.status == 200
    assert b'http-equiv="refresh"' in reply.body
    assert "Reading the feed" in text(reply)
    assert [request.path for request in origin.requests] == ["/feed"]


async def test_a_walk_goes_on_while_its_first_entries_are_read(proxy: Proxy, origin: Origin) -> None:
    """`loading` is told, with a link to look again."""
    publish_chain(origin, archives=2)
    origin.fault("/archive/1", Silence())
    url = origin.url("/feed")
    await proxy.begun(url)
    reply = await browse(proxy, f"/view?url={quoted(url)}")
    assert reply.status == 200
    assert STATES[State.LOADING].meaning in text(reply)
    assert page_links(reply)["Show what has come since"] == f"./view?url={quoted(url)}"


async def test_who_holds_a_signature_can_read_on(start: StartProxy, origin: Origin) -> None:
    """The signature goes with the links to its other pages."""
    origin.publish("/feed", atom(*(an_item(f"e{n}", n) for n in range(60, 0, -1))))
    url, keys = origin.url("/feed"), ["k" * 32]
    proxy = await start(server={"signing_keys": tuple(keys)})
    target = f"/view?url={quoted(url)}&signed={sign(url, keys)}"
    assert (await browse(proxy, f"/view?url={quoted(url)}")).status == 403
    reply = await browse(proxy, f"{target}&wait=8")
    assert reply.status == 200
    assert page_links(reply)["Older"] == f".{target}&page=2"


async def test_whoever_opens_a_replay_is_told_what_it_is(proxy: Proxy, origin: Origin) -> None:
    """Each page of the whole feed names the pace of the replay."""
    origin.publish("/feed", atom(*(an_item(f"e{n}", n) for n in range(60, 0, -1))))
    url = origin.url("/feed")
    await proxy.whole(url)
    query = f"url={quoted(url)}&replay=1%2Fday&from=2026-11-24T06%3A00%3A00%2B01%3A00&on=mon"
    opened = await browse(proxy, f"/feed?{query}")
    assert (opened.status, opened.headers["Location"]) == (303, f"./view?{query}")
    reply = await browse(proxy, f"/view?{query}")
    said = "replays this feed from its beginning: one each Monday, beginning on 24 November 2026."
    assert said in text(reply)
    assert len(titles(reply)) == 50
    links = page_links(reply)
    assert links["More about the replay"] == f"./?{query}#replay"
    assert links["Older"] == f"./view?{query}&page=2"
    more = await browse(proxy, links["More about the replay"][1:])
    assert "60 entries, one each Monday: until January 2028" in text(more)
    wrong = await browse(proxy, f"/view?url={quoted(url)}&replay=1%2Fday")
    assert wrong.status == 400
    assert "from beside replay, the instant when it begins" in text(wrong)


async def test_without_entries_it_says_so(proxy: Proxy, origin: Origin) -> None:
    """An empty feed is no blank page, and nothing is promised of it."""
    origin.publish("/feed", atom(complete=True))
    said = text(await view(proxy, origin.url("/feed")))
    assert "No entry of this feed is here." in said
    assert STATES[State.COMPLETE].meaning not in said


async def test_of_a_publisher_that_fails_nothing_is_said_of_today(proxy: Proxy, origin: Origin) -> None:
    """Both pages say what was true when it was last heard of."""
    origin.publish("/feed", atom(an_item("a"), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    origin.fault("/feed", Status(503))
    await proxy.refreshed(url)
    for target in ("/view", "/"):
        said = text(await browse(proxy, f"{target}?url={quoted(url)}"))
        assert "Every entry that the publisher had in this feed when it last sent it is here" in said
        assert STATES[State.COMPLETE].meaning not in said


# Searches and years


def lines(reply: Reply) -> list[tuple[str, str]]:
    """Return the titles that a search has found, and the targets of their links."""
    found = re.findall('<li><a href="([^"]*)" dir="auto">([^<]*)</a>', reply.body.decode())
    return [(words, target.replace("&amp;", "&")) for target, words in found]


def publish_years(origin: Origin) -> str:
    """Publish 120 entries, forty of each of three years."""
    hours = 366 * 24
    items = [an_item(f"fog {2023 - n // 40} No {n}", -hours * (n // 40) - n) for n in range(120)]
    origin.publish("/feed", atom(*items))
    return origin.url("/feed")


async def test_titles_of_the_whole_feed_are_searched(proxy: Proxy, origin: Origin) -> None:
    """All words count, in any order and case; a title leads to its entry on its page."""
    url = publish_years(origin)
    await proxy.whole(url)
    reply = await browse(proxy, f"/view?find=no+119+FOG&url={quoted(url)}&media=1")
    assert (reply.status, "1 title has “no 119 FOG”" in text(reply)) == (200, True)
    ((title, target),) = lines(reply)
    assert title == "fog 2021 No 119"
    assert target.startswith(f"./view?url={quoted(url)}&media=1&page=3#e")
    opened = await browse(proxy, urljoin("/view", target))
    name = target.partition("#")[2]
    assert f'id="{name}" aria-labelledby="t-{name}"' in opened.body.decode()
    many = await browse(proxy, f"/view?find=fog&url={quoted(url)}")
    assert "120 titles have “fog”" in text(many)
    assert len(lines(many)) == 50
    rest = await browse(proxy, urljoin("/view", page_links(many)["Further titles"]))
    assert lines(rest)[0][0] == "fog 2022 No 50"
    assert "Searched: entries 51 to 120 of 120" in text(rest)
    none = await browse(proxy, f"/view?find=nowhere&after=120&url={quoted(url)}")
    assert "No title has “nowhere” All entries" in text(none)
    assert titles(await browse(proxy, f"/view?find=+&url={quoted(url)}")), "no word is no search"


@pytest.mark.fault("120")
async def test_a_search_ends_in_time_and_goes_on_when_asked(
    proxy: Proxy, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 120: each part says how far it went."""
    set_constant(monkeypatch, "SEARCH_SECONDS", 0)
    for number, older in (("/feed", "/1"), ("/1", None)):
        items = (an_item(f"{number[1:]} {n}", 9 - n, "word " * 20_000) for n in range(4))
        origin.publish(number, atom(*items, prev_archive=older, archive=older is None))
    url = origin.url("/feed")
    await proxy.whole(url)
    first = await browse(proxy, f"/view?find=1+3&url={quoted(url)}")
    assert "Searched: entries 1 to 4 of 8" in text(first)
    second = await browse(proxy, urljoin("/view", page_links(first)["Search on"]))
    assert [title for title, _ in lines(second)] == ["1 3"]
    assert "Search on" not in page_links(second)


@pytest.mark.parametrize(
    "words", ["<script>alert(1)</script>", '"><img src=x>', "{{ 7 }}", "\u202etxet", "%", "x" * 900]
)
async def test_words_to_search_are_text(proxy: Proxy, origin: Origin, words: str) -> None:
    """They stand in a field, a heading and a title."""
    origin.publish("/feed", atom(an_item("a")))
    await proxy.whole(origin.url("/feed"))
    reply = await browse(proxy, f"/view?find={quoted(words)}&url={quoted(origin.url('/feed'))}")
    assert reply.status == 200
    assert not re.search("<script>|<img src=x|\u202e|x{201}", reply.body.decode())


async def test_a_search_while_a_feed_is_read_says_that_more_comes(proxy: Proxy, origin: Origin) -> None:
    """What is here is searched; before anything is here, the page reloads and keeps the words."""
    publish_chain(origin, archives=2)
    origin.fault("/archive/1", Silence())
    url = origin.url("/feed")
    await proxy.begun(url)
    reply = await browse(proxy, f"/view?find=e&url={quoted(url)}")
    assert "Older entries are still being fetched" in text(reply)
    assert lines(reply)
    origin.fault("/new", Silence())
    waiting = await browse(proxy, f"/view?find=e&url={quoted(origin.url('/new'))}")
    assert b'<meta http-equiv="refresh" content="2">' in waiting.body


async def test_a_year_leads_to_its_first_entry(proxy: Proxy, origin: Origin) -> None:
    """The page offers the years that the feed has; of others it shows the next older one."""
    url = publish_years(origin)
    reply = await view(proxy, url)
    assert re.findall(r"<option[^>]*>(\d+ \(\d+\))</option>", reply.body.decode()) == [
        "2023 (40)",
        "2022 (40)",
        "2021 (40)",
    ]
    found = await browse(proxy, f"/view?year=2021&whole=1&url={quoted(url)}")
    assert found.status == 303
    assert found.headers["Location"].startswith(f"./view?whole=1&url={quoted(url)}&page=2#e")
    page = await browse(proxy, found.headers["Location"][1:])
    name = found.headers["Location"].partition("#")[2]
    assert re.search(f'id="t-{name}" dir="auto">fog 2021 No 80<', page.body.decode())
    later = await browse(proxy, f"/view?year=2030&url={quoted(url)}")
    assert "This feed has no entries of 2030; here are those of 2023." in text(later)
    earlier = await browse(proxy, f"/view?year=1990&url={quoted(url)}")
    assert (earlier.status, "This feed has no entries of 1990 or earlier." in text(earlier)) == (200, True)
    assert "A year is a number" in text(await browse(proxy, f"/view?year=x&url={quoted(url)}"))


async def test_words_behind_an_unencoded_url_are_its_own(proxy: Proxy, origin: Origin) -> None:
    """P7: a publisher may call a parameter `find` or `year`, too."""
    origin.publish("/feed?a=1&find=b&year=2021&whole=1", atom(an_item("a")))
    target = f"/view?url={origin.url('/feed')}?a=1&find=b&year=2021&whole=1"
    reply = await proxy.raw(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert b">a</h2>" in reply
    assert b'<details class="fold">' in reply
