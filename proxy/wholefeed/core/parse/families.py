"""Read the families of XML feeds: Atom, RSS, and RSS in RDF.

A `FamilyParser` waits for two events only: an element that begins at `Frame.watch`, and the end of one at
`Frame.until`. All else costs a comparison. Deeper elements build nothing; entries are byte ranges.

`read_plainly` reads most entries by one match each: 2.2 times as fast for an archive of 100 plain entries,
1.07 times for 121 real feeds.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import ClassVar, Final, NamedTuple, NoReturn

from wholefeed.core.model import (
    ATOM_03,
    ATOM_03_NS,
    ATOM_NAMESPACES,
    ATOM_NS,
    DC_NS,
    DCTERMS_NS,
    FH_NS,
    IANA_RELATION_PREFIX,
    MEMORY_URL,
    RDF_NS,
    RSS_090,
    RSS_090_NS,
    RSS_10_NS,
    RSS_NAMESPACES,
    TOMBSTONE_NS,
    WELL_KNOWN_PREFIXES,
    XML_NS,
    Channel,
    Entry,
    EntryId,
    EntryKeys,
    Family,
    FeedDocument,
    Head,
    HeadChild,
    HistoryElement,
    Link,
    Scope,
    Span,
    Tombstone,
    entry_id,
    written_id,
)
from wholefeed.core.notes import Note
from wholefeed.core.parse.expat import Guard
from wholefeed.core.parse.identities import (
    SPACES,
    FieldsNeededError,
    absolute,
    entry_keys,
    has_id,
    site_id,
    told_apart,
)
from wholefeed.core.parse.limits import (
    FREE_NAME_CHARACTERS,
    MAX_ATTRIBUTES,
    MAX_ELEMENTS,
    MAX_ENTRIES,
    MAX_FLAT_ATTRIBUTES,
    MAX_HEAD_BYTES,
    MAX_HEAD_CHILDREN,
    MAX_LANG_CHARACTERS,
    MAX_LIKE_ENTRIES,
    MAX_SCOPES,
    MAX_TITLE_CHARACTERS,
    NAME_CHARACTERS_PER_BYTE,
)
from wholefeed.core.parse.spelling import (
    ROOTS,
    STRUCTURE,
    OddSpellingError,
    holds_entry_tag,
    holds_odd_child,
    is_misspelt,
    is_odd_name,
)
from wholefeed.core.text.dates import parse_rfc822, parse_rfc3339
from wholefeed.core.text.markup import ATTRIBUTE_VALUE, attribute_of
from wholefeed.core.text.urls import resolve_or_empty
from wholefeed.core.verbatim.addresses import ABSOLUTE, resolve_xml_base


class Opening:
    """The reader of a document's root; it starts the parser of the document's family.

    `is_full` also collects fields that can replace an id or update instant; `is_early` stops at the first
    entry; with `is_respelt`, no name raises `OddSpellingError`.
    """

    def __init__(
        self,
        guard: Guard,
        url: str,
        *,
        is_full: bool = False,
        is_early: bool = False,
        is_respelt: bool = False,
    ) -> None:
        self.family: FamilyParser | None = None
        self.guard = guard
        self.is_full = is_full
        self.is_early = is_early
        self.is_respelt = is_respelt
        self.url = url
        guard.parser.StartElementHandler = self._root_began

    def close(self) -> None:
        """Release expat and the family's parser; neither may be used afterwards."""
        self.guard.close()
        if self.family is not None:
            vars(self.family).clear()  # its handlers form cycles, which only the collector would find
            self.family = None

    def _root_began(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        family: FamilyParser
        if local == "rss" and (namespace in RSS_NAMESPACES or self.guard.is_written("rss")):
            family = _RssParser(self, namespace)
        elif local == "feed" and namespace in ATOM_NAMESPACES:
            family = _AtomParser(self, ATOM_03 if namespace == ATOM_03_NS else "1.0")
        elif name == _RDF_ROOT:
            family = _RdfParser(self)
        elif local.lower() in ROOTS and not self.is_respelt:
            raise OddSpellingError
        else:
            self._refuse(namespace, local)
        self.family = family
        self.guard.check_element("", attributes)
        family.begin(attributes)
        family.look()

    def _refuse(self, namespace: str, local: str) -> NoReturn:
        if local in ("feed", "rss"):
            element = "a feed element" if local == "feed" else "an rss element with a prefix,"
            found = f"{element} in namespace {namespace!r}"
            self.guard.stop("unsupported-format", "Atom, RSS or RDF", found)
        found = "HTML" if local.lower() == "html" else f"a document of <{local[:_SHOWN_CHARACTERS]}>"
        if local == "entry" and namespace == ATOM_NS:
            found = "a single Atom entry"
        self.guard.stop("not-a-feed", "a feed", found)


_RDF_ROOT: Final = f"{RDF_NS}}}RDF"
_SHOWN_CHARACTERS: Final = 60


class Frame(NamedTuple):
    """The two events that a parser waits for; depths count the root as 1."""

    watch: int
    on_child: Callable[[str, list[str]], None]
    until: int
    on_end: Callable[[], None]


# The frames of a document, and the ways from one to another:
#    container --entry begins--> entry --a wanted field begins--> field --ends--> entry --ends--> container
#    container --another child begins--> head child --ends--> container
class FamilyParser(ABC):
    family: ClassVar[Family]
    site_slot: ClassVar[str]
    """Key in `head_values` of the text that identifies the site."""
    head_dates: ClassVar[tuple[tuple[str, Callable[[str], float | None]], ...]]
    """Keys of the feed's update instant, with their readers; the first readable one counts."""
    marks: ClassVar[frozenset[str]]
    """Fields of entries that `mark` notes without their text; unless `is_full`, the content too."""
    is_inherited: ClassVar[bool] = False
    """Whether an entry without author or rights has the feed's."""
    structure: ClassVar[Set[str]] = STRUCTURE
    """Names, in lower case, that no child of the head has."""

    _lacks_fields = False
    """Whether an entry has no id or date; otherwise the first entry shows how all are written."""

    # The current frame; `begin` sets the first one.
    watch: int
    on_child: Callable[[str, list[str]], None]
    until: int
    on_end: Callable[[], None]
    _container: Frame
    _entry_frame: Frame

    def __init__(self, opening: Opening, version: str) -> None:
        self.guard = opening.guard
        self.parser = opening.guard.parser
        self.url = opening.url
        self.version = version
        self.is_full = opening.is_full
        self._is_early, self._is_respelt = opening.is_early, opening.is_respelt
        self.has_entered = False
        """Whether the first entry has begun."""
        self.fields: Mapping[str, str] = {}
        """Children of entries to read; keys of `values`."""
        self._marks = self.marks if self.is_full else self.marks | {_CONTENT}
        self.head_slots: Mapping[str, str] = {}
        """Children of the head to read; keys of `head_values`."""
        self.entries: list[Entry] = []
        self._keys, self._titles = list[EntryKeys](), list[EntryId]()
        """Per entry, if `is_full`; titles are digested."""
        self.values: dict[str, str] = {}
        self.enclosures: list[str] = []
        self.has_content = False
        """Whether the current entry has full content (R10)."""
        self.head_values: dict[str, str] = {}
        self.children: list[HeadChild] = []
        self.links: list[Link] = []
        self.history: list[HistoryElement] = []
        self.tombstones: list[Tombstone] = []
        self.site_id = ""
        """Identity of the site; counts before the value of `site_slot`."""
        self.channel: Channel | None = None
        """The channel of RDF, once it has ended."""
        self.scope = Scope({}, "", self.url)
        """Scope of the head."""
        self.place = 0
        """`Entry.scope` of the next entries."""
        self.further_scopes: list[Scope] = []
        """Other surroundings of entries; `Entry.scope` counts them from 1."""
        self.start_at = 0
        """Offset of the current entry or head child."""
        self.entry_base = ""
        """Base of the current entry's relative URLs, if `is_full`."""
        self._head_bytes = 0
        self._child = ("", "", "")
        self._slot = ""
        self._pieces: list[str] = []
        self._add = self._pieces.append
        self._field_end = self._field_ended
        self._container_at = 0
        self._handlers = self._made_handlers()

    # What a family adds.

    @abstractmethod
    def begin(self, attributes: list[str]) -> None:
        """Read the root's start tag."""

    @abstractmethod
    def instants(self) -> tuple[float | None, float | None]:
        """Return the entry's update instant, and the one that orders it, in epoch seconds (R10).

        Raises:
            FieldsNeededError: Fields for this were not collected.
        """

    def plain(self) -> Plain | None:
        # None: the container's entries cannot be read plainly.
        return None

    def mark(self, slot: str, attributes: list[str]) -> None:
        self.values[slot] = ""

    def has_misspelt_namespace(self) -> bool:
        return any(map(is_misspelt, self.guard.namespaces))

    def is_odd(self) -> bool:
        # Signs that other names would say more (docs/repair.md).
        text, entries = self.guard.text, self.entries
        if self.has_misspelt_namespace():
            return True
        if not entries:
            return holds_entry_tag(text, 0, len(text))
        if any(holds_entry_tag(text, child.start, child.end) for child in self.children):
            return True
        end = len(text) if self._lacks_fields else entries[0].end
        return holds_odd_child(text, entries[0].start, end)

    # Expat's handlers: a comparison or two for every element, and the limits on all of them together.

    def look(self) -> None:
        """Let expat report elements; only whole ones may have passed since `look_away`."""
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._handlers

    def look_away(self) -> None:
        self.parser.StartElementHandler = self.parser.EndElementHandler = None

    def _made_handlers(self) -> tuple[Callable[[str, list[str]], None], Callable[[str], None]]:
        # Closures are the fastest.
        guard, measured = self.guard, self.guard.must_measure
        depth, max_depth, left = 1, self.guard.max_depth, MAX_ELEMENTS
        characters = FREE_NAME_CHARACTERS + NAME_CHARACTERS_PER_BYTE * len(guard.text)

        def start(name: str, attributes: list[str]) -> None:
            nonlocal depth, left, characters
            depth += 1
            left -= 1
            characters -= len(name)
            if attributes:
                characters -= sum(map(len, attributes))
            if measured or len(attributes) > MAX_FLAT_ATTRIBUTES:
                guard.check_element(name, attributes)
            if depth == self.watch:
                self.on_child(name, attributes)
            elif depth > max_depth:
                guard.limit(f"at most {max_depth} levels of elements", "more")
            if left < 0 or characters < 0:
                guard.limit(f"at most {MAX_ELEMENTS} elements" if left < 0 else _SHORT_NAMES, "more")

        def end(_name: str) -> None:
            nonlocal depth
            if depth == self.until:
                self.on_end()
            depth -= 1

        return start, end

    def wait(self, frame: Frame) -> None:
        self.watch, self.on_child, self.until, self.on_end = frame

    # The container.

    def enter(self, container: Frame, attributes: Sequence[str]) -> None:
        self.scope = self.inner_scope(self.scope, attributes)
        self.contain(container)

    def contain(self, container: Frame) -> None:
        self._container = container
        self._container_at = self.parser.CurrentByteIndex
        depth = container.watch
        self._entry_frame = Frame(depth + 1, self._field_began, depth, self._entry_ended)
        self.wait(container)

    def inner_scope(self, outer: Scope, attributes: Sequence[str]) -> Scope:
        lang = attribute_of(attributes, _XML_LANG)
        if lang is None or len(lang) > MAX_LANG_CHARACTERS:
            lang = outer.lang
        prefixes = {**outer.prefixes, **self.guard.declarations()}
        if len(prefixes) > MAX_SCOPE_PREFIXES or sum(map(len, (*prefixes, *prefixes.values()))) > MAX_SCOPE:
            expected = f"at most {MAX_SCOPE_PREFIXES} namespaces of {MAX_SCOPE} characters around the entries"
            self.guard.limit(expected, "more")
        return Scope(prefixes, lang.strip(SPACES), base_in(outer.base, attributes))

    def scope_number(self, scope: Scope) -> int:
        if scope not in self.further_scopes:
            if len(self.further_scopes) == MAX_SCOPES:
                self.guard.limit(f"entries in at most {MAX_SCOPES} different surroundings", "more")
            self.further_scopes.append(scope)
        return self.further_scopes.index(scope) + 1

    def plain_at(self, at: int) -> Plain | None:
        """Return how to read plain entries from `at` on; None if none can begin there."""
        container = self._container
        is_between = self.watch == container.watch and self.until == container.until
        if self.is_full or not is_between or self.parser.CurrentByteIndex != at:
            return None
        behind = max(self._container_at, 0, *(each[-1].end for each in (self.children, self.entries) if each))
        return None if self.guard.text.find(b"<![CDATA[", behind, at) >= 0 else self.plain()

    # The head.

    def head_child(self, name: str, attributes: list[str]) -> None:
        self.start_at = self.parser.CurrentByteIndex
        namespace, _, local = name.rpartition("}")
        self.pass_over(namespace, local)
        relation = ""
        if name in _LINKS:
            self.links.append(_head_link(attributes, self.scope))
            relation = self.links[-1].relation
        elif name == _DELETED and (deleted := _tombstone(attributes)):
            self.tombstones.append(deleted)
        self._child = (namespace, local, relation)
        self._slot = local if namespace == FH_NS else self.head_slots.get(name, "")
        if self._slot:
            self.parser.CharacterDataHandler = self._add
        self.until, self.on_end = self.watch, self._head_child_ended

    def pass_over(self, namespace: str, local: str) -> None:
        """Check the name of an element other than an entry.

        Raises:
            OddSpellingError: The name suggests entries, or is misspelt.
        """
        is_odd = local.lower() in self.structure or is_odd_name(namespace, local)
        if is_odd and not self._is_respelt:
            raise OddSpellingError

    def _head_child_ended(self) -> None:
        namespace, local, relation = self._child
        end = self.guard.end_of(self.start_at)
        self.children.append(HeadChild(namespace, local, self.start_at, end, relation))
        self._head_bytes += end - self.start_at
        is_large = len(self.children) > MAX_HEAD_CHILDREN or self._head_bytes > MAX_HEAD_BYTES
        if is_large and not self._is_respelt and holds_entry_tag(self.guard.text, self.start_at, end):
            raise OddSpellingError
        if len(self.children) > MAX_HEAD_CHILDREN:
            self.guard.limit(f"at most {MAX_HEAD_CHILDREN} elements beside the entries", "more")
        if self._head_bytes > MAX_HEAD_BYTES:
            self.guard.limit(f"at most {MAX_HEAD_BYTES} bytes of elements beside the entries", "more")
        if self._slot:
            text = self._captured().strip(SPACES)
            if namespace == FH_NS:
                self.history.append(HistoryElement(local, text))
            else:
                self.head_values.setdefault(self._slot, text)
        self.wait(self._container)

    # Entries.

    def entry_began(self, attributes: Sequence[str]) -> None:
        self.has_entered = True
        self.start_at = self.parser.CurrentByteIndex
        if self._is_early:
            self.look_away()
            return
        self.values = {}
        self.has_content = False
        if self.is_full:
            self.enclosures = []
            scope = self.further_scopes[self.place - 1] if self.place else self.scope
            self.entry_base = base_in(scope.base, attributes)
        self.wait(self._entry_frame)

    def _field_began(self, name: str, attributes: list[str]) -> None:
        slot = self.fields.get(name)
        if slot is None:
            return
        if slot == _CONTENT and not self.has_content:
            at = self.parser.CurrentByteIndex
            self.has_content = _CONTENT_BEGINS.match(self.guard.text, at) is not None
        if slot in self._marks:
            self.mark(slot, attributes)
        elif slot not in self.values:
            self._slot = slot
            self.until, self.on_end = self.watch, self._field_end
            self.parser.CharacterDataHandler = self._add

    def _field_ended(self) -> None:
        self.values[self._slot] = self._captured()
        _, _, self.until, self.on_end = self._entry_frame

    def descend(self, on_child: Callable[[str, list[str]], None]) -> None:
        self.wait(Frame(self.watch + 1, on_child, self.watch, lambda: self.wait(self._entry_frame)))

    def _captured(self) -> str:
        self.parser.CharacterDataHandler = None
        pieces = self._pieces
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        return text

    def _entry_ended(self) -> None:
        is_blank = self.is_full and not self.values and not self.enclosures
        if is_blank and len(self.entries) >= MAX_LIKE_ENTRIES and not self.url.startswith(MEMORY_URL):
            self.wait(self._container)  # without any field, all such entries are the same (R9)
            return
        if not (self.is_full or has_id(self.values)):
            raise FieldsNeededError
        updated_at, order_at = self.instants()
        self._lacks_fields = self._lacks_fields or order_at is None or not has_id(self.values)
        entry = Entry(
            entry_id(self.values.get("id", "")),
            updated_at,
            order_at,
            self.start_at,
            self.guard.end_of(self.start_at),
            has_author=not self.is_inherited or "author" in self.values,
            has_rights=not self.is_inherited or "rights" in self.values,
            scope=self.place,
            has_content=self.has_content,
        )
        if len(self.entries) >= MAX_ENTRIES:
            self.guard.limit(f"at most {MAX_ENTRIES} entries", "more")
        if self.is_full:
            keys = entry_keys(self.values, self.enclosures, self.entry_base)
            self._keys.append(keys)
            self._titles.append(entry_id(self.values.get("title", "")))
            if not has_id(self.values):
                entry = entry._replace(keys=keys)
        self.entries.append(entry)
        self.wait(self._container)

    # What was read.

    def document(self, text: bytes, notes: tuple[Note, ...] = ()) -> FeedDocument:
        links = [self.head_values.get("link", "")]
        links += [each.href for each in self.links if each.relation == "alternate"]
        own_links = [absolute(self.scope.base, each) for each in links]
        told = told_apart(self.url, self.entries, self._keys, self._titles, own_links, text)
        return FeedDocument(
            self.url,
            self.family,
            self.version,
            text,
            self._head(),
            told.entries,
            (*notes, *told.notes),
            tuple(self.further_scopes),
            told.ambiguous,
        )

    def _head(self) -> Head:
        values = self.head_values
        dates = (read(values.get(slot, "")) for slot, read in self.head_dates)
        return Head(
            site_id=site_id(self.site_id or values.get(self.site_slot, "")),
            title=values.get("title", "")[:MAX_TITLE_CHARACTERS],
            updated_at=next((date for date in dates if date is not None), None),
            links=tuple(self.links),
            history=tuple(self.history),
            children=tuple(self.children),
            scope=self.scope,
            channel=self.channel,
            tombstones=tuple(self.tombstones),
        )


_SHORT_NAMES: Final = "short names, their namespaces included"
_XML_LANG: Final = f"{XML_NS}}}lang"
_XML_BASE: Final = f"{XML_NS}}}base"
MAX_SCOPE_PREFIXES: Final = 128
MAX_SCOPE: Final = 8192
"""Characters of the namespace declarations that each entry may have to repeat."""


def nothing() -> None:
    """Do nothing when an element ends."""


def base_in(outer: str, attributes: Sequence[str]) -> str:
    """Return the base inside an element (XML Base, 4); an unusable xml:base changes nothing."""
    reference = attribute_of(attributes, _XML_BASE)
    return outer if reference is None else resolve_xml_base(outer, reference)


_LINKS: Final = frozenset(f"{namespace}}}link" for namespace in ATOM_NAMESPACES)
_DELETED: Final = f"{TOMBSTONE_NS}}}deleted-entry"


def _head_link(attributes: Sequence[str], scope: Scope) -> Link:
    # R11, R12; RFC 4287, 4.2.7.
    relation = (attribute_of(attributes, "rel") or "").strip(SPACES).lower() or "alternate"
    href = (attribute_of(attributes, "href") or "").strip(SPACES)
    target = resolve_or_empty(base_in(scope.base, attributes), href)
    media_type = (attribute_of(attributes, "type") or "").partition(";")[0].strip(SPACES).lower()
    return Link(relation.removeprefix(IANA_RELATION_PREFIX), target, media_type, href)


_MAX_REF_CHARACTERS: Final = 4096


def _tombstone(attributes: Sequence[str]) -> Tombstone | None:
    # A tombstone needs ref and instant (RFC 6721, 3).
    ref = (attribute_of(attributes, "ref") or "").strip(SPACES)
    when_at = parse_rfc3339(attribute_of(attributes, "when") or "")
    if not ref or when_at is None:
        return None
    return Tombstone(entry_id(ref), when_at, ref if len(ref) <= _MAX_REF_CHARACTERS else "")


# Plain entries, each read by one match instead of a call for each of its elements. A plain entry has its id
# and date in text that needs no decoding, and other children without a meaning for the parser.


class Plain(NamedTuple):
    end_tag: bytes
    """The search goes on behind it if an entry is not plain."""
    pattern: re.Pattern[bytes]
    """An entry without "<!" except in CDATA sections."""
    made: Callable[[re.Match[bytes]], Entry | None]
    """Makes the matched entry; None: only handlers can read it."""


# Per child of a plain entry; nesting is at most half as deep.
_MAX_TAGS: Final = 400
# If fewer levels are allowed, the handlers see all elements.
_LEAST_DEPTH: Final = _MAX_TAGS // 2 + 16
_FREE_MISSES: Final = 8
_ENTRY_BEGINS: Final = re.compile(rb"<(?:entry|item)(?=[\s>])")
_NOTHING_MORE: Final = re.compile(rb"(?:\s++|</[^<>]*+>|<!--(?:[^-]++|-(?!->))*+-->)*+\Z")


def read_plainly(opening: Opening) -> bool:
    """Read plain entries by their pattern; return whether there were any.

    Handlers read the other entries. expat still reads every byte, so all must be well-formed. `Guard.finish`
    reads the rest; `is_within_limits` tells of elements that no handler saw.

    Raises:
        ParseError: Same as in `Guard.read`.
    """
    guard = opening.guard
    text = guard.text
    found = None if guard.must_measure or guard.max_depth < _LEAST_DEPTH else _ENTRY_BEGINS.search(text)
    hits = misses = 0
    while found is not None and misses <= hits + _FREE_MISSES:
        at = found.start()
        guard.feed_until(at)
        family = opening.family
        plain = family.plain_at(at) if family is not None else None
        if family is None or plain is None:
            break
        before = len(family.entries)
        stop = _taken(family.entries, plain, text, at)
        hits += len(family.entries) - before
        if stop == at:
            misses += 1
            stop = text.find(plain.end_tag, at)
            found = None if stop < 0 else _ENTRY_BEGINS.search(text, stop)
            continue
        is_rest = _NOTHING_MORE.match(text, stop) is not None
        family.look_away()
        guard.feed_until(len(text) if is_rest else stop)
        if is_rest:
            break
        family.look()
        found = _ENTRY_BEGINS.search(text, stop)
    return hits > 0


def _taken(entries: list[Entry], plain: Plain, text: bytes | bytearray, at: int) -> int:
    """Add the plain entries in a row from `at` on; return where the last one ends."""
    match, made, add = plain.pattern.match, plain.made, entries.append
    room = MAX_ENTRIES - len(entries)
    while room > 0:
        room -= 1
        found = match(text, at)
        entry = made(found) if found is not None else None
        if entry is None:
            break
        add(entry)
        at = entry.end
    return at


# `<a/>`; no attribute is smaller.
_SMALLEST_TAG_BYTES: Final = 4


def is_within_limits(guard: Guard) -> bool:
    """Return whether the elements that no handler saw can break no limit."""
    if not guard.is_limited:
        return True
    size = len(guard.text)
    most_characters = FREE_NAME_CHARACTERS + NAME_CHARACTERS_PER_BYTE * size
    tags = attributes = size // _SMALLEST_TAG_BYTES
    for _ in range(2):
        names = (tags + attributes) * (guard.longest_namespace + 1)
        if tags <= MAX_ELEMENTS and size + names <= most_characters:
            return True
        tags, attributes = guard.text.count(b"<"), guard.text.count(b"=")
    return False


# The pattern of an entry, made of those of its children

_SPACE: Final = rb"[ \t\r\n]"
_NAME: Final = rb"[^\s<>/=\"'!?]++"
_ATTRIBUTES: Final = rb"(?:%(s)s++%%(but)s%(name)s%(s)s*+=%(s)s*+%(value)s){0,%(most)d}+%(s)s*+" % {
    b"s": _SPACE,
    b"name": _NAME,
    b"value": ATTRIBUTE_VALUE,
    b"most": MAX_ATTRIBUTES,
}
_ANY: Final = _ATTRIBUTES % {b"but": b""}
# Attributes without a namespace declaration: the element's name means the same as around it.
_DECLARES_NOTHING: Final = _ATTRIBUTES % {b"but": b"(?!xmlns)"}
# Text that needs no decoding.
_TEXT: Final = rb"[^<&\r]++"
# The same in ASCII.
_DATE: Final = rb"[ \t\n!-%'-;=-~]++"
_CDATA: Final = rb"<!\[CDATA\[(?:[^\]]++|\](?!\]>))*+\]\]>"


def _entry_pattern(tag: str, *children: bytes) -> re.Pattern[bytes]:
    """Return the pattern of an entry with only these children, after blanks; group 1 is its start.

    No two children's patterns may begin to match the same child: a group keeps its value from a failed one.
    """
    name = tag.encode()
    # It matches in a well-formed document, from where an entry may begin. There each "<" outside of CDATA
    # begins a tag. A child's first end tag is its own, unless another child of its name begins before. No
    # byte is looked at more than a few times. No match goes beyond the end of a well-formed entry; behind any
    # other expat stops.
    inside = rb"\s*+(?:<(?:%s)\s*+)*" % b"|".join(children)
    return re.compile(rb"[ \t\r\n]*+(<)%s%s>%s</%s\s*+>" % (name, _DECLARES_NOTHING, inside, name))


def _once(number: int, name: str, text: bytes) -> bytes:
    """Return the pattern of a child, from its name on; its text becomes group `number`."""
    # A second child of the same name does not match: the first one counts (rule R9).
    only = rb"(?(%d)(?!)|(%s))" % (number, text)
    return rb"%s%s>%s</%s\s*+>" % (name.encode(), _DECLARES_NOTHING, only, name.encode())


def _leaf_or(leaves: Iterable[bytes], content: tuple[str, bytes], other: bytes) -> bytes:
    """Return the pattern of a child among `leaves` and `content`, else of `other`."""
    # Leaves first: half the time of `other` alone. No child matches in two ways, or a failing entry would try
    # each way with each of all others. `content` (name, attributes) is one more leaf; it sets the group
    # `content`.
    either, marked = (
        b"|".join((*leaves, _leaf(*content, before)))
        for before in (b"", rb"(?:(?!%s)(?P<content>))?+" % _BLANK)
    )
    return rb"%s|(?!%s)%s" % (marked, either, other)


# Behind the start tag of an element without content.
_BLANK: Final = rb"\s*+(?:<!\[CDATA\[\s*+\]\]>\s*+)?+</"


def _leaf(name: str, attributes: bytes = _ANY, before: bytes = b"") -> bytes:
    """Return the pattern of a child without elements, from its name on; `before` precedes its text."""
    text = rb"[^<]*+(?:%s[^<]*+)*+" % _CDATA
    return rb"%s%s(?:/>|>%s%s</%s\s*+>)" % (name.encode(), attributes, before, text, name.encode())


def _skip_pattern(name: bytes, group: bytes, attributes: bytes = _ANY) -> bytes:
    """Return the pattern of a child to skip, from its name on; the name, a pattern too, becomes the group."""
    inside = rb"(?:%s|(?!</?(?P=%s)[\s/>])</?%s%s/?>)" % (_CDATA, group, _NAME, _ANY)
    body = rb"[^<]*+(?:%s[^<]*+){0,%d}+" % (inside, _MAX_TAGS)
    return rb"(?P<%s>%s)(?=[\s/>])%s(?:/>|>%s</(?P=%s)\s*+>)" % (group, name, attributes, body, group)


def _other_than(*names: str, content: str) -> bytes:
    """Return the pattern of a name, with or without prefix, that ends in none of these."""
    # The group `elements` is set for content that is not blank.
    other = rb"(?!(?:[^\s<>/=\"'!?:]++:)?+(?:%s)[\s/>])%s" % ("|".join(names).encode(), _NAME)
    return rb"(?>(?P<elements>%s(?=%s>(?!%s)))|%s)" % (content.encode(), _ANY, _BLANK, other)


# The start tag of an element with content.
_CONTENT_BEGINS: Final = re.compile(rb"<%s%s>(?!%s)" % (_NAME, _ANY, _BLANK))


# Atom

# Atom 0.3's names for what RFC 4287 calls otherwise.
_ATOM_03_NAMES: Final = {
    "updated": ("modified",),
    "published": ("issued", "created"),
    "rights": ("copyright",),
}


def _atom_names(*names: str) -> dict[str, str]:
    # Some feeds write names of 1.0 in the namespace of 0.3.
    new = {f"{namespace}}}{name}": name for namespace in ATOM_NAMESPACES for name in names}
    old = {f"{ATOM_03_NS}}}{own}": name for name in names for own in _ATOM_03_NAMES.get(name, ())}
    return new | old


_ATOM_ENTRIES: Final = frozenset(_atom_names("entry"))
_PERSON_AND_RIGHTS: Final = _atom_names("author", "rights")
_ATOM_HEAD: Final = _atom_names("id", "title", "updated")
# Key of full content in each family (R10).
_CONTENT: Final = "content"
_ATOM_FIELDS: Final = _atom_names("author", "rights", "id", "updated", "source")
_ATOM_FULL_FIELDS: Final = _ATOM_FIELDS | _atom_names("published", "link", "title", "summary")
_ATOM_CONTENT: Final = _atom_names(_CONTENT)


class _AtomParser(FamilyParser):
    """A reader of atom:feed 1.0 (RFC 4287) and 0.3 (the snapshot of December 2003).

    Entries of one version may stand in a document of the other, so both can make one feed (rule R23).
    """

    family: ClassVar[Family] = Family.ATOM
    site_slot: ClassVar[str] = "id"
    marks: ClassVar[frozenset[str]] = frozenset({"author", "rights", "source", "link"})
    head_dates = (("updated", parse_rfc3339),)
    is_inherited: ClassVar[bool] = True

    def __init__(self, opening: Opening, version: str) -> None:
        super().__init__(opening, version)
        self.head_slots = _ATOM_HEAD
        self.fields = (_ATOM_FULL_FIELDS if self.is_full else _ATOM_FIELDS) | _ATOM_CONTENT

    def begin(self, attributes: list[str]) -> None:
        self.enter(Frame(2, self._child_began, 1, nothing), attributes)

    def _child_began(self, name: str, attributes: list[str]) -> None:
        if name in _ATOM_ENTRIES:
            self.entry_began(attributes)
        else:
            self.head_child(name, attributes)

    def plain(self) -> Plain | None:
        is_usual = self.scope.prefixes.get("") == ATOM_NS
        return Plain(b"</entry>", _ATOM_ENTRY, _plain_atom_entry) if is_usual else None

    def mark(self, slot: str, attributes: list[str]) -> None:
        if slot == "source":
            self.descend(self._source_child)
        elif slot == "link":
            relation = attribute_of(attributes, "rel") or "alternate"
            target = absolute(base_in(self.entry_base, attributes), attribute_of(attributes, "href") or "")
            if relation == "alternate":
                self.values.setdefault("link", target)
            elif relation == "enclosure":
                self.enclosures.append(target)
        else:
            super().mark(slot, attributes)

    def _source_child(self, name: str, _attributes: list[str]) -> None:
        # Author and rights of atom:source count for its entry (RFC 4287, 4.2.1 and 4.2.11).
        slot = _PERSON_AND_RIGHTS.get(name)
        if slot:
            self.values[slot] = ""

    def instants(self) -> tuple[float | None, float | None]:
        updated = self.values.get("updated")
        updated_at = parse_rfc3339(updated) if updated else None
        if updated_at is not None:
            return updated_at, updated_at
        if not self.is_full:
            raise FieldsNeededError
        return None, parse_rfc3339(self.values.get("published", ""))


# Only in Atom's own namespace: in others any attribute may be a URL.
_ATOM_LEAVES: Final = (
    *(_leaf(name, _DECLARES_NOTHING) for name in ("title", "summary", "category", "published")),
    _leaf("link", ABSOLUTE),
)
_ATOM_ENTRY: Final = _entry_pattern(
    "entry",
    _once(2, "id", _TEXT),
    _once(3, "updated", _DATE),
    _leaf_or(
        _ATOM_LEAVES,
        (_CONTENT, ABSOLUTE),
        _skip_pattern(
            _other_than(*{name.rpartition("}")[2] for name in _ATOM_FIELDS}, content=_CONTENT), b"other"
        ),
    ),
    _skip_pattern(rb"(?P<author>author(?=[\s/>]))|(?P<rights>rights(?=[\s/>]))", b"own", _DECLARES_NOTHING),
)
_ATOM_GROUPS: Final = (
    *(2, 3),
    *(_ATOM_ENTRY.groupindex[name] for name in ("author", "rights", "other", "content", "elements")),
)


def _plain_atom_entry(found: re.Match[bytes]) -> Entry | None:
    written, at, author, rights, other, content, elements = found.group(*_ATOM_GROUPS)
    if not written or written.isspace() or not at:
        return None
    instant = parse_rfc3339(at.decode())
    if instant is None:
        return None
    has_author, has_rights = author is not None, rights is not None
    is_absolute = other is None and not (has_author or has_rights)
    start, end = found.start(1), found.end()
    has_content = content is not None or elements is not None
    identity = written_id(written)
    return Entry(
        identity, instant, instant, start, end, has_author, has_rights, 0, None, is_absolute, has_content
    )


# RSS

_CONTENT_NS: Final = WELL_KNOWN_PREFIXES["content"]
_RSS_HEAD: Final = {"link": "link", "title": "title", "lastBuildDate": "built", "pubDate": "published"}
_RSS_FIELDS: Final = {"guid": "id", "pubDate": "pubDate"}
_RSS_FULL_FIELDS: Final = {**_RSS_FIELDS, "link": "link", "title": "title", "description": "summary"} | {
    "enclosure": "enclosure",
    "author": "rss_author",
}
_FOREIGN_FIELDS: Final = {
    f"{ATOM_NS}}}updated": "updated",
    f"{DCTERMS_NS}}}modified": "modified",
    f"{ATOM_NS}}}published": "published",
    f"{DC_NS}}}date": "date",
    f"{_CONTENT_NS}}}encoded": _CONTENT,
}
_MEDIA: Final = "media"
_FOREIGN_FULL_FIELDS: Final = {
    **_FOREIGN_FIELDS,
    f"{WELL_KNOWN_PREFIXES['media']}}}content": _MEDIA,
    f"{DC_NS}}}creator": "creator",
    f"{WELL_KNOWN_PREFIXES['itunes']}}}author": "itunes_author",
    f"{ATOM_NS}}}author": "atom_author",
}
_MAX_VERSION_CHARACTERS: Final = 16
_CDATA_BEGINS: Final = b"<![CDATA["
_CDATA_ENDS: Final = b"]]>"


class _RssParser(FamilyParser):
    """A reader of RSS 2.0 and 0.9x, but for RSS in RDF.

    Some roots have a default namespace, which then counts as RSS's own. Items may also stand beside the
    channel (in RSS 0.90's manner), or in a further one.
    """

    family: ClassVar[Family] = Family.RSS
    site_slot: ClassVar[str] = "link"
    marks: ClassVar[frozenset[str]] = frozenset({"enclosure", _MEDIA})
    head_dates = (("updated", parse_rfc822), ("built", parse_rfc822), ("published", parse_rfc822))

    def __init__(self, opening: Opening, namespace: str, version: str = "2.0") -> None:
        super().__init__(opening, version)
        self._namespaces: set[str] = set()
        self._has_channel = False
        self._around = self.scope
        """Scope of items outside the first channel, the feed itself."""
        self._root_scope = self.scope
        self._accept({namespace, *RSS_NAMESPACES})

    def _accept(self, namespaces: set[str]) -> None:
        self._namespaces |= namespaces
        plain, foreign = (
            (_RSS_FULL_FIELDS, _FOREIGN_FULL_FIELDS) if self.is_full else (_RSS_FIELDS, _FOREIGN_FIELDS)
        )
        self.fields = {**_rss_names(plain, self._namespaces), **foreign}
        self.head_slots = {
            **_rss_names(_RSS_HEAD, self._namespaces - {ATOM_NS}),
            f"{ATOM_NS}}}updated": "updated",
        }

    def begin(self, attributes: list[str]) -> None:
        version = (attribute_of(attributes, "version") or "").strip(SPACES)[:_MAX_VERSION_CHARACTERS]
        self.version = version or self.version
        self.enter(self._root_frame(), attributes)
        self._root_scope = self._around = self.scope

    def _root_frame(self) -> Frame:
        return Frame(2, self._root_child, 1, nothing)

    def _root_child(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        if local == "channel" and namespace in self._namespaces:
            self.place = 0
            if self._has_channel:
                self._around = self.inner_scope(self._root_scope, attributes)
                self.contain(Frame(3, self._beside_child, 2, self._channel_ended))
            else:
                self._has_channel = True
                self.enter(Frame(3, self._channel_child, 2, self._channel_ended), attributes)
        else:
            self._beside_child(name, attributes)

    def _channel_ended(self) -> None:
        self.place = 0
        self._around = self._root_scope
        self.contain(self._root_frame())

    def _beside_child(self, name: str, attributes: list[str]) -> None:
        # Beside the first channel, and in further ones, only items count.
        namespace, _, local = name.rpartition("}")
        if local == "item" and self._is_plain(namespace):
            self.place = self.place or self.scope_number(self._around)
            self.entry_began(attributes)
        else:
            self.pass_over(namespace, local)

    def _channel_child(self, name: str, attributes: list[str]) -> None:
        if name == "item":
            self.entry_began(attributes)
            return
        namespace, _, local = name.rpartition("}")
        if local == "item" and self._is_plain(namespace):
            self.entry_began(attributes)
        else:
            self.head_child(name, attributes)

    def plain(self) -> Plain | None:
        prefixes = self.scope.prefixes
        is_usual = self._container.on_child == self._channel_child and not prefixes.get("")
        for prefix, uri in prefixes.items():  # content is known by its usual prefix alone
            is_usual = is_usual and (uri == _CONTENT_NS) == (prefix == "content")
        return Plain(b"</item>", _RSS_ITEM, self._plain_item) if is_usual else None

    def _plain_item(self, found: re.Match[bytes]) -> Entry | None:
        written, at, content, elements = found.group(*_RSS_GROUPS)
        if not written or not at:
            return None
        if written.startswith(_CDATA_BEGINS):
            written = written[len(_CDATA_BEGINS) : -len(_CDATA_ENDS)]
        order_at = parse_rfc822(at.decode())
        if order_at is None or written.isspace():
            return None
        has_content = content is not None or elements is not None
        start, end, identity = found.start(1), found.end(), written_id(written)
        return Entry(identity, None, order_at, start, end, scope=self.place, has_content=has_content)

    def mark(self, slot: str, attributes: list[str]) -> None:
        url = attribute_of(attributes, "url") if slot != _CONTENT else None
        if url and slot == _MEDIA:  # not an enclosure: such URLs change with an edit
            self.values[_MEDIA] = f"{self.values.get(_MEDIA, '')}\n{url}"
        elif url:
            self.enclosures.append(url)

    def _is_plain(self, namespace: str) -> bool:
        if namespace in RSS_NAMESPACES:
            return True
        # Without a prefix, an item is RSS's in any default namespace. With one, only in a namespace that
        # every reader knows: the output's rss element is in none.
        if not self.guard.is_written("item"):
            return False
        if namespace not in self._namespaces:
            self._accept({namespace})
        return True

    def instants(self) -> tuple[float | None, float | None]:
        values = self.values
        updated_at = None
        for slot in ("updated", "modified"):
            if updated_at is None and slot in values:
                updated_at = parse_rfc3339(values[slot])
        order_at = updated_at
        for slot in ("published", "pubDate", "date"):
            if order_at is None and slot in values:
                order_at = parse_rfc822(values[slot])
        return updated_at, order_at


def _rss_names(names: Mapping[str, str], namespaces: Set[str]) -> dict[str, str]:
    return {
        f"{namespace}}}{name}" if namespace else name: slot
        for namespace in namespaces
        for name, slot in names.items()
    }


# An item with a date of another kind than these may be of another instant than its pubDate says; dc:date
# counts only where there is none.
_OTHER_DATES: Final = ("updated", "modified", "published")
_RSS_TEXTS: Final = ("title", "link", "description", "category", "comments", "author")
_RSS_CONTENT: Final = "content:encoded"
_RSS_ITEM: Final = _entry_pattern(
    "item",
    _once(2, "guid", _TEXT + rb"|<!\[CDATA\[[^\]\r]++\]\]>"),
    _once(3, "pubDate", _DATE),
    _leaf_or(
        [_leaf(name) for name in (*_RSS_TEXTS, "dc:creator")],
        (_RSS_CONTENT, _ANY),
        _skip_pattern(_other_than(*_RSS_FIELDS, *_OTHER_DATES, content=_RSS_CONTENT), b"other"),
    ),
)
_RSS_GROUPS: Final = (2, 3, _RSS_ITEM.groupindex["content"], _RSS_ITEM.groupindex["elements"])


# RSS in RDF

_ABOUT: Final = f"{RDF_NS}}}about"
_RSS_090_NAMESPACES: Final = frozenset({RSS_090_NS, "http://channel.netscape.com/rdf/simple/0.9/"})
_RDF_NAMESPACES: Final = _RSS_090_NAMESPACES | {RSS_10_NS}
_RDF_HEAD: Final = {f"{DC_NS}}}date": "published", f"{DCTERMS_NS}}}modified": "updated"}


class _RdfParser(_RssParser):
    """A reader of rdf:RDF: RSS 1.0 and 0.90, with items beside the channel or in it.

    The channel's declarations hold only inside it. Its dc:date counts as pubDate, which RSS 1.0 lacks (R10).
    """

    family: ClassVar[Family] = Family.RDF
    structure: ClassVar[Set[str]] = STRUCTURE - {"items"}

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening, RSS_10_NS, "1.0")
        self._accept(set(_RSS_090_NAMESPACES))
        self._tag_start = 0

    def _accept(self, namespaces: set[str]) -> None:
        super()._accept(namespaces)
        self.head_slots = {**_RDF_HEAD, **self.head_slots} if self.channel is None else {}

    def begin(self, attributes: list[str]) -> None:
        self.enter(self._root_frame(), attributes)
        self._root_scope = self.scope

    def plain(self) -> Plain | None:
        return None  # rdf:about counts first

    def _root_child(self, name: str, attributes: list[str]) -> None:
        namespace, _, local = name.rpartition("}")
        if local == "item" and self._is_plain(namespace):
            self.entry_began(attributes)
        elif local == "channel" and not self._has_channel:
            self._channel_began(namespace, attributes)
        else:
            self.head_child(name, attributes)

    def _channel_began(self, namespace: str, attributes: list[str]) -> None:
        self._has_channel = True
        self._accept({namespace})
        self.version = RSS_090 if namespace in _RSS_090_NAMESPACES else "1.0"
        self.site_id = attribute_of(attributes, _ABOUT) or ""
        self._tag_start = self.parser.CurrentByteIndex
        self.enter(Frame(3, self._channel_child, 2, self._channel_ended), attributes)

    def _channel_ended(self) -> None:
        start = self._tag_start
        tag = Span(start, self.guard.end_of_tag(start))
        self.channel = Channel(tag, self.guard.end_of(start))
        self.head_slots = {}
        self.scope = self._root_scope
        super()._channel_ended()

    def entry_began(self, attributes: Sequence[str]) -> None:
        is_in_channel = self._has_channel and self.channel is None
        if is_in_channel and self.scope != self._root_scope:
            self.place = self.scope_number(self.scope)
        super().entry_began(attributes)
        about = attribute_of(attributes, _ABOUT)
        if about:  # it counts before any guid (R9)
            self.values["id"] = about

    def _is_plain(self, namespace: str) -> bool:
        # Also with a prefix, in namespaces that every reader knows; a channel may invent others.
        return namespace in _RDF_NAMESPACES or super()._is_plain(namespace)
