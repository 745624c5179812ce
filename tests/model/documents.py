"""Feed documents written from a publisher's statements, and answers parsed, with separate code for each
family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.model.said import Copy, Doc

ATOM_NS: Final = "http://www.w3.org/2005/Atom"
ATOM_03_NS: Final = "http://purl.org/atom/ns#"
FH_NS: Final = "http://purl.org/syndication/history/1.0"
AT_NS: Final = "http://purl.org/atompub/tombstones/1.0"
DCTERMS_NS: Final = "http://purl.org/dc/terms/"
DC_NS: Final = "http://purl.org/dc/elements/1.1/"
RDF_NS: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RSS_10_NS: Final = "http://purl.org/rss/1.0/"

MEDIA_TYPES: Final = {
    "atom": "application/atom+xml",
    "atom03": "application/atom+xml",
    "rss": "application/rss+xml",
    "rdf": "application/rdf+xml",
    "json": "application/feed+json",
}
FAMILIES: Final = {"atom": "atom", "atom03": "atom", "rss": "rss", "rdf": "rdf", "json": "json"}
"""The versions written, with their families (docs/formats.md)."""

_FLAGS: Final = {
    "complete": "<fh:complete/>",
    "archive": "<fh:archive/>",
    "incremental": "<fh:incremental> true </fh:incremental>",
    "stateful": "<fh:stateful>1</fh:stateful>",
    "snapshot": "<fh:stateful>0</fh:stateful>",
}


def rfc3339(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- Writing


def in_json(doc: Doc) -> Doc:
    """Return the document in JSON Feed's limits: it has Link header fields, and no elements (R12)."""
    links = {name: path for name, path in doc.links.items() if name not in ("fh:prev", "this")}
    return replace(doc, links=links, flags=frozenset(), buried=(), updated=None)


def written(doc: Doc, version: str, *, note: str = "") -> tuple[bytes, list[tuple[str, str]]]:
    """Return a document's body, and the header fields that belong to it.

    Args:
        doc: What it says.
        version: One of `FAMILIES`.
        note: A comment, which changes the body and nothing else.
    """
    headers = [("Content-Type", MEDIA_TYPES[version])]
    controls = ["no-cache"] if doc.is_uncacheable else []
    controls += [f"max-age={doc.max_age:.0f}"] if doc.max_age is not None else []
    headers += [("Cache-Control", ", ".join(controls))] if controls else []
    if version == "json":
        headers += [("Link", f'<{path}>; rel="{name}"') for name, path in doc.links.items() if name != "next"]
        return _json(doc).encode(), headers
    body = {"atom": _atom, "atom03": _atom_03, "rss": _rss, "rdf": _rdf}[version](doc)
    return (f'<?xml version="1.0" encoding="utf-8"?>\n{body}' + note).encode(), headers


def _history(doc: Doc, prefix: str) -> str:
    """The links, flags and tombstones of a head."""
    parts = [
        f"<fh:prev>{escape(path)}</fh:prev>"
        if name == "fh:prev"
        else f'<{prefix}link rel="{name}" href="{escape(path)}"/>'
        for name, path in doc.links.items()
    ]
    parts += [_FLAGS[flag] for flag in sorted(doc.flags)]
    parts += [f'<at:deleted-entry ref="urn:{name}" when="{rfc3339(when)}"/>' for name, when in doc.buried]
    return "".join(parts)


def _dated(element: str, instant: float | None) -> str:
    return "" if instant is None else f"<{element}>{rfc3339(instant)}</{element}>"


def _atom(doc: Doc) -> str:
    entries = "".join(
        f"<entry><id>urn:{copy.name}</id><title>{copy.name}</title>{_dated('updated', copy.updated)}"
        + ("" if copy.updated is not None else _dated("published", copy.order))
        + f"<content>{copy.text}</content></entry>\n"
        for copy in doc.copies
    )
    return (
        f'<feed xmlns="{ATOM_NS}" xmlns:fh="{FH_NS}" xmlns:at="{AT_NS}"><title>A feed</title>'
        f"<id>urn:feed</id>{_dated('updated', doc.updated)}<author><name>Ann</name></author>"
        f"{_history(doc, '')}\n{entries}</feed>"
    )


def _atom_03(doc: Doc) -> str:
    entries = "".join(
        f"<entry><id>urn:{copy.name}</id><title>{copy.name}</title>{_dated('modified', copy.updated)}"
        + ("" if copy.updated is not None else _dated("issued", copy.order))
        + f"<content>{copy.text}</content></entry>\n"
        for copy in doc.copies
    )
    return (
        f'<feed version="0.3" xmlns="{ATOM_03_NS}" xmlns:fh="{FH_NS}" xmlns:at="{AT_NS}">'
        f"<title>A feed</title><id>urn:feed</id>{_dated('modified', doc.updated)}"
        "<author><name>Ann</name></author>"
        f"{_history(doc, '')}\n{entries}</feed>"
    )


def _rss(doc: Doc) -> str:
    built = f"<lastBuildDate>{formatdate(doc.updated)}</lastBuildDate>" if doc.updated is not None else ""
    items = "".join(
        f'<item><title>{copy.name}</title><guid isPermaLink="false">urn:{copy.name}</guid>'
        + _dated("dcterms:modified", copy.updated)
        + (f"<pubDate>{formatdate(copy.order)}</pubDate>" if copy.updated is None and copy.order else "")
        + f"<description>{copy.text}</description></item>\n"
        for copy in doc.copies
    )
    return (
        f'<rss version="2.0" xmlns:atom="{ATOM_NS}" xmlns:fh="{FH_NS}" xmlns:at="{AT_NS}"'
        f' xmlns:dcterms="{DCTERMS_NS}"><channel><title>A channel</title><link>http://site.test/</link>'
        f"<description>About</description>{built}{_history(doc, 'atom:')}\n{items}</channel></rss>"
    )


def _rdf(doc: Doc) -> str:
    items = "".join(
        f'<item rdf:about="urn:{copy.name}"><title>{copy.name}</title><link>http://site.test/{copy.name}</link>'
        + _dated("dcterms:modified", copy.updated)
        + ("" if copy.updated is not None else _dated("dc:date", copy.order))
        + f"<description>{copy.text}</description></item>\n"
        for copy in doc.copies
    )
    return (
        f'<rdf:RDF xmlns="{RSS_10_NS}" xmlns:rdf="{RDF_NS}" xmlns:atom="{ATOM_NS}" xmlns:fh="{FH_NS}"'
        f' xmlns:at="{AT_NS}" xmlns:dcterms="{DCTERMS_NS}" xmlns:dc="{DC_NS}">'
        '<channel rdf:about="http://site.test/rdf"><title>A channel</title><link>http://site.test/</link>'
        f"<description>About</description>{_dated('dc:date', doc.updated)}"
        f"{_history(doc, 'atom:')}</channel>\n{items}</rdf:RDF>"
    )


def _json(doc: Doc) -> str:
    items = [
        {"id": f"urn:{copy.name}", "title": copy.name, "content_text": copy.text}
        | ({"date_modified": rfc3339(copy.updated)} if copy.updated is not None else {})
        | ({"date_published": rfc3339(copy.order)} if copy.updated is None and copy.order else {})
        for copy in doc.copies
    ]
    more = {"next_url": doc.links["next"]} if "next" in doc.links else {}
    head = {"version": "https://jsonfeed.org/version/1.1", "title": "A feed"}
    return json.dumps({**head, "home_page_url": "http://site.test/", **more, "items": items})


# ---- Reading


class Seen(NamedTuple):
    """An answer as a reader sees it."""

    entries: list[tuple[str, str]]
    """Name and text of the publisher's entries, in order."""
    strangers: int
    """Entries by others than the publisher."""
    is_complete: bool
    deletions: set[str]


def read(body: bytes, content_type: str) -> Seen:
    if "json" in content_type:
        return _seen(((item["id"], item["content_text"]) for item in json.loads(body)["items"]), False, set())
    root = ElementTree.fromstring(body)
    found = [_entry(element) for element in root.iter() if _local(element) in ("entry", "item")]
    deletions = {each.get("ref", "").removeprefix("urn:") for each in root.iter(f"{{{AT_NS}}}deleted-entry")}
    return _seen(found, root.find(f".//{{{FH_NS}}}complete") is not None, deletions)


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _entry(element: ElementTree.Element) -> tuple[str, str]:
    texts: Mapping[str, str] = {_local(child): child.text or "" for child in element}
    identity = texts.get("id") or texts.get("guid") or element.get(f"{{{RDF_NS}}}about")
    return identity or "", texts.get("content") or texts.get("description", "")


def _seen(found: Any, is_complete: bool, deletions: set[str]) -> Seen:
    entries = [(str(identity), text) for identity, text in found]
    own = [(name.removeprefix("urn:"), text) for name, text in entries if name.startswith("urn:e")]
    return Seen(own, len(entries) - len(own), is_complete, deletions)


def plain(name: str, text: str, instant: float | None) -> Copy:
    """An entry with an update instant, also used for sorting."""
    return Copy(name, text, instant, instant)
