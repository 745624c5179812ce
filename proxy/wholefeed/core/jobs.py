"""The work on whole documents that can be done in another process (docs/design.md#worker-processes).

    read = read_document(body, Sender(url=final_url, media_type=media_type, links=links, fetched_at=now))
    read.navigation, read.facts.entries, read.facts.notes

    composed = compose(Stored(body, url, media_type), tombstones)
    rendered = render([Part(Stored(body, url, media_type), live)], composed.style)

Bytes come in: what is to be known of a document comes out, read once; or what is sent of it, a head or the
sealed text of a segment (docs/design.md#segments); or the memory documents to write before it is replaced
(rules R7, R8). What comes back holds neither the text nor an object an entry: who has the body needs no
second copy of it. `JOBS` has every job by the name that it goes under, and with them what makes a page of
entries for people (`wholefeed.core.compose.reading`).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from math import isnan, nan
from operator import or_
from typing import Any, Final, NamedTuple, Self, cast

from wholefeed.core.adapters.base import Marks, marks_of
from wholefeed.core.compose.compose import (
    ComposedHead,
    CopyDates,
    Heading,
    OpenMemory,
    compose_head,
    heading_of,
    newest_first,
    remember,
)
from wholefeed.core.compose.cutting import cut_short
from wholefeed.core.compose.reading import show_entries
from wholefeed.core.compose.segments import (
    Sealed,
    inflate,
    join_outlines,
    join_sealed,
    pack_outline,
    seal,
    unpack_outline,
)
from wholefeed.core.compose.weaving import Members, Weave, pack_member, publication_dates, unpack_members
from wholefeed.core.links import Navigation, api_url, classify
from wholefeed.core.merge import OTHER, Fullness, Said, counted_instant, fullness_of
from wholefeed.core.model import (
    ENTRY_ID_BYTES,
    MEDIA_TYPE,
    MEMORY_URL,
    SEPARATOR,
    EntryId,
    EntryKeys,
    Family,
    FeedDocument,
    HeadContext,
    Tombstone,
    default_namespace,
    segment_end,
)
from wholefeed.core.notes import Note
from wholefeed.core.parse.documents import parse
from wholefeed.core.parse.limits import UNLIMITED
from wholefeed.core.verbatim.fragments import AnyFragments, fragments_of, prefixes_in
from wholefeed.core.walk.chain import Span

# Reading a document


def read_document(
    body: bytes,
    sender: Sender,
    *,
    max_depth: int,
    style: Style | None = None,
    is_subscription: bool = False,
) -> ReadDocument:
    """Read a document that a publisher has sent.

    Args:
        body: Without content coding.
        sender: What came with it.
        max_depth: As for `parse`.
        style: Render it for that; None: not at all.
        is_subscription: Compose its head, without others' tombstones, and render it for that.

    Raises:
        ParseError: It is no feed, or not readable as one.
    """
    document = parse(body, sender.url, sender.media_type, max_depth=max_depth)
    composed = compose_parsed(document) if is_subscription else None
    if composed is not None:
        style = composed.style
    is_rendered = style is not None and style.family is document.family
    rendered = render_parsed(document, style) if style is not None and is_rendered else None
    return describe(document, body, sender, composed=composed, rendered=rendered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What a publisher said beside the body."""

    url: str
    """Of the document, after redirects."""
    media_type: str
    """Content-Type as sent."""
    links: tuple[str, ...] = ()
    """Values of the Link fields (RFC 8288)."""
    route: str = ""
    """Value of the field X-Discourse-Route."""
    fetched_at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDocument:
    """A document that has come from its publisher."""

    facts: DocumentFacts
    navigation: Navigation
    digest: bytes
    """SHA-256 of the body."""
    span: Span | None
    """Of its entries' dates; None where none counts."""
    marks: Marks
    """What tells who publishes it (R26)."""
    composed: Composed | None = None
    """What it gives as a subscription document, where that was asked for."""
    rendered: Rendered | None = None
    """Its segment if all of its entries are live, where that was asked for and the format is the same."""


def describe(
    document: FeedDocument,
    body: bytes,
    sender: Sender,
    *,
    composed: Composed | None = None,
    rendered: Rendered | None = None,
) -> ReadDocument:
    """Say what is to be known of a document that has been parsed, with what was made of it."""
    return ReadDocument(
        facts=DocumentFacts.of(document),
        navigation=classify(document, sender.links),
        digest=hashlib.sha256(body).digest(),
        span=_span(document, sender.fetched_at),
        marks=marks_of(document, api_url=api_url(sender.links, sender.url), route=sender.route),
        composed=composed,
        rendered=rendered,
    )


def _span(document: FeedDocument, fetched_at: float) -> Span | None:
    dates = [entry.order_at for entry in document.entries if entry.order_at is not None]
    if dates and counted_instant(max(dates), fetched_at) is None:
        dates = [at for at in dates if counted_instant(at, fetched_at) is not None]
    return Span(min(dates), max(dates)) if dates else None


class Stored(NamedTuple):
    """A document that is stored. It was within the limits when it was fetched, whatever they are now."""

    body: bytes
    url: str
    """After redirects."""
    media_type: str

    def parse(self) -> FeedDocument:
        """Return the document.

        Raises:
            ParseError: Only when another parser has stored it.
        """
        return parse(self.body, self.url, self.media_type, max_depth=UNLIMITED)


def read_again(stored: Stored, dates: Sequence[CopyDates] = ()) -> DocumentFacts:
    """Read a stored document once more; its links stay as they were read.

    Args:
        stored: The document.
        dates: Of remembered copies; they count where there is one for each entry.

    Raises:
        ParseError: Only when another parser has stored it.
    """
    document = stored.parse()
    return DocumentFacts.of(document, dates if len(dates) == len(document.entries) else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What is kept of a document beside its body."""

    family: Family
    version: str
    site_id: str
    """As `Head.site_id`."""
    updated_at: float | None
    """As `Head.updated_at`."""
    tombstones: tuple[Tombstone, ...]
    notes: tuple[Note, ...]
    """On how it reads."""
    entries: PackedEntries
    keys: PackedKeys
    """Of entries without an id of their own."""
    ambiguous: frozenset[EntryId]
    """As `FeedDocument.ambiguous`."""

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        """Say what is kept of a document; `dates` as in `PackedEntries.of`."""
        return cls(
            family=document.family,
            version=document.version,
            site_id=document.head.site_id,
            updated_at=document.head.updated_at,
            tombstones=document.head.tombstones,
            notes=document.notes,
            entries=PackedEntries.of(document, dates),
            keys=PackedKeys.of(document),
            ambiguous=document.ambiguous,
        )

    def identified(self, ambiguous: Collection[EntryId]) -> Self:
        """Return the same, with entries identified by what is ambiguous in their feed (R9)."""
        return replace(self, entries=self.entries.identified(self.keys.identities(ambiguous)))


# The entries of a document in little space: 53 bytes each instead of several objects


@dataclass(frozen=True, slots=True)
class PackedEntries:
    """The entries of a document, from the top.

        entries = PackedEntries.of(document)
        len(entries)
        for entry in entries:           # made one at a time, and not kept
            entry.identity

    A document may hold 250,000 entries. Packed, they go between processes and threads as one piece, and
    whoever needs no more than their number touches none of them.
    """

    data: bytes

    @classmethod
    def of(cls, document: FeedDocument, dates: Sequence[CopyDates] = ()) -> Self:
        """Pack the entries of a document.

        Args:
            document: As parsed.
            dates: Of remembered copies, one an entry; none: the entries' own.
        """
        if dates:
            return cls.packed(
                EntryFacts(
                    each.identity,
                    at.updated_at,
                    each.order_at,
                    each.end - each.start,
                    at.document_updated_at,
                    fullness_of(each) if at.fullness is None else at.fullness,
                    at.made_at,
                )
                for each, at in zip(document.entries, dates, strict=True)
            )
        pack, none, full, unknown = _RECORD.pack, _NO_INSTANT, int(Fullness.FULL), int(Fullness.UNKNOWN)
        return cls(
            b"".join(
                [
                    pack(
                        identity,
                        none if updated_at is None else updated_at,
                        none if order_at is None else order_at,
                        none,
                        none,
                        end - start,
                        full if has_content else unknown,
                    )
                    for identity, updated_at, order_at, start, end, _, _, _, _, _, has_content in (
                        document.entries
                    )
                ]
            )
        )

    @classmethod
    def packed(cls, entries: Iterable[EntryFacts]) -> Self:
        """Pack what is known of entries."""
        pack = _RECORD.pack
        return cls(
            b"".join(
                pack(
                    identity,
                    _number(updated_at),
                    _number(order_at),
                    _number(document_at),
                    _number(made_at),
                    size,
                    fullness,
                )
                for identity, updated_at, order_at, size, document_at, fullness, made_at in entries
            )
        )

    def __len__(self) -> int:
        return len(self.data) // _RECORD.size

    def __iter__(self) -> Iterator[EntryFacts]:
        for identity, updated_at, order_at, document_at, made_at, size, fullness in self.records():
            yield EntryFacts(
                EntryId(identity),
                _instant(updated_at),
                _instant(order_at),
                size,
                _instant(document_at),
                fullness,
                _instant(made_at),
            )

    def records(self) -> Iterator[_Record]:
        """Yield the entries as they are packed, without an object for each.

        Identity, `updated_at`, `order_at`, `document_updated_at`, `made_at`, size and fullness; no instant is
        not a number.
        """
        return cast("Iterator[_Record]", _RECORD.iter_unpack(self.data))

    def said(self) -> Iterator[Said]:
        """Yield the entries as they are compared with what stood in their place."""
        for identity, updated_at, _, _, _, size, fullness in self.records():
            yield Said(EntryId(identity), _instant(updated_at), size, fullness)

    @property
    def fullness(self) -> bytes:
        """Of each, from the top."""
        return self.data[_RECORD.size - 1 :: _RECORD.size]

    def identities(self) -> Iterator[EntryId]:
        for (identity,) in _IDENTITY.iter_unpack(self.data):
            yield EntryId(identity)

    def identified(self, identities: Mapping[int, EntryId]) -> Self:
        """Return the same entries, some with another identity.

        Args:
            identities: By ordinal.
        """
        data = bytearray(self.data)
        for ordinal, identity in identities.items():
            start = ordinal * _RECORD.size
            data[start : start + ENTRY_ID_BYTES] = identity
        return replace(self, data=bytes(data))

    def cut(self, ordinals: Iterable[int]) -> Self:
        """Return the same entries, these of them known to be cut short (R10)."""
        data = bytearray(self.data)
        for ordinal in ordinals:
            data[(ordinal + 1) * _RECORD.size - 1] = Fullness.CUT
        return replace(self, data=bytes(data))

    def copy_dates(self) -> tuple[CopyDates, ...]:
        """Return what remembered copies are known by."""
        return tuple(
            CopyDates(each.updated_at, each.document_updated_at, each.fullness, each.made_at) for each in self
        )

    @property
    def dated_identities(self) -> DatedIdentities:
        """Identity and update instant of each."""
        return DatedIdentities(self.data)


class EntryFacts(NamedTuple):
    """What is kept of an entry beside the text. Its place in the sequence is its ordinal."""

    identity: EntryId
    updated_at: float | None
    order_at: float | None
    size: int
    """In bytes, as the publisher wrote it."""
    document_updated_at: float | None = None
    """Of a remembered copy: that of the subscription document it stood in."""
    fullness: int = Fullness.UNKNOWN
    """As a `Fullness`."""
    made_at: float | None = None
    """Of a remembered copy: when the document was made that it stood in, as `Copy.generated_at`."""


_Record = tuple[bytes, float, float, float, float, int, int]


@dataclass(frozen=True, slots=True)
class DatedIdentities:
    """Identity and update instant of each entry, for whoever goes through them, as often as they like."""

    data: bytes

    def __iter__(self) -> Iterator[tuple[EntryId, float | None]]:
        keys = cast("Iterator[tuple[EntryId, float]]", _DATED_IDENTITY.iter_unpack(self.data))
        return ((identity, None if isnan(updated_at) else updated_at) for identity, updated_at in keys)


_RECORD: Final = struct.Struct(f"={ENTRY_ID_BYTES}sddddIB")
_DATED_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}sd29x")
_IDENTITY: Final = struct.Struct(f"={ENTRY_ID_BYTES}s{_RECORD.size - ENTRY_ID_BYTES}x")
assert _DATED_IDENTITY.size == _IDENTITY.size == _RECORD.size

_NO_INSTANT: Final = nan
"""The parser makes no such instant."""


def _number(instant: float | None) -> float:
    return _NO_INSTANT if instant is None else instant


def _instant(number: float) -> float | None:
    return None if isnan(number) else number


@dataclass(frozen=True, slots=True)
class PackedKeys:
    """What can identify those entries of a document that have no id of their own (rule R9)."""

    data: bytes = b""

    @classmethod
    def of(cls, document: FeedDocument) -> Self:
        """Pack the keys of a document's entries."""
        pack, absent = _PACKED_KEYS.pack, bytes(ENTRY_ID_BYTES)
        return cls(
            b"".join(
                pack(ordinal, *(key or absent for key in entry.keys))
                for ordinal, entry in enumerate(document.entries)
                if entry.keys is not None
            )
        )

    def __bool__(self) -> bool:
        return bool(self.data)

    def __iter__(self) -> Iterator[tuple[int, EntryKeys]]:
        """Yield the ordinal of each such entry, and its keys."""
        for ordinal, link, enclosure, content, enclosures in _PACKED_KEYS.iter_unpack(self.data):
            keys = EntryKeys(_present(link), _present(enclosure), EntryId(content), _present(enclosures))
            yield ordinal, keys

    def identities(self, ambiguous: Container[EntryId]) -> dict[int, EntryId]:
        """Return what identifies each, by its ordinal."""
        return {ordinal: keys.identity(ambiguous) for ordinal, keys in self}


_PACKED_KEYS: Final = struct.Struct("=I" + f"{ENTRY_ID_BYTES}s" * 4)


def _present(key: bytes) -> EntryId | None:
    return EntryId(key) if any(key) else None


# What is sent of documents: the head, and the text of a segment


def compose(subscription: Stored, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Return the head, and what the segments behind it are rendered for.

    Args:
        subscription: The subscription document.
        tombstones: Of the feed's other documents, to be passed on (R19).

    Raises:
        ParseError: Only when another parser has stored it.
    """
    return compose_parsed(subscription.parse(), tombstones)


def compose_parsed(document: FeedDocument, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Do what `compose` does, with a document that has been parsed."""
    return compose_slices(own_slices(document), tombstones)


def own_slices(document: FeedDocument) -> AnyFragments:
    """Return the slices of a subscription document for its own style, which head and entries share."""
    return fragments_of(document, default_namespace(document.family, document.version))


def compose_slices(fragments: AnyFragments, tombstones: Sequence[Tombstone] = ()) -> Composed:
    """Do what `compose` does, with what `own_slices` returns."""
    document = fragments.document
    head = compose_head(fragments, tombstones)
    style = Style(document.family, document.version, fragments.context())
    return Composed(head, heading_of(document), style)


class Composed(NamedTuple):
    """What a subscription document gives to the answer, beside its entries."""

    head: ComposedHead
    heading: Heading
    style: Style


class Style(NamedTuple):
    """What segments are rendered for: the subscription document's format, and what its entries inherit."""

    family: Family
    version: str
    context: HeadContext
    lists_members: bool = False
    """Whether to say which entries there are, for them to be put in the order of publication (R20)."""

    @property
    def namespace(self) -> str:
        """The default namespace around the entries."""
        return default_namespace(self.family, self.version)

    @property
    def digest(self) -> bytes:
        """Of what entries inherit."""
        parts = [*self.context.authors, b"", *self.context.rights, b"", self.context.language]
        return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


def render(parts: Sequence[Part], style: Style) -> Rendered:
    """Return the live entries of documents, one document after the other, as one segment.

    Args:
        parts: The documents, in output order.
        style: What they are rendered for.

    Raises:
        ParseError: Only when another parser has stored one of them.
    """
    rendered = [document for document, _ in parts if isinstance(document, Rendered)]
    if len(rendered) == len(parts) and _can_join(rendered, style.family):
        return _joined(rendered)
    text = _Text()
    for document, live in parts:
        match document:
            case Rendered():
                text.add_rendered(document, style.family)
            case FeedDocument():
                text.add(document, live, style)
            case Stored():
                text.add(document.parse(), live, style)
            case _:
                text.add_slices(document, live, style)
    return text.sealed(style)


class Part(NamedTuple):
    """One document's share of a segment."""

    document: Stored | FeedDocument | AnyFragments | Rendered
    """As it is stored, as it was parsed, its slices, or all of it as it was rendered; these two in the same
    style."""
    live: Sequence[int] | None
    """The ordinals of its live entries, from the top; None: all of them, as in what is rendered."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Live entries in output order, sealed."""

    sealed: Sealed
    prefixes: int
    """Mask of the well-known prefixes that it uses."""
    newest_at: float | None
    oldest_at: float | None
    entries: int
    context: bytes | None
    """`Style.digest` where it leans on the head; None where it is the same under each head."""
    outline: bytes
    """Of the text, as `wholefeed.core.compose.segments` packs it."""
    members: bytes
    """Its entries, as `wholefeed.core.compose.weaving` packs them, by the places of their parts; empty where
    that was not asked for."""


def render_parsed(document: FeedDocument, style: Style) -> Rendered:
    """Return the segment of one document all of whose entries are live."""
    text = _Text()
    text.add(document, None, style)
    return text.sealed(style)


JOINED_BYTES: Final = 1 << 16
"""Where rendered documents have so much text each, a segment of several is made of their blocks as they are:
to deflate them again took a twelfth of a first walk."""


def _can_join(rendered: Sequence[Rendered], family: Family) -> bool:
    """Whether the blocks that there are may stand in a row: each ends as an entry does, and is large."""
    text_bytes = sum(each.sealed.length for each in rendered)
    return SEPARATOR[family] == segment_end(family) and text_bytes >= len(rendered) * JOINED_BYTES


def _joined(rendered: Sequence[Rendered]) -> Rendered:
    """Return what was rendered in one style as one segment."""
    newest = [each.newest_at for each in rendered if each.newest_at is not None]
    oldest = [each.oldest_at for each in rendered if each.oldest_at is not None]
    return Rendered(
        sealed=join_sealed([each.sealed for each in rendered]),
        prefixes=reduce(or_, (each.prefixes for each in rendered)),
        newest_at=max(newest, default=None),
        oldest_at=min(oldest, default=None),
        entries=sum(each.entries for each in rendered),
        context=next((each.context for each in rendered if each.context is not None), None),
        outline=join_outlines(each.outline for each in rendered),
        members=b"".join(
            pack_member(part, *member)
            for part, each in enumerate(rendered)
            for _, *member in unpack_members(each.members)
        ),
    )


@dataclass(slots=True)
class _Text:
    """A segment while it grows."""

    fragments: list[bytes] = field(default_factory=list)
    entries: list[tuple[int, float | None]] = field(default_factory=list)
    """Length and date of each."""
    members: list[bytes] = field(default_factory=list)
    """The same entries, packed."""
    parts: int = 0
    """How many have been added."""
    prefixes: int = 0
    """Mask of the well-known prefixes that may occur."""
    needs_context: bool = False

    def add_rendered(self, rendered: Rendered, family: Family) -> None:
        """Append what was rendered before."""
        fragments = fragments_in(rendered, family)
        self.fragments += fragments
        dates = [each.order_at for each in unpack_outline(rendered.outline)]
        self.entries += zip(map(len, fragments), dates, strict=True)
        self.members += [pack_member(self.parts, *each) for _, *each in unpack_members(rendered.members)]
        self.parts += 1
        self.prefixes |= rendered.prefixes
        self.needs_context = self.needs_context or rendered.context is not None

    def add(self, document: FeedDocument, live: Sequence[int] | None, style: Style) -> None:
        """Append the live entries of a document in output order (R20)."""
        self.add_slices(fragments_of(document, style.namespace), live, style)

    def add_slices(self, fragments: AnyFragments, live: Sequence[int] | None, style: Style) -> None:
        """Do the same with a document's slices, which were made for that style."""
        entries = fragments.document.entries
        count = len(entries)
        live = range(count) if live is None else [ordinal for ordinal in live if ordinal < count]
        ordinals = [live[place] for place in newest_first([entries[ordinal].order_at for ordinal in live])]
        made = fragments.all_sent(ordinals, style.context)
        self.fragments += made
        self.entries += zip(map(len, made), [entries[ordinal].order_at for ordinal in ordinals], strict=True)
        if style.lists_members:
            dates, part = publication_dates(fragments.document), self.parts
            self.members += [
                pack_member(part, ordinal, len(fragment), dates[ordinal])
                for ordinal, fragment in zip(ordinals, made, strict=True)
            ]
        self.parts += 1
        self.prefixes |= fragments.prefixes
        self.needs_context = self.needs_context or fragments.needs_context

    def sealed(self, style: Style) -> Rendered:
        return sealed_text(
            self.fragments,
            self.entries,
            style,
            prefixes=self.prefixes,
            needs_context=self.needs_context,
            members=b"".join(self.members),
        )


def fragments_in(rendered: Rendered, family: Family) -> list[bytes]:
    """Return the text of each entry of what was rendered, without what stands between two."""
    sealed = rendered.sealed
    text = inflate(sealed.block, sealed.length, sealed.crc32)
    joint, end_of_all = len(SEPARATOR[family]), len(segment_end(family))
    slices = unpack_outline(rendered.outline)
    fragments = [text[start : end - joint] for start, end, _ in slices[:-1]]
    return fragments + [text[start : end - end_of_all] for start, end, _ in slices[-1:]]


def sealed_text(
    fragments: Sequence[bytes],
    entries: Sequence[tuple[int, float | None]],
    style: Style,
    *,
    prefixes: int,
    needs_context: bool,
    members: bytes,
) -> Rendered:
    """Return entries that were rendered for a style as one segment.

    Args:
        fragments: The text of each.
        entries: Length and date of each.
        style: What they were rendered for.
        prefixes: Mask of the well-known prefixes that may occur.
        needs_context: Whether they may lean on the head.
        members: As in `Rendered`.
    """
    text = SEPARATOR[style.family].join(fragments)
    text += segment_end(style.family) if text else b""
    dates = [at for _, at in entries if at is not None]
    return Rendered(
        sealed=seal(text),
        prefixes=prefixes_in(text, prefixes),
        newest_at=max(dates, default=None),
        oldest_at=min(dates, default=None),
        entries=len(entries),
        context=style.digest if needs_context else None,
        outline=pack_outline(entries, len(SEPARATOR[style.family]), len(text)),
        members=members,
    )


class Sheaf:
    """A segment of entries that stand in several others (`wholefeed.core.compose.weaving`).

    sheaf = Sheaf(weave, weave.members(stamps))
    for number in sheaf.strands:
        sheaf.take(number, rendered, fragments_in(rendered, family))
    sheaf.sealed(style)
    """

    def __init__(self, weave: Weave, members: Members) -> None:
        self.members = members
        """Its entries."""
        self._wanted: dict[int, list[tuple[int, int]]] = {}
        for place, pick in enumerate(weave.picks):
            self._wanted.setdefault(pick.strand, []).append((place, pick.place))
        self._fragments = [b""] * len(weave.picks)
        self._dates: list[float | None] = [None] * len(weave.picks)
        self._prefixes = 0
        self._needs_context = False

    @property
    def strands(self) -> Collection[int]:
        """The numbers of those that its entries stand in."""
        return self._wanted.keys()

    def take(self, strand: int, rendered: Rendered, fragments: Sequence[bytes]) -> None:
        """Take its entries from one of these; `fragments` are the texts of all that stand there."""
        slices = unpack_outline(rendered.outline)
        for place, there in self._wanted[strand]:
            self._fragments[place] = fragments[there]
            self._dates[place] = slices[there].order_at
        self._prefixes |= rendered.prefixes
        self._needs_context = self._needs_context or rendered.context is not None

    def sealed(self, style: Style) -> Rendered:
        """Return the segment, once all of it is there; `style` is what it was rendered for."""
        return sealed_text(
            self._fragments,
            list(zip(map(len, self._fragments), self._dates, strict=True)),
            style,
            prefixes=self._prefixes,
            needs_context=self._needs_context,
            members=self.members.packed,
        )


# What is remembered of a document that is being replaced


def remember_copies(
    old: Stored | FeedDocument,
    present: Mapping[EntryId, int],
    memory: StoredMemory | None,
    *,
    new: Stored | FeedDocument | None = None,
    known: Sequence[int | None] = (),
    ambiguous: Collection[EntryId] = (),
    fetched_at: float,
    next_number: int,
    latest: float | None = None,
    made_at: float | None = None,
    keeps_parsed: bool = False,
) -> Kept:
    """Return the memory documents to write so that no entry of `old` is lost, and no full text.

    Args:
        old: What is replaced.
        present: As `Replacement.present`; `OTHER` where nothing need be remembered.
        memory: The newest memory document that is not sealed, if there is one.
        new: What replaces it, where the texts have to be compared.
        known: The fullness of the old entries, as it is stored.
        ambiguous: Keys that identify nothing in the feed (R9).
        fetched_at: When `old` was fetched, epoch seconds.
        next_number: What the first new memory document is numbered.
        latest: The date of `old` counts as at most this.
        made_at: When `old` was made, where that counts (R10).
        keeps_parsed: Whether to return them parsed, too: for small ones, in the same process.

    Raises:
        ParseError: Only when another parser has stored one of them.
    """
    held = None
    if memory is not None:
        held = OpenMemory(memory.number, _parsed(memory.document).identified(ambiguous), memory.dates)
    document = _parsed(old).identified(ambiguous)
    media_type = MEDIA_TYPE[Family.JSON] if document.family is Family.JSON else _XML_TYPE
    fullness = _fullness_of(document, known)
    cut = frozenset[EntryId]()
    if new is not None:
        was_cut = {
            entry.identity
            for entry, own in zip(document.entries, fullness, strict=True)
            if own == Fullness.CUT
        }
        remembered = None if held is None else held.document
        cut = cut_short(document, _parsed(new).identified(ambiguous), was_cut, remembered)
        present = {each: Fullness.CUT if each in cut and at != OTHER else at for each, at in present.items()}
    written = []
    for each in remember(
        document,
        present,
        held,
        fetched_at=fetched_at,
        next_number=next_number,
        latest=latest,
        fullness=fullness,
        made_at=made_at,
    ):
        stored = Stored(each.text, f"{MEMORY_URL}{each.number}", media_type)
        parsed = stored.parse()
        written.append(
            WrittenMemory(
                number=each.number,
                document=stored,
                facts=DocumentFacts.of(parsed, each.dates),
                digest=hashlib.sha256(each.text).digest(),
                is_sealed=each.is_sealed,
                parsed=parsed if keeps_parsed else None,
            )
        )
    return Kept(written, cut)


def _fullness_of(document: FeedDocument, known: Sequence[int | None]) -> list[int]:
    told = known if len(known) == len(document.entries) else [None] * len(document.entries)
    return [
        fullness_of(entry) if own is None else own for entry, own in zip(document.entries, told, strict=True)
    ]


class Kept(NamedTuple):
    """What is kept of a document that is replaced, and what was found out about the one that replaces it."""

    written: list[WrittenMemory]
    cut: frozenset[EntryId]
    """The entries that were cut short there (R10)."""


class StoredMemory(NamedTuple):
    """The newest memory document, as it is stored, or as it was parsed."""

    number: int
    document: Stored | FeedDocument
    dates: Sequence[CopyDates]
    """Per entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMemory:
    """A memory document to store."""

    number: int
    document: Stored
    facts: DocumentFacts
    digest: bytes
    """SHA-256 of the body."""
    is_sealed: bool
    parsed: FeedDocument | None = None
    """Where that was asked for."""


_XML_TYPE: Final = "application/xml; charset=utf-8"


def _parsed(document: Stored | FeedDocument) -> FeedDocument:
    return document.parse() if isinstance(document, Stored) else document


JOBS: Final[Mapping[str, Callable[..., Any]]] = {
    job.__name__: job for job in (read_document, read_again, render, compose, remember_copies, show_entries)
}
"""What may be asked of another process."""
