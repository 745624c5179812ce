"""Correct names in feeds that deviate from their specification (docs/repair.md), at linear cost.

Readers ignore case, accept any default namespace, and find entries at any depth. A document that needs this
is copied with corrected tags, and then read strictly. The content of an entry's children never changes, but
entries of the other format are translated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from wholefeed.core.model import (
    ATOM_03_NS,
    ATOM_NAMESPACES,
    ATOM_NS,
    DC_NS,
    DCTERMS_NS,
    FH_NS,
    RDF_NS,
    RSS_090_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    TOMBSTONE_NS,
    WELL_KNOWN_PREFIXES,
    XML_NS,
    Family,
)
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.foreign import PREFIXES, Child, ForeignEntry
from wholefeed.core.parse.limits import (
    FREE_NAME_CHARACTERS,
    MAX_ELEMENTS,
    MAX_GAIN_BYTES,
    MAX_GAIN_FACTOR,
    NAME_CHARACTERS_PER_BYTE,
    UNLIMITED,
    ParseError,
)
from wholefeed.core.text.markup import attribute, attribute_of, attribute_places

# Names of repairs, for `DocumentRepaired`

ELEMENT_NAMES: Final = "element-names"
FOREIGN_ENTRIES: Final = "foreign-entries"
NAMESPACE: Final = "namespace"
WRAPPERS: Final = "wrappers"


# Namespaces

_CONTENT_NS: Final = WELL_KNOWN_PREFIXES["content"]
_SCHEME_AND_WWW: Final = re.compile(r"(?:https?:/*+)?+(?:www\.)?+")


def _fold(namespace: str) -> str:
    """Return a namespace without frequent errors: case, scheme, `www.`, and its end."""
    return _SCHEME_AND_WWW.sub("", namespace.strip().lower(), count=1).rstrip("/#")


# Namespaces by their spellings after `_fold`.
_RIGHT_NAMESPACES: Final = {
    **{
        _fold(each): each
        for each in (
            *(ATOM_NS, ATOM_03_NS, RDF_NS, RSS_10_NS, RSS_090_NS, FH_NS),
            *(TOMBSTONE_NS, DC_NS, DCTERMS_NS, _CONTENT_NS),
        )
    },
    **dict.fromkeys(
        (
            *("urn:ietf:params:xml:ns:atom", "urn:ietf:rfc:4287", "w3c.org/2005/atom", "w3.org/atom"),
            *("w3.org/2005/atom/1.0", "w3.org/2005/atom1.0", "w3.org/2005/atom10", "w3.org/2005/10/atom"),
            *("ietf.org/rfc/rfc4287", "ietf.org/rfc/rfc4287.txt", "tools.ietf.org/html/rfc4287"),
            *("rfc-editor.org/rfc/rfc4287", "purl.org/2005/atom", "w3.org/ns/atom", "atom"),
        ),
        ATOM_NS,
    ),
    **dict.fromkeys(
        (
            *("purl.org/atom", "example.com/newformat", "example.com/necho", "purl.org/echo"),
            *("uri/of/echo/namespace", "purl.org/pie"),
        ),
        ATOM_03_NS,
    ),
    **dict.fromkeys(
        (
            *("w3.org/1999/02/22-rdf-syntax", "w3.org/tr/rec-rdf-syntax", "w3.org/1999/02/22/rdf-syntax-ns"),
            *("w3.org/rdf", "w3.org/tr/1999/rec-rdf-syntax-19990222"),
        ),
        RDF_NS,
    ),
    **dict.fromkeys(("purl.org/rss", "purl.org/rss1.0", "purl.org/net/rss1.0"), RSS_10_NS),
    "purl.org/syndication/history": FH_NS,
}
_ATOM_DRAFTS: Final = "purl.org/atom/ns#draft-"
# Spellings, after `_fold`, of a namespace of RSS's own, which RSS does not have.
_RSS_SPELLINGS: Final = frozenset(
    (
        *("backend.userland.com/rss", "backend.userland.com/rss2", "backend.userland.com/rss20"),
        *("backend.userland.com/rss091", "backend.userland.com/rss092", "purl.org/rss/1.0/modules/rss091"),
        *(
            "blogs.law.harvard.edu/tech/rss",
            "cyber.law.harvard.edu/rss",
            "cyber.law.harvard.edu/rss/rss.html",
        ),
        *(
            "rssboard.org/rss-specification",
            "purl.org/rss/2.0",
            "my.netscape.com/publish/formats/rss-0.91.dtd",
        ),
    )
)


@lru_cache(256)
def right_namespace(namespace: str) -> str:
    """Return the namespace that a spelling means; the same if unknown."""
    folded = _fold(namespace)
    return ATOM_NS if folded.startswith(_ATOM_DRAFTS) else _RIGHT_NAMESPACES.get(folded, namespace)


def is_misspelt(namespace: str) -> bool:
    return right_namespace(namespace) != namespace


# Signs, after a strict reading, that a document may use other names

ROOTS: Final = frozenset({"rss", "feed", "rdf", "channel", "items", "entries"})
"""Lower case."""
STRUCTURE: Final = frozenset({"channel", "item", "items", "entry", "entries"})
"""Lower-case names that a feed's child has only as an entry, or around entries."""
_ATOM_NAMES: Final = {
    name: name
    for name in (
        *("title", "link", "id", "updated", "published", "summary", "content", "author", "contributor"),
        *("category", "rights", "source", "subtitle", "generator", "icon", "logo"),
        *("modified", "issued", "created", "copyright", "tagline", "info"),
    )
}
_LOWER_NAMES: Final = {*_ATOM_NAMES, "archive", "complete", "prev", "stateful", "incremental"}
_LOWER_NAMESPACES: Final = frozenset({ATOM_NS, FH_NS})
_RSS_HEAD: Final = {
    name.lower(): name for name in ("title", "link", "description", "pubDate", "lastBuildDate")
}


def is_odd_name(namespace: str, local: str) -> bool:
    if namespace in RSS_NAMESPACES:
        return _RSS_HEAD.get(local.lower(), local) != local
    return _is_capitalised(namespace, local)


def _is_capitalised(namespace: str, local: str) -> bool:
    is_name = not local.islower() and local.lower() in _LOWER_NAMES
    return is_name and right_namespace(namespace) in _LOWER_NAMESPACES


_ENTRY_TAG: Final = re.compile(rb"<(?:[^\s<>/:=\"'!?]{1,64}+:)?+(?:item|entry)(?=[\s/>])", re.IGNORECASE)
_CHILDREN: Final = (
    rb"title|link|guid|pubDate|description|id|updated|published|modified|issued|summary|content"
)
_ODD_CHILD: Final = re.compile(
    rb"<(?!(?:%s)[\s/>])(?i:%s)(?=[\s/>])|<link\s(?:[^<>]*\s)?(?!href)(?i:href)\s*+=" % (_CHILDREN, _CHILDREN)
)


def holds_entry_tag(text: bytes | bytearray, start: int, end: int) -> bool:
    """Return whether an entry's start tag, in any spelling, seems to stand there."""
    return _ENTRY_TAG.search(text, start, end) is not None


def holds_odd_child(text: bytes | bytearray, start: int, end: int) -> bool:
    """Return whether a usual child of entries seems to stand there in another case."""
    return _ODD_CHILD.search(text, start, end) is not None


class OddSpellingError(Exception):
    """A sign that misspelt names mean a feed, or entries. `parse` does not raise this error."""


# The mend


class Respelt(NamedTuple):
    text: bytes
    repairs: tuple[str, ...]


def respell(text: bytes, *, max_depth: int) -> Respelt | None:
    """Return a document with corrected names; None if nothing changes, or it is no feed.

    Raises:
        ParseError: The document is not well-formed, or beyond a limit.
    """
    guard = Guard(max_depth=max_depth)
    speller = _Speller(guard, text)
    try:
        guard.read(text)
        return speller.finish()
    except _TooManyError:
        return None
    finally:
        guard.close()


_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_FREE_CHANGES: Final = 20_000
# A document with denser changes, beyond `_FREE_CHANGES`, is no feed; each change costs 10 µs.
_BYTES_PER_CHANGE: Final = 16


class _TooManyError(Exception):
    """An excess of changes; `respell` does not raise this error."""


_VOCABULARY: Final = ATOM_NAMESPACES | RSS_NAMESPACES | {RSS_10_NS, RSS_090_NS}
_RDF_ITEMS: Final = RSS_NAMESPACES | {RSS_10_NS, RSS_090_NS}

_RSS_NAMES: Final = {
    name.lower(): name
    for name in (
        *("title", "link", "description", "author", "category", "comments", "enclosure", "guid", "pubDate"),
        *("source", "language", "copyright", "managingEditor", "webMaster", "lastBuildDate", "generator"),
        *("docs", "cloud", "ttl", "image", "rating", "textInput", "skipHours", "skipDays"),
    )
}
_RDF_NAMES: Final = {**_RSS_NAMES, "items": "items", "textinput": "textinput"}
# Children of feeds and entries, by their names in lower case.
_NAMES: Final = {Family.RSS: _RSS_NAMES, Family.RDF: _RDF_NAMES, Family.ATOM: _ATOM_NAMES}
_ATTRIBUTES: Final = {
    name.lower(): name
    for name in (
        *("href", "rel", "type", "title", "hreflang", "length", "term", "scheme", "label", "src", "url"),
        *("domain", "isPermaLink", "version", "mode"),
    )
}


@dataclass(slots=True)
class _OpenTag:
    start: int
    end_name: bytes | None = None
    """New name of the end tag; None if there is none, or no change."""
    declared: Mapping[str, str] = field(default_factory=dict)
    xml: Sequence[tuple[str, str]] = ()
    """Its xml:lang and xml:base."""
    is_holder: bool = False
    """Whether entries may stand in it."""
    is_wrapper: bool = False
    """Whether it stands between holder and entries: only its entries are copied."""
    copied_bytes: int = 0
    """Size of the output when it began."""


@dataclass(slots=True)
class _OpenEntry:
    depth: int
    start: int
    end_name: bytes | None
    namespace: str
    """Default namespace of an Atom entry."""
    is_renamed: bool
    """Whether it loses its prefix."""
    foreign: ForeignEntry | None
    """None for an entry of the feed's own format."""


@dataclass(slots=True)
class _Field:
    start: int
    end_name: bytes | None = None
    name: str = ""
    """Only in a foreign entry: same as `Child.name`."""
    attributes: Mapping[str, str] = field(default_factory=dict)


class _Speller:
    def __init__(self, guard: Guard, text: bytes) -> None:
        self._guard = guard
        self._parser = guard.parser
        self._text = text
        self._out = bytearray()
        self._at = 0
        self._limit_bytes = MAX_GAIN_BYTES + (1 + MAX_GAIN_FACTOR) * len(text)
        self._repairs: set[str] = set()
        self._family: Family | None = None
        self._namespace = ""
        self._root_namespace = ""
        self._must_hold_entries = False
        """Whether only its entries make the document a feed."""
        self._has_entries = False
        self._behind = b""
        """Text to add after the root."""
        self._open: list[_OpenTag] = []
        self._holders: list[int] = []
        """Depths of the open elements that may contain entries."""
        self._entry: _OpenEntry | None = None
        self._field: _Field | None = None
        self._pieces: list[str] = []
        self._changes = _FREE_CHANGES + len(text) // _BYTES_PER_CHANGE
        """Still allowed."""
        self._depth = 0
        self._left = MAX_ELEMENTS
        self._characters = FREE_NAME_CHARACTERS + NAME_CHARACTERS_PER_BYTE * len(text)
        guard.parser.StartElementHandler = self._element_began
        guard.parser.EndElementHandler = self._element_ended

    def finish(self) -> Respelt | None:
        if not self._repairs or (self._must_hold_entries and not self._has_entries):
            return None
        self._copy(len(self._text))
        return Respelt(bytes(self._out + self._behind), tuple(sorted(self._repairs)))

    # What expat tells.

    def _element_began(self, name: str, attributes: list[str]) -> None:
        self._depth += 1
        self._left -= 1
        self._characters -= len(name) + sum(map(len, attributes))
        if self._guard.must_measure or self._left < 0 or self._characters < 0:
            self._check(name, attributes)
        entry = self._entry
        if entry is not None:
            if self._depth == entry.depth + 1:
                self._field_began(entry, name, attributes)
            return
        if self._depth > self._guard.max_depth:
            self._guard.limit(f"at most {self._guard.max_depth} levels of elements", "more")
        namespace, _, local = name.rpartition("}")
        folded = local.lower()
        if not self._open:
            self._root_began(namespace, local, attributes)
        elif folded in _ENTRIES and self._is_own(namespace, local):
            self._entry_began(namespace, local, attributes)
        elif folded == "channel" and self._family is not Family.ATOM and len(self._holders) == 1:
            self._channel_began(namespace, local)
        else:
            self._other_began(namespace, local, attributes)

    def _check(self, name: str, attributes: list[str]) -> None:
        self._guard.check_element(name, attributes)
        if self._left < 0 or self._characters < 0:
            self._guard.limit(f"at most {MAX_ELEMENTS} elements, with short names", "more")

    def _element_ended(self, _name: str) -> None:
        entry = self._entry
        if entry is None:
            self._other_ended(self._open.pop())
        elif self._depth == entry.depth:
            self._entry = None
            self._entry_ended(entry)
        elif self._depth == entry.depth + 1 and self._field is not None:
            ended, self._field = self._field, None
            self._field_ended(entry, ended)
        self._depth -= 1

    def _is_own(self, namespace: str, local: str) -> bool:
        return self._guard.is_written(local) or self._is_known(namespace)

    def _is_known(self, namespace: str) -> bool:
        return right_namespace(namespace) in _VOCABULARY or _fold(namespace) in _RSS_SPELLINGS

    def _is_odd_rss(self, namespace: str) -> bool:
        # Whether readers, but not the strict parser, take a prefixed element for RSS.
        is_rss = self._is_known(namespace) and right_namespace(namespace) not in ATOM_NAMESPACES
        return is_rss and self._family is Family.RSS and namespace not in RSS_NAMESPACES

    # Roots and what stands between them and the entries.

    def _root_began(self, namespace: str, local: str, attributes: list[str]) -> None:
        folded, right = local.lower(), right_namespace(namespace)
        is_bare = self._guard.is_written(local)
        root = _OpenTag(self._parser.CurrentByteIndex, is_holder=True)
        self._holders.append(1)
        name, values = None, self._right_declarations(is_default_right=folded in ("rss", "channel"))
        if folded == "feed":
            self._family = Family.ATOM
            name = self._atom_root(right, local, is_bare=is_bare, attributes=attributes, values=values)
            self._must_hold_entries = bool(namespace) and right not in ATOM_NAMESPACES
        elif folded == "rdf":
            self._family = Family.RDF
            self._must_hold_entries = right != RDF_NS
            if self._must_hold_entries:
                name, values["xmlns:rdf"] = "rdf:RDF", RDF_NS
            elif local != "RDF":
                name = self._prefix_at(root.start) + "RDF"
        elif folded == "rss":
            self._family = Family.RSS
            is_right = is_bare or namespace in RSS_NAMESPACES
            name = "rss" if local != "rss" or not is_right else None
            self._must_hold_entries = not (is_bare or self._is_known(namespace))
        elif folded == "channel":
            self._wrap_root(root.start)
            self._channel_began(namespace, local)
            return
        else:
            self._wrap_root(root.start, is_atom=folded == "entries")
            self._other_began(namespace, local, attributes)
            return
        if self._family is not Family.ATOM:
            self._namespace = self._root_namespace = self._guard.declarations().get("", "")
        self._open.append(root)
        self._respell(root, name, values)

    def _atom_root(
        self, right: str, local: str, *, is_bare: bool, attributes: list[str], values: dict[str, str | None]
    ) -> str | None:
        is_old = attribute_of(attributes, "version") == "0.3"
        target = right if right in ATOM_NAMESPACES else ATOM_03_NS if is_old else ATOM_NS
        self._root_namespace = target
        declared = self._guard.declarations().get("", "")
        if is_bare or right not in ATOM_NAMESPACES:
            self._namespace = target
            if declared != target:
                values["xmlns"] = target
            return None if is_bare and local == "feed" else "feed"
        self._namespace = right_namespace(declared)
        return None if local == "feed" else f"{self._prefix_at(self._parser.CurrentByteIndex)}feed"

    def _wrap_root(self, start: int, *, is_atom: bool | None = None) -> None:
        """Put a root around a channel (`is_atom` is None), or around a wrapper of entries."""
        self._must_hold_entries = True
        self._repairs.add(WRAPPERS)
        self._copy(start)
        if is_atom:
            self._family, self._namespace = Family.ATOM, ATOM_NS
            self._root_namespace = ATOM_NS
            before, self._behind = f'<feed xmlns="{ATOM_NS}">'.encode(), b"</feed>"
        elif is_atom is None:
            self._family = Family.RSS
            before, self._behind = b'<rss version="2.0">', b"</rss>"
        else:
            self._family = Family.RSS
            before, self._behind = b'<rss version="2.0"><channel>', b"</channel></rss>"
            self._holders.append(1)
        self._out += before
        self._open.append(_BARE)

    def _channel_began(self, namespace: str, local: str) -> None:
        self._unwrap()
        channel = _OpenTag(self._parser.CurrentByteIndex, is_holder=True)
        declared = self._guard.declarations()
        name, values = None, self._right_declarations(is_default_right=self._family is Family.RSS)
        is_right = self._family is Family.RDF or namespace in {self._root_namespace, *RSS_NAMESPACES}
        if local != "channel" or not (is_right or self._guard.is_written(local)):
            name = "channel" if self._family is Family.RSS else f"{self._prefix_at(channel.start)}channel"
        if not is_right:
            if "" in declared:
                values["xmlns"] = None
            self._repairs.add(NAMESPACE)
        self._open.append(channel)
        self._holders.append(len(self._open))
        self._respell(channel, name, values)

    def _other_began(self, namespace: str, local: str, attributes: list[str]) -> None:
        is_child = len(self._open) == self._holders[-1]
        declared = self._guard.declarations()
        if not (is_child or attributes or declared):
            self._open.append(_BARE)
            return
        start = self._parser.CurrentByteIndex
        other = _OpenTag(start, declared=declared, xml=_xml_attributes(attributes))
        self._open.append(other)
        if not is_child:
            return
        self._copy(start)
        other.copied_bytes = len(self._out)
        assert self._family is not None, "the root has begun"
        wanted = _NAMES[self._family].get(local.lower())
        is_bare = self._guard.is_written(local)
        is_odd = wanted != local if is_bare else self._is_odd_rss(namespace)
        name = wanted if is_odd else None
        if _is_capitalised(namespace, local):
            name = self._prefix_at(start) + local.lower()
        self._respell(other, name, self._right_declarations())

    def _other_ended(self, ended: _OpenTag) -> None:
        if ended.is_wrapper:
            self._at = self._guard.end_of(ended.start)
            return
        if ended.end_name is not None:
            self._rename_end(ended.end_name)
        if ended.is_holder:
            self._holders.pop()
            self._copy(self._guard.end_of(ended.start))

    def _unwrap(self) -> Sequence[_OpenTag]:
        wrappers = self._open[self._holders[-1] :]
        if wrappers:
            self._repairs.add(WRAPPERS)
            if not wrappers[0].is_wrapper:
                wrappers[0].is_wrapper = True
                del self._out[wrappers[0].copied_bytes :]
            self._at = self._parser.CurrentByteIndex
        return wrappers

    # Entries.

    def _entry_began(self, namespace: str, local: str, attributes: list[str]) -> None:
        self._has_entries = True
        wrappers = self._unwrap()
        start, right = self._parser.CurrentByteIndex, right_namespace(namespace)
        is_bare = self._guard.is_written(local)
        is_atom = self._family is Family.ATOM
        declared, values = self._guard.declarations(), self._right_declarations(is_default_right=not is_atom)
        name: str | None = None
        if is_atom:
            is_known = right in ATOM_NAMESPACES
            is_foreign = local.lower() == "item" or not (is_bare or is_known)
            target = ATOM_NS if is_foreign else right if is_known else self._root_namespace
            if is_foreign or is_bare:
                name = None if local == "entry" and is_bare else "entry"
                if right_namespace(declared.get("", self._namespace)) != target:
                    values["xmlns"] = target
            elif local != "entry":
                name = f"{self._prefix_at(start)}entry"
        else:
            target = ""
            is_foreign = local.lower() == "entry" or (not is_bare and right in ATOM_NAMESPACES)
            accepted = RSS_NAMESPACES if self._family is Family.RSS else _RDF_ITEMS
            is_right = is_bare or namespace in accepted
            name = "item" if is_foreign or local != "item" or not is_right else None
            if "" in declared and (is_foreign or not is_right):
                values["xmlns"] = None
        if is_foreign:
            self._repairs.add(FOREIGN_ENTRIES)
        opened = _OpenTag(start)
        self._respell(opened, name, values, self._find_inherited(wrappers, attributes))
        assert self._family is not None, "the root has begun"
        self._entry = _OpenEntry(
            self._depth,
            start,
            opened.end_name,
            target,
            is_renamed=name is not None and not is_bare,
            foreign=ForeignEntry(self._family) if is_foreign else None,
        )

    def _find_inherited(self, wrappers: Sequence[_OpenTag], attributes: Sequence[str]) -> Mapping[str, str]:
        """Return values of removed wrappers that the entry must repeat."""
        if not any(each.declared or each.xml for each in wrappers):
            return {}
        own, values = self._guard.declarations(), {}
        for each in wrappers:
            for prefix, uri in each.declared.items():
                if prefix and prefix not in own:
                    values[f"xmlns:{prefix}"] = right_namespace(uri)
            for name, value in each.xml:
                if attribute_of(attributes, f"{XML_NS}}}{name}") is None:
                    values[f"xml:{name}"] = value
        return values

    def _field_began(self, entry: _OpenEntry, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        if entry.foreign is not None:
            self._foreign_child_began(entry.foreign, namespace, local, attributes)
            return
        declared = self._guard.declarations()
        assert self._family is not None, "the root has begun"
        wanted = _NAMES[self._family].get(local.lower())
        is_odd = wanted is not None and (wanted != local or entry.is_renamed or _has_odd(attributes))
        if not (is_odd or declared):
            return
        is_bare = self._guard.is_written(local)
        values = self._right_declarations()
        new_name = None
        if is_odd and (is_bare or (entry.is_renamed and self._is_odd_rss(namespace))):
            new_name = wanted
        if self._family is Family.ATOM and wanted is not None and is_bare:
            own = declared.get("")
            if own is not None and right_namespace(own) not in ATOM_NAMESPACES:
                values["xmlns"] = entry.namespace
        opened = _OpenTag(self._parser.CurrentByteIndex)
        self._respell(opened, new_name, values)
        if opened.end_name is not None:
            self._field = _Field(opened.start, opened.end_name)

    def _foreign_child_began(
        self, foreign: ForeignEntry, namespace: str, local: str, attributes: list[str]
    ) -> None:
        prefix = PREFIXES.get(right_namespace(namespace), "")
        if not (prefix or self._is_own(namespace, local)):
            return
        name = prefix + local.lower()
        if not foreign.knows(name):
            self._set_apart(self._parser.CurrentByteIndex, foreign)
            return
        flat = zip(attributes[::2], attributes[1::2], strict=True)
        given = {name.lower(): value for name, value in flat if "}" not in name}
        start = self._parser.CurrentByteIndex
        self._field = _Field(start, name=name, attributes=given)
        self._parser.CharacterDataHandler = self._pieces.append

    def _field_ended(self, entry: _OpenEntry, ended: _Field) -> None:
        if ended.end_name is not None:
            self._rename_end(ended.end_name)
        elif entry.foreign is not None:
            self._foreign_child_ended(entry.foreign, ended)

    def _foreign_child_ended(self, foreign: ForeignEntry, ended: _Field) -> None:
        self._parser.CharacterDataHandler = None
        said = "".join(self._pieces)
        self._pieces.clear()
        text, begins, end = self._text, self._guard.end_of_tag(ended.start), self._guard.end_of(ended.start)
        inside = b"" if begins == end else text[begins : self._parser.CurrentByteIndex]
        made = foreign.make(Child(ended.name, ended.attributes, said.strip(), inside))
        if made is not None:
            self._replace(ended.start, end, made)
        else:
            self._set_apart(ended.start, foreign)

    def _set_apart(self, start: int, foreign: ForeignEntry) -> None:
        # A child without a counterpart must not look like a child of the feed's format.
        if self._prefix_at(start):
            return
        name = _NAME.match(self._text, start)
        assert name is not None, "a start tag begins there"
        if self._text.find(b"xmlns", name.end(), self._guard.end_of_tag(start)) < 0:
            self._replace(name.end(), name.end(), attribute("xmlns", foreign.other_namespace).written)

    def _entry_ended(self, entry: _OpenEntry) -> None:
        end = self._guard.end_of(entry.start)
        if entry.foreign is not None and self._text[end - 2 : end] != b"/>":
            self._replace(
                self._parser.CurrentByteIndex, self._parser.CurrentByteIndex, entry.foreign.make_rest()
            )
        if entry.end_name is not None:
            self._rename_end(entry.end_name)
        self._copy(end)

    # The copy.

    def _right_declarations(self, *, is_default_right: bool = False) -> dict[str, str | None]:
        """Return corrected declarations; with `is_default_right` any default namespace is RSS's own."""
        declared = self._guard.declarations()
        values: dict[str, str | None] = {}
        for prefix, uri in declared.items():
            right = right_namespace(uri)
            if right != uri and (prefix or not is_default_right):
                values[f"xmlns:{prefix}" if prefix else "xmlns"] = right
        return values

    def _prefix_at(self, start: int) -> str:
        # With its colon.
        match = _PREFIX.match(self._text, start)
        return "" if match is None else match[1].decode()

    def _respell(
        self,
        element: _OpenTag,
        name: str | None,
        values: Mapping[str, str | None],
        inherited: Mapping[str, str] = _NOTHING,
    ) -> None:
        if name is None and not values and not inherited:
            return
        start, end = element.start, self._guard.end_of_tag(element.start)
        self._replace(start, end, self._tag(start, name, {**inherited, **values}))
        if name is not None:
            self._repairs.add(ELEMENT_NAMES)
            element.end_name = None if self._text.startswith(b"/>", end - 2) else name.encode()
        if any(each.startswith("xmlns") for each in values):
            self._repairs.add(NAMESPACE)

    def _tag(self, start: int, name: str | None, values: Mapping[str, str | None]) -> bytes:
        # A value of None removes an attribute.
        text = self._text
        written = _NAME.match(text, start)
        assert written is not None, "a start tag begins there"
        places = attribute_places(text, start)
        made = [b"<", written[1] if name is None else name.encode()]
        left = {key.encode(): value for key, value in values.items()}
        names = {key for key, _, _ in places.quoted}
        added = [(key, value) for key, value in left.items() if key not in names and value is not None]
        made += [attribute(key.decode(), value).written for key, value in added]
        for key, begins, ends in places.quoted:
            if key in left:
                value = left[key]
                if value is not None:
                    made.append(attribute(key.decode(), value).written)
                continue
            folded = _ATTRIBUTES.get(key.decode().lower(), "").encode()
            is_odd = name is not None and folded and folded not in names
            made.append(b" %s=%s" % (folded if is_odd else key, text[begins:ends]))
        made.append(b"/>" if text[places.end - 2 : places.end] == b"/>" else b">")
        return b"".join(made)

    def _rename_end(self, name: bytes) -> None:
        start = self._parser.CurrentByteIndex
        self._replace(start, self._text.index(b">", start) + 1, b"</%s>" % name)

    def _copy(self, end: int) -> None:
        self._out += self._text[self._at : end]
        self._at = end
        if len(self._out) > self._limit_bytes and self._guard.max_depth < UNLIMITED:
            raise ParseError(
                f"expected at most {self._limit_bytes} bytes with names spelt right, got more",
                slug="xml-limit",
            )

    def _replace(self, start: int, end: int, made: bytes) -> None:
        self._changes -= 1
        if self._changes < 0:
            raise _TooManyError
        self._copy(start)
        self._out += made
        self._at = end


_ENTRIES: Final = frozenset({"item", "entry"})
# One object for all elements without changes, declarations and attributes.
_BARE: Final = _OpenTag(0)
_NAME: Final = re.compile(rb"<([^\s/>]+)")
_PREFIX: Final = re.compile(rb"<([^\s/>:]+:)")


def _has_odd(attributes: Sequence[str]) -> bool:
    return any(_ATTRIBUTES.get(name.lower(), name) != name for name in attributes[::2])


def _xml_attributes(attributes: Sequence[str]) -> Sequence[tuple[str, str]]:
    found = ((name, attribute_of(attributes, f"{XML_NS}}}{name}")) for name in ("lang", "base"))
    return [(name, value) for name, value in found if value is not None]
