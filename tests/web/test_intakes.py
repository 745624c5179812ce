"""The page of a list that is brought in, its progress and its forms (B1 to B5)."""

from __future__ import annotations

import asyncio
import io
import json
import re
from typing import Any

import pytest
from aiohttp import FormData

from tests.bringing import Intake, an_opml, bring_in, brought_in, until
from tests.faults.checks import problem
from tests.feeds import an_item, atom, publish_chain
from tests.origin import Origin
from tests.running import Proxy, Reply, StartProxy
from tests.web.browsing import browse, read, text
from wholefeed.web import opml_routes

TOKEN = "a token for readers"
MARKUP = "<b>On</b> & \u202eon <script>alert(1)</script>"


def a_form(document: bytes, **fields: str) -> FormData:
    form = FormData(fields)
    form.add_field("file", io.BytesIO(document), filename="mine.opml")
    return form


def named(reply: Reply) -> str:
    """The id in the target of a redirect."""
    assert reply.status == 303, reply.body
    found = re.fullmatch(r"\./intake\?id=([0-9a-f]{16})", reply.headers["Location"])
    assert found, reply.headers["Location"]
    return found[1]


async def page_of(proxy: Proxy, intake: str) -> Reply:
    reply = await browse(proxy, f"/intake?id={intake}")
    assert reply.status == 200
    return reply


async def test_a_form_leads_to_a_page_that_works_without_scripts(proxy: Proxy, origin: Origin) -> None:
    """B4: progress by reload, then totals, gains, failures, and what was not asked for."""
    publish_chain(origin, archives=2)
    origin.publish("/b", atom(an_item("b"), feed_id="urn:b"))
    sent = an_opml(origin.url("/feed"), origin.url("/b"), origin.url("/gone"), "urn:x", titles=(MARKUP,))
    with origin.held("/archive/1") as gate:
        intake = named(await browse(proxy, "/opml", method="POST", data=a_form(sent, ask="1")))
        await gate.reached()
        await until(proxy, intake, lambda found: found["waiting"] == 1)
        reply = await page_of(proxy, intake)
        assert "2 of 3 feeds asked, 1 to go, 1 failed" in text(reply)
        assert '<meta http-equiv="refresh"' in reply.body.decode()
        assert f'data-events="./intake/events?id={intake}"' in reply.body.decode()
        assert "2 of 3 feeds asked" in text(await browse(proxy))
    await brought_in(proxy, intake)
    reply = await page_of(proxy, intake)
    told = text(reply)
    assert "3 feeds: 3 entries before, 7 now; 1 complete, 1 remembered, 1 failed" in told
    assert "A feed : 2 entries before, 6 now" in told
    assert "The publisher responded with status 404; line 4 of the list" in told
    assert "1 not asked for" in told
    assert "in line 5 of the file" in told
    assert "data-events" not in reply.body.decode()
    assert f"./opml?intake={intake}" in read(reply).links
    assert read(reply).actions == [f"./intake?id={intake}", f"./intake?id={intake}&forget=1"]
    assert f"./intake?id={intake}" in read(await browse(proxy)).links


async def test_a_list_s_titles_are_text(proxy: Proxy, origin: Origin) -> None:
    """A stranger's list runs nothing in the page, and turns nothing around."""
    sent = an_opml(origin.url("/gone?<script>"), titles=(MARKUP,))
    done = await brought_in(proxy, (await bring_in(proxy, sent))["id"])
    assert done["failures"][0]["title"] == "<b>On</b> & on <script>alert(1)</script>"
    body = (await page_of(proxy, done["id"])).body.decode()
    assert "&lt;script&gt;alert(1)" in body
    assert not re.search(r"<script>|<b>On|\u202e", body)


async def test_the_page_s_forms_ask_again_and_forget(proxy: Proxy, origin: Origin) -> None:
    """B3, B5: each leads on to a page."""
    done = await brought_in(proxy, (await bring_in(proxy, an_opml(origin.url("/gone"))))["id"])
    target = f"/intake?id={done['id']}"
    assert named(await browse(proxy, target, method="POST")) == done["id"]
    reply = await browse(proxy, f"{target}&forget=1", method="POST")
    assert (reply.status, reply.headers["Location"]) == (303, "./")
    gone = await browse(proxy, target)
    assert gone.status == 404
    assert "No list was brought in here" in text(gone)
    assert "Your list of" not in text(await browse(proxy))


async def test_progress_is_told_until_no_feed_waits(proxy: Proxy, origin: Origin) -> None:
    """B4: a `status` after each change, and `end`; after it nobody needs to ask again."""
    origin.publish("/a", atom(an_item("a")))
    with origin.held("/a"):
        begun = await bring_in(proxy, an_opml(origin.url("/a")))
        target = f"/intake/events?id={begun['id']}"
        async with asyncio.timeout(20), proxy.client.get(target) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            first = await response.content.readuntil(b"event: status")
            origin.heal("/a")
            said = (first + await response.content.readuntil(b"\n\n")).decode()
            assert json.loads(said.partition("data: ")[2])["waiting"] == 1
    reply = await proxy.ask("GET", target)
    (end,) = re.findall(r"event: end\nid: end\ndata: (.*)", reply.body.decode())
    assert json.loads(end)["summary"] == "1 feed: 1 entry before, 1 now; 1 remembered"
    assert (await proxy.ask("GET", target, headers={"Last-Event-ID": "end"})).status == 204
    assert (await proxy.ask("HEAD", target)).body == b""


@pytest.mark.parametrize(
    ("method", "target", "status", "slug"),
    [
        ("GET", "/intake", 400, "bad-request"),
        ("POST", "/intake?id=", 400, "bad-request"),
        ("GET", "/intake?id=%00", 404, "no-such-intake"),
        ("GET", "/intake?id=0123456789abcdef", 404, "no-such-intake"),
        ("POST", "/intake?id=0123456789abcdef", 404, "no-such-intake"),
        ("DELETE", "/intake?id=0123456789abcdef", 404, "no-such-intake"),
        ("GET", "/intake/events?id=0123456789abcdef", 404, "no-such-intake"),
        ("GET", "/opml?intake=0123456789abcdef", 404, "no-such-intake"),
        ("GET", "/opml?intake=../../etc", 404, "no-such-intake"),
        ("PUT", "/intake", 405, "method-not-allowed"),
    ],
)
async def test_what_is_no_list_has_its_error(
    proxy: Proxy, method: str, target: str, status: int, slug: str
) -> None:
    """B1: an id that is none, or was forgotten."""
    assert problem(await proxy.ask(method, target), slug, status)


@pytest.mark.parametrize(
    ("query", "body", "status", "slug", "told"),
    [
        ("&undo=1", an_opml("http://a.test/"), 400, "bad-request", "ask or undo"),
        ("&limit=0", an_opml("http://a.test/"), 400, "bad-request", "limit"),
        ("", b"<rss/>", 422, "not-opml", "<rss>"),
        ("", b'<!DOCTYPE o [<!ENTITY a "b">]><opml>&a;</opml>', 422, "dtd-forbidden", "ENTITY"),
        ("", b"<opml>" + b"<outline>" * 100, 422, "xml-limit", "levels"),
    ],
)
@pytest.mark.fault("170")
async def test_a_bad_list_is_refused_whole(
    proxy: Proxy, query: str, body: bytes, status: int, slug: str, told: str
) -> None:
    """B1; docs/faults.md row 170: nothing is asked for, as with a list that is rewritten."""
    reply = await proxy.ask("POST", f"/opml?ask=1{query}", data=body)
    assert told in problem(reply, slug, status)["detail"]


@pytest.mark.fault("170")
async def test_a_list_of_too_many_feeds_is_refused(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1; docs/faults.md row 170: one list cannot have the proxy ask without end."""
    monkeypatch.setattr(opml_routes, "MOST_FEEDS", 2)
    sent = an_opml(*(f"http://h{number}.invalid/" for number in range(3)))
    reply = await proxy.ask("POST", "/opml?ask=1", data=sent)
    assert "at most 2 feeds, got 3" in problem(reply, "limit", 422)["detail"]


async def test_a_list_of_nothing_is_over_at_once(proxy: Proxy) -> None:
    """B1: a list without feeds, or with lines only that no feed can be asked for."""
    done: Intake = await bring_in(proxy, an_opml("urn:x", "http://u:p@a.test/", "http://10.0.0.1/"))
    assert (done["over"], done["feeds"], done["left_out"]) == (True, 0, 3)
    assert {each["reason"] for each in done["unchanged"]} == {"not-web", "credentials", "refused"}
    assert "0 feeds" in text(await page_of(proxy, done["id"]))


async def test_lists_are_for_who_has_the_token(start: StartProxy, origin: Origin) -> None:
    """B1: as the other lists are; another origin's form is refused (docs/faults.md row 80)."""
    proxy = await start(server={"access_token": TOKEN})
    origin.publish("/a", atom(an_item("a")))
    login: Any = {"Authorization": f"Bearer {TOKEN}"}
    sent = an_opml(origin.url("/a"))
    assert (await proxy.ask("POST", "/opml?ask=1", data=sent)).status == 401
    foreign = {**login, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    reply = await proxy.ask("POST", "/opml?ask=1", data=sent, headers=foreign)
    assert problem(reply, "cross-origin", 403)
    begun = await proxy.ask("POST", "/opml?ask=1", data=sent, headers=login)
    intake = json.loads(begun.body)["id"]
    for method, target in (
        ("GET", f"/intake?id={intake}"),
        ("GET", f"/intake/events?id={intake}"),
        ("GET", f"/opml?intake={intake}"),
        ("POST", f"/intake?id={intake}"),
        ("DELETE", f"/intake?id={intake}"),
    ):
        assert (await proxy.ask(method, target)).status == 401, target
        changes = method != "GET"
        assert (await proxy.ask(method, target, headers=foreign)).status == (403 if changes else 200)
    changed = await proxy.ask("GET", f"/opml?intake={intake}", headers=login)
    assert b"token=a%20token" in changed.body
    assert (await proxy.ask("DELETE", f"/intake?id={intake}", headers=login)).status == 204
