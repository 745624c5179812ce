"""Find relative URLs in a slice of XML, and write links, enclosures and images absolute (rule R22).

Many readers resolve relative references against the proxy's URL. Content keeps its xml:base; identities never
change; unusable references stay.
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

# A URL with a scheme is absolute (RFC 3986, section 3.1).
_ANY_SCHEME: Final = rb"[A-Za-z][A-Za-z0-9+.\-]*+:"

ABSOLUTE: Final = (
    rb"(?:\s++(?:(?:href|src)\s*+=\s*+(?=[\"']https?:)|(?:rel|type|title|hreflang|length)\s*+=\s*+)%s)*+\s*+"
    % ATTRIBUTE_VALUE
)
"""Attributes of links and content without anything to change."""

GAIN_FACTOR: Final = 4
GAIN_BYTES: Final = 512
"""A slice may gain `GAIN_FACTOR` times its size, and so many bytes more; further URLs stay relative."""


def with_absolute_urls(slice_: bytes, scope: Scope, family: Family, *, outer: bytes = b"") -> bytes:
    """Return an entry, or an element of the head, with absolute URLs; `outer` is a start tag around it."""
    reader = _Reader(slice_, scope, family, outer)
    try:
        return reader.read()
    except ExpatError:  # well-formed in its document, but not alone: it stays as it is
        return slice_
    finally:
        reader.close()


class _Reader:
    """A reader of one slice; it keeps only places that change."""

    def __init__(self, slice_: bytes, scope: Scope, family: Family, outer: bytes) -> None:
        self._slice = slice_
        self._outer = outer
        self._family = family
        self._room = GAIN_FACTOR * len(slice_) + GAIN_BYTES
        """Bytes that may still be gained; below zero, no more URLs change."""
        self._own = scope.prefixes.get("", "")
        self._inside = [_Inside(scope.prefixes, scope.base)]
        self._content_depth = 0
        """Depth of the open content, where nothing changes; 0: none."""
        self._open: _Open | None = None
        self._texts: list[str] = []
        self._edits: list[tuple[int, int, bytes]] = []
        self._has_link = False
        self._address = ""
        """Target of a relative permalink."""
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
        """Break the cycle of parser and handlers; each entry has one."""
        self._parser.StartElementHandler = self._parser.EndElementHandler = None

    def _add_link(self, made: bytes) -> bytes:
        # The guid is the only address of this item.
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


# 1: around the slice; 2: the slice; 3: its children.
_CHILD_DEPTH: Final = 3


class _Inside(NamedTuple):
    prefixes: Mapping[str, str]
    base: str


class _Open(NamedTuple):
    depth: int
    text_at: int
    base: str
    permalink: str | None
    """A guid's isPermaLink."""
    is_guid: bool
    is_link: bool


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
    # A list of images, "URL width, URL width"; empty if all URLs are absolute already.
    images = [each.strip(_SPACES).partition(" ") for each in srcset.split(",")]
    made = [absolute(base, url) for url, _, _ in images]
    if not any(made):
        return ""
    return ", ".join(
        (new or url) + blank + size for new, (url, blank, size) in zip(made, images, strict=True)
    )


def absolute(base: str, reference: str) -> str:
    """Return the http(s) URL of a relative reference; empty if nothing is to change."""
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
    """Return the target of a relative xml:base (XML Base, section 4); an unusable one changes nothing."""
    try:
        made = resolve(base, reference)
    except ValueError:
        return base
    return made if len(made) <= MAX_URL_CHARACTERS else base


def is_permalink(text: str, said: str | None) -> bool:
    """Return whether a guid is the URL of its item (RSS 2.0, "guid")."""
    # By RSS 2.0 it is, unless isPermaLink denies it; but many numbers and hashes come without isPermaLink.
    if said is not None:
        return said.strip(_SPACES).lower() != "false"
    return any(character in text for character in "/.?#")


# Which elements and attributes are URLs, by namespace and name


def _rules_of(namespace: str, family: Family, default: str) -> Mapping[str, _AttributeRule]:
    # In RSS the default namespace is RSS's own, even if it is Atom's.
    if family is not Family.ATOM and (namespace == default or namespace in RSS_OWN):
        return _RSS
    return _foreign(namespace)


def _foreign(namespace: str) -> Mapping[str, _AttributeRule]:
    return _FOREIGN.get(namespace.lower().rstrip("/"), _NONE)


RSS_OWN: Final = RSS_NAMESPACES | {RSS_10_NS, RSS_090_NS}


class _AttributeRule(NamedTuple):
    attributes: frozenset[str] = frozenset()
    is_text: bool = False
    is_content: bool = False
    """Whether nothing in it changes: xml:base counts there."""
    is_identity: bool = False
    """Whether its text may be a URL, but never changes; its base goes along."""


_NO_RULE: Final = _AttributeRule()
# All other names in a namespace.
_EVERYWHERE: Final = "*"
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
"""Names, with prefixes, of elements with a URL as text."""


def url_names(scopes: Iterable[Scope], family: Family) -> UrlNames:
    written: set[str] = set()
    for prefixes in (scope.prefixes for scope in scopes):
        default = prefixes.get("", "")
        for prefix, namespace in {"": default, **prefixes}.items():
            # another default namespace, declared inside, is not RSS's own
            rules = {*_rules_of(namespace, family, default).items(), *_foreign(namespace).items()}
            names = (name for name, rule in rules if rule.is_text or rule.is_identity)
            written.update(f"{prefix}:{name}" if prefix else name for name in names)
    return frozenset(name.encode() for name in written)


def may_hold_relative(text: bytes, names: UrlNames, start: int = 0, end: int | None = None) -> bool:
    """Return whether `with_absolute_urls` might change a slice; a false positive costs only time."""
    return _is_any_meant(_URLS, text, names, start, len(text) if end is None else end)


def has_relative_reference(text: bytes, names: UrlNames, start: int = 0, end: int | None = None) -> bool:
    """Return whether a slice seems to need its base; a false positive does no harm."""
    # RSS has no xml:base, so an item gains one only with a relative reference. Readers resolve references in
    # elements and attributes that are URLs, and in HTML's attributes: escaped, in CDATA, or plain.
    stop = len(text) if end is None else end
    return _is_any_meant(_TEXTS, text, names, start, stop) or any(
        _NAMED.search(text, max(start, match.end() - _LONGEST_NAME), match.start() + 1)
        for match in _ATTRIBUTE.finditer(text, start, stop)
    )


def _is_any_meant(search: re.Pattern[bytes], text: bytes, names: UrlNames, start: int, end: int) -> bool:
    """Return whether a match in the slice is a URL: `slash:comments` is a number."""
    declared: set[bytes] | None = None
    for found in search.finditer(text, start, end):
        if found.lastindex is None:  # an attribute
            return True
        written = _WRITTEN.match(text, found.start() + 1)
        if written is None or written[0] in names:
            return True
        if declared is None:
            declared = set(_DECLARED.findall(text, start, end))
        # A prefix that the slice declares may mean anything.
        if (written[1] or b"") in declared:
            return True
    return False


_RULES: Final = [*_RSS.items(), *(each for rules in _FOREIGN.values() for each in rules.items())]
_WITH_ATTRIBUTES: Final = {name for name, rule in _RULES if rule.attributes} - {_EVERYWHERE}
_WITH_TEXT: Final = {name for name, rule in _RULES if rule.is_text or rule.is_identity}
_ATTRIBUTE_NAMES: Final = {name.rpartition(":")[2] for _, rule in _RULES for name in rule.attributes}


def _one_of(names: Iterable[str]) -> bytes:
    # The first letters exclude most names at once.
    letters = "".join(sorted({name[0] for name in names}))
    return f"(?=[{letters}])(?:{'|'.join(map(re.escape, sorted(names)))})".encode()


# The searches may find too much, never too little. They are linear: none reaches beyond the next "<" or goes
# back, or tries white space in two ways. They are fast: each begins at one literal character, and drops the
# usual case first.
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
# Names from the tables, of HTML, and rdf:about.
_NAMES_ANYWHERE: Final = sorted(
    name.encode() for name in _ATTRIBUTE_NAMES | {"href", "src", "srcset", "poster", "HREF", "SRC", "about"}
)
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
