"""An RSS item in an Atom feed, an Atom entry in an RSS feed: its children in the words of the feed's format.

    entry = ForeignEntry(Family.ATOM)
    entry.child("pubdate", {}, "Mon, 05 Jan 2026 12:00:00 GMT", b"Mon, …")   # b"<published>2026-01-05T…"
    entry.rest()                                                             # b"<updated>2026-01-05T…"

Names are in small letters; those of two extensions have their usual prefix (`dc:date`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wholefeed.core.model import ATOM_NS, WELL_KNOWN_PREFIXES, Family
from wholefeed.core.text.dates import format_rfc822, format_rfc3339, parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import escape, quoteattr
from wholefeed.core.verbatim.addresses import is_permalink

PREFIXES = {WELL_KNOWN_PREFIXES[prefix]: f"{prefix}:" for prefix in ("content", "dc")}
"""Extensions whose elements are read too."""


class ForeignEntry:
    """One entry, on its way into a feed of that family."""

    def __init__(self, family: Family) -> None:
        self._make = self._make_atom if family is Family.ATOM else self._make_rss
        self._is_atom = family is Family.ATOM
        self._has: set[str] = set()
        """Of link, updated and pubDate, those that were made."""
        self._at: float | None = None
        self._address = ""
        """What the guid links to."""

    @property
    def other_namespace(self) -> str:
        """The default namespace of children that the feed's format has no word for."""
        return "" if self._is_atom else ATOM_NS

    def child(self, name: str, attributes: Mapping[str, str], text: str, inside: bytes) -> bytes | None:
        """Return a child of the entry in the feed's format; None where that has no word for it.

        Args:
            name: Of the child.
            attributes: Those in no namespace, their names in small letters.
            text: Its character data.
            inside: Its content as it is written.
        """
        return self._make(name, attributes, text.strip(), inside)

    def rest(self) -> bytes:
        """Return the children that the entry lacks at its end, as far as others tell of them."""
        made = b""
        if self._at is not None and "dated" not in self._has:
            written = format_rfc3339(self._at) if self._is_atom else format_rfc822(self._at)
            made = _element("updated" if self._is_atom else "pubDate", written.encode())
        if self._is_atom and self._address and "link" not in self._has:
            made += f"<link href={quoteattr(self._address)}/>".encode()
        return made

    def _make_atom(
        self, name: str, attributes: Mapping[str, str], text: str, inside: bytes
    ) -> bytes | None:
        made: bytes | None = None
        match name:
            case "title" | "summary" | "rights" | "content" | "contributor":
                made = _element(name, inside, _picked(attributes, "type", "src"))
            case "id":
                made = _element("id", inside)
            case "guid":
                if is_permalink(text, attributes.get("ispermalink")):
                    self._address = text
                made = _element("id", inside)
            case "description":
                made = _element("summary", inside, ' type="html"')
            case "content:encoded":
                made = _element("content", inside, ' type="html"')
            case "pubdate" | "published" | "updated":
                made = self._date_atom(name, text)
            case "dc:date":
                self._at = _read_date(text) if self._at is None else self._at
            case "link":
                self._has.add("link")
                href = attributes.get("href", text)
                further = _picked(attributes, "rel", "type", "hreflang", "title", "length")
                made = f"<link href={quoteattr(href)}{further}/>".encode()
            case "enclosure":
                href, further = attributes.get("url", ""), _picked(attributes, "type", "length")
                made = f'<link rel="enclosure" href={quoteattr(href)}{further}/>'.encode()
            case "category":
                scheme = "".join(f" scheme={quoteattr(attributes[key])}" for key in ("domain",) if key in attributes)
                term = attributes.get("term", text)
                made = f"<category term={quoteattr(term)}{scheme}{_picked(attributes, 'scheme', 'label')}/>".encode()
            case "author":
                made = _element("author", inside if b"<" in inside else _element("name", inside))
        return made

    def _make_rss(
        self, name: str, attributes: Mapping[str, str], text: str, inside: bytes
    ) -> bytes | None:
        made: bytes | None = None
        match name:
            case "title":
                made = _element("title", inside if b"<" not in inside else escape(text).encode())
            case "id":
                made = _element("guid", inside, ' isPermaLink="false"')
            case "guid":
                made = _element("guid", inside, _picked(attributes, "ispermalink").replace("ispermalink", "isPermaLink"))
            case "summary" | "description":
                made = _element("description", _as_html(name, attributes, text, inside))
            case "content" if "src" not in attributes:
                declared = f' xmlns:content="{WELL_KNOWN_PREFIXES["content"]}"'
                made = _element("content:encoded", _as_html(name, attributes, text, inside), declared)
            case "published" | "issued" | "pubdate":
                made = self._date_rss(text)
            case "updated" | "modified":
                self._at = _read_date(text)
                made = _element("updated", inside, f' xmlns="{ATOM_NS}"')
            case "link" if "href" not in attributes:
                made = _element("link", inside)
            case "link" if attributes.get("rel", "alternate") == "alternate" and "link" not in self._has:
                self._has.add("link")
                made = _element("link", escape(attributes["href"]).encode())
            case "link" if attributes.get("rel") == "enclosure":
                further = _picked(attributes, "length", "type")
                made = f"<enclosure url={quoteattr(attributes['href'])}{further}/>".encode()
            case "enclosure":
                made = f"<enclosure{_picked(attributes, 'url', 'length', 'type')}/>".encode()
            case "category" if "term" in attributes:
                domain = f" domain={quoteattr(attributes['scheme'])}" if "scheme" in attributes else ""
                made = _element("category", escape(attributes["term"]).encode(), domain)
            case "category":
                made = _element("category", inside, _picked(attributes, "domain"))
            case "comments":
                made = _element("comments", inside)
            case "author" if b"<" not in inside:
                made = _element("author", inside)
        return made

    def _date_atom(self, name: str, text: str) -> bytes:
        instant = _read_date(text)
        written = escape(text) if instant is None else format_rfc3339(instant)
        if name == "updated":
            self._has.add("dated")
        elif instant is not None:
            self._at = instant
        return _element("updated" if name == "updated" else "published", written.encode())

    def _date_rss(self, text: str) -> bytes:
        instant = _read_date(text)
        self._has.add("dated")
        return _element("pubDate", (escape(text) if instant is None else format_rfc822(instant)).encode())


def _element(name: str, inside: bytes, attributes: str = "") -> bytes:
    return b"<%s%s>%s</%s>" % (name.encode(), attributes.encode(), inside, name.partition(" ")[0].encode())


def _picked(attributes: Mapping[str, str], *names: str) -> str:
    """Return those of the attributes, as a start tag has them."""
    return "".join(f" {name}={quoteattr(attributes[name])}" for name in names if name in attributes)


def _read_date(text: str) -> float | None:
    instant = parse_rfc3339(text)
    return parse_rfc822(text) if instant is None else instant


def _as_html(name: str, attributes: Mapping[str, str], text: str, inside: bytes) -> bytes:
    """Return the HTML that a text of Atom says, escaped (RFC 4287, section 3.1.1)."""
    kind = attributes.get("type", "html" if name == "description" else "text").lower()
    if kind in ("html", "text/html"):
        return inside
    return escape(inside.decode() if kind.endswith(("xhtml", "xml")) else escape(text)).encode()
