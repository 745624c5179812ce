"""Translate an RSS item in an Atom feed, or an Atom entry in an RSS feed, into the feed's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from wholefeed.core.model import ATOM_NS, WELL_KNOWN_PREFIXES, Family
from wholefeed.core.text.dates import format_rfc822, format_rfc3339, parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import escape, quoteattr
from wholefeed.core.verbatim.addresses import is_permalink

_CONTENT_NS: Final = WELL_KNOWN_PREFIXES["content"]
PREFIXES: Final = {_CONTENT_NS: "content:", WELL_KNOWN_PREFIXES["dc"]: "dc:"}
"""Namespaces of extensions, with their prefixes in the tables below."""


class Child(NamedTuple):
    name: str
    """Lower case."""
    attributes: Mapping[str, str]
    """Without a namespace; names in lower case."""
    text: str
    """Character data, trimmed."""
    inside: bytes


class ForeignEntry:
    """An entry on its way into a feed of `family`."""

    def __init__(self, family: Family) -> None:
        self._is_atom = family is Family.ATOM
        self._makers = _ATOM_MAKERS if self._is_atom else _RSS_MAKERS
        self.other_namespace = "" if self._is_atom else ATOM_NS
        """Default namespace of children without a counterpart."""
        self.is_dated = self.is_linked = False
        """Whether a child exists that the feed's format wants in each entry."""
        self.at: float | None = None
        """Epoch seconds, used if no other child gives the date."""
        self.address = ""
        """Permalink in the guid."""

    def knows(self, name: str) -> bool:
        return name in self._makers

    def make(self, child: Child) -> bytes | None:
        """Return a child in the feed's format; None if it has no counterpart."""
        return self._makers[child.name](self, child)

    def make_rest(self) -> bytes:
        made = b""
        if self.at is not None and not self.is_dated:
            name, write = ("updated", format_rfc3339) if self._is_atom else ("pubDate", format_rfc822)
            made = _element(name, write(self.at).encode())
        if self._is_atom and self.address and not self.is_linked:
            made += f"<link href={quoteattr(self.address)}/>".encode()
        return made


_Maker = Callable[[ForeignEntry, Child], bytes | None]


def _element(name: str, inside: bytes, attributes: str = "") -> bytes:
    return b"<%s%s>%s</%s>" % (name.encode(), attributes.encode(), inside, name.encode())


def _pick(attributes: Mapping[str, str], *names: str) -> str:
    return "".join(f" {name}={quoteattr(attributes[name])}" for name in names if name in attributes)


def _renaming(name: str, *attributes: str, said: str = "") -> _Maker:
    return lambda _entry, child: _element(name, child.inside, said + _pick(child.attributes, *attributes))


def _read_date(text: str) -> float | None:
    instant = parse_rfc3339(text)
    return parse_rfc822(text) if instant is None else instant


# Into Atom 1.0


def _make_published(entry: ForeignEntry, child: Child) -> bytes:
    instant = _read_date(child.text)
    entry.at = entry.at if instant is None else instant
    written = escape(child.text) if instant is None else format_rfc3339(instant)
    return _element("published", written.encode())


def _make_updated(entry: ForeignEntry, child: Child) -> bytes:
    entry.is_dated = True
    instant = _read_date(child.text)
    return _element("updated", (escape(child.text) if instant is None else format_rfc3339(instant)).encode())


def _note_date(entry: ForeignEntry, child: Child) -> None:
    entry.at = _read_date(child.text) if entry.at is None else entry.at


def _make_atom_id(entry: ForeignEntry, child: Child) -> bytes:
    if is_permalink(child.text, child.attributes.get("ispermalink")):
        entry.address = child.text
    return _element("id", child.inside)


def _make_atom_link(entry: ForeignEntry, child: Child) -> bytes:
    entry.is_linked = True
    href = child.attributes.get("href", child.text)
    further = _pick(child.attributes, "rel", "type", "hreflang", "title", "length")
    return f"<link href={quoteattr(href)}{further}/>".encode()


def _make_atom_enclosure(_entry: ForeignEntry, child: Child) -> bytes:
    href, further = child.attributes.get("url", ""), _pick(child.attributes, "type", "length")
    return f'<link rel="enclosure" href={quoteattr(href)}{further}/>'.encode()


def _make_atom_category(_entry: ForeignEntry, child: Child) -> bytes:
    given = child.attributes
    scheme = given.get("scheme", given.get("domain"))
    further = ("" if scheme is None else f" scheme={quoteattr(scheme)}") + _pick(given, "label")
    return f"<category term={quoteattr(given.get('term', child.text))}{further}/>".encode()


def _make_atom_author(_entry: ForeignEntry, child: Child) -> bytes:
    return _element("author", child.inside if b"<" in child.inside else _element("name", child.inside))


_ATOM_MAKERS: Final[Mapping[str, _Maker]] = {
    **{name: _renaming(name, "type") for name in ("title", "summary", "rights")},
    "content": _renaming("content", "type", "src"),
    "contributor": _renaming("contributor"),
    "description": _renaming("summary", said=' type="html"'),
    "content:encoded": _renaming("content", said=' type="html"'),
    "id": _renaming("id"),
    "guid": _make_atom_id,
    "link": _make_atom_link,
    "enclosure": _make_atom_enclosure,
    "category": _make_atom_category,
    "author": _make_atom_author,
    "pubdate": _make_published,
    "published": _make_published,
    "updated": _make_updated,
    "dc:date": _note_date,
}


# Into RSS


def _make_title(_entry: ForeignEntry, child: Child) -> bytes:
    return _element("title", escape(child.text).encode() if b"<" in child.inside else child.inside)


def _as_html(child: Child) -> bytes:
    # An Atom text becomes escaped HTML (RFC 4287, section 3.1.1).
    kind = child.attributes.get("type", "html" if child.name == "description" else "text").lower()
    if kind in ("html", "text/html"):
        return child.inside
    is_markup = kind.endswith(("xhtml", "xml"))
    return escape(child.inside.decode() if is_markup else escape(child.text)).encode()


def _make_description(_entry: ForeignEntry, child: Child) -> bytes:
    return _element("description", _as_html(child))


def _make_encoded(_entry: ForeignEntry, child: Child) -> bytes | None:
    if "src" in child.attributes:
        return None
    return _element("content:encoded", _as_html(child), f' xmlns:content="{_CONTENT_NS}"')


def _make_rss_date(entry: ForeignEntry, child: Child) -> bytes:
    entry.is_dated = True
    instant = _read_date(child.text)
    return _element("pubDate", (escape(child.text) if instant is None else format_rfc822(instant)).encode())


def _keep_updated(entry: ForeignEntry, child: Child) -> bytes:
    # An Atom update instant counts in RSS unchanged (R10).
    entry.at = _read_date(child.text)
    return _element("updated", child.inside, f' xmlns="{ATOM_NS}"')


def _make_rss_link(entry: ForeignEntry, child: Child) -> bytes | None:
    given = child.attributes
    if "href" not in given:
        return _element("link", child.inside)
    relation = given.get("rel", "alternate").lower()
    if relation == "enclosure":
        return f"<enclosure url={quoteattr(given['href'])}{_pick(given, 'length', 'type')}/>".encode()
    if relation != "alternate" or entry.is_linked:
        return None
    entry.is_linked = True
    return _element("link", escape(given["href"]).encode())


def _make_rss_category(_entry: ForeignEntry, child: Child) -> bytes:
    given = child.attributes
    scheme = given.get("domain", given.get("scheme"))
    inside = escape(given["term"]).encode() if "term" in given else child.inside
    return _element("category", inside, "" if scheme is None else f" domain={quoteattr(scheme)}")


def _make_rss_guid(_entry: ForeignEntry, child: Child) -> bytes:
    said = child.attributes.get("ispermalink")
    return _element("guid", child.inside, "" if said is None else f" isPermaLink={quoteattr(said)}")


def _make_rss_author(_entry: ForeignEntry, child: Child) -> bytes | None:
    # An author with children stays Atom's.
    return None if b"<" in child.inside else _element("author", child.inside)


def _make_rss_enclosure(_entry: ForeignEntry, child: Child) -> bytes:
    return f"<enclosure{_pick(child.attributes, 'url', 'length', 'type')}/>".encode()


_RSS_MAKERS: Final[Mapping[str, _Maker]] = {
    "title": _make_title,
    "id": _renaming("guid", said=' isPermaLink="false"'),
    "guid": _make_rss_guid,
    "summary": _make_description,
    "description": _make_description,
    "content": _make_encoded,
    "published": _make_rss_date,
    "issued": _make_rss_date,
    "pubdate": _make_rss_date,
    "updated": _keep_updated,
    "modified": _keep_updated,
    "link": _make_rss_link,
    "enclosure": _make_rss_enclosure,
    "category": _make_rss_category,
    "comments": _renaming("comments"),
    "author": _make_rss_author,
}
