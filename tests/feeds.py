"""Feed documents as publishers write them, made from a test's few facts.

atom(an_item("a", 3), an_item("b", 2), prev_archive="/1", archive=True)
publish_chain(origin, archives=3, entries=2)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import feedparser

from tests.origin import Origin
from wholefeed.core.model import ATOM_03_NS, ATOM_NS, DC_NS, DCTERMS_NS, RDF_NS, RSS_10_NS

FH_NS = "http://purl.org/syndication/history/1.0"
_ATOMS = (f"{{{ATOM_NS}}}", f"{{{ATOM_03_NS}}}")
_RSSES = ("", f"{{{RSS_10_NS}}}")
_ABOUT = f"{{{RDF_NS}}}about"
_ENTRIES = {f"{ns}entry" for ns in _ATOMS} | {f"{ns}item" for ns in _RSSES}
_IDS = (*(f"{ns}id" for ns in _ATOMS), *(f"{ns}guid" for ns in _RSSES))
_TEXTS = (
    "{http://purl.org/rss/1.0/modules/content/}encoded",
    *(f"{ns}{name}" for ns in _ATOMS for name in ("content", "summary")),
    *(f"{ns}description" for ns in _RSSES),
)
BASE_AT = 1_700_000_000
"""Instant of update 0; each further one is an hour later."""


@dataclass(frozen=True)
class Item:
    """An entry: its id, its update instant in hours after `BASE_AT` (None: undated), its text."""

    name: str
    updated: int | None = 0
    text: str = ""


def an_item(name: str, updated: int | None = 0, text: str = "") -> Item:
    return Item(name, updated, text or f"text of {name}")


def stamp(hours: int) -> str:
    return datetime.fromtimestamp(BASE_AT + 3600 * hours, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _links(prefix: str, relations: dict[str, str | None]) -> str:
    return "".join(
        f'<{prefix}link rel="{name.replace("_", "-")}" href="{href}"/>'
        for name, href in relations.items()
        if href is not None
    )


def atom(
    *items: Item,
    updated: int = 0,
    feed_id: str = "urn:feed",
    archive: bool = False,
    complete: bool = False,
    extra: str = "",
    **relations: str | None,
) -> bytes:
    """An Atom document; keyword arguments name link relations (prev_archive="/1")."""
    flags = ("<fh:archive/>" if archive else "") + ("<fh:complete/>" if complete else "")
    entries = "".join(
        f"<entry><id>urn:{item.name}</id><title>{item.name}</title>"
        + (f"<updated>{stamp(item.updated)}</updated>" if item.updated is not None else "")
        + f'<link href="http://site.test/{item.name}"/><content>{item.text}</content></entry>\n'
        for item in items
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="{ATOM_NS}" xmlns:fh="{FH_NS}">'
        f"<title>A feed</title><id>{feed_id}</id><updated>{stamp(updated)}</updated>"
        f"<author><name>Ann</name></author>{_links('', relations)}{flags}{extra}\n{entries}</feed>"
    ).encode()


def rss(
    *items: Item,
    updated: int | None = None,
    archive: bool = False,
    complete: bool = False,
    extra: str = "",
    **relations: str | None,
) -> bytes:
    """An RSS 2.0 document; keyword arguments name link relations."""
    flags = ("<fh:archive/>" if archive else "") + ("<fh:complete/>" if complete else "")
    built = f"<lastBuildDate>{formatdate(BASE_AT + 3600 * updated)}</lastBuildDate>" if updated else ""
    entries = "".join(
        f"<item><title>{item.name}</title><guid isPermaLink='false'>urn:{item.name}</guid>"
        + (f"<pubDate>{formatdate(BASE_AT + 3600 * item.updated)}</pubDate>" if item.updated else "")
        + f"<description>{item.text}</description></item>\n"
        for item in items
    )
    return (
        f'<?xml version="1.0"?>\n<rss version="2.0" xmlns:atom="{ATOM_NS}" xmlns:fh="{FH_NS}"><channel>'
        f"<title>A channel</title><link>http://site.test/</link><description>About</description>{built}"
        f"{_links('atom:', relations)}{flags}{extra}\n{entries}</channel></rss>"
    ).encode()


def atom_03(
    *items: Item,
    updated: int = 0,
    feed_id: str = "urn:feed",
    archive: bool = False,
    complete: bool = False,
    extra: str = "",
    **relations: str | None,
) -> bytes:
    flags = ("<fh:archive/>" if archive else "") + ("<fh:complete/>" if complete else "")
    entries = "".join(
        f"<entry><id>urn:{item.name}</id><title>{item.name}</title>"
        + (f"<modified>{stamp(item.updated)}</modified>" if item.updated is not None else "")
        + f'<link rel="alternate" type="text/html" href="http://site.test/{item.name}"/>'
        f'<content type="text/plain">{item.text}</content></entry>\n'
        for item in items
    )
    return (
        f'<?xml version="1.0"?>\n<feed version="0.3" xmlns="{ATOM_03_NS}" xmlns:fh="{FH_NS}">'
        f"<title>A feed</title><id>{feed_id}</id><modified>{stamp(updated)}</modified>"
        f"<author><name>Ann</name></author>{_links('', relations)}{flags}{extra}\n{entries}</feed>"
    ).encode()


def rdf(
    *items: Item,
    updated: int | None = None,
    archive: bool = False,
    complete: bool = False,
    extra: str = "",
    **relations: str | None,
) -> bytes:
    flags = ("<fh:archive/>" if archive else "") + ("<fh:complete/>" if complete else "")
    date = f"<dc:date>{stamp(updated)}</dc:date>" if updated is not None else ""
    listed = "".join(f'<rdf:li resource="urn:{item.name}"/>' for item in items)
    entries = "".join(
        f'<item rdf:about="urn:{item.name}"><title>{item.name}</title>'
        f"<link>http://site.test/{item.name}</link>"
        + (f"<dcterms:modified>{stamp(item.updated)}</dcterms:modified>" if item.updated is not None else "")
        + f"<description>{item.text}</description></item>\n"
        for item in items
    )
    return (
        f'<?xml version="1.0"?>\n<rdf:RDF xmlns="{RSS_10_NS}" xmlns:rdf="{RDF_NS}" xmlns:atom="{ATOM_NS}"'
        f' xmlns:fh="{FH_NS}" xmlns:dc="{DC_NS}" xmlns:dcterms="{DCTERMS_NS}">'
        f'<channel rdf:about="http://site.test/rdf"><title>A channel</title><link>http://site.test/</link>'
        f"<description>About</description>{date}<items><rdf:Seq>{listed}</rdf:Seq></items>"
        f"{_links('atom:', relations)}{flags}{extra}</channel>\n{entries}</rdf:RDF>"
    ).encode()


def json_feed(*items: Item, version: str = "1.1", **head: object) -> bytes:
    """A JSON Feed; keyword arguments are members of its head."""
    entries = [
        {"id": f"urn:{item.name}", "title": item.name, "content_text": item.text}
        | ({"date_modified": stamp(item.updated)} if item.updated is not None else {})
        for item in items
    ]
    named = {"version": f"https://jsonfeed.org/version/{version}", "title": "A feed"}
    return json.dumps(named | head | {"items": entries}).encode()


def publish_chain(origin: Origin, *, archives: int, entries: int = 2, make: Any = atom) -> list[str]:
    """Publish /feed and /archive/N … /archive/1; return the entry ids, newest first."""
    names: list[str] = []
    number = (archives + 1) * entries
    for place in range(archives + 1, 0, -1):
        held = [an_item(f"e{number - n}", number - n) for n in range(entries)]
        names += [item.name for item in held]
        older = f"/archive/{place - 1}" if place > 1 else None
        is_archive = place <= archives
        body = make(
            *held, updated=number, archive=is_archive, prev_archive=older,
            current="/feed" if is_archive else None,
        )  # fmt: skip
        origin.publish(f"/archive/{place}" if is_archive else "/feed", body)
        number -= entries
    return names


def own_ids(body: bytes) -> list[str]:
    """The publisher's entry ids: those of `ids` without the proxy's pseudo-entry (R16)."""
    return [each for each in ids(body) if not each.startswith("uuid:")]


def ids(body: bytes) -> list[str]:
    """The entry ids of a feed document, in order."""
    return [_said(entry, _IDS, entry.get(_ABOUT, "")).removeprefix("urn:") for entry in _entries(body)]


def texts(body: bytes) -> dict[str, str]:
    """Text per entry id."""
    return {
        _said(entry, _IDS, entry.get(_ABOUT, "")).removeprefix("urn:"): _said(entry, _TEXTS)
        for entry in _entries(body)
    }


def _entries(body: bytes) -> list[Element]:
    """Its entries. `tests/test_feeds.py` compares them with feedparser, which takes fifty times as long."""
    return [element for element in fromstring(body).iter() if element.tag in _ENTRIES]


def _said(entry: Element, names: Sequence[str], otherwise: str = "") -> str:
    """The text of the first element with one of these names."""
    found = (each for name in names if (each := entry.find(name)) is not None)
    return next(("".join(each.itertext()).strip() for each in found), otherwise)


def links(body: bytes) -> dict[str, Sequence[str]]:
    """Targets per relation of the head, as feedparser reads it."""
    found: dict[str, list[str]] = {}
    for link in feedparser.parse(body).feed.get("links", []):
        found.setdefault(link.rel, []).append(link.href)
    return dict(found)
