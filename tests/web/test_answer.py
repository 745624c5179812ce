"""wholefeed.web.answer: limit, since, answer_bytes and conditional requests."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tests.feeds import an_item, atom, ids, links, publish_chain, rdf, rss, stamp
from tests.listing import LISTS, looked
from tests.origin import Origin
from tests.publishers.archive_page import ArchivePage
from tests.running import Proxy, Reply, StartProxy
from wholefeed.core.parse.documents import parse
from wholefeed.server.clients import sign
from wholefeed.web.answer import accepts_gzip, is_not_modified


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, False),
        ("", False),
        ("gzip", True),
        ("x-gzip", True),
        ("br, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("*", True),
        ("*;q=0", False),
        ("*;q=0, gzip", True),
        ("deflate, br", False),
        ("gzip;q=0.3, identity;q=0.8", False),
        ("gzip;q=junk", False),
        ("identity", False),
    ],
)
def test_gzip_is_sent_where_it_is_welcome(header: str | None, expected: bool) -> None:
    """RFC 9110, 12.5.3."""
    assert accepts_gzip(header) is expected


DATE = "Sat, 21 Nov 2026 10:00:00 GMT"
AT = 1795255200.0


@pytest.mark.parametrize(
    ("if_none_match", "if_modified_since", "expected"),
    [
        ('"a"', None, True),
        ('W/"a"', None, True),
        ('"x", "a"', None, True),
        ("*", None, True),
        ('"x"', None, False),
        ('"x"', DATE, False),
        (None, DATE, True),
        (None, "Sat, 21 Nov 2026 09:59:59 GMT", False),
        (None, "yesterday", False),
        (None, None, False),
    ],
)
def test_a_reader_that_has_it_is_told_so(
    if_none_match: str | None, if_modified_since: str | None, expected: bool
) -> None:
    """RFC 9110, 13.2.2: If-None-Match outranks If-Modified-Since."""
    assert is_not_modified('"a"', AT, if_none_match, if_modified_since) is expected


def test_a_weak_tag_is_compared_with_what_it_says() -> None:
    """RFC 9110, 8.8.3.2: readers may still hold the tag in its old strong form."""
    for tag in ('W/"a"', '"a"', '"x", W/"a"'):
        assert is_not_modified('W/"a"', AT, tag, None)
    assert not is_not_modified('W/"a"', AT, 'W/"x"', None)


def test_a_date_says_nothing_where_the_answer_has_none() -> None:
    """RFC 9110, 13.1.3."""
    assert not is_not_modified('"a"', None, None, DATE)


async def seen(proxy: Proxy, url: str, query: dict[str, str], **headers: str) -> Reply:
    sent = {
        "Accept-Encoding": "identity",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return await proxy.ask("GET", "/feed", params={"url": url, **query}, headers=sent)


def says_complete(reply: Reply) -> bool:
    return "complete" in [element.name for element in parse(reply.body, "http://p.test/").head.history]


@pytest.mark.parametrize("make", [atom, rss, rdf])
async def test_a_limit_gives_the_first_entries_and_says_so(proxy: Proxy, origin: Origin, make: Any) -> None:
    """A cut answer bears no fh:complete and keeps the state of the whole (R21)."""
    expected = publish_chain(origin, archives=3, make=make)
    url = origin.url("/feed")
    whole = await proxy.whole(url)
    reply = await proxy.get(url, limit="3")

    assert ids(reply.body) == expected[:3]
    assert (
        reply.reconstruction
        == f"{whole.reconstruction};cut"
        == "complete;documents=4;entries=8;missing=0;cut"
    )
    assert says_complete(whole)
    assert not says_complete(reply)
    assert reply.headers["ETag"] != whole.headers["ETag"]
    found = links(reply.body)
    assert found["urn:wholefeed:whole"] == links(whole.body)["self"]
    assert found["self"] == [links(whole.body)["self"][0] + "&limit=3"]
    assert "urn:wholefeed:whole" not in links(whole.body)


async def test_a_view_that_leaves_nothing_out_is_whole(proxy: Proxy, origin: Origin) -> None:
    """fh:complete appears exactly when the state is complete and nothing was cut (R21)."""
    expected = publish_chain(origin, archives=1)
    url = origin.url("/feed")
    await proxy.whole(url)
    for query in ({"limit": "4"}, {"limit": "9999"}, {"since": "1970-01-01T00:00:00Z"}):
        reply = await seen(proxy, url, query)
        assert ids(reply.body) == expected
        assert says_complete(reply)
        assert not reply.reconstruction.endswith("cut")


@pytest.mark.parametrize("make", [atom, rdf])
async def test_since_gives_what_is_dated_from_then_on(proxy: Proxy, origin: Origin, make: Any) -> None:
    """`since=` gives every entry from that instant on, in any offset and with `limit`."""
    expected = publish_chain(origin, archives=3, make=make)
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await proxy.get(url, since=stamp(5))
    assert ids(reply.body) == [name for name in expected if int(name[1:]) >= 5]
    assert reply.reconstruction.endswith(";cut")
    shifted = await proxy.get(url, since=stamp(5).replace("Z", "+00:00"))
    assert ids(shifted.body) == ids(reply.body)
    both = await proxy.get(url, since=stamp(5), limit="2")
    assert ids(both.body) == expected[:2]
    nothing = await proxy.get(url, since="2100-01-01T00:00:00Z")
    assert (nothing.status, ids(nothing.body)) == (200, [])


@pytest.mark.parametrize("make", [atom, rdf])
async def test_answer_bytes_cuts_every_answer(start: StartProxy, origin: Origin, make: Any) -> None:
    """docs/design.md#the-interface: miniflux takes 15 MiB, CommaFeed 5 MB, after decompression."""
    expected = publish_chain(origin, archives=5, entries=4, make=make)
    url = origin.url("/feed")
    proxy = await start(limits={"answer_bytes": 3000})
    reply = await proxy.whole(url)
    packed = await proxy.get(url, headers={"Accept-Encoding": "gzip"})
    prefixed = await proxy.ask("GET", f"/{url}", headers={"Accept-Encoding": "identity"})
    assert len(reply.body) <= 3000
    assert reply.reconstruction == "complete;documents=6;entries=24;missing=0;cut"
    kept = ids(reply.body)
    assert kept == expected[: len(kept)]
    assert 3 <= len(kept) < 24
    assert gzip.decompress(packed.body) == reply.body == prefixed.body


@pytest.mark.parametrize("make", [atom, rss, rdf])
async def test_a_warning_that_does_not_fit_is_left_out(start: StartProxy, origin: Origin, make: Any) -> None:
    """An answer never exceeds `answer_bytes`; the header still says that entries are missing (R16)."""
    origin.publish("/feed", make(an_item("a", 2), an_item("b", 1), prev_archive="/gone"), content_type=None)
    proxy = await start()
    url = origin.url("/feed")
    whole = await proxy.whole(url)
    assert whole.state == "partial"
    sizes = range(len(whole.body), 1024, -37)
    for most in sizes:
        reply = await proxy.get(url, answer_bytes=str(most))
        assert reply.state == "partial"
        assert len(reply.body) <= most
    assert len(sizes) > 3


async def test_a_url_s_own_answer_bytes_cuts_its_answers_alone(start: StartProxy, origin: Origin) -> None:
    """The lower of `answer_bytes=` and `limits.answer_bytes` counts; tag and self link differ."""
    expected = publish_chain(origin, archives=5, entries=4)
    url = origin.url("/feed")
    proxy = await start(limits={"answer_bytes": 4000})
    configured = await proxy.whole(url)
    lower = await proxy.get(url, answer_bytes="2500")
    higher = await proxy.get(url, answer_bytes="100000")
    known = await proxy.get(url, answer_bytes="2500", headers={"If-None-Match": lower.headers["ETag"]})
    assert 0 < len(ids(lower.body)) < len(ids(configured.body)) < len(expected)
    assert len(lower.body) <= 2500
    assert 2500 < len(higher.body) <= 4000
    assert lower.reconstruction == configured.reconstruction == higher.reconstruction
    assert lower.reconstruction.endswith(";cut")
    assert len({reply.headers["ETag"] for reply in (lower, configured, higher)}) == 3
    assert known.status == 304
    assert links(lower.body)["self"] == [links(configured.body)["self"][0] + "&answer_bytes=2500"]
    assert links(lower.body)["urn:wholefeed:whole"] == links(configured.body)["self"]


@pytest.mark.parametrize("memory_bytes", [1 << 26, 0])
async def test_answer_bytes_counts_to_the_last_byte(
    start: StartProxy, origin: Origin, memory_bytes: int
) -> None:
    """The limit counts alike in memory and in the store."""
    publish_chain(origin, archives=4)
    url = origin.url("/feed")
    proxy = await start(store={"memory_bytes": memory_bytes})
    await proxy.whole(url)
    size = len((await proxy.get(url, answer_bytes="9999")).body)
    exact = await proxy.get(url, answer_bytes=str(size))
    less = await proxy.get(url, answer_bytes=str(size - 1))
    assert len(exact.body) == size
    assert says_complete(exact)
    assert len(less.body) < size
    assert less.reconstruction == exact.reconstruction + ";cut"


@pytest.mark.parametrize("query", [{"limit": "3"}, {"since": stamp(4)}, {"limit": "1", "since": stamp(2)}])
async def test_a_view_has_every_form_of_an_answer(
    proxy: Proxy, origin: Origin, query: dict[str, str]
) -> None:
    """RFC 9110: HEAD, conditional requests and gzip work over the bytes of the view."""
    publish_chain(origin, archives=3)
    url = origin.url("/feed")
    await proxy.whole(url)
    reply = await seen(proxy, url, query)
    packed = await seen(proxy, url, query, Accept_Encoding="gzip")
    head = await proxy.ask(
        "HEAD", "/feed", params={"url": url, **query}, headers={"Accept-Encoding": "identity"}
    )
    known = await seen(proxy, url, query, If_None_Match=reply.headers["ETag"])
    other = await proxy.get(url, headers={"If-None-Match": reply.headers["ETag"]})

    assert gzip.decompress(packed.body) == reply.body
    assert int(packed.headers["Content-Length"]) == len(packed.body)
    assert int(head.headers["Content-Length"]) == len(reply.body)
    assert (known.status, known.reconstruction) == (304, reply.reconstruction)
    assert other.status == 200
    assert head.headers["ETag"] == reply.headers["ETag"] != packed.headers["ETag"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"limit": "0"}, "whole number"),
        ({"limit": "-1"}, "whole number"),
        ({"limit": "many"}, "whole number"),
        ({"limit": ""}, "whole number"),
        ({"limit": "1" * 30}, "whole number"),
        ({"answer_bytes": "1023"}, "answer_bytes as a whole number, 1024 or more"),
        ({"answer_bytes": "5M"}, "answer_bytes as a whole number, 1024 or more"),
        ({"since": "yesterday"}, "RFC 3339"),
        ({"since": "2026-01-01"}, "RFC 3339"),
        ({"since": "2026-13-01T00:00:00Z"}, "RFC 3339"),
        ({"since": ""}, "RFC 3339"),
    ],
)
async def test_a_bad_value_is_a_400_that_names_what_was_expected(
    proxy: Proxy, origin: Origin, query: dict[str, str], expected: str
) -> None:
    """The refusal comes before any fetch."""
    reply = await seen(proxy, origin.url("/feed"), query)

    assert reply.status == 400
    assert f"expected {next(iter(query))} as " in json.loads(reply.body)["detail"]
    assert expected in json.loads(reply.body)["detail"]
    assert origin.requests == []


async def test_a_signature_is_good_for_the_pages_of_its_feed(start: StartProxy, origin: Origin) -> None:
    """The signature opens no other feed (G1, G2)."""
    origin.publish("/feed", atom(*(an_item(f"e{number}", number) for number in range(37, 0, -1))))
    url, key = origin.url("/feed"), "a-key-that-nobody-guesses"
    proxy = await start(server={"signing_keys": (key,)})
    mark = sign(url, (key,))
    reply = await proxy.get(url, signed=mark, pages="10")
    following = links(reply.body)["next"][0]
    target = following.partition(str(proxy.client.port))[2]
    assert len(ids((await proxy.ask("GET", target, headers={"Accept-Encoding": "identity"})).body)) == 10
    assert (await proxy.get(url, pages="10")).status == 403
    assert (await proxy.get(origin.url("/other"), signed=mark, pages="10")).status == 403


async def test_listed_off_goes_with_a_signature_and_behind_a_url_as_it_is(
    start: StartProxy, origin: Origin
) -> None:
    """`listed` is the proxy's parameter, as `limit` is (P7)."""
    key = "a-key-that-nobody-guesses"
    proxy = await start(history=LISTS, server={"signing_keys": (key,)})
    ArchivePage(origin, posts=30).publish()
    url = origin.url("/feed")
    mark = sign(url, (key,))
    await proxy.get(url, signed=mark)
    await looked(proxy)
    reply = await proxy.get(url, signed=mark, listed="off")
    assert (reply.state, reply.body.count(b"<item>")) == ("remembered", 5)
    behind = await proxy.ask("GET", f"/feed?url={url}&listed=off&signed={mark}")
    assert behind.reconstruction == reply.reconstruction
    assert (await proxy.get(url, listed="off")).status == 403
