"""Items without an id of their own, in every format that can be an archived or paged feed (rule R9).

rss(Nameless("a", link="/a"), Nameless("b", enclosure="/b.mp3"), prev_archive="/1")
titles(reply.body)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import feedparser

from tests.feeds import FH_NS, stamp
from wholefeed.core.model import ATOM_NS, RDF_NS, RSS_10_NS

SHOW = "http://site.test/"
"""The channel's own link."""


@dataclass(frozen=True)
class Nameless:
    """An item with a title and by default no id."""

    title: str
    link: str = SHOW
    enclosure: str = ""
    """Only in formats with enclosures."""
    id: str = ""
    updated: int = 0
    """Hours after `tests.feeds.BASE_AT`."""


Make = Callable[..., bytes]


def atom(
    *items: Nameless, archive: bool = False, older: str = "", deleted: str = "", link: str = SHOW
) -> bytes:
    """An Atom document; its entries need a date of update."""
    entries = "".join(
        "<entry>"
        + (f"<id>{item.id}</id>" if item.id else "")
        + f'<title>{item.title}</title><updated>{stamp(item.updated)}</updated><link href="{item.link}"/>'
        + (f'<link rel="enclosure" href="{item.enclosure}"/>' if item.enclosure else "")
        + "</entry>"
        for item in items
    )
    return (
        f'<feed xmlns="{ATOM_NS}" xmlns:fh="{FH_NS}"><title>T</title><id>urn:f</id>'
        f'<updated>{stamp(0)}</updated><author><name>A</name></author><link href="{link}"/>'
        f"{_older(older, '')}{_archive(archive)}{_deleted(deleted)}{entries}</feed>"
    ).encode()


def rss(
    *items: Nameless, archive: bool = False, older: str = "", deleted: str = "", link: str = SHOW
) -> bytes:
    entries = "".join(
        f"<item><title>{item.title}</title><link>{item.link}</link>"
        + (f'<enclosure url="{item.enclosure}" length="1" type="audio/mpeg"/>' if item.enclosure else "")
        + (f'<guid isPermaLink="false">{item.id}</guid>' if item.id else "")
        + "</item>"
        for item in items
    )
    return (
        f'<rss version="2.0" xmlns:fh="{FH_NS}" xmlns:atom="{ATOM_NS}"><channel><title>T</title>'
        f"<link>{link}</link><description>D</description>{_older(older, 'atom:')}{_archive(archive)}"
        f"{_deleted(deleted)}{entries}</channel></rss>"
    ).encode()


def rdf(
    *items: Nameless, archive: bool = False, older: str = "", deleted: str = "", link: str = SHOW
) -> bytes:
    """An RSS 1.0 document; it has no enclosures."""
    entries = "".join(
        (f'<item rdf:about="{item.id}">' if item.id else "<item>")
        + f"<title>{item.title}</title><link>{item.link}</link></item>"
        for item in items
    )
    return (
        f'<rdf:RDF xmlns="{RSS_10_NS}" xmlns:rdf="{RDF_NS}" xmlns:fh="{FH_NS}" xmlns:atom="{ATOM_NS}">'
        f'<channel rdf:about="http://site.test/rdf"><title>T</title><link>{link}</link>'
        f"<description>D</description>{_older(older, 'atom:')}{_archive(archive)}{_deleted(deleted)}"
        "</channel>"
        f"{entries}</rdf:RDF>"
    ).encode()


def json_feed(
    *items: Nameless, archive: bool = False, older: str = "", deleted: str = "", link: str = SHOW
) -> bytes:
    """A JSON Feed, which has pages instead of archives, and no tombstones."""
    entries = [
        {"url": item.link, "title": item.title, "content_text": item.title}
        | ({"id": item.id} if item.id else {})
        | ({"attachments": [{"url": item.enclosure}]} if item.enclosure else {})
        for item in items
    ]
    head = {"version": "https://jsonfeed.org/version/1.1", "title": "T", "home_page_url": link}
    return json.dumps(head | ({"next_url": older} if older else {}) | {"items": entries}).encode()


MAKES: dict[str, Make] = {"atom": atom, "rss": rss, "rdf": rdf, "json": json_feed}


def titles(body: bytes) -> list[str]:
    """The titles of a feed document's entries, in order."""
    if body.startswith(b"{"):
        return [item["title"] for item in json.loads(body)["items"]]
    parsed = feedparser.parse(body)
    assert not parsed.bozo, parsed.get("bozo_exception")
    return [entry.title for entry in parsed.entries]


def _older(url: str, prefix: str) -> str:
    return f'<{prefix}link rel="prev-archive" href="{url}"/>' if url else ""


def _archive(is_archive: bool) -> str:
    return "<fh:archive/>" if is_archive else ""


def _deleted(ref: str) -> str:
    namespace = "http://purl.org/atompub/tombstones/1.0"
    return f'<at:deleted-entry xmlns:at="{namespace}" ref="{ref}" when="{stamp(99)}"/>' if ref else ""


STAGES = 3


def stage(number: int, make: Make) -> dict[str, bytes]:
    """Documents at one time of a story that earlier versions got wrong.

    Two items of one link stand in one document and leave it (`h1`, `h2`); one moves into an archive that
    drops it again (`a`); three link to the show's page (`b`, `d`, `e`); one is deleted, in formats with
    tombstones (`g`).
    """
    a, c = Nameless("a", "http://site.test/a"), Nameless("c", "http://site.test/c")
    b, d, e = (Nameless(title, enclosure=f"http://site.test/{title}.mp3") for title in "bde")
    twins = [Nameless(f"h{n}", "http://site.test/dup") for n in (1, 2)]
    g = Nameless("g", "http://site.test/g", id="urn:g")
    front = [(*twins, a, g), (d, c), (e,)][number]
    archive = [(b,), (a, b), (b,)][number]
    deleted = "urn:g" if number == STAGES - 1 else ""
    return {
        "/feed": make(*front, older="/1", deleted=deleted),
        "/1": make(*archive, archive=True),
    }


AFTERWARDS = frozenset({"b", "c", "d", "e", "h1", "h2"})
"""The feed at the story's end; in JSON `a` and `g` stay: pages settle nothing, and there are no tombstones.
"""
