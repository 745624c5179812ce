"""What Atom and RSS have in common: an element that holds the head's children and the entries.

A `FamilyParser` takes the elements of one document from expat. At any time it waits for two things only:
elements that begin at one depth (`Frame.watch`), and the end of the element at another (`Frame.until`);
everything else costs a comparison. Nothing is built from what lies deeper; entries are byte ranges.

    container --entry begins--> entry --a wanted field begins--> field --ends--> entry --ends--> container
    container --another child begins--> head child --ends--> container
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from wholefeed.core.model import (
    Entry,
    EntryId,
    EntryKeys,
    FeedDocument,
    Head,
    HeadChild,
    HistoryElement,
    Link,
    Scope,
    Tombstone,
    entry_id,
)
from wholefeed.core.notes import Note
from wholefeed.core.parse.collapsing import collapsed
from wholefeed.core.parse.identities import (
    SPACES,
    FieldsNeededError,
    absolute,
    entry_keys,
    has_id,
    told_apart,
)
from wholefeed.core.parse.limits import (
    MAX_ENTRIES,
    MAX_HEAD_BYTES,
    MAX_HEAD_CHILDREN,
    MAX_LIKE_ENTRIES,
)
from wholefeed.core.parse.xml.attributes import (
    DELETED,
    LINKS,
    base_in,
    head_link,
    tombstone,
)
from wholefeed.core.parse.xml.frames import Frame, Options, ignore, nothing
from wholefeed.core.parse.xml.guard import Guard
from wholefeed.core.parse.xml.plain import Plain
from wholefeed.core.parse.xml.scopes import FurtherScopes
from wholefeed.core.parse.xml.waiting import Waiting
from wholefeed.core.terms import FH_NS, MEMORY_URL, Family


class FamilyParser(Waiting, ABC):
    """Reads one document of one family, from the start of its root on.

    Args:
        guard: It watches over expat; its element handlers are taken over.
        url: Of the document, after redirects.
        options: What is wanted.
    """

    family: ClassVar[Family]

    def __init__(self, guard: Guard, url: str, options: Options) -> None:
        super().__init__(guard)
        self.url = url
        self.version = ""
        self.has_entered = False
        """Whether the first entry began."""
        self._options = options
        self.is_full = options.is_full
        self.fields: Mapping[str, str] = {}
        """Children of entries that are read, and what each is kept as."""
        self.marks: frozenset[str] = frozenset()
        """Those among them whose text is not wanted: `mark` looks at them."""
        self.entries: list[Entry] = []
        self._keys: list[EntryKeys] = []
        """Of each entry, where all fields are read."""
        self.values: dict[str, str] = {}
        """Of the entry that is being read."""
        self.enclosures: list[str] = []
        """The URLs of its enclosures, as written."""
        self.head_values: dict[str, str] = {}
        self.children: list[HeadChild] = []
        self.links: list[Link] = []
        self.history: list[HistoryElement] = []
        self.tombstones: list[Tombstone] = []
        self.scope = Scope({}, "", url)
        """The head's."""
        self.scopes = FurtherScopes(guard)
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
        self._container = self._entry_frame = Frame(0, ignore, 0, nothing)
        self._container_at = 0

    # -- what a family adds -------------------------------------------------------------------------------

    @abstractmethod
    def begin(self, attributes: list[str]) -> None:
        """Take the root's start tag."""

    @abstractmethod
    def head_slot(self, name: str) -> str:
        """Return what the text of a head child is kept as; empty when it is not wanted."""

    @abstractmethod
    def entry(self, start: int, end: int) -> Entry:
        """Make the entry from `values`; one without an id is identified afterwards."""

    @abstractmethod
    def head(self) -> Head:
        """Make the head from what was read so far."""

    # -- expat's handlers ---------------------------------------------------------------------------------

    def take_over(self, attributes: list[str]) -> None:
        """Begin with the root, whose start tag expat reports now."""
        self.guard.check_element("", attributes)
        self.begin(attributes)
        self.look()

    # -- plain entries ------------------------------------------------------------------------------------

    def plain(self) -> Plain | None:
        """Return how the plain entries of the element are read that holds the entries; None: not at all."""
        return None

    def plain_at(self, at: int) -> Plain | None:
        """Return how plain entries are read that begin there; None where none can begin."""
        container = self._container
        is_between = self.watch == container.watch and self.until == container.until
        if self.is_full or not is_between or self.parser.CurrentByteIndex != at:
            return None
        behind = max(self._container_at, 0, *(each[-1].end for each in (self.children, self.entries) if each))
        return None if self.guard.text.find(b"<![CDATA[", behind, at) >= 0 else self.plain()

    # -- the container ------------------------------------------------------------------------------------

    def enter(self, container: Frame, attributes: Sequence[str]) -> None:
        """Go into the element that holds head and entries: what it declares holds for them."""
        self.scope = self.scopes.inner(self.scope, attributes)
        self.contain(container)

    def contain(self, container: Frame) -> None:
        """Wait for the children of an element that holds entries."""
        self._container = container
        self._container_at = self.parser.CurrentByteIndex
        depth = container.watch
        self._entry_frame = Frame(depth + 1, self._field_began, depth, self._entry_ended)
        self.wait(container)

    # -- the head -----------------------------------------------------------------------------------------

    def head_child(self, name: str, attributes: list[str]) -> None:
        """A child of the container that is no entry began."""
        self.start_at = self.parser.CurrentByteIndex
        namespace, _, local = name.rpartition("}")
        relation = ""
        if name in LINKS:
            self.links.append(head_link(attributes, self.scope))
            relation = self.links[-1].relation
        elif name == DELETED and (deleted := tombstone(attributes)):
            self.tombstones.append(deleted)
        self._child = (namespace, local, relation)
        self._slot = local if namespace == FH_NS else self.head_slot(name)
        if self._slot:
            self.parser.CharacterDataHandler = self._add
        self.until, self.on_end = self.watch, self._head_child_ended

    def _head_child_ended(self) -> None:
        namespace, local, relation = self._child
        end = self.guard.end_of(self.start_at)
        self.children.append(HeadChild(namespace, local, self.start_at, end, relation))
        self._head_bytes += end - self.start_at
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

    # -- entries ------------------------------------------------------------------------------------------

    def entry_began(self, attributes: Sequence[str], scope: Scope) -> None:
        """A child of the container that is an entry began, in these surroundings."""
        self.has_entered = True
        self.start_at = self.parser.CurrentByteIndex
        if self._options.is_early:
            self.parser.StartElementHandler = self.parser.EndElementHandler = None
            return
        self.values = {}
        if self.is_full:
            self.enclosures = []
            self.entry_base = base_in(scope.base, attributes)
        self.wait(self._entry_frame)

    def mark(self, slot: str, attributes: list[str]) -> None:
        """A field whose text is not wanted began: it is noted."""
        self.values[slot] = ""

    def _field_began(self, name: str, attributes: list[str]) -> None:
        slot = self.fields.get(name)
        if slot is None:
            return
        if slot in self.marks:
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
        self.wait(Frame(self.watch + 1, on_child, self.watch, self._descended))

    def _descended(self) -> None:
        self.wait(self._entry_frame)

    def _captured(self) -> str:
        self.parser.CharacterDataHandler = None
        pieces = self._pieces
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        return text

    def is_blank(self) -> bool:
        """Whether nothing of the entry that ends now is wanted: all such entries are the same (R9)."""
        return self.is_full and not self.values and not self.enclosures

    def _entry_ended(self) -> None:
        if len(self.entries) >= MAX_LIKE_ENTRIES and self.is_blank() and not self.url.startswith(MEMORY_URL):
            self.wait(self._container)
            return
        if self.values:  # it has children: there is an end tag
            end = self.guard.text.find(b">", self.parser.CurrentByteIndex) + 1
        else:
            end = self.guard.end_of(self.start_at)
        entry = self.entry(self.start_at, end)
        if len(self.entries) >= MAX_ENTRIES:
            self.guard.limit(f"at most {MAX_ENTRIES} entries", "more")
        if self.is_full:
            keys = entry_keys(self.values, self.enclosures, self.entry_base)
            self._keys.append(keys)
            if not has_id(self.values):
                entry = entry._replace(keys=keys)
        self.entries.append(entry)
        self.wait(self._container)

    def identity(self) -> EntryId:
        """Return the identity that the entry's own id makes (R9).

        Raises:
            FieldsNeededError: It has none, and what else identifies it was not collected.
        """
        if not self.is_full and not has_id(self.values):
            raise FieldsNeededError
        return entry_id(self.values.get("id", ""))

    def document(self, text: bytes, notes: tuple[Note, ...] = ()) -> FeedDocument:
        """Return what was read."""
        own_links = [absolute(self.scope.base, self.head_values.get("link", ""))]
        own_links += [
            absolute(self.scope.base, each.href) for each in self.links if each.relation == "alternate"
        ]
        told = told_apart(self.url, self.entries, self._keys, own_links, text)
        entries, notes, further = (
            collapsed(self.url, told.entries),
            (*notes, *told.notes),
            tuple(self.scopes.further),
        )
        head, version = self.head(), self.version
        return FeedDocument(
            self.url, self.family, version, text, head, entries, notes, further, told.ambiguous
        )
