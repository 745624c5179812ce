"""Replays of hostile or odd feeds, by hostile clients, and by two replicas at once (P1 to P7)."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import feedparser
import pytest

from tests.feeds import an_item, atom
from tests.origin import Origin
from tests.replicas import replicas
from tests.running import Proxy, Reply
from wholefeed.store import base
from wholefeed.store.base import Database
from wholefeed.store.tables import lines

PACE = {"replay": "1/day", "from": "2026-01-31T06:00:00Z"}
WRITTEN = "Sat, 14 Mar 2009 10:00:00 GMT"


async def ask(proxy: Proxy, url: str, asked: Mapping[str, str], **more: str) -> Reply:
    fields = {"Accept-Encoding": "identity"}
    return await proxy.ask("GET", "/feed", params={"url": url, **asked, **more}, headers=fields)


def a_json_feed(item: str, title: str = "J") -> str:
    head = f'"version":"https://jsonfeed.org/version/1.1","title":"{title}"'
    return "{" + head + ',"items":[' + item + "]}"


def an_rss(item: str) -> str:
    head = "<title>C</title><link>http://s.test/</link>"
    return f'<rss version="2.0"><channel>{head}<item><guid>a</guid>{item}</item></channel></rss>'


# Unavailable answers


async def test_two_replicas_that_are_asked_first_at_once_lose_no_lines(
    postgres_url: str, tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: one replica gives up, and neither removes the lines of the other."""
    second, cleared, finished = threading.Event(), threading.Event(), threading.Event()
    clears = itertools.count(1)
    put, run, finish = lines.put, base.run, lines.finish

    def putting(db: Database, feed: int, revision: int, rows: Sequence[Any]) -> bool:
        if rows[0][1] > 1:  # its first rows have been committed
            second.set()
            cleared.wait(1)
        return put(db, feed, revision, rows)

    def running_it(db: Database, statement: str, values: Mapping[str, object]) -> object:
        is_late = statement.startswith("DELETE FROM line") and next(clears) == 2
        if is_late:
            second.wait(1)
        result = run(db, statement, values)
        if is_late:
            cleared.set()
            finished.wait(1)
        return result

    def finishing(db: Database, feed: int, made: lines.Plan) -> bool:
        result = finish(db, feed, made)
        finished.set()
        return result

    monkeypatch.setattr(lines, "put", putting)
    monkeypatch.setattr(lines, "run", running_it)
    monkeypatch.setattr(lines, "finish", finishing)
    origin.publish("/feed", atom(*(an_item(f"e{n}", n) for n in range(5000, 0, -1))))
    url = origin.url("/feed")
    asked = {"replay": "50/day", "from": "2020-01-31T06:00:00Z"}
    async with replicas(postgres_url, tmp_path) as (one, other):
        for proxy in (one, other):
            await proxy.whole(url)
        await asyncio.gather(*(ask(proxy, url, asked, limit="1") for proxy in (one, other)))
        for proxy in (one, other):
            reply = await ask(proxy, url, asked, limit="1")
            assert reply.status == 200
            assert reply.reconstruction.endswith(";released=5000")


async def test_half_a_character_in_an_items_title_breaks_no_replay(proxy: Proxy, origin: Origin) -> None:
    """P3: a lone surrogate has no UTF-8, and stays escaped."""
    item = '{"id":"a","title":"x\\ud83d","content_text":"c","date_published":"2009-03-14T10:00:00Z"}'
    origin.publish("/feed", a_json_feed(item), content_type="application/feed+json")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).status == 200
    reply = await ask(proxy, url, PACE)
    assert json.loads(reply.body)["items"][0]["id"] == "a"


async def test_half_a_character_in_the_feeds_title_breaks_no_replay(proxy: Proxy, origin: Origin) -> None:
    """P4: the same in the head."""
    item = '{"id":"a","content_text":"c","date_published":"2009-03-14T10:00:00Z"}'
    origin.publish("/feed", a_json_feed(item, "J\\ud83d"), content_type="application/feed+json")
    url = origin.url("/feed")
    assert (await proxy.whole(url)).status == 200
    assert (await ask(proxy, url, PACE)).status == 200


async def test_a_pace_that_begins_before_the_year_1_is_refused(proxy: Proxy, origin: Origin) -> None:
    """P6: so is one that ends after the year 9999."""
    origin.publish("/feed", atom(an_item("a", 1)))
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await ask(proxy, url, {"replay": "1/day", "from": "0001-01-01T00:00:00+01:00"})
    assert reply.status == 400


# Growth by a publisher or a client


@pytest.mark.parametrize(
    ("made", "media_type"),
    [
        (an_rss("<pubDate/>" * 2000), "application/rss+xml"),
        (
            a_json_feed(
                '{"id":"a","content_text":"c",'
                + '"title":"",' * 200
                + '"title":"%s","date_published":"2009-03-14T10:00:00Z"}' % ("x" * 2000)
            ),
            "application/feed+json",
        ),
    ],
)
async def test_a_replay_is_no_longer_than_was_asked_for(
    proxy: Proxy, origin: Origin, made: str, media_type: str
) -> None:
    """P5: an entry's growth depends on its spelling."""
    origin.publish("/feed", made, content_type=media_type)
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await ask(proxy, url, PACE, answer_bytes="30000")
    assert len(reply.body) <= 30_000


async def test_paces_of_one_feed_hold_up_no_other_feeds(proxy: Proxy, origin: Origin) -> None:
    """Each feed has a turn of its own."""
    items = "".join(f"<entry><id>urn:{n}</id><title>{n}</title></entry>" for n in range(30_000))
    many = f'<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>T</title>{items}</feed>'
    origin.publish("/many", gzip.compress(many.encode()), headers=[("Content-Encoding", "gzip")])
    origin.publish("/one", atom(an_item("a", 1)))
    many_url, one_url = origin.url("/many"), origin.url("/one")
    for url in (many_url, one_url):
        await proxy.whole(url)
        await ask(proxy, url, PACE, limit="1")
    paces = [{"replay": "50/day", "from": f"2008-01-31T06:{n:02}:00Z"} for n in range(20)]
    asked = [asyncio.create_task(ask(proxy, many_url, pace, limit="1")) for pace in paces]
    await asyncio.sleep(0.2)
    await ask(proxy, one_url, PACE, replay="2/day")
    done = sum(each.done() for each in asked)
    await asyncio.gather(*asked)
    assert done < len(asked) // 2


# Malformed values


@pytest.mark.parametrize(
    "date",
    [
        f"\n <![CDATA[{WRITTEN}]]>\n",
        f"<!-- written by a program -->{WRITTEN}",
        WRITTEN.replace(":", "&#58;"),
        f"<![CDATA[{WRITTEN[:10]}]]>{WRITTEN[10:]}",
    ],
)
async def test_a_date_is_shown_however_it_is_written(proxy: Proxy, origin: Origin, date: str) -> None:
    """P3: as the parser reads it, markup or not."""
    origin.publish("/feed", an_rss(f"<title>t</title><pubDate>{date}</pubDate>"))
    url = origin.url("/feed")
    await proxy.whole(url)
    assert feedparser.parse((await ask(proxy, url, PACE)).body).entries[0].title == "[2009-03-14] t"


async def test_a_title_in_base64_stays_readable(proxy: Proxy, origin: Origin) -> None:
    """P3; Atom 0.3, section 3.1.2: no text can be put in front of it."""
    dates = "<issued>2009-03-14T10:00:00Z</issued><modified>2009-03-14T10:00:00Z</modified>"
    origin.publish(
        "/feed",
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>T</title>'
        f'<entry><id>urn:a</id><title mode="base64">SGVsbG8=</title>{dates}</entry></feed>',
    )
    url = origin.url("/feed")
    await proxy.whole(url)
    body = (await ask(proxy, url, PACE)).body
    assert feedparser.parse(body).entries[0].title == "Hello"


async def test_a_title_in_xhtml_stays_within_its_div(proxy: Proxy, origin: Origin) -> None:
    """P3; RFC 4287, section 3.1.1.3: the content is a single div."""
    title = '<title type="xhtml"><!-- c --><div xmlns="http://www.w3.org/1999/xhtml">x</div></title>'
    updated = "<updated>2009-03-14T10:00:00Z</updated>"
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:a</id>{title}{updated}</entry></feed>'
    origin.publish("/feed", feed)
    url = origin.url("/feed")
    await proxy.whole(url)
    root = fromstring((await ask(proxy, url, PACE)).body)
    found = root.find("{*}entry/{*}title")
    assert found is not None
    assert not (found.text or "").strip()


async def test_an_undated_entry_of_atom_03_gains_a_date_of_its_format(proxy: Proxy, origin: Origin) -> None:
    """P3: Atom 0.3 has no updated."""
    entry = "<entry><id>urn:a</id><title>t</title></entry>"
    origin.publish("/feed", f'<feed version="0.3" xmlns="http://purl.org/atom/ns#">{entry}</feed>')
    url = origin.url("/feed")
    await proxy.whole(url)
    root = fromstring((await ask(proxy, url, PACE)).body)
    assert root.find("{http://purl.org/atom/ns#}entry/{http://purl.org/atom/ns#}modified") is not None


async def test_days_that_are_empty_are_refused(proxy: Proxy, origin: Origin) -> None:
    """P7: an empty list of days is none."""
    origin.publish("/feed", atom(an_item("a", 1)))
    url = origin.url("/feed")
    await proxy.whole(url)
    assert (await ask(proxy, url, PACE, on="")).status == 400
