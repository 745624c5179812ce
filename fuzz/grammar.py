"""Well-formed feeds of any shape: each octet of an input decides one thing of its document.

A mutated input is another well-formed document. So fuzzing explores prefixes, languages, bases, marked
sections and nesting instead of searching for closing tags.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wholefeed.core.model import ATOM_03_NS, ATOM_NS, DC_NS, FH_NS, RDF_NS, RSS_10_NS, TOMBSTONE_NS

_NAMESPACES: Final = (
    *(ATOM_NS, ATOM_03_NS, DC_NS, RSS_10_NS, RDF_NS, FH_NS, TOMBSTONE_NS, "urn:x", "urn:y", "a&amp;b"),
)
_PREFIXES: Final = ("p", "q", "dc", "atom", "rdf", "at", "xhtml", "longer-p", "p.q")
_ATTRIBUTES: Final = (
    *("xml:lang='de'", "xml:lang=''", "xml:lang=' fr '", "xml:base='b/'"),
    *("xml:base='http://b.test/c/'", "xml:base='../d?e=1&amp;f'", "xml:base='#g'"),
    *('xml:base = "/h&quot;i"', "xml:space='preserve'", "href='k'", "href='http://a.test/'"),
    *("rel='prev-archive'", "rel='self'", "type='xhtml'", 'type="html"', "rdf:about='urn:l'"),
    *("isPermaLink='false'", "ref='urn:m' when='2024-01-01T00:00:00Z'", "n='a&#9;b&#10;c &lt;'"),
    *('o="it\'s > /"', "src\n=\t'r'"),
)
_NAMES: Final = (
    *("id", "title", "updated", "link", "author", "name", "content", "summary", "source", "rights"),
    *("guid", "entry", "item", "pubDate", "description", "channel", "feed", "rss", "modified"),
    *("published", "category", "date", "deleted-entry", "complete", "archive", "about", "uri"),
    *("image", "textinput", "language", "lastBuildDate"),
)
_TEXTS: Final = (
    *("", "a", "urn:s", "2024-01-01T00:00:00Z"),
    *("Mon, 01 Jan 2024 00:00:00 GMT", "http://a.test/t"),
    *("rel/u", " \n", "&lt;a href='v'>", "&amp;nbsp; &#x2014;", "<![CDATA[<w> & ]]>", "<![CDATA[]]>"),
    *("p:x q:y", "\xe9\u2028\U0001f389", "<!-- <entry> -->", "<?x <item> ?>", "]] >", "&#13;\t"),
)
_PROLOGS: Final = ("", '<?xml version="1.0"?>\n', '<!DOCTYPE rss SYSTEM "x">', "<!-- <rss> -->")
_MAX_DEPTH: Final = 5
_MAX_CHILDREN: Final = 8


class _Writer:
    """Writes one document. Every choice takes an octet, or the first option when none is left."""

    def __init__(self, data: bytes) -> None:
        self._octets: Iterator[int] = iter(data)
        self._scopes: list[tuple[str, ...]] = [()]

    def pick(self, choices: Sequence[str]) -> str:
        return choices[self.number(len(choices))]

    def number(self, below: int) -> int:
        return next(self._octets, 0) % below

    def document(self) -> str:
        match self.number(4):
            case 0:
                return self.element("feed", 0, f" xmlns='{ATOM_NS}'", ("entry", *_NAMES))
            case 1:
                return self.element("feed", 0, f" xmlns='{ATOM_03_NS}' version='0.3'", ("entry", *_NAMES))
            case 2:
                channel = self.element("channel", 1, "", ("item", *_NAMES))
                return f"<rss version='2.0' xmlns:rdf='{RDF_NS}'>{channel}</rss>"
        root = f" xmlns='{RSS_10_NS}' xmlns:rdf='{RDF_NS}'"
        return self.element("rdf:RDF", 0, root, ("item", "channel", *_NAMES))

    def element(self, name: str, depth: int, attributes: str, names: Sequence[str] = _NAMES) -> str:
        scope = self._scopes[-1]
        if depth and self.number(4) == 0 and scope:
            name = f"{self.pick(scope)}:{name}"
        attributes += self._declared(attributes, with_default=depth > 0)
        if depth and self.number(3) == 0:
            attributes += f" {self.pick(_ATTRIBUTES)}".replace("rdf:about", "about")
        count = 0 if depth > _MAX_DEPTH else self.number(_MAX_CHILDREN) + (2 if depth <= 1 else 0)
        children = [self._child(depth, names) for _ in range(count)]
        self._scopes.pop()
        if not children and self.number(2):
            return f"<{name}{attributes}{self.pick(('', ' '))}/>"
        return f"<{name}{attributes}>{''.join(children)}</{name}{self.pick(('', chr(10)))}>"

    def _child(self, depth: int, names: Sequence[str]) -> str:
        if self.number(3) == 0:
            return self.pick(_TEXTS)
        place = self.number(2 * len(names))  # what stands first is the most frequent
        return self.element(names[place] if place < len(names) else names[0], depth + 1, "")

    def _declared(self, there: str, *, with_default: bool) -> str:
        """Return an element's further namespace declarations, and enter their scope."""
        found = {}
        for _ in range(max(0, self.number(8) - 4)):
            prefix, uri = f":{self.pick(_PREFIXES)}", self.pick(_NAMESPACES)
            if f"xmlns{prefix}=" not in there:
                found[prefix] = uri
        if with_default and self.number(8) == 0:
            found[""] = self.pick(("", *_NAMESPACES))
        self._scopes.append((*self._scopes[-1], *(prefix[1:] for prefix in found if prefix)))
        return "".join(f" xmlns{prefix}='{uri}'" for prefix, uri in found.items())


def document_of(data: bytes) -> bytes:
    writer = _Writer(data)
    root = writer.document()
    return (writer.pick(_PROLOGS) + root).encode()
