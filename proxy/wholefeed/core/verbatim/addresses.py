"""URLs in a slice of XML: written absolute where a URL is what stands there, and looked for (rule R22).

Many readers count every relative reference from the URL that they asked for, which is the proxy's: what they
are told to download would not be there. So links, enclosures and images are written absolute. What stands in
content keeps its xml:base, identities are never touched, and what is empty or cannot be resolved stays as it
was written.

    names = url_names(document.scopes, document.family)
    if may_hold_relative(text, names, entry.start, entry.end):
        slice_ = with_absolute_urls(slice_, scope, family)

One table says which elements and attributes are URLs (`_RSS`, `_ATOM`, `_FOREIGN`); what looks for relative
ones is made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate

from wholefeed.core.model import (
    ATOM_NAMESPACES,
    RSS_090_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    WELL_KNOWN_PREFIXES,
    Family,
    Scope,
)
from wholefeed.core.text.markup import ATTRIBUTE_VALUE, attribute_of, attribute_places, escape, quoteattr
from wholefeed.core.text.urls import MAX_URL_CHARACTERS, resolve

_ANY_SCHEME: Final = rb"[A-Za-z][A-Za-z0-9+.\-]*+:"
"""What begins with one is absolute (RFC 3986, section 3.1)."""

ABSOLUTE: Final = (
    rb"(?:\s++(?:(?:href|src)\s*+=\s*+(?=[\"']https?:)|(?:rel|type|title|hreflang|length)\s*+=\s*+)%s)*+\s*+"
    % ATTRIBUTE_VALUE
)
"""The attributes of a link or of content that nothing is to be changed in, as most of them are."""

GAIN_FACTOR: Final = 4
GAIN_BYTES: Final = 512
"""One slice grows to so many times its size and so much more at most; what is left then stays relative."""


def with_absolute_urls(slice_: bytes, scope: Scope, family: Family, *, outer: bytes = b"") -> bytes:
    """Return an entry, or an element of the head, with the URLs in it written absolute.

    A start tag may stand between its scope and it (`outer`).
    """
    reader = _Reader(slice_, scope, family, outer)
    try:
        return reader.read()
    except ExpatError:  # it is well-formed in its document; what cannot be read alone stays as it is
        return slice_
    finally:
        reader.close()


class _Reader:
    """Goes through one slice, without a tree: the places that change are all that is kept of it."""

    def __init__(self, slice_: bytes, scope: Scope, family: Family, outer: bytes) -> None:
        self._slice = slice_
        self._outer = outer
        self._family = family
        self._room = GAIN_FACTOR * len(slice_) + GAIN_BYTES
        """Bytes that it may still grow by; below zero: one URL had no room, and others are left alone."""
        self._own = scope.prefixes.get("", "")
        self._inside = [_Inside(scope.prefixes, scope.base)]
        self._content_depth = 0
        """Of the element whose content is left alone; 0: none is open."""
        self._open: _Open | None = None
        self._texts: list[str] = []
        self._edits: list[tuple[int, int, bytes]] = []
        self._has_link = False
        self._address = ""
        """What a guid that is a relative permalink means."""
        self._parser = parser = ParserCreate("utf-8")
        parser.ordered_attributes = True
        parser.StartElementHandler = self._began
        parser.EndElementHandler = self._ended

    def read(self) -> bytes:
        end = b""
        if self._outer:
            end = b"</%s>" % self._outer[1:].replace(b">", b" ").replace(b"/", b" ").split(maxsplit=1)[0]
        self._parser.Parse(self._outer + self._slice + end, True)
        pieces: list[bytes] = []
        position = 0
        for start, stop, written in self._edits:
            pieces += (self._slice[position:start], written)
            position = stop
        made = b"".join((*pieces, self._slice[position:]))
        return made if self._has_link or not self._address or self._room < 0 else self._add_link(made)

    def close(self) -> None:
        """Break the circle of parser and handlers; there is one for each entry."""
        self._parser.StartElementHandler = self._parser.EndElementHandler = None

    def _add_link(self, made: bytes) -> bytes:
        """Give an item whose only address is its guid the link that the guid means."""
        is_foreign = self._own in ATOM_NAMESPACES or b"xmlns=" in made[: made.find(b">")]
        link = '<link xmlns="">' if is_foreign else "<link>"
        place = made.rindex(b"</")
        return b"".join((made[:place], f"{link}{escape(self._address)}</link>".encode(), made[place:]))

    @property
    def _place(self) -> int:
        return self._parser.CurrentByteIndex - len(self._outer)

    def _began(self, name: str, attributes: list[str]) -> None:
        around = self._inside[-1]
        inside = _enter(around, attributes) if attributes else around
        self._inside.append(inside)
        self._open = self._parser.CharacterDataHandler = None
        if self._content_depth or self._room < 0:
            return
        prefix, _, local = name.rpartition(":")
        namespace = inside.prefixes.get(prefix, "")
        rules = _rules_of(namespace, self._family, self._own)
        rule = rules.get(local) or rules.get(_EVERYWHERE, _NO_RULE)
        place = self._place
        if place < 0:  # what stands around the slice
            return
        if rule.is_content:
            self._content_depth = len(self._inside)
        if rule.attributes and attributes:
            self._write_attributes(rule, attributes, place, inside.base)
            if local == "link" and rules is _ATOM and self._is_alternate(attributes):
                self._has_link = True
        is_of_item = rules is _RSS and len(self._inside) == _CHILD_DEPTH
        is_guid = is_of_item and local == "guid"
        if rule.is_text or is_guid:
            self._open = _Open(
                depth=len(self._inside),
                text_at=attribute_places(self._slice, place).end,
                base=inside.base,
                permalink=attribute_of(attributes, "isPermaLink"),
                is_guid=is_guid,
                is_link=is_of_item and local == "link",
            )
            self._texts = []
            self._parser.CharacterDataHandler = self._texts.append

    def _ended(self, _name: str) -> None:
        depth = len(self._inside)
        self._inside.pop()
        if depth == self._content_depth:
            self._content_depth = 0
        ended, self._open = self._open, None
        if ended is None or ended.depth != depth:
            return
        self._parser.CharacterDataHandler = None
        text = "".join(self._texts)
        self._has_link = self._has_link or (ended.is_link and bool(text.strip(_SPACES)))
        made = absolute(ended.base, text)
        if ended.is_guid:
            self._address = made if made and is_permalink(text, ended.permalink) else ""
        elif made:
            self._edit(ended.text_at, self._place, escape(made).encode())

    def _write_attributes(
        self, rule: _AttributeRule, attributes: Sequence[str], place: int, base: str
    ) -> None:
        values = dict(zip(attributes[::2], attributes[1::2], strict=True))
        changed = {}
        for name in rule.attributes & values.keys():
            made = _resolve_srcset(base, values[name]) if name == "srcset" else absolute(base, values[name])
            if made:
                changed[name.encode()] = quoteattr(made).encode()
        if changed:
            for written, start, end in attribute_places(self._slice, place).quoted:
                if written in changed:
                    self._edit(start, end, changed[written])

    def _is_alternate(self, attributes: Sequence[str]) -> bool:
        relation = (attribute_of(attributes, "rel") or "alternate").strip(_SPACES).lower()
        return relation == "alternate" and bool((attribute_of(attributes, "href") or "").strip(_SPACES))

    def _edit(self, start: int, end: int, written: bytes) -> None:
        gained = len(written) - (end - start)
        self._room -= max(0, gained)
        if self._room >= 0:
            self._edits.append((start, end, written))


_CHILD_DEPTH: Final = 3
"""Of what is around the slice, the slice, and its children."""


class _Inside(NamedTuple):
    """What is in force inside of an element."""

    prefixes: Mapping[str, str]
    base: str


class _Open(NamedTuple):
    """An element whose text is a URL, while it is read."""

    depth: int
    text_at: int
    """Where its content begins."""
    base: str
    permalink: str | None
    """Of a guid: its isPermaLink, else None."""
    is_guid: bool
    is_link: bool
    """Whether it is the link of an RSS item."""


_SPACES: Final = " \t\r\n\f"


def _enter(around: _Inside, attributes: Sequence[str]) -> _Inside:
    base = around.base
    declared = {}
    for place in range(0, len(attributes), 2):
        name, value = attributes[place], attributes[place + 1]
        if name == "xml:base":
            base = resolve_xml_base(base, value)
        elif name.startswith("xmlns") and name[5:6] in ("", ":"):
            declared[name[6:]] = value
    return _Inside({**around.prefixes, **declared} if declared else around.prefixes, base)


def _resolve_srcset(base: str, srcset: str) -> str:
    """Return a list of images, "URL width, URL width", with each URL absolute; empty where all are."""
    images = [each.strip(_SPACES).partition(" ") for each in srcset.split(",")]
    made = [absolute(base, url) for url, _, _ in images]
    if not any(made):
        return ""
    return ", ".join(
        (new or url) + blank + size for new, (url, blank, size) in zip(made, images, strict=True)
    )


def absolute(base: str, reference: str) -> str:
    """Return the http(s) URL that a relative reference means; empty where nothing is to be changed."""
    written = reference.strip(_SPACES)
    if not written or len(written) > MAX_URL_CHARACTERS or _SCHEME.match(written):
        return ""
    try:
        made = resolve(base, written)
    except ValueError:
        return ""
    return made if len(made) <= MAX_URL_CHARACTERS and _HTTP.match(made) else ""


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_HTTP: Final = re.compile(r"https?://", re.IGNORECASE)


def resolve_xml_base(base: str, reference: str) -> str:
    """Return what a relative xml:base means (XML Base, section 4); one that is unusable changes nothing."""
    try:
        made = resolve(base, reference)
    except ValueError:
        return base
    return made if len(made) <= MAX_URL_CHARACTERS else base


def is_permalink(text: str, said: str | None) -> bool:
    """Whether a guid is the address of its item (RSS 2.0, "guid").

    It is one unless its isPermaLink says no. Many say nothing, though, of what is a number or a hash.
    """
    if said is not None:
        return said.strip(_SPACES).lower() != "false"
    return any(character in text for character in "/.?#")


# Which elements and attributes are URLs, by namespace and name


def _rules_of(namespace: str, family: Family, default: str) -> Mapping[str, _AttributeRule]:
    """Return the rules for the elements of a namespace, by their local names.

    The default namespace of a document of RSS is RSS's own, however it is called, Atom's among them.
    """
    if family is not Family.ATOM and (namespace == default or namespace in RSS_OWN):
        return _RSS
    return _foreign(namespace)


def _foreign(namespace: str) -> Mapping[str, _AttributeRule]:
    return _FOREIGN.get(namespace.lower().rstrip("/"), _NONE)


RSS_OWN: Final = RSS_NAMESPACES | {RSS_10_NS, RSS_090_NS}


class _AttributeRule(NamedTuple):
    """What of an element is a URL."""

    attributes: frozenset[str] = frozenset()
    is_text: bool = False
    is_content: bool = False
    """Whether what stands in it is left alone: xml:base counts there."""
    is_identity: bool = False
    """Whether its text may be a URL and is never rewritten: its base goes along."""


_NO_RULE: Final = _AttributeRule()
_EVERYWHERE: Final = "*"
"""Stands for all the other names in a namespace."""
_LINK: Final = _AttributeRule(frozenset({"href"}))
_URL_TEXT: Final = _AttributeRule(is_text=True)
_IDENTITY: Final = _AttributeRule(is_identity=True)
_CONTENT: Final = _AttributeRule(is_content=True)
_ATOM: Final = {
    "id": _IDENTITY,
    "link": _LINK,
    "content": _AttributeRule(frozenset({"src"}), is_content=True),
    "generator": _AttributeRule(frozenset({"uri", "url"})),
    **dict.fromkeys(("icon", "logo", "uri", "url"), _URL_TEXT),
    **dict.fromkeys(("summary", "title", "subtitle", "rights", "tagline", "copyright", "info"), _CONTENT),
}
_RSS: Final = {
    "guid": _IDENTITY,
    "link": _AttributeRule(frozenset({"href"}), is_text=True),
    "enclosure": _AttributeRule(frozenset({"url"})),
    "source": _AttributeRule(frozenset({"url"})),
    **dict.fromkeys(("comments", "docs", "url", "image"), _URL_TEXT),
    **dict.fromkeys(("description", "title"), _CONTENT),
}
_ALL_URLS: Final = _AttributeRule(frozenset({"url", "href", "uri", "img", "feedUrl", "accountUrl", "srcset"}))
_FOREIGN: Final[Mapping[str, Mapping[str, _AttributeRule]]] = {
    namespace.lower().rstrip("/"): rules
    for namespace, rules in {
        **dict.fromkeys(ATOM_NAMESPACES, _ATOM),
        WELL_KNOWN_PREFIXES["media"]: {
            **dict.fromkeys(("content", "thumbnail", "player", _EVERYWHERE), _ALL_URLS),
            **dict.fromkeys(("backLink", "response"), _URL_TEXT),
        },
        WELL_KNOWN_PREFIXES["podcast"]: {_EVERYWHERE: _ALL_URLS},
        "https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md": {
            _EVERYWHERE: _ALL_URLS
        },
        WELL_KNOWN_PREFIXES["itunes"]: {"image": _LINK, "new-feed-url": _URL_TEXT},
        WELL_KNOWN_PREFIXES["googleplay"]: {"image": _LINK},
        WELL_KNOWN_PREFIXES["wfw"]: dict.fromkeys(("comment", "commentRss", "commentRSS"), _URL_TEXT),
        WELL_KNOWN_PREFIXES["thr"]: {"in-reply-to": _AttributeRule(frozenset({"href", "source"}))},
        WELL_KNOWN_PREFIXES["psc"]: {"chapter": _AttributeRule(frozenset({"href", "image"}))},
        WELL_KNOWN_PREFIXES["feedburner"]: {"origLink": _URL_TEXT, "origEnclosureLink": _URL_TEXT},
        WELL_KNOWN_PREFIXES["creativeCommons"]: {"license": _URL_TEXT},
        "http://purl.oclc.org/net/rss_2.0/enc#": {
            "enclosure": _AttributeRule(frozenset({"rdf:resource", "enc:url", "url"}))
        },
        WELL_KNOWN_PREFIXES["content"]: {_EVERYWHERE: _CONTENT},
        WELL_KNOWN_PREFIXES["xhtml"]: {_EVERYWHERE: _CONTENT},
    }.items()
}
_NONE: Final[Mapping[str, _AttributeRule]] = {}


# Whether anything relative stands in a text

UrlNames = frozenset[bytes]
"""The elements whose text is a URL, as a document writes them: with its prefixes."""


def url_names(scopes: Iterable[Scope], family: Family) -> UrlNames:
    """Return how a document of a family may write the elements whose text is a URL."""
    written: set[str] = set()
    for prefixes in (scope.prefixes for scope in scopes):
        default = prefixes.get("", "")
        for prefix, namespace in {"": default, **prefixes}.items():
            # what an element inside makes the default is not RSS's own
            rules = {*_rules_of(namespace, family, default).items(), *_foreign(namespace).items()}
            names = (name for name, rule in rules if rule.is_text or rule.is_identity)
            written.update(f"{prefix}:{name}" if prefix else name for name in names)
    return frozenset(name.encode() for name in written)


def may_hold_relative(text: bytes, names: UrlNames, start: int = 0, end: int | None = None) -> bool:
    """Return whether `with_absolute_urls` might change a slice. One too many costs only time."""
    return _is_any_meant(_URLS, text, names, start, len(text) if end is None else end)


def has_relative_reference(text: bytes, names: UrlNames, start: int = 0, end: int | None = None) -> bool:
    """Return whether a slice seems to hold what means nothing without its base. One too many does no harm.

    RSS says nothing of xml:base, so an item gains one only where a relative reference stands in it. They are
    looked for where readers resolve them: in the elements and attributes that are URLs, and in the attributes
    of HTML, whether it is escaped, in CDATA or neither.
    """
    stop = len(text) if end is None else end
    return _is_any_meant(_TEXTS, text, names, start, stop) or any(
        _NAMED.search(text, max(start, match.end() - _LONGEST_NAME), match.start() + 1)
        for match in _ATTRIBUTE.finditer(text, start, stop)
    )


def _is_any_meant(search: re.Pattern[bytes], text: bytes, names: UrlNames, start: int, end: int) -> bool:
    """Whether anything that a search finds in a slice is a URL there: `slash:comments` is a number.

    A prefix that the slice declares may mean anything.
    """
    declared: set[bytes] | None = None
    for found in search.finditer(text, start, end):
        if found.lastindex is None:  # an attribute
            return True
        written = _WRITTEN.match(text, found.start() + 1)
        if written is None or written[0] in names:
            return True
        if declared is None:
            declared = set(_DECLARED.findall(text, start, end))
        if (written[1] or b"") in declared:
            return True
    return False


_RULES: Final = [*_RSS.items(), *(each for rules in _FOREIGN.values() for each in rules.items())]
_WITH_ATTRIBUTES: Final = {name for name, rule in _RULES if rule.attributes} - {_EVERYWHERE}
_WITH_TEXT: Final = {name for name, rule in _RULES if rule.is_text or rule.is_identity}
_ATTRIBUTE_NAMES: Final = {name.rpartition(":")[2] for _, rule in _RULES for name in rule.attributes}


def _one_of(names: Iterable[str]) -> bytes:
    """Return a pattern of names; what begins with none of their letters is dropped at once."""
    letters = "".join(sorted({name[0] for name in names}))
    return f"(?=[{letters}])(?:{'|'.join(map(re.escape, sorted(names)))})".encode()


# The searches see more than there is, and must not see less. None reaches beyond the next "<", and none goes
# back, which keeps them linear; white space is never tried in two ways. Each begins at one literal character
# and drops the usual case first, which makes it fast.
_NAME: Final = rb"[A-Za-z0-9_.\-\x80-\xff]++"
_ANY_ATTRIBUTES: Final = rb"(?:\s++[^\s=<>\"']++\s*+=\s*+%s)*?\s++" % ATTRIBUTE_VALUE
_RELATIVE_ATTRIBUTE: Final = rb"%s(?:%s:)?+%s\s*+=\s*+[\"'](?!\s*+(?:%s|[\"']))" % (
    _ANY_ATTRIBUTES,
    _NAME,
    _one_of(_ATTRIBUTE_NAMES),
    _ANY_SCHEME,
)
_RELATIVE_TEXT: Final = rb"(?:\s[^<>]*+)?>\s*+(?:<!\[CDATA\[\s*+)?+(?!%s|\]\]>)[^<]" % _ANY_SCHEME
_NO_PERMALINK: Final = rb"(?<=guid)(?=[^<>]*\sisPermaLink\s*=\s*[\"']\s*false)"
_TEXT: Final = rb"%s(?!%s)%s()" % (_one_of(_WITH_TEXT), _NO_PERMALINK, _RELATIVE_TEXT)
_BEGINS: Final = rb"<(?=[A-Za-z_\x80-\xff])"
_TEXTS: Final = re.compile(rb"%s(?:%s:)?+%s" % (_BEGINS, _NAME, _TEXT))
_URLS: Final = re.compile(
    rb"%s(?:%s:(?:%s%s|%s)|%s%s|%s)"
    % (
        *(_BEGINS, _NAME, _NAME, _RELATIVE_ATTRIBUTE, _TEXT),
        *(_one_of(_WITH_ATTRIBUTES), _RELATIVE_ATTRIBUTE, _TEXT),
    )
)
_WRITTEN: Final = re.compile(rb"(?:(%s):)?+%s" % (_NAME, _NAME))
_DECLARED: Final = re.compile(rb"xmlns(?::(%s))?+\s*+=" % _NAME)

_QUOTE: Final = rb"(?:[\"']|&(?:quot|apos|\#0*3[49]|\#[xX]0*2[27]);|&amp;(?:quot|apos|\#39);)"
_NAMES_ANYWHERE: Final = sorted(
    name.encode() for name in _ATTRIBUTE_NAMES | {"href", "src", "srcset", "poster", "HREF", "SRC", "about"}
)
"""Those of the table, of HTML, and rdf:about."""
_ATTRIBUTE: Final = re.compile(
    rb"=(?!\"http)(?:(?<=[%s]=)(?:%s)|(?<=\s=))(?!\s*+(?:%s\s*+)?+%s)"
    % (
        bytes({name[-1] for name in _NAMES_ANYWHERE}),
        b"|".join(rb"(?<=%s=)" % name for name in _NAMES_ANYWHERE),
        _QUOTE,
        _ANY_SCHEME,
    )
)
_NAMED: Final = re.compile(rb"[\s\-:](?:%s)\s*=\Z" % b"|".join(_NAMES_ANYWHERE))
_LONGEST_NAME: Final = 16
