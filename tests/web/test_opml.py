"""GET and POST of /opml, as a reader's user meets them."""

from __future__ import annotations

import asyncio
import gzip
import io
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from aiohttp import FormData, MultipartWriter

from tests.cpu_time import longest_turn
from tests.faults.checks import problem
from tests.feeds import atom, rss
from tests.origin import Origin
from tests.patching import set_constant
from tests.running import Proxy, Reply
from tests.web.browsing import browse, text
from wholefeed.core.opml import MAX_BYTES, read_opml
from wholefeed.web import opml_routes
from wholefeed.web.keys import UPLOADS
from wholefeed.web.opml_routes import COUNTS_FIELD

LIST = b"""<opml version="2.0"><body><outline text="Folder" x="1"><!-- kept -->
<outline text="A" xmlUrl="https://example.org/a?b=1&amp;c=2"/></outline>
<outline xmlUrl='urn:x'/></body></opml>"""


def urls(reply: Reply) -> list[str]:
    return [each.url for each in read_opml(reply.body).subscriptions]


async def test_a_list_goes_through_the_proxy_and_back(proxy: Proxy) -> None:
    """`undo=1` gives the sent bytes. The header counts."""
    moved = await proxy.ask("POST", "/opml", data=LIST, headers={"Content-Type": "text/x-opml"})
    base = f"http://127.0.0.1:{proxy.client.port}"
    assert moved.status == 200
    assert urls(moved) == [f"{base}/feed?url=https%3A%2F%2Fexample.org%2Fa%3Fb%3D1%26c%3D2", "urn:x"]
    assert moved.headers["Content-Type"] == "text/x-opml"
    assert moved.headers["Content-Disposition"] == 'attachment; filename="subscriptions.opml"'
    assert moved.headers["Cache-Control"] == "no-store"
    assert moved.headers[COUNTS_FIELD] == "rewritten=1, not-web=1"
    back = await proxy.ask("POST", "/opml?undo=1", data=moved.body)
    assert back.body == LIST
    assert back.headers[COUNTS_FIELD] == "rewritten=1, direct=1"


async def test_a_form_s_file_is_taken_with_its_other_fields(proxy: Proxy) -> None:
    """The page's form: the field `file`, beside any others, which count as parameters."""
    form = FormData()
    form.add_field("something", "else")
    form.add_field("answer_bytes", "5000000")
    form.add_field("limit", "")
    form.add_field("file", LIST, filename="my subscriptions.opml", content_type="text/xml")
    moved = await proxy.ask("POST", "/opml?since=2026-01-01T00:00:00Z", data=form)
    assert moved.status == 200
    assert parse_qs(urlsplit(urls(moved)[0]).query) == {
        "url": ["https://example.org/a?b=1&c=2"],
        "since": ["2026-01-01T00:00:00Z"],
        "answer_bytes": ["5000000"],
    }
    again = FormData()
    again.add_field("file", moved.body, filename="moved.opml")
    again.add_field("undo", "1")
    assert (await proxy.ask("POST", "/opml", data=again)).body == LIST


async def test_a_person_is_told_what_was_left_as_it_is(proxy: Proxy) -> None:
    """The page's form gets the same list as a program."""
    moved = await proxy.ask("POST", "/opml", data=LIST)
    reply = await browse(proxy, "/opml", method="POST", data=FormData({"file": io.BytesIO(LIST)}))
    assert (reply.status, COUNTS_FIELD in reply.headers) == (200, False)
    said = text(reply)
    assert "1 subscription changed to this proxy" in said
    assert "1: not http or https urn:x in line 3 of the file" in said
    (made,) = re.findall('name="made" value="([^"]*)"', reply.body.decode())
    loaded = await browse(proxy, "/opml", method="POST", data=a_form(("made", made.encode()))())
    assert loaded.body == moved.body
    assert loaded.headers["Content-Disposition"] == moved.headers["Content-Disposition"]
    form = FormData({"file": io.BytesIO(moved.body), "undo": "1"})
    back = text(await browse(proxy, "/opml", method="POST", data=form))
    assert "1 subscription changed back to the publishers" in back
    assert "1: does not go through the proxy urn:x" in back


async def test_a_list_that_is_too_long_for_a_page_is_a_file_at_once(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's form could not bring it back."""
    monkeypatch.setattr(opml_routes, "_SHOWN_BYTES", 10)
    reply = await browse(proxy, "/opml", method="POST", data=FormData({"file": io.BytesIO(LIST)}))
    assert reply.headers[COUNTS_FIELD] == "rewritten=1, not-web=1"


@pytest.mark.parametrize("is_form", [False, True])
async def test_a_list_can_be_replayed_and_come_back(proxy: Proxy, is_form: bool) -> None:
    """The parameters of /feed count; `undo=1` removes them (P8)."""
    replay = {"replay": "2/day", "from": "2026-11-02T06:00:00+01:00", "on": "mon,thu", "original": "off"}
    form = FormData({**replay, "file": io.BytesIO(LIST)}) if is_form else None
    target = "/opml" if is_form else f"/opml?{urlencode(replay)}"
    moved = await proxy.ask("POST", target, data=form or LIST)
    assert parse_qs(urlsplit(urls(moved)[0]).query) == {
        "url": ["https://example.org/a?b=1&c=2"],
        **{name: [value] for name, value in replay.items()},
    }
    assert (await proxy.ask("POST", "/opml?undo=1", data=moved.body)).body == LIST


@pytest.mark.parametrize("is_form", [False, True])
async def test_a_list_can_leave_out_what_is_listed_and_come_back(proxy: Proxy, is_form: bool) -> None:
    """`undo=1` removes `listed=off`; another value is refused (H1)."""
    form = FormData({"listed": "off", "file": io.BytesIO(LIST)}) if is_form else None
    moved = await proxy.ask("POST", "/opml" if is_form else "/opml?listed=off", data=form or LIST)
    assert parse_qs(urlsplit(urls(moved)[0]).query) == {
        "url": ["https://example.org/a?b=1&c=2"],
        "listed": ["off"],
    }
    assert (await proxy.ask("POST", "/opml?undo=1", data=moved.body)).body == LIST
    refused = await proxy.ask("POST", "/opml?listed=no", data=LIST)
    assert (refused.status, refused.slug) == (400, "bad-request")


async def test_what_is_a_replay_s_counts_beside_it_alone(proxy: Proxy) -> None:
    """Without `replay` a parameter `on` or `from` is none of the proxy's (P7)."""
    fields = {"on": "mon", "from": "x", "original": "1"}
    form = FormData({**fields, "file": io.BytesIO(LIST)})
    for target, body in ((f"/opml?{urlencode(fields)}", LIST), ("/opml", form)):
        moved = await proxy.ask("POST", target, data=body)
        assert parse_qs(urlsplit(urls(moved)[0]).query) == {"url": ["https://example.org/a?b=1&c=2"]}


async def test_the_known_feeds_are_exported(proxy: Proxy, origin: Origin) -> None:
    """GET /opml: each feed once, by its title; with `undo=1`, at its publisher."""
    origin.publish("/a", atom().replace(b"A feed", b"A &amp; &lt;b>"))
    origin.publish("/b", rss())
    for path in ("/a", "/b"):
        await proxy.whole(origin.url(path))
    exported = await proxy.ask("GET", "/opml", headers={"Accept-Encoding": "identity"})
    assert exported.headers["Content-Disposition"] == 'attachment; filename="wholefeed.opml"'
    assert [parse_qs(urlsplit(url).query)["url"] for url in urls(exported)] == [
        [origin.url("/a")],
        [origin.url("/b")],
    ]
    assert b'<outline type="rss" text="A &amp; &lt;b&gt;" title=' in exported.body
    assert b'title="A channel" xmlUrl="http' in exported.body
    assert exported.body.count(b'htmlUrl="http://site.test/"') == 1
    back = await proxy.ask("POST", "/opml?undo=1", data=exported.body)
    assert urls(back) == [origin.url("/a"), origin.url("/b")]


@pytest.mark.parametrize(
    ("query", "body", "status", "slug", "told"),
    [
        ("", b"", 422, "not-opml", "got nothing"),
        ("", b"<rss/>", 422, "not-opml", "<rss>"),
        ("", b"<opml>\n<outline></opml>", 422, "malformed-xml", "line 2, column 12"),
        ("", b'<!DOCTYPE opml [<!ENTITY a "b">]><opml/>', 422, "dtd-forbidden", "got <!ENTITY a (line 1)"),
        ("", b"<opml>" + b"<outline>" * 100, 422, "xml-limit", "levels"),
        ("?answer_bytes=1", LIST, 400, "bad-request", "answer_bytes as a whole number, 1024 or more"),
        (
            "?replay=1/day",
            LIST,
            400,
            "bad-request",
            "feed?url=U&replay=1/day&from=2026-01-31T06",
        ),
        ("?replay=1/month&from=2026-01-31T06:00:00Z", LIST, 400, "bad-request", "replay as N/day or N/week"),
        ("?undo=1&undo=0", LIST, 400, "bad-request", "more than one"),
    ],
)
async def test_what_cannot_be_done_is_told(
    proxy: Proxy, query: str, body: bytes, status: int, slug: str, told: str
) -> None:
    """A bad list or parameter is answered with the error and its place."""
    reply = await proxy.ask("POST", f"/opml{query}", data=body)
    assert told in problem(reply, slug, status)["detail"]


@pytest.mark.parametrize("is_form", [False, True])
@pytest.mark.fault("94")
async def test_a_list_that_is_too_long_is_refused(proxy: Proxy, is_form: bool) -> None:
    """The answer is 413 before all of it is in memory."""
    long = io.BytesIO(LIST + b" " * MAX_BYTES)
    sent: Any = long
    if is_form:
        sent = FormData()
        sent.add_field("file", long, filename="long.opml")
    reply = await proxy.ask("POST", "/opml", data=sent)
    assert f"at most {MAX_BYTES} bytes" in problem(reply, "too-large", 413)["detail"]


ATTRIBUTES = b"".join(b' a%d=""' % number for number in range(600_000))
NAMESPACES = b"".join(b' xmlns:a%d="u"' % number for number in range(400_000))


@pytest.mark.parametrize(
    "body",
    [
        b"<opml><body><outline" + ATTRIBUTES + b"/></body></opml>",
        b"<opml><body>&nbsp;<outline" + ATTRIBUTES + b"/></body></opml>",
        b"<opml><body><outline" + NAMESPACES + b"/></body></opml>",
    ],
    ids=["attributes", "to-be-repaired", "namespaces"],
)
@pytest.mark.fault("111")
async def test_one_endless_tag_holds_up_nobody(proxy: Proxy, body: bytes) -> None:
    """docs/faults.md row 111: no thread has a turn while expat parses a tag."""
    asking = asyncio.create_task(proxy.ask("POST", "/opml", data=io.BytesIO(body)))
    assert await longest_turn(asking) < 0.075
    assert "start tags of at most" in problem(await asking, "xml-limit", 422)["detail"]


def form_of(before: bytes, file: bytes) -> bytes:
    """Return a form with a preamble and a file."""
    return (
        before + b'\r\n--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + file + b"\r\n--x--\r\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        form_of(b"\n" * 3_000_000, LIST),
        form_of(b"\r\n" * 3_000_000, LIST),
        form_of(b"\r\n--" * 1_500_000, LIST),
        form_of(b"\r\n--x-" * 1_000_000, LIST),
        form_of(b"", LIST + b"\r\n" * 3_000_000),
    ],
    ids=["lines", "line-ends", "dashes", "boundaries", "lines-of-the-list"],
)
@pytest.mark.fault("94")
async def test_a_form_of_nothing_but_lines_holds_up_nobody(proxy: Proxy, body: bytes) -> None:
    """Row 94: text before the parts of a form means nothing (RFC 2046, 5.1.1); nor do lines of a list."""
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    asking = asyncio.create_task(proxy.ask("POST", "/opml", data=io.BytesIO(body), headers=kind))
    assert await longest_turn(asking) < 0.075
    assert (await asking).status in (200, 422)


def nested() -> Any:
    inner = MultipartWriter("mixed")
    inner.append(LIST)
    outer = MultipartWriter("form-data")
    outer.append(inner).set_content_disposition("form-data", name="file")
    return outer


def a_form(*fields: tuple[str, bytes]) -> Callable[[], Any]:
    def made() -> FormData:
        form = FormData()
        for name, value in fields:
            form.add_field(name, value, filename="f")
        return form

    return made


@pytest.mark.parametrize(
    ("make", "status", "told"),
    [
        (a_form(("other", LIST[:100])), 422, "field file, got none"),
        (a_form(*[("other", b"")] * 30, ("file", LIST)), 422, "few others"),
        (a_form(("other", b"x" * 300), ("file", LIST)), 413, "at most 200 bytes"),
        (a_form(("made", b"?")), 422, "the field made in base64"),
        (nested, 422, "a field file and few others"),
    ],
)
@pytest.mark.fault("94")
async def test_a_form_that_makes_no_sense_is_refused(
    proxy: Proxy, make: Callable[[], Any], status: int, told: str
) -> None:
    """A malformed form does not fill the memory."""
    reply = await proxy.ask("POST", "/opml", data=make())
    assert told in problem(reply, "too-large" if status == 413 else "not-opml", status)["detail"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x\r\n\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b"nothing of the kind"),
        ("multipart/form-data; boundary=x", b"--x\r\nno header\r\n\r\nbody"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data; name=file\r\n\r\nno end",
        ),
        ("multipart/form-data; boundary=" + "x" * 100, b"--x\r\n"),
        ("multipart/form-data; boundary=x", b""),
    ],
)
async def test_a_broken_form_is_refused(proxy: Proxy, kind: str, body: bytes) -> None:
    """A malformed form is the sender's fault: 422, never 500."""
    reply = await proxy.ask("POST", "/opml", data=body, headers={"Content-Type": kind})
    assert problem(reply, "not-opml", 422)


@pytest.mark.fault("94")
async def test_a_sender_that_stalls_is_given_up(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that does not arrive occupies nothing for long."""
    set_constant(monkeypatch, "UPLOAD_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(proxy.client.host, proxy.client.port)
    writer.write(b"POST /opml HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n<opml>")
    async with asyncio.timeout(300):
        status = await reader.readline()
    writer.close()
    await writer.wait_closed()
    assert status.startswith(b"HTTP/1.1 400 ")


@pytest.mark.fault("94")
async def test_a_list_that_is_compressed_takes_the_room_of_the_longest(proxy: Proxy) -> None:
    """The announced length is that of the compressed list."""
    room = proxy.app[UPLOADS]
    room.wait_seconds = 0.05
    taken_bytes = room.total_bytes - MAX_BYTES // 2
    assert await room.take(taken_bytes)
    body = b"<opml version='2.0'><body/></opml>"
    for coding, status in ((b"", 200), (b"gzip", 503)):
        fields = {"Content-Encoding": coding.decode()} if coding else {}
        sent = gzip.compress(body) if coding else body
        assert (await proxy.ask("POST", "/opml", data=sent, headers=fields)).status == status
    room.give_back(taken_bytes)
    assert room.free_bytes == room.total_bytes
