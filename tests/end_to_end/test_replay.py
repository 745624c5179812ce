"""A feed from its beginning, at a pace (P1 to P9)."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import feedparser
import pytest

from tests.feeds import BASE_AT, Item, an_item, atom, atom_03, ids, json_feed, publish_chain, rdf, rss
from tests.origin import Origin
from tests.running import Proxy, Reply, StandingClock, a_config, running

DAY = 86_400


def instant(at: float) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def get(
    proxy: Proxy, url: str, asked: Mapping[str, str], *, headers: Mapping[str, str] | None = None
) -> Reply:
    fields = {"Accept-Encoding": "identity", **(headers or {})}
    return await proxy.ask("GET", "/feed", params={"url": url, **asked}, headers=fields)


class Reader:
    """A reader of one replay that checks that no release changes."""

    def __init__(self, proxy: Proxy, url: str, *, pace: str = "1/day", **asked: str) -> None:
        self._proxy = proxy
        self._url = url
        self.asked = {"replay": pace, "from": instant(proxy.clock() - 2), **asked}
        self._fields: dict[str, str] = {}
        self.dates: dict[str, str] = {}
        self.order: list[str] = []

    async def ask(self) -> Reply:
        return await get(self._proxy, self._url, self.asked, headers=self._fields)

    async def read(self) -> list[str]:
        """Ask once more, as newsboat does; return the new entries, newest first."""
        reply = await self.ask()
        assert reply.status in (200, 304)
        if reply.status == 304:
            return []
        names = ("ETag", "Last-Modified")
        fields = {name: reply.headers[name] for name in names if name in reply.headers}
        sent = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        self._fields = {sent[name]: value for name, value in fields.items()}
        parsed = feedparser.parse(reply.body)
        assert not parsed.bozo, parsed.get("bozo_exception")
        found = {each.id.removeprefix("urn:"): each.updated for each in parsed.entries}
        assert len(found) == len(parsed.entries), "an entry stands twice"
        stay = [name for name in found if name in self.dates]
        assert stay == [name for name in self.order if name in found], "the order has changed"
        for name in stay:
            assert found[name] == self.dates[name], f"{name} has another date"
        new = [name for name in found if name not in self.dates]
        self.dates |= found
        self.order = new + self.order
        return new


async def test_one_entry_comes_a_day(tmp_path: Path, origin: Origin) -> None:
    """P2, P5: the oldest first, the newest release in front, and each keeps its place."""
    expected = publish_chain(origin, archives=4)[::-1]
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        await proxy.whole(origin.url("/feed"))
        reader = Reader(proxy, origin.url("/feed"))
        assert await reader.read() == expected[1::-1]
        assert await reader.read() == []
        for day, name in enumerate(expected[2:], start=3):
            proxy.clock.advance(DAY)
            assert await reader.read() == [name]
            reply = await get(proxy, origin.url("/feed"), reader.asked)
            assert reply.reconstruction == f"complete;documents=5;entries=10;missing=0;released={day}"
        proxy.clock.advance(DAY)
        assert await reader.read() == []


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
async def test_entries_bear_the_date_of_their_release(
    proxy: Proxy, origin: Origin, make: Callable[..., bytes]
) -> None:
    """P3: and their publication date in front of the title, unless the reader declines."""
    origin.publish("/feed", make(an_item("b", 3), an_item("a", 2)))
    url = origin.url("/feed")
    await proxy.whole(url)
    asked = {"replay": "2/day", "from": "2026-01-31T06:00:00+01:00"}
    for original, title in (("on", "[2023-11-15] a"), ("off", "a")):
        reply = await get(proxy, url, {**asked, "original": original})
        entries = feedparser.parse(reply.body).entries
        assert [each.id for each in entries] == ["urn:b", "urn:a"]
        assert entries[1].title == title
        said = entries[1].published if make is rss else entries[1].updated
        at = parsedate_to_datetime(said) if make is rss else datetime.fromisoformat(said)
        assert at == datetime.fromisoformat(asked["from"])


async def test_items_of_json_bear_the_date_of_their_release(proxy: Proxy, origin: Origin) -> None:
    """P3: both of their instants are that of the release."""
    origin.publish("/feed", json_feed(an_item("b", 3), an_item("a", 2)))
    url, at = origin.url("/feed"), "2026-01-31T06:00:00Z"
    await proxy.whole(url)
    document = json.loads((await get(proxy, url, {"replay": "2/day", "from": at})).body)
    assert document["title"] == "A feed (replay)"
    assert [each["id"] for each in document["items"]] == ["urn:b", "urn:a"]
    assert (document["items"][1]["date_modified"], document["items"][1]["title"]) == (at, "[2023-11-15] a")


async def test_a_replay_is_a_feed_of_its_own(proxy: Proxy, origin: Origin) -> None:
    """P4: its own id, address and title, the date of its newest release, and no link elsewhere."""
    extra = (
        "<ttl>60</ttl><skipDays><day>Monday</day></skipDays>"
        '<sy:updatePeriod xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">daily</sy:updatePeriod>'
        '<itunes:new-feed-url xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">http://x.test/'
        "</itunes:new-feed-url>"
        '<podcast:guid xmlns:podcast="https://podcastindex.org/namespace/1.0">917393e3</podcast:guid>'
    )
    origin.publish("/feed", rss(an_item("a", 2), updated=3, complete=True, extra=extra))
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await get(proxy, url, {"replay": "1/day", "from": "2026-01-31T06:00:00Z"})
    for gone in (b"<ttl>", b"skipDays", b"updatePeriod", b"new-feed-url", b"podcast:guid", b"fh:complete"):
        assert gone not in reply.body
    parsed = feedparser.parse(reply.body)
    assert parsed.feed.title == "A channel (replay)"
    assert parsed.feed.published == "Sat, 31 Jan 2026 06:00:00 GMT"
    assert parsed.feed.itunes_block == 1
    (own,) = (each.href for each in parsed.feed.links if each.rel == "self")
    assert own.endswith("&replay=1%2Fday&from=2026-01-31T06%3A00%3A00Z")

    origin.publish("/atom", atom(an_item("a", 2), complete=True))
    await proxy.whole(origin.url("/atom"))
    found = set()
    for pace in ("1/day", "2/day"):
        reply = await get(proxy, origin.url("/atom"), {"replay": pace, "from": "2026-01-31T06:00:00Z"})
        found.add(feedparser.parse(reply.body).feed.id)
    assert len(found) == 2
    assert "urn:feed" not in found


async def test_validators_move_with_each_release_and_nothing_else(proxy: Proxy, origin: Origin) -> None:
    """P5: 304 until the next release at most."""
    clock = proxy.clock
    origin.publish("/feed", atom(an_item("c", 3), an_item("b", 2), an_item("a", 1), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    begun_at = int(clock()) - DAY + 100
    asked = {"replay": "1/day", "from": instant(begun_at)}
    await get(proxy, url, asked)
    clock.advance(2)
    reply = await get(proxy, url, asked)
    assert ids(reply.body) == ["b", "a"]
    seconds = int(reply.headers["Cache-Control"].removeprefix("max-age="))
    assert 90 <= seconds <= 100
    for field, condition in (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")):
        known = {condition: reply.headers[field]}
        assert (await get(proxy, url, asked, headers=known)).status == 304
    clock.advance(101)
    for field, condition in (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")):
        again = await get(proxy, url, asked, headers={condition: reply.headers[field]})
        assert again.status == 200
        assert ids(again.body) == ["c", "b", "a"]


@pytest.mark.parametrize("make", [atom, rss, rdf, json_feed], ids=["atom", "rss", "rdf", "json"])
@pytest.mark.parametrize("limit", [None, "2"])
async def test_validators_stay_while_the_bytes_do(
    proxy: Proxy, origin: Origin, make: Any, limit: str | None
) -> None:
    """P5: new entries, and edits of unreleased ones, wait for their turn. A release and an edit of a released
    entry change both."""
    clock, url = proxy.clock, origin.url("/feed")
    first = [an_item("c", 3), an_item("b", 2), an_item("a", 1)]

    async def published(*items: Item) -> Reply:
        clock.advance(5)
        origin.publish("/feed", make(*items))
        await proxy.refreshed(url)
        clock.advance(5)
        return await get(proxy, url, asked)

    origin.publish("/feed", make(*first))
    await proxy.whole(url)
    asked = {"replay": "1/day", "from": instant(int(clock()) - 1000)} | ({"limit": limit} if limit else {})
    await get(proxy, url, asked)
    clock.advance(5)
    before = await get(proxy, url, asked)
    states = [before]
    for items in (
        [an_item("d", 4), *first],
        [an_item("e", 5), an_item("d", 4, "edited"), *first],
        [an_item("d", 4, "edited"), an_item("c", 3, "edited"), an_item("b", 2), an_item("a", 1)],
    ):
        again = await published(*items)
        assert again.body == before.body
        assert again.headers["ETag"] == before.headers["ETag"]
        assert again.headers["Last-Modified"] == before.headers["Last-Modified"]
        for field, condition in (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")):
            known = {condition: before.headers[field]}
            assert (await get(proxy, url, asked, headers=known)).status == 304
    states.append(await published(an_item("f", 6), an_item("b", 7, "edited"), an_item("a", 1)))
    clock.advance(DAY)
    states.append(await get(proxy, url, asked))
    assert len({each.body for each in states}) == 3
    for earlier, later in itertools.pairwise(states):
        assert earlier.headers["ETag"] != later.headers["ETag"]
        modified = [parsedate_to_datetime(each.headers["Last-Modified"]) for each in (earlier, later)]
        assert modified[0] < modified[1]


async def test_the_tag_of_json_moves_with_each_release(proxy: Proxy, origin: Origin) -> None:
    """P5: its head has no date to move it."""
    origin.publish("/feed", json_feed(an_item("c", 3), an_item("b", 2), an_item("a", 1)))
    url = origin.url("/feed")
    await proxy.whole(url)
    asked = {"replay": "1/day", "from": instant(int(proxy.clock()) - DAY + 100)}
    await get(proxy, url, asked)
    reply = await get(proxy, url, asked)
    known = {"If-None-Match": reply.headers["ETag"]}
    assert (await get(proxy, url, asked, headers=known)).status == 304
    proxy.clock.advance(101)
    again = await get(proxy, url, asked, headers=known)
    assert again.status == 200
    assert [each["id"] for each in json.loads(again.body)["items"]] == ["urn:c", "urn:b", "urn:a"]


async def test_a_replay_can_be_cut_and_compressed(proxy: Proxy, origin: Origin) -> None:
    """P5: limit, since and answer_bytes count releases; HEAD has the same fields; gzip the same text."""
    names = [f"e{n}" for n in range(9, 0, -1)]
    origin.publish("/feed", atom(*(an_item(name, int(name[1:])) for name in names), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    asked = {"replay": "50/day", "from": "2026-01-31T06:00:00Z"}
    whole = await get(proxy, url, asked)
    assert ids(whole.body) == names
    coded = await get(proxy, url, asked, headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(coded.body) == whole.body
    head = await proxy.ask(
        "HEAD", "/feed", params={"url": url, **asked}, headers={"Accept-Encoding": "identity"}
    )
    assert head.headers["ETag"] == whole.headers["ETag"]
    limited = await get(proxy, url, {**asked, "limit": "2"})
    assert ids(limited.body) == names[:2]
    assert limited.reconstruction.endswith(";cut;released=9")
    since = await get(proxy, url, {**asked, "since": "2026-01-31T09:00:00Z"})
    assert ids(since.body) == names[:2]
    fitting = await get(proxy, url, {**asked, "answer_bytes": "2048"})
    assert len(fitting.body) <= 2048
    assert ids(fitting.body) == names[: len(ids(fitting.body))]
    assert 1 <= len(ids(fitting.body)) < 9


async def test_an_entry_that_fits_in_no_answer_is_passed_over(proxy: Proxy, origin: Origin) -> None:
    """P5: one entry longer than all of `answer_bytes` hides no older ones."""
    items = an_item("c", 3), an_item("b", 2, "x" * 5000), an_item("a", 1)
    origin.publish("/feed", atom(*items, complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    asked = {"replay": "50/day", "from": "2026-01-31T06:00:00Z", "answer_bytes": "3000"}
    reply = await get(proxy, url, asked)
    assert ids(reply.body) == ["c", "a"]
    assert reply.reconstruction.endswith(";cut;released=3")


async def test_nothing_is_out_before_it_begins(proxy: Proxy, origin: Origin) -> None:
    """P5: 200 without entries, until the first release."""
    origin.publish("/feed", atom(an_item("a", 1), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    asked = {"replay": "1/day", "from": instant(proxy.clock() + 200)}
    reply = await get(proxy, url, asked)
    assert (reply.status, ids(reply.body)) == (200, [])
    assert 190 <= int(reply.headers["Cache-Control"].removeprefix("max-age=")) <= 200
    proxy.clock.advance(201)
    known = {"If-None-Match": reply.headers["ETag"]}
    assert ids((await get(proxy, url, asked, headers=known)).body) == ["a"]


async def test_a_feed_that_is_loading_has_no_lines_yet(proxy: Proxy, origin: Origin) -> None:
    """P1, P5: they begin with its whole history; until then the answer asks for a retry soon."""
    expected = publish_chain(origin, archives=3)[::-1]
    url = origin.url("/feed")
    asked = {"replay": "50/day", "from": "2026-01-31T06:00:00Z"}
    with origin.held("/archive/2"):
        await proxy.begun(url)
        reply = await get(proxy, url, {**asked, "wait": "0"})
        assert (reply.status, ids(reply.body)) == (200, [])
        assert reply.headers["Cache-Control"] == "max-age=5"
        assert "Last-Modified" not in reply.headers
    await proxy.settled()
    known = {"If-None-Match": reply.headers["ETag"]}
    assert ids((await get(proxy, url, asked, headers=known)).body) == expected[::-1]


async def test_a_new_feed_can_be_asked_for_as_a_replay(proxy: Proxy, origin: Origin) -> None:
    """P1: the first request waits for its history and its lines."""
    expected = publish_chain(origin, archives=2)
    reply = await get(proxy, origin.url("/feed"), {"replay": "50/day", "from": "2026-01-31T06:00:00Z"})
    assert ids(reply.body) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"replay": "1/day"}, "&replay=1/day&from="),
        ({"replay": "1/month", "from": "2026-01-31T06:00:00Z"}, "expected replay as N/day or N/week"),
        ({"replay": "1/day", "from": "today"}, "expected from as an RFC 3339 instant"),
        ({"replay": "1/day", "from": "2026-01-31T06:00:00Z", "on": "x"}, "expected on as days"),
        ({"replay": "1/day", "from": "2026-01-31T06:00:00Z", "original": "x"}, "expected original as"),
        ({"replay": "1/week", "from": "9999-12-31T06:00:00Z"}, "before the year 10000"),
    ],
)
async def test_what_cannot_be_replayed_is_refused(
    proxy: Proxy, origin: Origin, asked: dict[str, str], expected: str
) -> None:
    """Bad parameters: 400 with the expected form, and the whole URL if `from` is missing."""
    origin.publish("/feed", atom(*(an_item(f"e{n}", n) for n in range(9)), complete=True))
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await get(proxy, url, asked)
    assert (reply.status, reply.slug) == (400, "bad-request")
    assert expected in reply.body.decode()


async def test_parameters_that_publishers_have_stay_theirs(proxy: Proxy, origin: Origin) -> None:
    """P7: behind an unencoded URL `from`, `on` and `original` are the proxy's only beside `replay`."""
    origin.publish("/feed?from=1", atom(an_item("a", 1), complete=True))
    reply = await proxy.ask("GET", f"/feed?url={origin.url('/feed')}?from=1")
    assert reply.status == 200
    target = f"/feed?url={origin.url('/feed')}?from=1".replace("from=1", "x=1")
    origin.publish("/feed?x=1", atom(an_item("a", 1), complete=True))
    reply = await proxy.ask("GET", f"{target}&replay=1/day&from=2026-01-31T06:00:00+01:00&original=off")
    assert (reply.status, reply.reconstruction.rpartition(";")[2]) == (200, "released=1")


class Blog:
    def __init__(self, origin: Origin, *, most: int | None = None) -> None:
        self._origin = origin
        self._most = most
        self.items: list[Item] = []

    def publish(self, *items: Item) -> None:
        names = {each.name for each in items}
        self.items = [*items, *(each for each in self.items if each.name not in names)]
        self._show()

    def delete(self, name: str) -> None:
        self.items = [each for each in self.items if each.name != name]
        self._show()

    def _show(self) -> None:
        self._origin.publish("/feed", atom(*self.items[: self._most], complete=self._most is None))


async def test_entries_that_leave_the_publishers_feed_shift_nothing(tmp_path: Path, origin: Origin) -> None:
    """P9, PodReplay: entries no longer in the feed were numbered, and are remembered."""
    blog = Blog(origin, most=2)
    blog.publish(an_item("b", 2), an_item("a", 1))
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        url = origin.url("/feed")
        await proxy.whole(url)
        reader = Reader(proxy, url)
        assert await reader.read() == ["b", "a"]
        for name in "cdef":
            proxy.clock.advance(DAY)
            blog.publish(an_item(name, int(proxy.clock() - BASE_AT) // 3600))
            await proxy.refreshed(url)
            proxy.clock.advance(2)
            assert await reader.read() == [name]


async def test_late_edited_and_deleted_entries_move_nothing(tmp_path: Path, origin: Origin) -> None:
    """P2: a deletion leaves its slot empty, an edit shows in place, a late one joins behind the backlog."""
    blog = Blog(origin)
    blog.publish(*(an_item(f"e{n}", n) for n in range(5, 0, -1)))
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        url = origin.url("/feed")
        await proxy.whole(url)
        reader = Reader(proxy, url)
        assert await reader.read() == ["e2", "e1"]
        blog.delete("e3")
        blog.publish(an_item("found", 0), an_item("e2", 2, "other words"))
        await proxy.refreshed(url)
        proxy.clock.advance(DAY)
        assert await reader.read() == []  # the slot of e3 is empty; e2 has changed in place
        assert b"other words" in (await get(proxy, url, reader.asked)).body
        blog.publish(an_item("e3", 3))
        await proxy.refreshed(url)
        assert await reader.read() == ["e3"]
        names = []
        for _ in range(4):
            proxy.clock.advance(DAY)
            names += await reader.read()
        assert names == ["e4", "e5", "found"]


async def test_it_survives_a_restart(tmp_path: Path, origin: Origin) -> None:
    """P6."""
    publish_chain(origin, archives=2)
    url = origin.url("/feed")
    asked = {"replay": "50/day", "from": "2026-01-31T06:00:00Z"}
    bodies = []
    for _ in range(2):
        async with running(a_config(tmp_path)) as proxy:
            bodies.append((await get(proxy, url, asked)).body.partition(b"<entry")[2])
    assert bodies[0] == bodies[1] != b""


async def test_an_item_that_is_identified_anew_keeps_its_line(tmp_path: Path, origin: Origin) -> None:
    """P1, R9: a link on a second item identifies neither; the first has been released."""

    def items(*texts: str) -> bytes:
        made = "".join(f"<item><title>{each}</title><link>http://x.test/</link></item>" for each in texts)
        return f"<rss version='2.0'><channel><title>F</title><link>http://f.test/</link>{made}</channel></rss>".encode()

    origin.publish("/feed", items("one"))
    url = origin.url("/feed")
    async with running(a_config(tmp_path), StandingClock()) as proxy:
        await proxy.whole(url)
        asked = {"replay": "50/day", "from": instant(proxy.clock() - 5)}
        first = feedparser.parse((await get(proxy, url, asked)).body).entries
        proxy.clock.advance(DAY)
        origin.publish("/feed", items("two", "one"))
        await proxy.refreshed(url)
        proxy.clock.advance(2)
        second = feedparser.parse((await get(proxy, url, asked)).body).entries
        assert [each.title for each in second] == ["two", "one"]
        assert second[1].published == first[0].published
