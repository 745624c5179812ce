"""The families of feeds in XML: Atom, RSS, and RSS in RDF; what tells them apart, and how each is read.

    opening = Opening(guard, url)
    read_plainly(opening)                       # or not
    guard.finish()
    opening.family.document(text)

What they have in common is an element that holds the head's children and the entries. A `FamilyParser` takes
the elements of one document from expat. At any time it waits for two things only: elements that begin at one
depth (`Frame.watch`), and the end of the element at another (`Frame.until`); everything else costs a
comparison. Nothing is built from what lies deeper; entries are byte ranges.

    container --entry begins--> entry --a wanted field begins--> field --ends--> entry --ends--> container
    container --another child begins--> head child --ends--> container

Most entries are written plainly: an identity and a date in text that needs no decoding, and other children
that mean nothing to the parser. What expat would tell of such an entry one match of its family's pattern
finds (`read_plainly`). An archive of 100 plain entries is parsed 2.2 times as fast, a feed of ten 1.4 times,
121 real feeds 1.07 times. First walks pay for it, a refresh hardly does.
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
    """Waits for the root of a document and hands over to the parser of its family.

    `is_full` also collects what stands in for an entry's id or update instant; `is_early` stops where the
    first entry begins. `is_respelt`: what the document is called, its root and its entries, is what it is.
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
        """Let go of expat and of the family's parser; nothing is asked of either any more."""
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
    """What the parser of a family waits for at a time; depths count the root as 1."""

    watch: int
    on_child: Callable[[str, list[str]], None]
    until: int
    on_end: Callable[[], None]


class FamilyParser(ABC):
    """Reads one document of one family, from the start of its root on."""

    family: ClassVar[Family]
    site_slot: ClassVar[str]
    """Which of `head_values` names the site."""
    head_dates: ClassVar[tuple[tuple[str, Callable[[str], float | None]], ...]]
    """Which of them say when the feed was updated, and what reads them; the first that can be read counts."""
    marks: ClassVar[frozenset[str]]
    """Fields of entries whose text is not wanted: `mark` looks at them. Nor is that of the content, but where
    all fields are read."""
    is_inherited: ClassVar[bool] = False
    """Whether an entry without author or rights has the feed's."""
    structure: ClassVar[Set[str]] = STRUCTURE
    """What no child of the head is called, in small letters."""

    _lacks_fields = False
    """Whether an entry has no id or no date; else the first one tells how all are written."""

    # As in `Frame`; `begin` is the first to wait for something.
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
        """Whether the first entry began."""
        self.fields: Mapping[str, str] = {}
        """Children of entries that are read, and what each is kept as."""
        self._marks = self.marks if self.is_full else self.marks | {_CONTENT}
        self.head_slots: Mapping[str, str] = {}
        """Children of the head whose text is wanted, and what each is kept as."""
        self.entries: list[Entry] = []
        self._keys, self._titles = list[EntryKeys](), list[EntryId]()
        """Of each entry, where all fields are read; titles are digested."""
        self.values: dict[str, str] = {}
        """Of the entry that is being read."""
        self.enclosures: list[str] = []
        """The URLs of its enclosures, as written."""
        self.has_content = False
        """Whether full content stands in it (R10)."""
        self.head_values: dict[str, str] = {}
        self.children: list[HeadChild] = []
        self.links: list[Link] = []
        self.history: list[HistoryElement] = []
        self.tombstones: list[Tombstone] = []
        self.site_id = ""
        """What names the site rather than a child of the head does."""
        self.channel: Channel | None = None
        """Of RDF: the channel, once it has ended."""
        self.scope = Scope({}, "", self.url)
        """The head's."""
        self.place = 0
        """`Entry.scope` of the entries that come."""
        self.further_scopes: list[Scope] = []
        """The surroundings of entries that are others; `Entry.scope` counts into them from 1."""
        self.start_at = 0
        """Of the entry or head child that is being read."""
        self.entry_base = ""
        """What its relative URLs count from, where all fields are read."""
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
        """Take the root's start tag."""

    @abstractmethod
    def instants(self) -> tuple[float | None, float | None]:
        """Return when the entry of `values` was updated, and what it is ordered by (R10).

        Raises:
            FieldsNeededError: What tells was not collected.
        """

    def plain(self) -> Plain | None:
        """Return how the plain entries of the element are read that holds the entries; None: not at all."""
        return None

    def mark(self, slot: str, attributes: list[str]) -> None:
        """A field whose text is not wanted began: it is noted."""
        self.values[slot] = ""

    def has_misspelt_namespace(self) -> bool:
        """Whether a namespace was declared so far that is known by another name."""
        return any(map(is_misspelt, self.guard.namespaces))

    def is_odd(self) -> bool:
        """Whether the document, which was read, may say more under other names (docs/repair.md)."""
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
        """Be told of elements from here on: behind the root's start tag, or whole elements behind it."""
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._handlers

    def look_away(self) -> None:
        """Be told nothing by expat until `look`."""
        self.parser.StartElementHandler = self.parser.EndElementHandler = None

    def _made_handlers(self) -> tuple[Callable[[str, list[str]], None], Callable[[str], None]]:
        """Make what runs for every element: closures, because they are the fastest."""
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
        """Wait for something else from now on."""
        self.watch, self.on_child, self.until, self.on_end = frame

    # The container.

    def enter(self, container: Frame, attributes: Sequence[str]) -> None:
        """Go into the element that holds head and entries: what it declares holds for them."""
        self.scope = self.inner_scope(self.scope, attributes)
        self.contain(container)

    def contain(self, container: Frame) -> None:
        """Wait for the children of an element that holds entries."""
        self._container = container
        self._container_at = self.parser.CurrentByteIndex
        depth = container.watch
        self._entry_frame = Frame(depth + 1, self._field_began, depth, self._entry_ended)
        self.wait(container)

    def inner_scope(self, outer: Scope, attributes: Sequence[str]) -> Scope:
        """Return what holds inside of the element that begins now; the entries may have to repeat it."""
        lang = attribute_of(attributes, _XML_LANG)
        if lang is None or len(lang) > MAX_LANG_CHARACTERS:
            lang = outer.lang
        prefixes = {**outer.prefixes, **self.guard.declarations()}
        if len(prefixes) > MAX_SCOPE_PREFIXES or sum(map(len, (*prefixes, *prefixes.values()))) > MAX_SCOPE:
            expected = f"at most {MAX_SCOPE_PREFIXES} namespaces of {MAX_SCOPE} characters around the entries"
            self.guard.limit(expected, "more")
        return Scope(prefixes, lang.strip(SPACES), base_in(outer.base, attributes))

    def scope_number(self, scope: Scope) -> int:
        """Return the `Entry.scope` of entries that stand in these surroundings."""
        if scope not in self.further_scopes:
            if len(self.further_scopes) == MAX_SCOPES:
                self.guard.limit(f"entries in at most {MAX_SCOPES} different surroundings", "more")
            self.further_scopes.append(scope)
        return self.further_scopes.index(scope) + 1

    def plain_at(self, at: int) -> Plain | None:
        """Return how plain entries are read that begin there; None where none can begin."""
        container = self._container
        is_between = self.watch == container.watch and self.until == container.until
        if self.is_full or not is_between or self.parser.CurrentByteIndex != at:
            return None
        behind = max(self._container_at, 0, *(each[-1].end for each in (self.children, self.entries) if each))
        return None if self.guard.text.find(b"<![CDATA[", behind, at) >= 0 else self.plain()

    # The head.

    def head_child(self, name: str, attributes: list[str]) -> None:
        """A child of the container that is no entry began."""
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
        """An element began that is no entry.

        Raises:
            OddSpellingError: Its name says that it should be one, or holds some, or should be another.
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
        """A child of the container that is an entry began."""
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
        """Look at the children of the field that begins now."""
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
            self.wait(self._container)  # nothing of it is wanted: all such entries are the same (R9)
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
"""Characters of the namespace declarations around the entries: each entry may have to repeat them."""


def nothing() -> None:
    """An end that means nothing."""


def base_in(outer: str, attributes: Sequence[str]) -> str:
    """Return the base inside of an element (XML Base, 4); an xml:base that is unusable changes nothing."""
    reference = attribute_of(attributes, _XML_BASE)
    return outer if reference is None else resolve_xml_base(outer, reference)


_LINKS: Final = frozenset(f"{namespace}}}link" for namespace in ATOM_NAMESPACES)
_DELETED: Final = f"{TOMBSTONE_NS}}}deleted-entry"


def _head_link(attributes: Sequence[str], scope: Scope) -> Link:
    """Return what an atom:link of the head says (R11, R12; RFC 4287, 4.2.7)."""
    relation = (attribute_of(attributes, "rel") or "").strip(SPACES).lower() or "alternate"
    href = (attribute_of(attributes, "href") or "").strip(SPACES)
    target = resolve_or_empty(base_in(scope.base, attributes), href)
    media_type = (attribute_of(attributes, "type") or "").partition(";")[0].strip(SPACES).lower()
    return Link(relation.removeprefix(IANA_RELATION_PREFIX), target, media_type, href)


_MAX_REF_CHARACTERS: Final = 4096


def _tombstone(attributes: Sequence[str]) -> Tombstone | None:
    """Return what an at:deleted-entry says (RFC 6721, 3); None when its ref or its instant is missing."""
    ref = (attribute_of(attributes, "ref") or "").strip(SPACES)
    when_at = parse_rfc3339(attribute_of(attributes, "when") or "")
    if not ref or when_at is None:
        return None
    return Tombstone(entry_id(ref), when_at, ref if len(ref) <= _MAX_REF_CHARACTERS else "")


# Entries that are written plainly, each read by one match instead of a call for each of its elements


class Plain(NamedTuple):
    """How the plain entries of a document are read."""

    end_tag: bytes
    """Behind which the next is looked for where an entry is not plain."""
    pattern: re.Pattern[bytes]
    """Of an entry, without a "<!" in it but for CDATA sections."""
    made: Callable[[re.Match[bytes]], Entry | None]
    """Makes the entry that was found; None: it has to be looked at closely."""


_MAX_TAGS: Final = 400
"""In one child of a plain entry: they cannot nest deeper than half of that."""
_LEAST_DEPTH: Final = _MAX_TAGS // 2 + 16
"""Where fewer levels of elements are allowed, every one is looked at."""
_FREE_MISSES: Final = 8
_ENTRY_BEGINS: Final = re.compile(rb"<(?:entry|item)(?=[\s>])")
_NOTHING_MORE: Final = re.compile(rb"(?:\s++|</[^<>]*+>|<!--(?:[^-]++|-(?!->))*+-->)*+\Z")


def read_plainly(opening: Opening) -> bool:
    """Read the plain entries of the document that begins by their pattern; return whether there were any.

    expat still reads every byte, with no handlers for elements, so nothing is taken for well-formed that is
    not. An entry that does not match goes through the handlers, and the next is tried again. What follows
    the last plain one is left to `Guard.finish`; then `is_within_limits` tells of the elements that nobody
    looked at.

    Raises:
        ParseError: As `Guard.read` does.
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
    """Add the plain entries that follow one another from there; return where the last of them ends."""
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


_SMALLEST_TAG_BYTES: Final = 4
"""`<a/>`; no attribute is smaller."""


def is_within_limits(guard: Guard) -> bool:
    """Whether no limit on all elements together can be broken, in whatever of them nobody looked at."""
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
_DECLARES_NOTHING: Final = _ATTRIBUTES % {b"but": b"(?!xmlns)"}
"""What may stand in a start tag behind the name, where the name has to mean what it means around it."""
_TEXT: Final = rb"[^<&\r]++"
"""Text that means what is written."""
_DATE: Final = rb"[ \t\n!-%'-;=-~]++"
"""The same in ASCII."""
_CDATA: Final = rb"<!\[CDATA\[(?:[^\]]++|\](?!\]>))*+\]\]>"


def _entry_pattern(tag: str, *children: bytes) -> re.Pattern[bytes]:
    """Return the pattern of an entry that holds nothing but such children, and of the blanks before it.

    It holds for a piece of a well-formed document that begins where an entry may. In it each "<" outside of a
    CDATA section begins a tag; the first end tag of a child's name behind its start tag is its own unless
    another one of that name begins before. No match needs more than a few looks at each byte. In what is
    well-formed none looks further than the entry's end; in what is not expat stops behind the first that
    does.

    A group that one child sets keeps what it has where another child matches in the end: no two patterns may
    begin to match the same child. Group 1 is where the entry begins.
    """
    name = tag.encode()
    inside = rb"\s*+(?:<(?:%s)\s*+)*" % b"|".join(children)
    return re.compile(rb"[ \t\r\n]*+(<)%s%s>%s</%s\s*+>" % (name, _DECLARES_NOTHING, inside, name))


def _once(number: int, name: str, text: bytes) -> bytes:
    """Return the pattern of a child whose text counts, behind the "<" of its start tag.

    A second one in the same entry does not match: the first one counts (rule R9). `number` is that of the
    group that its text becomes, by its place in the whole pattern.
    """
    only = rb"(?(%d)(?!)|(%s))" % (number, text)
    return rb"%s%s>%s</%s\s*+>" % (name.encode(), _DECLARES_NOTHING, only, name.encode())


def _leaf_or(leaves: Iterable[bytes], content: tuple[str, bytes], other: bytes) -> bytes:
    """Return the pattern of a child that is one of these leaves, as most are, else the other one.

    It takes half as long as the other one alone. No child matches in two ways: of an entry that does not
    match in the end each way would be tried with each of all others. `content` is name and pattern of the
    attributes of one more leaf, which sets the group of that name.
    """
    either, marked = (
        b"|".join((*leaves, _leaf(*content, before)))
        for before in (b"", rb"(?:(?!%s)(?P<content>))?+" % _BLANK)
    )
    return rb"%s|(?!%s)%s" % (marked, either, other)


_BLANK: Final = rb"\s*+(?:<!\[CDATA\[\s*+\]\]>\s*+)?+</"
"""What stands behind the start tag of an element that says nothing."""


def _leaf(name: str, attributes: bytes = _ANY, before: bytes = b"") -> bytes:
    """Return the pattern of a child without elements in it, behind the "<" of its start tag.

    Before its text `before` has to match.
    """
    text = rb"[^<]*+(?:%s[^<]*+)*+" % _CDATA
    return rb"%s%s(?:/>|>%s%s</%s\s*+>)" % (name.encode(), attributes, before, text, name.encode())


def _skip_pattern(name: bytes, group: bytes, attributes: bytes = _ANY) -> bytes:
    """Return the pattern of a child that is passed over, behind the "<" of its start tag.

    Its name, which is a pattern too, becomes the group.
    """
    inside = rb"(?:%s|(?!</?(?P=%s)[\s/>])</?%s%s/?>)" % (_CDATA, group, _NAME, _ANY)
    body = rb"[^<]*+(?:%s[^<]*+){0,%d}+" % (inside, _MAX_TAGS)
    return rb"(?P<%s>%s)(?=[\s/>])%s(?:/>|>%s</(?P=%s)\s*+>)" % (group, name, attributes, body, group)


def _other_than(*names: str, content: str) -> bytes:
    """Return the pattern of a name, with a prefix or without, that ends in none of these.

    Where it is that of the content, and something stands there, the group `elements` is set.
    """
    other = rb"(?!(?:[^\s<>/=\"'!?:]++:)?+(?:%s)[\s/>])%s" % ("|".join(names).encode(), _NAME)
    return rb"(?>(?P<elements>%s(?=%s>(?!%s)))|%s)" % (content.encode(), _ANY, _BLANK, other)


_CONTENT_BEGINS: Final = re.compile(rb"<%s%s>(?!%s)" % (_NAME, _ANY, _BLANK))
"""Where an element begins that says something."""


# Atom

# Atom 0.3's names for what RFC 4287 calls otherwise.
_ATOM_03_NAMES: Final = {
    "updated": ("modified",),
    "published": ("issued", "created"),
    "rights": ("copyright",),
}


def _atom_names(*names: str) -> dict[str, str]:
    """Return Atom's elements of these names as expat reports them, of both versions.

    Some write those of 1.0 in the namespace of 0.3.
    """
    new = {f"{namespace}}}{name}": name for namespace in ATOM_NAMESPACES for name in names}
    old = {f"{ATOM_03_NS}}}{own}": name for name in names for own in _ATOM_03_NAMES.get(name, ())}
    return new | old


_ATOM_ENTRIES: Final = frozenset(_atom_names("entry"))
_PERSON_AND_RIGHTS: Final = _atom_names("author", "rights")
_ATOM_HEAD: Final = _atom_names("id", "title", "updated")
_CONTENT: Final = "content"
"""What full content is kept as, in each family (R10)."""
_ATOM_FIELDS: Final = _atom_names("author", "rights", "id", "updated", "source")
_ATOM_FULL_FIELDS: Final = _ATOM_FIELDS | _atom_names("published", "link", "title", "summary")
_ATOM_CONTENT: Final = _atom_names(_CONTENT)


class _AtomParser(FamilyParser):
    """Reads atom:feed of Atom 1.0 (RFC 4287) and 0.3 (the snapshot of December 2003).

    Entries of either may stand in a document of the other, each in its own namespace: that is how documents
    of both come to be one feed (rule R23).
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
        """The author and rights of atom:source count for its entry (RFC 4287, 4.2.1 and 4.2.11)."""
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


_ATOM_LEAVES: Final = (
    *(_leaf(name, _DECLARES_NOTHING) for name in ("title", "summary", "category", "published")),
    _leaf("link", ABSOLUTE),
)
"""In Atom's own namespace, as they are not renamed: of others any attribute may be a URL."""
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
    """Reads rss: RSS 2.0 and its forebears 0.9x, but for those in RDF.

    Some documents put the root in a default namespace of their own making; then its elements are those of
    that namespace. In RSS 0.90's manner items may also stand beside the channel; some stand in a further one.
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
        """What is in force for items that are not in the first channel, which is the feed."""
        self._root_scope = self.scope
        self._accept({namespace, *RSS_NAMESPACES})

    def _accept(self, namespaces: set[str]) -> None:
        """Take RSS's own elements from these namespaces too."""
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
        """Beside the first channel and in further ones only items count."""
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
        if url and slot == _MEDIA:  # no enclosure: such URLs change with an edit
            self.values[_MEDIA] = f"{self.values.get(_MEDIA, '')}\n{url}"
        elif url:
            self.enclosures.append(url)

    def _is_plain(self, namespace: str) -> bool:
        """An item without a prefix is one, whatever default namespace was put around it.

        With a prefix only where every reader knows its namespace: the output's rss element is in none.
        """
        if namespace in RSS_NAMESPACES:
            return True
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
    """Return RSS's own element names as expat reports them in any of these namespaces."""
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
    """Reads rdf:RDF: RSS 1.0 and 0.90, with a channel and the items beside it.

    What the channel declares holds for its own children alone. Some documents have the items in the channel
    all the same; then it holds for them too. The channel's dc:date counts as its pubDate, for RSS 1.0 has no
    other (R10).
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
        """With a prefix too where every reader knows the namespace, which a channel may have made up."""
        return namespace in _RDF_NAMESPACES or super()._is_plain(namespace)
