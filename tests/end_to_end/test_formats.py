"""Every format through the whole proxy: its chain walked, and its own format out (R9, R10, R19 to R23)."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree

import feedparser
import pytest

from tests.feeds import an_item, atom, atom_03, ids, json_feed, publish_chain, rdf, rss, stamp, texts
from tests.origin import Origin
from tests.running import Proxy, a_config, running
from wholefeed.core.model import ATOM_03_NS, ATOM_NS, FH_NS, RDF_NS, TOMBSTONE_NS

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
GZIP = {"Accept-Encoding": "gzip"}

Make = Callable[..., bytes]


def gone(body: bytes) -> list[str | None]:
    return [each.get("ref") for each in ElementTree.fromstring(body).iter(f"{{{TOMBSTONE_NS}}}deleted-entry")]


def deleted(name: str, hours: int) -> str:
    return f'<at:deleted-entry xmlns:at="{TOMBSTONE_NS}" ref="urn:{name}" when="{stamp(hours)}"/>'


def items(body: bytes) -> list[str]:
    return [item["id"].removeprefix("urn:") for item in json.loads(body)["items"]]


def publish_json_chain(origin: Origin, *, archives: int, **head: Any) -> list[str]:
    """Publish a JSON Feed with archives linked in HTTP (R12), for JSON has no word for them."""
    names = []
    for place in range(archives + 1, 0, -1):
        held = [an_item(f"e{2 * place - n}", 2 * place - n) for n in range(2)]
        names += [item.name for item in held]
        headers = [("Link", f'</archive/{place - 1}>; rel="prev-archive"')] if place > 1 else []
        path = f"/archive/{place}" if place <= archives else "/feed"
        origin.publish(path, json_feed(*held, **head), content_type="application/feed+json", headers=headers)
    return names


async def test_next_url_leads_through_the_pages_of_a_json_feed(tmp_path: Path, origin: Origin) -> None:
    """R6; JSON Feed 1.1, "Top-level", next_url; R22: the join has no comma too many."""
    pages = {"/feed": ("c", origin.url("/2")), "/2": ("b", origin.url("/3")), "/3": ("a", "")}
    for path, (name, next_url) in pages.items():
        head = {"next_url": next_url} if next_url else {}
        origin.publish(
            path, json_feed(an_item(name, ord(name)), **head), content_type="application/feed+json"
        )
    async with running(a_config(tmp_path)) as proxy:
        reply = await proxy.whole(origin.url("/feed"))
    assert reply.state == "paged"
    assert items(reply.body) == ["c", "b", "a"]
    assert "next_url" not in json.loads(reply.body)


@pytest.mark.parametrize(
    ("make", "media_type", "root"),
    [
        (atom, "application/atom+xml", f"{{{ATOM_NS}}}feed"),
        (atom_03, "application/atom+xml", f"{{{ATOM_03_NS}}}feed"),
        (rss, "application/rss+xml", "rss"),
        (rdf, "application/rdf+xml", f"{{{RDF_NS}}}RDF"),
    ],
)
async def test_an_archived_feed_comes_out_whole_in_its_own_format(
    proxy: Proxy, origin: Origin, make: Make, media_type: str, root: str
) -> None:
    """R2, R20, R21: the same walk in every format that can name its archives."""
    expected = publish_chain(origin, archives=3, make=make)
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", expected)
    assert reply.headers["Content-Type"] == f"{media_type}; charset=utf-8"
    element = ElementTree.fromstring(reply.body)
    assert element.tag == root
    assert len(list(element.iter(f"{{{FH_NS}}}complete"))) == 1
    assert texts(reply.body)["e1"] == "text of e1"


async def test_an_archived_json_feed_comes_out_whole(proxy: Proxy, origin: Origin) -> None:
    """R2, R12, R21; RFC 8259: no comma too many or too few, for any segments."""
    expected = publish_json_chain(origin, archives=3)
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, items(reply.body)) == ("complete", expected)
    assert reply.headers["Content-Type"] == "application/feed+json"
    head = json.loads(reply.body)
    assert head["version"] == "https://jsonfeed.org/version/1.1"
    assert head["feed_url"].endswith(
        "/feed?url=" + origin.url("/feed").replace(":", "%3A").replace("/", "%2F")
    )

    zipped = await proxy.get(origin.url("/feed"), headers=GZIP)
    assert gzip.decompress(zipped.body) == reply.body
    assert int(zipped.headers["Content-Length"]) == len(zipped.body)
    assert int(reply.headers["Content-Length"]) == len(reply.body)


async def test_a_partial_json_feed_has_its_pseudo_entry_first(proxy: Proxy, origin: Origin) -> None:
    """R16."""
    publish_json_chain(origin, archives=2)
    origin.remove("/archive/1")
    reply = await proxy.whole(origin.url("/feed"))
    assert reply.state == "partial"
    assert items(reply.body)[1:] == ["e6", "e5", "e4", "e3"]
    assert origin.url("/archive/1") in json.loads(reply.body)["items"][0]["content_text"]
    zipped = await proxy.get(origin.url("/feed"), headers=GZIP)
    assert gzip.decompress(zipped.body) == reply.body


@pytest.mark.parametrize("make", [atom_03, rdf])
async def test_a_partial_feed_has_its_pseudo_entry_in_its_own_format(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """R16."""
    publish_chain(origin, archives=2, make=make)
    origin.remove("/archive/1")
    reply = await proxy.whole(origin.url("/feed"))
    assert reply.state == "partial"
    assert ids(reply.body)[1:] == ["e6", "e5", "e4", "e3"]


async def test_items_of_a_json_archive_keep_their_own_author_and_language(
    proxy: Proxy, origin: Origin
) -> None:
    """R22; JSON Feed 1.1, "Items"."""
    link = [("Link", '</1>; rel="prev-archive"')]
    ann, bob = [{"name": "Ann"}], [{"name": "Bob"}]
    origin.publish("/feed", json_feed(an_item("b", 2), authors=ann, language="en"), headers=link)
    origin.publish("/1", json_feed(an_item("a", 1), authors=bob, language="de"))
    b, a = json.loads((await proxy.whole(origin.url("/feed"))).body)["items"]
    assert "authors" not in b
    assert (a["authors"], a["language"]) == (bob, "de")

    origin.publish("/feed", json_feed(an_item("b", 2), authors=ann, language="de"), headers=link)
    b, a = json.loads((await proxy.refreshed(origin.url("/feed"))).body)["items"]
    assert (a["authors"], "language" in a) == (bob, False)

    origin.publish("/feed", json_feed(an_item("b", 2), authors=bob, language="de"), headers=link)
    b, a = json.loads((await proxy.refreshed(origin.url("/feed"))).body)["items"]
    assert "authors" not in a


@pytest.mark.parametrize(("newer", "older"), [(atom, atom_03), (atom_03, atom)])
async def test_both_versions_of_atom_stand_in_one_feed(
    proxy: Proxy, origin: Origin, newer: Make, older: Make
) -> None:
    """R23: one family; each entry keeps its namespace, and the default is the subscription document's."""
    origin.publish("/feed", newer(an_item("b", 2), prev_archive="/1"))
    origin.publish("/1", older(an_item("a", 1), archive=True))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", ["b", "a"])
    root = ElementTree.fromstring(reply.body)
    namespaces = {atom: ATOM_NS, atom_03: ATOM_03_NS}
    found = [child.tag for child in root if child.tag.endswith("}entry")]
    assert found == [f"{{{namespaces[make]}}}entry" for make in (newer, older)]
    assert texts(reply.body) == {"a": "text of a", "b": "text of b"}


async def test_a_publisher_that_goes_over_to_atom_1_0_keeps_its_archives(
    proxy: Proxy, origin: Origin
) -> None:
    """R23: entries rendered for the other default namespace are rendered again."""
    publish_chain(origin, archives=2, make=atom_03)
    await proxy.whole(origin.url("/feed"))
    origin.publish("/feed", atom(an_item("e6", 6), an_item("e5", 5), prev_archive="/archive/2"))
    reply = await proxy.refreshed(origin.url("/feed"))
    root = ElementTree.fromstring(reply.body)
    assert root.tag == f"{{{ATOM_NS}}}feed"
    assert ids(reply.body) == ["e6", "e5", "e4", "e3", "e2", "e1"]
    tags = [child.tag for child in root if child.tag.endswith("}entry")]
    assert tags == [f"{{{ATOM_NS}}}entry"] * 2 + [f"{{{ATOM_03_NS}}}entry"] * 4


@pytest.mark.parametrize("other", [atom, rss, json_feed])
async def test_rdf_is_a_family_of_its_own(proxy: Proxy, origin: Origin, other: Make) -> None:
    """R23: RSS 0.9x and 2.0 are one family, RDF is another."""
    origin.publish("/feed", rdf(an_item("b", 2), prev_archive="/1"))
    origin.publish("/1", other(an_item("a", 1)))
    reply = await proxy.whole(origin.url("/feed"))
    (missing,) = (await proxy.status(origin.url("/feed")))["missing"]
    assert (reply.state, missing["reason"]) == ("partial", "format")


async def test_an_update_of_atom_0_3_counts_by_its_modified(proxy: Proxy, origin: Origin) -> None:
    """R10."""
    origin.publish("/feed", atom_03(an_item("a", 1, "old"), prev_archive="/1"))
    origin.publish("/1", atom_03(an_item("a", 5, "new"), archive=True))
    assert texts((await proxy.whole(origin.url("/feed"))).body) == {"a": "new"}


@pytest.mark.parametrize("make", [atom_03, rdf, rss, json_feed])
async def test_entries_that_left_a_feed_without_history_are_remembered(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """R7: in every format."""
    read = items if make is json_feed else ids
    origin.publish("/feed", make(an_item("e1", 1)))
    reply = await proxy.whole(origin.url("/feed"))
    for newest in range(2, 5):
        origin.publish("/feed", make(an_item(f"e{newest}", newest), an_item(f"e{newest - 1}", newest - 1)))
        reply = await proxy.refreshed(origin.url("/feed"))
    assert (reply.state, read(reply.body)) == ("remembered", ["e4", "e3", "e2", "e1"])
    assert gzip.decompress((await proxy.get(origin.url("/feed"), headers=GZIP)).body) == reply.body


async def test_a_page_leads_to_a_json_feed(proxy: Proxy, origin: Origin) -> None:
    """A reader who enters a page that announces a JSON Feed gets that feed."""
    page = b"<html><link rel=alternate type=application/feed+json href=/feed></html>"
    origin.publish("/", page, content_type="text/html")
    origin.publish("/feed", json_feed(an_item("a")), content_type="application/json")
    assert items((await proxy.whole(origin.url("/"))).body) == ["a"]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [(("0.91", "0.91"), "0.91"), (("0.92", "2.0"), "2.0"), (("2.0", "0.91"), "2.0"), (("9", "9"), "2.0")],
)
async def test_old_rss_keeps_its_version_where_all_documents_have_it(
    proxy: Proxy, origin: Origin, versions: tuple[str, str], expected: str
) -> None:
    """R23: a document of a newer version may have elements that the older version lacks."""
    newer, older = (f'version="{version}"'.encode() for version in versions)
    feed, archive = rss(an_item("b"), prev_archive="/1"), rss(an_item("a"), archive=True)
    origin.publish("/feed", feed.replace(b'version="2.0"', newer))
    origin.publish("/1", archive.replace(b'version="2.0"', older))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", ["b", "a"])
    assert f'<rss version="{expected}"'.encode() in reply.body


# Tombstones


@pytest.mark.parametrize("make", [atom, atom_03, rss, rdf])
async def test_a_deleted_entry_leaves_and_an_entry_updated_after_its_deletion_lives(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """R19; RFC 6721, 3."""
    extra = deleted("old", 5) + deleted("new", 5)
    origin.publish("/feed", make(an_item("x", 9), prev_archive="/1", extra=extra))
    # RSS dates its items by pubDate alone, which is no update instant (R10): there both are undated.
    origin.publish("/1", make(an_item("new", 6), an_item("old", 4), archive=True))
    reply = await proxy.whole(origin.url("/feed"))
    assert ids(reply.body) == (["x"] if make is rss else ["x", "new"])
    assert reply.body.count(b"deleted-entry") == 2


@pytest.mark.parametrize("make", [atom, rss, rdf])
async def test_a_tombstone_in_an_archive_counts_and_is_passed_on(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """R19: in any attached document."""
    origin.publish("/feed", make(an_item("b", 9), prev_archive="/2"))
    origin.publish("/2", make(archive=True, prev_archive="/1", extra=deleted("a", 7)))
    origin.publish("/1", make(an_item("a", 1), archive=True))
    reply = await proxy.whole(origin.url("/feed"))
    assert (reply.state, ids(reply.body)) == ("complete", ["b"])
    assert gone(reply.body) == ["urn:a"]


@pytest.mark.parametrize("make", [atom, rss, rdf])
async def test_a_tombstone_that_falls_out_of_the_subscription_document_stays(
    proxy: Proxy, origin: Origin, make: Make
) -> None:
    """R19: the store keeps it for good; the remembered copy of a deleted entry does not come back."""
    url = origin.url("/feed")
    origin.publish("/feed", make(an_item("b", 2), an_item("a", 1)))
    await proxy.whole(url)
    origin.publish("/feed", make(an_item("b", 2), extra=deleted("a", 3)))
    assert ids((await proxy.refreshed(url)).body) == ["b"]
    origin.publish("/feed", make(an_item("c", 4), an_item("b", 2)))
    reply = await proxy.refreshed(url)
    assert ids(reply.body) == ["c", "b"]
    assert gone(reply.body) == ["urn:a"]


async def test_a_deletion_is_undone_by_an_update(proxy: Proxy, origin: Origin) -> None:
    """R19."""
    url = origin.url("/feed")
    origin.publish("/feed", atom(an_item("a", 1), extra=deleted("a", 3)))
    assert ids((await proxy.whole(url)).body) == []
    origin.publish("/feed", atom(an_item("a", 4), extra=deleted("a", 3)))
    assert ids((await proxy.refreshed(url)).body) == ["a"]


# The corpus


OLD_FEEDS = {
    f"{{{RDF_NS}}}RDF": {"item"},
    f"{{{ATOM_03_NS}}}feed": {"entry"},
}


def is_old_feed(body: bytes) -> bool:
    """True without own entities and with at least one entry."""
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        return False
    names = {child.tag.rpartition("}")[2] for child in root}
    return bool(OLD_FEEDS.get(root.tag, set()) & names) and b"<!ENTITY" not in body


def is_json_feed(body: bytes) -> bool:
    try:
        found = json.loads(body.decode("utf-8-sig"))
    except ValueError:
        return False
    is_feed = isinstance(found, dict) and "jsonfeed.org/version" in str(found.get("version"))
    return is_feed and bool(found.get("items"))


def readable(folders: tuple[str, ...], is_wanted: Callable[[bytes], bool]) -> list[tuple[Path, bytes]]:
    found = []
    for path in sorted(path for folder in folders for path in (CORPUS / folder).rglob("*") if path.is_file()):
        body = path.read_bytes()
        if is_wanted(body):
            found.append((path, body))
    return found


SEEN = ("id", "title", "link", "links", "summary", "content", "tags", "enclosures", "author_detail")
DATES = ("updated", "published", "created")


NAMELESS = "entry_link_no_href_link_priority.xml"
"""Feeds with entries that nothing tells apart (R9)."""


def seen(body: bytes, url: str) -> dict[str, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        headers = {"content-location": url, "content-type": "application/xml"}
        parsed = feedparser.parse(body, response_headers=headers)
    entries: dict[str, dict[str, Any]] = {}
    for entry in parsed.entries:
        told = {name: dict.get(entry, name) for name in (*SEEN, *DATES)}
        for part in told["content"] or ():
            part.pop("base")  # where nothing is relative to it, none is sent
        entries.setdefault(str(told["id"] or (told["link"], told["title"])), told)
    return {} if parsed.bozo else entries


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")
async def test_feedparser_sees_the_same_in_every_rdf_and_atom_0_3_feed_of_the_corpus(
    tmp_path: Path, origin: Origin, step: int
) -> None:
    """R9, R10, R22: identities, titles, links, dates, contents and tags, before and after."""
    compared = 0
    async with running(
        a_config(tmp_path, fetch={"allow_hosts": ("127.0.0.1",)}, history={"warn_entry": False})
    ) as proxy:
        found = readable(("real", "conf"), is_old_feed)
        for number, (path, body) in enumerate(found[::step]):
            name = f"/{number}/feed"
            before = seen(body, origin.url(name))
            if not before or path.name == NAMELESS:
                continue
            origin.publish(name, body, content_type="application/xml")
            reply = await proxy.whole(origin.url(name))
            assert reply.status == 200, path
            assert seen(reply.body, "http://p.test/") == before, path
            compared += 1
    assert compared > 200 / step


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real feeds is absent: {CORPUS}")
async def test_every_json_feed_of_the_corpus_comes_out_with_the_same_items(
    proxy: Proxy, origin: Origin
) -> None:
    """R22: items are unchanged, and so are the members of the head that stay."""
    found = readable(("real", "conf", "rfc5005"), is_json_feed)
    assert len(found) >= 8
    for number, (path, body) in enumerate(found):
        origin.publish(f"/{number}", body, content_type="application/feed+json")
        made = json.loads((await proxy.whole(origin.url(f"/{number}"))).body)
        given = json.loads(body.decode("utf-8-sig"))
        urls = ("url", "external_url", "image", "banner_image", "home_page_url", "icon", "favicon", "avatar")
        people = [
            person
            for each in (given, *given["items"])
            for kind in ("authors", "attachments")
            for person in (each.get("author"), *(each.get(kind) or ()))
        ]
        # R22: URLs in these members are absolute
        for said in (each for each in (given, *given["items"], *people) if isinstance(each, dict)):
            for name in urls:
                if isinstance(said.get(name), str) and said[name]:
                    said[name] = urljoin(origin.url("/"), said[name].replace(" ", "%20"))
        order = {json.dumps(item, sort_keys=True) for item in given["items"]}
        assert {json.dumps(item, sort_keys=True) for item in made["items"]} <= order, path
        for name in given.keys() - {"items", "feed_url", "next_url", "hubs", "_wholefeed"}:
            assert made[name] == given[name], path


@pytest.mark.parametrize("make", [atom, atom_03, rss])
async def test_every_format_is_cut_at_its_entries(proxy: Proxy, origin: Origin, make: Make) -> None:
    """R20, R21: the newest entries, from a segment cut in the middle too."""
    names = publish_chain(origin, archives=2, entries=2, make=make)
    await proxy.whole(origin.url("/feed"))
    url = origin.url("/feed")
    for reply in (await proxy.get(url, limit="3"), await proxy.get(url, since=stamp(4))):
        assert reply.reconstruction.endswith(";cut")
        assert ids(reply.body) == names[:3]


async def test_a_json_feed_is_cut_without_a_comma_too_many(proxy: Proxy, origin: Origin) -> None:
    """RFC 8259, section 5: none behind the last item; the link to the whole feed is the proxy's member."""
    names = publish_json_chain(origin, archives=2)
    assert items((await proxy.whole(origin.url("/feed"))).body) == names
    for limit in range(1, 6):
        reply = await proxy.get(origin.url("/feed"), limit=str(limit))
        zipped = await proxy.get(origin.url("/feed"), headers=GZIP, limit=str(limit))
        assert gzip.decompress(zipped.body) == reply.body
        assert items(reply.body) == names[:limit]
        assert "whole" in json.loads(reply.body)["_wholefeed"]


async def test_a_json_feed_is_not_longer_than_a_reader_bears(proxy: Proxy, origin: Origin) -> None:
    """answer_bytes: a JSON answer cut at any length fits, and is still JSON."""
    publish_json_chain(origin, archives=9)
    await proxy.whole(origin.url("/feed"))
    for max_bytes in range(1024, 1424, 7):
        reply = await proxy.get(origin.url("/feed"), answer_bytes=str(max_bytes))
        assert reply.status == 200
        assert len(reply.body) <= max_bytes
        assert 0 < len(items(reply.body)) < 20
